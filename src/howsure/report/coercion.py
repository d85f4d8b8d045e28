"""What `assess` is given, as evaluation sets: arrays, tables, and what was loaded from tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import AnyArray, FloatArray, as_vector, plain_array, shortened
from howsure.core.errors import InputError, language
from howsure.core.labels import as_labels
from howsure.core.options import named
from howsure.inputs import Loaded, load
from howsure.inputs.cells import Crossing, embedded
from howsure.inputs.classes import label_text
from howsure.inputs.frames import is_frame
from howsure.inputs.given import PredictionInput, check_row_order, complete_rows, read_given
from howsure.inputs.matching import Missing, left_out
from howsure.inputs.names import Roles, likely_ends, parse_encode
from howsure.inputs.parts import is_lazy
from howsure.inputs.roles import name_roles
from howsure.inputs.source import listed
from howsure.predictions import EvalSet, LabelSets, Probabilities
from howsure.streaming import Large, load_parts

ROWS = (
    *("point", "uncertainty", "features", "ease", "embedding", "encode", "image", "groups"),
    *("weights",),
    *("weights_kind", "cluster", "time", "cutoff", "horizon", "series", "rows", "model"),
    *("missing_value", "crossing"),
)
"""Roles that arrays may play beside y and its prediction."""
_BESIDE = "a column of a table with y"
OF_TABLES = {
    "points": "a mapping of models' names to forecasts as the prediction",
    "lower": "(lower, upper) as the prediction, with coverage=",
    "upper": "(lower, upper) as the prediction, with coverage=",
    "mean": "howsure.Distribution.normal(mean, sd) as the prediction",
    "sd": "howsure.Distribution.normal(mean, sd) as the prediction",
    "variance": "howsure.Distribution.normal(mean, variance**0.5) as the prediction",
    "quantiles": "quantiles as the prediction, with levels=",
    "samples": "howsure.Samples(draws) as the prediction",
    "law": "a frozen distribution of scipy.stats as the prediction",
    "softmax": "howsure.Probabilities as the prediction",
    "stated_confidence": "howsure.Probabilities as the prediction, y 1 where the answer is right",
    "label_set": "howsure.LabelSets as the prediction",
    **dict.fromkeys(("quantile_level", "sample_id", "output_type", "boundary"), _BESIDE),
    **dict.fromkeys(("encoding", "decimal"), "numbers; these apply to text files"),
}
"""Further roles, of columns of a table alone; with what serves beside arrays."""


def is_table(value: object) -> bool:
    """Whether a value is a table, the path of one, several paths, or what `load` returned."""
    if isinstance(value, (str, os.PathLike, Mapping, Loaded)) or is_lazy(value):
        return True
    if isinstance(value, (list, tuple)):
        single = (isinstance(item, (str, os.PathLike, Mapping)) or is_frame(item) for item in value)
        return bool(value) and all(single)
    return is_frame(value)


def opened(
    data: Any,
    prediction: Any = None,
    *,
    y: Any = None,
    missing: Missing | None = None,
    coverage: Sequence[float] = (),
    levels: npt.ArrayLike | None = None,
    common_rows: bool = False,
    large: Large | None = None,
    seed: int = 0,
    **roles: Any,
) -> Loaded:
    """A table, or arrays; roles are named by keywords, None if not.

    `y` is a column of the table, or y itself where there is no other data.
    """
    if data is None:
        data, y = y, None
    named = {**dict.fromkeys((*ROWS, *OF_TABLES)), **roles}
    if prediction is None and is_table(data):
        if levels is not None:
            raise InputError(
                "levels applies only to arrays; for a table, levels are in the column names, or in "
                f"{name_roles(quantiles={0.05: ...})}"
            )
        named |= {"coverage": list(coverage) or None, "y": y, "missing": missing}
        several = isinstance(data, (list, tuple)) and len(data) > 1
        if isinstance(data, Loaded) or several or common_rows:
            return _from_table(data, {**named, "common_rows": common_rows or None})
        chosen: Any = {name: value for name, value in named.items() if value is not None}
        table = data[0] if isinstance(data, (list, tuple)) else data
        return load_parts(table, large=large, seed=seed, **chosen)
    if common_rows:
        raise InputError("common_rows applies only to tables; arrays have the same rows already")
    if y is not None:
        raise InputError(
            f"y names the outcome column of a table, got {shortened(y)} beside other data: give a "
            "table and no prediction, or y alone"
        )
    for name, way in OF_TABLES.items():
        if named.pop(name) is not None:
            raise InputError(f"{name} applies only to tables; for arrays, give {way}")
    if named.pop("missing_value") is not None:
        raise InputError(
            "missing_value applies only to tables; in arrays, use NaN, as in np.where(y == -9999, "
            f"np.nan, y), and pass {name_roles(missing='drop')}"
        )
    if named["weights_kind"] and named["weights"] is None:
        raise InputError("weights_kind needs weights: give weights=…")
    arrays = {"y": data, "prediction": prediction, **named}
    gaps: dict[str, int] = {}
    rows_without_y: dict[str, Any] = {}
    if missing is not None:
        arrays, gaps, rows_without_y = complete_rows(arrays, missing)
    arrays["weights_kind"] = arrays["weights_kind"] or "frequency"
    arrays["crossing"] = arrays["crossing"] or "error"
    loaded = _from_arrays(coverage=coverage, levels=levels, **arrays)
    if rows_without_y:
        loaded = _with_rest(loaded, {**arrays, **rows_without_y}, coverage=coverage, levels=levels)
    dropped = len(data) - loaded.evalsets[0].n if gaps else 0
    notes = [left_out(dropped, gaps)] if dropped else []
    return replace(loaded, dropped=dropped, dropped_by=gaps, notes=(*notes, *loaded.notes))


def _with_rest(loaded: Loaded, bare: Mapping[str, Any], **roles: Any) -> Loaded:
    """With what was predicted of rows that lack y alone; impossible predictions are of no row."""
    plain = {**bare, "crossing": "sort", "encode": None, "image": None, "embedding": None}
    try:
        sets_without_y = _from_arrays(**roles, **plain).evalsets
    except InputError:
        return loaded
    completed = (
        replace(evalset, without_y=replace(other, y=np.full(other.n, np.nan)))
        for evalset, other in zip(loaded.evalsets, sets_without_y, strict=True)
    )
    return replace(loaded, evalsets=tuple(completed))


def _from_table(table: Any, columns: Mapping[str, Any]) -> Loaded:
    """Read a table, unless it was read already; columns that are None were not given."""
    chosen: Any = {name: value for name, value in columns.items() if value is not None}
    if not isinstance(table, Loaded):
        return load(table, **chosen)
    chosen.pop("coverage", None)  # which says what to assess as well
    if chosen:
        raise InputError(
            f"name columns when the table is loaded; got {', '.join(chosen)} beside a loaded table"
        )
    return table


def check_coverage_is_used(loaded: Loaded, coverages: Sequence[float]) -> None:
    """Refuse a coverage where no model states an uncertainty that it could be of."""
    if not coverages or any(evalset.predictions for evalset in loaded.evalsets):
        return
    names = [use.column for use in loaded.explanation]
    way = "give (lower, upper) as prediction"
    if names:
        lower, upper = likely_ends(names) or (..., ...)
        coverage = {"coverage": coverages[0]} if language() == "python" else {}
        ends = name_roles(lower=lower, upper=upper, **coverage)
        way = f"name the columns of their ends, {ends}"
    raise InputError(
        f"coverage {coverages[0]:g} was given, but no intervals or other uncertainty were found: "
        f"{way}, or omit coverage"
    )


def check_thresholds(thresholds: Any, evalsets: Iterable[EvalSet]) -> None:
    """Refuse a threshold where no model states the probability of one event."""
    for evalset in evalsets if thresholds else ():
        classes = [len(p.names) for p in evalset.predictions if isinstance(p, Probabilities)]
        if classes != [2]:
            seen = f"{classes[0]} classes" if classes else "no class probabilities"
            way = ": assess one class, with y 1 where it came and its column alone"
            raise InputError(
                f"{named('threshold')} needs the probability of one event, got {seen} of "
                f"{evalset.model}{way if classes else ''}"
            )


def source_fact(table: Any) -> dict[str, str]:
    """What to state of the files that a table comes from."""
    items = table if isinstance(table, (list, tuple)) else [table]
    paths = [item for item in items if isinstance(item, (str, os.PathLike))]
    return {"Source": ", ".join(os.path.basename(path) for path in paths)} if paths else {}


def _from_arrays(
    *,
    y: npt.ArrayLike,
    prediction: Any,
    features: Any,
    ease: Any,
    groups: Any,
    encode: Any,
    image: Any,
    model: str | None,
    coverage: Sequence[float],
    levels: npt.ArrayLike | None,
    crossing: Crossing,
    **context: Any,
) -> Loaded:
    """Check arrays at the door; one evaluation set a model."""
    arrays = {"prediction": prediction, "features": features, "groups": groups, "ease": ease}
    check_row_order(y, {**arrays, **context})
    named = as_text(y)
    truth = np.zeros(len(named)) if named is not None else as_vector(y, "y")
    n = len(truth)
    columns_of_inputs = features_of(features)
    eased = "ease"
    if isinstance(ease, str):
        eased = ease
        _check_column(columns_of_inputs, ease, "ease")
    elif ease is not None:
        columns_of_inputs["ease"] = as_vector(ease, "ease", length=n)
    texts: dict[str, AnyArray] = {}
    columns: dict[str, tuple[str, ...]] = {}
    encoder = None
    if (pair := parse_encode(encode)) is not None:
        if context.get("embedding") is not None:
            raise InputError("encode and embedding both give an embedding: give one of them")
        name, encoder = pair
        texts[name] = _taken(columns_of_inputs, name, "encode")
        columns["encode"] = (name,)
    if image is not None:
        name = image if isinstance(image, str) else "image"
        if name is not image:
            texts[name] = as_labels(image, name)
        elif name not in texts:
            texts[name] = _taken(columns_of_inputs, name, "image")
        columns["image"] = (name,)
    roles = Roles(columns=columns, encoder=encoder)
    vectors, files = embedded(texts, roles, folder=None, title="features")
    if vectors is not None:
        context["embedding"] = vectors
    for name, value in texts.items():
        if len(value) != n:
            raise InputError(f"{name} must have {n} rows, as many as y; got {len(value)}")
    known_y = truth if named is None else None
    if named is not None and hasattr(prediction, "__array__") and not is_frame(prediction):
        raise InputError(
            "y contains labels, but an array names no classes: give "
            "howsure.Probabilities(p, classes=…), with the labels in the order of the columns"
        )
    models = read_given(
        prediction, n=n, coverage=coverage or None, levels=levels, y=known_y, crossing=crossing
    )
    truth = _classed(truth if named is None else named, models.values())
    point, doubt = context.pop("point"), context.pop("uncertainty")
    sets = tuple(
        EvalSet.checked(
            truth,
            model_input.predictions,
            point=model_input.point if point is None else point,
            uncertainty=model_input.uncertainty if doubt is None else doubt,
            features=columns_of_inputs,
            groups=named_labels(groups) or None,
            model=name or model or "model",
            ease=eased,
            **context,
        )
        for name, model_input in models.items()
    )
    notes = tuple(
        dict.fromkeys(note for model_input in models.values() for note in model_input.notes)
    )
    return Loaded(evalsets=sets, roles=roles, texts=texts, images=files, notes=notes)


def as_text(y: Any) -> AnyArray | None:
    """y where it is text, one a row; None where it is something else."""
    values = plain_array(y, "y")
    if values.ndim != 1 or values.dtype.kind not in "OUS" or not values.size:
        return None
    return values if all(isinstance(value, str) for value in values.tolist()) else None


def _classed(y: AnyArray, models: Iterable[PredictionInput]) -> FloatArray:
    """y as numbers: the places of labels, where it holds the labels of label sets."""
    classes = {
        prediction.labels if isinstance(prediction, LabelSets) else prediction.classes
        for model in models
        for prediction in model.predictions
        if isinstance(prediction, LabelSets | Probabilities)
    }
    if len(classes) > 1:
        raise InputError("models must have the same classes, got different labels")
    names = next(iter(classes), None)
    codes = {name: float(code) for code, name in enumerate(names or ())}
    if not codes:
        if y.dtype.kind in "OUS" and classes:
            raise InputError(
                "y contains labels, but the prediction names no classes: give "
                "Probabilities(…, classes=…) or LabelSets(…, labels=…)"
            )
        return as_vector(y, "y")
    labels = [label_text(value) for value in y.tolist()]
    strange = [label for label in dict.fromkeys(labels) if label not in codes]
    if not strange:
        return np.array([codes[label] for label in labels])
    if y.dtype.kind == "f":  # class numbers
        return y
    raise InputError(
        f"y must contain only labels of the classes ({listed(codes, 6)}), got {listed(strange, 3)} "
        f"(first at row {labels.index(strange[0])})"
    )


def _taken(features: dict[str, npt.ArrayLike], name: str, argument: str) -> AnyArray:
    """A column of the inputs that is no feature."""
    _check_column(features, name, argument)
    return as_labels(features.pop(name), f"column {name!r} of features")


def _check_column(features: Mapping[str, object], name: str, argument: str) -> None:
    if name not in features:
        columns = ", ".join(map(repr, features)) or "nothing"
        raise InputError(
            f"{argument} must name a column of features, got {name!r}; features has {columns}"
        )


def features_of(features: Any) -> dict[str, npt.ArrayLike]:
    """Features by name: the columns of a frame or mapping, else x0, x1 and so on."""
    if features is None:
        return {}
    if isinstance(features, Mapping):
        return {str(name): value for name, value in features.items()}
    if is_frame(features):
        import narwhals as nw

        frame = nw.from_native(features, eager_only=True)
        return {str(name): frame.get_column(name).to_numpy() for name in frame.columns}
    table = np.asarray(features)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2:
        raise InputError(f"features must have two dimensions, got shape {table.shape}")
    return {f"x{j}": table[:, j] for j in range(table.shape[1])}


def columns_of(groups: Any, *more: str) -> list[str]:
    """Names of columns of groups, in one text or several, and further ones."""
    many = groups.split(",") if isinstance(groups, str) else groups or ()
    names = [str(name).strip() for name in many]
    return list(dict.fromkeys(name for name in (*names, *more) if name))


def named_labels(groups: Any) -> dict[str, npt.ArrayLike]:
    """Labels of rows by name; an array is called after itself, or ``group``."""
    if groups is None:
        return {}
    if isinstance(groups, Mapping) or is_frame(groups):
        return features_of(groups)
    if isinstance(groups, str):
        raise InputError(
            f"groups needs one label per row, got the text {groups!r}: give the column itself, "
            f"groups={{{groups!r}: labels}}"
        )
    return {str(getattr(groups, "name", None) or "group"): groups}
