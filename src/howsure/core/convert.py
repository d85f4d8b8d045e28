"""Between dataclasses and plain values: types and rules are said once, as annotations.

A field or an argument says what it takes: ``epochs: Count``, ``rate: Annotated[float,
check_fraction]``, ``order: Literal["rgb", "bgr"]``. `checked` fits what comes to such a hint,
`check_fields` does so for a whole dataclass, and `from_options` makes one from a table of a
plan. `plain` makes plain values of a dataclass and `restored` the dataclass of these; `packed` and
`unpacked` do so with arrays kept apart. Every refusal names the argument, the rule and what came.

msgspec does not do it: it makes a whole number of a float field a float, which changes addresses of
trials, lets unknown names pass, and does not say what came.
"""

from __future__ import annotations

import inspect
import json
import math
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin

import numpy as np

from howsure.core.arrays import AnyArray, check_fraction, shortened
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.registry import check_known, unknown

Arrays = dict[str, AnyArray]
T = TypeVar("T")
_NO = object()


@frozen
class Bound:
    """A range of numbers, for annotations; `ends` are square where they belong to it."""

    low: float = -math.inf
    high: float = math.inf
    ends: str = "[)"

    def contains(self, value: float) -> bool:
        """Whether a number lies in the range."""
        above = value >= self.low if self.ends[0] == "[" else value > self.low
        return above and (value <= self.high if self.ends[1] == "]" else value < self.high)

    def words(self, kind: Any) -> str:
        """The rule, for a number of this kind, as said after ``must``."""
        if kind is int:
            most = f" and at most {self.high}" if self.high < math.inf else ""
            return f"be a whole number of at least {self.low}{most}"
        if self.high < math.inf:
            return f"be in {self.ends[0]}{self.low:g}, {self.high:g}{self.ends[1]}"
        if self.low == -math.inf:
            return "be a finite number"
        return f"be {'at least' if self.ends[0] == '[' else 'above'} {self.low:g}"


Count = Annotated[int, Bound(1)]
Natural = Annotated[int, Bound(0)]
Positive = Annotated[float, Bound(0.0, ends="()")]
Finite = Annotated[float, Bound(ends="()")]
NonNegative = Annotated[float, Bound(0.0)]
Fraction = Annotated[float, check_fraction]


def checked_coverages(coverages: tuple[float, ...], name: str = "coverages") -> tuple[float, ...]:
    """Distinct nominal coverages in rising order."""
    rising = sorted(check_fraction(item, name) for item in coverages)
    if not rising or len(set(rising)) < len(rising):
        raise InputError(f"{name} must contain distinct numbers, got {tuple(coverages)}")
    return tuple(rising)


Coverages = Annotated[tuple[float, ...], checked_coverages]


def checked(value: Any, hint: Any, name: str, *, text: bool = False) -> Any:
    """What came, fitted to a type hint; text is read where a shell gives it."""
    if isinstance(value, np.generic):
        value = value.item()
    kinds = _alternatives(hint)
    refused: list[InputError] = []
    for kind in kinds:
        bare, *rules = get_args(kind) if get_origin(kind) is Annotated else (kind,)
        try:
            fitted = _fits(value, bare, name, text=text)
            if fitted is _NO or not all(r.contains(fitted) for r in rules if isinstance(r, Bound)):
                continue
            for rule in rules:
                fitted = fitted if isinstance(rule, Bound) else rule(fitted, name)
            return fitted
        except InputError as error:
            refused.append(error)
    if len(refused) == 1:
        raise refused[0]
    if len(kinds) == 1 and get_origin(kinds[0]) is Literal and isinstance(value, str):
        raise InputError(unknown(value, map(str, get_args(kinds[0])), name))
    phrases = list(dict.fromkeys(map(_words, kinds)))
    alike = all(phrase.startswith("be ") for phrase in phrases)
    wanted = " or ".join(phrases[:1] + [p.removeprefix("be ") if alike else p for p in phrases[1:]])
    raise InputError(f"{name} must {wanted}, got {shortened(value)}")


def filled(value: Any, name: str) -> Any:
    """A list that holds something, as a rule of an annotation."""
    if not len(value):
        raise InputError(f"{name} must not be empty")
    return value


