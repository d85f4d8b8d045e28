"""Widths that are all equal: do the inputs know where errors are larger?

Equal widths are right where the noise is constant, and a fault only where something that the model
was given tells large errors from small ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from howsure.core.arrays import FloatArray
from howsure.core.errors import UnanswerableError
from howsure.core.records import Direction, Notion
from howsure.engine.metric import Array, Metric, Question, Topic, itself, statistic
from howsure.stats.estimate import Estimate
from howsure.topics.conditional.forests import TreeInputs, content_order, tree_nodes

if TYPE_CHECKING:
    from howsure.engine.view import View

# Two halves of 30, one to learn from and one to judge by.
MIN_ROWS = 60
# Chosen by hand; not tuned. Two forests are fitted, in time that grows with the rows.
MOST_ROWS = 20_000
# Ten errors on each side of a split tell a ratio of spreads to a third, √(1/20 + 1/20).
_MIN_ROWS_OF_SIDE = 10
_Z_95 = float(special.ndtri(0.975))


def noise_given_inputs(
    error: FloatArray, x: FloatArray, names: Sequence[str], *, seed: int = 0
) -> Estimate:
    """How much larger errors are in the half where inputs forecast large ones than in the other.

    Each half of the rows grows a tree of at most two conditions for the size of the error, as
    normal scores of its rank; the other half judges it. Where errors do not depend on the inputs,
    scores are as if permuted, so the correlation of a half with its forecast has variance 1/n.

    Returns
    -------
    Estimate
        Ratio of mean errors, the half of larger forecasts to the other; 1 is right for equal
        widths. The p-value is one-sided. Details tell ``where`` the forecast is largest.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=(1000, 2))
    >>> error = np.abs(rng.normal(size=1000)) * np.where(x[:, 0] > 0.5, 2.0, 1.0)
    >>> found = noise_given_inputs(error, x, ["age", "dose"])
    >>> found.details["where"], found.p < 1e-6
    ('age > 0.4985 and dose > 0.777', True)
    """
    from scipy import stats  # half a second, and rarely asked for

    n = len(error)
    if n < MIN_ROWS:
        raise UnanswerableError(f"two halves need at least {MIN_ROWS} rows, got {n}")
    order = content_order(seed, error, x)
    error, x = error[order], x[order]
    score = special.ndtri((stats.rankdata(error) - 0.5) / n)
    first = np.arange(n) < n // 2
    signals, contrasts, inputs = [], [], TreeInputs.of(x)
    for learn in (first, ~first):
        nodes, words = tree_nodes(inputs, score, names, learn)
        leaf = nodes.shape[1] - 1 - np.argmax(nodes[:, ::-1], axis=1)  # children come last
        leaves, code_of_leaf = np.unique(leaf, return_inverse=True)
        codes = range(len(leaves))
        levels = np.array([score[learn & (code_of_leaf == code)].mean() for code in codes])
        forecast, judged = levels[code_of_leaf[~learn]], score[~learn]
        if not np.ptp(forecast) or not np.ptp(judged):
            signals.append(0.0)
            continue
        signals.append(float(np.corrcoef(forecast, judged)[0, 1]) * math.sqrt(len(judged)))
        ranked = np.argsort(levels, kind="stable")
        sizes = np.cumsum(np.bincount(code_of_leaf[~learn], minlength=len(leaves))[ranked])
        cut = int(np.argmin(np.abs(sizes[:-1] - sizes[-1] / 2)))  # as near to halves as leaves are
        edge = levels[ranked[cut : cut + 2]].sum() / 2
        sides = error[~learn][forecast > edge], error[~learn][forecast < edge]
        if min(map(len, sides)) >= _MIN_ROWS_OF_SIDE:
            contrasts.append((signals[-1], words[leaves[ranked[-1]]], *sides))
    p = float(special.ndtr(-sum(signals) / math.sqrt(2.0)))
    if not contrasts:
        return Estimate(1.0, p=p, reason="no part of the inputs predicts the size of errors", n=n)
    _, where, large, small = max(contrasts, key=lambda contrast: contrast[0])
    means = [float(side.mean()) for side in (large, small)]
    if min(means) <= 0.0:
        raise UnanswerableError("errors are 0 in a part of the inputs")
    log = math.log(means[0] / means[1])
    shares = [float(side.var()) / side.mean() ** 2 / len(side) for side in (large, small)]
    error_log = math.sqrt(sum(shares))
    return Estimate(
        math.exp(log),
        lower=math.exp(log - _Z_95 * error_log),
        upper=math.exp(log + _Z_95 * error_log),
        error=math.exp(log) * error_log,
        null_lower=math.exp(-_Z_95 * error_log),
        null_upper=math.exp(_Z_95 * error_log),
        p=p,
        n=n,
        details={"where": where},
    )


def _noise(view: View, _: float) -> Estimate:
    from howsure.topics.conditional.view import input_table

    view = view.bounded()
    evalset = view.evalset
    if evalset.weights is not None or evalset.cluster is not None:
        raise UnanswerableError("needs independent, unweighted rows")
    if np.ptp(view.get("uncertainty")) > 0:
        raise UnanswerableError("widths differ, so width_response applies")
    sampled = view.take_at_most(MOST_ROWS)
    x, names = input_table(sampled.evalset)
    return noise_given_inputs(sampled.get("absolute_error"), x, names, seed=view.seed)


TOPIC = Topic(
    entries=(
        Metric(
            name="noise_given_inputs",
            title="Error size by inputs, at equal widths",
            question=Question.CONDITIONAL,
            meaning=(
                "For equal widths: ratio of error sizes in two halves that the inputs predict to "
                "differ."
            ),
            formula="mean |e| in the half forecast larger / in the other half",
            source="definition; parts are found on one half of the rows, judged on the other",
            direction=Direction.TARGET,
            forms=(statistic(itself, "noise_given_inputs", weighted=False),),
            merges="rows",
            beside="inputs",
            standard_normal=math.nan,
            notion=Notion.LOCAL,
            target=1.0,
            bounds=(0.0, math.inf),
            beware="It is computed only where all widths are equal.",
        ),
    ),
    arrays=(Array("noise_given_inputs", _noise),),
)
