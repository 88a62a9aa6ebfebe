"""Constructor arguments as documented fields, from which classes get their constructors and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import MISSING, Field, dataclass, field, fields
from textwrap import fill, indent
from typing import Any, TypeVar, cast, dataclass_transform

Class = TypeVar("Class", bound=type)
Check = Callable[[str, Any], object]
HEADER = "Parameters\n----------\n"


def parameter(
    kind: str, doc: str, *, default: object = MISSING, kw_only: bool = True, check: Check | None = None, **more: object
) -> Any:
    """A constructor argument: all there is to write of one.

    Parameters
    ----------
    kind
        Its type, in words.
    doc
        What it is for.
    default
        Its default.
    kw_only
        Whether it is given by keyword only.
    check
        Called with its name and value before training; it raises unless the value will do. Flags have one.
    more
        What else there is to say of it, by name, for who reads fields.
    """
    return field(default=default, kw_only=kw_only, metadata={"kind": kind, "doc": doc, "check": check, **more})


class Arguments:
    """Constructor arguments that several classes have, declared once.

    Classes name it among their bases and get its fields; they inherit nothing from it.
    """

    def __init__(self, declared: type) -> None:
        self.declared = declared

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return ()


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(parameter,))
def arguments(cls: Class) -> Class:
    """Declare arguments that several classes have; for type checkers they inherit them."""
    return cast("Class", Arguments(cls))


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(parameter,))
def has_parameters(cls: Class, attributes: str = "") -> Class:
    """Give a class with `parameter` fields a constructor, and complete its docstring, also by further attributes.

    Arguments are documented in the order in which the class and its bases declare them. What is declared again has
    another default, and the documentation of before.
    """
    declared: dict[str, Field] = {}
    for name, general in _declarations(cls):
        special = copy(declared.pop(name, general))
        special.metadata = special.metadata or general.metadata
        declared[name] = special
    hints, known = inspect.get_annotations(cls), getattr(cls, "__dataclass_fields__", {})
    cls.__annotations__ = {}
    for name, argument in declared.items():
        if name in hints or name not in known or argument.default is not known[name].default:  # others are inherited
            cls.__annotations__[name] = argument.type
            setattr(cls, name, argument)
    dataclass(kw_only=True, eq=False, repr=False)(cls)
    cls._documented = [*declared]  # type: ignore[attr-defined]
    start, header, rest = inspect.cleandoc(cls.__doc__ or "").partition("Attributes\n----------\n")
    if header:
        own, blank, end = rest.partition("\n\n")
        described = "".join(_describe(name, declared[name]) for name in declared)
        cls.__doc__ = f"{start}{HEADER}{described}\n{header}{own}\n{attributes}{blank[1:]}{end}"
    return cls


def inherit_documentation(cls: type) -> None:
    """Let a class document the parameters that its base documents, too, where it has no other words for them."""
    described = {**_read_docstring(cls.__bases__[0]), **_read_docstring(cls)}
    if cls.__doc__ and described:
        summary, *others = _sections(cls)
        others = [section for section in others if not section.startswith(HEADER)]
        cls.__doc__ = "\n\n".join([summary, HEADER + "\n".join(described.values()), *others])


def _sections(cls: type) -> list[str]:
    return re.split(r"\n\n(?=\w+\n---)", inspect.cleandoc(cls.__doc__ or ""))


def _read_docstring(cls: type) -> dict[str, str]:
    """What a docstring says of parameters, by their names."""
    section = next((section for section in _sections(cls) if section.startswith(HEADER)), "")
    return {entry.partition("\n")[0]: entry for entry in re.split(r"\n(?=\S)", section.removeprefix(HEADER)) if entry}


def _declarations(cls: type) -> Iterator[tuple[str, Field]]:
    """The arguments of a class, its own first, then those of its bases in their order."""
    for name, hint in inspect.get_annotations(cls).items():
        if not str(hint).startswith("ClassVar"):
            value = vars(cls).get(name, MISSING)
            argument = copy(value) if isinstance(value, Field) else field(default=value)
            argument.type = hint
            yield name, argument
    for base in vars(cls).get("__orig_bases__", cls.__bases__):
        if isinstance(base, Arguments):
            yield from _declarations(base.declared)
        elif hasattr(base, "_documented"):
            known = {argument.name: argument for argument in fields(base)}
            yield from ((name, known[name]) for name in base._documented)


def _describe(name: str, argument: Field) -> str:
    """The entry of one argument in a docstring."""
    default = f'"{argument.default}"' if isinstance(argument.default, str) else repr(argument.default)
    ending = "" if argument.default is MISSING else f", default={default}"
    return f"{name} : {argument.metadata['kind']}{ending}\n{indent(fill(argument.metadata['doc'], 112), '    ')}\n"
