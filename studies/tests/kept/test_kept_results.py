"""Results that shipped with a plan are read again, or refused with what to do."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from damage import GONE, damaged, places
from howsure.core.errors import HowsureError, InputError
from howsure_studies.engine import plan as plans
from howsure_studies.engine import shipped, study_shipped

KEPT = sorted(Path(__file__).parent.glob("*.parquet"))
NEWEST = KEPT[-1]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of plans."""
    for module in (shipped, plans):
        monkeypatch.setattr(module, "plan_folders", lambda: (tmp_path,))
    return tmp_path


def facts_of(table: pa.Table) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(table.schema.metadata[b"howsure"])
    return facts


def written(folder: Path, table: pa.Table, facts: Any) -> None:
    told = table.replace_schema_metadata({"howsure": json.dumps(facts)})
    parquet.write_table(told, folder / "kept.parquet")


def test_there_is_a_small_file_of_the_newest_form() -> None:
    assert NEWEST.name == f"shipped-{shipped.FORM}.parquet"
    assert sum(path.stat().st_size for path in KEPT) < 100_000


@pytest.mark.parametrize("path", KEPT, ids=[path.stem for path in KEPT])
def test_what_shipped_is_read(folder: Path, path: Path) -> None:
    (folder / "kept.parquet").write_bytes(path.read_bytes())
    found = study_shipped("pointwise")
    assert (next(iter(found.facts.values()))[:10], found.missing) == ("plan kept,", 0)


def test_what_a_later_version_ships_is_refused(folder: Path) -> None:
    table = parquet.read_table(NEWEST)
    written(folder, table, {**facts_of(table), "form": shipped.FORM + 1})
    with pytest.raises(InputError, match=r"its format is 2; create it again with make papers$"):
        study_shipped("pointwise")


@pytest.mark.slow
def test_whatever_is_done_to_it_is_refused_in_words(folder: Path) -> None:
    table, tried, refused = parquet.read_table(NEWEST), 0, 0
    facts = facts_of(table)
    cases = [*itertools.product(places(facts, 3), (GONE, None, -1, "x", [], {}))]
    content = NEWEST.read_bytes()
    for place, put in cases[::3]:
        written(folder, table, damaged(facts, place, put))
        tried, refused = tried + 1, refused + is_refused()
    for name in table.column_names:
        written(folder, table.drop_columns([name]), facts)
        assert is_refused()
    for cut in (0, 4, 100, len(content) // 2, len(content) - 1):
        (folder / "kept.parquet").write_bytes(content[:cut])
        assert is_refused()
    assert (tried > 30, refused > tried / 4) == (True, True)


def is_refused() -> bool:
    try:
        study_shipped("pointwise")
    except HowsureError:
        return True
    return False
