"""Methods on the same random splits of one subject's rows: the loop over them, what it gives.

Medians over the splits, ranks, and who ties with whom. Source: Jang and Lee 2025, sections 5, 6.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache, partial
from itertools import product
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, stdtrit

from howsure.core.arrays import AnyArray, FloatArray, IntArray, check_fraction
from howsure.core.classes import frozen
from howsure.core.convert import check_whole, filled
from howsure.core.errors import InputError
from howsure.core.progress import report_progress
from howsure.core.records import Direction, Notion, Record
from howsure.core.registry import check_known
from howsure.core.rng import child
from howsure.engine.catalogue import catalogue
from howsure.stats.ease import Perturbation, ease
from howsure.topics.adaptivity.coverage import NoiseFloor, noise_floor
from howsure_studies.engine.ranks import RankComparison, compare_ranks

Numbers = Mapping[str, float | str]
"""By measure: its value, or the reason why there is none."""
Predict = Callable[[Any], npt.ArrayLike]
SURROGATE: Final = "surrogate"
"""How the name of an ease begins that comes from the probabilities, inputs being lost."""
NO_SLOPE: Final = "all cells agree in mean size or in mean difficulty"
"""Why T-SS may be missing."""
RANKED: Final = ("t_cv", "t_ss")
"""The measures that methods are ranked by."""
CONTRASTS: Final = (
    *(("O-CPA", "CP-A"), ("O-PAC", "CP-A"), ("O-PAC", "PAC")),
    *(("R-CPA", "CP-A"), ("O-CPA", "R-CPA")),
)
"""Methods whose difference is asked for: groups by ease against none, against the same guarantee,
and, by way of thresholds from random rows, what few rows a group cost and what ease brings."""
_SIZES: Final = ("set_size", "set_deficit", "set_excess", "width")
_MARGINAL: Final = (*_SIZES, "empirical_coverage")
_UNKNOWN: Final = (math.nan, math.nan)


@frozen(kw_only=True, eq=False)
class Subject(ABC):
    """A model's outputs on labelled rows that it was not trained on, and how easy these are."""

    name: str
    y: AnyArray
    eases: Mapping[str, FloatArray]  # of the rows, by the way of disturbing; measures use the first

    @property
    def ease(self) -> FloatArray:
        """The ease that measures use, shape (n,)."""
        return next(iter(self.eases.values()))

    @property
    def source(self) -> str:
        """Where that ease comes from."""
        return next(iter(self.eases))

    @property
    @abstractmethod
    def about(self) -> Mapping[str, str]:
        """What reports tell of the model."""


