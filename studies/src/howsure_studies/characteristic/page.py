"""The page of the study: what bands of varying width gain over a constant band."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Final

import numpy as np

from howsure.core import formats
from howsure.core.errors import InputError
from howsure.core.formats import counted, fixed, listed
from howsure.core.records import Record
from howsure.metrics.miss_range import in_words
from howsure.report.document import (
    Cell,
    Column,
    Document,
    GlossaryEntry,
    Grid,
    GridRows,
    Section,
    Tone,
    VerdictLine,
)
from howsure.report.grids import number_cell, sort_key
from howsure_studies.characteristic.figures import bands_figure, curves_figure, gains_figure
from howsure_studies.characteristic.measures import AXES, MethodResult, PairTest, compare
from howsure_studies.engine import choice_of, named, overview, study_document

Results = Mapping[str, Sequence[MethodResult]]
_SIGNIFICANT: Final = 0.05
_MOST: Final = 4  # sentences on single methods, or pairs, of a world
_NOTHING: Final = 0.05  # percent
_STATES: Final[Mapping[Tone, str]] = {
    "good": "Less than a constant band",
    "bad": "More",
    "undecided": "No significant difference",
}
_AXIS: Final = {"miss_rate": "miss rate"}

_PRINTED: Final = {
    "characteristic_gain": "Gain over all miss rates, %",
    "partial": "",
    "crossing": "Crossing",
}
_MODEL: Final = {"gap": "network by HMC", "traffic": "LSTM with a joint model of errors"}
_PATTERN: Final = (
    "The pattern: the curves cross, and the partial gain, under the curve, is positive and above "
    "that over all."
)
_UNTOLD: Final = {
    "gap": "the paper gives neither its function, noise, network, prior nor rows",
    "traffic": "the paper gives neither its horizon, features, split nor training",
}

GLOSSARY: Final = (
    GlossaryEntry(
        name="auucc",
        title="AUUCC",
        meaning="Mean bandwidth needed, averaged over all miss rates.",
        formula="mean z · mean k, with k the scale that captures a row",
        source="Navrátil et al. 2021, section 2.2",
        direction="lower is better",
        notion="local",
        units="y",
    ),
    GlossaryEntry(
        name="characteristic_gain",
        title="Gain",
        meaning="AUUCC against that of a constant band; 0 % is expected of a well-specified model.",
        formula="100 (A_const − A)/A_const",
        source="Navrátil et al. 2021, section 2.2",
        direction="higher is better",
        notion="local",
        units="%",
    ),
    GlossaryEntry(
        name="characteristic_partial_gain",
        title="Partial gain, under the curve",
        meaning="The gain by the area under the curve where the miss rate is low.",
        source="Navrátil et al. 2021, section 2.2; the reading is that of UQ360",
        direction="higher is better",
        notion="local",
        units="%",
    ),
    GlossaryEntry(
        name="characteristic_left_gain",
        title="Partial gain, left of the curve",
        meaning="How much less bandwidth is needed on average over low miss rates.",
        formula="areas ∫ x dy over the low miss rates",
        direction="higher is better",
        notion="local",
        units="%",
    ),
    GlossaryEntry(
        name="crossing",
        title="Crossing",
        meaning="Miss rate up to which the bandwidth saved, summed from 0 upwards, is greatest.",
        direction="higher is better",
        notion="local",
    ),
)


def characteristic_report(
    results: Results,
    *,
    title: str = "",
    facts: Mapping[str, str] | None = None,
    command: str = "",
) -> Document:
    """The report on bands of methods beside a constant band.

    Parameters
    ----------
    results : mapping of str to sequence of MethodResult
        By world: every method under every seed.
    title : str
        What was studied, where the usual title does not serve.
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
        raise InputError("results must hold at least one method for each world, got none")
    every = [result for of_world in results.values() for result in of_world]
    methods = list(dict.fromkeys(result.method for result in every))
    on = f"{counted(len(methods), 'method')} on {named(list(results), 'world')}"
    low = in_words(every[0].options.miss_range)
    stated = {
        "Worlds": ", ".join(results),
        "Methods": ", ".join(methods),
        "Low miss rates": low,
    }
    return study_document(
        title=title or f"Where do varying widths pay? {on}",
        headline=_headline(results, methods),
        opening=_opening(results, low),
        sections=[_section(name, of_world) for name, of_world in results.items()],
        records=tuple(record for result in every for record in _of(result)),
        curves=tuple(
            result.curve().drawn(model=result.method, group=f"world={result.world}")
            for of_world in results.values()
            for result in _first(of_world)
        ),
        glossary=GLOSSARY,
        facts={**stated, **(facts or {})},
        command=command,
    )


