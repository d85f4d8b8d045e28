"""Views of the congruence studies, and what its behaviour studies return."""

from __future__ import annotations

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure.methods.linear import LinearT
from howsure.studies.congruence import TRUTH, CongruenceMeasure, CongruenceRun, compare, wave_task
from howsure.studies.congruence.figures import cce_over


def test_curves_are_sorted_and_banded() -> None:
    task = wave_task(rows=100)
    how = CongruenceMeasure(grid="fixed", samplings=2, bootstraps=2)
    run = compare({"line": LinearT()}, [task], measure=how, truth=True).of(TRUTH)[0]
    curve = cce_over(run, task.test.x)
    order = np.argsort(task.test.x[:, 0])
    np.testing.assert_array_equal(curve.x, task.test.x[order, 0])
    np.testing.assert_array_equal(curve.y, run.rows["cce"][order])
    assert curve.upper is not None
    np.testing.assert_allclose(curve.upper - curve.y, run.rows["cce_sd"][order])
    with pytest.raises(InputError, match="x must have"):
        cce_over(run, task.val.x[:3])


def test_a_run_without_an_answer_has_no_curves() -> None:
    run = CongruenceRun(
        task="t",
        model="m",
        seed=0,
        n=2,
        values={},
        repeats=np.empty(0),
        bootstraps={},
        rows={},
        reasons={"cce": "it failed"},
    )
    with pytest.raises(InputError, match="it failed"):
        cce_over(run, np.zeros(2))
