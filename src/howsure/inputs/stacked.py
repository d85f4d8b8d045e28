"""Rows of several models under one another, where no column was taken for the model's name."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.errors import InputError
from howsure.inputs import values
from howsure.inputs.cells import ParsedColumns
from howsure.inputs.long import codes_of, telling
from howsure.inputs.names import normal_form
from howsure.inputs.roles import BY_NAME
from howsure.inputs.source import Source, listed, quoted
from howsure.inputs.values import Labels

MOST_MODELS: Final = 100
_CHANCE: Final = 1e-3
"""That labels at random share out rows that are k times there as k models would, at most."""
_NEARLY: Final = 0.9
"""Share of rows that must be those of every label: a few that some model lacks hide no stack."""


def check_unstacked(table: Source, cells: ParsedColumns) -> None:
    """Raise `InputError` where the labels of a column evidently are models on the same rows.

    They are where each label has the same rows: the same names of rows or, without names, the
    same y and inputs, as often and varied enough for that to be no chance. Where a column was
    taken for the model's name, it is asked of the first model, and of levels of quantiles alone.
    """
    models = cells.one("model")
    if models is not None and _is_wide(cells):
        return
    rows = np.flatnonzero(np.isfinite(cells.one("y")))
    if models is not None:
        rows = rows[models.codes[rows] == models.codes[0]]
    cells = cells if len(rows) == cells.n else cells.take(rows)
    roles, y = cells.roles, cells.one("y")
    said = {name for role, name, _ in roles.uses() if role.name not in roles.guessed}
    kept = said | {name for role, name, _ in roles.uses() if role.name != "groups"}
    free = [name for name in table.names if name and name not in kept]
    names = cells.one("rows")
    if not free or len(y) < 10:
        return
    units = codes_of([y])
    if names is not None:
        units = codes_of([names.astype(str)])
        if len(np.unique(units)) == len(units) or not _one_y(units, y):
            return
    elif not _repeats(units):
        return
    inputs = [column for role in ("features", "time") for column in cells.of(role).values()]
    held = table.read(dict.fromkeys(free, "key"))
    found = []
    for name in free:
        labels = values.keys(held[name], name).take(rows)
        used = len(np.unique(labels.codes))
        if not 2 <= used <= MOST_MODELS:
            continue
        shown = [str(labels.labels[c]) for c in np.unique(labels.codes)]
        if models is not None and not _are_levels(name, shown):
            continue
        others = [c for c in inputs if not (isinstance(c, Labels) and _same(c.codes, labels.codes))]
        if names is not None:
            sure = _names_again(units, labels.codes)
        else:
            sure = _rows_again(y, others, labels.codes, used)
        if sure:
            found.append((name, shown))
    if found and models is not None:
        name, shown = found[0]
        raise InputError(
            f"{cells.title}: the labels of {quoted(name)} ({listed(shown, 3)}) each hold the same "
            f"rows of one model, as levels of quantiles do: pass {_as_levels(name)}, or "
            f"quantile_level='' ({BY_NAME['quantile_level'].option} \"\") where they are none"
        )
    if found:
        name, shown = found[0]
        more = f" (as do those of {listed(n for n, _ in found[1:])})" * (len(found) > 1)
        raise InputError(
            f"{cells.title}: the labels of {quoted(name)} ({listed(shown, 3)}) each hold the same "
            f"rows{more}, as models under one another do: pass model={quoted(name)} "
            f"({BY_NAME['model'].option} {shlex.quote(name)}), or model='' "
            f'({BY_NAME["model"].option} "") where they are no models'
            + _levels_said(cells, name, shown)
        )


def _levels_said(cells: ParsedColumns, name: str, labels: Sequence[str]) -> str:
    """How to say that the labels are levels, where they can be."""
    shares = not _is_wide(cells) and _lie_within(labels, 100)
    return f"; levels of quantiles, as shares, are {_as_levels(name)}" if shares else ""


def _as_levels(name: str) -> str:
    """How to say that a column holds levels."""
    option = BY_NAME["quantile_level"].option
    return f"quantile_level={quoted(name)} ({option} {shlex.quote(name)})"


def _are_levels(name: str, labels: Sequence[str]) -> bool:
    """Whether labels beside a model's name are levels: shares, or per cent where the name helps."""
    known = BY_NAME["quantile_level"].matches(normal_form(name))
    return _lie_within(labels, 100 if known else 1)


