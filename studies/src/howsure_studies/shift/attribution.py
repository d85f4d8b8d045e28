"""Where coverage is lost elsewhere: to x, to y given x, or to inputs that home has not.

The misses of intervals at home and elsewhere are weighed to a population of inputs that both have.
Source: T. Cai, H. Namkoong and S. Yadlowsky, "Diagnosing model performance under distribution
shift" (arXiv 2303.02011).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self, final

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.conformal.ranks import conformal_rank, order_statistics
from howsure.core.arrays import FloatArray, IntArray, as_matrix, as_vector
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.progress import report_progress
from howsure_studies.methods.selective import threshold_rank
from howsure_studies.shift.evaluate import Rule, ShiftRun, ShiftTest

LOSSES: Final = ("loss_home", "loss_x", "loss_y_given_x", "loss_support")
"""Measures of the main test: what home is off nominal, and three terms of what elsewhere adds."""
IN_COMMON: Final = "inputs_in_common"
"""2 ∫ p q/(p + q): 1 where inputs at home and elsewhere have one law, 0 where none is in both."""
ATTRIBUTED: Final = (*LOSSES, IN_COMMON)
"""What a loss of coverage is attributed by."""
HOME: Final = "home"
"""The test part of rows from home."""
_FOLDS: Final = 2
_EXACT: Final = 1e-24
_LARGEST: Final = 1e9
"""A ratio of densities beyond which no row has a share in both populations that counts."""


def loss_terms(
    home: npt.ArrayLike,
    away: npt.ArrayLike,
    home_ratio: npt.ArrayLike,
    away_ratio: npt.ArrayLike,
    home_counts: npt.ArrayLike | None = None,
    away_counts: npt.ArrayLike | None = None,
) -> FloatArray:
    """A loss at home, and its change elsewhere by its three causes.

    Parameters
    ----------
    home, away : array-like of shape (n,), (m,)
        The loss of each row at home (P) and elsewhere (Q), such as whether its y is missed.
    home_ratio, away_ratio : array-like of shape (n,), (m,)
        r(x) = q(x)/p(x) of these rows: density of inputs elsewhere over that at home.
    home_counts, away_counts : array-like of shape (n,), (m,), optional
        How often each row counts; once, if omitted.

    Returns
    -------
    ndarray of float, shape (4,)
        E_P R_P; then E_S R_P − E_P R_P, due to x that both have but elsewhere has more of; then
        E_S R_Q − E_S R_P, due to y given x; then E_Q R_Q − E_S R_Q, due to x that home hardly
        has. Their sum is E_Q R_Q. NaN where no row is in both.

    Raises
    ------
    InputError
        If lengths differ, a number is missing or infinite, or a ratio is negative.

    Notes
    -----
    R_P(x) and R_Q(x) are the mean losses given x. S has the density p q/(p + q) up to a factor:
    rows at home weigh r/(1 + r), rows elsewhere 1/(1 + r), each divided by their sum.

    Examples
    --------
    Half of home is at an x that is not elsewhere, half of elsewhere at one that is not at home;
    what both have is missed by a tenth at home, and by half elsewhere:

    >>> home = np.r_[np.zeros(10), 1.0, np.zeros(9)]
    >>> away = np.r_[np.ones(5), np.zeros(5), np.ones(10)]
    >>> loss_terms(home, away, [0.0] * 10 + [1.0] * 10, [1.0] * 10 + [1e9] * 10)
    array([0.05, 0.05, 0.4 , 0.25])
    """
    losses = [as_vector(home, "home"), as_vector(away, "away")]
    ratios = [
        as_vector(home_ratio, "home_ratio", length=len(losses[0])),
        as_vector(away_ratio, "away_ratio", length=len(losses[1])),
    ]
    if min((float(ratio.min()) for ratio in ratios if len(ratio)), default=0.0) < 0.0:
        raise InputError("home_ratio and away_ratio must be at least 0, got a negative one")
    counts = [
        np.ones(len(loss)) if given is None else as_vector(given, name, length=len(loss))
        for given, name, loss in (
            (home_counts, "home_counts", losses[0]),
            (away_counts, "away_counts", losses[1]),
        )
    ]
    shared = [ratios[0] / (1.0 + ratios[0]), 1.0 / (1.0 + ratios[1])]
    (at_home, elsewhere), (home_shared, away_shared) = (
        [_weighed(loss, weight) for loss, weight in zip(losses, weights, strict=True)]
        for weights in (counts, [c * s for c, s in zip(counts, shared, strict=True)])
    )
    return np.array(
        [at_home, home_shared - at_home, away_shared - home_shared, elsewhere - away_shared]
    )


def _weighed(values: FloatArray, weights: FloatArray) -> float:
    total = float(weights.sum())
    return float(weights @ values) / total if total > 0.0 else math.nan


@final
@frozen(kw_only=True, eq=False)
class SharedInputs:
    """Density ratios of rows at home and elsewhere, of the rows as they are and of redrawn ones.

    Attributes
    ----------
    home, away : ndarray of float, shape (b + 1, n), (b + 1, m)
        q(x)/p(x) as classifiers tell that did not see the row.
    home_counts, away_counts : ndarray of int, shape (b + 1, n), (b + 1, m)
        How often each row is drawn; once in the first line, at random with replacement below.
    """

    home: FloatArray
    away: FloatArray
    home_counts: IntArray
    away_counts: IntArray

    @classmethod
    def learnt(
        cls,
        home: npt.ArrayLike,
        away: npt.ArrayLike,
        draws: int,
        rng: np.random.Generator,
        classifier: Any = None,
    ) -> Self:
        """Tell home from elsewhere by a classifier, on all rows and on `draws` bootstrap samples.

        Parameters
        ----------
        home, away : array-like of shape (n, d), (m, d)
            Inputs of test rows.
        draws : int
            How many bootstrap samples.
        rng : numpy.random.Generator
            The only source of randomness.
        classifier : scikit-learn classifier, optional
            With ``predict_proba`` and weights of rows; boosting of histograms if omitted.

        Raises
        ------
        InputError
            If a value is not finite, columns differ, or there are fewer than 2 rows of a kind.

        Notes
        -----
        The rows are parted in two at random; each part is told by a classifier of the other,
        where a row and its copies stand in one part.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(400, 1))
        >>> SharedInputs.learnt(x[:200], x[200:], 3, rng).home.shape
        (4, 200)
        """
        check_whole(draws, "draws", 0)
        sides = [as_matrix(home, "home")]
        sides.append(as_matrix(away, "away", columns=sides[0].shape[1]))
        sizes = [len(side) for side in sides]
        if min(sizes) < _FOLDS:
            raise InputError(f"home and away must have at least 2 rows, got {sizes}")
        if classifier is None:
            from sklearn.ensemble import HistGradientBoostingClassifier

            classifier = HistGradientBoostingClassifier(early_stopping=False, random_state=0)
        x, label = np.concatenate(sides), np.repeat([0, 1], sizes)
        folds = np.concatenate([rng.permutation(size) % _FOLDS for size in sizes])
        ratios, counts = [], []
        for draw in range(draws + 1):
            report_progress("home or elsewhere", draw, draws + 1)
            times = np.concatenate(
                [
                    np.bincount(rng.integers(size, size=size), minlength=size)
                    if draw
                    else np.ones(size, dtype=np.int64)
                    for size in sizes
                ]
            )
            counts.append(times)
            ratios.append(_told_apart(classifier, x, label, folds, times))
        ratio, count = np.stack(ratios), np.stack(counts)
        cut = sizes[0]
        return cls(
            home=ratio[:, :cut],
            away=ratio[:, cut:],
            home_counts=count[:, :cut],
            away_counts=count[:, cut:],
        )


def _told_apart(
    classifier: Any, x: FloatArray, label: IntArray, folds: IntArray, times: IntArray
) -> FloatArray:
    """q(x)/p(x) of each row, by a classifier of the other folds' rows, each so many times."""
    from sklearn.base import clone

    ratio = np.empty(len(x))
    for fold in range(_FOLDS):
        seen = (folds != fold) & (times > 0)
        model = clone(classifier).fit(x[seen], label[seen], sample_weight=times[seen])
        share = np.asarray(model.predict_proba(x[folds == fold])[:, 1], dtype=np.float64)
        of_home = float(times[seen] @ (label[seen] == 0))
        odds = of_home / (float(times[seen].sum()) - of_home)
        with np.errstate(divide="ignore"):
            ratio[folds == fold] = np.minimum(odds * share / (1.0 - share), _LARGEST)
    return ratio


