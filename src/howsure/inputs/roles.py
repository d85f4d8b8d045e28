"""The roles that columns may play: one table, from which flags, keywords and the docs come."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict

from howsure.core.errors import language
from howsure.core.text import quoted

if TYPE_CHECKING:
    from howsure.inputs.encoders.encode import Encoder

Kind = Literal["number", "label", "any", "vector", "text", "time", "name", "key", "sets"]
"""What a column shall be read as; a vector is a number or a list of numbers in each cell.

A key is anything that is equal or not, what is missing included.
"""
Kinds = Mapping[str, Kind]
"""As what each column shall be read, by its name."""
CellKey = tuple[Kind, str]
"""What a column is read as, and its name."""
Names = str | Sequence[str] | None


@dataclass(frozen=True)
class Role:
    """What a column may be to an evaluation set; or, without a kind, what is said of columns."""

    # its keyword, and its flag in one line
    name: str
    # {"outcome", "prediction", "doubt", "inputs", "rows", "order", "long"}: whether it holds y, a
    # prediction, how unsure the model is of each row beside it, inputs of a model, what else is
    # known of the rows, which rows are which, or which part of a
    # prediction a row of a long table holds
    of: Literal["outcome", "prediction", "doubt", "inputs", "rows", "order", "long"]
    kind: Kind | None  # what its columns are read as
    help: str
    # whether it may have several columns, and whether its flag is repeated for several
    many: bool = False
    repeats: bool = False
    usual: bool = False  # whether the short help of a command shows its flag
    # its flag, where that is not called after it, and what the flag takes
    flag: str = ""
    metavar: str | None = None
    choices: tuple[str, ...] = ()  # the only values
    told: str = ""  # how a column that plays it is explained, where that is not its name
    # names of columns, in normal form, that say that they play it
    pattern: str = ""
    names: str = ""
    later: str = ""  # names that say so where none of the others stands
    examples: str = ""  # some names, where a pattern or a rule decides

    @cached_property
    def recognised(self) -> frozenset[str]:
        """The names that say that a column plays it."""
        return frozenset((*self.names.split(), *self.later.split()))

    @property
    def option(self) -> str:
        """Its flag on the command line."""
        return f"--{(self.flag or self.name).replace('_', '-')}"

    @property
    def shown(self) -> tuple[str, ...]:
        """The names to show of those that it is recognised by, all or some."""
        return tuple((self.examples or f"{self.names} {self.later}").split())

    @property
    def guessable(self) -> bool:
        """Whether some names say that a column plays it."""
        return bool(self.names or self.pattern)

    def matches(self, name: str) -> bool:
        """Whether a name, in normal form, says so."""
        return name in self.recognised or bool(self.pattern and re.fullmatch(self.pattern, name))


ROLES = (
    Role(
        "y",
        "outcome",
        "number",
        "Column of the observed outcome y.",
        names="y y_true ytrue y_test y_obs actual actuals target label observed observation obs "
        "truth ground_truth true_value outcome true_label true_class oracle_value",
        later="correct is_correct was_correct answer_correct exact_match",
        usual=True,
    ),
    Role(
        "point",
        "prediction",
        "number",
        "Column of point forecasts.",
        told="point forecast",
        names="point pred prediction predictions predicted y_pred ypred yhat y_hat forecast "
        "point_forecast .prediction .mean",
        usual=True,
    ),
    Role(
        "points",
        "prediction",
        "number",
        "Columns of point forecasts, one per model, such as 'DNN*'.",
        many=True,
        metavar="PATTERN",
        told="point forecast",
    ),
    Role(
        "lower",
        "prediction",
        "number",
        "Column of lower interval ends. Repeatable.",
        many=True,
        repeats=True,
        told="lower end",
        examples="lower lower_90 lower_0.9 lower_95% lower90 pi_95_lower yhat_lower lo_80 lwr lb",
        usual=True,
    ),
    Role(
        "upper",
        "prediction",
        "number",
        "Column of upper interval ends. Repeatable.",
        many=True,
        repeats=True,
        told="upper end",
        examples="upper upper_90 upper_0.9 upper_95% upper90 pi_95_upper yhat_upper hi_80 upr ub",
        usual=True,
    ),
    Role(
        "coverage",
        "prediction",
        None,
        "Nominal coverage of the intervals or label sets, such as 0.9. Repeatable.",
        repeats=True,
        usual=True,
    ),
    Role(
        "mean",
        "prediction",
        "number",
        "Column of predicted means.",
        told="mean of a normal distribution",
        names="mean mu y_mean mean_y pred_mean mean_pred predicted_mean predictive_mean",
        usual=True,
    ),
    Role(
        "sd",
        "prediction",
        "number",
        "Column of predicted standard deviations.",
        told="sd of a normal distribution",
        names="sd std stdev stddev std_dev sigma standard_deviation y_std y_sd pred_std pred_sd "
        "std_pred sd_pred predicted_std predicted_sd predictive_std predictive_sd "
        "uncertainty_std uncertainty_sd",
        usual=True,
    ),
    Role(
        "variance",
        "prediction",
        "number",
        "Column of predicted variances, instead of standard deviations.",
        told="variance of a normal distribution",
    ),
    Role(
        "quantiles",
        "prediction",
        "number",
        "Column of the quantile at a level. Repeatable.",
        many=True,
        repeats=True,
        flag="quantile",
        metavar="LEVEL=COL",
        told="quantile",
        examples="q0.05 q05 q_95 0.95 95% quantile_0.5 p97.5 q025 median",
        usual=True,
    ),
    Role(
        "samples",
        "prediction",
        "number",
        "Columns of draws from the predictive distribution, such as 's_*'.",
        many=True,
        metavar="PATTERN",
        told="sample",
        pattern=r"(s_|(sample|draw|member|ens|ensemble)_?)\d+",
        examples="s_1 sample_1 draw1 member_1 ens_1 ensemble1",
        usual=True,
    ),
    Role(
        "law",
        "prediction",
        "number",
        "Distribution from scipy.stats, or for counts, with columns of its parameters: "
        "t:df=nu,scale=s; double_poisson:mu=m,phi=p.",
        metavar="NAME:PARAM=COL,…",
        told="of the distribution",
        examples="t_df t_loc t_scale",
    ),
    Role(
        "softmax",
        "prediction",
        "number",
        "Columns of class probabilities, such as 'p_*', or that of the positive class alone; y "
        "contains the class.",
        many=True,
        metavar="PATTERN",
        told="probability of",
        examples="p prob p_yes p_cat p_dog prob_cat proba_0 softmax_0 logit logit_cat",
        usual=True,
    ),
    Role(
        "stated_confidence",
        "prediction",
        "number",
        "Column of stated confidences, 0 to 1 or 0 to 100; y says whether the answer was right.",
        told="probability that the answer is right",
        examples="confidence conf stated_confidence model_confidence verbalized_confidence",
    ),
    Role(
        "label_set",
        "prediction",
        "sets",
        "Column of label sets, such as {cat, dog}; y contains the class.",
        told="label set",
        examples="label_set prediction_set set set_90 prediction_set_0.9",
    ),
    Role(
        "uncertainty",
        "doubt",
        "number",
        "Column with an uncertainty score (higher = less certain), for selective prediction.",
        told="uncertainty score",
        names="uncertainty",
    ),
    Role(
        "groups",
        "rows",
        "label",
        "Columns that divide the rows into groups.",
        many=True,
        metavar="A,B",
        told="group",
        pattern="groups?|group_.+",
        examples="group groups group_region",
        usual=True,
    ),
    Role(
        "features",
        "inputs",
        "any",
        "Columns of the model's inputs.",
        many=True,
        metavar="A,B",
        told="feature",
        pattern=r"x\d*|x_.+|features?_.+|feat_.+",
        examples="x x1 x_age feature_1 feat_age",
        usual=True,
    ),
    Role(
        "ease",
        "inputs",
        "any",
        "Column with an ease score (higher = easier); also used as a feature.",
        told="ease of the row",
        names="ease",
    ),
    Role(
        "embedding",
        "inputs",
        "vector",
        "Columns of an embedding of the inputs, such as 'emb_*'.",
        many=True,
        metavar="PATTERN",
        pattern=r"(emb|embedding)_?\d+|embeddings?",
        examples="embedding emb_0 embedding_0",
    ),
    Role(
        "encode",
        "inputs",
        "text",
        "Column of texts or image paths and its encoder: text=transformers:FOLDER.",
        repeats=True,
        metavar="COL=ENCODER",
        told="encoded by",
    ),
    Role(
        "image",
        "inputs",
        "text",
        "Column of image paths. The report shows the best and worst predicted images.",
        told="path of an image",
    ),
    Role(
        "weights",
        "rows",
        "number",
        "Column of row weights.",
        names="weight weights sample_weight sample_weights importance_weight importance_weights "
        "frequency_weight frequency_weights frequency",
    ),
    Role(
        "weights_kind",
        "rows",
        None,
        "Whether weights are counts of rows or importance weights.",
        choices=("frequency", "importance"),
    ),
    Role(
        "missing_value",
        "rows",
        None,
        "Number that means a missing value, such as -9999. Repeatable.",
        repeats=True,
    ),
    Role(
        "cluster",
        "rows",
        "label",
        "Column of clusters; rows within a cluster may be dependent.",
        names="cluster clusters cluster_id",
    ),
    Role(
        "time",
        "rows",
        "time",
        "Column of times that order the rows.",
        names="time timestamp datetime date",
        later="target_end_date target_date valid_time",
        usual=True,
    ),
    Role(
        "cutoff",
        "rows",
        "time",
        "Column of forecast origins: the last time known when a row was predicted.",
    ),
    Role(
        "horizon",
        "rows",
        "number",
        "Column of lead times, in steps ahead.",
        told="steps ahead",
        names="horizon",
    ),
    Role(
        "series",
        "rows",
        "label",
        "Column with the name of each row's series.",
        names="item_id series_id",
    ),
    Role(
        "model",
        "order",
        "label",
        "Column with the name of each row's model.",
        names="model model_name .model",
        later="model_id algo algorithm learner regressor estimator forecaster",
    ),
    Role(
        "rows",
        "order",
        "name",
        "Column of row names, used to match models and tables.",
        flag="row-id",
        told="name of the row",
        names="id row_id rowid row .row",
    ),
    Role(
        "quantile_level",
        "long",
        "key",
        "Column of quantile levels, with one row per level.",
        told="level of the quantile in this row",
        names="quantile_level quantile q_level level tau output_type_id",
    ),
    Role(
        "sample_id",
        "long",
        "key",
        "Column of draw numbers, with one row per draw.",
        told="number of the draw in this row",
        names="sample_id sample draw draw_id .draw member ensemble_member realization",
    ),
    Role(
        "output_type",
        "long",
        "key",
        "Column of the kind of prediction: quantile, sample, median or mean.",
        told="what the row predicts",
        names="output_type",
    ),
    Role(
        "boundary",
        "long",
        "key",
        "Column that marks rows as lower or upper ends, if levels are coverages.",
        told="which end of the interval is in this row",
        names="boundary",
    ),
)
"""Every role, in the order in which flags and explanations tell of them."""

LONG = tuple(role.name for role in ROLES if role.of == "long")
"""Roles of a long table, which holds a row for each part of a prediction."""

NAMES_OUTSIDE = frozenset({"encode", "image"})
"""Roles that name code or files: read of no kept file, nor of an agent's call."""
BY_NAME: Final[Mapping[str, Role]] = MappingProxyType({role.name: role for role in ROLES})

