"""`howsure simulate`: the study with flags, of any method in any world or table."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from howsure._version import __version__
from howsure.cli.entry import Interrupted
from howsure.cli.flags import flag_of, share
from howsure.cli.options import ReportFlags
from howsure.core.errors import InputError, UnanswerableError
from howsure.report.options import Options

if TYPE_CHECKING:
    from howsure.cli.terminal import Console
    from howsure.report.document import Document
    from howsure_studies.engine import Combined, Plan, Store, Trial
    from howsure_studies.pointwise.repeated import SplitsBesideTruth
    from howsure_studies.pointwise.simulation import PointwiseResult, Precision
    from howsure_studies.pointwise.splits import SplitsResult

app = typer.Typer(add_completion=False, rich_markup_mode="rich")

_TOY: Final = "toy_"
_LEAST_CUT: Final = 10
Way = Literal["simulated", "splits", "cut"]
"""How a table is used: y simulated at its x, divided at random again and again, or cut once."""
_RESIDUALS: Final = {"out-of-bag": "out_of_bag", "in-sample": "in_sample"}


@app.command(
    name="simulate",
    epilog="Example: howsure simulate heteroscedastic --method naive_bootstrap -o pointwise.html",
)
def simulate(
    source: Annotated[
        str,
        typer.Argument(
            metavar="WORLD|TABLE",
            help="Name of a simulated world or a UCI table, or your own table.",
        ),
    ],
    method: Annotated[
        list[str],
        typer.Option(
            "--method",
            metavar="NAME[:OPTION=VALUE,…]",
            help="Name of a method, or module:attribute of a method or regressor. Repeatable.",
        ),
    ] = [],  # noqa: B006
    output: Annotated[list[Path], flag_of(ReportFlags, "output")] = [],  # noqa: B006
    target: Annotated[
        str | None, typer.Option(metavar="COL", help="Column of y in the table.")
    ] = None,
    features: Annotated[
        str | None, typer.Option(metavar="A,B", help="Columns of x in the table; all if omitted.")
    ] = None,
    coverage: Annotated[
        list[float], typer.Option(callback=share, help="Nominal coverage, such as 0.9. Repeatable.")
    ] = [],  # noqa: B006
    splits: Annotated[
        bool,
        typer.Option(
            "--splits",
            help="Random splits of a table, 90 % for training, as in most papers; simulated "
            "coverage of the same table is added.",
        ),
    ] = False,
    cut: Annotated[
        bool,
        typer.Option(
            "--cut",
            help="Cut a huge table into a test set and disjoint training sets, without simulation.",
        ),
    ] = False,
    trials: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Maximum number of training sets: 100 by default, 20 with --splits.",
        ),
    ] = None,
    until_se: Annotated[
        float | None,
        typer.Option(help="Stop early once the Monte-Carlo standard error is this small."),
    ] = None,
    of: Annotated[
        Literal["picf", "cicf", "brier"],
        typer.Option(help="With --until-se: the quantity with this standard error."),
    ] = "picf",
    noise: Annotated[
        str | None,
        typer.Option(help="Noise distribution, such as normal, student_t3, gamma or laplace."),
    ] = None,
    residuals: Annotated[
        Literal["out-of-bag", "in-sample"],
        typer.Option(help="With a table: the residuals that its noise is fitted to."),
    ] = "out-of-bag",
    train_rows: Annotated[
        int | None, typer.Option(min=1, help="Rows in each training set.")
    ] = None,
    test_rows: Annotated[int | None, typer.Option(min=1, help="Number of test points.")] = None,
    covariates: Annotated[
        Literal["random", "fixed"],
        typer.Option(help="Draw x again in each trial (random), or once (fixed)."),
    ] = "random",
    missing: Annotated[
        Literal["error", "drop"],
        typer.Option(help="Rows with missing values: stop with an error, or drop them."),
    ] = "error",
    encoding: Annotated[str | None, typer.Option(help="Text encoding of the table.")] = None,
    decimal: Annotated[Literal[".", ","], typer.Option(help="Decimal mark of text tables.")] = ".",
    seed: Annotated[int, flag_of(Options, "seed")] = 0,
    jobs: Annotated[
        int,
        typer.Option(help="Processes that run trials; -1: one per core; 0: none but this."),
    ] = 0,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE",
            help="Save trials in this folder or URL, to add more later and for other commands.",
        ),
    ] = None,
) -> None:
    """Measure a method's coverage at every point of a world; exit 1 if all trials failed.

    After an interruption, finished trials are kept; the same command resumes.
    """
    from howsure.cli.entry import echo
    from howsure.cli.progress import Stages
    from howsure.cli.terminal import Console, escape
    from howsure.core.files import check_outputs
    from howsure.report.document import form_of
    from howsure_studies.engine import Plan, Store
    from howsure_studies.methods.catalogue import methods
    from howsure_studies.pointwise.page import pointwise_report
    from howsure_studies.pointwise.simulation import Precision
    from howsure_studies.tasks.worlds import noise_named

    for path in output:
        form_of(path)
    if not method:
        raise InputError(
            f"--method must name at least one method, got none: one of {', '.join(methods())}, or "
            "module:attribute"
        )
    check_outputs(output, [Path(source)])
    if noise is not None:
        noise_named(noise)
    stop = None if until_se is None else Precision(standard_error=until_se, of=of)
    way: Way = "splits" if splits else "cut" if cut else "simulated"
    _check_way(
        way,
        {
            "--cut": splits and cut,
            "--until-se": until_se is not None,
            "--noise": noise is not None,
            "--residuals": residuals != "out-of-bag",
            "--train-rows": train_rows is not None,
            "--test-rows": test_rows is not None,
            "--covariates": covariates != "random",
        },
    )
    count = trials or (20 if splits else 100)
    tested = method_entries(method, coverage)
    reading = {
        "features": [name.strip() for name in (features or "").split(",") if name.strip()],
        "missing": missing,
        "encoding": encoding,
        "decimal": decimal,
    }
    world, entry, names, facts = world_entry(
        source, target, noise=noise, residuals=residuals, seed=seed, reading=reading, way=way
    )
    if cut and train_rows is None:
        entry["rows"] = _rows_of_cut(entry, count, test_rows)
    drawn = {"n_train": train_rows, "n_test": test_rows, "covariates": covariates}
    plan = Plan(
        name="simulate",
        study="splits" if splits else "pointwise",
        worlds={world: entry},
        methods=tested,
        seeds=(seed,),
        options={
            "coverages": coverage or ([0.9] if splits else "own"),
            "simulations": count,
            **({"splits": count} if splits else drawn),
        },
    )
    location = str(_own_folder(plan)) if store is None else store
    try:
        with Stages() as stages:
            shown: dict[str, Any] = {
                "facts": facts,
                "command": shlex.join(["howsure", *sys.argv[1:]]),
            }
            results: Sequence[PointwiseResult] = ()
            repeated: list[SplitsResult] = []
            if splits:
                from howsure_studies.pointwise.splits_page import splits_report

                ran = combined_splits(plan, Store(location), jobs=jobs, report=stages)
                report = splits_report(ran, **shown)
                repeated = [result.splits for of_table in ran.values() for result in of_table]
                done = any(of_method.done for of_method in repeated)
            else:
                results = simulated(plan, Store(location), stop=stop, jobs=jobs, report=stages)
                named = {world: names} if names else None
                report = pointwise_report({world: results}, names=named, **shown)
                done = any(result.trials for result in results)
            stages("writing the report", 0, 0)
            for path in output:
                report.save(path)
    except KeyboardInterrupt:
        lasting = store is not None or location == str(_cached_folder(plan))
        more = "" if lasting else f" with --store {shlex.quote(location)}"
        raise Interrupted(
            f"interrupted: finished trials are kept in {location}; to resume, repeat the "
            f"command{more}"
        ) from None
    except InputError:
        if store is None:
            shutil.rmtree(location, ignore_errors=True)
        raise
    console = Console()
    _print_report(console, report, results)
    for path in output:
        console.print(f"written: {escape(str(path))}", highlight=False, soft_wrap=True)
    if store is None:
        shutil.rmtree(location, ignore_errors=True)
    else:
        console.print(f"trials kept in: {escape(store)}", highlight=False, soft_wrap=True)
    for of_method in (of_method for of_method in repeated if of_method.failures):
        first = of_method.failures[0]
        words = f"{of_method.method}: {len(of_method.failures)} splits failed; first: "
        echo(f"howsure: {words}{first.error}: {first.message}", error=True)
    if not done:
        for result in results:
            words = f"all {len(result.failures)} trials failed; {_first_failure(result)}"
            echo(f"howsure: {result.method}: {words}", error=True)
        raise typer.Exit(1)


def method_entries(specs: Sequence[str], coverages: Sequence[float]) -> dict[str, dict[str, Any]]:
    """Entries of a plan for what ``--method`` gives, by the methods' names where these differ."""
    from howsure_studies.engine import make_method

    entries, named = {}, []
    for spec in dict.fromkeys(specs):
        name, options = parse_method(spec)
        own = {"options": options} if "method" in options else options
        entries[spec] = {"method": name, **own}
        named.append(make_method(spec, entries[spec], tuple(coverages) or None).name)
    revision = _revision()
    named_entries = {}
    for spec, name in zip(entries, named, strict=True):
        paths = ":" in json.dumps(entries[spec], separators=(",", "="))
        own = {"revision": revision} if paths else {}
        named_entries[name if named.count(name) == 1 else spec] = {**entries[spec], **own}
    return named_entries


