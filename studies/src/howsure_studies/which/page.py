"""The page of the study: which method to use, in sentences that its numbers prove."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from howsure.core.errors import InputError
from howsure.core.formats import counted, fixed, listed
from howsure.core.records import Record, ResultTable
from howsure.report.document import Cell, Document, Grid, Section, VerdictLine
from howsure.report.grids import number_cell, sort_key
from howsure_studies.engine import MISSING, choice_of, columns_of, number_grid, study_document
from howsure_studies.tasks import entries
from howsure_studies.which.answers import (
    best_lines,
    correction_lines,
    cost_lines,
    finding_lines,
    power_lines,
    rank_lines,
    shift_lines,
)
from howsure_studies.which.figures import rank_intervals_figure, score_figure, shift_figure
from howsure_studies.which.judging import ALL, ARMS, BEST, CONFORMAL, FINDINGS, RAW, WAYS
from howsure_studies.which.results import WhichResult
from howsure_studies.which.standing import (
    CLIMATOLOGY,
    Kind,
    MeanOf,
    MethodScores,
    Which,
    coverage,
    log_ratio,
)

_KINDS: Final[Mapping[Kind, str]] = {
    "home": "up to 1,000 rows",
    "large": "up to 10,000 rows",
    "shift": "late or foreign rows",
}
_TITLES: Final[Mapping[str, str]] = {
    "linear_t": "linear model",
    "linear_quantiles": "linear quantile regression",
    "bayesian_ridge": "Bayesian ridge",
    "gaussian_process": "Gaussian process",
    "quantile_forest": "quantile forest",
    "quantile_forest_searched": "quantile forest (searched)",
    "catboost": "CatBoost quantiles",
    "catboost_normal": "CatBoost normal",
    "catboost_normal_searched": "CatBoost normal (searched)",
    "lightgbm": "LightGBM",
    "lightgbm_searched": "LightGBM (searched)",
    "xgboost": "XGBoost",
    "xgboost_searched": "XGBoost (searched)",
    "ngboost": "NGBoost",
    "bart": "BART",
    "bart_varying": "BART (varying noise)",
    "split_conformal": "split conformal",
    "normalized_conformal": "normalised conformal",
    "cqr": "CQR",
    "cv_plus": "CV+",
    "jackknife_after_bootstrap": "jackknife+ after bootstrap",
    "naive_bootstrap": "bootstrap of trees",
    "deep_ensemble": "deep ensemble",
    "mc_dropout": "MC dropout",
    "quantile_network": "quantile network",
}
"""What the page calls the methods of the plan; others have the name that their plan gives."""


def which_report(
    results: Mapping[str, Sequence[WhichResult]],
    *,
    facts: Mapping[str, str] | None = None,
    command: str = "",
) -> Document:
    """The report on methods over tables.

    Parameters
    ----------
    results : mapping of str to sequence of WhichResult
        By world: every method on every cut.
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
    which = Which(
        {
            world: [replace(r, method=_TITLES.get(r.method, r.method)) for r in own]
            for world, own in results.items()
        }
    )
    tables = dict.fromkeys(result.table for result in which.results)
    stated = {
        "Tables": counted(len(tables), "table"),
        "Methods": counted(len(which.methods), "method"),
        "Cuts": counted(len({(r.table, r.shift, r.seed, r.rows) for r in which.results}), "cut"),
    }
    headline, *best = best_lines(which) or (_too_few(which),)
    lines = [*best, *correction_lines(which)[:1], *shift_lines(which)[:1], *power_lines(which)]
    sections = [
        section
        for section in (
            _ranks(which),
            _corrections(which),
            _shifted(which),
            _verdicts(which),
            _cost(which),
            _tables(which),
        )
        if section is not None
    ]
    return study_document(
        title="Which method should I use?",
        headline=headline,
        opening=_opening(which, lines),
        sections=sections,
        records=tuple(_records(results)),
        tables=(_table(Which(results)),),
        facts={**stated, **(facts or {})},
        command=command,
    )


def _too_few(which: Which) -> VerdictLine:
    tables = len({result.table for result in which.of("home")})
    return VerdictLine(
        text=f"{counted(tables, 'table')} and {counted(len(which.methods), 'method')} are too "
        "few to choose a method.",
        tone="undecided",
    )


def _records(results: Mapping[str, Sequence[WhichResult]]) -> Iterator[Record]:
    """Every number, named as the plan does."""
    for world, own in results.items():
        for result in own:
            group = f"world={world}, seed={result.seed}"
            yield from (replace(r, model=result.method, group=group) for r in result.records())


