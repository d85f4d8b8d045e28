"""What column names say: ends of intervals, levels of quantiles, and models beside each other."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from howsure.core.arrays import check_fraction, shortened
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.text import quoted
from howsure.inputs.roles import BY_NAME, LONG, ROLES, Role, name_roles
from howsure.inputs.source import listed

if TYPE_CHECKING:
    from howsure.inputs.encoders.encode import Encoder

_PREFIX = r"(?:(?P<prefix>pi|ci|y|yhat|y_hat|y_pred|pred|prediction|forecast|interval|obs_ci)_?)?"
_NUMBER = r"\d+(?:[._]\d+)?"
_BOUND = re.compile(
    _PREFIX + rf"(?:(?P<before>{_NUMBER})_?)?"
    r"(?:(?P<lower>lower|lwr|lo|lb)|(?P<upper>upper|upr|hi|ub))"
    rf"(?:_?(?:bound|limit|pi|ci))?(?:_?(?P<after>{_NUMBER})(?:_?%|pct)?)?",
    re.ASCII,
)
_QUANTILE = re.compile(
    r"(?P<prefix>(?:(?:y|yhat|y_hat|y_pred|pred|prediction|forecast)_)?"
    rf"(?:q|quantile|p|pct|percentile))_?(?P<number>{_NUMBER})",
    re.ASCII,
)
UNNAMED = re.compile(r"unnamed: ?\d+", re.IGNORECASE)
"""What pandas calls a column without a name."""
NAMELESS = re.compile(rf"\s*|{UNNAMED.pattern}|level_0|index|__index_level_0__", re.IGNORECASE)
"""Names of the index of a frame in files."""
_LOW = frozenset(("low", "lower", "lo", "lwr", "lb", "min", "minimum"))
_HIGH = frozenset(("high", "higher", "upper", "hi", "upr", "ub", "max", "maximum"))
_PREDICTED = frozenset(("y", "pred", "prediction", "predicted", "yhat", "hat", "forecast"))
_PREDICTED |= {"pi", "pis", "ci", "interval"}
_BARE = re.compile(r"(?P<level>0?\.\d+)|(?P<percent>\d+(?:\.\d+)?)%", re.ASCII)


class IntervalEnd(NamedTuple):
    """One end of an interval, as a name tells it."""

    side: Literal["lower", "upper"]  # {"lower", "upper"}: which end
    stem: str  # the words before it, which the other end shares
    # nominal coverage, where the name holds a number that can be nothing else
    coverage: float | None
    unclear: bool  # whether the name holds a number that may mean several things


@lru_cache(maxsize=1 << 17)  # a table may have a hundred thousand columns
def normal_form(name: str) -> str:
    """The name as it is compared."""
    return re.sub(r"[\s\-]+", "_", name.strip().lower())


def bound(name: str) -> IntervalEnd | None:
    """Read a name as that of an interval's end."""
    match = _BOUND.fullmatch(normal_form(name))
    if match is None or (match["before"] and match["after"]):
        return None
    number = match["before"] or match["after"]
    side: Literal["lower", "upper"] = "lower" if match["lower"] else "upper"
    share = None if number is None else _share(number)
    return IntervalEnd(side, match["prefix"] or "", share, number is not None and share is None)