@final
@frozen(kw_only=True, eq=False)
class MethodComparison:
    """Methods on the same random splits of one task, at one coverage.

    Attributes
    ----------
    task : str
        The model and its rows.
    methods, measures : tuple of str
        What was compared, and by what.
    values : ndarray of float, shape (repeats, methods, measures)
        Every measure in every repeat; NaN where it has no answer.
    coverage : float
        Nominal coverage.
    calibration_rows, test_rows : int
        Rows of each part in every repeat.
    bins : int
        Cells by ease.
    seed : int
        The experiment's seed.
    ease : str
        Where the ease that forms the cells came from.
    about : mapping of str to str
        What reports tell of the model.
    reasons : mapping of (method, measure) to str
        Why values are missing, by method and measure.
    units : str
        Of sizes: ``labels``, or ``y``.
    """

    task: str
    methods: tuple[str, ...]
    measures: tuple[str, ...]
    values: FloatArray
    coverage: float
    calibration_rows: int
    test_rows: int
    bins: int
    seed: int
    ease: str = ""
    about: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[tuple[str, str], str] = field(default_factory=dict)
    units: str = "labels"

    @property
    def repeats(self) -> int:
        """Number of splits."""
        return len(self.values)

    @property
    def surrogate(self) -> bool:
        """Whether ease came from the probabilities, inputs being lost."""
        return self.ease.startswith(SURROGATE)

    @property
    def floor(self) -> NoiseFloor:
        """T-CV of a perfect model with as many test rows and cells."""
        return floor_of(self.bins, self.test_rows, self.coverage)

    @property
    def slope_floor(self) -> float:
        """T-SS that sets stay below 95 % of the time if they ignore difficulty."""
        return slope_floor(self.bins)

    def of(self, measure: str) -> FloatArray:
        """One measure in every repeat, shape (repeats, methods).

        Raises
        ------
        InputError
            If it was not measured.
        """
        if measure not in self.measures:
            known = ", ".join(self.measures)
            raise InputError(f"measure must be one of {known}, got {measure!r}")
        return self.values[:, :, self.measures.index(measure)]

    def median(self, measure: str) -> FloatArray:
        """Median over the repeats with an answer, shape (methods,); NaN where none has one."""
        self.of(measure)
        return _medians(self)[:, self.measures.index(measure)]

    def medians(self, measure: str) -> dict[str, float]:
        """The same by method."""
        return dict(zip(self.methods, self.median(measure).tolist(), strict=True))

    @property
    def ranked(self) -> bool:
        """Whether there are splits and methods enough for ranks."""
        return self.repeats > 1 and len(self.methods) > 2

    @property
    def decides(self) -> bool:
        """Whether splits are so many that shared ranks can differ at all.

        The least p-value of Wilcoxon's signed ranks over J splits is 2/2^J, and Holm's first step
        asks for .05 over the number of pairs.
        """
        count = len(self.methods)
        return self.ranked and 2.0 ** (1 - self.repeats) <= 0.05 / (count * (count - 1) / 2)

    def ranks(self, measure: str) -> RankComparison:
        """Ranks of the methods over the repeats, and who ties with whom.

        A value without an answer counts as the worst. Repeats share rows, so that their
        differences are correlated and the tests too sure; the published ranks are made so too.

        Raises
        ------
        InputError
            If the measure has no better and worse, or there are fewer than three methods or two
            repeats.
        """
        return _ranks(self, measure)

    def records(self) -> tuple[Record, ...]:
        """The median of every measure and method; options hold the range over repeats."""
        return _records(self)


@lru_cache(maxsize=512)
def _medians(comparison: MethodComparison) -> FloatArray:
    """See `MethodComparison.median`, of every measure: shape (methods, measures)."""
    return _over_repeats(comparison.values, np.median)


def _over_repeats(values: FloatArray, statistic: Callable[..., Any]) -> FloatArray:
    """A statistic of each column over the repeats with an answer; NaN where none has one."""
    found = statistic(values, axis=0)
    for place in zip(*np.nonzero(~np.isfinite(values).all(axis=0)), strict=True):
        column = values[(slice(None), *place)]
        known = column[np.isfinite(column)]
        found[place] = statistic(known) if len(known) else math.nan
    return np.asarray(found)


@lru_cache(maxsize=512)
def _records(comparison: MethodComparison) -> tuple[Record, ...]:
    """See `MethodComparison.records`: a page asks for the same ones many times."""
    medians = _medians(comparison)
    low, high = (
        _over_repeats(comparison.values, partial(np.quantile, q=level)) for level in (0.05, 0.95)
    )
    answered = np.isfinite(comparison.values).sum(axis=0)
    floor = comparison.floor
    chance = {"t_cv": (floor.median, floor.upper), "t_ss": (0.0, comparison.slope_floor)}
    return tuple(
        Record(
            metric=measure,
            value=float(medians[at]),
            n=float(comparison.test_rows),
            direction=_direction(measure),
            units=comparison.units if measure in _SIZES else "1",
            notion=Notion.MARGINAL if measure in _MARGINAL else Notion.LOCAL,
            target=comparison.coverage if measure == "empirical_coverage" else math.nan,
            null=chance.get(measure, _UNKNOWN)[0],
            null_upper=chance.get(measure, _UNKNOWN)[1],
            coverage=comparison.coverage,
            model=method,
            group=f"task={comparison.task}",
            reason=comparison.reasons.get((method, measure), ""),
            options={
                "repeats": float(comparison.repeats),
                "answered": float(answered[at]),
                "low_5": float(low[at]),
                "high_95": float(high[at]),
                "ease": comparison.ease,
            },
        )
        for number, method in enumerate(comparison.methods)
        for k, measure in enumerate(comparison.measures)
        for at in [(number, k)]
    )


