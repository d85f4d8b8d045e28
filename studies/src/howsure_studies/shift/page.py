"""The page on coverage under shift: who keeps nominal coverage, at what cost, and what is known.

Every method is judged by `verdict_of` on each test part; sentences speak of one nominal coverage,
tables of one task show all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

import numpy as np

from howsure.core import formats
from howsure.core.errors import InputError
from howsure.core.formats import counted, listed
from howsure.core.records import Curve, Record
from howsure.report.document import (
    TONES,
    Cell,
    Document,
    GlossaryEntry,
    Grid,
    Section,
    Tone,
    VerdictLine,
)
from howsure.report.grids import share_cell
from howsure_studies.engine import (
    OwnNumber,
    Show,
    beside_section,
    coverage_of,
    estimate_cell,
    interval_cell,
    named,
    number_grid,
    overview,
    pivot,
    published,
    share_of,
    study_document,
)
from howsure_studies.shift.attribution import ATTRIBUTED
from howsure_studies.shift.figures import (
    across_choices,
    degrees_of,
    home_method,
    task_choices,
    trade_choice,
)
from howsure_studies.shift.methods import is_baseline, key_of
from howsure_studies.shift.results import SHARES, ShiftResult, average_errors

Verdict = Literal["covers", "over-covers", "undecided", "under-covers", "not known"]

TOLERANCE: Final = 0.3
"""How far coverage may be off, as a share of the nominal miscoverage: 3 points at 90 %."""
_VERDICTS: Final[Mapping[Verdict, tuple[Tone, str]]] = {
    "covers": ("good", "Nominal coverage"),
    "over-covers": ("caution", "Over-covers"),
    "undecided": ("undecided", "Undecided"),
    "under-covers": ("bad", "Under-covers"),
    "not known": ("info", "Not known"),
}
"""How a verdict is shown, and what lines of it are called."""
_STATES: Final[Mapping[Tone, str]] = {
    "good": "Nominal",
    "bad": "Below",
    "caution": "Above",
    "undecided": "Undecided",
}
"""What the marks of verdicts mean."""
_KINDS: Final[Mapping[bool, str]] = {
    False: "Methods that accept every row",
    True: "Methods that may reject rows",
}
"""What to call methods, by whether they are selective."""
_NAMED: Final = 3
"""How many methods of one verdict are named one by one."""
_QUANTITIES: Final[Mapping[str, str]] = {
    "test_empirical_coverage": "Empirical coverage",
    "prediction_rate": "Prediction rate",
    "val_mae": "Validation MAE",
    "val_width": "Validation width",
}
"""What is published."""
_WHY: Final = (
    "other networks, and other images or rows than the published where howsure draws or splits them"
)
"""Why ours differ."""
_SOURCE: Final = "Gustafsson, Danelljan and Schön, TMLR 2023"
_LOST: Final = "Cai, Namkoong and Yadlowsky 2023"
GLOSSARY: Final = (
    GlossaryEntry(
        name="test_empirical_coverage",
        title="Empirical coverage",
        meaning="Share of accepted test rows whose calibrated interval contains y.",
        source=_SOURCE,
        direction="closer to the target is better",
        notion="marginal",
    ),
    GlossaryEntry(
        name="prediction_rate",
        title="Prediction rate",
        meaning="Share of test rows that a method accepts; it may reject unfamiliar ones.",
        source=_SOURCE,
        direction="higher is better",
    ),
    GlossaryEntry(
        name="coverage_error",
        title="Coverage error",
        meaning="Distance of the mean empirical coverage over runs from the nominal coverage.",
        formula="|empirical − nominal coverage|",
        source=_SOURCE,
        direction="lower is better",
        notion="marginal",
    ),
    GlossaryEntry(
        name="test_width",
        title="Width",
        meaning="Mean width of the calibrated intervals of the accepted test rows.",
        direction="lower is better",
    ),
    GlossaryEntry(
        name="test_mae",
        title="MAE",
        meaning="Mean absolute error of the accepted test rows.",
        direction="lower is better",
    ),
    GlossaryEntry(
        name="val_empirical_coverage",
        title="Validation empirical coverage",
        meaning=(
            "Empirical coverage of the calibration rows; the calibration rule fixes it, apart from "
            "ties."
        ),
    ),
    GlossaryEntry(
        name="val_width",
        title="Validation width",
        meaning="Mean width of the calibrated intervals of all validation rows.",
        direction="lower is better",
    ),
    GlossaryEntry(
        name="val_mae",
        title="Validation MAE",
        meaning="Mean absolute error of all validation rows.",
        direction="lower is better",
    ),
    GlossaryEntry(
        name="loss_x",
        title="Coverage lost to x",
        meaning="Increase of the miss rate at home when home is weighted to the shared inputs.",
        formula="E_S R_P − E_P R_P, with the density of S ∝ p q/(p + q)",
        source=_LOST,
        notion="marginal",
    ),
    GlossaryEntry(
        name="loss_y_given_x",
        title="Coverage lost to y given x",
        meaning="Increase of the miss rate from home to elsewhere at the shared inputs.",
        formula="E_S R_Q − E_S R_P",
        source=_LOST,
        notion="marginal",
    ),
    GlossaryEntry(
        name="loss_support",
        title="Coverage lost to support",
        meaning="Increase of the miss rate elsewhere from the shared inputs to all its inputs.",
        formula="E_Q R_Q − E_S R_Q",
        source=_LOST,
        notion="marginal",
    ),
    GlossaryEntry(
        name="relative_mae_change",
        title="Change of MAE",
        meaning="Increase of the mean absolute error of all rows from validation to test.",
        formula="(MAE of test − MAE of validation)/MAE of validation",
        source=_SOURCE,
    ),
)


def shift_report(
    results: Mapping[str, Sequence[ShiftResult]],
    *,
    title: str = "",
    coverage: float | None = None,
    facts: Mapping[str, str] | None = None,
    command: str = "",
) -> Document:
    """The leaderboard of methods under shift, beside what was published.

    Parameters
    ----------
    results : mapping of str to sequence of ShiftResult
        By what the plan calls a task, whose results' own names may add a seed. Published numbers
        stand beside methods that are called by a key or a title of the benchmark, on tasks
        called as in `published`, or so up to a comma, as ``cells-tails, simulator``.
    title : str
        One that says what was studied, if omitted.
    coverage : float, optional
        The nominal coverage that sentences speak of; the highest up to 0.9 if omitted.
    facts : mapping of str to str, optional
        What else is known.
    command : str
        What makes the page again.

    Returns
    -------
    Document

    Raises
    ------
    InputError
        If there is no result, a method meets a task twice, or the coverage was not studied.

    Examples
    --------
    >>> from howsure_studies.shift import Answers, evaluate_shift
    >>> y = np.arange(20.0)
    >>> part = Answers(y=y, point=y + 1.0, lower=y, upper=y + 1.0)
    >>> run = evaluate_shift(part, {"far": part})
    >>> line = ShiftResult(task="line", method="mine", coverage=0.9, rule="paper", runs=(run,))
    >>> shift_report({"line": [line]}).title
    'Does coverage survive a shift? 1 method on line'
    """
    every = [result for own in results.values() for result in own]
    if not every:
        raise InputError("results must contain at least one result, got none")
    wanted = coverage_of((result.coverage for result in every), coverage)
    spoken = [result for result in every if result.coverage == wanted]
    worlds = {result.task: str(world) for world, own in results.items() for result in own}
    by_task: dict[str, list[ShiftResult]] = {}
    for result in every:
        own = by_task.setdefault(result.task, [])
        key = (result.method, result.coverage)
        if any((earlier.method, earlier.coverage) == key for earlier in own):
            raise InputError(
                f"results must contain {result.method} on {result.task} once per coverage, got it "
                "twice"
            )
        own.append(result)
    places = {name: colour for colour, name in enumerate(dict.fromkeys(r.method for r in every))}
    curves = degrees_of(spoken, {result.task: worlds[result.task] for result in spoken})
    stated = {
        "Datasets": ", ".join(by_task),
        "Methods": ", ".join(places),
        "Nominal coverage shown": formats.level(wanted),
        "Calibration rule": ", ".join(dict.fromkeys(result.rule for result in every)),
    }
    baselines = sum(map(is_baseline, places))
    on = counted(len(places) - baselines, "method") if len(places) > baselines else ""
    on += f"{' and ' if on else ''}{counted(baselines, 'baseline')}" if baselines else ""
    across = [_across_section(spoken, curves, places)] if len(by_task) > 1 else []
    beside = beside_section(
        _own_numbers(every, worlds), published("shift"), _QUANTITIES, _WHY, shares=SHARES
    )
    return study_document(
        title=title or f"Does coverage survive a shift? {on} on {named(list(by_task), 'dataset')}",
        headline=_headline(spoken),
        opening=_opening(spoken, places),
        sections=[*across, *(_task_section(own, wanted) for own in by_task.values())],
        beside=beside,
        records=tuple(r for own in by_task.values() for result in own for r in result.records()),
        tables=(average_errors(spoken),),
        curves=curves,
        glossary=GLOSSARY,
        facts={**stated, **(facts or {})},
        command=command,
    )


def _own_numbers(results: Sequence[ShiftResult], worlds: Mapping[str, str]) -> Iterator[OwnNumber]:
    """What may be published: numbers of main tests, of methods that the benchmark knows."""
    for result in results:
        key = key_of(result.method)
        task, _, which = worlds[result.task].partition(", ")
        for measure in _QUANTITIES if key else ():
            record = result.record(measure)
            if which:
                record = replace(record, model=f"{record.model} ({which})")
            if not (measure == "prediction_rate" and not result.selective):
                yield OwnNumber(task=task, method=str(key), record=record)


# Verdicts, and what is compared


def verdict_of(record: Record) -> Verdict:
    """Whether the whole interval of empirical coverage lies within `TOLERANCE` of nominal."""
    if math.isnan(record.value):
        return "not known"
    reach = TOLERANCE * (1.0 - record.target) + 1e-12
    low, high = record.target - reach, record.target + reach
    if low <= record.lower and record.upper <= high:
        return "covers"
    if record.upper < low:
        return "under-covers"
    return "over-covers" if record.lower > high else "undecided"


def _verdict(result: ShiftResult, test: str | None = None) -> Verdict:
    return verdict_of(result.record("test_empirical_coverage", test))


def compared(results: Sequence[ShiftResult]) -> list[ShiftResult]:
    """The largest set of methods and tasks such that each of the methods answers on each task."""
    pairs = {
        (result.method, result.task)
        for result in results
        if math.isfinite(result.value("test_empirical_coverage").mean)
    }
    methods, tasks = (
        dict.fromkeys(getattr(r, name) for r in results) for name in ("method", "task")
    )
    starts = [
        *([m for m in methods if (m, task) in pairs] for task in tasks),
        *(
            [m for m in methods if all((m, t) in pairs for t in tasks if (method, t) in pairs)]
            for method in methods
        ),
    ]
    whole = [
        (chosen, [task for task in tasks if all((m, task) in pairs for m in chosen)])
        for chosen in starts
        if chosen
    ]
    names, shared = max(whole, key=lambda each: len(each[0]) * len(each[1]), default=([], []))
    return [r for r in results if r.method in names and r.task in shared]


def _judged(results: Sequence[ShiftResult]) -> list[ShiftResult]:
    """Results of methods that are no baselines; all, where there are none but these."""
    return [result for result in results if not is_baseline(result.method)] or list(results)


def _tasks(results: Sequence[ShiftResult]) -> list[str]:
    return list(dict.fromkeys(result.task for result in results))


def _of(results: Sequence[ShiftResult], method: str) -> list[ShiftResult]:
    return [result for result in results if result.method == method]


def _kept_count(results: Sequence[ShiftResult], method: str) -> int:
    """On how many tasks a method's coverage is shown to be nominal."""
    return sum(_verdict(result) == "covers" for result in _of(results, method))