def parse_method(spec: str) -> tuple[str, dict[str, Any]]:
    """Name and options of a method: ``NAME`` or ``MODULE:ATTRIBUTE``, then ``:OPTION=VALUE,…``."""
    name, _, tail = spec.partition(":")
    while tail and "=" not in tail.partition(":")[0]:
        more, _, tail = tail.partition(":")
        name += f":{more}"
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
        value = json.loads(text)
    except json.JSONDecodeError:
        return text
    return value if not isinstance(value, Mapping) else text


def _revision() -> str:
    """A hash of all code that is loaded and neither installed nor howsure's: the user's own."""
    paths = sysconfig.get_paths()
    installed = tuple(paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    files = {
        str(getattr(module, "__file__", None) or "")
        for name, module in tuple(sys.modules.items())
        if name.partition(".")[0] != "howsure"
    }
    digest = hashlib.sha256()
    for file in sorted(files):
        if file.endswith(".py") and not file.startswith(installed) and Path(file).is_file():
            digest.update(Path(file).read_bytes())
    return digest.hexdigest()[:16]


def world_entry(
    source: str,
    target: str | None,
    *,
    noise: str | None,
    residuals: str,
    seed: int,
    reading: Mapping[str, Any],
    way: Way = "simulated",
) -> tuple[str, dict[str, Any], tuple[str, ...], dict[str, str]]:
    """A world's name, its entry in a plan, names of its columns of x, and what else to state."""
    from howsure_studies.tasks import read_learning_table, uci, uci_names
    from howsure_studies.tasks.worlds import world_named

    is_uci = source in uci_names() and not Path(source).exists()
    name = source if is_uci else _world_name(source)
    if name is not None:
        if way != "simulated" and not is_uci:
            raise InputError(f"--{way} is for a table, but {name} is a world of howsure's")
        for flag, given in (("--target", target), ("--features", reading["features"])):
            if given:
                kind = "UCI table known by name" if is_uci else "world of howsure's"
                raise InputError(f"{flag} is for a table, but {name} is a {kind}")
    if name is not None and not is_uci:
        named = {"world": name} if noise is None else {"world": name, "noise": noise}
        return name, named, (), {"World": world_named(name, noise).description}
    forest = {"residuals": _RESIDUALS[residuals], "noise": noise or "normal", "seed": seed}
    own = {"source": "cut"} if way == "cut" else forest
    if is_uci:
        given = uci(source)
        facts = {"Source": f"UCI table {source}, {len(given.y):,} rows"}
        return (
            source,
            {"uci": source, **own},
            given.columns,
            facts | _use_of_table(way, noise, residuals),
        )
    if target is None:
        raise InputError("--target must name the table's column of y, got none")
    path = Path(source)
    table = read_learning_table(path, target, flag="--", **reading)
    entry = {"table": str(path.absolute()), "target": target, **reading, **own}
    facts = {
        "Source": f"{path.name}, {len(table.y):,} rows",
        **_use_of_table(way, noise, residuals),
    }
    if table.notes:
        facts["Reading"] = "; ".join(table.notes)
    return path.name.partition(".")[0] or path.name, entry, table.columns, facts


def _use_of_table(way: Way, noise: str | None, residuals: str) -> dict[str, str]:
    """What a page states of how a table is used."""
    from howsure_studies.tasks.worlds import noise_named

    if way == "cut":
        return {"World": "the table cut into a test set and disjoint training sets; original y"}
    simulated = "the table's own x; y simulated from two random forests fitted to it"
    beside = "random splits of the table; for comparison, " if way == "splits" else ""
    law = f"{noise_named(noise or 'normal').name}, from {residuals} residuals"
    return {"World": f"{beside}{simulated}", "Noise": law}


def _check_way(way: Way, given: Mapping[str, bool]) -> None:
    """Refuse flags that the way in which a table is used has no part for."""
    refused = {
        "simulated": (),
        "splits": ("--cut", "--until-se", "--train-rows", "--test-rows", "--covariates"),
        "cut": ("--until-se", "--noise", "--residuals", "--covariates"),
    }
    for flag in refused[way]:
        if given[flag]:
            raise InputError(f"{flag} must be left out with --{way}")


def _rows_of_cut(entry: Mapping[str, Any], trials: int, test_rows: int | None) -> int:
    """Rows of each set, so that a test set and so many training sets take the whole table."""
    from howsure_studies.engine import table_data, world_identity

    rows = len(table_data(*world_identity("cut", entry, Path())).y)
    share = rows // (trials + 1) if test_rows is None else max(rows - test_rows, 0) // trials
    if share < _LEAST_CUT:
        needed = _LEAST_CUT * trials + (test_rows or _LEAST_CUT)
        raise InputError(
            f"--cut must leave {_LEAST_CUT} rows or more in each of {trials:,} training sets, for "
            f"which a table needs {needed:,} rows, got {rows:,}; fewer --trials need fewer"
        )
    return share


def _world_name(source: str) -> str | None:
    """A world's name, with or without ``toy_``; None for a table."""
    from howsure.core.registry import unknown
    from howsure_studies.tasks import uci_names
    from howsure_studies.tasks.worlds import worlds

    for name in (source, f"{_TOY}{source}"):
        if name in worlds():
            return name
    if not Path(source).suffix and not Path(source).exists():
        known = [*(name.removeprefix(_TOY) for name in worlds()), *uci_names()]
        raise InputError(unknown(source, known, "world (or a table with its ending)"))
    return None


def _cached_folder(plan: Plan) -> Path:
    """A folder of the user's cache, the same for the same command."""
    from howsure_studies.engine import address_of
    from howsure_studies.tasks import cache_folder

    options = {name: plan.options[name] for name in plan.options if name != "simulations"}
    run = [__version__, plan.worlds, plan.methods, list(plan.seeds), options]
    return cache_folder() / "simulate" / address_of({"run": run})[:16]


def _own_folder(plan: Plan) -> Path:
    """Where trials are kept until the command ends: a new folder where the cache is closed."""
    folder = _cached_folder(plan)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="howsure-simulate-"))
    return folder


