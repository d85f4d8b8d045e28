"""Tables in, evaluation sets out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, FloatArray
from howsure.core.errors import InputError
from howsure.core.progress import Listener, listening
from howsure.inputs.alignment import Part, align, check_same_rows, split_models
from howsure.inputs.building import Crossing, build, crossing_notes
from howsure.inputs.cells import Cells, read_cells
from howsure.inputs.columns import assign_roles
from howsure.inputs.encoding import encoded, image_column, located
from howsure.inputs.files import open_table
from howsure.inputs.frames import FrameTable, MappingTable
from howsure.inputs.roles import ColumnUse, Encode, Flags, Names, Roles
from howsure.inputs.source import Source, listed, quoted
from howsure.inputs.text import COMPRESSION
from howsure.predictions import EvalSet

Missing = Literal["error", "drop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What a table held.

    Attributes
    ----------
    evalsets : tuple of EvalSet
        One for each model, on the same rows in the same order.
    explanation : tuple of ColumnUse
        How each column was read.
    dropped : int
        Rows of the tables left out because a cell was missing; a row that one model misses is
        left out for all.
    dropped_by : mapping of str to int
        For each column, in how many rows of the tables its cell was missing.
    notes : tuple of str
        What the reader of a result should know.
    roles : Roles
        The columns' roles in the first table.
    texts : mapping of str to ndarray of str, shape (n,)
        The column of texts or paths that was encoded or named as images, as it stands in the
        table, for the rows of the sets.
    images : ndarray of str, shape (n,), optional
        The image file of each row, as an absolute path; it need not exist.
    """

    evalsets: tuple[EvalSet, ...]
    explanation: tuple[ColumnUse, ...]
    dropped: int = 0
    dropped_by: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    roles: Roles = field(default_factory=lambda: Roles(y="y"))
    texts: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    images: npt.NDArray[Any] | None = None