def _ordered(results: Sequence[ShiftResult]) -> list[str]:
    """Methods by how often coverage is nominal, the most often first; then by coverage error."""

    def key(method: str) -> tuple[int, float]:
        errors = [result.value("coverage_error").mean for result in _of(results, method)]
        known = [error for error in errors if math.isfinite(error)]
        return -_kept_count(results, method), float(np.mean(known)) if known else math.inf

    return sorted(dict.fromkeys(result.method for result in results), key=key)


def _mean_of(results: Sequence[ShiftResult], method: str, measure: str) -> float:
    return float(np.mean([result.value(measure).mean for result in _of(results, method)]))


# Sentences


def _headline(results: Sequence[ShiftResult]) -> VerdictLine | None:
    """Which methods keep their coverage under shift, and what it costs in rows accepted."""
    judged = _judged(results)
    if all(_verdict(result) == "not known" for result in judged):
        return None
    shares = {
        method: (_kept_count(judged, method), len(_of(judged, method)))
        for method in dict.fromkeys(result.method for result in judged)
    }
    full = [method for method, (kept, tried) in shares.items() if kept == tried]
    first = max(shares, key=lambda method: shares[method][0] / shares[method][1])
    kept, tried = shares[first]
    coverage = judged[0].coverage
    points = _points(TOLERANCE * (1.0 - coverage))
    goal = f"{formats.level(coverage)} coverage within {points}"
    if len(shares) == 1:
        where = f"on {_tried(tried)}" if full else f"on {kept} of {_tried(tried)}"
        text = f"{first} is shown to have {goal} {where}."
        if not kept:
            text = f"{first} is not shown to have {goal} on {_tried(tried, 'any of ')}."
    elif full:
        names = [f"{method} ({_rate_words(judged, method)})" for method in full]
        text = (
            f"{len(full)} of {len(shares)} methods {'is' if len(full) == 1 else 'are'} shown to "
            f"have {goal} on every dataset: {listed(names, _NAMED)}."
        )
    else:
        text = f"None of {len(shares)} methods is shown to have {goal} on every dataset."
        if kept:
            text += f" The best is {kept} of {tried}, for {first} ({_rate_words(judged, first)})."
    broken = any(_verdict(result) == "under-covers" for result in judged)
    tone: Tone = "good" if len(full) == len(shares) else "caution" if full else "bad"
    if tone == "bad" and not broken:
        tone = "undecided"
    words = {"good": "Yes", "caution": "Partly", "bad": "No", "undecided": "Inconclusive"}
    return VerdictLine(text=f"{words[tone]}. {text}", tone=tone)


