"""Which column plays which role: by flags first, by names where no flag speaks."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import product
from typing import Any, Final, Never, Self

from howsure.core.arrays import check_fraction
from howsure.core.classes import frozen
from howsure.core.errors import InputError, within
from howsure.core.registry import unknown
from howsure.core.text import quoted
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
    IntervalColumns,
    LawColumns,
    Roles,
    alike,
    as_number,
    flagged_coverages,
    flagged_pairs,
    guessed_levels,
    guessed_pairs,
    level_and_column,
    likely_ends,
    nixtla,
    normal_form,
    parse_encode,
    parse_law,
    stated_missing,
    stated_spreads,
    two_readings,
)
from howsure.inputs.roles import BY_NAME, LONG, ROLES, Columns, Names, name_roles
from howsure.inputs.source import listed, no_column
from howsure.predictions.counts.family import COUNT_FAMILIES
from howsure.predictions.distribution import law_named

_PREDICTION = tuple(role.name for role in ROLES if role.of == "prediction" and role.kind)
_ONE_COLUMN = tuple(
    role.name
    for role in ROLES
    if role.of in ("outcome", "doubt", "order", "rows") and role.guessable and not role.many
)
"""Roles beside a prediction whose one column names tell."""
_CLASSES = ("softmax", "label_set", "stated_confidence")
_UNCERTAIN = ("lower", "sd", "variance", "quantiles", "samples")
_LONG_VALUES = frozenset({"value", ".prediction", ".predicted"})
_HUB = BY_NAME["output_type"].recognised | BY_NAME["quantile_level"].recognised
_RANGES = frozenset({"interval_range", "range"})
RECALIBRATED = "recalibrated_"
"""Begins the names of the columns that recalibration made."""


def assign_roles(
    names: Sequence[str], flags: Columns | None = None, *, outcome: bool = True
) -> Roles:
    """Decide the role of each column.

    What the caller says decides; where that is silent, the column's name does
    (`howsure.inputs.roles.ROLES` holds the names, `howsure.inputs.columns` those of a law's
    parameters). A point forecast beside an sd serves as the mean of a normal law; a mean without
    an sd is a point forecast. Where the caller names no prediction, columns whose names begin with
    ``recalibrated_`` go before those that are called the same without.
    """
    models = assign_models(names, flags, outcome=outcome)
    if len(models) > 1:
        raise InputError(
            f"only one model can be used here, but column names suggest {len(models)}: "
            f"{listed(roles.model for roles in models)}; drop the columns of the others"
        )
    return models[0]


def assign_models(
    names: Sequence[str], flags: Columns | None = None, *, outcome: bool = True
) -> tuple[Roles, ...]:
    """The role of each column for each model, from column names; see `assign_roles`."""
    draft = _guess_hub(_guess_nixtla(_read_flags(names, flags or {})))
    draft = _guess_confidence(draft).guess(*_ONE_COLUMN)
    draft = _guess_index(draft.guess("groups"))
    points = _point_columns(draft)
    draft = draft.take(points)
    if points:
        models = [(name.strip(), Roles(columns={"point": (name,)})) for name in points]
    else:
        without, models = draft, []
        draft = _after(draft, (_guess_classes, _guess_long, _guess_recalibrated))
        if draft is without:
            draft, models = _guess_families(_guess_prediction(draft))
    if outcome and not draft.roles["y"]:
        _refuse_without_outcome(draft, models[0][1] if models else draft.roles)
    draft = _after(draft, (_guess_inputs, _note_unused))
    return tuple(_finished(draft, *model) for model in models or [("", draft.roles)])


def _predicted(roles: Roles) -> list[str]:
    """The columns that make a prediction."""
    return [column for role, column, _ in roles.uses() if role.of == "prediction"]


def _refuse_without_outcome(draft: _Draft, roles: Roles) -> Never:
    """Say what is missing: y, and the prediction where that is not found either."""
    y = name_roles(y=draft.free[0] if len(draft.free) == 1 else ...)
    raise InputError(
        f"No outcome column found; name it with {y}. "
        + (
            f"Columns: {listed(draft.names)}"
            if _predicted(roles) or roles.law is not None
            else _ask_for_prediction(draft, roles)
        )
    )


def _ask_for_prediction(draft: _Draft, roles: Roles) -> str:
    """How to name a prediction that was not found."""
    notes = "; ".join(f"{quoted(name)}: {note}" for name, note in roles.notes.items())
    lower, upper = likely_ends(draft.names) or (..., ...)
    ways = [
        name_roles(point=...),
        name_roles(lower=lower, upper=upper),
        name_roles(mean=..., sd=...),
        name_roles(law="NAME:PARAMETER=COLUMN,…"),
    ]
    return (
        f"No prediction column found; name it with {', '.join(ways)}, or with quantiles, "
        f"samples, softmax or label_set. Columns: {listed(draft.names)}"
        + (f" ({notes})" if notes else "")
        + (_how_melted() if {"variable", "value"} <= set(draft.names) else "")
    )


@frozen
class _Draft:
    """What is decided of a table's columns so far; every step gives another."""

    names: tuple[str, ...]
    table: frozenset[str]  # the same, which is fast to ask
    plain: frozenset[str]  # the same as they are compared
    flags: Mapping[str, Any]  # what the caller says of roles
    roles: Roles = Roles(columns={})
    claimed: frozenset[str] = frozenset()  # columns that no other name may claim

    @classmethod
    def of(cls, names: Iterable[str], flags: Mapping[str, Any]) -> Self:
        """Nothing of a table's columns."""
        names = tuple(names)
        return cls(names, frozenset(names), frozenset(map(normal_form, names)), flags)

    @property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """The columns of each role that is decided; of none where it stays empty."""
        return self.roles.columns

    @property
    def free(self) -> list[str]:
        """The columns that are not claimed."""
        return [name for name in self.names if name not in self.claimed]

    def claim(self, role: str, columns: Iterable[str], *, guessed: bool = True) -> _Draft:
        """Give a role its columns."""
        names = tuple(columns)
        roles = self.roles.having({role: names})
        if guessed and names:
            roles = replace(roles, guessed=roles.guessed | {role})
        return replace(self, roles=roles).take(names)

    def take(self, columns: Iterable[str]) -> _Draft:
        """Claim columns, whatever their role."""
        return replace(self, claimed=self.claimed.union(columns))

    def claim_pairs(self, pairs: Sequence[IntervalColumns], *, guessed: bool = True) -> _Draft:
        """Give the ends of intervals their columns."""
        draft = self.claim("lower", (pair.lower for pair in pairs), guessed=guessed)
        draft = draft.claim("upper", (pair.upper for pair in pairs), guessed=guessed)
        return draft.settle(coverages=tuple(pair.coverage for pair in pairs))

    def claim_levels(self, levels: Mapping[float, str], *, guessed: bool = True) -> _Draft:
        """Give quantiles their columns."""
        draft = self.settle(levels=tuple(sorted(levels)))
        return draft.claim("quantiles", map(levels.__getitem__, sorted(levels)), guessed=guessed)

    def claim_law(self, law: LawColumns, *, guessed: bool = True) -> _Draft:
        """Give a law its columns."""
        return self.settle(law=law).claim("law", law.columns().values(), guessed=guessed)

    def settle(self, **facts: Any) -> _Draft:
        """Decide something else than columns."""
        return replace(self, roles=replace(self.roles, **facts))

    def note(self, notes: Mapping[str, str]) -> _Draft:
        """Say something of columns."""
        return replace(self, roles=self.roles.having({}, notes))

    def matching(self, role: str) -> list[str]:
        """The free columns whose names say that they play a role."""
        entry = BY_NAME[role]
        matches = [name for name in self.free if entry.matches(normal_form(name))]
        if entry.later and len(matches) > 1:
            later = entry.later.split()
            matches = [name for name in matches if normal_form(name) not in later] or matches
        hub = "value" in self.plain and not _HUB.isdisjoint(self.plain)
        if role == "y" and len(matches) > 1 and hub:  # whose target is a word for what is forecast
            matches = [name for name in matches if normal_form(name) != "target"]
        return matches

    def guess(self, *roles: str) -> _Draft:
        """Give roles of which no flag speaks the free columns whose names say so."""
        draft = self
        for role in roles:
            if role in draft.columns:
                continue
            names = draft.matching(role)
            if role == "time" and len(names) == 2:  # content decides whether they are one
                note = "read as one time if one has dates and the other times of day"
                draft = draft.note(dict.fromkeys(names, note))
            elif len(names) > 1 and not BY_NAME[role].many:
                raise two_readings(role, names)
            draft = draft.claim(role, names)
        return draft

    def column(self, name: str, flag: str) -> str:
        """The column that a flag names, spaces at its ends aside."""
        matches = [name] if name in self.table else []
        matches = matches or [column for column in self.names if column.strip() == name.strip()]
        if not matches and UNNAMED.fullmatch(name.strip()):  # as pandas calls what has no name
            matches = [column for column in self.names if not column.strip()]
        if len(matches) == 1:
            return matches[0]
        raise InputError(no_column(name, self.names, flag))

    def stated(self, role: str) -> list[str]:
        """The names and patterns of a flag."""
        names: Names = self.flags.get(role)
        if names is None:
            return []
        if isinstance(names, str):
            names = [names] if names in self.table else names.split(",")
        if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
            raise InputError(f"{role} must be a list of column names, got {names!r}")
        return [name for name in names if name]

    def is_pattern(self, name: str) -> bool:
        """Whether a name of a flag stands for several."""
        return any(mark in name for mark in "*?[") and name not in self.table

    def expanded(self, role: str, pool: Sequence[str]) -> tuple[str, ...]:
        """The columns that a flag's names stand for, and its patterns among those of the pool."""
        columns: dict[str, None] = {}
        for name in self.stated(role):
            if self.is_pattern(name):
                matches = [column for column in pool if column and fnmatchcase(column, name)]
            else:
                matches = [self.column(name, role)]
            if not matches:
                raise InputError(
                    f"no column matches the pattern {quoted(name)} of {role}. Columns: "
                    f"{listed(self.names)}"
                )
            columns.update(dict.fromkeys(matches))
        return tuple(columns)


