"""Several methods on the same problems: ranks, tests of their difference, and who ties with whom.

Rows are problems (data sets, repeats), columns are methods. Ranks run from 1, the best; ties share
the mean of the ranks that they span.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, FloatArray, IntArray, as_matrix, check_fraction
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.records import Direction, ResultTable
from howsure.stats.binomial import holm

PostHoc = Literal["wilcoxon-holm", "nemenyi"]
_FEW = 13
"""Problems up to which SciPy's test is exact where they tie."""


@frozen
class FriedmanTest:
    """Outcome of `friedman`."""

    # friedman's statistic, corrected for ties, and its p-value by the χ² law of k − 1 degrees of
    # freedom; NaN where `reason` says why
    chi_square: float
    p_value: float
    # iman and Davenport's statistic and its p-value by the F law of k − 1 and (k − 1)(N − 1)
    # degrees of freedom
    f: float
    f_p_value: float
    reason: str = ""  # why there is no answer


@frozen(kw_only=True, eq=False)
class RankComparison:
    """Outcome of `compare_ranks`."""

    names: tuple[str, ...]  # the methods, in the order given
    mean_ranks: FloatArray  # shape (k,): mean rank of each method; 1 is best
    # shape (k,): 1 + number of methods that are significantly better
    shared_ranks: IntArray
    # shape (k, k): of each pair, adjusted for the number of pairs; NaN on the diagonal
    p_values: FloatArray
    different: BoolArray  # shape (k, k): pairs told apart
    # largest sets of at least two methods of which no two are told apart, each from the best to the
    # worst mean rank
    cliques: tuple[tuple[int, ...], ...]
    friedman: FriedmanTest  # do the methods differ at all?
    critical_difference: float  # nemenyi's; NaN for the other post-hoc test
    method: PostHoc  # {"wilcoxon-holm", "nemenyi"}: the post-hoc test
    confidence: float  # 1 − level of all tests
    n: int  # number of problems

    def table(self, name: str = "ranks") -> ResultTable:
        """The methods from best to worst, with a column of truth values for each clique."""
        order = np.argsort(self.mean_ranks, kind="stable")
        columns: dict[str, npt.NDArray[np.generic]] = {
            "method": np.array([self.names[i] for i in order], dtype=object),
            "mean_rank": self.mean_ranks[order],
            "shared_rank": self.shared_ranks[order],
            "critical_difference": np.full(len(order), self.critical_difference),
        }
        for number, clique in enumerate(self.cliques, start=1):
            columns[f"clique_{number}"] = np.isin(order, clique)
        test = self.friedman
        told = test.reason or f"p = {test.f_p_value:.3g}"
        return ResultTable(
            name=name,
            columns=columns,
            notes=(
                f"{self.n} problems; Friedman's test (Iman and Davenport's F): {told}; pairs "
                "compared with "
                f"{_WORDS[self.method]} at {1 - self.confidence:.3g}."
            ),
        )


_WORDS = {
    "wilcoxon-holm": "Wilcoxon's signed-rank test with Holm's adjustment",
    "nemenyi": "Nemenyi's critical difference",
}


def method_ranks(scores: npt.ArrayLike, direction: Direction = Direction.LOWER) -> FloatArray:
    """Rank the methods on each problem."""
    from scipy.stats import rankdata

    table = as_matrix(scores, "scores")
    if direction not in (Direction.LOWER, Direction.HIGHER):
        raise InputError(f"direction must be lower or higher is better, got {direction!r}")
    signed = table if direction is Direction.LOWER else -table
    return np.asarray(rankdata(signed, axis=1), dtype=np.float64)