def _table(which: Which) -> ResultTable:
    """A row a method, cut and arm, for programs."""
    rows = [
        {
            "table": result.table,
            "method": result.method,
            "shift": result.shift or "none",
            "seed": result.seed,
            "training_rows": result.rows[0],
            "calibration_rows": result.rows[1],
            "test_rows": result.rows[2],
            "arm": arm,
            "score_ratio": float(result.score[k] / result.climatology),
            "coverage_90": float(result.coverage[k, -1]),
            "width_ratio": float(result.width[k]),
        }
        for result in which.results
        for k, arm in enumerate(ARMS)
    ]
    return ResultTable(name="which", columns=columns_of(rows))


# The first screen


def _ordered(which: Which) -> list[str]:
    """Methods from the lowest mean score on, those without a number last."""
    standing = which.standing("home", ALL)
    if standing is None:
        return list(which.methods)
    known = [*standing.scores.methods]
    return [*known, *(method for method in which.methods if method not in known)]


def _opening(which: Which, lines: Sequence[VerdictLine]) -> Section:
    """Score and coverage beside each other: a figure, and a row a method."""
    points = {}
    for done, arm in (("uncorrected", ALL), ("corrected", CONFORMAL)):
        means = which.crossed("home", log_ratio(arm)).means()
        scores = {m: mean.percent for m, mean in means.items() if math.isfinite(mean.value)}
        points[done] = scores, which.crossed("home", coverage(arm)).means()
    figure = score_figure(points) if any(len(scores) > 1 for scores, _ in points.values()) else None
    return Section(
        title="",
        lines=tuple(lines),
        choices=choice_of("", [("", figure)]),
        grids=(_main_grid(which),),
    )


def _main_grid(which: Which) -> Grid:
    """A row a method: score, coverage as it comes and corrected, under a shift, and its cost."""
    scores = which.crossed("home", log_ratio(ALL)).means()
    home, corrected = (which.crossed("home", coverage(arm)).means() for arm in (ALL, CONFORMAL))
    late = which.crossed("shift", coverage(ALL)).means()
    standing = which.standing("home", ALL)
    leaders = () if standing is None else standing.leaders
    tables = max((mean.tables for mean in scores.values()), default=0)
    fewer = [
        f"{method} has numbers on {mean.tables} of {tables} tables."
        for method, mean in scores.items()
        if mean.tables < tables
    ]
    rows = [
        (
            Cell(text=method),
            _percent_cell(scores.get(method), "*" if method in leaders else ""),
            _share_cell(home.get(method)),
            _share_cell(corrected.get(method)),
            _share_cell(late.get(method)),
            _seconds_cell(which, "home", method),
        )
        for method in _ordered(which)
    ]
    return number_grid(
        "Score and coverage",
        (*("Score, %", "Coverage, %", "Corrected, %", "Late or foreign, %", "CPU s"),),
        rows,
        (
            "Means over tables with 95 % intervals. The score is twice the mean pinball loss at 19 "
            "levels, relative to climatology (the quantiles of y for every row); lower is better. "
            "Coverage of 90 % intervals: uncorrected, corrected, and uncorrected on late or "
            "foreign rows. CPU s: the median fit.",
            "*: score not significantly worse than the best (95 % model confidence set); these "
            "cannot be ordered."
            if leaders
            else "",
            "Corrected: conformal offsets of each quantile, fitted to 30 % of the rows.",
            *fewer,
        ),
    )


def _percent_cell(mean: MeanOf | None, mark: str = "") -> Cell:
    """A mean of logarithms of ratios in per cent off 1, and a mark."""
    if mean is None or not math.isfinite(mean.value):
        return MISSING
    shown = mean.percent
    ends = f"({fixed(shown.lower, 1)} to {fixed(shown.upper, 1)})"
    small = f"{ends if math.isfinite(shown.lower) else ''} {mark}".strip()
    return Cell(text=fixed(shown.value, 1), small=small, key=sort_key(shown.value))


def _share_cell(mean: MeanOf | None) -> Cell:
    """A mean share in per cent."""
    if mean is None or not math.isfinite(mean.value):
        return MISSING
    ends = f"({fixed(100 * mean.lower, 1)} to {fixed(100 * mean.upper, 1)})"
    known = math.isfinite(mean.lower)
    return Cell(
        text=fixed(100 * mean.value, 1), small=ends if known else "", key=sort_key(mean.value)
    )


def _seconds(which: Which, kind: Kind, method: str) -> float:
    """The median of the CPU seconds of a fit to all known rows."""
    spent = [result.seconds[1] for result in which.of(kind, method) if not result.failure]
    return float(np.median(spent)) if spent else math.nan


def _seconds_cell(which: Which, kind: Kind, method: str) -> Cell:
    spent = _seconds(which, kind, method)
    if math.isnan(spent):
        return MISSING
    return number_cell(spent, digits=2) if spent >= 0.01 else Cell(text="< 0.01", key="0")


