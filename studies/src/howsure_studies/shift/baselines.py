"""Trivial baselines: what a method must beat before its coverage says anything of images.

A constant; boosting on global statistics of an image, without a look at any place of it; and the
same, declining images whose statistics are unlike those of training.
"""

from __future__ import annotations

from typing import Any, Final, final

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from howsure.core.arrays import AnyArray, FloatArray, as_matrix, as_vector
from howsure.core.classes import frozen
from howsure.core.convert import checked_coverages
from howsure.core.errors import InputError
from howsure.predictions import Intervals
from howsure_studies.methods.interface import Fitted, Method, Predictions, trained
from howsure_studies.methods.options import REGRESSORS, thing

_LEVELS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
_BINS: Final = 32
_BLOCK: Final = 500
_TINY: Final = 1e-9
_SOBEL: Final = np.outer([1.0, 0.0, -1.0], [1.0, 2.0, 1.0]) / 8.0
_LAPLACE: Final = np.array([[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]])


@final
@frozen
class GlobalStatistics(Method):
    """A regressor on an image's global statistics, or on the columns of a table.

    It predicts points alone, as intervals without width: calibration on validation rows makes
    them intervals of one width, as of split conformal prediction.

    Parameters
    ----------
    coverages : tuple of float
        Nominal coverages of the intervals.

    Raises
    ------
    InputError
        If a coverage is not between 0 and 1.

    Notes
    -----
    See `global_statistics`. What a network does no better than this, it may do without counting.
    """

    coverages: tuple[float, ...] = (0.9,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "coverages", checked_coverages(self.coverages))

    @property
    def name(self) -> str:
        """What reports call it."""
        return "global statistics"

    @property
    def fixed_coverages(self) -> tuple[float, ...]:
        """Those of its intervals."""
        return self.coverages

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> Fitted:
        """Fit boosting to the statistics of x."""
        features = _features(x)
        targets = as_vector(y, "y", length=len(features))
        center, spread = features.mean(axis=0), features.std(axis=0)
        unit = np.where(spread > 0.0, spread, 1.0)
        boosting = thing("boosting", "regressor", REGRESSORS)
        return _Regressed(trained(boosting, features, targets, rng), self.coverages, center, unit)


@final
@frozen(eq=False)
class _Regressed(Fitted):
    regressor: Any
    coverages: tuple[float, ...]
    center: FloatArray
    unit: FloatArray

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """Points, as intervals without width."""
        point = np.asarray(self.regressor.predict(_features(x)), dtype=np.float64)
        ends = np.tile(point[:, None], (1, len(self.coverages)))
        return Predictions(Intervals(ends, ends, self.coverages))

    def features(self, x: npt.ArrayLike) -> FloatArray:
        """Statistics in units of their training spread."""
        return np.asarray((_features(x) - self.center) / self.unit)


def global_statistics(images: npt.ArrayLike) -> FloatArray:
    """Statistics of whole images that know no place in them.

    Parameters
    ----------
    images : array-like of shape (n, height, width) or (n, height, width, channels)
        Of at least 3 by 3 pixels; channels are averaged.

    Returns
    -------
    ndarray of float, shape (n, 186)
        Three times 62 numbers: of the image as it is, divided by its mean, and centred and
        divided by its sd. Mean, sd, skewness, kurtosis, nine quantiles, a histogram of 32 bins and
        its entropy; mean, sd, mean square and nine quantiles of the size of Sobel's gradient;
        mean size and variance of the Laplacian; mean size of the steps down and to the right.

    Raises
    ------
    InputError
        If there is no image, or one is too small.

    Examples
    --------
    >>> global_statistics(np.zeros((2, 8, 8))).shape
    (2, 186)
    """
    array = np.asarray(images)
    if array.ndim not in (3, 4) or not array.size or min(array.shape[1:3]) < 3:
        raise InputError(
            "images must have shape (n, height, width) or (n, height, width, channels), with at "
            f"least 3 by 3 pixels, got shape {array.shape}"
        )
    blocks = range(0, len(array), _BLOCK)
    return np.concatenate([_statistics(array[start : start + _BLOCK]) for start in blocks])


def _statistics(array: AnyArray) -> FloatArray:
    grey = array.astype(np.float64)
    grey = grey.mean(axis=3) if grey.ndim == 4 else grey
    mean = grey.mean(axis=(1, 2), keepdims=True)
    sd = grey.std(axis=(1, 2), keepdims=True) + _TINY
    return np.hstack(
        [
            _of_one_kind(grey, 0.0, 256.0),
            _of_one_kind(grey / (mean + _TINY), 0.0, 4.0),
            _of_one_kind((grey - mean) / sd, -4.0, 4.0),
        ]
    )


def _of_one_kind(image: FloatArray, low: float, high: float) -> FloatArray:
    """Statistics of images, with a histogram between two bounds; what lies beyond is in its ends.

    Shape (n, 62).
    """
    flat = image.reshape(len(image), -1)
    mean, sd = flat.mean(axis=1), flat.std(axis=1)
    z = (flat - mean[:, None]) / (sd[:, None] + _TINY)
    bin_of = np.clip((flat - low) / (high - low) * _BINS, 0, _BINS - 1).astype(np.int64)
    bin_of += _BINS * np.arange(len(flat))[:, None]
    hits = np.bincount(bin_of.ravel(), minlength=_BINS * len(flat)).reshape(-1, _BINS)
    share = hits / flat.shape[1]
    entropy = -(share * np.log(np.where(share > 0.0, share, 1.0))).sum(axis=1)
    down, right = (ndimage.convolve(image, kernel[None]) for kernel in (_SOBEL, _SOBEL.T))
    steep = np.hypot(down, right).reshape(len(image), -1)
    bent = ndimage.convolve(image, _LAPLACE[None]).reshape(len(image), -1)
    return np.column_stack(
        [
            mean,
            sd,
            (z**3).mean(axis=1),
            (z**4).mean(axis=1),
            np.quantile(flat, _LEVELS, axis=1).T,
            share,
            entropy,
            steep.mean(axis=1),
            steep.std(axis=1),
            np.square(steep).mean(axis=1),
            np.quantile(steep, _LEVELS, axis=1).T,
            np.abs(bent).mean(axis=1),
            bent.var(axis=1),
            np.abs(np.diff(image, axis=1)).mean(axis=(1, 2)),
            np.abs(np.diff(image, axis=2)).mean(axis=(1, 2)),
        ]
    )


def _features(x: npt.ArrayLike) -> FloatArray:
    """Columns of a table as they are, statistics of images."""
    return as_matrix(x, "x") if np.ndim(x) == 2 else global_statistics(x)