def _direction(measure: str) -> Direction:
    """Which values are better: as the catalogue says, and low ones of ranks and of widths."""
    known = catalogue().get(measure)
    if known is None:
        return Direction.HIGHER if measure == "ease_truth" else Direction.LOWER
    return known.direction


@lru_cache(maxsize=512)
def _ranks(comparison: MethodComparison, measure: str) -> RankComparison:
    """See `MethodComparison.ranks`: a page asks for the same ones many times."""
    table, direction = comparison.of(measure), _direction(measure)
    if direction is Direction.TARGET:
        table, direction = np.abs(table - comparison.coverage), Direction.LOWER
    sign = 1.0 if direction is Direction.LOWER else -1.0
    known = table[np.isfinite(table)]
    worst = float((sign * known).max()) + 1.0 if len(known) else 0.0
    filled = np.where(np.isfinite(table), sign * table, worst)
    return compare_ranks(filled, comparison.methods)


def joined(parts: Sequence[MethodComparison], methods: Sequence[str]) -> MethodComparison:
    """One comparison of methods that were compared alone, under these names."""
    return replace(
        parts[0],
        methods=tuple(methods),
        values=np.concatenate([comparison.values for comparison in parts], axis=1),
        reasons={
            (name, measure): why
            for name, comparison in zip(methods, parts, strict=True)
            for (_, measure), why in comparison.reasons.items()
        },
    )


def average_records(comparisons: Sequence[MethodComparison]) -> tuple[Record, ...]:
    """Averages over tasks at each coverage: means of medians, and of shared ranks.

    Parameters
    ----------
    comparisons : sequence of MethodComparison
        Of the same methods and measures, one a task and coverage.

    Returns
    -------
    tuple of Record
        Of each coverage, measure (of several tasks not the width, whose units differ) and method,
        and ``t_cv_rank`` and ``t_ss_rank`` where there are ranks; the error is the standard error
        over tasks (of ranks see `agreed_mean`), and a null the range of what chance alone shows on
        them. Options hold how many ``tasks`` there are, and how many ``answered``.

    Raises
    ------
    InputError
        If there is none, or methods or measures differ.
    """
    if not comparisons:
        raise InputError("comparisons must contain at least one, got none")
    first = comparisons[0]
    for other in comparisons[1:]:
        if (other.methods, other.measures) != (first.methods, first.measures):
            raise InputError(
                f"comparisons must have the same methods, got {', '.join(other.methods)} beside "
                f"{', '.join(first.methods)}"
            )
    by_level: dict[float, list[MethodComparison]] = {}
    for each in sorted(comparisons, key=lambda each: each.coverage):
        by_level.setdefault(each.coverage, []).append(each)
    return tuple(record for tasks in by_level.values() for record in _averages(tasks))


def _averages(tasks: Sequence[MethodComparison]) -> Iterator[Record]:
    """The same at one coverage."""
    measures = [name for name in tasks[0].measures if name != "width" or len(tasks) == 1]
    tables: dict[str, list[AnyArray]] = {
        measure: [each.median(measure) for each in tasks] for measure in measures
    }
    if any(each.decides for each in tasks):
        unknown = np.full(len(tasks[0].methods), np.nan)
        for measure in RANKED:
            tables[f"{measure}_rank"] = [
                each.ranks(measure).shared_ranks if each.decides else unknown for each in tasks
            ]
    floors = {
        "t_cv": [each.floor.median for each in tasks],
        "t_ss": [each.slope_floor for each in tasks],
    }
    for measure, table in tables.items():
        chance = floors.get(measure, _UNKNOWN)
        for method, column in zip(tasks[0].methods, np.asarray(table, dtype=float).T, strict=True):
            value, error = (agreed_mean if measure.endswith("_rank") else mean_of)(column)
            answered = int(np.isfinite(column).sum())
            reasons = filter(None, (each.reasons.get((method, measure)) for each in tasks))
            yield Record(
                metric=measure,
                value=value,
                standard_error=error,
                direction=_direction(measure),
                null_lower=min(chance),
                null_upper=max(chance),
                coverage=tasks[0].coverage,
                model=method,
                reason="" if answered else next(reasons, ""),
                options={"tasks": float(len(tasks)), "answered": float(answered)},
            )


