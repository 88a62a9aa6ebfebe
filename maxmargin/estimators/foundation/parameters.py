"""Constructor arguments as documented fields, from which classes get their constructors and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypedDict, TypeVar, dataclass_transform

from maxmargin.sklearn_contract import has_parameters, parameter

__all__ = ["ATTRIBUTES", "FIT", "FitOptions", "documents_fit", "estimator", "parameter"]

Class = TypeVar("Class", bound=type)
Method = TypeVar("Method", bound=Callable[..., Any])

ATTRIBUTES = """\
trace_ : Trace
    Certificates of the fit: passes, oracle calls, seconds, primal, dual and gap.
certificate_ : Certified
    What is proven of the weights: their objective, a lower bound of the optimum, and the gap between them.
status_ : Status
    Why the fit stopped.
n_iter_ : int
    Runner made.
"""

FIT = """\
sample_weight : (n,) weights of the examples' losses
X_dev, y_dev : held-out examples like X and y, on which the weights of each certificate are scored, by `scoring`: those
    of the highest score are kept, and the fit stops when `patience` runs out
callback : called with the `Trace` after each certificate; the fit stops if it returns True
checkpoint : path of a file in which to keep the state of the fit, at the first certificate of every minute; or a pair
    of the path and other seconds. The same `fit`, called again after it was killed, goes on from there and ends in the
    same weights, bit for bit. The file goes away when the fit ends, unless max_passes, time_limit or Ctrl-C have ended
    it: then the same fit with other limits goes on from it

Returns
-------
self
"""


class FitOptions(TypedDict, total=False):
    """The arguments that every `fit` takes by keyword."""

    X_dev: Any
    y_dev: Any
    callback: Any
    checkpoint: Any


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(parameter,))
def estimator(cls: Class) -> Class:
    """Make a class with `parameter` fields an estimator: give it a constructor, and complete its docstring.

    Arguments are documented in the order in which the classes it inherits from declare them, its own first. A subclass
    may change the default of an inherited argument, whose documentation is kept.
    """
    return has_parameters(cls, ATTRIBUTES)


def documents_fit(method: Method) -> Method:
    """Complete the docstring and the signature of a `fit`, which say what X, y and its own arguments are."""
    method.__doc__ = f"{inspect.cleandoc(method.__doc__ or '')}\n{FIT}"
    signature = inspect.signature(method)
    own = [argument for argument in signature.parameters.values() if argument.kind is not argument.VAR_KEYWORD]
    names = FitOptions.__annotations__
    options = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in names]
    method.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    return method