def simulated(
    plan: Plan,
    store: Store,
    *,
    stop: Precision | None = None,
    jobs: int = 0,
    report: Callable[[str, int, int], None] = lambda *_: None,
) -> list[PointwiseResult]:
    """The result of each method of a plan of one world; where it shall stop early, one by one."""
    if stop is None:
        return _run(plan, store, jobs, report)
    return [
        _run_until(replace(plan, methods={label: entry}), store, stop, jobs, report)
        for label, entry in plan.methods.items()
    ]


def _run_until(
    plan: Plan,
    store: Store,
    stop: Precision,
    jobs: int,
    report: Callable[[str, int, int], None],
) -> PointwiseResult:
    """A method's result with as many simulations as it takes; those done before are read."""
    from howsure_studies.engine import trials_of

    most = plan.options["simulations"]
    size = trials_of(plan)[0].identity["trials"]
    workers = (os.cpu_count() or 1) if jobs < 0 else max(jobs, 1)
    looked, count = 0, -(-stop.least // size) * size
    while True:
        count = min(count, most)
        shorter = replace(plan, options={**plan.options, "simulations": count})
        (ran,) = _run(shorter, store, jobs, report)
        result = replace(ran, trials_planned=most)
        met = stop.first_met(result, after=looked)
        if met is not None:
            return met
        if count == most:
            return stop.not_met(result)
        looked = count
        # processes take time to start, so they get more to do each time
        count += max(workers, count // size // 2 if jobs else 1) * size


def _run(
    plan: Plan, store: Store, jobs: int, report: Callable[[str, int, int], None]
) -> list[PointwiseResult]:
    return [each for own in _ran(plan, store, jobs, report).results.values() for each in own]


def combined_splits(
    plan: Plan,
    store: Store,
    *,
    jobs: int = 0,
    report: Callable[[str, int, int], None] = lambda *_: None,
) -> Mapping[str, Sequence[SplitsBesideTruth]]:
    """The results of a plan of splits, by table."""
    return _ran(plan, store, jobs, report).results


def _ran(plan: Plan, store: Store, jobs: int, report: Callable[[str, int, int], None]) -> Combined:
    """Results of a plan, which is run; input that a trial refuses is refused here."""
    from howsure_studies.engine import Outcome, RunListener, gathered, run, trials_of

    def size(trial: Trial) -> int:
        count: int = trial.identity.get("trials") or trial.identity["options"]["splits"]
        return count

    trials = trials_of(plan)
    total = sum(map(size, trials))
    what = "simulations" if plan.study == "pointwise" else "splits and simulations"

    class Shown(RunListener):
        done = 0

        def begin(self, trials: int, settled: int) -> None:
            self.done = total * settled // trials

        def within(self, stage: str, done: int, of: int) -> None:
            if stage in ("trials", "splits"):
                report(what, self.done + done, total)

        def ended(self, trial: Trial, outcome: Outcome) -> None:
            self.done += size(trial)
            report(what, self.done, total)

    report(what, 0, total)
    run(plan, store, jobs=jobs, monitor=Shown())
    for entry in store.entries([trial.address for trial in trials]).values():
        if entry.failure is not None and entry.failure.error == InputError.__name__:
            raise InputError(entry.failure.message)
    return gathered(plan, trials, store)


def _print_report(console: Console, document: Document, results: Sequence[PointwiseResult]) -> None:
    """The main message, then what was found of each method, and the numbers that decide."""
    from howsure.cli.show import show_grid, show_lines, show_note
    from howsure.cli.terminal import escape

    console.print()
    show_lines(console, document.opening.lines)
    for section in document.sections:
        show_lines(console, section.lines, with_question=True)
    for section in document.sections:
        for grid in section.grids[:1]:
            show_grid(console, replace(grid, title=f"{section.title}: {grid.title.lower()}"))
    for result in results:
        if result.failures:
            words = f"{result.method}: {len(result.failures)} trials failed"
            line = f"{words}; {_first_failure(result)}"
            console.print(escape(line), style="red", highlight=False)
        if "standard error" in result.stop:
            console.print(escape(f"{result.method}: {result.stop}"), highlight=False)
    show_note(console, "-o report.html or report.md shows all.")


def _first_failure(result: PointwiseResult) -> str:
    first = result.failures[0]
    hint = " (--coverage asks for others)" if first.error == UnanswerableError.__name__ else ""
    return f"first in {first.stage}: {first.error}: {first.message}{hint}"
