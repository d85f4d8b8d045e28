"""The outcome of `howsure check` in forms that continuous integration reads."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote
from xml.etree import ElementTree

from howsure._version import __version__
from howsure.core.text import legible
from howsure.report.check import Answer, CheckResult, LimitOutcome
from howsure.report.document import Document, Section, Tone, VerdictLine

_TONES: Final[Mapping[str, Tone]] = {"holds": "good", "fails": "bad"}
"""The tone of a limit's state, where the state is no tone itself."""
_NO_XML = re.compile("[\ufffe\uffff]")
_SARIF: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_HELP: Final = (
    "A limit fails where its confidence bound proves that it is broken; a finding fails as "
    "--fail-on asks. `howsure check --help` lists what can be judged."
)


def tone_of(each: Answer | LimitOutcome) -> Tone:
    """How what became of a limit or a finding is marked."""
    if each.failed:
        return "bad"
    state: Any = each.state
    return _TONES.get(state, state)


def places_of(files: Sequence[Path], models: Sequence[str]) -> dict[str, str]:
    """The file of each model, as its repository knows it; the first where none is a model's own."""
    given = files if len(files) == len(models) else [files[0]] * len(models)
    return {model: _in_repository(path) for model, path in zip(models, given, strict=True)}


def _in_repository(path: Path) -> str:
    """A path below the root that GitHub names, or else the current folder; its name elsewhere."""
    root = Path(os.environ.get("GITHUB_WORKSPACE") or ".").resolve()
    whole = path.resolve()
    return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else path.name


def _levels(found: CheckResult) -> list[tuple[str, LimitOutcome | Answer]]:
    """What fails is an error, and what is in doubt a warning."""
    told: list[tuple[str, LimitOutcome | Answer]] = []
    for each in found.told:
        doubtful = each.state == ("undecided" if isinstance(each, LimitOutcome) else "caution")
        if each.failed or doubtful:
            told.append(("error" if each.failed else "warning", each))
    return told


def annotated(found: CheckResult, places: Mapping[str, str]) -> list[str]:
    """Workflow commands of GitHub, each at the table of its model.

    Source: docs.github.com, "Workflow commands for GitHub Actions"; what it escapes follows
    actions/toolkit, packages/core/src/command.ts.
    """
    told = []
    for level, each in _levels(found):
        where = {"file": places[each.model], "title": f"howsure: {each.name}"}
        said = ",".join(f"{key}={_property(value)}" for key, value in where.items())
        told.append(f"::{level} {said}::{_escaped(each.sentence)}")
    return told


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def summary(found: CheckResult, source: str, files: str) -> str:
    """The outcome as Markdown: what follows, then what fails, then the rest."""
    told = sorted(found.told, key=lambda each: not each.failed)
    lines = [
        VerdictLine(found.summary, found.tone),
        *(VerdictLine(each.sentence, tone_of(each)) for each in told),
    ]
    facts = {name: said for name, said in (("Limits", source), ("Files", files)) if said}
    opening = Section(title="", lines=tuple(lines))
    return Document(title="howsure check", opening=opening, facts=facts).to_markdown()


def sarif(found: CheckResult, places: Mapping[str, str]) -> str:
    """What fails or is in doubt as SARIF 2.1.0, with all that GitHub's code scanning asks for.

    All results lie in the first line of their table. Fingerprints tell them apart, so that one
    that was told before is not told anew.

    Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0" (2020);
    docs.github.com, "SARIF support for code scanning".
    """
    rules: dict[str, dict[str, Any]] = {}
    results = []
    for level, each in _levels(found):
        rule = _rule(each)
        rules.setdefault(rule["id"], rule)
        place = {"uri": quote(os.fsencode(places[each.model])), "uriBaseId": "%SRCROOT%"}
        where = {"artifactLocation": place, "region": {"startLine": 1}}
        asked = json.dumps([each.model, each.name]).encode()
        result = {
            "ruleId": rule["id"],
            "ruleIndex": list(rules).index(rule["id"]),
            "level": level,
            "message": {"text": _message(each.sentence)},
            "locations": [{"physicalLocation": where}],
            "partialFingerprints": {"primaryLocationLineHash": hashlib.sha256(asked).hexdigest()},
        }
        results.append(result)
    driver = {"name": "howsure", "version": __version__, "rules": list(rules.values())}
    run = {"tool": {"driver": driver}, "results": results}
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _message(text: str) -> str:
    """Text in which SARIF sees neither a link nor a place to fill in."""
    bare = re.sub(r"([\\\[\]])", r"\\\1", legible(text))
    return bare.replace("{", "{{").replace("}", "}}")


def _rule(each: LimitOutcome | Answer) -> dict[str, Any]:
    """What was judged, whatever came of it."""
    if isinstance(each, LimitOutcome):
        kind, title = each.limit.metric, f"Limit on {each.limit.metric}"
        name = f"limit/{kind}/{each.limit.side}"
    else:
        name, title = f"finding/{each.finding.id}", f"Finding {each.finding.id}"
    told = {"text": title}
    return {"id": name, "shortDescription": told, "fullDescription": told, "help": {"text": _HELP}}


def junit(found: CheckResult) -> str:
    """The outcome as JUnit's XML: a case for each finding and each limit."""
    cases = found.told
    counts = {
        "name": "howsure check",
        "tests": str(len(cases)),
        "failures": str(len(found.failed)),
        "errors": "0",
        "skipped": str(sum(_skipped(each) for each in cases)),
    }
    suites = ElementTree.Element("testsuites", {k: v for k, v in counts.items() if k != "skipped"})
    suite = ElementTree.SubElement(suites, "testsuite", counts)
    for each in cases:
        named = {"classname": _xml(each.model), "name": _xml(each.name), "time": "0"}
        case = ElementTree.SubElement(suite, "testcase", named)
        said = _xml(each.sentence)
        if each.failed:
            failure = {"message": said, "type": each.state}
            ElementTree.SubElement(case, "failure", failure).text = said
        elif _skipped(each):
            ElementTree.SubElement(case, "skipped", {"message": said})
        else:
            ElementTree.SubElement(case, "system-out").text = said
    ElementTree.indent(suites)
    text = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _skipped(each: Answer | LimitOutcome) -> bool:
    return each.state == "undecided" and not each.failed


def _xml(text: str) -> str:
    """Text that XML 1.0 can hold; `legible` sees to all but two characters."""
    return _NO_XML.sub("\ufffd", legible(text))
