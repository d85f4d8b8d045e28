"""Are class probabilities calibrated? Questions, each the score of one way to recalibrate.

A perfect model is one whose y is drawn from its own p. A shift, a temperature, a curve or a shift
in a group changes log p by θ times a column of numbers; the score, the derivative of the log
likelihood at θ = 0, is a sum over rows of what that column has for the class that came, less what
p expects. All sums here are of one kind: of 1[y = j] − p_j over rows in a cell of class j, and
over runs of cells; the temperature alone weighs by log p. Sums are made orthogonal under p to those
of simpler questions (level, then sureness), so that a fault appears in its own question alone.
Their null is the same sums of y drawn from p.

Sums of rare events are skewed. They are put on the scale of a normal variable as Poisson numbers
are by their deviance, so that cells of few events do not hide the others where the largest of many
sums is the statistic; the draws make its p-value right in any case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from scipy import sparse, special

from howsure.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    as_matrix,
    as_vector,
    row_blocks,
)
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.rng import KeyArray, child, row_keys, row_normals, row_uniforms
from howsure.stats.binomial import wilson
from howsure.stats.estimate import Z_95

# Rows on which questions are answered; of more rows a sample by content is. There, a deviation of
# 1 point is at least 2.8 standard errors.
MAX_ROWS = 20_000
# A run of two of 16 cells fits a tenth of the rows; more cells find narrower faults, and miss
# others for their number.
MAX_CELLS = 16
# Variance of a cell's sum that it needs: that of two events.
_MIN_VARIANCE_OF_CELL = 2.0
# Lengths of runs of cells: each run overlaps one of these by two thirds.
_LENGTHS_OF_RUNS = (1, 2, 4, 8)
# Standard errors by which a coin would show in place of these probabilities. With less, sureness
# and shape cannot be seen, and would take power from the other questions.
_MIN_ERRORS_OF_A_COIN = 2.5
# Share of its variance that a sum must keep beyond those of simpler questions.
_MIN_VARIANCE_BEYOND = 0.02
# First and last number of draws: 199 see that p is not small; 1,999 resolve .0005, which the first
# of ten Holm steps needs.
DRAWS = (199, 1_999)
# P-value of the first draws above which no more are drawn: not even one question alone would be
# significant, and of several Holm's first step asks for less.
_CLEARLY_NO_FAULT = 0.05
# 2²⁰ numbers of 64 bits are 8 MB.
_NUMBERS_AT_ONCE = 1 << 20
# The least log p is taken of; odds of a million to one.
FLOOR = 1e-6
# Decimal places to which probabilities may have been rounded.
_MAX_DIGITS_OF_ROUNDING = 6
# The share of rows that a temperature moves most, which the sentence on sureness shows.
_SHARE_MOVED_MOST = 0.2
# A temperature that is typical of overconfident networks; it decides which rows are shown.
_TYPICAL_TEMPERATURE = 1.3
# Correlations of latent normal variables within clusters between which the one seen lies.
_CORRELATIONS = np.array([0.0, 0.03, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95])
# Draws for each correlation: the mean of the logarithm of inflation is then known to a sixth of
# its spread. They cost more than the draws of the null.
_DRAWS_OF_CORRELATION = 36
# Events by which the inflation of few events is drawn towards 1. Not tuned.
_PRIOR_EVENTS = 2.0
# Two sums that differ by rounding alone are equal.
_ROUNDING = 1e-9


@frozen(eq=False)
class CalibrationAnswer:
    """One question on class probabilities: the evidence, and what happened where it fails most."""

    question: str  # level, sureness, shape, groups, region, impossible or skill
    p: float  # p-value: a perfect model shows as much; NaN where not asked
    statistic: float = (
        math.nan
    )  # as a standard normal variable; positive: too low, or underconfident
    reason: str = ""  # why it was not asked
    claim: float = math.nan  # mean probability stated of the class, in `rows`
    happened: float = math.nan  # share of `rows` in which the class came
    lower: float = math.nan  # simultaneous 95 % interval of that share, over all places looked at
    upper: float = math.nan
    class_code: int = -1  # which class; -1 is the likeliest of each row
    name: str = ""  # the grouping or the feature; empty: the probability itself
    low: float = math.nan  # least value of the feature, or probability, in `rows`; a group's code
    high: float = math.nan
    rows: IntArray | None = None  # places in the table given
    n: int = 0
    n_effective: float = math.nan


@frozen(eq=False)
class ClassJudgement:
    """The answers to all questions, by name, and the rows that they rest on."""

    answers: Mapping[str, CalibrationAnswer]
    n: int  # rows used
    n_effective: float
    sampled: bool  # whether these are a sample of more


# ---- sums of residuals in cells ------------------------------------------------------------------


@frozen(eq=False)
class _Outcomes:
    """Classes that came, in several draws, as sums that all questions use."""

    entries: IntArray  # shape (n, draws): place of (row, class) in an array of shape (n, k)
    simple: FloatArray  # shape (k + 1, draws): residual sums of each class, and of log p
    inflation: FloatArray  # shape (draws,): of the variance of sums, by clusters


@frozen(eq=False)
class _ClaimedRows:
    """What is known before y."""

    p: FloatArray
    log: FloatArray  # log p
    weights: FloatArray | None
    squares: FloatArray | float  # squared weights, shape (n, 1)
    expected: FloatArray  # shape (k + 1,)
    covariance: FloatArray  # of the simple sums, shape (k + 1, k + 1)

    @classmethod
    def of(cls, p: FloatArray, weights: FloatArray | None) -> _ClaimedRows:
        log = np.log(np.maximum(p, FLOOR))
        w = 1.0 if weights is None else weights[:, None]
        centred = log - (p * log).sum(1, keepdims=True)
        cross = (np.square(w) * p * centred).sum(0)
        k = p.shape[1]
        covariance = np.empty((k + 1, k + 1))
        covariance[:k, :k] = np.diag((np.square(w) * p).sum(0)) - p.T @ (np.square(w) * p)
        covariance[k, :k] = covariance[:k, k] = cross
        covariance[k, k] = (np.square(w) * p * np.square(centred)).sum()
        expected = np.append((w * p).sum(0), (w * p * log).sum())
        return cls(p, log, weights, np.square(w), expected, covariance)

    def count(
        self, bins: IntArray, entries: IntArray, size: int, marks: FloatArray | None = None
    ) -> FloatArray:
        """Weighted number of rows, or sum of marks, of the classes that came, (size, draws)."""
        draws = entries.shape[1]
        places = bins.ravel()[entries] * draws + np.arange(draws)
        weights = None if self.weights is None else np.repeat(self.weights, draws)
        if marks is not None:
            each = marks.ravel()[entries].ravel()
            weights = each if weights is None else weights * each
        counts = np.bincount(places.ravel(), weights, (size + 1) * draws)
        return np.asarray(counts.reshape(size + 1, draws)[:size], dtype=np.float64)

    def sums(self, codes: IntArray, inflation: FloatArray) -> _Outcomes:
        """Of classes that came, shape (n, draws)."""
        n, k = self.p.shape
        entries = codes + k * np.arange(n)[:, None]
        logs = self.log.ravel()[entries]
        mass = np.ones(n) if self.weights is None else self.weights
        each = np.broadcast_to(np.arange(k), (n, k))
        simple = np.vstack([self.count(each, entries, k), mass @ logs])
        return _Outcomes(entries, simple - self.expected[:, None], inflation)


def _pseudo_root(covariance: FloatArray) -> FloatArray:
    """A matrix W with W Wᵀ the pseudo-inverse."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    kept = values > 1e-9 * max(float(values.max(initial=0.0)), 1e-300)
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]) / scale[:, None])


