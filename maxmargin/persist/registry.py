"""The classes whose objects can be saved: those that were registered, and no others.

A file names classes, and a name in it stands for a class only if that was registered under it, so that a file can
never choose what is imported or run.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

from maxmargin import public_names

Class = TypeVar("Class", bound=type)

PUBLIC = "maxmargin", "maxmargin.text"  # they list public names, whose modules are imported when a file names them

# Classes of other modules, which are imported likewise.
HOMES = {
    "FrequentCRF": "maxmargin.crfsuite.algorithms",
    "ExpLoss": "maxmargin.losses",  # of earlier versions, as MaxLoss and TopKLoss are
    "FrequentSVM": "maxmargin.crfsuite.algorithms",
    "MaxLoss": "maxmargin.losses",
    "Pipeline": "maxmargin.persist.pipelines",
    "TopKLoss": "maxmargin.losses",
    "VotedFeatures": "maxmargin.text.composition.vote_features",
    "crfsuite.CRF": "maxmargin.crfsuite.crf",
}


class Recipe(NamedTuple):
    """How the objects of a class are saved and made again."""

    name: str  # of the class, in files
    cls: type
    get: Callable[[Any], Mapping[str, object]]
    make: Callable[..., object]


class Registry:
    """Recipes, by the names that files have for classes, and by the classes."""

    def __init__(self) -> None:
        self.by_name: dict[object, Recipe] = {}
        self.by_class: dict[type, Recipe] = {}

    def add(self, recipe: Recipe) -> None:
        """Add a recipe, in place of that of the same name, as where a cell of a notebook is run again."""
        if recipe.name in self.by_name:
            self.by_class.pop(self.by_name[recipe.name].cls, None)
        self.by_name[recipe.name] = self.by_class[recipe.cls] = recipe

    def find(self, name: object) -> Recipe | None:
        """The recipe that files mean by a name."""
        if isinstance(name, str) and name not in self.by_name:
            home = next((homes[name] for homes in (*map(public_names.homes, PUBLIC), HOMES) if name in homes), None)
            if home is not None:
                importlib.import_module(home)
        return self.by_name.get(name)


MODELS, STATES = Registry(), Registry()  # what may be in models, and what in checkpoints besides


def register(
    cls: Class,
    *,
    get: Callable[[Any], Mapping[str, object]] | None = None,
    make: Callable[..., object] | None = None,
    name: str | None = None,
) -> Class:
    """Let objects of a class be part of saved models; also a decorator.

    By default an object is saved by the arguments of its constructor, which must be attributes of the same names, as
    those of dataclasses, named tuples and scikit-learn's estimators are, and made again by it. Their values are
    numbers, strings, arrays, lists, tuples, sets, dictionaries, and objects of registered classes. The class must be
    registered before a model that has one is loaded: a file imports nothing.

    Parameters
    ----------
    cls
        The class.
    get
        What to save of an object, by name, in place of the arguments.
    make
        Makes an object of these, given by keyword, in place of the class; it should check them, and run nothing that
        they name, as files may come from strangers.
    name
        What files call the class, by default its name and that of its module.

    Returns
    -------
    the class

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import maxmargin
    >>> @maxmargin.register
    ... @dataclass
    ... class Reader:
    ...     lower_case: bool = True
    ...     columns: tuple = ("word", "tag")
    >>> maxmargin.save(Reader(columns=("word",)), "reader.model")
    >>> maxmargin.load("reader.model")
    Reader(lower_case=True, columns=('word',))
    """
    if name is None:
        module = cls.__module__
        name = cls.__name__ if module.startswith("maxmargin.") else f"{module}.{cls.__qualname__}"
    elif name in MODELS.by_name and MODELS.by_name[name].cls is not cls:
        raise ValueError(f"name must be one that no other class is saved by, but {name!r} is taken.")
    default = partial(_find_member, cls) if issubclass(cls, enum.Enum) else cls
    MODELS.add(Recipe(name, cls, get or arguments_of, make or default))
    return cls


def renaming(cls: Callable[..., object], names: Mapping[str, str | None]) -> Callable[..., object]:
    """A `make` for files of earlier versions: the names that their arguments have now, None for those that are gone."""

    def make(**given: object) -> object:
        renamed = {names.get(name, name): value for name, value in given.items()}
        return cls(**{name: value for name, value in renamed.items() if name is not None})

    return make


def register_state(cls: Class) -> Class:
    """Let objects of a class be part of checkpoints, with all their attributes; a decorator."""
    get, make = (arguments_of, cls) if issubclass(cls, tuple) else (_attributes_of, partial(_restore, cls))
    STATES.add(Recipe(f"{cls.__module__}.{cls.__qualname__}", cls, get, make))
    return cls


def _attributes_of(value: Any) -> Mapping[str, object]:
    return value.__getstate__()


def _restore(cls: type, **attributes: object) -> object:
    value: Any = cls.__new__(cls)  # type: ignore[call-overload]
    if hasattr(value, "__setstate__"):
        value.__setstate__(attributes)
    else:
        vars(value).update(attributes)
    return value


def arguments_of(value: object) -> dict[str, object]:
    """The arguments of the constructor of an object, from its attributes."""
    if isinstance(value, enum.Enum):
        return {"name": value.name}
    cls = type(value)
    if dataclasses.is_dataclass(cls):
        names = [field.name for field in dataclasses.fields(cls) if field.init]
    else:
        names = [*getattr(cls, "_fields", ())] or [*inspect.signature(cls).parameters]
    return {name: getattr(value, name) for name in names}


def _find_member(cls: type[enum.Enum], name: str) -> enum.Enum:
    return cls[name]
