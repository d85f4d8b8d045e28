"""What classes have in common: they are frozen, and show themselves in a few lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from typing import Any, TypeVar, dataclass_transform, overload

import numpy as np

T = TypeVar("T")
# Items that are shown one by one: a line of them.
_MAX_ITEMS = 6
# A line of a wide terminal.
_MAX_CHARACTERS = 100


@overload
def frozen(cls: type[T], /) -> type[T]: ...
@overload
def frozen(**options: bool) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: Any = None, /, **options: bool) -> Any:
    """A dataclass with slots whose fields are never set again, shown in few lines."""
    if cls is None:
        return partial(frozen, **options)
    if "__repr__" not in vars(cls):  # or the dataclass would bring its own
        cls.__repr__ = brief_repr if cls.__repr__ is object.__repr__ else cls.__repr__
    return dataclass(frozen=True, slots=True, **options)(cls)


def brief_repr(self: Any) -> str:
    """The ``__repr__`` of a dataclass: its fields, arrays by shape and collections by size.

    Fields that hold their default, and private ones, are left out. Of any other class, its name.
    """
    shown = []
    for attribute in fields(self) if is_dataclass(self) else ():
        value = getattr(self, attribute.name)
        if (
            attribute.repr
            and not attribute.name.startswith("_")
            and not _is_default(value, attribute)
        ):
            shown.append(f"{attribute.name}={brief(value)}")
    return within_lines(type(self).__name__, shown)


def within_lines(name: str, arguments: list[str]) -> str:
    """A call of this name with these arguments: on one line, or a line each where that is long."""
    line = f"{name}({', '.join(arguments)})"
    if len(line) <= 100:
        return line
    inner = ",\n    ".join(argument.replace("\n", "\n    ") for argument in arguments)
    return f"{name}(\n    {inner},\n)"


def brief(value: object) -> str:
    """A value in one short line."""
    if isinstance(value, np.ndarray):
        small = value.ndim == 1 and value.size <= _MAX_ITEMS and value.dtype.kind in "biuf"
        if small:
            return f"[{', '.join(f'{item:g}' for item in value.tolist())}]"
        return f"array of shape {value.shape}"
    if isinstance(value, Mapping):
        if len(value) > _MAX_ITEMS:
            return f"{len(value):,} by name"
        line = f"{{{', '.join(f'{key!r}: {brief(member)}' for key, member in value.items())}}}"
        return (
            line if len(line) <= _MAX_CHARACTERS else f"{{{', '.join(map(repr, value))}}} by name"
        )
    if isinstance(value, tuple | list | set | frozenset):
        items = list(value)
        plain = all(isinstance(item, str | int | float | None) for item in items)
        if plain and len(items) <= _MAX_ITEMS and len(repr(value)) <= _MAX_CHARACTERS:
            return repr(value)
        kinds = {type(item).__name__ for item in items}
        return f"{len(items):,} of {kinds.pop() if len(kinds) == 1 else 'several kinds'}"
    if is_dataclass(value) and not isinstance(value, type):
        line = repr(value)
        if len(line) <= _MAX_CHARACTERS and "\n" not in line:
            return line
        return f"{type(value).__name__}(…)"
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and not isinstance(value, np.generic):
        return f"{type(value).__name__} of shape {tuple(shape)}"
    line = " ".join(repr(value).split())
    return line if len(line) <= _MAX_CHARACTERS else f"{line[: _MAX_CHARACTERS - 1]}…"


def _is_default(value: object, attribute: Any) -> bool:
    """Whether a field holds nothing, or a plain default."""
    if isinstance(value, str | tuple | list | set | frozenset | Mapping) and not value:
        return True
    if value is None or value is attribute.default:
        return True
    return isinstance(value, str | int | float) and repr(value) == repr(attribute.default)