def in_words(name: str) -> str:
    """The words of a name, and its numbers, in lower case."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=\d)", " ", name)
    return " ".join(re.findall(r"[a-z]+|\d+", spaced.lower()))


_SPREAD = re.compile(
    r"\b(sds?|stds?|stdevs?|stddevs?|sigmas?|standard deviations?|vars?(?! ?\d)|variances?"
    r"|unc|uncert|uncertaint(y|ies)|epistemic|aleatoric)\b"
)
"""Words of a name that say that its column states an uncertainty; var_1 is a variable."""


def stated_spreads(names: Iterable[str]) -> list[str]:
    """The columns whose names say that they state an uncertainty.

    >>> stated_spreads(["uncertainty_total", "predictVar", "yhat_std", "standard", "var_1"])
    ['uncertainty_total', 'predictVar', 'yhat_std']
    """
    return [name for name in names if _SPREAD.search(in_words(name))]


CENSORED = frozenset(("censored", "is censored", "right censored", "censoring", "censor", "cens"))
"""Names, in words, of columns that say where y is censored."""
EVENTS = frozenset(("event", "event observed", "observed event", "status", "died", "dead", "death"))
"""Names of columns that say where it is not."""


def censoring(names: Iterable[str]) -> list[str]:
    """The columns whose names say that they mark censored rows.

    >>> censoring(["event", "isCensored", "events", "right_censored"])
    ['event', 'isCensored', 'right_censored']
    """
    return [name for name in names if in_words(name) in CENSORED | EVENTS]


def likely_ends(names: Iterable[str]) -> tuple[str, str] | None:
    """The two names that may be those of the ends of intervals, though `bound` knows neither.

    >>> likely_ends(["y_pred", "y_pred_low", "pred_high"])
    ('y_pred_low', 'pred_high')
    >>> likely_ends(["temp_min", "temp_max", "PI min", "PI max"])
    ('PI min', 'PI max')
    """
    words = {name: frozenset(in_words(name).split()) for name in names}
    predicted = {name: word for name, word in words.items() if word & _PREDICTED}
    for pool in (predicted, words):
        low = {word - _LOW: name for name, word in pool.items() if word & _LOW}
        high = {word - _HIGH: name for name, word in pool.items() if word & _HIGH}
        pairs = [(low[stem], high[stem]) for stem in low if stem in high]
        if pool is predicted and not pairs and len(low) == len(high) == 1:
            pairs = list(zip(low.values(), high.values(), strict=True))
        if pairs:
            return pairs[0]
    return None


def quantile_levels(names: Iterable[str]) -> dict[str, float | None]:
    """Read names as those of quantiles; None where a name may mean several levels.

    Levels 0 and 1, which bound y, count beside others alone.
    """
    level_of: dict[str, float | None] = {}
    families: dict[str, dict[str, str]] = {}
    for name in names:
        plain = normal_form(name)
        bare = _BARE.fullmatch(plain)
        if plain == "median":
            level_of[name] = 0.5
        elif bare is not None:
            level_of[name] = float(bare["level"] or 0) or round(
                float(bare["percent"] or 0) / 100, 12
            )
        elif (match := _QUANTILE.fullmatch(plain)) is not None:
            families.setdefault(match["prefix"], {})[name] = match["number"].replace("_", ".")
    for prefix, family in families.items():
        numbers = set(family.values())
        percent = any("." in number and float(number) > 1 for number in numbers)
        whole_numbers = numbers - {"0", "1"} if not percent else numbers
        mixed = prefix.endswith(("p", "pct", "percentile")) and any(
            "." not in n for n in whole_numbers
        )
        for name, number in family.items():
            if "." not in number:
                shares = not percent and any("." in other for other in numbers)
                level_of[name] = 1.0 if shares and number == "1" else _whole_level(number, numbers)
            elif percent:
                level_of[name] = round(float(number) / 100, 12)
            else:
                level_of[name] = None if mixed else float(number)
    inner = any(level is not None and 0 < level < 1 for level in level_of.values())
    return {n: p for n, p in level_of.items() if p is None or 0 < p < 1 or (inner and p in (0, 1))}


def is_quantile(plain: str) -> bool:
    """Whether a name, in normal form, may be that of a quantile."""
    return plain == "median" or bool(_QUANTILE.fullmatch(plain) or _BARE.fullmatch(plain))


def _share(number: str) -> float | None:
    if "." in number or "_" in number:
        value = float(number.replace("_", "."))
        share = value if value < 1 else round(value / 100, 12)
        return share if 0 < share < 1 else None
    return int(number) / 100 if len(number) == 2 and number[0] != "0" else None


def _whole_level(digits: str, family: set[str]) -> float | None:
    """Level of a number without a point; one that is out of reach where it is none."""
    if int(digits) == 0 or len(digits) > 3:
        return 0.0 if int(digits) == 0 else math.inf
    if len(digits) == 1:
        return int(digits) / 100 if str(100 - int(digits)) in family else None
    if len(digits) == 2:
        return int(digits) / 100
    clear = any(o.isdigit() and len(o) == 3 and o[0] != "0" for o in family - {"100"})
    if digits == "100":
        percent = any(len(other) == 2 or float(other) > 1 for other in family - {"100"})
        return 1.0 if percent and not clear else None
    return int(digits) / 1000 if clear else None


# ---- the roles of a table's columns, once they are decided, and how they are told ----------------


@frozen
class LawColumns:
    """A distribution of ``scipy.stats`` or of counts; for each parameter, a column or a number."""

    name: str
    parameters: Mapping[str, str | float]

    def columns(self) -> dict[str, str]:
        """The parameters in columns."""
        return {name: value for name, value in self.parameters.items() if isinstance(value, str)}


@frozen
class ColumnUse:
    """How one column was read.

    Attributes
    ----------
    column : str
        Its name.
    role : str
        What it is taken for; ``ignored`` if for nothing.
    note : str
        Why, or what else there is to know.
    source : str
        The file or table.
    """

    column: str
    role: str
    note: str = ""
    source: str = ""


@frozen(kw_only=True)
class Roles:
    """The columns of each role.

    Attributes
    ----------
    columns : mapping of str to tuple of str
        By the names of `howsure.inputs.roles.ROLES`; ``mean`` is set where ``sd`` is: then the
        two are a normal law.
    coverages : tuple of float or None
        Nominal coverage of each pair of ``lower`` and ``upper``, or of the label sets; None where
        it is unknown.
    levels : tuple of float
        Level of each of the ``quantiles``.
    law : LawColumns, optional
        A law by name.
    labels : tuple of str
        The class of each column of ``softmax``.
    encoder : encoder, optional
        What makes the embedding of the column ``encode``.
    weights_kind : str
        What weights mean.
    missing_values : tuple of float
        Numbers that stand for missing values.
    guessed : frozenset of str
        Roles that no flag gave.
    notes : mapping of str to str
        What to say of a column.
    model : str
        The model whose prediction it is, where names of columns say so.
    """

    columns: Mapping[str, tuple[str, ...]]
    coverages: tuple[float | None, ...] = ()
    levels: tuple[float, ...] = ()
    law: LawColumns | None = None
    labels: tuple[str, ...] = ()
    encoder: Encoder | None = None
    weights_kind: str = "frequency"
    missing_values: tuple[float, ...] = ()
    guessed: frozenset[str] = frozenset()
    notes: Mapping[str, str] = field(default_factory=dict)
    model: str = ""

    def __getitem__(self, role: str) -> tuple[str, ...]:
        return self.columns.get(role, ())

    @property
    def long(self) -> bool:
        """Whether a row holds one part of a prediction."""
        return any(self[role] for role in LONG)

    @property
    def classes(self) -> bool:
        """Whether y is a class."""
        return bool(self["softmax"] or self["label_set"] or self["stated_confidence"])

    def column(self, role: str) -> str | None:
        """The one column of a role, if there is one."""
        return next(iter(self[role]), None)

    def only(self, wanted: Callable[[Role], bool]) -> Roles:
        """The same for some roles alone."""
        names = {role.name for role in ROLES if wanted(role)}
        columns = {role: names_of for role, names_of in self.columns.items() if role in names}
        return replace(self, columns=columns, law=self.law if "law" in names else None)

    def having(
        self,
        columns: Mapping[str, tuple[str, ...]],
        notes: Mapping[str, str] = MappingProxyType({}),
    ) -> Roles:
        """The same with other columns of some roles, and further notes."""
        return replace(self, columns={**self.columns, **columns}, notes={**self.notes, **notes})

    def uses(self) -> Iterator[tuple[Role, str, str]]:
        """Each use of a column: the role, the column, and the role in words."""
        for role in ROLES:
            for position, column in enumerate(self[role.name]):
                yield role, column, self._words(role, position)

    def by_column(self) -> dict[str, list[str]]:
        """For each column that is used, its roles in words."""
        words_of: dict[str, list[str]] = {}
        for _, column, words in self.uses():
            words_of.setdefault(column, []).append(words)
        return words_of

    def _words(self, role: Role, position: int) -> str:
        words = role.told or role.name
        if role.name == "point" and self.long:
            return "prediction, one part per row"
        if role.name in ("lower", "upper", "label_set"):
            share = self.coverages[position]
            return words if share is None else f"{words} at {100 * share:g} %"
        if role.name == "softmax":
            return f"{words} {self.labels[position] or 'the positive class'}"
        if role.name == "quantiles":
            level = self.levels[position]
            bounds = {0.0: "lower bound of y", 1.0: "upper bound of y"}
            return bounds.get(level, f"{words} {level:g}")
        if role.name == "law" and self.law is not None:
            return f"{list(self.law.columns())[position]} {words} {self.law.name}"
        if self.encoder is not None and role.name == "encode":
            return f"{words} {encoder_name(self.encoder)}"
        return words


def explain_models(
    names: Iterable[str], models: Sequence[Roles], source: str
) -> tuple[ColumnUse, ...]:
    """How each column of a table is read, in its order, and why the ignored ones are."""
    uses_of: dict[str, dict[str, None]] = {}
    notes: dict[str, str] = {}
    for roles in models:
        for role, column, words in roles.uses():
            named = role.of == "prediction" and roles.model
            uses_of.setdefault(column, {})[f"{words} of {roles.model}" if named else words] = None
        notes.update(roles.notes)
    unit = models[0].long and not models[0]["rows"]

    def use(name: str) -> ColumnUse:
        note = notes.get(name, "")
        if name in uses_of:
            return ColumnUse(name, ", ".join(uses_of[name]), note, source)
        if unit and name.strip() and not note:
            note = "unless it numbers the rows or depends only on the level"
            return ColumnUse(name, "distinguishes cases", note, source)
        why = (
            f"name not recognised; use it with {name_roles(groups=name)} or "
            f"{name_roles(features=name)}"
        )
        why = why if name.strip() else "no name"
        return ColumnUse(name, "ignored", note or why, source)

    return tuple(map(use, names))


def encoder_name(encoder: Encoder) -> str:
    """What to call an encoder."""
    if isinstance(encoder, str):
        return encoder
    return str(getattr(encoder, "__name__", type(encoder).__name__))


def parse_encode(stated: Any) -> tuple[str, Encoder] | None:
    """The column to encode and its encoder; None where none is given."""
    if stated is None or (isinstance(stated, Sized) and len(stated) == 0):
        return None
    if isinstance(stated, Mapping):
        pairs = list(stated.items())
    else:
        parts = [stated] if isinstance(stated, str) else stated
        if not isinstance(parts, Sequence) or not all(isinstance(text, str) for text in parts):
            raise InputError(f"encode must be a mapping or COLUMN=ENCODER, got {shortened(stated)}")
        pairs = [(column, encoder) for column, _, encoder in (p.partition("=") for p in parts)]
    if len(pairs) > 1:
        raise InputError(f"encode must name one column, got {len(pairs)}")
    column, encoder = pairs[0]
    if not isinstance(column, str) or not column or (isinstance(encoder, str) and not encoder):
        raise InputError(
            "encode must be COLUMN=ENCODER, such as note=transformers:FOLDER, got "
            f"{shortened(stated)}"
        )
    return column, encoder


def parse_law(text: str) -> LawColumns:
    """Read ``NAME:PARAMETER=COLUMN,…``; a number may stand for a column."""
    name, _, assignments = text.partition(":")
    parameters: dict[str, str | float] = {}
    for assignment in assignments.split(",") if assignments else ():
        parameter, equals, column = assignment.partition("=")
        key = parameter.strip()
        if not equals or not key or not column or key in parameters:
            raise InputError(
                "law must be NAME:PARAMETER=COLUMN,… with each parameter once, such as "
                f"t:df=4,loc=mu,scale=s, got {text!r}"
            )
        parameters[key] = column.strip()
    if not name.strip() or not parameters:
        raise InputError(f"law must be NAME:PARAMETER=COLUMN,…, got {text!r}")
    return LawColumns(name.strip(), parameters)


# ---- columns of several models in one wide table, named after them: LGBM-lo-90, ridge_sd ---------

Families = dict[str, dict[str, str]]
"""For each model its columns, by what each would be called were the model alone."""

KEYS = ("unique_id", "ds", "cutoff")
"""What nixtla calls the series of a row, its time, and when it was forecast."""
# As of clusters by which advice is tried (MIN_BATCHES in `howsure.engine.autocorrelation`).
MIN_SERIES = 10
"""From which on guessed series are clusters; a few clusters prove nothing, so they are groups."""

_LEVEL_NUMBER = r"\d+(?:\.\d+)?"
_NIXTLA = re.compile(
    rf"(?P<model>.+?)(?:-(?P<side>lo|hi)-(?P<percent>{_LEVEL_NUMBER})|[-_]ql(?P<level>0?\.\d+)"
    r"|-(?P<median>median))"
)
_SPLIT = re.compile(r"[_\-. ]+")
_SURE_POINTS = frozenset(("pred", "prediction", "predicted", "y_pred", "ypred", "yhat", "y_hat"))


def nixtla(names: Sequence[str]) -> Families:
    """Models by the columns that nixtla's libraries write: ``LGBM``, ``LGBM-lo-90``, …."""
    matches = {name: match for name in names if (match := _NIXTLA.fullmatch(name))}
    models = [match["model"] for match in matches.values() if not match["median"]]
    families: Families = {model: {} for model in dict.fromkeys(models)}
    for name in names:
        match = matches.get(name)
        if name in families:
            families[name][name] = "point"
        elif match is not None and match["model"] in families:
            families[match["model"]][name] = _plain(match)
    return families


