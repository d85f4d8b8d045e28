"""Recalibration of class probabilities: shift, temperature, Platt, beta, isotonic, by group.

All but isotonic regression move log p_j by a_j + b_j log p_j, with some of these numbers tied:
a shift of each class, one slope for all (temperature 1/(1 + b)), both (Platt), a slope of each
class too (beta calibration of two classes, vector scaling of more), or a shift of each class in
each group. A ridge draws numbers towards 0, the model as it is.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Set

import numpy as np
from scipy import special

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.rng import row_keys, row_uniforms
from howsure.stats.binomial import holm
from howsure.stats.isotonic import isotonic_mean
from howsure.topics.classes.questions import FLOOR, judge_classes

# A priori scale, in log odds, of a shift, of a common slope, of a slope of one class beyond the
# common one, and of a group beyond all. Faults that are found in few rows look larger than they
# are; the law is Student's, so that what is clearly far off is hardly drawn to the model as it is.
_SCALE = 0.3
# And its degrees of freedom: the least whole number with a finite variance.
_DEGREES = 3
# Newton's steps, of at most so much; a fit takes some six.
_MAX_STEPS, _MAX_STEP = 50, 2.0
# The change of a number below which the fit is done.
_CONVERGED = 1e-9
# Parts of the rows: each is recalibrated by what the other four teach.
_FOLDS = 5
# The adjusted p-value of a gain at which a method helps.
_LEVEL = 0.05
# That of a gain by a free curve, which fits what a few rows show: of 100 tables of 200 rows in
# which a tenth of the rows is flipped, .05 advised it once, and it did harm.
_LEVEL_OF_CURVES = 0.01
_CURVES = frozenset({"beta", "isotonic"})
# The p-value of a question, at which no draw of a perfect model shows as much, where its fault is
# so clear that a method that removes it need not show a gain beyond `_LEVEL`: gains in log loss are
# of second order in the fault. Of 5,600 tables of a perfect model .07 % have such a fault.
_CLEAR_FAULT = 0.0005
# The p-value of a question that any advice needs: Student's test of a gain alone is passed by two
# more of 1,000 tables of a perfect model.
_PROVEN_FAULT = 0.002
# Rows that came otherwise than was likeliest, without which gains hardly vary, and Student's test
# finds them in perfect models of rare events.
_MIN_SURPRISES = 10
# The p-value, not adjusted, that its gain must have even then; .1 misses a fifth of the right ones.
_LEVEL_OF_CLEAR = 0.2
# Share of the best gain at which a simpler method is preferred.
_NEARLY_BEST = 0.9

METHODS: Mapping[str, frozenset[str]] = {
    "shift": frozenset({"level"}),
    "temperature": frozenset({"sureness"}),
    "platt": frozenset({"level", "sureness"}),
    "beta": frozenset({"level", "sureness", "shape"}),
    "isotonic": frozenset({"level", "sureness", "shape"}),
    "group": frozenset({"level", "groups"}),
}
"""Each method, simplest first, and the questions that it may answer."""


@frozen(eq=False)
class ClassRecalibration:
    """What was learnt: new probabilities from those stated."""

    method: str
    shifts: FloatArray  # shape (k,)
    slopes: FloatArray  # shape (k,)
    groups: FloatArray  # shape (g, k): shifts of each group
    claims: tuple[FloatArray, ...] = ()  # knots of the isotonic curve of each class
    levels: tuple[FloatArray, ...] = ()  # and its values
    least: float = 0.0  # the least probability that it gives

    def apply(self, p: FloatArray, groups: IntArray | None = None) -> FloatArray:
        """Recalibrated probabilities, shape (n, k); an unknown group (-1) is moved as all are."""
        if self.claims:
            curves = zip(p.T, self.claims, self.levels, strict=True)
            new = np.stack([np.interp(x, knots, level) for x, knots, level in curves], 1)
            new = np.clip(new, self.least, 1.0)
            return np.asarray(new / new.sum(1, keepdims=True))
        log = np.log(np.maximum(p, FLOOR))
        moved = log * (1.0 + self.slopes) + self.shifts
        if len(self.groups) and groups is not None:
            known = (groups >= 0) & (groups < len(self.groups))
            moved = moved + np.where(known[:, None], self.groups[np.where(known, groups, 0)], 0.0)
        return np.asarray(special.softmax(moved, axis=1))


def learn_classes(
    p: FloatArray,
    y: IntArray,
    method: str,
    groups: IntArray | None = None,
    weights: FloatArray | None = None,
    ridge: float = 1.0,
) -> ClassRecalibration:
    """Learn to recalibrate class probabilities.

    Parameters
    ----------
    p : array of shape (n, k)
    y : array of int, shape (n,)
    method : str
        shift, temperature, platt, beta, isotonic or group.
    groups : array of int, shape (n,), optional
        Codes of the groups, from 0 on; "group" needs them.
    weights : array of shape (n,), optional
    ridge : float
        How strongly numbers are drawn towards the model as it is; 0 is maximum likelihood.

    Examples
    --------
    >>> p = np.repeat([[0.1, 0.9]], 100, axis=0)
    >>> learnt = learn_classes(p, np.arange(100) % 2, "shift", ridge=0)
    >>> learnt.apply(p[:1]).round(3)
    array([[0.5, 0.5]])
    """
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    k = p.shape[1]
    w = np.ones(len(y)) if weights is None else weights
    if method == "isotonic":
        return _learn_isotonic(p, y, w)
    log = np.log(np.maximum(p, FLOOR))
    if method == "group":
        if groups is None:
            raise InputError("method group needs groups, got none")
        return ClassRecalibration(method, *_fit_groups(log, y, groups, w, ridge))
    theta = _fit(log, y, w, _tied(method, k), ridge)
    return ClassRecalibration(method, theta[:k], theta[k:], np.zeros((0, k)))


def _tied(method: str, k: int) -> FloatArray:
    """Which shifts and slopes of classes the numbers of a method are, one a column."""
    shifts = np.vstack([np.eye(k), np.zeros((k, k))])
    slope = np.append(np.zeros(k), np.ones(k))[:, None]
    own = np.vstack([np.zeros((k, k)), np.eye(k)])
    parts = {
        "shift": [shifts],
        "temperature": [slope],
        "platt": [shifts, slope],
        "beta": [shifts, slope, own],
    }
    return np.hstack(parts[method])


def _precision(theta: FloatArray) -> FloatArray:
    """Of the normal law whose logarithm touches that of Student's at these numbers, from below."""
    return (_DEGREES + 1) / (_DEGREES * _SCALE**2 + np.square(theta))


