"""The form in which stores keep congruence studies, which must not change."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from howsure.metrics.congruence import rejection_curve
from howsure.studies.congruence import CongruenceResult, CongruenceRun, CongruenceStudies
from howsure.studies.congruence.result import (
    Diagnosis,
    ModelBeliefs,
    Monotonicity,
    MonotonicityResult,
    Robustness,
    packed,
    unpacked,
)

ROWS = np.array([0.25, np.nan, -0.0, np.inf])
LOSSES = {"mae": np.array([1.0, 2.0, 3.0]), "nll": np.array([0.5, -0.5, 0.0])}
SCORES = np.array([0.1, 0.3, 0.2])

FACTS: dict[str, Any] = {
    "task": "wave",
    "units": "y",
    "counts": True,
    "seed": 4,
    "notes": ["one", "two"],
    "options": {"draws": 2.0, "kernel": "rbf"},
    "runs": [
        {
            "task": "wave",
            "model": "m",
            "seed": 4,
            "n": 4,
            "reasons": {"ece": "no law"},
            "values": ["cce", "ece"],
            "bootstraps": ["cce"],
            "rows": ["cce", "error"],
        }
    ],
    "rejections": [
        {
            "task": "wave",
            "model": "m",
            "units": "y",
            "options": {"draws": 2.0},
            "losses": ["mae", "nll"],
        }
    ],
    "monotonicity": {
        "options": {"trials": 2.0},
        "curves": [{"task": "wave", "model": "m", "kind": "noise", "values": ["cce", "mae"]}],
    },
    "diagnoses": [{"task": "wave", "model": "m", "options": {"draws": 1.0}}],
    "robustness": [{"model": "m", "settings": ["as is", "1 row"], "n": 3, "values": ["cce"]}],
    "beliefs": [
        {"model": "m", "seed": 4, "names": ["y", "point", "lower", "upper", "x"]},
        {"model": "k", "seed": 0, "names": ["y", "point", "lower", "upper", "pit"]},
    ],
}
ARRAYS: dict[str, Any] = {
    "runs/0/values": np.array([0.5, np.nan]),
    "runs/0/repeats": np.array([0.4, 0.6]),
    "runs/0/bootstraps/cce": np.array([0.1, 0.2]),
    "runs/0/rows/cce": ROWS,
    "runs/0/rows/error": ROWS[::-1],
    "rejections/0/scores": SCORES,
    "rejections/0/p_values": np.array([0.25, np.nan]),
    "rejections/0/losses/mae": LOSSES["mae"],
    "rejections/0/losses/nll": LOSSES["nll"],
    "monotonicity/0/severities": np.array([0.0, 1.0]),
    "monotonicity/0/values/cce": np.array([[1.0, 2.0], [3.0, 4.0]]),
    "monotonicity/0/values/mae": np.array([[0.0, 2.0], [0.5, 4.0]]),
    **{f"diagnoses/0/{name}": ROWS + k for k, name in enumerate(("x", "cce", "error", "nll"))},
    "robustness/0/spoilt": np.array([0, 1]),
    "robustness/0/values/cce": np.array([[1.0], [2.0]]),
    **{f"beliefs/0/{name}": ROWS for name in ("y", "point", "lower", "upper", "x")},
    **{f"beliefs/1/{name}": ROWS for name in ("y", "point", "lower", "upper", "pit")},
}


def test_studies_in_a_store_are_read() -> None:
    found = unpacked(ARRAYS, json.loads(json.dumps(FACTS)))
    assert isinstance(found, CongruenceStudies)
    assert (found.task, found.units, found.counts, found.seed) == ("wave", "y", True, 4)
    assert found.notes == ("one", "two")
    assert isinstance(found.result, CongruenceResult)
    assert found.result.options == {"draws": 2.0, "kernel": "rbf"}
    (run,) = found.result.runs
    assert isinstance(run, CongruenceRun)
    assert (run.task, run.model, run.seed, run.n) == ("wave", "m", 4, 4)
    assert run.reasons == {"ece": "no law"}
    assert list(run.values) == ["cce", "ece"]
    assert run.values["cce"] == 0.5
    assert type(run.values["ece"]) is float
    assert np.isnan(run.values["ece"])
    assert run.repeats is ARRAYS["runs/0/repeats"]
    assert list(run.bootstraps) == ["cce"]
    assert run.rows["error"] is ARRAYS["runs/0/rows/error"]
    (withheld,) = found.rejections
    assert withheld.scores is SCORES
    assert list(withheld.losses) == ["mae", "nll"]
    assert withheld.p_values["mae"] == 0.25
    assert np.isnan(withheld.p_values["nll"])
    for name, loss in LOSSES.items():
        assert withheld.curves[name].area == rejection_curve(SCORES, loss).area
    assert isinstance(found.monotonicity, MonotonicityResult)
    assert found.monotonicity.options == {"trials": 2.0}
    (curve,) = found.monotonicity.curves
    assert isinstance(curve, Monotonicity)
    assert (curve.task, curve.model, curve.kind) == ("wave", "m", "noise")
    assert curve.severities is ARRAYS["monotonicity/0/severities"]
    assert curve.values["mae"] is ARRAYS["monotonicity/0/values/mae"]
    (known,) = found.diagnoses
    assert isinstance(known, Diagnosis)
    assert known.nll is ARRAYS["diagnoses/0/nll"]
    (spoilt,) = found.robustness
    assert isinstance(spoilt, Robustness)
    assert spoilt.settings == ("as is", "1 row")
    assert spoilt.spoilt is ARRAYS["robustness/0/spoilt"]
    first, second = found.beliefs
    assert isinstance(first, ModelBeliefs)
    assert first.pit is None
    assert second.x is None
    assert (first.seed, second.seed) == (4, 0)


def test_studies_are_kept_in_the_form_of_all_stores() -> None:
    arrays, facts = packed(unpacked(ARRAYS, FACTS))
    assert facts == FACTS
    assert json.loads(json.dumps(facts)) == FACTS
    assert set(arrays) == set(ARRAYS)
    for name, held in arrays.items():
        assert held.dtype == ARRAYS[name].dtype
        assert held.tobytes() == ARRAYS[name].tobytes()


def test_studies_without_perturbations_are_kept_too() -> None:
    facts = {**FACTS, "monotonicity": None}
    arrays = {k: v for k, v in ARRAYS.items() if not k.startswith("monotonicity")}
    kept, told = packed(unpacked(arrays, facts))
    assert told == facts
    assert set(kept) == set(arrays)