def _plain(match: re.Match[str]) -> str:
    if match["median"]:
        return "median"
    if match["level"]:
        return f"q{float(match['level']):g}"
    side = "lower" if match["side"] == "lo" else "upper"
    return f"{side}_{round(float(match['percent']) / 100, 12):g}"


def alike(names: Sequence[str]) -> Families:
    """Models whose names begin the names of their columns, or end them: ``ridge_sd``, ``sd_ridge``.

    There must be two at least, and each must have what the others have.
    """
    for first in (True, False):
        families: Families = {}
        for name in names:
            parts = _parts(name, model_first=first)
            if parts is not None:
                families.setdefault(parts[0], {})[name] = parts[1]
        sets = {model: frozenset(columns.values()) for model, columns in families.items()}
        complete = {model: columns for model, columns in sets.items() if _is_whole(columns)}
        if len(complete) < 2:
            continue
        if len(set(sets.values())) == 1:
            if (pair := likely_ends(families)) is not None:
                low, high = (next(iter(families[model])) for model in pair)
                raise InputError(
                    f"columns {quoted(low)} and {quoted(high)} may be interval ends or point "
                    f"forecasts of two models: pass "
                    f"{name_roles(lower=low, upper=high, coverage=0.9)}, "
                    f"or {name_roles(points=f'{low},{high}')}"
                )
            return families
        ends = {model for model, columns in sets.items() if any(bound(name) for name in columns)}
        if ends.issuperset(complete):
            every = frozenset().union(*(sets[model] for model in ends))
            for model in sorted(ends):
                if sets[model] != every:
                    raise InputError(
                        f"column names suggest the models {listed(sorted(ends))}, but "
                        f"{quoted(model)} has no {listed(sorted(every - sets[model]))}: add the "
                        "columns or drop the model, or pass "
                        f"{name_roles(lower=..., upper=..., coverage=0.9)} of one"
                    )
    return {}


