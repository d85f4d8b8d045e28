"""Views of the congruence studies, and what its behaviour studies return."""

from __future__ import annotations

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure.methods.linear import LinearT
from howsure.studies.congruence import (
    BEHAVIOURS,
    IGNORING,
    TRUTH,
    CongruenceMeasure,
    CongruenceRun,
    behaviour,
    behaviour_studies,
    compare,
    ignoring_x,
    wave_task,
)
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


def test_a_behaviour_study_is_told_in_records_and_a_table() -> None:
    study = behaviour(BEHAVIOURS[1], 2)
    record = study.records()[3]
    case = study.cases[3]
    assert record.value == case.mean
    assert record.standard_error == pytest.approx(case.data_sd / np.sqrt(2))
    assert record.options["published"] == 0.8367
    assert abs(case.mean - case.checked[0]) < 3 * case.checked[1]  # type: ignore[index]
    assert study.table().columns["published"].tolist() == list(BEHAVIOURS[1].published)
    with pytest.raises(InputError, match="case must be one of"):
        study["another law"]


def test_figure_one_tells_the_model_that_ignores_x() -> None:
    congruence, calibration = ignoring_x(1, 9)
    wrong = congruence[f"{IGNORING}, variance, exact"]
    assert wrong.mean > 5.0 * wrong.expected
    assert calibration[IGNORING].mean < 3.0 * calibration[IGNORING].expected


def test_studies_need_data() -> None:
    with pytest.raises(InputError, match="seeds must be"):
        behaviour_studies(0)