def _fit(log: FloatArray, y: IntArray, w: FloatArray, tied: FloatArray, ridge: float) -> FloatArray:
    """Shifts and slopes, shape (2k,), by Newton's method on the penalised log likelihood."""
    n, k = log.shape
    theta = np.zeros(tied.shape[1])
    came = w[:, None] * (y[:, None] == np.arange(k))
    observed = tied.T @ np.concatenate([came.sum(0), (came * log).sum(0)])

    def value(theta: FloatArray) -> tuple[float, FloatArray]:
        full = tied @ theta
        moved = log * (1.0 + full[k:]) + full[:k]
        total = special.logsumexp(moved, axis=1)
        far = np.log1p(np.square(theta) / (_DEGREES * _SCALE**2)).sum()
        loss = float(w @ (total - moved[np.arange(n), y]) + ridge * (_DEGREES + 1) / 2 * far)
        return loss, np.exp(moved - total[:, None])

    loss, m = value(theta)
    for _ in range(_MAX_STEPS):
        penalty = ridge * _precision(theta)
        root, logs = w[:, None] * m, w[:, None] * m * log
        both = np.hstack([m, m * log])
        crossed = both.T @ (w[:, None] * both)
        own = np.block(
            [
                [np.diag(root.sum(0)), np.diag(logs.sum(0))],
                [np.diag(logs.sum(0)), np.diag((logs * log).sum(0))],
            ]
        )
        hessian = tied.T @ (own - crossed) @ tied + np.diag(penalty)
        expected = tied.T @ np.concatenate([root.sum(0), logs.sum(0)])
        gradient = observed - expected - penalty * theta
        step = np.linalg.pinv(hessian, rcond=1e-10, hermitian=True) @ gradient
        step *= min(1.0, _MAX_STEP / max(float(np.abs(step).max()), 1e-300))
        lower, drawn = value(theta + step)
        while lower > loss + 1e-12 * abs(loss) and np.abs(step).max() > _CONVERGED:
            step /= 2
            lower, drawn = value(theta + step)
        theta, loss, m = theta + step, lower, drawn
        if np.abs(step).max() < _CONVERGED:
            break
    return np.asarray(tied @ theta)


