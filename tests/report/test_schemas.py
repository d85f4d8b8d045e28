"""Schemas of what programs read: sound, true of every output, and changed with a version alone."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from typer.testing import CliRunner

import howsure
from extras import needs
from forms import faults, metadata, of_text
from golden.make import CASES, INPUTS, read
from howsure.cli import check as telling
from howsure.cli.main import app
from howsure.core.errors import InputError
from howsure.core.records import Direction, Notion
from howsure.core.schemas import SchemaName
from howsure.engine.finding import State as FindingState
from howsure.inputs import Loaded
from howsure.predictions import Distribution, EvalSet, Intervals, LabelSets, Quantiles, Samples
from howsure.recalibration import FittedRecalibration, recalibrate
from howsure.recalibration.serialization import FORMAT as RECALIBRATION
from howsure.recalibration.serialization import VERSION, TaughtScale
from howsure.report import check as checking
from howsure.report import improve as improving
from howsure.report import plain
from howsure.report.assess import assess_loaded
from howsure.report.check import Rules, check, limit_of
from howsure.report.document import Document, GlossaryEntry, Section, Tone
from howsure.streaming import State
from howsure.streaming import state as states
from howsure.verdict import improvement
from howsure.verdict.words import Reply

NAMES: tuple[SchemaName, ...] = get_args(SchemaName)
FORMS = {
    "urn:howsure:schema:report:1": "b08b0faaa3020447af484772178f9902",
    "urn:howsure:schema:findings:1": "6851811e871d23573916b8481dfb193f",
    "urn:howsure:schema:check:1": "3d6a83d2ecc377603a93a20803e06c63",
    "urn:howsure:schema:state:1": "936e3b3f77c8c59e16adee9e67f26f8c",
    "urn:howsure:schema:recalibration:1": "8449e54deb8b2f6ff73067a70bd2f019",
    "urn:howsure:schema:improvement:1": "9addde0e4027e217dfcacf0586c31afa",
}
"""Every version of every form, and what it was when it was made: none is changed later."""
TEXT_KEYS = ("description", "title")
FREE = {
    "report": {"facts", "columns", "labels", "options", "hover"},
    "findings": set(),
    "check": set(),
    "state": {
        *("sources", "reasons", "left_out", "joints", "claims", "columns", "dropped_by"),
        "shapes",
    },
    "recalibration": {"recalibrators"},
    "improvement": set(),
}
"""Where names are those of columns, measures or classes, which no schema can list."""


def form(held: Any) -> Any:
    """A schema without its words."""
    if isinstance(held, list):
        return [form(each) for each in held]
    if not isinstance(held, dict):
        return held
    words = {key for key in TEXT_KEYS if isinstance(held.get(key), str)}
    return {key: form(each) for key, each in held.items() if key not in words}


def parts(held: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object in a schema, with its place."""
    if isinstance(held, dict):
        yield place, held
    pairs = held.items() if isinstance(held, dict) else enumerate(held)
    for key, each in pairs:
        if isinstance(each, dict | list):
            yield from parts(each, f"{place}/{key}")