def to_normal(x: FloatArray, skewness: FloatArray) -> FloatArray:
    """Standardised sums of a skewness γ on the scale of a normal variable.

    The signed root of the deviance of a Poisson number of that skewness, of mean 1/γ², less its own
    mean: sign(x) √(2((1 + γx) log(1 + γx) − γx))/|γ| + γ/6, with γ/6 at most 1/6; x for γ = 0. Two
    events where .5 are expected:

    >>> to_normal(np.array([1.5 / 0.5**0.5, 2.0]), np.array([0.5**-0.5, 0.0])).round(2)
    array([1.76, 2.  ])
    """
    u = np.maximum(skewness * x, -1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        deviance = 2.0 * (special.xlog1py(1.0 + u, u) - u) / np.square(skewness)
    near = np.square(x) * (1.0 - u / 3.0)  # its series, where the difference would lose digits
    root = np.sign(x) * np.sqrt(np.where(np.abs(u) < 1e-4, near, deviance))
    return np.asarray(root + np.clip(skewness, -1.0, 1.0) / 6.0)


@frozen(eq=False)
class _Places:
    """Cells of classes, and the runs of them in which residuals are added up."""

    question: str
    names: Sequence[str]  # of each run, the grouping or feature
    bins: IntArray  # shape (n, k): the cell of a row where a class comes
    starts: IntArray  # shape (r,): first cell of each run
    stops: IntArray  # and the one after its last
    classes: IntArray  # shape (r,): -1 is the likeliest
    marks: FloatArray | None  # shape (n, k): what is added up in place of events
    expected: FloatArray  # in each cell
    slopes: FloatArray  # shape (cells, simple sums): regression on the whitened simple sums
    root: FloatArray  # what whitens these
    error: FloatArray  # shape (r,): standard error of what is left beyond simple sums
    raw_error: FloatArray  # and of the sum of residuals alone
    skewness: FloatArray

    @classmethod
    def of(
        cls,
        question: str,
        rows: _ClaimedRows,
        cells: Sequence[tuple[str, int, IntArray]],
        *,
        beyond: bool = True,
        single: bool = False,
        sureness: bool = False,
    ) -> _Places:
        """Of (name, class, cell of each row): all runs, each cell alone, or beyond simple sums.

        With `sureness` a cell adds up log p of what came, less what p expects: a temperature there.
        """
        likeliest = rows.p.argmax(1)
        n, k = rows.p.shape
        sizes = [int(codes.max()) + 1 for _, _, codes in cells]
        size, offset = sum(sizes), 0
        bins = np.full((n, k), size)
        starts, stops, owner = [], [], []
        for place, ((_, code, codes), count) in enumerate(zip(cells, sizes, strict=True)):
            if sureness:
                bins[:] = offset + codes[:, None]
            else:
                bins[np.arange(n), likeliest if code < 0 else code] = offset + codes
            for length in (1,) if single else _LENGTHS_OF_RUNS:
                first = np.arange(offset, offset + count - length + 1)
                starts.append(first)
                stops.append(first + length)
                owner.append(np.full(len(first), place))
            offset += count
        start, stop, own = map(np.concatenate, (starts, stops, owner))
        p, at = rows.p, bins.ravel()
        centred = rows.log - (p * rows.log).sum(1, keepdims=True)

        def added(values: FloatArray) -> FloatArray:
            each = np.broadcast_to(values, p.shape).ravel()
            return np.bincount(at, each, size + 1)[:size].astype(np.float64)

        mass = np.sqrt(rows.squares)
        root = np.zeros((k + 1, 0))
        slopes = np.zeros((size, 0))
        if beyond:
            data = rows.squares * p * (centred if sureness else 1.0)
            table = sparse.csr_matrix(
                (data.ravel(), (at, np.repeat(np.arange(n), k))), (size + 1, n)
            )[:size]
            direct = np.bincount(at * k + np.tile(np.arange(k), n), data.ravel(), (size + 1) * k)
            with_level = direct.reshape(size + 1, k)[:size] - table @ p
            with_log = added(data * centred)
            root = _pseudo_root(rows.covariance)
            slopes = np.column_stack([with_level, with_log]) @ root
        if sureness:
            second, third = np.square(centred), centred**3
        else:
            second, third = 1 - p, (1 - p) * (1 - 2 * p)
        raw = _runs(added(mass**2 * p * second)[:, None], start, stop)[:, 0]
        cubes = _runs(added(mass**3 * p * third)[:, None], start, stop)[:, 0]
        variance = raw - np.square(_runs(slopes, start, stop)).sum(1)
        kept = variance > np.maximum(_MIN_VARIANCE_BEYOND * raw, 1e-9)
        names = [cells[place][0] for place in own[kept]]
        classes = np.array([code for _, code, _ in cells])[own[kept]]
        return cls(
            question,
            names,
            bins,
            start[kept],
            stop[kept],
            classes,
            centred if sureness else None,
            np.zeros(size) if sureness else added(mass * p),
            slopes,
            root,
            np.sqrt(variance[kept]),
            np.sqrt(raw[kept]),
            cubes[kept] / raw[kept] ** 1.5,
        )

    def residuals(self, rows: _ClaimedRows, outcomes: _Outcomes) -> FloatArray:
        """Events less those expected in each cell, shape (cells, draws)."""
        counts = rows.count(self.bins, outcomes.entries, len(self.expected), self.marks)
        return counts - self.expected[:, None]

    def scores(self, outcomes: _Outcomes, rows: _ClaimedRows) -> FloatArray:
        """Sums of runs as standard normal variables, shape (r, draws)."""
        residuals = self.residuals(rows, outcomes)
        residuals -= self.slopes @ (self.root.T @ outcomes.simple)
        x = _runs(residuals, self.starts, self.stops) / self.error[:, None]
        return to_normal(x / np.sqrt(outcomes.inflation), self.skewness[:, None])


def _runs(values: FloatArray, starts: IntArray, stops: IntArray) -> FloatArray:
    """Sums over runs of cells, shape (r, columns)."""
    upto = np.vstack([np.zeros(values.shape[1]), np.cumsum(values, 0)])
    return np.asarray(upto[stops] - upto[starts])


@frozen(eq=False)
class _Sureness:
    """The score of a temperature, beyond that of shifts."""

    slopes: FloatArray
    error: float
    skewness: float

    @classmethod
    def of(cls, rows: _ClaimedRows) -> _Sureness:
        return cls.of_blocks(rows.covariance, lambda: iter([rows]))

    @classmethod
    def of_blocks(
        cls, covariance: FloatArray, blocks: Callable[[], Iterator[_ClaimedRows]]
    ) -> _Sureness:
        """Of the covariance of simple sums of all rows, and these in blocks."""
        root = _pseudo_root(covariance[:-1, :-1])
        slopes = root @ (root.T @ covariance[:-1, -1])
        variance = third = 0.0
        for rows in blocks():
            x = rows.log - slopes
            x = x - (rows.p * x).sum(1, keepdims=True)
            variance += float((rows.squares * rows.p * np.square(x)).sum())
            third += float((rows.squares**1.5 * rows.p * x**3).sum())
        if variance <= _MIN_VARIANCE_BEYOND**2 * covariance[-1, -1]:
            return cls(slopes, 0.0, 0.0)
        return cls(slopes, math.sqrt(variance), third / variance**1.5)

    def scores(self, outcomes: _Outcomes, _: _ClaimedRows | None = None) -> FloatArray:
        """As a standard normal variable, shape (1, draws)."""
        total = outcomes.simple[-1:] - self.slopes @ outcomes.simple[:-1]
        x = total / self.error / np.sqrt(outcomes.inflation)
        return to_normal(x, np.asarray(self.skewness))


@frozen(eq=False)
class _Skill:
    """By how much the Brier score is above that of the frequencies of the classes, where it is."""

    def scores(self, outcomes: _Outcomes, rows: _ClaimedRows) -> FloatArray:
        """In a row, shape (1, draws); 0 where it is below.

        Σ p² + 1 − 2 p_y less 1 − Σ f², with f the frequencies.
        """
        mass = np.ones(len(rows.p)) if rows.weights is None else rows.weights
        counts = outcomes.simple[:-1] + rows.expected[:-1, None]
        came = mass @ rows.p.ravel()[outcomes.entries]
        frequencies = np.square(counts).sum(0) / mass.sum()
        worse = float(mass @ np.square(rows.p).sum(1)) - 2 * came + frequencies
        return np.asarray(np.maximum(worse[None] / mass.sum(), 0.0))


def cut(values: FloatArray, information: FloatArray, cells: int = MAX_CELLS) -> IntArray:
    """Cells of rows by rising value, alike in rows and in information; equal values share one.

    A cell for each of so many shares of the mean of the two: rows alone leave the few rows in
    which events happen in one cell, and information alone the many in which hardly any do.

    >>> cut(np.array([3.0, 1.0, 2.0, 4.0]), np.ones(4), 2)
    array([1, 0, 0, 1])
    """
    order = np.argsort(values, kind="stable")
    mass = 1.0 / len(values) + information / max(float(information.sum()), 1e-300)
    upto = np.cumsum(mass[order]) - mass[order]
    first = np.searchsorted(values[order], values, side="left")
    codes = np.floor(upto[first] / 2.0 * cells + _ROUNDING)
    return np.asarray(np.unique(codes, return_inverse=True)[1].astype(np.int64))


# ---- outcomes of a perfect model -----------------------------------------------------------------


def draw_classes(p: FloatArray, uniforms: FloatArray) -> IntArray:
    """The class that comes in each row of each draw, from uniform numbers of shape (n, draws).

    >>> draw_classes(np.array([[0.2, 0.8]]), np.array([[0.1, 0.5]]))
    array([[0, 1]])
    """
    upto = np.cumsum(p, axis=1)
    codes = np.zeros(uniforms.shape, dtype=np.int64)
    for place in range(p.shape[1] - 1):
        codes += uniforms > upto[:, place, None]
    return codes


@frozen(eq=False)
class _Clusters:
    """Rows that depend: a latent normal variable of each cluster, as strong as y shows."""

    codes: IntArray
    keys: KeyArray  # of clusters
    chances: FloatArray  # of each of _CORRELATIONS

    @classmethod
    def of(
        cls, rows: _ClaimedRows, keys: KeyArray, codes: IntArray, y: IntArray, seed: int
    ) -> _Clusters:
        totals = np.zeros(int(codes.max()) + 1, dtype=np.uint64)
        np.add.at(totals, codes, keys)
        even = np.full(len(_CORRELATIONS), 1.0 / len(_CORRELATIONS))
        blank = cls(codes, totals, even)
        seen = math.log(float(blank.inflation(rows, y[:, None])[0]))
        latent = blank.latent(keys, seed, "correlation", _DRAWS_OF_CORRELATION)
        drawn = [blank.draw(rows.p, latent, np.array([each])) for each in _CORRELATIONS]
        logs = [np.log(blank.inflation(rows, codes)) for codes in drawn]
        mean, spread = np.mean(logs, 1), np.std(logs, 1) + 0.02
        likelihood = np.exp(-0.5 * np.square((seen - mean) / spread)) / spread + 1e-12
        return cls(codes, totals, likelihood / likelihood.sum())

    def latent(
        self, keys: KeyArray, seed: int, name: str, draws: int
    ) -> tuple[FloatArray, FloatArray]:
        """Normal variables of clusters, and those of rows alone, each of shape (n, draws)."""
        shared = row_normals(seed, f"{name} shared", self.keys, draws)[self.codes]
        return shared, row_normals(seed, f"{name} alone", keys, draws)

    def draw(
        self, p: FloatArray, latent: tuple[FloatArray, FloatArray], correlations: FloatArray
    ) -> IntArray:
        """Outcomes of a perfect model whose rows depend by so much, shape (n, draws)."""
        shared, alone = latent
        mixed = np.sqrt(correlations) * shared + np.sqrt(1 - correlations) * alone
        return draw_classes(p, special.ndtr(mixed))

    def inflation(self, rows: _ClaimedRows, codes: IntArray) -> FloatArray:
        """By how much sums of clusters vary more than those of independent rows, by draw."""
        (n, k), draws = rows.p.shape, codes.shape[1]
        count = len(self.keys)
        mass = np.ones(n) if rows.weights is None else rows.weights
        at = self.codes[:, None] * k + np.arange(k)
        expected = np.bincount(at.ravel(), (mass[:, None] * rows.p).ravel(), count * k)
        places = (self.codes[:, None] * k + codes) * draws + np.arange(draws)
        weights = None if rows.weights is None else np.repeat(mass, draws)
        counts = np.bincount(places.ravel(), weights, count * k * draws).reshape(count * k, draws)
        sums = (counts - expected[:, None]).reshape(count, k, draws)
        size = np.bincount(self.codes, mass, count)
        sums -= size[:, None, None] * (sums.sum(0) / size.sum())
        variance = float((rows.squares * rows.p * (1 - rows.p)).sum())
        lost = 1 - float(np.square(size).sum() / size.sum() ** 2)
        ratio = np.square(sums).sum((0, 1)) / max(lost, 1e-9)
        return np.asarray((ratio + _PRIOR_EVENTS) / (variance + _PRIOR_EVENTS))


# ---- the questions -------------------------------------------------------------------------------

Key = tuple[str, str]
"""A question, and whether it looks at each class, at the likeliest ("top"), or at sureness."""
_Parts = Mapping[Key, Sequence[_Places | _Sureness | _Skill]]
_QUESTIONS = ("level", "sureness", "shape", "groups", "region", "skill")


def judge_classes(
    p: FloatArray,
    y: IntArray,
    *,
    groups: Mapping[str, IntArray] | None = None,
    features: Mapping[str, FloatArray] | None = None,
    clusters: IntArray | None = None,
    weights: FloatArray | None = None,
    seed: int = 0,
) -> ClassJudgement:
    """Ask all questions of class probabilities.

    Parameters
    ----------
    p : array of shape (n, k)
        Probabilities of the classes; rows sum to 1.
    y : array of int, shape (n,)
        The class that came, 0 to k − 1.
    groups : mapping of name to codes of shape (n,), optional
    features : mapping of name to numbers of shape (n,), optional
    clusters : codes of shape (n,), optional
        Rows of one cluster may depend.
    weights : array of shape (n,), optional
    seed : int
        Of the draws, which attach to rows by their content.

    Returns
    -------
    ClassJudgement
        For each question its p-value, and what was stated and happened where it fails most. Of more
        than 20,000 rows a sample is judged, by clusters whole; level and sureness alone of all.

    Raises
    ------
    InputError
        If p or y is not of the form above.

    Examples
    --------
    >>> p = np.repeat([[0.15, 0.85]], 200, axis=0)
    >>> answer = judge_classes(p, np.arange(200) % 2).answers["level"]
    >>> round(answer.claim, 2), round(answer.happened, 2), answer.p
    (0.85, 0.5, 0.0005)
    """
    p, y = check_classes(p, y)
    groups, features = groups or {}, features or {}
    mass = np.ones(len(y)) if weights is None else as_vector(weights, "weights", length=len(y))
    answers = {"impossible": _ask_impossible(p, y)}
    columns = [*groups.values(), *features.values()] + ([] if clusters is None else [clusters])
    keys = row_keys(p, y, *columns)
    places = _sample(keys, clusters)
    stated, came, w = without_zeros(p), y, mass
    p, y, keys, mass = stated[places], y[places], keys[places], mass[places]
    rows = _ClaimedRows.of(p, None if weights is None else mass)
    values = {name: np.asarray(column)[places] for name, column in {**groups, **features}.items()}
    asked, reasons = _arrange(rows, values, list(groups), list(features))
    dependence = None
    if clusters is not None:
        codes = np.unique(clusters[places], return_inverse=True)[1]
        dependence = _Clusters.of(rows, keys, codes, y, seed)
    seen = rows.sums(y[:, None], _inflation(rows, dependence, y[:, None]))
    scores = {
        key: [part.scores(seen, rows)[:, 0] for part in parts] for key, parts in asked.items()
    }
    observed = {key: max(np.abs(z).max() for z in parts) for key, parts in scores.items()}
    drawn = _draw_null(rows, keys, asked, dependence, observed, seed)
    inflation = max(float(seen.inflation[0]), 1.0)
    shown = _Shown(p, y, mass, values, places, 1 / inflation)
    for question in _QUESTIONS:
        parts = [key for key in asked if key[0] == question]
        if not parts:
            answers[question] = CalibrationAnswer(question, math.nan, reason=reasons[question])
            continue
        critical = {key: float(np.quantile(drawn[key], 1 - 0.05 / len(parts))) for key in parts}
        worst = max(parts, key=lambda key: observed[key] / max(critical[key], _ROUNDING))
        chance = joint_p_value(
            np.array([observed[key] for key in parts]), np.stack([drawn[key] for key in parts])
        )
        part, run, score = _locate(rows, asked[worst], scores[worst], critical[worst], seen)
        if not isinstance(part, _Places):
            answers[question] = _describe(question, chance, score, shown, shown_class(p))
            continue
        inside = ((part.bins >= part.starts[run]) & (part.bins < part.stops[run])).any(1)
        confidence = 2 * float(special.ndtr(max(critical[worst], Z_95))) - 1
        answers[question] = _describe(
            question,
            chance,
            score,
            shown,
            int(part.classes[run]),
            inside,
            part.names[run],
            confidence,
        )
    if len(places) < len(stated) and clusters is None:
        answers |= _ask_all_rows(stated, came, w, weights is not None, set(asked))
    effective = float(mass.sum() ** 2 / np.square(mass).sum() / inflation)
    return ClassJudgement(answers, len(y), effective, len(places) < len(stated))


def check_classes(p: FloatArray, y: IntArray) -> tuple[FloatArray, IntArray]:
    """Check probabilities of shape (n, k), whose rows sum to 1, and the classes that came."""
    p = as_matrix(p, "p")
    if p.shape[1] < 2 or (p < 0).any() or np.abs(p.sum(1) - 1).max(initial=0.0) > 1e-6:
        raise InputError(
            "p needs two or more columns, of probabilities that sum to 1 in each row; "
            f"got shape {p.shape}, sums {p.sum(1).min():g} to {p.sum(1).max():g}, "
            f"the least {p.min():g}"
        )
    codes = np.asarray(as_vector(y, "y", length=len(p)), dtype=np.int64)
    if (codes != y).any() or codes.min() < 0 or codes.max() >= p.shape[1]:
        raise InputError(f"y must be whole numbers from 0 to {p.shape[1] - 1}, got {y!r}")
    return p, codes


def rounding_grain(p: FloatArray) -> float:
    """The unit to which probabilities were rounded; 0 where they were not.

    >>> rounding_grain(np.array([0.25, 0.7])), rounding_grain(np.array([1 / 3]))
    (0.01, 0.0)
    """
    if ((p == 0) | (p == 1)).all():  # certain of each class, which no rounding explains
        return 0.0
    for digits in range(1, _MAX_DIGITS_OF_ROUNDING + 1):
        if np.abs(np.round(p, digits) - p).max() < _ROUNDING:
            return 10.0**-digits
    return 0.0


def without_zeros(p: FloatArray) -> FloatArray:
    """Rounded probabilities with a quarter of the unit of rounding among those that are 0.

    What was rounded to 0 was up to half a unit; floats that are 0 without rounding stay so.
    """
    grain, zero = rounding_grain(p), p == 0
    if not grain or not zero.any():
        return p
    moved = np.where(zero.any(1), grain / 4, 0.0)[:, None]
    return np.asarray(p * (1 - moved) + zero * (moved / np.maximum(zero.sum(1, keepdims=True), 1)))


def _ask_impossible(p: FloatArray, y: IntArray) -> CalibrationAnswer:
    """Whether classes given 0 came more often than rounding explains."""
    came = np.flatnonzero(p[np.arange(len(p)), y] == 0)
    zeros = int((p == 0).any(1).sum())
    if not zeros:
        return CalibrationAnswer("impossible", math.nan, reason="no class is given 0 %")
    # a Poisson number of mean grain/2 for each row with a zero, at most
    mean = zeros * rounding_grain(p) / 2
    chance = float(special.pdtrc(len(came) - 1, mean)) if len(came) else 1.0
    lower, upper = wilson(len(came), zeros)
    return CalibrationAnswer(
        "impossible",
        chance if mean else float(not len(came)),
        claim=0.0,
        happened=len(came) / zeros,
        lower=float(lower),
        upper=float(upper),
        rows=came,
        n=zeros,
        n_effective=float(zeros),
    )


def _sample(keys: KeyArray, clusters: IntArray | None) -> IntArray:
    """At most so many rows, chosen by content; of clusters all rows."""
    if len(keys) <= MAX_ROWS:
        return np.arange(len(keys))
    if clusters is None:
        return np.sort(np.argpartition(keys, MAX_ROWS)[:MAX_ROWS])
    codes = np.unique(clusters, return_inverse=True)[1]
    totals = np.zeros(codes.max() + 1, dtype=np.uint64)
    np.add.at(totals, codes, keys)
    order = np.argsort(totals)
    upto = np.cumsum(np.bincount(codes)[order])
    chosen = order[: max(int(np.searchsorted(upto, MAX_ROWS, side="right")), 2)]
    return np.flatnonzero(np.isin(codes, chosen))


def _ask_all_rows(
    p: FloatArray, y: IntArray, mass: FloatArray, weighted: bool, asked: set[Key]
) -> dict[str, CalibrationAnswer]:
    """Level and sureness of all of many rows, in blocks: sums of so many are normal but for skew.

    The p-value of the largest of k levels is k times its own, at most 1.
    """
    k = p.shape[1]
    covariance, simple, cubes = np.zeros((k + 1, k + 1)), np.zeros(k + 1), np.zeros(k)

    def blocks() -> Iterator[_ClaimedRows]:
        for block in row_blocks(len(p), k):
            yield _ClaimedRows.of(p[block], mass[block] if weighted else None)

    for block, rows in zip(row_blocks(len(p), k), blocks(), strict=True):
        covariance += rows.covariance
        simple += rows.sums(y[block][:, None], np.ones(1)).simple[:, 0]
        claims = rows.p
        cubes += (rows.squares**1.5 * claims * (1 - claims) * (1 - 2 * claims)).sum(0)
    variance = np.maximum(np.diag(covariance)[:k], 1e-300)
    level = to_normal(simple[:k] / np.sqrt(variance), cubes / variance**1.5)
    code = 1 if k == 2 else int(np.abs(level).argmax())
    shown = _Shown(p, y, mass, {}, np.arange(len(p)), 1.0)
    answers = {}
    if ("level", "class") in asked:
        looks = 1 if k == 2 else k
        chance = min(2 * looks * float(special.ndtr(-abs(level[code]))), 1.0)
        answers["level"] = _describe(
            "level", chance, float(level[code]), shown, code, confidence=1 - 0.05 / looks
        )
    if ("sureness", "class") in asked:
        sureness = _Sureness.of_blocks(covariance, blocks)
        outcome = _Outcomes(np.zeros((0, 1), dtype=np.int64), simple[:, None], np.ones(1))
        score = float(sureness.scores(outcome)[0, 0])
        chance = 2 * float(special.ndtr(-abs(score)))
        answers["sureness"] = _describe("sureness", chance, score, shown, shown_class(p))
    return answers


def _arrange(
    rows: _ClaimedRows,
    values: Mapping[str, FloatArray | IntArray],
    groups: Sequence[str],
    features: Sequence[str],
) -> tuple[_Parts, dict[str, str]]:
    """The cells of each question that these probabilities can answer, and why of the others not."""
    p, k = rows.p, rows.p.shape[1]
    spread = p * (1 - p)
    of_top = p.max(1) * (1 - p.max(1))
    one = np.zeros(len(p), dtype=np.int64)
    shown = shown_class(p)
    classes = [1] if k == 2 else [j for j in range(k) if spread[:, j].sum() > 1e-9]
    asked: dict[Key, list[_Places | _Sureness | _Skill]] = {("skill", ""): [_Skill()]}
    reasons = {"groups": "no groups are given", "region": "no features are given"}

    def add(question: str, part: str, cells: list[tuple[str, int, IntArray]], **how: bool) -> None:
        places = _Places.of(question, rows, cells, **how) if cells else None
        if places is not None and len(places.error):
            asked.setdefault((question, part), []).append(places)
        else:
            reasons.setdefault(question, "the probabilities leave nothing to compare")

    def cells_of(values: FloatArray, information: FloatArray) -> IntArray:
        room = int(information.sum() / _MIN_VARIANCE_OF_CELL)
        return cut(values, information, min(max(room, 2), MAX_CELLS))

    add("level", "class", [("", j, one) for j in classes], beyond=False, single=True)
    sureness = _Sureness.of(rows)
    if sureness.error >= _MIN_ERRORS_OF_A_COIN:
        asked["sureness", "class"] = [sureness]
        add("shape", "class", [("", j, cells_of(p[:, j], spread[:, j])) for j in classes])
        if k > 2:
            add("shape", "top", [("", -1, cells_of(p.max(1), of_top))])
    else:
        few = "the probabilities vary too little, or events are too few"
        reasons |= {"sureness": few, "shape": few}
    for name in groups:
        codes = np.unique(values[name], return_inverse=True)[1]
        if codes.max() > 0:
            add("groups", "class", [(name, j, codes) for j in classes], single=True)
            if "sureness" not in reasons:
                add("groups", "sure", [(name, shown, codes)], single=True, sureness=True)
    for name in features:
        x = np.asarray(values[name], dtype=np.float64)
        add("region", "class", [(name, j, cells_of(x, spread[:, j])) for j in classes])
        if "sureness" not in reasons:
            add("region", "sure", [(name, shown, cells_of(x, of_top))], sureness=True)
    return asked, reasons


def _inflation(rows: _ClaimedRows, dependence: _Clusters | None, codes: IntArray) -> FloatArray:
    return np.ones(codes.shape[1]) if dependence is None else dependence.inflation(rows, codes)


def _draw_null(
    rows: _ClaimedRows,
    keys: KeyArray,
    asked: _Parts,
    dependence: _Clusters | None,
    observed: Mapping[Key, float],
    seed: int,
) -> dict[Key, FloatArray]:
    """The largest score of each part, drawn for a perfect model: more often where it is near."""
    width = rows.p.shape[0]
    if dependence is not None:
        width = max(width, len(dependence.keys) * rows.p.shape[1])
    most, start = max(_NUMBERS_AT_ONCE // width, 1), 0
    largest: dict[Key, list[FloatArray]] = {key: [] for key in asked}
    for until in DRAWS:
        while start < until:
            draws = min(most, until - start)
            name = f"classes {start}"
            if dependence is None:
                codes = draw_classes(rows.p, row_uniforms(seed, name, keys, draws))
            else:
                correlations = child(seed, name).choice(
                    _CORRELATIONS, size=draws, p=dependence.chances
                )
                latent = dependence.latent(keys, seed, name, draws)
                codes = dependence.draw(rows.p, latent, correlations)
            outcomes = rows.sums(codes, _inflation(rows, dependence, codes))
            for key, parts in asked.items():
                each = [np.abs(part.scores(outcomes, rows)).max(0) for part in parts]
                largest[key].append(np.max(each, 0))
            start += draws
        drawn = {key: np.concatenate(blocks) for key, blocks in largest.items()}
        if all(np.mean(drawn[key] >= observed[key]) > _CLEARLY_NO_FAULT for key in asked):
            break
    return drawn


def joint_p_value(observed: FloatArray, drawn: FloatArray) -> float:
    """P-value of the least of the p-values of several statistics, shape (s,) and (s, draws).

    Each is ranked among its draws and itself; the least of the shares above is ranked again
    (Westfall and Young 1993).

    >>> joint_p_value(np.array([3.0]), np.array([[0.0, 1.0, 2.0]]))
    0.25
    """
    pooled = np.column_stack([observed, drawn])
    above = [np.searchsorted(np.sort(-each), -each + _ROUNDING, side="right") for each in pooled]
    least = np.min(above, 0)
    return float(np.mean(least <= least[0]))


# ---- what happened where -------------------------------------------------------------------------


@frozen(eq=False)
class _Shown:
    """What the account of a fault reads."""

    p: FloatArray
    y: IntArray
    mass: FloatArray
    values: Mapping[str, FloatArray | IntArray]
    places: IntArray  # of the rows in the table given
    worth: float  # effective rows for each row, by clusters


def _locate(
    rows: _ClaimedRows,
    parts: Sequence[_Places | _Sureness | _Skill],
    scores: Sequence[FloatArray],
    critical: float,
    seen: _Outcomes,
) -> tuple[_Places | _Sureness | _Skill, int, float]:
    """The run, of those that stand out, in which most more or fewer happened than was stated."""
    best: tuple[_Places | _Sureness | _Skill, int, float] = (parts[0], 0, float(scores[0][0]))
    rank = (False, -math.inf)
    for part, z in zip(parts, scores, strict=True):
        off = np.abs(z)
        if isinstance(part, _Places):
            raw = _runs(part.residuals(rows, seen), part.starts, part.stops)[:, 0] / part.raw_error
            off = np.where(np.abs(z) >= critical, np.maximum(raw * np.sign(z), 0.0), -1.0)
            off = np.where(off > 0, 1e6 + off, np.abs(z))
        run = int(off.argmax())
        if (True, float(off[run])) > rank:
            best, rank = (part, run, float(z[run])), (True, float(off[run]))
    return best


def shown_class(p: FloatArray) -> int:
    """The class that sentences speak of: the rarer of two, else (-1) the likeliest of each row."""
    return 1 if p.shape[1] == 2 and np.quantile(p[:, 1], 0.9) < 0.5 else -1


def claims_of(p: FloatArray, y: IntArray, code: int) -> tuple[FloatArray, BoolArray]:
    """The probability of a class and whether it came; of the likeliest where the code is -1."""
    if code >= 0:
        return p[:, code], y == code
    return p.max(1), p.argmax(1) == y


def moved_most(p: FloatArray) -> BoolArray:
    """The rows that a temperature moves most."""
    cooler = np.maximum(p, FLOOR) ** (1 / _TYPICAL_TEMPERATURE)
    moved = np.abs(cooler / cooler.sum(1, keepdims=True) - p).sum(1).round(6)
    return np.asarray(moved >= np.quantile(moved, 1 - _SHARE_MOVED_MOST))


def _describe(
    question: str,
    chance: float,
    score: float,
    shown: _Shown,
    code: int,
    inside: BoolArray | None = None,
    name: str = "",
    confidence: float = 0.95,
) -> CalibrationAnswer:
    """What was stated and what happened in some rows; of sureness, in those it moves most."""
    p, low, high = shown.p, math.nan, math.nan
    if inside is None:
        inside = moved_most(p) if question == "sureness" else np.ones(len(p), dtype=np.bool_)
    claims, came = claims_of(p, shown.y, code)
    if question in ("shape", "sureness"):
        low, high = float(claims[inside].min()), float(claims[inside].max())
    elif name:
        low, high = float(shown.values[name][inside].min()), float(shown.values[name][inside].max())
    mass = shown.mass[inside]
    happened = float(np.average(came[inside], weights=mass))
    size = max(float(mass.sum() ** 2 / np.square(mass).sum()) * shown.worth, 1.0)
    lower, upper = wilson(happened * size, size, confidence)
    return CalibrationAnswer(
        question,
        chance,
        score,
        claim=float(np.average(claims[inside], weights=mass)),
        happened=happened,
        lower=float(lower),
        upper=float(upper),
        class_code=code,
        name=name,
        low=low,
        high=high,
        rows=shown.places[inside],
        n=int(inside.sum()),
        n_effective=size,
    )
