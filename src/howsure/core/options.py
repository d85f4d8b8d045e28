"""Options, each described once: fields, flags, arguments of agents and documentation come from it.

A field of a frozen dataclass says what it is: ``lead: int | None = option("Lead time.")``. Nothing
heavy is imported here, nor where options are declared, so that help is shown at once.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import (
    Any,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from howsure.core.errors import language
from howsure.core.registry import attribute_of

T = TypeVar("T")
# One point of coverage: less is no matter for anybody who acts on 90 %. Of 300,000 rows it would
# be proven (89.76 % was called a failure before there was a tolerance).
TOLERANCE = 0.01
# Coverages of 80 % and more; below, nobody acts on an interval.
MISS_RANGE = (0.0, 0.2)
"""Where intervals are used in practice."""
SHARE = "howsure.core.arrays:check_fraction"
"""The rule of a number strictly between 0 and 1."""
NAMES = tuple[str, ...]
"""The type of several names, which a flag takes with commas between them."""
# Characters of a line of a docstring, less its indent.
_MAX_CHARACTERS = 96


@dataclass(frozen=True, slots=True)
class Flag:
    """What there is to say of an option."""

    # {name} stands for a role of columns or an option
    help: str
    more: str = ""  # what only the documentation of the field says
    panel: str | None = None  # of the help, where its flag stands
    usual: bool = False  # whether the short help of a command shows its flag
    # commands and tools of agents that have it, of those that take its dataclass: all commands, and
    # no tool, where nothing is said
    verbs: str = ""
    tools: str = ""
    flag: str = ""  # its flag, where that is not called after it; and the short one
    metavar: str | None = None
    kind: Any = None  # what its flag takes, where the field takes more
    least: int | None = None  # the least whole number
    rule: str = ""  # of its values: ``module:function`` of a value and a name

    def checked(self, value: Any, name: str) -> Any:
        """The value, if it keeps the rule."""
        if value is None:
            return None
        if self.least is not None:
            from howsure.core.convert import check_whole

            return check_whole(value, named(name, self.flag), self.least)
        return attribute_of(self.rule)(value, named(name, self.flag)) if self.rule else value


def option(text: str, more: str = "", *, default: Any = None, **details: Any) -> Any:
    """A field that is an option, with what a `Flag` takes."""
    return field(default=default, metadata={"flag": Flag(text, more, **details)})


def spelled(name: str, flag: str = "") -> str:
    """An option as it is typed.

    >>> spelled("miss_range")
    '--miss-range'
    """
    return next((w for w in flag.split() if w[:2] == "--"), f"--{name.replace('_', '-')}")


def named(name: str, flag: str = "") -> str:
    """An option as messages name it."""
    return spelled(name, flag) if language() == "command" else name


@dataclass(frozen=True, slots=True)
class OptionField:
    """A field with its description."""

    name: str
    flag: Flag
    kind: Any  # what its flag takes, None apart
    default: Any
    within: tuple[OptionField, ...] = ()  # those of a dataclass that the field holds

    @property
    def typed(self) -> str:
        """How it is typed."""
        return spelled(self.name, self.flag.flag)


def _read_options(kind: Any) -> tuple[OptionField, ...]:
    """The fields of a dataclass that are options."""
    hints = get_type_hints(kind)
    options = []
    for item in fields(kind):
        if flag := item.metadata.get("flag"):
            takes = flag.kind or _single(hints[item.name])
            within = options_of(takes) if is_dataclass(takes) else ()
            options.append(OptionField(item.name, flag, takes, item.default, within))
    return tuple(options)


options_of: Callable[[Any], tuple[OptionField, ...]] = cache(_read_options)


def _single(hint: Any) -> Any:
    """The one kind of a hint, None apart; of several values, a list."""
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    if get_origin(hint) in (Union, UnionType):
        return _single(kinds[0])
    return list[kinds[0]] if get_origin(hint) in (Collection, Sequence) else hint  # type: ignore[valid-type]


def options_set(chosen: Any) -> Iterator[tuple[OptionField, Any]]:
    """The options of an object that differ from their defaults, with their values."""
    for item in options_of(type(chosen)):
        value = getattr(chosen, item.name)
        if item.within:
            yield from () if value is None else options_set(value)
        elif (value or None) != (item.default or None):
            yield item, value


def words_of(chosen: Any, without: Collection[str] = ()) -> list[str]:
    """The words that say the same on the command line."""
    words = []
    for item, value in options_set(chosen):
        if item.name in without:
            continue
        if item.kind is bool:
            words.append(item.typed if value else item.typed.replace("--", "--no-", 1))
        elif get_origin(item.kind) is list:
            words += [word for name in value for word in (item.typed, str(name))]
        else:
            words += [item.typed, *map(str, value if isinstance(value, tuple) else [value])]
    return words


class Described:
    """A dataclass whose fields keep their types and rules."""

    __slots__ = ()

    def __post_init__(self) -> None:
        from howsure.core.convert import check_fields

        check_fields(self)
        for item in fields(self):  # type: ignore[arg-type]
            if flag := item.metadata.get("flag"):
                value = flag.checked(getattr(self, item.name), item.name)
                object.__setattr__(self, item.name, value)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def described(cls: type[T]) -> type[T]:
    """A frozen dataclass whose docstring has its options, after the first paragraph."""
    cls = dataclass(frozen=True, slots=True, kw_only=True)(cls)
    first, _, more = inspect.cleandoc(cls.__doc__ or "").partition("\n\n")
    lines = [first, "", "Attributes", "----------"]
    for item in fields(cls):  # type: ignore[arg-type]
        if flag := item.metadata.get("flag"):
            text = with_names(f"{flag.help} {flag.more}".strip())
            lines.append(f"{item.name} : {item.type}")
            lines += textwrap.wrap(
                text, _MAX_CHARACTERS, initial_indent=" " * 4, subsequent_indent=" " * 4
            )
    cls.__doc__ = "\n".join([*lines, "", more])
    return cls


def with_names(text: str, spell: Callable[[str], str] = "`{}`".format) -> str:
    """What is said of an option, with the names in it as they are written there."""
    return re.sub(r"\{(\w+)\}", lambda match: spell(match[1]), text)
