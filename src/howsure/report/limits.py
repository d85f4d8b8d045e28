"""Limits that predictions must keep, and where they are written: a TOML file, or pyproject.toml."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from howsure.core.convert import Bound, Checked, Fraction, check_fields, from_options
from howsure.core.errors import InputError, within
from howsure.core.registry import check_known
from howsure.core.toml import read_toml
from howsure.metrics.catalogue import catalogue, metric_named
from howsure.metrics.miss_range import MISS_RANGE, MissRange, check_miss_range
from howsure.metrics.skill import skill_measure
from howsure.predictions import EvalSet
from howsure.verdict import TOLERANCE
from howsure.verdict.family import check_judging
from howsure.verdict.findings import questions

Side = Literal["min", "max"]
FailOn = Literal["never", "caution", "bad"]

WORST_GROUP = "worst_group"
"""The coverage of the group that is covered least."""
SKILL = "skill"
"""Skill against the baseline, by the score that tells most of the predictions."""
OF_NEW = ("outside", "flagged", "outside_drift")
"""Shares of new rows that a reference finds outside it, or flags, and how the first changes."""
PYPROJECT = "pyproject.toml"
TABLE = "tool.howsure.check"


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound on a measure: at least, or at most, a number.

    `at` is the nominal coverage, None for each that is assessed; `model` is empty for every one;
    `by` names columns in each group of which it holds, None leaves that to the rules.
    """

    metric: str
    side: Side
    value: float
    at: float | None = None
    model: str = ""
    by: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return f"{self.metric} {'≥' if self.side == 'min' else '≤'} {self.value:g}"

    def measured(self, held: EvalSet) -> str:
        """The measure of the catalogue that is bounded."""
        if self.metric == SKILL:
            return skill_measure(held)
        return "empirical_coverage" if self.metric == WORST_GROUP else self.metric