def _parts(name: str, *, model_first: bool) -> tuple[str, str] | None:
    """The model and the rest of a name; of several readings that of the shortest model."""
    readings = []
    for match in _SPLIT.finditer(name):
        head, tail = name[: match.start()], name[match.end() :]
        model, remainder = (head, tail) if model_first else (tail, head)
        plain = normal_form(remainder)
        if model and _is_prediction(plain) and not _is_prediction(normal_form(model)):
            readings.append((model, plain))
    return min(readings, key=lambda pair: len(pair[0]), default=None)


def _is_prediction(plain: str) -> bool:
    return (
        any(BY_NAME[role].matches(plain) for role in ("mean", "sd", "point"))
        or bound(plain) is not None
        or is_quantile(plain)
    )


def _is_whole(names: frozenset[str]) -> bool:
    """Whether these names are a prediction."""
    sd = any(BY_NAME["sd"].matches(name) for name in names)
    centre = any(BY_NAME[role].matches(name) for role in ("mean", "point") for name in names)
    sides = [end.side for name in names if (end := bound(name)) is not None]
    quantiles = sum(map(is_quantile, names))
    ends = bool(sides) and sides.count("lower") == sides.count("upper")
    return (sd and centre) or ends or quantiles > 1 or bool(names & _SURE_POINTS)


