"""`howsure check`: limits that a pipeline must hold, judged with the data's own uncertainty."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from howsure.cli.check_forms import annotated, junit, places_of, sarif, summary, tone_of
from howsure.cli.options import PartFlags, ReadOptions, address
from howsure.cli.terminal import SIGNS, Console, escape, say
from howsure.core.errors import InputError, within
from howsure.core.files import atomic_write, check_outputs
from howsure.inputs import Loaded
from howsure.inputs.tables import FILES
from howsure.report.check import CheckResult, check, check_new
from howsure.report.coercion import check_coverage_is_used, columns_of
from howsure.report.limits import (
    PYPROJECT,
    TABLE,
    Limit,
    Rules,
    limit_of,
    project_rules,
    read_rules,
    with_more,
)
from howsure.report.no_rows import check_no_state, new_without_rows, without_rows


@dataclass(frozen=True, slots=True)
class Told:
    """How the outcome is told besides; if None, GitHub's own variable decides whether it hears."""

    json: bool = False
    junit: Path | None = None
    sarif: Path | None = None
    github: bool | None = None

    @property
    def outputs(self) -> list[Path]:
        """The files that are written."""
        return [path for path in (self.junit, self.sarif) if path is not None]


def parse_limits(
    named: Mapping[str, float | None], least: Sequence[str], most: Sequence[str]
) -> tuple[Limit, ...]:
    """Limits from flags such as ``--min-coverage 0.88`` and ``--max crps=2``."""
    limits: list[Limit] = []
    for flag, given in named.items():
        if given is not None:
            side, _, metric = flag.partition("_")
            limits.append(_limit(f"--{flag.replace('_', '-')}", metric, side, given))
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
    source, held = "", None
    if path is not None:
        source, held = str(path), read_rules(path)
    elif not limits and changes.get("fail_on") is None:
        held = project_rules(Path())
        source = "" if held is None else f"{PYPROJECT} [{TABLE}]"
    rules = with_more(held or Rules(), limits, **changes)
    if not rules.judges:
        raise InputError(
            "check needs a limit, such as --min-coverage 0.88, --limits FILE, --fail-on bad or "
            f"[{TABLE}] in {PYPROJECT}, got none"
        )
    return rules, source


def run(
    files: Sequence[Path],
    rules: Rules,
    source: str,
    told: Told,
    seed: int,
    read: ReadOptions,
    parts: PartFlags | None = None,
    reference: Path | None = None,
    no_rows: bool = False,
) -> bool:
    """Judge every finding and every limit, and tell of them; true if one fails."""
    read_files = [*files, *([] if reference is None else [reference])]
    check_outputs(told.outputs, [*read_files, *([Path(source)] if source else [])])
    if no_rows:
        check_no_state(None if parts is None else parts.state)
    found, files_told, models = judged(
        files, rules, source, seed, read, parts, reference, no_rows=no_rows
    )
    places = places_of(files, models)
    if told.junit is not None:
        atomic_write(told.junit, junit(found))
    if told.sarif is not None:
        atomic_write(told.sarif, sarif(found, places))
    if told.json:
        for line in outcome(found, source, files_told).split("\n"):
            say(line.replace("\x7f", "\\u007f"))
    else:
        _print(found, source, files_told)
    github = os.environ.get("GITHUB_ACTIONS") == "true" if told.github is None else told.github
    if github:
        for line in annotated(found, places):
            say(line, error=told.json)
        _summarise(summary(found, source, files_told))
    return found.status == 1


def judged(
    files: Sequence[Path],
    rules: Rules,
    source: str,
    seed: int,
    read: ReadOptions,
    parts: PartFlags | None = None,
    reference: Path | None = None,
    *,
    no_rows: bool = False,
) -> tuple[CheckResult, str, list[str]]:
    """What became of all rules, what is told of the files, and the models."""
    if reference is None:
        loaded = _load(files, rules, source, read, parts, seed)
        check_coverage_is_used(loaded, read.assessed)
        loaded = without_rows(loaded) if no_rows else loaded
        found = check(
            loaded.evalsets, rules, coverages=read.assessed, seed=seed, totals=loaded.totals
        )
        return found, loaded.facts.get(FILES, ""), [held.model for held in loaded.evalsets]
    found = _of_new(files, reference, rules, read, parts or PartFlags(), seed, no_rows)
    return found, f"{files[0]}, watched by {reference}", [files[0].stem]


def _summarise(text: str) -> None:
    """Add to the summary of GitHub's job, where it has named a file for it."""
    name = os.environ.get("GITHUB_STEP_SUMMARY")
    if name:
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(text)


def outcome(found: CheckResult, source: str, files_told: str) -> str:
    """The outcome as JSON."""
    beside = {"files": files_told} if files_told else {}
    return json.dumps({**found.as_dict(), "source": source or None, **beside}, indent=2)


def _of_new(
    files: Sequence[Path],
    reference: Path,
    rules: Rules,
    read: ReadOptions,
    parts: PartFlags,
    seed: int,
    no_rows: bool,
) -> CheckResult:
    """The limits on rows without y, judged by a reference."""
    from howsure.cli.monitor import watching
    from howsure.inputs import load_unlabelled

    if len(files) != 1:
        raise InputError(f"--reference must be given with one file, got {len(files)}")
    groups = columns_of(read.columns.get("groups"), *rules.columns)
    read = replace(read, columns={**read.columns, "groups": groups or None})
    loaded, monitor = watching(reference, read, parts, seed)
    time: Any = read.columns.get("time")
    new = load_unlabelled(
        address(files[0]),
        loaded,
        encoding=read.encoding,
        decimal=read.decimal,
        groups=groups,
        time=time,
    )
    new = new_without_rows(new) if no_rows else new
    return check_new(monitor, new, rules, name=files[0].stem, seed=seed)


def _load(
    files: Sequence[Path],
    rules: Rules,
    source: str,
    read: ReadOptions,
    parts: PartFlags | None,
    seed: int,
) -> Loaded:
    """The tables, with the columns by which limits are judged as groups."""
    if not rules.columns:
        return read.load(list(files), parts, seed)
    groups = columns_of(read.columns.get("groups"), *rules.columns)
    columns: Any = {**read.columns, "groups": groups}
    try:
        return replace(read, columns=columns).load(list(files), parts, seed)
    except InputError as error:
        read.load(list(files), parts, seed)  # raises what is wrong without these columns too
        place = f"by in {source}" if source else "--by"
        raise InputError(f"{place} names columns of groups: {error}") from error


def _print(found: CheckResult, source: str, files: str) -> None:
    """A line for each finding and each limit, and what follows from them."""
    console = Console()

    def line(sign: str, text: str) -> None:
        console.print(f"{sign}  {escape(text)}", highlight=False, soft_wrap=True)

    for name, said in (("limits", source), ("files", files)):
        if said:
            console.print(f"{name}: {escape(said)}", highlight=False, soft_wrap=True)
    for each in found.told:
        line(SIGNS[tone_of(each)], each.sentence)
    line(SIGNS[found.tone], found.summary)