def _headline(results: Results, methods: Sequence[str]) -> VerdictLine:
    """How many need less bandwidth than a constant band."""
    low = in_words(next(iter(results.values()))[0].options.miss_range)
    tones = [
        (world, m, _left(_own(of_world, m))) for world, of_world in results.items() for m in methods
    ]
    judged = [(world, m, gain.tone) for world, m, gain in tones if gain is not None]
    good = [m for _, m, tone in judged if tone == "good"]
    bad = [m for _, m, tone in judged if tone == "bad"]
    many = len(results) > 1
    count = f"{len(good) or 'none'} of {len(judged)}"
    what = f"In {count} tests" if many else f"Bands of {count} methods"
    text = (
        f"{what} on {named(list(results), 'world')}{', bands' if many else ''} need significantly "
        f"less bandwidth than a constant band at miss rates {low}"
    )
    text += f": {listed(good, 3)}." if good and not many else "."
    if bad:
        text += f" {f'In {len(bad)} they' if many else f'Those of {listed(bad, 3)}'} need more."
    tone: Tone = "caution" if good and bad else "good" if good else "bad" if bad else "undecided"
    return VerdictLine(text=text, tone=tone)


def _opening(results: Results, low: str) -> Section:
    """The state and the gain of every method in every world."""
    rows: dict[str, dict[str, Cell]] = {}
    drawn: dict[str, dict[str, tuple[float, float, float]]] = {}
    for world, of_world in results.items():
        for method in _methods(of_world):
            gain = _left(_own(of_world, method))
            if gain is not None:
                cell = Cell(text=gain.text, key=sort_key(gain.value), tone=gain.tone)
                rows.setdefault(method, {})[world] = cell
                drawn.setdefault(world, {})[method] = (gain.value, gain.lower, gain.upper)
    note = (
        f"How much less bandwidth than a constant band is needed, on average over miss rates {low}."
    )
    grid = overview("Gain at low miss rates", rows, _STATES, note)
    figure = gains_figure(drawn) if drawn else None
    return Section(title="", grids=(grid,), choices=choice_of("", [("", figure)]))


class _Gain:
    """A gain of a method, over one seed or several: the middle, its range, and what it says."""

    def __init__(self, value: float, lower: float, upper: float, *, seeds: int) -> None:
        self.value, self.lower, self.upper, self.seeds = value, lower, upper, seeds

    @property
    def tone(self) -> Tone:
        """Whether it is above or below 0 beyond chance."""
        return "good" if self.lower > 0 else "bad" if self.upper < 0 else "undecided"

    @property
    def text(self) -> str:
        """The middle, in percent."""
        return f"{fixed(self.value, 1)} %"

    @property
    def range(self) -> str:
        """Its ends, in percent."""
        return f"{fixed(self.lower, 1)} to {fixed(self.upper, 1)} %"


def _gain(results: Sequence[MethodResult], metric: str) -> _Gain | None:
    """The gain with its bootstrap interval; the median and 5 % to 95 % of several data sets."""
    records = [result.record(metric) for result in results]
    values = [record.value for record in records if math.isfinite(record.value)]
    if not values:
        return None
    if len(results) == 1:
        return _Gain(values[0], records[0].lower, records[0].upper, seeds=1)
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95]).tolist()
    return _Gain(middle, low, high, seeds=len(values))


def _left(results: Sequence[MethodResult]) -> _Gain | None:
    return _gain(results, "characteristic_left_gain") if results else None


def _section(name: str, results: Sequence[MethodResult]) -> Section:
    first = _first(results)
    seeds = len({result.seed for result in results})
    pairs = compare(results)
    facts = {"Test rows": f"{len(first[0].y):,}", "Data sets": str(seeds)}
    if first[0].cluster is not None:
        facts["Clusters"] = f"{len(np.unique(first[0].cluster)):,}"
    fits = {f"Fit of {r.method}": r.notes for r in first if r.notes}
    grids = [_gains(results, seeds), _points(results, seeds), _axes(results)]
    if pairs:
        grids.append(_tests(pairs, seeds))
    if (beside := _beside_published(results)) is not None:
        grids.insert(0, beside)
    bands = [
        *((result.method, bands_figure(result)) for result in first),
        (f"constant band of {first[0].method}", bands_figure(first[0], constant=True)),
    ]
    return Section(
        title=str(name),
        facts={**facts, **fits},
        lines=_lines(results, seeds, pairs),
        choices=(
            *choice_of("", [("", curves_figure(first))]),
            *choice_of("Method", bands),
        ),
        grids=tuple(grids),
    )


