"""Which column plays which role: by flags first, by names where no flag speaks."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import product
from typing import Any, Final, NamedTuple

from howsure.core.arrays import check_fraction
from howsure.core.errors import InputError, within
from howsure.core.registry import unknown
from howsure.inputs import classes
from howsure.inputs.dialects import (
    idle_columns,
    is_prophet,
    refuse_draws_of_mean,
    refuse_mean_intervals,
    usual_coverage,
)
from howsure.inputs.names import (
    MIN_SERIES,
    NAMELESS,
    UNNAMED,
    LawColumns,
    Roles,
    alike,
    bound,
    in_words,
    likely_ends,
    nixtla,
    normal_form,
    parse_encode,
    parse_law,
    quantile_levels,
)
from howsure.inputs.roles import BY_NAME, LONG, ROLES, Columns, Names
from howsure.inputs.source import listed, no_column, quoted
from howsure.predictions.counts.family import COUNT_FAMILIES
from howsure.predictions.distribution import law_named

_PREDICTION: Final = tuple(role.name for role in ROLES if role.of == "prediction" and role.kind)
_BESIDE: Final = ("outcome", "doubt", "order", "rows")
_CLASSES: Final = ("softmax", "label_set")
_UNCERTAIN: Final = ("lower", "sd", "variance", "quantiles", "samples")
_LONG_VALUES: Final = frozenset({"value", ".prediction", ".predicted"})
_HUB: Final = BY_NAME["output_type"].known | BY_NAME["quantile_level"].known
_RANGES: Final = frozenset({"interval_range", "range"})
_SPREAD: Final = re.compile(
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


CENSORED: Final = frozenset(
    ("censored", "is censored", "right censored", "censoring", "censor", "cens")
)
"""Names, in words, of columns that say where y is censored."""
EVENTS: Final = frozenset(
    ("event", "event observed", "observed event", "status", "died", "dead", "death")
)
"""Names of columns that say where it is not."""


def censoring(names: Iterable[str]) -> list[str]:
    """The columns whose names say that they mark censored rows.

    >>> censoring(["event", "isCensored", "events", "right_censored"])
    ['event', 'isCensored', 'right_censored']
    """
    return [name for name in names if in_words(name) in CENSORED | EVENTS]


RECALIBRATED: Final = "recalibrated_"
"""Begins the names of the columns that recalibration made."""


def assign_roles(
    names: Sequence[str], said: Columns | None = None, *, outcome: bool = True
) -> Roles:
    """Decide the role of each column.

    What the caller says decides; where that is silent, the column's name does
    (`howsure.inputs.roles.ROLES` holds the names, `howsure.inputs.columns` those of a law's
    parameters). A point forecast beside an sd serves as the mean of a normal law; a mean without
    an sd is a point forecast. Where the caller names no prediction, columns whose names begin with
    ``recalibrated_`` go before those that are called the same without.
    """
    models = assign_models(names, said, outcome=outcome)
    if len(models) > 1:
        raise InputError(
            f"only one model can be used here, but column names suggest {len(models)}: "
            f"{listed(roles.model for roles in models)}; drop the columns of the others"
        )
    return models[0]


def assign_models(
    names: Sequence[str], said: Columns | None = None, *, outcome: bool = True
) -> tuple[Roles, ...]:
    """The role of each column for each model, from column names; see `assign_roles`."""
    return _Assignment(names, said or {}).models(outcome=outcome)


class _Assignment:
    """The work of `assign_roles`: flags claim their columns before any name is looked at."""

    def __init__(self, names: Sequence[str], said: Columns) -> None:
        self._names = tuple(names)
        self._table = frozenset(names)  # which is fast to ask
        self._plain = frozenset(map(normal_form, names))
        self._said: dict[str, Any] = {}
        for name, value in said.items():
            if name not in BY_NAME:
                raise InputError(unknown(name, BY_NAME, "the keyword of a column"))
            if value is not None:
                self._said[name] = value
        self._claimed: set[str] = set()
        self._guessed: set[str] = set()
        self._notes: dict[str, str] = {}
        self._columns: dict[str, tuple[str, ...]] = {}
        self._coverages: tuple[float | None, ...] = ()
        self._levels: tuple[float, ...] = ()
        self._law: LawColumns | None = None
        self._labels: tuple[str, ...] = ()
        for role in ROLES:
            if role.many or role.kind is None or role.name in ("encode", "law"):
                continue
            if role.name in self._said:
                self._columns[role.name] = self._named(role.name)
        for many in ("features", "points"):
            for name in self._split(many):
                if not self._is_pattern(name):
                    self._column(name, many)
        for many in ("samples", "softmax", "embedding", "groups"):
            if many in self._said:
                self._columns[many] = self._expanded(many, self._names)
        self._encoder = self._named_encode()
        self._named_law()
        if "lower" in self._said or "upper" in self._said:
            lowers = [self._column(name, "lower") for name in self._split("lower")]
            uppers = [self._column(name, "upper") for name in self._split("upper")]
            self._set_pairs(flagged_pairs(self._said.get("coverage"), lowers, uppers))
        if "quantiles" in self._said:
            self._set_levels(self._named_levels())

    def models(self, *, outcome: bool) -> tuple[Roles, ...]:
        """Let the names decide what is still open."""
        self._guess_nixtla()
        self._guess_hub()
        for entry in ROLES:
            if entry.of in _BESIDE and entry.guessable and not entry.many:
                self._guess(entry.name)
        if outcome and not self._columns.get("y"):
            raise InputError(
                "No outcome column found; name it with y=COLUMN (--y COLUMN). Columns: "
                f"{listed(self._names)}"
            )
        self._guess("groups")
        self._guess_index()
        points = self._expanded_points()
        families: dict[str, _Assignment] = {}
        if not points and not any(
            (self._classes(), self._guess_long(), self._guess_recalibrated())
        ):
            self._guess_prediction()
            families = self._guess_families()
        self._guess("embedding")
        if "features" in self._said:
            self._columns["features"] = self._expanded("features", self._free())
        self._guess("ease")
        self._guess("features")
        for name, why in idle_columns(self._names).items():
            if name not in self._claimed:
                self._notes.setdefault(name, why)
        for name in stated_spreads(self._free()):
            self._notes.setdefault(name, "may be an uncertainty; use it with --sd or --variance")
        if points:
            return tuple(self._roles(name.strip(), point=(name,)) for name in points)
        if families:
            return tuple(
                self._roles(model, own_assignment) for model, own_assignment in families.items()
            )
        return (self._roles(),)

    def _roles(
        self, model: str = "", assignment: _Assignment | None = None, point: tuple[str, ...] = ()
    ) -> Roles:
        """What was decided: of one model, its own prediction or point forecast."""
        assignment = assignment or self
        columns = {
            **self._columns,
            **{role: names for role, names in assignment._columns.items() if role in _PREDICTION},
        }
        columns["point"] = point or columns.get("point", ())
        weights = normal_form("".join(columns.get("weights", ())))
        roles = Roles(
            model=model,
            columns={role: names for role, names in columns.items() if names},
            coverages=assignment._coverages,
            levels=assignment._levels,
            law=self._law,
            labels=self._labels,
            encoder=self._encoder,
            weights_kind=self._said.get("weights_kind")
            or ("importance" if weights.startswith("importance") else "frequency"),
            missing_values=stated_missing(self._said.get("missing_value")),
            guessed=frozenset(self._guessed | assignment._guessed),
            notes={**self._notes, **assignment._notes},
        )
        self._check(roles)
        return roles

    def _classes(self) -> bool:
        """The columns of class probabilities and of label sets; whether there are any.

        Names say so only where none says that a column is another prediction than a point forecast.
        """
        flagged = [role for role in _CLASSES if self._columns.get(role)]
        numeric = [role for role in _PREDICTION if role not in _CLASSES and self._said.get(role)]
        if flagged and numeric:
            raise InputError(
                f"{flagged[0]} is for classes, and {numeric[0]} for numbers: give only one of them"
            )
        if numeric:
            return False
        free = self._free()
        stated = {} if "softmax" in self._said else classes.family(free)
        sets = (
            []
            if "label_set" in self._said
            else [name for name in free if classes.set_coverage(normal_form(name))[0]]
        )
        if not flagged:
            if not (stated or sets) or guessed_law(free):
                return False
            taken = {*stated, *sets}
            if self._reads_wide([name for name in free if name not in taken]):
                return False
        if stated:
            self._claim("softmax", stated, guessed=True)
            self._notes |= dict.fromkeys(stated, "if rows sum to 1")
        if len(sets) > 1:
            raise two_readings("label_set", sets)
        self._claim("label_set", self._columns.get("label_set") or sets, guessed=bool(sets))
        softmax = self._columns.get("softmax", ())
        if len(softmax) == 1:
            raise InputError(
                f"softmax must name the columns of at least 2 classes, got {listed(softmax)}"
            )
        self._labels = classes.labels_of(softmax, self._split("softmax"))
        for label in self._labels:
            if self._labels.count(label) > 1:
                raise InputError(f"softmax must name each class once, got {quoted(label)} twice")
        self._coverages = (self._set_coverage(),)
        for name in self._free():
            if BY_NAME["point"].matches(normal_form(name)):
                self._notes[name] = (
                    "not used: class probabilities or label sets replace a predicted class"
                )
        return True

    def _set_coverage(self) -> float | None:
        """The nominal coverage of label sets, by the flag or by the column's name."""
        flagged = flagged_coverages(self._said.get("coverage"))
        if len(flagged) > 1:
            raise InputError(f"coverage must be one number for label sets, got {flagged}")
        name = next(iter(self._columns.get("label_set", ())), "")
        implied = classes.set_coverage(normal_form(name))[1] if name else None
        if not flagged:
            return implied
        guessed = "label_set" not in self._said
        if guessed and implied is not None and not math.isclose(implied, flagged[0]):
            raise InputError(
                f"the name {quoted(name)} implies a coverage of {implied:g}, but coverage is "
                f"{flagged[0]:g}: if the name is wrong, also pass label_set"
            )
        return flagged[0]

    def _guess_long(self) -> bool:
        """The columns of a long table; whether it is one, as far as names tell."""
        flagged = [role for role in LONG if self._columns.get(role)]
        wide = [role for role in _PREDICTION if role != "point" and self._said.get(role)]
        if flagged and wide:
            raise InputError(
                f"with {flagged[0]}, the table is a long one with a single prediction column: "
                f"pass that as point=COLUMN (--point COLUMN), and omit {wide[0]}"
            )
        if wide:
            return False
        matching = {role: self._matching(role) for role in LONG if role not in self._said}
        if matching.get("boundary") and matching.get("quantile_level") == []:
            ranges = [name for name in self._free() if normal_form(name) in _RANGES]
            matching["quantile_level"] = ranges
            matching["boundary"] = matching["boundary"] if ranges else []
        elif self._columns.get("boundary"):
            if not (self._columns.get("quantile_level") or matching.get("quantile_level")):
                raise InputError(
                    "boundary needs a column of coverages: also pass quantile_level=COLUMN "
                    "(--quantile-level COLUMN)"
                )
        elif "quantile_level" not in self._said:
            matching["boundary"] = []
        matched = [name for names in matching.values() for name in names]
        if not flagged and not matched:
            return False
        free = [name for name in self._free() if name not in matched]
        values = list(self._columns.get("point", ()))
        if "point" not in self._said:
            values = [name for name in free if BY_NAME["point"].matches(normal_form(name))]
            values = values or [name for name in free if normal_form(name) in _LONG_VALUES]
        if matching.get("sample_id") or self._columns.get("sample_id"):
            refuse_draws_of_mean(values or free)
        if flagged and not values:
            raise InputError(
                "No prediction column found in the long table; name it with point=COLUMN "
                f"(--point COLUMN). Columns: {listed(self._names)}"
            )
        if not values:
            return False
        if not flagged and self._reads_wide([name for name in free if name not in values]):
            return False
        if len(values) > 1:
            raise two_readings("point", values)
        for role, names in matching.items():
            if len(names) > 1:
                raise two_readings(role, names)
            self._claim(role, names, guessed=True)
            self._notes |= dict.fromkeys(names, "if its cells are levels or draws of a long table")
        if "point" not in self._columns:
            self._claim("point", values, guessed=True)
        return True

    def _reads_wide(self, names: Sequence[str]) -> bool:
        """Whether some of these columns are a prediction other than a point forecast."""
        plain = _Assignment(names, {})
        try:
            plain._guess_prediction()
        except InputError:
            return True  # which is told when it is read
        wide = (role for role in _PREDICTION if role not in ("point", "mean"))
        return any(plain._columns.get(role) for role in wide)

    def _matching(self, role: str) -> list[str]:
        """The free columns whose names say that they play a role."""
        entry = BY_NAME[role]
        matches = [name for name in self._free() if entry.matches(normal_form(name))]
        if entry.later and len(matches) > 1:
            later = entry.later.split()
            matches = [name for name in matches if normal_form(name) not in later] or matches
        hub = "value" in self._plain and not _HUB.isdisjoint(self._plain)
        if role == "y" and len(matches) > 1 and hub:  # whose target is a word for what is forecast
            matches = [name for name in matches if normal_form(name) != "target"]
        return matches

    def _guess_nixtla(self) -> None:
        """The columns that say which series and when, as nixtla and Prophet call them."""
        nixtla_keys = self._plain.issuperset(("unique_id", "ds"))
        if not nixtla_keys and not is_prophet(self._plain):
            return
        named = (("time", "ds"), ("cutoff", "cutoff"), ("cluster", "unique_id"))
        for role, plain in named if nixtla_keys else named[:2]:
            if role not in self._columns and not self._matching(role):
                names = [name for name in self._free() if normal_form(name) == plain][:1]
                self._claim(role, names, guessed=True)
                if role == "cluster":
                    self._notes[names[0]] = f"groups, if there are fewer than {MIN_SERIES} series"
                    if "series" not in self._columns:
                        self._claim("series", names, guessed=True)

    def _guess_hub(self) -> None:
        """The location of a forecast hub names the series, where lead time and target date stand.

        A group by location is asked for, and stays one beside.
        """
        ends = self._plain & {"target_end_date", "target_date"}
        if "series" in self._said or "horizon" not in self._plain or not ends:
            return
        names = [*self._free(), *self._columns.get("groups", ())]
        locations = [name for name in names if normal_form(name) == "location"]
        if locations and not self._matching("series"):
            self._claim("series", locations[:1], guessed=True)

    def _guess_families(self) -> dict[str, _Assignment]:
        """The predictions of several models that columns are named after, by model.

        None where there is any other prediction.
        """
        if any(self._said.get(role) or self._columns.get(role) for role in _PREDICTION):
            return {}
        families = nixtla(self._free()) or alike(self._free())
        parts: dict[str, _Assignment] = {}
        for model, plain_names in families.items():
            with within(f"the columns of the model {quoted(model)} ({listed(plain_names)})"):
                parts[model] = _renamed(
                    [(plain, name) for name, plain in plain_names.items()],
                    {"coverage": self._said.get("coverage")},
                )
            self._claimed.update(plain_names)
        return parts

    def _expanded_points(self) -> tuple[str, ...]:
        """The columns that are each a model's point forecast."""
        rival_roles = [name for name in _PREDICTION if name != "points" and self._said.get(name)]
        if rival_roles and self._split("points"):
            raise InputError(
                f"points has one model per column, and {rival_roles[0]} is the prediction of a "
                "single model: give only one of them"
            )
        return self._expanded("points", self._free())

    def _guess_prediction(self) -> None:
        """The free columns whose names say that they are a prediction."""
        if "lower" not in self._columns:
            pairs = guessed_pairs(self._free(), self._said.get("coverage"))
            if pairs and pairs[0].coverage is None:
                usual, why = usual_coverage(self._names)
                if why:
                    self._notes[pairs[0].lower] = f"coverage={usual} (--coverage {usual}), {why}"
            self._set_pairs(pairs, guessed=True)
        if "law" not in self._said and not self._columns.get("sd"):
            law = guessed_law(self._free())
            if law is not None:
                self._set_law(law, guessed=True)
        for role in ("mean", "sd", "point"):
            self._guess(role)
        if "quantiles" not in self._columns:
            levels, notes = guessed_levels(self._free())
            self._notes.update(notes)
            self._set_levels(levels, guessed=True)
        self._guess("samples")
        self._normal_law()

    def _guess_recalibrated(self) -> bool:
        """Let what recalibration made go before what it was made of; whether there is any.

        A point forecast serves on where no recalibrated mean stands in its place.
        """
        free = self._free()
        pairs = [(n.removeprefix(RECALIBRATED), n) for n in free if n.startswith(RECALIBRATED)]
        if not pairs or any(self._said.get(name) for name in _PREDICTION):
            return False
        silent: Any = {name: "" for name in _PREDICTION if name in self._said}
        corrected = _renamed(pairs, silent | {"coverage": self._said.get("coverage")})
        if not corrected._claimed:
            return False
        plain = _Assignment([n for n in free if not n.startswith(RECALIBRATED)], silent)
        with suppress(InputError):  # names of what is not read may be unclear
            plain._guess_prediction()
        for role in _PREDICTION:
            self._claim(role, corrected._columns.get(role, ()), guessed=True)
        self._coverages, self._levels = corrected._coverages, corrected._levels
        self._law = corrected._law
        if not (self._columns["mean"] or self._columns["point"] or self._law):
            self._claim("point", plain._columns.get("point", ()), guessed=True)
        replaced = plain._claimed - self._claimed
        self._claimed |= replaced
        self._notes |= corrected._notes
        self._notes |= dict.fromkeys(replaced, "the recalibrated columns are read instead")
        return True

    def _free(self) -> list[str]:
        return [name for name in self._names if name not in self._claimed]

    def _claim(self, role: str, columns: Iterable[str], *, guessed: bool = False) -> None:
        """Give a role its columns, which no other name may then claim."""
        self._columns[role] = tuple(columns)
        self._claimed.update(self._columns[role])
        if guessed and self._columns[role]:
            self._guessed.add(role)

    def _set_pairs(self, pairs: Sequence[IntervalColumns], *, guessed: bool = False) -> None:
        self._claim("lower", (pair.lower for pair in pairs), guessed=guessed)
        self._claim("upper", (pair.upper for pair in pairs), guessed=guessed)
        self._coverages = tuple(pair.coverage for pair in pairs)

    def _set_levels(self, levels: dict[float, str], *, guessed: bool = False) -> None:
        self._levels = tuple(sorted(levels))
        self._claim("quantiles", (levels[level] for level in self._levels), guessed=guessed)

    def _column(self, name: str, flag: str) -> str:
        """The column that a flag names, spaces at its ends aside."""
        if name in self._table:
            matches = [name]
        else:
            matches = [column for column in self._names if column.strip() == name.strip()]
        if not matches and UNNAMED.fullmatch(name.strip()):  # as pandas calls what has no name
            matches = [column for column in self._names if not column.strip()]
        if len(matches) == 1:
            self._claimed.add(matches[0])
            return matches[0]
        raise InputError(no_column(name, self._names, flag))

    def _named(self, role: str) -> tuple[str, ...]:
        name = self._said[role]
        if not isinstance(name, str):
            raise InputError(f"{role} must be the name of a column, got {name!r}")
        return (self._column(name, role),) if name else ()

    def _split(self, role: str) -> list[str]:
        names: Names = self._said.get(role)
        if names is None:
            return []
        if isinstance(names, str):
            names = [names] if names in self._table else names.split(",")
        if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
            raise InputError(f"{role} must be a list of column names, got {names!r}")
        return [name for name in names if name]

    def _is_pattern(self, name: str) -> bool:
        return name not in self._table and any(mark in name for mark in "*?[")

    def _expanded(self, role: str, pool: Sequence[str]) -> tuple[str, ...]:
        """The columns that a flag's names stand for, and its patterns among those of the pool."""
        columns: dict[str, None] = {}
        for name in self._split(role):
            if self._is_pattern(name):
                matches = [column for column in pool if column and fnmatchcase(column, name)]
            else:
                matches = [self._column(name, role)]
            if not matches:
                raise InputError(
                    f"no column matches the pattern {quoted(name)} of {role}. Columns: "
                    f"{listed(self._names)}"
                )
            columns.update(dict.fromkeys(matches))
        self._claimed.update(columns)
        return tuple(columns)

    def _named_encode(self) -> Any:
        """The encoder, whose column leaves no other embedding."""
        pair = parse_encode(self._said.get("encode"))
        if pair is None:
            return None
        if self._columns.get("embedding"):
            raise InputError("encode and embedding both define an embedding: give only one of them")
        self._columns |= {"embedding": (), "encode": (self._column(pair[0], "encode"),)}
        return pair[1]

    def _named_levels(self) -> dict[float, str]:
        """Columns of quantiles that a flag names, by level."""
        stated: Mapping[float, str] | str | Sequence[str] = self._said["quantiles"]
        if isinstance(stated, Mapping):
            pairs = [(float(level), str(name)) for level, name in stated.items()]
        elif isinstance(stated, Sequence):
            texts = [stated] if isinstance(stated, str) else stated
            pairs = [_level_and_column(str(text)) for text in texts if text != ""]
        else:
            raise InputError(f"quantiles must be LEVEL=COLUMN texts or a mapping, got {stated!r}")
        levels: dict[float, str] = {}
        for level, name in pairs:
            if level not in (0.0, 1.0):  # which bound y
                check_fraction(level, "the level of a quantile")
            column = self._column(name, "quantiles")
            if levels.setdefault(level, column) != column:
                columns = [levels[level], column]
                raise two_readings(f"quantile {level:g}", columns, "each level once")
        return levels

    def _named_law(self) -> None:
        text = self._said.get("law")
        if not text:
            return
        if not isinstance(text, str):
            raise InputError(f"law must be NAME:PARAMETER=COLUMN,…, got {text!r}")
        law = parse_law(text)
        parameters: dict[str, str | float] = {}
        for parameter, value in law.parameters.items():
            number = None if value in self._table else as_number(str(value))
            what = f"distribution parameter {parameter}"
            parameters[parameter] = self._column(str(value), what) if number is None else number
        self._set_law(LawColumns(law.name, parameters))

    def _set_law(self, law: LawColumns, *, guessed: bool = False) -> None:
        self._law = law
        self._claim("law", law.columns().values(), guessed=guessed)

    def _guess(self, role: str) -> None:
        """The free columns whose names say that they play a role of which no flag speaks."""
        if role in self._columns:
            return
        names = self._matching(role)
        if role == "time" and len(names) == 2:  # content decides whether they are one
            note = "read as one time if one has dates and the other times of day"
            self._notes |= dict.fromkeys(names, note)
        elif len(names) > 1 and not BY_NAME[role].many:
            raise two_readings(role, names)
        self._claim(role, names, guessed=True)

    def _guess_index(self) -> None:
        """The index that pandas, R and Excel write as a column: times, if its cells say so."""
        if self._columns.get("time") or "time" in self._said or "ds" in self._plain:
            return
        free = self._free()
        names = [name for name in free if NAMELESS.fullmatch(name)] or [
            name for name in self._names[:1] if name in free
        ]
        if len(names) == 1:
            self._columns["time"] = tuple(names)  # others may claim it too
            self._guessed.add("time")

    def _normal_law(self) -> None:
        """Settle mean, sd and point, as they go together."""
        mean, sd, point = (self._columns[role] for role in ("mean", "sd", "point"))
        variance = self._columns.get("variance", ())
        if variance:
            if self._law is not None or (sd and "sd" not in self._guessed):
                other = "sd=" if self._law is None else "law="
                raise InputError(
                    f"{other} and variance= both define a spread: give only one of them"
                )
            if not mean and not point:
                raise InputError("variance needs a mean or a point forecast")
            self._columns |= {"mean": mean or point, "sd": ()}
            return
        if sd and self._law is not None:
            if "sd" not in self._guessed:
                raise InputError("law= and sd= both define a distribution: give only one of them")
            named = "through its parameters" if "law" in self._guessed else "by name"
            self._notes[sd[0]] = f"not used: the distribution is given {named}"
            sd = ()
        if sd and not mean and not point:
            if "sd" not in self._guessed:
                raise InputError("sd needs a mean or a point forecast")
            self._notes[sd[0]] = "not used: an sd needs a mean or a point forecast"
            sd = ()
        if not sd and mean and point and mean != point:
            self._notes[mean[0]] = "not used: a mean without an sd, and there is a point forecast"
        settled = (mean or point, sd, point) if sd else ((), (), point or mean)
        self._columns |= dict(zip(("mean", "sd", "point"), settled, strict=True))

    def _check(self, roles: Roles) -> None:
        """Raise `InputError` where there is no prediction, or a column contradicts itself."""
        predicted = [column for role, column, _ in roles.uses() if role.of == "prediction"]
        if not predicted and roles.law is None:
            notes = "; ".join(f"{quoted(name)}: {note}" for name, note in roles.notes.items())
            ends = "lower= and upper="
            if likely := likely_ends(self._names):
                ends = f"lower={quoted(likely[0])} and upper={quoted(likely[1])}"
            raise InputError(
                f"No prediction column found; name one with point=COLUMN, {ends}, mean= and sd=, "
                "quantiles=, samples=, law=, softmax= or label_set= (--point, …). Columns: "
                f"{listed(self._names)}"
                + (f" ({notes})" if notes else "")
                + (_MELTED if {"variable", "value"} <= set(self._names) else "")
            )
        stated = any(roles[name] for name in _UNCERTAIN) or roles.law is not None or roles.classes
        if not stated and "lower" not in self._said:
            refuse_mean_intervals(self._names)
        y = roles.one("y")
        if y in predicted:
            raise InputError(
                f"y cannot also be part of a prediction: {quoted(str(y))} is named for both"
            )
        if roles["mean"] and roles["mean"] == roles["sd"]:
            mean = quoted(roles["mean"][0])
            raise InputError(f"mean and sd must be different columns: {mean} is named for both")
        if any(pair[0] == pair[1] for pair in zip(roles["lower"], roles["upper"], strict=True)):
            raise InputError(
                "lower and upper must be different columns: the same one is named for both"
            )


