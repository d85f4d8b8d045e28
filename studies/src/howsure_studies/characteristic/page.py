"""The page of the study: what bands of varying width gain over a constant band."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from howsure.core import formats
from howsure.core.errors import InputError
from howsure.core.formats import counted, fixed, listed
from howsure.core.records import Record
from howsure.engine.metric import in_words
from howsure.report.document import (
    Cell,
    Document,
    GlossaryEntry,
    Grid,
    Section,
    Tone,
    VerdictLine,
    glossary,
)
from howsure.report.grids import number_cell, sort_key
from howsure_studies.characteristic.figures import bands_figure, curves_figure, gains_figure
from howsure_studies.characteristic.measures import AXES
from howsure_studies.characteristic.results import MethodResult, PairTest, compare
from howsure_studies.engine import (
    OwnNumber,
    Shown,
    beside_section,
    choice_of,
    estimate_cell,
    named,
    number_grid,
    overview,
    pivot,
    published,
    record_cell,
    study_document,
)

Results = Mapping[str, Sequence[MethodResult]]
_SIGNIFICANT: Final = 0.05
_MOST: Final = 4  # sentences on single methods, or pairs, of a world
_NOTHING: Final = 0.05  # percent
_STATES: Final[Mapping[Tone, str]] = {
    "good": "Less bandwidth",
    "bad": "More",
    "undecided": "Inconclusive",
}
_LEFT: Final = "characteristic_left_gain"
"""The gain that sentences and marks speak of."""
_WHOLE: Final = ("characteristic_gain", "crossing")
_PARTIAL: Final = ("characteristic_partial_gain", _LEFT)
"""What the paper has of a problem, and of its low miss rates."""
_PUBLISHED: Final = {
    "characteristic_gain": "gain over all miss rates, %",
    "characteristic_partial_gain": "gain by the area under the curve, %",
    _LEFT: "gain by the area left of the curve, %",
    "crossing": "crossing",
    "pattern": "share of data sets with the pattern",
}
_CROSSING: Final = GlossaryEntry(
    name="crossing",
    title="Crossing",
    meaning="Miss rate at which the bandwidth saved, summed from 0 upwards, is largest.",
    direction="higher is better",
    notion="local",
)


def characteristic_report(
    results: Results,
    *,
    facts: Mapping[str, str] | None = None,
    command: str = "",
) -> Document:
    """The report on bands of methods beside a constant band.

    Parameters
    ----------
    results : mapping of str to sequence of MethodResult
        By world: every method under every seed.
    facts : mapping of str to str, optional
        What else is known.
    command : str
        What makes the report again.

    Returns
    -------
    Document

    Raises
    ------
    InputError
        If there is no result.
    """
    if not results or not all(results.values()):
        raise InputError("results must contain at least one method for each world, got none")
    every = [result for of_world in results.values() for result in of_world]
    methods = _by_method(every)
    on = f"{counted(len(methods), 'method')} on {named(list(results), 'world')}"
    low = " or ".join(dict.fromkeys(in_words(result.options.miss_range) for result in every))
    stated = {"Worlds": ", ".join(results), "Methods": ", ".join(methods), "Low miss rates": low}
    gains = _gains(results)
    records = tuple(
        replace(record, model=r.method, group=f"world={r.world}, seed={r.seed}")
        for r in every
        for record in r.records
    )
    return study_document(
        title=f"Where do adaptive widths beat a constant width? {on}",
        headline=_headline(gains, low),
        opening=_opening(gains, low, every[0].options.confidence),
        sections=[_section(name, of_world) for name, of_world in results.items()],
        beside=beside_section(
            _own_numbers(results),
            published("characteristic"),
            _PUBLISHED,
            "other data and models",
            error=(
                "the bootstrap error over test rows, or of several data sets or trainings (their "
                "median stands here) the standard deviation"
            ),
        ),
        records=records,
        curves=tuple(
            replace(picture.curves[0], model=result.method, group=f"world={result.world}")
            for of_world in results.values()
            for result in _first(of_world)
            if (picture := result.picture()) is not None
        ),
        glossary=(*glossary(records), _CROSSING),
        facts={**stated, **(facts or {})},
        command=command,
    )


def _own_numbers(results: Results) -> Iterator[OwnNumber]:
    """What the paper prints too, under its names: of several data sets the medians."""
    worlds = {world: own for world, own in results.items() if own[0].problem}
    for world, of_world in worlds.items():
        problem, (low, high) = of_world[0].problem, of_world[0].options.miss_range
        partly = f"{problem}, miss rates {low:g} to {high:g}"
        method = published("characteristic", task=problem)[0].method
        for name, own in _by_method(of_world).items():
            share = sum(result.shows_pattern for result in own) / len(own)
            numbers = [(problem, Record(metric="pattern", value=share))]
            numbers += [(problem, _summary(own, metric)) for metric in _WHOLE]
            numbers += [(partly, _summary(own, metric)) for metric in _PARTIAL]
            model = name if len(worlds) == 1 else f"{name}, {world}"
            for task, record in numbers:
                yield OwnNumber(task=task, method=method, record=replace(record, model=model))


def _gains(results: Results) -> dict[str, dict[str, Record]]:
    """By world and method: the gain at low miss rates, where it is known."""
    gains = {}
    for world, of_world in results.items():
        every = [_summary(own, _LEFT) for own in _by_method(of_world).values()]
        gains[world] = {gain.model: gain for gain in every if math.isfinite(gain.value)}
    return gains


def _headline(gains: Mapping[str, Mapping[str, Record]], low: str) -> VerdictLine:
    """How many need less bandwidth than a constant band, and which."""
    states: dict[Tone, dict[str, list[str]]] = {"good": {}, "bad": {}, "undecided": {}}
    for world, of_world in gains.items():
        for method, gain in of_world.items():
            states[_tone(gain)].setdefault(world, []).append(method)
    counts = {tone: sum(map(len, of_tone.values())) for tone, of_tone in states.items()}
    count = f"{counts['good'] or 'none'} of {sum(counts.values())}"
    at = "low miss rates" if " or " in low else f"miss rates {low}"
    than = f"significantly less bandwidth than a constant band at {at}"
    good, bad = states["good"], states["bad"]
    if len(gains) > 1:
        text = f"In {count} tests on {named(list(gains), 'world')}, bands need {than}."
        where = [f"{world} ({listed(methods, 2)})" for world, methods in good.items()]
        text += f" These are on {listed(where, 3)}." if good else ""
        text += f" In {counts['bad']} they need more." if bad else ""
    else:
        (world,) = gains
        text = f"Bands of {count} methods on {world} need {than}"
        text += f": {listed(good[world], 3)}." if good else "."
        text += f" Those of {listed(bad[world], 3)} need more." if bad else ""
    tone: Tone = "caution" if good and bad else "good" if good else "bad" if bad else "undecided"
    return VerdictLine(text=text, tone=tone)


def _opening(gains: Mapping[str, Mapping[str, Record]], low: str, confidence: float) -> Section:
    """The state and the gain of every method in every world."""
    rows: dict[str, dict[str, Cell]] = {}
    for world, of_world in gains.items():
        for method, gain in of_world.items():
            text, key = _percent(gain.value), sort_key(gain.value)
            rows.setdefault(method, {})[world] = Cell(text=text, key=key, tone=_tone(gain))
    note = (
        "How much less bandwidth than a constant band is needed, on average over miss rates "
        f"{low}. Marks use {formats.level(confidence)} bootstrap intervals over test rows; for "
        "several data sets, their 5 % to 95 % range."
    )
    grid = overview("Gain at low miss rates", rows, _STATES, note)
    known = {world: of_world for world, of_world in gains.items() if of_world}
    figure = gains_figure(known) if known else None
    return Section(title="", grids=(grid,), choices=choice_of("", [("", figure)]))


# Numbers of a method: of one data set, or over several


def _summary(own: Sequence[MethodResult], metric: str, coverage: float = math.nan) -> Record:
    """The record of one data set; of several the median, their spread, and 5 % to 95 %."""
    records = [result.record(metric, coverage) for result in own]
    first = replace(records[0], model=own[0].method)
    if len(records) == 1:
        return first
    values = [record.value for record in records if math.isfinite(record.value)]
    if not values:
        return replace(first, value=math.nan)
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95]).tolist()
    error = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
    return replace(first, value=middle, lower=low, upper=high, standard_error=error, reason="")


def _summaries(results: Sequence[MethodResult]) -> list[Record]:
    """Every number of every method, once."""
    keys = dict.fromkeys((record.metric, record.coverage) for record in results[0].records)
    return [_summary(own, *key) for own in _by_method(results).values() for key in keys]


def _tone(gain: Record) -> Tone:
    """Whether a gain is above or below 0 beyond chance."""
    return "good" if gain.lower > 0 else "bad" if gain.upper < 0 else "undecided"


def _percent(value: float) -> str:
    return f"{fixed(value, 1)} %"


def _range(low: float, high: float) -> str:
    return f"{fixed(low, 1)} to {fixed(high, 1)} %"


# One world


def _section(name: str, results: Sequence[MethodResult]) -> Section:
    first = _first(results)
    seeds = len({result.seed for result in results})
    pairs = compare(results)
    repeats = _repeats(first[0])
    facts = {"Test rows": f"{first[0].records[0].n:,.0f}", repeats.capitalize(): str(seeds)}
    if (clusters := _clusters(first[0])) > 0:
        facts["Clusters"] = f"{clusters:,}"
    fits = {f"Fit of {r.method}": r.notes for r in first if r.notes}
    drawn = [result for result in first if result.picture() is not None]
    bands = [(result.method, bands_figure(result)) for result in drawn]
    bands += [
        (f"constant band of {result.method}", bands_figure(result, constant=True))
        for result in drawn[:1]
    ]
    return Section(
        title=str(name),
        facts={**facts, **fits},
        lines=_lines(results, seeds, pairs),
        choices=(
            *choice_of("", [("", curves_figure(drawn) if drawn else None)]),
            *choice_of("Method", bands),
        ),
        grids=(*_grids(results, seeds), *_tests(pairs, repeats if seeds > 1 else "")),
    )


def _repeats(result: MethodResult) -> str:
    """What seeds draw anew: data sets of a world, or trainings on hours that stay the same."""
    return "trainings" if result.problem == "traffic" else "data sets"


def _clusters(result: MethodResult) -> int:
    picture = result.picture()
    return picture.clusters if picture else 0


def _lines(
    results: Sequence[MethodResult], seeds: int, pairs: Sequence[PairTest]
) -> tuple[VerdictLine, ...]:
    """What methods need at low miss rates, which of them differ, what they gain over all."""
    first, last = list[VerdictLine](), list[VerdictLine]()
    repeats = _repeats(results[0])
    by_method = _by_method(results)
    gains = {method: _summary(own, _LEFT) for method, own in by_method.items()}
    low = in_words(results[0].options.miss_range)
    for method in sorted(gains, key=lambda name: -np.nan_to_num(gains[name].value, nan=-np.inf)):
        gain = gains[method]
        if len(first) == _MOST:
            text = f"The table shows {counted(len(gains) - _MOST, 'method')} more."
            last.append(VerdictLine(text=text, question="Other methods"))
            break
        if math.isnan(gain.value):
            first.append(VerdictLine(text=f"No gain is known: {gain.reason}.", question=method))
            continue
        ends = _range(gain.lower, gain.upper)
        if seeds > 1:
            text = (
                f"At miss rates {low}, the median gain over {seeds} {repeats} is "
                f"{_percent(gain.value)} (5 % to 95 %: {ends})."
            )
        else:
            more = "less" if gain.value >= 0 else "more"
            size = f"{_percent(abs(gain.value))} {more} bandwidth than a constant band"
            if abs(gain.value) < _NOTHING:
                size = "as much bandwidth as a constant band"
            level = formats.level(gain.confidence)
            text = f"At miss rates {low}, bands need {size} ({level} interval of the gain: {ends})."
        first.append(VerdictLine(text=text, tone=_tone(gain), question=method))
        whole = _summary(by_method[method], "characteristic_gain")
        last.append(VerdictLine(text=_gain_in_words(whole, seeds), question=f"{method}, over all"))
    return (
        *first,
        *_pair_lines(pairs, repeats if seeds > 1 else ""),
        *last,
        *_pattern_line(results),
    )


def _gain_in_words(gain: Record, seeds: int) -> str:
    """The gain over all miss rates, beside that of a well-specified model."""
    value = _percent(gain.value)
    if seeds > 1:
        ends = _range(gain.lower, gain.upper)
        return f"Over all miss rates the median gain is {value} (5 % to 95 %: {ends})."
    text = f"Over all miss rates the gain is {value}"
    if math.isnan(gain.null_lower):
        return f"{text}."
    ends = _range(gain.null_lower, gain.null_upper)
    return f"{text}; a correctly specified model with these widths has {ends} (90 % range)."


def _pair_lines(pairs: Sequence[PairTest], repeats: str) -> tuple[VerdictLine, ...]:
    """Pairs whose areas differ significantly, or that none do; over repeats, if there are any."""
    if not pairs:
        return ()
    test = f"Wilcoxon over {repeats}" if repeats else "paired permutation test"
    apart = [pair for pair in pairs if pair.adjusted < _SIGNIFICANT]
    if not apart:
        text = f"No two methods differ significantly in AUUCC ({test}, Holm)."
        return (VerdictLine(text=text, tone="undecided", question="Methods compared"),)
    beaten = {pair.second for pair in apart}
    best = [name for name in dict.fromkeys(p.first for p in apart) if name not in beaten]
    text = (
        f"{len(apart)} of {counted(len(pairs), 'pair')} of methods "
        f"differ{'s' if len(apart) == 1 else ''} significantly in AUUCC ({test}, Holm)."
    )
    if best:
        text += f" None is significantly better than {listed(best, 3)}."
    return (VerdictLine(text=text, question="Methods compared"),)


def _pattern_line(results: Sequence[MethodResult]) -> tuple[VerdictLine, ...]:
    """In how many data sets each method shows what the paper found."""
    if not results[0].problem:
        return ()
    counts = [
        f"{sum(result.shows_pattern for result in own)} of {len(own)} for {method}"
        for method, own in list(_by_method(results).items())[:_MOST]
    ]
    repeats = _repeats(results[0]).capitalize()
    text = f"{repeats} with the published pattern: {listed(counts, _MOST)}."
    return (VerdictLine(text=text, question="Comparison with the paper"),)


def _grids(results: Sequence[MethodResult], seeds: int) -> tuple[Grid, ...]:
    """Areas and gains, operating points, and the other pairs of axes."""
    records, options = _summaries(results), results[0].options
    low, repeats = in_words(options.miss_range), _repeats(results[0])
    over = f"Medians over {seeds} {repeats}; small: 5 % to 95 %."
    clusters = ", clusters drawn whole" if _clusters(results[0]) else ""
    error = f"Small: the bootstrap standard error over test rows{clusters}."

    def grid(title: str, columns: Mapping[str, Shown], *notes: str) -> Grid | None:
        return pivot(
            records,
            title,
            columns=columns,
            by=_name_and_level,
            parts=lambda record: "",
            show=record_cell if seeds == 1 else _median_cell,
            notes=notes,
        )

    areas: dict[str, Shown] = {
        "AUUCC": "auucc",
        "Gain, %": "characteristic_gain",
        "Correctly specified": ("characteristic_gain", _null),
        f"Gain {low}, under, %": "characteristic_partial_gain",
        "Correctly specified, under": ("characteristic_partial_gain", _null),
        f"Gain {low}, left, %": _LEFT,
        "Correctly specified, left": (_LEFT, _null),
        "Crossing": "crossing",
    }
    points = {
        f"{words} {formats.level(rate)}": f"{name} {formats.level(1.0 - rate)}"
        for rate in options.miss_rates
        for words, name in (
            ("At miss rate", "bandwidth"),
            ("Constant band at", "constant_bandwidth"),
        )
    }
    axes = {
        f"{words}, {x} and {y_axis.replace('_', ' ')}{unit}": f"{name}_{x}_{y_axis}"
        for x, y_axis in AXES[1:]
        for words, unit, name in (("AUUCC", "", "auucc"), ("Gain", ", %", "characteristic_gain"))
    }
    grids = (
        grid(
            "Areas and gains",
            areas,
            over if seeds > 1 else error,
            "Correctly specified: the mean gain of a correctly specified model with the same "
            "widths; small: its 90 % range"
            f"{f' (of the first of the {repeats})' if seeds > 1 else ''}.",
            "The paper uses one name for two partial areas: under the curve, and to its left.",
        ),
        grid(
            "Operating points",
            points,
            "Bandwidth: the mean half-width, in units of y.",
            over if seeds > 1 else "",
        ),
        grid(
            "On other axes",
            axes,
            "Excess: mean distance of y inside from the nearer end. Deficit: mean distance of "
            "y outside. Areas on the deficit are in squared units of y.",
        ),
    )
    return tuple(made for made in grids if made is not None)


def _name_and_level(record: Record) -> str:
    """A measure, with the coverage that it is at."""
    at = record.coverage
    return record.metric if math.isnan(at) else f"{record.metric} {formats.level(at)}"


def _median_cell(record: Record) -> Cell:
    """A median over data sets, with its range."""
    ends = f"{formats.number(record.lower, 3)} to {formats.number(record.upper, 3)}"
    return number_cell(record.value, "" if math.isnan(record.value) else ends)


def _null(record: Record) -> Cell:
    """What a well-specified model would show."""
    if math.isnan(record.null):
        return Cell(text=formats.MISSING)
    ends = f"{fixed(record.null_lower, 1)} to {fixed(record.null_upper, 1)}"
    return Cell(text=fixed(record.null, 1), small=ends, key=sort_key(record.null))


def _tests(pairs: Sequence[PairTest], repeats: str) -> tuple[Grid, ...]:
    """Every pair of methods, the most significant first; over repeats, if there are any."""

    def p_cell(value: float) -> Cell:
        return Cell(text=formats.p_value(value), key=sort_key(value))

    if not pairs:
        return ()
    test = (
        f"p: Wilcoxon's signed-rank test over {repeats}."
        if repeats
        else "p: paired permutation test; bands and critical scales are swapped within rows."
    )
    grid = number_grid(
        "Methods compared",
        (
            *("Difference of AUUCC", "p-value", "Holm"),
            *("Difference of gains at low miss rates, points", "p-value", "Holm"),
        ),
        [
            (
                *(Cell(text=pair.first), Cell(text=pair.second), number_cell(pair.difference)),
                *(p_cell(pair.p), p_cell(pair.adjusted)),
                estimate_cell(pair.gain, pair.gain_error),
                *(p_cell(pair.gain_p), p_cell(pair.gain_adjusted)),
            )
            for pair in sorted(pairs, key=lambda pair: (pair.adjusted, pair.p, pair.difference))
        ],
        (test, "Gains and their p-values use the areas to the left of the curve."),
        words=("Better", "Worse"),
    )
    return (grid,)


def _by_method(results: Sequence[MethodResult]) -> dict[str, list[MethodResult]]:
    """The data sets of each method."""
    by_method: dict[str, list[MethodResult]] = {}
    for result in results:
        by_method.setdefault(result.method, []).append(result)
    return by_method


def _first(results: Sequence[MethodResult]) -> list[MethodResult]:
    """The first data set of each method: what figures show."""
    return [own[0] for own in _by_method(results).values()]