def _tried(count: int, among: str = "") -> str:
    """So many datasets, of one method."""
    return "the one dataset" if count == 1 else f"{among}{count} datasets"


def _cost_lines(results: Sequence[ShiftResult]) -> tuple[VerdictLine, ...]:
    """How far coverage is from nominal with and without rejection, and the prediction rates."""
    lines = []
    for selective, kind in _KINDS.items():
        own = [result for result in _judged(compared(results)) if result.selective == selective]
        if not own:
            continue
        names = dict.fromkeys(result.method for result in own)
        errors = {method: _mean_of(own, method, "coverage_error") for method in names}
        best, worst = min(errors, key=errors.__getitem__), max(errors, key=errors.__getitem__)
        null = float(np.mean([result.record("coverage_error").null for result in own]))
        text = f"{kind} have an average coverage error of {_points(errors[best])} ({best})"
        if len(errors) > 1:
            text += f" to {_points(errors[worst])} ({worst})"
        text += f". By chance alone it would be {_points(null)}."
        if selective:
            rates = [_mean_of(own, method, "prediction_rate") for method in names]
            text += f" The prediction rate is {_range(rates)}."
        lines.append(VerdictLine(text=text, question="Coverage error"))
    return tuple(lines)


def _task_lines(results: Sequence[ShiftResult]) -> tuple[VerdictLine, ...]:
    """What is to be said of one task at one coverage: methods by verdict, and the shift's size."""
    lines = []
    for verdict, (tone, question) in _VERDICTS.items():
        group = [result for result in results if _verdict(result) == verdict]
        words = (_group_words([r for r in group if r.selective == kind], kind) for kind in _KINDS)
        if group:
            text = " ".join(f"{sentence}." for sentence in words if sentence)
            lines.append(VerdictLine(text=text, tone=tone, question=question))
    size = _size_words(results)
    if size:
        lines.append(VerdictLine(text=size, tone="info", question="Size of the shift"))
    return tuple(lines)


