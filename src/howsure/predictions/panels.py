"""Which rows of one time are of which series, where an evaluation set says so."""

from __future__ import annotations

import numpy as np

from howsure.core.arrays import IntArray
from howsure.core.labels import Categories, joint
from howsure.core.times import FEWEST_TIMES
from howsure.predictions.evalset import EvalSet


def series_of(evalset: EvalSet, times: IntArray) -> IntArray | None:
    """The number of each row's series, where several are known at one time.

    They are stated, or the column that has one row of each level at a time, whose levels have a
    quarter of all times. Clusters stay clusters, unless they are these series and times are enough.
    """
    count = int(times.max()) + 1
    if 2 * evalset.n < 3 * count:
        return None

    def apart(codes: IntArray) -> bool:
        levels = int(codes.max()) + 1
        cells = np.unique(codes * count + times)
        return levels > 1 and len(cells) == len(times) and 4 * len(times) >= levels * count

    if evalset.cluster is not None:
        stated = evalset.series is not None or apart(evalset.cluster.codes)
        codes = evalset.cluster.codes if evalset.series is None else evalset.series.codes
        levels = {
            int(each.max())
            for each in (codes, evalset.cluster.codes, joint(codes, evalset.cluster.codes))
        }
        return codes if stated and len(levels) == 1 and count >= FEWEST_TIMES else None
    if evalset.series is not None:
        return evalset.series.codes if len(evalset.series.labels) > 1 else None
    columns = [group.codes for group in evalset.groups.values()]
    columns += [
        Categories.checked(feature, "labels").codes
        for feature in evalset.features.values()
        if feature.dtype.kind not in "biufM"
    ]
    return min((column for column in columns if apart(column)), key=np.max, default=None)


def unnamed(evalset: EvalSet, times: IntArray, series: IntArray | None) -> bool:
    """Whether times have several rows each, and as many as the next: of series without a name.

    Of rows that come by chance the mean squared difference of numbers is twice the mean. Rows of
    different lead times are no series.
    """
    rows = np.bincount(np.unique(times, return_inverse=True)[1])
    if series is not None or evalset.horizon is not None or len(rows) < 2 or rows.mean() < 1.5:
        return False
    return bool(np.mean(np.square(np.diff(rows))) < rows.mean() / 2.0)


def lone(evalset: EvalSet, times: IntArray, series: IntArray | None) -> bool:
    """Whether such times are too few by themselves."""
    return unnamed(evalset, times, series) and len(np.unique(times)) < FEWEST_TIMES
