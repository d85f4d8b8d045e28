"""Critical-difference plots: mean ranks of methods, and which of them are not told apart."""

from __future__ import annotations

import math
import re

import numpy as np

from howsure.core.arrays import BoolArray, FloatArray
from howsure.core.errors import InputError
from howsure.core.records import Table
from howsure.figures.columns import number, of_model, texts
from howsure.figures.figure import REFERENCE, Axis, Figure, Layer, Mark
from howsure.figures.text import distinct, one_line

_CLIQUE = re.compile(r"clique_\d+")
CRITICAL = "critical difference"
TIED = "not told apart"


def rank_figure(table: Table) -> Figure:
    """The critical-difference plot of a table of ranks.

    Methods stand from best to worst, each at its mean rank. Below them each set of methods that
    are not told apart is a bar with a point for each member, and the critical difference, where
    the test has one, is a bar that begins at rank 1.

    Parameters
    ----------
    table : Table
        Columns ``method`` and ``mean_rank``; it may hold ``shared_rank``,
        ``critical_difference`` and truth values ``clique_1``, …: what
        `howsure.stats.ranks.RankComparison.table` gives.

    Returns
    -------
    Figure

    Raises
    ------
    InputError
        If a column is missing, there is no method, or a mean rank is not finite.

    Examples
    --------
    >>> columns = {"method": np.array(["a", "b"], dtype=object), "mean_rank": np.array([1.2, 1.8])}
    >>> rank_figure(Table(name="ranks", columns=columns)).y.categories
    ('a', 'b')
    """
    ranks = number(table, "mean_rank")
    if ranks is None or "method" not in table.columns or not len(table):
        raise InputError(
            "table must hold methods in columns method and mean_rank, got "
            f"{', '.join(table.columns) or 'no column'}"
        )
    if not np.isfinite(ranks).all():
        raise InputError(f"mean_rank must hold finite numbers, got {ranks.tolist()}")
    order = np.argsort(ranks, kind="stable")
    ranks = ranks[order]
    methods = [texts(table, "method")[row] for row in order]
    sets = [
        column[order].astype(np.bool_)
        for name, column in table.columns.items()
        if _CLIQUE.fullmatch(name)
    ]
    critical = number(table, "critical_difference")
    width = math.nan if critical is None else float(critical[0])
    rows = [*methods, *(_words(methods, inside) for inside in sets)]
    if math.isfinite(width):
        rows.append(f"{CRITICAL} {width:.3g}")
    names = distinct(rows, 120)
    shared = number(table, "shared_rank")
    points = Layer(
        mark=Mark.POINTS,
        x=ranks,
        y=np.arange(len(ranks), dtype=np.float64),
        series="mean rank",
        labels=names[: len(ranks)],
        hover={} if shared is None else {"Shared rank": shared[order]},
    )
    layers = [points]
    for place, inside in enumerate(sets, start=len(ranks)):
        layers += _bar(place, ranks[inside], names[place])
    if math.isfinite(width):
        layers += _critical_bar(len(rows) - 1, width, names[-1])
    end = max(float(len(ranks)), float(ranks.max()), 1.0 + width if math.isfinite(width) else 1.0)
    return Figure(
        name=table.name,
        question="Which methods are told apart?" + of_model(table),
        title="Mean ranks and methods not told apart",
        reading=(
            "Each method stands at its mean rank over all problems; 1 is best. A bar joins "
            "methods, its points, no two of which the test tells apart."
        ),
        x=Axis(title="Mean rank (1 is best)", domain=(0.9, end + 0.1)),
        y=Axis(kind="category", categories=names),
        layers=tuple(layers),
        notes=(one_line(table.notes, 400),) if table.notes else (),
        naming="Method",
    )


def _words(methods: list[str], inside: BoolArray) -> str:
    return "tied: " + ", ".join(methods[row] for row in np.flatnonzero(inside))


def _bar(place: int, ranks: FloatArray, name: str) -> list[Layer]:
    """A bar from the best to the worst of a set, with its members on it."""
    where = np.full(len(ranks), float(place))
    bar = Layer(
        mark=Mark.INTERVALS,
        y=where[:1],
        lower=ranks.min(keepdims=True),
        upper=ranks.max(keepdims=True),
        series=TIED,
        colour=1,
        labels=(name,),
    )
    members = Layer(
        mark=Mark.POINTS, x=ranks, y=where, series=TIED, colour=1, labels=(name,) * len(ranks)
    )
    return [bar, members]


def _critical_bar(place: int, width: float, name: str) -> list[Layer]:
    bar = Layer(
        mark=Mark.INTERVALS,
        y=np.array([float(place)]),
        lower=np.array([1.0]),
        upper=np.array([1.0 + width]),
        series=CRITICAL,
        colour=REFERENCE,
        labels=(name,),
    )
    return [bar]