def _points(distance: float) -> str:
    return f"{formats.fixed(100.0 * distance, 1, trim=True)} points"


def _rate_words(results: Sequence[ShiftResult], method: str) -> str:
    if not any(result.selective for result in _of(results, method)):
        return "accepts every row"
    return f"accepts {formats.share(_mean_of(results, method, 'prediction_rate'))} of rows"


def _group_words(results: Sequence[ShiftResult], selective: bool) -> str:
    """Methods of one verdict and kind, each where they are few, else the ends of their range."""
    seen = {result.method: result.value("test_empirical_coverage").mean for result in results}
    if len(results) < _NAMED or not all(map(math.isfinite, seen.values())):
        return ". ".join(map(_method_words, results))
    low, *_, high = sorted(seen, key=seen.__getitem__)
    kind = _KINDS[selective].removeprefix("Methods ")
    ends = " to ".join(f"{formats.share(seen[method])} ({method})" for method in (low, high))
    text = f"{len(results)} methods {kind}: {ends}"
    rates = [result.value("prediction_rate").mean for result in results]
    return f"{text}, accepting {_range(rates)}" if selective else text


def _range(shares: Sequence[float]) -> str:
    low, high = min(shares), max(shares)
    if high - low < 5e-4:
        return formats.share(low)
    return f"{formats.fixed(100.0 * low, 1)} to {formats.share(high)}"


