"""`howsure mcp`: the commands as tools of a server that agents call, over stdin and stdout.

Tools take the options that agents need, and return what programs read. They read and write within
one folder, nothing is overwritten, and no code that a caller names is loaded. What goes wrong is
told in the fields of a call.
"""

from __future__ import annotations

import inspect
import json
import os
import shlex
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial, wraps
from importlib.resources import files as resources_of
from pathlib import Path
from typing import Any, Final, Literal

from howsure._version import __version__
from howsure.cli.assess import judged as assessed
from howsure.cli.check import judged as checked
from howsure.cli.check import outcome, rules_for
from howsure.cli.entry import echo, ended
from howsure.cli.flags import expand, keyword
from howsure.cli.options import FitFlags, ReadOptions, TableFlags
from howsure.cli.recalibrate import serve_table
from howsure.core.errors import HowsureError, InputError, asked_in, cut_text, system_line
from howsure.core.optional import require
from howsure.core.options import NAMES, options_of, with_names, words_of
from howsure.core.registry import check_known
from howsure.core.schemas import schema
from howsure.core.text import clean
from howsure.engine.catalogue import catalogue
from howsure.inputs.places import fixed_folder, is_address, is_folder, is_pattern, places
from howsure.inputs.roles import NAMES_OUTSIDE, ROLES
from howsure.inputs.source import split_sheet
from howsure.recalibration import METHODS
from howsure.report.check import rules_from
from howsure.report.improve import improve as improved
from howsure.report.options import Options
from howsure.report.plain import key_records, verdict_parts
from howsure.report.recalibrate import recalibrate as recalibrated
from howsure.verdict.findings import questions

_ROLES: Final = {role.name: role for role in ROLES if role.name not in NAMES_OUTSIDE}
"""What columns may be named for."""
_PATHS: Final = ("file", "files", "calibration", "output", "rules")
"""Arguments that name files."""
_VERDICT: Final = ("command", "facts", "answer", "verdict", "findings", "advice")
"""What is returned of a report, beside its key numbers."""
_MEASURE: Final = ("name", "title", "meaning", "formula", "source", "beware")
"""What is told of a measure."""
_INSTRUCTIONS: Final = (
    "howsure checks the calibration and coverage of predictions with uncertainty, or of label "
    "sets, against outcomes. Call assess first: its answer tells you whether to trust the "
    "uncertainty. "
    "explain describes a finding; improve recalibrates new predictions and verifies on held-out "
    "rows; recalibrate does one step without verification; check gates predictions. "
    "Program against id and state of findings. The state undecided is inconclusive: evidence "
    "neither of a fault nor of its absence."
)
_ARGUMENTS: Final = {
    "file": "Table of new predictions of one model; y is optional.",
    "files": "Tables with y and predictions (.csv, .parquet, .xlsx, …). Each further table is "
    "another model.",
    "columns": "Columns by role, for names that are not recognised, such as "
    '`{"y": "demand", "lower": "lo", "upper": "hi", "coverage": 0.9, "groups": ["region"], '
    f'"time": "date"}}`. Roles: `{", ".join(_ROLES)}`.',
    "rules": "Limits, with the keys of a TOML file of limits, such as "
    '`{"limits": [{"measure": "coverage", "min": 0.85, "by": ["region"]}], "fail_on": "bad"}`; '
    "or the path of such a file.",
    "calibration": "Held-out table with y and predictions of the same model; or a .json file of a "
    "saved recalibration.",
    "output": "New table to write, such as recalibrated.csv; it must not exist yet.",
    "until_right": "Repeat until nothing helps or a step is not confirmed; otherwise one step.",
    "finding": "id of a finding, such as coverage or groups.",
    **{
        item.name: with_names(item.flag.help)
        for kind in (ReadOptions, Options, FitFlags)
        for item in options_of(kind)
        if item.flag.tools
    },
}
"""What an argument means, in every tool that has it."""
# Tables of a call, which are as many models: others wait until it is done. As many models as a
# table may hold.
_MAX_FILES: Final = 100
# Characters of an error: it repeats names that it was given, and a model reads all of it.
_MAX_CHARACTERS: Final = 2_000
_ONE: Final = threading.Lock()
"""Calls wait for each other: threads of linear algebra are limited for the whole process."""


