"""Scores and measures of the field, on plain arrays.

Each takes arrays, lists, Series or CPU tensors; `crps`, `twcrps`, `qwcrps` and `log_score` take y
and a prediction, such as `howsure.Distribution.normal`. You average measures with one number per
row; a reduction returns an `Estimate`, whose ``value`` is the number (``float`` gives it too).
Names are loaded when first used.

Examples
--------
>>> from howsure import Distribution
>>> from howsure.metrics import crps, ence, interval_score
>>> interval_score([1.0, 5.0], [0.0, 0.0], [2.0, 2.0], coverage=0.5)
array([ 2., 14.])
>>> crps([0.0], Distribution.normal([0.0], [1.0])).round(4)
array([0.2337])
>>> float(ence([1.0, -1.0, 4.0, -4.0], [0.0] * 4, [1.0, 1.0, 2.0, 2.0], bins=2))
0.5
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from howsure.core.optional import exporting

if TYPE_CHECKING:
    from howsure.stats.ease import ease as ease
    from howsure.topics.adaptivity.association import rank_ss as rank_ss
    from howsure.topics.adaptivity.association import satisfaction_rate as satisfaction_rate
    from howsure.topics.adaptivity.association import t_ss as t_ss
    from howsure.topics.adaptivity.coverage import escv as escv
    from howsure.topics.adaptivity.coverage import rank_cv as rank_cv
    from howsure.topics.adaptivity.coverage import set_deficit as set_deficit
    from howsure.topics.adaptivity.coverage import set_excess as set_excess
    from howsure.topics.adaptivity.coverage import sscv as sscv
    from howsure.topics.adaptivity.coverage import t_cv as t_cv
    from howsure.topics.association import binned_r2 as binned_r2
    from howsure.topics.association import kendall_tau as kendall_tau
    from howsure.topics.association import spearman as spearman
    from howsure.topics.backtests import (
        christoffersen_coverage_test as christoffersen_coverage_test,
    )
    from howsure.topics.backtests import christoffersen_test as christoffersen_test
    from howsure.topics.backtests import kupiec_test as kupiec_test
    from howsure.topics.calibration.curve import calibration_curve as calibration_curve
    from howsure.topics.calibration.curve import calibration_error as calibration_error
    from howsure.topics.calibration.curve import miscalibration_area as miscalibration_area
    from howsure.topics.characteristic.curve import auucc as auucc
    from howsure.topics.characteristic.curve import characteristic_curve as characteristic_curve
    from howsure.topics.conditional.dependence import coverage_gap as coverage_gap
    from howsure.topics.conditional.dependence import hsic as hsic
    from howsure.topics.conditional.dependence import width_correlation as width_correlation
    from howsure.topics.conditional.ert import (
        conditional_validity_index as conditional_validity_index,
    )
    from howsure.topics.conditional.ert import ert as ert
    from howsure.topics.conditional.local_pit import local_pit as local_pit
    from howsure.topics.conditional.slab import regions_differ as regions_differ
    from howsure.topics.conditional.slab import worst_region as worst_region
    from howsure.topics.conditional.slab import worst_slab as worst_slab
    from howsure.topics.congruence.skce import skce as skce
    from howsure.topics.coverage import covered as covered
    from howsure.topics.coverage import deficit as deficit
    from howsure.topics.coverage import empirical_coverage as empirical_coverage
    from howsure.topics.coverage import excess as excess
    from howsure.topics.coverage import mean_width as mean_width
    from howsure.topics.coverage import normalised_width as normalised_width
    from howsure.topics.crps import crps as crps
    from howsure.topics.decomposition.parts import mean_decomposition as mean_decomposition
    from howsure.topics.decomposition.parts import quantile_decomposition as quantile_decomposition
    from howsure.topics.dispersion import ence as ence
    from howsure.topics.dispersion import relative_calibration_error as relative_calibration_error
    from howsure.topics.dispersion import sharpness as sharpness
    from howsure.topics.dispersion import squared_z as squared_z
    from howsure.topics.dispersion import variance_ratio as variance_ratio
    from howsure.topics.pit import pit_histogram as pit_histogram
    from howsure.topics.pit import randomised_pit as randomised_pit
    from howsure.topics.point import r_squared as r_squared
    from howsure.topics.point import root_mean_squared_error as root_mean_squared_error
    from howsure.topics.scores import interval_score as interval_score
    from howsure.topics.scores import log_score as log_score
    from howsure.topics.scores import mean_pinball as mean_pinball
    from howsure.topics.scores import pinball_loss as pinball_loss
    from howsure.topics.scores import weighted_interval_score as weighted_interval_score
    from howsure.topics.selective import aurc as aurc
    from howsure.topics.selective import excess_aurc as excess_aurc
    from howsure.topics.skill import climatology_crps as climatology_crps
    from howsure.topics.skill import pairing_gain as pairing_gain
    from howsure.topics.skill import skill_score as skill_score
    from howsure.topics.tail_calibration import beyond as beyond
    from howsure.topics.tail_calibration import tail_miscalibration as tail_miscalibration
    from howsure.topics.tail_calibration import tail_occurrence as tail_occurrence
    from howsure.topics.tail_calibration import tail_severity as tail_severity
    from howsure.topics.tails import qwcrps as qwcrps
    from howsure.topics.tails import twcrps as twcrps

_HOMES = {
    "stats.ease": "ease",
    "topics.adaptivity.association": "rank_ss satisfaction_rate t_ss",
    "topics.adaptivity.coverage": "escv rank_cv set_deficit set_excess sscv t_cv",
    "topics.association": "binned_r2 kendall_tau spearman",
    "topics.backtests": "christoffersen_coverage_test christoffersen_test kupiec_test",
    "topics.calibration.curve": "calibration_curve calibration_error miscalibration_area",
    "topics.characteristic.curve": "auucc characteristic_curve",
    "topics.conditional.dependence": "coverage_gap hsic width_correlation",
    "topics.conditional.ert": "conditional_validity_index ert",
    "topics.conditional.local_pit": "local_pit",
    "topics.conditional.slab": "regions_differ worst_region worst_slab",
    "topics.congruence.skce": "skce",
    "topics.coverage": "covered deficit empirical_coverage excess mean_width normalised_width",
    "topics.crps": "crps",
    "topics.decomposition.parts": "mean_decomposition quantile_decomposition",
    "topics.dispersion": "ence relative_calibration_error sharpness squared_z variance_ratio",
    "topics.pit": "pit_histogram randomised_pit",
    "topics.point": "r_squared root_mean_squared_error",
    "topics.scores": "interval_score log_score mean_pinball pinball_loss weighted_interval_score",
    "topics.selective": "aurc excess_aurc",
    "topics.skill": "climatology_crps pairing_gain skill_score",
    "topics.tail_calibration": "beyond tail_miscalibration tail_occurrence tail_severity",
    "topics.tails": "qwcrps twcrps",
}

__getattr__, __dir__, __all__ = exporting(__name__, _HOMES, base="howsure")
