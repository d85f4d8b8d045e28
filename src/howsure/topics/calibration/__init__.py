"""Calibration: how far observed shares lie from the probabilities that were stated."""

from howsure.topics.calibration.curve import (
    Weighting,
    calibration_curve,
    calibration_curve_quantiles,
    calibration_error,
    calibration_error_quantiles,
    column_shares,
    expected_gap,
    miscalibration_area,
)

__all__ = [
    "Weighting",
    "calibration_curve",
    "calibration_curve_quantiles",
    "calibration_error",
    "calibration_error_quantiles",
    "column_shares",
    "expected_gap",
    "miscalibration_area",
]
