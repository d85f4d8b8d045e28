"""Rows recalibrated part by part are those recalibrated at once."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import compute as pc
from pyarrow import parquet

import howsure
from extras import needs
from howsure.core.errors import InputError
from howsure.core.progress import subscribe
from howsure.core.text import CountedNote
from howsure.inputs import load, open_table, write_table
from howsure.inputs import write as writing
from howsure.recalibration import load_recalibration, methods_of
from howsure.report import apply as module
from howsure.report.apply import Account
from howsure.report.recalibrate import HeldOut, fitted_on
from howsure.streaming import Large

N = 83
KINDS: dict[str, tuple[str, ...]] = {
    "intervals": ("lower_90", "upper_90"),
    "point": ("point",),
    "distributions": ("mean", "sd"),
    "quantiles": ("q0.05", "q0.5", "q0.95"),
    "samples": tuple(f"s_{place}" for place in range(21)),
    "label_sets": ("p_cat", "p_cow", "p_dog"),
}
BESIDE = ("id", "site", "age", "ease", "day")
METHODS_OF = [(kind, method) for kind in KINDS for method in methods_of(kind.replace("_", " "))]


def rows(n: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    mean, sd = rng.normal(size=n), np.exp(rng.uniform(-0.5, 0.5, n))
    shares = rng.dirichlet(np.ones(3), n)
    shares[1::9] = shares[0]  # rows of equal content
    y = mean + 2 * sd * rng.normal(size=n)
    quantiles = {f"q{level}": mean + at * sd for level, at in ((0.05, -1), (0.5, 0), (0.95, 1))}
    samples = (mean + sd * rng.normal(size=(21, n))).tolist()
    return {
        "id": [f"{row:03d}" for row in range(n)],
        "site": rng.choice(["1", "2", "south"], n),
        "age": rng.uniform(size=n),
        "ease": rng.uniform(size=n),
        "day": np.arange(n),
        "y": y,
        "class": rng.choice(["cat", "cow", "dog"], n),
        "lower_90": mean - sd,
        "upper_90": mean + sd,
        "point": mean,
        "mean": mean,
        "sd": sd,
        **quantiles,
        **dict(zip(KINDS["samples"], samples, strict=True)),
        **dict(zip(KINDS["label_sets"], shares.T, strict=True)),
    }


def held_and_new(kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    found = []
    for n, seed in ((400, 0), (N, 1)):
        every = rows(n, seed)
        every["y"] = every["class"] if kind == "label_sets" else every["y"]
        found.append({name: every[name] for name in (*BESIDE, "y", *KINDS[kind])})
    del found[1]["y"]
    return found[0], found[1]


def options(kind: str, method: str) -> dict[str, Any]:
    asked: dict[str, Any] = {"method": method, "groups": "site", "features": "age,site"}
    asked |= {"time": "day", "ease": "ease", "coverage": 0.9}
    if method == "group":
        asked["by"] = "site"
    return asked


def same(one: pa.Table, other: pa.Table) -> None:
    assert one.column_names == other.column_names
    for name in one.column_names:
        assert one[name].type == other[name].type, name
        if pa.types.is_floating(one[name].type):
            found, wanted = (each[name].to_numpy() for each in (one, other))
            np.testing.assert_allclose(found, wanted, rtol=1e-13)
        else:
            assert one[name].to_pylist() == other[name].to_pylist(), name


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "method"), METHODS_OF)
def test_every_method_gives_what_it_gives_at_once(kind: str, method: str, tmp_path: Path) -> None:
    held, new = held_and_new(kind)
    asked = options(kind, method)
    write_table(new, tmp_path / "new.parquet")
    whole = howsure.recalibrate(tmp_path / "new.parquet", held, **asked)
    for size in (1, 7, N - 1, N) if method in ("group", "lac") else (13,):
        done = howsure.recalibrate(
            tmp_path / "new.parquet",
            held,
            output=tmp_path / "out.parquet",
            batch_rows=size,
            **asked,
        )
        same(parquet.read_table(tmp_path / "out.parquet"), whole.table)
        assert done.n == done.served == N
        assert set(done.notes) - set(whole.notes) <= {n for n in done.notes if "at once" in n}
        assert set(whole.notes) <= set(done.notes)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["new.csv", "new.tsv.gz", "new.parquet", "new.arrow"])
@pytest.mark.parametrize("out", ["out.csv", "out.tsv.zst", "out.parquet", "out.feather"])
def test_every_form_of_file_is_read_and_written(name: str, out: str, tmp_path: Path) -> None:
    held, new = held_and_new("distributions")
    new["when"] = [None, "NA", *["007"] * (N - 2)]
    new["size"] = [None] * 40 + list(range(N - 40))
    new["note"] = ['a "b"\nc, d', *["=1"] * (N - 1)]
    write_table(new, tmp_path / name)
    asked = options("distributions", "inputs")
    whole = howsure.recalibrate(tmp_path / name, held, **asked)
    whole.save(tmp_path / f"whole_{out}", csv_safe=True)
    howsure.recalibrate(
        tmp_path / name, held, output=tmp_path / out, batch_rows=11, csv_safe=True, **asked
    )
    same(*(open_table(tmp_path / each).read_all() for each in (out, f"whole_{out}")))


def test_numbers_with_a_decimal_comma(tmp_path: Path) -> None:
    held, new = held_and_new("distributions")
    lines = [f"{row};{m!s};1".replace(".", ",") for row, m in enumerate(new["mean"])]
    (tmp_path / "new.csv").write_text("\n".join(["id;mean;sd", *lines]), encoding="utf-8")
    for out in ("out.csv", "out.parquet"):
        whole = howsure.recalibrate(tmp_path / "new.csv", held, method="scale", decimal=",")
        whole.save(tmp_path / f"whole_{out}")
        howsure.recalibrate(
            tmp_path / "new.csv",
            held,
            output=tmp_path / out,
            method="scale",
            decimal=",",
            batch_rows=10,
        )
        same(*(open_table(tmp_path / each).read_all() for each in (out, f"whole_{out}")))


def test_rows_that_miss_a_cell_stay_and_are_counted(tmp_path: Path) -> None:
    held, new = held_and_new("distributions")
    mean = new["mean"].astype(object)
    mean[:20] = mean[50:53] = None
    write_table({**new, "mean": mean}, tmp_path / "new.parquet")
    asked = options("distributions", "scale") | {"missing": "drop"}
    whole = howsure.recalibrate(tmp_path / "new.parquet", held, **asked)
    done = howsure.recalibrate(
        tmp_path / "new.parquet", held, output=tmp_path / "out.parquet", batch_rows=6, **asked
    )
    same(parquet.read_table(tmp_path / "out.parquet"), whole.table)
    assert (done.n, done.served) == (N, N - 23)
    assert set(done.notes) == set(whole.notes)
    assert any("23 of 83 rows get no" in note for note in done.notes)
    write_table({**new, "mean": [None] * N}, tmp_path / "none.parquet")
    with pytest.raises(InputError, match="every row has missing cells"):
        howsure.recalibrate(tmp_path / "none.parquet", held, output=tmp_path / "o.parquet", **asked)


def test_a_wrong_cell_is_told_by_its_row_in_the_file(tmp_path: Path) -> None:
    held, new = held_and_new("distributions")
    for column, value, words in (
        ("mean", np.nan, r"1 in 'mean' \(first at row 71\)"),
        ("sd", -1.0, "row 71"),
        ("mean", np.inf, "first at row 71"),
    ):
        broken = {**new, column: np.where(np.arange(N) == 71, value, new[column])}
        write_table(broken, tmp_path / "new.parquet")
        with pytest.raises(InputError, match=words):
            howsure.recalibrate(
                tmp_path / "new.parquet", held, output=tmp_path / "out.parquet", batch_rows=10
            )
        assert [path.name for path in tmp_path.iterdir()] == ["new.parquet"]


def test_a_wrong_cell_after_rows_without_predictions_is_told_by_its_row(tmp_path: Path) -> None:
    held, new = held_and_new("distributions")
    row = np.arange(N)
    mean = np.where(row < 25, np.nan, np.where(row == 31, np.inf, new["mean"]))
    write_table({**new, "mean": mean}, tmp_path / "new.parquet")
    with pytest.raises(InputError, match="first at row 31"):
        howsure.recalibrate(
            tmp_path / "new.parquet", held, output=tmp_path / "o.csv", batch_rows=10, missing="drop"
        )
    broken = {**new, "mean": np.where(row < 25, np.nan, new["mean"])}
    write_table({**broken, "sd": np.where(row == 47, -1.0, new["sd"])}, tmp_path / "new.parquet")
    with pytest.raises(InputError, match="row 47"):
        howsure.recalibrate(
            tmp_path / "new.parquet", held, output=tmp_path / "o.csv", batch_rows=30, missing="drop"
        )


def test_the_folder_of_one_file_must_exist(tmp_path: Path) -> None:
    held, new = held_and_new("distributions")
    write_table(new, tmp_path / "new.csv")
    with pytest.raises(InputError, match="the folder of the output must exist"):
        howsure.recalibrate(tmp_path / "new.csv", held, output=tmp_path / "gone" / "out.csv")


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError])
def test_nothing_is_left_of_what_was_interrupted(
    stop: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, new = held_and_new("distributions")
    (tmp_path / "new").mkdir()
    for name in ("a.csv", "b.csv"):
        write_table(new, tmp_path / "new" / name)
    bare, calls = writing._bare_lines, []

    def broken(*given: Any) -> bytes:
        calls.append(given)
        if len(calls) > 15:
            raise stop("no space left")
        return bare(*given)

    monkeypatch.setattr(writing, "_bare_lines", broken)
    with pytest.raises((KeyboardInterrupt, InputError)):
        howsure.recalibrate(tmp_path / "new", held, output=tmp_path / "out" / "deep", batch_rows=9)
    assert {path.name for path in tmp_path.rglob("*")} == {"new", "a.csv", "b.csv"}


def test_a_folder_becomes_one_file_or_a_folder(tmp_path: Path) -> None:
    held, new = held_and_new("distributions")
    table = pa.table(new)
    for name, start in (("b/part.parquet", 30), ("a/part.parquet", 0), ("a/_marker.parquet", 0)):
        (tmp_path / "new" / name).parent.mkdir(parents=True, exist_ok=True)
        write_table(table.slice(start, 30 if start == 0 else N), tmp_path / "new" / name)
    whole = howsure.recalibrate(new, held, method="scale").table
    for given in (
        tmp_path / "new",
        str(tmp_path / "new" / "*" / "p*.parquet"),
        [tmp_path / "new" / part / "part.parquet" for part in "ab"],
    ):
        howsure.recalibrate(
            given, held, output=tmp_path / "out.parquet", method="scale", batch_rows=17
        )
        same(parquet.read_table(tmp_path / "out.parquet"), whole)
    one = [tmp_path / "new" / "a" / "part.parquet"]
    howsure.recalibrate(one, held, output=tmp_path / "one.parquet", method="scale")
    same(parquet.read_table(tmp_path / "one.parquet"), whole.slice(0, 30))
    done = howsure.recalibrate(tmp_path / "new", held, output=tmp_path / "out", method="scale")
    assert done.files == tuple(tmp_path / "out" / part / "part.parquet" for part in "ab")
    same(pa.concat_tables(parquet.read_table(path) for path in done.files), whole)
    with pytest.raises(InputError, match="must not overwrite an input"):
        howsure.recalibrate(tmp_path / "new", held, output=tmp_path / "new", method="scale")
    files = [tmp_path / "new" / part / "part.parquet" for part in "ab"]
    with pytest.raises(InputError, match="parts must have different names in a folder"):
        howsure.recalibrate(files, held, output=tmp_path / "out", method="scale")


def test_what_folders_say_is_a_column(tmp_path: Path) -> None:
    held, new = held_and_new("distributions")
    table = pa.table(new)
    for site in ("1", "south"):
        part = table.filter(pc.equal(table["site"], site)).drop_columns(["site"])
        folder = tmp_path / "new" / f"site={site}"
        folder.mkdir(parents=True)
        write_table(part, folder / "part.csv")
    asked: dict[str, Any] = {"method": "group", "by": "site"}
    whole = howsure.recalibrate(table.filter(pc.not_equal(table["site"], "2")), held, **asked)
    howsure.recalibrate(tmp_path / "new", held, output=tmp_path / "out.parquet", **asked)
    made = parquet.read_table(tmp_path / "out.parquet")
    names = ["site", "day", "recalibrated_mean", "recalibrated_sd"]
    order = [("site", "ascending"), ("day", "ascending")]
    same(
        made.select(names).cast(whole.table.select(names).schema),
        whole.table.select(names).sort_by(order),
    )
    done = howsure.recalibrate(tmp_path / "new", held, output=tmp_path / "out", **asked)
    assert done.files[0] == tmp_path / "out" / "site=1" / "part.csv"
    assert "site" not in open_table(done.files[0]).names


def test_rows_at_an_address(tmp_path: Path) -> None:
    fsspec = needs("fsspec")
    held, new = held_and_new("distributions")
    write_table(new, tmp_path / "new.parquet")
    with fsspec.open("memory://recalibrated/new.parquet", "wb") as file:
        file.write((tmp_path / "new.parquet").read_bytes())
    done = howsure.recalibrate("memory://recalibrated/*.parquet", held, output=tmp_path / "out.csv")
    assert done.served == N


def test_parts_of_other_columns_are_refused_by_name(tmp_path: Path) -> None:
    held, new = held_and_new("distributions")
    write_table(new, tmp_path / "a.parquet")
    write_table(dict(reversed(new.items())), tmp_path / "b.parquet")
    both = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    howsure.recalibrate(both, held, output=tmp_path / "out.parquet", method="scale")
    made = parquet.read_table(tmp_path / "out.parquet")
    assert made.slice(0, N).equals(made.slice(N))
    write_table({**new, "day": new["id"]}, tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet needs the column types"):
        howsure.recalibrate(both, held, output=tmp_path / "out.parquet", method="scale")
    write_table({**new, "more": new["id"]}, tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet needs the columns of .* with 'more'"):
        howsure.recalibrate(both, held, output=tmp_path / "out.parquet", method="scale")
    with pytest.raises(InputError, match="the folder has no table files"):
        howsure.recalibrate(_folder(tmp_path / "empty"), held, output=tmp_path / "o.csv")
    with pytest.raises(InputError, match="no file matches"):
        howsure.recalibrate(tmp_path / "*.csv", held, output=tmp_path / "o.csv")
    with pytest.raises(InputError, match=r"gone\.csv: no such file"):
        howsure.recalibrate(tmp_path / "gone.csv", held, output=tmp_path / "o.csv")


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_draws_that_tell_equal_rows_apart_need_all_rows(tmp_path: Path) -> None:
    held, new = held_and_new("label_sets")
    write_table(new, tmp_path / "a.csv")
    write_table(new, tmp_path / "b.csv")
    many: dict[str, Any]
    for many in ({}, {"batch_rows": 9}):
        done = howsure.recalibrate(
            tmp_path / "a.csv", held, output=tmp_path / "o.csv", method="aps", **many
        )
        assert ("All rows were read at once" in str(done)) == bool(many)
        assert done.in_memory is not None
        assert done.in_memory.read_all().equals(open_table(tmp_path / "o.csv").read_all())
    with pytest.raises(InputError, match="needs all new rows in one file, got 2 files"):
        howsure.recalibrate(tmp_path / "[ab].csv", held, output=tmp_path / "o.csv", method="aps")


def test_a_sample_of_calibration_rows_is_told_and_kept(tmp_path: Path) -> None:
    held, new = held_and_new("distributions")
    (evalset,) = load(held).evalsets
    write_table(new, tmp_path / "new.csv")
    facts = fitted_on(evalset.n, 100_000)
    teaching = HeldOut(rows=evalset, facts=facts)
    done = howsure.recalibrate(
        tmp_path / "new.csv", teaching, output=tmp_path / "o.csv", method="scale"
    )
    assert "note: Fitted on 400 of 100,000 calibration rows." in done.lines()
    assert facts[0] in howsure.recalibrate(new, teaching, method="scale").notes
    done.fitted.save(tmp_path / "mend.json")
    kept = load_recalibration(tmp_path / "mend.json")
    assert kept.facts == facts
    again = howsure.recalibrate(tmp_path / "new.csv", kept, output=tmp_path / "two.csv")
    assert facts[0] in again.notes
    assert (tmp_path / "o.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    assert fitted_on(400, 400) == ()
    howsure.recalibrate(new, evalset, method="scale").fitted.save(tmp_path / "mend.json")
    assert "facts" not in (tmp_path / "mend.json").read_text(encoding="utf-8")


def test_other_units_are_told_once(tmp_path: Path) -> None:
    held, new = held_and_new("distributions")
    write_table({**new, "mean": 1e6 + 1e3 * new["mean"]}, tmp_path / "new.csv")
    done = howsure.recalibrate(tmp_path / "new.csv", held, output=tmp_path / "o.csv", batch_rows=10)
    assert len([note for note in done.notes if "a different scale" in note]) == 1


def test_progress_is_told(tmp_path: Path) -> None:
    held, new = held_and_new("distributions")
    write_table(new, tmp_path / "new.parquet")
    heard: list[tuple[str, int, int]] = []
    with subscribe(lambda *told: heard.append(told)):
        howsure.recalibrate(
            tmp_path / "new.parquet", held, output=tmp_path / "o.csv", batch_rows=40
        )
    served = [told[1:] for told in heard if told[0] == "recalibrating rows"]
    assert served == [(40, N), (80, N), (N, N)]


@pytest.mark.slow
def test_processes_serve_pieces_in_order_and_finished_ones_are_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small groups of rows make pieces, which two processes serve; a run goes on where it ended."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(Large, "piece_rows", 20)
    held, new = held_and_new("distributions")
    (tmp_path / "new").mkdir()
    mean = new["mean"].astype(object)
    mean[30:35] = None
    table = pa.table({**new, "mean": mean.tolist()})
    parquet.write_table(table.slice(0, 50), tmp_path / "new" / "a.parquet", row_group_size=20)
    parquet.write_table(table.slice(50), tmp_path / "new" / "b.parquet", row_group_size=20)
    asked: dict[str, Any] = {"method": "group", "by": "site", "missing": "drop"}
    whole = howsure.recalibrate(tmp_path / "new", held, **asked)
    out = tmp_path / "out.parquet"
    done = howsure.recalibrate(
        tmp_path / "new", held, output=out, **asked, large=howsure.Large(jobs=2)
    )
    same(parquet.read_table(out), whole.table)
    assert (done.n, done.served, set(done.notes)) == (N, N - 5, set(whole.notes))
    served: list[str] = []
    serve = module.Application.__call__

    def counting(self: Any, piece: Any) -> pa.Table:
        if len(served) == 3:
            raise KeyboardInterrupt
        served.append(piece.title)
        return serve(self, piece)

    monkeypatch.setattr(module.Application, "__call__", counting)
    with pytest.raises(KeyboardInterrupt):
        howsure.recalibrate(
            tmp_path / "new", held, output=tmp_path / "o.csv", **asked, large=howsure.Large(jobs=1)
        )
    assert not (tmp_path / "o.csv").exists()
    served.clear()
    given: dict[str, Any] = {"output": out, "large": howsure.Large(jobs=1, resume=True)}
    howsure.recalibrate(tmp_path / "new", held, **given, **asked)
    assert len(served) == 2
    same(parquet.read_table(out), whole.table)


def test_a_large_text_file_goes_on_where_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "_MAX_BYTES_HELD", 0)
    held, new = held_and_new("distributions")
    write_table(new, tmp_path / "new.csv")
    out = tmp_path / "out.parquet"
    howsure.recalibrate(tmp_path / "new.csv", held, method="scale", output=out, batch_rows=10)
    whole = parquet.read_table(out)
    served: list[int] = []
    serve = module.Application._batch

    def counting(self: Any, batch: Any) -> Any:
        if len(served) == 3:
            raise KeyboardInterrupt
        served.append(batch.rows)
        return serve(self, batch)

    monkeypatch.setattr(module.Application, "_batch", counting)
    given: dict[str, Any] = {"method": "scale", "output": out, "batch_rows": 10}
    given["large"] = howsure.Large(jobs=1, resume=True)
    out.unlink()
    for batches in range(-(-N // 10), 0, -3):
        served.clear()
        with nullcontext() if batches <= 3 else pytest.raises(KeyboardInterrupt):
            howsure.recalibrate(tmp_path / "new.csv", held, **given)
        assert len(served) == 3
    assert parquet.read_table(out).equals(whole)


def test_label_sets_are_made_file_by_file(tmp_path: Path) -> None:
    held, new = held_and_new("label_sets")
    for name, start in (("a.csv", 0), ("b.csv", 30)):
        write_table(pa.table(new).slice(start, 30 if start == 0 else N), tmp_path / name)
    whole = howsure.conformal(new, held, method="lac")
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    done = howsure.conformal(files, held, method="lac", output=tmp_path / "sets", batch_rows=9)
    made = pa.concat_tables(open_table(path).read_all() for path in done.files)
    assert made["set_90"].to_pylist() == whole.table["set_90"].to_pylist()
    assert made.column_names == whole.table.column_names


def test_counts_in_notes_add_up() -> None:
    one, more = (CountedNote.of(count, "row", " of groups: new.") for count in (1, 1002))
    quoted = "5 rows is what a user called a column."
    told = [one, "Plain.", quoted, more, "Plain.", quoted]
    batch = howsure.recalibrate({"mean": [0.0], "sd": [1.0]}, held_and_new("distributions")[0])
    account = Account()
    for notes in (told[:3], told[3:]):
        rows = Account.of(replace(batch, notes=tuple(notes))).with_rows(batch.table)
        assert account.take(rows).schema.metadata is None
    assert account.all_notes(batch, ["Fit."])[-4:] == (
        *("Fit.", "1,003 rows of groups: new.", "Plain.", quoted),
    )
    many = Account.of(replace(batch, notes=tuple(f"note {place}" for place in range(30))))
    assert many.all_notes(batch, [])[-2:] == ("note 19", "10 more notes are not shown.")
