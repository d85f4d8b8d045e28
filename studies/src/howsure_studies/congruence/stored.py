"""Studies as they stand in a store, and as they ship with a plan."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from howsure.core import convert
from howsure.core.arrays import AnyArray
from howsure_studies.congruence.result import CongruenceRun, CongruenceStudies, Rejection

_KEPT: Final = np.linspace(0.0, 1.0, 21)
"""Quantiles of CCE over the rows that ship."""
_SINGLE: Final = re.compile(
    "result/runs/[0-9]+/rows|rejections/[0-9]+/losses|monotonicity.*/values|diagnoses|beliefs"
)
"""Arrays that ship in single precision."""


def packed(studies: CongruenceStudies) -> tuple[convert.Arrays, dict[str, Any]]:
    """Studies as arrays by name and values that JSON knows.

    Stores keep a result's parts and the curves of perturbations without a folder around them, and
    name the fields of predictions, but not the losses of p-values.
    """
    arrays, facts = convert.packed(studies)
    facts |= facts.pop("result")
    for own in facts["rejections"]:
        del own["p_values"]
    for number, own in enumerate(facts["beliefs"]):
        whole = f"beliefs/{number}/"
        own["names"] = [k.removeprefix(whole) for k in arrays if k.startswith(whole)]
    return {
        re.sub("^result/|(?<=^monotonicity/)curves/", "", k): v for k, v in arrays.items()
    }, facts


def unpacked(arrays: Mapping[str, AnyArray], facts: Mapping[str, Any]) -> CongruenceStudies:
    """The studies that `packed` was given."""
    kept = {
        **facts,
        "result": {name: facts[name] for name in ("options", "runs")},
        "rejections": [
            {**rejection, "p_values": rejection["losses"]} for rejection in facts["rejections"]
        ],
    }
    moved = {re.sub("^(?=runs/)", "result/", k): v for k, v in arrays.items()}
    moved = {re.sub("^monotonicity/", "monotonicity/curves/", k): v for k, v in moved.items()}
    return convert.unpacked(CongruenceStudies, moved, kept)


def shortened(studies: CongruenceStudies) -> CongruenceStudies:
    """What the page draws of studies: rows in single precision, those of rejection as ranks.

    Where the inputs of a model are not one number, its predictions are left out, and of its CCE at
    the rows quantiles are kept. Bootstrap samples, and so all spreads and verdicts, stay as they
    are.
    """
    predictions = tuple(predictions for predictions in studies.beliefs if predictions.x is not None)
    drawn = {each.model for each in predictions}

    def thinned(run: CongruenceRun) -> CongruenceRun:
        rows = {name: run.rows[name] for name in ("cce", "cce_sd") if name in run.rows}
        if rows and run.model not in drawn and run.n > len(_KEPT):
            rows = {"cce": np.quantile(rows["cce"], _KEPT)}
        return replace(run, rows=rows)

    result = replace(studies.result, runs=tuple(map(thinned, studies.result.runs)))
    rejections = tuple(map(_ranked, studies.rejections))
    arrays, facts = convert.packed(
        replace(studies, result=result, rejections=rejections, beliefs=predictions)
    )
    kept = {
        place: array.astype(np.float32) if _SINGLE.match(place) else array
        for place, array in arrays.items()
    }
    return convert.unpacked(CongruenceStudies, kept, facts)


def _ranked(rejection: Rejection) -> Rejection:
    """The same with rows in the order of CCE, which is known by its ranks alone."""
    order = np.argsort(rejection.scores, kind="stable")
    ranks = np.unique(rejection.scores[order], return_inverse=True)[1]
    losses = {name: loss[order] for name, loss in rejection.losses.items()}
    return replace(rejection, scores=ranks.astype(np.int32), losses=losses)