def _method_words(result: ShiftResult) -> str:
    record = result.record("test_empirical_coverage")
    if math.isnan(record.value):
        return f"{result.method}: {record.reason or 'there is no answer'}"
    rate = result.value("prediction_rate").mean
    of = f" of the {formats.share(rate)} accepted" if result.selective else ""
    return f"{result.method} {formats.share(record.value)}{formats.between(record)}{of}"


def _size_words(results: Sequence[ShiftResult]) -> str:
    """How much the MAE grows from validation to test rows."""
    method = home_method(results)
    result = next((result for result in results if result.method == method), None)
    if result is None:
        return ""
    change, home = result.record("relative_mae_change"), result.value("val_mae").mean
    if math.isnan(change.value):
        return ""
    away = home + result.value("mae_change").mean
    units = "" if result.units == "1" else f" {result.units}"
    return (
        f"The MAE of {method} is {formats.number(home, 3)} on validation rows and "
        f"{formats.number(away, 3)}{units} on all test rows. That is a change of "
        f"{formats.share(change.value)}{formats.between(change)}."
    )


# Sections and their tables


def _opening(results: Sequence[ShiftResult], places: Mapping[str, int]) -> Section:
    """Empirical coverage of methods × datasets at one coverage, and what it costs."""
    states: dict[str, dict[str, Cell]] = {method: {} for method in _ordered(results)}
    for result in results:
        cell = _coverage_cell(result.record("test_empirical_coverage"))
        states[result.method][result.task] = replace(cell, small="")
    coverage = results[0].coverage
    title = f"Empirical coverage at nominal {formats.level(coverage)}"
    note = f"For accepted rows. {_meaning(coverage)}"
    return Section(
        title="",
        lines=_cost_lines(results),
        grids=(overview(title, states, _STATES, note),),
        choices=trade_choice(compared(results), places),
    )


def _across_section(
    results: Sequence[ShiftResult], curves: Sequence[Curve], places: Mapping[str, int]
) -> Section:
    """Averages, ranks and degrees over all datasets, of the methods and datasets with answers."""
    methods, inside = _ordered(results), compared(results)
    kept = dict.fromkeys(result.method for result in inside)
    facts = {
        "Datasets compared": ", ".join(_tasks(inside)),
        "Methods compared": str(len(kept)),
        "Left out": ", ".join(method for method in methods if method not in kept),
    }
    selective = [name for name in methods if any(result.selective for result in _of(results, name))]
    coverage = results[0].coverage
    note = f"Nominal {formats.level(coverage)}; for accepted rows. {_legend(coverage)}"
    grids = [
        _averages(results, methods),
        _by_task(results, methods, "test_empirical_coverage", note),
    ]
    if selective:
        note = "Share of accepted rows, for methods that may reject rows."
        grids.append(_by_task(results, selective, "prediction_rate", note))
    grids += [_widths(results), _lost(results)]
    return Section(
        title="Across datasets",
        facts={name: fact for name, fact in facts.items() if fact},
        grids=tuple(grid for grid in grids if grid is not None),
        choices=across_choices(inside, results, curves, places),
    )


def _task_section(results: Sequence[ShiftResult], coverage: float) -> Section:
    """Everything of one task; sentences and figures are of one coverage, tables of all."""
    spoken = [result for result in results if result.coverage == coverage]
    first = (spoken or results)[0]
    runs = sorted({result.run_count for result in results})
    return Section(
        title=first.task,
        facts={
            "Validation rows": f"{first.rows['val']:,}",
            "Test rows": f"{first.rows[first.tests[0]]:,}",
            "Test parts": ", ".join(first.tests),
            "Runs": " or ".join(map(str, runs)),
            "Units of y": "–" if first.units == "1" else first.units,
        },
        lines=_task_lines(spoken),
        grids=tuple(
            grid
            for grid in (_tests(results), _validation(results), _over_runs(results))
            if grid is not None
        ),
        choices=task_choices(spoken),
    )


