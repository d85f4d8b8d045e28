"""What `assess` is given, as evaluation sets: arrays, tables, and what was loaded from tables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import as_vector
from howsure.core.errors import InputError
from howsure.core.labels import as_labels
from howsure.inputs import Loaded, load
from howsure.inputs.assigned import Roles, parse_encode
from howsure.inputs.encoding import embedded
from howsure.inputs.frames import is_frame
from howsure.inputs.given import check_row_order, read_given
from howsure.predictions import EvalSet


def is_table(value: object) -> bool:
    """Whether a value is a table, the path of one, several paths, or what `load` returned."""
    if isinstance(value, (str, os.PathLike, Mapping, Loaded)):
        return True
    if isinstance(value, (list, tuple)):
        return bool(value) and all(isinstance(item, (str, os.PathLike)) for item in value)
    return is_frame(value)


def from_table(table: Any, columns: Mapping[str, Any]) -> Loaded:
    """Read a table, unless it was read already; columns that are None were not given."""
    chosen: Any = {name: value for name, value in columns.items() if value is not None}
    if not isinstance(table, Loaded):
        return load(table, **chosen)
    chosen.pop("coverage", None)  # which says what to assess as well
    if chosen:
        raise InputError(
            f"columns must be named where a table is loaded, got {', '.join(chosen)} beside what "
            "load returned"
        )
    return table


def source_fact(table: Any) -> dict[str, str]:
    """What to state of the files that a table comes from."""
    items = table if isinstance(table, (list, tuple)) else [table]
    paths = [item for item in items if isinstance(item, (str, os.PathLike))]
    return {"Source": ", ".join(os.path.basename(path) for path in paths)} if paths else {}


def from_arrays(
    y: npt.ArrayLike,
    prediction: Any,
    *,
    x: Any,
    groups: Any,
    encode: Any,
    image: Any,
    model: str,
    coverage: Sequence[float],
    levels: npt.ArrayLike | None,
    **known: Any,
) -> Loaded:
    """Check arrays at the door; one evaluation set a model."""
    check_row_order(y, {"prediction": prediction, "x": x, "groups": groups, **known})
    truth = as_vector(y, "y")
    n = len(truth)
    features = features_of(x)
    beside: dict[str, npt.NDArray[Any]] = {}
    columns: dict[str, tuple[str, ...]] = {}
    encoder = None
    if (pair := parse_encode(encode)) is not None:
        if known.get("embedding") is not None:
            raise InputError("encode and embedding both give an embedding: give one of them")
        name, encoder = pair
        beside[name] = _taken(features, name, "encode")
        columns["encode"] = (name,)
    if image is not None:
        name = image if isinstance(image, str) else "image"
        if name is not image:
            beside[name] = as_labels(image, name)
        elif name not in beside:
            beside[name] = _taken(features, name, "image")
        columns["image"] = (name,)
    roles = Roles(columns=columns, encoder=encoder)
    vectors, files = embedded(beside, roles, folder=None, title="x")
    if vectors is not None:
        known["embedding"] = vectors
    for name, value in beside.items():
        if len(value) != n:
            raise InputError(f"{name} must have {n} rows as y has, got {len(value)}")
    models = read_given(prediction, n=n, coverage=coverage or None, levels=levels, y=truth)
    point = known.pop("point")
    sets = tuple(
        EvalSet.checked(
            truth,
            given.predictions,
            point=given.point if point is None else point,
            features=features,
            groups=_named(groups),
            model=name or model,
            **known,
        )
        for name, given in models.items()
    )
    notes = tuple(dict.fromkeys(note for given in models.values() for note in given.notes))
    return Loaded(evalsets=sets, roles=roles, texts=beside, images=files, notes=notes)


def _taken(features: dict[str, npt.ArrayLike], name: str, argument: str) -> npt.NDArray[Any]:
    """A column of x that is no feature."""
    if name not in features:
        held = ", ".join(map(repr, features)) or "nothing"
        raise InputError(f"{argument} must name a column of x, got {name!r}; x holds {held}")
    return as_labels(features.pop(name), f"column {name!r} of x")


def features_of(x: Any) -> dict[str, npt.ArrayLike]:
    """The columns of x by name: those of a frame or mapping, else x0, x1 and so on."""
    if x is None:
        return {}
    if isinstance(x, Mapping):
        return {str(name): value for name, value in x.items()}
    if is_frame(x):
        import narwhals as nw

        frame = nw.from_native(x, eager_only=True)
        return {str(name): frame.get_column(name).to_numpy() for name in frame.columns}
    table = np.asarray(x)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2:
        raise InputError(f"x must have two dimensions, got shape {table.shape}")
    return {f"x{j}": table[:, j] for j in range(table.shape[1])}


def _named(groups: Any) -> dict[str, npt.ArrayLike] | None:
    if groups is None:
        return None
    if isinstance(groups, Mapping) or is_frame(groups):
        return features_of(groups)
    if isinstance(groups, str):
        raise InputError(
            f"groups must hold a label a row, got the text {groups!r}: give the column itself, "
            f"groups={{{groups!r}: labels}}"
        )
    return {str(getattr(groups, "name", None) or "group"): np.asarray(groups)}
