"""Conformal methods beside the packages MAPIE and crepes: equal where those are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, QuantileRegressor
from sklearn.model_selection import LeaveOneOut, PredefinedSplit

from extras import needs
from howsure.conformal import conformal_rank, rows_needed
from howsure.conformal.adapting import Mondrian
from howsure.core.rng import child
from howsure.predictions import Intervals
from howsure_studies.methods.conformal.cross import CVPlus, FittedCross, JackknifePlus, _by_fold
from howsure_studies.methods.conformal.inductive import SplitConformal
from howsure_studies.methods.conformal.normalized import NormalizedConformal
from howsure_studies.methods.conformal.quantile import Conformalized

COVERAGES = (0.5, 0.8, 0.9)


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = child(seed, "rows")
    x = rng.uniform(-1, 1, size=(n, 2))
    return x, x[:, 0] + (0.3 + np.abs(x[:, 1])) * rng.normal(size=n)


def ends(method: Any, x: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Shape (m, 2, c), as MAPIE gives them."""
    prediction = method.fit(x, y, np.random.default_rng(0)).predict(new).outcome
    assert isinstance(prediction, Intervals)
    return np.stack([prediction.lower, prediction.upper], axis=1)


TRAIN, HELD, NEW = rows(60, 0), rows(83, 1), rows(12, 2)[0]
MODEL = LinearRegression().fit(*TRAIN)


def test_split_conformal_is_mapies() -> None:
    peer = needs("mapie.regression")
    for n in (10, 11, 19, 20, 39, 83):
        x, y = HELD[0][:n], HELD[1][:n]
        other = peer.SplitConformalRegressor(MODEL, confidence_level=COVERAGES, prefit=True)
        expected = other.conformalize(x, y).predict_interval(NEW)[1]
        found = ends(SplitConformal(MODEL.predict, coverages=COVERAGES), x, y, NEW)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_mapie_refuses_nine_rows_that_suffice() -> None:
    """⌈(9 + 1) 0.9⌉ = 9 of 9 rows: a finite interval, which covers 9/10 exactly."""
    peer = needs("mapie.regression")
    x, y = HELD[0][:9], HELD[1][:9]
    assert rows_needed(0.9) == 9
    assert np.isfinite(ends(SplitConformal(MODEL.predict, coverages=(0.9,)), x, y, NEW)).all()
    other = peer.SplitConformalRegressor(MODEL, confidence_level=0.9, prefit=True)
    with pytest.raises(ValueError, match="too low"):
        other.conformalize(x, y).predict_interval(NEW)


@pytest.mark.parametrize("combine", ["plus", "minmax"])
def test_jackknife_and_cv_are_mapies(combine: Any) -> None:
    peer = needs("mapie.regression")
    x, y = TRAIN
    folds = np.arange(60) % 7
    cross = CVPlus(LinearRegression(), 7, coverages=COVERAGES, combine=combine)
    models = _by_fold(LinearRegression(), x, y, folds, np.random.default_rng(0))
    ranks = np.array([conformal_rank(60, coverage) for coverage in COVERAGES])
    prediction = (
        FittedCross(cross, models, np.abs(y - models.own_forecasts(x)), ranks).predict(NEW).outcome
    )
    assert isinstance(prediction, Intervals)
    found = {
        "cross": np.stack([prediction.lower, prediction.upper], axis=1),
        "jackknife": ends(
            JackknifePlus(LinearRegression(), coverages=COVERAGES, combine=combine), x, y, NEW
        ),
    }
    for name, parts in (("cross", PredefinedSplit(folds)), ("jackknife", LeaveOneOut())):
        other = peer.CrossConformalRegressor(
            LinearRegression(), confidence_level=COVERAGES, method=combine, cv=parts
        )
        expected = other.fit_conformalize(x, y).predict_interval(NEW)[1]
        np.testing.assert_allclose(found[name], expected, rtol=1e-9, atol=1e-12)


def test_cqr_is_mapies_with_symmetric_correction() -> None:
    peer = needs("mapie.regression")
    models = [
        QuantileRegressor(quantile=level, alpha=0.0, solver="highs").fit(*TRAIN)
        for level in (0.1, 0.9, 0.5)
    ]
    other = peer.ConformalizedQuantileRegressor(models, confidence_level=0.8, prefit=True)
    expected = other.conformalize(*HELD).predict_interval(NEW, symmetric_correction=True)[1]
    method = Conformalized(lambda x: (models[0].predict(x), models[1].predict(x)), coverages=(0.8,))
    np.testing.assert_allclose(ends(method, *HELD, NEW), expected, rtol=1e-9)


def size(x: np.ndarray) -> np.ndarray:
    return 0.3 + np.abs(x[:, 1])


def group(x: np.ndarray) -> np.ndarray:
    return (x[:, 0] > 0).astype(int)


@pytest.mark.parametrize("kind", ["plain", "normalised", "groups", "both"])
def test_crepes_agrees(kind: str) -> None:
    """At n where (n + 1)(1 − coverage) is exact in floating point, or not whole."""
    peer = needs("crepes")
    x, y = HELD
    options: dict[str, Any] = {"coverages": COVERAGES}
    if kind in ("groups", "both"):
        options["adapt"] = Mondrian(group)
    if kind in ("normalised", "both"):
        method: Any = NormalizedConformal(MODEL.predict, size, **options)
        sigmas, fresh = size(x), size(NEW)
    else:
        method, sigmas, fresh = SplitConformal(MODEL.predict, **options), None, None
    bins, own = (group(x), group(NEW)) if "adapt" in options else (None, None)
    found = ends(method, x, y, NEW)
    other = peer.ConformalRegressor().fit(y - MODEL.predict(x), sigmas=sigmas, bins=bins)
    for column, coverage in enumerate(COVERAGES):
        expected = other.predict_int(MODEL.predict(NEW), fresh, own, confidence=coverage)
        np.testing.assert_allclose(found[:, :, column], expected, rtol=1e-9)


def test_crepes_takes_one_rank_too_many_where_rounding_falls_short() -> None:
    """(19 + 1)(1 − 0.9) is 1.9999999999999996 in floating point, and is cut to 1."""
    peer = needs("crepes")
    x, y = HELD[0][:19], HELD[1][:19]
    errors = np.sort(np.abs(y - MODEL.predict(x)))
    other = peer.ConformalRegressor().fit(y - MODEL.predict(x))
    theirs = other.predict_int(MODEL.predict(NEW), confidence=0.9)
    ours = ends(SplitConformal(MODEL.predict, coverages=(0.9,)), x, y, NEW)[:, :, 0]
    np.testing.assert_allclose((ours[:, 1] - ours[:, 0]) / 2, errors[18 - 1])
    np.testing.assert_allclose((theirs[:, 1] - theirs[:, 0]) / 2, errors[19 - 1])
