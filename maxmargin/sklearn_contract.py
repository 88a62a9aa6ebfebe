"""scikit-learn's contract of estimators, kept without loading it, which takes longer than everything else here.

What needs scikit-learn (tags, diagrams of notebooks, requests of metadata, errors) loads it when it is asked for. Once
it is loaded, by whomever, estimators are instances of its `BaseEstimator`: that becomes a base of `Estimator` as soon
as one is made, or is asked for something that it has not got.
"""

from __future__ import annotations

import copy
import functools
import inspect
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from sklearn.utils import Tags

OF_SCIKIT_LEARN = re.compile("set_[a-z_]+_request|get_metadata_routing|_repr_(html|mimebundle)_")


@functools.cache
def parameter_names(cls: type) -> list[str]:
    """The names of the parameters of a class, sorted."""
    return sorted(inspect.signature(cls).parameters)


class Lone:
    """The only base of estimators until scikit-learn is loaded: Python adds none where there is only `object`."""


class Estimator(Lone):
    """An object with parameters: the arguments of its constructor, kept as attributes of the same names."""

    def __new__(cls, *args: object, **options: object) -> Self:
        """As usual, once the base is the right one."""
        adopt_base()
        return super().__new__(cls)

    def __getattr__(self, name: str) -> Any:
        """What there is not yet, unless scikit-learn is loaded."""
        if OF_SCIKIT_LEARN.fullmatch(name):
            import sklearn.base  # noqa: F401
        adopt_base()
        return object.__getattribute__(self, name)  # or the error of a property that raised one

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name.

        Parameters
        ----------
        deep
            Include those of parameters that have some of their own, as ``name__parameter``.
        """
        cls: Any = type(self)
        found = {name: getattr(self, name) for name in parameter_names(cls)}
        if deep:
            for name, value in [*found.items()]:
                found |= {f"{name}__{inner}": held for inner, held in parameters_of(value).items()}
        return found

    def set_params(self, **params: object) -> Self:
        """Change parameters, also those of parameters, as ``name__parameter``.

        Parameters
        ----------
        params
            The new values by name.

        Returns
        -------
        self
        """
        known, nested = self.get_params(deep=False), defaultdict[str, dict[str, Any]](dict)
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name not in known:
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: {[*known]!r}."
                )
            if inner:
                nested[name][inner] = value
            else:
                setattr(self, name, value)
        for name, values in nested.items():
            setattr(self, name, with_parameters(name, getattr(self, name), values))
        return self

    def __repr__(self) -> str:
        """The call that makes it, with the arguments that are not the defaults."""
        defaults = {name: repr(p.default) for name, p in inspect.signature(type(self)).parameters.items()}
        shown = {name: repr(value) for name, value in self.get_params(deep=False).items()}
        changed = ", ".join(f"{name}={text}" for name, text in shown.items() if text != defaults[name])
        return f"{type(self).__name__}({changed})"

    def __sklearn_tags__(self) -> Tags:
        """What scikit-learn wants to know of it."""
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))


def adopt_base() -> None:
    """Make estimators those of scikit-learn, if it is loaded and they are not yet."""
    base = getattr(sys.modules.get("sklearn.base"), "BaseEstimator", None)
    if base is not None and Estimator.__bases__ == (Lone,):
        Estimator.__bases__ = (base,)
        for cls in descendants(Estimator):
            base.__init_subclass__.__func__(cls)  # gives it its methods, such as set_fit_request


def descendants(cls: type) -> Iterator[type]:
    """A class and all that inherit from it."""
    yield cls
    children: list[type] = cls.__subclasses__()
    for child in children:
        yield from descendants(child)


def parameters_of(value: object) -> dict[str, object]:
    """The parameters of an estimator, or of a solver or loss, whose fields they are; of others none."""
    if isinstance(value, type):
        return {}
    if hasattr(value, "get_params"):
        return value.get_params()
    return {f.name: getattr(value, f.name) for f in fields(value) if f.init} if is_dataclass(value) else {}


def with_parameters(name: str, value: Any, changed: dict[str, object]) -> Any:
    """A parameter, called `name`, with some of its own changed; solvers and losses, which cannot, are made again."""
    if hasattr(value, "set_params"):
        return value.set_params(**changed)
    known = parameters_of(value)
    for inner in changed:
        if inner not in known:
            listed = f"it has {', '.join(known)}" if known else f"set {name} to an object that has"
            raise ValueError(f"Invalid parameter {inner!r} of {name}, which is {value!r}: {listed}.")
    return replace(value, **changed)


class SentenceTransformer(Estimator):
    """A transformer of sentences that needs no fit, into lists of features that are no table."""

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import TransformerTags

        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags()
        tags.requires_fit = False
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    def set_output(self, *, transform: str | None = None) -> Self:
        """Do nothing, as pipelines ask all their steps to: features of sentences are no table, whatever is asked for.

        Parameters
        ----------
        transform
            Ignored.
        """
        return self


def unfitted(estimator: object) -> Any:
    """An estimator with the same parameters that was not fitted, as ``sklearn.base.clone`` makes it."""
    if type(estimator) is list or type(estimator) is tuple:
        return type(estimator)([unfitted(part) for part in estimator])
    if isinstance(estimator, Estimator):
        params = estimator.get_params(deep=False)
        return type(estimator)(**{name: unfitted(value) for name, value in params.items()})
    if hasattr(estimator, "get_params") and not isinstance(estimator, type):
        from sklearn.base import clone

        return clone(estimator)
    return copy.deepcopy(estimator)


def check_is_fitted(estimator: object, attribute: str = "_w") -> None:
    """Raise scikit-learn's error if an estimator has not got what a fit learns."""
    if not hasattr(estimator, attribute):
        from sklearn.exceptions import NotFittedError

        name = type(estimator).__name__
        raise NotFittedError(f"This {name} is not fitted yet: call fit before you use it.")