# The schemas


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_sound_and_whole(name: SchemaName) -> None:
    held = howsure.schema(name)
    needs("jsonschema").Draft202012Validator.check_schema(held)
    assert held["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    within = {each["$id"] for _, each in parts(held) if "$id" in each}
    for place, each in parts(held):
        refers = str(each.get("$ref", "#")).partition("#")[0]
        assert refers in within | {""}, place
        if each.get("type") == "object":
            assert "additionalProperties" in each, f"{place} is open"
            closed = each["additionalProperties"] is False and "properties" in each
            assert not closed or "required" in each, place


@pytest.mark.parametrize("name", NAMES)
def test_every_key_says_what_it_holds(name: SchemaName) -> None:
    for place, each in parts(howsure.schema(name)):
        held = each.get("properties", {})
        if len(held) > 1 and "description" not in held:  # of one, the object says it
            for key, value in held.items():
                assert {"description", "$ref"} & set(value), f"{place}/{key}"


@pytest.mark.parametrize("name", NAMES)
def test_a_form_changes_with_its_version_alone(name: SchemaName) -> None:
    held = howsure.schema(name)
    told = json.dumps(form(held), sort_keys=True).encode()
    assert FORMS[held["$id"]] == hashlib.sha256(told).hexdigest()[:32], (
        f"the form of {name} is another: raise the version in its $id and in what is written, "
        "and add a line to FORMS"
    )


def test_a_change_of_form_is_seen_and_other_words_are_none() -> None:
    held = howsure.schema("findings")
    other = copy.deepcopy(held)
    other["description"] = "In other words."
    assert form(other) == form(held)
    other["$defs"]["finding"]["required"].remove("where")
    assert form(other) != form(held)
    inner = {"properties": {"title": {"type": "string"}}}
    assert form(inner) == inner


def test_what_is_written_names_the_version_of_its_schema() -> None:
    def says(name: SchemaName, key: str) -> tuple[Any, str]:
        held = howsure.schema(name)
        return held["properties"][key]["const"], held["$id"].rpartition(":")[2]

    for name, key, written, words in (
        ("report", "format", plain.FORMAT, "howsure-report/{}"),
        ("check", "format", checking.FORMAT, "howsure-check/{}"),
        ("state", "form", states._FORM, "howsure state {}"),
        ("recalibration", "version", VERSION, "{}"),
        ("improvement", "format", improving.FORMAT, "howsure-improvement/{}"),
    ):
        const, version = says(name, key)  # type: ignore[arg-type]
        assert (const, str(const)) == (written, words.format(version))
    assert says("recalibration", "format")[0] == RECALIBRATION


def test_choices_are_those_of_the_code() -> None:
    report = howsure.schema("report")["$defs"]
    state = howsure.schema("findings")["$defs"]["state"]["enum"]
    assert state == list(get_args(FindingState))
    assert report["line"]["properties"]["tone"]["enum"] == list(get_args(Tone))
    assert report["answer"]["properties"]["reply"]["enum"] == list(get_args(Reply))
    for part, beside in (("record", []), ("entry", [""])):
        held = report[part]["properties"]
        assert held["direction"]["enum"] == [*Direction, *beside]
        assert held["notion"]["enum"] == [*Notion, *beside]
    proof = howsure.schema("improvement")["properties"]
    assert proof["split"]["enum"] == list(get_args(improvement.Split))
    assert proof["ended"]["enum"] == list(get_args(improvement.Ended))
    found = howsure.schema("check")
    assert found["$defs"]["limit"]["properties"]["state"]["enum"] == list(get_args(checking.State))


# What is written


@pytest.mark.parametrize("case", [case for case in CASES if ".json" in read(case)])
def test_golden_reports_are_of_the_form(case: str) -> None:
    held = json.loads(read(case)[".json"])
    held.setdefault("glossary", [])  # which most golden files leave out
    assert faults("report", held) == []
    assert faults("findings", held["findings"]) == []


def rows(kind: str, n: int = 80) -> EvalSet:
    """A few rows of one kind of prediction, with groups, an input and times."""
    rng = np.random.default_rng(3)
    mean, sd = rng.normal(size=n), np.exp(rng.uniform(-0.5, 0.5, n))
    y = mean + 1.2 * sd * rng.normal(size=n)
    made: dict[str, Any] = {
        "laws": lambda: Distribution.normal(mean, sd),
        "samples": lambda: Samples(mean[:, None] + rng.normal(size=(n, 9))),
        "quantiles": lambda: Quantiles([0.1, 0.5, 0.9], mean[:, None] + [-1.3, 0.0, 1.3]),
        "intervals": lambda: Intervals(mean - sd, mean + sd, coverage=0.8),
        "sets": lambda: LabelSets(rng.random((n, 3)) > 0.3, 0.8, rng.dirichlet(np.ones(3), n)),
        "points": lambda: (),
    }
    return EvalSet.checked(
        rng.integers(3, size=n).astype(np.float64) if kind == "sets" else y,
        made[kind](),
        point=mean if kind == "points" else None,
        features={"x": rng.uniform(size=n)},
        groups={"region": rng.choice(["north", "south"], n)},
        time=np.datetime64("2024-01-01", "D") + np.arange(n),
    )


KINDS = ("laws", "samples", "quantiles", "intervals", "sets", "points")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_reports_and_checks_of_every_kind_of_prediction(kind: str) -> None:
    held = rows(kind)
    assert (
        of_text(
            "report",
            assess_loaded(Loaded(evalsets=(held,)), howsure.Options(trials=False)).to_json(),
        )
        == []
    )
    metric = "mae" if kind == "points" else "coverage"
    limits = (limit_of(metric, "max", 1.0), limit_of(metric, "min", 0.1, by=("region",)))
    found = check([held], Rules(limits=limits, fail_on="caution"))
    for source, files in (("", ""), ("limits.toml", "2 files, 80 rows")):
        assert of_text("check", telling.outcome(found, source, files)) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "time.csv --time day --lead 2 --season 7",
        "two_models.csv --row-id row --model model",
        "clusters.csv --groups site --no-rows",
        "weights.csv --weights share --weights-kind importance",
        "normal.csv --baseline climatology --also skce",
    ],
)
def test_reports_and_checks_of_tables(command: str, tmp_path: Path) -> None:
    table, *flags = command.split()
    place = [str(INPUTS / table), *flags]
    done = CliRunner().invoke(app, ["assess", *place, "--json"])
    assert of_text("report", done.stdout) == []
    flags = [each for each in place if each not in ("--also", "skce")]
    done = CliRunner().invoke(app, ["check", *flags, "--min", "coverage=0.8", "--json"])
    assert of_text("check", done.stdout) == []