def check_whole(value: Any, name: str, least: int = 1, most: float = math.inf) -> int:
    """A whole number in a range whose ends are legal."""
    return int(checked(value, Annotated[int, Bound(least, most, "[]")], name))


class Checked:
    """A dataclass whose fields are fitted to their annotations as it is made.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Options(Checked):
    ...     epochs: Count = 80
    >>> Options(epochs=0)
    Traceback (most recent call last):
    ...
    howsure.core.errors.InputError: epochs must be a whole number of at least 1, got 0
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        check_fields(self)


def check_fields(self: Any, of: str = "") -> None:
    """Fit every field of a dataclass to its annotation; messages say ``of`` what it is."""
    for name, hint in field_hints(type(self)).items():
        value = getattr(self, name)
        fitted = checked(value, hint, f"{name}{of}")
        if fitted is not value:
            object.__setattr__(self, name, fitted)


def option_names(kind: Any) -> tuple[str, ...]:
    """Names of the options of a dataclass; those of a dataclass within stand among them."""
    hints = field_hints(kind)
    parts = (option_names(k) if is_dataclass(k) else (name,) for name, k in hints.items())
    return tuple(name for names in parts for name in names)


def from_options(kind: type[T], options: Mapping[str, Any], what: str) -> T:
    """A dataclass from a table of options; those of a dataclass within stand among them."""
    names = option_names(kind)
    for name in options:
        check_known(name, names, what)
    values = {}
    for name, hint in field_hints(kind).items():
        if is_dataclass(hint):
            nested = {key: options[key] for key in option_names(hint) if key in options}
            values[name] = from_options(cast(Any, hint), nested, what)
        elif name in options:
            values[name] = options[name]
    return kind(**values)


def json_number(value: float) -> float | str | None:
    """A number for JSON: NaN is None, and infinities are texts."""
    if math.isfinite(value):
        return value
    return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def plain(
    value: Any,
    number: Callable[[float], Any] = float,
    other: Callable[[Any], Any] | None = None,
) -> Any:
    """A dataclass, or anything of numbers and text, as values that JSON knows."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list | tuple):
        return [plain(item, number, other) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain(item, number, other) for key, item in value.items()}
    if other is not None:
        return other(value)
    if is_dataclass(value) and not isinstance(value, type):
        content = {item.name: getattr(value, item.name) for item in fields(value)}
        return plain(content, number, other)
    raise InputError(
        f"the value to write must consist of numbers, text, lists and tables, got {value!r}"
    )


def read_json(text: str | bytes) -> Any:
    """What JSON says, as one of our own files holds it: numbers are finite, and integers short."""
    try:
        return json.loads(text, parse_float=_finite, parse_int=_short, parse_constant=_short)
    except (ValueError, RecursionError) as error:
        raise InputError(f"it is not JSON of numbers and text: {error}") from error


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"a number is too large: {text[:40]}")
    return value


def _short(text: str) -> int:
    if len(text) > 20 or abs(int(text)) >= 1 << 63:
        raise ValueError(f"a number is too large: {text[:40]}")
    return int(text)


def restored(facts: Any, hint: Any, name: str) -> Any:
    """What `plain` made plain with `json_number`, fitted to its hint at every depth.

    Only fields of the hinted dataclasses are read, so that no file says what else is to be made;
    those that it lacks have their defaults, so that classes may gain fields.

    Examples
    --------
    >>> from dataclasses import make_dataclass
    >>> from howsure.core.arrays import FloatArray
    >>> Run = make_dataclass("Run", [("seed", Count), ("y", FloatArray)])
    >>> restored({"seed": 3, "y": [0.0, None]}, Run, "run")
    Run(seed=3, y=array([ 0., nan]))
    >>> restored({"seed": 0, "y": []}, Run, "run")
    Traceback (most recent call last):
    ...
    howsure.core.errors.InputError: run.seed must be a whole number of at least 1, got 0
    """
    kind = _only_kind(hint)
    origin, args = get_origin(kind), get_args(kind)
    if kind is float and isinstance(facts, str | None):
        bare = len(_alternatives(hint)) == 1
        facts = {
            None: math.nan if bare else None,
            "Infinity": math.inf,
            "-Infinity": -math.inf,
        }.get(facts, facts)
    elif is_dataclass(kind) and isinstance(facts, Mapping):
        hints = field_hints(kind)
        for key in facts:
            check_known(key, hints, f"key of {name}")
        values = {key: restored(facts[key], hints[key], f"{name}.{key}") for key in facts}
        try:
            return cast(Any, kind)(**values)
        except TypeError as error:
            raise InputError(f"{name} must be whole: {error}") from error
    elif origin is tuple and isinstance(facts, list):
        facts = tuple(restored(*item) for item in _items(facts, args, name))
    elif _is_mapping(origin) and isinstance(facts, Mapping):
        facts = {key: restored(value, args[1], f"{name}.{key}") for key, value in facts.items()}
    elif _is_array(kind) and isinstance(facts, list):
        facts = _array(facts, get_args(args[1])[0], name)
    return checked(facts, hint, name)


