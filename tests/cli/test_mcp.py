"""`howsure mcp`: a client's whole conversation, and what each tool takes, returns and refuses."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
import warnings
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from docs.test_how_to import sentences_of
from docs.test_words import LONGEST, prose, wrong
from extras import needs
from forms import faults
from howsure.cli import mcp as served
from howsure.cli.main import app
from howsure.recalibration import METHODS
from howsure.verdict.findings import questions

RENTALS = Path(__file__).parents[2] / "examples" / "rentals.csv"
TOOLS = {
    name: getattr(served, name) for name in ("assess", "check", "recalibrate", "improve", "explain")
}
BY_DAY = {"groups": ["day"]}


@pytest.fixture
def halves(tmp_path: Path) -> tuple[Path, Path]:
    """Every other row of the hours of bicycle rentals, and the rest."""
    head, *rows = RENTALS.read_text(encoding="utf-8").splitlines()
    paths = (tmp_path / "held_out.csv", tmp_path / "new.csv")
    for start, path in enumerate(paths):
        path.write_text("\n".join([head, *rows[start::2], ""]), encoding="utf-8")
    return paths


def library() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what it imports
        return needs("mcp")


async def conversation(held_out: Path, new: Path, errors: Path) -> dict[str, Any]:
    """What comes of each call, and of what else the server wrote."""
    mcp = library()
    strange: list[Any] = []

    async def heard(message: Any) -> None:
        strange.extend([message] if isinstance(message, Exception) else [])

    start = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "howsure", "mcp"], env=dict(os.environ), cwd=new.parent
    )
    told: dict[str, Any] = {"strange": strange}
    with errors.open("w", encoding="utf-8") as log:
        async with (
            mcp.stdio_client(start, errlog=log) as streams,
            mcp.ClientSession(*streams, message_handler=heard) as client,
        ):
            told["started"] = await client.initialize()
            told["tools"] = (await client.list_tools()).tools
            told["before"] = await client.call_tool(
                "assess", {"files": [new.name], "columns": BY_DAY}
            )
            worst = told["before"].structured_content["findings"][0]["id"]
            told["explained"] = await client.call_tool("explain", {"finding": worst})
            asked = {"file": new.name, "calibration": held_out.name, "output": "out.csv"}
            asked["by"] = told["before"].structured_content["advice"]["by"]
            told["learnt"] = await client.call_tool("recalibrate", asked)
            told["after"] = await client.call_tool(
                "assess", {"files": ["out.csv"], "columns": BY_DAY}
            )
            told["proof"] = await client.call_tool(
                "improve",
                {"calibration": held_out.name, "file": new.name, "output": "improved.csv"},
            )
            rules = {"limits": [{"measure": "coverage", "min": 0.85, "by": ["day"]}]}
            for file in (new.name, "out.csv"):
                told[file] = await client.call_tool("check", {"files": [file], "rules": rules})
            told["refused"] = await client.call_tool("recalibrate", asked)
    return told


@pytest.mark.slow
def test_a_client_assesses_explains_recalibrates_and_checks(
    halves: tuple[Path, Path], tmp_path: Path
) -> None:
    told = asyncio.run(conversation(*halves, tmp_path / "errors"))
    assert told["started"].server_info.name == "howsure"
    assert "assess first" in told["started"].instructions
    assert [tool.name for tool in told["tools"]] == list(TOOLS)
    before, after = (told[name].structured_content for name in ("before", "after"))
    for held in (before, after):
        assert faults("findings", held["findings"]) == []
    worst = before["findings"][0]
    assert (before["answer"]["reply"], worst["id"], worst["state"]) == ("no", "groups", "bad")
    assert worst["where"] == "day=off"
    explained = told["explained"].structured_content
    assert explained["question"] == worst["question"]
    assert {each["name"] for each in explained["measures"]} >= {"groups_differ"}
    assert "group" in explained["methods"]
    learnt = told["learnt"].structured_content
    assert learnt["methods"] == {"intervals": "group"}
    assert (learnt["rows"], learnt["written"]) == (730, ["out.csv"])
    assert after["answer"]["reply"] != "no"
    bad = {each["id"] for each in after["findings"] if each["state"] == "bad"}
    assert not bad & {"groups", "coverage"}
    proof = told["proof"].structured_content
    assert faults("improvement", proof) == []
    assert [step["confirmed"] for step in proof["steps"]] == [True]
    assert (tmp_path / "improved.csv").exists()
    for name, exit_ in (("new.csv", 1), ("out.csv", 0)):
        assert faults("check", told[name].structured_content) == []
        assert told[name].structured_content["exit"] == exit_
    for name in ("before", "explained", "learnt", "after", "proof", "new.csv", "out.csv"):
        assert not told[name].is_error
        (block,) = told[name].content
        assert json.loads(block.text) == told[name].structured_content
        assert len(block.text) < 20_000
    assert told["refused"].is_error
    assert (
        told["refused"]
        .content[0]
        .text.endswith("output must be a file that does not exist yet, got 'out.csv'")
    )
    assert not told["strange"]  # nothing but the protocol came over stdout
    assert (tmp_path / "errors").read_text(encoding="utf-8") == ""


# Tools, in this process


def called(name: str, root: Path = Path("/"), **arguments: Any) -> str:
    """What a tool's error says."""
    library()
    answer = asyncio.run(served.server(root)._handle_call_tool(None, _Call(name, arguments)))
    assert answer.is_error
    text: str = answer.content[0].text
    assert "Traceback" not in text
    return text.removeprefix(f"Error executing tool {name}: ")


