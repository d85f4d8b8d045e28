"""Rows that depend become units: times that follow each other, and batches of them to resample."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from scipy import special

from howsure.core.arrays import FloatArray, IntArray, row_blocks
from howsure.core.errors import UnanswerableError, attempt
from howsure.core.formats import fixed, number, roughly
from howsure.core.labels import Categories, joint
from howsure.core.times import Chronology, less_means, slots
from howsure.engine.autocorrelation import (
    LEVEL,
    Dependence,
    batches_for,
    batches_of,
    file_dependence,
    in_time_order,
    is_sorted,
    mid_ranks,
    serial_dependence,
    stretches,
)
from howsure.engine.finding import Case, Draft, Finding, FindingQuestion, Words
from howsure.engine.view import View
from howsure.inputs.roles import name_roles
from howsure.predictions import EvalSet, Intervals
from howsure.predictions.evalset import series_of, unnamed
from howsure.stats.changes import find_changes
from howsure.stats.ecdf import legendre
from howsure.stats.estimate import spells_of, spread_of
from howsure.stats.memory import MIN_EFFECTIVE_OF_ANY
from howsure.verdict.copies import copies, predicted_numbers

Known = Dependence | str
"""How the rows of a model go together, or the reason why that is not known."""
# What the strictest of some ten tests under Holm's steps must reach at 5 %: without it a group
# that differs by chance would take away memory.
CLEAR = 0.005
"""P-value below which groups that differ, or a step, are taken for no memory."""
# Groups of one grouping that may be so: very many would take any memory away. Hours of a day may
# be groups.
MOST_LEVELS = 24
"""Groups of one grouping that may be so: very many would take any memory away."""


def follow(evalsets: Sequence[EvalSet], order: IntArray) -> tuple[list[EvalSet], tuple[Known, ...]]:
    """The sets in the order of their content; copies of a row are a cluster, and rows that depend
    in time know when they happened.
    """
    sets = [rows.take(order) for rows in evalsets]
    alone = sets[0].cluster is None and sets[0].share == 1.0  # a sample has not all copies
    repeated = copies(sets) if alone else None
    if repeated is not None:
        sets = [replace(rows, cluster=repeated.clusters) for rows in sets]
    first = sets[0]
    if first.time is None and first.cluster is None:
        return sets, tuple(_ask(rows, partial(_in_file_order, rows)) for rows in evalsets)
    times = None if first.time is None else Categories.checked(first.time, "time").codes
    series = None if times is None else series_of(first, times)
    if series is not None and first.cluster is not None:
        sets = [replace(rows, cluster=None) for rows in sets]
        first = sets[0]
    later = units = times
    if first.cluster is not None:
        later = None if times is None else in_time_order(times, first.cluster.codes)
        units = first.cluster.codes if later is None else later
    assert units is not None
    grid = slots(np.asarray(first.time)) if first.cluster is None else units
    unknown = first.cluster is None and unnamed(first, units, series)

    def measure(evalset: EvalSet, levels: IntArray | None) -> Known:
        if first.cluster is None:
            follows = partial(_in_time, evalset, grid, levels, series, unknown)
        else:
            follows = partial(_of_clusters, evalset, units, later is not None, levels)
        return _ask(evalset, follows)

    def measure_less_levels(evalset: EvalSet) -> tuple[Known, IntArray | None]:
        known = measure(evalset, None)
        if later is None or isinstance(known, str) or not known.doubted:
            return known, None
        levels = levels_of(evalset, later, series)
        return (known if levels is None else measure(evalset, levels)), levels

    answers, levels = zip(*map(measure_less_levels, sets), strict=True)
    serial = [known for known in answers if isinstance(known, Dependence) and known.doubted]
    if not serial and all(numbers is None for numbers in levels):
        return sets, answers
    few = any(known.few for known in serial)
    sets = [
        replace(rows, chronology=_chronology(rows, grid, series, numbers, few))
        for rows, numbers in zip(sets, levels, strict=True)
    ]
    if not any(known.found for known in serial):
        return sets, answers
    codes = batches_of(units, first.mass, batches_for(max(serial, key=lambda known: known.tau)))
    batches = Categories(codes, np.arange(1, int(codes.max()) + 2))
    count = len(batches.labels)
    return [replace(rows, cluster=batches) for rows in sets], tuple(
        replace(known, batches=count) if isinstance(known, Dependence) else known
        for known in answers
    )


def levels_of(evalset: EvalSet, times: IntArray, series: IntArray | None = None) -> IntArray | None:
    """What errors differ by for a reason that is no memory, as a number of each row.

    Groups whose mean is off by more than the memory within them and the differences of their spells
    allow, and sides of a step in what these leave.
    """
    measured, mass = signals_in_time(View(evalset)).values(), evalset.mass
    levels = [
        grouping.codes
        for grouping in evalset.groups.values()
        if any(_differ(values, evalset, times, grouping, series) for values in measured)
    ]
    cells = joint(np.zeros_like(times), *levels)
    frequent = evalset.weights is None or evalset.weights.kind == "frequency"
    noise = mass if frequent else np.square(mass)
    left = [less_means(values, cells, mass) for values in measured]
    with contextlib.suppress(UnanswerableError):  # too few times
        steps = find_changes(left, times, mass=mass, noise=noise)
        levels += [(times >= step.start) + 0 for step in steps if step and step.p < CLEAR]
    return joint(*levels) if levels else None


def _differ(
    values: FloatArray,
    evalset: EvalSet,
    times: IntArray,
    grouping: Categories,
    series: IntArray | None,
) -> bool:
    """Whether a signal of mean 0 has another mean in one of the groups."""
    codes, size, mass = grouping.codes, len(grouping.labels), evalset.mass
    if not 1 < size <= MOST_LEVELS:
        return False
    total = np.maximum(np.bincount(codes, mass, size), np.finfo(float).tiny)
    means = np.bincount(codes, mass * values, size) / total
    follow = Chronology(times, series=series)
    spread = spread_of(values - means[codes], evalset.weights, follow, codes, size)
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.abs(means - np.average(values, weights=mass)) / spread.error
    p = 2.0 * special.stdtr(np.maximum(spread.degrees, 1.0), -t)
    spells = spells_of(values, mass, times, codes, size)
    clear = (p * size < CLEAR) & ~(spells.p > LEVEL)
    return bool(clear.any())


def _chronology(
    evalset: EvalSet,
    units: IntArray,
    series: IntArray | None,
    levels: IntArray | None,
    few: bool,
) -> Chronology:
    """The times of its rows, and what signals hits and misses hide."""
    measured = signals_in_time(View(evalset))
    return Chronology(units, measured.get("side"), measured.get("size"), None, levels, few, series)


def batches_in_words(known: Sequence[Known]) -> str:
    """What the batches are, for people; empty where there are none."""
    count = next((each.batches for each in known if isinstance(each, Dependence)), 0)
    if count == 1:
        return "one: the effective sample size is too small for batches of time"
    return f"{count} batches of consecutive rows in time" if count else ""


def signals(view: View) -> dict[str, FloatArray]:
    """What of each row is correlated with other rows: the side of its error, and the size."""
    with contextlib.suppress(UnanswerableError, ValueError):  # no PIT, or one order alone
        placed = view.get("placed")
        side, size = placed.polynomials(placed.place(0.0, 1.0))[:2]
        return {"side": side, "size": size}
    evalset, coverage = view.evalset, view.headline
    with contextlib.suppress(UnanswerableError):
        return {"side": view.get("class_residual")}
    try:
        missed = 1.0 - view.get("covered", coverage)
    except UnanswerableError:
        off = evalset.y - view.get("point")
        return dict(zip(("side", "size"), legendre(mid_ranks(off))[:2], strict=True))
    try:
        missed = missed - (1.0 - view.get("claim", coverage))
        lower, upper = view.get("ends", coverage)
    except UnanswerableError:
        return {"size": missed}
    return {"side": (evalset.y > upper).astype(np.float64) - (evalset.y < lower), "size": missed}


def signals_in_time(view: View) -> dict[str, FloatArray]:
    """The same where order is known: of bare intervals, how far y lies from their middle.

    Hits hardly vary, and hide their memory.
    """
    evalset = view.evalset
    if all(isinstance(prediction, Intervals) for prediction in evalset.predictions):
        with contextlib.suppress(UnanswerableError):
            lower, upper = view.get("ends", view.headline)
            half = (upper - lower) / 2.0
            if np.isfinite(half).all() and (half > 0).all():
                off = (evalset.y - (lower + upper) / 2.0) / half
                folded = (1.0 + mid_ranks(np.abs(off))) / 2.0
                return {"side": legendre(mid_ranks(off))[0], "size": legendre(folded)[1]}
    return signals(view)


def _ask(evalset: EvalSet, measure: Callable[[], Known]) -> Known:
    return attempt(f"dependence of the rows of {evalset.model}", measure, str)


def _in_time(
    evalset: EvalSet,
    units: IntArray,
    levels: IntArray | None,
    series: IntArray | None,
    unknown: bool,
) -> Dependence:
    """From one time to the next."""
    measured = _less_levels(evalset, levels)
    found = serial_dependence(measured, units, "time", weights=evalset.weights, series=series)
    return replace(found, series="unknown") if unknown else found


def _less_levels(evalset: EvalSet, levels: IntArray | None) -> dict[str, FloatArray]:
    """Signals in time, less their means in each level."""
    measured = signals_in_time(View(evalset))
    if levels is None:
        return measured
    return {name: less_means(values, levels, evalset.mass) for name, values in measured.items()}


def _of_clusters(
    evalset: EvalSet, units: IntArray, ranked: bool, levels: IntArray | None
) -> Dependence:
    """Within clusters; and from one to the next, where they follow each other in time."""
    if ranked:
        measured, mass = _less_levels(evalset, levels), evalset.mass
        sums = {
            name: np.bincount(
                units, weights=mass * (values - np.average(values, weights=mass))
            ).astype(np.float64)
            for name, values in measured.items()
        }
        with contextlib.suppress(UnanswerableError):  # too few clusters
            if serial_dependence(sums, np.arange(int(units.max()) + 1), "time").found:
                return serial_dependence(measured, units, "time", weights=evalset.weights)
    return serial_dependence(signals(View(evalset)), units, "clusters", weights=evalset.weights)


def _in_file_order(evalset: EvalSet) -> Known:
    """Strong dependence of neighbours in a file that no column has evidently sorted."""
    rows = stretches(evalset.n)
    columns = _columns(evalset, rows.size)
    if rows.shape[1] > 2 and not any(is_sorted(table[rows]) for table in columns):
        sample = evalset if rows.size == evalset.n else evalset.take(rows.ravel())
        found = file_dependence(signals(View(sample)), rows.shape)
        if found is not None:
            return found
    return "neither times nor clusters were given"


def _columns(evalset: EvalSet, rows: int) -> Iterator[FloatArray]:
    """What is told of rows, some columns at a time, shape (n, columns)."""
    for numbers in (evalset.y, *predicted_numbers(evalset)):
        table = numbers.reshape(evalset.n, -1)
        yield from (table[:, columns] for columns in row_blocks(table.shape[1], rows))


# ---- as a finding --------------------------------------------------------------------------------

# Standard errors that are off by 12 % at most, √1.25.
_MARGIN = 0.25


def _draft_dependence(case: Case) -> Draft:
    known = case.dependence
    if isinstance(known, str):
        raise UnanswerableError(known or "it was not requested")
    return Draft(
        effect=known.effect,
        lower=known.lower,
        upper=known.upper,
        p=known.p,
        n=known.n,
        good=not known.found and known.upper <= _MARGIN,
        caution=known.found,
        facts={"found": known, "share": case.evalset.share},
    )


def _describe_dependence(draft: Draft, finding: Finding) -> Words:
    known: Dependence = draft.facts["found"]
    later = f" at lag {known.lag}" if known.lag > 1 else ""
    r = fixed(known.correlation, 2)
    if finding.state == "caution":  # what is correlated has no r of 0.00
        r = number(known.correlation, 2) if abs(known.correlation) < 0.005 else r
    seen = f"(r = {r}{later})"
    errors = "Error sizes" if known.signal == "size" else "Errors"
    if known.by == "file":
        more = f"If rows are in time order, name the time column with {name_roles(time=...)}."
        return Words(f"{errors} of neighbouring rows in the file are correlated {seen}", more=more)
    how = "correlated in time" if known.by == "time" else "correlated within clusters"
    verb = {"caution": "are", "good": "are not"}.get(finding.state, "may be")
    sentence = f"{errors} {verb} {how} {seen}"
    if finding.state == "good":
        return Words(sentence)
    why = _of_few(known) or _of_series(known)
    if finding.state != "caution":
        return Words(sentence, more=why or "There are too few rows to decide.")
    effective = roughly(known.effective)
    if known.by == "time" and draft.facts.get("share", 1.0) < 1.0:
        sentence = f"{sentence[:-1]}, from a sample of short periods)"
    elif known.common > 0.5:
        sentence = (
            f"Series share shocks {seen}: effective sample size about {effective} of {known.n:,.0f}"
        )
    else:
        sentence += f": effective sample size about {effective} of {known.n:,.0f}"
    return Words(sentence, more=why)


def _of_few(known: Dependence) -> str:
    """Why nothing is tested; empty where rows are enough."""
    if not known.few:
        return ""
    if known.effective < MIN_EFFECTIVE_OF_ANY:
        return "These are too few for any test."
    if known.series != "unknown":
        return f"{known.times} times are too few for any test."
    return (
        f"There are several rows per time: name their series with "
        f"{name_roles(series=...)}; without it "
        f"{known.times} times are too few."
    )


def _of_series(known: Dependence) -> str:
    if known.series != "unknown":
        return ""
    return (
        "There are several rows per time: if these are series, name their column with "
        f"{name_roles(series=...)}."
    )


DEPENDENCE = FindingQuestion(
    id="dependence",
    kind="setting",
    asked="Are rows independent?",
    label="Independence",
    unit="ratio − 1",
    draft=_draft_dependence,
    words=_describe_dependence,
    tolerance=0.1,
    margin=_MARGIN,
)
