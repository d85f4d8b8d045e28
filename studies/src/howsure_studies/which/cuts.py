"""How a table is cut into rows for training, for calibration and for the test."""

from __future__ import annotations

import hashlib
from typing import final

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.rng import row_keys, row_uniforms
from howsure_studies.tasks import SplitTable


@final
@frozen(kw_only=True, eq=False)
class Cut:
    """Numbers of rows; no unit has rows in two of them."""

    train: IntArray
    calibration: IntArray
    test: IntArray

    @property
    def with_y(self) -> IntArray:
        """All rows whose y a method may see."""
        return np.concatenate([self.train, self.calibration])


def cut_rows(
    table: SplitTable, *, seed: int, rows: int, calibration: float, test: int, shifted: bool
) -> Cut:
    """Cut a table at random, by unit, or train on the one side of its shift and test on the other.

    Parameters
    ----------
    table : SplitTable
        What is cut.
    seed : int
        Which of the random cuts. Draws belong to units, or to rows by their content, so that the
        order of the table changes nothing.
    rows : int
        The most rows for training and calibration together; fewer where the table is small.
    calibration : float
        The share of these that is for calibration, in (0, 1): at most 2,000 rows.
    test : int
        The most test rows. Of a random cut they are at most three tenths of the table.
    shifted : bool
        Whether the test is of the late or foreign rows, and training of the others.

    Returns
    -------
    Cut

    Raises
    ------
    InputError
        If rows are too few, or the table has no shift.
    """
    order, unit = _drawn(table, seed)
    if shifted:
        if table.shifted is None:
            raise InputError("a table that is cut by its shift must have shifted rows, got none")
        late = table.shifted[order]
        tests, pool = order[late], order[~late]
        tests = tests[:test]
    else:
        wanted = min(test, round(0.3 * len(order)))
        end = _whole_units(unit[order], wanted)
        tests, pool = order[:end], order[end:]
    pool = pool[:rows]
    wanted = min(round(calibration * len(pool)), _MOST)
    end = _whole_units(unit[pool], wanted)
    cut = Cut(train=pool[end:], calibration=pool[:end], test=tests)
    if min(map(len, (cut.train, cut.calibration, cut.test))) < _FEWEST:
        sizes = f"{len(cut.train)}, {len(cut.calibration)} and {len(cut.test)}"
        raise InputError(f"each part must have at least {_FEWEST} rows, got {sizes}")
    return cut


_MOST = 2000  # calibration rows, past which more teach little
_FEWEST = 50


def _drawn(table: SplitTable, seed: int) -> tuple[IntArray, IntArray]:
    """Rows in a random order that keeps units together, and the unit of each row."""
    part = table.part
    if table.units is None:
        unit = np.arange(len(part))
        keys = row_keys(part.x, part.y)
    else:
        names, unit = np.unique(table.units, return_inverse=True)
        keys = np.array([_key(name) for name in names])
    drawn: FloatArray = row_uniforms(seed, "which: cut", keys)
    within = row_uniforms(seed, "which: order", row_keys(part.x, part.y))
    order: IntArray = np.lexsort((within, drawn[unit]))
    return order, unit


def _key(name: str) -> np.uint64:
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def _whole_units(unit: IntArray, wanted: int) -> int:
    """The least number of rows from the first on that is not below `wanted` and cuts no unit."""
    end = wanted
    while 0 < end < len(unit) and unit[end] == unit[end - 1]:
        end += 1
    return end
