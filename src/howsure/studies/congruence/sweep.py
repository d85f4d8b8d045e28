"""A study of one choice: the cases that it compares, each with its null."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.records import Direction, Notion, Record, Table
from howsure.core.registry import check_known


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """One setting of one study.

    Attributes
    ----------
    label : str
        The setting.
    grid : ndarray of float, shape (seeds, g)
        Where the measure was taken.
    values : ndarray of float, shape (seeds, draws, g)
        Its values, for each set of data and each draw or subset within it.
    null : ndarray of float, shape (seeds, g)
        Expected where the laws are equal, at the same sizes and choices.
    published : float, optional
        Mean that the paper prints.
    checked : tuple of float, optional
        Mean and standard deviation of earlier repetitions.
    p_values : tuple of float
        One for each set of data, where the study has a test.
    """

    label: str
    grid: FloatArray
    values: FloatArray
    null: FloatArray
    published: float | None = None
    checked: tuple[float, float] | None = None
    p_values: tuple[float, ...] = ()

    @property
    def means(self) -> FloatArray:
        """Mean over the grid, shape (seeds, draws)."""
        found: FloatArray = self.values.mean(axis=2)
        return found

    @property
    def mean(self) -> float:
        """Mean of all."""
        return float(self.values.mean())

    @property
    def expected(self) -> float:
        """Mean of the null."""
        return float(self.null.mean())

    @property
    def data_sd(self) -> float:
        """Standard deviation over sets of data; NaN for a single set."""
        return float(self.means.mean(axis=1).std(ddof=1)) if len(self.values) > 1 else np.nan

    @property
    def draw_sd(self) -> float:
        """Standard deviation over draws within a set of data; NaN for single draws."""
        means = self.means
        return float(np.sqrt(means.var(axis=1, ddof=1).mean())) if means.shape[1] > 1 else np.nan

    def line(self) -> str:
        """The numbers as one row of a plain table."""
        numbers = (self.mean, self.data_sd, self.draw_sd, self.expected, self.mean / self.expected)
        cells = [f"{number:9.4f}" if np.isfinite(number) else f"{'':9}" for number in numbers[:4]]
        cells.append(f"{numbers[4]:9.2f}")
        cells.append(f"{'' if self.published is None else f'{self.published:.4f}':>11}")
        cells.append(
            f"{'' if self.checked is None else '{:.3f} ± {:.3f}'.format(*self.checked):>15}"
        )
        if self.p_values:
            cells.append(f"   p {min(self.p_values):.3f} to {max(self.p_values):.3f}")
        return f"  {self.label:<32}{''.join(cells)}".rstrip()


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Study:
    """Cases that differ in one choice.

    Attributes
    ----------
    title : str
        What the study is of.
    cases : tuple of Case
        In order.
    """

    title: str
    cases: tuple[Case, ...]

    def __getitem__(self, label: str) -> Case:
        found = {case.label: case for case in self.cases}
        check_known(label, found, "case")
        return found[label]

    def records(self) -> tuple[Record, ...]:
        """The mean of each case beside its null; the standard error is over sets of data."""
        return tuple(
            Record(
                metric="congruence_behaviour",
                value=case.mean,
                standard_error=case.data_sd / math.sqrt(len(case.values)),
                n=float(len(case.values)),
                direction=Direction.NONE,
                notion=Notion.POINTWISE,
                null=case.expected,
                group=f"study={self.title}, case={case.label}",
                options={} if case.published is None else {"published": case.published},
            )
            for case in self.cases
        )

    def table(self) -> Table:
        """One row a case."""
        cases = self.cases
        numbers = {
            "mean": [case.mean for case in cases],
            "data_sd": [case.data_sd for case in cases],
            "draws_sd": [case.draw_sd for case in cases],
            "null": [case.expected for case in cases],
            "published": [np.nan if case.published is None else case.published for case in cases],
        }
        return Table(
            name="congruence_behaviour",
            columns={
                "case": np.array([case.label for case in cases], dtype=object),
                **{name: np.array(column, dtype=np.float64) for name, column in numbers.items()},
            },
            labels={"data_sd": "sd over sets of data", "draws_sd": "sd over draws"},
            notes=self.title,
        )

    def text(self) -> str:
        """The numbers as plain text."""
        titles = ("mean", "sd data", "sd draws", "null", "ratio")
        head = "".join(f"{title:>9}" for title in titles)
        head += f"{'published':>11}{'repeated':>15}"
        return "\n".join([self.title, f"  {'':<32}{head}", *(case.line() for case in self.cases)])