def _lines(
    results: Sequence[MethodResult], seeds: int, pairs: Sequence[PairTest]
) -> tuple[VerdictLine, ...]:
    """What methods need at low miss rates, which of them differ, what they gain over all."""
    first, last = [], []
    methods = _methods(results)
    low = in_words(results[0].options.miss_range)
    ordered = sorted(methods, key=lambda m: -_value(_left(_own(results, m))))
    for method in ordered[:_MOST]:
        own = _own(results, method)
        gain, whole = _left(own), _gain(own, "characteristic_gain")
        if gain is None or whole is None:
            reason = own[0].record("characteristic_left_gain").reason
            first.append(VerdictLine(text=f"No gain is known: {reason}.", question=method))
            continue
        if seeds > 1:
            text = (
                f"At miss rates {low}, the median gain over {seeds} data sets is "
                f"{gain.text} (5 % to 95 %: {gain.range})."
            )
        else:
            more = "less" if gain.value >= 0 else "more"
            size = f"{fixed(abs(gain.value), 1)} % {more} bandwidth than a constant band"
            if abs(gain.value) < _NOTHING:
                size = "as much bandwidth as a constant band"
            level = formats.level(own[0].record("characteristic_left_gain").confidence)
            ends = f"{level} interval of the gain: {gain.range}"
            text = f"At miss rates {low}, bands need {size} ({ends})."
        first.append(VerdictLine(text=text, tone=gain.tone, question=method))
        last.append(VerdictLine(text=_whole(own, whole, seeds), question=f"{method}, over all"))
    if len(methods) > _MOST:
        left = counted(len(methods) - _MOST, "method")
        last.append(VerdictLine(text=f"The table tells of {left} more.", question="Others"))
    return (*first, *_pair_lines(pairs, seeds), *last, *_pattern_line(results))


def _whole(own: Sequence[MethodResult], whole: _Gain, seeds: int) -> str:
    """The gain over all miss rates, beside that of a well-specified model."""
    record = own[0].record("characteristic_gain")
    if seeds > 1:
        return f"Over all miss rates the median gain is {whole.text} (5 % to 95 %: {whole.range})."
    text = f"Over all miss rates the gain is {whole.text}"
    if math.isnan(record.null_lower):
        return f"{text}."
    ends = f"{fixed(record.null_lower, 1)} to {fixed(record.null_upper, 1)} %"
    return f"{text}; a well-specified model of these widths shows {ends} (90 % range)."


def _pair_lines(pairs: Sequence[PairTest], seeds: int) -> tuple[VerdictLine, ...]:
    """Pairs whose areas differ significantly, or that none do."""
    if not pairs:
        return ()
    test = "Wilcoxon over data sets" if seeds > 1 else "paired permutation test"
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


def _gains(results: Sequence[MethodResult], seeds: int) -> Grid:
    """Areas and gains; over several data sets medians with their range."""
    rows = []
    metrics = (
        "auucc",
        "characteristic_gain",
        "characteristic_partial_gain",
        "characteristic_left_gain",
    )
    for method in _methods(results):
        own = _own(results, method)
        cells = [Cell(text=method)]
        for metric in metrics:
            cells.append(_cell(own, metric))
            if metric != "auucc":
                cells.append(_null(own, metric))
        rows.append((*cells, _cell(own, "crossing")))
    low = in_words(results[0].options.miss_range)
    nulls = "Well specified"
    columns = (
        Column(title="Method"),
        *(
            Column(title=title, numeric=True)
            for title in (
                *("AUUCC", "Gain, %", nulls, f"Gain {low}, under, %", nulls),
                *(f"Gain {low}, left, %", nulls, "Crossing"),
            )
        ),
    )
    error = "Small: the bootstrap standard error over test rows"
    clustered = results[0].cluster is not None
    notes = (
        f"{error}{', clusters drawn whole' if clustered else ''}."
        if seeds == 1
        else f"Medians over {seeds} data sets; small: 5 % to 95 %.",
        "Well specified: the mean gain that a model of the same widths would show, if these were "
        "those of its errors; small: its 90 % range"
        f"{' (of the first data set)' if seeds > 1 else ''}.",
        "The paper names two readings of a partial area alike: under the curve, and to its left.",
    )
    return Grid(
        title="Areas and gains", columns=columns, parts=(GridRows(rows=tuple(rows)),), notes=notes
    )


