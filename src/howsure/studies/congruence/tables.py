"""Tables of a page on congruence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from howsure.core import formats
from howsure.core.records import Table
from howsure.report.document import Cell, Column, Grid, Rows
from howsure.report.grids import number_cell, sort_key
from howsure.studies.congruence.findings import CORRECT, Found, World, mean_known, printed_source
from howsure.studies.congruence.perturbations import MonotonicityResult
from howsure.studies.congruence.result import TITLES

MISSING: Final = Cell(text=formats.MISSING)
_PRINTED: Final[Mapping[str, str]] = {"mae": "MAE", "cce": "CCE", "ece": "ECE", "nll": "NLL"}
_CHANGES: Final = ("NLL", "ECE", "CCE")


def models_grid(world: World, found: Sequence[Found]) -> Grid | None:
    """Measures of every model."""
    if not found:
        return None
    rows = []
    for one in found:
        cce, (null, words) = one.mean("cce"), one.yardstick
        spreads = (one.draws_sd, one.data_sd("cce"))
        known = math.isfinite(cce) and any(map(math.isfinite, spreads))
        small = f"± {' / '.join(map(_decimals, spreads))}" if known else ""
        rows.append(
            (
                Cell(text=one.model),
                _three(one.mean("mae")),
                replace(_three(cce), small=small),
                replace(_three(null), small=words.replace(CORRECT, "")),
                ratio_cell(one.ratio),
                _three(one.mean("ece"), one.data_sd("ece")),
                _three(one.mean("ece_exact")),
                _three(one.mean("nll"), one.data_sd("nll")),
            )
        )
    units = "" if world.studies[0].units in ("", "1", "y") else f" ({world.studies[0].units})"
    titles = (f"MAE{units}", "CCE", "CCE if correct", "Ratio", "ECE", "ECE, cells", "NLL (nats)")
    notes = [
        "CCE ± its sd over sets of draws / over bootstrap samples of the rows; ECE and NLL ± the "
        "latter. CCE if correct: what these predictive distributions would have if they were "
        "correct. ECE is by P(Y ≤ y); in cells, spread over the cell of each count.",
    ]
    if world.several:
        notes.append(f"Means over {len(world.studies)} sets of data; spreads are those within one.")
    notes += _told_reasons(found)
    notes += dict.fromkeys(note for part in world.studies for note in part.notes)
    return grid_of("Models", ("Model", *titles), rows, notes)


def _told_reasons(found: Sequence[Found]) -> list[str]:
    """Why measures are missing: each reason once, with whose and of what."""
    held: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for one in found:
        for measure, reason in one.reasons.items():
            models, measures = held.setdefault(reason, ({}, {}))
            models[one.model] = None
            measures[TITLES.get(measure, measure)] = None
    notes = []
    for reason, (models, measures) in held.items():
        whose = "All models" if len(models) == len(found) > 1 else ", ".join(models)
        notes.append(f"{whose}, no {', '.join(measures)}: {reason}.")
    return notes


def published_rows(found: Sequence[Found]) -> list[tuple[Found, str, float, float, float, str]]:
    """Numbers of the paper beside ours: model, measure, ours, its sd, the printed, what is odd.

    Ours is the mean over sets of data (of CCE, over bootstrap samples where there are some; of NLL,
    without the double Poisson constant), its sd over sets of data, else over bootstrap samples.
    """
    rows = []
    for one in found:
        for row in one.printed:
            if row.measure not in _PRINTED:
                continue
            name = "nll_unnormalised" if row.measure == "nll" else row.measure
            ours = one.bootstrap_mean("cce") if name == "cce" else one.mean(name)
            spread = one.seed_sd(name)
            if math.isnan(spread):
                spread = one.data_sd(row.measure)
            rows.append((one, row.measure, ours, spread, row.value, row.note))
    return rows


def published_table(worlds: Sequence[World]) -> Table | None:
    """Numbers of the paper beside ours as a table; None where it prints none of these."""
    rows = [row for world in worlds for row in published_rows(world.found)]
    if not rows:
        return None
    return Table(
        name="congruence_published",
        columns={
            "task": np.array([row[0].world for row in rows], dtype=object),
            "model": np.array([row[0].model for row in rows], dtype=object),
            "measure": np.array([row[1] for row in rows], dtype=object),
            **{
                name: np.array([row[place] for row in rows], dtype=np.float64)
                for place, name in ((2, "ours"), (3, "sd"), (4, "published"))
            },
            "note": np.array([row[5] for row in rows], dtype=object),
        },
        labels={"sd": "sd over sets of data, else over bootstrap samples"},
        notes="Young et al. 2025, figure 2 and table 2.",
    )


def published_grid(found: Sequence[Found]) -> Grid | None:
    """Numbers of the paper beside ours, one row a model; None where it prints none of these."""
    rows = published_rows(found)
    if not rows:
        return None
    shown = [measure for measure in _PRINTED if any(row[1] == measure for row in rows)]
    held = {(row[0].model, row[1]): row for row in rows}
    cells = []
    for one in dict.fromkeys(row[0] for row in rows):
        odd = [f"{_PRINTED[m]}: {held[one.model, m][5]}" for m in shown if held[one.model, m][5]]
        line = [Cell(text=one.model, small="; ".join(odd))]
        for measure in shown:
            _, _, ours, spread, theirs, _ = held[one.model, measure]
            line += [_three(ours, spread), _three(theirs, _printed_sd(one, measure))]
        cells.append(tuple(line))
    first = rows[0][0]
    source = (printed_source(first.task) or printed_source(first.world) or ("", ""))[0]
    notes = (
        f"Published: {source} of Young et al. 2025, with ± their standard deviations where they "
        "are printed. Ours is ± the sd over sets of data or, of one set, over bootstrap samples; "
        "CCE is the mean over those, NLL is without the double Poisson constant. Rows and networks "
        "differ: compare patterns, not values.",
    )
    titles = [title for m in shown for title in (f"{_PRINTED[m]}, here", "published")]
    return grid_of("Beside the published", ("Model", *titles), cells, notes)


def _printed_sd(one: Found, measure: str) -> float:
    return next((row.value for row in one.printed if row.measure == f"{measure}_sd"), math.nan)


def trends_grid(result: MonotonicityResult) -> Grid:
    """Where CCE begins and ends under each perturbation, and Page's test."""
    parts = []
    for kind in dict.fromkeys(curve.kind for curve in result.curves):
        rows = []
        for curve in result.curves:
            if curve.kind != kind:
                continue
            means = curve.values["cce"].mean(axis=0)
            steps = len(means) - 1
            up = curve.steps_up()
            rows.append(
                (
                    Cell(text=curve.model),
                    _three(float(means[0])),
                    _three(float(means[-1])),
                    Cell(text=f"{round(up * steps)} of {steps}", key=repr(up)),
                    *(p_cell(curve.page(measure)[1]) for measure in ("cce", "ece", "nll")),
                )
            )
        parts.append(Rows(title=headed_kind(kind, result), rows=tuple(rows)))
    trials = sorted({len(curve.values["cce"]) for curve in result.curves})
    gamma = "stays that of the unperturbed rows"
    if result.options.get("gamma_of_y") == "each":
        gamma = "is set anew for each"
    notes = (
        f"Mean CCE of the unperturbed data and at the highest severity, over "
        f"{' or '.join(map(str, trials))} trials; steps between severities at which it rises; p of "
        f"Page's test of a rising trend, of each measure. γ of y {gamma}. Trials are bootstrap "
        "samples of one test part, so p does not apply to other models and data.",
    )
    titles = ("Unperturbed", "Highest", "Steps up", "p, CCE", "p, ECE", "p, NLL")
    columns = (Column(title="Model"), *(Column(title=t, numeric=True) for t in titles))
    return Grid(title="Perturbed data", columns=columns, parts=tuple(parts), notes=notes)