def _array(nested: list[Any], item: Any, name: str) -> AnyArray:
    """Numbers in lists of one length each as an array of this type; None is NaN."""
    dtype = np.dtype(item)
    try:
        if dtype.kind == "f":
            return np.array(nested, dtype=dtype)
        array = np.array(nested)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{name} must contain numbers in lists of equal length: {error}"
        ) from error
    if array.size and array.dtype.kind != dtype.kind:
        raise InputError(f"{name} must contain only {dtype}, got {array.dtype}")
    return array.astype(dtype)


def packed(value: Any) -> tuple[Arrays, dict[str, Any]]:
    """A dataclass as arrays by place and as facts that JSON knows; `unpacked` is the way back.

    Parameters
    ----------
    value : dataclass
        Hints say how each field goes: arrays of numbers, numbers, text, enums, and dataclasses,
        tuples, lists, mappings and optionals of these. What a dataclass makes itself is left out.

    Returns
    -------
    arrays : dict of str to ndarray
        By place, as ``runs/0/rows``; a mapping of text to floats is one array.
    facts : dict
        All else, with the names of such mappings, and of mappings of arrays.

    Examples
    --------
    >>> from dataclasses import make_dataclass
    >>> from howsure.core.arrays import FloatArray
    >>> Run = make_dataclass("Run", [("seed", int), ("y", FloatArray)])
    >>> packed(Run(seed=3, y=np.zeros(2)))
    ({'y': array([0., 0.])}, {'seed': 3})
    >>> unpacked(Run, *packed(Run(seed=3, y=np.zeros(2))))
    Run(seed=3, y=array([0., 0.]))
    """
    if not is_dataclass(value) or isinstance(value, type):
        raise InputError(f"the object to pack must be a dataclass, got {shortened(value)}")
    arrays: Arrays = {}
    facts: dict[str, Any] = _pack(value, type(value), "", arrays)
    return arrays, facts


def unpacked(kind: type[T], arrays: Mapping[str, AnyArray], facts: Mapping[str, Any]) -> T:
    """The dataclass of this class that `packed` was given, bit by bit.

    A field that the facts lack has its default, so that classes may gain fields.
    """
    restored_value: T = _unpack(facts, kind, "", arrays)
    return restored_value


def _read_hints(kind: Any) -> dict[str, Any]:
    """Hints of what a dataclass is made of."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {item.name: hints[item.name] for item in fields(kind) if item.init}


field_hints: Callable[[Any], dict[str, Any]] = cache(_read_hints)


@cache
def _alternatives(hint: Any) -> tuple[Any, ...]:
    """The kinds of a hint, an inner union's too."""
    if get_origin(hint) not in (typing.Union, types.UnionType):
        return (hint,)
    return tuple(kind for member in get_args(hint) for kind in _alternatives(member))