def _averages(results: Sequence[ShiftResult], methods: Sequence[str]) -> Grid:
    """Over the datasets that a method has an answer for."""
    columns = average_errors(results).columns
    at = {str(name): row for row, name in enumerate(columns["method"])}
    rows = []
    for method in methods:
        error, spread, null = (
            100.0 * float(columns[name][at[method]])
            for name in ("coverage_error", "standard_error", "null")
        )
        rates = [result.value("prediction_rate").mean for result in _of(results, method)]
        known = [rate for rate in rates if math.isfinite(rate)]
        kept = _kept_count(results, method)
        rows.append(
            (
                Cell(text=method),
                Cell(text=f"{kept} of {int(columns['tasks'][at[method]])}", key=str(kept)),
                estimate_cell(error, spread),
                estimate_cell(null),
                share_cell(float(np.mean(known)) if known else math.nan),
            )
        )
    note = (
        "Averages over datasets, of their main tests. Coverage error is "
        "|empirical − nominal coverage|, ± its standard error for these datasets. Chance alone: "
        "the error of a model with nominal coverage."
    )
    titles = ("Nominal coverage on", "Coverage error, points", "Chance alone", "Prediction rate")
    return number_grid("Averages", titles, rows, [note])


def _by_task(
    results: Sequence[ShiftResult], methods: Sequence[str], measure: str, note: str
) -> Grid | None:
    """One measure of the main tests, methods downwards and tasks across."""
    small = f"Small: {_level(results)} intervals over models and rows, in percent."
    return pivot(
        (result.record(measure) for method in methods for result in _of(results, method)),
        f"{_QUANTITIES[measure]} by dataset",
        columns={task: (task, _coverage_cell) for task in _tasks(results)},
        by="task",
        parts=_one_part,
        notes=(note, small),
    )


def _widths(results: Sequence[ShiftResult]) -> Grid | None:
    """Mean widths of the main tests, methods downwards and tasks across."""
    records = (
        replace(record, options={**record.options, "unbounded": share})
        for result in results
        for record in (result.record("test_width"),)
        for share in (result.value("test_unbounded").mean if math.isinf(record.value) else 0.0,)
    )
    return pivot(
        records,
        "Width by dataset",
        columns={task: (task, _width_cell) for task in _tasks(results)},
        by="task",
        parts=_one_part,
        notes=(
            "Mean width of the accepted rows in the units of y; ∞ with the share of rows whose "
            "interval is unbounded.",
        ),
    )


def _lost(results: Sequence[ShiftResult]) -> Grid | None:
    """To what coverage is lost on the main tests, as far as that was asked."""
    asked = [result for result in results if math.isfinite(result.value("loss_x").mean)]
    names = ("test_empirical_coverage", *ATTRIBUTED)
    return pivot(
        (result.record(name) for result in asked for name in names),
        "Where coverage is lost",
        columns={
            "Below nominal": ("test_empirical_coverage", _below_cell),
            "At home": ("loss_home", _points_cell),
            "To x": ("loss_x", _points_cell),
            "To y given x": ("loss_y_given_x", _points_cell),
            "To support": ("loss_support", _points_cell),
            "Inputs in common, %": ("inputs_in_common", _points_cell),
        },
        parts="task",
        notes=(
            "In points of coverage ± standard errors; the four parts add up to the distance below "
            "nominal. To x: elsewhere has more of the inputs that are already hard at home. To y "
            "given x: the same inputs have a higher miss rate. To support: inputs that are rare "
            "at home.",
            "From the misses of test rows at home and elsewhere, weighted to the shared inputs "
            "(Cai, Namkoong and Yadlowsky 2023). Inputs in common: 100 if both are alike.",
        ),
    )


def _one_part(record: Record) -> str:
    """All records are of one part."""
    return ""


def _legend(coverage: float) -> str:
    marks = "; ".join(f"{TONES[tone][0]} {words.lower()}" for tone, words in _STATES.items())
    return f"{marks}. {_meaning(coverage)}"


