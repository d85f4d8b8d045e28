"""Congruence studies as arrays and plain facts, and back, bit by bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.metrics.congruence import rejection_curve
from howsure.protocols.congruence_bundle import CongruenceStudies, ModelBeliefs
from howsure.protocols.congruence_diagnosis import Diagnosis
from howsure.protocols.congruence_perturbations import Monotonicity, MonotonicityResult
from howsure.protocols.congruence_rejection import Rejection
from howsure.protocols.congruence_result import CongruenceResult, CongruenceRun
from howsure.protocols.congruence_robustness import Robustness

Arrays = dict[str, npt.NDArray[Any]]
Facts = dict[str, Any]


def packed(studies: CongruenceStudies) -> tuple[Arrays, Facts]:
    """Studies as arrays by name and values that JSON knows.

    Examples
    --------
    >>> empty = CongruenceStudies(
    ...     task="w", units="y", counts=False, result=CongruenceResult(runs=())
    ... )
    >>> unpacked(*packed(empty)).task
    'w'
    """
    arrays: Arrays = {}
    facts: Facts = {
        **{name: getattr(studies, name) for name in ("task", "units", "counts", "seed")},
        "notes": list(studies.notes),
        "options": dict(studies.result.options),
        "runs": [_put_run(arrays, k, run) for k, run in enumerate(studies.result.runs)],
        "rejections": [_put_rejection(arrays, k, r) for k, r in enumerate(studies.rejections)],
        "monotonicity": _put_monotonicity(arrays, studies.monotonicity),
        "diagnoses": [_put_diagnosis(arrays, k, d) for k, d in enumerate(studies.diagnoses)],
        "robustness": [_put_robustness(arrays, k, r) for k, r in enumerate(studies.robustness)],
        "beliefs": [_put_beliefs(arrays, k, b) for k, b in enumerate(studies.beliefs)],
    }
    return arrays, facts


def unpacked(arrays: Mapping[str, npt.NDArray[Any]], facts: Mapping[str, Any]) -> CongruenceStudies:
    """The studies that `packed` was given."""
    told = facts["monotonicity"]
    curves = None if told is None else _curves(arrays, told)
    return CongruenceStudies(
        task=facts["task"],
        units=facts["units"],
        counts=facts["counts"],
        seed=facts["seed"],
        notes=tuple(facts["notes"]),
        result=CongruenceResult(
            runs=tuple(_run(arrays, k, told) for k, told in enumerate(facts["runs"])),
            options=facts["options"],
        ),
        rejections=tuple(_rejection(arrays, k, t) for k, t in enumerate(facts["rejections"])),
        monotonicity=curves,
        diagnoses=tuple(_diagnosis(arrays, k, t) for k, t in enumerate(facts["diagnoses"])),
        robustness=tuple(_robustness(arrays, k, t) for k, t in enumerate(facts["robustness"])),
        beliefs=tuple(_beliefs(arrays, k, t) for k, t in enumerate(facts["beliefs"])),
    )


def joined(parts: Sequence[CongruenceStudies]) -> CongruenceStudies:
    """Studies of different models of one task and seed, as one."""
    first = parts[0]
    curves = [part.monotonicity for part in parts if part.monotonicity is not None]
    return CongruenceStudies(
        task=first.task,
        units=first.units,
        counts=first.counts,
        seed=first.seed,
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        result=CongruenceResult(
            runs=tuple(run for part in parts for run in part.result.runs),
            options=first.result.options,
        ),
        rejections=tuple(item for part in parts for item in part.rejections),
        monotonicity=None
        if not curves
        else MonotonicityResult(
            curves=tuple(curve for held in curves for curve in held.curves),
            options=curves[0].options,
        ),
        diagnoses=tuple(item for part in parts for item in part.diagnoses),
        robustness=tuple(item for part in parts for item in part.robustness),
        beliefs=tuple(item for part in parts for item in part.beliefs),
    )


def _put(arrays: Arrays, place: str, values: Mapping[str, npt.NDArray[Any]]) -> list[str]:
    """Keep arrays under a place, and give their names in order."""
    arrays.update({f"{place}/{name}": np.asarray(held) for name, held in values.items()})
    return list(values)


def _take(
    arrays: Mapping[str, npt.NDArray[Any]], place: str, names: Sequence[str]
) -> dict[str, npt.NDArray[Any]]:
    return {name: arrays[f"{place}/{name}"] for name in names}


def _put_run(arrays: Arrays, k: int, run: CongruenceRun) -> Facts:
    place = f"runs/{k}"
    arrays[f"{place}/values"] = np.array(list(run.values.values()), dtype=np.float64)
    arrays[f"{place}/repeats"] = run.repeats
    return {
        **{name: getattr(run, name) for name in ("task", "model", "seed", "n")},
        "reasons": dict(run.reasons),
        "values": list(run.values),
        "bootstraps": _put(arrays, f"{place}/bootstraps", run.bootstraps),
        "rows": _put(arrays, f"{place}/rows", run.rows),
    }


def _run(arrays: Mapping[str, npt.NDArray[Any]], k: int, told: Facts) -> CongruenceRun:
    place = f"runs/{k}"
    values = arrays[f"{place}/values"].tolist()
    return CongruenceRun(
        task=told["task"],
        model=told["model"],
        seed=told["seed"],
        n=told["n"],
        reasons=told["reasons"],
        values=dict(zip(told["values"], values, strict=True)),
        repeats=arrays[f"{place}/repeats"],
        bootstraps=_take(arrays, f"{place}/bootstraps", told["bootstraps"]),
        rows=_take(arrays, f"{place}/rows", told["rows"]),
    )


def _put_rejection(arrays: Arrays, k: int, item: Rejection) -> Facts:
    place = f"rejections/{k}"
    arrays[f"{place}/scores"] = item.scores
    arrays[f"{place}/p_values"] = np.array([item.p_values[name] for name in item.losses])
    return {
        **{name: getattr(item, name) for name in ("task", "model", "units")},
        "options": dict(item.options),
        "losses": _put(arrays, f"{place}/losses", item.losses),
    }


def _rejection(arrays: Mapping[str, npt.NDArray[Any]], k: int, told: Facts) -> Rejection:
    """One model's; curves follow from scores and losses."""
    place = f"rejections/{k}"
    scores = arrays[f"{place}/scores"]
    losses = _take(arrays, f"{place}/losses", told["losses"])
    chances = arrays[f"{place}/p_values"].tolist()
    return Rejection(
        task=told["task"],
        model=told["model"],
        units=told["units"],
        options=told["options"],
        scores=scores,
        losses=losses,
        curves={name: rejection_curve(scores, held) for name, held in losses.items()},
        p_values=dict(zip(told["losses"], chances, strict=True)),
    )


