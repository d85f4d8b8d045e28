"""`howsure simulate`: coverage at every point, of any method, in any world."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, cast

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from howsure.cli.entry import import_from_here
from howsure.cli.show import show_grid, show_lines, show_note
from howsure.cli.terminal import Console, escape, say
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.files import check_outputs
from howsure.core.progress import listening
from howsure.core.registry import unknown
from howsure.methods.catalogue import method_named, methods
from howsure.methods.interface import Method
from howsure.report.document import Document, form_of
from howsure.studies.pointwise.page import pointwise_report
from howsure.studies.pointwise.result import PointwiseResult
from howsure.studies.pointwise.simulate_table import Missing, read_learning_table
from howsure.studies.pointwise.simulation import Precision, pointwise
from howsure.studies.tasks.worlds import Covariates, ForestWorld, World, world_named, worlds
from howsure.studies.tasks.worlds.noise import noise_named

_TOY: Final = "toy_"
_RESIDUALS: Final = {"out-of-bag": "out_of_bag", "in-sample": "in_sample"}


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is to be simulated; each field is a flag of the command."""

    source: str
    methods: Sequence[str]
    target: str | None = None
    features: Sequence[str] = ()
    coverages: Sequence[float] = ()
    trials: int = 100
    until: float | None = None
    of: Literal["picf", "cicf", "brier"] = "picf"
    noise: str | None = None
    residuals: Literal["out-of-bag", "in-sample"] = "out-of-bag"
    n_train: int | None = None
    n_test: int | None = None
    covariates: Covariates = "random"
    seed: int = 0
    missing: Missing = "error"
    encoding: str | None = None
    decimal: str = "."
    outputs: Sequence[Path] = field(default_factory=tuple)


def run(request: Request) -> None:
    """Simulate, print what was found, and write what is asked for."""
    for path in request.outputs:
        form_of(path)
    if not request.methods:
        raise InputError(
            f"--method must name at least one method, got none: one of {', '.join(methods())}, or "
            "module:attribute"
        )
    check_outputs(request.outputs, [Path(request.source)])
    if request.noise is not None:
        noise_named(request.noise)
    stop = None
    if request.until is not None:
        stop = Precision(standard_error=request.until, of=request.of)
    import_from_here()
    tested = [_Tested.of(spec, tuple(request.coverages)) for spec in request.methods]
    console = Console()
    with _bar() as bar:
        task = bar.add_task("fitting the world", total=None)
        world, names, facts = make_world(request)
        bar.remove_task(task)
        results = [_result(world, one, request, stop, bar) for one in tested]
        task = bar.add_task("writing the report", total=None)
        results = _renamed(results, request.methods)
        report = pointwise_report(
            {world.name: results},
            names={world.name: names} if names else None,
            facts=facts,
            command=shlex.join(["howsure", *sys.argv[1:]]),
        )
        for path in request.outputs:
            report.save(path)
    print_report(console, report, results)
    for path in request.outputs:
        console.print(f"written: {escape(str(path))}", highlight=False, soft_wrap=True)
    if not any(result.trials for result in results):
        for result in results:
            words = f"all {len(result.failures)} trials failed; {_first_failure(result)}"
            say(f"howsure: {result.method}: {words}", error=True)
        raise typer.Exit(1)


def make_world(request: Request) -> tuple[World, tuple[str, ...], dict[str, str]]:
    """The world of a name or a table, the names of its columns of x, and what else to state."""
    name = _world_name(request.source)
    if name is not None:
        for flag, given in (("--target", request.target), ("--features", request.features)):
            if given:
                raise InputError(f"{flag} is for a table, but {name} is a world of howsure's")
        world = world_named(name, request.noise)
        return world, (), {"World": world.description}
    if request.target is None:
        raise InputError("--target must name the table's column of y, got none")
    path = Path(request.source)
    table = read_learning_table(
        path,
        request.target,
        features=request.features,
        missing=request.missing,
        encoding=request.encoding,
        decimal=request.decimal,
    )
    made = ForestWorld.from_data(
        table.x,
        table.y,
        name=path.name.partition(".")[0] or path.name,
        residuals=cast("Literal['out_of_bag', 'in_sample']", _RESIDUALS[request.residuals]),
        noise=request.noise or "normal",
        seed=request.seed,
    )
    facts = {
        "Source": f"{path.name}, {len(table.y):,} rows",
        "World": "the table's own x; y simulated from two random forests fitted to it",
        "Noise": f"{made.noise.name}, from {request.residuals} residuals",
    }
    if table.notes:
        facts["Reading"] = "; ".join(table.notes)
    return made, table.names, facts


