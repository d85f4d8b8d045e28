"""The choices of `howsure recalibrate`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from typer.testing import CliRunner

from howsure.cli import recalibrate as shown_by
from howsure.cli.main import app
from howsure.cli.options import FitFlags, ReadOptions, TableFlags
from howsure.cli.recalibrate import run
from howsure.core.errors import InputError
from howsure.inputs import load, open_table, write_table
from howsure.report import recalibrate as recalibrating
from howsure.report.options import Options
from howsure.verdict import advice as mends
from howsure.verdict.advice import Advice, Trials


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
    new, calibration, output = tables
    choices = Options(), ReadOptions()
    run(
        str(new),
        calibration,
        FitFlags(**options),
        TableFlags(output=output),
        *choices,
        compare=False,
    )
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
    table = mended(tables, method="isotonic", levels=("0.1", " 0.5", "0.9"))
    quantiles = [name for name in table.column_names if name.startswith("recalibrated_q")]
    assert len(quantiles) == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rank": "pac", "delta": 2.0}, "delta must be strictly between"),
        ({"levels": ("low",)}, "--levels must be numbers"),
        ({"method": "crude", "levels": ("0.5", "0.1")}, "levels must increase strictly"),
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
    mended(paths, method="isotonic", levels=("0.25", "0.5", "0.75"))
    shown = capsys.readouterr().out
    rows = {
        cells[0]: cells[1:]
        for line in shown.splitlines()
        if len(cells := re.split(r"\s{2,}", line.strip())) > 3
    }
    assert rows["CRPS"][1:3] == ["–", "–"]
    (name,) = (title for title in rows if title.startswith("Pinball loss at"))
    before, after = map(float, rows[name][:2])
    assert after == pytest.approx(before, rel=0.03)
    assert "CRPS" in shown.partition("Omitted")[2]


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with new rows that have no y, and held-out rows that have."""
    monkeypatch.chdir(tmp_path)
    for place, name in enumerate(("new.csv", "held.csv")):
        rng = np.random.default_rng(place)
        mean = rng.normal(size=200)
        table = {
            "id": [f"{row:03d}" for row in range(200)],
            "mean": mean,
            "sd": np.ones(200),
            "region": rng.choice(["north", "south"], 200),
        }
        if name == "held.csv":
            table["y"] = mean + 2 * rng.normal(size=200)
        write_table(table, tmp_path / name)
    return tmp_path


