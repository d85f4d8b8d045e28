"""What continuous integration runs and reads: actions, the hook, SARIF, JUnit, the summary."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from markdown_it import MarkdownIt
from pyarrow import csv, parquet
from typer.testing import CliRunner

from extras import needs
from howsure.cli.main import app

ROOT = Path(__file__).parents[2]
SCHEMAS = Path(__file__).parent / "schemas"
RENTALS = ROOT / "examples" / "rentals.csv"
LOOSE, TIGHT = "--min-coverage 0.8", "--max mean_width=100"
HOSTILE = 'a,b:c%\n::error::<b>[x](http://y){0}\\"$(touch z)'


def faults(name: str, held: Any) -> list[str]:
    """Where something is not of a schema of others."""
    jsonschema = needs("jsonschema")
    schema = json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
    validator = jsonschema.validators.validator_for(schema)(schema)
    return [f"{each.json_path}: {each.message[:200]}" for each in validator.iter_errors(held)]


def action() -> dict[str, Any]:
    held: dict[str, Any] = needs("yaml").safe_load((ROOT / "action.yml").read_text("utf-8"))
    return held


def checked(folder: Path, *words: str, **environment: str) -> tuple[int, str]:
    """The status of a check in a folder, and what it prints."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("GITHUB_WORKSPACE", "GITHUB_STEP_SUMMARY", "GITHUB_ACTIONS"):
            patch.delenv(name, raising=False)
        result = CliRunner().invoke(app, ["check", *words], env=environment, catch_exceptions=False)
    return result.exit_code, result.stdout


def grouped(path: Path, names: tuple[str, ...], hits: tuple[int, ...], n: int = 200) -> None:
    """A table in each of whose groups so many rows of n are covered."""
    hit = np.concatenate([np.arange(n) < each for each in hits])
    ends = {"lower_90": np.full(len(hit), -1.0), "upper_90": np.full(len(hit), 1.0)}
    group = np.repeat(np.asarray(names, dtype=object), n)
    table = pa.table({"y": np.where(hit, 0.0, 2.0), **ends, "region": group})
    (parquet.write_table if path.suffix == ".parquet" else csv.write_csv)(table, path)


def test_the_action_is_of_githubs_form() -> None:
    held = action()
    assert faults("github-action.json", held) == []
    assert faults("github-action.json", {**held, "runs": {"using": "composite"}})
    assert faults("github-action.json", {**held, "icon": "x"})


WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"


def test_the_workflow_of_releases_is_of_githubs_form() -> None:
    """Without a secret: what publishes runs nothing else, and alone may ask for an identity."""
    text = WORKFLOW.read_text("utf-8")
    held = needs("yaml").load(text, needs("yaml").BaseLoader)  # or else "on" is true
    assert faults("github-workflow.json", held) == []
    assert faults("github-workflow.json", {**held, "permissions": "all"})
    assert held["on"] == {"push": {"tags": ["v*"]}}
    assert held["permissions"] == {}
    build, publish = held["jobs"]["build"], held["jobs"]["publish"]
    assert build["permissions"] == {"contents": "read"}
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["needs"] == "build"
    assert not any("run" in step for step in publish["steps"])
    assert "secrets." not in text
    assert not any("${{" in step.get("run", "") for step in build["steps"])


@pytest.mark.parametrize("path", [WORKFLOW, ROOT / "action.yml"], ids=lambda path: path.name)
def test_actions_of_others_are_named_by_their_commit(path: Path) -> None:
    """A tag can be moved; the hash of a commit cannot."""
    used = re.findall(r"uses: (.*)", path.read_text("utf-8"))
    assert used
    for each in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each), each


