"""The options of reading a table too large for memory."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any, final

from howsure.core.errors import InputError
from howsure.core.options import Described, described, option

# 32,768 numbers of 64 bits are 256 kB a column.
ROWS_AT_ONCE = 32_768
"""Rows that are looked at together: what is made of so many stays near the processor."""
# Memory that a row takes where all are assessed at once, about: a million rows with two groups
# take 360 MB beside the process itself (docs/speed.md), and inputs and more models take more.
_BYTES_PER_ROW = 1_000
# Memory that a run takes whatever the table, this process and one more; of each further process;
# and of a row of the sample, of which statistics and trials are computed. Estimates, rounded up,
# as a run should keep within what it is given; not measured since.
_BYTES_OF_RUN = 600 << 20
_BYTES_OF_JOB = 350 << 20
_BYTES_PER_SAMPLED_ROW = 4_000
# Rows of the sample, however little the memory: a share of 90 % is then known to .4 points (95 %).
# By hand; not tuned.
_MIN_SAMPLE = 20_000
_option = partial(option, panel="Tables too large for memory")


@final
@described
class Large(Described):
    """How a table too large for memory is read.

    Raises
    ------
    InputError
        If a value breaks a rule, or `jobs` and `scheduler` are both given.

    Examples
    --------
    >>> Large(memory="2GB", jobs=2).memory
    '2GB'
    """

    memory: str | int | None = _option(
        "Memory limit, such as 2GB: larger tables are read in parts. By default, tables of "
        "over 2,000,000 rows are read in parts.",
        metavar="SIZE",
        rule="howsure.core.sizes:check_size",
    )
    jobs: int | None = _option("Processes that read parts; by default one per core.", least=1)
    scheduler: Any = _option(
        "Dask scheduler that reads parts on its workers, such as tcp://host:8786.",
        "Or a client of Dask.",
        metavar="ADDRESS",
        kind=str,
    )
    resume: bool = _option("Continue an interrupted run after its finished parts.", default=False)
    state: str | os.PathLike[str] | None = _option(
        "Also save a summary of this table for howsure merge (.arrow).",
        verbs="assess check",
        kind=Path,
    )

    def __post_init__(self) -> None:
        Described.__post_init__(self)
        if self.jobs is not None and self.scheduler is not None:
            raise InputError("jobs and scheduler cannot be combined: give one of them")

    @property
    def limit(self) -> int | None:
        """The memory in bytes."""
        from howsure.core.sizes import as_bytes

        return None if self.memory is None else as_bytes(self.memory)

    @property
    def rows(self) -> int:
        """Rows that may be assessed at once."""
        from howsure.inputs.sources import HUGE_ROWS

        return HUGE_ROWS if self.limit is None else self.limit // _BYTES_PER_ROW

    @property
    def piece_rows(self) -> int:
        """Rows of a piece of which each process holds a few at once."""
        from howsure.inputs.sources import PIECE_ROWS

        return max(min(PIECE_ROWS, self.rows // (4 * (self.processes or 1))), ROWS_AT_ONCE)

    @property
    def sample(self) -> int:
        """Rows of the sample."""
        from howsure.streaming.sample import ROWS_OF_SAMPLE

        if self.limit is None:
            return ROWS_OF_SAMPLE
        return max(
            min((self.limit - _BYTES_OF_RUN) // _BYTES_PER_SAMPLED_ROW, ROWS_OF_SAMPLE),
            _MIN_SAMPLE,
        )

    @property
    def processes(self) -> int | None:
        """Processes that the memory has room for."""
        if self.limit is None or self.scheduler is not None:
            return self.jobs
        from joblib import cpu_count

        room = 1 + max(self.limit - _BYTES_OF_RUN, 0) // _BYTES_OF_JOB
        return int(min(room, self.jobs or cpu_count()))
