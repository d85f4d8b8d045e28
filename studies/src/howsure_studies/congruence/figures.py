"""Figures of the congruence study; those of the paper are of Young et al. 2025."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final, TypeVar, final

import numpy as np

from howsure.core import formats
from howsure.core.arrays import AnyArray, FloatArray, as_vector
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.records import Curve, ResultTable
from howsure.core.registry import check_known
from howsure.core.text import distinct, headed, one_line
from howsure.figures.figure import REFERENCE, Axis, Figure, Layer, Mark, number, sample_points
from howsure.figures.palette import SERIES_LIMIT
from howsure.report.document import Choice
from howsure_studies.congruence.measure import TRUTH
from howsure_studies.congruence.reliability import Reliability
from howsure_studies.congruence.result import (
    CongruenceRun,
    CongruenceStudies,
    Diagnosis,
    ModelPredictions,
    Monotonicity,
    MonotonicityResult,
    Rejection,
    banded,
)
from howsure_studies.congruence.sentences import CORRECT, ModelFinding
from howsure_studies.engine import choice_of

MOST_POINTS: Final = 300
"""The most points of a line, or of one model's cloud."""
LAST_SHARE: Final = 0.95
"""Where rejection curves end: the few rows kept beyond it decide alone what is drawn."""
INSIDE: Final = 0.95
"""Nominal coverage of the intervals that `ModelPredictions` holds."""
ALL: Final = "all models"
Places = Mapping[str, int]
"""Colours by model."""
NO_PLACES: Final[Places] = {}
_NONE: Final = np.zeros(0)
R = TypeVar("R", Rejection, Diagnosis)


def law_figure(law: ModelPredictions, *, units: str = "y", colour: int = 0) -> Figure:
    """Data over x with one model's predictions and central intervals: the first row of figure 2."""
    given = law.x if law.x is not None else np.zeros(0)
    columns = (given, law.y, law.point, law.lower, law.upper)
    if not len(given) or len({len(column) for column in columns}) > 1:
        raise InputError(
            f"law must have columns of one length, not empty, got {[len(c) for c in columns]}"
        )
    order = np.argsort(given, kind="stable")
    rows = order[sample_points(given[order], MOST_POINTS)]
    x, y, point, lower, upper = (column[rows] for column in columns)
    share, name = formats.level(INSIDE), one_line(law.model, 60)
    dots: dict[str, Any] = {"series": "test rows", "colour": REFERENCE, "size": 0.5}
    band = f"central {share}"
    return Figure(
        name="congruence_law",
        question=f"What does the model predict, and what was observed? ({name})",
        title=f"Predictions over x, {name}",
        reading=f"The band should contain {share} of the rows at every x, not only overall.",
        x=Axis(title="x"),
        y=Axis(title=headed(units)),
        layers=(
            Layer(mark=Mark.BAND, x=x, lower=lower, upper=upper, series=band, colour=colour),
            Layer(mark=Mark.LINE, x=x, y=point, series="point prediction", colour=colour),
            Layer(mark=Mark.POINTS, x=x, y=y, **dots),
        ),
        notes=shown(len(rows), len(given)),
        naming="Row",
    )


def calibration_figure(curves: Sequence[Curve], places: Places = NO_PLACES) -> Figure:
    """Observed share by nominal level, one line a model: the second row of figure 2."""
    lines = _lines(curves, places)
    ends = np.array([0.0, 1.0])
    level = Layer(mark=Mark.LINE, x=ends, y=ends, series="perfect calibration", colour=REFERENCE)
    return Figure(
        name="congruence_calibration",
        question="Is the model calibrated over all rows?",
        title="Calibration over all rows",
        reading=(
            "ECE measures the distance from the diagonal; errors at different x may cancel. "
            "Predictive distributions of counts leave the diagonal even when correct."
        ),
        x=Axis(title="Nominal level", kind="percent", domain=(0.0, 1.0)),
        y=Axis(title="Observed share", kind="percent", domain=(0.0, 1.0)),
        layers=(level, *lines),
    )