def test_no_input_is_written_into_a_script() -> None:
    """A script that holds an expression runs what a stranger puts into an input."""
    held = action()
    text = (ROOT / "action.yml").read_text("utf-8")
    used = re.findall(r"\$\{\{ inputs\.([\w-]+) \}\}", text)
    assert set(used) == set(held["inputs"])
    for step in held["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
        for value in step.get("env", {}).values():
            assert re.fullmatch(r"\$\{\{ inputs\.[\w-]+ \}\}", value)


def shown(name: str) -> Any:
    """The block of YAML under a heading of the page."""
    page = (ROOT / "docs" / "check.md").read_text("utf-8")
    block = page.split(f"## {name}\n")[1].split("```yaml\n")[1].split("```")[0]
    return needs("yaml").safe_load(block)


def test_the_page_shows_inputs_that_there_are() -> None:
    (step,) = shown("In GitHub Actions")
    held = action()["inputs"]
    assert set(step["with"]) <= set(held)
    page = (ROOT / "docs" / "check.md").read_text("utf-8")
    rows = page.split("| input | meaning | default |\n|---|---|---|\n")[1].split("\n\n")[0]
    told = {row.split("`")[1]: row.split("|")[3].strip(" `") for row in rows.splitlines()}
    assert set(told) == set(held)
    for name in ("python-version", "summary"):
        assert told[name] == held[name]["default"]
    (entry,) = shown("In pre-commit")[0]["hooks"]
    (hook,) = needs("yaml").safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert entry["id"] == hook["id"]


def environment(step: dict[str, Any], folder: Path, given: dict[str, str]) -> dict[str, str]:
    """What GitHub would set for a step."""
    inputs = {name: each.get("default", "") for name, each in action()["inputs"].items()}
    made = {
        name: (inputs | given)[re.findall(r"inputs\.([\w-]+)", value)[0]]
        for name, value in step["env"].items()
    }
    files = {name: str(folder / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    named = {"GITHUB_WORKSPACE": str(folder), "GITHUB_ACTION_PATH": str(ROOT)}
    return {**os.environ, "GITHUB_ACTIONS": "true", **named, **files, **made}


def step_of(name: str) -> dict[str, Any]:
    (found,) = [each for each in action()["runs"]["steps"] if each.get("name") == name]
    return dict(found)


@pytest.mark.parametrize(
    ("version", "installed"),
    [("", str(ROOT)), ("0.3", "howsure==0.3"), ('1"; touch z $(touch z)', None)],
)
def test_the_action_installs_a_release_or_its_checkout(
    tmp_path: Path, version: str, installed: str | None
) -> None:
    """A stand-in for Python writes down what it is asked; no part of an input is a command."""
    stand_in = tmp_path / "python"
    stand_in.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > asked\n', encoding="utf-8")
    stand_in.chmod(0o755)
    step = step_of("Install howsure")
    given = environment(step, tmp_path, {"version": version})
    given["PATH"] = f"{tmp_path}{os.pathsep}{given['PATH']}"
    (tmp_path / "step.sh").write_text(step["run"], encoding="utf-8")
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "step.sh"]
    assert step["shell"] == "bash"
    subprocess.run(shell, cwd=tmp_path, env=given, check=True)
    asked = (tmp_path / "asked").read_text("utf-8").splitlines()
    assert asked == ["-m", "pip", "install", installed or f"howsure=={version}"]
    assert not (tmp_path / "z").exists()


def run_step(folder: Path, **given: str) -> tuple[int, str]:
    """The step that checks, as GitHub runs it: its status and what it prints."""
    step = step_of("Check")
    assert step["shell"] == "python"
    (folder / "step.py").write_text(step["run"], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "step.py"],
        cwd=folder,
        env=environment(step, folder, given),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    told = (folder / "GITHUB_OUTPUT").read_text("utf-8")
    assert told == f"status={done.returncode}\n"
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_the_action_fails_annotates_and_writes_the_summary(tmp_path: Path) -> None:
    (tmp_path / "a folder").mkdir()
    (tmp_path / "a folder" / "rentals.csv").write_bytes(RENTALS.read_bytes())
    (tmp_path / "limits.toml").write_text('limits = [{measure = "coverage", min = 0.8}]')
    (tmp_path / "howsure.py").write_text("raise SystemExit(9)")  # of the caller, not ours
    options = {"options": TIGHT, "limits": "limits.toml", "sarif": "out.sarif"}
    code, shown = run_step(tmp_path, table="a folder/rentals.csv\n", **options)
    assert code == 1
    assert "limits: limits.toml" in shown
    (line,) = [line for line in shown.splitlines() if line.startswith("::")]
    assert line.startswith("::error file=a folder/rentals.csv,title=howsure%3A mean_width ≤ 100")
    summary = (tmp_path / "GITHUB_STEP_SUMMARY").read_text("utf-8")
    assert "- ✗ FAIL (exit 1). Limits: 1 held, 1 failed." in summary
    assert json.loads((tmp_path / "out.sarif").read_text("utf-8"))["version"] == "2.1.0"


@pytest.mark.slow
def test_the_action_passes_without_a_summary(tmp_path: Path) -> None:
    code, shown = run_step(tmp_path, table=str(RENTALS), options=LOOSE, summary="false")
    assert (code, "::" in shown) == (0, False)
    assert not (tmp_path / "GITHUB_STEP_SUMMARY").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "options", "said"),
    [
        ("$(touch z); touch z", LOOSE, "$(touch z); touch z"),
        ("--help", LOOSE, "--help"),
        (str(RENTALS), "--min '$(touch z)' ; touch z", "--min"),
    ],
)
def test_inputs_of_the_action_are_no_commands(
    tmp_path: Path, table: str, options: str, said: str
) -> None:
    code, shown = run_step(tmp_path, table=table, options=options)
    assert code == 2
    assert said in shown
    assert not (tmp_path / "z").exists()