def _read_flags(names: Sequence[str], flags: Mapping[str, Any]) -> _Draft:
    """What the caller says: flags claim their columns before any name is looked at."""
    for keyword in flags:
        if keyword not in BY_NAME:
            raise InputError(unknown(keyword, BY_NAME, "the keyword of a column"))
    stated = {name: value for name, value in flags.items() if value is not None}
    draft = _Draft.of(names, stated)
    for role in ROLES:
        column: Any = stated.get(role.name)
        if role.many or role.kind is None or role.name in ("encode", "law") or column is None:
            continue
        if not isinstance(column, str):
            raise InputError(f"{role.name} must be the name of a column, got {column!r}")
        names = [draft.column(column, role.name)] if column else ()
        draft = draft.claim(role.name, names, guessed=False)
    for many in ("features", "points"):
        plain = [name for name in draft.stated(many) if not draft.is_pattern(name)]
        draft = draft.take([draft.column(name, many) for name in plain])
    for many in ("samples", "softmax", "embedding", "groups"):
        if many in stated:
            draft = draft.claim(many, draft.expanded(many, draft.names), guessed=False)
    draft = _read_law(_read_encode(draft))
    if "lower" in stated or "upper" in stated:
        lowers, uppers = (
            [draft.column(name, end) for name in draft.stated(end)] for end in ("lower", "upper")
        )
        pairs = flagged_pairs(stated.get("coverage"), lowers, uppers)
        draft = draft.claim_pairs(pairs, guessed=False)
    return _read_levels(draft) if "quantiles" in stated else draft


