"""Encoders that tests name as plans and command lines do: ``encoders_tried:NAME``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from howsure.core.arrays import FloatArray


def brightness(images: Sequence[Any]) -> FloatArray:
    """Mean and spread of each image, or of each row of numbers."""
    return np.array([[np.mean(image) / 255.0, np.std(image) / 255.0] for image in images])


def broken(images: Sequence[Any]) -> FloatArray:
    """Fails on everything."""
    raise ValueError(f"cannot take {len(images)} items")


class Rows:
    """Something with a method transform."""

    def transform(self, x: Any, /) -> FloatArray:
        """The numbers themselves."""
        return np.asarray(x, dtype=np.float64)


ROWS = Rows()
