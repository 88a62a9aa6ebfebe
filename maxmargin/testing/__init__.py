"""Checks for structures, solvers and estimators, the library's own and yours.

`check_structure` tests every generic that a problem implements against the others, against enumeration where you
provide it, and compiled against interpreted. `check_solver` tests a solver's certificates, limits and determinism.
`check_estimator` tests that a model behaves like all others, whatever its structure. All raise `AssertionError` with a
sentence that says what is wrong.

Examples
--------
>>> from maxmargin.solvers import BCFW
>>> from maxmargin.testing import check_solver, check_structure, toy_chains
>>> problem = toy_chains(n=2, n_labels=2, random_state=0)
>>> check_structure(problem)
>>> check_solver(BCFW(), problem)
"""

from maxmargin import public_names

__all__, __getattr__, __dir__ = public_names.load_lazily(__name__)