def _read_encode(draft: _Draft) -> _Draft:
    """The encoder, whose column leaves no other embedding."""
    pair = parse_encode(draft.flags.get("encode"))
    if pair is None:
        return draft
    if draft.roles["embedding"]:
        raise InputError("encode and embedding both define an embedding: give only one of them")
    draft = draft.settle(encoder=pair[1]).claim("embedding", ())
    return draft.claim("encode", [draft.column(pair[0], "encode")], guessed=False)


def _read_law(draft: _Draft) -> _Draft:
    text = draft.flags.get("law")
    if not text:
        return draft
    if not isinstance(text, str):
        raise InputError(f"law must be NAME:PARAMETER=COLUMN,…, got {text!r}")
    law = parse_law(text)
    parameters: dict[str, str | float] = {}
    for parameter, value in law.parameters.items():
        number = None if value in draft.table else as_number(str(value))
        what = f"distribution parameter {parameter}"
        parameters[parameter] = draft.column(str(value), what) if number is None else number
    return draft.claim_law(LawColumns(law.name, parameters), guessed=False)


def _read_levels(draft: _Draft) -> _Draft:
    """Columns of quantiles that a flag names, by level."""
    stated: Mapping[float, str] | str | Sequence[str] = draft.flags["quantiles"]
    if isinstance(stated, Mapping):
        pairs = [(float(level), str(name)) for level, name in stated.items()]
    elif isinstance(stated, Sequence):
        texts = [stated] if isinstance(stated, str) else stated
        pairs = [level_and_column(str(text)) for text in texts if text != ""]
    else:
        raise InputError(f"quantiles must be LEVEL=COLUMN texts or a mapping, got {stated!r}")
    levels: dict[float, str] = {}
    for level, name in pairs:
        if level not in (0.0, 1.0):  # which bound y
            check_fraction(level, "the level of a quantile")
        column = draft.column(name, "quantiles")
        if levels.setdefault(level, column) != column:
            columns = [levels[level], column]
            raise two_readings(f"quantile {level:g}", columns, "each level once")
    return draft.claim_levels(levels, guessed=False)