# Sections


def _ranks(which: Which) -> Section | None:
    """Which ranks methods may have, and how far they are from the lowest score."""
    known: dict[Kind, MethodScores] = {
        kind: standing
        for kind in _KINDS
        if kind != "shift" and (standing := which.standing(kind, ALL)) is not None
    }
    if not known:
        return None
    kinds = list(known)
    rows = []
    for method in _ordered(which):
        cells: list[Cell] = [Cell(text=method)]
        for kind in kinds:
            standing = known[kind]
            if method not in standing.scores.methods:
                cells += [MISSING, MISSING]
                continue
            k = standing.scores.methods.index(method)
            low, high = int(standing.ranks.lower[k]), int(standing.ranks.upper[k])
            star = "*" if standing.best.member[k] else ""
            cells += [
                Cell(text=f"{low} to {high}", small=star, key=sort_key(float(low))),
                _percent_cell(standing.gap(method)),
            ]
        rows.append(tuple(cells))
    titles = [f"{what}, {_KINDS[kind]}" for kind in kinds for what in ("Ranks", "Above lowest, %")]
    figure = rank_intervals_figure({_KINDS[kind]: standing for kind, standing in known.items()})
    return Section(
        title="Can the methods be ordered?",
        label="Ranks",
        lines=rank_lines(which),
        choices=choice_of("", [("", figure)]),
        grids=(
            number_grid(
                "Ranks by score",
                titles,
                [tuple(row) for row in rows if len(row) > 1],
                (
                    "Intervals of ranks are simultaneous, with 95 % confidence over samples of "
                    "tables. Above lowest: how far the score is above that of the lowest mean, "
                    "with its own 95 % interval. *: not significantly worse than the best.",
                ),
            ),
        ),
    )


def _corrections(which: Which) -> Section | None:
    """What each way to correct does to coverage and score."""
    arms = (RAW, *WAYS, BEST, ALL)
    covered = {arm: which.crossed("home", coverage(arm)).means() for arm in arms}
    base = which.crossed("home", log_ratio(RAW))
    gains = {}
    for arm in arms[1:]:
        other = which.crossed("home", log_ratio(arm))
        change = type(base)(
            methods=base.methods, tables=base.tables, values=other.values - base.values
        )
        gains[arm] = change.means()
    if not base.tables:
        return None
    names = {RAW: "As trained", BEST: "As advised", ALL: "Trained on all rows"}
    shown = [names.get(arm, arm.capitalize()) for arm in arms]
    methods = _ordered(which)
    return Section(
        title="What does a correction improve?",
        label="Corrections",
        lines=correction_lines(which),
        grids=(
            number_grid(
                "Coverage of 90 % intervals, %",
                shown,
                [
                    (Cell(text=m), *(_plain_share(covered[arm].get(m)) for arm in arms))
                    for m in methods
                ],
                (
                    "As trained: on 70 % of the rows. Next, the same fit corrected with the other "
                    "30 % in each way, and as advised by the verdict on them (unchanged without "
                    "advice). Last, fitted to all rows. Group: if a table has a column of labels.",
                ),
            ),
            number_grid(
                "Change of score, %",
                shown[1:],
                [
                    (Cell(text=m), *(_percent_cell(gains[arm].get(m)) for arm in arms[1:]))
                    for m in methods
                    if m != CLIMATOLOGY
                ],
                ("Against the fit as trained, on test rows; below 0 is better.",),
            ),
        ),
    )


def _plain_share(mean: MeanOf | None) -> Cell:
    if mean is None or not math.isfinite(mean.value):
        return MISSING
    return Cell(text=fixed(100 * mean.value, 1), key=sort_key(mean.value))


def _shifted(which: Which) -> Section | None:
    """Coverage on late and foreign rows, by method and by table."""
    late = which.of("shift")
    if not late:
        return None
    methods = [m for m in _ordered(which) if any(r.method == m for r in late)]
    covered = {
        "random rows, uncorrected": which.crossed("home", coverage(ALL)).means(),
        "late or foreign, uncorrected": which.crossed("shift", coverage(ALL)).means(),
        "late or foreign, corrected": which.crossed("shift", coverage(CONFORMAL)).means(),
    }
    rows = []
    for table in dict.fromkeys(result.table for result in late):
        own = [result for result in late if result.table == table and not result.failure]
        if not own:
            continue
        cells = []
        for arm in (ALL, CONFORMAL, BEST):
            shares = np.array([result.covered(arm) for result in own])
            shares = shares[np.isfinite(shares)]
            low, high = (fixed(100 * float(end), 0) for end in (shares.min(), shares.max()))
            middle = float(np.median(shares))
            cells.append(
                Cell(text=fixed(100 * middle, 0), small=f"({low} to {high})", key=sort_key(middle))
            )
        rows.append((Cell(text=table), Cell(text=own[0].by), *cells))
    return Section(
        title="Is coverage nominal on later and foreign rows?",
        label="Shift",
        lines=shift_lines(which),
        choices=choice_of("", [("", shift_figure(methods, covered))]),
        grids=(
            number_grid(
                "Coverage of 90 % intervals by table, %",
                ("Uncorrected", "Corrected", "As advised"),
                rows,
                ("The median over methods, and the range from the lowest to the highest.",),
                words=("ResultTable", "Tested on"),
            ),
        ),
    )