# ---- what flags and names say of intervals, of quantiles and of missing values -------------------


Coverages = float | Sequence[float] | None


class IntervalColumns(NamedTuple):
    """Two columns that are the ends of intervals, and their nominal coverage if it is known."""

    lower: str
    upper: str
    coverage: float | None


def flagged_pairs(
    coverage: Coverages, lowers: Sequence[str], uppers: Sequence[str]
) -> tuple[IntervalColumns, ...]:
    """Pairs of the columns that flags name, with the coverages that flags or names tell."""
    if len(lowers) != len(uppers):
        raise InputError(
            f"lower and upper must have the same number of columns, got {len(lowers)} and "
            f"{len(uppers)}"
        )
    if not lowers:
        return ()
    shares: list[float | None] = [*flagged_coverages(coverage)]
    if not shares:
        shares = [_shared_coverage(*pair) for pair in zip(lowers, uppers, strict=True)]
    if len(shares) != len(lowers):
        raise InputError(
            f"coverage needs one number for each of {len(lowers)} pairs of lower and upper, got "
            f"{len(shares)}"
        )
    return _checked([IntervalColumns(*three) for three in zip(lowers, uppers, shares, strict=True)])


def stated_missing(stated: Any) -> tuple[float, ...]:
    """The numbers that stand for missing values."""
    if stated is None or stated == "":
        return ()
    marks: dict[float, None] = {}
    for item in stated if isinstance(stated, list | tuple) else [stated]:
        number = None if isinstance(item, bool) else as_number(str(item))
        if number is None:
            raise InputError(
                "missing_value must be a finite number, such as -9999, or several, got "
                f"{item!r}; empty cells, NA and NaN always count as missing"
            )
        marks[number] = None
    return tuple(marks)


