"""`howsure watch`: a promise from deployment to retirement."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from howsure.cli.options import ReadOptions, address
from howsure.cli.show import show_lines
from howsure.cli.terminal import Console, escape
from howsure.core.files import check_outputs
from howsure.report.document import form_of
from howsure.watch import Watch


def begin(ledger: str, reference: Path, mature: int, tolerance: float, read: ReadOptions) -> None:
    """Freeze the promise."""
    read.refuse_common_rows()
    columns: dict[str, Any] = {k: v for k, v in read.columns.items() if v is not None}
    row_id = columns.pop("rows", None)
    watch = Watch.init(
        ledger,
        address(reference),
        mature=mature,
        tolerance=tolerance,
        row_id=row_id,
        crossing=read.crossing,
        encoding=read.encoding,
        decimal=read.decimal,
        **columns,
    )
    Console().print(escape(watch.promise.sentence), highlight=False)


def add(ledger: str, files: Sequence[Path]) -> None:
    """Add rows."""
    booked = Watch(ledger).add(*map(address, files))
    Console().print(escape(booked.sentence), highlight=False)


def show(ledger: str, outputs: Sequence[Path]) -> bool:
    """Say whether the promise is kept, and write what is asked for."""
    for path in outputs:
        form_of(path)
    check_outputs(outputs, [Path(ledger)])
    report = Watch(ledger).show()
    console = Console()
    show_lines(console, report.document().lines)
    for path in outputs:
        report.save(path)
        console.print(f"written: {escape(str(path))}", highlight=False, soft_wrap=True)
    return report.kept