def _verdicts(which: Which) -> Section | None:
    """How often the verdict of `howsure assess` is red, and on what."""
    home = [result for result in which.of("home") if not result.failure]
    if not home:
        return None
    whole = ARMS.index(ALL)
    asked = [k for k in range(len(FINDINGS)) if any(result.states[whole, k] for result in home)]
    rows = []
    for method in _ordered(which):
        own = [result for result in home if result.method == method]
        if not own:
            continue
        states = np.array([result.states[whole] for result in own])
        shares = [_red(states[:, k]) for k in asked]
        worst = np.array([result.worst[whole] for result in own])
        below = worst[:, 0] - worst[:, 1]
        region = float(np.nanmean(below)) if np.isfinite(below).any() else math.nan
        rows.append(
            (
                Cell(text=method),
                *(
                    MISSING
                    if math.isnan(share)
                    else Cell(text=fixed(100 * share, 0), key=sort_key(share))
                    for share in shares
                ),
                MISSING
                if math.isnan(region)
                else Cell(text=fixed(100 * region, 1), key=sort_key(region)),
            )
        )
    return Section(
        title="Which faults does the verdict find?",
        label="Verdict",
        lines=finding_lines(which),
        grids=(
            number_grid(
                "Cuts with a fault, %",
                (*(FINDINGS[k].capitalize() for k in asked), "Region, points"),
                rows,
                (
                    "For each finding of howsure assess, on test rows of uncorrected methods: the "
                    "share of cuts with a fault. Region: coverage in the worst region, found on "
                    "one half and measured on the other, minus overall coverage.",
                ),
            ),
        ),
    )


def _red(states: np.ndarray) -> float:
    """The share of bad states among those that were asked."""
    asked = states > 0
    return float(np.mean(states[asked] == 4)) if asked.any() else math.nan


def _cost(which: Which) -> Section | None:
    """CPU seconds of fits."""
    kinds: list[Kind] = [kind for kind in _KINDS if kind != "shift" and which.of(kind)]
    if not kinds:
        return None
    rows = [
        (Cell(text=method), *(_seconds_cell(which, kind, method) for kind in kinds))
        for method in _ordered(which)
    ]
    return Section(
        title="What does a fit cost?",
        label="Cost",
        lines=cost_lines(which),
        grids=(
            number_grid(
                "CPU seconds of a fit, median over cuts",
                [_KINDS[kind] for kind in kinds],
                rows,
                ("One thread. Quantiles at 18 levels, each with its own model if needed.",),
            ),
        ),
    )


def _tables(which: Which) -> Section:
    """The tables, with their rows, and by what they are cut."""
    known, rows = entries(), []
    for table in dict.fromkeys(result.table for result in which.results):
        own = [result for result in which.results if result.table == table]
        entry = known.get(table)
        home = next((r for r in own if not r.shift), own[0])
        shift = next((r for r in own if r.shift), None)
        rows.append(
            (
                Cell(text=table),
                Cell(text=entry.what if entry else ""),
                Cell(text="" if shift is None else shift.by),
                Cell(text=entry.licence if entry else ""),
                *(Cell(text=f"{count:,}", key=str(count)) for count in home.rows),
            )
        )
    failed: dict[str, dict[str, str]] = {}
    for result in which.results:
        if result.failure:
            failed.setdefault(result.method, {})[result.table] = result.failure
    lines = [
        VerdictLine(
            text=f"{method} has no numbers on {listed(where, 3)}.",
            tone="caution",
            question="Lacking",
        )
        for method, where in failed.items()
    ]
    return Section(
        title="Which tables were used?",
        label="Tables",
        lines=tuple(lines),
        grids=(
            number_grid(
                "Rows of a random cut",
                ("Training", "Calibration", "Test"),
                rows,
                (
                    "Rows of one unit, such as a person or a day, are in one part only. The "
                    "licence is as stated by the data or the package that contains them.",
                    *(f"{m} on {t}: {why}." for m, own in failed.items() for t, why in own.items()),
                ),
                words=("ResultTable", "What is predicted", "Late or foreign rows", "Licence"),
            ),
        ),
    )