def flagged_coverages(coverage: Coverages) -> list[float]:
    """The coverages of a flag, each in (0, 1)."""
    if coverage is None:
        return []
    return [
        check_fraction(item, "coverage")
        for item in (coverage if isinstance(coverage, Sequence) else [coverage])
    ]


def guessed_pairs(names: Iterable[str], coverage: Coverages) -> tuple[IntervalColumns, ...]:
    """Pairs of columns whose names say that they are the two ends of intervals."""
    ends: dict[tuple[str, float | None, str], str] = {}
    for name in names:
        end = bound(name)
        if end is None:
            continue
        if end.unclear:
            raise InputError(
                f"the coverage in the name {quoted(name)} is ambiguous: {_how_to_name_ends()}"
            )
        key = (end.stem, end.coverage, end.side)
        if key in ends:
            chosen: dict[str, Any] = {"lower": ..., "upper": ..., end.side: ends[key]}
            spelling = name_roles(**chosen, coverage=0.9)
            raise two_readings(end.side, [ends[key], name], spelling)
        ends[key] = name
    pairs = []
    for (stem, share, side), name in ends.items():
        other = ends.get((stem, share, "upper" if side == "lower" else "lower"))
        if other is None:
            raise InputError(
                f"column {quoted(name)} looks like the {side} end of intervals, but the other "
                f"end is missing: {_how_to_name_ends()}"
            )
        if side == "lower":
            pairs.append(IntervalColumns(name, other, share))
    return _checked(_with_coverage(pairs, flagged_coverages(coverage)))


