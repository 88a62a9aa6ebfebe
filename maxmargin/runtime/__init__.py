"""How structures and solvers meet at run time: generic functions, compiled loops, their files on disk."""

from maxmargin.runtime.dispatch import generic, helper, implements, loop, supports
from maxmargin.runtime.entries import cache_folder
from maxmargin.runtime.modes import interpreted

__all__ = ["cache_folder", "generic", "helper", "implements", "interpreted", "loop", "supports"]
