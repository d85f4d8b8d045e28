"""What the pages of measures say beyond the catalogue: traps, and what is read, in words."""

from __future__ import annotations

READ = {
    "acceptance": "errors of the point forecast, and uncertainties",
    "acceptance, oracle": "errors of the point forecast, and uncertainties",
    "absolute_error": "y and the point forecast",
    "absolute_error, uncertainty, ranks": "errors of the point forecast, and uncertainties",
    "cdf, left": "the probability that each prediction gives to values up to y",
    "characteristic, recentred_rows": "y, lower, upper and the point forecast",
    "characteristic, recentred_rows, miss_range": "y, lower, upper and the point forecast",
    "components": "the PIT",
    "coverage_drift": "whether y is covered, and time",
    "coverage_gaps": "whether y is covered, and groups",
    "covered": "whether y is covered",
    "crps_of_law": "y and distributions",
    "ert": "whether y is covered, and the inputs",
    "escv": "whether y is covered, and the size of each set",
    "hsic": "whether y is covered, and widths or set sizes",
    "local_pit": "the PIT and the inputs",
    "log_density": "y and distributions",
    "miss_imbalance": "whether y lies below or above its interval",
    "noise_given_inputs": "errors and the inputs, where all widths are equal",
    "pit_counts": "the PIT",
    "pit_drift": "the PIT and time",
    "rank_cv": "whether y is covered, and the rank of the true label",
    "rank_ss": "set sizes, and the rank of the true label",
    "satisfaction_rate": "sizes and difficulties",
    "sd": "the sd of each prediction",
    "set_sizes": "the size of each set",
    "sscv": "whether y is covered, and the size of each set",
    "t_cv": "whether y is covered, and ease",
    "t_ss": "sizes, difficulties and ease",
    "true_rank, set_sizes": "the rank of the true label, and the size of each set",
    "width_correlation": "whether y is covered, and widths or set sizes",
    "width_response": "errors and the widths of intervals",
    "worst_region": "whether y is covered, and the inputs",
    "worst_slab": "whether y is covered, and the inputs",
    "y, lowers, uppers, coverages": "y and several intervals",
}
"""What a formula reads, by the names of its arrays, where these are not the reader's."""

_ORDER = (
    "It sees the order of uncertainties alone: doubling all of them changes nothing, so it says "
    "nothing of coverage."
)
_PIT = "Faults share the blame: look at all four of shift, spread, skew and tails before acting."
_POINT = "It says nothing of the uncertainty."
_BINS = "It depends on the number of bins, and is above 0 for a perfect model: read its reference."
_DRIFT = (
    "The change point is sought where the change is clearest, so compare it with what stationary "
    "rows show, not with 0."
)
_LOCAL = "Rows must be independent. At most 5,000 rows are looked at unless all are asked for."
_ERT = (
    "It is a lower bound: what the classifier cannot see of the inputs is missed. It is negative "
    "where the classifier is worse than the nominal coverage itself, so a perfect model shows "
    "about 0 or less, never surely 0."
)
_GAP = "Small groups stray by chance. The debiased form takes that off; the plain one does not."
_STRATA = "It sees coverage that depends on the size of sets, and nothing else."
_MAXIMUM = "A largest violation is above 0 by chance: compare it with the value of a perfect model."
_RANK = "It conditions on the true label, which no method knows: it describes, and is no test."

