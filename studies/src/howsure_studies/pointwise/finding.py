"""What is found of a method's intervals at the points of a world, for pages to tell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

import numpy as np

from howsure.core import formats
from howsure.core.arrays import FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import UnanswerableError
from howsure.core.records import Curve, Record, ResultTable
from howsure_studies.engine import singles
from howsure_studies.pointwise.figures import OneRun, one_run
from howsure_studies.pointwise.formulas import Brier
from howsure_studies.pointwise.measures import (
    bins_for,
    curves,
    default_names,
    failing_ranges,
    failing_regions,
    local_curve,
    points_table,
    principal_component,
    records,
    spread_along,
    trials_table,
)
from howsure_studies.pointwise.simulation import Failure, PointwiseResult, Which

if TYPE_CHECKING:
    from howsure.report.document import Tone

NEAR: Final = 0.02
"""Distance from the nominal coverage that an average may have and look right."""
COMPONENT: Final = "first principal component"
"""What the curve is along that follows those along each column of x."""
_MARGIN: Final = 0.03
"""How near nominal coverage must be shown to lie, at half of the test points, to earn a ✓."""


@final
@frozen(kw_only=True)
class FailingRegion:
    """Test points where coverage is significantly off."""

    where: str
    points: int
    coverage: float
    verdict: int  # −1 below nominal, +1 above


@final
@frozen(kw_only=True, eq=False)
class PointwiseFinding:
    """How the intervals of one method cover at the points of one world, at one coverage."""

    method: str
    which: Which
    coverage: float
    trials: int
    value: FloatArray  # at each test point
    verdict: IntArray  # −1 significantly below nominal, +1 above
    reach: float  # median over points of how far coverage may still lie from nominal
    score: Brier
    regions: tuple[FailingRegion, ...] = ()  # the lowest coverage first, then where it is too high
    note: str = ""  # how the regions were found
    spreads: FloatArray | None = None  # variance along each column of x, where there are several
    along: tuple[Curve, ...] = ()  # coverage along each column of x, and the first component

    @classmethod
    def of(
        cls,
        result: PointwiseResult,
        which: Which,
        coverage: float,
        names: Sequence[str] | None = None,
        *,
        local: bool = False,
    ) -> PointwiseFinding:
        """What is found of a result; where in x it is so, if `local`."""
        trials = len(result.by_trial(which, coverage))
        if trials < 2:
            raise UnanswerableError(f"at least two trials are needed, {trials} succeeded")
        band = result.band(which, coverage)
        finding = cls(
            method=result.method,
            which=which,
            coverage=coverage,
            trials=trials,
            value=band.value,
            verdict=band.verdict(coverage),
            reach=float(np.median(np.maximum(band.upper - coverage, coverage - band.lower))),
            score=result.brier(which, coverage),
        )
        return finding._located(result, names) if local else finding

    def _located(self, result: PointwiseResult, names: Sequence[str] | None) -> PointwiseFinding:
        x = result.x
        titles = tuple(names or default_names(x.shape[1]))
        regions, note = _where(result, self.which, self.coverage, titles)
        if x.shape[1] == 1:
            every = curves(result, coverages=(self.coverage,))
            along = tuple(curve for curve in every if curve.name == self.which)
            return replace(self, regions=regions, note=note, along=along)
        at = result, self.which, self.coverage
        live = [column for column in range(x.shape[1]) if np.ptp(x[:, column]) > 0]
        spreads = np.full(x.shape[1], -np.inf)
        spreads[live] = [spread_along(*at, x[:, column]) for column in live]
        bins = bins_for(len(x))
        if not live:
            return replace(self, regions=regions, note=note, spreads=spreads)
        values, share, loadings = principal_component(x)
        heavy = np.argsort(-np.abs(loadings))[:4]
        made_of = ", ".join(f"{loadings[j]:+.2f} {titles[j]}" for j in heavy).replace("-", "−")
        words = f"The component explains {share:.0%} of the variance; largest weights: {made_of}."
        component = local_curve(*at, values, name=COMPONENT, bins=bins)
        columns = (local_curve(*at, x[:, j], name=titles[j], bins=bins) for j in live)
        along = (*columns, replace(component, notes=words))
        return replace(self, regions=regions, note=note, spreads=spreads, along=along)

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


@final
@frozen(kw_only=True, eq=False)
class PointwiseSummary:
    """What a page tells of a method in a world at one coverage: no interval of a trial but one's.

    Fields as in `PointwiseResult`, and what follows from its trials.
    """

    world: str
    method: str
    seed: int
    covariates: str
    n_train: int
    coverages: tuple[float, ...]
    coverage: float  # that findings, curves, shares and the run are of
    x: FloatArray
    y: FloatArray
    names: tuple[str, ...]  # of the columns of x; empty where they have none
    simulated: bool  # whether the truth is known
    trials: int
    trials_planned: int
    stop: str
    failures: tuple[Failure, ...]
    warnings: Mapping[str, int]
    records: tuple[Record, ...]
    curves: tuple[Curve, ...]
    picf: PointwiseFinding | None
    cicf: PointwiseFinding | None
    missing: str  # why there is no finding of the PICF
    picp: FloatArray  # of each trial
    cicp: FloatArray | None
    run: OneRun | None  # the first trial that succeeded
    tables: tuple[ResultTable, ...] = ()

    @classmethod
    def of(
        cls, result: PointwiseResult, coverage: float, names: Sequence[str] | None = None
    ) -> PointwiseSummary:
        """A result at one coverage, with names of the columns of x."""
        findings: dict[str, PointwiseFinding] = {}
        missing = ""
        for which in ("picf", "cicf"):
            try:
                findings[which] = PointwiseFinding.of(result, which, coverage, names, local=True)
            except UnanswerableError as error:
                missing = missing or (str(error) if which == "picf" else "")
        shared = ("world", "method", "seed", "covariates", "n_train", "coverages", "x", "y")
        kept = (*shared, "trials", "trials_planned", "stop", "failures", "warnings")
        return cls(
            **{name: getattr(result, name) for name in kept},
            coverage=coverage,
            names=tuple(names or ()),
            simulated=result.truth is not None,
            records=records(result),
            curves=curves(result),
            picf=findings.get("picf"),
            cicf=findings.get("cicf"),
            missing=missing,
            picp=result.picp(coverage),
            cicp=result.cicp(coverage) if "cicf" in findings else None,
            run=one_run(result, coverage),
            tables=(points_table(result, coverage), trials_table(result, coverage)),
        )

    @property
    def findings(self) -> Iterator[PointwiseFinding]:
        """Those that there are."""
        yield from (finding for finding in (self.picf, self.cicf) if finding is not None)

    def shortened(self) -> PointwiseSummary:
        """As much as ships: arrays with seven digits, curves of findings alone, no tables."""
        return singles(replace(self, curves=(), tables=()))

    def called(self, method: str, world: str) -> PointwiseSummary:
        """The same under other names of the method and the world."""
        picf, cicf = (
            None if finding is None else _called(finding, method)
            for finding in (self.picf, self.cicf)
        )
        return replace(
            self,
            method=method,
            world=world,
            picf=picf,
            cicf=cicf,
            records=tuple(
                replace(each, model=method, options={**each.options, "world": world})
                for each in self.records
            ),
            curves=tuple(replace(curve, model=method) for curve in self.curves),
            tables=tuple(replace(table, model=method) for table in self.tables),
        )


def _called(finding: PointwiseFinding | None, method: str) -> PointwiseFinding | None:
    """A finding whose method has another name."""
    if finding is None:
        return None
    along = tuple(replace(curve, model=method) for curve in finding.along)
    return replace(finding, method=method, along=along)


def _where(
    result: PointwiseResult, which: Which, coverage: float, names: Sequence[str]
) -> tuple[tuple[FailingRegion, ...], str]:
    """Regions of significant failure, along x or as leaves of a tree, and how they were found."""
    if result.x.shape[1] == 1:
        regions = failing_ranges(result, which, coverage)
        ends = zip(regions.columns["from"], regions.columns["to"], strict=True)
        words = [
            f"{names[0]} is {_short(low)}{f' to {_short(high)}' if low < high else ''}"
            for low, high in ends
        ]
    else:
        try:
            regions = failing_regions(result, which, coverage, names)
        except UnanswerableError:
            return (), ""
        words = regions.columns["where"].tolist()
    numbers = (regions.columns[name] for name in ("points", "coverage", "verdict"))
    found = [
        FailingRegion(where=where, points=int(n), coverage=float(covered), verdict=int(verdict))
        for where, n, covered, verdict in zip(words, *numbers, strict=True)
        if verdict
    ]
    under = sorted((each for each in found if each.verdict < 0), key=lambda each: each.coverage)
    over = [each for each in found if each.verdict > 0]
    over.sort(key=lambda each: -each.points * (each.coverage - coverage) ** 2)
    return (*under, *over), regions.notes


def _short(number: float) -> str:
    return formats.minus(formats.short(number))


def percent(share: float) -> str:
    """A share in percent for a sentence; the sign keeps to its number."""
    return formats.percent(share).replace(" ", "\N{NO-BREAK SPACE}")