def _fit_groups(
    log: FloatArray, y: IntArray, groups: IntArray, w: FloatArray, ridge: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Shifts of all, no slopes, and shifts of groups beyond, by Newton's method on all together.

    Groups meet in the shifts of all alone, so that a step solves equations of k numbers per group.
    """
    k, count = log.shape[1], int(groups.max()) + 1
    came = np.zeros((count, k))
    np.add.at(came, (groups, y), w)
    members = [np.flatnonzero(groups == group) for group in range(count)]
    shifts, beyond, unit = np.zeros(k), np.zeros((count, k)), np.eye(k)
    for _ in range(_MAX_STEPS):
        wide, narrow = ridge * _precision(shifts), ridge * _precision(beyond)
        m = special.softmax(log + shifts + beyond[groups], axis=1)
        expected = np.stack([w[rows] @ m[rows] for rows in members])
        crossed = np.stack([m[rows].T @ (w[rows, None] * m[rows]) for rows in members])
        curvature = expected[:, None] * unit - crossed
        slope = came - expected
        inverse = np.linalg.pinv(curvature + narrow[:, None] * unit, rcond=1e-10, hermitian=True)
        carried = curvature @ inverse
        own = slope - narrow * beyond
        whole = (curvature - carried @ curvature).sum(0) + wide * unit
        right = slope.sum(0) - wide * shifts - np.einsum("gab,gb->a", carried, own)
        step = np.linalg.pinv(whole, rcond=1e-10, hermitian=True) @ right
        steps = np.einsum("gab,gb->ga", inverse, own - curvature @ step)
        largest = max(float(np.abs(step).max()), float(np.abs(steps).max()), 1e-300)
        factor = min(1.0, _MAX_STEP / largest)
        shifts, beyond = shifts + factor * step, beyond + factor * steps
        if largest < _CONVERGED:
            break
    return shifts, np.zeros(k), beyond


def _learn_isotonic(p: FloatArray, y: IntArray, w: FloatArray) -> ClassRecalibration:
    """The rising curve of each class, at its knots; a row in n + 2 keeps it from 0."""
    k = p.shape[1]
    claims, levels = [], []
    for code in range(k):
        fitted = isotonic_mean(p[:, code], (y == code).astype(np.float64), w)
        knots, first = np.unique(p[:, code], return_index=True)
        claims.append(knots)
        levels.append(fitted[first])
    none = np.zeros(k)
    return ClassRecalibration(
        "isotonic", none, none, np.zeros((0, k)), tuple(claims), tuple(levels), 1 / (len(y) + 2.0)
    )


# ---- advice --------------------------------------------------------------------------------------


@frozen(eq=False)
class ClassAdvice:
    """The simplest method that helps on held-out rows beyond chance."""

    method: str
    gain: float  # mean log loss saved per row, on held-out fifths
    error: float  # its standard error
    p: float  # one-sided p-value of the gain, adjusted for all methods tried
    proven: bool  # by its gain; else by a clear fault that is gone on held-out rows


def advise_classes(
    p: FloatArray,
    y: IntArray,
    faults: Mapping[str, float],
    groups: IntArray | None = None,
    clusters: IntArray | None = None,
    weights: FloatArray | None = None,
    seed: int = 0,
) -> ClassAdvice | None:
    """Try each method on held-out fifths; None where none helps beyond chance.

    Parameters
    ----------
    p, y, groups, clusters, weights
        As for `learn_classes`; a cluster is in one fifth.
    faults : mapping of question to p-value
        The questions of `judge_classes` that are significant after Holm's steps, and their own
        p-values. Nothing is tried without one.
    """
    if not faults or min(faults.values()) > _PROVEN_FAULT:
        return None
    if np.count_nonzero(p.argmax(1) != y) < _MIN_SURPRISES:
        return None
    clear = min(faults.values()) <= _CLEAR_FAULT
    units = np.arange(len(y)) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    fold = _folds(p, y, units, seed)
    w = np.ones(len(y)) if weights is None else weights
    tried: dict[str, FloatArray] = {}
    for method in _aimed_at(faults.keys()):
        if method == "group" and groups is None:
            continue
        tried[method] = new = np.empty_like(p)
        for held_out in range(_FOLDS):
            rows = fold != held_out
            by = None if groups is None else groups[rows]
            learnt = learn_classes(p[rows], y[rows], method, by, w[rows])
            new[~rows] = learnt.apply(p[~rows], None if groups is None else groups[~rows])
    before = class_losses(p, y)
    gains = {method: w * (before - class_losses(new, y)) for method, new in tried.items()}
    tests = {method: _test_gain(gain, w, units) for method, gain in gains.items()}
    if not tests:
        return None
    adjusted = dict(zip(tests, holm([test[2] for test in tests.values()]), strict=True))
    helpful = {}
    for method, (mean, error, chance) in tests.items():
        level = _LEVEL_OF_CURVES if method in _CURVES else _LEVEL
        proven = bool(mean > 0 and adjusted[method] <= level)
        heals = (
            clear
            and method not in _CURVES
            and METHODS[method] >= faults.keys()
            and chance <= _LEVEL_OF_CLEAR
            and _heals(tried[method], y, faults, groups, clusters, weights, seed)
        )
        if proven or heals:
            helpful[method] = ClassAdvice(method, mean, error, float(adjusted[method]), proven)
    if not helpful:
        return None
    best = max(helpful.values(), key=lambda advice: advice.gain)
    for method, advice in helpful.items():  # simplest first
        off, error, _ = _test_gain(gains[best.method] - gains[method], w, units)
        if advice.gain >= _NEARLY_BEST * best.gain or off <= error:
            return advice
    return best


def _aimed_at(faults: Set[str]) -> list[str]:
    """Methods that answer some of these questions, but none that a simpler one answers as well.

    >>> _aimed_at({"level"}), _aimed_at({"level", "sureness"}), _aimed_at({"shape"})
    (['shift'], ['shift', 'temperature', 'platt'], ['beta', 'isotonic'])
    """
    return [
        method
        for method, answers in METHODS.items()
        if answers & faults
        and not any(answers & faults <= other < answers for other in METHODS.values())
    ]


def _folds(p: FloatArray, y: IntArray, units: IntArray, seed: int) -> IntArray:
    """The fifth of each row, dealt by content, whole clusters to one."""
    keys = row_keys(p, y)
    totals = np.zeros(int(units.max()) + 1, dtype=np.uint64)
    np.add.at(totals, units, keys)
    order = np.argsort(row_uniforms(seed, "folds of classes", totals))
    dealt = np.empty(len(order), dtype=np.int64)
    dealt[order] = np.arange(len(order)) % _FOLDS
    return dealt[units]


def class_losses(p: FloatArray, y: IntArray) -> FloatArray:
    return np.asarray(-np.log(np.maximum(p[np.arange(len(y)), y], FLOOR)))


def _test_gain(gain: FloatArray, w: FloatArray, units: IntArray) -> tuple[float, float, float]:
    """Mean gain, its standard error by clusters, and the one-sided p-value of Student's t."""
    sums, mass = np.bincount(units, gain), np.bincount(units, w)
    mean = float(sums.sum() / mass.sum())
    count = len(sums)
    square = float(np.square(sums - mean * mass).sum()) * count / max(count - 1, 1)
    error = math.sqrt(square) / float(mass.sum())
    if not error > 0:
        return mean, 0.0, 1.0
    return mean, error, float(special.stdtr(max(count - 1, 1), -mean / error))


def _heals(
    p: FloatArray,
    y: IntArray,
    faults: Collection[str],
    groups: IntArray | None,
    clusters: IntArray | None,
    weights: FloatArray | None,
    seed: int,
) -> bool:
    """Whether no question that was significant is so on held-out rows, recalibrated."""
    by = None if groups is None else {"": groups}
    left = judge_classes(p, y, groups=by, clusters=clusters, weights=weights, seed=seed)
    return not any(left.answers[question].p <= _LEVEL for question in faults)
