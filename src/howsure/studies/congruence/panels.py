"""Figures of a page on congruence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from howsure.core.records import Curve
from howsure.figures import Figure
from howsure.figures.figure import REFERENCE
from howsure.figures.palette import SERIES_LIMIT
from howsure.report.document import Choice
from howsure.studies.congruence.bundle import CongruenceStudies, ModelBeliefs
from howsure.studies.congruence.diagnosis import Diagnosis
from howsure.studies.congruence.figures import (
    Dots,
    diagnosis_figure,
    models_figure,
    rejection_figure,
    severity_figure,
)
from howsure.studies.congruence.findings import CORRECT, Found
from howsure.studies.congruence.over_x import (
    LawOverX,
    calibration_figure,
    input_figure,
    law_figure,
)
from howsure.studies.congruence.perturbations import MonotonicityResult
from howsure.studies.congruence.rejection import Rejection
from howsure.studies.congruence.result import CongruenceRun
from howsure.studies.congruence.suite import TRUTH
from howsure.studies.congruence.views import over_input
from howsure.studies.engine import choice_of

ALL: Final = "all models"
INSIDE: Final = 0.95
"""Nominal coverage of the intervals that `ModelBeliefs` holds."""


def colours_of(models: Sequence[str]) -> dict[str, int]:
    """One colour a model, the last of all for the true distribution."""
    places = {name: place for place, name in enumerate(m for m in models if m != TRUTH)}
    return {**places, TRUTH: SERIES_LIMIT - 1}


def cce_figure(found: Sequence[Found]) -> Figure | None:
    """CCE of every model, beside a correctly specified one."""
    cce = {one.model: one.mean("cce") for one in found}
    if not any(map(math.isfinite, cce.values())):
        return None
    dots = [
        Dots(
            series="CCE, ± sd over bootstrap samples",
            values=cce,
            spreads={one.model: one.data_sd("cce") for one in found},
        ),
        Dots(
            series=CORRECT,
            values={one.model: one.mean("cce_null") for one in found},
            colour=REFERENCE,
        ),
    ]
    return models_figure(dots, "cce", models=list(cce))


def ece_figure(found: Sequence[Found], *, counts: bool) -> Figure | None:
    """ECE of every model."""
    cells = {one.model: one.mean("ece_exact") for one in found}
    if not any(map(math.isfinite, cells.values())):
        return None
    dots = [Dots(series="spread over cells" if counts else "ECE", values=cells)]
    note = ""
    if counts:
        plain = {one.model: one.mean("ece") for one in found}
        dots.append(Dots(series="by P(Y ≤ y)", values=plain, colour=2))
        note = "By P(Y ≤ y), predictive distributions of counts have a large ECE even when correct."
    return models_figure(dots, "ece", models=list(cells), note=note)


def input_choices(
    studies: CongruenceStudies, found: Sequence[Found], places: Mapping[str, int]
) -> tuple[Choice, ...]:
    """Predictions, CCE and calibration over the only column of x, of one set of data."""
    curves = over_x(studies)
    calibrations = {curve.model: curve for curve in _calibrations(studies)}
    held = {one.model: one for one in studies.beliefs if one.x is not None}
    known = {one.model: one for one in found}
    predictions = [
        (name, law_figure(_law(one), units=studies.units, colour=places.get(name, 0)))
        for name, one in held.items()
    ]
    errors = [(ALL, input_figure(list(curves.values()), places))] if len(curves) > 1 else []
    for name, curve in curves.items():
        null, words = known[name].yardstick if name in known else (math.nan, "")
        figure = input_figure([curve], places, null=null, yardstick=f"{words}, mean over x")
        errors.append((name, figure))
    together = [calibration_figure(list(calibrations.values()), places)] if calibrations else []
    return (
        *choice_of("Model", errors),
        *choice_of("Model", predictions),
        *choice_of("", [("", figure) for figure in together]),
    )


def _calibrations(studies: CongruenceStudies) -> list[Curve]:
    """Share of rows whose P(Y ≤ y) is at most each level, of the models with one input."""
    levels = np.linspace(0.0, 1.0, 101)
    return [
        Curve(
            name="calibration",
            x=levels,
            y=np.searchsorted(np.sort(one.pit), levels, side="right") / len(one.pit),
            model=one.model,
        )
        for one in studies.beliefs
        if one.pit is not None and one.x is not None
    ]


def over_x(studies: CongruenceStudies) -> dict[str, Curve]:
    """CCE over the only column of x by model, of one set of data."""
    held = {one.model: one.x for one in studies.beliefs}
    found = {}
    for run in studies.result.runs:
        x = held.get(run.model)
        if x is not None and run.rows and len(x) == run.n:
            found[run.model] = _banded(over_input(run, x)[0], run)
    return found


def _banded(curve: Curve, run: CongruenceRun) -> Curve:
    """The curve with its band, where it has one."""
    if np.isfinite(run.rows["cce_sd"]).all():
        return curve
    return replace(curve, lower=None, upper=None, band="")


def _law(held: ModelBeliefs) -> LawOverX:
    assert held.x is not None
    return LawOverX(
        model=held.model,
        x=held.x,
        y=held.y,
        point=held.point,
        lower=held.lower,
        upper=held.upper,
        coverage=INSIDE,
    )


def severity_choices(result: MonotonicityResult, places: Mapping[str, int]) -> tuple[Choice, ...]:
    """Measures against severity, one option a perturbation."""
    table = result.table()
    made: list[Choice] = []
    for measure in ("cce", "ece"):
        kinds = dict.fromkeys(
            curve.kind
            for curve in result.curves
            if np.isfinite(curve.values[measure].mean(axis=0)).any()
        )
        options = [
            (kind.replace("_", " "), severity_figure(table, kind, measure, places))
            for kind in kinds
        ]
        made += choice_of("Perturbation", options)
    return tuple(made)


def rejection_choices(
    rejections: Sequence[Rejection], places: Mapping[str, int], note: str = ""
) -> tuple[Choice, ...]:
    """What rejection leaves, one option a model; of several sets of data the first."""
    first: dict[str, Rejection] = {}
    for one in rejections:
        first.setdefault(one.model, one)
    held: dict[str, list[tuple[str, Figure]]] = {}
    for model, one in first.items():
        for curve in one.drawn():
            figure = rejection_figure(curve, colour=places.get(model, 0), note=note)
            held.setdefault(curve.name, []).append((model, figure))
    return tuple(made for options in held.values() for made in choice_of("Model", options))


def diagnosis_choices(
    diagnoses: Sequence[Diagnosis], places: Mapping[str, int], note: str = ""
) -> tuple[Choice, ...]:
    """CCE without labels against the true error, all models and each."""
    first: dict[str, Diagnosis] = {}
    for one in diagnoses:
        first.setdefault(one.model, one)
    tables = {
        model: one.table()
        for model, one in first.items()
        if (np.isfinite(one.cce) & np.isfinite(one.error)).any()
    }
    options = [(ALL, list(tables.values()))] if len(tables) > 1 else []
    options += [(model, [table]) for model, table in tables.items()]
    drawn = [(label, diagnosis_figure(chosen, places)) for label, chosen in options]
    notes = (note,) if note else ()
    return choice_of("Model", [(n, replace(f, notes=(*f.notes, *notes))) for n, f in drawn])
