"""`howsure bench …`: run a plan, and see what came of it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from howsure.cli.entry import echo
from howsure.cli.terminal import Console, escape
from howsure.core.errors import InputError
from howsure.core.files import atomic_write, check_outputs
from howsure_studies.cli.submit import Worlds, submit

if TYPE_CHECKING:
    import pyarrow as pa

    from howsure_studies.engine import Combined, Plan, Store, Survey

app = typer.Typer(name="bench", no_args_is_help=True, add_completion=False, rich_markup_mode="rich")

Name = Annotated[str, typer.Argument(metavar="PLAN", help="Name of a plan, or a TOML file.")]
Shown = Annotated[
    str,
    typer.Argument(
        metavar="PLAN",
        help="Name of a plan or study, or a TOML file; a study's name shows its shipped results.",
    ),
]
_PLACE: Final = typer.Option(
    "--store",
    metavar="PLACE",
    help="Folder of results, or a URL such as s3://bucket/x.",
    show_default="howsure-results",
)
StoreFolder = Annotated[str, _PLACE]
OwnStore = Annotated[str | None, _PLACE]
Changes = Annotated[
    list[str],
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change the plan, such as simulations=20. Repeatable."
    ),
]
Profile = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Profile of the plan, if it has several. "
        "Of shift: small, scale, cells, longer, tables or paper.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        help="Processes that run trials: 1 by default; -1: one per core; 0: none but this."
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS", help="Stop trials that take longer, and record them as failed."
    ),
]
Format = Literal["table", "csv", "json", "parquet"]

_STORE: Final = "howsure-results"


@app.callback()
def root() -> None:
    """Run plans of experiments, resume them, and show their results."""


@app.command(epilog="Example: howsure bench run smoke --jobs 2")
def run(
    plan: Name,
    store: StoreFolder = _STORE,
    jobs: Jobs = None,
    trial_timeout: Timeout = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Run on the workers of this Dask scheduler, such as tcp://host:8786.",
        ),
    ] = None,
    set_: Changes = [],  # noqa: B006
    world: Worlds = [],  # noqa: B006
    profile: Profile = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run failed trials again.")
    ] = False,
) -> None:
    """Run the trials that are left; exit 0 if none failed, 1 if one did, 130 if interrupted."""
    from howsure_studies.cli.display import run_shown

    chosen, kept = _opened(plan, store, set_, profile)
    summary = run_shown(
        chosen.on_worlds(world),
        kept,
        jobs=(0 if scheduler else 1) if jobs is None else jobs,
        trial_timeout=trial_timeout,
        scheduler=scheduler,
        retry_failed=retry_failed,
    )
    there = summary.skipped - summary.failed_before
    parts = [f"{summary.done} done", f"{there} already done"]
    if summary.failed or summary.failed_before:
        parts.append(f"{summary.failed} failed, {summary.failed_before} failed before")
    if summary.failed_parts:
        parts.append(f"{summary.failed_parts} parts of them failed")
    line = f"{summary.trials} trials: {', '.join(parts)}; {summary.seconds:.1f} s; {store}"
    Console().print(line, highlight=False, markup=False, soft_wrap=True)
    if summary.failed or summary.failed_before:
        echo(f"howsure bench status {plan} --store {store} shows why", error=True)
        raise typer.Exit(1)


@app.command(epilog="Example: howsure bench status smoke")
def status(
    plan: Name,
    store: StoreFolder = _STORE,
    set_: Changes = [],  # noqa: B006
    profile: Profile = None,
) -> None:
    """Show which trials are done, failed, damaged, running or missing, and why."""
    from howsure_studies.cli.display import print_status
    from howsure_studies.engine import survey

    chosen, kept = _opened(plan, store, set_, profile)
    state = survey(chosen, kept)
    _say_as_run(state)
    print_status(Console(), state)


@app.command(epilog="Example: howsure bench show smoke --metric all")
def show(
    plan: Shown,
    store: OwnStore = None,
    set_: Changes = [],  # noqa: B006
    profile: Profile = None,
    metric: Annotated[
        list[str], typer.Option(metavar="NAME", help="Show only this measure, or all. Repeatable.")
    ] = [],  # noqa: B006
    format_: Annotated[
        Format | None,
        typer.Option("--format", help="Format; by default, from the ending of the output file."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="File to write: .csv, .json or .parquet."
        ),
    ] = None,
) -> None:
    """Show the results side by side, or write them as a table with a row for each number."""
    from howsure_studies.cli.display import print_results, written
    from howsure_studies.engine import study_of

    form = _form(format_, output)
    if output is not None:
        check_outputs([output], [Path(plan)])
    study, results = _results(plan, store, set_, profile)
    table = results.table
    wanted = _wanted(table, metric, study_of(study).headline)
    if form == "table":
        print_results(Console(), table, wanted, wanted if metric else wanted[:1])
        return
    data = written(table.filter(_mask(table, wanted)) if metric else table, form)
    if output is None:
        typer.echo(data.decode(), nl=False)
        return
    atomic_write(output, data)
    echo(f"written: {output}")


@app.command(epilog="Example: howsure bench report smoke -o smoke.html")
def report(
    plan: Shown,
    output: Annotated[
        list[Path],
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="File to write: .html, .md, .json or .csv. Repeatable.",
        ),
    ],
    store: OwnStore = None,
    set_: Changes = [],  # noqa: B006
    profile: Profile = None,
) -> None:
    """Write the report page of a plan's results."""
    from howsure.report.document import form_of
    from howsure_studies.engine import save_pages, study_of

    for path in output:
        form_of(path)
    check_outputs(output, [Path(plan)])
    study, results = _results(plan, store, set_, profile)
    command = shlex.join(["howsure", *sys.argv[1:]])
    page = study_of(study).page(results, facts=results.facts, command=command)
    for path in output:
        for file in save_pages(page, path, results.results):
            echo(f"written: {file}")