def mean_of(values: AnyArray) -> tuple[float, float]:
    """The mean of the numbers that there are, and its standard error; NaN where too few are."""
    known = values[np.isfinite(values)]
    error = float(known.std(ddof=1)) / len(known) ** 0.5 if len(known) > 1 else math.nan
    return float(known.mean()) if len(known) else math.nan, error


def agreed_mean(values: AnyArray, step: float = 1.0) -> tuple[float, float]:
    """The same of numbers that move by steps, and may all be one: no error is then zero.

    Where N agree, the chance that another would be a step off is 1/(N + 2) by Laplace's rule of
    succession, and the error is that of such a share.
    """
    value, error = mean_of(values)
    count = int(np.isfinite(values).sum())
    if error == 0.0:
        share = 1.0 / (count + 2.0)
        error = step * math.sqrt(share * (1.0 - share) / count)
    return value, error


def differences(comparisons: Sequence[MethodComparison]) -> tuple[Record, ...]:
    """How much `CONTRASTS` differ on each task, and over all tasks, at each coverage.

    Parameters
    ----------
    comparisons : sequence of MethodComparison
        One a task and coverage; tasks without both methods of a contrast are left out of it.

    Returns
    -------
    tuple of Record
        Of each coverage, ranked measure and contrast, one a task (its ``group``) and, of two tasks
        or more, one over them, whose options count the ``tasks`` and those on which the first
        method is ``better``. Intervals are Student's. That of a task is of the mean over splits d̄:
        as splits share rows, its squared error is (1/J + test/validation rows)·s² (Nadeau and
        Bengio 2003). That over tasks is of their mean, with s²/T: a table is a cluster.
    """
    records: list[Record] = []
    levels = sorted({each.coverage for each in comparisons})
    for level, measure, (first, second) in product(levels, RANKED, CONTRASTS):
        sign = 1.0 if _direction(measure) is Direction.HIGHER else -1.0
        alike = {"metric": measure, "coverage": level, "model": f"{first} − {second}"}
        means = []
        for each in comparisons:
            if each.coverage != level or not {first, second} <= set(each.methods):
                continue
            table = each.of(measure)
            gaps = table[:, each.methods.index(first)] - table[:, each.methods.index(second)]
            known = gaps[np.isfinite(gaps)]
            if len(known) < 2:
                continue
            inflation = 1.0 / len(known) + each.test_rows / each.calibration_rows
            error = float(known.std(ddof=1)) * math.sqrt(inflation)
            means.append(float(known.mean()))
            options = {"tasks": 1.0, "better": float(sign * means[-1] > 0)}
            records.append(
                _student(
                    means[-1], error, len(known) - 1, group=each.task, options=options, **alike
                )
            )
        if len(means) > 1:
            values = np.array(means)
            value, error = mean_of(values)
            better = float((sign * values > 0).sum())
            options = {"tasks": float(len(means)), "better": better}
            records.append(_student(value, error, len(means) - 1, options=options, **alike))
    return tuple(records)


def _student(value: float, error: float, freedom: int, **known: Any) -> Record:
    """A difference with Student's interval of 95 %."""
    reach = error * float(stdtrit(freedom, 0.975))
    return Record(
        value=value, standard_error=error, lower=value - reach, upper=value + reach, **known
    )