TRAPS = {
    "empirical_coverage": (
        "An average over all rows: groups may miss it on either side. Infinitely wide intervals "
        "cover all, so read it with a width. With 100 rows it is known to about 6 points."
    ),
    "misses_below": "A share of half the miss rate is best only where intervals are central.",
    "misses_above": "A share of half the miss rate is best only where intervals are central.",
    "miss_rate": "As empirical coverage: an average that hides groups, and knows no width.",
    "deficit": "It is 0 for intervals wide enough; read it beside the excess or a width.",
    "groups_differ": (
        "A p-value is no size: with many rows a difference without consequence is significant. "
        "Groups must be chosen before y is seen."
    ),
    "worst_group_shortfall": "The worst of many groups looks bad by chance: see its reference.",
    "mean_width": "Narrow intervals that miss look best. Compare widths at equal coverage only.",
    "median_width": "It does not see how wide the wider half is. Compare at equal coverage.",
    "normalised_width": "The range of y rests on two rows, and grows with the number of rows.",
    "relative_width": "It compares with the spread of y, so it varies with the rows chosen.",
    "bandwidth": "Narrow bands that miss look best. Read it beside the miss rate.",
    "excess": "It is least where intervals are narrow and miss. Read it beside the deficit.",
    "set_size": "Small sets that miss look best. Compare at equal coverage.",
    "empty_sets": "Empty sets may be right where coverage asked is below the accuracy.",
    "interval_score": (
        "It is proper for central intervals of one coverage. Scores at different coverages, or of "
        "different tables, cannot be compared."
    ),
    "weighted_interval_score": (
        "It depends on the coverages chosen: compare models at the same ones."
    ),
    "pinball": "It averages over the levels given: compare models at the same levels.",
    "log_score": (
        "One outlier can decide it, and it is infinite where a density is 0. A unit of y changes "
        "it by a constant. Densities cannot be compared with probabilities of counts."
    ),
    "impossible_share": "It is 0 for any distribution with tails, however wrong these are.",
    "crps": (
        "From quantiles it stops at the outermost levels; from samples it favours narrow "
        "ensembles. Large errors of the mean hide faults of the spread."
    ),
    "crps_fair": "It judges the distribution behind the samples, not the ensemble that is served.",
    "calibration_error": (
        "It is above 0 by chance: read its reference. A model that ignores its inputs may be "
        "perfectly calibrated."
    ),
    "miscalibration_area": (
        "It is above 0 by chance: read its reference. Faults of opposite sign at other levels do "
        "not cancel, those at other inputs do."
    ),
    "centred_miscalibration_area": "Bias and skew partly cancel in central intervals.",
    "pit_uniformity": (
        "A p-value is no size: with many rows small departures are proven. Importance weights are "
        "refused."
    ),
    "pit_bias": _PIT,
    "pit_spread": _PIT,
    "pit_skew": _PIT,
    "pit_tails": _PIT,
    "width_response": "It compares two halves; a fault in the middle of widths is not seen.",
    "miss_imbalance": "Balanced misses may be too many on both sides.",
    "sharpness": "A model that claims no doubt is sharpest. Read it beside a calibration.",
    "mean_squared_z": (
        "One tiny sd with an ordinary error decides it. Where z is heavy-tailed, the interval is "
        "withheld. Over- and under-confident rows cancel."
    ),
    "relative_calibration_error": "Rows with large variances decide it; others may be wrong.",
    "ence": _BINS,
    "kendall_tau": f"{_ORDER} Even a perfect model stays far below 1, as errors are random.",
    "spearman": f"{_ORDER} Even a perfect model stays far below 1, as errors are random.",
    "binned_r2": f"{_BINS} A line with a wrong slope has an R² of 1, too.",
    "aurc": f"{_ORDER} It falls with the error itself: a better forecast has a lower AURC.",
    "excess_aurc": f"{_ORDER} A perfect model stays above 0, as it cannot know its errors.",
    "error_most_certain_50": _ORDER,
    "error_most_certain_80": _ORDER,
    "error_most_certain_90": _ORDER,
    "error_most_certain_95": _ORDER,
    "auucc": (
        "Intervals are rescaled, so their own coverage is not judged. Areas of models with "
        "different forecasts mix both."
    ),
    "characteristic_gain": (
        "It is not a proper score: a correct model gains about 0 %, and a shrunken one more. Read "
        "the gain of a perfect model beside it."
    ),
    "characteristic_partial_gain": "The range of miss rates is part of the number: state it.",
    "characteristic_left_gain": "The range of miss rates is part of the number: state it.",
    "coverage_drift": _DRIFT,
    "bias_drift": _DRIFT,
    "spread_drift": _DRIFT,
    "mean_cce": (
        "A value means nothing without its reference: it depends on kernels, on λ and on the "
        "number of rows. It is slow: past 50,000 rows it must be asked for by name."
    ),
    "worst_region": f"Another half of the rows may find another region. {_LOCAL}",
    "worst_slab": (
        "Sought and judged on the same rows, a perfect model looks bad; here rows are split. "
        f"{_LOCAL}"
    ),
    "ert_squared": f"{_ERT} {_LOCAL}",
    "ert_absolute": f"{_ERT} {_LOCAL}",
    "ert_log": f"{_ERT} {_LOCAL}",
    "hsic": f"It sees coverage that depends on width, not on other inputs. {_LOCAL}",
    "width_correlation": f"It sees a straight relation alone. {_LOCAL}",
    "local_pit": f"It is a lower bound, as the ERT is, and may be negative. {_LOCAL}",
    "coverage_gap": _GAP,
    "coverage_gap_debiased": (
        "Groups with less spread than chance count as 0, so a perfect model is slightly above 0."
    ),
    "noise_given_inputs": "It is computed where all widths are equal, and only there.",
    "t_cv": f"{_MAXIMUM} It sees ease alone.",
    "t_ss": "Constant widths have none. Random sizes reach some value by chance.",
    "satisfaction_rate": "Random sizes satisfy the property half of the time: 0.5 is nothing.",
    "sscv": f"{_STRATA} {_MAXIMUM}",
    "escv": f"{_STRATA} Rare sizes decide it.",
    "rank_cv": _RANK,
    "rank_ss": _RANK,
    "set_deficit": "It is 0 for sets of all labels; read it beside the excess.",
    "set_excess": "It is 0 for empty sets; read it beside the deficit.",
    "mae": f"{_POINT} It is least for a median, not for a mean.",
    "rmse": f"{_POINT} A few large errors decide it.",
    "bias": "Too high here and too low there cancel. Judge groups as well.",
    "r_squared": f"{_POINT} It rises with the spread of y in the rows chosen.",
}
"""What to beware of, by measure."""