@dataclass(frozen=True, slots=True)
class Rules:
    """What a table must keep to pass, and how that is judged; docs/check.md tells of each key.

    `confidence` is that of each bound, of both ends together if intervals are two-sided. The
    verdict is judged unless `fail_on` is ``never``; of its findings all, if none is named.
    """

    limits: tuple[Limit, ...] = ()
    by: tuple[str, ...] = ()
    confidence: Annotated[float, Bound(0.5, 1.0, "()")] = 0.95
    sided: Literal["one", "two"] = "one"
    undecided: Literal["pass", "fail"] = "pass"
    fail_on: FailOn = "never"
    findings: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    tolerance: Fraction = TOLERANCE
    miss_range: Annotated[MissRange, check_miss_range] = MISS_RANGE
    baseline: str = ""
    lead: int | None = None
    season: int | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        check_judging(self.tolerance, self.ignore)
        for name in self.findings:
            check_known(name, questions(), "findings")
            if questions()[name].reported:
                raise InputError(f"findings must be of one table of numbers, got {name!r}")
        if self.fail_on == "never" and (self.findings or self.ignore):
            told = "findings" if self.findings else "ignore"
            raise InputError(
                f"{told} selects findings of the verdict: give fail_on bad or caution, got never"
            )
        self._check_order()

    @property
    def judges(self) -> bool:
        """Whether there is anything to judge."""
        return bool(self.limits) or self.fail_on != "never"

    @property
    def left_out(self) -> tuple[str, ...]:
        """Ids of the findings that are not judged."""
        chosen = self.findings or tuple(questions())
        return tuple(name for name in questions() if name in self.ignore or name not in chosen)

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column by whose groups a limit holds."""
        named = [self.by if limit.by is None else limit.by for limit in self.limits]
        return tuple(dict.fromkeys(name for names in named for name in names))

    def _check_order(self) -> None:
        """Refuse a least value above the most of the same measure."""
        most = {_scope(limit): limit.value for limit in self.limits if limit.side == "max"}
        for limit in self.limits:
            if limit.side == "min" and limit.value > most.get(_scope(limit), math.inf):
                raise InputError(
                    f"min of {limit.metric} must not exceed its max, got min {limit.value:g} and "
                    f"max {most[_scope(limit)]:g}"
                )


def _scope(limit: Limit) -> tuple[object, ...]:
    return limit.metric, limit.at, limit.model, limit.by


def limit_of(measure: str, side: Side, value: float, **scope: Any) -> Limit:
    """A limit on a measure by name; a number that the measure cannot have is refused."""
    metric, entries = measure, catalogue()
    if measure in OF_NEW and side == "min":
        raise InputError(f"{measure} takes max, the most rows that may be so, got min")
    if measure not in (WORST_GROUP, SKILL, *OF_NEW):
        entry = metric_named(measure, "limit")
        metric = entry.name
        if metric == "worst_group_shortfall":
            raise InputError(f"limit on the worst group must be on {WORST_GROUP}, got {measure!r}")
        if not entry.forms:
            raise InputError(f"limit must be on a measure with bounds, got {measure!r}")
    if metric == WORST_GROUP and side == "max":
        raise InputError(f"{WORST_GROUP} takes min, the coverage that every group reaches, got max")
    if not math.isfinite(value):
        raise InputError(f"limit on {measure} must be a number, got {value:g}")
    known = {SKILL: "crps_skill", **dict.fromkeys((WORST_GROUP, *OF_NEW), "empirical_coverage")}
    low, high = entries[known.get(metric, metric)].bounds
    if not low <= value <= high:
        percent = value / 100
        meant = f": did you mean {percent:g}?" if high <= 1 and low <= percent <= high else ""
        ends = f"[{low:g}, " if low > -math.inf else "(-inf, "
        ends += f"{high:g}]" if high < math.inf else "inf)"
        raise InputError(f"limit on {measure} must lie in {ends}, got {value:g}{meant}")
    return Limit(metric, side, float(value), **scope)


def limits_of(measure: str, least: float | None, most: float | None, **scope: Any) -> list[Limit]:
    """The limits on a measure that are not None."""
    sides: tuple[tuple[Side, float | None], ...] = (("min", least), ("max", most))
    return [limit_of(measure, side, value, **scope) for side, value in sides if value is not None]


@dataclass(frozen=True, slots=True)
class _LimitEntry(Checked):
    """One entry of ``limits`` as it is written."""

    measure: str = ""
    min: float | None = None
    max: float | None = None
    at: Fraction | None = None
    model: str = ""
    by: tuple[str, ...] | None = None

    def limits(self) -> list[Limit]:
        """Its bounds, of which it must have one."""
        if not self.measure:
            raise InputError('measure must name what is limited, such as "coverage", got none')
        if self.min is None and self.max is None:
            raise InputError(f"{self.measure} must have min or max, got neither")
        scope = {"at": self.at, "model": self.model, "by": self.by}
        return limits_of(self.measure, self.min, self.max, **scope)


def rules_from(given: Mapping[str, Any], name: str) -> Rules:
    """Rules from the tables of a file, or a mapping like it; messages begin with its name."""
    with within(name):
        tables = given.get("limits", ())
        if isinstance(tables, str | Mapping) or not isinstance(tables, Iterable):
            raise InputError(
                "limits must be a list of tables, such as "
                f'[{{measure = "coverage", min = 0.88}}], got {tables!r}'
            )
        limits = [limit for place, one in enumerate(tables, 1) for limit in _limits(one, place)]
        told = {**given, "limits": tuple(limits)}
        if told.get("fail_on") == "watch":  # as version 0.2 called it
            told["fail_on"] = "caution"
        made = from_options(Rules, told, "key")
        if not made.judges:
            raise InputError('nothing is to be judged: give limits, or fail_on = "bad"')
    return made


def _limits(table: Any, place: int) -> list[Limit]:
    with within(f"limit {place}"):
        if not isinstance(table, Mapping):
            raise InputError(
                f'it must be a table such as {{measure = "mae", max = 2}}, got {table!r}'
            )
        return from_options(_LimitEntry, table, "key").limits()


def read_rules(path: str | os.PathLike[str]) -> Rules:
    """The rules of a TOML file; of a pyproject.toml, those under ``[tool.howsure.check]``."""
    name = os.fspath(path)
    tables = read_toml(Path(path), f"limits {name}")
    if Path(path).name != PYPROJECT:
        return rules_from(tables, name)
    held = _tool(tables, name)
    if held is None:
        raise InputError(f"{name} must contain the table [{TABLE}]")
    return rules_from(held, f"{name} [{TABLE}]")


def project_rules(folder: Path) -> Rules | None:
    """The rules that the pyproject.toml of a folder holds, if it does."""
    path = folder / PYPROJECT
    if not path.is_file():
        return None
    held = _tool(read_toml(path, f"limits {PYPROJECT}"), PYPROJECT)
    return None if held is None else rules_from(held, f"{PYPROJECT} [{TABLE}]")


def _tool(tables: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """What a pyproject.toml holds for this command."""
    tools = tables.get("tool", {})
    ours = tools.get("howsure") if isinstance(tools, Mapping) else None
    if ours is None:
        return None
    if not isinstance(ours, Mapping) or not isinstance(ours.get("check", {}), Mapping):
        raise InputError(f"{name}: [{TABLE}] must be a table, got {ours!r}")
    for key in ours:
        check_known(key, ["check"], f"{name}: table of [tool.howsure]")
    held: Mapping[str, Any] | None = ours.get("check")
    return held


def with_more(rules: Rules, limits: Iterable[Limit] = (), **changes: Any) -> Rules:
    """The same rules with further limits, and with those choices that are not None changed."""
    given = {name: value for name, value in changes.items() if value is not None}
    return replace(rules, limits=tuple(dict.fromkeys((*rules.limits, *limits))), **given)
