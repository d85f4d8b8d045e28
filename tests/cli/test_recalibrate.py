"""The choices of `howsure recalibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from howsure.cli.options import ReadOptions
from howsure.cli.recalibrate import run
from howsure.core.errors import InputError


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path, Path]:
    rng = np.random.default_rng(0)
    paths = tmp_path / "given.csv", tmp_path / "held.csv", tmp_path / "new.csv"
    for path in paths[:2]:
        mean = rng.normal(size=99)
        y = mean + rng.normal(size=99)
        csv.write_csv(
            pa.table(
                {"y": y, "lower_90": mean - 1, "upper_90": mean + 1, "mean": mean, "sd": y * 0 + 1}
            ),
            path,
        )
    return paths


def mended(tables: tuple[Path, Path, Path], **options: Any) -> pa.Table:
    method = options.pop("method", None)
    run(*tables, method, options.pop("too_few", "infinite"), 0, ReadOptions(), **options)
    return csv.read_csv(tables[2])


def test_ranks_widen_in_their_order(tables: tuple[Path, Path, Path]) -> None:
    widths = []
    for rank in ("paper", "conformal", "pac"):
        table = mended(tables, rank=rank)
        lower, upper = (table[f"recalibrated_{end}_90"].to_numpy() for end in ("lower", "upper"))
        widths.append(float((upper - lower).mean()))
    assert widths[0] <= widths[1] < widths[2]
    assert np.isfinite(widths).all()
    loose = mended(tables, rank="pac", delta=0.45)
    lower, upper = (loose[f"recalibrated_{end}_90"].to_numpy() for end in ("lower", "upper"))
    assert (upper - lower).mean() < widths[2]


def test_levels_are_those_asked(tables: tuple[Path, Path, Path]) -> None:
    table = mended(tables, method="isotonic", levels="0.1, 0.5,0.9")
    quantiles = [name for name in table.column_names if name.startswith("recalibrated_q")]
    assert len(quantiles) == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rank": "pac", "delta": 2.0}, "delta must lie strictly between"),
        ({"levels": "low"}, "--levels must be numbers"),
        ({"method": "crude", "levels": "0.5,0.1"}, "levels must rise strictly"),
    ],
)
def test_bad_choices_are_refused(
    tables: tuple[Path, Path, Path], options: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        mended(tables, **options)
    assert not tables[2].exists()


def test_a_right_law_made_into_three_quantiles_is_not_said_to_score_better(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    paths = tmp_path / "given.csv", tmp_path / "held.csv", tmp_path / "new.csv"
    for path in paths[:2]:
        zero = np.zeros(400)
        csv.write_csv(pa.table({"y": rng.normal(size=400), "mean": zero, "sd": zero + 1}), path)
    mended(paths, method="isotonic", levels="0.25,0.5,0.75")
    shown = capsys.readouterr().out
    rows = {
        line.split("│")[1].strip(): line.split("│") for line in shown.splitlines() if "│" in line
    }
    assert rows["CRPS"][3].strip()
    assert not rows["CRPS"][4].strip()
    (name,) = (title for title in rows if title.startswith("Pinball loss at"))
    before, after = (float(rows[name][place]) for place in (3, 4))
    assert after == pytest.approx(before, rel=0.03)
    assert "CRPS" in shown.partition("note: Left out")[2]