def headed_kind(kind: str, result: MonotonicityResult) -> str:
    """A perturbation with its severities."""
    levels = next(curve.severities for curve in result.curves if curve.kind == kind)
    told = ", ".join(formats.number(float(level), 3) for level in levels[1:])
    return f"{kind.replace('_', ' ').capitalize()}: {told}"


def rejected_grid(world: World) -> Grid | None:
    """Losses of the rows kept, and gains with p."""
    held = world.rejections
    if not held:
        return None
    parts = []
    for loss, title in (("mae", "MAE"), ("nll", "NLL")):
        rows = []
        for model in dict.fromkeys(one.model for one in held):
            own = [one for one in held if one.model == model and loss in one.curves]
            if not own:
                continue
            curves = [one.curves[loss] for one in own]
            kept = [
                mean_known(float(curve.error[int(share * len(curve.error))]) for curve in curves)
                for share in (0.0, 0.2, 0.5)
            ]
            gain = [curve.gain for curve in curves]
            rows.append(
                (
                    Cell(text=model),
                    *map(_three, kept),
                    number_cell(mean_known(gain), _spread(_sd(gain)), digits=2),
                    p_cell(max(one.p_values[loss] for one in own)),
                )
            )
        if rows:
            parts.append(Rows(title=title, rows=tuple(rows)))
    titles = ("All rows", "20 % rejected", "50 % rejected", "Gain", "p")
    several = "; of several sets of data, ± the sd of the gain, and the largest p"
    notes = (
        "Mean loss of the rows kept as those of highest CCE are rejected; CCE uses labels of "
        "validation rows only. Gain: 1 for the best order, 0 for a random one. p: share of "
        f"random orders that do as well{several if world.several else ''}. CCE finds wrong "
        "distributions, not large errors: a far too wide one may have small errors.",
    )
    columns = (Column(title="Model"), *(Column(title=t, numeric=True) for t in titles))
    return Grid(title="Rejection", columns=columns, parts=tuple(parts), notes=notes)