class _Call:
    """The parameters of a call."""

    def __init__(self, name: str, arguments: dict[str, Any]) -> None:
        self.name, self.arguments = name, arguments


@pytest.mark.slow
def test_tools_say_what_they_take_and_whether_they_write() -> None:
    library()
    tools = asyncio.run(served.server(Path()).list_tools())
    taken = {name for tool in TOOLS.values() for name in signature(tool).parameters}
    assert set(served._ARGUMENTS) == taken
    for tool in tools:
        told = tool.input_schema["properties"]
        assert list(told) == list(signature(TOOLS[tool.name]).parameters)
        assert all(each["description"] for each in told.values())
        assert tool.annotations.read_only_hint == (tool.name not in ("recalibrate", "improve"))
        assert not tool.annotations.destructive_hint
        assert "Returns " in tool.description
        needs("jsonschema").Draft202012Validator.check_schema(tool.output_schema)


@pytest.mark.parametrize(
    "text", [*(t.__doc__ for t in TOOLS.values()), *served._ARGUMENTS.values()]
)
def test_what_agents_read_is_short_and_in_the_fields_terms(text: str) -> None:
    told = prose(text)
    assert not wrong(told)
    for sentence in sentences_of(told):
        assert len(sentence.split()) <= LONGEST, sentence


@pytest.mark.slow
def test_assess_returns_what_the_command_writes(halves: tuple[Path, Path]) -> None:
    """And its own command, run, writes the same."""
    _, new = halves
    asked = {"columns": BY_DAY, "tolerance": 0.02, "at": [0.9], "no_rows": True}
    held = served.assess([str(new)], **asked)
    words = [*shlex.split(held["command"])[1:], "--json"]
    assert words[:2] == ["assess", str(new)]
    report = json.loads(CliRunner().invoke(app, words, catch_exceptions=False).output)
    for name in ("facts", "answer", "verdict", "findings", "advice"):
        assert held[name] == report[name], name
    numbers = [json.dumps(record) for record in report["records"]]
    assert 5 < len(held["records"]) <= 10
    assert {json.dumps(record) for record in held["records"]} <= {*numbers}
    needs("jsonschema").Draft202012Validator(served._verdict_form()).validate(held)


def test_models_of_unlike_rows_are_compared_where_that_is_asked_for(tmp_path: Path) -> None:
    head, *rows = RENTALS.read_text(encoding="utf-8").splitlines()
    named = [f"{row},{number}" for number, row in enumerate(rows)]
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for file, kept in zip(files, (named[:400], named[100:500]), strict=True):
        file.write_text("\n".join([f'{head},"id"', *kept, ""]), encoding="utf-8")
    names = [str(file) for file in files]
    told = called("assess", files=names, columns={"rows": "id"})
    assert "common_rows=true compares" in told
    assert "--" not in told
    held = served.assess(names, {"rows": "id"}, common_rows=True)
    assert "--common-rows" in held["command"]
    assert held["facts"]["Rows"] == "300"
    assert "comparison" in {each["id"] for each in held["findings"]}


def test_check_takes_a_file_of_rules(halves: tuple[Path, Path], tmp_path: Path) -> None:
    rules = tmp_path / "limits.toml"
    rules.write_text('limits = [{measure = "coverage", min = 0.6}]\n', encoding="utf-8")
    held = served.check([str(halves[1])], str(rules))
    assert (held["exit"], held["source"]) == (0, str(rules))