def friedman(scores: npt.ArrayLike) -> FriedmanTest:
    """Test whether methods differ at all, by their ranks on common problems.

    χ² = 12N/(k(k+1)) · (Σ R_j² − k(k+1)²/4) over the mean ranks R_j, divided by
    1 − Σ(t³ − t)/(N(k³ − k)) over the sizes t of ties; F = (N − 1)χ²/(N(k − 1) − χ²), infinite
    where all problems rank alike. Sources: M. Friedman, JASA 32 (1937); R. L. Iman and
    J. M. Davenport, Communications in Statistics A9 (1980); both as in J. Demšar, JMLR 7 (2006),
    section 3.2.2.
    """
    from scipy import special
    from scipy.stats import friedmanchisquare

    table = as_matrix(scores, "scores")
    n, k = table.shape
    if k < 3 or n < 2:
        raise InputError(f"scores must contain at least 3 methods on 2 problems, got {k} on {n}")
    if (table == table[:, :1]).all():
        return FriedmanTest(
            math.nan, math.nan, math.nan, math.nan, "all methods tie on every problem"
        )
    found = friedmanchisquare(*table.T)
    chi_square, p_value = float(found.statistic), float(found.pvalue)
    room = n * (k - 1) - chi_square
    if room <= 1e-9 * n * k:
        return FriedmanTest(chi_square, p_value, math.inf, 0.0)
    f = (n - 1) * chi_square / room
    return FriedmanTest(chi_square, p_value, f, float(special.fdtrc(k - 1, (k - 1) * (n - 1), f)))


def wilcoxon_holm(scores: npt.ArrayLike) -> FloatArray:
    """Wilcoxon's signed-rank test of every pair of methods, adjusted by Holm's method.

    Problems without a difference are left out. The p-value is exact up to 50 problems without
    ties and up to 13 with them, and by the normal limit otherwise (SciPy's choice). With N
    problems it is at least 2^(1−N), so few problems tell no methods apart. Source: F. Wilcoxon,
    Biometrics Bulletin 1 (1945); S. Holm (1979).
    """
    table = _several(scores)
    k = table.shape[1]
    first, second = np.triu_indices(k, 1)
    raw = [_signed_rank(table[:, i] - table[:, j]) for i, j in zip(first, second, strict=True)]
    return _symmetric(k, holm(raw))


def _signed_rank(differences: FloatArray) -> float:
    """The two-sided p-value of Wilcoxon's signed-rank test.

    SciPy tries all signs one by one where few problems tie, which takes seconds; the sums of
    twice the ranks of either sign are counted here instead.
    """
    from scipy.stats import rankdata, wilcoxon

    some = differences[differences != 0]
    if not len(some):
        return 1.0
    if len(differences) > _FEW:
        return float(wilcoxon(differences)[1])
    doubled = np.rint(2 * rankdata(np.abs(some))).astype(np.int64)
    counts = _count_sums(tuple(np.sort(doubled).tolist()))
    positive = int(doubled[some > 0].sum())
    tail = min(counts[: positive + 1].sum(), counts[positive:].sum())
    return min(1.0, float(2 * tail / counts.sum()))


@lru_cache(maxsize=256)
def _count_sums(ranks: tuple[int, ...]) -> FloatArray:
    """In how many ways some of the ranks add up to 0, 1, 2 …: without ties, n alone decides."""
    counts = np.ones(1)
    for rank in ranks:
        counts = np.pad(counts, (0, rank)) + np.pad(counts, (rank, 0))
    return counts


def nemenyi(mean_ranks: npt.ArrayLike, n: int) -> FloatArray:
    """Nemenyi's test of every pair of methods, by the distance of their mean ranks.

    Source: P. B. Nemenyi (1963), as in J. Demšar, JMLR 7 (2006), section 3.2.2.
    """
    from scipy.stats import studentized_range

    ranks = as_matrix(mean_ranks, "mean_ranks", columns=1)[:, 0]
    k = len(ranks)
    unit = _rank_unit(k, n)
    first, second = np.triu_indices(k, 1)
    gaps = np.abs(ranks[first] - ranks[second])
    return _symmetric(k, studentized_range.sf(math.sqrt(2) * gaps / unit, k, np.inf))


def critical_difference(methods: int, n: int, confidence: float = 0.95) -> float:
    """Nemenyi's critical difference of mean ranks.

    Source: J. Demšar, JMLR 7 (2006), section 3.2.2 and table 5.
    """
    from scipy.stats import studentized_range

    level = check_fraction(confidence, "confidence")
    unit = _rank_unit(methods, n)
    return float(studentized_range.ppf(level, methods, np.inf)) / math.sqrt(2) * unit


