"""Random splits that all methods of a comparison share, and the loop over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray, check_fraction
from howsure.core.convert import Count, Fraction, check_fields
from howsure.core.errors import InputError
from howsure.core.progress import tell
from howsure.core.registry import check_known
from howsure.core.rng import child
from howsure.metrics.adaptivity import noise_floor
from howsure.studies.adaptivity.result import MethodComparison

Numbers = Mapping[str, float | str]
"""By measure: its value, or the reason why there is none."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """One split.

    Attributes
    ----------
    repeat : int
        Which.
    validation, test : ndarray of int
        Row numbers of both parts.
    seed : int
        For the draws of methods in this repeat.
    """

    repeat: int
    validation: IntArray
    test: IntArray
    seed: int


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Design:
    """What is compared, on which splits; checked when made.

    Attributes
    ----------
    task : str
        The model and its rows.
    n : int
        Rows of the task.
    methods, measures : tuple of str
        What is compared, and by what.
    coverages : tuple of float
        Nominal coverages.
    repeats : int
        Random splits, at least 1.
    share : float
        Share of the rows that validate.
    bins : int
        Cells by ease, from 3 to the test rows.
    seed : int
        Fixes the splits and the draws.
    surrogate : bool
        Whether ease comes from the probabilities.
    units : str
        Of sizes.
    """

    task: str
    n: int
    methods: tuple[str, ...]
    measures: tuple[str, ...]
    coverages: tuple[Fraction, ...]
    repeats: Count
    share: float
    bins: int
    seed: int
    surrogate: bool = False
    units: str = "labels"

    def __post_init__(self) -> None:
        if not self.methods or not self.coverages:
            raise InputError("methods and coverages must hold at least one each, got none")
        check_fields(self)
        kept = self.validation_rows
        if not 0 < kept < self.n:
            raise InputError(f"share must leave rows on both sides of {self.n}, got {self.share}")
        if not isinstance(self.bins, int) or not 3 <= self.bins <= self.n - kept:
            raise InputError(
                f"bins must lie between 3 and the {self.n - kept} test rows, got {self.bins!r}"
            )

    @property
    def validation_rows(self) -> int:
        """Rows of the validation part."""
        return round(self.n * check_fraction(self.share, "share"))

    def part(self, repeat: int) -> Part:
        """The split of one repeat."""
        order = child(self.seed, "adaptivity", "split", repeat).permutation(self.n)
        draws = child(self.seed, "adaptivity", "draws", repeat)
        return Part(
            repeat=repeat,
            validation=np.sort(order[: self.validation_rows]),
            test=np.sort(order[self.validation_rows :]),
            seed=int(draws.integers(2**31 - 1)),
        )

    def run(
        self,
        one: Callable[[str, Part], Sequence[Numbers]],
    ) -> tuple[MethodComparison, ...]:
        """Measure every method in every repeat.

        Parameters
        ----------
        one : callable
            Takes a method's name and a split; gives the numbers at each coverage.

        Returns
        -------
        tuple of MethodComparison
            One a coverage.
        """
        shape = (len(self.coverages), self.repeats, len(self.methods), len(self.measures))
        values = np.full(shape, np.nan)
        reasons: list[dict[tuple[str, str], str]] = [{} for _ in self.coverages]
        for repeat in range(self.repeats):
            part = self.part(repeat)
            for place, method in enumerate(self.methods):
                for level, numbers in enumerate(one(method, part)):
                    for k, measure in enumerate(self.measures):
                        value = numbers[measure]
                        if isinstance(value, str):
                            reasons[level][method, measure] = value
                        else:
                            values[level, repeat, place, k] = value
            tell(self.task, repeat + 1, self.repeats)
        return tuple(
            self._comparison(level, table, reasons[level]) for level, table in enumerate(values)
        )

    def _comparison(
        self, level: int, values: FloatArray, reasons: Mapping[tuple[str, str], str]
    ) -> MethodComparison:
        tested = self.n - self.validation_rows
        cells = np.diff(np.arange(self.bins + 1) * tested // self.bins)
        return MethodComparison(
            task=self.task,
            methods=self.methods,
            measures=self.measures,
            values=values,
            coverage=self.coverages[level],
            calibration_rows=self.validation_rows,
            test_rows=tested,
            bins=self.bins,
            floor=noise_floor(cells, self.coverages[level]),
            seed=self.seed,
            surrogate=self.surrogate,
            reasons=reasons,
            units=self.units,
        )


def checked_names(given: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Names that are known, each once.

    Raises
    ------
    InputError
        If one is unknown (the message names the near ones) or there twice.

    Examples
    --------
    >>> checked_names(["LAC"], ("LAC", "APS"))
    ('LAC',)
    """
    for name in given:
        check_known(name, known, "method")
    if len(set(given)) < len(given):
        raise InputError(f"methods must be different, got {', '.join(given)}")
    return tuple(given)


def stacked_columns(*parts: npt.NDArray[Any]) -> FloatArray:
    """Columns side by side, as 64-bit numbers.

    Examples
    --------
    >>> stacked_columns(np.zeros((2, 2)), np.ones(2)).shape
    (2, 3)
    """
    return np.column_stack([np.asarray(part, dtype=np.float64) for part in parts])
