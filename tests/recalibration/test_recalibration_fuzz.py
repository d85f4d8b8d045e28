"""Whatever numbers come, recalibration answers or raises an error of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.errors import HowsureError
from howsure.predictions import Distribution, EvalSet, Intervals, Quantiles, Samples
from howsure.recalibration import methods_of, recalibrate
from howsure.recalibration.info import KINDS

NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-3, 3).map(float),
    st.sampled_from([1e308, -1e308, 1e-308, 5e-324]),
)


def table(data: st.DataObject, n: int, columns: int) -> np.ndarray:
    cells = data.draw(st.lists(NUMBERS, min_size=n * columns, max_size=n * columns))
    return np.array(cells).reshape(n, columns)


def rows(data: st.DataObject, kind: str, n: int) -> EvalSet:
    y = table(data, n, 1)[:, 0]
    weights = data.draw(st.sampled_from([None, np.arange(1.0, n + 1)]))
    options: dict[str, Any] = {"weights": weights}
    if kind == "point":
        return EvalSet.checked(y, point=table(data, n, 1)[:, 0], **options)
    if kind == "intervals":
        ends = np.sort(table(data, n, 2), axis=1)
        point = data.draw(st.sampled_from([None, ends[:, 0]]))
        return EvalSet.checked(y, Intervals(ends[:, 0], ends[:, 1], 0.5), point=point, **options)
    if kind == "quantiles":
        return EvalSet.checked(
            y, Quantiles([0.2, 0.5, 0.8], np.sort(table(data, n, 3), axis=1)), **options
        )
    if kind == "samples":
        return EvalSet.checked(y, Samples(table(data, n, 3)), **options)
    sd = np.abs(table(data, n, 1)[:, 0]) + 5e-324
    law = data.draw(st.sampled_from(["norm", "laplace"]))
    return EvalSet.checked(
        y, Distribution(law, {"loc": table(data, n, 1)[:, 0], "scale": sd}), **options
    )


@pytest.mark.rate
@examples(400)
@given(st.data())
def test_only_errors_of_our_own_come_out(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted({*KINDS} - {"label sets"})))  # see test_sets
    method = data.draw(st.sampled_from(sorted(methods_of(kind))))
    try:
        with np.errstate(over="ignore"):  # the containers' own affair
            held_out = rows(data, kind, data.draw(st.integers(1, 8)))
            test = rows(data, kind, data.draw(st.integers(1, 3)))
        result = recalibrate(test, held_out, method=method, coverage=0.6)
    except HowsureError:
        return
    assert result.evalset.n == test.n
    if (kind, method) == ("point", "shift"):
        assert result.evalset.point is not None
        assert result.evalset.predictions == ()
    else:
        assert result.evalset.predictions[0].n == test.n