@pytest.mark.parametrize("finding", questions())
def test_every_finding_is_explained(finding: str) -> None:
    told = served.explain(finding)
    assert told["question"] == questions()[finding].asked
    assert list(told["methods"]) == [m.name for m in METHODS.values() if finding in m.aims]
    assert all(told["methods"].values())
    assert [each["name"] for each in told["measures"]] == list(questions()[finding].measures)
    assert "{" not in told["needs"] + "".join(told["methods"].values())
    assert all(f"{state}:" in told["states"] for state in ("bad", "good", "undecided"))


@pytest.mark.slow
def test_errors_are_told_and_nothing_is_loaded_or_overwritten(
    halves: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(halves[1])
    assert called("assess", files=["none.csv"]) == "none.csv: no such file"
    assert called("assess", files=[]) == "files must name 1 to 100 tables, got 0"
    assert called("assess", files=[file] * 101).endswith("tables, got 101")
    assert len(called("assess", files=["a" * 10**6])) < 2_100
    assert called("explain", finding="grups").endswith("got 'grups'; near: groups, class_groups")
    assert "role in columns must be one of y, " in called(
        "assess", files=[file], columns={"encode": ["day=os:system"]}
    )
    assert called("check", files=[file], rules={"limit": []}).startswith("rules: key must be")
    assert "got 90.0; did you mean 0.9?" in called("assess", files=[file], at=[90])
    before = halves[0].read_bytes()
    assert "does not exist yet" in called(
        "recalibrate", file=file, calibration=file, output=str(halves[0])
    )
    assert halves[0].read_bytes() == before
    assert "file and output must be given together" in called(
        "improve", calibration=file, file=file
    )
    gone = str(tmp_path / "no" / "such" / "out.csv")
    assert gone in called("recalibrate", file=file, calibration=file, output=gone)

    def broken(*given: Any, **options: Any) -> None:
        raise KeyError("a fault")

    monkeypatch.setattr(served, "assessed", broken)
    assert called("assess", files=[file]).startswith("internal error: KeyError: 'a fault' (")


def linked(place: Path, target: Path) -> str:
    place.symlink_to(target)
    return place.name


@pytest.mark.slow
def test_tools_read_and_write_within_a_folder(
    halves: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever leads out of it: a path, a link, a pattern, a link in a folder, an address."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root, outside, root / "parts"):
        folder.mkdir()
    inside = root / "in.csv"
    inside.write_bytes(halves[0].read_bytes())
    secret = outside / "secret.csv"
    secret.write_bytes(halves[1].read_bytes())
    (root / "parts" / "a.csv").write_bytes(inside.read_bytes())
    monkeypatch.chdir(root)
    ways = [
        *("../outside/secret.csv", str(secret), "../outside", "../outside/*.csv", "/etc/passwd"),
        *("file://" + str(secret), "http://127.0.0.1:9/a.csv", "memory://a.csv", "../*/*.csv"),
        linked(root / "link.csv", secret),
        linked(root / "folder", outside) + "/secret.csv",
        "folder/*.csv",
        "f*/*.csv",
    ]
    linked(root / "parts" / "b.csv", secret)
    for way in (*ways, "parts", "parts/*.csv"):
        assert called("assess", root, files=[way]).startswith("files must be in the folder"), way
    for name in ("file", "calibration"):
        given = {"file": "in.csv", "calibration": "in.csv", "output": "new.csv", name: ways[0]}
        assert called("recalibrate", root, **given).startswith(f"{name} must be in")
    assert called("check", root, files=["in.csv"], rules="../outside/x.toml").startswith(
        "rules must"
    )
    for output in (
        "../outside/new.csv",
        "folder/new.csv",
        linked(root / "out.csv", outside / "o.csv"),
    ):
        given = {"file": "in.csv", "calibration": "in.csv", "output": output}
        assert called("recalibrate", root, **given).startswith("output must"), output
    linked(root / "later.csv", root / "nothing.csv")
    given = {"file": "in.csv", "calibration": "in.csv", "output": "later.csv"}
    assert "does not exist yet" in called("recalibrate", root, **given)
    assert [path.name for path in outside.iterdir()] == ["secret.csv"]
    assert not (root / "nothing.csv").exists()
    assert served.assess(["in.csv"])["answer"]["reply"] in ("yes", "no", "partly", "unknown")
