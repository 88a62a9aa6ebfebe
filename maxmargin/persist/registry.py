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

# Classes of other modules than those of public names, which are imported when a file names them.
HOMES = {
    "FrequentCRF": "maxmargin.crfsuite.algorithms",
    "FrequentSVM": "maxmargin.crfsuite.algorithms",
    "Layout": "maxmargin.text.documents",
    "Pipeline": "maxmargin.persist.pipelines",
    "WindowFeatures": "maxmargin.text.windows",
    "crfsuite.CRF": "maxmargin.crfsuite.crf",
}


class Kind(NamedTuple):
    """How the objects of a class are saved and made again."""

    cls: type
    get: Callable[[Any], Mapping[str, Any]]
    make: Callable[..., Any]


_KINDS: dict[str, Kind] = {}
_KEPT: dict[str, Kind] = {}  # in checkpoints only
_NAMES: dict[type, str] = {}


def register(
    cls: Class,
    *,
    get: Callable[[Any], Mapping[str, Any]] | None = None,
    make: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Class:
    """Let objects of a class be part of saved models; also a decorator.

    By default an object is saved by the arguments of its constructor, which must be attributes of the same names, as
    those of dataclasses, named tuples and scikit-learn's estimators are, and made again by it. Their values are
    numbers, strings, arrays, lists, tuples, sets, dictionaries, and objects of registered classes. The class must be
    registered before a model that has one is loaded: a file imports nothing.

    Parameters
    ----------
    cls : the class
    get : what to save of an object, by name, in place of the arguments
    make : makes an object of these, given by keyword, in place of the class; it should check them, and run nothing
        that they name, as files may come from strangers
    name : what files call the class, by default its name and that of its module

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
    elif name in _KINDS and _KINDS[name].cls is not cls:
        raise ValueError(f"name must be one that no other class is saved by, but {name!r} is taken.")
    if name in _KINDS:
        _NAMES.pop(_KINDS[name].cls, None)  # as where a cell of a notebook is run again
    _KINDS[name] = Kind(cls, get or arguments_of, make or (_member(cls) if issubclass(cls, enum.Enum) else cls))
    _NAMES[cls] = name
    return cls


def kept(cls: Class) -> Class:
    """Let objects of a class be part of checkpoints, with all their attributes; a decorator."""
    is_tuple = issubclass(cls, tuple)
    get, make = (arguments_of, cls) if is_tuple else (_attributes, partial(_restored, cls))
    _KEPT[kept_name(cls)] = Kind(cls, get, make)
    return cls


def kept_name(cls: type) -> str:
    """What checkpoints call a class."""
    return f"{cls.__module__}.{cls.__qualname__}"


def kept_kind(name: Any) -> Kind | None:
    """The class that checkpoints call by a name."""
    return _KEPT.get(name)


def _attributes(value: Any) -> Mapping[str, Any]:
    return value.__getstate__()


def _restored(cls: type, **attributes: Any) -> Any:
    value: Any = cls.__new__(cls)  # type: ignore[call-overload]
    if hasattr(value, "__setstate__"):
        value.__setstate__(attributes)
    else:
        vars(value).update(attributes)
    return value


def name_of(cls: type) -> str | None:
    """What files call a class, if it was registered."""
    return _NAMES.get(cls)


def kind_of(name: Any) -> Kind | None:
    """The registered class of a name."""
    if isinstance(name, str) and name not in _KINDS:
        home = public_names.homes().get(name) or HOMES.get(name)
        if home is not None:
            importlib.import_module(home)
    return _KINDS.get(name)


def arguments_of(value: Any) -> dict[str, Any]:
    """The arguments of the constructor of an object, from its attributes."""
    if isinstance(value, enum.Enum):
        return {"name": value.name}
    cls = type(value)
    if dataclasses.is_dataclass(cls):
        names = [field.name for field in dataclasses.fields(cls) if field.init]
    else:
        names = [*getattr(cls, "_fields", ())] or [*inspect.signature(cls).parameters]
    return {name: getattr(value, name) for name in names}


def _member(cls: type[enum.Enum]) -> Callable[..., Any]:
    return lambda name: cls[name]