def _cell(own: Sequence[MethodResult], metric: str, coverage: float = math.nan) -> Cell:
    """A number with its error; a median with its range where there are several data sets."""
    records = [result.record(metric, coverage) for result in own]
    if len(records) == 1:
        value, error = formats.estimate(records[0].value, records[0].standard_error)
        small = f"± {error}" if error else ""
        return Cell(text=value, small=small, key=sort_key(records[0].value))
    values = [record.value for record in records if math.isfinite(record.value)]
    if not values:
        return Cell(text=formats.MISSING)
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95]).tolist()
    return number_cell(middle, f"{formats.number(low, 3)} to {formats.number(high, 3)}")


def _null(own: Sequence[MethodResult], metric: str) -> Cell:
    """What a well-specified model would show; the first data set's where there are several."""
    record = own[0].record(metric)
    if math.isnan(record.null):
        return Cell(text=formats.MISSING)
    ends = f"{fixed(record.null_lower, 1)} to {fixed(record.null_upper, 1)}"
    return Cell(text=fixed(record.null, 1), small=ends, key=sort_key(record.null))


def published(problem: str) -> list[dict[str, str]]:
    """What the paper prints of a problem: a quantity, its value where it has one, and its words."""
    lines = files(__package__).joinpath("published.csv").read_text(encoding="utf-8").splitlines()
    return [row for row in csv.DictReader(lines) if row["problem"] == problem]


def _beside_published(results: Sequence[MethodResult]) -> Grid | None:
    """The paper's numbers beside ours; None where a world is not of the paper."""
    problem = results[0].problem
    if not problem:
        return None
    methods, left = _methods(results), results[0].options.miss_range
    rows, missed = [], []
    for row_of in published(problem):
        titles = {row_of["quantity"]: _PRINTED[row_of["quantity"]]}
        if row_of["quantity"] == "partial":
            asked = (float(row_of["low"]), float(row_of["high"]))
            if asked != left:
                missed.append(f"The paper's partial gain is at miss rates {in_words(asked)}.")
                continue
            titles = {
                "characteristic_partial_gain": f"Gain {in_words(left)}, under, %",
                "characteristic_left_gain": f"Gain {in_words(left)}, left, %",
            }
        for metric, title in titles.items():
            cells = [_cell(_own(results, method), metric) for method in methods]
            rows.append((Cell(text=title), *cells, Cell(text=row_of["told"])))
    shown = [_shown(_own(results, method)) for method in methods]
    rows.append(
        (
            Cell(text="Data sets with the pattern"),
            *(Cell(text=each) for each in shown),
            Cell(text=formats.MISSING),
        )
    )
    columns = (
        Column(title="Quantity"),
        *(Column(title=method, numeric=True) for method in methods),
        Column(title=f"Published ({_MODEL[problem]})"),
    )
    notes = (_PATTERN, *missed, f"Not reached to the digit, as {_UNTOLD[problem]}.")
    return Grid(
        title="Beside the published",
        columns=columns,
        parts=(GridRows(rows=tuple(rows)),),
        notes=notes,
    )


def _pattern_line(results: Sequence[MethodResult]) -> tuple[VerdictLine, ...]:
    """In how many data sets each method shows what the paper found."""
    if not results[0].problem:
        return ()
    methods = _methods(results)
    counts = [f"{_shown(_own(results, method))} for {method}" for method in methods[:_MOST]]
    text = f"Data sets with the published pattern: {listed(counts, _MOST)}."
    return (VerdictLine(text=text, question="Beside the paper"),)


def _shown(own: Sequence[MethodResult]) -> str:
    return f"{sum(result.shows_pattern for result in own)} of {len(own)}"