def with_options(work: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """A tool that takes options one by one, and its function objects of them."""

    def declare(kind: type[Any], *, partial: bool) -> list[inspect.Parameter]:
        return [
            keyword(item, list[str] if item.kind == NAMES else item.kind)
            for item in options_of(kind)
            if work.__name__ in item.flag.tools.split()
        ]

    parameters, gather = expand(work, declare)

    @wraps(work)
    def call(*args: Any, **arguments: Any) -> dict[str, Any]:
        return work(*args, **gather(arguments))

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def run(root: Path, *, skill: bool = False) -> None:
    """Serve until the client leaves; or print the page that teaches an agent the commands."""
    if skill:
        for line in resources_of("howsure").joinpath("SKILL.md").read_text("utf-8").splitlines():
            echo(line)
        return
    os.chdir(root)
    server(Path()).run("stdio")


def server(root: Path) -> Any:
    """The server with its tools, which read and write within a folder alone."""
    protocol = require("mcp.server.mcpserver", extra="mcp")
    tool = partial(_tool_within, root.resolve())
    return protocol.MCPServer(
        "howsure",
        instructions=_INSTRUCTIONS,
        version=__version__,
        tools=[
            tool(assess, _verdict_form()),
            tool(check, _published("check")),
            tool(recalibrate, reads=False),
            tool(improve, _published("improvement"), reads=False),
            tool(explain),
        ],
        log_level="WARNING",
    )


@with_options
def assess(
    files: list[str],
    columns: dict[str, Any] | None = None,
    *,
    read: ReadOptions,
    options: Options,
) -> dict[str, Any]:
    """Assess predictions with uncertainty: coverage, calibration, groups, widths, skill.

    Reads tables with y and intervals, quantiles, distributions, samples or label sets.
    Returns an answer (yes, partly, no or unknown) and the verdict in sentences. Returns each
    finding with its id, state, effect, 95 % interval and p-value, and the key numbers with their
    errors. Returns advice on recalibration, and the command that shows the same on a terminal.
    Writes nothing.
    """
    read = _reading(columns, read)
    command = shlex.join(["howsure", "assess", *files, *read.words(), *words_of(options)])
    result = assessed(_paths(files), read, options, command=command)
    document = result.brief_document()
    parts = verdict_parts(document)
    _, rows = key_records(document.records)
    numbers = [record.as_dict() for row in rows for record in row if record is not None]
    return {**{name: parts[name] for name in _VERDICT}, "records": numbers}


@with_options
def check(
    files: list[str],
    rules: dict[str, Any] | str,
    columns: dict[str, Any] | None = None,
    *,
    read: ReadOptions,
    options: Options,
) -> dict[str, Any]:
    """Check predictions against limits on measures, with their sampling uncertainty.

    Returns what `howsure check --json` prints: exit 1 if a limit fails, else 0; a summary; and each
    limit and finding with its state, value and confidence bounds. A limit fails only if it is shown
    to be broken; inconclusive limits are undecided. Writes nothing.
    """
    if isinstance(rules, str):
        wanted_rules, source = rules_for(Path(rules), (), {})
    else:
        wanted_rules, source = rules_from(rules, "rules"), ""
    read = _reading(columns, read)
    result, of_files, _ = checked(_paths(files), wanted_rules, source, options, read)
    fields: dict[str, Any] = json.loads(outcome(result, source, of_files))
    return fields


@with_options
def recalibrate(
    file: str,
    calibration: str,
    output: str,
    columns: dict[str, Any] | None = None,
    *,
    fit: FitFlags,
    read: ReadOptions,
) -> dict[str, Any]:
    """Recalibrate new predictions with a held-out table, and write them to a new file.

    Fits to the rows of one table, which have y, and applies the fit to another. The new table has
    every column of the old one, and recalibrated ones after them. Returns the fit and its
    guarantees in sentences, the methods, the number of rows and the files written. Never
    overwrites a file. To measure the effect, assess rows that were not used to fit.
    """
    target, read = _fresh(output), _reading(columns, read)
    done = serve_table(
        recalibrated,
        file,
        Path(calibration),
        TableFlags(output=target),
        read,
        method=fit.method,
        by=fit.by,
        since=fit.since,
        coverage=read.assessed[0] if read.assessed else None,
    )
    return {
        "sentences": list(done.lines()),
        "methods": dict(done.fitted.methods),
        "rows": done.served,
        "written": list(map(str, done.files)),
    }


@with_options
def improve(
    calibration: str,
    file: str | None = None,
    output: str | None = None,
    until_right: bool = True,
    columns: dict[str, Any] | None = None,
    *,
    read: ReadOptions,
) -> dict[str, Any]:
    """Recalibrate, as often as that helps, and verify each step on held-out rows.

    Splits the held-out table: some rows are used to fit, the others only to verify. Accepts a step
    only if the verification rows confirm it, with one error rate for all steps. Returns what
    `howsure schema improvement` describes: each step with its result, and the findings of the
    verification rows before and after. With file and output, writes the new table. Never
    overwrites a file.
    """
    if (file is None) != (output is None):
        raise InputError("file and output must be given together")
    target = None if output is None else _fresh(output)
    read = _reading(columns, read)
    improvement = improved(
        calibration,
        until_right=until_right,
        coverages=read.assessed,
        **read.reading,
        **read.columns,
    )
    if file is not None and target is not None:
        table = TableFlags(output=target)
        serve_table(recalibrated, file, improvement.fitted, table, read)
    fields: dict[str, Any] = json.loads(improvement.to_json())
    return fields


def explain(finding: str) -> dict[str, Any]:
    """Explain a finding of assess or check by its id: its question, measures and remedies.

    Returns the question, the unit of its effect, and the largest effect to ignore. Returns the
    measures that are tested, with their meaning, formula and pitfalls. Returns the
    recalibration methods for it, what the model needs if none helps, and the meaning of each
    state.
    """
    check_known(finding, questions(), "finding")
    question, entries = questions()[finding], catalogue()
    measures = [entries[name] for name in question.measures if name in entries]
    return {
        "id": question.id,
        "question": question.asked,
        "unit": question.unit,
        "tolerance": question.tolerance,
        "measures": [
            {name: getattr(measure, name) for name in _MEASURE if getattr(measure, name)}
            for measure in measures
        ],
        "methods": {
            method.name: method.words.format(by="the columns of `by`")
            for method in METHODS.values()
            if finding in method.aims
        },
        "needs": question.needs.format(where="this part"),
        "states": schema("findings")["$defs"]["state"]["description"],
    }


def _reading(columns: Mapping[str, Any] | None, read: ReadOptions) -> ReadOptions:
    """How tables are read; a role that may have several columns takes one, too."""
    roles: Any = {}
    for name, value in (columns or {}).items():
        check_known(name, _ROLES, "role in columns")
        roles[name] = [value] if _ROLES[name].repeats and not isinstance(value, list) else value
    return replace(read, columns=roles)


def _fresh(output: str) -> Path:
    """The place of a new file, where none is yet, nor a link to one that may come."""
    target = Path(output)
    if os.path.lexists(target):
        raise InputError(f"output must be a file that does not exist yet, got {output!r}")
    return target


def _check_within(root: Path, arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that lead out of a folder, by whatever links."""
    for name in _PATHS:
        value = arguments.get(name)
        for text in value[: _MAX_FILES + 1] if isinstance(value, list) else [value]:
            if not isinstance(text, str):
                continue
            path = split_sheet(text)[0]
            paths = [fixed_folder(path) if is_pattern(path) else path]
            if not is_address(path) and _is_within(root, paths[0]):
                if is_pattern(path) or is_folder(path):
                    paths += [location.path for location in places(path).places]
                if all(_is_within(root, part_of_path) for part_of_path in paths):
                    continue
            raise InputError(
                f"{name} must be in the folder of this server, {str(root)!r}, got {text!r}"
            )


def _is_within(root: Path, path: str) -> bool:
    try:
        return Path(os.path.realpath(path)).is_relative_to(root)
    except ValueError:  # of a name that no file has
        return True


def _paths(files: list[str]) -> list[Path]:
    if not 0 < len(files) <= _MAX_FILES:
        raise InputError(f"files must name 1 to {_MAX_FILES} tables, got {len(files):,}")
    return [Path(name) for name in files]


# The protocol


def _published(name: Literal["report", "check", "improvement"]) -> dict[str, Any]:
    """A form's schema without the name of its draft, which is the protocol's own."""
    form = schema(name)
    for definition in (form, *form["$defs"].values()):
        definition.pop("$schema", None)
    return form


def _verdict_form() -> dict[str, Any]:
    """The form of what is returned of a report."""
    report = _published("report")
    names = (*_VERDICT, "records")
    return {
        "type": "object",
        "properties": {name: report["properties"][name] for name in names},
        "required": list(names),
        "additionalProperties": False,
        "$defs": report["$defs"],
    }


def _tool_within(
    root: Path,
    work: Callable[..., dict[str, Any]],
    form: dict[str, Any] | None = None,
    *,
    reads: bool = True,
) -> Any:
    """A function as a tool of the server: its docstring, its arguments, the form it returns."""
    types = require("mcp.types", extra="mcp")
    tools = require("mcp.server.mcpserver.tools", extra="mcp")
    paragraphs = (" ".join(paragraph.split()) for paragraph in (work.__doc__ or "").split("\n\n"))
    tool = tools.Tool.from_function(
        _tool_call(root, work),
        description="\n\n".join(paragraphs),
        annotations=types.ToolAnnotations(
            read_only_hint=reads,
            destructive_hint=False,
            idempotent_hint=reads,
            open_world_hint=False,
        ),
        structured_output=False,
    )
    tool.fn_metadata.output_schema = form or {"type": "object"}
    for name, entry in tool.parameters["properties"].items():
        entry["description"] = _ARGUMENTS[name]
    return tool


def _tool_call(root: Path, work: Callable[..., dict[str, Any]]) -> Callable[..., Any]:
    """A function whose result is one of the protocol, and whose errors are those of a tool."""
    types = require("mcp.types", extra="mcp")
    failed = require("mcp.server.mcpserver.exceptions", extra="mcp").ToolError

    @wraps(work)
    def call(**arguments: Any) -> Any:
        try:
            with _ONE, asked_in("fields"):
                _check_within(root, arguments)
                text = clean(json.dumps(work(**arguments), ensure_ascii=False, allow_nan=False))
        except HowsureError as error:
            raise failed(cut_text(str(error), _MAX_CHARACTERS)) from error
        except OSError as error:
            raise failed(system_line(error)) from error
        except Exception as error:
            raise failed(ended(error)[1]) from error
        content = [types.TextContent(type="text", text=text)]
        return types.CallToolResult(content=content, structured_content=json.loads(text))

    return call
