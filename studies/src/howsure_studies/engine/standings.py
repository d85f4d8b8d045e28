"""Methods over all worlds of a study by one measure: how far ranks are known, and the best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, final

import numpy as np
import pyarrow as pa
from pyarrow import compute as pc

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import UnanswerableError
from howsure.core.records import Direction, ResultTable
from howsure.core.rng import child
from howsure_studies.engine.confidence_sets import (
    confidence_set,
    difference_intervals,
    rank_intervals,
)
from howsure_studies.engine.ranks import method_ranks

Scale = Literal["ratio", "share", "rank"]
"""What a method scores on a world: a log ratio to the mean of all, a distance, or its rank."""
FEWEST_WORLDS: Final = 5
_SEED: Final = 0
_COLUMNS: Final = frozenset(
    ("world", "part_of", "method", "metric", "coverage", "value", "direction", "target")
)


@final
@frozen(kw_only=True, eq=False)
class Standings:
    """Methods over worlds by one measure, ordered by their mean score; arrays of shape (k,).

    Attributes
    ----------
    metric : str
        The measure.
    coverage : float
        The nominal coverage that it belongs to; NaN where none.
    scale : {"ratio", "share", "rank"}
        What a method scores on a world; lower is better. ``ratio``: ln of its value less the mean
        ln of all methods, where all values are above 0 and lower is better. ``share``: how far a
        share is from its target. ``rank``: its rank, 1 being best, of any other measure.
    methods : tuple of str
        Those with a number on every world.
    left_out : tuple of str
        Those without.
    worlds : tuple of str
        The problems, taken as independent. A world's score is the mean over its parts.
    parts : int
        Parts of worlds, such as steps of a shift; as many as worlds where these have none.
    mean_rank : ndarray of float
        By rank on each world.
    lower, upper : ndarray of int
        Intervals of ranks by true mean score; all hold together with 95 % confidence.
    best : ndarray of bool
        The 95 % confidence set: those not shown to be worse than the best.
    gap, gap_lower, gap_upper : ndarray of float
        Mean score less that of the first method, with a 95 % interval that holds alone.
    """

    metric: str
    coverage: float
    scale: Scale
    methods: tuple[str, ...]
    left_out: tuple[str, ...]
    worlds: tuple[str, ...]
    parts: int
    mean_rank: FloatArray
    lower: IntArray
    upper: IntArray
    best: BoolArray
    gap: FloatArray
    gap_lower: FloatArray
    gap_upper: FloatArray

    @classmethod
    def of(cls, table: pa.Table, metric: str, coverage: float = math.nan) -> Standings:
        """The standings of a study's table.

        Parameters
        ----------
        table : pyarrow.Table
            Columns ``world``, ``method``, ``seed``, and those of `records_table`; where worlds are
            parts of others, ``part_of`` names these.
        metric : str
            The measure.
        coverage : float
            Its nominal coverage; NaN where none.

        Returns
        -------
        Standings
            Of the methods with a number on every world; where these are fewer than 2, of the
            worlds that methods share, as many methods and worlds as there are. Over seeds, scores
            are averaged.

        Raises
        ------
        UnanswerableError
            If no value of the measure is better, or fewer than 2 methods share 5 worlds.
        """
        rows = _rows(table, metric, coverage)
        if not rows or Direction(rows[0]["direction"]) is Direction.NONE:
            raise UnanswerableError(f"values of {metric} have no better direction")
        whole = {row["world"]: row.get("part_of") or row["world"] for row in rows}
        cells = _cells(rows)
        methods, parts = _shared(cells, whole)
        scale, scores, ranks = _scores(rows, cells, methods, parts)
        worlds, of = np.unique([whole[part] for part in parts], return_inverse=True)
        scores, ranks = (
            np.stack([each[of == world].mean(axis=0) for world in range(len(worlds))])
            for each in (scores, ranks)
        )
        order = np.argsort(scores.mean(axis=0), kind="stable")
        scores, ranks = scores[:, order], ranks[:, order]
        rng = child(_SEED, "standings", metric)
        found, pairs = rank_intervals(scores, rng), difference_intervals(scores)
        return cls(
            metric=metric,
            coverage=coverage,
            scale=scale,
            methods=tuple(methods[i] for i in order),
            left_out=tuple(dict.fromkeys(r["method"] for r in rows if r["method"] not in methods)),
            worlds=tuple(worlds.tolist()),
            parts=len(parts),
            mean_rank=ranks.mean(axis=0),
            lower=found.lower,
            upper=found.upper,
            best=confidence_set(scores, rng).member,
            gap=pairs.mean[:, 0],
            gap_lower=pairs.lower[:, 0],
            gap_upper=pairs.upper[:, 0],
        )

    def table(self) -> ResultTable:
        """The same for programs, a row a method."""
        rows = len(self.methods)
        return ResultTable(
            name="standings",
            columns={
                "metric": np.array([self.metric] * rows, dtype=object),
                "coverage": np.full(rows, self.coverage),
                "scale": np.array([self.scale] * rows, dtype=object),
                "worlds": np.full(rows, len(self.worlds)),
                "method": np.array(self.methods, dtype=object),
                "mean_rank": self.mean_rank,
                "rank_lower": self.lower,
                "rank_upper": self.upper,
                "in_best_set": self.best,
                "gap": self.gap,
                "gap_lower": self.gap_lower,
                "gap_upper": self.gap_upper,
            },
        )


def _rows(table: pa.Table, metric: str, coverage: float) -> list[dict[str, Any]]:
    """The rows of a measure at its coverage."""
    kept = [name for name in table.column_names if name in _COLUMNS]
    known = table.select(kept).filter(pc.equal(table["metric"], metric))
    without = math.isnan(coverage)
    return [
        row
        for row in known.to_pylist()
        if (math.isnan(row["coverage"]) if without else row["coverage"] == coverage)
    ]


_Cells = Mapping[tuple[str, str], Sequence[float]]
"""Values by method and world, one a seed."""


def _cells(rows: Sequence[Mapping[str, Any]]) -> _Cells:
    """The values of each method on each world where all its seeds gave a number."""
    values: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        values.setdefault((row["method"], row["world"]), []).append(row["value"])
    return {key: own for key, own in values.items() if not any(map(math.isnan, own))}


def _shared(cells: _Cells, whole: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The methods that have numbers on all parts of worlds; else those that share the most."""
    held: dict[str, set[str]] = {}
    for method, world in cells:
        held.setdefault(method, set()).add(world)
    every = set().union(*held.values()) if held else set()

    def having(worlds: set[str]) -> list[str]:
        return [method for method, own in held.items() if worlds <= own]

    sets = [every] if len(having(every)) > 1 else list(held.values())
    known = [
        own
        for own in sets
        if len({whole[part] for part in own}) >= FEWEST_WORLDS and len(having(own)) > 1
    ]
    if not known:
        raise UnanswerableError(f"no 2 methods have numbers on the same {FEWEST_WORLDS} worlds")
    chosen = max(known, key=lambda worlds: len(worlds) * len(having(worlds)))
    return having(chosen), [w for w in dict.fromkeys(world for _, world in cells) if w in chosen]


