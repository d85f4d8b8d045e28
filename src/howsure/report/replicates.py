"""Is a method's coverage right? Its test is repeated with new draws until the replicates tell.

The coverage of a replicate is one number in [0, 1], whose rows may depend in any way; replicates
are independent. Bets on their mean (`stats/evidence.py`) may be looked at after each of them.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import asdict
from typing import Any, Final, Literal, final

import numpy as np
import numpy.typing as npt

from howsure._version import __version__
from howsure.core.arrays import BoolArray, FloatArray
from howsure.core.classes import frozen
from howsure.core.convert import (
    Checked,
    Count,
    Fraction,
    NonNegative,
    check_whole,
    json_number,
    plain,
)
from howsure.core.errors import InputError
from howsure.core.formats import counted, fixed, level, number, percent, share
from howsure.core.rng import child
from howsure.core.text import legible
from howsure.stats.evidence import (
    BETS,
    Side,
    mean_bets,
    mean_bound,
    mixed_capital,
    values_needed,
)

State = Literal["holds", "fails", "undecided", "error"]
# The usual level, of all looks together.
HOLDS_LEVEL = 0.05
"""Chance at most that coverage beyond the tolerance is ever taken as proven within it."""
MARKS: Final[dict[State, str]] = {"holds": "✓", "fails": "✗", "undecided": "?", "error": "!"}
_COUNTED: Final[dict[State, str]] = {
    "holds": "held",
    "fails": "failed",
    "undecided": "undecided",
    "error": "broken",
}


def replicate_rng(test: str, replicate: int, seed: int = 0) -> np.random.Generator:
    """The generator that a test of coverage draws one of its replicates with.

    Parameters
    ----------
    test : str
        The test's node id, as a failure states it.
    replicate : int
        Number of the replicate, from 1.
    seed : int
        That of ``--coverage-seed``.

    Returns
    -------
    numpy.random.Generator
        Fixed by the three: neither other tests nor their order change its draws.

    Raises
    ------
    InputError
        If the replicate is not a whole number of at least 1, or the seed one of at least 0.

    Examples
    --------
    >>> again = replicate_rng("tests/test_mine.py::test_coverage", 7)
    >>> bool(again.random() == replicate_rng("tests/test_mine.py::test_coverage", 7).random())
    True
    """
    return child(seed, "replicate", test, check_whole(replicate, "replicate"))


def drawn_with(test: str, replicate: int, seed: int) -> str:
    """The call that gives a replicate's generator, as code."""
    return f"howsure.testing.replicate_rng({test!r}, {replicate}{f', {seed}' if seed else ''})"


def covered_rows(
    y: Any, prediction: Any = None, upper: Any = None, *, coverage: float
) -> BoolArray:
    """Which rows a prediction covers: of flags, of y and a prediction, or of y and two ends."""
    if prediction is None and upper is None:
        hits = np.asarray(y)
        if hits.dtype != np.bool_ or hits.ndim != 1:
            raise InputError(
                "covered needs True or False for each row if neither a prediction nor ends are "
                f"given, got {hits.dtype} of shape {hits.shape}"
            )
    elif upper is not None:
        from howsure.topics.coverage import covered

        hits = covered(y, prediction, upper)
    else:
        from howsure.engine.view import View
        from howsure.report.coercion import opened

        models = opened(y, prediction, coverage=(coverage,)).evalsets
        if len(models) > 1:
            raise InputError(f"prediction must come from one model, got {len(models)}")
        hits = np.asarray(View(models[0]).get("covered", coverage))
    if not len(hits):
        raise InputError("a replicate must have at least one row, got none")
    return hits


@final
@frozen(kw_only=True)
class CoverageRule(Checked):
    """What a test of coverage asks for."""

    coverage: Fraction  # nominal
    tolerance: NonNegative = 0.02  # how far the empirical coverage may be off
    replicates: Count = 200  # at most
    sided: Literal["two", "low"] = "two"  # whether coverage above the tolerance fails too

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if self.tolerance >= self.coverage:
            raise InputError(
                f"tolerance must be below coverage, {self.coverage:g}, got {self.tolerance:g}"
            )

    @property
    def least(self) -> float:
        """The least mean coverage within the tolerance."""
        return round(self.coverage - self.tolerance, 12)

    @property
    def most(self) -> float:
        """The greatest; 1 where more coverage is no fault."""
        return min(round(self.coverage + self.tolerance, 12), 1.0) if self.sided == "two" else 1.0