# ---- what stands beside a prediction ----------------------------------------------------------


def _guess_nixtla(draft: _Draft) -> _Draft:
    """The columns that say which series and when, as nixtla and Prophet call them."""
    nixtla_keys = draft.plain.issuperset(("unique_id", "ds"))
    if not nixtla_keys and not is_prophet(draft.plain):
        return draft
    roles = (("time", "ds"), ("cutoff", "cutoff"), ("cluster", "unique_id"))
    for role, key in roles if nixtla_keys else roles[:2]:
        if role in draft.columns or draft.matching(role):
            continue
        names = [name for name in draft.free if normal_form(name) == key][:1]
        draft = draft.claim(role, names)
        if role == "cluster":
            note = f"groups, if there are fewer than {MIN_SERIES} series"
            draft = draft.note(dict.fromkeys(names, note))
            if "series" not in draft.columns:
                draft = draft.claim("series", names)
    return draft


def _guess_hub(draft: _Draft) -> _Draft:
    """The location of a forecast hub names the series, where lead time and target date stand.

    A group by location is asked for, and stays one beside.
    """
    ends = draft.plain & {"target_end_date", "target_date"}
    if "series" in draft.flags or "horizon" not in draft.plain or not ends:
        return draft
    names = [*draft.free, *draft.roles["groups"]]
    locations = [name for name in names if normal_form(name) == "location"]
    if not locations or draft.matching("series"):
        return draft
    return draft.claim("series", locations[:1])


def _guess_index(draft: _Draft) -> _Draft:
    """The index that pandas, R and Excel write as a column: times, if its cells say so."""
    if draft.roles["time"] or "time" in draft.flags or "ds" in draft.plain:
        return draft
    free = draft.free
    names = [name for name in free if NAMELESS.fullmatch(name)] or [
        name for name in draft.names[:1] if name in free
    ]
    if len(names) != 1:
        return draft
    timed = draft.claim("time", names)
    return replace(timed, claimed=draft.claimed)  # others may claim it too


# ---- the prediction: of classes, of a long table, recalibrated, or of one model or several -------


def _guess_confidence(draft: _Draft) -> _Draft:
    """A stated confidence beside the column that says what was right."""
    named = (role for role in (*_PREDICTION, "y") if draft.flags.get(role) is not None)
    pair = None if any(named) else classes.correctness(draft.free)
    if pair is None:
        return draft
    if not _class_columns(_corrected(draft.free)):
        draft = draft.claim("stated_confidence", pair[:1])
    return draft.claim("y", pair[1:])