def diagnosed_grid(world: World) -> Grid | None:
    """Correlations of CCE and NLL with the true error."""
    rows = []
    for model in dict.fromkeys(one.model for one in world.diagnoses):
        own = [one for one in world.diagnoses if one.model == model]
        cells = [Cell(text=model)]
        for score in ("cce", "nll"):
            pairs = [one.correlation(score) for one in own]
            for place in (0, 1):
                values = [pair[place] for pair in pairs]
                cells.append(number_cell(mean_known(values), _spread(_sd(values)), digits=2))
        rows.append(tuple(cells))
    if not rows:
        return None
    titles = ("CCE, Spearman", "CCE, Pearson", "NLL, Spearman", "NLL, Pearson")
    notes = (
        "Correlations over test inputs with the exact distance from the true distribution. CCE "
        "uses labels of validation rows only; NLL uses those of the test rows.",
    )
    return grid_of("Diagnosis without labels", ("Model", *titles), rows, notes)


def outliers_grid(world: World) -> Grid | None:
    """Relative changes as rows are perturbed, means over sets of data."""
    parts = []
    held = world.robustness
    models = dict.fromkeys(one.model for one in held)
    settings = dict.fromkeys(
        pair for one in held for pair in zip(one.settings, one.spoilt.tolist(), strict=True)
    )
    for setting, spoilt in settings:
        if not spoilt:
            continue
        rows = []
        for model in models:
            changes: dict[str, list[float]] = {"nll": [], "ece": [], "cce": []}
            for one in (one for one in held if one.model == model):
                pairs = list(zip(one.settings, one.spoilt.tolist(), strict=True))
                if (setting, spoilt) in pairs:
                    for measure, values in changes.items():
                        change = one.relative_change(measure)[pairs.index((setting, spoilt))]
                        values.append(float(change))
            if changes["cce"]:
                cells = (_percent(mean_known(values)) for values in changes.values())
                rows.append((Cell(text=model), *cells))
        count = "1 row" if spoilt == 1 else f"{spoilt} rows"
        parts.append(Rows(title=f"{setting.capitalize()}, {count}", rows=tuple(rows)))
    if not parts:
        return None
    columns = (Column(title="Model"), *(Column(title=t, numeric=True) for t in _CHANGES))
    notes = (
        "Relative change of each measure as a few rows are perturbed, with γ of y and draws fixed. "
        "NLL has no bound, and may be near 0, where a relative change says little.",
    )
    return Grid(title="Outliers", columns=columns, parts=tuple(parts), notes=notes)


def grid_of(
    title: str,
    titles: Sequence[str],
    rows: Sequence[tuple[Cell, ...]],
    notes: Sequence[str],
) -> Grid:
    columns = (Column(title=titles[0]), *(Column(title=t, numeric=True) for t in titles[1:]))
    return Grid(title=title, columns=columns, parts=(Rows(rows=tuple(rows)),), notes=tuple(notes))


def ratio_cell(value: float) -> Cell:
    """A ratio."""
    return MISSING if math.isnan(value) else Cell(text=f"{value:,.2f}", key=sort_key(value))


def _spread(value: float) -> str:
    return "" if math.isnan(value) else f"± {formats.number(value, 2)}"


def p_cell(value: float) -> Cell:
    """A p-value."""
    return Cell(text=formats.p_value(float(value)), key=sort_key(value))


def _percent(value: float) -> Cell:
    if math.isnan(value):
        return MISSING
    text = f"{100 * value:+.1f}" if abs(value) < 1 else f"{100 * value:+,.0f}"
    return Cell(text=f"{formats.minus(text)} %", key=sort_key(value))


def _three(value: float, spread: float = math.nan) -> Cell:
    """A number with three decimals, as the paper has them."""
    if math.isnan(value):
        return MISSING
    small = "" if math.isnan(spread) else f"± {_decimals(spread)}"
    return Cell(text=_decimals(value), small=small, key=sort_key(value))


def _decimals(value: float) -> str:
    """Three decimals; three digits where those would say nothing, or too much."""
    if math.isnan(value) or abs(value) >= 1000 or 0 < abs(value) < 0.0005:
        return formats.number(value, 3)
    return f"{value:.3f}".replace("-", "−")


def _sd(values: Sequence[float]) -> float:
    known = [value for value in values if math.isfinite(value)]
    return float(np.std(known, ddof=1)) if len(known) > 1 else math.nan
