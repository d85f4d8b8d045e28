"""How far beyond their interval do the missed values lie? A topic of howsure in one file."""

from __future__ import annotations

from typing import Any

import numpy as np

from howsure.topics import (
    Axis,
    Curve,
    Direction,
    Form,
    Layout,
    Metric,
    Question,
    Table,
    Topic,
)


def miss_depth(y: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """How far each y lies beyond its interval, in half-widths; 0 inside."""
    half = (upper - lower) / 2.0
    beyond = np.maximum(np.maximum(lower - y, y - upper), 0.0)
    return np.divide(beyond, half, out=np.where(beyond > 0.0, np.inf, 0.0), where=half > 0.0)


def _depths(evaluation: Any) -> list[tuple[float, np.ndarray]]:
    """The depth of every row, by nominal coverage."""
    found = []
    for coverage in evaluation.coverages:
        arrays = (evaluation.view.get(name, coverage) for name in ("y", "lower", "upper"))
        found.append((coverage, miss_depth(*arrays)))
    return found


def _curves(evaluation: Any, confidence: float) -> list[Curve]:
    """The share of rows that lie deeper than so many half-widths."""
    ends = np.linspace(0.0, 2.0, 81)
    _, depth = _depths(evaluation)[-1]
    share = 1.0 - np.searchsorted(np.sort(depth), ends, side="right") / len(depth)
    return [Curve(name="miss_depth", x=ends, y=share, model=evaluation.evalset.model)]


def _tables(evaluation: Any) -> list[Table]:
    """Quantiles of the depth of the rows that were missed."""
    missed = [(coverage, depth[depth > 0]) for coverage, depth in _depths(evaluation)]
    missed = [(coverage, depth) for coverage, depth in missed if len(depth)]
    if not missed:
        return []
    columns = {
        "coverage": np.array([coverage for coverage, _ in missed]),
        "missed": np.array([len(depth) for _, depth in missed]),
        "median": np.array([np.quantile(depth, 0.5) for _, depth in missed]),
        "highest_tenth": np.array([np.quantile(depth, 0.9) for _, depth in missed]),
    }
    labels = {"median": "Median depth", "highest_tenth": "A tenth lies deeper than"}
    model = evaluation.evalset.model
    return [Table(name="miss_depths", columns=columns, labels=labels, model=model)]


TOPIC = Topic(
    entries=(
        Metric(
            name="miss_depth",
            title="Miss depth",
            question=Question.COVERAGE,
            meaning="How far values lie beyond their interval, in half-widths, over all rows.",
            formula="mean max(l − y, y − u, 0) / ((u − l) / 2)",
            source="this package",
            direction=Direction.LOWER,
            forms=(Form(needs=("y", "lower", "upper"), function=miss_depth),),
            standard_normal=0.0254,
            per_coverage=True,
            bounds=(0.0, np.inf),
        ),
    ),
    curves=(_curves,),
    tables=(_tables,),
    label="Depth",
    title="How deep do misses lie?",
    layouts={
        "miss_depth": Layout(
            order=6,
            question="How far beyond their interval do values lie?",
            title="Depth of misses",
            reading="The curve starts at the share of rows missed; a long tail means deep misses.",
            x=Axis(title="Depth, half-widths"),
            y=Axis(title="Share of rows deeper", kind="percent"),
        )
    },
    titles={"miss_depths": "How deep misses lie"},
)
