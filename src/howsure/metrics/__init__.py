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

from howsure.core.optional import exporting

if TYPE_CHECKING:
    from howsure.metrics.adaptivity import ease as ease
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
    from howsure.metrics.backtests import (
        christoffersen_coverage_test as christoffersen_coverage_test,
    )
    from howsure.metrics.backtests import christoffersen_test as christoffersen_test
    from howsure.metrics.backtests import kupiec_test as kupiec_test
    from howsure.metrics.baseline import naive_quantiles as naive_quantiles
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
    from howsure.metrics.conditional import (
        conditional_validity_index as conditional_validity_index,
    )
    from howsure.metrics.conditional import coverage_gap as coverage_gap
    from howsure.metrics.conditional import ert as ert
    from howsure.metrics.conditional import hsic as hsic
    from howsure.metrics.conditional import local_pit as local_pit
    from howsure.metrics.conditional import regions_differ as regions_differ
    from howsure.metrics.conditional import width_correlation as width_correlation
    from howsure.metrics.conditional import worst_region as worst_region
    from howsure.metrics.conditional import worst_slab as worst_slab
    from howsure.metrics.congruence import mcmd as mcmd
    from howsure.metrics.congruence import rejection_curve as rejection_curve
    from howsure.metrics.congruence import skce as skce
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
    from howsure.metrics.crps_closed import crps_negative_binomial as crps_negative_binomial
    from howsure.metrics.crps_closed import crps_normal as crps_normal
    from howsure.metrics.crps_closed import crps_poisson as crps_poisson
    from howsure.metrics.crps_closed import crps_t as crps_t
    from howsure.metrics.decomposition import elementary_means as elementary_means
    from howsure.metrics.decomposition import elementary_quantiles as elementary_quantiles
    from howsure.metrics.decomposition import mean_decomposition as mean_decomposition
    from howsure.metrics.decomposition import quantile_decomposition as quantile_decomposition
    from howsure.metrics.dispersion import ence as ence
    from howsure.metrics.dispersion import relative_calibration_error as relative_calibration_error
    from howsure.metrics.dispersion import sharpness as sharpness
    from howsure.metrics.dispersion import squared_z as squared_z
    from howsure.metrics.dispersion import variance_ratio as variance_ratio
    from howsure.metrics.many_series import relative_skill as relative_skill
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
    from howsure.metrics.skill import climatology_crps as climatology_crps
    from howsure.metrics.skill import climatology_pinball as climatology_pinball
    from howsure.metrics.skill import pairing_gain as pairing_gain
    from howsure.metrics.skill import skill_score as skill_score
    from howsure.metrics.tail_calibration import beyond as beyond
    from howsure.metrics.tail_calibration import tail_miscalibration as tail_miscalibration
    from howsure.metrics.tail_calibration import tail_occurrence as tail_occurrence
    from howsure.metrics.tail_calibration import tail_severity as tail_severity
    from howsure.metrics.tails import qwcrps as qwcrps
    from howsure.metrics.tails import qwcrps_quantiles as qwcrps_quantiles
    from howsure.metrics.tails import qwcrps_samples as qwcrps_samples
    from howsure.metrics.tails import twcrps as twcrps
    from howsure.metrics.tails import twcrps_normal as twcrps_normal
    from howsure.metrics.tails import twcrps_quantiles as twcrps_quantiles
    from howsure.metrics.tails import twcrps_samples as twcrps_samples

_HOMES = {
    "adaptivity": "ease escv "
    "label_rank rank_cv rank_ss satisfaction_rate set_deficit set_excess sscv "
    "t_cv t_ss",
    "association": "binned_r2 kendall_tau spearman",
    "backtests": "christoffersen_test christoffersen_coverage_test kupiec_test",
    "calibration": "calibration_curve calibration_curve_quantiles calibration_error "
    "calibration_error_quantiles miscalibration_area",
    "characteristic": "auucc characteristic_curve",
    "conditional": "conditional_validity_index coverage_gap ert hsic local_pit "
    "regions_differ width_correlation worst_region worst_slab",
    "congruence": "mcmd rejection_curve skce",
    "coverage": "covered deficit empirical_coverage excess mean_width median_width missed_above "
    "missed_below normalised_width width",
    "crps": "crps_quantiles crps_samples",
    "crps_closed": "crps_gamma crps_laplace crps_logistic crps_lognormal crps_negative_binomial "
    "crps_normal crps_poisson crps_t",
    "decomposition": "elementary_means elementary_quantiles mean_decomposition "
    "quantile_decomposition",
    "dispersion": "ence relative_calibration_error sharpness squared_z variance_ratio",
    "many_series": "relative_skill",
    "pit": "pit_histogram randomised_pit",
    "point": "absolute_error error r_squared root_mean_squared_error",
    "scores": "interval_score mean_pinball pinball_loss weighted_interval_score",
    "selective": "aurc excess_aurc risk_at",
    "baseline": "naive_quantiles",
    "skill": "climatology_crps climatology_pinball pairing_gain skill_score",
    "tail_calibration": "beyond tail_miscalibration tail_occurrence tail_severity",
    "tails": "qwcrps qwcrps_quantiles qwcrps_samples "
    "twcrps twcrps_normal twcrps_quantiles twcrps_samples",
}

__getattr__, __dir__, __all__ = exporting(__name__, _HOMES)