def cliques(mean_ranks: npt.ArrayLike, different: npt.ArrayLike) -> tuple[tuple[int, ...], ...]:
    """Largest sets of methods of which no two are told apart: bars of a critical-difference plot.

    For Nemenyi's test they are runs in the order of mean ranks. Other tests may tell apart two
    methods between which they tell neither from a third; then a set may skip a method that lies
    between its ends.
    """
    ranks = as_matrix(mean_ranks, "mean_ranks", columns=1)[:, 0]
    apart = np.asarray(different, dtype=np.bool_)
    if apart.shape != (len(ranks), len(ranks)) or (apart != apart.T).any():
        raise InputError(
            f"different must be symmetric with shape {(len(ranks),) * 2}, got shape {apart.shape}"
        )
    order = np.argsort(ranks, kind="stable").tolist()
    place = {method: position for position, method in enumerate(order)}
    ties = {i: {j for j in order if j != i and not apart[i, j]} for i in order}
    found = _maximal(ties, set(), set(order), set())
    sets = [sorted(members, key=place.__getitem__) for members in found if len(members) > 1]
    return tuple(tuple(s) for s in sorted(sets, key=lambda s: [place[i] for i in s]))


def compare_ranks(
    scores: npt.ArrayLike,
    names: Sequence[str],
    *,
    direction: Direction = Direction.LOWER,
    method: PostHoc = "wilcoxon-holm",
    confidence: float = 0.95,
    gate: bool = True,
) -> RankComparison:
    """Rank methods over common problems, and find which of them share a rank.

    A method's shared rank is 1 + the number of methods significantly better. Two methods with
    one mean rank are never told apart.
    """
    table = _several(scores)
    n, k = table.shape
    if len(names) != k:
        raise InputError(f"names must have one method per column of scores ({k}), got {len(names)}")
    if method not in get_args(PostHoc):
        raise InputError(f"method must be one of {get_args(PostHoc)}, got {method!r}")
    level = 1.0 - check_fraction(confidence, "confidence")
    mean_ranks = method_ranks(table, direction).mean(axis=0)
    whole = friedman(table)
    by_ranks = method == "nemenyi"
    p_values = nemenyi(mean_ranks, n) if by_ranks else wilcoxon_holm(table)
    told = not gate or whole.f_p_value < level
    different = (p_values < level) & (mean_ranks[:, None] != mean_ranks) & told
    better = different & (mean_ranks[:, None] < mean_ranks)
    return RankComparison(
        names=tuple(names),
        mean_ranks=mean_ranks,
        shared_ranks=1 + better.sum(axis=0),
        p_values=p_values,
        different=different,
        cliques=cliques(mean_ranks, different),
        friedman=whole,
        critical_difference=critical_difference(k, n, confidence) if by_ranks else math.nan,
        method=method,
        confidence=confidence,
        n=n,
    )


def _several(scores: npt.ArrayLike) -> FloatArray:
    table = as_matrix(scores, "scores")
    if table.shape[1] < 2:
        raise InputError(f"scores must contain at least 2 methods, got {table.shape[1]}")
    return table


def _rank_unit(methods: int, n: int) -> float:
    """√(k(k+1)/(6N)): the sd of a difference of two mean ranks, if the methods are alike."""
    if methods < 2 or n < 1:
        raise InputError(f"at least 2 methods on 1 problem are needed, got {methods} on {n}")
    return math.sqrt(methods * (methods + 1) / (6.0 * n))


def _symmetric(k: int, upper: npt.ArrayLike) -> FloatArray:
    """A symmetric matrix from what stands above its diagonal, row by row."""
    matrix = np.full((k, k), np.nan)
    first, second = np.triu_indices(k, 1)
    matrix[first, second] = matrix[second, first] = upper
    return matrix


def _maximal(
    ties: dict[int, set[int]], chosen: set[int], open_: set[int], done: set[int]
) -> list[set[int]]:
    """Maximal cliques by Bron and Kerbosch (1973), with a pivot."""
    if not open_ and not done:
        return [chosen]
    pivot = max(open_ | done, key=lambda i: (len(ties[i] & open_), -i))
    found = []
    for i in sorted(open_ - ties[pivot]):
        found += _maximal(ties, chosen | {i}, open_ & ties[i], done & ties[i])
        open_, done = open_ - {i}, done | {i}
    return found