def invoked(line: str) -> str:
    arguments = ["recalibrate", *line.split()]
    shown = CliRunner().invoke(app, arguments, catch_exceptions=False, env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    return shown.output


@pytest.mark.parametrize(
    "name", ["out.csv", "out.tsv", "out.csv.gz", "out.tsv.zst", "out.parquet", "out.feather"]
)
def test_new_rows_without_y_are_served(served: Path, name: str) -> None:
    shown = invoked(f"new.csv --calibration held.csv -o {name}")
    assert "Before and after" not in shown
    assert "distributions: scale (factor " in shown
    assert "200 rows recalibrated" in shown
    names = ("id", "mean", "sd", "region", "recalibrated_mean", "recalibrated_sd")
    assert open_table(served / name).names == names
    before, after = (open_table(served / each).read({"id": "text"}) for each in ("new.csv", name))
    assert before["id"].to_pylist() == after["id"].to_pylist()
    (found,) = load(served / name, y="mean").evalsets  # any numbers serve as y here
    assert found.predictions[0].sd()[0] == pytest.approx(2.0, rel=0.2)


def test_where_y_is_there_it_is_judged(served: Path) -> None:
    shown = invoked("held.csv --calibration held.csv -o out.csv")
    assert "Before and after" in shown
    assert csv.read_csv("out.csv")["y"].equals(csv.read_csv("held.csv")["y"])


def test_what_was_learnt_is_kept_and_applied(served: Path) -> None:
    shown = invoked("new.csv --calibration held.csv -o one.csv --keep mend.json")
    assert "written: mend.json" in shown
    invoked("new.csv --calibration mend.json -o two.csv")
    assert Path("one.csv").read_bytes() == Path("two.csv").read_bytes()
    invoked("new.csv --calibration held.csv -o one.csv --keep mend.json")  # which is replaced
    with pytest.raises(InputError, match="allows no further options, got method"):
        invoked("new.csv --calibration mend.json -o two.csv --method scale")
    Path("other.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="not a saved recalibration: choose another name"):
        invoked("new.csv --calibration held.csv -o one.csv --keep other.json")
    with pytest.raises(InputError, match="not a saved recalibration: its format is different"):
        invoked("new.csv --calibration other.json -o two.csv")
    with pytest.raises(InputError, match="must not overwrite an input"):
        invoked("new.csv --calibration mend.json -o two.csv --keep mend.json")


def test_a_kept_recalibration_of_intervals_whose_coverage_a_flag_tells(served: Path) -> None:
    """What `--coverage` says of columns, and `--at` of what is assessed, asks for no new one."""
    for name in ("new.csv", "held.csv"):
        held = csv.read_csv(name)
        for end, sign in (("lo", -1), ("hi", 1)):
            held = held.append_column(end, pa.array(held["mean"].to_numpy() + sign))
        csv.write_csv(held.drop_columns(["sd"]), name)
    ends = "--lower lo --upper hi --coverage 0.8"
    invoked(f"new.csv --calibration held.csv -o one.csv --keep mend.json {ends}")
    invoked(f"new.csv --calibration mend.json -o two.csv {ends}")
    assert Path("one.csv").read_bytes() == Path("two.csv").read_bytes()
    assert "recalibrated_lower_80" in csv.read_csv("two.csv").column_names
    shown = invoked(f"held.csv --calibration mend.json -o three.csv {ends} --at 0.8")
    assert "Before and after" in shown


def test_rows_that_do_not_count_are_served_and_not_judged(served: Path) -> None:
    held = csv.read_csv("held.csv")
    weights = np.ones(200, dtype=int)
    weights[:100] = 0
    y = held["y"].to_numpy().copy()
    y[:100] = 1e6
    given = held.set_column(held.column_names.index("y"), "y", pa.array(y))
    csv.write_csv(given.append_column("weight", pa.array(weights)), "weighed.csv")
    shown = invoked("weighed.csv --calibration held.csv -o out.csv")
    csv.write_csv(held.slice(100), "half.csv")
    half = invoked("half.csv --calibration held.csv -o out_half.csv")
    table = shown[shown.index("Before and after") : shown.index("200 rows")]
    assert table == half[half.index("Before and after") : half.index("100 rows")]
    assert csv.read_csv("out.csv").num_rows == 200


def test_the_change_of_many_rows_is_shown_on_some_chosen_by_content(
    served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown_by, "_MAX_ROWS_OF_CHANGE", 60)
    held = csv.read_csv("held.csv")
    csv.write_csv(held.take(np.random.default_rng(1).permutation(200)), "mixed.csv")
    shown = [
        invoked(f"{name} --calibration held.csv -o o.csv") for name in ("held.csv", "mixed.csv")
    ]
    assert "On 60 of 200 rows, chosen by their content." in shown[0]
    assert shown[0] == shown[1]
    assert csv.read_csv("o.csv").num_rows == 200


def test_best_prints_what_was_advised(served: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    advice = Advice(method="crude", sentence="Crude cuts the CRPS by 9 %.")

    def tried(evalset: Any, findings: Any = (), *, seed: int = 0) -> Trials:
        assert seed == 7
        return Trials(advice=advice, trials=(), score="CRPS", step=advice.sentence)

    monkeypatch.setattr(mends, "try_recalibrations", tried)
    shown = invoked("new.csv --calibration held.csv -o out.csv --method best --seed 7")
    assert shown.startswith("Applied: Crude cuts the CRPS by 9 %.\ndistributions: crude (shift ")
    advice = Advice(method="")
    shown = invoked("held.csv --calibration held.csv -o out.csv --method best --seed 7")
    assert shown.startswith("No recalibration gave a significant improvement")
    assert "Before and after" not in shown
    out = csv.read_csv("out.csv")
    assert out["recalibrated_sd"].equals(out["sd"].cast(pa.int64()))


def test_rows_without_a_prediction_are_refused_or_kept(served: Path) -> None:
    Path("gap.csv").write_text("id,mean,sd\n007,1,1\n008,,1\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"1 in 'mean' \(first at line 3\)"):
        invoked("gap.csv --calibration held.csv -o out.csv")
    shown = invoked("gap.csv --calibration held.csv -o out.csv --missing drop")
    assert (
        "note: 1 of 2 rows get no recalibrated prediction because a cell is missing ('mean' 1)."
        in shown
    )
    assert Path("out.csv").read_text(encoding="utf-8").splitlines()[2] == "008,,1,,"


def test_a_file_of_many_rows_is_served_part_by_part(
    served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_table(open_table(served / "held.csv").read_all(), served / "held.parquet")
    for name in ("new.csv", "held.csv", "held.parquet"):
        whole = invoked(f"{name} --calibration held.csv -o one.csv --keep one.json")
        with monkeypatch.context() as patched:
            patched.setattr(recalibrating, "is_huge", lambda *_: True)
            parts = invoked(f"{name} --calibration held.csv -o two.csv --keep two.json")
        assert Path("one.csv").read_bytes() == Path("two.csv").read_bytes()
        assert Path("one.json").read_bytes() == Path("two.json").read_bytes()
        assert parts.splitlines()[0] == whole.splitlines()[0]
        assert "200 rows recalibrated\nwritten: two.csv\nwritten: two.json" in parts
        told = "To see the effect: howsure assess two.csv"
        assert (told in parts) == name.startswith("held")


def test_a_folder_and_a_pattern_are_served(served: Path) -> None:
    table = csv.read_csv("new.csv")
    Path("new").mkdir()
    for name, start in (("a.csv", 0), ("b.csv", 120)):
        csv.write_csv(table.slice(start, 120 if start == 0 else 80), Path("new") / name)
    invoked("new.csv --calibration held.csv -o one.csv")
    whole = csv.read_csv("one.csv")
    for given in ("new", "new/", "new/*.csv"):
        shown = invoked(f"{given} --calibration held.csv -o two.csv")
        assert "200 rows recalibrated\nwritten: two.csv" in shown
        assert csv.read_csv("two.csv").equals(whole)
        shown = invoked(f"{given} --calibration held.csv -o out/")
        assert "written: out (2 files)" in shown
        made = [csv.read_csv(Path("out") / name) for name in ("a.csv", "b.csv")]
        assert pa.concat_tables(made).equals(whole)
    invoked("new.csv --calibration held.csv -o out")
    assert csv.read_csv("out/new.csv").equals(whole)
    with pytest.raises(InputError, match="must not overwrite an input"):
        invoked("new --calibration held.csv -o new")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("new.csv --calibration new.csv -o o.csv", "calibration: new.csv: No outcome column"),
        ("new.csv --calibration held.csv --compare", "needs y in the new rows"),
        (
            "new.csv --calibration held.csv -o o.csv --method best --by regoin",
            "by: no column of held.csv is called 'regoin'",
        ),
        ("new.csv --calibration held.csv -o new.csv", "must not overwrite an input"),
        ("new.csv --calibration held.csv -o o.csv --method cqr", "--at|coverage"),
        ("new.csv --calibration held.csv -o o.csv --method shift_all", "method must be one of"),
        ("held.csv --calibration held.csv --compare --method best", "omit --compare"),
        ("held.csv --calibration held.csv -o o.csv --method all", "--method all needs --compare"),
        ("held.csv --calibration gone.json -o o.csv", "no such file"),
    ],
)
def test_bad_input_is_refused_in_words(served: Path, line: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        invoked(line)
    assert not Path("o.csv").exists()


def test_methods_of_several_kinds_are_compared_where_they_suit(served: Path) -> None:
    held = csv.read_csv("held.csv")
    for end, sign in (("lower", -1), ("upper", 1)):
        column = pa.array(held["mean"].to_numpy() + sign)
        held = held.append_column(f"{end}_90", column)
    csv.write_csv(held, "both.csv")
    shown = invoked("both.csv --calibration both.csv --compare --method asymmetric,isotonic")
    assert "Recalibration methods: intervals" in shown
    assert "Recalibration methods: distributions" in shown
    shown = invoked("both.csv --calibration both.csv --compare --method isotonic")
    assert "Recalibration methods: intervals" not in shown
    with pytest.raises(InputError, match="methods must suit intervals"):
        invoked("both.csv --calibration both.csv --compare --method split")