def _meaning(coverage: float) -> str:
    points = f"{100 * TOLERANCE * (1 - coverage):.2g} points"
    return f"Nominal: shown to be within {points}; below, above: significantly."


def _tests(results: Sequence[ShiftResult]) -> Grid | None:
    """All test parts at all coverages, one part of the table each."""
    several = len({result.coverage for result in results}) > 1
    units = _units(results)
    columns: dict[str, tuple[str, Show]] = {
        "Empirical coverage": ("test_empirical_coverage", _coverage_cell),
        "Prediction rate": ("prediction_rate", _coverage_cell),
        f"Width{units}": ("test_width", interval_cell),
        f"MAE{units}": ("test_mae", interval_cell),
    }
    notes = (f"{result.method}: {note}." for result in results for note in result.notes)
    limits: dict[str, dict[str, None]] = {}
    for result in results:
        if why := result.value("test_empirical_coverage").reason:
            limits.setdefault(why, {})[result.method] = None
    return pivot(
        sorted(
            (
                result.record(measure, test)
                for result in results
                for measure, _ in columns.values()
                for test in result.tests
            ),
            key=lambda record: record.coverage,
        ),
        "Test rows",
        columns=columns,
        parts=lambda record: (
            f"Test {record.options['test']}"
            + (f", nominal {formats.level(record.coverage)}" if several else "")
        ),
        notes=(
            f"For accepted rows. {_legend(results[0].coverage)} Small: {_level(results)} intervals "
            "over models and rows.",
            *(f"{', '.join(methods)}: {why}." for why, methods in limits.items()),
            *notes,
        ),
    )


def _validation(results: Sequence[ShiftResult]) -> Grid | None:
    """What intervals are calibrated on."""
    units = _units(results)
    columns: dict[str, tuple[str, Show]] = {
        f"MAE{units}": ("val_mae", interval_cell),
        f"Width{units}": ("val_width", interval_cell),
        "Empirical coverage": ("val_empirical_coverage", lambda r: share_cell(r.value)),
        "Change of MAE to test": ("relative_mae_change", share_of),
    }
    return pivot(
        sorted(
            (result.record(m) for result in results for m, _ in columns.values()),
            key=lambda record: record.coverage,
        ),
        "Validation rows",
        columns=columns,
        notes=("All validation rows, on which intervals are calibrated.",),
    )


def _over_runs(results: Sequence[ShiftResult]) -> Grid | None:
    """Mean ± sd over runs, as the paper prints it; None where each method has one run."""
    several = [result for result in results if result.run_count > 1]
    records = [result.record(measure) for result in several for measure in _QUANTITIES]
    return pivot(
        sorted(records, key=lambda record: record.coverage),
        "Mean and sd over runs",
        columns={
            f"{title}{_units(results) if measure in ('val_mae', 'val_width') else ' (%)'}": (
                measure,
                _spread_cell,
            )
            for measure, title in _QUANTITIES.items()
        },
        notes=("On the main test. ± is the sd over runs, with ddof 0.",),
    )


def _spread_cell(record: Record) -> Cell:
    """A number with its sd over runs; shares in percent."""
    unit = 100.0 if record.metric in SHARES else 1.0
    return estimate_cell(unit * record.value, unit * float(record.options["sd"]))


def _coverage_cell(record: Record) -> Cell:
    """A share with its interval, and for empirical coverage with its verdict."""
    cell = share_of(record)
    if record.metric == "test_empirical_coverage" and not math.isnan(record.value):
        return replace(cell, tone=_VERDICTS[verdict_of(record)][0])
    return cell


def _width_cell(record: Record) -> Cell:
    """A width, which may be infinite."""
    if math.isinf(record.value):
        return Cell(
            text=f"∞ ({formats.share(float(record.options['unbounded']))})", key=repr(math.inf)
        )
    return interval_cell(record)


def _points_cell(record: Record) -> Cell:
    return estimate_cell(100.0 * record.value, 100.0 * record.standard_error)


def _below_cell(record: Record) -> Cell:
    """How far coverage is below nominal."""
    off = 100.0 * (record.target - record.value)
    return estimate_cell(off, 100.0 * record.standard_error)


def _units(results: Sequence[ShiftResult]) -> str:
    units = results[0].units
    return "" if units == "1" else f" ({units})"


def _level(results: Sequence[ShiftResult]) -> str:
    return formats.level(results[0].value("test_empirical_coverage").confidence)