def _renamed(pairs: Sequence[tuple[str, str]], said: Columns) -> _Assignment:
    """The prediction that columns would be by other names, each of which comes with its own."""
    columns = dict(pairs)
    assignment = _Assignment([plain for plain, _ in pairs], said)
    assignment._guess_prediction()
    assignment._columns = {
        role: tuple(columns[plain] for plain in names)
        for role, names in assignment._columns.items()
    }
    assignment._notes = {columns[plain]: note for plain, note in assignment._notes.items()}
    if assignment._law is not None:
        parameters = {key: columns[str(plain)] for key, plain in assignment._law.parameters.items()}
        assignment._law = LawColumns(assignment._law.name, parameters)
    return assignment


_MELTED: Final = (
    ". Give a melted table as it was before melting, or with model='variable', point='value' "
    "(--model variable --point value); if the variable has levels, pass "
    "quantile_level='variable' (--quantile-level variable)"
)
_MARKS: Final = ("_loc", "_weight_1")  # some parameter of every law that is not one of counts
_STEMS: Final = {
    "weight": "w weight pi prob probability",
    "loc": "mean mu loc",
    "scale": "sd std sigma scale",
}
_PART: Final = re.compile(
    rf"(?P<stem>{'|'.join(' '.join(_STEMS.values()).split())})_?(?P<number>\d+)", re.ASCII
)


