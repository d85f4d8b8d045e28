"""How far beyond their interval do the missed values lie? A topic of howsure in one file."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from howsure.topics import (
    Axis,
    Case,
    Curve,
    Direction,
    Draft,
    Finding,
    FindingQuestion,
    Form,
    Layout,
    Metric,
    Question,
    ResultTable,
    Topic,
    UnanswerableError,
    Words,
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


def _tables(evaluation: Any) -> list[ResultTable]:
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
    return [ResultTable(name="miss_depths", columns=columns, labels=labels, model=model)]


def _draft(case: Case) -> Draft:
    """How deep misses lie beside those of a correctly specified model."""
    found = case.get("miss_depth")
    spread = (found.null_upper - found.null_lower) / 3.92
    if not spread > 0:
        raise UnanswerableError("no correctly specified model could be simulated to compare with")
    value, lower, upper = (
        each / found.null - 1.0 for each in (found.value, found.lower, found.upper)
    )
    p = math.erfc(abs(found.value - found.null) / spread / math.sqrt(2.0))
    facts = {"depth": found.value, "expected": found.null}
    return Draft(effect=value, lower=lower, upper=upper, p=p, n=found.n, facts=facts)


def _words(draft: Draft, _: Finding) -> Words:
    """What was seen, the fault, and what holds if there is none."""
    depth, expected = draft.facts["depth"], draft.facts["expected"]
    seen = f"Misses lie {depth:.3f} half-widths deep over all rows; {expected:.3f} is expected"
    way = "deeper" if draft.effect > 0 else "less deep"
    return Words(seen, f"they lie {way} than stated", "in line with the stated distribution")


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
    findings=(
        FindingQuestion(
            id="depth",
            asked="Do misses lie as deep as stated?",
            label="Depth",
            unit="ratio − 1",
            tolerance=0.1,
            margin=0.25,
            measures=("miss_depth",),
            reads_null=lambda record: record.metric == "miss_depth",
            draft=_draft,
            words=_words,
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
