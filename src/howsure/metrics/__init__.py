"""Scores and measures of the field, on plain arrays.

Each takes arrays, lists, Series or CPU tensors. What ends in one number a row is averaged by you;
a reduction returns an `Estimate`, whose ``value`` is the number (``float`` gives it too). Names are
loaded when first asked for.

Examples
--------
>>> from howsure.metrics import crps_normal, ence, interval_score
>>> interval_score([1.0, 5.0], [0.0, 0.0], [2.0, 2.0], coverage=0.5)
array([ 2., 14.])
>>> crps_normal([0.0], [0.0], [1.0]).round(4)
array([0.2337])
>>> float(ence([1.0, -1.0, 4.0, -4.0], [0.0] * 4, [1.0, 1.0, 2.0, 2.0], bins=2))
0.5
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from howsure.core.lazy import exporting

if TYPE_CHECKING:
    from howsure.metrics.adaptivity import escv as escv
    from howsure.metrics.adaptivity import label_rank as label_rank
    from howsure.metrics.adaptivity import rank_cv as rank_cv
    from howsure.metrics.adaptivity import rank_ss as rank_ss
    from howsure.metrics.adaptivity import satisfaction_rate as satisfaction_rate
    from howsure.metrics.adaptivity import set_deficit as set_deficit
    from howsure.metrics.adaptivity import set_excess as set_excess
    from howsure.metrics.adaptivity import sscv as sscv
    from howsure.metrics.adaptivity import t_cv as t_cv
    from howsure.metrics.adaptivity import t_ss as t_ss
    from howsure.metrics.association import binned_r2 as binned_r2
    from howsure.metrics.association import kendall_tau as kendall_tau
    from howsure.metrics.association import spearman as spearman
    from howsure.metrics.calibration import calibration_curve as calibration_curve
    from howsure.metrics.calibration import (
        calibration_curve_quantiles as calibration_curve_quantiles,
    )
    from howsure.metrics.calibration import calibration_error as calibration_error
    from howsure.metrics.calibration import (
        calibration_error_quantiles as calibration_error_quantiles,
    )
    from howsure.metrics.calibration import miscalibration_area as miscalibration_area
    from howsure.metrics.characteristic import auucc as auucc
    from howsure.metrics.characteristic import characteristic_curve as characteristic_curve
    from howsure.metrics.conditional import coverage_gap as coverage_gap
    from howsure.metrics.conditional import ert as ert
    from howsure.metrics.conditional import hsic as hsic
    from howsure.metrics.conditional import local_pit as local_pit
    from howsure.metrics.conditional import width_correlation as width_correlation
    from howsure.metrics.conditional import worst_region as worst_region
    from howsure.metrics.conditional import worst_slab as worst_slab
    from howsure.metrics.congruence import mcmd as mcmd
    from howsure.metrics.congruence import rejection_curve as rejection_curve
    from howsure.metrics.coverage import covered as covered
    from howsure.metrics.coverage import deficit as deficit
    from howsure.metrics.coverage import empirical_coverage as empirical_coverage
    from howsure.metrics.coverage import excess as excess
    from howsure.metrics.coverage import mean_width as mean_width
    from howsure.metrics.coverage import median_width as median_width
    from howsure.metrics.coverage import missed_above as missed_above
    from howsure.metrics.coverage import missed_below as missed_below
    from howsure.metrics.coverage import normalised_width as normalised_width
    from howsure.metrics.coverage import width as width
    from howsure.metrics.crps import crps_quantiles as crps_quantiles
    from howsure.metrics.crps import crps_samples as crps_samples
    from howsure.metrics.crps_closed import crps_gamma as crps_gamma
    from howsure.metrics.crps_closed import crps_laplace as crps_laplace
    from howsure.metrics.crps_closed import crps_logistic as crps_logistic
    from howsure.metrics.crps_closed import crps_lognormal as crps_lognormal
    from howsure.metrics.crps_closed import crps_normal as crps_normal
    from howsure.metrics.crps_closed import crps_t as crps_t
    from howsure.metrics.crps_counts import crps_negative_binomial as crps_negative_binomial
    from howsure.metrics.crps_counts import crps_poisson as crps_poisson
    from howsure.metrics.dispersion import ence as ence
    from howsure.metrics.dispersion import relative_calibration_error as relative_calibration_error
    from howsure.metrics.dispersion import sharpness as sharpness
    from howsure.metrics.dispersion import squared_z as squared_z
    from howsure.metrics.dispersion import variance_ratio as variance_ratio
    from howsure.metrics.pit import pit_histogram as pit_histogram
    from howsure.metrics.pit import randomised_pit as randomised_pit
    from howsure.metrics.point import absolute_error as absolute_error
    from howsure.metrics.point import error as error
    from howsure.metrics.point import r_squared as r_squared
    from howsure.metrics.point import root_mean_squared_error as root_mean_squared_error
    from howsure.metrics.scores import interval_score as interval_score
    from howsure.metrics.scores import mean_pinball as mean_pinball
    from howsure.metrics.scores import pinball_loss as pinball_loss
    from howsure.metrics.scores import weighted_interval_score as weighted_interval_score
    from howsure.metrics.selective import aurc as aurc
    from howsure.metrics.selective import excess_aurc as excess_aurc
    from howsure.metrics.selective import risk_at as risk_at

_HOMES = {
    "absolute_error": "howsure.metrics.point",
    "aurc": "howsure.metrics.selective",
    "auucc": "howsure.metrics.characteristic",
    "binned_r2": "howsure.metrics.association",
    "calibration_curve": "howsure.metrics.calibration",
    "calibration_curve_quantiles": "howsure.metrics.calibration",
    "calibration_error": "howsure.metrics.calibration",
    "calibration_error_quantiles": "howsure.metrics.calibration",
    "characteristic_curve": "howsure.metrics.characteristic",
    "coverage_gap": "howsure.metrics.conditional",
    "covered": "howsure.metrics.coverage",
    "crps_gamma": "howsure.metrics.crps_closed",
    "crps_laplace": "howsure.metrics.crps_closed",
    "crps_logistic": "howsure.metrics.crps_closed",
    "crps_lognormal": "howsure.metrics.crps_closed",
    "crps_negative_binomial": "howsure.metrics.crps_counts",
    "crps_normal": "howsure.metrics.crps_closed",
    "crps_poisson": "howsure.metrics.crps_counts",
    "crps_quantiles": "howsure.metrics.crps",
    "crps_samples": "howsure.metrics.crps",
    "crps_t": "howsure.metrics.crps_closed",
    "deficit": "howsure.metrics.coverage",
    "empirical_coverage": "howsure.metrics.coverage",
    "ence": "howsure.metrics.dispersion",
    "error": "howsure.metrics.point",
    "ert": "howsure.metrics.conditional",
    "escv": "howsure.metrics.adaptivity",
    "excess": "howsure.metrics.coverage",
    "excess_aurc": "howsure.metrics.selective",
    "hsic": "howsure.metrics.conditional",
    "interval_score": "howsure.metrics.scores",
    "kendall_tau": "howsure.metrics.association",
    "label_rank": "howsure.metrics.adaptivity",
    "local_pit": "howsure.metrics.conditional",
    "mcmd": "howsure.metrics.congruence",
    "mean_pinball": "howsure.metrics.scores",
    "mean_width": "howsure.metrics.coverage",
    "median_width": "howsure.metrics.coverage",
    "miscalibration_area": "howsure.metrics.calibration",
    "missed_above": "howsure.metrics.coverage",
    "missed_below": "howsure.metrics.coverage",
    "normalised_width": "howsure.metrics.coverage",
    "pinball_loss": "howsure.metrics.scores",
    "pit_histogram": "howsure.metrics.pit",
    "r_squared": "howsure.metrics.point",
    "randomised_pit": "howsure.metrics.pit",
    "rank_cv": "howsure.metrics.adaptivity",
    "rank_ss": "howsure.metrics.adaptivity",
    "rejection_curve": "howsure.metrics.congruence",
    "relative_calibration_error": "howsure.metrics.dispersion",
    "risk_at": "howsure.metrics.selective",
    "root_mean_squared_error": "howsure.metrics.point",
    "satisfaction_rate": "howsure.metrics.adaptivity",
    "set_deficit": "howsure.metrics.adaptivity",
    "set_excess": "howsure.metrics.adaptivity",
    "sharpness": "howsure.metrics.dispersion",
    "spearman": "howsure.metrics.association",
    "squared_z": "howsure.metrics.dispersion",
    "sscv": "howsure.metrics.adaptivity",
    "t_cv": "howsure.metrics.adaptivity",
    "t_ss": "howsure.metrics.adaptivity",
    "variance_ratio": "howsure.metrics.dispersion",
    "weighted_interval_score": "howsure.metrics.scores",
    "width": "howsure.metrics.coverage",
    "width_correlation": "howsure.metrics.conditional",
    "worst_region": "howsure.metrics.conditional",
    "worst_slab": "howsure.metrics.conditional",
}

__all__ = [
    "absolute_error",
    "aurc",
    "auucc",
    "binned_r2",
    "calibration_curve",
    "calibration_curve_quantiles",
    "calibration_error",
    "calibration_error_quantiles",
    "characteristic_curve",
    "coverage_gap",
    "covered",
    "crps_gamma",
    "crps_laplace",
    "crps_logistic",
    "crps_lognormal",
    "crps_negative_binomial",
    "crps_normal",
    "crps_poisson",
    "crps_quantiles",
    "crps_samples",
    "crps_t",
    "deficit",
    "empirical_coverage",
    "ence",
    "error",
    "ert",
    "escv",
    "excess",
    "excess_aurc",
    "hsic",
    "interval_score",
    "kendall_tau",
    "label_rank",
    "local_pit",
    "mcmd",
    "mean_pinball",
    "mean_width",
    "median_width",
    "miscalibration_area",
    "missed_above",
    "missed_below",
    "normalised_width",
    "pinball_loss",
    "pit_histogram",
    "r_squared",
    "randomised_pit",
    "rank_cv",
    "rank_ss",
    "rejection_curve",
    "relative_calibration_error",
    "risk_at",
    "root_mean_squared_error",
    "satisfaction_rate",
    "set_deficit",
    "set_excess",
    "sharpness",
    "spearman",
    "squared_z",
    "sscv",
    "t_cv",
    "t_ss",
    "variance_ratio",
    "weighted_interval_score",
    "width",
    "width_correlation",
    "worst_region",
    "worst_slab",
]

__getattr__, __dir__ = exporting(__name__, _HOMES)
