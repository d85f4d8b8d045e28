"""`howsure bench submit`: a method of one's own in a plan, beside the plan's methods."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from howsure.cli.entry import echo
from howsure.cli.terminal import Console
from howsure.core.errors import HowsureError, InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from howsure.report.document import Document
    from howsure_studies.engine import Combined, Plan, Store

Worlds = Annotated[
    list[str],
    typer.Option(metavar="NAME", help="Run only this world of the plan. Repeatable."),
]
_TAKEN: Final = ("method", "name")


def submit(
    method: Annotated[
        str,
        typer.Argument(
            metavar="METHOD", help="Method or regressor as package:Class, or the name of a method."
        ),
    ],
    plan: Annotated[
        str,
        typer.Option(metavar="PLAN", help="Plan for the ranking: its name, or a TOML file."),
    ] = "shift_small",
    store: Annotated[
        str,
        typer.Option(
            metavar="PLACE", help="Folder or URL of results, including those of the plan's methods."
        ),
    ] = "howsure-results",
    label: Annotated[str | None, typer.Option(metavar="NAME", help="Name on the page.")] = None,
    option: Annotated[
        list[str], typer.Option(metavar="KEY=VALUE", help="Option of the method. Repeatable.")
    ] = [],  # noqa: B006
    world: Worlds = [],  # noqa: B006
    set_: Annotated[
        list[str], typer.Option("--set", metavar="KEY=VALUE", help="Change the plan. Repeatable.")
    ] = [],  # noqa: B006
    output: Annotated[
        list[Path],
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="File to write: .html, .md, .json or .csv. Repeatable.",
        ),
    ] = [],  # noqa: B006
    jobs: Annotated[
        int, typer.Option(help="Processes that run trials; -1: one per core; 0: none but this.")
    ] = 1,
    with_plan: Annotated[
        bool, typer.Option("--with-plan", help="Also run missing trials of the plan's own methods.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run failed trials again.")
    ] = False,
) -> None:
    """Rank a method of your own beside those of a plan; exit 1 if it failed on a world.

    It runs on this machine, and nothing is sent anywhere.
    """
    from howsure.core.files import check_outputs
    from howsure.report.document import form_of
    from howsure_studies.cli.display import run_shown
    from howsure_studies.engine import Store, load_plan, save_pages, study_of, trials_of

    for path in output:
        form_of(path)
    check_outputs(output, [Path(plan)])
    chosen = load_plan(plan, set_).on_worlds(world)
    name = label or method.rpartition(":")[2]
    alone, whole = _entered(chosen, name, {"method": method, **_options(option)})
    kept = Store(store)
    absent = {} if with_plan else _absent(chosen)
    known = replace(whole, methods={k: v for k, v in whole.methods.items() if k not in absent})
    # what is named is loaded, and wrong names are told, before any work
    trials = trials_of(known)
    here = [each for each in chosen.worlds if any(t.labels.get("world") == each for t in trials)]
    alone, whole, known = (each.on_worlds(here) for each in (alone, whole, known))
    summary = run_shown(whole if with_plan else alone, kept, jobs=jobs, retry_failed=retry_failed)
    failed = summary.failed + summary.failed_before
    reasons: dict[str, str] = {}
    if summary.done or summary.skipped > summary.failed_before:
        results = _results(whole, known, kept, absent)
        reasons = _reasons(results.table, name)
        facts = {"Plan": whole.name, "Submitted": name, **_taken(name, alone), **results.facts}
        page = study_of(whole.study).page(results, facts=facts)
        _print(Console(), page, whole.worlds, name)
        for path in output:
            for file in save_pages(page, path, results.results):
                echo(f"written: {file}")
    for where, reason in reasons.items():
        echo(f"failed: {name} on {where}: {reason}", error=True)
    if failed or reasons:
        echo(f"{failed or len(reasons)} trials failed; --retry-failed runs them again", error=True)
        raise typer.Exit(1)


def _options(given: list[str]) -> dict[str, Any]:
    """Options as a plan would hold them: values are TOML, and what is not is text."""
    from howsure_studies.engine import toml_value

    options: dict[str, Any] = {}
    for text in given:
        key, sign, value = text.partition("=")
        key = key.strip()
        if not sign or not key or key in _TAKEN:
            raise InputError(f"--option must be key=value, the key not 'method', got {text!r}")
        options[key] = toml_value(value)
    return options


def _entered(plan: Plan, label: str, entry: dict[str, Any]) -> tuple[Plan, Plan]:
    """The plan with the method alone, and with the method beside its own."""
    if label in plan.methods:
        raise InputError(
            f"--label must differ from the plan's methods ({', '.join(plan.methods)}), got "
            f"{label!r}"
        )
    alone = replace(plan, methods={label: entry})
    return alone, replace(plan, methods={**plan.methods, label: entry})


def _absent(plan: Plan) -> dict[str, str]:
    """The plan's methods whose libraries are not installed, and why each cannot be made."""
    from howsure_studies.engine import make_method

    absent = {}
    for name, entry in plan.methods.items():
        try:
            make_method(name, entry, None)
        except HowsureError as error:
            if _lacks_library(error):
                absent[name] = str(error)
    return absent


def _lacks_library(error: BaseException | None) -> bool:
    """Whether an error was raised as a module cannot be imported."""
    while error is not None and not isinstance(error, ImportError):
        error = error.__cause__
    return error is not None


def _results(plan: Plan, known: Plan, store: Store, absent: Mapping[str, str]) -> Combined:
    """What is done, and what ships; a word on stderr where methods of the plan are missing."""
    from howsure_studies.engine import combined, survey

    results = combined(plan, survey(known, store), store, absent=absent)
    there = set(results.table["method"].to_pylist())
    missing = [name for name in plan.methods if name not in there]
    for name in missing:
        if name in absent:
            echo(f"note: {name} has no results here and cannot run: {absent[name]}", error=True)
    missing = [name for name in missing if name not in absent]
    if missing:
        echo(
            f"note: {store.location} has no results of {', '.join(missing)}; --with-plan runs them",
            error=True,
        )
    return results


def _reasons(table: pa.Table, label: str) -> dict[str, str]:
    """Why a method has no number at all, by the worlds where it has none."""
    rows = [row for row in table.to_pylist() if row["method"] == label]
    known = {row["world"] for row in rows if math.isfinite(row["value"])}
    return {row["world"]: row["reason"] for row in rows if row["world"] not in known}


def _taken(label: str, alone: Plan) -> dict[str, str]:
    """How a regressor is made a method, where its label does not say so."""
    from howsure_studies.engine import make_method

    name = make_method(label, alone.methods[label], None).name
    if name == label:
        return {}
    echo(f"note: {label} is run as {name}", error=True)
    return {"Run as": name}


def _print(console: Console, page: Document, worlds: Collection[str], label: str) -> None:
    """The headline, averages over datasets, and coverage on each."""
    from howsure.cli.show import show_grid, show_lines

    show_lines(console, page.opening.lines)
    across = page.sections[:1] if page.sections[0].title not in worlds else ()
    for grid in (*page.opening.grids, *(grid for part in across for grid in part.grids)):
        show_grid(console, grid, bold=label)