def test_the_hook_runs_as_pre_commit_runs_it(tmp_path: Path) -> None:
    """The entry, then its arguments, then the files that changed, in the repository's root."""
    (hook,) = needs("yaml").safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert hook["language"] == "python"
    chosen = [
        name
        for name in ("out/predictions.csv", "my_Predictions_2.parquet", "data.csv", "predictions/a")
        if re.search(hook["files"], name)
    ]
    assert chosen == ["out/predictions.csv", "my_Predictions_2.parquet"]
    program, command = hook["entry"].split()
    assert (program, command) == ("howsure", "check")
    (tmp_path / "predictions.csv").write_bytes(RENTALS.read_bytes())
    (tmp_path / "other_predictions.csv").write_bytes(RENTALS.read_bytes())
    files = ("predictions.csv", "other_predictions.csv")
    assert checked(tmp_path, *TIGHT.split(), *files)[0] == 1
    table = '[tool.howsure.check]\nlimits = [{measure = "coverage", min = 0.8}]\n'
    (tmp_path / "pyproject.toml").write_text(table, encoding="utf-8")
    assert hook["require_serial"] is True
    code, shown = checked(tmp_path, *files)
    assert (code, shown.count("✓")) == (0, 3)


def test_sarif_holds_what_fails_and_what_is_in_doubt(tmp_path: Path) -> None:
    """As the standard's schema asks, and with what GitHub needs besides."""
    grouped(tmp_path / "t.csv", ("north", "south", "west"), (190, 186, 120))
    flags = ("--min-coverage", "0.9", "--max-coverage", "0.99", "--by", "region")
    words = ("t.csv", *flags, "--fail-on", "bad", "--findings", "coverage", "--sarif", "o.sarif")
    assert checked(tmp_path, *words)[0] == 1
    held = json.loads((tmp_path / "o.sarif").read_text("utf-8"))
    assert faults("sarif-2.1.0.json", held) == []
    (run,) = held["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["finding/coverage", "limit/empirical_coverage/min"]
    told = [(each["ruleId"], each["level"]) for each in run["results"]]
    least = "limit/empirical_coverage/min"
    assert told == [("finding/coverage", "error"), (least, "warning"), (least, "error")]
    for rule in rules:
        for part in ("shortDescription", "fullDescription", "help"):
            assert rule[part]["text"]
    for each in run["results"]:
        assert rules[each["ruleIndex"]]["id"] == each["ruleId"]
        (place,) = each["locations"]
        assert place["physicalLocation"]["artifactLocation"]["uri"] == "t.csv"
        assert place["physicalLocation"]["region"] == {"startLine": 1}
    prints = [each["partialFingerprints"]["primaryLocationLineHash"] for each in run["results"]]
    asked = '["t", "region=west: empirical_coverage \\u2265 0.9 at 0.9"]'
    assert prints[2] == hashlib.sha256(asked.encode()).hexdigest()
    assert len(set(prints)) == 3
    assert checked(tmp_path, "t.csv", "--min-coverage", "0.5", "--sarif", "o.sarif")[0] == 0
    held = json.loads((tmp_path / "o.sarif").read_text("utf-8"))
    assert (faults("sarif-2.1.0.json", held), held["runs"][0]["results"]) == ([], [])


def test_each_model_is_told_at_its_own_table(tmp_path: Path) -> None:
    """Below the root that GitHub names; a table elsewhere goes by its name."""
    inner = tmp_path / "repo" / "x, y:z"
    inner.mkdir(parents=True)
    grouped(inner / "a%.csv", ("n",), (100,))
    grouped(tmp_path / "b.csv", ("n",), (100,))
    words = ("a%.csv", "../../b.csv", "--min-coverage", "0.9", "--github", "--sarif", "o.sarif")
    _, shown = checked(inner, *words, GITHUB_WORKSPACE=str(tmp_path / "repo"))
    lines = [line for line in shown.splitlines() if line.startswith("::")]
    assert [line.partition(",title")[0] for line in lines] == [
        "::error file=x%2C y%3Az/a%25.csv",
        "::error file=b.csv",
    ]
    held = json.loads((inner / "o.sarif").read_text("utf-8"))
    uris = [
        each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for each in held["runs"][0]["results"]
    ]
    assert uris == ["x%2C%20y%3Az/a%25.csv", "b.csv"]


def test_hostile_names_lead_nowhere(tmp_path: Path) -> None:
    """Text in SARIF, in the summary and in an annotation stays text."""
    grouped(tmp_path / "t.parquet", (HOSTILE,), (100,))
    flags = ("--min-coverage", "0.9", "--by", "region", "--github", "--sarif", "o.sarif")
    words = ("t.parquet", *flags)
    code, shown = checked(tmp_path, *words, GITHUB_STEP_SUMMARY=str(tmp_path / "s.md"))
    assert code == 1
    (line,) = [line for line in shown.splitlines() if line.startswith("::")]
    assert "title=howsure%3A region=a%2Cb%3Ac%25%0A%3A%3Aerror%3A%3A<b>" in line
    (result,) = json.loads((tmp_path / "o.sarif").read_text("utf-8"))["runs"][0]["results"]
    assert r'<b>\[x\](http://y){{0}}\\"$(touch z)' in result["message"]["text"]
    tokens = MarkdownIt().parse((tmp_path / "s.md").read_text("utf-8"))
    inner = [part for token in tokens for part in token.children or []]
    assert {part.type for part in inner} == {"text"}
    assert [token.tag for token in tokens if token.type == "heading_open"] == ["h1"]


def test_the_summary_is_added_and_begins_with_what_fails(tmp_path: Path) -> None:
    grouped(tmp_path / "t.csv", ("north", "south"), (190, 120))
    (tmp_path / "s.md").write_text("# before\n", encoding="utf-8")
    words = ("t.csv", "--min-coverage", "0.9", "--by", "region")
    named = {"GITHUB_STEP_SUMMARY": str(tmp_path / "s.md")}
    assert checked(tmp_path, *words, **named)[0] == 1
    assert (tmp_path / "s.md").read_text("utf-8") == "# before\n"
    assert checked(tmp_path, *words, "--github", "--json", **named)[0] == 1
    before, title, _, *lines = (tmp_path / "s.md").read_text("utf-8").splitlines()
    assert (before, title) == ("# before", "# howsure check")
    assert [line[:4] for line in lines] == ["- ✗ ", "- ✗ ", "- ✓ "]
    assert "region=south" in lines[1]


def test_junit_is_of_the_form_that_its_readers_share(tmp_path: Path) -> None:
    """Cases that pass, that are in doubt, and that fail; and names of strangers."""
    schema = needs("xmlschema").XMLSchema(SCHEMAS / "junit.xsd")
    grouped(tmp_path / "t.parquet", ("north", "south", HOSTILE), (195, 186, 120))
    words = ("t.parquet", "--min-coverage", "0.93", "--by", "region", "--junit", "o.xml")
    assert checked(tmp_path, *words)[0] == 1
    text = (tmp_path / "o.xml").read_text("utf-8")
    assert [text.count(tag) for tag in ("<system-out", "<skipped ", "<failure ")] == [1, 1, 1]
    assert schema.is_valid(text)
    assert checked(tmp_path, "t.parquet", "--min-coverage", "0.5", "--junit", "o.xml")[0] == 0
    assert schema.is_valid((tmp_path / "o.xml").read_text("utf-8"))
    for right, wrong in (
        (' time="0"', ""),
        ('tests="3"', 'tests="x"'),
        (' type="fails"', ""),
        ("<skipped ", "<passed "),
        (' classname="t"', ""),
    ):
        assert right in text
        assert not schema.is_valid(text.replace(right, wrong)), right