app.command(epilog="Example: howsure bench submit mypkg:MyMethod")(submit)


@app.command(epilog="Example: howsure bench plans")
def plans() -> None:
    """List the plans that come with howsure, and the studies whose results do."""
    from howsure_studies.engine import load_plan, plan_names, shipped_studies

    console = Console()
    for name in plan_names():
        text = f"[cyan]{escape(name)}[/cyan]  {escape(load_plan(name).description)}"
        console.print(text, highlight=False, soft_wrap=True)
    names = ", ".join(shipped_studies())
    console.print(f"Results ship with studies {names}: howsure bench report NAME", highlight=False)


def _opened(name: str, folder: str, changes: list[str], profile: str | None) -> tuple[Plan, Store]:
    from howsure_studies.engine import Store, load_plan

    return load_plan(name, changes, profile=profile), Store(folder)


def _results(
    name: str, folder: str | None, changes: list[str], profile: str | None
) -> tuple[str, Combined]:
    """The study of a plan and its results so far, or of a study those that ship with it."""
    from howsure_studies.engine import combined, plan_shipped, studies, study_shipped, survey

    ships = True
    if name in studies.names() and folder is None and not changes and profile is None:
        results = study_shipped(name)
    else:
        plan, store = _opened(name, folder or _STORE, changes, profile)
        there = plan_shipped(plan) if folder is None else None
        ships = there is not None
        if there is None:
            state = survey(plan, store)
            _say_as_run(state)
            there = combined(plan, state, store)
            if there.missing:
                of = f"{there.missing} of {state.counts.total()} trials"
                echo(f"note: {of} are not done: see bench status", error=True)
        results = replace(there, facts={"Plan": plan.name, **there.facts})
        name = plan.study
    if ships and Path(_STORE).exists():
        echo(f"note: for your own runs, name a plan and --store {_STORE}", error=True)
    for title, fact in results.facts.items():
        if title != "Plan":
            echo(f"{title}: {fact}", error=True)
    return name, results


def _say_as_run(state: Survey) -> None:
    """Where the plan's code was not loaded, say of when its trials are."""
    if state.as_run:
        echo("note: trials are from the last run; the plan's own code is not loaded", error=True)


def _form(asked: Format | None, output: Path | None) -> Format:
    """What to write: what was asked for, else what the ending says."""
    endings: dict[str, Format] = {".csv": "csv", ".json": "json", ".parquet": "parquet"}
    if output is None:
        if asked == "parquet":
            raise InputError("--format parquet needs a file to write (-o), got none")
        return asked or "table"
    form = asked or endings.get(output.suffix.lower())
    if form is None or form == "table":
        raise InputError(
            f"--output must end in {', '.join(endings)}, or have a --format, got {str(output)!r}"
        )
    return form


def _wanted(table: pa.Table, asked: list[str], headline: tuple[str, ...]) -> tuple[str, ...]:
    """Measures to show, all of which there are."""
    given = tuple(dict.fromkeys(table["metric"].to_pylist()))
    if "all" in asked:
        return given
    return tuple(dict.fromkeys(_measure(name, given) for name in asked)) or headline


def _measure(asked: str, given: Sequence[str]) -> str:
    """A measure that there is, by its name or by what else the field calls it."""
    from howsure.core.registry import unknown
    from howsure.engine.catalogue import metric_named

    if asked in given:
        return asked
    try:
        name = metric_named(asked).name
    except InputError:
        name = ""
    if name not in given:
        raise InputError(unknown(asked, given, "--metric"))
    return name


def _mask(table: pa.Table, wanted: tuple[str, ...]) -> pa.ChunkedArray:
    import pyarrow as pa
    from pyarrow import compute as pc

    return pc.is_in(table["metric"], value_set=pa.array(wanted))