def _corrected(names: Sequence[str]) -> list[str]:
    """The columns that recalibration made."""
    return [name for name in names if name.startswith(RECALIBRATED)]


def _class_columns(names: Sequence[str]) -> dict[str, str]:
    """The columns whose names say that they are probabilities of classes, with the classes."""
    return classes.family(names) or classes.positive_column(names)


def _guess_classes(draft: _Draft) -> _Draft:
    """The columns of class probabilities and of label sets; the same draft if there are none.

    Names say so only where none says that a column is another prediction than a point forecast.
    """
    flags = draft.flags
    flagged = [role for role in _CLASSES if draft.roles[role]]
    numeric = [role for role in _PREDICTION if role not in _CLASSES and flags.get(role)]
    if flagged and numeric:
        raise InputError(
            f"{flagged[0]} is for classes, and {numeric[0]} for numbers: give only one of them"
        )
    if numeric:
        return draft
    free = draft.free
    stated: dict[str, str] = {}
    replaced: dict[str, str] = {}
    if "softmax" not in flags and not draft.roles["stated_confidence"]:
        stated = _class_columns(_corrected(free))
        replaced = _class_columns([name for name in free if name not in _corrected(free)])
        if stated:
            notes = dict.fromkeys(replaced, "the recalibrated columns are read instead")
            draft = draft.take(replaced).note(notes)
        stated = stated or replaced
    sets = (
        []
        if "label_set" in flags
        else [name for name in free if classes.set_coverage(normal_form(name))[0]]
    )
    if not flagged:
        if not (stated or sets) or guessed_law(free):
            return draft
        taken = {*stated, *replaced, *sets}
        if _reads_wide([name for name in free if name not in taken]):
            return draft
    if stated:
        draft = draft.claim("softmax", stated)
        draft = draft.note(
            dict.fromkeys(stated, "if rows sum to 1" if len(stated) > 1 else "if y has two classes")
        )
    if len(sets) > 1:
        raise two_readings("label_set", sets)
    draft = draft.claim("label_set", draft.roles["label_set"] or sets, guessed=bool(sets))
    softmax = draft.roles["softmax"]
    if len(softmax) == 1:
        labels = tuple(classes.positive_column(softmax).values()) or ("",)
    else:
        labels = classes.labels_of(softmax, draft.stated("softmax"))
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(f"softmax must name each class once, got {quoted(label)} twice")
    draft = draft.settle(labels=labels, coverages=(_set_coverage(draft),))
    points = [name for name in draft.free if BY_NAME["point"].matches(normal_form(name))]
    why = "not used: class probabilities or label sets replace a predicted class"
    return draft.note(dict.fromkeys(points, why))


def _set_coverage(draft: _Draft) -> float | None:
    """The nominal coverage of label sets, by the flag or by the column's name."""
    flagged = flagged_coverages(draft.flags.get("coverage"))
    if len(flagged) > 1:
        raise InputError(f"coverage must be one number for label sets, got {flagged}")
    name = draft.roles.column("label_set")
    implied = classes.set_coverage(normal_form(name))[1] if name else None
    if not flagged:
        return implied
    guessed = "label_set" not in draft.flags
    if guessed and implied is not None and not math.isclose(implied, flagged[0]):
        raise InputError(
            f"the name {quoted(str(name))} implies a coverage of {implied:g}, but coverage is "
            f"{flagged[0]:g}: if the name is wrong, pass "
            f"{name_roles(label_set=name, coverage=flagged[0])}"
        )
    return flagged[0]


