"""Disturbed images keep what they must, and change by the factors that they state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure.core.rng import row_keys
from howsure_studies.adaptivity.image_jitter import Brightness, Contrast, Saturation


def test_factors_change_brightness_contrast_or_saturation_alone() -> None:
    images = np.random.default_rng(6).random((200, 6, 5, 3)).astype(np.float32)
    keys = row_keys(images.reshape(200, -1))
    grey = images @ np.array([0.299, 0.587, 0.114], dtype=np.float32)
    brighter = Brightness(0.3, high=2.0).apply(images, keys, 0, 0)
    factor = brighter.sum(axis=(1, 2, 3)) / images.sum(axis=(1, 2, 3))
    assert 0.7 <= factor.min() < 0.75
    assert 1.25 < factor.max() <= 1.3001
    same_mean = Contrast(0.5, low=-2, high=3).apply(images, keys, 0, 0)
    assert same_mean.mean(axis=(1, 2, 3)) == pytest.approx(images.mean(axis=(1, 2, 3)), abs=1e-5)
    assert same_mean.std(axis=(1, 2, 3)).std() > images.std(axis=(1, 2, 3)).std()
    coloured = Saturation(0.5, low=-2, high=3).apply(images, keys, 0, 0)
    weights = np.array([0.299, 0.587, 0.114], dtype=np.float32)
    assert coloured @ weights == pytest.approx(grey, abs=1e-5)
    assert coloured.dtype == np.float32
    clipped = Brightness(1.0).apply(images, keys, 0, 0)
    assert clipped.min() >= 0
    assert clipped.max() <= 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Brightness(2.0), "amount"),
        (lambda: Contrast(0.1, low=1, high=0), "low must be below"),
        (
            lambda: Saturation().apply(np.ones((1, 2, 2, 1)), row_keys([1.0]), 0, 0),
            "three colours",
        ),
    ],
)
def test_bad_input_is_named(call: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()
