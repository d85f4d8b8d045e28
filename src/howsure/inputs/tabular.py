"""Features of mixed kinds as one table of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError

MOST_LABELS = 20

Features = Mapping[str, npt.NDArray[Any]]


@final
@dataclass(frozen=True, slots=True)
class TabularEncoder:
    """Fitted scikit-learn transformers: numbers scaled, labels as indicators.

    Attributes
    ----------
    names : tuple of str
        The features, in order; numbers first.
    """

    names: tuple[str, ...]
    numbers: tuple[str, ...]
    labels: tuple[str, ...]
    scaler: Any
    indicator: Any

    def transform(self, features: Features) -> FloatArray:
        """Encode rows with the same features.

        Raises
        ------
        InputError
            If a feature is absent, or lengths differ.
        """
        absent = [name for name in self.names if name not in features]
        if absent:
            raise InputError(f"features must hold {', '.join(absent)}, got {', '.join(features)}")
        lengths = {len(features[name]) for name in self.names}
        if len(lengths) != 1:
            raise InputError(f"features must have one length, got {sorted(lengths)}")
        parts: list[FloatArray] = []
        if self.numbers:
            parts.append(self.scaler.transform(_columns(features, self.numbers, np.float64)))
        if self.labels:
            parts.append(self.indicator.transform(_columns(features, self.labels, str)))
        return np.concatenate(parts, axis=1)


def tabular_encoder(features: Features) -> TabularEncoder:
    """Fit the default embedding of a table with mixed kinds of features.

    Parameters
    ----------
    features : mapping of str to ndarray of shape (n,)
        Numbers (booleans among them) are centred and scaled to unit variance; other features
        become indicators of their labels, divided by √2 so that two rows with other labels are
        as far apart as two that differ by one standard deviation. The rarest labels beyond 20,
        and labels not seen before, share one indicator. Constant columns are left out.

    Returns
    -------
    TabularEncoder
        With ``.transform(features) -> ndarray of shape (n, e)``.

    Raises
    ------
    InputError
        If no feature varies.

    Examples
    --------
    >>> encoder = tabular_encoder({"x": np.array([0.0, 2.0]), "kind": np.array(["a", "b"])})
    >>> encoder.transform({"x": np.array([2.0]), "kind": np.array(["a"])}).round(2)
    array([[1.  , 0.71, 0.  ]])
    """
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

    varying = {name: value for name, value in features.items() if _varies(value)}
    if not varying:
        raise InputError(f"features must hold a column that varies, got {', '.join(features)}")
    numbers = tuple(name for name, value in varying.items() if value.dtype.kind in "biuf")
    labels = tuple(name for name in varying if name not in numbers)
    scaler, indicator = StandardScaler(), None
    if numbers:
        scaler.fit(_columns(varying, numbers, np.float64))
    if labels:
        encoder = OneHotEncoder(
            handle_unknown="infrequent_if_exist", max_categories=MOST_LABELS, sparse_output=False
        )
        indicator = make_pipeline(encoder, FunctionTransformer(_halved))
        indicator.fit(_columns(varying, labels, str))
    return TabularEncoder((*numbers, *labels), numbers, labels, scaler, indicator)


def _columns(features: Features, names: tuple[str, ...], kind: type) -> npt.NDArray[Any]:
    return np.stack([np.asarray(features[name]).astype(kind) for name in names], axis=1)


def _varies(value: npt.NDArray[Any]) -> bool:
    return bool((value != value[0]).any())


def _halved(indicators: FloatArray) -> FloatArray:
    """Two rows with other labels are then at distance 1."""
    return np.asarray(indicators / np.sqrt(2.0))
