"""Rows that depend become units: times that follow each other, and batches of them to resample."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from howsure.predictions import EvalSet, Intervals
from howsure.predictions.evalset import series_of, unnamed
from howsure.stats.changes import find_changes
from howsure.stats.ecdf import legendre
from howsure.stats.estimate import spells_of, spread_of
from howsure.stats.memory import HARDLY
from howsure.verdict.copies import copies, predicted_numbers

Known = Dependence | str
"""How the rows of a model go together, or the reason why that is not known."""
CLEAR = 0.005
"""P-value below which groups that differ, or a step, are taken for no memory."""
MOST_LEVELS = 24
"""Groups of one grouping that may be so: very many would take any memory away."""


def follow(evalsets: Sequence[EvalSet], order: IntArray) -> tuple[list[EvalSet], tuple[Known, ...]]:
    """The sets in the order of their content; copies of a row are a cluster, and rows that depend
    in time know when they happened.
    """
    sets = [held.take(order) for held in evalsets]
    alone = sets[0].cluster is None and sets[0].share == 1.0  # a sample has not all copies
    found = copies(sets) if alone else None
    if found is not None:
        sets = [replace(held, cluster=found.clusters) for held in sets]
    first = sets[0]
    if first.time is None and first.cluster is None:
        return sets, tuple(_known(held, partial(_in_file_order, held)) for held in evalsets)
    times = None if first.time is None else Categories.checked(first.time, "time").codes
    series = None if times is None else series_of(first, times)
    if series is not None and first.cluster is not None:
        sets = [replace(held, cluster=None) for held in sets]
        first = sets[0]
    later = units = times
    if first.cluster is not None:
        later = None if times is None else in_time_order(times, first.cluster.codes)
        units = first.cluster.codes if later is None else later
    assert units is not None
    grid = slots(np.asarray(first.time)) if first.cluster is None else units
    unknown = first.cluster is None and unnamed(first, units, series)

    def ask(evalset: EvalSet, levels: IntArray | None = None) -> Known:
        if first.cluster is None:
            follows = partial(_in_time, evalset, grid, levels, series, unknown)
        else:
            follows = partial(_of_clusters, evalset, units, later is not None, levels)
        return _known(evalset, follows)

    known = [ask(held) for held in sets]
    levels: list[IntArray | None] = [None] * len(sets)
    for place, (held, each) in enumerate(zip(sets, known, strict=True)):
        if later is not None and isinstance(each, Dependence) and each.doubted:
            levels[place] = levels_of(held, later, series)
            if levels[place] is not None:
                known[place] = ask(held, levels[place])
    serial = [each for each in known if isinstance(each, Dependence) and each.doubted]
    if not serial and all(each is None for each in levels):
        return sets, tuple(known)
    few = any(each.few for each in serial)
    sets = [
        replace(held, chronology=_chronology(held, grid, series, level, few))
        for held, level in zip(sets, levels, strict=True)
    ]
    if not any(each.found for each in serial):
        return sets, tuple(known)
    longest = max(serial, key=lambda each: each.tau)
    wanted = batches_for(longest)
    codes = batches_of(units, _mass(first), wanted)
    batches = Categories(codes, np.arange(1, int(codes.max()) + 2))
    told = (
        replace(each, batches=len(batches.labels)) if isinstance(each, Dependence) else each
        for each in known
    )
    return [replace(held, cluster=batches) for held in sets], tuple(told)


def levels_of(evalset: EvalSet, times: IntArray, series: IntArray | None = None) -> IntArray | None:
    """What errors differ by for a reason that is no memory, as a number of each row.

    Groups whose mean is off by more than the memory within them and the differences of their spells
    allow, and sides of a step in what these leave.
    """
    told, mass = signals_in_time(View(evalset)), _mass(evalset)
    found = [
        grouping.codes
        for grouping in evalset.groups.values()
        if any(_differ(values, evalset, times, grouping, series) for values in told.values())
    ]
    cells = joint(np.zeros_like(times), *found)
    noise = (
        np.square(mass)
        if evalset.weights is not None and evalset.weights.kind != "frequency"
        else mass
    )
    rest = [less_means(values, cells, mass) for values in told.values()]
    with contextlib.suppress(UnanswerableError):  # too few times
        steps = find_changes(rest, times, mass=mass, noise=noise)
        found += [(times >= step.start) + 0 for step in steps if step and step.p < CLEAR]
    return joint(*found) if found else None


def _differ(
    values: FloatArray,
    evalset: EvalSet,
    times: IntArray,
    grouping: Categories,
    series: IntArray | None,
) -> bool:
    """Whether a signal of mean 0 has another mean in one of the groups."""
    codes, size, mass = grouping.codes, len(grouping.labels), _mass(evalset)
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
    known = signals_in_time(View(evalset))
    return Chronology(units, known.get("side"), known.get("size"), None, levels, few, series)


def batches_in_words(known: Sequence[Known]) -> str:
    """What the batches are, for people; empty where there are none."""
    count = next((each.batches for each in known if isinstance(each, Dependence)), 0)
    if count == 1:
        return "one: too few effective rows for batches of time"
    return f"{count} batches of consecutive rows in time" if count else ""


def signals(view: View) -> dict[str, FloatArray]:
    """What of each row is correlated with other rows: the side of its error, and the size."""
    try:
        found = view.get("placed")
        side, size = found.polynomials(found.place(0.0, 1.0))[:2]
    except (UnanswerableError, ValueError):  # no PIT, or one order alone
        pass
    else:
        return {"side": side, "size": size}
    evalset, coverage = view.evalset, view.headline
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
    known, evalset = signals(view), view.evalset
    if any(not isinstance(belief, Intervals) for belief in evalset.beliefs):
        return known
    try:
        lower, upper = view.get("ends", view.headline)
    except UnanswerableError:
        return known
    half = (upper - lower) / 2.0
    if not (np.isfinite(half).all() and (half > 0).all()):
        return known
    off = (evalset.y - (lower + upper) / 2.0) / half
    folded = (1.0 + mid_ranks(np.abs(off))) / 2.0
    return {"side": legendre(mid_ranks(off))[0], "size": legendre(folded)[1]}


def _known(evalset: EvalSet, ask: Callable[[], Known]) -> Known:
    return attempt(f"dependence of the rows of {evalset.model}", ask, str)


def _mass(evalset: EvalSet) -> FloatArray:
    return np.ones(evalset.n) if evalset.weights is None else evalset.weights.values


def _in_time(
    evalset: EvalSet,
    units: IntArray,
    levels: IntArray | None,
    series: IntArray | None,
    unknown: bool,
) -> Dependence:
    """From one time to the next."""
    told = _less_levels(signals_in_time(View(evalset)), evalset, levels)
    found = serial_dependence(told, units, "time", weights=evalset.weights, series=series)
    return replace(found, series="unknown") if unknown else found


def _less_levels(
    told: Mapping[str, FloatArray], evalset: EvalSet, levels: IntArray | None
) -> Mapping[str, FloatArray]:
    if levels is None:
        return told
    return {name: less_means(values, levels, _mass(evalset)) for name, values in told.items()}


def _of_clusters(
    evalset: EvalSet, units: IntArray, ranked: bool, levels: IntArray | None
) -> Dependence:
    """Within clusters; and from one to the next, where they follow each other in time."""
    if ranked:
        told = _less_levels(signals_in_time(View(evalset)), evalset, levels)
        mass = _mass(evalset)
        sums = {
            name: np.bincount(
                units, weights=mass * (values - np.average(values, weights=mass))
            ).astype(np.float64)
            for name, values in told.items()
        }
        try:
            follows = serial_dependence(sums, np.arange(int(units.max()) + 1), "time").found
        except UnanswerableError:  # too few clusters
            follows = False
        if follows:
            return serial_dependence(told, units, "time", weights=evalset.weights)
    return serial_dependence(signals(View(evalset)), units, "clusters", weights=evalset.weights)


def _in_file_order(evalset: EvalSet) -> Known:
    """Strong dependence of neighbours in a file that no column has evidently sorted."""
    rows = stretches(evalset.n)
    if rows.shape[1] > 2 and not any(
        is_sorted(part[rows]) for part in _columns(evalset, rows.size)
    ):
        looked = evalset if rows.size == evalset.n else evalset.take(rows.ravel())
        found = file_dependence(signals(View(looked)), rows.shape)
        if found is not None:
            return found
    return "neither times nor clusters were given"


def _columns(evalset: EvalSet, rows: int) -> Iterator[FloatArray]:
    """What is told of rows, some columns at a time, shape (n, columns)."""
    for numbers in (evalset.y, *predicted_numbers(evalset)):
        table = numbers.reshape(evalset.n, -1)
        yield from (table[:, columns] for columns in row_blocks(table.shape[1], rows))


# ---- as a finding --------------------------------------------------------------------------------

_MARGIN = 0.25


def _draft(case: Case) -> Draft:
    known = case.dependence
    if isinstance(known, str):
        raise UnanswerableError(known or "it was not asked for")
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


def _words(draft: Draft, finding: Finding) -> Words:
    known: Dependence = draft.facts["found"]
    size = known.signal == "size"
    later = f" at lag {known.lag}" if known.lag > 1 else ""
    r = fixed(known.correlation, 2)
    if finding.state == "caution":  # what is correlated has no r of 0.00
        r = number(known.correlation, 2) if abs(known.correlation) < 0.005 else r
    seen = f"(r = {r}{later})"
    if known.by == "file":
        told = (
            f"{'Sizes of e' if size else 'E'}rrors of neighbouring rows in the file are correlated"
        )
        more = "If rows stand in the order of time, name that column with --time."
        return Words(f"{told} {seen}", more=more)
    how = "correlated in time" if known.by == "time" else "correlated within clusters"
    verb = {"caution": "are", "good": "are not"}.get(finding.state, "may be")
    told = f"{'Sizes of errors' if size else 'Errors'} {verb} {how} {seen}"
    effective = roughly(known.effective)
    if finding.state == "caution":
        if known.by == "time" and draft.facts.get("share", 1.0) < 1.0:
            told = f"{told[:-1]}, of a sample of short stretches of time)"
        elif known.common > 0.5:
            told = f"Series share shocks {seen}: effective sample size about {effective} of "
            told += f"{known.n:,.0f}"
        else:
            told += f": {known.n:,.0f} rows count as about {effective}"
        return Words(told, more=_of_few(known) or _of_series(known))
    more = _of_few(known) or _of_series(known) or "Rows are too few to tell."
    return Words(told, more="" if finding.state == "good" else more)


def _of_few(known: Dependence) -> str:
    """Why nothing is tested; empty where rows are enough."""
    if not known.few:
        return ""
    if known.effective < HARDLY:
        return "These are too few for any test."
    if known.series != "unknown":
        return f"{known.times} times are too few for any test."
    return (
        "Several rows per time: name the column of series (--series COLUMN); "
        f"without it {known.times} times are too few."
    )


def _of_series(known: Dependence) -> str:
    if known.series != "unknown":
        return ""
    return "Several rows per time: if these are series, name their column (--series COLUMN)."


DEPENDENCE = FindingQuestion(
    id="dependence",
    kind="setting",
    asked="Are rows independent?",
    label="Independence",
    unit="ratio − 1",
    draft=_draft,
    words=_words,
    tolerance=0.1,
    margin=_MARGIN,
)