def _fits(value: Any, kind: Any, name: str, *, text: bool) -> Any:
    """The value as this kind, or `_NO`."""
    origin = get_origin(kind)
    if kind in (None, types.NoneType):
        return None if value is None or (text and value == "none") else _NO
    if kind is str:
        return value if isinstance(value, str) else _NO
    if origin is Literal:
        choices = get_args(kind)
        return value if any(isinstance(value, type(k)) and value == k for k in choices) else _NO
    if origin is tuple:
        return _tuple(value, get_args(kind), name, text=text)
    if _is_array(kind):
        (item,) = get_args(get_args(kind)[1])
        fitting = isinstance(value, np.ndarray) and (
            not inspect.isclass(item) or np.issubdtype(value.dtype, item)
        )
        return value if fitting else _NO
    if kind in (bool, int, float):
        return _number(_read(value) if text else value, kind, name)
    if _is_mapping(origin):
        if not isinstance(value, Mapping):
            return _NO
        key, item = get_args(kind)
        return {checked(k, key, name): checked(v, item, f"{name} of {k}") for k, v in value.items()}
    if is_dataclass(kind) and isinstance(value, Mapping):
        return from_options(cast(Any, kind), value, f"option of {name}")
    checkable = inspect.isclass(kind) and kind not in (Any, object) and origin is None
    if not checkable or getattr(kind, "_is_protocol", False):
        return value
    return value if isinstance(value, kind) else _NO


def _number(value: Any, kind: type, name: str) -> Any:
    if isinstance(value, bool) or kind is bool:
        return value if kind is bool and isinstance(value, bool) else _NO
    if kind is float and isinstance(value, int) and abs(value) > sys.float_info.max:
        raise InputError(
            f"{name} must be at most {sys.float_info.max:.2g} in size, got {shortened(value)}"
        )
    return value if isinstance(value, int if kind is int else int | float) else _NO


def _tuple(value: Any, kinds: tuple[Any, ...], name: str, *, text: bool) -> Any:
    many = kinds[-1] is Ellipsis
    if text and isinstance(value, str):
        value = _read(f"[{value.strip('[]')}]")
    if text and many and isinstance(value, int | float) and not isinstance(value, bool):
        value = [value]
    if isinstance(value, str | Mapping) or not isinstance(value, Sequence | np.ndarray):
        return _NO
    wanted = kinds[:1] * len(value) if many else kinds
    if len(wanted) != len(value):
        return _NO
    return tuple(checked(v, kind, name, text=text) for v, kind in zip(value, wanted, strict=True))


def _read(text: Any) -> Any:
    """What text says in JSON, or the number it spells; anything else itself."""
    for read in (json.loads, float) if isinstance(text, str) else ():
        try:
            return read(text)
        except ValueError:
            pass
    return text


def _words(kind: Any) -> str:
    """What a kind asks for, as said after ``must``."""
    if get_origin(kind) is Annotated:
        bare, *rules = get_args(kind)
        return rules[0].words(bare) if isinstance(rules[0], Bound) else _words(bare)
    plainly = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    if kind in (None, types.NoneType):
        return "be none"
    if kind in plainly:
        return f"be {plainly[kind]}"
    origin, kinds = get_origin(kind), get_args(kind)
    if origin is Literal:
        return f"be one of {', '.join(map(str, kinds))}"
    if origin is tuple:
        bare = get_args(kinds[0])[0] if get_origin(kinds[0]) is Annotated else kinds[0]
        items = {int: "whole numbers", float: "numbers"}.get(bare, "names")
        return f"be a list of {'' if kinds[-1] is Ellipsis else f'{len(kinds)} '}{items}"
    if _is_mapping(origin):
        return "be a table"
    return f"be of type {getattr(kind, '__name__', str(kind))}"


def _is_array(kind: Any) -> bool:
    return get_origin(kind) is np.ndarray


def _is_mapping(origin: Any) -> bool:
    return inspect.isclass(origin) and issubclass(origin, Mapping)


@cache
def _only_kind(hint: Any) -> Any:
    """The one kind of a hint apart from None and rules; Any where there are several."""
    kinds = [kind for kind in _alternatives(hint) if kind is not types.NoneType]
    if len(kinds) != 1:
        return Any
    return get_args(kinds[0])[0] if get_origin(kinds[0]) is Annotated else kinds[0]


def _is_enum(kind: Any) -> bool:
    return inspect.isclass(kind) and issubclass(kind, Enum)


def _is_text(key: Any) -> bool:
    """Whether keys of a mapping are text, as those of JSON are."""
    return key is str or get_origin(key) is Literal


def _under(path: str, name: object) -> str:
    return f"{path}/{name}" if path else str(name)


