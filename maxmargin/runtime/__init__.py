"""How structures and solvers meet at run time: generic functions, compiled kernels, passes over examples on threads."""

from maxmargin.runtime.dispatch import generic, helper, implements, interpreted, kernel, supports

__all__ = ["generic", "helper", "implements", "interpreted", "kernel", "supports"]
