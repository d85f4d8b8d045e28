"""An evaluation set seen as the named arrays that formulas ask for.

Each array is made once, when first asked for. What the content does not permit raises
`UnanswerableError`, whose message becomes the reason in the record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.errors import UnanswerableError
from howsure.core.rng import row_keys, row_uniforms
from howsure.metrics import selective
from howsure.metrics.crps_closed import crps_closed
from howsure.metrics.crps_counts import crps_support
from howsure.metrics.crps_numeric import crps_lattice, crps_numeric
from howsure.metrics.evaluate.trade import characteristic_view, perfect_view
from howsure.metrics.pit import randomised_counts, randomised_pit
from howsure.predictions import (
    CountFamily,
    CountLaw,
    Distribution,
    EvalSet,
    Intervals,
    LabelSets,
    Prediction,
    Quantiles,
    Samples,
)
from howsure.stats.dominance import Ranked, merge_ties, rank_values

SLOW_ROWS = 50_000
WIDE_COUNTS = 4096  # counts in a law up to which they are summed one by one
COUNT_CELLS = 1 << 18  # entries of a table of counts
INTERVAL_KINDS = ("intervals", "distributions", "quantiles", "samples")


@final
class View:
    """Named arrays of one evaluation set, made when asked for and kept.

    Parameters
    ----------
    evalset : EvalSet
        What happened and what was believed.
    seed : int
        Fixes the draws of the randomised PIT.
    slow : frozenset of str
        Slow measures that are wanted all the same past `SLOW_ROWS` rows.
    """

    def __init__(
        self, evalset: EvalSet, *, seed: int = 0, slow: frozenset[str] = frozenset()
    ) -> None:
        self.evalset = evalset
        self.slow = slow
        self.seed = seed
        self._beliefs: dict[str, Prediction] = {b.kind: b for b in evalset.beliefs}
        self._cache: dict[tuple[str, float], Any] = {}
        self._source: dict[tuple[str, float], str] = {}

    def get(self, name: str, coverage: float = float("nan")) -> Any:
        """The array of this name; arrays of intervals are those at the coverage.

        Raises
        ------
        UnanswerableError
            If the content does not permit it; the message is the reason.
        """
        if name == "coverage":
            if np.isnan(coverage):
                raise UnanswerableError("the nominal coverage of the intervals is unknown")
            return coverage
        key = (name, coverage if name in _PER_COVERAGE else 0.0)
        if key not in self._cache:
            try:
                self._cache[key] = _MAKERS[name](self, coverage)
            except UnanswerableError as error:
                self._cache[key] = error
        found = self._cache[key]
        if isinstance(found, UnanswerableError):
            raise found
        return found

    def source(self, names: Sequence[str], coverage: float) -> str:
        """Which beliefs answered for these arrays."""
        used = [
            self._source.get((name, coverage if name in _PER_COVERAGE else 0.0), "")
            for name in names
        ]
        return ", ".join(dict.fromkeys(part for part in used if part))

    def belief(self, kind: type[Prediction]) -> Any:
        """The belief of a kind, or the reason why there is none."""
        if kind.kind not in self._beliefs:
            raise UnanswerableError(f"the table holds no {kind.kind}")
        return self._beliefs[kind.kind]

    def first(
        self, name: str, kinds: Sequence[str], ask: Callable[[Prediction], Any], coverage: float
    ) -> Any:
        """The first answer among beliefs of these kinds; remembers who answered."""
        reasons = []
        for kind in kinds:
            if kind in self._beliefs:
                try:
                    answer = ask(self._beliefs[kind])
                except UnanswerableError as error:
                    reasons.append(str(error))
                else:
                    key = (name, coverage if name in _PER_COVERAGE else 0.0)
                    self._source[key] = kind
                    return answer
        if not reasons:
            reasons = [f"the table holds no {' or '.join(kinds)}"]
        raise UnanswerableError("; ".join(reasons))


def _ends(view: View, coverage: float) -> tuple[FloatArray, FloatArray]:
    given = view._beliefs.get("intervals")
    if np.isnan(coverage):
        if isinstance(given, Intervals):
            view._source[("ends", coverage)] = "intervals"
            return given.lower[:, 0], given.upper[:, 0]
        raise UnanswerableError("the table holds no intervals")
    ends: tuple[FloatArray, FloatArray] = view.first(
        "ends", INTERVAL_KINDS, lambda belief: belief.interval(coverage), coverage
    )
    return ends


def _point(view: View, coverage: float) -> FloatArray:
    if view.evalset.point is not None:
        view._source[("point", 0.0)] = "point"
        return view.evalset.point
    kinds = ("distributions", "samples", "quantiles", "intervals")
    found: FloatArray = view.first("point", kinds, lambda belief: belief.point(), coverage)
    return found


def _uncertainty(view: View, coverage: float) -> FloatArray:
    """How unsure the model is of each row: its sd, or the width of its widest interval."""
    try:
        sd: FloatArray = view.get("sd")
    except UnanswerableError:
        widest = _widest(view)
        view._source[("uncertainty", 0.0)] = "width"
        return widest
    view._source[("uncertainty", 0.0)] = "sd"
    return sd


def _widest(view: View) -> FloatArray:
    intervals = view._beliefs.get("intervals")
    if isinstance(intervals, Intervals):
        return _between(intervals.lower[:, -1], intervals.upper[:, -1])
    table = view.belief(Quantiles)
    if len(table.levels) < 2:
        raise UnanswerableError("one quantile column gives no width")
    return _between(table.values[:, 0], table.values[:, -1])


def _between(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Widths, those that differ by rounding alone made one: else their order would be noise."""
    widths = upper - lower
    noise = np.where(np.isfinite(widths), np.maximum(np.abs(lower), np.abs(upper)), 0.0)
    return merge_ties(widths, 4e-16 * noise)


