"""What the shift benchmark of Gustafsson, Danelljan and Schön (2023) printed in its tables.

Tables A1 to A42 of the paper's appendix, every entry of them, with the digits printed: ten methods
on twelve image sets at coverage 0.9 (A1 to A12), six of the methods on nine sets at 0.8 (A13 to
A21) and 0.95 (A22 to A30), and variations of two methods on all sets at 0.9 (A31 to A42). They were
read from the text of the paper; each table's place is fixed by its caption and by the values that
it shares with its set's first table. What the paper shows in figures alone is not here.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib import resources
from typing import Final, final

from howsure.core.errors import InputError
from howsure.core.registry import check_known


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedValue:
    """One printed number, and its spread over five runs.

    Attributes
    ----------
    table : str
        Where it stands in the paper, such as ``"A2"``.
    dataset : str
        One of `PUBLISHED_DATASETS`.
    coverage : float
        Nominal coverage of the intervals: 0.8, 0.9 or 0.95.
    method : str
        One of `PUBLISHED_METHODS`.
    quantity : str
        ``val_mae``, mean absolute error on validation rows, in units of y, lower is better;
        ``val_width``, mean width of the calibrated intervals on validation rows, in units of y,
        lower is better; ``test_empirical_coverage``, share of y inside among the test rows that
        are predicted, to be near `coverage`; ``prediction_rate``, share of test rows that are
        predicted, higher is better.
    mean : float
        Mean over five runs, each of a network, or an ensemble of five, out of twenty.
    sd : float
        Standard deviation over the five runs (with divisor 5). NaN where none is printed: the
        prediction rate of methods that always predict.
    """

    table: str
    dataset: str
    coverage: float
    method: str
    quantity: str
    mean: float
    sd: float


def _read() -> tuple[PublishedValue, ...]:
    """Every number once, with the first table that has it."""
    file = resources.files(__package__) / "published.csv"
    values: dict[tuple[str, ...], PublishedValue] = {}
    for row in csv.DictReader(file.read_text("utf-8").splitlines()):
        coverage, mean, sd = (float(row.pop(name) or "nan") for name in ("coverage", "mean", "sd"))
        value = PublishedValue(**row, coverage=coverage, mean=mean, sd=sd)
        values.setdefault((*list(row.values())[1:], str(coverage)), value)
    return tuple(values.values())


_EVERY: Final = _read()

PUBLISHED_DATASETS: Final = tuple(dict.fromkeys(value.dataset for value in _EVERY))
"""The image sets, in the paper's order and by the names of `image_names`."""
PUBLISHED_METHODS: Final = tuple(dict.fromkeys(value.method for value in _EVERY))
"""Five methods that always predict, five that may abstain, and six variations of these."""
PUBLISHED_COVERAGES: Final = tuple(sorted({value.coverage for value in _EVERY}))
"""The nominal coverages."""


def published(
    dataset: str | None = None, *, coverage: float | None = None, method: str | None = None
) -> tuple[PublishedValue, ...]:
    """Printed numbers of a set, a nominal coverage or a method, or of all.

    A number that the paper repeats among the variations (A31 to A42) is given once, with its first
    table.

    Parameters
    ----------
    dataset : str, optional
        One of `PUBLISHED_DATASETS`.
    coverage : float, optional
        0.8, 0.9 or 0.95.
    method : str, optional
        One of `PUBLISHED_METHODS`.

    Returns
    -------
    tuple of PublishedValue
        In the order of the tables; empty where the paper has none, as for ``cells-gap`` at 0.8.

    Raises
    ------
    InputError
        If there is no such set, coverage or method.

    Examples
    --------
    >>> for value in published("cells-tails", coverage=0.9, method="gaussian_gmm"):
    ...     print(value.table, value.quantity, value.mean, value.sd)
    A2 val_mae 4.05446 1.33153
    A2 val_width 15.4321 4.98796
    A2 test_empirical_coverage 0.889825 0.0193021
    A2 prediction_rate 0.53654 0.0101012
    >>> published("cell")
    Traceback (most recent call last):
    ...
    howsure.core.errors.InputError: dataset must be one of cells, ..., got 'cell'; near: ...
    """
    if dataset is not None:
        check_known(dataset, PUBLISHED_DATASETS, "dataset")
    if method is not None:
        check_known(method, PUBLISHED_METHODS, "method")
    if coverage is not None and coverage not in PUBLISHED_COVERAGES:
        raise InputError(f"coverage must be 0.8, 0.9 or 0.95, got {coverage!r}")
    return tuple(
        value
        for value in _EVERY
        if dataset in (None, value.dataset)
        and coverage in (None, value.coverage)
        and method in (None, value.method)
    )