def _guess_long(draft: _Draft) -> _Draft:
    """The columns of a long table; the same draft if names do not tell of one."""
    flags = draft.flags
    flagged = [role for role in LONG if draft.roles[role]]
    wide = [role for role in _PREDICTION if role != "point" and flags.get(role)]
    if flagged and wide:
        raise InputError(
            f"with {flagged[0]}, the table is a long one with a single prediction column: "
            f"pass that as {name_roles(point=...)}, and omit {wide[0]}"
        )
    if wide:
        return draft
    matching = {role: draft.matching(role) for role in LONG if role not in flags}
    if matching.get("boundary") and matching.get("quantile_level") == []:
        ranges = [name for name in draft.free if normal_form(name) in _RANGES]
        matching["quantile_level"] = ranges
        matching["boundary"] = matching["boundary"] if ranges else []
    elif draft.roles["boundary"]:
        if not (draft.roles["quantile_level"] or matching.get("quantile_level")):
            raise InputError(
                f"boundary needs a column of coverages: also pass {name_roles(quantile_level=...)}"
            )
    elif "quantile_level" not in flags:
        matching["boundary"] = []
    matched = [name for names in matching.values() for name in names]
    if not flagged and not matched:
        return draft
    free = [name for name in draft.free if name not in matched]
    values = list(draft.roles["point"])
    if "point" not in flags:
        values = [name for name in free if BY_NAME["point"].matches(normal_form(name))]
        values = values or [name for name in free if normal_form(name) in _LONG_VALUES]
    if matching.get("sample_id") or draft.roles["sample_id"]:
        refuse_draws_of_mean(values or free)
    if flagged and not values:
        raise InputError(
            "No prediction column found in the long table; name it with "
            f"{name_roles(point=...)}. Columns: {listed(draft.names)}"
        )
    if not values:
        return draft
    if not flagged and _reads_wide([name for name in free if name not in values]):
        return draft
    if len(values) > 1:
        raise two_readings("point", values)
    for role, names in matching.items():
        if len(names) > 1:
            raise two_readings(role, names)
        draft = draft.claim(role, names)
        note = "if its cells are levels or draws of a long table"
        draft = draft.note(dict.fromkeys(names, note))
    return draft if "point" in draft.columns else draft.claim("point", values)


def _reads_wide(names: Sequence[str]) -> bool:
    """Whether some of these columns are a prediction other than a point forecast."""
    try:
        roles = _guess_prediction(_Draft.of(names, {})).roles
    except InputError:
        return True  # which is told when it is read
    return any(roles[role] for role in _PREDICTION if role not in ("point", "mean"))


def _guess_recalibrated(draft: _Draft) -> _Draft:
    """What recalibration made goes before what it was made of; the same draft if there is none.

    A point forecast serves on where no recalibrated mean stands in its place.
    """
    free, flags = draft.free, draft.flags
    pairs = [(n.removeprefix(RECALIBRATED), n) for n in free if n.startswith(RECALIBRATED)]
    if not pairs or any(flags.get(name) for name in _PREDICTION):
        return draft
    silent: Any = {name: "" for name in _PREDICTION if name in flags}
    corrected = _renamed(pairs, silent | {"coverage": flags.get("coverage")})
    if not corrected.claimed:
        return draft
    plain = _read_flags([n for n in free if not n.startswith(RECALIBRATED)], silent)
    for step in _PREDICTION_STEPS:
        with suppress(InputError):  # names of what is not read may be unclear
            plain = step(plain)
    for role in _PREDICTION:
        draft = draft.claim(role, corrected.roles[role])
    roles = corrected.roles
    draft = draft.settle(coverages=roles.coverages, levels=roles.levels, law=roles.law)
    if not (roles["mean"] or roles["point"] or roles.law):
        draft = draft.claim("point", plain.roles["point"])
    replaced = [name for name in draft.free if name in plain.claimed]
    notes = dict.fromkeys(replaced, "the recalibrated columns are read instead")
    return draft.take(replaced).note({**roles.notes, **notes})


def _guess_pairs(draft: _Draft) -> _Draft:
    """The free columns whose names say that they are ends of intervals."""
    if "lower" in draft.columns:
        return draft
    pairs = guessed_pairs(draft.free, draft.flags.get("coverage"))
    if pairs and pairs[0].coverage is None:
        usual, why = usual_coverage(draft.names)
        if why:
            how = name_roles(coverage=float(usual))
            draft = draft.note({pairs[0].lower: f"{how}, {why}"})
    return draft.claim_pairs(pairs)


