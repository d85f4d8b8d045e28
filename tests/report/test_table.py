"""A table with roles serves every verb; an unknown word says where it belongs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure
from howsure.core.errors import InputError
from howsure.core.rng import child

N = 300
Y = child(0, "roles").normal(size=N)
SITES = np.where(np.arange(N) % 3, "a", "b")
ENDS = {"sales": Y, "low": np.full(N, -1.2), "high": np.full(N, 1.2), "store": SITES}
ROLES: dict[str, Any] = {"y": "sales", "lower": "low", "upper": "high", "coverage": 0.9}
QUICK = howsure.Options(trials=False)


def test_a_table_is_assessed_as_its_arrays_are() -> None:
    table = howsure.Table(ENDS, groups="store", **ROLES)
    arrays = howsure.assess(
        Y, (ENDS["low"], ENDS["high"]), coverage=0.9, groups={"store": SITES}, options=QUICK
    )
    assert table.assess(options=QUICK).verdict == arrays.verdict
    assert howsure.assess(table, options=QUICK).verdict == arrays.verdict
    beside = howsure.Table(
        Y, (ENDS["low"], ENDS["high"]), coverage=0.9, groups={"store": SITES}, point=Y - 0.1
    )
    assert beside.assess(options=QUICK).value("mae") == pytest.approx(0.1)


def test_its_roles_are_shown() -> None:
    table = howsure.Table(ENDS, **ROLES)
    roles = {use.column: use.role for use in table.roles}
    assert roles == {
        "sales": "y",
        "low": "lower end at 90 %",
        "high": "upper end at 90 %",
        "store": "ignored",
    }
    assert repr(table).splitlines()[:2] == ["Table: 300 rows, 1 model", "  sales: y"]
    page = table._repr_html_()
    assert page.count("<tr>") == 1 + 4 + 1 + 10
    assert "The first 10 of 300 rows." in page


def test_what_is_in_a_notebook_is_escaped() -> None:
    table = howsure.Table({**ENDS, "<b>": SITES}, groups="<b>", **ROLES)
    assert "<b>" not in table._repr_html_()


def test_rows_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from howsure.report import table as module

    times = []
    real = module.opened
    monkeypatch.setattr(module, "opened", lambda *a, **k: times.append(1) or real(*a, **k))
    table = howsure.Table(ENDS, **ROLES)
    table.assess(options=QUICK)
    assert table.assess(options=QUICK).value("PICP") == np.mean(np.abs(Y) <= 1.2)
    assert len(times) == 1
    table.assess(options=howsure.Options(trials=False, seed=1))  # nothing is drawn in reading
    assert len(times) == 1


def test_recalibration_takes_tables() -> None:
    new = {"low": [-1.0], "high": [1.0]}
    held = howsure.Table(ENDS, **ROLES)
    named = howsure.recalibrate(new, ENDS, method="cqr", **ROLES)
    for asked in (new, howsure.Table(new, **ROLES)):
        found = howsure.recalibrate(asked, held, method="cqr")
        np.testing.assert_equal(found.predictions, named.predictions)
    assert howsure.improve(held, seed=1).right == howsure.improve(ENDS, seed=1, **ROLES).right
    with pytest.raises(InputError, match="the two tables must have the same roles, got lower="):
        howsure.recalibrate(howsure.Table(new, lower="l"), held)
    with pytest.raises(InputError, match="a Table of arrays has no columns to recalibrate"):
        howsure.recalibrate(new, howsure.Table(Y, (Y - 1, Y + 1), coverage=0.9))


def test_what_verbs_do_with_a_table_it_does_itself() -> None:
    new = {"low": [-1.0], "high": [1.0]}
    held = howsure.Table(ENDS, groups="store", **ROLES)
    for found, wanted in (
        (held.recalibrate(new, method="cqr"), howsure.recalibrate(new, held, method="cqr")),
        (held.conformal(new, method="cqr"), howsure.conformal(new, held, method="cqr")),
    ):
        np.testing.assert_equal(found.predictions, wanted.predictions)
    assert held.improve(seed=1).right == howsure.improve(held, seed=1).right


def test_limits_are_named_as_flags_are() -> None:
    held = howsure.Table(ENDS, groups="store", **ROLES)
    assert not held.check(max_coverage=0.99).failed
    failed = held.check(min_coverage=0.99, by=["store"], confidence=0.9).failed
    assert [each.limit.value for each in failed] == [0.99, 0.99]
    assert len(held.check(limits=[{"measure": "mae", "max": 9.0}], max_mae=9).outcomes) == 2
    with pytest.raises(InputError, match="nothing to judge"):
        held.check()
    with pytest.raises(InputError, match="near: confidence"):
        held.check(min_coverage=0.5, confidenc=0.9)


def test_a_table_holds_where_its_limits_do() -> None:
    from howsure.testing import assert_holds

    limit = [{"measure": "coverage", "max": 0.95}]
    assert_holds(howsure.Table(ENDS, **ROLES), limits=limit)


@pytest.mark.parametrize(
    ("keyword", "words"),
    [
        ({"seed": 1}, r"give options=howsure.Options\(seed=…\)"),
        ({"slow": ["skce"]}, r"give options=howsure.Options\(also=…\)"),
        ({"memory": "2GB"}, r"give large=howsure.Large\(memory=…\)"),
        ({"lower": "low"}, r"give howsure.Table\(…, lower=…\) as the data"),
        ({"x": Y}, "name the inputs with features="),
        ({"gruops": SITES}, "near: groups"),
    ],
)
def test_a_word_from_elsewhere_says_where_it_belongs(keyword: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        howsure.assess(ENDS, **keyword)


def test_roles_beside_a_table_are_refused() -> None:
    table = howsure.Table(ENDS, **ROLES)
    with pytest.raises(InputError, match="name roles in the Table; got groups beside one"):
        howsure.assess(table, groups="store")
    with pytest.raises(InputError, match=r"a role of Table must be .* near: lower"):
        howsure.Table(ENDS, lowr="low")


def test_load_reads_now(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        howsure.load(tmp_path / "none.csv")
    assert howsure.Table(tmp_path / "none.csv").source == tmp_path / "none.csv"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tolerance": 1.5}, "tolerance must be"),
        ({"confidence": 95}, "confidence must be"),
        ({"seed": -1}, "seed must be"),
        ({"ignore": {"widht"}}, "ignore must be among"),
        ({"cells": 2}, "cells must be"),
        ({"also": ["skc"]}, "also"),
    ],
)
def test_options_are_checked_where_they_are_given(options: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        howsure.Options(**options)


@pytest.mark.parametrize(
    ("large", "words"),
    [
        ({"jobs": 0}, "jobs must be"),
        ({"jobs": 1, "scheduler": "tcp://x"}, "jobs and scheduler cannot be combined"),
        ({"memory": "2 apples"}, "2 apples"),
    ],
)
def test_how_a_large_table_is_read_is_checked_too(large: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        howsure.Large(**large)


def test_a_watch_takes_a_table(tmp_path: Path) -> None:
    from howsure.watch import Watch

    days = {**ENDS, "day": np.arange(N) // 10}
    table = howsure.Table(days, time="day", groups="store", **ROLES)
    first = Watch.init(tmp_path / "a", table)
    second = Watch.init(tmp_path / "b", days, time="day", groups="store", **ROLES)
    assert first.promise.sentence == second.promise.sentence


def test_the_trade_off_of_width_and_misses_is_that_of_its_rows() -> None:
    table = howsure.Table(ENDS, **ROLES)
    curve = table.characteristic()
    assert curve.at().miss_rate == pytest.approx((np.abs(Y) > 1.2).mean())
    scales = np.sort(np.abs(Y) / 1.2)  # at which each row is just inside
    assert curve.at(miss_rate=0.1).knob == pytest.approx(scales[round(0.9 * N) - 1])
    two = howsure.Table(Y, {"a": howsure.Intervals(Y - 1, Y + 1, 0.9), "b": Y})
    assert two.characteristic("a").at().miss_rate == 0.0
    with pytest.raises(InputError, match="model must name one of 'a', 'b', got ''"):
        two.characteristic()


def test_a_table_says_which_new_rows_can_be_judged() -> None:
    x = child(0, "inputs").uniform(-1, 1, 100)
    y, sd = x + Y[:100], np.ones(100)
    rows = {"y": y, "mean": x, "sd": sd, "x": x}
    reference = howsure.Table(rows, features="x")
    new = {"x": [0.1, 9.0, -0.5]}
    scores = reference.monitor(howsure.Table(new))
    assert scores.table.columns["outside"].tolist() == [False, True, False]
    assert "33.3 % of 3 rows are outside the reference" in scores.report.verdict
    arrays = howsure.Table(y, howsure.Distribution.normal(x, sd), features={"x": x})
    same = arrays.monitor(new).table.columns
    np.testing.assert_allclose(same["cce"], scores.table.columns["cce"])
    with pytest.raises(InputError, match=r"got neither: name them with .*features=COLUMN"):
        howsure.Table(ENDS, **ROLES).monitor(new)
