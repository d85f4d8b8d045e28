"""Figures of the congruence studies: models, severities, rejection, diagnosis, reliability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.core.records import Curve, Table
from howsure.core.registry import check_known
from howsure.figures.columns import number, texts
from howsure.figures.figure import REFERENCE, Axis, Figure, Layer, Mark, sample_points
from howsure.figures.text import distinct, headed, one_line
from howsure.studies.congruence.over_x import MOST_POINTS, shown

LAST_SHARE: Final = 0.95
"""Where rejection curves end: the few rows kept beyond it decide alone what is drawn."""
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
    """One series of a dot plot of models.

    Attributes
    ----------
    series : str
        What it is.
    values : mapping of str to float
        By model; NaN is left out.
    spreads : mapping of str to float
        Half the length of each model's line; none where NaN or missing.
    colour : int
        As in `Layer`.
    """

    series: str
    values: Mapping[str, float]
    spreads: Mapping[str, float] = field(default_factory=dict)
    colour: int = 0


def severity_figure(
    table: Table, kind: str, measure: str = "cce", places: Mapping[str, int] | None = None
) -> Figure:
    """A measure against the severity of one perturbation, one line a model.

    Section 4.4 of Young et al. 2025.
    """
    check_known(measure, _TITLES, "measure")
    severity, values = _two(table, "severity", measure)
    spread = number(table, f"{measure}_sd")
    kinds, models = texts(table, "perturbation"), texts(table, "model")
    wanted = np.isfinite(values) & np.array([name == one_line(kind, 60) for name in kinds])
    if not wanted.any():
        raise InputError(f"table must hold a row of {kind} with {measure}, got none")
    layers = []
    for place, model in enumerate(dict.fromkeys(models)):
        rows = np.flatnonzero(wanted & np.array([name == model for name in models]))
        if not len(rows):
            continue
        rows = rows[np.argsort(severity[rows], kind="stable")]
        colour = (places or {}).get(model, place)
        layers += _spread_line(
            severity[rows],
            values[rows],
            None if spread is None else spread[rows],
            series=model or "(empty)",
            colour=colour,
        )
    title = _TITLES[measure]
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
            y=held[rows],
            series=words,
            colour=REFERENCE,
            faint=words == "oracle order",
        )
        for words, held in others.items()
        if held is not None
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
    for place, (name, table) in enumerate(zip(names, tables, strict=True)):
        error, cce = _two(table, "error", "cce")
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
                colour=(places or {}).get(table.model, place),
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


def variation_figure(table: Table) -> Figure:
    """Coefficients of variation of CCE and ECE by task and model.

    Table 2 of Young et al. 2025.
    """
    cce, ece = _two(table, "cce_cv", "ece_cv")
    tasks, models = texts(table, "task"), texts(table, "model")
    rows = np.flatnonzero(np.isfinite(cce) & np.isfinite(ece))
    if not len(rows):
        raise InputError("table must hold a row with cce_cv and ece_cv, got none")
    several = len(set(tasks)) > 1
    named = [f"{tasks[row]}, {models[row]}" if several else models[row] for row in rows]
    names = distinct(named)
    place = np.arange(len(rows), dtype=np.float64)
    draws = number(table, "cce_draws_cv")
    hover = {} if draws is None else {"Over draws alone": draws[rows]}
    return Figure(
        name="congruence_variation",
        question="Does CCE vary more from sample to sample than ECE?",
        title="Coefficients of variation over bootstrap samples",
        reading="Standard deviation divided by mean; lower is steadier.",
        x=Axis(title="Coefficient of variation", kind="percent", zero=True),
        y=Axis(kind="category", categories=names),
        layers=(
            Layer(
                mark=Mark.POINTS,
                x=cce[rows],
                y=place,
                series="CCE",
                colour=0,
                labels=names,
                hover=hover,
            ),
            Layer(mark=Mark.POINTS, x=ece[rows], y=place, series="ECE", colour=1, labels=names),
        ),
        naming="Task and model",
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
    known = [one for one in dots if any(np.isfinite(v) for v in one.values.values())]
    if not known:
        raise InputError("dots must hold a value, got none")
    order = list(models or dict.fromkeys(model for one in known for model in one.values))
    names = distinct(order)
    layers: list[Layer] = []
    for one in known:
        values = np.array([one.values.get(model, np.nan) for model in order])
        ends = np.array([one.spreads.get(model, np.nan) for model in order])
        ruled = np.flatnonzero(np.isfinite(values) & np.isfinite(ends))
        at = np.flatnonzero(np.isfinite(values))
        if len(ruled):
            layers.append(
                Layer(
                    mark=Mark.INTERVALS,
                    y=ruled.astype(np.float64),
                    lower=np.maximum(values[ruled] - ends[ruled], 0.0),
                    upper=values[ruled] + ends[ruled],
                    series=one.series,
                    colour=one.colour,
                )
            )
        layers.append(
            Layer(
                mark=Mark.POINTS,
                x=values[at],
                y=at.astype(np.float64),
                series=one.series,
                colour=one.colour,
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


def _two(table: Table, first: str, second: str) -> tuple[FloatArray, FloatArray]:
    one, two = number(table, first), number(table, second)
    if one is None or two is None:
        told = ", ".join(table.columns) or "no column"
        raise InputError(f"table must hold columns {first} and {second}, got {told}")
    return one, two