def run_losses(
    runs: Sequence[ShiftRun],
    shared: SharedInputs,
    *,
    coverage: float,
    rule: Rule,
    share: float,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """`ATTRIBUTED` of a method's runs, of misses of accepted rows.

    Q and the threshold are learnt anew from validation rows drawn with replacement, for each
    draw of the test rows. Of rows that are accepted, the ratio of densities is that of all
    times the ratio of the two shares accepted.

    Returns
    -------
    value, standard_error : ndarray of float, shape (5,)
        Means over runs, and their errors: by test rows, classifiers and validation rows from
        the draws, and by models from the runs. None where misses are not known.
    by_run : ndarray of float, shape (r, 5)
    """
    draws, width = len(shared.home), len(ATTRIBUTED)
    terms = np.full((draws, len(runs), width), np.nan)
    for place, run in enumerate(runs):
        home, away = run.tests[HOME], next(iter(run.tests.values()))
        if home.reason("empirical_coverage") or away.reason("empirical_coverage"):
            return None
        for draw in range(draws):
            learnt: Mapping[str, float] = {}
            if draw and rule != "own":
                rows = rng.integers(run.val.n, size=run.val.n)
                learnt = _recalibrated(run, rows, conformal_rank(run.val.n, coverage, rule), share)
            terms[draw, place] = _terms(home.at(**learnt), away.at(**learnt), shared, draw)
    terms[:, :, 0] -= 1.0 - coverage
    by_run = terms[0]
    variance = np.full(width, np.nan)
    if draws > 2:
        variance = terms[1:].mean(axis=1).var(axis=0, ddof=1)
    if len(runs) > 1:
        variance = variance + by_run.var(axis=0, ddof=1) / len(runs)
    # what rounding leaves of a share that never changes is no error
    return by_run.mean(axis=0), np.sqrt(np.where(variance < _EXACT, 0.0, variance)), by_run


def _recalibrated(run: ShiftRun, rows: IntArray, rank: int, share: float) -> Mapping[str, float]:
    """Q and the threshold that these validation rows lead to."""
    learnt = {"q": _ranked(run.val.excess[rows], rank)}
    if run.val.score is not None:
        learnt["threshold"] = _ranked(run.val.score[rows], threshold_rank(len(rows), share))
    return learnt


def _ranked(values: FloatArray, rank: int) -> float:
    if rank > len(values):
        return math.inf
    return float(order_statistics(values, np.array([rank]))[0])


def _terms(home: ShiftTest, away: ShiftTest, shared: SharedInputs, draw: int) -> FloatArray:
    """`ATTRIBUTED` of one draw of rows; that of home is not yet set beside the nominal."""
    counts = shared.home_counts[draw], shared.away_counts[draw]
    home_kept, away_kept = home.accepted * counts[0], away.accepted * counts[1]
    at_home, elsewhere = home_kept.sum() / counts[0].sum(), away_kept.sum() / counts[1].sum()
    if not min(at_home, elsewhere) > 0.0:
        return np.full(len(ATTRIBUTED), np.nan)
    factor = float(at_home / elsewhere)
    ratios = factor * shared.home[draw], factor * shared.away[draw]
    terms = loss_terms(~home.covered, ~away.covered, *ratios, home_kept, away_kept)
    common = _weighed(ratios[0] / (1.0 + ratios[0]), home_kept)
    return np.append(terms, common + _weighed(1.0 / (1.0 + ratios[1]), away_kept))


def normal_reach(confidence: float) -> float:
    """How many standard errors an interval of this confidence reaches."""
    return float(special.ndtri(0.5 + 0.5 * confidence))