def input_figure(
    curves: Sequence[Curve],
    places: Places = NO_PLACES,
    *,
    null: float = np.nan,
    yardstick: str = "a correctly specified model, on average",
) -> Figure:
    """CCE over the only column of x, one line a model with its band: the third row of figure 2."""
    lines = _lines(curves, places)
    bands = [
        replace(line, mark=Mark.BAND, y=_NONE, series=f"band of {line.series}", listed=False)
        for line in lines
        if len(line.lower)
    ]
    rules = []
    if np.isfinite(null):
        rules = [Layer(mark=Mark.RULE, y=np.array([null]), series=yardstick, colour=REFERENCE)]
    return Figure(
        name="congruence_cce",
        question="Where are the predictive distributions wrong?",
        title="CCE at x",
        reading="A line is high where the predictive distribution differs from the data.",
        x=Axis(title="x"),
        y=Axis(title="CCE at x", zero=True),
        layers=(*bands, *rules, *lines),
        notes=tuple(dict.fromkeys(f"Shaded: {one_line(c.band, 200)}." for c in curves if c.band)),
    )


def _layer(mark: Mark, rows: AnyArray, **columns: Any) -> Layer:
    """A layer of some rows of its columns."""
    shown: dict[str, Any] = {
        k: col[rows] if isinstance(col, np.ndarray) else col for k, col in columns.items()
    }
    return Layer(mark=mark, **shown)


def _lines(curves: Sequence[Curve], places: Places) -> list[Layer]:
    """A line a curve, thinned, with the ends of its band where it has one."""
    if not curves:
        raise InputError("curves must contain at least one, got none")
    names = distinct([curve.model or "model" for curve in curves])
    lines = []
    for index, (name, curve) in enumerate(zip(names, curves, strict=True)):
        rows = np.flatnonzero(np.isfinite(curve.x) & np.isfinite(curve.y))
        rows = rows[sample_points(curve.x[rows], MOST_POINTS)]
        colour = places.get(curve.model, index)
        line = _layer(Mark.LINE, rows, x=curve.x, y=curve.y, series=name, colour=colour)
        if curve.lower is not None and curve.upper is not None:
            low, high = np.maximum(curve.lower[rows], 0.0), curve.upper[rows]
            if np.isfinite([low, high]).all():
                line = replace(line, lower=low, upper=high)
        lines.append(line)
    return lines


def shown(drawn: int, rows: int) -> tuple[str, ...]:
    """What to say where not all rows are drawn."""
    return (f"Shown: {drawn:,} of {rows:,} rows.",) if drawn < rows else ()


_TITLES: Final[Mapping[str, str]] = {"cce": "CCE", "ece": "ECE"}
_KINDS: Final[Mapping[str, str]] = {
    "blur": "sd of the blur, pixels",
    "label_shift": "mean of the noise on y",
    "label_noise": "sd of the noise on y",
    "mixup": "share of another row",
}


@final
@frozen(kw_only=True)
class Dots:
    """One series of a dot plot of models."""

    series: str
    values: Mapping[str, float]
    spreads: Mapping[str, float] = field(default_factory=dict)
    colour: int = 0


def severity_figure(
    curves: Sequence[Monotonicity], measure: str = "cce", places: Places = NO_PLACES
) -> Figure:
    """A measure against the severity of one perturbation, one line a model (section 4.4)."""
    check_known(measure, _TITLES, "measure")
    layers = []
    for index, (model, curve) in enumerate((c.model, c.drawn(measure)) for c in curves):
        known = np.isfinite(curve.y)
        words = {
            "x": curve.x,
            "series": one_line(model, 60) or "(empty)",
            "colour": places.get(model, index),
        }
        if known.any() and curve.lower is not None:
            ends = {"lower": curve.lower, "upper": curve.upper}
            layers.append(_layer(Mark.INTERVALS, known, **ends, **words))
        if known.any():
            layers += [_layer(m, known, y=curve.y, **words) for m in (Mark.LINE, Mark.POINTS)]
    if not layers:
        raise InputError(f"curves must contain a known {measure}, got none")
    title, kind = _TITLES[measure], curves[0].kind
    perturbation = one_line(kind.replace("_", " "), 60)
    return Figure(
        name=f"congruence_{measure}_by_severity",
        question=f"Does {title} rise as the data are perturbed? ({perturbation})",
        title=f"{title} by severity of {perturbation}",
        reading="The first point is the unperturbed data. Vertical lines: ± one sd over trials.",
        x=Axis(title=headed(_KINDS.get(kind, "severity"))),
        y=Axis(title=f"Mean {title}", zero=True),
        layers=tuple(layers),
    )


