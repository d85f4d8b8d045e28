"""Visits of groups as units, against loops over spells, and their rates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from howsure.core.rng import child
from howsure.stats.estimate import spells_of

YEARS = np.repeat([3, 0, 1, 2, 3, 0, 1, 2, 3], [60, 92, 92, 91, 90, 92, 92, 91, 30])


def from_the_definition(
    values: np.ndarray, mass: np.ndarray, times: np.ndarray, codes: np.ndarray, least: float
) -> tuple[list[int], list[float]]:
    present = sorted(set(times.tolist()))
    spells = []
    for group in range(int(codes.max()) + 1):
        held: list[int] = []
        for rank, time in enumerate(present):
            rows = np.flatnonzero((times == time) & (codes == group)).tolist()
            if rows:
                held.append(rank)
        runs = np.split(held, np.flatnonzero(np.diff(held) > 1) + 1)
        spells.append(
            [np.isin(times, [present[r] for r in run]) & (codes == group) for run in runs]
        )
    mean = lambda rows: float(np.average(values[rows], weights=mass[rows]))  # noqa: E731
    freedom = sum(map(len, spells)) - len(spells)
    between = sum(
        mass[run].sum() * (mean(run) - mean(codes == group)) ** 2
        for group, runs in enumerate(spells)
        for run in runs
    )
    told = []
    for group in range(len(spells)):
        inside = codes == group
        per_mass = max(between / freedom, least)
        error = np.sqrt(per_mass * (1 / mass[inside].sum() + 1 / mass[~inside].sum()))
        told.append(2 * stats.t.sf(abs(mean(inside) - mean(~inside)) / error, freedom))
    return [len(runs) for runs in spells], told


@pytest.mark.parametrize("least", [0.0, 50.0])
def test_spells_are_as_defined(least: float) -> None:
    """Rows in any order, several at a time, with weights and missing times."""
    rng = child(0, "spells", least)
    kept = rng.choice(len(YEARS), 600, replace=False)
    kept = np.r_[kept, kept[:200]]
    values, mass = rng.normal(size=800) + 0.3 * (YEARS[kept] == 3), rng.uniform(0.5, 2.0, 800)
    found = spells_of(values, mass, kept * 24, YEARS[kept], 4, least)
    counts, p = from_the_definition(values, mass, kept, YEARS[kept], least)
    assert found.counts.tolist() == counts == [2, 2, 2, 3]
    assert found.p == pytest.approx(p, rel=1e-9)


def test_groups_that_are_always_there_or_never_return_have_no_spells() -> None:
    times = np.repeat(np.arange(100), 3)
    values, mass = child(1, "spells").normal(size=300), np.ones(300)
    plants = spells_of(values, mass, times, np.tile([0, 1, 2], 100), 3)
    halves = spells_of(values, mass, times, (times >= 50) + 0, 2)
    gap = np.where((times == 40) & (np.arange(300) % 3 == 0), 1, np.tile([0, 1, 2], 100))
    for found in (plants, halves, spells_of(values, mass, times, gap, 3)):
        assert not found.counts.any()
        assert np.isnan(found.p).all()


def test_spells_keep_their_level_where_each_has_its_own() -> None:
    """5 % of 1,000 tables, with their error, of the largest group's p-value."""
    rng, low = child(2, "spells"), 0
    spell = np.cumsum(np.diff(YEARS, prepend=-1) != 0) - 1
    for _ in range(1_000):
        values = rng.normal(size=len(YEARS)) + rng.normal(size=spell.max() + 1)[spell]
        found = spells_of(values, np.ones(len(YEARS)), np.arange(len(YEARS)), YEARS, 4)
        low += found.p[1] < 0.05
    assert 0.02 < low / 1_000 < 0.075
