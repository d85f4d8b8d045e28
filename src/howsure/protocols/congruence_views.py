"""Views of the congruence studies: curves over one input, and ours beside the printed numbers."""

from __future__ import annotations

from typing import Final

import numpy as np

from howsure.core.arrays import FloatArray, as_vector
from howsure.core.errors import InputError
from howsure.core.records import Curve, Table
from howsure.protocols.congruence_published import published
from howsure.protocols.congruence_result import CongruenceResult, CongruenceRun

_LABELS: Final = {"cce": "CCE at x", "nll": "NLL of the row", "error": "absolute error"}


def over_input(run: CongruenceRun, x: FloatArray) -> tuple[Curve, ...]:
    """CCE, NLL and absolute error of one run at its rows, over one input: figure 2's lower rows.

    Parameters
    ----------
    run : CongruenceRun
        With rows.
    x : ndarray of float, shape (n,) or (n, 1)
        The input of each row, or another number to sort by.

    Returns
    -------
    tuple of Curve
        ``congruence_cce`` with a band of one standard deviation over bootstrap samples and draws,
        ``congruence_nll`` and ``congruence_error``; those that the run has.

    Raises
    ------
    InputError
        If there is not one number a row, or the run has no answer.
    """
    if not run.rows:
        raise InputError(f"run must have rows, got none: {', '.join(set(run.reasons.values()))}")
    at = as_vector(x, "x", length=run.n)
    order = np.argsort(at, kind="stable")
    spread = run.rows["cce_sd"][order]
    return tuple(
        Curve(
            name=f"congruence_{name}",
            x=at[order],
            y=run.rows[name][order],
            lower=run.rows[name][order] - spread if name == "cce" else None,
            upper=run.rows[name][order] + spread if name == "cce" else None,
            band="one standard deviation over samples and draws" if name == "cce" else "",
            x_label="x",
            y_label=label,
            model=run.model,
            group=f"task={run.task}",
        )
        for name, label in _LABELS.items()
        if name in run.rows
    )


def beside_published(result: CongruenceResult, source: str = "figure 2") -> Table:
    """Measures of a comparison beside those that the paper prints of models of the same names.

    Parameters
    ----------
    result : CongruenceResult
        Its models are named by their heads.
    source : str
        A figure or table of the paper.

    Returns
    -------
    Table
        One row a model and measure with a printed number: ours (mean over runs; of CCE, over
        bootstrap samples where there are some; of NLL, without the double Poisson constant), the
        standard deviation over runs, and the printed number.

    Raises
    ------
    InputError
        If the source is unknown, or prints none of these models.
    """
    rows = []
    for row in published(source):
        if row.model not in result.models or row.measure not in ("nll", "ece", "cce", "mae"):
            continue
        ours = np.array([_ours(run, row.measure) for run in result.of(row.model)])
        spread = float(ours.std(ddof=1)) if len(ours) > 1 else float("nan")
        rows.append((row.model, row.measure, float(ours.mean()), spread, row.value, row.note))
    if not rows:
        raise InputError(f"source must print one of {', '.join(result.models)}, got {source!r}")
    model, measure, ours_, spread_, printed, note = zip(*rows, strict=True)
    return Table(
        name="congruence_published",
        columns={
            "model": np.array(model, dtype=object),
            "measure": np.array(measure, dtype=object),
            "ours": np.array(ours_),
            "sd": np.array(spread_),
            "published": np.array(printed),
            "note": np.array(note, dtype=object),
        },
        labels={"sd": "sd over sets of data"},
        notes=f"Young et al. 2025, {source}.",
    )


def _ours(run: CongruenceRun, measure: str) -> float:
    if measure == "cce" and run.bootstraps:
        return run.bootstrap_mean("cce")
    return run.value("nll_unnormalised" if measure == "nll" else measure)