def rejection_figure(curve: Curve, *, colour: int = 0, note: str = "") -> Figure:
    """Loss of the rows kept by share withheld, beside random order and the best (appendix A.3)."""
    inside = np.flatnonzero(curve.x <= LAST_SHARE)
    if not len(inside):
        raise InputError(f"curve must contain a share of at most {LAST_SHARE:g}, got none")
    rows = inside[sample_points(curve.x[inside], MOST_POINTS)]
    name, loss = one_line(curve.model, 60), "NLL" if curve.name.endswith("nll") else "error"
    x, oracle, band = curve.x, curve.hover["oracle"], one_line(curve.band, 60)
    grey = {"x": x, "colour": REFERENCE}
    return Figure(
        name=curve.name,
        question=f"Does rejecting rows of high CCE lower the {loss}? ({name})",
        title=f"{headed(curve.y_label)}, {name}",
        reading=(
            "CCE uses no label of these rows. Below the band, rejecting by CCE beats a random "
            "order; the oracle rejects the largest losses first."
        ),
        x=Axis(title="Share of rows rejected", kind="percent", domain=(0.0, 1.0)),
        y=Axis(title=headed(curve.y_label)),
        layers=(
            _layer(Mark.BAND, rows, lower=curve.lower, upper=curve.upper, series=band, **grey),
            _layer(Mark.LINE, rows, y=curve.reference, series="random order", **grey),
            _layer(Mark.LINE, rows, y=oracle, series="oracle order", faint=True, **grey),
            _layer(Mark.LINE, rows, x=x, y=curve.y, series="highest CCE first", colour=colour),
        ),
        notes=_noted(note),
    )


def _noted(note: str) -> tuple[str, ...]:
    return (one_line(note, 400),) if note else ()