_FIELDS = frozenset({"missing", "common_rows"})
"""What an agent's call has as fields of their own, beside those of columns."""


def name_roles(**roles: Any) -> str:
    """Roles of columns, as they are named where howsure was asked.

    An ellipsis stands for what the reader fills in.

    >>> name_roles(y=...)
    'howsure.Table(…, y=COLUMN)'
    >>> from howsure.core.errors import asked_in
    >>> with asked_in("command"):
    ...     name_roles(lower="lo", rows=..., common_rows=True, quantiles={0.05: ...})
    '--lower lo --row-id COLUMN --common-rows --quantile 0.05=COLUMN'
    >>> with asked_in("fields"):
    ...     name_roles(missing="drop", y=...)
    'missing="drop" and columns.y=COLUMN'
    """
    if language() == "python":
        words = ", ".join(f"{name}={_in_python(value)}" for name, value in roles.items())
        return f"howsure.Table(…, {words})"
    fields = _FIELDS | BY_NAME.keys() - NAMES_OUTSIDE
    if language() == "fields" and fields.issuperset(roles):
        return " and ".join(
            f"{name if name in _FIELDS else f'columns.{name}'}={_in_json(value)}"
            for name, value in roles.items()
        )
    return " ".join(flag for name, value in roles.items() for flag in _flags(name, value))