def parse_method(spec: str) -> tuple[str, dict[str, Any]]:
    """Name and options of a method: ``NAME`` or ``MODULE:ATTRIBUTE``, then ``:OPTION=VALUE,…``."""
    name, _, tail = spec.partition(":")
    while tail and "=" not in tail.partition(":")[0]:
        part, _, tail = tail.partition(":")
        name += f":{part}"
    options: dict[str, Any] = {}
    for pair in _cut(tail):
        key, sign, value = pair.partition("=")
        if not key or not sign:
            raise InputError(f"--method must look like NAME:OPTION=VALUE,…, got {spec!r}")
        whole, dot, inner = key.partition(".")
        if not dot:
            options[key] = _value(value)
            continue
        outer = options.setdefault(whole, {})
        if not isinstance(outer, dict):
            outer = options[whole] = {"name": outer}
        outer[inner] = _value(value)
    if not name:
        raise InputError(f"--method must name a method, got {spec!r}")
    return name, options


@dataclass(frozen=True, slots=True)
class _Tested:
    """A method, and how it was asked for."""

    spec: str
    method: Method

    @classmethod
    def of(cls, spec: str, coverages: tuple[float, ...]) -> _Tested:
        """The method of a flag, made for these coverages where it fixes them."""
        name, options = parse_method(spec)
        made = method_named(name, **options)
        if coverages and made.fixed_coverages is not None and "coverages" not in options:
            made = method_named(name, **options, coverages=coverages)
        return cls(spec, made)


def _result(
    world: World, one: _Tested, request: Request, stop: Precision | None, bar: Progress
) -> PointwiseResult:
    task = bar.add_task(one.method.name, total=request.trials)

    def heard(stage: str, done: int, total: int) -> None:
        if stage == "trials":
            bar.update(task, completed=done, total=total)

    with listening(heard):
        found = pointwise(
            world,
            one.method,
            coverages=tuple(request.coverages) or None,
            trials=request.trials,
            n_train=request.n_train,
            n_test=request.n_test,
            covariates=request.covariates,
            stop=stop,
            seed=request.seed,
        )
    bar.update(task, completed=request.trials, total=request.trials)
    return found


def print_report(console: Console, document: Document, results: Sequence[PointwiseResult]) -> None:
    """The main message, then what was found of each method, and the numbers that decide."""
    console.print()
    show_lines(console, document.opening.lines)
    for section in document.sections:
        show_lines(console, section.lines, asked=True)
    for section in document.sections:
        for grid in section.grids[:1]:
            show_grid(console, replace(grid, title=f"{section.title}: {grid.title.lower()}"))
    for result in results:
        if result.failures:
            words = f"{result.method}: {len(result.failures)} trials failed"
            told = f"{words}; {_first_failure(result)}"
            console.print(escape(told), style="red", highlight=False)
        if "standard error" in result.stop:
            console.print(escape(f"{result.method}: {result.stop}"), highlight=False)
    show_note(console, "-o report.html or report.md shows all.")


def _first_failure(result: PointwiseResult) -> str:
    first = result.failures[0]
    hint = " (--coverage asks for others)" if first.error == UnanswerableError.__name__ else ""
    return f"first in {first.stage}: {first.error}: {first.message}{hint}"


@contextmanager
def _bar() -> Iterator[Progress]:
    """Bars on stderr with the time that is left; they go when the work ends."""
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        speed_estimate_period=600.0,
        disable=not console.is_terminal,
    ) as bar:
        yield bar


def _world_name(source: str) -> str | None:
    """A world's name, with or without ``toy_``; None for a table."""
    known = worlds()
    for name in (source, f"{_TOY}{source}"):
        if name in known:
            return name
    if not Path(source).suffix and not Path(source).exists():
        short = [name.removeprefix(_TOY) for name in known]
        raise InputError(unknown(source, short, "world (or a table with its ending)"))
    return None


def _cut(text: str) -> list[str]:
    """Parts between commas that stand outside brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "[{(") - (char in "]})")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts if text else []


def _value(text: str) -> Any:
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        return text
    return found if not isinstance(found, Mapping) else text


def _renamed(results: Sequence[PointwiseResult], specs: Sequence[str]) -> list[PointwiseResult]:
    """Results whose methods share a name are called by what was asked for."""
    names = [result.method for result in results]
    return [
        replace(result, method=spec) if names.count(result.method) > 1 else result
        for result, spec in zip(results, specs, strict=True)
    ]