def _lie_within(labels: Sequence[str], most: float) -> bool:
    """Whether all labels are numbers between 0 and another."""
    try:
        return all(0 < float(label) < most for label in labels)
    except ValueError:
        return False


def _is_wide(cells: ParsedColumns) -> bool:
    """Whether a row holds more than a point forecast."""
    wide = ("lower", "sd", "variance", "quantiles", "samples", "law")
    return any(cells.roles[role] for role in wide)


def _same(one: IntArray, other: IntArray) -> bool:
    """Whether two columns of codes divide rows alike."""
    pairs = len(np.unique(codes_of([one, other])))
    return pairs == len(np.unique(one)) == len(np.unique(other))


def _repeats(units: IntArray) -> bool:
    """Whether models may repeat values of y: all alike, or nearly all where y tells rows."""
    counts = np.unique(units, return_counts=True)[1]
    alike = (counts > 1).mean() >= _NEARLY and len(counts) * MOST_MODELS >= len(units)
    return alike or math.gcd(*counts.tolist()) > 1


def _one_y(units: IntArray, y: FloatArray) -> bool:
    """Whether rows of one name have one y, those of its most frequent value aside, and y varies."""
    first = np.unique(units, return_index=True)[1]
    found, counts = np.unique(y, return_counts=True)
    same = (y[first][units] == y)[y != found[np.argmax(counts)]]
    return len(found) >= 5 and bool(same.mean() >= _NEARLY)


def _names_again(units: IntArray, labels: IntArray) -> bool:
    """Whether most names of rows stand under several labels, and few twice under one."""
    if len(np.unique(codes_of([units, labels]))) < _NEARLY * len(units):
        return False
    return bool((np.bincount(units) > 1).mean() > 0.5)


def _under_every_label(units: IntArray, labels: IntArray, used: int) -> BoolArray:
    """Which rows are of units that stand under every label, equally often."""
    pairs = codes_of([units, labels])
    _, first, counts = np.unique(pairs, return_index=True, return_counts=True)
    own = units[first]
    least, most = np.full(units.max() + 1, len(units)), np.zeros(units.max() + 1, dtype=np.int64)
    np.minimum.at(least, own, counts)
    np.maximum.at(most, own, counts)
    return np.asarray(((np.bincount(own) == used) & (least == most))[units])


def _rows_again(y: FloatArray, inputs: Sequence[Any], labels: IntArray, used: int) -> bool:
    """Whether all labels hold nearly the same rows, told by y and by what is known of inputs."""
    plain = [column.codes if isinstance(column, Labels) else column for column in inputs]
    units = codes_of([y, *plain])
    shared = _under_every_label(units, labels, used)
    if shared.mean() < _NEARLY or shared.sum() < 5 * used:
        return False
    y, units, labels = y[shared], units[shared], labels[shared]
    blocks = units[np.lexsort((units, labels))].reshape(used, -1)
    sequence = y[np.argsort(labels, kind="stable")].reshape(used, -1)
    apart = np.count_nonzero(np.diff(labels)) == used - 1 and (sequence == sequence[0]).all()
    chance = (math.factorial(min(used, 20)) / min(used, 20) ** min(used, 20)) ** blocks.shape[1]
    if chance > _CHANCE and not apart:
        return False
    if telling(blocks[0]) if inputs else telling(sequence[0]):
        return True
    steps = np.diff(sequence[0])
    varied = len(np.unique(sequence[0])) >= max(5, len(steps) / 4)
    sorted_ = (steps >= 0).all() or (steps <= 0).all()
    return bool((sequence == sequence[0]).all() and varied and not sorted_)
