"""Views of the congruence studies: curves over one input."""

from __future__ import annotations

from typing import Final

import numpy as np

from howsure.core.arrays import FloatArray, as_vector
from howsure.core.errors import InputError
from howsure.core.records import Curve
from howsure.studies.congruence.result import CongruenceRun

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
