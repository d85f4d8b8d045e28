"""What stands beside the numbers: the curves and tables of every topic, and the worst rows."""

from __future__ import annotations

from functools import partial

import numpy as np

from howsure.core.errors import UnanswerableError
from howsure.core.faults import attempt
from howsure.core.records import Curve, Table
from howsure.metrics.catalogue import topics
from howsure.metrics.measure import Evaluation

WORST_ROWS = 50


def curves_of(evaluation: Evaluation, *, confidence: float = 0.95) -> tuple[Curve, ...]:
    """Every curve that the content permits, thinned to a few hundred points.

    Parameters
    ----------
    evaluation : Evaluation
        Of all rows of one model.
    confidence : float
        Confidence of the bands.

    Returns
    -------
    tuple of Curve
        Of the topics that were evaluated: ``calibration``, ``interval_calibration``,
        ``pit_ecdf``, ``risk_coverage``, ``characteristic`` and others.
    """
    made: list[Curve] = []
    for topic in topics(evaluation.beside):
        for draw in topic.curves:  # where there is none, a record tells the reason
            what = f"curves of {topic.entries[0].question} of {evaluation.evalset.model}"
            made.extend(attempt(what, partial(draw, evaluation, confidence), lambda _: []))
    return tuple(made)


def tables_of(evaluation: Evaluation) -> tuple[Table, ...]:
    """Every small table of the topics that were evaluated."""
    made: list[Table] = []
    for topic in topics(evaluation.beside):
        for make in topic.tables:
            what = f"tables of {topic.entries[0].question} of {evaluation.evalset.model}"
            made.extend(attempt(what, partial(make, evaluation), lambda _: []))
    return tuple(made)


def worst_rows(evaluation: Evaluation, *, most: int = WORST_ROWS) -> Table | None:
    """The rows that the beliefs describe worst, with what is known of them.

    Parameters
    ----------
    evaluation : Evaluation
        Of all rows of one model.
    most : int
        How many rows.

    Returns
    -------
    Table or None
        Ranked by interval score, else by CRPS, else by |error|; None if there is no score.
    """
    ranked_by = ("interval_score", "crps", "mae", "miss_rate")
    found = [
        (name, coverage, scores)
        for wanted in ranked_by
        for (name, coverage), scores in evaluation.scores.items()
        if name == wanted
    ]
    if not found:
        return None
    name, coverage, scores = found[0]
    scores = scores.astype(np.float64)
    evalset, view = evaluation.evalset, evaluation.view
    most = min(most, evalset.n)
    rows = np.argpartition(-scores, most - 1)[:most]
    rows = rows[np.lexsort((rows, -scores[rows]))]
    columns = {"row": evalset.row_names()[rows], "y": evalset.y[rows]}
    for extra, key in (("point", 0.0), ("lower", coverage), ("upper", coverage), ("sd", 0.0)):
        try:
            columns[extra] = view.get(extra, key)[rows]
        except UnanswerableError:
            continue
    columns[name] = scores[rows]
    for label, group in evalset.groups.items():
        columns.setdefault(label, group.labels[group.codes[rows]])
    for label, feature in evalset.features.items():
        columns.setdefault(label, feature[rows])
    return Table(
        name="worst_rows",
        columns=columns,
        model=evalset.model,
        notes=f"The {most} rows with the worst {name.replace('_', ' ')}.",
    )