def guessed_law(names: Sequence[str]) -> LawColumns | None:
    """The law whose parameters are in columns, if their names say so."""
    laws = [*_families(names), *_mixtures(names)]
    if len(laws) > 1:
        firsts = [str(next(iter(law.parameters.values()))) for law in laws]
        raise InputError(
            f"column names suggest {len(laws)} distributions (from {listed(firsts)} on), but law "
            "must be one: pass law=NAME:PARAMETER=COLUMN,… (--law …), or law=''"
        )
    return laws[0] if laws else None


def _families(names: Sequence[str]) -> Iterable[LawColumns]:
    """Laws whose family begins the names of all their parameters."""
    existing = set(names)
    marked = [name.removesuffix(mark) for mark in _MARKS for name in names if name.endswith(mark)]
    for family in dict.fromkeys((*COUNT_FAMILIES, *marked)):
        with suppress(InputError):
            columns = {name: f"{family}_{name}" for name in law_named(family).parameters}
            if family in COUNT_FAMILIES and columns.get("loc") not in existing:
                columns.pop("loc", None)
            if existing.issuperset(columns.values()):
                yield LawColumns(family, columns)


def _mixtures(names: Sequence[str]) -> Iterable[LawColumns]:
    """Mixtures of normal laws whose parts are numbered."""
    columns: dict[str, dict[int, str]] = {}
    for name in names:
        match = _PART.fullmatch(normal_form(name))
        if match is not None:
            columns.setdefault(match["stem"], {})[int(match["number"])] = name
    stems = [
        [columns[stem] for stem in words.split() if stem in columns] for words in _STEMS.values()
    ]
    for weights, means, sds in product(*stems):
        numbers = sorted(weights)
        counted = numbers in ([*range(len(numbers))], [*range(1, len(numbers) + 1)])
        if len(numbers) > 1 and counted and weights.keys() == means.keys() == sds.keys():
            parameters: dict[str, str | float] = {}
            for k, number in enumerate(numbers, 1):
                for role, numbered in zip(_STEMS, (weights, means, sds), strict=True):
                    parameters[f"{role}_{k}"] = numbered[number]
            yield LawColumns("+".join(["norm"] * len(numbers)), parameters)


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


