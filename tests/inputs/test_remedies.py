"""Every remedy that an error on what was given proposes is tried on the case that raised it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from itertools import starmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure
from extras import needs
from howsure.core.errors import HowsureError
from howsure.core.rng import child

pd = needs("pandas")
N = 40
Y = child(0, "remedies").normal(size=N)
MEAN = child(0, "remedies, means").normal(size=N)
SD = np.full(N, 1.2)
LOW, UP = MEAN - 2.0, MEAN + 2.0
TABLE = np.column_stack([LOW, MEAN, UP])
DRAWS = MEAN[:, None] + child(0, "remedies, draws").normal(size=(N, 8))
LABELS = np.where(Y > 0, "cat", "dog")
CHANCE = np.column_stack([np.full(N, 0.6), np.full(N, 0.4)])
normal, Samples = howsure.Distribution.normal, howsure.Samples

Way = Callable[[], object]


def read(*given: Any, coverage: Any = (), **said: Any) -> object:
    """What was given, as a table that `assess` takes."""
    return howsure.Table(*given, coverage=np.atleast_1d(coverage).tolist(), **said).read()


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"y": Y, **columns})


def long(**columns: Any) -> pd.DataFrame:
    """A row for each of three levels of each case."""
    held = {"y": np.repeat(Y, 3), "row": np.repeat(np.arange(N), 3), "value": TABLE.ravel()}
    return pd.DataFrame({**held, **columns})


LEVELS = np.tile([0.05, 0.5, 0.95], N)
SQUARE = child(0, "remedies, square").normal(size=(N, N))
ENDS, WIDE = np.column_stack([LOW, UP]), np.column_stack([LOW - 1, LOW])
POSITIVE = np.abs(Y) + 0.1
MOVED = pd.Series(MEAN, index=np.arange(N)[::-1])
MANY = frame(lower=LOW, upper=UP)
STACKED = pd.DataFrame(
    {"y": np.tile(Y, 2), "point": np.r_[MEAN, LOW], "who": np.repeat(["a", "b"], N)}
)
LEVELED = STACKED.drop(columns="who").assign(
    point=np.r_[LOW, UP], share=np.repeat([0.25, 0.75], N), model="m"
)
ENDED = pd.DataFrame({"y": np.repeat(Y, 2), "row": np.repeat(np.arange(N), 2)}).assign(
    value=ENDS.ravel(), end=np.tile(["lower", "upper"], N), share=0.9
)
FAMILY = {"a_lower_90": LOW, "a_upper_90": UP, "b_lower_90": LOW, "b_upper_90": UP}
FEW = frame(point=MEAN, row=np.arange(N)).drop(index=3)
WHOLE = frame(point=MEAN, row=np.arange(N))
GAP = frame(point=np.where(np.arange(N) == 5, np.nan, MEAN))

# what raises, and by words of its message what they propose
CASES: Mapping[str, tuple[Way, Mapping[str, Way]]] = {
    # ---- bare arrays
    "two arrays below 0": (
        lambda: read(Y, (-3 - POSITIVE, -POSITIVE)),
        {"coverage=0.9": lambda: read(Y, (-3 - POSITIVE, -POSITIVE), coverage=0.9)},
    ),
    "ends or moments": (
        lambda: read(Y, (-3 - POSITIVE, POSITIVE)),
        {
            "coverage=0.9 for (lower, upper)": lambda: read(
                Y, (-3 - POSITIVE, POSITIVE), coverage=0.9
            ),
            "howsure.Distribution.normal(mean, sd)": lambda: read(
                Y, normal(-3 - POSITIVE, POSITIVE)
            ),
        },
    ),
    "few rows exceed": (
        lambda: read(Y, (np.where(np.arange(N) == 3, 9.0, LOW), UP)),
        {
            "howsure.Distribution.normal(mean, sd)": lambda: read(Y, normal(LOW, np.abs(UP) + 1)),
            "coverage=0.9 for (lower, upper)": lambda: read(Y, (LOW, UP), coverage=0.9),
        },
    ),
    "swapped": (
        lambda: read(POSITIVE, (POSITIVE + 1, POSITIVE / 2)),
        {
            "howsure.Distribution.normal(mean, sd)": lambda: read(
                POSITIVE, normal(POSITIVE + 1, POSITIVE / 2)
            ),
            "lower ends first and pass coverage=0.9": lambda: read(
                POSITIVE, (POSITIVE / 2, POSITIVE + 1), coverage=0.9
            ),
        },
    ),
    "ends that fit as moments": (
        lambda: read(Y, (np.full(N, -0.1), np.full(N, 1.0)), coverage=0.9),
        {
            "howsure.Intervals(lower, upper, 0.9)": lambda: read(
                Y, howsure.Intervals(np.full(N, -0.1), np.full(N, 1.0), 0.9)
            ),
            "howsure.Distribution.normal(mean, sd)": lambda: read(
                Y, normal(np.full(N, -0.1), np.full(N, 1.0))
            ),
        },
    ),
    "crossed ends": (
        lambda: read(Y, (UP, LOW), coverage=0.9),
        {
            "crossing='sort'": lambda: read(Y, (UP, LOW), coverage=0.9, crossing="sort"),
            "howsure.Distribution.normal(mean, sd)": lambda: read(Y, normal(UP, SD)),
        },
    ),
    "crossed quantiles": (
        lambda: read(Y, TABLE[:, [1, 0, 2]], levels=[0.1, 0.5, 0.9]),
        {
            "crossing='sort'": lambda: read(
                Y, TABLE[:, [1, 0, 2]], levels=[0.1, 0.5, 0.9], crossing="sort"
            )
        },
    ),
    "reversed levels": (
        lambda: read(Y, TABLE[:, ::-1], levels=[0.1, 0.5, 0.9]),
        {
            "levels[::-1]": lambda: read(Y, TABLE[:, ::-1], levels=[0.1, 0.5, 0.9][::-1]),
            "crossing='sort'": lambda: read(
                Y, TABLE[:, ::-1], levels=[0.1, 0.5, 0.9], crossing="sort"
            ),
        },
    ),
    "ends at two coverages": (
        lambda: read(Y, (WIDE, ENDS[:, ::-1] + 5)),
        {
            "coverage=[0.8, 0.9]": lambda: read(
                Y, (ENDS[:, :1] - [[0, 1]], ENDS[:, 1:] + [[0, 1]]), coverage=[0.8, 0.9]
            )
        },
    ),
    "ends with levels": (
        lambda: read(Y, (ENDS, ENDS + 5), levels=[0.1, 0.9]),
        {"coverage=": lambda: read(Y, (ENDS, ENDS + 5), coverage=[0.8, 0.9])},
    ),
    "a square": (
        lambda: read(Y, SQUARE),
        {
            "howsure.Samples(prediction) with": lambda: read(Y, Samples(SQUARE)),
            "howsure.Samples(prediction.T)": lambda: read(Y, Samples(SQUARE.T)),
        },
    ),
    "ordered columns": (
        lambda: read(Y, TABLE),
        {
            "levels=[…] with 3": lambda: read(Y, TABLE, levels=[0.1, 0.5, 0.9]),
            "howsure.Samples(prediction)": lambda: read(Y, Samples(TABLE)),
        },
    ),
    "ordered columns and a coverage": (
        lambda: read(Y, TABLE, coverage=0.9),
        {
            "(lower, upper) and howsure.Table(…, point=point)": lambda: read(
                Y, (LOW, UP), point=MEAN, coverage=0.9
            )
        },
    ),
    "one sd": (
        lambda: read(Y, (MEAN, 1.2)),
        {"howsure.Distribution.normal(mean, 1.2)": lambda: read(Y, normal(MEAN, 1.2))},
    ),
    "three arrays": (
        lambda: read(Y, (LOW, MEAN, UP)),
        {
            "levels=[…] with 3": lambda: read(Y, (LOW, MEAN, UP), levels=[0.1, 0.5, 0.9]),
            "howsure.Samples(np.column_stack(prediction))": lambda: read(
                Y, Samples(np.column_stack((LOW, MEAN, UP)))
            ),
        },
    ),
    "two by two": (
        lambda: read([0.0, 1.0], np.array([[-1.0, 1.0], [0.0, 2.0]]), coverage=0.9),
        {"tuple (lower, upper)": lambda: read([0.0, 1.0], ([-1.0, 0.0], [1.0, 2.0]), coverage=0.9)},
    ),
    "two columns": (
        lambda: read(Y, ENDS),
        {
            "coverage=0.9": lambda: read(Y, ENDS, coverage=0.9),
            "levels=[0.05, 0.95]": lambda: read(Y, ENDS, levels=[0.05, 0.95]),
            "howsure.Samples(prediction)": lambda: read(Y, Samples(ENDS)),
            "howsure.Distribution.normal(mean, sd)": lambda: read(Y, normal(MEAN, SD)),
        },
    ),
    "booleans": (
        lambda: read(Y, CHANCE > 0.5),
        {
            "howsure.LabelSets(prediction, coverage=0.9)": lambda: read(
                np.zeros(N), howsure.LabelSets(CHANCE > 0.5, coverage=0.9)
            )
        },
    ),
    "samples turned": (
        lambda: read(Y, Samples(DRAWS.T)),
        {"Samples(samples.T)": lambda: read(Y, Samples(DRAWS))},
    ),
    "a forecast among predictions": (
        lambda: read(Y, (normal(MEAN, SD), MEAN)),
        {"point=": lambda: read(Y, normal(MEAN, SD), point=MEAN)},
    ),
    "levels beside a prediction": (
        lambda: read(Y, Samples(DRAWS), levels=[0.5]),
        {"omit levels": lambda: read(Y, Samples(DRAWS))},
    ),
    # ---- mappings and frames beside y
    "two columns and a coverage": (
        lambda: read(Y, {"a": LOW, "b": UP}, coverage=0.9),
        {
            "name them 'lower' and 'upper'": lambda: read(
                Y, {"lower": LOW, "upper": UP}, coverage=0.9
            ),
            "omit coverage": lambda: read(Y, {"a": LOW, "b": UP}),
        },
    ),
    "a spread by another name": (
        lambda: read(Y, {"mean": MEAN, "variance": SD**2}),
        {
            "name it 'sd' (for a variance, its square root)": lambda: read(
                Y, {"mean": MEAN, "sd": SD}
            ),
            "omit it": lambda: read(Y, {"mean": MEAN}),
            "uncertainty=": lambda: read(Y, {"mean": MEAN}, uncertainty=SD),
        },
    ),
    "y among predictions": (
        lambda: read(Y, MANY, coverage=0.9),
        {
            "howsure.assess(table)": lambda: read(MANY, coverage=0.9),
            "omit that column": lambda: read(Y, MANY.drop(columns="y"), coverage=0.9),
        },
    ),
    "unknown coverage": (
        lambda: read(Y, {"lower": LOW, "upper": UP}),
        {"coverage=0.9": lambda: read(Y, {"lower": LOW, "upper": UP}, coverage=0.9)},
    ),
    "levels beside names": (
        lambda: read(Y, {"q0.1": LOW, "q0.9": UP}, levels=[0.1, 0.9]),
        {
            "omit levels": lambda: read(Y, {"q0.1": LOW, "q0.9": UP}),
            "howsure.Quantiles(levels, …)": lambda: read(Y, howsure.Quantiles([0.1, 0.9], ENDS)),
        },
    ),
    "one model and another column": (
        lambda: read(Y, {"lower_90": LOW, "upper_90": UP, "other": MEAN}),
        {
            "only the columns of one model": lambda: read(Y, {"lower_90": LOW, "upper_90": UP}),
            "{'name': {'lower_90': …}, …}": lambda: read(
                Y, {"name": {"lower_90": LOW, "upper_90": UP}, "other": MEAN}
            ),
        },
    ),
    "one end alone": (
        lambda: read(Y, {"lower_90": LOW, "mean": MEAN}),
        {
            "in place of … give the table {'y': y, **prediction}": lambda: read(
                {"y": Y, "lower_90": LOW, "mean": MEAN}, lower=""
            )
        },
    ),
    "names that say nothing": (
        lambda: read(Y, pd.DataFrame({"a": MEAN, "b": LOW})),
        {
            "lower_90 and upper_90": lambda: read(
                Y, pd.DataFrame({"lower_90": LOW, "upper_90": UP})
            ),
            "one column": lambda: read(Y, pd.DataFrame({"a": MEAN})),
            "coverage=": lambda: read(Y, pd.DataFrame({"a": LOW, "b": UP}), coverage=0.9),
            "{c: prediction[c] for c": lambda: read(Y, {"a": MEAN, "b": LOW}),
        },
    ),
    "rows in another order": (
        lambda: read(pd.Series(Y), MOVED),
        {"prediction.loc[y.index]": lambda: read(pd.Series(Y), MOVED.loc[pd.Series(Y).index])},
    ),
    "many distributions": (
        lambda: read(Y, list(starmap(_frozen, zip(MEAN, SD, strict=True)))),
        {"stats.norm(mean, sd)": lambda: read(Y, _frozen(MEAN, SD))},
    ),
    # ---- keywords
    "a column beside arrays": (
        lambda: read(Y, MEAN, lower="a"),
        {"(lower, upper) as the prediction": lambda: read(Y, (LOW, UP), coverage=0.9)},
    ),
    "levels of a table": (
        lambda: read(frame(a=LOW, b=UP), levels=[0.1, 0.9]),
        {
            "howsure.Table(…, quantiles={0.05: COLUMN})": lambda: read(
                frame(a=LOW, b=UP), quantiles={0.1: "a", 0.9: "b"}
            )
        },
    ),
    "y beside y": (
        lambda: read(Y, MEAN, y=Y),
        {
            "a table and no prediction": lambda: read(frame(point=MEAN), y="y"),
            "y alone": lambda: read(None, MEAN, y=Y),
        },
    ),
    "a missing value in arrays": (
        lambda: read(np.where(Y > 1, -9999.0, Y), MEAN, missing_value=-9999),
        {"missing='drop'": lambda: read(np.where(Y > 1, np.nan, Y), MEAN, missing="drop")},
    ),
    "groups by name": (
        lambda: read(Y, MEAN, groups="site"),
        {"groups={'site': labels}": lambda: read(Y, MEAN, groups={"site": LABELS})},
    ),
    # ---- columns of tables
    "no y": (
        lambda: read(pd.DataFrame({"price": Y, "point": MEAN})),
        {"y='price'": lambda: read(pd.DataFrame({"price": Y, "point": MEAN}), y="price")},
    ),
    "no y of two": (
        lambda: read(pd.DataFrame({"a": Y, "b": Y, "point": MEAN})),
        {"y=COLUMN": lambda: read(pd.DataFrame({"a": Y, "b": Y, "point": MEAN}), y="a")},
    ),
    "no y, no prediction": (
        lambda: read(pd.DataFrame({"a": Y, "b": MEAN})),
        {
            "y=COLUMN). No prediction column found; name it with howsure.Table(…, point=COLUMN": (
                lambda: read(pd.DataFrame({"a": Y, "b": MEAN}), y="a", point="b")
            )
        },
    ),
    "no prediction": (
        lambda: read(frame(a=LOW, b=UP, c=MEAN, d=SD)),
        {
            "point=COLUMN": lambda: read(frame(a=MEAN), point="a"),
            "howsure.Table(…, lower=COLUMN, upper=COLUMN)": lambda: read(
                frame(a=LOW, b=UP), lower="a", upper="b"
            ),
            "howsure.Table(…, mean=COLUMN, sd=COLUMN)": lambda: read(
                frame(c=MEAN, d=SD), mean="c", sd="d"
            ),
            "or with quantiles": lambda: read(frame(a=LOW, b=UP), quantiles={0.1: "a", 0.9: "b"}),
            "samples": lambda: read(frame(a=LOW, b=UP), samples="a,b"),
            "law": lambda: read(frame(c=MEAN, d=SD), law="norm:loc=c,scale=d"),
            "softmax": lambda: read(
                {"y": LABELS, "cat": CHANCE[:, 0], "dog": CHANCE[:, 1]}, softmax="cat,dog"
            ),
            "or label_set": lambda: read(
                {"y": LABELS, "a": ["cat|dog"] * N}, label_set="a", coverage=0.9
            ),
        },
    ),
    "one quantile alone": (
        lambda: read(frame(q80=UP)),
        {"quantiles={0.8: 'q80'}": lambda: read(frame(q80=UP), quantiles={0.8: "q80"})},
    ),
    "a number of several meanings": (
        lambda: read(frame(q1=UP)),
        {"quantiles={0.05: 'q1'}": lambda: read(frame(q1=UP), quantiles={0.01: "q1"})},
    ),
    "numbers of several meanings": (
        lambda: read(frame(q1=LOW, q3=UP)),
        {
            "quantiles={0.05: COLUMN, 0.95: COLUMN}": lambda: read(
                frame(q1=LOW, q3=UP), quantiles={0.25: "q1", 0.75: "q3"}
            ),
            "quantiles=''": lambda: read(frame(q1=LOW, q3=UP, point=MEAN), quantiles=""),
        },
    ),
    "a melted table": (
        lambda: read(
            pd.DataFrame({"y": np.tile(Y, 2), "value": np.r_[MEAN, LOW]}).assign(
                variable=np.repeat(["a", "b"], N)
            )
        ),
        {
            "model='variable', point='value'": lambda: read(
                pd.DataFrame({"y": np.tile(Y, 2), "value": np.r_[MEAN, LOW]}).assign(
                    variable=np.repeat(["a", "b"], N)
                ),
                model="variable",
                point="value",
            )
        },
    ),
    "two names for one role": (
        lambda: read(frame(pred=MEAN, forecast=LOW)),
        {
            "point='pred'": lambda: read(frame(pred=MEAN, forecast=LOW), point="pred"),
            "point='forecast'": lambda: read(frame(pred=MEAN, forecast=LOW), point="forecast"),
        },
    ),
    "two names for one end": (
        lambda: read(frame(lower=LOW, lwr=LOW, upper=UP)),
        {
            "lower='lower'": lambda: read(
                frame(lower=LOW, lwr=LOW, upper=UP), lower="lower", upper="upper", coverage=0.9
            )
        },
    ),
    "two names for one level": (
        lambda: read(frame(q05=LOW, q95=UP, **{"q0.95": UP})),
        {
            "quantiles={0.95: 'q0.95'}) with every level": lambda: read(
                frame(q05=LOW, q95=UP, **{"q0.95": UP}), quantiles={0.95: "q0.95", 0.05: "q05"}
            )
        },
    ),
    "an end alone": (
        lambda: read(frame(lower=LOW, a=UP, point=MEAN)),
        {
            "lower=COLUMN, upper=COLUMN, coverage=0.9": lambda: read(
                frame(lower=LOW, a=UP), lower="lower", upper="a", coverage=0.9
            ),
            "lower=''": lambda: read(frame(lower=LOW, a=UP, point=MEAN), lower=""),
        },
    ),
    "another coverage than the names'": (
        lambda: read(frame(lower_90=LOW, upper_90=UP), coverage=0.8),
        {
            "lower='lower_90', upper='upper_90', coverage=0.8": lambda: read(
                frame(lower_90=LOW, upper_90=UP), lower="lower_90", upper="upper_90", coverage=0.8
            )
        },
    ),
    "intervals of unknown coverages": (
        lambda: read(frame(lower=LOW, upper=UP, lower_90=LOW, upper_90=UP)),
        {
            "lower=COLUMN, upper=COLUMN, coverage=0.9": lambda: read(
                frame(lower=LOW, upper=UP, lower_90=LOW, upper_90=UP),
                lower="lower,lower_90",
                upper="upper,upper_90",
                coverage=[0.8, 0.9],
            )
        },
    ),
    "a set's other coverage": (
        lambda: read({"y": LABELS, "set_90": ["cat|dog"] * N}, coverage=0.8),
        {
            "label_set='set_90', coverage=0.8": lambda: read(
                {"y": LABELS, "set_90": ["cat|dog"] * N}, coverage=0.8, label_set="set_90"
            )
        },
    ),
    "a set without a coverage": (
        lambda: read({"y": LABELS, "a": ["cat|dog"] * N}, label_set="a"),
        {
            "coverage=0.9": lambda: read(
                {"y": LABELS, "a": ["cat|dog"] * N}, label_set="a", coverage=0.9
            ),
            "column set_90": lambda: read({"y": LABELS, "set_90": ["cat|dog"] * N}),
        },
    ),
    "a label of no class": (
        lambda: read(
            {"y": ["cow", *LABELS[1:]], "p_cat": CHANCE[:, 0], "p_dog": CHANCE[:, 1]}
            | {"set_90": ["cat|dog"] * N},
        ),
        {
            "softmax=''": lambda: read(
                {"y": ["cow", *LABELS[1:]], "p_cat": CHANCE[:, 0], "p_dog": CHANCE[:, 1]}
                | {"set_90": ["cat|dog"] * N},
                softmax="",
            )
        },
    ),
    "classes and numbers": (
        lambda: read(frame(a=LOW, b=UP), softmax="a,b", mean="a"),
        {"give only one of them": lambda: read(frame(a=LOW, b=UP), mean="a")},
    ),
    "two distributions": (
        lambda: read(frame(c=MEAN, d=SD), law="norm:loc=c,scale=d", sd="d"),
        {"give only one of them": lambda: read(frame(c=MEAN, d=SD), law="norm:loc=c,scale=d")},
    ),
    "two spreads": (
        lambda: read(frame(mean=MEAN, d=SD, e=SD), sd="d", variance="e"),
        {"give only one of them": lambda: read(frame(mean=MEAN, d=SD, e=SD), variance="e")},
    ),
    "points and one model": (
        lambda: read(frame(a=MEAN, b=LOW), points="a,b", mean="a"),
        {"give only one of them": lambda: read(frame(a=MEAN, b=LOW), points="a,b")},
    ),
    "several laws by name": (
        lambda: read(frame(t_df=SD + 3, t_loc=MEAN, t_scale=SD, norm_loc=MEAN, norm_scale=SD)),
        {
            "law='NAME:PARAMETER=COLUMN,…'": lambda: read(
                frame(t_df=SD + 3, t_loc=MEAN, t_scale=SD, norm_loc=MEAN, norm_scale=SD),
                law="norm:loc=norm_loc,scale=norm_scale",
            ),
            "law=''": lambda: read(
                frame(
                    t_df=SD + 3, t_loc=MEAN, t_scale=SD, norm_loc=MEAN, norm_scale=SD, point=MEAN
                ),
                law="",
            ),
        },
    ),
    "an incomplete family": (
        lambda: read(frame(**FAMILY, b_lower_80=LOW, b_upper_80=UP)),
        {
            "add the columns": lambda: read(
                frame(**FAMILY, b_lower_80=LOW, b_upper_80=UP, a_lower_80=LOW, a_upper_80=UP)
            ),
            "drop the model": lambda: read(
                frame(b_lower_80=LOW, b_upper_80=UP, c_lower_80=LOW, c_upper_80=UP)
            ),
            "lower=COLUMN, upper=COLUMN, coverage=0.9) of one": lambda: read(
                frame(**FAMILY, b_lower_80=LOW, b_upper_80=UP),
                lower="a_lower_90",
                upper="a_upper_90",
                coverage=0.9,
            ),
        },
    ),
    "intervals that may be of the mean": (
        lambda: read(frame(mean=MEAN, mean_ci_lower=LOW, mean_ci_upper=UP)),
        {
            "lower='mean_ci_lower', upper='mean_ci_upper', coverage=0.95": lambda: read(
                frame(mean=MEAN, mean_ci_lower=LOW, mean_ci_upper=UP),
                lower="mean_ci_lower",
                upper="mean_ci_upper",
                coverage=0.95,
            ),
            "lower=''": lambda: read(
                frame(mean=MEAN, mean_ci_lower=LOW, mean_ci_upper=UP), lower=""
            ),
        },
    ),
    "the same beside y": (
        lambda: read(Y, pd.DataFrame({"mean": MEAN, "mean_ci_lower": LOW, "mean_ci_upper": UP})),
        {
            "(prediction['mean_ci_lower'], prediction['mean_ci_upper']) with coverage=0.95": (
                lambda: read(Y, (LOW, UP), coverage=0.95)
            ),
            "give only the mean": lambda: read(Y, MEAN),
        },
    ),
    "columns of two levels of names": (
        lambda: read(MANY.set_axis(pd.MultiIndex.from_product([["all"], MANY.columns]), axis=1)),
        {
            "'all_y'": lambda: read(
                MANY.set_axis(pd.MultiIndex.from_product([["all"], MANY.columns]), axis=1),
                y="all_y",
                lower="all_lower",
                upper="all_upper",
                coverage=0.9,
            )
        },
    ),
    # ---- long tables and models under one another
    "long and wide": (
        lambda: read(long(level=LEVELS, sd=1.0), quantile_level="level", sd="sd"),
        {"point=COLUMN": lambda: read(long(level=LEVELS), quantile_level="level", point="value")},
    ),
    "long without a prediction": (
        lambda: read(long(level=LEVELS).rename(columns={"value": "a"}), quantile_level="level"),
        {
            "point=COLUMN": lambda: read(
                long(level=LEVELS).rename(columns={"value": "a"}), quantile_level="level", point="a"
            )
        },
    ),
    "levels and draws": (
        lambda: read(
            long(level=LEVELS, draw=np.tile([1, 2, 3], N)),
            quantile_level="level",
            sample_id="draw",
        ),
        {
            "quantile_level=''": lambda: read(
                long(level=LEVELS, draw=np.tile([1, 2, 3], N)),
                quantile_level="",
                sample_id="draw",
            ),
            "sample_id=''": lambda: read(
                long(level=LEVELS, draw=np.tile([1, 2, 3], N)),
                quantile_level="level",
                sample_id="",
            ),
            "output_type=COLUMN": lambda: read(
                long(level=LEVELS, draw=np.tile([1, 2, 3], N), kind="quantile"),
                quantile_level="level",
                sample_id="draw",
                output_type="kind",
            ),
        },
    ),
    "a type without its column": (
        lambda: read(long(output_type="quantile", share=LEVELS)),
        {
            "quantile_level=COLUMN": lambda: read(
                long(output_type="quantile", share=LEVELS), quantile_level="share"
            )
        },
    ),
    "levels in percent": (
        lambda: read(long(quantile_level=np.tile([5, 50, 95], N))),
        {"Divide the column by 100": lambda: read(long(quantile_level=LEVELS))},
    ),
    "levels without a row": (
        lambda: read(long(quantile_level=LEVELS).drop(index=4)),
        {"missing='drop'": lambda: read(long(quantile_level=LEVELS).drop(index=4), missing="drop")},
    ),
    "levels twice": (
        lambda: read(pd.concat([long(level=LEVELS)] * 2), quantile_level="level"),
        {
            "rows=COLUMN": lambda: read(
                pd.concat([long(level=LEVELS)] * 2).assign(number=np.repeat(np.arange(2 * N), 3)),
                quantile_level="level",
                rows="number",
            )
        },
    ),
    "weights that differ within a case": (
        lambda: read(long(level=LEVELS, weight=np.tile([1, 2, 3], N)), quantile_level="level"),
        {
            "weights=''": lambda: read(
                long(level=LEVELS, weight=np.tile([1, 2, 3], N)), quantile_level="level", weights=""
            )
        },
    ),
    "models under one another": (
        lambda: read(STACKED),
        {
            "model='who'": lambda: read(STACKED, model="who"),
            "model=''": lambda: read(STACKED, model=""),
        },
    ),
    "levels under one another": (
        lambda: read(LEVELED),
        {
            "quantile_level='share'": lambda: read(LEVELED, quantile_level="share"),
            "quantile_level=''": lambda: read(LEVELED, quantile_level=""),
        },
    ),
    "ends without coverages": (
        lambda: read(ENDED, point="value", boundary="end"),
        {
            "quantile_level=COLUMN": lambda: read(
                ENDED, point="value", boundary="end", quantile_level="share"
            )
        },
    ),
    "a kind of weights that there are not": (
        lambda: read(Y, MEAN, weights_kind="importance"),
        {"give weights=…": lambda: read(Y, MEAN, weights_kind="importance", weights=SD)},
    ),
    "an end beside models": (
        lambda: read(Y, {"lower": LOW, "upper": UP, "forest": DRAWS}, coverage=0.9),
        {
            "give both ends as one model": lambda: read(
                Y, {"name": {"lower_90": LOW, "upper_90": UP}, "forest": DRAWS}
            )
        },
    ),
    "ends or two models": (
        lambda: howsure.load(frame(pred_min=LOW, pred_max=UP)),
        {
            "lower='pred_min', upper='pred_max', coverage=0.9": lambda: howsure.load(
                frame(pred_min=LOW, pred_max=UP), lower="pred_min", upper="pred_max", coverage=0.9
            ),
            "or howsure.Table(…, points='pred_min,pred_max')": lambda: howsure.load(
                frame(pred_min=LOW, pred_max=UP), points=["pred_min", "pred_max"]
            ),
        },
    ),
    # ---- rows
    "a cell is missing": (
        lambda: read(GAP),
        {"missing='drop'": lambda: read(GAP, missing="drop")},
    ),
    "models on other rows": (
        lambda: _two(WHOLE, FEW),
        {"common_rows=True": lambda: _two(WHOLE, FEW, common_rows=True)},
    ),
    "models on fewer rows without names": (
        lambda: _two(WHOLE.drop(columns="row"), FEW.drop(columns="row")),
        {
            "rows=": lambda: _two(
                WHOLE.rename(columns={"row": "a"}),
                FEW.rename(columns={"row": "a"}),
                rows="a",
                common_rows=True,
            )
        },
    ),
    "common rows without names": (
        lambda: _two(
            WHOLE.rename(columns={"row": "a"}), FEW.rename(columns={"row": "a"}), common_rows=True
        ),
        {
            "rows=COLUMN": lambda: _two(
                WHOLE.rename(columns={"row": "a"}),
                FEW.rename(columns={"row": "a"}),
                rows="a",
                common_rows=True,
            )
        },
    ),
    "models whose rows are moved": (
        lambda: _two(WHOLE.drop(columns="row"), WHOLE[::-1].drop(columns="row")),
        {"rows=": lambda: _two(WHOLE, WHOLE[::-1], rows="row")},
    ),
}


def _frozen(mean: Any, sd: Any) -> Any:
    from scipy import stats

    return stats.norm(mean, sd)


def _two(one: pd.DataFrame, other: pd.DataFrame, **said: Any) -> object:
    """Two tables, as `howsure.load` takes them."""
    return howsure.load([one.reset_index(drop=True), other.reset_index(drop=True)], **said)


def message_of(raised: Way) -> str:
    with pytest.raises(HowsureError) as caught:
        raised()
    return str(caught.value)


@pytest.mark.parametrize("name", CASES)
def test_what_an_error_proposes_works(name: str) -> None:
    raised, ways = CASES[name]
    told = message_of(raised)
    for words, way in ways.items():
        assert words in told, told
        way()


# ---- no remedy is left untried -------------------------------------------------------------------

_FILES = (
    *("inputs/array_inputs", "inputs/columns", "inputs/given", "report/coercion", "inputs/long"),
    *("inputs/matching", "inputs/dialects", "inputs/classes", "inputs/names"),
)
_PROPOSES = re.compile(
    r"\b(pass|give|omit|leave \w+ out|use (it|howsure)|state the|drop|name (it|one) with|name them|"
    r"compares)\b"
)
_ELSEWHERE = {
    "but no intervals or other uncertainty": "tests/report/test_coercion.py",
    "only one model can be used here": "new rows of `recalibrate`: tests/inputs/test_new.py",
    "makes this a long table": "new rows of `recalibrate`: tests/inputs/test_new.py",
    "drops rows of": "objects of other libraries: tests/inputs/test_objects.py",
    "does not drop rows": "xarray: tests/inputs/test_posterior.py",
    "['ds'] must contain": "Prophet: tests/inputs/test_objects.py",
    "must be the output of models": "`assess_model`: tests/report/test_assess_model.py",
    "omit levels, because the keys": "tests/inputs/test_given.py",
    "encode and embedding both": "encoders: tests/inputs/test_encoding.py",
    "has columns of models": "nixtla: tests/inputs/test_given.py",
    "names no classes": "text beside probabilities: tests/report/test_classes.py",
    "has shape": "what shapes there are, no remedy",
    "must have the same number of columns": "no remedy",
}


def _pattern(node: ast.expr) -> str:
    """What a message looks like, anything where it is put together."""
    if isinstance(node, ast.Constant):
        return re.escape(str(node.value))
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_pattern, node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _pattern(node.left) + _pattern(node.right)
    return ".*"


def test_no_remedy_is_untried() -> None:
    home = Path(str(howsure.__file__)).parent
    sources = [(home / f"{name}.py").read_text(encoding="utf-8") for name in _FILES]
    patterns = [
        _pattern(node.args[0])
        for source in sources
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "InputError"
    ]
    proposing = [p for p in patterns if _PROPOSES.search(re.sub(r"\\(.)", r"\1", p))]
    assert len(proposing) > 40
    told = [message_of(raised) for raised, _ in CASES.values()]
    untried = [
        pattern
        for pattern in proposing
        if not any(re.search(pattern, each, re.DOTALL) for each in told)
        and not any(words in re.sub(r"\\(.)", r"\1", pattern) for words in _ELSEWHERE)
    ]
    assert untried == []


# ---- results of statsmodels ----------------------------------------------------------------------


@pytest.mark.slow
def test_what_errors_on_results_of_statsmodels_propose_works() -> None:
    needs("statsmodels")
    api: Any = import_module("statsmodels.api")
    inputs = np.column_stack([np.ones(N), MEAN])
    series = api.tsa.SARIMAX(Y, order=(1, 0, 0)).fit(disp=0)
    plain = api.OLS(Y, inputs).fit()
    gamma = api.GLM(POSITIVE, inputs, family=api.families.Gamma(api.families.links.Log())).fit()
    steps: tuple[tuple[Any, str], ...] = (
        (series, "f = prediction.get_forecast(steps)"),
        (series.get_forecast(N), "normal(prediction.predicted_mean, prediction.se_mean)"),
        (plain, "give prediction.get_prediction(X).summary_frame()"),
        (plain.get_prediction(inputs), "give prediction.summary_frame()"),
        (gamma, "give prediction.get_prediction(X).predicted_mean"),
        (gamma.get_prediction(inputs), "give prediction.predicted_mean"),
    )
    for result, words in steps:
        told = message_of(partial(read, Y, result))
        assert words in told
        found = re.search(
            r"give (.*?)(?:, with its coverage| as a point forecast)?(?: of f = (.*))?$", told
        )
        assert found is not None
        known: dict[str, Any] = {"howsure": howsure, "prediction": result, "steps": N, "X": inputs}
        if found[2]:
            known["f"] = eval(found[2], known)
        read(Y, eval(found[1], known), coverage=0.95 if "its coverage" in told else ())