@lru_cache(maxsize=256)
def floor_of(bins: int, rows: int, coverage: float) -> NoiseFloor:
    """T-CV of a perfect model on so many test rows, cut in so many cells."""
    return noise_floor(np.diff(np.arange(bins + 1) * rows // bins), coverage)


def slope_floor(bins: int) -> float:
    """The 95 % quantile of T-SS where mean size and mean difficulty of cells are independent.

    ρ² of normal pairs has the law Beta(1/2, (B − 2)/2), and either sign is as likely.
    """
    return float(betaincinv(0.5, (bins - 2) / 2, 0.9))


@final
@frozen(kw_only=True, eq=False)
class RandomSplit:
    """Row numbers of both parts of one random split, and a seed for the draws of methods."""

    validation: IntArray
    test: IntArray
    seed: int


def random_split(n: int, share: float, seed: int, repeat: int = 0) -> RandomSplit:
    """The split of one repeat."""
    kept = round(n * check_fraction(share, "share"))
    if not 0 < kept < n:
        raise InputError(f"share must leave rows on both sides of {n}, got {share}")
    order = child(seed, "adaptivity", "split", repeat).permutation(n)
    draws = child(seed, "adaptivity", "draws", repeat)
    return RandomSplit(
        validation=np.sort(order[:kept]),
        test=np.sort(order[kept:]),
        seed=int(draws.integers(2**31 - 1)),
    )


def compared(
    subject: Subject,
    numbers_of: Callable[[str, RandomSplit], Sequence[Numbers]],
    *,
    methods: tuple[str, ...],
    measures: tuple[str, ...],
    coverages: Sequence[float],
    repeats: int,
    share: float,
    bins: int,
    seed: int,
    units: str = "labels",
) -> tuple[MethodComparison, ...]:
    """Measure every method on every split; `numbers_of` gives those at each coverage."""
    levels = [check_fraction(coverage, "coverages") for coverage in filled(coverages, "coverages")]
    splits = [
        random_split(len(subject.y), share, seed, repeat)
        for repeat in range(check_whole(repeats, "repeats"))
    ]
    rows = len(splits[0].test)
    if not isinstance(bins, int) or not 3 <= bins <= rows:
        raise InputError(f"bins must be between 3 and the {rows} test rows, got {bins!r}")
    values = np.full((len(levels), repeats, len(methods), len(measures)), np.nan)
    reasons: list[dict[tuple[str, str], str]] = [{} for _ in levels]
    for repeat, split in enumerate(splits):
        for number, method in enumerate(methods):
            for level, numbers in enumerate(numbers_of(method, split)):
                for k, measure in enumerate(measures):
                    value = numbers[measure]
                    if isinstance(value, str):
                        reasons[level][method, measure] = value
                    else:
                        values[level, repeat, number, k] = value
        report_progress(subject.name, repeat + 1, repeats)
    return tuple(
        MethodComparison(
            task=subject.name,
            methods=methods,
            measures=measures,
            values=values[level],
            coverage=coverage,
            calibration_rows=len(splits[0].validation),
            test_rows=rows,
            bins=bins,
            seed=seed,
            ease=subject.source,
            about=subject.about,
            reasons=reasons[level],
            units=units,
        )
        for level, coverage in enumerate(levels)
    )


def chosen(
    methods: Sequence[str], known: Sequence[str], own: Mapping[str, Any] | None
) -> tuple[str, ...]:
    """Names of known methods, then those of own ones, all different."""
    for name in methods:
        check_known(name, known, "method")
    return different((*methods, *(own or {})), "methods")


def different(names: Sequence[str], argument: str) -> tuple[str, ...]:
    """Names of which none stands twice, at least one."""
    if len(set(filled(names, argument))) < len(names):
        raise InputError(f"{argument} must be different, got {', '.join(names)}")
    return tuple(names)


def eases_of(
    predict: Predict,
    x: npt.ArrayLike,
    perturbations: Mapping[str, Perturbation],
    repeats: int,
    seed: int,
) -> dict[str, FloatArray]:
    """Ease of the rows of a task by each way of disturbing."""
    if not perturbations:
        raise InputError("perturbations must contain at least one way of disturbing, got none")
    of = partial(ease, predict, x, repeats=repeats, seed=seed)
    return {name: of(how) for name, how in perturbations.items()}