def stated_missing(given: Any) -> tuple[float, ...]:
    """The numbers that stand for missing values."""
    if given is None or given == "":
        return ()
    marks: dict[float, None] = {}
    for item in given if isinstance(given, list | tuple) else [given]:
        number = None if isinstance(item, bool) else as_number(str(item))
        if number is None:
            raise InputError(
                "missing_value must be a finite number, such as -9999, or several, got "
                f"{item!r}; empty cells, NA and NaN always count as missing"
            )
        marks[number] = None
    return tuple(marks)


def flagged_coverages(given: Coverages) -> list[float]:
    """The coverages of a flag, each in (0, 1)."""
    if given is None:
        return []
    return [
        check_fraction(item, "coverage")
        for item in (given if isinstance(given, Sequence) else [given])
    ]


def guessed_pairs(names: Iterable[str], coverage: Coverages) -> tuple[IntervalColumns, ...]:
    """Pairs of columns whose names say that they are the two ends of intervals."""
    ends: dict[tuple[str, float | None, str], str] = {}
    for name in names:
        end = bound(name)
        if end is None:
            continue
        if end.unclear:
            raise InputError(f"the coverage in the name {quoted(name)} is ambiguous: {_SAY_PAIR}")
        key = (end.stem, end.coverage, end.side)
        if key in ends:
            chosen = quoted(ends[key])
            raise two_readings(
                end.side,
                [ends[key], name],
                f"{end.side}={chosen} ({BY_NAME[end.side].option} {shlex.quote(ends[key])}), the "
                "other end, and coverage= (--coverage)",
            )
        ends[key] = name
    pairs = []
    for (stem, share, side), name in ends.items():
        other = ends.get((stem, share, "upper" if side == "lower" else "lower"))
        if other is None:
            raise InputError(
                f"column {quoted(name)} looks like the {side} end of intervals, but the other "
                f"end is missing: {_SAY_PAIR}"
            )
        if side == "lower":
            pairs.append(IntervalColumns(name, other, share))
    return _checked(_with_coverage(pairs, flagged_coverages(coverage)))