def _with_point(view: View, _: float) -> View:
    """The rows whose error can be ranked: all, or those whose interval has a midpoint."""
    intervals = view._beliefs.get("intervals")
    try:
        view.get("point")
    except UnanswerableError:
        if not isinstance(intervals, Intervals):
            raise
        bounded = np.isfinite(intervals.lower[:, 0]) & np.isfinite(intervals.upper[:, 0])
        if not bounded.any():
            raise
        return View(view.evalset.take(bounded), seed=view.seed, slow=view.slow)
    return view


def _positive_sd(view: View, _: float) -> FloatArray:
    """Standard deviations that errors can be divided by."""
    sd: FloatArray = view.get("sd")
    if not (sd > 0).all():
        rows, first = int((sd <= 0).sum()), view.evalset.row_names()[int(np.argmax(sd <= 0))]
        told = "1 row" if rows == 1 else f"{rows:,} rows"
        raise UnanswerableError(
            f"the {view.source(['sd'], 0.0)} of {told} are all equal (first at row "
            f"{first}), so no error can be divided by their sd"
        )
    return sd


def _crps_of_law(view: View, _: float) -> FloatArray:
    """CRPS of each row's law: by closed form, by sums over counts, or through its cdf."""
    held: Distribution = view.belief(Distribution)
    y = view.evalset.y
    closed = crps_closed(held.law.name, y, held.parameters)
    if closed is not None:
        return closed
    scores, rest = np.empty(len(y)), np.arange(len(y))
    if isinstance(held.law, CountFamily):
        rest = _crps_by_sums(held.law.frozen(held.parameters), y, scores)
    if len(rest) > SLOW_ROWS and "crps" not in view.slow:
        raise UnanswerableError(
            f"the CRPS of {held.law.name} laws is integrated row by row, slow past "
            f"{SLOW_ROWS:,} rows: ask for it with --with crps"
        )
    if len(rest):
        scores[rest] = _crps_by_cdf(held.take(rest), y[rest])
    return scores


