"""What is found of a method's intervals at the points of a world, for pages to tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from howsure.core import formats
from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import UnanswerableError
from howsure.core.records import Table
from howsure.metrics.pointwise import Brier
from howsure.report.document import Tone
from howsure_studies.pointwise.measures import default_names, failing_ranges, failing_regions
from howsure_studies.pointwise.simulation import PointwiseResult, Which

NEAR: Final = 0.02
"""Distance from the nominal coverage that an average may have and look right."""
_MARGIN: Final = 0.03
"""How near nominal coverage must be shown to lie, at half of the test points, to earn a ✓."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PointwiseFinding:
    """How the intervals of one method cover at the points of one world, at one coverage."""

    result: PointwiseResult
    which: Which
    coverage: float
    value: FloatArray  # at each test point
    verdict: IntArray  # −1 significantly below nominal, +1 above
    reach: float  # median over points of how far coverage may still lie from nominal
    score: Brier
    where: Table  # regions that are significantly off, those that add most to the score first

    @classmethod
    def of(
        cls,
        result: PointwiseResult,
        which: Which,
        coverage: float,
        names: Sequence[str] | None,
    ) -> PointwiseFinding:
        trials = len(result.by_trial(which, coverage))
        if trials < 2:
            raise UnanswerableError(f"at least two trials are needed, {trials} succeeded")
        band = result.band(which, coverage)
        return cls(
            result=result,
            which=which,
            coverage=coverage,
            value=band.value,
            verdict=band.verdict(coverage),
            reach=float(np.median(np.maximum(band.upper - coverage, coverage - band.lower))),
            score=result.brier(which, coverage),
            where=_where(result, which, coverage, names),
        )

    @property
    def mean(self) -> float:
        """Coverage averaged over the test points."""
        return float(self.value.mean())

    @property
    def off(self) -> float:
        """Share of the test points at which coverage differs significantly from nominal."""
        return float((self.verdict != 0).mean())

    @property
    def tone(self) -> Tone:
        """Whether it fails, is shown to be right, or neither."""
        return "bad" if self.off else "good" if self.near else "undecided"

    @property
    def near(self) -> bool:
        """Whether at half of the test points coverage is shown to be near the nominal one."""
        return self.reach <= _MARGIN

    @property
    def typical(self) -> float:
        """Typical distance from nominal, in percentage points: the root of the Brier score."""
        return 100 * math.sqrt(max(self.score.corrected, 0.0))


def _where(
    result: PointwiseResult, which: Which, coverage: float, names: Sequence[str] | None
) -> Table:
    """Regions of significant failure: runs along x, or the leaves of a tree."""
    if result.x.shape[1] == 1:
        name = (names or default_names(1))[0]
        regions = failing_ranges(result, which, coverage)
        rows = np.arange(len(regions))
        ends = zip(regions.columns["from"], regions.columns["to"], strict=True)
        words = [
            f"{name} is {_short(low)} to {_short(high)}"
            if low < high
            else f"{name} is {_short(low)}"
            for low, high in ends
        ]
        columns = {**regions.columns, "where": np.array(words, dtype=object)}
    else:
        try:
            regions = failing_regions(result, which, coverage, names)
        except UnanswerableError:
            return Table(name=f"{which}_where", columns={})
        columns = dict(regions.columns)
        rows = np.flatnonzero(columns["verdict"] != 0)
    weight = columns["points"][rows] * np.square(columns["coverage"][rows] - coverage)
    rows = rows[np.argsort(-weight, kind="stable")]
    kept = {name: columns[name][rows] for name in ("where", "points", "coverage", "verdict")}
    return Table(name=f"{which}_where", columns=kept, notes=regions.notes)


def _short(number: float) -> str:
    return formats.minus(formats.short(number))


def percent(share: float) -> str:
    """A share in percent for a sentence; the sign keeps to its number."""
    return formats.percent(share).replace(" ", "\N{NO-BREAK SPACE}")
