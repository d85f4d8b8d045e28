"""Label sets: members counted, the true class found."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from howsure.core.errors import InputError, UnanswerableError
from howsure.predictions import LabelSets


def test_membership_from_the_definition() -> None:
    table = np.random.default_rng(0).random((40, 5)) < 0.4
    prediction = LabelSets(table, 0.9)
    y = np.arange(40) % 5
    expected = [bool(row[label]) for row, label in zip(table, y, strict=True)]
    assert prediction.contains(y.astype(float)).tolist() == expected
    assert prediction.sizes.tolist() == [int(row.sum()) for row in table]
    part = prediction.take(np.array([3, 1]))
    assert part.sizes.tolist() == [int(table[3].sum()), int(table[1].sum())]
    assert pickle.loads(pickle.dumps(prediction)).coverage == 0.9
    assert LabelSets(table.astype(float), 0.9).sizes.tolist() == prediction.sizes.tolist()


@pytest.mark.parametrize("y", [0.5, -1.0, 2.0, 1e300, -1e300])
def test_a_class_that_is_none_is_named(y: float) -> None:
    prediction = LabelSets([[True, False], [True, True]], 0.9)
    with pytest.raises(InputError, match=r"class numbers from 0 to 1, .* at row 1"):
        prediction.contains(np.array([0.0, y]))


@pytest.mark.parametrize(
    ("members", "coverage", "said"),
    [
        ([True], 0.9, "shape"),
        (np.zeros((2, 0)), 0.9, "shape"),
        ([[0.5, 1.0]], 0.9, "booleans"),
        ([[np.nan, 1.0]], 0.9, "booleans"),
        ([["a", "b"]], 0.9, "booleans"),
        ([[True], [True, False]], 0.9, "the same number of classes in every row"),
        ([[True]], 90, "coverage must be strictly between 0 and 1"),
    ],
)
def test_sets_that_are_none_are_named(members: Any, coverage: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        LabelSets(members, coverage)


def test_what_sets_cannot_answer() -> None:
    prediction = LabelSets([[True, False]], 0.9)
    for ask in (
        prediction.point,
        prediction.sd,
        lambda: prediction.interval(0.9),
        lambda: prediction.quantile([0.5]),
        lambda: prediction.cdf(np.zeros(1)),
        lambda: prediction.cdf_left(np.zeros(1)),
        lambda: prediction.log_density(np.zeros(1)),
        lambda: prediction.sample(np.random.default_rng(0), 1),
    ):
        with pytest.raises(UnanswerableError, match="label sets"):
            ask()


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["cat"], "labels must name 2 classes, got 1"),
        ("ab", "labels must name 2 classes, got a text"),
        (["cat", "cat"], "labels must be distinct, got 'cat' 2 times"),
    ],
)
def test_labels_that_are_none_are_named(labels: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        LabelSets([[True, False]], 0.9, labels=labels)


def test_labels_go_with_the_rows() -> None:
    prediction = LabelSets([[True, False], [True, True]], 0.9, labels=["cat", "dog"])
    assert prediction.take(np.array([1])).labels == ("cat", "dog")
    assert pickle.loads(pickle.dumps(prediction)).names == ("cat", "dog")
    assert LabelSets([[True, False]], 0.9).names == ("0", "1")


def test_sets_of_probabilities_claim_their_sum() -> None:
    p = np.array([[0.95, 0.05], [0.6, 0.4], [0.1, 0.9]])
    own = LabelSets.likeliest(p, 0.9)
    assert own.claims.tolist() == pytest.approx([0.95, 1.0, 0.9])
    assert own.take(np.array([0])).claims.tolist() == pytest.approx([0.95])
    assert own.claimed(np.zeros(3), 0.9).tolist() == pytest.approx([0.95, 1.0, 0.9])
    assert pickle.loads(pickle.dumps(own)).own
    made = LabelSets(own.members, 0.9, p)
    assert made.claims.tolist() == [0.9, 0.9, 0.9]
    assert own.inside(0.9, np.array([0.94, 0.99, 0.91])).tolist() == [True, True, False]


def test_classes_are_drawn_from_the_probabilities() -> None:
    p = np.tile([0.2, 0.5, 0.3], (30_000, 1))
    uniforms = np.random.default_rng(0).random(30_000)
    drawn, same = LabelSets.likeliest(p, 0.9).redrawn(np.zeros(30_000), uniforms)
    shares = np.bincount(drawn.astype(int), minlength=3) / 30_000
    assert shares == pytest.approx([0.2, 0.5, 0.3], abs=0.012)
    assert same.n == 30_000
    with pytest.raises(UnanswerableError, match="only the coverage of y"):
        LabelSets([[True, False]], 0.9).redrawn(np.zeros(1), np.zeros(1))
