"""What `assess` is given, as evaluation sets: arrays, tables, and what was loaded from tables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.errors import InputError
from howsure.core.labels import as_labels
from howsure.inputs import Loaded, load
from howsure.inputs.encoding import encoded, image_column, located
from howsure.inputs.roles import Roles, encoder_name, parse_encode
from howsure.predictions import Distribution, EvalSet, Prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Evaluation sets with what is known of their rows besides.

    Attributes
    ----------
    evalsets : tuple of EvalSet
        One a model, on the same rows.
    beside : mapping of str to ndarray of shape (n,)
        Texts and paths to show with the best and worst rows.
    images : ndarray of str, shape (n,), optional
        The image file of each row, as an absolute path.
    facts : mapping of str to str
        What to state of the input.
    """

    evalsets: tuple[EvalSet, ...]
    beside: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    images: npt.NDArray[Any] | None = None
    facts: Mapping[str, str] = field(default_factory=dict)


def is_table(value: object) -> bool:
    """Whether a value is a table, the path of one, several paths, or what `load` returned.

    Examples
    --------
    >>> is_table("predictions.csv"), is_table({"y": [1.0]}), is_table([1.0])
    (True, True, False)
    """
    if isinstance(value, (str, os.PathLike, Mapping, Loaded)):
        return True
    if isinstance(value, (list, tuple)):
        return bool(value) and all(isinstance(item, (str, os.PathLike)) for item in value)
    return hasattr(value, "columns")


def from_table(table: Any, columns: Mapping[str, Any]) -> Given:
    """Read a table, unless it was read already.

    Parameters
    ----------
    table : path, dataframe, mapping, sequence of paths, or Loaded
        What came.
    columns : mapping of str to object
        Arguments of `load`; those that are None were not given.

    Raises
    ------
    InputError
        As `load`; or if columns are named for a table that was read already.
    """
    chosen = {name: value for name, value in columns.items() if value is not None}
    if not isinstance(table, Loaded):
        return from_loaded(load(table, **chosen), source_name(table))
    chosen.pop("coverage", None)  # which says what to assess as well
    if chosen:
        raise InputError(
            f"columns must be named where a table is loaded, got {', '.join(chosen)} beside what "
            "load returned"
        )
    return from_loaded(table)


def from_loaded(loaded: Loaded, source: str = "") -> Given:
    """What `load` returned, with what there is to say of it."""
    facts = {"Source": source} if source else {}
    if loaded.dropped:
        facts["Dropped rows"] = f"{loaded.dropped:,}"
    if loaded.notes:
        facts["Reading"] = "; ".join(loaded.notes)
    if loaded.roles.encode is not None:
        column, encoder = loaded.roles.encode
        facts["Embedding"] = f"{column} by {encoder_name(encoder)}"
    return Given(evalsets=loaded.evalsets, beside=loaded.texts, images=loaded.images, facts=facts)


def source_name(table: Any) -> str:
    """The names of the files that a table comes from."""
    items = table if isinstance(table, (list, tuple)) else [table]
    paths = [item for item in items if isinstance(item, (str, os.PathLike))]
    return ", ".join(os.path.basename(path) for path in paths)


def from_arrays(
    y: npt.ArrayLike,
    prediction: Any,
    *,
    x: Any,
    groups: Any,
    encode: Any,
    image: Any,
    model: str,
    **known: Any,
) -> Given:
    """Check arrays at the door; one evaluation set a model.

    Raises
    ------
    InputError
        If an argument breaks a rule.
    """
    features = _features(x)
    beside: dict[str, npt.NDArray[Any]] = {}
    pair = parse_encode(encode)
    if pair is not None and known.get("embedding") is not None:
        raise InputError("encode and embedding both give an embedding: give one of them")
    if pair is not None:
        beside[pair[0]] = _taken(features, pair[0], "encode")
    path_column = image if isinstance(image, str) else None
    if path_column is not None and path_column not in beside:
        beside[path_column] = _taken(features, path_column, "image")
    elif image is not None and path_column is None:
        path_column = "image"
        beside[path_column] = as_labels(image, "image")
    roles = Roles(y="y", encode=pair, image=path_column)
    found = image_column(roles, None if pair is None else beside[pair[0]])
    files = None if found is None else located(beside[found], None)
    facts: dict[str, str] = {}
    if pair is not None:
        own = files if found == pair[0] else None
        known["embedding"] = encoded(beside[pair[0]], *pair, images=own, title="x")
        facts["Embedding"] = f"{pair[0]} by {encoder_name(pair[1])}"
    n = np.asarray(y).shape[0] if np.ndim(y) else 0
    for name, value in beside.items():
        if n and len(value) != n:
            raise InputError(f"{name} must have {n} rows as y has, got {len(value)}")
    models = prediction if isinstance(prediction, Mapping) else {model: prediction}
    sets = tuple(
        EvalSet.checked(
            y,
            _beliefs(belief, n),
            features=features,
            groups=_named(groups),
            model=str(name),
            **known,
        )
        for name, belief in models.items()
    )
    return Given(evalsets=sets, beside=beside, images=files, facts=facts)


def _taken(features: dict[str, npt.ArrayLike], name: str, argument: str) -> npt.NDArray[Any]:
    """A column of x that is no feature."""
    if name not in features:
        held = ", ".join(map(repr, features)) or "nothing"
        raise InputError(f"{argument} must name a column of x, got {name!r}; x holds {held}")
    return as_labels(features.pop(name), f"column {name!r} of x")


def _beliefs(prediction: Any, n: int) -> tuple[Prediction, ...]:
    """Any legal form of a belief as a tuple of predictions."""
    if prediction is None:
        return ()
    if isinstance(prediction, Prediction):
        return (prediction,)
    if hasattr(prediction, "dist") and hasattr(prediction, "args"):
        return (Distribution.from_scipy(prediction, n=n),)
    if isinstance(prediction, Sequence) and all(
        isinstance(part, Prediction) for part in prediction
    ):
        return tuple(prediction)
    raise InputError(
        "prediction must be Intervals, Quantiles, Distribution, Samples, LabelSets, a tuple of "
        f"them, or a frozen SciPy law, got {type(prediction).__name__}"
    )


def _features(x: Any) -> dict[str, npt.ArrayLike]:
    if x is None:
        return {}
    if isinstance(x, Mapping):
        return {str(name): value for name, value in x.items()}
    if hasattr(x, "columns"):
        import narwhals as nw

        frame = nw.from_native(x, eager_only=True)
        return {name: frame[name].to_numpy() for name in frame.columns}
    table = np.asarray(x)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2:
        raise InputError(f"x must have two dimensions, got shape {table.shape}")
    return {f"x{j}": table[:, j] for j in range(table.shape[1])}


def _named(groups: Any) -> dict[str, npt.ArrayLike] | None:
    if groups is None:
        return None
    if isinstance(groups, Mapping):
        return {str(name): value for name, value in groups.items()}
    return {str(getattr(groups, "name", None) or "group"): np.asarray(groups)}
