"""One question, one answer: the same rows by every road.

A frame in memory, its CSV and its Parquet file give the same verdict, and a check judges as an
assessment does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from extras import needs
from howsure import Options, assess
from howsure.core.rng import child
from howsure.engine.finding import Finding
from howsure.inputs import load
from howsure.report.assessment import Assessment
from howsure.report.check import Rules, check
from howsure.verdict.findings import questions

pd = needs("pandas")
N = 120


def normal(rng: np.random.Generator) -> Any:
    """By the hour, kept in the index, with errors that follow each other."""
    noise = rng.normal(size=N)
    y = np.convolve(noise, 0.8 ** np.arange(20))[:N]
    index = pd.date_range("2026-01-01", periods=N, freq="h")
    return pd.DataFrame({"y": y, "mean": 0.3, "sd": 1.5}, index=index)


def intervals(rng: np.random.Generator) -> Any:
    """Of three sites, one of them under-covered, with an input and a frequency."""
    site, x = rng.choice(list("abc"), N), rng.normal(size=N)
    y = rng.normal(size=N) * np.where(site == "c", 3.0, 1.0)
    columns = {"y": y, "lower_90": -1.645, "upper_90": 1.645, "group": site, "x_a": x}
    return pd.DataFrame({**columns, "weight": rng.integers(1, 3, N)})


def unbounded(rng: np.random.Generator) -> Any:
    """Three in ten without an end."""
    half = np.where(rng.random(N) < 0.3, np.inf, 1.645)
    return pd.DataFrame({"y": rng.normal(size=N), "lower_90": -half, "upper_90": half})


def quantiles(rng: np.random.Generator) -> Any:
    """In clusters whose names are numbers, in an index without order."""
    cluster = np.arange(N) // 4
    y = rng.normal(size=N // 4)[cluster] + rng.normal(size=N)
    table = {
        f"q{level:02}": v for level, v in ((5, -1.6), (25, -0.7), (50, 0.0), (75, 0.7), (95, 1.6))
    }
    return pd.DataFrame({"y": y, **table, "cluster": cluster}, index=rng.permutation(N))


def samples(rng: np.random.Generator) -> Any:
    """Few members, which know half of what happens; rows are named."""
    known = rng.normal(size=N)
    members = {f"s_{k}": known + rng.normal(size=N) for k in range(8)}
    names = pd.Index([f"case {k}" for k in range(N)], name="id")
    return pd.DataFrame({"y": known + rng.normal(size=N), **members}, index=names)


def classes(rng: np.random.Generator) -> Any:
    """Probabilities of three classes, their names in y."""
    shares = rng.dirichlet([2.0, 1.0, 1.0], N)
    y = [rng.choice(["cat", "dog", "emu"], p=row) for row in shares]
    return pd.DataFrame({"y": y, **dict(zip(("p_cat", "p_dog", "p_emu"), shares.T, strict=True))})


def told(findings: tuple[Finding, ...]) -> dict[str, tuple[Any, ...]]:
    """What a verdict says, by its questions."""
    return {each.id: (each.state, each.where, each.sentence) for each in findings}


@pytest.mark.slow
@pytest.mark.parametrize("made", [normal, intervals, unbounded, quantiles, samples, classes])
def test_every_road_leads_to_one_verdict(
    made: Callable[[np.random.Generator], Any], tmp_path: Path
) -> None:
    frame = made(child(0, "roads", made.__name__))
    frame.to_csv(tmp_path / "table.csv")
    frame.to_parquet(tmp_path / "table.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, *others = [
            assess(source, options=Options(trials=False))
            for source in (frame, tmp_path / "table.csv", tmp_path / "table.parquet")
        ]
        checked = check(load(frame).evalsets, Rules(fail_on="bad"))
    for other in others:
        assert reply(other) == reply(first)
        assert told(other.findings) == told(first.findings)
    shared = {name for name, question in questions().items() if not question.reported}
    expected = {name: each for name, each in told(first.findings).items() if name in shared}
    assert told(tuple(answer.finding for answer in checked.answers)) == expected


def reply(found: Assessment) -> tuple[str, str]:
    assert found.answer is not None
    return found.answer.reply, found.answer.sentence
