"""Whatever is given is used, refused, or named as ignored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import howsure
from extras import needs
from howsure.cli.main import app
from howsure.core.errors import HowsureError
from howsure.core.rng import child
from howsure.inputs.roles import ROLES
from howsure.predictions.columns import to_columns
from howsure.report.coercion import OF_TABLES, ROWS, opened

pd = needs("pandas")
N = 60
NUMBERS = child(0, "all used").normal(size=(N, 24))
Y = NUMBERS[:, 0]
PLAIN: Any = {"y": Y, "a": NUMBERS[:, 1] - 2.0, "b": NUMBERS[:, 1] + 2.0}
SPARE: Any = {
    "number": np.abs(NUMBERS[:, 2]) + 0.1,
    "count": np.arange(N) % 3 + 1,
    "side": np.where(NUMBERS[:, 3] > 0, "north", "south"),
    "day": pd.date_range("2024-01-01", periods=N).astype(str).to_numpy(),
}
"""Columns of no role by their names, one of each kind of content."""


def read_as(result: Any) -> str:
    """All that was read, as text."""
    sets = [
        {name: list(values) for name, values in to_columns(each).items()}
        | {"kinds": [prediction.described() for prediction in each.predictions]}
        | {"weights": None if each.weights is None else each.weights.kind}
        for each in result.evalsets
    ]
    return repr(
        [sets, [each.model for each in result.evalsets], result.texts, result.roles.encoder]
    )


def said_of(name: str, column: str) -> Any:
    """What a caller may say by a keyword of one column."""
    return {
        "quantiles": {0.7: column},
        "law": f"norm:loc=a,scale={column}",
        "encode": {column: len},
        "weights_kind": "importance",
        "missing_value": float(PLAIN["a"][3]),
        "crossing": "sort",
        "encoding": "utf-8",
        "decimal": ",",
        "missing": "drop",
    }.get(name, column)


BASES: Any = {
    "intervals": {"lower": "a", "upper": "b"},
    "a point": {"point": "a"},
    "a normal law": {"mean": "a", "sd": "number"},
}


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(
    "role", [role.name for role in ROLES if role.name not in ("y", "coverage")]
)
def test_a_keyword_of_a_table_is_used_refused_or_named(base: str, role: str) -> None:
    """With each kind of column: a note that says why nothing was made of it names it.

    `coverage` is also what is assessed, later.
    """
    table = pd.DataFrame({**PLAIN, **SPARE})
    before = opened(table, **BASES[base])
    for column in SPARE:
        said = {**BASES[base], role: said_of(role, column)}
        if BASES[base].get(role) == said[role]:
            continue
        try:
            after = opened(table, **said)
        except HowsureError:
            continue
        uses = [use for use in after.explanation if use.column == column]
        named = any(
            use.role != "ignored" or not use.note.startswith("name not recognised") for use in uses
        )
        told = any(role in note or column in note for note in after.notes)
        changed = read_as(after) != read_as(before)
        assert told or (named and use_of(role)) or changed


def use_of(role: str) -> bool:
    """Whether a role is played by a column."""
    return role not in ("weights_kind", "missing_value")


@pytest.mark.parametrize("name", sorted({*ROWS, "features", *OF_TABLES}))
def test_a_keyword_beside_arrays_is_used_or_refused(name: str) -> None:
    before = opened(Y, PLAIN["a"])
    given = {
        "model": "mine",
        "weights_kind": "importance",
        "x": SPARE["number"],
        "features": SPARE["number"],
        "crossing": "sort",
        "encode": {"side": str},
        "embedding": NUMBERS[:, :3],
        "image": SPARE["side"],
    }
    kept = {"weights": SPARE["count"]} if name == "weights_kind" else {}
    before = opened(Y, PLAIN["a"], **kept)
    try:
        after = opened(Y, PLAIN["a"], **kept, **{name: given.get(name, SPARE["number"])})
    except HowsureError:
        return
    shown = [repr(each) + str(getattr(each, name, "")) for each in (*before.evalsets,)]
    changed = [repr(each) + str(getattr(each, name, "")) for each in (*after.evalsets,)]
    rule = name == "crossing"  # says what to do with what is not there
    assert rule or changed != shown or read_as(after) != read_as(before)


@pytest.mark.parametrize("role", [role for role in ROLES if role.guessable and not role.pattern])
def test_a_column_that_a_name_gives_a_role_is_used_or_named(role: Any) -> None:
    for word in role.shown[:3]:
        for content in SPARE.values():
            table = {**PLAIN, word: content}
            try:
                loaded = opened(pd.DataFrame(table), lower="a", upper="b")
            except HowsureError:
                continue
            (use,) = [each for each in loaded.explanation if each.column == word]
            assert use.role != "ignored" or use.note


def test_a_keyword_that_there_is_not_is_refused() -> None:
    with pytest.raises(HowsureError, match="near: cluster"):
        howsure.assess(Y, PLAIN["a"], clutser=SPARE["side"])
    with pytest.raises(HowsureError, match="role of Table must be one of y"):
        howsure.assess(howsure.Table(pd.DataFrame(PLAIN), uper="b"))


@pytest.mark.parametrize("said", [{"encoding": "utf-8"}, {"decimal": ","}])
def test_rules_of_text_are_named_where_there_is_none(said: Any) -> None:
    loaded = howsure.load(pd.DataFrame(PLAIN), lower="a", upper="b", **said)
    assert any(f"{next(iter(said))}: only for text files" in note for note in loaded.notes)


# ---- a score of doubt ----------------------------------------------------------------------------


def area_by(score: Any, loss: Any) -> float:
    """The mean over i of the mean loss of the i rows of lowest score."""
    ranked = loss[np.argsort(score)]
    return float(np.mean(np.cumsum(ranked) / np.arange(1, len(ranked) + 1)))


DOUBT = child(0, "doubt").exponential(size=400)
ERRS = child(0, "errors").normal(size=400) * DOUBT
WAYS: Any = {
    "a column": lambda beside: howsure.assess(
        pd.DataFrame({"y": ERRS, "uncertainty": DOUBT} | beside),
        options=howsure.Options(trials=False),
    ),
    "a keyword": lambda beside: howsure.assess(
        howsure.Table(pd.DataFrame({"y": ERRS, "kappa": DOUBT} | beside), uncertainty="kappa"),
        options=howsure.Options(trials=False),
    ),
    "an array": lambda beside: howsure.assess(
        howsure.Table(ERRS, beside.get("point", pd.DataFrame(beside)), uncertainty=DOUBT),
        options=howsure.Options(trials=False),
    ),
}
BESIDE: Any = {
    "a point": {"point": np.zeros(400)},
    "intervals": {"lower_90": np.full(400, -1.6), "upper_90": np.full(400, 1.6)},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("beside", BESIDE)
def test_selective_prediction_keeps_rows_by_a_score_of_doubt(way: str, beside: str) -> None:
    made = WAYS[way](BESIDE[beside])
    assert made.value("aurc") == pytest.approx(area_by(DOUBT, np.abs(ERRS)), rel=1e-12)
    (record,) = [r for r in made.records if r.metric == "aurc"]
    assert record.source == "score of doubt"


def test_a_flag_names_a_score_of_doubt(tmp_path: Path) -> None:
    table = pd.DataFrame({"y": ERRS, "kappa": DOUBT} | BESIDE["intervals"])
    table.to_csv(tmp_path / "t.csv", index=False)
    told = CliRunner().invoke(
        app, ["assess", str(tmp_path / "t.csv"), "--uncertainty", "kappa", "--json", "--no-trials"]
    )
    (area,) = [r for r in json.loads(told.stdout)["records"] if r["metric"] == "aurc"]
    assert area["value"] == pytest.approx(area_by(DOUBT, np.abs(ERRS)), rel=1e-9)


def test_each_model_has_its_own_score_of_doubt() -> None:
    one = pd.DataFrame({"y": ERRS, "point": 0.0, "uncertainty": DOUBT})
    loaded = howsure.load([one, one.assign(uncertainty=-DOUBT)])
    assert [
        np.array_equal(np.asarray(each.uncertainty), s * DOUBT)
        for s, each in zip((1, -1), loaded.evalsets, strict=True)
    ] == [True, True]
    taken = loaded.evalsets[1].take(np.arange(3))
    assert np.array_equal(np.asarray(taken.uncertainty), -DOUBT[:3])


def test_a_score_beside_a_point_may_be_a_spread() -> None:
    loaded = howsure.load(pd.DataFrame({"y": ERRS, "point": 0.0, "uncertainty": DOUBT}))
    assert loaded.read().unread == ("uncertainty",)
    beside = howsure.load(pd.DataFrame({"y": ERRS, "uncertainty": DOUBT} | BESIDE["intervals"]))
    assert beside.read().unread == ()


# ---- ends that cross, and columns in several words -----------------------------------------------


def test_crossing_ends_are_exchanged_and_told() -> None:
    table = pd.DataFrame({"y": Y, "lower_90": PLAIN["a"], "upper_90": PLAIN["b"]})
    crossed = table.copy()
    crossed.loc[2:4, ["lower_90", "upper_90"]] = table.loc[2:4, ["upper_90", "lower_90"]].to_numpy()
    loaded = howsure.load(crossed, crossing="sort")
    (held,) = loaded.evalsets[0].predictions
    assert np.array_equal(held.numbers()["lower"][:, 0], table["lower_90"])
    assert np.array_equal(held.numbers()["upper"][:, 0], table["upper_90"])
    assert "3 rows of the model 'model' had ends of intervals that crossed" in str(loaded.notes)
    with pytest.raises(HowsureError, match="crossing must be"):
        howsure.Intervals([0.0], [1.0], 0.9, crossing="turn")  # type: ignore[arg-type]


def test_a_column_that_stands_as_a_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    pd.DataFrame(PLAIN).assign(emb_0=1.0, emb_1=Y).to_csv(path, index=False)
    words = ["assess", str(path), "--lower", "a", "--upper", "b", "--features"]
    told = CliRunner().invoke(app, [*words, "emb_0", "emb_1"])
    assert "join the columns with commas: --features emb_0,emb_1" in str(told.exception)
    assert CliRunner().invoke(app, [*words, "emb_0,emb_1", "--explain-input"]).exit_code == 0