def _in_python(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_in_python(name)}' for key, name in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_in_python, value))}]"
    return quoted(value) if isinstance(value, str) else _plain(value)


def _in_json(value: Any) -> str:
    if isinstance(value, Mapping):
        value = [_pair(*item) for item in value.items()]
    return _TO_FILL_IN if value is ... else json.dumps(value, ensure_ascii=False)


def _plain(value: Any) -> str:
    """A value as it is written in Python and on the command line; a name without quotes."""
    if isinstance(value, float):
        return f"{value:.10g}".replace("e+", "e")
    return _TO_FILL_IN if value is ... else str(value)


def _pair(key: Any, name: Any) -> str:
    """A level with its column, as one text."""
    return f"{key}={_plain(name)}"


def _flags(name: str, value: Any) -> Iterator[str]:
    option = BY_NAME[name].option if name in BY_NAME else f"--{name.replace('_', '-')}"
    if value is True:
        yield option
    elif isinstance(value, Mapping):
        yield from (f"{option} {shlex.quote(_pair(*item))}" for item in value.items())
    elif isinstance(value, list | tuple):
        yield from (flag for item in value for flag in _flags(name, item))
    else:
        yield f"{option} {shlex.quote(_plain(value))}"


_TO_FILL_IN = "COLUMN"


class Columns(TypedDict, total=False):
    """What a caller may say of columns; None leaves a role to the names, "" leaves it empty."""

    y: str | None
    point: str | None
    points: Names
    lower: Names
    upper: Names
    coverage: float | Sequence[float] | None
    mean: str | None
    sd: str | None
    variance: str | None
    quantiles: Mapping[float, str] | Names
    samples: Names
    law: str | None
    softmax: Names
    stated_confidence: str | None
    label_set: str | None
    uncertainty: str | None
    groups: Names
    features: Names
    ease: str | None
    embedding: Names
    encode: Mapping[str, Encoder] | Names
    image: str | None
    weights: str | None
    weights_kind: str | None
    missing_value: float | Sequence[float] | None
    cluster: str | None
    time: str | None
    cutoff: str | None
    horizon: str | None
    series: str | None
    model: str | None
    rows: str | None
    quantile_level: str | None
    sample_id: str | None
    output_type: str | None
    boundary: str | None