STATES = (
    "points.csv",
    "time.csv --time day",
    "clusters.csv --cluster site",
    "weights.csv --weights share --weights-kind importance",
    "quantiles.csv",
    "ensemble.csv",
    "two_coverages.csv",
    "counts.csv --law poisson:mu=mu",
)


@pytest.mark.slow
@pytest.mark.parametrize("command", STATES)
def test_states_of_every_kind_of_table(command: str, tmp_path: Path) -> None:
    table, *flags = command.split()
    place = tmp_path / "day.arrow"
    given = ["assess", str(INPUTS / table), *flags, "--state", str(place), "--quiet"]
    done = CliRunner().invoke(app, [*given, "-o", str(tmp_path / "day.json")])
    assert done.exit_code == 0, done.output
    assert of_text("state", metadata(place)) == []
    assert of_text("report", (tmp_path / "day.json").read_text("utf-8")) == []
    twice = tmp_path / "twice.arrow"
    State.open(place).save(twice)
    assert of_text("state", metadata(twice)) == []


@pytest.mark.slow
def test_a_state_of_two_models_with_groups_and_gaps(tmp_path: Path) -> None:
    lines = ["y,a_lower_90,a_upper_90,b_lower_90,b_upper_90,site,hour"]
    lines += [f"{k % 7}.5,{k % 5},8,{k % 3},{k % 3 + 5},{'pq'[k % 2]},{k % 4}" for k in range(60)]
    lines += [",1,8,0,5,p,1"]
    table, place = tmp_path / "day.csv", tmp_path / "day.arrow"
    table.write_text("\n".join(lines), "utf-8")
    given = ["assess", str(table), "--groups", "site,hour", "--missing", "drop", "--quiet"]
    done = CliRunner().invoke(app, [*given, "--state", str(place), "-o", f"{place}.json"])
    assert done.exit_code == 0, done.output
    held = json.loads(metadata(place))
    assert faults("state", held) == []
    assert len(held["facts"]["models"]) == 2
    assert held["facts"]["dropped_by"] == {"y": 1}
    assert held["facts"]["models"][0]["cells"]["labels"] == [["p", "q"], [0, 1, 2, 3]]


# What is refused


def samples() -> dict[SchemaName, Any]:
    """A small output of each form, as plain values; of every list the first item."""
    held = rows("laws", 60)
    report = json.loads(assess_loaded(Loaded(evalsets=(held,))).to_json())
    found = check([held], Rules(limits=(limit_of("coverage", "min", 0.5),), fail_on="bad"))
    improved = improving.improve(rows("intervals", 400))
    assert improved.rows.steps
    learnt = recalibrate(held, held, method="shift").recalibrators
    fitted = FittedRecalibration(
        recalibrators=learnt,
        by=("region",),
        features={"x": "number"},
        scales=TaughtScale.of(held),
        facts=("80 of 90 rows taught.",),
    )
    return {
        "report": _short(report),
        "findings": report["findings"][:1],
        "check": _short(json.loads(telling.outcome(found, "limits.toml", "2 files"))),
        "recalibration": json.loads(fitted.to_json()),
        "improvement": _short(json.loads(improved.to_json())),
    }


def state_of(folder: Path) -> Any:
    place = folder / "day.arrow"
    given = ["assess", str(INPUTS / "clusters.csv"), "--cluster", "site", "--quiet"]
    CliRunner().invoke(app, [*given, "--state", str(place), "-o", str(folder / "day.json")])
    return _short(json.loads(metadata(place)))


def _short(held: Any) -> Any:
    """Plain values with the first item of every list of objects or of numbers."""
    if isinstance(held, dict):
        return {key: _short(each) for key, each in held.items()}
    if isinstance(held, list) and held and isinstance(held[0], dict):
        return [_short(held[0])]
    return held


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[SchemaName, Any]:
    return {**samples(), "state": state_of(tmp_path_factory.mktemp("state"))}


Path_ = tuple[str | int, ...]


def keys(held: Any, free: set[str], place: Path_ = ()) -> Iterator[Path_]:
    """The place of every key that a schema must know."""
    if isinstance(held, list):
        for number, each in enumerate(held):
            yield from keys(each, free, (*place, number))
    elif isinstance(held, dict):
        for key, each in held.items():
            yield (*place, key)
            if key not in free:
                yield from keys(each, free, (*place, key))