def _put_monotonicity(arrays: Arrays, found: MonotonicityResult | None) -> Facts | None:
    if found is None:
        return None
    curves = []
    for k, curve in enumerate(found.curves):
        place = f"monotonicity/{k}"
        arrays[f"{place}/severities"] = curve.severities
        curves.append(
            {
                **{name: getattr(curve, name) for name in ("task", "model", "kind")},
                "values": _put(arrays, f"{place}/values", curve.values),
            }
        )
    return {"options": dict(found.options), "curves": curves}


def _curves(arrays: Mapping[str, npt.NDArray[Any]], told: Facts) -> MonotonicityResult:
    curves = [
        Monotonicity(
            task=curve["task"],
            model=curve["model"],
            kind=curve["kind"],
            severities=arrays[f"monotonicity/{k}/severities"],
            values=_take(arrays, f"monotonicity/{k}/values", curve["values"]),
        )
        for k, curve in enumerate(told["curves"])
    ]
    return MonotonicityResult(curves=tuple(curves), options=told["options"])


_DIAGNOSED = ("x", "cce", "error", "nll")


def _put_diagnosis(arrays: Arrays, k: int, item: Diagnosis) -> Facts:
    _put(arrays, f"diagnoses/{k}", {name: getattr(item, name) for name in _DIAGNOSED})
    return {"task": item.task, "model": item.model, "options": dict(item.options)}


def _diagnosis(arrays: Mapping[str, npt.NDArray[Any]], k: int, told: Facts) -> Diagnosis:
    held: Mapping[str, Any] = _take(arrays, f"diagnoses/{k}", _DIAGNOSED)
    return Diagnosis(**told, **held)


def _put_robustness(arrays: Arrays, k: int, item: Robustness) -> Facts:
    arrays[f"robustness/{k}/spoilt"] = item.spoilt
    return {
        "model": item.model,
        "settings": list(item.settings),
        "n": item.n,
        "values": _put(arrays, f"robustness/{k}/values", item.values),
    }


def _robustness(arrays: Mapping[str, npt.NDArray[Any]], k: int, told: Facts) -> Robustness:
    return Robustness(
        model=told["model"],
        settings=tuple(told["settings"]),
        n=told["n"],
        spoilt=arrays[f"robustness/{k}/spoilt"],
        values=_take(arrays, f"robustness/{k}/values", told["values"]),
    )


_BELIEVED = ("y", "point", "lower", "upper")


def _put_beliefs(arrays: Arrays, k: int, item: ModelBeliefs) -> Facts:
    names = [*_BELIEVED, *(name for name in ("x", "pit") if getattr(item, name) is not None)]
    _put(arrays, f"beliefs/{k}", {name: getattr(item, name) for name in names})
    return {"model": item.model, "seed": item.seed, "names": names}


def _beliefs(arrays: Mapping[str, npt.NDArray[Any]], k: int, told: Facts) -> ModelBeliefs:
    return ModelBeliefs(
        model=told["model"], seed=told["seed"], **_take(arrays, f"beliefs/{k}", told["names"])
    )