def _guess_law(draft: _Draft) -> _Draft:
    """The free columns whose names say that they are parameters of a law."""
    stated = "law" in draft.flags or draft.roles["sd"]
    law = None if stated else guessed_law(draft.free)
    return draft if law is None else draft.claim_law(law)


def _guess_levels(draft: _Draft) -> _Draft:
    """The free columns whose names say that they are quantiles."""
    if "quantiles" in draft.columns:
        return draft
    levels, notes = guessed_levels(draft.free)
    return draft.note(notes).claim_levels(levels)


def _settle_normal_law(draft: _Draft) -> _Draft:
    """Settle mean, sd and point, as they go together."""
    roles = draft.roles
    mean, sd, point = (roles[role] for role in ("mean", "sd", "point"))
    if roles["variance"]:
        if roles.law is not None or (sd and "sd" not in roles.guessed):
            other = "sd=" if roles.law is None else "law="
            raise InputError(f"{other} and variance= both define a spread: give only one of them")
        if not mean and not point:
            raise InputError("variance needs a mean or a point forecast")
        return replace(draft, roles=roles.having({"mean": mean or point, "sd": ()}))
    unused = {}
    if sd and roles.law is not None:
        if "sd" not in roles.guessed:
            raise InputError("law= and sd= both define a distribution: give only one of them")
        named = "through its parameters" if "law" in roles.guessed else "by name"
        unused[sd[0]] = f"not used: the distribution is given {named}"
        sd = ()
    if sd and not mean and not point:
        if "sd" not in roles.guessed:
            raise InputError("sd needs a mean or a point forecast")
        unused[sd[0]] = "not used: an sd needs a mean or a point forecast"
        sd = ()
    if not sd and mean and point and mean != point:
        unused[mean[0]] = "not used: a mean without an sd, and there is a point forecast"
    settled = (mean or point, sd, point) if sd else ((), (), point or mean)
    columns = dict(zip(("mean", "sd", "point"), settled, strict=True))
    return replace(draft, roles=roles.having(columns, unused))


_PREDICTION_STEPS: Final[tuple[Callable[[_Draft], _Draft], ...]] = (
    *(_guess_pairs, _guess_law, lambda draft: draft.guess("mean", "sd", "point")),
    *(_guess_levels, lambda draft: draft.guess("samples"), _settle_normal_law),
)


def _guess_prediction(draft: _Draft) -> _Draft:
    """The free columns whose names say that they are a prediction."""
    return _after(draft, _PREDICTION_STEPS)


def _after(draft: _Draft, steps: Iterable[Callable[[_Draft], _Draft]]) -> _Draft:
    """What steps make of a draft, one after the other."""
    for step in steps:
        draft = step(draft)
    return draft


def _renamed(pairs: Sequence[tuple[str, str]], flags: Mapping[str, Any]) -> _Draft:
    """The prediction that columns would be by other names, each of which comes with its own."""
    columns = dict(pairs)
    draft = _guess_prediction(_read_flags([plain for plain, _ in pairs], flags))
    roles = draft.roles
    law = roles.law and LawColumns(
        roles.law.name, {key: columns[str(plain)] for key, plain in roles.law.parameters.items()}
    )
    return draft.settle(
        columns={role: tuple(columns[n] for n in names) for role, names in roles.columns.items()},
        notes={columns[plain]: note for plain, note in roles.notes.items()},
        law=law,
    )


def _guess_families(draft: _Draft) -> tuple[_Draft, list[tuple[str, Roles]]]:
    """The predictions of several models that columns are named after, by model.

    None where there is any other prediction.
    """
    families: list[tuple[str, Roles]] = []
    if any(draft.flags.get(role) or draft.roles[role] for role in _PREDICTION):
        return draft, families
    for model, names in (nixtla(draft.free) or alike(draft.free)).items():
        with within(f"the columns of the model {quoted(model)} ({listed(names)})"):
            pairs = [(plain, name) for name, plain in names.items()]
            renamed = _renamed(pairs, {"coverage": draft.flags.get("coverage")})
        families.append((model, renamed.roles))
        draft = draft.take(names)
    return draft, families


