"""How structures and solvers meet at run time: generic functions, compiled kernels, passes over examples on threads."""

from maxmargin.runtime.dispatch import generic, implements, kernel, supports

__all__ = ["generic", "implements", "kernel", "supports"]