def load(
    source: Any,
    *,
    y: str | None = None,
    point: str | None = None,
    lower: Names = None,
    upper: Names = None,
    coverage: float | Sequence[float] | None = None,
    mean: str | None = None,
    sd: str | None = None,
    quantiles: Mapping[float, str] | Names = None,
    samples: Names = None,
    law: str | None = None,
    groups: Names = None,
    features: Names = None,
    embedding: Names = None,
    encode: Encode = None,
    image: str | None = None,
    weights: str | None = None,
    weights_kind: str | None = None,
    cluster: str | None = None,
    time: str | None = None,
    model: str | None = None,
    rows: str | None = None,
    missing: Missing = "error",
    crossing: Crossing = "error",
    encoding: str | None = None,
    decimal: str = ".",
    progress: Listener | None = None,
) -> Loaded:
    """Read a table, or several, into evaluation sets.

    Parameters
    ----------
    source : path, dataframe, mapping of str to array, or sequence of these
        A file (.csv, .tsv, also .gz and .zst; .parquet; .arrow, .feather), any dataframe that
        narwhals takes, or arrays by name. Several are several models on the same rows; each is
        called after its file. What is known of the rows besides (groups, features, weights,
        cluster, time) comes from the first.
    y, point, lower, upper, coverage, mean, sd, quantiles, samples, law, groups, features, \
embedding, encode, image, weights, cluster, time, model, rows
        The columns of each role, as in `Flags`; names decide where nothing is said, and ``""``
        leaves a role empty. Paths of images start from the table's folder.
    weights_kind : {"frequency", "importance"}, optional
        What weights mean: ``frequency`` unless the column is called ``importance_weight``.
    missing : {"error", "drop"}
        What to do with rows where a cell is missing.
    crossing : {"error", "sort"}
        What to do with rows whose quantiles cross.
    encoding : str, optional
        Encoding of text files; UTF-8, or what a byte order mark says, if omitted.
    decimal : {".", ","}
        Decimal mark of text files.
    progress : callable, optional
        Called with a stage's name, steps done and steps in all, where a column is encoded.

    Returns
    -------
    Loaded

    Raises
    ------
    InputError
        If a table cannot be read, its columns cannot be told apart, a cell is missing or is not
        what its role needs, a belief is impossible, models do not share their rows, or a column
        cannot be encoded.

    Examples
    --------
    >>> loaded = load({"y": [1.0, 2.0], "lower_90": [0.0, 1.0], "upper_90": [2.0, 3.0]})
    >>> loaded.evalsets[0].beliefs[0].coverages
    (0.9,)
    >>> [f"{use.column}: {use.role}" for use in loaded.explanation]
    ['y: y', 'lower_90: lower end at 90 %', 'upper_90: upper end at 90 %']
    """
    for name, value, known in (
        ("missing", missing, ("error", "drop")),
        ("crossing", crossing, ("error", "sort")),
    ):
        if value not in known:
            raise InputError(f"{name} must be {known[0]!r} or {known[1]!r}, got {value!r}")
    flags = Flags(
        y=y,
        point=point,
        lower=lower,
        upper=upper,
        coverage=coverage,
        mean=mean,
        sd=sd,
        quantiles=quantiles,
        samples=samples,
        law=law,
        groups=groups,
        features=features,
        embedding=embedding,
        encode=encode,
        image=image,
        weights=weights,
        cluster=cluster,
        time=time,
        model=model,
        rows=rows,
    )
    tables: list[tuple[Source, Cells]] = []
    notes: list[str] = []
    for table, roles in _with_roles(sources(source, encoding, decimal), flags):
        cells, remarks = read_cells(table, roles)
        cells.check_finite()
        notes += [f"{table.title}: {remark}" for remark in (*table.notes, *remarks)]
        tables.append((table, cells))
    gaps = _gaps([cells for _, cells in tables], missing)
    parts = _named_parts(tables)
    kept = _kept(parts, gaps)
    check_same_rows(parts, kept)
    first = parts[0].take(kept)
    with listening(progress):
        vectors, texts, images = embedded(first.cells, tables[0][0])
    made = build(parts, kept, weights_kind=weights_kind, crossing=crossing, embedding=vectors)
    dropped = sum(cells.n for _, cells in tables) - len(parts) * int(kept.sum())
    if dropped:
        said = ", ".join(f"{quoted(name)} {count}" for name, count in gaps.items())
        notes.append(f"{dropped} rows are left out because a cell is missing ({said})")
    return Loaded(
        evalsets=made,
        explanation=tuple(
            use for table, cells in tables for use in cells.roles.explain(table.names, table.title)
        ),
        dropped=dropped,
        dropped_by=gaps,
        notes=(*notes, *crossing_notes(made)),
        roles=tables[0][1].roles,
        texts=texts,
        images=images,
    )


def explain(
    source: Any, flags: Flags | None = None, *, encoding: str | None = None, decimal: str = "."
) -> tuple[ColumnUse, ...]:
    """How the columns of a table would be read, from their names alone.

    Parameters
    ----------
    source, encoding, decimal
        As in `load`.
    flags : Flags, optional
        What the caller says of the columns.

    Raises
    ------
    InputError
        If a table cannot be opened, or its columns cannot be told apart.

    Examples
    --------
    >>> [use.role for use in explain({"y": [1.0], "pred": [1.5], "note": ["a"]})]
    ['y', 'point forecast', 'ignored']
    """
    pairs = _with_roles(sources(source, encoding, decimal), flags or Flags())
    return tuple(use for table, roles in pairs for use in roles.explain(table.names, table.title))


def sources(source: Any, encoding: str | None, decimal: str) -> list[Source]:
    many = source if isinstance(source, list | tuple) else [source]
    if not many:
        raise InputError("a table is needed, got none")
    found: list[Source] = []
    for number, item in enumerate(many, 1):
        title = "the table" if len(many) == 1 else f"table {number}"
        if isinstance(item, str | os.PathLike):
            found.append(open_table(item, encoding=encoding, decimal=decimal))
        elif isinstance(item, Mapping):
            found.append(MappingTable(item, title))
        else:
            found.append(FrameTable(item, title))
    return found