def guessed_levels(names: Iterable[str]) -> tuple[dict[float, str], dict[str, str]]:
    """Columns whose names say that they are quantiles, by level; and notes on those left out."""
    level_of = quantile_levels(names)
    notes = {
        name: f"its number is ambiguous; state the level with {name_roles(quantiles={0.05: name})}"
        for name, level in level_of.items()
        if level is None
    }
    if len(notes) > 1:
        raise InputError(
            f"the levels in the names {listed(notes)} are ambiguous: pass "
            f"{name_roles(quantiles={0.05: ..., 0.95: ...})}, or "
            f"{name_roles(quantiles='')} if they are "
            "not quantiles"
        )
    levels: dict[float, str] = {}
    for name, level in level_of.items():
        if level is None:
            continue
        if level in levels:
            raise two_readings(
                f"quantile {level:g}",
                [levels[level], name],
                f"{name_roles(quantiles={level: name})} with every level",
            )
        levels[level] = name
    if len(levels) == 1 and 0.5 not in levels:
        ((level, name),) = levels.items()
        if name.strip().isalnum():
            way = name_roles(quantiles={level: name})
            return {}, {**notes, name: f"only one quantile; use it with {way}"}
    return levels, notes


def as_number(text: str) -> float | None:
    """The finite number that text stands for, if it does."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def two_readings(what: str, columns: Sequence[str], spelling: str = "") -> InputError:
    """The error for a role, or what else is one column, that several names claim."""
    if not spelling:
        spelling = " or ".join(name_roles(**{what: name}) for name in columns[:2])
    return InputError(
        f"{what} must be one column, but the names of {len(columns)} match: {listed(columns)}; "
        f"pass {spelling}"
    )


def _how_to_name_ends() -> str:
    ends = name_roles(lower=..., upper=..., coverage=0.9)
    return f"pass {ends}, or {name_roles(lower='')} if it is not an interval"


def _with_coverage(pairs: list[IntervalColumns], coverages: list[float]) -> list[IntervalColumns]:
    """Give the coverage of a flag to the one pair whose name has none."""
    if not coverages or len(pairs) != 1:
        return pairs
    pair = pairs[0]
    if len(coverages) > 1:
        if pair.coverage is None:
            raise InputError(
                f"coverage must be one number for the one pair {quoted(pair.lower)} and "
                f"{quoted(pair.upper)}, got {coverages}"
            )
        return pairs
    if pair.coverage is not None and not math.isclose(pair.coverage, coverages[0]):
        raise InputError(
            f"the names {quoted(pair.lower)} and {quoted(pair.upper)} imply a coverage of "
            f"{pair.coverage:g}, but coverage is {coverages[0]:g}: if the names are wrong, pass "
            f"{name_roles(lower=pair.lower, upper=pair.upper, coverage=coverages[0])}"
        )
    return [IntervalColumns(pair.lower, pair.upper, coverages[0])]


def _shared_coverage(lower: str, upper: str) -> float | None:
    shares = [end.coverage if (end := bound(name)) else None for name in (lower, upper)]
    return shares[0] if shares[0] == shares[1] else None


def _checked(pairs: list[IntervalColumns]) -> tuple[IntervalColumns, ...]:
    shares = [pair.coverage for pair in pairs]
    if len(pairs) > 1 and (None in shares or len(set(shares)) < len(shares)):
        coverages_told = ", ".join(f"{quoted(p.lower)} at {p.coverage or 'unknown'}" for p in pairs)
        raise InputError(
            f"several intervals must have different known coverages, got {coverages_told}: pass "
            f"{name_roles(lower=..., upper=..., coverage=0.9)}"
        )
    return tuple(pairs)


def level_and_column(text: str) -> tuple[float, str]:
    level, equals, name = text.partition("=")
    number = as_number(level)
    if not equals or not name or number is None:
        raise InputError(f"a quantile must be LEVEL=COLUMN, such as 0.05=low, got {text!r}")
    return number, name