def _items(items: Any, kinds: tuple[Any, ...], path: str) -> Iterator[tuple[Any, Any, str]]:
    """Each item of a tuple or list with its hint and its place."""
    hints = kinds if len(kinds) == len(items) and ... not in kinds else kinds[:1] * len(items)
    for number, (item, hint) in enumerate(zip(items, hints, strict=True)):
        yield item, hint, _under(path, number)


def _put(value: AnyArray, path: str, arrays: Arrays) -> None:
    if path in arrays:
        raise InputError(f"two arrays must not have the same place, got {path!r} twice")
    arrays[path] = value


def _pack(value: Any, hint: Any, path: str, arrays: Arrays) -> Any:
    """What facts say of a value, `_NO` of an array, which is put in its place."""
    kind = _only_kind(hint)
    origin, args = get_origin(kind), get_args(kind)
    if value is None or (hint is float and value != value):  # JSON knows no NaN
        return _NO if _is_array(kind) else None
    if _is_array(kind) and isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        _put(value, path, arrays)
        return _NO
    if is_dataclass(kind) and type(value) is kind:
        facts = {
            name: _pack(getattr(value, name), hint, _under(path, name), arrays)
            for name, hint in field_hints(kind).items()
        }
        return {name: fact for name, fact in facts.items() if fact is not _NO}
    if origin in (tuple, list) and isinstance(value, origin):
        packed_items = [_pack(*item, arrays) for item in _items(value, args, path)]
        return [None if fact is _NO else fact for fact in packed_items]
    numbers = _is_mapping(origin) and _is_text(args[0]) and args[1] is float
    if numbers and all(isinstance(v, int | float) for v in value.values()):
        _put(np.array(list(value.values()), dtype=np.float64), path, arrays)
        return list(value)
    if _is_mapping(origin) and isinstance(value, Mapping) and not numbers:
        if not _is_text(args[0]):
            pairs = zip((value, value.values()), args, strict=True)
            return [
                _pack(list(side), list[hint], _under(path, number), arrays)  # type: ignore[valid-type]
                for number, (side, hint) in enumerate(pairs)
            ]
        facts = {k: _pack(v, args[1], _under(path, k), arrays) for k, v in value.items()}
        return list(facts) if _is_array(args[1]) else facts
    if _is_enum(kind) and isinstance(value, kind):
        return plain(value.value)
    if kind is Any and isinstance(value, list | dict):
        return _pack(value, list[Any] if isinstance(value, list) else dict[str, Any], path, arrays)
    if isinstance(value, str | int | float | np.generic) and not isinstance(value, Enum):
        return plain(value)
    raise InputError(
        f"{path.replace('/', '.')} must be of numbers, text, enums, arrays of numbers, or "
        f"dataclasses, tuples and mappings of these (its type hint), got {shortened(value)}"
    )


def _unpack(content: Any, hint: Any, path: str, arrays: Mapping[str, AnyArray]) -> Any:
    kind = _only_kind(hint)
    origin, args = get_origin(kind), get_args(kind)
    if _is_array(kind):
        return arrays[path] if len(_alternatives(hint)) == 1 else arrays.get(path)
    if content is None:
        return math.nan if hint is float else None
    if is_dataclass(kind):
        values = {
            name: _unpack(content.get(name), hint, _under(path, name), arrays)
            for name, hint in field_hints(kind).items()
            if name in content or _is_array(_only_kind(hint))
        }
        return cast(Any, kind)(**values)
    if origin in (tuple, list):
        return origin(_unpack(*item, arrays) for item in _items(content, args, path))
    if _is_mapping(origin) and not _is_text(args[0]):
        sides = (
            _unpack(side, list[hint], _under(path, number), arrays)  # type: ignore[valid-type]
            for number, (side, hint) in enumerate(zip(content, args, strict=True))
        )
        return dict(zip(*sides, strict=True))
    if _is_mapping(origin) and args[1] is float:
        return dict(zip(content, arrays[path].tolist(), strict=True))
    if _is_mapping(origin):
        facts = dict.fromkeys(content) if _is_array(args[1]) else content
        return {k: _unpack(v, args[1], _under(path, k), arrays) for k, v in facts.items()}
    return kind(content) if _is_enum(kind) else content
