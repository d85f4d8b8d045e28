"""The commands as a user runs them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from typer.testing import CliRunner

import howsure
from extras import needs
from howsure.cli.check import parse_limits
from howsure.cli.main import app
from howsure.core.errors import HowsureError, InputError
from howsure.core.records import Record
from howsure.report.check import Limit, judge
from howsure.topics.characteristic.curve import characteristic_curve

pytestmark = pytest.mark.few_draws

RUN = [sys.executable, "-c", "from howsure.cli.entry import main; main()"]


def table(n: int = 400, factor: float = 1.0, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    mean, sd = rng.normal(size=n), np.exp(rng.uniform(-0.5, 0.5, n))
    y = mean + sd * rng.normal(size=n)
    reach = 1.6449 * factor * sd
    region = rng.choice(["north", "south"], n)
    columns = {"y": y, "lower_90": mean - reach, "upper_90": mean + reach, "region": region}
    return pa.table({**columns, "mean": mean, "sd": factor * sd})


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.csv"
    csv.write_csv(table(), path)
    return path


@pytest.fixture
def narrow(tmp_path: Path) -> Path:
    path = tmp_path / "narrow.parquet"
    parquet.write_table(table(factor=0.6), path)
    return path


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """A real process, as its exit status and its streams are what is promised."""
    return subprocess.run([*RUN, *map(str, arguments)], capture_output=True, text=True, check=False)


def inside(*arguments: object) -> str:
    """The same in this process, for speed."""
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_assess_prints_a_verdict_and_writes_every_form(good: Path, tmp_path: Path) -> None:
    outputs = [tmp_path / f"report.{ending}" for ending in ("html", "json", "md", "csv")]
    flags = [part for path in outputs for part in ("-o", path)]
    shown = inside("assess", good, "--groups", "region", *flags)
    assert "The 90 % intervals cover" in shown
    assert "cover" in shown
    assert all(path.stat().st_size > 500 for path in outputs)
    held = json.loads(outputs[1].read_text(encoding="utf-8"))
    records = {r["metric"]: r for r in held["records"] if not r["group"]}
    assert 0.85 < records["empirical_coverage"]["value"] < 0.95
    assert records["empirical_coverage"]["target"] == 0.9


def test_overconfidence_is_named(narrow: Path) -> None:
    assert "they under-cover by" in inside("assess", narrow)


def test_explain_input(good: Path) -> None:
    shown = inside("assess", good, "--explain-input")
    for column in ("y", "lower_90", "upper_90", "mean", "sd", "region"):
        assert column in shown
    assert "cover 9" not in shown
    assert "Recognised names" not in shown
    assert "run the same command without --explain-input" in shown
    every = inside("assess", good, "--explain-input", "--all")
    assert "Recognised names" in every
    assert "--quantile-level" in every


@pytest.mark.slow
def test_the_sense_of_weights_is_printed(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = ["y,mean,sd,weight", *(f"{y},0,1,10000" for y in rng.normal(size=60))]
    path = tmp_path / "weighted.csv"
    path.write_text("\n".join(lines))
    said = " ".join(inside("assess", path).split())
    assert "Weights: frequency, 600,000 rows in all; weight 2 means a row seen twice" in said
    other = " ".join(inside("assess", path, "--weights-kind", "importance").split())
    assert "Weights: importance, effective sample size 60.0" in other


def test_two_files_are_two_models(good: Path, narrow: Path) -> None:
    shown = inside("assess", good, narrow)
    assert "good" in shown
    assert "narrow" in shown
    assert "Models in the best set are not significantly worse than any other" in " ".join(
        shown.split()
    )
    heading = next(line for line in shown.splitlines() if line.startswith("Question "))
    assert shown.index("The 90 % intervals cover") < shown.index(heading)
    assert shown.index("\nCoverage ") < shown.index("Key numbers")
    assert shown.count("narrow: The 90 % intervals cover") == 1
    assert max(map(len, shown.splitlines())) <= 80


def test_common_rows_are_compared_where_the_flag_says_so(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=300)
    paths = []
    for name, rows in (("first", np.arange(280)), ("other", np.arange(299, 9, -1))):
        paths.append(tmp_path / f"{name}.csv")
        held = {"key": rows, "y": y[rows], "mean": 0 * y[rows], "sd": 0 * y[rows] + 1}
        csv.write_csv(pa.table(held), paths[-1])
    with pytest.raises(InputError, match=r"--common-rows"):
        inside("assess", *paths, "--row-id", "key")
    out = tmp_path / "report.json"
    inside("assess", *paths, "--row-id", "key", "--common-rows", "-o", out)
    held = json.loads(out.read_text(encoding="utf-8"))
    assert held["facts"]["Rows"] == "270"
    assert "10 of 'first', 20 of 'other'" in held["facts"]["Reading"]
    assert held["tables"][0]["name"] == "overview"
    again = howsure.assess(
        howsure.Table([str(path) for path in paths], rows="key", common_rows=True)
    )
    assert again.facts["Rows"] == "270"
    with pytest.raises(InputError, match="common_rows applies only to tables"):
        howsure.assess(howsure.Table(y, point=y, common_rows=True))


def test_flags_name_columns_and_coverages(tmp_path: Path) -> None:
    path = tmp_path / "odd.tsv"
    odd = table().rename_columns(["truth!", "a", "b", "region", "m", "s"])
    csv.write_csv(odd, path, csv.WriteOptions(delimiter="\t"))
    shown = inside(
        "assess", path, "--y", "truth!", "--lower", "a", "--upper", "b", "--coverage", "0.9"
    )
    assert "The 90 % intervals cover" in shown
    shown = inside("assess", path, "--y", "truth!", "--mean", "m", "--sd", "s", "--at", "0.5")
    assert "The 50 % intervals cover" in shown
    shown = inside("assess", path, "--y", "truth!", "--law", "norm:loc=m,scale=s")
    assert "The 90 % intervals cover" in shown


@pytest.mark.rate
def test_check_exit_statuses(good: Path, narrow: Path, tmp_path: Path) -> None:
    inside("check", good, "--min-coverage", "0.85")
    failed = command("check", narrow, "--min-coverage", "0.85", "--max", "crps=99")
    assert failed.returncode == 1
    assert "empirical_coverage" in failed.stdout
    broken = command("check", tmp_path / "none.csv", "--min-coverage", "0.5")
    assert broken.returncode == 2
    assert broken.stderr.startswith("howsure: ")
    assert "Traceback" not in broken.stderr


def test_check_says_what_is_inconclusive(good: Path) -> None:
    assert "inconclusive" in inside("check", good, "--min-coverage", "0.92")
    strict = ["check", str(good), "--min-coverage", "0.92", "--undecided", "fail"]
    assert CliRunner().invoke(app, strict).exit_code == 1


def test_judge_uses_one_sided_bounds() -> None:
    record = Record(metric="empirical_coverage", value=0.9, lower=0.88, upper=0.92)
    assert judge(Limit("empirical_coverage", "min", 0.87), record) == "holds"
    assert judge(Limit("empirical_coverage", "min", 0.93), record) == "fails"
    assert judge(Limit("empirical_coverage", "min", 0.9), record) == "undecided"
    assert judge(Limit("empirical_coverage", "max", 0.95), record) == "holds"
    assert judge(Limit("empirical_coverage", "max", 0.85), record) == "fails"


@pytest.mark.parametrize("text", ["crps", "nonsense=1", "crps=much", "crps=nan"])
def test_bad_limits(text: str) -> None:
    with pytest.raises(InputError):
        parse_limits({}, [text], [])


def test_recalibrate_mends_coverage(tmp_path: Path) -> None:
    given, held_out, out = (tmp_path / name for name in ("given.csv", "cal.csv", "new.csv"))
    csv.write_csv(table(4000, 0.6, seed=1), given)
    csv.write_csv(table(4000, 0.6, seed=2), held_out)
    shown = inside("recalibrate", given, "--calibration", held_out, "-o", out)
    assert "Before and after" in shown
    again = tmp_path / "again.json"
    inside("assess", out, "-o", again)
    held = json.loads(again.read_text(encoding="utf-8"))
    record = next(r for r in held["records"] if r["metric"] == "empirical_coverage")
    assert abs(record["value"] - 0.9) < 0.02


@pytest.mark.rate
def test_assess_prints_what_matters_and_more_on_demand(good: Path, tmp_path: Path) -> None:
    brief = inside("assess", good)
    assert "Interval score (Winkler) at 90 %" in brief
    assert "Median width" not in brief
    assert "--all shows every sentence and number" in brief
    whole = inside("assess", good, "--all")
    assert "Median width" in whole
    assert "Measures that could not be computed, and why" in whole
    assert whole.count("Interval score") == 1  # nothing twice
    held = json.loads(inside("assess", good, "--json"))
    assert held["verdict"][0]["text"][:20] in brief
    page = tmp_path / "quiet.json"
    assert inside("assess", good, "--quiet", "-o", page) == ""
    assert json.loads(page.read_text(encoding="utf-8"))["records"] == held["records"]
    for wrong, said in (
        (("--quiet",), "--quiet prints nothing"),
        (("--all", "--json"), "--all and --json"),
        (("--json", "--reference", good), "--json cannot be given with --reference"),
    ):
        with pytest.raises(InputError, match=said):
            inside("assess", good, *wrong)


def test_metrics_lists_the_catalogue() -> None:
    shown = inside("metrics")
    assert "empirical_coverage" in shown
    assert "lower is better" in shown
    assert "Gneiting" in inside("metrics", "interval_score")


@pytest.mark.parametrize(
    "arguments",
    [
        ("assess", "missing.csv"),
        ("assess", "."),
        ("metrics", "nonsense"),
        ("assess", "missing.csv", "-o", "report.exe"),
        ("assess", "missing.csv", "--also", "nonsense"),
        ("check", "missing.csv"),
    ],
)
def test_bad_calls_raise_one_clear_error(arguments: tuple[str, ...]) -> None:
    with pytest.raises(HowsureError):
        CliRunner().invoke(app, list(arguments), catch_exceptions=False)


@pytest.mark.slow
def test_nothing_half_written_when_a_table_is_bad(tmp_path: Path) -> None:
    path, out = tmp_path / "bad.csv", tmp_path / "report.html"
    path.write_text("y,lower_90,upper_90\n1,0,2\nnan,0,2\n", encoding="utf-8")
    run = command("assess", path, "-o", out)
    assert run.returncode == 2
    assert "missing" in run.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["bad.csv"]


def test_help_and_version_are_light() -> None:
    code = (
        "import sys; from howsure.cli.main import app; "
        "print([m for m in ('numpy', 'scipy', 'pyarrow', 'sklearn') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
    assert "howsure 0." in inside("--version")


def test_metrics_finds_what_the_field_calls_it() -> None:
    shown = inside("metrics", "PICP")
    assert "(empirical_coverage)" in shown
    assert "also" in shown
    assert "interval coverage" in " ".join(shown.split())
    with pytest.raises(InputError, match=r"got 'pipc'; did you mean empirical_coverage\?"):
        inside("metrics", "pipc")


def test_with_takes_a_synonym(good: Path) -> None:
    inside("assess", good, "--also", "Winkler score", "--no-trials")
    with pytest.raises(InputError, match=r"--also must be .*got 'pipc'; did you mean"):
        inside("assess", good, "--also", "pipc")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("howsure ch", ["check", "characteristic"]),
        ("howsure bench s", ["status", "show", "submit"]),
        ("howsure metrics interval_", ["interval_score"]),
        ("howsure characteristic --miss", ["--miss-cost"]),
    ],
)
def test_a_shell_completes_commands_options_and_measures(words: str, found: list[str]) -> None:
    code = "import sys; sys.argv[0] = 'howsure'; from howsure.cli.entry import main; main()"
    place = str(len(words.split()) - 1)
    asked = {"COMP_WORDS": words, "COMP_CWORD": place, "_HOWSURE_COMPLETE": "complete_bash"}
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **asked},
    )
    assert run.returncode == 0, run.stderr
    assert set(found) <= set(run.stdout.split())
    assert "--install-completion" in inside("--help")


def test_characteristic_prints_every_convention(good: Path) -> None:
    shown = inside("characteristic", good, "--want", "miss_rate=0.1", "--bootstrap", "50")
    for word in ("exact", "paper", "uq360", "as predicted", "miss_rate = 0.1", "0 … 0.2"):
        assert word in shown
    with pytest.raises(InputError, match="--want must be NAME=NUMBER"):
        inside("characteristic", good, "--want", "k=1")


def test_characteristic_supposes_no_price(good: Path, tmp_path: Path) -> None:
    """The prices were 1 and 1: the advice was to miss every row, at k = 0."""
    quick = ("characteristic", good, "--bootstrap", "0")
    shown = " ".join(inside(*quick).split())
    assert "k = 0 " not in shown
    assert "20 per unit of deficit, as in the interval score at 0.9: now" in shown
    own = " ".join(inside(*quick, "--y-axis", "deficit").split())
    assert shown.partition("cost in units")[2] == own.partition("cost in units")[2]
    asked = " ".join(inside(*quick, "--miss-cost", "10").split())
    assert "cost in units of width, 10 per miss: now" in asked
    weighed = " ".join(inside(*quick, "--cost-weight", "0.5").split())
    assert "cost 0.5 · bandwidth + 0.5 · miss rate: now" in weighed
    held = csv.read_csv(good)
    score = howsure.assess(held["y"], howsure.Intervals(held["lower_90"], held["upper_90"], 0.9))
    assert f"now {score.value('interval_score'):.5g}," in own
    unnamed = tmp_path / "unnamed.csv"
    csv.write_csv(
        pa.table({"y": held["y"], "lower": held["lower_90"], "upper": held["upper_90"]}), unnamed
    )
    shown = " ".join(inside("characteristic", unnamed, "--bootstrap", "0").split())
    assert "no cost: the nominal coverage is unknown" in shown


def test_characteristic_takes_the_range_of_the_partial_area(good: Path) -> None:
    quick = ("characteristic", good, "--bootstrap", "0")
    shown = inside(*quick, "--range", "0", "0.5")
    assert "miss rate 0 … 0.5" in shown
    held = csv.read_csv(good)
    low, high = (held[name].to_numpy() for name in ("lower_90", "upper_90"))
    curve = characteristic_curve(held["y"].to_numpy(), held["mean"].to_numpy(), low, high)
    assert f"{curve.partial_area(y_range=(0.0, 0.5)).value:.5g} y" in shown
    assert "deficit 0.1 … 2" in inside(*quick, "--y-axis", "deficit", "--miss-range", "0.1", "2")
    with pytest.raises(InputError, match="--miss-range must be two rising numbers between 0 and 1"):
        inside(*quick, "--miss-range", "0", "5")


def test_characteristic_draws(good: Path, tmp_path: Path) -> None:
    needs("matplotlib")
    plot = tmp_path / "curve.svg"
    inside("characteristic", good, "--bootstrap", "0", "--plot", plot)
    assert plot.read_text(encoding="utf-8").lstrip().startswith("<?xml")


def test_unlabelled_rows_are_scored_against_a_reference(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, 500)
    sd = np.full(500, 0.3)
    mean = np.sin(x) + 1.5 * (x > 1)
    labelled = {"x": x, "y": np.sin(x) + sd * rng.normal(size=500), "mean": mean, "sd": sd}
    reference, new, out = (tmp_path / name for name in ("ref.parquet", "new.csv", "scored.csv"))
    parquet.write_table(pa.table(labelled), reference)
    csv.write_csv(pa.table({"x": [-1.0, 1.9], "other": ["a", "b"]}), new)
    shown = inside("assess", new, "--reference", reference, "-o", out)
    assert "50 % are flagged" in shown
    scored = csv.read_csv(out)
    assert scored["cce"][1].as_py() > 2 * scored["cce"][0].as_py()
    assert scored["flagged"][1].as_py() is True
    csv.write_csv(pa.table({"other": ["a", "b"]}), new)
    with pytest.raises(InputError, match="features"):
        CliRunner().invoke(
            app, ["assess", str(new), "--reference", str(reference)], catch_exceptions=False
        )


def test_decimal_commas(tmp_path: Path) -> None:
    path = tmp_path / "komma.csv"
    path.write_text("y;lower_90;upper_90\n1,5;0,5;2,5\n9,5;0,5;2,5\n", encoding="utf-8")
    assert "50 %" in inside("assess", path, "--decimal", ",")


def test_a_constant_band_gains_nothing(good: Path) -> None:
    """It was 1.4e-14, and −0.00 % beside it."""
    table = csv.read_csv(good).to_pydict()
    y = np.asarray(table["y"], dtype=float)
    flat = good.with_name("flat.csv")
    lines = [f"{v!r},{0.1},{0.7}" for v in y.tolist()]
    flat.write_text("\n".join(["y,mean,sd", *lines]), encoding="utf-8")
    shown = inside("characteristic", flat, "--bootstrap", "50")
    assert "bootstrap gain: 0 (0 … 0)" in shown
    assert "-0.00 %" not in shown


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("characteristic", "{good}", "--x", "excess"), "called --x-axis: write --x-axis excess"),
        (("characteristic", "{good}", "--at", "0.5"), "--at is not used here"),
        (("assess", "{good}", "--csv-safe"), "--csv-safe applies only to tables of rows"),
        (("assess", "{good}", "--reference", "{good}", "--at", "0.5"), "--at needs y, but"),
        (
            ("assess", "{good}", "--reference", "{good}", "--state", "s.arrow"),
            "--state cannot be given with --reference, which scores single rows",
        ),
        (
            ("recalibrate", "{good}", "--calibration", "{good}", "--common-rows", "-o", "x.csv"),
            "--common-rows needs several models, and only one is read here",
        ),
        (
            ("conformal", "{good}", "--calibration", "{good}", "--common-rows", "-o", "x.csv"),
            "--common-rows needs several models, and only one is read here",
        ),
    ],
)
def test_a_flag_that_cannot_act_is_refused(
    arguments: tuple[str, ...], told: str, good: Path
) -> None:
    with pytest.raises(InputError, match=re.escape(told)):
        inside(*(each.format(good=good) for each in arguments))
