"""Records, curves and tables: frozen, plain, and fit to travel."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle

import numpy as np
import pytest

from howsure.core.records import Curve, Direction, Notion, Record, ResultTable


def test_a_record_becomes_plain_values() -> None:
    record = Record(
        metric="picp", value=0.9, upper=math.inf, lower=-math.inf, n=10,
        direction=Direction.TARGET, notion=Notion.GROUP, options={"bins": 10},
    )  # fmt: skip
    plain = record.as_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["standard_error"] is None
    assert (plain["lower"], plain["upper"]) == ("-Infinity", "Infinity")
    assert plain["direction"] == "closer to the target is better"
    assert plain["options"] == {"bins": 10}
    assert set(plain) == {item.name for item in dataclasses.fields(Record)}


def test_results_are_frozen_and_travel() -> None:
    line = np.array([0.0, 1.0])
    for made in (
        Record(metric="mae", value=1.0),
        Curve(name="c", x=line, y=line),
        ResultTable(name="t", columns={"a": line}),
    ):
        with pytest.raises(dataclasses.FrozenInstanceError):
            made.model = "other"  # type: ignore[misc]
        assert type(pickle.loads(pickle.dumps(made))) is type(made)
        assert made == made


def test_a_curve_carries_further_numbers_of_its_points() -> None:
    line = np.array([0.0, 1.0])
    assert Curve(name="c", x=line, y=line).hover == {}
    made = Curve(name="c", x=line, y=line, hover={"k": 2 * line})
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(made)).hover["k"], 2 * line)


def test_a_table_knows_its_length() -> None:
    assert len(ResultTable(name="t", columns={"a": np.arange(3)})) == 3
    assert len(ResultTable(name="t", columns={})) == 0
