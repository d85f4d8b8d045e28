"""`howsure check`: limits that a pipeline must hold, judged with the data's own uncertainty."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote
from xml.etree import ElementTree

from howsure._version import __version__
from howsure.cli.entry import echo
from howsure.cli.flags import address
from howsure.cli.options import LimitFlags, NamedLimits, OutcomeFlags, ReadOptions
from howsure.cli.terminal import SIGNS, Console, escape
from howsure.core.errors import InputError, within
from howsure.core.files import atomic_write, check_outputs
from howsure.core.options import spelled
from howsure.core.text import legible
from howsure.inputs.tables import FILES
from howsure.report.check import (
    PYPROJECT,
    TABLE,
    Answer,
    CheckResult,
    Limit,
    LimitOutcome,
    Rules,
    check,
    check_new,
    limit_of,
    limits_named,
    project_rules,
    read_rules,
    with_more,
)
from howsure.report.coercion import check_coverage_is_used, columns_of
from howsure.report.document import Document, Section, Tone, VerdictLine
from howsure.report.no_rows import check_no_state, new_without_rows, without_rows
from howsure.report.options import Options


def parse_limits(
    named: Mapping[str, float | None], least: Sequence[str], most: Sequence[str]
) -> tuple[Limit, ...]:
    """Limits from flags such as ``--min-coverage 0.88`` and ``--max crps=2``."""
    limits = limits_named(named, spelled)
    for side, texts in (("min", least), ("max", most)):
        for text in texts:
            metric, sign, number = text.partition("=")
            if not sign:
                raise InputError(f"--{side} must look like MEASURE=LIMIT, got {text!r}")
            try:
                value = float(number)
            except ValueError:
                value = math.nan
            if math.isnan(value):
                raise InputError(f"--{side} {metric} must be a number, got {number!r}")
            limits.append(_limit(f"--{side}", metric, side, value))
    return tuple(limits)


def _limit(flag: str, metric: str, side: Any, value: float) -> Limit:
    with within(flag):
        return limit_of(metric, side, value)


def rules_for(
    path: Path | None, limits: Sequence[Limit], changes: Mapping[str, Any]
) -> tuple[Rules, str]:
    """The rules of a file, or else of the current folder's project, with what flags add.

    And the name of the file. A project's own rules serve where the flags name nothing to judge.
    """
    source, written = "", None
    if path is not None:
        source, written = str(path), read_rules(path)
    elif not limits and changes.get("fail_on") is None:
        written = project_rules(Path())
        source = "" if written is None else f"{PYPROJECT} [{TABLE}]"
    rules = with_more(written or Rules(), limits, **changes)
    if not rules.judges:
        raise InputError(
            "check needs a limit, such as --min-coverage 0.88, --limits FILE, --fail-on bad or "
            f"[{TABLE}] in {PYPROJECT}, got none"
        )
    return rules, source


def run(
    files: Sequence[Path],
    limits: LimitFlags,
    bounds: NamedLimits,
    rules: Mapping[str, Any],
    shown: OutcomeFlags,
    reference: Path | None,
    options: Options,
    read: ReadOptions,
) -> bool:
    """Judge every finding and every limit, and tell of them; true if one fails.

    Where nothing is said of GitHub, its own variable decides whether it hears.
    """
    named_limits = parse_limits(asdict(bounds), limits.least, limits.most)
    all_rules, source = rules_for(limits.limits, named_limits, rules)
    inputs = [*files, *filter(None, [reference]), *([Path(source)] if source else [])]
    check_outputs(shown.written, inputs)
    if options.no_rows:
        check_no_state(read.large.state)
    result, of_files, models = judged(files, all_rules, source, options, read, reference)
    paths = places_of(files, models)
    if shown.junit is not None:
        atomic_write(shown.junit, junit_of(result))
    if shown.sarif is not None:
        atomic_write(shown.sarif, sarif_of(result, paths))
    if shown.json:
        for line in outcome(result, source, of_files).split("\n"):
            echo(line.replace("\x7f", "\\u007f"))
    else:
        _print(result, source, of_files)
    github = shown.github
    if os.environ.get("GITHUB_ACTIONS") == "true" if github is None else github:
        for line in annotated(result, paths):
            echo(line, error=shown.json)
        if path := os.environ.get("GITHUB_STEP_SUMMARY"):
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(summary(result, source, of_files))
    if shown.repeated:
        echo(_REPEATED, error=shown.json)
    return result.status == 1


_REPEATED = (
    "With repeated checks, a limit fails by chance sooner or later; howsure watch keeps its error "
    "rate however often you check."
)


def judged(
    files: Sequence[Path],
    rules: Rules,
    source: str,
    options: Options,
    read: ReadOptions,
    reference: Path | None = None,
) -> tuple[CheckResult, str, list[str]]:
    """What became of all rules, what is told of the files, and the models."""
    groups = columns_of(read.columns.get("groups"), *rules.columns)
    grouped = replace(read, columns={**read.columns, "groups": groups or None})
    if reference is not None:
        result = _of_new(files, reference, rules, options, grouped)
        return result, f"{files[0]}, with reference {reference}", [files[0].stem]
    try:
        loaded = grouped.load(list(files), options.seed)
    except InputError as error:
        if not rules.columns:
            raise
        read.load(list(files), options.seed)  # raises what is wrong without these columns too
        origin = f"by in {source}" if source else "--by"
        raise InputError(f"{origin} must name columns of groups: {error}") from error
    check_coverage_is_used(loaded, read.assessed)
    loaded = without_rows(loaded) if options.no_rows else loaded
    result = check(
        loaded.evalsets,
        rules,
        coverages=read.assessed,
        seed=options.seed,
        totals=loaded.totals,
    )
    return result, loaded.facts.get(FILES, ""), [evalset.model for evalset in loaded.evalsets]


def outcome(result: CheckResult, source: str, files: str) -> str:
    """The outcome as JSON."""
    fields = {**result.as_dict(), "source": source or None}
    return json.dumps({**fields, "files": files} if files else fields, indent=2)


def _of_new(
    files: Sequence[Path],
    reference: Path,
    rules: Rules,
    options: Options,
    read: ReadOptions,
) -> CheckResult:
    """The limits on rows without y, judged by a reference."""
    from howsure.cli.monitor import watching
    from howsure.inputs import load_unlabelled

    if len(files) != 1:
        raise InputError(f"--reference needs exactly one file, got {len(files)}")
    loaded, monitor = watching(reference, read, options)
    new = load_unlabelled(
        address(files[0]),
        loaded,
        encoding=read.encoding,
        decimal=read.decimal,
        groups=columns_of(read.columns.get("groups")),
        time=read.columns.get("time"),
    )
    new = new_without_rows(new) if options.no_rows else new
    return check_new(monitor, new, rules, name=files[0].stem, seed=options.seed)


def _print(result: CheckResult, source: str, files: str) -> None:
    """A line for each finding and each limit, and what follows from them."""
    console = Console()

    def line(sign: str, text: str) -> None:
        console.print(f"{sign}  {escape(text)}", soft_wrap=True)

    for name, text in (("limits", source), ("files", files)):
        if text:
            console.print(f"{name}: {escape(text)}", soft_wrap=True)
    for verdict in result.results:
        line(SIGNS[tone_of(verdict)], verdict.sentence)
    line(SIGNS[result.tone], result.summary)


# ---- the outcome of `howsure check` in forms that continuous integration reads -------------------

_TONES: Final[Mapping[str, Tone]] = {"holds": "good", "fails": "bad"}
"""The tone of a limit's state, where the state is no tone itself."""
_NO_XML = re.compile("[\ufffe\uffff]")
_SARIF: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_HELP: Final = (
    "A limit fails if its confidence bound shows that it is broken; --fail-on sets which findings "
    "fail. `howsure check --help-all` lists all limits and findings."
)


