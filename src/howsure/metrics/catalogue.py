"""The one list of measures.

Every entry says what it is, which way is better, from what content it is computed, which laws it
obeys, and its value for a perfect model; the tests hold each entry to what it says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from howsure.core.arrays import BoolArray, FloatArray
from howsure.core.records import Direction, Notion
from howsure.metrics import (
    association,
    calibration,
    coverage,
    crps,
    dispersion,
    miscalibration,
    point,
    scores,
    selective,
)
from howsure.metrics.catalogue_local import LOCAL
from howsure.metrics.characteristic import statistics as characteristic
from howsure.metrics.metric import Form, Laws, Metric, Question
from howsure.stats.ecdf_bands import uniformity_of_counts
from howsure.stats.estimate import Statistic

_ENDS = ("lower", "upper")
_TRUTH = ("y", "lower", "upper")
_BY_UNIT = Laws(scale=1.0)
_SHARE = (0.0, 1.0)
_POSITIVE = (0.0, math.inf)
_NAVRATIL = "Navrátil et al. 2021, section 2.1"


@cache
def catalogue() -> Mapping[str, Metric]:
    """Every measure by name, in the order in which reports show them.

    Returns
    -------
    mapping of str to Metric

    Examples
    --------
    >>> catalogue()["interval_score"].units
    'y'
    """
    entries = (
        *_COVERAGE,
        *_WIDTH,
        *_SCORES,
        *_CALIBRATION,
        *_ASSOCIATION,
        *_TRADE,
        *LOCAL,
        *_POINT,
    )
    return MappingProxyType({metric.name: metric for metric in entries})


def _itself(values: FloatArray) -> FloatArray:
    return values


def _missed(covered: BoolArray) -> BoolArray:
    return ~covered


def _negative(values: FloatArray) -> FloatArray:
    return -values


def _uniformity(counted: tuple[FloatArray, int]) -> Statistic:
    return Statistic(uniformity_of_counts(*counted).p_value)


def _most_certain(share: int) -> Metric:
    return Metric(
        name=f"error_most_certain_{share}",
        title=f"MAE of the most certain {share} %",
        question=Question.ASSOCIATION,
        meaning=f"Mean absolute error of the {share} % of rows with the least uncertainty.",
        formula=f"mean |e| over the {share} % most certain",
        source="definition",
        direction=Direction.LOWER,
        units="y",
        forms=(
            Form(
                needs=("acceptance",),
                function=selective.Acceptance.risk_at,
                reduce="statistic",
                weighted=False,
                options={"prediction_rate": share / 100},
            ),
        ),
        laws=_BY_UNIT,
        standard_normal=0.7979,
        notion=Notion.LOCAL,
        bounds=_POSITIVE,
    )


_COVERAGE = (
    Metric(
        name="empirical_coverage",
        title="Empirical coverage (PICP)",
        question=Question.COVERAGE,
        meaning="Share of rows whose y lies in its closed interval or label set.",
        formula="mean 1{l ≤ y ≤ u}",
        source="prediction interval coverage probability",
        direction=Direction.TARGET,
        units="1",
        forms=(Form(needs=("covered",), function=_itself, reduce="share"),),
        laws=Laws(),
        standard_normal=0.9,
        target="coverage",
        per_coverage=True,
        expected="own_mass",
        bounds=_SHARE,
    ),
    Metric(
        name="misses_below",
        title="Misses below",
        question=Question.COVERAGE,
        meaning="Share of rows whose y lies below its interval.",
        formula="mean 1{y < l}",
        source="definition",
        direction=Direction.TARGET,
        units="1",
        forms=(Form(needs=("y", "lower"), function=coverage.missed_below, reduce="share"),),
        laws=Laws(reflection="misses_above"),
        standard_normal=0.05,
        target="half miss",
        per_coverage=True,
        bounds=_SHARE,
    ),
    Metric(
        name="misses_above",
        title="Misses above",
        question=Question.COVERAGE,
        meaning="Share of rows whose y lies above its interval.",
        formula="mean 1{y > u}",
        source="definition",
        direction=Direction.TARGET,
        units="1",
        forms=(Form(needs=("y", "upper"), function=coverage.missed_above, reduce="share"),),
        laws=Laws(reflection="misses_below"),
        standard_normal=0.05,
        target="half miss",
        per_coverage=True,
        bounds=_SHARE,
    ),
    Metric(
        name="miss_rate",
        title="Miss rate",
        question=Question.COVERAGE,
        meaning="Share of rows whose y lies outside its interval, 1 − empirical coverage.",
        formula="mean 1{y < l or y > u}",
        source=f"{_NAVRATIL}, equation 1",
        direction=Direction.TARGET,
        units="1",
        forms=(Form(needs=("covered",), function=_missed, reduce="share"),),
        laws=Laws(),
        standard_normal=0.1,
        target="miss",
        per_coverage=True,
        bounds=_SHARE,
    ),
    Metric(
        name="deficit",
        title="Deficit",
        question=Question.COVERAGE,
        meaning="How far missed values lie from their interval, averaged over all rows.",
        formula="mean max(l − y, y − u, 0)",
        source=_NAVRATIL,
        direction=Direction.LOWER,
        units="y",
        forms=(Form(needs=_TRUTH, function=coverage.deficit),),
        laws=_BY_UNIT,
        standard_normal=0.0418,
        per_coverage=True,
        bounds=_POSITIVE,
    ),
    Metric(
        name="groups_differ",
        title="Do groups differ?",
        question=Question.COVERAGE,
        meaning="P-value of the permutation test that all groups share one coverage.",
        formula="max over groups of |c_g − c| / √(c(1 − c)(1/n_g − 1/n))",
        source="max-statistic permutation test",
        direction=Direction.NONE,
        units="p-value",
        forms=(),
        laws=Laws(),
        standard_normal=math.nan,
        notion=Notion.GROUP,
        per_coverage=True,
        bounds=_SHARE,
    ),
    Metric(
        name="worst_group_shortfall",
        title="Shortfall of the worst group",
        question=Question.COVERAGE,
        meaning="How far the worst group stays below the nominal coverage.",
        formula="(1 − α) − c_g",
        source="definition",
        direction=Direction.LOWER,
        units="1",
        forms=(),
        laws=Laws(),
        standard_normal=math.nan,
        notion=Notion.GROUP,
        per_coverage=True,
        target=0.0,
    ),
)

_WIDTH = (
    Metric(
        name="mean_width",
        title="Mean width",
        question=Question.WIDTH,
        meaning="Average width of the intervals; narrower is better at equal coverage.",
        formula="mean (u − l)",
        source="definition",
        direction=Direction.LOWER,
        units="y",
        forms=(Form(needs=_ENDS, function=coverage.width),),
        laws=_BY_UNIT,
        standard_normal=3.2897,
        per_coverage=True,
        bounds=_POSITIVE,
    ),
    Metric(
        name="median_width",
        title="Median width",
        question=Question.WIDTH,
        meaning="Median width of the intervals.",
        formula="median (u − l)",
        source="definition",
        direction=Direction.LOWER,
        units="y",
        forms=(Form(needs=_ENDS, function=coverage.median_width, reduce="statistic"),),
        laws=_BY_UNIT,
        standard_normal=3.2897,
        per_coverage=True,
        bounds=_POSITIVE,
    ),
    Metric(
        name="normalised_width",
        title="Width relative to the range of y",
        question=Question.WIDTH,
        meaning="Mean width over the range of y (NMPIL); depends on the most extreme y.",
        formula="mean (u − l) / (max y − min y)",
        source="interval literature: NMPIL",
        direction=Direction.LOWER,
        units="1",
        forms=(
            Form(
                needs=_TRUTH,
                function=coverage.normalised_width,
                reduce="statistic",
                options={"by": "range"},
            ),
        ),
        laws=Laws(),
        standard_normal=math.nan,
        per_coverage=True,
        bounds=_POSITIVE,
    ),
    Metric(
        name="relative_width",
        title="Width relative to the sd of y",
        question=Question.WIDTH,
        meaning="Mean width over the standard deviation of y.",
        formula="mean (u − l) / sd(y)",
        source="definition",
        direction=Direction.LOWER,
        units="1",
        forms=(
            Form(
                needs=_TRUTH,
                function=coverage.normalised_width,
                reduce="statistic",
                options={"by": "sd"},
            ),
        ),
        laws=Laws(),
        standard_normal=3.2897,
        per_coverage=True,
        bounds=_POSITIVE,
    ),
    Metric(
        name="bandwidth",
        title="Bandwidth",
        question=Question.WIDTH,
        meaning="Half the average width.",
        formula="mean (u − l) / 2",
        source=f"{_NAVRATIL}, equation 2",
        direction=Direction.LOWER,
        units="y",
        forms=(Form(needs=_ENDS, function=coverage.bandwidth),),
        laws=_BY_UNIT,
        standard_normal=1.6449,
        per_coverage=True,
        bounds=_POSITIVE,
    ),
    Metric(
        name="excess",
        title="Excess",
        question=Question.WIDTH,
        meaning="How far covered values lie from the nearer end, averaged over all rows.",
        formula="mean 1{l ≤ y ≤ u} min(y − l, u − y)",
        source=_NAVRATIL,
        direction=Direction.LOWER,
        units="y",
        forms=(Form(needs=_TRUTH, function=coverage.excess),),
        laws=_BY_UNIT,
        standard_normal=0.8888,
        per_coverage=True,
        bounds=_POSITIVE,
    ),
    Metric(
        name="set_size",
        title="Set size",
        question=Question.WIDTH,
        meaning="Average number of labels in a set; smaller is better at equal coverage.",
        formula="mean |C|",
        source="definition",
        direction=Direction.LOWER,
        units="labels",
        forms=(Form(needs=("set_sizes",), function=_itself),),
        laws=Laws(),
        standard_normal=math.nan,
        bounds=_POSITIVE,
    ),
    Metric(
        name="sharpness",
        title="Sharpness",
        question=Question.WIDTH,
        meaning="Root mean predicted variance: how sure the model claims to be.",
        formula="√mean sd²",
        source="Gneiting, Balabdaoui and Raftery 2007",
        direction=Direction.NONE,
        units="y",
        forms=(Form(needs=("sd",), function=dispersion.sharpness, reduce="statistic"),),
        laws=_BY_UNIT,
        standard_normal=1.0,
        bounds=_POSITIVE,
    ),
)

_SCORES = (
    Metric(
        name="interval_score",
        title="Interval score (Winkler)",
        question=Question.SCORE,
        meaning="Width plus a penalty for each miss; proper for central intervals.",
        formula="(u − l) + (2/α)(l − y)₊ + (2/α)(y − u)₊",
        source="Gneiting and Raftery 2007, equation 43",
        direction=Direction.LOWER,
        units="y",
        forms=(
            Form(needs=_TRUTH, keywords={"coverage": "coverage"}, function=scores.interval_score),
        ),
        laws=_BY_UNIT,
        standard_normal=4.1254,
        calibration=True,
        per_coverage=True,
        bounds=_POSITIVE,
    ),
    Metric(
        name="weighted_interval_score",
        title="Weighted interval score",
        question=Question.SCORE,
        meaning="Interval scores at several coverages in one number, with the median where given.",
        formula="[½|y − m| + Σ (α_k/2) IS_k] / (K + ½)",
        source="Bracher et al. 2021",
        direction=Direction.LOWER,
        units="y",
        forms=(
            Form(
                needs=("y", "median", "lowers", "uppers", "coverages"),
                function=scores.weighted_interval_score,
            ),
        ),
        laws=_BY_UNIT,
        standard_normal=math.nan,
        bounds=_POSITIVE,
    ),
    Metric(
        name="pinball",
        title="Pinball loss",
        question=Question.SCORE,
        meaning="Average quantile loss over the given levels.",
        formula="mean over levels τ of (y − q)τ if y ≥ q else (q − y)(1 − τ)",
        source="Koenker and Bassett 1978",
        direction=Direction.LOWER,
        units="y",
        forms=(Form(needs=("y", "quantiles", "levels"), function=scores.mean_pinball),),
        laws=_BY_UNIT,
        standard_normal=math.nan,
        bounds=_POSITIVE,
    ),
    Metric(
        name="crps",
        title="CRPS",
        question=Question.SCORE,
        meaning="A proper score of the whole law (continuous ranked probability score).",
        formula="∫ (F(t) − 1{y ≤ t})² dt",
        source="Gneiting and Raftery 2007, section 4.2",
        direction=Direction.LOWER,
        units="y",
        forms=(
            Form(needs=("crps_of_law",), function=_itself),
            Form(
                needs=("y", "samples"),
                function=crps.crps_samples,
                options={"fair": False},
                note="the samples taken as the whole law",
            ),
            Form(
                needs=("y", "quantiles", "levels"),
                function=crps.crps_quantiles,
                note="from quantiles: truncated at the outermost levels",
            ),
        ),
        laws=_BY_UNIT,
        standard_normal=0.5642,
        bounds=_POSITIVE,
    ),
    Metric(
        name="crps_fair",
        title="Fair CRPS of an ensemble",
        question=Question.SCORE,
        meaning="CRPS of the law behind the samples, without the penalty for having few.",
        formula="mean|s − y| − Σ|s − s′| / (2m(m − 1))",
        source="Ferro 2014",
        direction=Direction.LOWER,
        units="y",
        forms=(Form(needs=("y", "samples"), function=crps.crps_samples, options={"fair": True}),),
        laws=_BY_UNIT,
        standard_normal=math.nan,
    ),
    Metric(
        name="log_score",
        title="Log score",
        question=Question.SCORE,
        meaning="Negative log density of what happened; proper, and harsh on surprises.",
        formula="−log f(y)",
        source="Good 1952",
        direction=Direction.LOWER,
        units="nats",
        forms=(Form(needs=("log_density",), function=_negative),),
        laws=Laws(scale="log", why="a density has units 1/y, so its logarithm shifts by log s"),
        standard_normal=1.4189,
    ),
)

_CALIBRATION = (
    Metric(
        name="calibration_error",
        title="Regression calibration error",
        question=Question.CALIBRATION,
        meaning="How far observed shares stray from stated probabilities, over levels.",
        formula="Σ_j w_j |p_j − q_j|^a",
        source="Kuleshov, Fenner and Ermon 2018",
        direction=Direction.LOWER,
        units="1",
        forms=(
            Form(
                needs=("cdf",),
                keywords={"left": "left"},
                function=calibration.calibration_error,
                reduce="statistic",
            ),
            Form(
                needs=("y", "quantiles", "levels"),
                function=calibration.calibration_error_quantiles,
                reduce="statistic",
                note="at the given levels",
            ),
        ),
        laws=Laws(),
        standard_normal=0.0,
        target=0.0,
        bounds=_SHARE,
    ),
    Metric(
        name="miscalibration_area",
        title="Miscalibration area",
        question=Question.CALIBRATION,
        meaning="Area between the calibration curve and the diagonal, exact.",
        formula="∫ |q(p) − p| dp",
        source="Tran et al. 2020",
        direction=Direction.LOWER,
        units="1",
        forms=(
            Form(
                needs=("cdf",),
                keywords={"left": "left"},
                function=miscalibration.miscalibration_area,
                reduce="statistic",
                options={"version": "quantile"},
            ),
        ),
        laws=Laws(),
        standard_normal=0.0,
        target=0.0,
        bounds=_POSITIVE,
    ),
    Metric(
        name="centred_miscalibration_area",
        title="Miscalibration area of central intervals",
        question=Question.CALIBRATION,
        meaning="Area between empirical and nominal coverage of central intervals, exact.",
        formula="∫ |c(p) − p| dp over central coverages p",
        source="Tran et al. 2020",
        direction=Direction.LOWER,
        units="1",
        forms=(
            Form(
                needs=("cdf",),
                keywords={"left": "left"},
                function=miscalibration.miscalibration_area,
                reduce="statistic",
                options={"version": "interval"},
            ),
        ),
        laws=Laws(),
        standard_normal=0.0,
        target=0.0,
        bounds=_POSITIVE,
    ),
    Metric(
        name="pit_uniformity",
        title="Uniformity of the PIT",
        question=Question.CALIBRATION,
        meaning="P-value that the PIT is uniform, from the simultaneous band of its shares.",
        formula="simultaneous ECDF test",
        source="Säilynoja, Bürkner and Vehtari 2022",
        direction=Direction.NONE,
        units="p-value",
        forms=(
            Form(needs=("pit_counts",), function=_uniformity, reduce="statistic", weighted=False),
        ),
        laws=Laws(
            reflection="varies",
            why="where y meets a jump of its law, a draw breaks the tie, and other jumps draw anew",
        ),
        standard_normal=math.nan,
    ),
    Metric(
        name="mean_squared_z",
        title="Mean squared z-score (ZMS)",
        question=Question.CALIBRATION,
        meaning="Squared errors over predicted variances: above 1 the sd is too small.",
        formula="mean ((y − μ)/sd)²",
        source="Pernot 2024",
        direction=Direction.TARGET,
        units="1",
        forms=(Form(needs=("y", "mean", "positive_sd"), function=dispersion.squared_z),),
        laws=Laws(),
        standard_normal=1.0,
        target=1.0,
        bounds=_POSITIVE,
    ),
    Metric(
        name="relative_calibration_error",
        title="Relative calibration error (RCE)",
        question=Question.CALIBRATION,
        meaning="Root mean variance against root mean squared error: above 0 the sd is too large.",
        formula="(RMV − RMSE)/RMV",
        source="Pernot 2024",
        direction=Direction.TARGET,
        units="1",
        forms=(
            Form(
                needs=("y", "mean", "positive_sd"),
                function=dispersion.relative_calibration_error,
                reduce="statistic",
            ),
        ),
        laws=Laws(),
        standard_normal=0.0,
        target=0.0,
        bounds=(-math.inf, 1.0),
    ),
    Metric(
        name="ence",
        title="ENCE",
        question=Question.CALIBRATION,
        meaning="Expected normalised calibration error: sd against error in bins of equal mass.",
        formula="mean over bins of |RMV_b − RMSE_b| / RMV_b",
        source="Levi et al. 2022",
        direction=Direction.LOWER,
        units="1",
        forms=(
            Form(needs=("y", "mean", "positive_sd"), function=dispersion.ence, reduce="statistic"),
        ),
        laws=Laws(),
        standard_normal=0.0,
        target=0.0,
        bounds=_POSITIVE,
    ),
)

_ASSOCIATION = (
    Metric(
        name="kendall_tau",
        title="Kendall τ-b of |error| and width",
        question=Question.ASSOCIATION,
        meaning="Do wider beliefs go with larger errors? Rank agreement.",
        formula="(C − D)/√((C + D + T_x)(C + D + T_y))",
        source="Kendall 1945",
        direction=Direction.HIGHER,
        units="1",
        forms=(
            Form(
                needs=("absolute_error", "uncertainty"),
                keywords={"ranked": "ranks"},
                function=association.kendall_tau,
                reduce="statistic",
            ),
        ),
        laws=Laws(),
        standard_normal=math.nan,
        notion=Notion.LOCAL,
        bounds=(-1.0, 1.0),
    ),
    Metric(
        name="spearman",
        title="Spearman ρ of |error| and width",
        question=Question.ASSOCIATION,
        meaning="Do wider beliefs go with larger errors? Correlation of ranks.",
        formula="correlation of mid-ranks",
        source="Spearman 1904",
        direction=Direction.HIGHER,
        units="1",
        forms=(
            Form(
                needs=("absolute_error", "uncertainty"),
                keywords={"ranked": "ranks"},
                function=association.spearman,
                reduce="statistic",
            ),
        ),
        laws=Laws(),
        standard_normal=math.nan,
        notion=Notion.LOCAL,
        bounds=(-1.0, 1.0),
    ),
    Metric(
        name="binned_r2",
        title="Binned R² of |error| on width",
        question=Question.ASSOCIATION,
        meaning="How much of the mean error of bins of equal mass their mean width explains.",
        formula="R² of bin means",
        source="definition",
        direction=Direction.HIGHER,
        units="1",
        forms=(
            Form(
                needs=("absolute_error", "uncertainty"),
                keywords={"ranked": "ranks"},
                function=association.binned_r2,
                reduce="statistic",
            ),
        ),
        laws=Laws(),
        standard_normal=math.nan,
        notion=Notion.LOCAL,
        bounds=_SHARE,
    ),
    Metric(
        name="aurc",
        title="Area under the risk–coverage curve",
        question=Question.ASSOCIATION,
        meaning="Mean error of the most certain rows, averaged over how many are accepted.",
        formula="mean over i of the mean |e| of the i most certain rows",
        source="Geifman, Uziel and El-Yaniv 2019",
        direction=Direction.LOWER,
        units="y",
        forms=(
            Form(
                needs=("acceptance",),
                function=selective.Acceptance.aurc,
                reduce="statistic",
                weighted=False,
            ),
        ),
        laws=_BY_UNIT,
        standard_normal=0.7979,
        notion=Notion.LOCAL,
        bounds=_POSITIVE,
    ),
    Metric(
        name="excess_aurc",
        title="Excess AURC",
        question=Question.ASSOCIATION,
        meaning="AURC above that of the best possible order.",
        formula="AURC − AURC of the oracle order",
        source="Geifman, Uziel and El-Yaniv 2019",
        direction=Direction.LOWER,
        units="y",
        forms=(
            Form(
                needs=("acceptance", "oracle"),
                function=selective.Acceptance.excess_aurc,
                reduce="statistic",
                weighted=False,
            ),
        ),
        laws=_BY_UNIT,
        standard_normal=math.nan,
        notion=Notion.LOCAL,
        bounds=_POSITIVE,
    ),
    *(_most_certain(share) for share in (50, 80, 90, 95)),
)

_TRADE = (
    Metric(
        name="auucc",
        title="Area under the characteristics curve (AUUCC)",
        question=Question.TRADE,
        meaning="Bandwidth needed, averaged over all miss rates; the exact step area.",
        formula="mean z · mean k, with k the scale that captures a row",
        source="Navrátil et al. 2021, section 2.2",
        direction=Direction.LOWER,
        units="y",
        forms=(
            Form(
                needs=("characteristic",),
                function=characteristic.area_statistic,
                reduce="statistic",
                weighted=False,
            ),
        ),
        laws=_BY_UNIT,
        standard_normal=0.7979,
        notion=Notion.LOCAL,
        bounds=_POSITIVE,
    ),
    Metric(
        name="characteristic_gain",
        title="Gain over a constant band",
        question=Question.TRADE,
        meaning="AUUCC against a constant band's; a perfect model gains about 0 % overall.",
        formula="100 (MAE − AUUCC)/MAE",
        source="Navrátil et al. 2021, section 2.2",
        direction=Direction.HIGHER,
        units="%",
        forms=(
            Form(
                needs=("characteristic", "perfect"),
                function=characteristic.gain_statistic,
                reduce="statistic",
                weighted=False,
            ),
        ),
        laws=Laws(),
        standard_normal=0.0,
        notion=Notion.LOCAL,
        bounds=(-math.inf, 100.0),
    ),
    Metric(
        name="characteristic_partial_gain",
        title="Gain at low miss rates",
        question=Question.TRADE,
        meaning="The gain where the miss rate is at most 20 %, where intervals are used.",
        formula="100 (A_const − A)/A_const, areas where ρ ≤ 0.2",
        source="Navrátil et al. 2021, section 2.2",
        direction=Direction.HIGHER,
        units="%",
        forms=(
            Form(
                needs=("characteristic", "perfect"),
                function=characteristic.gain_statistic,
                reduce="statistic",
                weighted=False,
                options={"miss_rate": characteristic.LOW_MISS_RATE},
            ),
        ),
        laws=Laws(),
        standard_normal=0.0,
        notion=Notion.LOCAL,
        bounds=(-math.inf, 100.0),
    ),
)

_POINT = (
    Metric(
        name="mae",
        title="Mean absolute error",
        question=Question.POINT,
        meaning="Average distance of the point forecast from what happened.",
        formula="mean |y − ŷ|",
        source="definition",
        direction=Direction.LOWER,
        units="y",
        forms=(Form(needs=("absolute_error",), function=_itself),),
        laws=_BY_UNIT,
        standard_normal=0.7979,
        bounds=_POSITIVE,
    ),
    Metric(
        name="rmse",
        title="Root mean squared error",
        question=Question.POINT,
        meaning="Like the mean absolute error, but large errors count more.",
        formula="√mean (y − ŷ)²",
        source="definition",
        direction=Direction.LOWER,
        units="y",
        forms=(
            Form(
                needs=("y", "point"),
                function=point.root_mean_squared_error,
                reduce="statistic",
            ),
        ),
        laws=_BY_UNIT,
        standard_normal=1.0,
        bounds=_POSITIVE,
    ),
    Metric(
        name="bias",
        title="Bias",
        question=Question.POINT,
        meaning="Average of forecast minus truth: above 0 the forecast is too high.",
        formula="mean (ŷ − y)",
        source="definition",
        direction=Direction.TARGET,
        units="y",
        forms=(Form(needs=("y", "point"), function=point.error),),
        laws=Laws(scale=1.0, reflection="negates"),
        standard_normal=0.0,
        target=0.0,
    ),
    Metric(
        name="r_squared",
        title="R²",
        question=Question.POINT,
        meaning="Share of the variance of y that the point forecast explains.",
        formula="1 − Σ(y − ŷ)²/Σ(y − ȳ)²",
        source="definition",
        direction=Direction.HIGHER,
        units="1",
        forms=(Form(needs=("y", "point"), function=point.r_squared, reduce="statistic"),),
        laws=Laws(),
        standard_normal=0.0,
        bounds=(-math.inf, 1.0),
    ),
)
