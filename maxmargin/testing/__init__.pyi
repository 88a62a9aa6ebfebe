"""The public names of testing and where they are defined: a line each, as in that of `maxmargin`."""

from maxmargin.testing.caller import Caller as Caller
from maxmargin.testing.estimator_checks import check_estimator as check_estimator
from maxmargin.testing.solver_checks import check_solver as check_solver
from maxmargin.testing.structure_checks import check_structure as check_structure
from maxmargin.testing.toy_problems import toy_chains as toy_chains
from maxmargin.testing.toy_problems import toy_triangle as toy_triangle