def tone_of(outcome: Answer | LimitOutcome) -> Tone:
    """How what became of a limit or a finding is marked."""
    if outcome.failed:
        return "bad"
    state: Any = outcome.state
    return _TONES.get(state, state)


def places_of(files: Sequence[Path], models: Sequence[str]) -> dict[str, str]:
    """The file of each model; the first where none is a model's own.

    A path below the root that GitHub names, or else the current folder; its name elsewhere.
    """
    paths = files if len(files) == len(models) else [files[0]] * len(models)
    root = Path(os.environ.get("GITHUB_WORKSPACE") or ".").resolve()
    names = [
        path.resolve().relative_to(root).as_posix()
        if path.resolve().is_relative_to(root)
        else path.name
        for path in paths
    ]
    return dict(zip(models, names, strict=True))


def _levels(result: CheckResult) -> list[tuple[str, LimitOutcome | Answer]]:
    """What fails is an error, and what is in doubt a warning."""
    return [
        ("error" if outcome.failed else "warning", outcome)
        for outcome in result.results
        if outcome.failed
        or outcome.state == ("undecided" if isinstance(outcome, LimitOutcome) else "caution")
    ]


def annotated(result: CheckResult, places: Mapping[str, str]) -> list[str]:
    """Workflow commands of GitHub, each at the table of its model.

    Source: docs.github.com, "Workflow commands for GitHub Actions"; what it escapes follows
    actions/toolkit, packages/core/src/command.ts.
    """
    commands = []
    for level, outcome in _levels(result):
        where = {"file": places[outcome.model], "title": f"howsure: {outcome.name}"}
        properties = ",".join(f"{key}={_property(value)}" for key, value in where.items())
        commands.append(f"::{level} {properties}::{_escaped(outcome.sentence)}")
    return commands


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def summary(result: CheckResult, source: str, files: str) -> str:
    """The outcome as Markdown: what follows, then what fails, then the rest."""
    outcomes = sorted(result.results, key=lambda outcome: not outcome.failed)
    lines = [VerdictLine(outcome.sentence, tone_of(outcome)) for outcome in outcomes]
    facts = {name: text for name, text in (("Limits", source), ("Files", files)) if text}
    opening = Section(title="", lines=(VerdictLine(result.summary, result.tone), *lines))
    return Document(title="howsure check", opening=opening, facts=facts).to_markdown()


