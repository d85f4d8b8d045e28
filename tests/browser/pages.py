"""Makers of the pages that are looked at: one of every kind, and those of bad input."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv

import howsure
from howsure.core.arrays import FloatArray

HOSTILE = (
    "</script><script>window.pwned=1</script><img src=x onerror='window.pwned=2'>"
    "<svg onload=window.pwned=3>\"'`\njavascript:window.pwned=4"
)


class Power:
    """Demand by the hour: the north is harder to foretell, and no model knows it."""

    def __init__(self, n: int, seed: int = 3) -> None:
        rng = np.random.default_rng(seed)
        hour, self.temperature, self.wind = (
            np.arange(n) % 24,
            rng.normal(12, 8, n),
            rng.gamma(2, 3, n),
        )
        self.region = rng.choice(["north", "south", "east", "west"], n, p=[0.2, 0.3, 0.3, 0.2])
        self.season = np.array(["winter", "spring", "summer", "autumn"])[np.arange(n) * 4 // n]
        base = 50 + 12 * np.sin(2 * np.pi * hour / 24) - 0.4 * self.temperature
        known = 2 + 0.25 * self.wind
        sd = known * np.where(self.region == "north", 1.6, 1)
        self.hour = hour.astype(float)
        self.y: FloatArray = base + sd * rng.standard_t(8, n) * np.sqrt(6 / 8)
        self.mean: FloatArray = base + rng.normal(0, 0.4, n)
        self.models = {
            "boosted trees": (self.mean, 0.9 * known),
            "linear": (base + rng.normal(0, 1.5, n), np.full(n, 4.2)),
            "deep ensemble": (self.mean + 0.3, 0.6 * known),
            "gaussian process": (self.mean, sd),
            "quantile net": (self.mean - 0.2, 1.3 * sd),
        }

    @property
    def x(self) -> dict[str, FloatArray]:
        """The inputs."""
        return {"hour": self.hour, "temperature": self.temperature, "wind": self.wind}

    @property
    def groups(self) -> dict[str, Any]:
        """The groups."""
        return {"region": self.region, "season": self.season}


def one() -> Any:
    """One model with groups, and a next step."""
    data = Power(1000)
    name = "boosted trees"
    return howsure.assess(data.y, data.models[name], groups=data.groups, model=name)


def right() -> Any:
    """One model that knows what it does not know."""
    data = Power(1200)
    sd = data.models["gaussian process"][1]
    y = data.mean + sd * np.random.default_rng(4).normal(size=len(sd))
    name = "gaussian process"
    return howsure.assess(y, (data.mean, sd), groups={"region": data.region}, model=name)


def few() -> Any:
    """Fifty rows, too few to tell."""
    data = Power(50)
    name = "boosted trees"
    return howsure.assess(data.y, data.models[name], model=name)


def two() -> Any:
    """Two models with groups and features, and a next step."""
    data = Power(1000)
    models = {name: data.models[name] for name in ("boosted trees", "linear")}
    return howsure.assess(data.y, models, features=data.x, groups=data.groups)


def five() -> Any:
    """Five models with groups."""
    data = Power(1000)
    return howsure.assess(
        data.y, data.models, groups={"region": data.region}, options=howsure.Options(trials=False)
    )


def bare() -> Any:
    """A table of intervals at one coverage, with groups, and nothing else."""
    data = Power(1500)
    ends = (data.mean - 4, data.mean + 4)
    return howsure.assess(data.y, ends, coverage=0.9, groups=data.groups)


def labels() -> Any:
    """Nothing but sets of labels; at one site the labels are often others."""
    n = 1000
    rng = np.random.default_rng(5)
    site = rng.choice(["A", "B", "C"], n)
    shares = rng.dirichlet(np.full(5, 0.7), n)
    label = (rng.random((n, 1)) > np.cumsum(shares, axis=1)).sum(axis=1)
    label = np.where((site == "C") & (rng.random(n) < 0.3), rng.integers(0, 5, n), label)
    order = np.argsort(-shares, axis=1)
    before = np.cumsum(np.take_along_axis(shares, order, 1), axis=1) < 0.8
    kept = np.hstack([np.ones((n, 1), dtype=bool), before[:, :-1]])
    member = np.zeros((n, 5), dtype=bool)
    np.put_along_axis(member, order, kept, 1)
    return howsure.assess(label, howsure.LabelSets(member, coverage=0.9), groups={"site": site})


def monitor() -> Any:
    """New rows without y, judged by a table that has it."""
    from howsure.inputs import load, load_unlabelled
    from howsure.report.monitor import fit_monitor, monitored

    data = Power(800)
    spread = data.models["boosted trees"][1]
    new = {name: values[:300] for name, values in data.x.items()}
    new["temperature"] = new["temperature"] + np.where(np.arange(300) < 30, 60, 0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = pa.table({"y": data.y, "mean": data.mean, "sd": spread, **data.x})
        pyarrow.csv.write_csv(table, folder / "reference.csv")
        pyarrow.csv.write_csv(pa.table(new), folder / "new.csv")
        reference = load(folder / "reference.csv", features=list(data.x))
        unlabelled = load_unlabelled(folder / "new.csv", reference)
    return monitored(
        fit_monitor(reference.evalsets[0]),
        unlabelled,
        facts={"Source": "new.csv", "Reference table": "reference.csv"},
        command="howsure assess new.csv --reference reference.csv",
    ).report


def hostile() -> Any:
    """Markup for every name that a user gives."""
    data = Power(400)
    wrap = "{} {}".format
    return howsure.assess(
        howsure.Table(
            data.y,
            {wrap(HOSTILE, name): data.models[name] for name in ("boosted trees", "linear")},
            features={wrap(HOSTILE, name): values for name, values in data.x.items()},
            groups={wrap(HOSTILE, "region"): np.array([wrap(HOSTILE, r) for r in data.region])},
            rows=[wrap(HOSTILE, k) for k in range(400)],
        ),
        options=howsure.Options(trials=False),
    )


def many_groups(n: int = 20_000) -> Any:
    """Half as many groups as rows, a hundred of them larger than one row."""
    data = Power(n)
    place = np.where(np.arange(n) % 2, np.arange(n) // 2 % 100, np.arange(n) // 2)
    site = np.array([f"site {k:05d}" for k in place])
    return howsure.assess(
        data.y,
        data.models["boosted trees"],
        groups={"site": site},
        options=howsure.Options(trials=False),
    )


def many_models(count: int = 100) -> Any:
    data = Power(3 * count)
    mean, sd = data.models["gaussian process"]
    models = {
        f"model {k:03d}": howsure.Intervals(mean - (1 + k / 50) * sd, mean + 2 * sd, coverage=0.9)
        for k in range(count)
    }
    return howsure.assess(
        data.y, models, groups={"region": data.region}, options=howsure.Options(trials=False)
    )


def one_row() -> Any:
    """One row."""
    return howsure.assess([1.0], (np.array([0.0]), np.array([1.0])), coverage=0.9)


def long_names() -> Any:
    """Two models whose names have a hundred characters."""
    data = Power(300)
    names = ("boosted trees", "linear")
    models = {(name + " with monotone constraints " * 5)[:100]: data.models[name] for name in names}
    return howsure.assess(data.y, models, groups=data.groups, options=howsure.Options(trials=False))


KINDS: Final[Mapping[str, Callable[[], Any]]] = MappingProxyType(
    {made.__name__: made for made in (one, right, few, two, five, bare, labels, monitor)}
)
BAD: Final[Mapping[str, Callable[[], Any]]] = MappingProxyType(
    {made.__name__: made for made in (hostile, many_groups, many_models, one_row, long_names)}
)


@cache
def html(name: str) -> str:
    """The page of this name."""
    made: str = {**KINDS, **BAD}[name]().to_html()
    return made
