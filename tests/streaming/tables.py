"""Tables that tests of streaming cut into parts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from howsure.inputs import Loaded
from howsure.inputs.tables import Scan, cut
from howsure.report.assess import assess_loaded
from howsure.report.assessment import Assessment
from howsure.report.options import Options
from howsure.streaming import State, loaded_state, scan_table


def normal_table(n: int = 6_000, seed: int = 0) -> pa.Table:
    """Intervals and normal laws, in one site too narrow; clusters, times and weights beside."""
    rng = np.random.default_rng(seed)
    mean, sd = rng.normal(size=n), np.exp(rng.normal(size=n) / 3)
    site = rng.integers(0, 4, n)
    y = mean + sd * rng.normal(size=n) * np.where(site == 2, 1.3, 1.0)
    return pa.table(
        {
            "y": y,
            "lower_90": mean - 1.6449 * sd,
            "upper_90": mean + 1.6449 * sd,
            "mean": mean,
            "sd": sd,
            "site": np.array(["a", "b", "c", "d"])[site],
            "hour": rng.integers(0, 3, n),
            "weight": rng.integers(1, 4, n),
            "house": rng.integers(0, 300, n),
            "day": np.sort(rng.integers(0, 500, n)),
        }
    )


COLUMNS = {"groups": "site,hour", "weights": "", "cluster": "", "time": ""}


def parts_of(table: pa.Table, cuts: Sequence[int]) -> Iterator[pa.Table]:
    """The rows between these places."""
    edges = [0, *sorted(cuts), table.num_rows]
    return (table.slice(a, b - a) for a, b in itertools.pairwise(edges) if b > a)


def cut_of(table: pa.Table, cuts: Sequence[int] = (), **columns: str) -> Scan:
    """The table in parts."""
    return cut(parts_of(table, cuts), **{**COLUMNS, **columns})


def state_of(table: pa.Table, cuts: Sequence[int] = (), most: int = 1_000, **columns: str) -> State:
    """The state of a table that is read in parts."""
    return scan_table(cut_of(table, cuts, **columns), most=most)


def by_parts(state: State) -> Assessment:
    """The assessment of a state."""
    return assess_loaded(loaded_state(state), Options(trials=False))


def at_once(table: pa.Table, **columns: str) -> Assessment:
    """The assessment of all rows."""
    from howsure.inputs import load

    return assess_loaded(
        Loaded(evalsets=load(table, **{**COLUMNS, **columns}).evalsets), Options(trials=False)
    )