def diagnosis_figure(
    tables: Sequence[ResultTable], places: Places = NO_PLACES, note: str = ""
) -> Figure:
    """CCE at unlabelled inputs against the true error there, a colour a model (section 4.7)."""
    names = distinct([table.model or "model" for table in tables])
    layers, notes = [], []
    for index, (name, table) in enumerate(zip(names, tables, strict=True)):
        error, cce = number(table, "error"), number(table, "cce")
        if error is None or cce is None:
            raise InputError(f"tables must have error and cce, got {', '.join(table.columns)}")
        known = np.flatnonzero(np.isfinite(error) & np.isfinite(cce))
        rows = known[:: max(1, -(-len(known) // MOST_POINTS))]
        notes += [f"{name}: {words}" for words in shown(len(rows), len(known))]
        if len(rows):
            labels = tuple(f"test row {row}" for row in rows)
            words = {"series": name, "colour": places.get(table.model, index), "size": 0.6}
            layers.append(_layer(Mark.POINTS, rows, x=error, y=cce, labels=labels, **words))
    if not layers:
        raise InputError("tables must have a row with error and cce, got none")
    return Figure(
        name="congruence_diagnosis",
        question="Does CCE without labels follow the true error?",
        title="CCE without labels against the distance from the true distribution",
        reading=(
            "Each point is a test input. CCE uses labels of validation rows only; the exact "
            "distance is known because the data are simulated."
        ),
        x=Axis(title="Distance from the true distribution", zero=True),
        y=Axis(title="CCE at x", zero=True),
        layers=tuple(layers),
        notes=(*notes, *_noted(note)),
        naming="Row",
    )


def variation_figure(varied: Reliability) -> Figure:
    """Coefficients of variation of ECE against CCE, a point a pair, a colour a task (table 2)."""
    known = varied.answered
    if not known.any():
        raise InputError("varied must contain a pair with both coefficients, got none")
    tasks, models = np.array(varied.task), np.array(varied.model, dtype=object)
    end = float(max(varied.cce[known].max(), varied.ece[known].max()))
    line = np.array([0.0, end])
    layers = [Layer(mark=Mark.LINE, x=line, y=line, series="equal", colour=REFERENCE)]
    for colour, task in enumerate(dict.fromkeys(varied.task)):
        rows = np.flatnonzero(known & (tasks == task))
        if len(rows):
            words = {"series": task, "colour": colour % SERIES_LIMIT, "labels": (*models[rows],)}
            hover = {"CCE over draws alone": varied.cce_draws[rows]}
            layers.append(
                _layer(Mark.POINTS, rows, x=varied.cce, y=varied.ece, hover=hover, **words)
            )
    return Figure(
        name="congruence_variation",
        question="Does CCE vary more from sample to sample than ECE?",
        title="Coefficients of variation over bootstrap samples",
        reading="Standard deviation divided by mean. Above the line, ECE varies more than CCE.",
        x=Axis(title="Of CCE", kind="percent", zero=True),
        y=Axis(title="Of ECE", kind="percent", zero=True),
        layers=tuple(layers),
        naming="Model",
    )


def models_figure(dots: Sequence[Dots], measure: str = "cce", *, note: str = "") -> Figure:
    """CCE or ECE of each model as a dot plot, beside what they are judged against."""
    check_known(measure, _TITLES, "measure")
    known = [group for group in dots if any(np.isfinite(v) for v in group.values.values())]
    if not known:
        raise InputError("dots must contain a value, got none")
    order = list(dict.fromkeys(model for group in known for model in group.values))
    names, places = distinct(order), np.arange(float(len(order)))
    layers: list[Layer] = []
    for group in known:
        values, ends = (
            np.array([column.get(model, np.nan) for model in order])
            for column in (group.values, group.spreads)
        )
        words = {"y": places, "series": group.series, "colour": group.colour}
        at = np.flatnonzero(np.isfinite(values))
        if len(ruled := at[np.isfinite(ends[at])]):
            lower, upper = np.maximum(values - ends, 0.0), values + ends
            layers.append(_layer(Mark.INTERVALS, ruled, lower=lower, upper=upper, **words))
        labels = tuple(names[row] for row in at)
        layers.append(_layer(Mark.POINTS, at, x=values, labels=labels, **words))
    title = _TITLES[measure]
    question, reading = _MODELS_WORDS[measure]
    return Figure(
        name=f"congruence_models_{measure}",
        question=question,
        title=f"{title} of each model",
        reading=reading,
        x=Axis(title=title, zero=True),
        y=Axis(kind="category", categories=names),
        layers=tuple(layers),
        notes=_noted(note),
        naming="Model",
    )


_MODELS_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "cce": (
        "Which models are correctly specified at every x?",
        "Lower is better. Compare each value with that of a correctly specified model.",
    ),
    "ece": (
        "How well calibrated are the models over all rows?",
        "Lower is better. Errors of opposite sign at different x may cancel.",
    ),
}


def colours_of(models: Sequence[str]) -> dict[str, int]:
    """One colour a model, the last of all for the true distribution."""
    colours = {name: colour for colour, name in enumerate(m for m in models if m != TRUTH)}
    return {**colours, TRUTH: SERIES_LIMIT - 1}


def cce_figure(findings: Sequence[ModelFinding]) -> Figure | None:
    """CCE of every model, beside a correctly specified one."""
    cce, null = ({f.model: f.mean(m) for f in findings} for m in ("cce", "cce_null"))
    spreads = {finding.model: finding.data_sd("cce") for finding in findings}
    if not any(map(math.isfinite, cce.values())):
        return None
    dots = [
        Dots(series="CCE, ± sd over bootstrap samples", values=cce, spreads=spreads),
        Dots(series=CORRECT, values=null, colour=REFERENCE),
    ]
    return models_figure(dots, "cce")


def ece_figure(findings: Sequence[ModelFinding], *, counts: bool) -> Figure | None:
    """ECE of every model."""
    cells, plain = ({f.model: f.mean(m) for f in findings} for m in ("ece_exact", "ece"))
    if not any(map(math.isfinite, cells.values())):
        return None
    if not counts:
        return models_figure([Dots(series="ECE", values=cells)], "ece")
    dots = [
        Dots(series="spread over cells", values=cells),
        Dots(series="by P(Y ≤ y)", values=plain, colour=2),
    ]
    note = "By P(Y ≤ y), predictive distributions of counts have a large ECE even when correct."
    return models_figure(dots, "ece", note=note)


def input_choices(
    studies: CongruenceStudies, findings: Sequence[ModelFinding], places: Places
) -> tuple[Choice, ...]:
    """Predictions, CCE and calibration over the only column of x, of one set of data."""
    curves, calibrations = over_x(studies), _calibrations(studies)
    known = {finding.model: finding for finding in findings}
    predictions = [
        (law.model, law_figure(law, units=studies.units, colour=places.get(law.model, 0)))
        for law in studies.beliefs
        if law.x is not None
    ]
    errors = [(ALL, input_figure(list(curves.values()), places))] if len(curves) > 1 else []
    for name, curve in curves.items():
        null, words = known[name].yardstick if name in known else (math.nan, "")
        figure = input_figure([curve], places, null=null, yardstick=f"{words}, mean over x")
        errors.append((name, figure))
    together = calibration_figure(calibrations, places) if calibrations else None
    return (
        *choice_of("Model", errors),
        *choice_of("Model", predictions),
        *choice_of("", [("", together)]),
    )


def _calibrations(studies: CongruenceStudies) -> list[Curve]:
    """Share of rows whose P(Y ≤ y) is at most each level, of the models with one input."""
    levels = np.linspace(0.0, 1.0, 101)
    return [
        Curve(
            name="calibration",
            x=levels,
            y=np.searchsorted(np.sort(predictions.pit), levels, side="right")
            / len(predictions.pit),
            model=predictions.model,
        )
        for predictions in studies.beliefs
        if predictions.pit is not None and predictions.x is not None
    ]


def over_x(studies: CongruenceStudies) -> dict[str, Curve]:
    """CCE over the only column of x by model, of one set of data."""
    inputs = {predictions.model: predictions.x for predictions in studies.beliefs}
    curves = {}
    for run in studies.result.runs:
        x = inputs.get(run.model)
        if x is not None and run.rows and len(x) == run.n:
            curves[run.model] = cce_over(run, x)
    return curves


def cce_over(run: CongruenceRun, x: FloatArray) -> Curve:
    """CCE of one run at its rows over one input, with a band of one standard deviation."""
    if not run.rows:
        raise InputError(f"run must have rows, got none: {', '.join(set(run.reasons.values()))}")
    at = as_vector(x, "x", length=run.n)
    order = np.argsort(at, kind="stable")
    spread = run.rows["cce_sd"][order]
    return banded(
        spread if np.isfinite(spread).all() else None,
        "samples and draws",
        name="congruence_cce",
        x=at[order],
        y=run.rows["cce"][order],
        x_label="x",
        y_label="CCE at x",
        model=run.model,
        group=f"task={run.task}",
    )


def severity_choices(result: MonotonicityResult | None, places: Places) -> tuple[Choice, ...]:
    """Measures against severity, one option a perturbation."""
    options: dict[str, list[tuple[str, Figure]]] = {"cce": [], "ece": []}
    curves = () if result is None else result.curves
    for measure, drawn in options.items():
        known = [curve for curve in curves if np.isfinite(curve.drawn(measure).y).any()]
        for kind in dict.fromkeys(curve.kind for curve in known):
            own = [curve for curve in known if curve.kind == kind]
            drawn.append((kind.replace("_", " "), severity_figure(own, measure, places)))
    return tuple(made for drawn in options.values() for made in choice_of("Perturbation", drawn))


def _firsts(results: Sequence[R]) -> dict[str, R]:
    """The first result of each model."""
    firsts: dict[str, R] = {}
    for result in results:
        firsts.setdefault(result.model, result)
    return firsts


def rejection_choices(
    rejections: Sequence[Rejection], places: Places, note: str = ""
) -> tuple[Choice, ...]:
    """What rejection leaves, one option a model; of several sets of data the first."""
    figures: dict[str, list[tuple[str, Figure]]] = {}
    for model, rejection in _firsts(rejections).items():
        for curve in rejection.drawn:
            figure = rejection_figure(curve, colour=places.get(model, 0), note=note)
            figures.setdefault(curve.name, []).append((model, figure))
    return tuple(made for options in figures.values() for made in choice_of("Model", options))


def diagnosis_choices(
    diagnoses: Sequence[Diagnosis], places: Places, note: str = ""
) -> tuple[Choice, ...]:
    """CCE without labels against the true error, all models and each; the first set of data."""
    tables = {
        model: diagnosis.table()
        for model, diagnosis in _firsts(diagnoses).items()
        if (np.isfinite(diagnosis.cce) & np.isfinite(diagnosis.error)).any()
    }
    options = [(ALL, list(tables.values()))] if len(tables) > 1 else []
    options += [(model, [table]) for model, table in tables.items()]
    return choice_of(
        "Model", [(label, diagnosis_figure(own, places, note)) for label, own in options]
    )
