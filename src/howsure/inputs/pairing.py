"""Columns of intervals and of quantiles: pairs of ends, and levels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from howsure.core.arrays import check_fraction
from howsure.core.errors import InputError
from howsure.inputs.naming import Bound, bound, quantile_levels
from howsure.inputs.source import listed, quoted

Find = Callable[[str, str], str]
Coverages = float | Sequence[float] | None


class IntervalColumns(NamedTuple):
    """Two columns that are the ends of intervals, and their nominal coverage if it is known."""

    lower: str
    upper: str
    coverage: float | None


def flagged_pairs(
    coverage: Coverages, lowers: Sequence[str], uppers: Sequence[str]
) -> tuple[IntervalColumns, ...]:
    """Pairs of the columns that flags name, with the coverages that flags or names tell."""
    if len(lowers) != len(uppers):
        raise InputError(
            f"lower and upper must name as many columns, got {len(lowers)} and {len(uppers)}"
        )
    if not lowers:
        return ()
    shares: list[float | None] = [*flagged_coverages(coverage)]
    if not shares:
        shares = [_shared_coverage(*pair) for pair in zip(lowers, uppers, strict=True)]
    if len(shares) != len(lowers):
        raise InputError(
            f"coverage must hold one number for each of {len(lowers)} pairs of lower and "
            f"upper, got {len(shares)}"
        )
    return _checked([IntervalColumns(*three) for three in zip(lowers, uppers, shares, strict=True)])


def flagged_coverages(given: Coverages) -> list[float]:
    """The coverages that a flag tells, each in (0, 1)."""
    if given is None:
        return []
    return [
        check_fraction(item, "coverage")
        for item in (given if isinstance(given, Sequence) else [given])
    ]


def guessed_pairs(names: Iterable[str], coverage: Coverages) -> tuple[IntervalColumns, ...]:
    """Pairs of columns whose names say that they are the two ends of intervals."""
    ends: dict[tuple[str, float | None, str], str] = {}
    for name in names:
        end = bound(name)
        if end is None:
            continue
        if end.unclear:
            raise InputError(
                f"the coverage in the name {quoted(name)} can be read in two ways: {_SAY_PAIR}"
            )
        key = (end.stem, end.coverage, end.side)
        if key in ends:
            raise two_readings(f"{end.side}", [ends[key], name], "lower, upper and coverage")
        ends[key] = name
    pairs = []
    for (stem, share, side), name in ends.items():
        other = ends.get((stem, share, "upper" if side == "lower" else "lower"))
        if other is None:
            raise InputError(
                f"column {quoted(name)} reads as the {side} end of intervals, and no column as "
                f"the other end: {_SAY_PAIR}"
            )
        if side == "lower":
            pairs.append(IntervalColumns(name, other, share))
    return _checked(_with_coverage(pairs, flagged_coverages(coverage)))


def flagged_levels(
    given: Mapping[float, str] | str | Sequence[str], column: Find
) -> dict[float, str]:
    """Columns of quantiles that a flag names, by level."""
    levels: dict[float, str] = {}
    for level, name in _level_items(given):
        share = check_fraction(level, "the level of a quantile")
        found = column(name, "quantiles")
        if levels.setdefault(share, found) != found:
            raise two_readings(f"quantile {share:g}", [levels[share], found], "each level once")
    return levels


def guessed_levels(names: Iterable[str]) -> tuple[dict[float, str], dict[str, str]]:
    """Columns whose names say that they are quantiles, by level; and notes on those left out."""
    found = quantile_levels(names)
    notes = {
        name: "its number may mean several levels; say quantiles to use it"
        for name, level in found.items()
        if level is None
    }
    if len(notes) > 1:
        raise InputError(
            f"the levels in the names {listed(notes)} can be read in several ways: say "
            f"quantiles={{0.05: COLUMN, …}} (--quantile 0.05=COLUMN), or quantiles='' "
            "(--quantile '') where they are no quantiles"
        )
    levels: dict[float, str] = {}
    for name, level in found.items():
        if level is None:
            continue
        if level in levels:
            raise two_readings(f"quantile {level:g}", [levels[level], name], "quantiles")
        levels[level] = name
    if len(levels) == 1 and 0.5 not in levels:
        ((level, name),) = levels.items()
        if name.strip().isalnum():
            return {}, {**notes, name: "one quantile alone; say quantiles to use it"}
    return levels, notes


def as_number(text: str) -> float | None:
    """The finite number that text stands for, if it does."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def two_readings(what: str, found: Sequence[str], flag: str) -> InputError:
    """The error for a role that several names claim."""
    return InputError(
        f"{what} must be one column, and the names of {len(found)} say that they are: "
        f"{listed(found)}; say {flag}"
    )


_SAY_PAIR = (
    "say lower=COLUMN, upper=COLUMN, coverage=0.9 (--lower, --upper, --coverage), or lower='' "
    "where it is no interval"
)


def _with_coverage(pairs: list[IntervalColumns], told: list[float]) -> list[IntervalColumns]:
    """Give the coverage that a flag tells to the one pair whose name tells none."""
    if not told or len(pairs) != 1:
        return pairs
    pair = pairs[0]
    if len(told) > 1:
        if pair.coverage is None:
            raise InputError(
                f"coverage must be one number for the one pair {quoted(pair.lower)} and "
                f"{quoted(pair.upper)}, got {told}"
            )
        return pairs
    if pair.coverage is not None and not math.isclose(pair.coverage, told[0]):
        raise InputError(
            f"the names {quoted(pair.lower)} and {quoted(pair.upper)} say a coverage of "
            f"{pair.coverage:g}, and coverage says {told[0]:g}: say lower and upper as well "
            "where the names are wrong"
        )
    return [IntervalColumns(pair.lower, pair.upper, told[0])]


def _shared_coverage(lower: str, upper: str) -> float | None:
    ends: tuple[Bound | None, Bound | None] = (bound(lower), bound(upper))
    if ends[0] is None or ends[1] is None or ends[0].coverage != ends[1].coverage:
        return None
    return ends[0].coverage


def _checked(pairs: list[IntervalColumns]) -> tuple[IntervalColumns, ...]:
    shares = [pair.coverage for pair in pairs]
    if len(pairs) > 1 and (None in shares or len(set(shares)) < len(shares)):
        said = ", ".join(f"{quoted(p.lower)} at {p.coverage or 'unknown'}" for p in pairs)
        raise InputError(
            f"several intervals must have different known coverages, got {said}: say lower, "
            "upper and coverage (--lower, --upper, --coverage)"
        )
    return tuple(pairs)


def _level_items(given: Mapping[float, str] | str | Sequence[str]) -> list[tuple[float, str]]:
    if isinstance(given, Mapping):
        return [(level, str(name)) for level, name in given.items()]
    if not isinstance(given, Sequence):
        raise InputError(f"quantiles must be LEVEL=COLUMN texts or a mapping, got {given!r}")
    items = []
    for text in [given] if isinstance(given, str) else given:
        if text == "":
            continue
        level, equals, name = str(text).partition("=")
        number = as_number(level)
        if not equals or not name or number is None:
            raise InputError(f"a quantile must be LEVEL=COLUMN, such as 0.05=low, got {text!r}")
        items.append((number, name))
    return items
