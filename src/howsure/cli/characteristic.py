"""`howsure characteristic`: the trade-off of width and misses, its operating points and costs."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from rich.table import Table

from howsure.cli.options import CurveFlags, ReadOptions
from howsure.cli.terminal import Console, escape, say_written
from howsure.core.arrays import IntArray
from howsure.core.errors import InputError
from howsure.core.files import atomic_write, check_outputs
from howsure.core.optional import require
from howsure.core.records import Curve
from howsure.engine.metric import MISS_RANGE, check_range
from howsure.engine.view import View
from howsure.predictions import content_order
from howsure.report.options import Options
from howsure.topics.characteristic.curve import CharacteristicCurve
from howsure.topics.characteristic.operating import Cost, OperatingPoint
from howsure.topics.characteristic.resampling import bootstrap_curve
from howsure.topics.characteristic.trace import AreaRequest, Convention
from howsure.topics.characteristic.view import traced_coverage

PLOTS = (".png", ".svg", ".pdf")
WISHES = ("miss_rate", "bandwidth", "excess", "deficit", "knob")


def run(
    files: Sequence[Path],
    shown: CurveFlags,
    x: str | None,
    options: Options,
    read: ReadOptions,
) -> None:
    """Print areas by every convention, gains, operating points and costs of each model."""
    miss_cost, cost_weight, miss_range = shown.miss_cost, shown.cost_weight, shown.miss_range
    bootstrap, plot, seed = shown.bootstrap, shown.plot, options.seed
    if x is not None:
        raise InputError(f"--x is now called --x-axis: write --x-axis {x}")
    if read.at:
        raise InputError("--at is not used here: the curve shows every coverage")
    wishes = [parse_wish(text) for text in shown.want]
    if miss_cost is not None and not 0.0 <= miss_cost < math.inf:
        raise InputError(f"--miss-cost must be finite and at least 0, got {miss_cost:g}")
    if cost_weight is not None and not 0.0 <= cost_weight <= 1.0:
        raise InputError(f"--cost-weight must be in [0, 1], got {cost_weight:g}")
    if miss_cost is not None and cost_weight is not None:
        raise InputError(
            "--miss-cost and --cost-weight both set the cost of a miss: give one of them"
        )
    if miss_range is not None:
        check_range(
            miss_range, "--miss-range", largest=1.0 if shown.y_axis == "miss_rate" else math.inf
        )
    elif shown.y_axis == "miss_rate":
        miss_range = MISS_RANGE
    if bootstrap < 0 or bootstrap == 1:
        raise InputError(f"--bootstrap must be at least 2, or 0 for none, got {bootstrap}")
    if plot is not None:
        if plot.suffix.lower() not in PLOTS:
            raise InputError(f"--plot must end in {', '.join(PLOTS)}, got {str(plot)!r}")
        check_outputs([plot], files)
        require("matplotlib", extra="plots")
    console = Console()
    loaded = read.load(list(files) if len(files) > 1 else files[0], seed)
    sampled, total = loaded.evalsets[0].n, loaded.totals[0].n if loaded.totals else 0
    if sampled < total:
        note = f"note: the curves are of a sample of {sampled:,} of {total:,} rows"
        console.print(note, highlight=True)
    drawn = []
    for evalset in loaded.evalsets:
        rows = evalset.take(content_order([evalset]))
        view = View(rows, seed=seed)
        curve: CharacteristicCurve = view.get("characteristic").on(
            x=shown.x_axis, y_axis=shown.y_axis
        )
        axes = f"{shown.x_axis} against {shown.y_axis}"
        title = f"[bold]{escape(rows.model)}[/bold]: {axes}, n {rows.n:,}"
        console.print(f"\n{title}", highlight=True)
        console.print(_areas(curve, miss_range))
        if bootstrap:
            cluster = None if rows.cluster is None else rows.cluster.codes
            _print_bootstrap(console, curve, cluster, bootstrap, seed)
        console.print(_points(curve, wishes))
        cost = _cost(curve, miss_cost, cost_weight, traced_coverage(view))
        console.print(cost)
        drawn.append(curve.drawn(model=rows.model))
    if plot is not None:
        _save(drawn, plot)
        say_written(console, plot)


def parse_wish(text: str) -> tuple[str, float]:
    """A wish such as ``miss_rate=0.1``."""
    name, sign, number = text.partition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if name not in WISHES or not sign or math.isnan(value):
        names = ", ".join(WISHES)
        raise InputError(f"--want must be NAME=NUMBER, where NAME is one of {names}; got {text!r}")
    if not 0 <= value < math.inf or (name == "miss_rate" and value > 1):
        most = "at most 1" if name == "miss_rate" else "finite"
        raise InputError(f"--want {name} must be at least 0 and {most}, got {value:g}")
    return name, value


def _table_of(*headings: str) -> Table:
    """A table without rows."""
    return Table(*headings, box=None, pad_edge=False, padding=(0, 2, 0, 0))


def _areas(curve: CharacteristicCurve, miss_range: tuple[float, float] | None) -> Table:
    table = _table_of("convention", "part", "area", "gain over a constant width")
    ranges: list[tuple[str, tuple[float, float] | None]] = [("whole", None)]
    if miss_range is not None:
        low, high = miss_range
        ranges.append((f"{curve.y_axis} {low:g} … {high:g}".replace("_", " "), miss_range))
    for convention in get_args(Convention):
        for name, limits in ranges:
            request = AreaRequest(convention=convention, y_range=limits)
            area, gain = curve.area_by(request), curve.gain_by(request)
            table.add_row(
                convention, name, f"{area.value:.5g} {area.units}", f"{_percent(gain.value):.2f} %"
            )
    return table


def _print_bootstrap(
    console: Console,
    curve: CharacteristicCurve,
    cluster: IntArray | None,
    replicates: int,
    seed: int,
) -> None:
    resampled = bootstrap_curve(curve, replicates=replicates, cluster=cluster, seed=seed)
    for name, number in (("area", resampled.area), ("gain", resampled.gain)):
        value, low, high = number.value, number.lower, number.upper
        if name == "gain":
            value, low, high = map(_percent, (value, low, high))
        text = f"{name}: {value:.5g} ({low:.5g} … {high:.5g})"
        console.print(f"bootstrap {text}, {replicates:,} resamples, exact")


def _percent(value: float) -> float:
    """A gain as it is shown: 0 where it differs from that by rounding alone."""
    return 0.0 if abs(value) < 1e-9 else value


def _points(curve: CharacteristicCurve, wishes: Sequence[tuple[str, float]]) -> Table:
    table = _table_of(
        *("point", "k", "bandwidth", "miss rate", "excess", "deficit", "fresh rows (95 %)")
    )
    points: list[tuple[str, OperatingPoint]] = [("as predicted", curve.at())]
    points += [(f"{name} = {value:g}", curve.at(**{name: value})) for name, value in wishes]
    for name, point in points:
        least = point.conformal.coverage_lower
        covered = point.conformal.reason if math.isnan(least) else f"covered ≥ {least:.3f}"
        numbers = (point.knob, point.bandwidth, point.miss_rate, point.excess, point.deficit)
        table.add_row(name, *(f"{number:.4g}" for number in numbers), covered)
    return table


def _cost(
    curve: CharacteristicCurve,
    miss_cost: float | None,
    cost_weight: float | None,
    coverage: float,
) -> str:
    """What the present setting costs and where the cost is least, or why there is no price.

    Without a price, that of the interval score: on bandwidth and deficit, whatever the axes.
    """
    if cost_weight is not None:
        cost = curve.cost(cost_weight=cost_weight)
        width, misses = (name.replace("_", " ") for name in (curve.x_axis, curve.y_axis))
        return (
            f"cost {cost_weight:.4g} · {width} + {1.0 - cost_weight:.4g} · {misses}: "
            f"{_least(curve, cost)}"
        )
    if miss_cost is not None:
        cost, whose = curve.cost(miss_cost=miss_cost), ""
    elif math.isnan(coverage):
        return "no cost: the nominal coverage is unknown; set the cost of a miss with --miss-cost"
    else:
        curve = curve.on(x="bandwidth", y_axis="deficit")
        cost, whose = curve.cost(coverage=coverage), f", as in the interval score at {coverage:g}"
    per = "miss" if curve.y_axis == "miss_rate" else "unit of deficit"
    return f"cost in units of width, {cost.y_weight:.4g} per {per}{whose}: {_least(curve, cost)}"


def _least(curve: CharacteristicCurve, cost: Cost) -> str:
    """The cost of the present setting, and where it is least."""
    return (
        f"now {cost.cost_now:.5g}, minimum {cost.cost:.5g} at k = {cost.knob:.5g} "
        f"({curve.x_axis} {cost.x:.4g}, "
        f"{curve.y_axis.replace('_', ' ')} {cost.y:.4g}); regret {cost.regret:.5g}"
    )


def _save(curves: Sequence[Curve], path: Path) -> None:
    from howsure.figures import plot

    buffer = io.BytesIO()
    figure = plot(curves).get_figure(root=True)
    assert figure is not None
    figure.savefig(buffer, format=path.suffix.lower()[1:], dpi=150, bbox_inches="tight")
    atomic_write(path, buffer.getvalue())