def _points(results: Sequence[MethodResult], seeds: int) -> Grid:
    """Bandwidth at the operating points, beside that of a constant band."""
    miss_rates = results[0].options.miss_rates
    columns = [Column(title="Method")]
    for miss_rate in miss_rates:
        at = formats.level(miss_rate)
        columns += [
            Column(title=f"At miss rate {at}", numeric=True),
            Column(title="Constant band", numeric=True),
        ]
    rows = []
    for method in _methods(results):
        own = _own(results, method)
        cells = [Cell(text=method)]
        for miss_rate in miss_rates:
            cells += [
                _cell(own, name, 1.0 - miss_rate) for name in ("bandwidth", "constant_bandwidth")
            ]
        rows.append(tuple(cells))
    notes = ["Bandwidth: the mean half-width, in units of y."]
    if seeds > 1:
        notes.append(f"Medians over {seeds} data sets; small: 5 % to 95 %.")
    return Grid(
        title="Operating points",
        columns=tuple(columns),
        parts=(GridRows(rows=tuple(rows)),),
        notes=tuple(notes),
    )


def _axes(results: Sequence[MethodResult]) -> Grid:
    """Areas and gains on the other pairs of axes."""
    columns = [Column(title="Method")]
    for x, y_axis in AXES[1:]:
        what = f"{x} and {_AXIS.get(y_axis, y_axis)}"
        columns += [
            Column(title=f"AUUCC, {what}", numeric=True),
            Column(title="Gain, %", numeric=True),
        ]
    rows = []
    for method in _methods(results):
        own = _own(results, method)
        cells = [Cell(text=method)]
        for x, y_axis in AXES[1:]:
            cells += [
                _cell(own, f"{name}_{x}_{y_axis}") for name in ("auucc", "characteristic_gain")
            ]
        rows.append(tuple(cells))
    notes = (
        "Excess: mean distance of y inside from the nearer end. Deficit: mean distance of y "
        "outside. Areas on the deficit are in squared units of y.",
    )
    return Grid(
        title="On other axes",
        columns=tuple(columns),
        parts=(GridRows(rows=tuple(rows)),),
        notes=notes,
    )


def _tests(pairs: Sequence[PairTest], seeds: int) -> Grid:
    """Every pair of methods, the most significant first."""
    columns = (
        Column(title="Better"),
        Column(title="Worse"),
        Column(title="Difference of AUUCC", numeric=True),
        Column(title="p-value", numeric=True),
        Column(title="Holm", numeric=True),
        Column(title="Difference of gains at low miss rates, points", numeric=True),
        Column(title="p-value", numeric=True),
        Column(title="Holm", numeric=True),
    )
    rows = []
    for pair in sorted(pairs, key=lambda pair: (pair.adjusted, pair.p, pair.difference)):
        gain, error = formats.estimate(pair.gain, pair.gain_error)
        rows.append(
            (
                Cell(text=pair.first),
                Cell(text=pair.second),
                number_cell(pair.difference),
                Cell(text=formats.p_value(pair.p), key=sort_key(pair.p)),
                Cell(text=formats.p_value(pair.adjusted), key=sort_key(pair.adjusted)),
                Cell(text=gain, small=f"± {error}" if error else "", key=sort_key(pair.gain)),
                Cell(text=formats.p_value(pair.gain_p), key=sort_key(pair.gain_p)),
                Cell(text=formats.p_value(pair.gain_adjusted), key=sort_key(pair.gain_adjusted)),
            )
        )
    test = (
        "p: Wilcoxon's signed-rank test over data sets."
        if seeds > 1
        else "p: paired permutation test; bands and critical scales of a row are swapped."
    )
    notes = (test, "Gains, and their p, are of the areas to the left of the curve.")
    return Grid(
        title="Methods compared", columns=columns, parts=(GridRows(rows=tuple(rows)),), notes=notes
    )


def _of(result: MethodResult) -> list[Record]:
    """Its records, with its name."""
    group = f"world={result.world}, seed={result.seed}"
    return [replace(record, model=result.method, group=group) for record in result.records]


def _methods(results: Sequence[MethodResult]) -> list[str]:
    return list(dict.fromkeys(result.method for result in results))


def _own(results: Sequence[MethodResult], method: str) -> list[MethodResult]:
    return [result for result in results if result.method == method]


def _first(results: Sequence[MethodResult]) -> list[MethodResult]:
    """The first data set of each method: what figures show."""
    return [_own(results, method)[0] for method in _methods(results)]


def _value(gain: _Gain | None) -> float:
    return -math.inf if gain is None else gain.value