def guessed_levels(names: Iterable[str]) -> tuple[dict[float, str], dict[str, str]]:
    """Columns whose names say that they are quantiles, by level; and notes on those left out."""
    level_of = quantile_levels(names)
    notes = {
        name: f"its number is ambiguous; state the level with quantiles={{LEVEL: {quoted(name)}}} "
        f"(--quantile LEVEL={shlex.quote(name)})"
        for name, level in level_of.items()
        if level is None
    }
    if len(notes) > 1:
        raise InputError(
            f"the levels in the names {listed(notes)} are ambiguous: pass quantiles={{0.05: "
            "COLUMN, …} (--quantile 0.05=COLUMN), or quantiles='' (--quantile '') if they are "
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
                f"quantiles={{{level:g}: {quoted(name)}, …}} (--quantile "
                f"{shlex.quote(f'{level:g}={name}')} …) with every level",
            )
        levels[level] = name
    if len(levels) == 1 and 0.5 not in levels:
        ((level, name),) = levels.items()
        if name.strip().isalnum():
            way = f"quantiles={{{level:g}: {quoted(name)}}} (--quantile {level:g}={name})"
            return {}, {**notes, name: f"only one quantile; use it with {way}"}
    return levels, notes


def as_number(text: str) -> float | None:
    """The finite number that text stands for, if it does."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def two_readings(what: str, found: Sequence[str], spelling: str = "") -> InputError:
    """The error for a role, or what else is one column, that several names claim."""
    if not spelling:
        option = BY_NAME[what].option
        spelling = " or ".join(
            f"{what}={quoted(name)} ({option} {shlex.quote(name)})" for name in found[:2]
        )
    return InputError(
        f"{what} must be one column, but the names of {len(found)} match: {listed(found)}; pass "
        f"{spelling}"
    )


_SAY_PAIR = (
    "pass lower=COLUMN, upper=COLUMN, coverage=0.9 (--lower, --upper, --coverage), or lower='' "
    "if it is not an interval"
)


def _with_coverage(pairs: list[IntervalColumns], told: list[float]) -> list[IntervalColumns]:
    """Give the coverage of a flag to the one pair whose name has none."""
    if not told or len(pairs) != 1:
        return pairs
    pair = pairs[0]
    if len(told) > 1:
        if pair.coverage is None:
            raise InputError(
                f"coverage must be one number for the one pair {quoted(pair.lower)} and "
                f"{quoted(pair.upper)}, got {told}"
            )
        return pairs
    if pair.coverage is not None and not math.isclose(pair.coverage, told[0]):
        raise InputError(
            f"the names {quoted(pair.lower)} and {quoted(pair.upper)} imply a coverage of "
            f"{pair.coverage:g}, but coverage is {told[0]:g}: if the names are wrong, also pass "
            "lower and upper"
        )
    return [IntervalColumns(pair.lower, pair.upper, told[0])]


def _shared_coverage(lower: str, upper: str) -> float | None:
    shares = [end.coverage if (end := bound(name)) else None for name in (lower, upper)]
    return shares[0] if shares[0] == shares[1] else None


def _checked(pairs: list[IntervalColumns]) -> tuple[IntervalColumns, ...]:
    shares = [pair.coverage for pair in pairs]
    if len(pairs) > 1 and (None in shares or len(set(shares)) < len(shares)):
        coverages_told = ", ".join(f"{quoted(p.lower)} at {p.coverage or 'unknown'}" for p in pairs)
        raise InputError(
            f"several intervals must have different known coverages, got {coverages_told}: pass "
            "lower, upper and coverage (--lower, --upper, --coverage)"
        )
    return tuple(pairs)


def _level_and_column(text: str) -> tuple[float, str]:
    level, equals, name = text.partition("=")
    number = as_number(level)
    if not equals or not name or number is None:
        raise InputError(f"a quantile must be LEVEL=COLUMN, such as 0.05=low, got {text!r}")
    return number, name
