"""What became of one method on one cut of a table."""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np

from howsure.core.arrays import AnyArray, FloatArray
from howsure.core.classes import frozen
from howsure.core.records import Direction, Notion, Record
from howsure.stats.binomial import wilson
from howsure_studies.which.judging import ALL, ARMS, BEST, COVERAGES, FINDINGS


@final
@frozen(kw_only=True, eq=False)
class WhichResult:
    """One method on one cut of a table, raw and corrected; a row an arm of `ARMS`.

    Attributes
    ----------
    table, method : str
        Their names.
    shift, by : str
        ``late``, ``foreign`` or nothing; and by what the table is cut, in words.
    seed : int
        Which random cut.
    rows : tuple of int
        For training, for calibration, and in the test.
    failure : str
        Why there are no numbers.
    score : ndarray of float, shape (arms,)
        The weighted interval score: twice the mean pinball loss at the 19 levels, in the units
        of y; NaN where an arm is not there.
    climatology : float
        The same of the quantiles of y in training and calibration.
    coverage : ndarray of float, shape (arms, coverages)
        Empirical coverage at the nominal coverages of `COVERAGES`.
    width : ndarray of float, shape (arms,)
        Mean width of the 90 % intervals over that of climatology.
    worst : ndarray of float, shape (arms, 2)
        Coverage of the 90 % intervals in the region where it differs most, either way, found on
        one half of the rows and seen on the other, and what a model without such a region has.
    states : ndarray of int, shape (arms, findings)
        Of each finding of `FINDINGS`: 0 not asked, 1 good, 2 undecided or negligible, 3 caution,
        4 bad.
    seconds : ndarray of float, shape (3,)
        Of the processor: to fit to training rows, to all known rows, and to predict the test.
    advised : str
        The correction that was advised on the calibration rows; nothing where none was.
    """

    table: str
    method: str
    shift: str
    by: str
    seed: int
    rows: tuple[int, ...]
    failure: str
    score: FloatArray
    climatology: float
    coverage: FloatArray
    width: FloatArray
    worst: FloatArray
    states: AnyArray
    seconds: FloatArray
    advised: str = ""

    @classmethod
    def failed(cls, **known: Any) -> WhichResult:
        """One without numbers."""
        arms = len(ARMS)
        return cls(
            **known,
            score=np.full(arms, np.nan),
            climatology=math.nan,
            coverage=np.full((arms, len(COVERAGES)), np.nan),
            width=np.full(arms, np.nan),
            worst=np.full((arms, 2), np.nan),
            states=np.zeros((arms, len(FINDINGS)), dtype=np.int8),
            seconds=np.full(3, np.nan),
        )

    def ratio(self, arm: str) -> float:
        """The score of an arm over that of climatology."""
        return float(self.score[ARMS.index(arm)] / self.climatology)

    def covered(self, arm: str) -> float:
        """The coverage of an arm's 90 % intervals."""
        return float(self.coverage[ARMS.index(arm), COVERAGES.index(0.9)])

    def records(self) -> tuple[Record, ...]:
        """Its numbers, as every study has them."""
        rows = float(self.rows[2])
        missing = self.failure

        def record(metric: str, value: float, **more: Any) -> Record:
            return Record(metric=metric, value=value, n=rows, reason=missing, **more)

        lower = {"direction": Direction.LOWER}
        whole, inner = ARMS.index(ALL), ARMS.index(BEST)
        return (
            record("score_ratio", self.ratio(ALL), **lower),
            record("corrected_score_ratio", self.ratio(BEST), **lower),
            *(
                self._coverage(name, self.covered(arm))
                for name, arm in (("empirical_coverage", ALL), ("corrected_coverage", BEST))
            ),
            record("weighted_interval_score", float(self.score[whole]), **lower),
            record("pinball", float(self.score[whole]) / 2.0, **lower),
            record("width_ratio", float(self.width[whole])),
            record("corrected_width_ratio", float(self.width[inner])),
            record(
                "region_coverage",
                float(self.worst[whole, 0]),
                coverage=0.9,
                null=float(self.worst[whole, 1]),
                direction=Direction.TARGET,
                target=0.9,
                notion=Notion.LOCAL,
            ),
            record("cpu_seconds", float(self.seconds[1]), units="s", **lower),
        )

    def _coverage(self, metric: str, share: float) -> Record:
        """A coverage with its interval, as if test rows were independent."""
        n = float(self.rows[2])
        known = not math.isnan(share)
        low, high = wilson(share * n, n) if known else (math.nan, math.nan)
        return Record(
            metric=metric,
            value=share,
            standard_error=math.sqrt(share * (1.0 - share) / n) if known else math.nan,
            lower=float(low),
            upper=float(high),
            n=n,
            coverage=0.9,
            direction=Direction.TARGET,
            target=0.9,
            reason=self.failure,
        )