def _scores(
    rows: Sequence[Mapping[str, Any]], cells: _Cells, methods: Sequence[str], parts: Sequence[str]
) -> tuple[Scale, FloatArray, FloatArray]:
    """The scale, and scores and ranks of shape (parts, methods), which are averaged over seeds."""
    direction, target = Direction(rows[0]["direction"]), rows[0]["target"]
    values = [[np.array(cells[method, world]) for method in methods] for world in parts]
    every = np.concatenate([own for line in values for own in line])

    def averaged(cost: Any) -> FloatArray:
        return np.array([[float(np.mean(cost(own))) for own in line] for line in values])

    if direction is Direction.LOWER and (every > 0.0).all() and np.isfinite(every).all():
        logs = averaged(np.log)
        return "ratio", logs - logs.mean(axis=1, keepdims=True), method_ranks(logs)
    if direction is Direction.TARGET:
        off = averaged(lambda own: np.abs(own - target))
        if 0.0 < target < 1.0 and (every >= 0.0).all() and (every <= 1.0).all():
            return "share", off, method_ranks(off)
    else:
        off = averaged(lambda own: own if direction is Direction.LOWER else -own)
    ranks = method_ranks(np.nan_to_num(off))  # what is infinite is the worst or the best
    return "rank", ranks, ranks
