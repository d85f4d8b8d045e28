"""Rows that were predicted and have no y: how many, whether they look like the rest, what follows.

Labels that are missing by what was stated of rows show in it. Labels that are missing by the size
of the error leave no trace there: what is left looks like light tails and too wide intervals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import fft, special

from howsure.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from howsure.core.errors import UnanswerableError
from howsure.core.rng import child, row_hashes
from howsure.engine.autocorrelation import mid_ranks
from howsure.engine.finding import LEVEL, Case
from howsure.engine.view import View
from howsure.predictions import EvalSet
from howsure.stats.estimate import spread_of
from howsure.verdict.copies import RowFault

NAME = "without_y"
"""Of the check."""
LACKING = "rows without y"
"""What narrower intervals may be wrong for."""
# p = .05 of 999 has a standard error of .007; 2 million numbers are 16 MB.
_PERMUTATIONS, _NUMBERS_AT_ONCE = 999, 2_000_000
# Rows with y, without it, or of a group, without which nothing sets them apart: all orders of five
# among ten others are 3,003. Not tuned.
_MIN_ROWS = 5
# 20,000 rows by 999 permutations are 20 million products for each column; 100 labels of a column
# are as many columns.
_MAX_ROWS, _MAX_LABELS = 20_000, 100
# Part of all rows by which those without y are turned round in time, at least: by less, spells
# still overlap themselves, and no turn looks like chance.
_LARGEST_PART_TURNED = 20
# Of a sum over rows without y, in those of as many independent rows: a column that turns hardly
# move would give any distance. Not tuned.
_MIN_RELATIVE_SD = 0.05


def without_y(case: Case) -> RowFault | None:
    """How many rows have no y, what sets them apart, and between what coverage of all rows is."""
    held, rest = case.evalset, case.evalset.without_y
    if rest is None:
        return None
    known, lacking = _count(held), _count(rest)
    facts: dict[str, Any] = {"n": known + lacking, "apart": _what_is_apart(held, rest)}
    try:
        hits = known * float(np.average(case.array("covered"), weights=held.multiplicities))
    except UnanswerableError:
        pass
    else:
        facts["between"] = (hits / facts["n"], (hits + lacking) / facts["n"])
    share, harmless = lacking / facts["n"], not facts["apart"]
    return RowFault(name=NAME, rows=lacking, share=share, harmless=harmless, facts=facts)


def _count(evalset: EvalSet) -> float:
    """Rows, each as often as its frequency says."""
    frequent = evalset.weights is not None and evalset.weights.kind == "frequency"
    rows = float(evalset.mass.sum()) if frequent else float(evalset.n)
    return rows / evalset.share


def _what_is_apart(evalset: EvalSet, rest: EvalSet) -> Mapping[str, Any]:
    """The number or group by which rows without y differ most from the rest; nothing by chance.

    The largest |z| over ranks and ends of stated numbers, and over groups. Which rows lack y is
    permuted; where each has its own time it comes in spells, and is turned round.
    """
    if min(evalset.n, rest.n) < _MIN_ROWS:
        return {}
    stated, others = _stated(evalset), _stated(rest)
    joined = {
        name: np.concatenate([values, others[name]])
        for name, values in stated.items()
        if name in others
    }
    gone = np.r_[np.zeros(evalset.n, dtype=np.bool_), np.ones(rest.n, dtype=np.bool_)]
    numbers = [values for values in joined.values() if values.dtype.kind == "f"]
    rows = np.argsort(row_hashes(gone, *numbers), kind="stable")[:_MAX_ROWS]  # whatever the order
    when = _times(evalset, rest)
    if when is not None:
        rows = rows[np.argsort(when[rows], kind="stable")]
    named: list[tuple[str, Any]] = []
    columns: list[FloatArray] = []
    for name, values in joined.items():
        if values.dtype.kind == "f":
            ranks = _centred(mid_ranks(values[rows]))
            named += [(name, False), (name, True)]  # higher or lower; at both ends or between
            columns += [ranks, _centred(np.square(ranks))]
            continue
        for label in np.unique(values)[:_MAX_LABELS].tolist():
            inside = values[rows] == label
            if max(_MIN_ROWS, evalset.fewest) <= inside.sum() < len(rows):
                named.append((name, label))
                columns.append(_centred(inside.astype(np.float64)))
    if not columns:
        return {}
    place, p = _largest(np.array(columns), gone[rows], turned=when is not None)
    if p >= LEVEL:
        return {}
    name, which = named[place]
    values = joined[name]
    if values.dtype.kind != "f":
        inside = values == which
        stands_for = np.where(gone, 1.0 / rest.share, 1.0 / evalset.share)
        shares = [
            float(np.average(gone[part], weights=stands_for[part])) for part in (inside, ~inside)
        ]
        return {"where": f"{name}={which}", "shares": shares}
    ranks = len(gone) * mid_ranks(values)
    few = int(gone.sum())
    return {
        "what": name,
        "ends": which,
        "times": float(np.median(values[gone]) / np.median(values[~gone])),
        "above": float(ranks[gone].mean() - few / 2.0) / (len(gone) - few),
        "outer": float(np.abs(ranks - len(ranks) / 2.0)[gone].mean() / (len(ranks) / 4.0)) > 1.0,
    }


def _stated(evalset: EvalSet) -> dict[str, AnyArray]:
    """What is known of rows without their y: numbers, and labels as text."""
    view, found = View(evalset), {}
    for name in ("uncertainty", "set_sizes", "point"):
        try:
            values = np.asarray(view.get(name), dtype=np.float64)
        except UnanswerableError:
            continue
        found[_CALLED.get(name) or _CALLED[view.source([name])]] = values
    for name, values in evalset.features.items():
        if values.dtype.kind in "biuf":
            found[name] = values.astype(np.float64)
    if evalset.horizon is not None:
        found["horizon"] = evalset.horizon
    return found | {name: column.values().astype(str) for name, column in evalset.groups.items()}


WIDTHS = ("predicted sd", "interval")
"""What says how unsure a model is."""
_CALLED = {"point": "prediction", "set_sizes": "set of labels", "sd": WIDTHS[0], "width": WIDTHS[1]}


def _times(evalset: EvalSet, rest: EvalSet) -> IntArray | None:
    """The rank of each row's time, where hardly two have one."""
    if evalset.time is None or rest.time is None:
        return None
    times, place = np.unique(np.concatenate([evalset.time, rest.time]), return_inverse=True)
    return place if len(times) > _SHARE_OF_OWN_TIMES * len(place) else None