def _point_columns(draft: _Draft) -> tuple[str, ...]:
    """The columns that are each a model's point forecast."""
    rival_roles = [name for name in _PREDICTION if name != "points" and draft.flags.get(name)]
    if rival_roles and draft.stated("points"):
        raise InputError(
            f"points has one model per column, and {rival_roles[0]} is the prediction of a "
            "single model: give only one of them"
        )
    return draft.expanded("points", draft.free)


# ---- what is left, and the roles as decided -----------------------------------------------------


def _guess_inputs(draft: _Draft) -> _Draft:
    """The columns of inputs."""
    draft = draft.guess("embedding")
    if "features" in draft.flags:
        columns = draft.expanded("features", draft.free)
        draft = draft.claim("features", columns, guessed=False)
    return draft.guess("ease", "features")


def _note_unused(draft: _Draft) -> _Draft:
    """Say why columns are not read, or how they might be."""
    idle = idle_columns(draft.names).items()
    notes = {name: why for name, why in idle if name not in draft.claimed}
    spreads = {
        name: f"may be an uncertainty; use it with {name_roles(sd=name)} or "
        f"{name_roles(variance=name)}"
        for name in stated_spreads(draft.free)
    }
    confidences = {
        name: "a confidence needs a column of what was right, such as correct "
        f"({name_roles(y='correct')}); the probability of a positive class is "
        f"{name_roles(softmax=[name])}"
        for name in draft.free
        if normal_form(name) in classes.CONFIDENCES
    }
    notes = spreads | confidences | notes
    return draft.note({name: why for name, why in notes.items() if name not in draft.roles.notes})


def _finished(draft: _Draft, model: str, prediction: Roles) -> Roles:
    """What was decided of one model, whose prediction this is."""
    predicted = {role: names for role, names in prediction.columns.items() if role in _PREDICTION}
    columns = {**draft.columns, **predicted}
    weights = normal_form("".join(columns.get("weights", ())))
    roles = replace(
        draft.roles,
        model=model,
        columns={role: names for role, names in columns.items() if names},
        coverages=prediction.coverages,
        levels=prediction.levels,
        weights_kind=draft.flags.get("weights_kind")
        or ("importance" if weights.startswith("importance") else "frequency"),
        missing_values=stated_missing(draft.flags.get("missing_value")),
        guessed=draft.roles.guessed | prediction.guessed,
        notes={**draft.roles.notes, **prediction.notes},
    )
    _check(draft, roles)
    return roles


def _check(draft: _Draft, roles: Roles) -> None:
    """Raise `InputError` where there is no prediction, or a column contradicts itself."""
    predicted = _predicted(roles)
    if not predicted and roles.law is None:
        raise InputError(_ask_for_prediction(draft, roles))
    stated = any(roles[name] for name in _UNCERTAIN) or roles.law is not None or roles.classes
    if not stated and "lower" not in draft.flags:
        refuse_mean_intervals(draft.names)
    y = roles.column("y")
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


def _how_melted() -> str:
    """How to read a table with a row for each of its cells."""
    return (
        ". Give a melted table as it was before melting, or with "
        f"{name_roles(model='variable', point='value')}; if the variable has levels, pass "
        f"{name_roles(quantile_level='variable')}"
    )


_MARKS = ("_loc", "_weight_1")  # some parameter of every law that is not one of counts
_STEMS = {
    "weight": "w weight pi prob probability",
    "loc": "mean mu loc",
    "scale": "sd std sigma scale",
}
_PART = re.compile(
    rf"(?P<stem>{'|'.join(' '.join(_STEMS.values()).split())})_?(?P<number>\d+)", re.ASCII
)


def guessed_law(names: Sequence[str]) -> LawColumns | None:
    """The law whose parameters are in columns, if their names say so."""
    laws = [*_families(names), *_mixtures(names)]
    if len(laws) > 1:
        firsts = [str(next(iter(law.parameters.values()))) for law in laws]
        raise InputError(
            f"column names suggest {len(laws)} distributions (from {listed(firsts)} on), but law "
            f"must be one: pass {name_roles(law='NAME:PARAMETER=COLUMN,…')}, or "
            f"{name_roles(law='')}"
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
