"""Figures of the congruence study."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, final

import numpy as np

from howsure.core import formats
from howsure.core.arrays import FloatArray, as_vector
from howsure.core.errors import InputError
from howsure.core.records import Curve, Table
from howsure.core.registry import check_known
from howsure.figures.columns import number
from howsure.figures.figure import REFERENCE, Axis, Figure, Layer, Mark, sample_points
from howsure.figures.palette import SERIES_LIMIT
from howsure.figures.text import distinct, headed, one_line
from howsure.report.document import Choice
from howsure_studies.congruence.measure import TRUTH
from howsure_studies.congruence.reliability import Reliability
from howsure_studies.congruence.result import (
    CongruenceRun,
    CongruenceStudies,
    Diagnosis,
    ModelBeliefs,
    Monotonicity,
    MonotonicityResult,
    Rejection,
)
from howsure_studies.congruence.sentences import CORRECT, ModelFinding
from howsure_studies.engine import choice_of

MOST_POINTS: Final = 300
"""The most points of a line, or of one model's cloud."""
LAST_SHARE: Final = 0.95
"""Where rejection curves end: the few rows kept beyond it decide alone what is drawn."""
INSIDE: Final = 0.95
"""Nominal coverage of the intervals that `ModelBeliefs` holds."""
ALL: Final = "all models"


def law_figure(law: ModelBeliefs, *, units: str = "y", colour: int = 0) -> Figure:
    """Data over x with one model's predictions and central intervals: the first row of figure 2.

    Figure 2 of Young et al. 2025.
    """
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
    band: dict[str, Any] = {"lower": lower, "upper": upper, "series": f"central {share}"}
    dots: dict[str, Any] = {"series": "test rows", "colour": REFERENCE, "size": 0.5}
    return Figure(
        name="congruence_law",
        question=f"What does the model predict, and what was observed? ({name})",
        title=f"Predictions over x, {name}",
        reading=f"The band should contain {share} of the rows at every x, not only overall.",
        x=Axis(title="x"),
        y=Axis(title=headed(units)),
        layers=(
            Layer(mark=Mark.BAND, x=x, colour=colour, **band),
            Layer(mark=Mark.LINE, x=x, y=point, series="point prediction", colour=colour),
            Layer(mark=Mark.POINTS, x=x, y=y, **dots),
        ),
        notes=shown(len(rows), len(given)),
        naming="Row",
    )


def calibration_figure(curves: Sequence[Curve], places: Mapping[str, int] | None = None) -> Figure:
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
        notes=_notes_of(curves),
    )


def input_figure(
    curves: Sequence[Curve],
    places: Mapping[str, int] | None = None,
    *,
    null: float = np.nan,
    yardstick: str = "a correctly specified model, on average",
) -> Figure:
    """CCE over the only column of x, one line a model with its band: the third row of figure 2."""
    lines = _lines(curves, places)
    first = curves[0]
    bands = [
        Layer(
            mark=Mark.BAND,
            x=line.x,
            lower=line.lower,
            upper=line.upper,
            series=f"band of {line.series}",
            colour=line.colour,
            listed=False,
        )
        for line in lines
        if len(line.lower)
    ]
    rules = []
    if np.isfinite(null):
        rules = [Layer(mark=Mark.RULE, y=np.array([null]), series=yardstick, colour=REFERENCE)]
    shaded = dict.fromkeys(f"Shaded: {one_line(c.band, 200)}." for c in curves if c.band)
    return Figure(
        name=first.name,
        question="Where are the predictive distributions wrong?",
        title=headed(first.y_label) or "CCE at x",
        reading="A line is high where the predictive distribution departs from the data.",
        x=Axis(title=headed(first.x_label) or "x"),
        y=Axis(title=headed(first.y_label) or "CCE at x", zero=True),
        layers=(*bands, *rules, *lines),
        notes=(*shaded, *_notes_of(curves)),
    )


def _lines(curves: Sequence[Curve], places: Mapping[str, int] | None) -> list[Layer]:
    """A line a curve, thinned, with the ends of its band where it has one."""
    if not curves:
        raise InputError("curves must hold at least one, got none")
    names = distinct([curve.model or "model" for curve in curves])
    lines = []
    for index, (name, curve) in enumerate(zip(names, curves, strict=True)):
        finite = np.flatnonzero(np.isfinite(curve.x) & np.isfinite(curve.y))
        rows = finite[sample_points(curve.x[finite], MOST_POINTS)] if len(finite) else finite
        low, high = np.zeros(0), np.zeros(0)
        if curve.lower is not None and curve.upper is not None:
            ends = np.isfinite(curve.lower[rows]) & np.isfinite(curve.upper[rows])
            if len(rows) and ends.all():
                low, high = np.maximum(curve.lower[rows], 0.0), curve.upper[rows]
        lines.append(
            Layer(
                mark=Mark.LINE,
                x=curve.x[rows],
                y=curve.y[rows],
                lower=low,
                upper=high,
                series=name,
                colour=(places or {}).get(curve.model, index),
            )
        )
    return lines


