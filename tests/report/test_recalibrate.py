"""`howsure.recalibrate`: new rows, whatever they come as, and what was learnt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import howsure
from howsure.core.errors import InputError
from howsure.inputs import load, write_table
from howsure.predictions import Distribution, EvalSet, LabelSets
from howsure.recalibration import FittedRecalibration, load_recalibration
from howsure.recalibration import recalibrate as engine
from howsure.recalibration.dispatch import fit_methods
from howsure.report import recalibrate as served
from howsure.verdict import advice as mends
from howsure.verdict.advice import Advice, Trials


def table(n: int, seed: int, *, y: bool = True, factor: float = 2.0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    mean, sd = rng.normal(size=n) * 10, np.exp(rng.uniform(-0.5, 0.5, n))
    held = {
        "id": [f"{row:03d}" for row in range(n)],
        "mean": mean,
        "sd": sd,
        "region": rng.choice(["north", "south"], n),
        "age": rng.uniform(size=n),
    }
    return {**held, "y": mean + factor * sd * rng.normal(size=n)} if y else held


def advise(monkeypatch: pytest.MonkeyPatch, advice: Advice | None) -> list[EvalSet]:
    asked: list[EvalSet] = []

    def tried(evalset: EvalSet, findings: tuple[Any, ...] = (), *, seed: int = 0) -> Trials:
        asked.append(evalset)
        return Trials(
            advice=advice, trials=(), score="CRPS", step="" if advice is None else advice.sentence
        )

    monkeypatch.setattr(mends, "try_recalibrations", tried)
    return asked


def test_new_rows_are_recalibrated_as_evaluation_sets_are() -> None:
    new, held = table(50, 1, y=False), table(400, 0)
    found = howsure.recalibrate(new, held, method="scale")
    (test,) = load({**new, "y": np.zeros(50)}).evalsets
    (calibration,) = load(held).evalsets
    truth = engine(test, calibration, method="scale").evalset.predictions[0]
    for name in ("loc", "scale"):
        column = {"loc": "recalibrated_mean", "scale": "recalibrated_sd"}[name]
        np.testing.assert_array_equal(found.predictions[column], truth.numbers()[name])
    assert found.table.column_names == [*new, "recalibrated_mean", "recalibrated_sd"]
    assert found.table["id"].to_pylist() == new["id"]
    assert found.methods == {"distributions": "scale"}
    factor = found.learnt.columns["value"][0]
    assert factor == pytest.approx(2.0, rel=0.1)
    assert "distributions: scale (factor" in str(found)
    assert "50 rows recalibrated." in str(found)
    assert found._repr_html_().startswith("<p>distributions: scale")


def test_every_form_of_a_table_gives_the_same(tmp_path: Path) -> None:
    new, held = table(40, 1, y=False), table(300, 0)
    paths = [tmp_path / name for name in ("new.csv", "held.parquet")]
    write_table(new, paths[0])
    write_table(held, paths[1])
    forms = [
        (new, held),
        (pa.table(new), pa.table(held)),
        (paths[0], str(paths[1])),
        (load({**new, "y": np.zeros(40)}), load(held)),
        (load({**new, "y": np.zeros(40)}).evalsets[0], load(held).evalsets[0]),
    ]
    first = howsure.recalibrate(*forms[0]).predictions
    for form in forms[1:]:
        again = howsure.recalibrate(*form).predictions
        assert again.keys() == first.keys()
        for name, values in first.items():
            np.testing.assert_allclose(again[name], values, rtol=1e-12)


def test_two_evaluation_sets_serve_as_before() -> None:
    (held,) = load(table(200, 0)).evalsets
    found = howsure.recalibrate(held, held, coverage=0.9, method="cqr")
    truth = engine(held, held, coverage=0.9, method="cqr")
    assert found.methods == truth.methods
    assert found.guarantees == truth.guarantees
    assert found.notes == truth.notes
    assert len(found.recalibrators) == 1
    np.testing.assert_equal(dict(found.learnt.columns), dict(truth.table().columns))
    lower = found.predictions["recalibrated_lower_90"]
    np.testing.assert_array_equal(lower, truth.evalset.predictions[0].interval(0.9)[0])
    assert "recalibrated_upper_90" in found.table.column_names


def test_the_output_is_the_input_with_columns_after_it(tmp_path: Path) -> None:
    """A text file keeps its very cells; in a Parquet file numbers are numbers and names text."""
    text = (
        "id,day,note,mean,sd\n"
        '007,2024-02-01,"a, ""b""",1.50,1\n'
        "010,2024-02-02,=1+1,2,2.0\n"
        "11,,NA,-3e0,1\n"
    )
    new = tmp_path / "new.csv"
    new.write_text(text, encoding="utf-8")
    found = howsure.recalibrate(new, table(100, 0), method="scale")
    found.save(tmp_path / "out.csv")
    lines = (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "id,day,note,mean,sd,recalibrated_mean,recalibrated_sd"
    for before, after in zip(text.splitlines()[1:], lines[1:], strict=True):
        assert after.startswith(f"{before},")
    found.save(tmp_path / "out.parquet")
    kept = parquet.read_table(tmp_path / "out.parquet")
    assert kept["id"].to_pylist() == ["007", "010", "11"]
    assert kept["day"].to_pylist() == ["2024-02-01", "2024-02-02", ""]
    assert kept["mean"].to_pylist() == [1.5, 2.0, -3.0]


def test_what_is_written_is_judged_as_the_recalibrated_prediction(tmp_path: Path) -> None:
    new, held = table(2000, 1), table(2000, 0)
    howsure.recalibrate(new, held, method="scale").save(tmp_path / "out.csv")
    judged = howsure.assess(tmp_path / "out.csv")
    assert judged.value("empirical_coverage") == pytest.approx(0.9, abs=0.03)
    (original,) = load(tmp_path / "out.csv", mean="mean", sd="sd").evalsets
    np.testing.assert_allclose(original.predictions[0].sd(), new["sd"])


def test_decimal_commas_stay(tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    new.write_text("id;mean;sd\n1;1,5;2,25\n2;0,5;1\n", encoding="utf-8")
    held = tmp_path / "held.csv"
    rows = [f"{y:.3f};0,5;1,25" for y in np.random.default_rng(0).normal(size=50)]
    held.write_text("y;mean;sd\n" + "\n".join(rows).replace(".", ",") + "\n", encoding="utf-8")
    found = howsure.recalibrate(new, held, decimal=",", method="scale")
    found.save(tmp_path / "out.csv")
    sd = found.predictions["recalibrated_sd"]
    assert found.table["recalibrated_sd"].to_pylist() == sd.tolist()
    (again,) = load(tmp_path / "out.csv", decimal=",", y="id").evalsets
    np.testing.assert_array_equal(again.predictions[0].sd(), sd)
    assert "\n1;1,5;2,25;" in (tmp_path / "out.csv").read_text(encoding="utf-8")


def test_rows_without_a_prediction_stay_without_one() -> None:
    new = {**table(4, 1, y=False), "sd": [1.0, None, 2.0, None]}
    with pytest.raises(InputError, match=r"2 in 'sd' \(first at row 1\)"):
        howsure.recalibrate(new, table(100, 0))
    found = howsure.recalibrate(new, table(100, 0), missing="drop")
    assert found.table["recalibrated_sd"].is_null().to_pylist() == [False, True, False, True]
    assert np.isnan(found.predictions["recalibrated_mean"]).tolist() == [False, True, False, True]
    assert any("2 of 4 rows get no" in note for note in found.notes)
    assert "2 rows recalibrated." in str(found)


def test_best_fits_what_the_trials_advise(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = advise(monkeypatch, Advice(method="crude", sentence="Crude cuts the CRPS by 9 %."))
    found = howsure.recalibrate(table(40, 1, y=False), table(300, 0), method="best")
    assert found.methods == {"distributions": "crude"}
    assert found.sentence == "Applied: Crude cuts the CRPS by 9 %."
    assert str(found).startswith("Applied: Crude cuts the CRPS by 9 %.\n")
    assert [held.n for held in asked] == [300]


@pytest.mark.parametrize("advice", [None, Advice(method="")])
def test_best_leaves_predictions_as_they_are_where_nothing_helps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, advice: Advice | None
) -> None:
    advise(monkeypatch, advice)
    new = table(40, 1, y=False)
    found = howsure.recalibrate(new, table(300, 0), method="best")
    np.testing.assert_array_equal(found.predictions["recalibrated_sd"], new["sd"])
    assert "No recalibration gave a significant improvement" in str(found)
    assert (found.methods, found.recalibrators) == ({}, ())
    found.fitted.save(tmp_path / "mend.json")
    again = howsure.recalibrate(new, tmp_path / "mend.json")
    np.testing.assert_array_equal(again.predictions["recalibrated_sd"], new["sd"])


def test_best_mends_every_kind_that_the_rows_hold() -> None:
    both = table(400, 1)
    both["sd"] = both["sd"] * 0.5
    reach = 1.6449 * both["sd"]
    both |= {"lower_90": both["mean"] - reach, "upper_90": both["mean"] + reach}
    found = howsure.recalibrate(both, both, method="best")
    assert found.methods == {"intervals": "scale", "distributions": "scale"}
    assert found.sentence.startswith("Applied: widen every prediction by a factor of")
    made = found.predictions
    before = np.mean((both["lower_90"] <= both["y"]) & (both["y"] <= both["upper_90"]))
    lower, upper = made["recalibrated_lower_90"], made["recalibrated_upper_90"]
    after = np.mean((lower <= both["y"]) & (both["y"] <= upper))
    assert before < 0.8
    assert after == pytest.approx(0.9, abs=0.01)


def test_groups_and_times_reach_the_method(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said by `by` and `since` becomes groups of both tables, and a time."""
    seen: list[tuple[EvalSet, EvalSet, dict[str, Any]]] = []

    def fitted(like: EvalSet, calibration: EvalSet, method: str, **options: Any) -> Any:
        seen.append((like, calibration, {"method": method, **options}))
        return fit_methods(like, calibration, "scale")

    monkeypatch.setattr(served, "fit_methods", fitted)
    new, held = table(40, 1, y=False), table(300, 0)
    found = howsure.recalibrate(new, held, by="region")
    test, calibration, options = seen.pop()
    assert (options["method"], options["by"]) == ("group", ("region",))
    assert list(test.groups) == list(calibration.groups) == ["region"]
    assert found.fitted.by == ("region",)
    advise(monkeypatch, Advice(method="group", by=("region",), sentence="By region."))
    howsure.recalibrate(new, held, method="best", by=["region"])
    assert seen.pop()[2]["by"] == ("region",)
    found = howsure.recalibrate(new, held, method="inputs", features="age,region")
    test, calibration, options = seen.pop()
    assert list(test.features) == list(calibration.features) == ["age", "region"]
    assert found.fitted.features == {"age": "number", "region": "label"}
    vectors = {name: np.arange(len(new["id"])) * 1.0 for name in ("emb_0", "emb_1")}
    wide = {name: np.arange(300) * 1.0 for name in vectors}
    found = howsure.recalibrate({**new, **vectors}, {**held, **wide}, method="inputs")
    test, calibration, options = seen.pop()
    np.testing.assert_array_equal(test.embedding, np.column_stack(list(vectors.values())))
    assert found.fitted.embedding == ("emb_0", "emb_1")
    with pytest.raises(InputError, match="must have the column 'emb_0'"):
        howsure.recalibrate(new, {**held, **wide}, method="inputs")
    short = {name: values for name, values in new.items() if name != "age"}
    with pytest.raises(InputError, match="must have the column 'age'"):
        howsure.recalibrate(short, held, method="inputs", features="age,region")
    days = np.datetime64("2024-01-01") + np.arange(300)
    howsure.recalibrate(new, {**held, "time": days}, since="2024-03-01")
    assert seen.pop()[2]["since"] == "2024-03-01"
    asked = advise(monkeypatch, Advice(method="recent", sentence="Recent."))
    howsure.recalibrate(new, {**held, "time": days}, since="2024-03-01", method="best")
    assert seen.pop()[2]["since"] == "2024-03-01"
    assert asked[0].n == 300 - 60  # January and February of a leap year
    with pytest.raises(InputError, match="since must not be after the last time"):
        howsure.recalibrate(new, {**held, "time": days}, since="2034", method="best")
    howsure.recalibrate(new, {**held, "time": np.arange(300)}, since="30")
    assert seen.pop()[2]["since"] == "30"
    monkeypatch.setattr(served, "fit_methods", fit_methods)
    with pytest.raises(InputError, match="since must be"):
        howsure.recalibrate(new, {**held, "time": days}, since="soon")
    with pytest.raises(InputError, match="since needs a time column"):
        howsure.recalibrate(new, held, since="2024")
    with pytest.raises(InputError, match=r"by: no column of .* is called 'regoin'"):
        howsure.recalibrate(new, held, by="regoin")
    with pytest.raises(InputError, match="must have the column 'region'"):
        howsure.recalibrate({k: v for k, v in new.items() if k != "region"}, held, by="region")


def test_a_kept_recalibration_does_tomorrow_what_it_did_today(tmp_path: Path) -> None:
    new, held = table(40, 1, y=False), table(300, 0)
    today = howsure.recalibrate(new, held, method="isotonic")
    today.fitted.save(tmp_path / "mend.json")
    for kept in (tmp_path / "mend.json", str(tmp_path / "mend.json"), today.fitted):
        tomorrow = howsure.recalibrate(new, kept)
        assert tomorrow.predictions.keys() == today.predictions.keys()
        for name, values in today.predictions.items():
            np.testing.assert_array_equal(tomorrow.predictions[name], values)
        assert tomorrow.guarantees == today.guarantees
    for options in ({"method": "scale"}, {"by": "region"}, {"coverage": 0.8}, {"rank": "pac"}):
        with pytest.raises(
            InputError, match="a saved recalibration allows no further options, got"
        ):
            howsure.recalibrate(new, tmp_path / "mend.json", **options)
    assert isinstance(load_recalibration(tmp_path / "mend.json"), FittedRecalibration)


def test_other_units_are_noticed() -> None:
    new, held = table(40, 1, y=False), table(300, 0)
    assert not any("units" in note for note in howsure.recalibrate(new, held).notes)
    centimetres = {**new, "mean": 100 * new["mean"], "sd": 100 * new["sd"]}
    assert any("check the units" in note for note in howsure.recalibrate(centimetres, held).notes)


def test_bad_input_is_refused_in_words() -> None:
    new, held = table(40, 1, y=False), table(300, 0)
    bounds = {"lower_90": new["mean"] - 1, "upper_90": new["mean"] + 1}
    labels = EvalSet.checked([0.0, 1.0], LabelSets(np.eye(2, dtype=bool), coverage=0.9))
    (given,) = load(held).evalsets
    cases: list[tuple[Any, Any, dict[str, Any], str]] = [
        (new, new, {}, "calibration: .* No outcome column"),
        (new, {**held, "y": [np.nan] * 300}, {}, "calibration: .* cells are missing"),
        (bounds, held, {}, "calibration must have the same types of prediction"),
        (new, held, {"method": "nonsense"}, "method must be one of best"),
        (new, held, {"method": "scale", "by": "region"}, "by needs the method group or best"),
        (new, held, {"by": 3, "method": "best"}, "by must be names of columns"),
        (new, held, {"means": "mean"}, "the keyword of a column"),
        (given, given, {"mean": "mean"}, "columns apply only to tables"),
        (given, given, {"by": "north", "method": "best"}, "by must be"),
        (labels, labels, {}, "label sets need class probabilities to be recalibrated"),
        (
            labels,
            labels,
            {"method": "best"},
            "label sets need class probabilities to be recalibrated",
        ),
        ([new, new], held, {}, "give one table of new rows"),
        (new, [held, held], {}, "calibration must have exactly one model"),
        (
            new,
            {**held, "recalibrated_mean": held["mean"], "recalibrated_sd": held["sd"]},
            {},
            "calibration contains predictions that are already recalibrated",
        ),
    ]
    for rows, calibration, options, words in cases:
        with pytest.raises(InputError, match=words):
            howsure.recalibrate(rows, calibration, **options)


def test_y_of_new_rows_is_never_read() -> None:
    new, held = table(40, 1), table(300, 0)
    found = howsure.recalibrate(new, held)
    other = howsure.recalibrate({**new, "y": -5 * new["y"]}, held)
    for name, values in found.predictions.items():
        np.testing.assert_array_equal(values, other.predictions[name])
    assert found.rows.labelled


def test_a_scipy_law_and_a_normal_one_are_other_kinds() -> None:
    (held,) = load(table(100, 0)).evalsets
    n = held.n
    law = Distribution("t", {"df": np.full(n, 5.0), "loc": np.zeros(n), "scale": np.ones(n)})
    other = EvalSet.checked(held.y, law)
    with pytest.raises(InputError, match="distributions of the family"):
        howsure.recalibrate(other, held)