def sarif_of(checked: CheckResult, places: Mapping[str, str]) -> str:
    """What fails or is in doubt as SARIF 2.1.0, with all that GitHub's code scanning asks for.

    All results lie in the first line of their table. Fingerprints tell them apart, so that one
    that was told before is not told anew.

    Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0" (2020);
    docs.github.com, "SARIF support for code scanning".
    """
    rules: dict[str, dict[str, Any]] = {}
    results = []
    for level, outcome in _levels(checked):
        rule = _rule(outcome)
        rules.setdefault(rule["id"], rule)
        file = {"uri": quote(os.fsencode(places[outcome.model])), "uriBaseId": "%SRCROOT%"}
        where = {"artifactLocation": file, "region": {"startLine": 1}}
        subject = json.dumps([outcome.model, outcome.name]).encode()
        result = {
            "ruleId": rule["id"],
            "ruleIndex": list(rules).index(rule["id"]),
            "level": level,
            "message": {"text": _message(outcome.sentence)},
            "locations": [{"physicalLocation": where}],
            "partialFingerprints": {"primaryLocationLineHash": hashlib.sha256(subject).hexdigest()},
        }
        results.append(result)
    driver = {"name": "howsure", "version": __version__, "rules": list(rules.values())}
    run = {"tool": {"driver": driver}, "results": results}
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _message(text: str) -> str:
    """Text in which SARIF sees neither a link nor a place to fill in."""
    bare = re.sub(r"([\\\[\]])", r"\\\1", legible(text))
    return bare.replace("{", "{{").replace("}", "}}")


def _rule(outcome: LimitOutcome | Answer) -> dict[str, Any]:
    """What was judged, whatever came of it."""
    if isinstance(outcome, LimitOutcome):
        limit = outcome.limit
        name, title = f"limit/{limit.metric}/{limit.side}", f"Limit on {limit.metric}"
    else:
        name, title = f"finding/{outcome.finding.id}", f"Finding {outcome.finding.id}"
    text = {"text": title}
    return {"id": name, "shortDescription": text, "fullDescription": text, "help": {"text": _HELP}}


def junit_of(result: CheckResult) -> str:
    """The outcome as JUnit's XML: a case for each finding and each limit."""
    cases = result.results
    counts = {
        "name": "howsure check",
        "tests": str(len(cases)),
        "failures": str(len(result.failed)),
        "errors": "0",
        "skipped": str(sum(map(_skipped, cases))),
    }
    suites = ElementTree.Element("testsuites", {k: v for k, v in counts.items() if k != "skipped"})
    suite = ElementTree.SubElement(suites, "testsuite", counts)
    for outcome in cases:
        names = {"classname": _xml(outcome.model), "name": _xml(outcome.name), "time": "0"}
        case = ElementTree.SubElement(suite, "testcase", names)
        text = _xml(outcome.sentence)
        if outcome.failed:
            failure = {"message": text, "type": outcome.state}
            ElementTree.SubElement(case, "failure", failure).text = text
        elif _skipped(outcome):
            ElementTree.SubElement(case, "skipped", {"message": text})
        else:
            ElementTree.SubElement(case, "system-out").text = text
    ElementTree.indent(suites)
    document = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{document}\n'


def _skipped(outcome: Answer | LimitOutcome) -> bool:
    return outcome.state == "undecided" and not outcome.failed


def _xml(text: str) -> str:
    """Text that XML 1.0 can hold; `legible` sees to all but two characters."""
    return _NO_XML.sub("\ufffd", legible(text))