def _notes_of(curves: Sequence[Curve]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one_line(curve.notes, 400) for curve in curves if curve.notes))


def shown(drawn: int, rows: int) -> tuple[str, ...]:
    """What to say where not all rows are drawn."""
    return (f"Shown: {drawn:,} of {rows:,} rows.",) if drawn < rows else ()


_TITLES: Final[Mapping[str, str]] = {"cce": "CCE", "ece": "ECE", "nll": "NLL"}
_KINDS: Final[Mapping[str, str]] = {
    "blur": "sd of the blur, pixels",
    "label_shift": "mean of the noise on y",
    "label_noise": "sd of the noise on y",
    "mixup": "share of another row",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Dots:
    """One series of a dot plot of models."""

    series: str
    values: Mapping[str, float]
    spreads: Mapping[str, float] = field(default_factory=dict)
    colour: int = 0


def severity_figure(
    curves: Sequence[Monotonicity], measure: str = "cce", places: Mapping[str, int] | None = None
) -> Figure:
    """A measure against the severity of one perturbation, one line a model.

    Section 4.4 of Young et al. 2025.
    """
    check_known(measure, _TITLES, "measure")
    layers = []
    for index, curve in enumerate(item.drawn(measure) for item in curves):
        known = np.isfinite(curve.y)
        if known.any():
            layers += _spread_line(
                curve.x[known],
                curve.y[known],
                None if curve.upper is None else (curve.upper - curve.y)[known],
                series=one_line(curve.model, 60) or "(empty)",
                colour=(places or {}).get(curve.model, index),
            )
    if not layers:
        raise InputError(f"curves must hold a known {measure}, got none")
    title, kind = _TITLES[measure], curves[0].kind
    words = one_line(kind.replace("_", " "), 60)
    return Figure(
        name=f"congruence_{measure}_by_severity",
        question=f"Does {title} rise as the data are perturbed? ({words})",
        title=f"{title} by severity of {words}",
        reading="The first point is the unperturbed data. Vertical lines: ± one sd over trials.",
        x=Axis(title=headed(_KINDS.get(kind, "severity"))),
        y=Axis(title=f"Mean {title}", zero=measure != "nll"),
        layers=tuple(layers),
    )


def rejection_figure(curve: Curve, *, colour: int = 0, note: str = "") -> Figure:
    """Loss of the rows kept against the share withheld, beside random order and the best one.

    Appendix A.3 of Young et al. 2025.
    """
    inside = np.flatnonzero(curve.x <= LAST_SHARE)
    if not len(inside):
        raise InputError(f"curve must hold a share of at most {LAST_SHARE:g}, got none")
    rows = inside[sample_points(curve.x[inside], MOST_POINTS)]
    x, name = curve.x[rows], one_line(curve.model, 60)
    layers = []
    if curve.lower is not None and curve.upper is not None:
        layers.append(
            Layer(
                mark=Mark.BAND,
                x=x,
                lower=curve.lower[rows],
                upper=curve.upper[rows],
                series=one_line(curve.band, 60) or "band",
                colour=REFERENCE,
            )
        )
    others = {"random order": curve.reference, "oracle order": curve.hover.get("oracle")}
    layers += [
        Layer(
            mark=Mark.LINE,
            x=x,
            y=losses[rows],
            series=words,
            colour=REFERENCE,
            faint=words == "oracle order",
        )
        for words, losses in others.items()
        if losses is not None
    ]
    layers.append(
        Layer(mark=Mark.LINE, x=x, y=curve.y[rows], series="highest CCE first", colour=colour)
    )
    loss = "NLL" if curve.name.endswith("nll") else "error"
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
        layers=tuple(layers),
        notes=(one_line(note, 400),) if note else (),
    )


