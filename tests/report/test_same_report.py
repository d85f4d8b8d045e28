"""One table, one report: whatever the order of its rows, and the number of threads."""

import hashlib
import os
import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from howsure import assess
from howsure.core.rng import child
from howsure.core.threads import one_thread
from howsure.inputs import Loaded
from howsure.predictions import (
    Distribution,
    EvalSet,
    Intervals,
    LabelSets,
    Quantiles,
    Samples,
    content_order,
)
from howsure.report.assess import assess_loaded

pytestmark = [pytest.mark.slow, pytest.mark.few_draws]

ROWS = 110
KINDS = [
    "normal",
    "frequency",
    "importance",
    "clusters",
    "samples",
    "quantiles",
    "intervals",
    "label sets",
    "two models",
]


def sets(kind):
    """Evaluation sets with ties in their inputs, and in y where these are classes."""
    rng = child(4, "tables", kind)
    u = np.round(rng.normal(size=ROWS), 1)
    known = {"features": {"u": u, "v": rng.choice(["p", "q"], ROWS)}}
    mean, sd = 2.0 * u, np.exp(0.3 * u)
    y = mean + sd * rng.normal(size=ROWS)
    known["groups"] = {"side": np.where(u > 0.0, "high", "low")}
    prediction = Distribution.normal(mean, 0.7 * sd)
    if kind == "frequency":
        known |= {"weights": rng.integers(1, 4, ROWS)}
    elif kind == "importance":
        known |= {"weights": rng.random(ROWS) + 0.1, "weights_kind": "importance"}
    elif kind == "clusters":
        known |= {"cluster": rng.integers(0, 25, ROWS)}
    elif kind == "samples":
        prediction = Samples(mean[:, None] + rng.normal(size=(ROWS, 20)))
    elif kind == "quantiles":
        prediction = Quantiles([0.05, 0.5, 0.95], mean[:, None] + np.array([-1.6, 0.0, 1.6]))
    elif kind == "intervals":
        prediction = Intervals(mean - 1.5, mean + 1.5, coverage=0.9)
        known |= {"point": mean, "time": rng.integers(0, 20, ROWS)}
    elif kind == "label sets":
        y = rng.integers(0, 3, ROWS).astype(float)
        prediction = LabelSets(rng.random((ROWS, 3)) > 0.3, coverage=0.8)
    made = [EvalSet.checked(y, prediction, **known)]
    if kind == "two models":
        other = Distribution.normal(mean + 0.1, np.ones(ROWS))
        made.append(EvalSet.checked(y, other, model="other", **known))
    return made


def told(record):
    return {field.name: getattr(record, field.name) for field in fields(record)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.rate
def test_the_order_of_rows_changes_no_record_and_no_sentence(kind):
    held = sets(kind)
    mixed = child(1, "mixed").permutation(ROWS)
    first, second = (
        assess_loaded(Loaded(evalsets=tuple(sets)))
        for sets in (held, [one.take(mixed) for one in held])
    )
    assert first.verdict == second.verdict
    assert len(first.records) == len(second.records)
    for one, two in zip(map(told, first.records), map(told, second.records), strict=True):
        assert str(one) == str(two)  # to the last digit
    for one, two in zip(first.tables, second.tables, strict=True):
        assert one.notes == two.notes
        for name, column in one.columns.items():
            np.testing.assert_array_equal(column, two.columns[name])


@pytest.mark.rate
def test_equal_rows_are_interchangeable():
    rng = child(2, "equal rows")
    x, y = rng.integers(0, 3, 60) * 1.0, rng.integers(0, 2, 60) * 1.0
    mixed = rng.permutation(60)
    first, second = (
        assess(y[rows], Distribution.normal(x[rows], 1.0 + x[rows]), features={"x": x[rows]})
        for rows in (np.arange(60), mixed)
    )
    assert first.to_csv() == second.to_csv()


def test_content_orders_rows_and_one_more_model_moves_none():
    first, second = sets("two models")
    order = content_order([first])
    np.testing.assert_array_equal(order, content_order([first, second]))
    mixed = child(3, "mixed").permutation(ROWS)
    again = content_order([first.take(mixed)])
    np.testing.assert_array_equal(first.y[order], first.y[mixed][again])
    assert np.abs(np.corrcoef(first.y[order], np.arange(ROWS))[0, 1]) < 0.3  # not sorted by y


SCRIPT = """
import sys
import numpy as np
from howsure.core.rng import child
from howsure.predictions import Distribution
from howsure import Table, assess
rng = child(2, "threads")
x, mean = rng.normal(size=(400, 20)), rng.normal(size=400)
y = mean + rng.normal(size=400)
report = assess(Table(y, Distribution.normal(mean, np.ones(400)), embedding=x))
for form in ("html", "markdown", "json", "csv"):
    sys.stdout.write(getattr(report, "to_" + form)())
"""


@pytest.mark.rate
def test_the_number_of_threads_changes_no_byte():
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    made = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, **dict.fromkeys(names, threads), "PYTHONIOENCODING": "utf-8"},
            stdout=subprocess.PIPE,
        )
        for threads in ("1", "2", "4")
    ]
    written = [process.communicate(timeout=600)[0] for process in made]
    assert all(process.returncode == 0 for process in made)
    assert len(written[0]) > 100_000
    assert len({hashlib.sha256(each).hexdigest() for each in written}) == 1


def test_threads_are_given_back():
    def counts():
        return [each["num_threads"] for each in threadpool_info()]

    with threadpool_limits(2):
        before = counts()
        with one_thread(), one_thread():
            assert set(counts()) == {1}
        assert counts() == before
