"""Constructor arguments as documented fields, from which classes get their constructors and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields
from textwrap import fill, indent
from typing import Any, TypedDict, TypeVar, dataclass_transform

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


def parameter(kind: str, doc: str, *, default: Any = MISSING, kw_only: bool = True) -> Any:
    """A constructor argument: its type in words, what it is for, and its default."""
    return field(default=default, kw_only=kw_only, metadata={"kind": kind, "doc": doc})


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(parameter,))
def estimator(cls: Class) -> Class:
    """Make a class with `parameter` fields an estimator: give it a constructor, and complete its docstring.

    Arguments are documented in the order in which the classes it inherits from declare them, its own first. A subclass
    may change the default of an inherited argument, whose documentation is kept.
    """
    dataclass(kw_only=True, eq=False, repr=False)(cls)
    start, header, rest = inspect.cleandoc(cls.__doc__ or "").partition("Attributes\n----------\n")
    if header:
        own, blank, end = rest.partition("\n\n")
        described = "".join(map(_describe, _documented(cls)))
        cls.__doc__ = f"{start}Parameters\n----------\n{described}\n{header}{own}\n{ATTRIBUTES}{blank[1:]}{end}"
    return cls


def documents_fit(method: Method) -> Method:
    """Complete the docstring and the signature of a `fit`, which say what X, y and its own arguments are."""
    method.__doc__ = f"{inspect.cleandoc(method.__doc__ or '')}\n{FIT}"
    signature = inspect.signature(method)
    own = [argument for argument in signature.parameters.values() if argument.kind is not argument.VAR_KEYWORD]
    names = FitOptions.__annotations__
    options = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in names]
    method.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    return method


def _documented(cls: type) -> list[tuple[Field, Any]]:
    """The fields of a class with their documentation, those of more special classes first."""
    origin: dict[str, tuple[int, Any]] = {}
    for depth, base in enumerate(cls.__mro__):
        for name in inspect.get_annotations(base):
            declared = base.__dict__.get("__dataclass_fields__", {}).get(name)
            if declared is not None and declared.metadata:
                origin[name] = depth, origin.get(name, (depth, declared.metadata))[1]
    found = sorted((origin[f.name][0], k, f) for k, f in enumerate(fields(cls)) if f.init)
    return [(f, origin[f.name][1]) for _, _, f in found]


def _describe(documented: tuple[Field, Any]) -> str:
    """The entry of one argument in a docstring."""
    argument, doc = documented
    default = f'"{argument.default}"' if isinstance(argument.default, str) else repr(argument.default)
    ending = "" if argument.default is MISSING else f", default={default}"
    return f"{argument.name} : {doc['kind']}{ending}\n{indent(fill(doc['doc'], 112), '    ')}\n"