def altered(held: Any, place: Path_, change: Any) -> Any:
    """The same, with the object that holds a key changed."""
    made = copy.deepcopy(held)
    inner = made
    for step in place[:-1]:
        inner = inner[step]
    change(inner, place[-1])
    return made


OPTIONAL = {"check": {"files"}, "state": {"missing_values"}, "recalibration": {"facts"}}


def renamed(inner: dict[str, Any], key: str) -> None:
    inner[f"{key}_"] = inner.pop(key)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_key_that_is_gone_or_has_another_name_or_is_new_is_refused(
    name: SchemaName, outputs: dict[SchemaName, Any]
) -> None:
    held = outputs[name]
    assert faults(name, held) == []
    places = list(keys(held, FREE[name]))
    assert len(places) > 15
    for place in places:
        if place[-1] not in OPTIONAL.get(name, ()):
            gone = altered(held, place, lambda inner, key: inner.pop(key))
            assert faults(name, gone), f"{place} may be missing"
        assert faults(name, altered(held, place, renamed)), f"{place} may be called otherwise"
        more = altered(held, place, lambda inner, key: inner.update(another=1))
        assert faults(name, more), f"beside {place} another key may be"


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("report", ("format",), "howsure-report/2"),
        ("report", ("answer", "reply"), "maybe"),
        ("report", ("verdict", 0, "tone"), "loud"),
        ("report", ("findings", 0, "state"), "holds"),
        ("report", ("records", 0, "value"), "NaN"),
        ("report", ("records", 0, "direction"), "better"),
        ("report", ("records", 0, "notion"), "global"),
        ("report", ("records", 0, "exact"), "some"),
        ("report", ("curves", 0, "x"), None),
        ("report", ("curves", 0, "y"), [True]),
        ("report", ("tables", 0, "columns"), {"a": [[1.0]]}),
        ("report", ("facts",), {"rows": 3}),
        ("findings", (0, "effect"), "large"),
        ("check", ("exit",), 2),
        ("check", ("limits", 0, "state"), "good"),
        ("check", ("limits", 0, "limit"), None),
        ("check", ("findings", 0, "state"), "holds"),
        ("check", ("confidence",), 0.5),
        ("state", ("form",), "howsure state 2"),
        ("state", ("hash",), "0"),
        ("state", ("facts", "rows"), -1),
        ("state", ("facts", "units"), {}),
        ("improvement", ("ended",), "tired"),
        ("improvement", ("steps", 0, "proof", "p"), "small"),
        ("improvement", ("error_rate",), 2.0),
        ("recalibration", ("version",), 2),
        ("recalibration", ("mend", "kept.Mend", "scales", 0, "kept.TaughtScale", "reach"), None),
        ("recalibration", ("mend", "kept.Mend", "recalibrators", 0), {"a": 1, "b": 2}),
        ("recalibration", ("mend", "kept.Mend", "features"), {"mapping": [["x", "date"]]}),
    ],
)
@pytest.mark.slow
def test_a_value_of_another_kind_is_refused(
    name: SchemaName, place: Path_, value: Any, outputs: dict[SchemaName, Any]
) -> None:
    def put(inner: Any, key: Any) -> None:
        inner[key] = value

    assert faults(name, altered(outputs[name], place, put))


def test_what_tests_write_is_held_to_its_form() -> None:
    """The instrument is not blind, nor away."""
    needs("jsonschema")
    entry = GlossaryEntry(name="a", direction="odd")
    odd = Document(title="t", opening=Section(title=""), glossary=(entry,))
    with pytest.raises(AssertionError, match="odd"):
        odd.to_json()


# The command


def test_the_command_prints_the_schema_or_writes_it(tmp_path: Path) -> None:
    for name in NAMES:
        shown = CliRunner().invoke(app, ["schema", name])
        assert json.loads(shown.stdout) == howsure.schema(name)
    place = tmp_path / "report.schema.json"
    shown = CliRunner().invoke(app, ["schema", "report", "-o", str(place)])
    assert shown.stdout == f"written: {place}\n"
    assert json.loads(place.read_text("utf-8")) == howsure.schema("report")


def test_an_unknown_schema_is_refused() -> None:
    with pytest.raises(InputError, match="name must be one of report, findings"):
        howsure.schema("reports")  # type: ignore[arg-type]
    shown = CliRunner().invoke(app, ["schema", "reports"])
    assert shown.exit_code == 2
    assert "'reports' is not one of 'report', 'findings'" in shown.output
