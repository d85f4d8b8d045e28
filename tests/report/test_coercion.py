"""Every way through the door of `assess` gives one answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from scipy import stats

import howsure
from extras import needs
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.predictions import Distribution, Intervals, Quantiles, Samples
from howsure.report.assessment import Assessment
from howsure.testing import assert_holds
from howsure.topics.congruence.view import CongruenceOptions

N = 150


def table() -> dict[str, Any]:
    rng = child(0, "door")
    x = rng.uniform(-1, 1, N)
    notes = [("dark " if value > 0 else "bright ") * 2 for value in x]
    y = x + 0.3 * rng.normal(size=N)
    side = np.where(x > 0, "a", "b")
    return {"y": y, "mean": x, "sd": np.full(N, 0.3), "note": notes, "x": x, "side": side}


def lengths(texts: list[str]) -> list[list[float]]:
    return [[float(len(text)), float(text.count("d"))] for text in texts]


def records(result: Assessment) -> list[Any]:
    return [(r.metric, r.group, r.coverage, r.value, r.null) for r in result.records]


@pytest.mark.rate
@pytest.mark.few_draws
def test_tables_and_arrays_agree(tmp_path: Path) -> None:
    pd, pl = needs("pandas"), needs("polars")
    held = table()
    pd.DataFrame(held).to_parquet(tmp_path / "model.parquet")
    chosen: dict[str, Any] = {"groups": "side", "encode": {"note": lengths}, "coverage": 0.8}
    first = howsure.assess(howsure.Table(str(tmp_path / "model.parquet"), **chosen))
    law = Distribution.normal(held["mean"], held["sd"])
    arrays = howsure.assess(
        howsure.Table(
            held["y"],
            law,
            features={"note": held["note"], "x": held["x"]},
            groups={"side": held["side"]},
            encode={"note": lengths},
            coverage=0.8,
        )
    )
    loaded = howsure.load(held, groups="side", encode={"note": lengths})
    for other in (
        *(
            howsure.assess(howsure.Table(source, **chosen))
            for source in (pd.DataFrame(held), pl.DataFrame(held), tmp_path / "model.parquet")
        ),
        howsure.assess(loaded, coverage=0.8),
        arrays,
    ):
        np.testing.assert_equal(records(other), records(first))
    assert first.facts["Embedding"] == "note by lengths"
    assert first.facts["Source"] == "model.parquet"
    rows = next(t for t in first.tables if t.name == "cce_rows")
    assert set(rows.columns["note"]) <= {"dark dark", "bright bright"}


def test_several_tables_are_several_models(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.csv" for name in ("one", "two")]
    for path in paths:
        csv.write_csv(pa.table(table()), path)
    result = howsure.assess([str(path) for path in paths], features="x")
    assert {record.model for record in result.records} == {"one", "two"}
    notes = [curve.notes for curve in result.curves if curve.name == "rejection"]
    assert [note.split(":")[0] for note in notes] == ["one", "two"]


def test_an_embedding_as_an_array_or_as_columns() -> None:
    held = table()
    points = np.stack([held["x"], held["x"] ** 2], axis=1)
    law = Distribution.normal(held["mean"], held["sd"])
    array = howsure.assess(howsure.Table(held["y"], law, embedding=points))
    listed = howsure.assess(howsure.Table({**held, "v": points}, embedding="v", features=""))
    assert array.value("mean_cce") == listed.value("mean_cce")
    with pytest.raises(InputError, match="embedding must have"):
        howsure.assess(howsure.Table(held["y"], law, embedding=points[1:]))


def test_images_as_paths() -> None:
    needs("PIL")
    held = table()
    law = Distribution.normal(held["mean"], held["sd"])
    paths = [f"/none/{k}.png" for k in range(N)]
    listed = howsure.assess(howsure.Table(held["y"], law, features={"x": held["x"]}, image=paths))
    named = howsure.assess(
        howsure.Table(held["y"], law, features={"x": held["x"], "p": paths}, image="p")
    )
    for result in (listed, named):
        images = next(t for t in result.tables if t.name == "cce_images")
        assert set(images.columns["problem"]) == {"file not found"}
        assert result.facts["Missing images"].startswith("150 of 150")


@pytest.mark.parametrize(
    ("choices", "match"),
    [
        (
            {"encode": {"nope": lengths}, "features": {"note": ["a"] * N}},
            "encode must name a column of f",
        ),
        ({"encode": {"note": lengths}}, "features has nothing"),
        ({"image": "p"}, "image must name a column of features"),
        ({"image": ["a.png"] * 3}, "image must have 150 rows"),
        ({"encode": {"n": lengths}, "features": {"n": ["a"] * 3}}, "n must have 150 rows"),
        (
            {"encode": {"n": lengths}, "features": {"n": ["a"] * N}, "embedding": np.zeros((N, 2))},
            "both give an embedding",
        ),
    ],
)
def test_bad_arrays_are_named(choices: dict[str, Any], match: str) -> None:
    held = table()
    law = Distribution.normal(held["mean"], held["sd"])
    with pytest.raises(InputError, match=match):
        howsure.assess(howsure.Table(held["y"], law, **choices))


def test_columns_are_named_where_the_table_is_loaded() -> None:
    with pytest.raises(InputError, match="got groups beside one"):
        howsure.assess(howsure.load(table()), groups="side")


def test_progress_tells_every_stage() -> None:
    stages: list[str] = []
    held = table()
    tell = lambda stage, done, total: stages.append(stage)  # noqa: E731
    result = howsure.assess(held, features="x", progress=tell)
    words = " ".join(stages)
    for word in ("measures", "reference", "bootstrap", "map", "trial"):
        assert word in words
    stages.clear()
    assert result.curves
    words = " ".join(stages)
    for word in ("all measures", "curves"):
        assert word in words
    stages.clear()
    assert result.records
    assert not stages  # it is computed once


def test_choices_of_congruence_reach_the_record() -> None:
    held = table()
    options = CongruenceOptions(bandwidth=1.0, regularization=0.2, draws=1, layout="t-sne")
    result = howsure.assess(
        {**held, "emb_1": held["x"]}, options=howsure.Options(congruence=options)
    )
    told = result.record("mean_cce").options
    assert told["mode"] == "samples"
    assert told["draws"] == 1.0
    assert told["regularization"] == 0.2
    assert "1" in str(told["kernel"])


def bare() -> tuple[Any, ...]:
    held = table()
    y, mean, sd = held["y"], held["mean"], held["sd"]
    draws = mean[:, None] + sd[:, None] * child(0, "door", "draws").normal(size=(N, 19))
    return y, mean, sd, draws


def shown(result: Assessment) -> tuple[Any, ...]:
    """What a reader sees, apart from how the prediction was read."""
    facts = {name: fact for name, fact in result.facts.items() if name != "Reading"}
    return result.verdict, records(result), facts


@pytest.mark.slow
@pytest.mark.parametrize("form", range(7))
def test_a_bare_array_is_judged_as_what_its_constructor_makes(form: int) -> None:
    y, mean, sd, draws = bare()
    low, high = mean - 1.6 * sd, mean + 1.6 * sd
    ends = np.stack([np.column_stack([mean - sd, low]), np.column_stack([mean + sd, high])], 1)
    levels, quantiles = [0.1, 0.5, 0.9], np.column_stack([low, mean, high])
    value, said, explicit, point = [
        ((low, high), {"coverage": 0.9}, Intervals(low, high, 0.9), None),
        (
            (mean, ends),
            {"coverage": [0.68, 0.9]},
            Intervals(ends[:, 0], ends[:, 1], [0.68, 0.9]),
            mean,
        ),
        ((mean, sd), {}, Distribution.normal(mean, sd), None),
        (quantiles.T, {"levels": levels}, Quantiles(levels, quantiles), None),
        ({0.9: high, 0.1: low, 0.5: mean}, {}, Quantiles(levels, quantiles), None),
        (draws[:, None, :], {}, Samples(draws), None),
        ({"lower_90": low, "upper_90": high}, {}, Intervals(low, high, 0.9), None),
    ][form]
    again = {} if "coverage" not in said else {"coverage": said["coverage"]}
    found = howsure.assess(y, value, **said, options=howsure.Options(trials=False))
    expected = howsure.assess(
        howsure.Table(y, explicit, point=point, **again), options=howsure.Options(trials=False)
    )
    np.testing.assert_equal(shown(found), shown(expected))
    assert "Reading" not in expected.facts


def test_a_mapping_of_bare_arrays_compares_models() -> None:
    y, mean, sd, draws = bare()
    models = {"normal": {"mean": mean, "sd": sd}, "draws": draws}
    found = howsure.assess(y, models, options=howsure.Options(trials=False))
    assert {record.model for record in found.records} == {"normal", "draws"}
    assert (
        "prediction['draws'] of shape (150, 19) read as 19 samples per row"
        in found.facts["Reading"]
    )
    with pytest.raises(
        InputError, match=r"prediction\['b'\] of shape \(3,\) cannot be interpreted"
    ):
        howsure.assess(y, {"a": mean, "b": mean[:3]})


def test_the_point_that_is_given_apart_wins() -> None:
    y, mean, sd, _ = bare()
    ends = np.column_stack([mean - sd, mean + sd])
    own = howsure.assess(y, (mean, ends), coverage=0.68, options=howsure.Options(trials=False))
    other = howsure.assess(
        howsure.Table(y, (mean + 1, ends), coverage=0.68, point=mean),
        options=howsure.Options(trials=False),
    )
    assert other.value("mae") == own.value("mae")


def test_coverages_come_as_any_array() -> None:
    y, mean, sd, _ = bare()
    pair = (mean - sd, mean + sd)
    first = howsure.assess(y, pair, coverage=0.68, options=howsure.Options(trials=False))
    for coverage in (np.float32(0.68), np.array(0.68), np.array([0.68]), (0.68,)):
        other = howsure.assess(y, pair, coverage=coverage, options=howsure.Options(trials=False))
        assert other.value("empirical_coverage") == first.value("empirical_coverage")
    with pytest.raises(InputError, match=r"did you mean 0\.68\?"):
        howsure.assess(y, pair, coverage=68)
    with pytest.raises(InputError, match="levels applies only to arrays"):
        howsure.assess(table(), levels=[0.1, 0.9])


def test_rows_in_another_order_than_those_of_y_are_refused() -> None:
    pd = needs("pandas")
    y, mean, sd, _ = bare()
    names = [f"row {k}" for k in range(N)]
    truth, moved = pd.Series(y, names), pd.Series(mean, names).iloc[::-1]
    frame = pd.DataFrame({"mean": mean, "sd": sd}, names)
    for value, name in (
        (moved, "prediction"),
        (frame.iloc[::-1], "prediction"),
        ({"a": moved}, "prediction['a']"),
        ((moved, moved), "prediction[0]"),
    ):
        with pytest.raises(InputError) as error:
            howsure.assess(truth, value, coverage=0.9)
        assert str(error.value).endswith(f"in a different order: give {name}.loc[y.index]")
    with pytest.raises(
        InputError, match=r"features must have its rows .* give features.loc\[y.index\]"
    ):
        howsure.assess(truth, frame, features=frame.iloc[::-1])
    with pytest.raises(InputError, match=r"give np.asarray\(point\) if rows match by"):
        howsure.assess(
            howsure.Table(
                pd.Series(y, [0, 1] * (N // 2)),
                point=pd.Series(mean, [0] * (N // 2) + [1] * (N // 2)),
            )
        )
    straight = howsure.assess(truth, moved.loc[truth.index], options=howsure.Options(trials=False))
    reset = howsure.assess(
        truth, moved.loc[truth.index].reset_index(drop=True), options=howsure.Options(trials=False)
    )
    assert reset.value("mae") == straight.value("mae")


def test_a_frame_and_the_name_of_its_y() -> None:
    rng = child(0, "named y")
    mean = rng.normal(size=80)
    truth = mean + rng.normal(size=80)
    table = {"target": truth, "mean": mean, "sd": np.ones(80)}
    found = howsure.assess(howsure.Table(table, y="target"), options=howsure.Options(trials=False))
    same = howsure.assess(
        howsure.Table({**table, "y": truth}, y="y"), options=howsure.Options(trials=False)
    )
    np.testing.assert_equal(records(found), records(same))
    howsure.testing.assert_holds(table, y="target", limits=[{"measure": "crps", "max": 2.0}])
    with pytest.raises(InputError, match="y: no column of the table is called 'nope'"):
        howsure.assess(howsure.Table(table, y="nope"))
    with pytest.raises(InputError, match=r"y names the outcome column of a table.*got 'target' b"):
        howsure.assess(howsure.Table(truth, table, y="target"))


def test_rows_where_something_is_missing_are_left_out_of_arrays_and_tables_alike() -> None:
    rng = child(0, "missing")
    mean, sd = 5 + rng.normal(size=60), np.ones(60)
    truth = mean + rng.normal(size=60)
    group = np.array(["a", "b", None] * 20, dtype=object)
    holed = np.where(np.arange(60) == 4, np.nan, truth)
    short = np.where(np.arange(60) == 10, np.nan, mean)
    kept = (np.arange(60) % 3 < 2) & (np.arange(60) != 4) & (np.arange(60) != 10)
    expected = howsure.assess(
        truth[kept],
        (mean[kept], sd[kept]),
        groups={"g": group[kept]},
        options=howsure.Options(trials=False),
    )
    forms: list[Any] = [
        (short, sd),
        [short.tolist(), sd.tolist()],
        {"mean": short, "sd": sd},
    ]
    for form in forms:
        found = howsure.assess(
            howsure.Table(holed, form, groups={"g": group}, missing="drop"),
            options=howsure.Options(trials=False),
        )
        np.testing.assert_equal(records(found), records(expected))
        assert found.facts["Dropped rows"] == "22"
        assert found.facts["Reading"].startswith(
            "22 rows are omitted because a value is missing ('y' 1, 'prediction' 1, 'groups' 20)"
        )
    table = {"y": holed, "mean": short, "sd": sd, "g": group}
    found = howsure.assess(
        howsure.Table(table, groups="g", missing="drop"), options=howsure.Options(trials=False)
    )
    np.testing.assert_equal(records(found), records(expected))


@pytest.mark.parametrize("turned", [False, True])
def test_samples_and_predictions_lose_the_rows_that_y_misses(turned: bool) -> None:
    rng = child(0, "samples that miss")
    draws, truth = rng.normal(size=(30, 8)), rng.normal(size=30)
    truth[[2, 5]] = np.nan
    kept = np.isfinite(truth)
    expected = records(
        howsure.assess(truth[kept], draws[kept], options=howsure.Options(trials=False))
    )
    for form in (draws.T if turned else draws, howsure.Samples(draws)):
        found = howsure.assess(
            howsure.Table(truth, form, missing="drop"), options=howsure.Options(trials=False)
        )
        np.testing.assert_equal(records(found), expected)
    with pytest.raises(InputError, match=r"missing='drop' drops rows of arrays.*frozen"):
        howsure.assess(howsure.Table(truth, stats.norm(draws[:, 0], 1.0), missing="drop"))
    with pytest.raises(InputError, match="missing must be one of error, drop, got 'keep'"):
        howsure.assess(howsure.Table(truth, draws, missing="keep"))
    with pytest.raises(InputError, match="y must contain finite numbers"):
        howsure.assess(howsure.Table(truth, draws, missing="error"))


ENDS = [
    ("y_pred_low", "pred_high"),
    ("y_pis_low", "y_pis_high"),
    ("pred_min", "pred_max"),
    ("PI low", "PI high"),
]


@pytest.mark.parametrize("beside", [{}, {"y_pred": 0.0}])
@pytest.mark.parametrize("names", ENDS)
def test_a_coverage_without_intervals_is_refused_with_the_columns_that_may_be_their_ends(
    names: tuple[str, str], beside: dict[str, float]
) -> None:
    pd, y = needs("pandas"), np.arange(40.0)
    lower, upper = names
    columns = {name: y + off for name, off in (*beside.items(), (lower, -1.0), (upper, 1.0))}
    given = f"prediction['{lower}'], prediction['{upper}']"
    for value in (columns, *([pd.DataFrame(columns)] if beside else [])):
        with pytest.raises(InputError, match=re.escape(given)):
            howsure.assess(y, value, coverage=0.9, options=howsure.Options(trials=False))
    made = howsure.assess(
        y, (columns[lower], columns[upper]), coverage=0.9, options=howsure.Options(trials=False)
    )
    table = {"y": y, **columns, "temp_min": y, "temp_max": y}
    with pytest.raises(InputError, match=f"lower='{lower}', upper='{upper}'"):
        howsure.assess(table, coverage=0.9, options=howsure.Options(trials=False))
    loaded = howsure.load(table, lower=lower, upper=upper, coverage=0.9)
    answer = howsure.assess(loaded, coverage=0.9, options=howsure.Options(trials=False)).answer
    assert answer == made.answer
    if beside:
        with pytest.raises(InputError, match=f"lower='{lower}', upper='{upper}'"):
            assert_holds(table, limits=[{"measure": "mae", "max": 9.0}], coverage=0.9)


def test_a_coverage_beside_point_forecasts_alone_is_refused() -> None:
    y = np.arange(40.0)
    with pytest.raises(InputError, match=r"coverage 0.9 was given, but no intervals .* omit cov"):
        howsure.assess(y, y + 1.0, coverage=0.9)
    with pytest.raises(InputError, match=r"upper=COLUMN, .* omit coverage"):
        howsure.assess({"y": y, "pred": y}, coverage=0.9)
