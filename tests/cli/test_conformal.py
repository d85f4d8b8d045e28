"""`howsure conformal`: sets and intervals beside every column of a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from typer.testing import CliRunner

import howsure
from howsure.cli.main import app
from howsure.core.errors import HowsureError, InputError
from howsure.inputs import open_table, write_table
from howsure.report.conformal import CONFORMAL_METHODS, LABEL_METHODS

LABELS = np.array(["cat", "dog", "elk", "fox"])
INTERVAL_METHODS = [name for name in CONFORMAL_METHODS if name not in LABEL_METHODS]


def table(seed: int, n: int = 600) -> dict[str, Any]:
    """Rows of a classifier whose names of columns say what they are."""
    rng = np.random.default_rng(seed)
    stab = rng.uniform(size=n)
    logits = rng.normal(size=(n, 4)) * (1 + 3 * stab)[:, None]
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) > rng.random(n)[:, None]).argmax(axis=1)
    shown = {f"p_{label}": p[:, place] for place, label in enumerate(LABELS)}
    return {"id": [f"{i:03d}" for i in range(n)], "label": LABELS[y], **shown, "stab": stab}


def regressed(seed: int, n: int = 600) -> dict[str, Any]:
    """Rows of a regressor with its sd."""
    rng = np.random.default_rng(seed)
    stab, mean = rng.uniform(size=n), rng.normal(size=n)
    y = mean + np.exp(1 - stab) * rng.normal(size=n)
    rows = [f"{i:03d}" for i in range(n)]
    return {"id": rows, "y": y, "mean": mean, "sd": np.full(n, 1.5), "stab": stab}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for place, name in enumerate(("held", "new")):
        write_table(table(place), tmp_path / f"{name}.csv")
        write_table(regressed(place), tmp_path / f"{name}_y.csv")
    return tmp_path


def invoked(line: str, status: int = 0) -> str:
    arguments = ["conformal", *line.split()]
    shown = CliRunner().invoke(app, arguments, env={"COLUMNS": "300"})
    if isinstance(shown.exception, HowsureError):
        raise shown.exception
    assert shown.exit_code == status, shown.output
    return shown.output


@pytest.mark.slow
@pytest.mark.parametrize("method", CONFORMAL_METHODS)
@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.arrow"])
def test_what_is_written_is_read_back_and_judged(folder: Path, method: str, name: str) -> None:
    sets = method in LABEL_METHODS
    file = "new.csv" if sets else "new_y.csv"
    held = file.replace("new", "held")
    more = " --y label" if sets else ""
    shown = invoked(
        f"{file} --calibration {held} --method {method} --ease stab --coverage 0.8{more} -o {name}"
    )
    assert "Empirical coverage on new rows: " in shown
    assert ("Mean set size: " if sets else "Mean width: ") in shown
    made, given = open_table(folder / name), open_table(folder / file)
    added = ("set_80",) if sets else ("lower_80", "upper_80")
    assert made.names == (*given.names, *added)
    if name == "out.csv":  # every cell as it was
        for before, after in zip(
            (folder / file).read_text().splitlines()[1:],
            (folder / name).read_text().splitlines()[1:],
            strict=True,
        ):
            assert after.replace('"', "").startswith(before.replace('"', ""))
    again = howsure.load(folder / name, **({"y": "label"} if sets else {})).evalsets[0]
    prediction = again.predictions[0]
    covered = (
        prediction.contains(again.y)
        if sets
        else (prediction.interval(0.8)[0] <= again.y) & (again.y <= prediction.interval(0.8)[1])
    )
    assert f"Empirical coverage on new rows: {100 * covered.mean():.1f} %" in shown
    most = 0.95 if method.endswith("pac") else 0.86  # those keep it for nearly every table
    assert 0.74 < covered.mean() < most


def test_without_y_it_tells_what_was_learnt(folder: Path) -> None:
    new = table(1)
    del new["label"]
    write_table(new, folder / "bare.csv")
    shown = invoked("bare.csv --calibration held.csv --y label --method lac -o out.csv")
    assert "class probabilities: lac (threshold 0." in shown
    assert "the 600 calibration rows" in shown
    assert "with probability at least 0.90017" in shown  # ⌈601 · .9⌉/601
    assert "Covered" not in shown
    assert csv.read_csv(folder / "out.csv").column_names == [*new, "set_90"]


def test_what_is_kept_does_the_same_again(folder: Path) -> None:
    line = "new.csv --calibration held.csv --y label --ease stab --method o_saps -o out.csv"
    invoked(f"{line} --keep kept.json")
    invoked("new.csv --calibration kept.json --y label --ease stab -o again.csv")
    assert (folder / "out.csv").read_bytes() == (folder / "again.csv").read_bytes()


def test_tables_with_intervals_keep_their_own(folder: Path) -> None:
    for name in ("held", "new"):
        rows = regressed(len(name))
        ends = {"lower": rows["mean"] - 1, "upper": rows["mean"] + 1}
        write_table({"y": rows["y"], **ends}, folder / f"{name}_ends.csv")
    invoked("new_ends.csv --calibration held_ends.csv --method cqr -o out.csv")
    made = csv.read_csv(folder / "out.csv")
    assert made.column_names[-2:] == ["recalibrated_lower_90", "recalibrated_upper_90"]
    offset = made["lower"].to_numpy() - made["recalibrated_lower_90"].to_numpy()
    np.testing.assert_allclose(offset, offset[0])


def test_bad_tables_are_refused_in_words_and_nothing_is_left(folder: Path) -> None:
    rows = {key: np.asarray(value) for key, value in table(0).items()}
    odd = {**rows, "p_cat": rows["p_cat"] + 0.3}
    write_table(odd, folder / "sums.csv")
    write_table({**rows, "label": np.where(rows["stab"] > 0.5, "emu", "cat")}, folder / "emu.csv")
    write_table({"p_cow" if k == "p_cat" else k: v for k, v in rows.items()}, folder / "cow.csv")
    write_table({**rows, "stab": np.ones(600)}, folder / "flat.csv")
    write_table({key: value[:6] for key, value in rows.items()}, folder / "few.csv")
    write_table({**rows, "set_80": rows["label"]}, folder / "sets.csv")
    gone = {key: value for key, value in rows.items() if key != "stab"}
    write_table(gone, folder / "gone.csv")
    cases = {
        "new.csv --calibration sums.csv --method lac --softmax p_*": "sum to 1",
        "new.csv --calibration emu.csv --method lac": "emu",
        "cow.csv --calibration held.csv --method lac": r"calibration rows \(cat, dog, elk",
        "new.csv --calibration few.csv --method lac": "coverage 0.9 needs 9; got 6",
        "new.csv --calibration held.csv --method o_lac": "--ease COLUMN",
        "new.csv --calibration flat.csv --method o_lac --ease stab": "must differ between",
        "gone.csv --calibration held.csv --method o_lac --ease stab": "'stab'",
        "sets.csv --calibration held.csv --method lac": "already have label sets",
        "new.csv --calibration held.csv --method cp": "is for .*, got class probabilities",
        "new.csv --calibration held.csv --method lax": "lac",
        "new.csv --calibration held.csv --method lac --coverage 0.8 --coverage 0.9": "one number",
    }
    for line, words in cases.items():
        with pytest.raises(InputError, match=words):
            invoked(f"{line} --y label -o out.csv")
        assert not (folder / "out.csv").exists(), line
    for line in ("-o new.csv", "-o held.csv", "-o out.csv --keep held.csv", "-o out.doc"):
        with pytest.raises(InputError):
            invoked(f"new.csv --calibration held.csv --y label --method lac {line}")
    with pytest.raises(InputError, match="is for distributions, samples, got point"):
        invoked(
            "new_y.csv --calibration held_y.csv --method o_cpa --ease stab --point mean --sd= "
            "-o out.csv"
        )


def test_infinite_answers_are_given_on_request(folder: Path) -> None:
    write_table({k: v[:6] for k, v in regressed(0).items()}, folder / "few.csv")
    line = "new_y.csv --calibration few.csv --method cp -o out.csv"
    with pytest.raises(InputError, match=r"coverage 0\.9 needs 9; got 6"):
        invoked(line)
    assert "9 calibration rows are needed, got 6" in invoked(f"{line} --too-few infinite")


@pytest.mark.slow
def test_a_real_classifier_gets_sets_that_cover(
    data_dir: Callable[[str], Path], tmp_path: Path
) -> None:
    path = data_dir("preds_cifar_softmax") / "lenet-5-cifar-10.npz"
    with np.load(path) as data:
        p, y = data["predictions"].astype(np.float64), data["ground_truth"].ravel()
    names = {f"p_{place}": p[:, place] for place in range(p.shape[1])}
    whole = pa.table({"y": y, **names})
    tables = {
        "held": whole.take(np.arange(0, 10_000, 2)),
        "new": whole.take(np.arange(1, 10_000, 2)),
    }
    sizes = {}
    for method in ("lac", "aps", "raps", "saps"):
        found = howsure.conformal(tables["new"], tables["held"], method=method)
        sets = found.evalset.predictions[0]
        assert isinstance(sets, howsure.LabelSets)
        assert sets.contains(found.evalset.y).mean() == pytest.approx(0.9, abs=0.015), method
        sizes[method] = sets.sizes.mean()
    assert sizes["lac"] == min(sizes.values())  # the smallest on average
