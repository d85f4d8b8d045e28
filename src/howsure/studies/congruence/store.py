"""Congruence studies as arrays and plain facts, and back, bit by bit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from howsure.core import convert
from howsure.studies.congruence.bundle import CongruenceStudies

Arrays = Mapping[str, npt.NDArray[Any]]


def packed(studies: CongruenceStudies) -> tuple[convert.Arrays, dict[str, Any]]:
    """Studies as arrays by name and values that JSON knows.

    Stores hold a result's parts and the curves of perturbations without a folder around them, and
    name the fields of beliefs, but not the losses of p-values.
    """
    arrays, facts = convert.packed(studies)
    facts |= facts.pop("result")
    for told in facts["rejections"]:
        del told["p_values"]
    for place, told in enumerate(facts["beliefs"]):
        whole = f"beliefs/{place}/"
        told["names"] = [k.removeprefix(whole) for k in arrays if k.startswith(whole)]
    return {
        re.sub("^result/|(?<=^monotonicity/)curves/", "", k): v for k, v in arrays.items()
    }, facts


def unpacked(arrays: Arrays, facts: Mapping[str, Any]) -> CongruenceStudies:
    """The studies that `packed` was given."""
    told = {
        **facts,
        "result": {name: facts[name] for name in ("options", "runs")},
        "rejections": [{**one, "p_values": one["losses"]} for one in facts["rejections"]],
    }
    moved = {re.sub("^(?=runs/)", "result/", k): v for k, v in arrays.items()}
    moved = {re.sub("^monotonicity/", "monotonicity/curves/", k): v for k, v in moved.items()}
    return convert.unpacked(CongruenceStudies, moved, told)


def joined(parts: Sequence[CongruenceStudies]) -> CongruenceStudies:
    """Studies of different models of one task and seed, as one."""
    first = parts[0]
    curves = [part.monotonicity for part in parts if part.monotonicity is not None]

    def every(name: str) -> tuple[Any, ...]:
        return tuple(item for part in parts for item in getattr(part, name))

    return replace(
        first,
        notes=tuple(dict.fromkeys(every("notes"))),
        result=replace(first.result, runs=tuple(run for part in parts for run in part.result.runs)),
        monotonicity=replace(
            curves[0], curves=tuple(curve for held in curves for curve in held.curves)
        )
        if curves
        else None,
        rejections=every("rejections"),
        diagnoses=every("diagnoses"),
        robustness=every("robustness"),
        beliefs=every("beliefs"),
    )
