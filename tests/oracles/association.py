"""Associations straight from their definitions, pair by pair, in exact or plain arithmetic."""

from __future__ import annotations

import math

import numpy as np


def pair_signs(x, y):
    """+1, −1 or 0 for each pair of rows: concordant, discordant, tied."""
    return _signs(x) * _signs(y)


def kendall_tau_b(x, y):
    """(C − D)/√((C + D + tied in y only)(C + D + tied in x only)) over all pairs i < j."""
    first, second = np.triu_indices(len(x), 1)
    a, b = _signs(x)[first, second], _signs(y)[first, second]
    return float((a * b).sum() / math.sqrt(np.abs(a).sum() * np.abs(b).sum()))


def midranks(values):
    """One plus the rows below plus half the other rows that tie."""
    signs = _signs(values)
    return 0.5 + (signs > 0).sum(axis=1) + 0.5 * (signs == 0).sum(axis=1)


def spearman_rho(x, y):
    """Pearson's correlation of the midranks."""
    return float(np.corrcoef(midranks(x), midranks(y))[0, 1])


def _signs(values):
    return np.sign(np.subtract.outer(values, values))
