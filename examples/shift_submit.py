"""A method of one's own for the shift benchmark: a line through the brightness of an image.

`cd examples; howsure bench submit shift_submit:Brightness --world cells --world cells-tails`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.predictions import Distribution
from howsure_studies.methods.interface import Fitted, Method, Predictions

Numbers = npt.NDArray[np.float64]


def light(x: npt.NDArray[Any]) -> Numbers:
    """The mean of each image, or of each row of a table."""
    return np.asarray(x.reshape(len(x), -1).mean(axis=1), dtype=np.float64)


class Brightness(Method):
    """A straight line through mean brightness, with noise of one sd."""

    name = "brightness"

    def fit(self, x: Any, y: Any, rng: np.random.Generator) -> Line:
        """Least squares."""
        slope, start = np.polyfit(light(x), y, 1)
        sd = float(np.std(y - start - slope * light(x)))
        return Line(slope, start, sd, float(np.median(light(x))))


@dataclass
class Line(Fitted):
    """A line that has been fitted."""

    slope: float
    start: float
    sd: float
    middle: float

    def predict(self, x: Any) -> Predictions:
        """A normal law at each image."""
        mean = self.start + self.slope * light(x)
        return Predictions(Distribution("norm", {"loc": mean, "scale": self.sd}))

    def score(self, x: Any) -> Numbers:
        """How foreign an image is; without this method every image is predicted."""
        return np.abs(light(x) - self.middle)