@final
@frozen(kw_only=True)
class CoverageOutcome:
    """What became of a test of coverage, or what is known of it so far."""

    test: str  # node id
    coverage: float  # nominal
    least: float  # mean coverage within the tolerance
    most: float  # the same; 1 where more coverage is no fault
    most_replicates: int
    state: State
    empirical_coverage: float  # mean over replicates; NaN without one
    # bounds of the mean, each with this confidence, whenever the replicates ended
    lower: float
    upper: float
    confidence: float
    replicates: int
    rows: int  # of all replicates
    e_value: float  # evidence against the rule, the greater of both sides
    e_value_needed: float  # to fail
    error_rate: float  # chance at most that this test fails where coverage is within the tolerance
    needed: int | None  # replicates that would decide, if they go on so; None: no number would
    farthest: int | None  # the replicate whose coverage is farthest from the nominal
    farthest_coverage: float
    seed: int
    reason: str = ""  # what broke the test

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        if self.state == "error":
            return f"Stopped in replicate {self.replicates + 1}: {self.reason}"
        ends = f"{fixed(100 * self.lower, 1)}–{fixed(100 * self.upper, 1)}"
        clause = (
            f"Empirical coverage is {percent(self.empirical_coverage)} ({ends}, bounds at "
            f"{level(self.confidence)}) over {counted(self.replicates, 'replicate')} with "
            f"{counted(self.rows, 'row')}."
        )
        within = f"at least {percent(self.least)}"
        if self.most < 1.0:
            within = f"between {percent(self.least)} and {percent(self.most)}"
        if self.state == "holds":
            return f"{clause} It is significantly {within}."
        if self.state == "undecided":
            more = "no number of" if self.needed is None else f"about {self.needed:,}"
            return (
                f"{clause} Inconclusive whether it is {within}; at this coverage, {more} "
                "replicates should decide."
            )
        low = self.empirical_coverage < self.coverage
        beyond = f"below {percent(self.least)}" if low else f"above {percent(self.most)}"
        drawn = drawn_with(self.test, self.farthest or 1, self.seed)
        return (
            f"{clause} It is significantly {beyond}, and should be {within}. The e-value is "
            f"{number(self.e_value, 3)} (limit {number(self.e_value_needed, 3)}; a correct method "
            f"exceeds it with probability {percent(self.error_rate, 3)} at most). The farthest is "
            f"replicate {self.farthest}, {percent(self.farthest_coverage)}, drawn with {drawn}."
        )

    def as_dict(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return dict(plain({**asdict(self), "sentence": self.sentence}, json_number))


@final
class CoverageTrial:
    """A test of coverage as it runs: replicates are added until they tell.

    Parameters
    ----------
    rule : CoverageRule
        What is asked for.
    error_rate : float
        Chance at most that it fails where coverage is within the tolerance.
    test : str
        Node id.
    seed : int
        That of its draws.

    Examples
    --------
    >>> trial = CoverageTrial(CoverageRule(coverage=0.9), error_rate=0.01)
    >>> for hits in [np.arange(10) < 7] * 9:
    ...     trial.add(hits)
    >>> trial.state
    'fails'
    """

    def __init__(
        self, rule: CoverageRule, *, error_rate: float, test: str = "", seed: int = 0
    ) -> None:
        self.rule, self.error_rate, self.test, self.seed = rule, error_rate, test, seed
        self.values: list[float] = []
        self.rows = 0
        low: tuple[Side, float] = ("below", rule.least)
        high: tuple[Side, float] = ("above", rule.most)
        breaks = (low, high) if rule.most < 1.0 else (low,)  # a coverage above 1 is never proven
        keeps = [(_OTHER[side], limit) for side, limit in breaks]
        self._tail = error_rate / len(breaks)
        self._breaks = {bound: np.zeros(len(BETS)) for bound in breaks}
        self._keeps = {keep: np.zeros(len(BETS)) for keep in keeps}

    def add(self, *hits: npt.ArrayLike) -> None:
        """One replicate: whether each of its rows is covered, in one array or several."""
        rows = np.concatenate([np.asarray(hit, dtype=np.bool_) for hit in hits])
        value = float(rows.mean())
        self.values.append(value)
        self.rows += len(rows)
        for sums in (self._breaks, self._keeps):
            for (side, limit), logs in sums.items():
                logs += mean_bets(value, limit, side)

    @property
    def state(self) -> State:
        """What the replicates prove; the test ends once they prove something."""
        if any(_capital(logs) >= -math.log(self._tail) for logs in self._breaks.values()):
            return "fails"
        proven = all(_capital(logs) >= -math.log(HOLDS_LEVEL) for logs in self._keeps.values())
        return "holds" if proven else "undecided"

    def outcome(self, reason: str = "") -> CoverageOutcome:
        """What is known; with a reason, that the test broke in the next replicate."""
        values, count = np.array(self.values), len(self.values)
        state = self.state
        tail = self._tail if state == "fails" else HOLDS_LEVEL
        mean = float(values.mean()) if count else math.nan
        lower, upper = (mean_bound(values, s, tail) if count else math.nan for s in _OTHER)
        logs = max(map(_capital, self._breaks.values()))
        off = self.rule.coverage - values
        off = off * math.copysign(1.0, self.rule.coverage - mean) if state == "fails" else abs(off)
        far = int(off.argmax()) if count else None
        return CoverageOutcome(
            test=self.test,
            coverage=self.rule.coverage,
            least=self.rule.least,
            most=self.rule.most,
            most_replicates=self.rule.replicates,
            state="error" if reason else state,
            empirical_coverage=mean,
            lower=lower,
            upper=upper,
            confidence=1.0 - tail,
            replicates=count,
            rows=self.rows,
            e_value=math.exp(min(logs, _LARGEST)),
            e_value_needed=1.0 / self._tail,
            error_rate=self.error_rate,
            needed=self._needed() if state == "undecided" and count and not reason else None,
            farthest=None if far is None else far + 1,
            farthest_coverage=math.nan if far is None else self.values[far],
            seed=self.seed,
            reason=reason,
        )

    def _needed(self) -> int | None:
        """Replicates that would decide, if they go on so."""
        count = len(self.values)
        fails = (values_needed(logs, count, self._tail) for logs in self._breaks.values())
        counts = (values_needed(logs, count, HOLDS_LEVEL) for logs in self._keeps.values())
        first = min(*fails, max(counts))
        return math.ceil(first) if first < math.inf else None


@final
@frozen(kw_only=True)
class CoverageSession:
    """What became of all tests of coverage that ran together."""

    outcomes: tuple[CoverageOutcome, ...]
    error_rate: float  # chance at most that any of them fails where coverage is within tolerance

    @property
    def summary(self) -> str:
        """How many of each state, and how often a session of right methods fails."""
        counts = Counter(outcome.state for outcome in self.outcomes)
        states = [f"{counts[state]} {word}" for state, word in _COUNTED.items() if counts[state]]
        return (
            f"{counted(len(self.outcomes), 'test')} of coverage: "
            f"{', '.join(states) or 'none ran'}. "
            "If all methods are correct, the probability of any failure is at most "
            f"{percent(self.error_rate, 3)}."
        )

    def as_dict(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return {
            "howsure": __version__,
            "summary": self.summary,
            "error_rate": self.error_rate,
            "tests": [outcome.as_dict() for outcome in self.outcomes],
        }

    def to_json(self) -> str:
        """As JSON."""
        return json.dumps(self.as_dict(), ensure_ascii=False, indent=2) + "\n"

    def to_markdown(self) -> str:
        """As Markdown: a table, and a sentence on each test."""
        from howsure.report.plain import escape

        blocks = ["# Tests of coverage", escape(self.summary)]
        if self.outcomes:
            titles = ("", "test", "nominal", "empirical", "bounds", "replicates", "e-value")
            rows = [titles, (":-:", ":--", *["--:"] * 5), *map(_cells, self.outcomes)]
            lines = [rows[0], rows[1], *([escape(c, inside=True) for c in row] for row in rows[2:])]
            blocks.append("\n".join("| " + " | ".join(line) + " |" for line in lines))
        for outcome in self.outcomes:
            test, text = (escape(t, inside=True) for t in (outcome.test, outcome.sentence))
            blocks.append(f"- {MARKS[outcome.state]} {test}: {text}")
        return legible("\n\n".join(blocks), lines=True) + "\n"


def _cells(outcome: CoverageOutcome) -> tuple[str, ...]:
    """A row of the table."""
    return (
        MARKS[outcome.state],
        outcome.test,
        level(outcome.coverage),
        percent(outcome.empirical_coverage),
        f"{share(outcome.lower)} to {share(outcome.upper)}",
        f"{outcome.replicates:,}",
        number(outcome.e_value, 3),
    )


def _capital(logs: FloatArray) -> float:
    return float(mixed_capital(logs))


_OTHER: Final[dict[Side, Side]] = {"above": "below", "below": "above"}
_LARGEST = 700.0  # whose exponential is a number