def diagnosis_figure(tables: Sequence[Table], places: Mapping[str, int] | None = None) -> Figure:
    """CCE at unlabelled inputs against the model's true error there, a colour a model.

    Section 4.7 of Young et al. 2025.
    """
    names = distinct([table.model or "model" for table in tables])
    layers, notes = [], []
    for index, (name, table) in enumerate(zip(names, tables, strict=True)):
        error, cce = number(table, "error"), number(table, "cce")
        if error is None or cce is None:
            raise InputError(f"tables must hold error and cce, got {', '.join(table.columns)}")
        known = np.flatnonzero(np.isfinite(error) & np.isfinite(cce))
        step = max(1, -(-len(known) // MOST_POINTS))
        rows = known[::step]
        if not len(rows):
            continue
        notes += [f"{name}: {note}" for note in shown(len(rows), len(known))]
        layers.append(
            Layer(
                mark=Mark.POINTS,
                x=error[rows],
                y=cce[rows],
                series=name,
                colour=(places or {}).get(table.model, index),
                size=0.6,
                labels=tuple(f"test row {row}" for row in rows),
            )
        )
    if not layers:
        raise InputError("tables must hold a row with error and cce, got none")
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
        notes=tuple(notes),
        naming="Row",
    )


def variation_figure(varied: Reliability) -> Figure:
    """Coefficients of variation of ECE against those of CCE, a point a pair, a colour a task.

    Table 2 of Young et al. 2025.
    """
    known = varied.known
    if not known.any():
        raise InputError("varied must hold a pair with both coefficients, got none")
    names = np.array(varied.model, dtype=object)
    end = float(max(varied.cce[known].max(), varied.ece[known].max()))
    line = np.array([0.0, end])
    layers = [Layer(mark=Mark.LINE, x=line, y=line, series="equal", colour=REFERENCE)]
    for colour, task in enumerate(dict.fromkeys(varied.task)):
        rows = np.flatnonzero(known & np.array([name == task for name in varied.task]))
        if len(rows):
            layers.append(
                Layer(
                    mark=Mark.POINTS,
                    x=varied.cce[rows],
                    y=varied.ece[rows],
                    series=task,
                    colour=colour % SERIES_LIMIT,
                    labels=tuple(names[rows]),
                    hover={"CCE over draws alone": varied.cce_draws[rows]},
                )
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


def models_figure(
    dots: Sequence[Dots],
    measure: str = "cce",
    *,
    models: Sequence[str] | None = None,
    note: str = "",
) -> Figure:
    """CCE or ECE of each model as a dot plot, beside what they are judged against."""
    check_known(measure, _TITLES, "measure")
    known = [group for group in dots if any(np.isfinite(v) for v in group.values.values())]
    if not known:
        raise InputError("dots must hold a value, got none")
    order = list(models or dict.fromkeys(model for group in known for model in group.values))
    names = distinct(order)
    layers: list[Layer] = []
    for group in known:
        values = np.array([group.values.get(model, np.nan) for model in order])
        ends = np.array([group.spreads.get(model, np.nan) for model in order])
        ruled = np.flatnonzero(np.isfinite(values) & np.isfinite(ends))
        at = np.flatnonzero(np.isfinite(values))
        if len(ruled):
            layers.append(
                Layer(
                    mark=Mark.INTERVALS,
                    y=ruled.astype(np.float64),
                    lower=np.maximum(values[ruled] - ends[ruled], 0.0),
                    upper=values[ruled] + ends[ruled],
                    series=group.series,
                    colour=group.colour,
                )
            )
        layers.append(
            Layer(
                mark=Mark.POINTS,
                x=values[at],
                y=at.astype(np.float64),
                series=group.series,
                colour=group.colour,
                labels=tuple(names[row] for row in at),
            )
        )
    title = _TITLES[measure]
    question, reading = _MODELS_WORDS[measure]
    return Figure(
        name=f"congruence_models_{measure}",
        question=question,
        title=f"{title} of each model",
        reading=reading,
        x=Axis(title=title, zero=measure != "nll"),
        y=Axis(kind="category", categories=names),
        layers=tuple(layers),
        notes=(one_line(note, 400),) if note else (),
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
    "nll": ("How likely were the observations?", "Lower is better."),
}


def _spread_line(
    x: FloatArray, y: FloatArray, spread: FloatArray | None, **words: Any
) -> list[Layer]:
    """A line with its points, and a vertical line of one spread up and down where it is known."""
    layers = []
    if spread is not None and np.isfinite(spread).any():
        known = np.isfinite(spread)
        layers.append(
            Layer(
                mark=Mark.INTERVALS,
                x=x[known],
                lower=(y - spread)[known],
                upper=(y + spread)[known],
                **words,
            )
        )
    return [
        *layers,
        Layer(mark=Mark.LINE, x=x, y=y, **words),
        Layer(mark=Mark.POINTS, x=x, y=y, **words),
    ]


def colours_of(models: Sequence[str]) -> dict[str, int]:
    """One colour a model, the last of all for the true distribution."""
    colours = {name: colour for colour, name in enumerate(m for m in models if m != TRUTH)}
    return {**colours, TRUTH: SERIES_LIMIT - 1}


def cce_figure(findings: Sequence[ModelFinding]) -> Figure | None:
    """CCE of every model, beside a correctly specified one."""
    cce = {finding.model: finding.mean("cce") for finding in findings}
    if not any(map(math.isfinite, cce.values())):
        return None
    dots = [
        Dots(
            series="CCE, ± sd over bootstrap samples",
            values=cce,
            spreads={finding.model: finding.data_sd("cce") for finding in findings},
        ),
        Dots(
            series=CORRECT,
            values={finding.model: finding.mean("cce_null") for finding in findings},
            colour=REFERENCE,
        ),
    ]
    return models_figure(dots, "cce", models=list(cce))


def ece_figure(findings: Sequence[ModelFinding], *, counts: bool) -> Figure | None:
    """ECE of every model."""
    cells = {finding.model: finding.mean("ece_exact") for finding in findings}
    if not any(map(math.isfinite, cells.values())):
        return None
    dots = [Dots(series="spread over cells" if counts else "ECE", values=cells)]
    note = ""
    if counts:
        plain = {finding.model: finding.mean("ece") for finding in findings}
        dots.append(Dots(series="by P(Y ≤ y)", values=plain, colour=2))
        note = "By P(Y ≤ y), predictive distributions of counts have a large ECE even when correct."
    return models_figure(dots, "ece", models=list(cells), note=note)


def input_choices(
    studies: CongruenceStudies, findings: Sequence[ModelFinding], places: Mapping[str, int]
) -> tuple[Choice, ...]:
    """Predictions, CCE and calibration over the only column of x, of one set of data."""
    curves = over_x(studies)
    calibrations = {curve.model: curve for curve in _calibrations(studies)}
    beliefs_of = {beliefs.model: beliefs for beliefs in studies.beliefs if beliefs.x is not None}
    known = {finding.model: finding for finding in findings}
    predictions = [
        (name, law_figure(beliefs, units=studies.units, colour=places.get(name, 0)))
        for name, beliefs in beliefs_of.items()
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
            y=np.searchsorted(np.sort(beliefs.pit), levels, side="right") / len(beliefs.pit),
            model=beliefs.model,
        )
        for beliefs in studies.beliefs
        if beliefs.pit is not None and beliefs.x is not None
    ]


def over_x(studies: CongruenceStudies) -> dict[str, Curve]:
    """CCE over the only column of x by model, of one set of data."""
    inputs = {beliefs.model: beliefs.x for beliefs in studies.beliefs}
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
    cce, spread = run.rows["cce"][order], run.rows["cce_sd"][order]
    banded = np.isfinite(spread).all()
    return Curve(
        name="congruence_cce",
        x=at[order],
        y=cce,
        lower=cce - spread if banded else None,
        upper=cce + spread if banded else None,
        band="one standard deviation over samples and draws" if banded else "",
        x_label="x",
        y_label="CCE at x",
        model=run.model,
        group=f"task={run.task}",
    )


def severity_choices(
    result: MonotonicityResult | None, places: Mapping[str, int]
) -> tuple[Choice, ...]:
    """Measures against severity, one option a perturbation."""
    made: list[Choice] = []
    for measure in ("cce", "ece"):
        curves_of: dict[str, list[Monotonicity]] = {}
        for curve in () if result is None else result.curves:
            if np.isfinite(curve.drawn(measure).y).any():
                curves_of.setdefault(curve.kind, []).append(curve)
        options = [
            (kind.replace("_", " "), severity_figure(curves, measure, places))
            for kind, curves in curves_of.items()
        ]
        made += choice_of("Perturbation", options)
    return tuple(made)


def rejection_choices(
    rejections: Sequence[Rejection], places: Mapping[str, int], note: str = ""
) -> tuple[Choice, ...]:
    """What rejection leaves, one option a model; of several sets of data the first."""
    first = {rejection.model: rejection for rejection in reversed(rejections)}
    figures: dict[str, list[tuple[str, Figure]]] = {}
    for model in dict.fromkeys(rejection.model for rejection in rejections):
        for curve in first[model].drawn:
            figure = rejection_figure(curve, colour=places.get(model, 0), note=note)
            figures.setdefault(curve.name, []).append((model, figure))
    return tuple(made for options in figures.values() for made in choice_of("Model", options))


def diagnosis_choices(
    diagnoses: Sequence[Diagnosis], places: Mapping[str, int], note: str = ""
) -> tuple[Choice, ...]:
    """CCE without labels against the true error, all models and each; the first set of data."""
    first = {diagnosis.model: diagnosis for diagnosis in reversed(diagnoses)}
    tables = {
        model: first[model].table()
        for model in dict.fromkeys(diagnosis.model for diagnosis in diagnoses)
        if (np.isfinite(first[model].cce) & np.isfinite(first[model].error)).any()
    }
    options = [(ALL, list(tables.values()))] if len(tables) > 1 else []
    options += [(model, [table]) for model, table in tables.items()]
    drawn = [(label, diagnosis_figure(chosen, places)) for label, chosen in options]
    notes = (note,) if note else ()
    return choice_of("Model", [(n, replace(f, notes=(*f.notes, *notes))) for n, f in drawn])
