"""Forecasts that anyone could have made at the time, and skill against them or another model.

Persistence is the last value that was known, and the seasonal naive forecast the last one of the
same season; both with the quantiles of all changes over as long a time that were known by then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import AnyArray, BoolArray, FloatArray, IntArray, as_vector
from howsure.core.convert import check_whole
from howsure.core.errors import InputError, UnanswerableError, either
from howsure.core.labels import Categories, as_labels
from howsure.core.records import Direction
from howsure.core.registry import check_known
from howsure.core.times import slots
from howsure.engine.metric import Array, Metric, Question, Topic, estimated
from howsure.engine.view import View, choose_coverages
from howsure.inputs.roles import name_roles
from howsure.predictions import Distribution, EvalSet, Intervals, Quantiles, Samples
from howsure.predictions.base import wanted_levels
from howsure.predictions.evalset import BaselineForecast
from howsure.stats.estimate import Estimate, spread_of
from howsure.topics.scores import MIN_MEMBERS_BEYOND, interval_score, pinball, pinball_samples
from howsure.topics.skill import MEASURE_OF, MIDPOINTS, TOLERANCE, skill_score

Naive = Literal["persistence", "seasonal"]
CLIMATOLOGY: Final = "climatology"
NAIVE: Final[tuple[Naive, ...]] = ("persistence", "seasonal")
# With 30, the outermost of the nine levels compared, 1/18 from an end, still has a change beyond
# it.
MIN_CHANGES: Final = 30
"""Past changes of which quantiles are taken, at least."""
# By how much more changes quantiles are taken again: for a tenth more, quantiles hardly differ,
# and time grows with the logarithm of the past instead of its length.
_GROWTH_OF_PAST: Final = 1.1
_SEASONS: Final = {  # by the step in seconds: its steps, and how many of which unit it is
    900: (672, 1, "week"),
    1800: (336, 1, "week"),
    3600: (168, 1, "week"),
    86400: (7, 1, "week"),
    604800: (52, 52, "week"),
}


def naive_quantiles(
    y: npt.ArrayLike,
    time: npt.ArrayLike,
    levels: npt.ArrayLike,
    *,
    lead: npt.ArrayLike,
    season: int = 1,
    series: npt.ArrayLike | None = None,
) -> FloatArray:
    """Quantiles of persistence, or of the seasonal naive forecast: a past value and past changes.

    At a lead of h steps the last value of the same season is that of L = s ⌈h/s⌉ steps before, s
    being the season; to it the quantiles of all changes y_u − y_{u−L} are added that were known h
    steps before the row (at least 30; taken again as their number grows by a tenth).

    Examples
    --------
    >>> walk = np.cumsum(np.tile([1.0, -1.0, 2.0, 0.0], 25))
    >>> naive_quantiles(walk, np.arange(100), [0.25, 0.75], lead=4)[-1] - walk[-5]
    array([2., 2.])
    """
    truth = as_vector(y, "y")
    n, grid = len(truth), wanted_levels(levels)
    ahead = _leads(lead, n)
    check_whole(season, "season", 1)
    places = slots(as_labels(time, "time", length=n))
    codes = np.zeros(n, dtype=np.int64)
    if series is not None:
        codes = Categories.checked(series, "series", length=n).codes
    return _Past.of(truth, places, codes).table(places, codes, ahead, season, grid)


def _leads(lead: npt.ArrayLike, n: int) -> IntArray:
    """Whole numbers of steps, one a row."""
    steps = as_vector(lead, "lead", scalar=True)
    if len(steps) not in (1, n):
        raise InputError(f"lead must be one number or {n} as y has rows, got {len(steps)}")
    wrong = (steps < 1) | (steps != np.round(steps))
    if wrong.any():
        raise InputError(
            f"lead must be whole numbers of at least 1, got {steps[np.argmax(wrong)]:g}"
        )
    return np.broadcast_to(steps.astype(np.int64), n)


class _Past:
    """Values of all series, in the order of series and time."""

    def __init__(self, values: FloatArray, keys: IntArray, stride: int) -> None:
        self.values, self.keys, self.stride = values, keys, stride

    @classmethod
    def of(cls, y: FloatArray, places: IntArray, codes: IntArray) -> _Past:
        stride = 2 * (int(places.max(initial=0)) + 1)  # a lag never leads into another series
        keys = codes * stride + places
        distinct, first, position = np.unique(keys, return_index=True, return_inverse=True)
        values = y[first]
        if twice := np.flatnonzero(y != values[position]).tolist():
            raise InputError(
                "y must be one value at each time of each series, got two (first at row "
                f"{twice[0]}): name the series with {name_roles(series=...)}"
            )
        return cls(values, distinct, stride)

    def table(
        self, places: IntArray, codes: IntArray, leads: IntArray, season: int, levels: FloatArray
    ) -> FloatArray:
        """Quantiles of rows at these places of their series, shape (rows, levels)."""
        table = np.full((len(places), len(levels)), np.nan)
        for lead in np.unique(leads).tolist():
            rows = np.flatnonzero(leads == lead)
            lag = season * math.ceil(lead / season)
            if lag < self.stride // 2:
                table[rows] = self._quantiles(places[rows], codes[rows], lag, lead, levels)
        return table

    def _quantiles(
        self, places: IntArray, codes: IntArray, lag: int, lead: int, levels: FloatArray
    ) -> FloatArray:
        """The same at one lag and lead."""
        table = np.full((len(places), len(levels)), np.nan)
        before, there = self._at(self.keys - lag)
        changes, keys = (self.values - before)[there], self.keys[there]
        base, has_base = self._at(codes * self.stride + places - lag)
        # of the changes of its series those that were known at its lead before
        first = np.searchsorted(keys, codes * self.stride)
        counts = np.searchsorted(keys, codes * self.stride + places - lead, side="right") - first
        rows = np.flatnonzero(has_base & (counts >= MIN_CHANGES))
        pasts, past_of = np.unique(
            np.column_stack([first[rows], _coarse(counts[rows])]), axis=0, return_inverse=True
        )
        ends = [np.quantile(changes[start : start + count], levels) for start, count in pasts]
        if len(rows):
            table[rows] = base[rows, None] + np.array(ends)[past_of.reshape(-1)]
        return table

    def _at(self, keys: IntArray) -> tuple[FloatArray, BoolArray]:
        """Values at these keys, and whether there are any."""
        position = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return self.values[position], np.asarray(self.keys[position] == keys)


def _coarse(counts: IntArray) -> IntArray:
    """Counts cut to those of a series that grows by a tenth."""
    most = int(counts.max(initial=MIN_CHANGES))
    steps = [MIN_CHANGES]
    while steps[-1] < most:
        steps.append(max(steps[-1] + 1, int(steps[-1] * _GROWTH_OF_PAST)))
    grid = np.array(steps)
    return grid[np.searchsorted(grid, counts, side="right") - 1]


# ---- beside which forecast a model is judged ----------------------------------------------------


def with_baselines(
    evalsets: Sequence[EvalSet],
    *,
    baseline: str = "",
    lead: int | None = None,
    season: int | None = None,
) -> tuple[EvalSet, ...]:
    """The sets, each with the forecasts that its skill is relative to.

    `baseline` is the one by which the verdict judges: ``climatology`` (or nothing),
    ``persistence``, ``seasonal``, or a model's name. A `lead` of all rows goes before their own;
    a `season` in steps of time, before that which dates suggest. Horizons of which no naive
    forecast can be made are no fault unless one is asked for.
    """
    first = evalsets[0]
    if lead is not None:
        check_whole(lead, "lead", 1)
    if season is not None:
        check_whole(season, "season", 2)
    models = {evalset.model: evalset for evalset in evalsets}
    check_known(baseline or CLIMATOLOGY, [CLIMATOLOGY, *NAIVE, *models], "baseline")
    ahead = np.full(first.n, float(lead)) if lead is not None else first.horizon
    is_asked = lead is not None or season is not None or baseline in NAIVE
    naive = None
    if is_asked or ahead is not None:
        try:
            naive = _naive(first, baseline, ahead, season)
        except InputError as error:
            if is_asked:
                raise InputError(f"{_describe_refusal(baseline, lead, season)}: {error}") from error
    rival = models.get(baseline)
    by_levels: dict[bytes, list[BaselineForecast]] = {}  # models of the same levels share them
    sets = []
    for held in evalsets:
        levels = _levels_of(held)
        if levels.tobytes() not in by_levels:
            by_levels[levels.tobytes()] = [] if naive is None else naive(levels)
        forecasts = list(by_levels[levels.tobytes()])
        if rival is not None and rival is not held:
            forecasts.append(_of_model(rival))
        sets.append(replace(held, baselines=tuple(forecasts)) if forecasts else held)
    return tuple(sets)


def _describe_refusal(baseline: str, lead: int | None, season: int | None) -> str:
    """What cannot be done of what was asked."""
    if baseline in NAIVE:
        return f"baseline {baseline!r} cannot be made"
    return f"season {season} cannot be used" if lead is None else f"lead {lead} cannot be used"


def _of_model(evalset: EvalSet) -> BaselineForecast:
    known = np.ones(evalset.n, dtype=np.bool_)
    return BaselineForecast(
        kind="model", name=evalset.model, predictions=evalset.predictions, known=known, asked=True
    )


def _naive(
    evalset: EvalSet, baseline: str, ahead: FloatArray | None, season: int | None
) -> Callable[[FloatArray], list[BaselineForecast]]:
    """What makes persistence, and the seasonal naive forecast where a season is known, at levels.

    Raises `InputError` where they cannot be made of these rows.
    """
    if evalset.time is None:
        raise InputError(f"it needs the time of each row: give {name_roles(time=...)}")
    if ahead is None:
        raise InputError(
            f"it needs the lead time of rows in steps: give {_of_options(lead='N')} or "
            f"{name_roles(horizon=...)}"
        )
    if evalset.share < 1.0:
        raise InputError("it needs all rows, and the table is read in parts")
    leads = _leads(ahead, evalset.n)
    length, count, unit = (season, season, "step") if season else _season_of(evalset.time)
    if baseline == "seasonal" and not length:
        raise InputError(f"no season was found in the times: give {_of_options(season='STEPS')}")
    series = np.zeros(evalset.n, dtype=np.int64) if evalset.series is None else evalset.series.codes
    places = slots(evalset.time)
    past = _Past.of(evalset.y, places, series)
    tables: dict[Naive, tuple[int, str]] = {
        "persistence": (1, f"persistence ({_before(leads, 1, 1, 'step')})")
    }
    if length:
        words = _before(leads, length, count, unit)
        tables["seasonal"] = length, f"the seasonal naive forecast ({words})"

    def forecast_at(levels: FloatArray) -> list[BaselineForecast]:
        forecasts = []
        for kind, (steps, name) in tables.items() if len(levels) else ():
            table = past.table(places, series, leads, steps, levels)
            has_past = np.asarray(np.isfinite(table).all(axis=1))
            if has_past.any():
                prediction = Quantiles(levels, np.where(has_past[:, None], table, 0.0))
                forecasts.append(
                    BaselineForecast(
                        kind=kind,
                        name=name,
                        predictions=(prediction,),
                        known=has_past,
                        asked=baseline == kind,
                    )
                )
        if baseline in NAIVE and len(levels) and not any(forecast.asked for forecast in forecasts):
            raise InputError(
                f"baseline {baseline!r} cannot be made: no row has {MIN_CHANGES} earlier "
                "changes over its lead time"
            )
        return forecasts

    return forecast_at


def _before(leads: IntArray, season: int, count: int, unit: str) -> str:
    """How long before a row its past value lies, in words; so many units are a season."""
    times = -(-np.array([leads.min(), leads.max()]) // season) * count
    low, high = times.tolist()
    if low == high == 1 and unit != "step":
        return f"a {unit} before"
    span = f"{low}" if low == high else f"{low} to {high}"
    return f"{span} {unit}{'s' * (high != 1)} before"


def _levels_of(evalset: EvalSet) -> FloatArray:
    """Levels at which a model states quantiles or ends of intervals."""
    levels: list[float] = []
    for prediction in evalset.predictions:
        if isinstance(prediction, Quantiles):
            levels += prediction.levels.tolist()
        elif isinstance(prediction, Distribution | Samples):
            levels += MIDPOINTS.tolist()
        elif isinstance(prediction, Intervals):
            coverages = [share for share in choose_coverages(evalset) if not math.isnan(share)]
            levels += [level for share in coverages for level in _ends(share)]
    return np.unique(np.round(levels, 12))


def _ends(coverage: float) -> tuple[float, float]:
    miss = 0.5 * (1.0 - coverage)
    return miss, 1.0 - miss


def _season_of(times: AnyArray) -> tuple[int, int, str]:
    """The steps of the season that dates suggest by their usual step, and it in words' units."""
    if times.dtype.kind != "M":
        return 0, 0, ""
    moments = np.unique(times)
    months = np.unique(moments.astype("datetime64[M]").astype(np.int64))
    if len(months) == len(moments) > 1:
        step = int(np.gcd.reduce(np.diff(months)))
        return (12 // step, 1, "year") if step in (1, 2, 3, 4, 6) else (0, 0, "")
    steps = np.diff(moments.astype("datetime64[s]").astype(np.int64))
    usual = int(np.gcd.reduce(steps)) if len(steps) else 0
    return _SEASONS.get(usual, (0, 0, ""))


# ---- measures -----------------------------------------------------------------------------------


def _against(view: View, _: float, *, kind: str) -> Estimate:
    """Against one baseline, by the finest score of the model that both can be asked."""
    evalset = view.evalset
    other = next((baseline for baseline in evalset.baselines if baseline.kind == kind), None)
    if other is None:
        raise UnanswerableError(_why_unknown(kind))
    ours, theirs, score = _scores(view, view.on(replace(evalset, predictions=other.predictions)))
    rows, weights = other.known, evalset.multiplicities
    if not rows.any():
        raise UnanswerableError(f"no row has {MIN_CHANGES} earlier changes")
    mass = None if weights is None else weights[rows]
    skill = skill_score(ours[rows], theirs[rows], weights=mass)
    share = float(rows.mean()) if weights is None else float(weights[rows].sum() / weights.sum())
    influence = None
    if skill.influence is not None:
        influence = np.zeros(evalset.n)
        influence[rows] = skill.influence / share
    details: dict[str, str | float] = {"baseline": other.name, "score": score}
    if influence is not None:
        spread = spread_of(influence, evalset.weights, evalset.units)
        off = (skill.value + TOLERANCE) / spread.error[0]
        freedom = max(float(spread.degrees[0]), 1.0)
        details["p_of_loss"] = float(special.stdtr(freedom, off))
    return replace(skill, influence=influence, details=details, n=share * _rows_of(evalset))


def _rows_of(evalset: EvalSet) -> float:
    return float(evalset.n if evalset.weights is None else evalset.weights.effective_n)


def _scores(model: View, reference: View) -> tuple[FloatArray, FloatArray, str]:
    """Row scores of two forecasts by a score that means the same of both, and its name."""
    y, members = model.evalset.y, [_members(view) for view in (model, reference)]
    try:
        levels = MIDPOINTS if members[0] is not None else model.get("knowledge")[1]
        draws = [member.shape[1] for member in members if member is not None]
        if draws:  # levels beyond which few members lie cannot be scored fairly
            beyond = (min(draws) + 1.0) * np.minimum(levels, 1.0 - levels)
            levels = levels[beyond >= min(MIN_MEMBERS_BEYOND, float(beyond.max()))]
        losses = [_losses(*each, levels) for each in zip((model, reference), members, strict=True)]
        return losses[0], losses[1], "pinball loss"
    except UnanswerableError:
        coverage = model.headline
        if math.isnan(coverage):
            raise
        mine, theirs = model.get("ends", coverage), reference.get("ends", coverage)
        scores = [interval_score(y, *ends, coverage=coverage) for ends in (mine, theirs)]
        return scores[0], scores[1], "interval score"


def _losses(view: View, members: FloatArray | None, levels: FloatArray) -> FloatArray:
    """Of quantiles; of an ensemble, those of the distribution behind its members."""
    y = view.evalset.y
    if members is not None:
        losses = (pinball_samples(y, members, level=level) for level in levels.tolist())
    else:
        pairs = zip(view.ask("knowledge", "quantile", levels).T, levels.tolist(), strict=True)
        losses = (pinball(y, quantiles, level) for quantiles, level in pairs)
    return np.asarray(sum(losses))


def _members(view: View) -> FloatArray | None:
    """The members of an ensemble of several; None of other predictions."""
    samples = view.find_prediction(Samples)
    richer = (
        view.find_prediction(Distribution) is not None
        or view.find_prediction(Quantiles) is not None
    )
    return None if samples is None or samples.size < 2 or richer else samples.sorted_samples


def _of_options(**options: str) -> str:
    """Options of an assessment, as they are given where howsure was asked."""
    python = ", ".join(f"{name}={value}" for name, value in options.items())
    flags = " ".join(f"--{name} {value}" for name, value in options.items())
    return either(f"options=howsure.Options({python})", flags)


def _why_unknown(kind: str) -> str:
    """Why there is no baseline of a kind, and what to give."""
    if kind == "persistence":
        lead = _of_options(lead="N")
        horizon = either("howsure.Table(…, horizon=COLUMN)", "--horizon COLUMN")
        return f"no lead is known: give {lead} or horizons, {horizon}"
    if kind == "seasonal":
        return f"no lead or no season is known: give {_of_options(lead='N', season='STEPS')}"
    return f"no baseline is named: give {_of_options(baseline='MODEL')}"


_entry = partial(
    Metric,
    question=Question.SKILL,
    direction=Direction.HIGHER,
    standard_normal=math.nan,
    bounds=(-math.inf, 1.0),
    merges="rows",
    source="as crps_skill",
)
_PAST = "Rows whose past is not in the table are left out."
_OF_THIS_Y = "the baseline uses the observed y, not a simulated one"

_ENTRIES = (
    _entry(
        name="persistence_skill",
        title="Skill against persistence",
        synonyms=("skill against the last value",),
        meaning=(
            "Share by which the pinball loss is lower than that of the last known value with the "
            "quantiles of past changes. Intervals use the interval score."
        ),
        formula="1 − S / S of y[t − h] + quantiles of y[u] − y[u − h] for u ≤ t − h",
        forms=(estimated("skill_persistence"),),
        beware=f"It needs a lead. {_PAST}",
    ),
    _entry(
        name="seasonal_skill",
        title="Skill against the seasonal naive forecast",
        synonyms=("skill against seasonal naive",),
        meaning=(
            "Share by which the pinball loss is lower than that of the last known value of the "
            "same season with the quantiles of past changes. Intervals use the interval score."
        ),
        formula="as persistence_skill, with lag s ⌈h/s⌉ for a season of s steps",
        forms=(estimated("skill_seasonal"),),
        beware=f"It needs a lead and a season. {_PAST}",
    ),
    _entry(
        name="baseline_skill",
        title="Skill against a baseline",
        synonyms=("skill against a model", "relative skill of two models"),
        meaning=(
            "Share by which the pinball loss is lower than that of a named model. Intervals use "
            "the interval score."
        ),
        formula="1 − S / S of the model",
        forms=(estimated("skill_model"),),
        beware="A weak baseline makes any forecast look skilful.",
    ),
)

TOPIC = Topic(
    entries=_ENTRIES,
    arrays=tuple(
        Array(f"skill_{kind}", partial(_against, kind=kind), undrawn=_OF_THIS_Y)
        for kind in MEASURE_OF
    ),
    label="Skill",
)