# Share of rows with a time of their own from which on they are in time. A few ties in a clock's
# seconds do no harm. Not tuned.
_SHARE_OF_OWN_TIMES = 0.9


def _centred(values: FloatArray) -> FloatArray:
    """With mean 0 and variance 1; 0 of what is constant."""
    off = values - values.mean()
    return np.asarray(off / max(float(off.std()), 1e-300))


def _largest(columns: FloatArray, gone: BoolArray, *, turned: bool) -> tuple[int, float]:
    """The column of shape (k, n) whose sum over some rows is farthest from 0, and its p-value."""
    n = len(gone)
    if turned:  # every turn but the smallest, at once
        spectrum = fft.rfft(columns) * np.conj(fft.rfft(gone.astype(np.float64)))
        least = n // _LARGEST_PART_TURNED
        drawn = fft.irfft(spectrum, n)[:, least : n - least]
    else:
        rng, step = child(0, NAME), max(1, _NUMBERS_AT_ONCE // n)
        parts = [
            columns @ rng.permuted(np.tile(gone, (min(step, _PERMUTATIONS - start), 1)), axis=1).T
            for start in range(0, _PERMUTATIONS, step)
        ]
        drawn = np.concatenate(parts, axis=1)
    sd = np.sqrt(np.square(drawn).mean(axis=1))
    sd = np.maximum(sd, _MIN_RELATIVE_SD * math.sqrt(float(gone.sum())))
    z, reached = np.abs(columns @ gone) / sd, (np.abs(drawn) / sd[:, None]).max(axis=0)
    place = int(np.argmax(z))
    beyond = np.count_nonzero(reached >= z[place] * (1.0 - 1e-9))
    return place, float((1 + beyond) / (1 + len(reached)))


# ---- whether predictions may be narrowed ---------------------------------------------------------

# Coverages at which too wide predictions show, beside the headline.
_CENTRAL_COVERAGES = (0.25, 0.5, 0.75)
# Half as much again as what is proven: that still lies nearer to the truth than what was stated.
_POWER_OF_SCALE = 1.5
# Of right predictions, whatever labels are missing, this share at most may be narrowed. Strict, as
# narrower intervals cost more than wide ones.
_LEVEL = 0.01


def least_width(evalset: EvalSet, coverage: float) -> float:
    """To what share of their width intervals may be narrowed, whatever the y of rows without it.

    Light tails and intervals that cover too often are what is left where labels are missing by the
    size of the error. But no lack adds hits: where an interval holds y in more rows than it claims
    even if all rows without y are missed, stated spreads are too large by so much at least. What
    is narrower by half as much again still lies nearer to that than to what was stated.
    """
    rest = evalset.without_y
    if rest is None:
        return 0.0
    view, share = View(evalset), _count(evalset) / (_count(evalset) + _count(rest))
    weights, tested = evalset.weights, dict.fromkeys((coverage, *_CENTRAL_COVERAGES))
    n = evalset.n if weights is None else weights.effective_n
    scale = 1.0
    for claim in tested:
        try:
            hits = np.asarray(view.get("covered", claim), dtype=np.float64)
        except UnanswerableError:
            continue
        mean = float(np.average(hits, weights=evalset.multiplicities))
        spread = spread_of(hits - mean, weights, evalset.units)
        plain = math.sqrt(claim * (1.0 - claim) * share / n)
        error = max(share * float(np.nan_to_num(spread.error[0], nan=math.inf)), plain)
        t = (share * mean - claim) / error
        if spread.tail(t) * len(tested) < _LEVEL:
            reach = special.ndtri((1.0 + np.array([claim, share * mean])) / 2.0)
            scale = min(scale, float(reach[0] / reach[1]))
    return float(scale**_POWER_OF_SCALE)
