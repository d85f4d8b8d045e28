"""Label sets and intervals with guaranteed coverage, for tables."""

from __future__ import annotations

import os
from typing import Any, overload

from howsure.core.arrays import check_fraction
from howsure.core.errors import InputError
from howsure.core.registry import unknown
from howsure.report.apply import RecalibratedFiles, Recalibration
from howsure.report.recalibrate import given_fit, learn_and_apply
from howsure.streaming.load import Large

LABEL_METHODS = ("lac", "aps", "raps", "saps", "o_lac", "o_saps")
"""Methods that make label sets."""
# The usual one.
DEFAULT_COVERAGE = 0.9
"""Where nobody says."""
CONFORMAL_METHODS = (*LABEL_METHODS, "cp", "cp_a", "pac", "cqr", "o_cpa", "o_pac")
"""All methods; those without label sets make intervals."""


@overload
def conformal(
    new: Any, calibration: Any, *, output: None = None, **options: Any
) -> Recalibration: ...


@overload
def conformal(
    new: Any, calibration: Any, *, output: str | os.PathLike[str], **options: Any
) -> RecalibratedFiles: ...


def conformal(
    new: Any,
    calibration: Any,
    *,
    method: str | None = None,
    coverage: float = DEFAULT_COVERAGE,
    seed: int = 0,
    output: str | os.PathLike[str] | None = None,
    csv_safe: bool = False,
    batch_rows: int | None = None,
    large: Large | None = None,
    **options: Any,
) -> Recalibration | RecalibratedFiles:
    """Build conformal sets or intervals from held-out data.

    It is `howsure.recalibrate` with a method for sets or intervals. It does not use y of new rows.

    Parameters
    ----------
    new : path, sequence of paths, data frame, mapping of arrays, or EvalSet
        As in `howsure.recalibrate`.
    calibration : path, data frame, mapping of arrays, EvalSet, or FittedRecalibration
        Rows held out from training, with y and the same predictions. Or a saved fit.
    method : str
        Label sets, from class probabilities:

        - ``lac``, ``aps``, ``raps``, ``saps``: with the score of that name. The options of the last
          two are tuned on half of the rows.
        - ``o_lac``, ``o_saps``: with a threshold for each bin of rows by ease.

        Intervals:

        - ``cp``: forecast ± one number. ``cqr``: both ends of an interval (or of two quantiles)
          moved by one number.
        - ``cp_a``: forecast ± a multiple of the sd. ``pac``: the same, with coverage guaranteed
          for all but a share δ of calibration sets.
        - ``o_cpa``, ``o_pac``: ``cp_a`` and ``pac`` with a multiple for each bin by ease.
    coverage : float
        Nominal coverage.
    seed : int
        Fixes the draws of scores and the rows used for tuning. Both depend on the content of rows.
    output, csv_safe, batch_rows, large
        As in `howsure.recalibrate`: files are written in batches of rows.
    **options
        Roles of both tables, as in `howsure.Table`, and:

        - bins : int. Bins by ease; chosen if omitted.
        - penalty : float. λ of ``raps``, ``saps`` and ``o_saps``; chosen if omitted.
        - rank, delta : as in `howsure.recalibration.recalibrate`.
        - too_few : {"error", "infinite"}. With too few calibration rows: an error with the number
          needed (the default), or infinite intervals and sets of all classes.

    Returns
    -------
    Recalibration or RecalibratedFiles
        As from `howsure.recalibrate`. New columns are ``set_90``, or ``lower_90`` and
        ``upper_90``; ``recalibrated_lower_90`` and ``recalibrated_upper_90`` if `new` already has
        intervals.

    Raises
    ------
    InputError
        If an argument or a table breaks its rule; the message names it.

    Examples
    --------
    >>> held_out = {"y": ["cat", "cat", "dog"] * 9, "p_cat": [0.9, 0.6, 0.2] * 9}
    >>> held_out["p_dog"] = [0.1, 0.4, 0.8] * 9
    >>> new = {"id": ["007", "008"], "p_cat": [0.7, 0.55], "p_dog": [0.3, 0.45]}
    >>> found = conformal(new, held_out, method="lac")
    >>> found.table.column_names
    ['id', 'p_cat', 'p_dog', 'set_90']
    >>> found.predictions["set_90"].tolist()
    ['cat', '{}']
    """
    if given_fit(calibration) is None and method not in CONFORMAL_METHODS:
        raise InputError(unknown(method or "none", CONFORMAL_METHODS, "method"))
    return learn_and_apply(
        new,
        calibration,
        {"too_few": "error", **options, "coverage": check_fraction(coverage, "coverage")},
        output,
        large=large or Large(),
        csv_safe=csv_safe,
        batch_rows=batch_rows,
        alone=True,
        method=method,
        seed=seed,
    )
