"""Figures of a page on congruence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from howsure.core.records import Curve
from howsure.figures import Figure
from howsure.figures.congruence_over_x import (
    LawOverX,
    calibration_figure,
    input_figure,
    law_figure,
)
from howsure.figures.congruence_studies import (
    Dots,
    diagnosis_figure,
    models_figure,
    rejection_figure,
    severity_figure,
    variation_figure,
)
from howsure.figures.figure import REFERENCE
from howsure.figures.palette import SERIES_LIMIT
from howsure.protocols.congruence import TRUTH
from howsure.protocols.congruence_bundle import CongruenceStudies, ModelBeliefs
from howsure.protocols.congruence_diagnosis import Diagnosis
from howsure.protocols.congruence_perturbations import MonotonicityResult
from howsure.protocols.congruence_rejection import Rejection
from howsure.protocols.congruence_reliability import Reliability
from howsure.protocols.congruence_result import CongruenceRun
from howsure.protocols.congruence_views import over_input
from howsure.report.congruence_findings import Found
from howsure.report.document import Choice, Option

ALL: Final = "all models"
INSIDE: Final = 0.95
"""Nominal coverage of the intervals that `ModelBeliefs` holds."""


def colours_of(models: Sequence[str]) -> dict[str, int]:
    """One colour a model, the last of all for the true law."""
    places = {name: place for place, name in enumerate(m for m in models if m != TRUTH)}
    return {**places, TRUTH: SERIES_LIMIT - 1}


def models_panel(found: Sequence[Found], *, counts: bool) -> Choice | None:
    """CCE and ECE of every model, beside a right model and the published."""
    figures = []
    cce = {one.model: one.mean("cce") for one in found}
    if any(map(math.isfinite, cce.values())):
        nulls = {one.model: one.mean("cce_null") for one in found}
        dots = [
            Dots(
                series="here, ± sd over data",
                values=cce,
                spreads={one.model: one.data_sd("cce") for one in found},
            ),
            Dots(series="a right model", values=nulls, colour=REFERENCE),
            Dots(series="published", values=_printed(found, "cce"), colour=1),
        ]
        figures.append(models_figure(dots, "cce", models=[one.model for one in found]))
    cells = {one.model: one.mean("ece_exact") for one in found}
    if any(map(math.isfinite, cells.values())):
        plain = {one.model: one.mean("ece") for one in found}
        dots = [Dots(series="spread over cells" if counts else "here", values=cells)]
        if counts:
            dots.append(Dots(series="by P(Y ≤ y)", values=plain, colour=2))
        dots.append(Dots(series="published", values=_printed(found, "ece"), colour=1))
        note = "By P(Y ≤ y), laws of counts have a large ECE even when right." if counts else ""
        figures.append(models_figure(dots, "ece", models=[one.model for one in found], note=note))
    return _panel("", [("", figures)]) if figures else None


def _printed(found: Sequence[Found], measure: str) -> dict[str, float]:
    return {one.model: row.value for one in found for row in one.printed if row.measure == measure}


def input_panel(
    studies: CongruenceStudies,
    found: Sequence[Found],
    places: Mapping[str, int],
) -> Choice | None:
    """Beliefs, calibration and CCE over the only column of x, of one set of data."""
    curves = over_x(studies)
    calibrations = _calibrations(studies)
    held = {one.model: one for one in studies.beliefs if one.x is not None}
    known = {one.model: one for one in found}
    whole = [input_figure(list(curves.values()), places)] if len(curves) > 1 else []
    if len(calibrations) > 1:
        whole.append(calibration_figure(calibrations, places))
    options = [(ALL, whole)] if whole else []
    names = list(dict.fromkeys((*held, *curves, *(curve.model for curve in calibrations))))
    for name in names:
        figures = []
        colour = places.get(name, 0)
        if name in held:
            figures.append(law_figure(_law(held[name]), units=studies.units, colour=colour))
        own = [curve for curve in calibrations if curve.model == name]
        if own:
            figures.append(calibration_figure(own[:1], places))
        if name in curves:
            null, words = known[name].yardstick if name in known else (math.nan, "")
            words = f"{words}, mean over x"
            figures.append(input_figure([curves[name]], places, null=null, yardstick=words))
        options.append((name, figures))
    return _panel("Model", options)


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


def severity_panel(result: MonotonicityResult, places: Mapping[str, int]) -> Choice | None:
    """Measures against severity, one option a perturbation."""
    table = result.table()
    options = []
    for kind in dict.fromkeys(curve.kind for curve in result.curves):
        held = [curve.values for curve in result.curves if curve.kind == kind]
        figures = [
            severity_figure(table, kind, measure, places)
            for measure in ("cce", "ece")
            if any(np.isfinite(values[measure].mean(axis=0)).any() for values in held)
        ]
        options.append((kind.replace("_", " "), figures))
    return _panel("Perturbation", options)


def rejection_panel(
    rejections: Sequence[Rejection], places: Mapping[str, int], note: str = ""
) -> Choice | None:
    """What rejection leaves, one option a model; of several sets of data the first."""
    first: dict[str, Rejection] = {}
    for one in rejections:
        first.setdefault(one.model, one)
    options = [
        (
            model,
            [
                rejection_figure(curve, colour=places.get(model, 0), note=note)
                for curve in one.drawn()
            ],
        )
        for model, one in first.items()
    ]
    return _panel("Rejection by the CCE of", options)


def diagnosis_panel(
    diagnoses: Sequence[Diagnosis], places: Mapping[str, int], note: str = ""
) -> Choice | None:
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
    drawn = []
    for label, chosen in options:
        figure = diagnosis_figure(chosen, places)
        drawn.append((label, [replace(figure, notes=(*figure.notes, *filter(None, [note])))]))
    return _panel("Diagnosis of", drawn)


def variation_panel(found: Reliability) -> Choice | None:
    """Coefficients of variation by task and model."""
    if not (np.isfinite(found.cce) & np.isfinite(found.ece)).any():
        return None
    return _panel("", [("", [variation_figure(found.table())])])


def _panel(label: str, options: Sequence[tuple[str, Sequence[Figure]]]) -> Choice | None:
    """A panel of the options that have figures; None where none has."""
    held = tuple(Option(label=name, figures=tuple(figures)) for name, figures in options if figures)
    return Choice(label=label, options=held) if held else None
