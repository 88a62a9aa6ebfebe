"""scikit-learn's contract of estimators, kept without loading it, which takes longer than everything else here.

What needs scikit-learn (tags, diagrams of notebooks, errors) loads it when it is asked for, as a rule by scikit-learn.
"""

from __future__ import annotations

import copy
import inspect
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Self


class Estimator:
    """An object with parameters: the arguments of its constructor, kept as attributes of the same names."""

    if TYPE_CHECKING:  # a fit sets attributes by name

        def __getattr__(self, name: str) -> Any: ...

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name.

        Parameters
        ----------
        deep : include those of parameters that have some of their own, as ``name__parameter``
        """
        found = {name: getattr(self, name) for name in sorted(inspect.signature(type(self)).parameters)}
        if deep:
            for name, value in [*found.items()]:
                if hasattr(value, "get_params") and not isinstance(value, type):
                    found |= {f"{name}__{inner}": held for inner, held in value.get_params().items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Change parameters, also those of parameters, as ``name__parameter``.

        Parameters
        ----------
        params : the new values by name

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
            getattr(self, name).set_params(**values)
        return self

    def __repr__(self) -> str:
        """The call that makes it, with the arguments that are not the defaults."""
        defaults = {name: repr(p.default) for name, p in inspect.signature(type(self)).parameters.items()}
        shown = {name: repr(value) for name, value in self.get_params(deep=False).items()}
        changed = ", ".join(f"{name}={text}" for name, text in shown.items() if text != defaults[name])
        return f"{type(self).__name__}({changed})"

    def _repr_html_(self) -> str:
        """Its diagram in notebooks."""
        from sklearn.utils import estimator_html_repr

        return estimator_html_repr(self)

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn wants to know of it."""
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))


def unfitted(estimator: Any) -> Any:
    """An estimator with the same parameters that was not fitted, as ``sklearn.base.clone`` makes it."""
    if isinstance(estimator, Estimator):
        params = estimator.get_params(deep=False)
        return type(estimator)(**{name: unfitted(value) for name, value in params.items()})
    if hasattr(estimator, "get_params") and not isinstance(estimator, type):
        from sklearn.base import clone

        return clone(estimator)
    return copy.deepcopy(estimator)


def check_is_fitted(estimator: Any, attribute: str = "_w") -> None:
    """Raise scikit-learn's error if an estimator has not got what a fit learns."""
    if not hasattr(estimator, attribute):
        from sklearn.exceptions import NotFittedError

        name = type(estimator).__name__
        raise NotFittedError(f"This {name} is not fitted yet: call fit before you use it.")