def embedded(
    cells: Cells, source: Source
) -> tuple[FloatArray | None, Mapping[str, npt.NDArray[Any]], npt.NDArray[Any] | None]:
    """The encoded column's vectors, texts and paths to show, and the files of images."""
    roles = cells.roles
    try:
        column = image_column(roles, None if roles.encode is None else cells.texts[roles.encode[0]])
    except InputError as error:
        raise InputError(f"{source.title}: {error}") from error
    images = None if column is None else located(cells.texts[column], source.folder)
    if roles.encode is None:
        return None, cells.texts, images
    name, encoder = roles.encode
    vectors = encoded(
        cells.texts[name],
        name,
        encoder,
        images=images if column == name else None,
        title=source.title,
    )
    return vectors, cells.texts, images


def _with_roles(sources: Sequence[Source], flags: Flags) -> list[tuple[Source, Roles]]:
    """Roles of each table; after the first, only those that tell of a model, and its groups."""
    pairs: list[tuple[Source, Roles]] = []
    for source in sources:
        if pairs:
            groups = [name for name in pairs[0][1].groups if name in source.names]
            flags = replace(
                flags,
                groups=groups,
                features="",
                embedding="",
                encode=None,
                image=None,
                weights="",
                cluster="",
                time="",
            )
        try:
            pairs.append((source, assign_roles(source.names, flags)))
        except InputError as error:
            raise InputError(f"{source.title}: {error}") from error
    return pairs


def _gaps(tables: Sequence[Cells], missing: Missing) -> dict[str, int]:
    """Number of missing cells by column; an error where they are one."""
    counts: dict[str, int] = {}
    for cells in tables:
        found = cells.missing()
        if found and missing == "error":
            said = ", ".join(
                f"{int(gone.sum())} in {quoted(name)} (first at row {int(np.argmax(gone))})"
                for name, gone in found.items()
            )
            raise InputError(
                f"{cells.title}: no cell may be missing, got {said}, rows counted from 0; "
                "missing='drop' (--missing drop) leaves such rows out"
            )
        for name, gone in found.items():
            counts[name] = counts.get(name, 0) + int(gone.sum())
    return counts


def _named_parts(tables: Sequence[tuple[Source, Cells]]) -> list[Part]:
    """The models of all tables, each under a name of its own, their rows in one order."""
    parts: list[Part] = []
    several = len(tables) > 1
    for number, (table, cells) in enumerate(tables, 1):
        stem = _stem(table) or (f"model {number}" if several else "model")
        found = split_models(cells, stem)
        if several and cells.roles.model is not None:
            found = [replace(part, model=f"{stem}/{part.model}") for part in found]
        parts += found
    names = [part.model for part in parts]
    if len(set(names)) < len(names):
        raise InputError(
            f"models must have different names, got {listed(names)}; a model is called after its "
            "file or by the model column"
        )
    if not parts:
        raise InputError("a model is needed, and every row misses its model's name")
    return align(parts) if len(parts) > 1 else parts


def _stem(source: Source) -> str:
    if isinstance(source, FrameTable | MappingTable):
        return ""
    path = Path(source.title)
    return Path(path.stem).stem if path.suffix.lower() in COMPRESSION else path.stem


def _kept(parts: Sequence[Part], gaps: Mapping[str, int]) -> BoolArray:
    """The aligned rows that miss nothing in any model."""
    kept = np.ones(parts[0].cells.n, dtype=np.bool_)
    for part in parts:
        for gone in part.cells.missing().values():
            kept &= ~gone
    if not kept.any():
        said = ", ".join(f"{count} cells miss in {quoted(name)}" for name, count in gaps.items())
        raise InputError(f"a row without missing cells is needed, got none: {said}")
    return kept
