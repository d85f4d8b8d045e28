"""Drawn letters: their pictures, and chances of their labels that are true."""

from __future__ import annotations

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure_studies.tasks.images import draw_letters
from howsure_studies.tasks.images.letters import LETTERS, _templates


def test_letters_look_like_letters() -> None:
    drawn = _templates()
    assert drawn.shape == (36, 7, 5)
    assert len({template.tobytes() for template in drawn}) == 36
    lines = ["".join(" #"[int(dot)] for dot in row).rstrip() for row in drawn[LETTERS.index("L")]]
    assert lines == ["#"] * 6 + ["#####"]
    assert ["".join(" #"[int(dot)] for dot in row) for row in drawn[LETTERS.index("T")]][:2] == [
        *("#####", "  #  "),
    ]


def test_chances_follow_from_the_definition() -> None:
    """By hand for one picture, whose colours tell which values are lit; q by its likelihood."""
    images, _, posterior = draw_letters(30, seed=5)
    drawn = np.repeat(_templates().reshape(36, -1), 3, axis=1)
    for image, chances in zip(images, posterior, strict=True):
        light, dark = image.max(axis=(0, 1)), image.min(axis=(0, 1))
        assert (light > dark).all()
        assert np.isin(image, [light, dark]).all()
        lit = (image == light).reshape(-1)
        differing = np.array([(lit != template).sum() for template in drawn])
        first, second = np.argsort(-chances)[:2]
        # log chances are −H log((1 − q)/q): one number q for all labels
        if differing[first] == differing[second] or chances[second] < 1e-12:
            continue
        odds = np.log(chances[first] / chances[second]) / (differing[second] - differing[first])
        q = 1 / (1 + np.exp(odds))
        assert 0.2 <= q <= 0.48
        wanted = q**differing * (1 - q) ** (105.0 - differing)
        np.testing.assert_allclose(chances, wanted / wanted.sum(), rtol=1e-6, atol=1e-12)


def test_labels_are_draws_of_their_chances() -> None:
    images, classes, posterior = draw_letters(20_000, seed=1)
    assert images.shape == (20_000, 7, 5, 3)
    assert images.min() >= 0
    assert images.max() <= 1
    shares = np.bincount(classes, minlength=36) / 20_000
    assert np.abs(shares - 1 / 36).max() < 4.5 * np.sqrt(1 / 36 / 20_000)
    best = posterior.max(axis=1)
    right = posterior.argmax(axis=1) == classes
    for low in np.arange(0.1, 1.0, 0.1):
        inside = (best >= low) & (best < low + 0.1)
        spread = np.sqrt((best * (1 - best))[inside].sum())
        assert abs(right[inside].sum() - best[inside].sum()) < 4 * spread
    assert 0.5 < right.mean() < 0.8


def test_draws_are_those_of_the_seed() -> None:
    first, again, other = draw_letters(5), draw_letters(5), draw_letters(5, seed=1)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0], other[0])
    with pytest.raises(InputError, match="n must be a whole number"):
        draw_letters(0)
