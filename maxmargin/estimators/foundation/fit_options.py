"""What estimators have in common for their users: attributes of fits, arguments of `fit` and of predictions, documented
once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from textwrap import fill, indent
from typing import Annotated, Any, TypedDict, TypeVar, dataclass_transform, get_args, get_type_hints

from numpy.typing import ArrayLike

from maxmargin.parameters import HEADER, has_parameters, parameter
from maxmargin.trace import Trace

Class = TypeVar("Class", bound=type)
Method = TypeVar("Method", bound=Callable[..., object])
Weights = ArrayLike | None  # one per example

ATTRIBUTES = """\
trace_ : Trace
    Certificates of the fit: passes, oracle calls, seconds, primal, dual and gap.
certificate_ : Certificate
    What is proven of the weights: their objective, a lower bound of the optimum, and the gap between them.
status_ : Status
    Why the fit stopped.
n_iter_ : int
    Passes made.
n_seen_ : int
    Examples of this fit and, after `partial_fit`, of those before.
command_ : str or None
    The command that trained the model, if `maxmargin train` did it.
"""

HELD_OUT = (
    "held-out examples like X and y, or `Shards` of them as X_dev alone, on which the weights of each certificate are "
    "scored, by `scoring`: those of the highest score are kept, and the fit stops when `patience` runs out"
)

EXAMPLES = """\
X
    As in `fit`, with lengths where there are any. Of `Shards`, one after the other is in memory.
"""
ALLOWED = """\
allowed
    What outputs must agree with, written as y with less in it: see the guide, on predictions.
"""


class FitOptions(TypedDict, total=False):
    """The arguments that every `fit` takes by keyword, with what they are for; those of some add to them."""

    X_dev: Annotated[object, HELD_OUT]
    y_dev: Annotated[object, HELD_OUT]
    prior: Annotated[
        object,
        "a fitted model of the same class, of other data: weights are drawn to its weights in place of zero, "
        "||w - w_prior||^2 being in the place of ||w||^2, and the features and labels that only it knows stay known",
    ]
    client: Annotated[
        object,
        "a ``distributed.Client``: the fit runs on the workers of its Dask cluster. X may then be a list of paths of "
        "files of tagged sentences, a list of ``dask.delayed`` objects or futures that are pairs (X, y), or a "
        "``dask.bag`` of such pairs of single examples, with y None, or y the same of its own; or `Shards` in a folder "
        "that all workers see; or a list as usual, which is sent to them",
    ]
    callback: Annotated[
        Callable[[Trace], bool | None] | None,
        "called with the `Trace` after each certificate; the fit stops if it returns True",
    ]
    checkpoint: Annotated[
        object,
        "path of a file in which to keep the state of the fit, at the first certificate of every minute; or a pair of "
        "the path and other seconds. The same `fit`, called again after it was killed, goes on from there and ends in "
        "the same weights, bit for bit. The file goes away when the fit ends, unless max_passes, time_limit or Ctrl-C "
        "have ended it: then the same fit with other limits goes on from it",
    ]


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(parameter,))
def estimator(cls: Class) -> Class:
    """Make a class with `parameter` fields an estimator: give it a constructor, complete its docstrings and `fit`."""
    document_fit(cls)
    return has_parameters(cls, ATTRIBUTES)


def document_fit(cls: type) -> None:
    """Complete the docstring and the signature of the `fit` of a class, which say what X and y are, by its options."""
    method: Any = vars(cls).get("fit")
    if hasattr(method, "own_doc") or "options" not in getattr(method, "__annotations__", {}):  # as where it is a user's
        return
    options = _options_of(method)
    entries: dict[str, list[str]] = {}
    for name, doc in options.items():
        entries.setdefault(doc, []).append(name)
    described = [(", ".join(names), doc) for doc, names in entries.items()]
    n_own = sum(names[0] not in FitOptions.__annotations__ for names in entries.values())
    described.insert(n_own, ("sample_weight", "(n,) weights of the examples' losses"))
    lines = [f"{name}\n{indent(fill(f'{doc[0].upper()}{doc[1:]}.', 112), '    ')}" for name, doc in described]
    joined = "\n".join(lines)
    method.own_doc = inspect.cleandoc(method.__doc__ or "")
    method.__doc__ = f"{method.own_doc}\n{joined}\n\nReturns\n-------\nself\n"
    signature = inspect.signature(method)
    own = [argument for argument in signature.parameters.values() if argument.kind is not argument.VAR_KEYWORD]
    known = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in options]
    method.__signature__ = signature.replace(parameters=[*own, *known])


def documents_prediction(method: Method) -> Method:
    """Complete the docstring of a prediction, which says what else it takes and what it returns, by X and `allowed`."""
    start, returns, rest = inspect.cleandoc(method.__doc__ or "").partition("Returns\n")
    summary, _, own = start.partition(HEADER)
    entries = EXAMPLES + own.removesuffix("\n") + ALLOWED
    method.__doc__ = f"{summary}{HEADER}{entries}\n{returns}{rest}"
    return method


def documented_by(other: Callable[..., object]) -> Callable[[Method], Method]:
    """Give a method the docstring of another one, which has other options."""

    def document(method: Method) -> Method:
        method.__doc__ = getattr(other, "own_doc", other.__doc__)
        return method

    return document


def _options_of(method: Callable[..., object]) -> dict[str, str]:
    """What the options of a `fit` are for, those of its own first."""
    (options,) = get_args(get_type_hints(method, include_extras=True)["options"])
    hints = get_type_hints(options, include_extras=True)
    return {name: get_args(hints[name])[1] for name in sorted(hints, key=lambda n: n in FitOptions.__annotations__)}