def _crps_by_sums(law: CountLaw, y: FloatArray, scores: FloatArray) -> npt.NDArray[Any]:
    """Fill in the CRPS of laws of counts that are narrow enough to be summed; the other rows."""
    low, high = law.ends()
    widths = high - low + 1.0
    order = np.argsort(widths, kind="stable")
    few, start = int((widths <= WIDE_COUNTS).sum()), 0
    while start < few:
        size = min(max(int(COUNT_CELLS // widths[order[start]]), 1), few - start)
        size = max(int(COUNT_CELLS // widths[order[start + size - 1]]), 1)
        rows = order[start : min(start + size, few)]
        scores[rows] = crps_support(y[rows], *law.take(rows).support())
        start += len(rows)
    return np.sort(order[few:])


def _crps_by_cdf(held: Distribution, y: FloatArray) -> FloatArray:
    def cdf(values: FloatArray, rows: npt.NDArray[Any]) -> FloatArray:
        return held.law.cdf(values, {k: v[rows][:, None] for k, v in held.parameters.items()})

    ends = held.quantile([0.25, 0.75])
    spread = np.maximum(ends[:, 1] - ends[:, 0], 1.0 if held.discrete else 0.0)
    integrate = crps_lattice if held.discrete else crps_numeric
    return integrate(y, cdf, spread)


def _levels(view: View, _: float) -> FloatArray:
    levels: FloatArray = view.belief(Quantiles).levels
    return levels


def _covered(view: View, coverage: float) -> Any:
    sets = view._beliefs.get("label sets")
    if isinstance(sets, LabelSets) and "intervals" not in view._beliefs:
        view._source[("covered", coverage)] = "label sets"
        if not np.isnan(coverage) and abs(sets.coverage - coverage) > 1e-9:
            raise UnanswerableError(f"label sets were given at coverage {sets.coverage:g}")
        return sets.contains(view.evalset.y)
    lower, upper = view.get("lower", coverage), view.get("upper", coverage)
    return (view.evalset.y >= lower) & (view.evalset.y <= upper)


def _own_mass(view: View, coverage: float) -> FloatArray:
    """Probability that a discrete law gives its own interval, ends included."""
    law = view._beliefs.get("distributions")
    view.get("lower", coverage)
    answers = view.source(["ends"], coverage) == "distributions"
    if not (answers and isinstance(law, Distribution) and law.discrete):
        raise UnanswerableError("the interval is not that of a discrete law")
    upper = law.cdf(view.get("upper", coverage))
    return np.asarray(upper - law.cdf_left(view.get("lower", coverage)))


def _pit(view: View, side: str) -> FloatArray:
    def ask(belief: Prediction) -> FloatArray:
        return belief.cdf(view.evalset.y) if side == "cdf" else belief.cdf_left(view.evalset.y)

    found: FloatArray = view.first(side, ("distributions", "samples"), ask, 0.0)
    return found


def _cdf_left(view: View, _: float) -> FloatArray:
    distribution = view._beliefs.get("distributions")
    if isinstance(distribution, Distribution) and not distribution.discrete:
        return np.asarray(view.get("cdf"))
    return _pit(view, "cdf_left")


def _left(view: View, _: float) -> FloatArray | None:
    """P(Y < y), or None where it equals P(Y ≤ y)."""
    left = view.get("cdf_left")
    return None if left is view.get("cdf") else np.asarray(left)


def _pit_random(view: View, _: float) -> FloatArray:
    """PIT values of rows; at a jump, a draw fixed by the ends of the jump."""
    right, left = view.get("cdf"), view.get("left")
    if left is None:
        return np.asarray(right)
    draws = row_uniforms(view.seed, "pit", row_keys(left, right))
    return randomised_pit(right, left, draws)


def _pit_counts(view: View, _: float) -> tuple[FloatArray, int]:
    """How many PIT values lie at or below each hundredth, and how many there are."""
    evalset = view.evalset
    if evalset.cluster is not None:
        raise UnanswerableError("the test of uniformity needs independent rows, not clusters")
    right, left = view.get("cdf"), view.get("left")
    if evalset.weights is not None and evalset.weights.kind == "importance":
        raise UnanswerableError("the test of uniformity needs unweighted rows")
    copies = evalset.multiplicities
    n = evalset.n if copies is None else int(copies.sum())
    return randomised_counts(right, left, np.arange(1, 100) / 100, copies, seed=view.seed), n


def _acceptance(view: View, _: float) -> selective.Acceptance:
    values = view.evalset.multiplicities
    error, width = view.get("absolute_error"), view.get("uncertainty")
    return selective.acceptance(error, width, values, ranked=view.get("ranks")[1])


def _oracle(view: View, _: float) -> selective.Acceptance:
    accepted: selective.Acceptance = view.get("acceptance")
    return accepted.oracle(view.get("ranks")[0])


def _ranks(view: View, _: float) -> tuple[Ranked, Ranked]:
    """Ranks of the size of the error and of the uncertainty: sorted once for all measures."""
    values = view.evalset.multiplicities
    first, second = view.get("absolute_error"), view.get("uncertainty")
    return rank_values(first, values), rank_values(second, values)


def _several_intervals(view: View, part: str) -> Any:
    """All central intervals that the content states: given ones, or pairs of quantiles."""
    intervals = view._beliefs.get("intervals")
    if isinstance(intervals, Intervals) and len(intervals.coverages) > 1:
        found: dict[str, Any] = {
            "lowers": intervals.lower,
            "uppers": intervals.upper,
            "coverages": np.asarray(intervals.coverages),
        }
        return found[part]
    table = view._beliefs.get("quantiles")
    if not isinstance(table, Quantiles):
        raise UnanswerableError("several intervals, or quantiles in pairs, are needed")
    pairs = [
        (i, int(j))
        for i, level in enumerate(table.levels)
        if level < 0.5
        for j in np.flatnonzero(np.abs(table.levels - (1.0 - level)) < 1e-9)
    ]
    if not pairs:
        raise UnanswerableError("no two quantile columns bound a central interval")
    low, high = (list(side) for side in zip(*pairs, strict=True))
    found = {
        "lowers": table.values[:, low],
        "uppers": table.values[:, high],
        "coverages": table.levels[high] - table.levels[low],
    }
    return found[part]


def _median(view: View, _: float) -> FloatArray | None:
    """The median where the content states it; None otherwise."""
    table = view._beliefs.get("quantiles")
    if isinstance(table, Quantiles) and (np.abs(table.levels - 0.5) < 1e-9).any():
        return np.asarray(table.quantile([0.5])[:, 0])
    return None


def _belief_method(name: str, *kinds: str) -> Callable[[View, float], Any]:
    def make(view: View, coverage: float) -> Any:
        def ask(belief: Prediction) -> Any:
            return getattr(belief, name)()

        return view.first(name, kinds, ask, coverage)

    return make


def _log_density(view: View, coverage: float) -> Any:
    return view.first(
        "log_density", ("distributions",), lambda b: b.log_density(view.evalset.y), coverage
    )


_MAKERS: dict[str, Callable[[View, float], Any]] = {
    "y": lambda view, _: view.evalset.y,
    "point": _point,
    "sd": _belief_method("sd", "distributions", "samples"),
    "positive_sd": _positive_sd,
    "with_point": _with_point,
    "mean": _belief_method("point", "distributions", "samples"),
    "crps_of_law": _crps_of_law,
    "levels": _levels,
    "quantiles": lambda view, _: view.belief(Quantiles).values,
    "samples": lambda view, _: view.belief(Samples).sorted_samples,
    "set_sizes": lambda view, _: view.belief(LabelSets).sizes.astype(np.float64),
    "cdf": lambda view, _: _pit(view, "cdf"),
    "cdf_left": _cdf_left,
    "own_mass": _own_mass,
    "left": _left,
    "pit": _pit_random,
    "pit_counts": _pit_counts,
    "characteristic": lambda view, _: characteristic_view(view),
    "perfect": lambda view, _: perfect_view(view),
    "acceptance": _acceptance,
    "oracle": _oracle,
    "ranks": _ranks,
    "log_density": _log_density,
    "uncertainty": _uncertainty,
    "absolute_error": lambda view, _: np.abs(view.evalset.y - view.get("point")),
    "lowers": lambda view, _: _several_intervals(view, "lowers"),
    "uppers": lambda view, _: _several_intervals(view, "uppers"),
    "coverages": lambda view, _: _several_intervals(view, "coverages"),
    "median": _median,
    "ends": _ends,
    "lower": lambda view, coverage: view.get("ends", coverage)[0],
    "upper": lambda view, coverage: view.get("ends", coverage)[1],
    "covered": _covered,
}
_PER_COVERAGE = frozenset({"ends", "lower", "upper", "covered", "own_mass"})
