"""Which column plays which role: by flags first, by names where no flag speaks."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

from howsure.core.errors import InputError
from howsure.inputs.encoders.encode import Encoder
from howsure.inputs.laws import guessed_law
from howsure.inputs.naming import PATTERNS, SYNONYMS, normal_form
from howsure.inputs.pairing import (
    as_number,
    flagged_levels,
    flagged_pairs,
    guessed_levels,
    guessed_pairs,
    two_readings,
)
from howsure.inputs.roles import (
    Flags,
    IntervalColumns,
    LawColumns,
    Names,
    Roles,
    parse_encode,
    parse_law,
)
from howsure.inputs.source import listed, quoted

_VARIANCE: Final = frozenset({"var", "variance", "pred_var", "y_var", "predictive_variance"})


def assign_roles(names: Sequence[str], flags: Flags | None = None) -> Roles:
    """Decide the role of each column.

    A flag decides; where it is silent, the column's name does (`howsure.inputs.naming` holds the
    names, `howsure.inputs.laws` those of a law's parameters). A point forecast beside an sd serves
    as the mean of a normal law; a mean without an sd is a point forecast.

    Parameters
    ----------
    names : sequence of str
        The table's column names.
    flags : Flags, optional
        What the caller says.

    Returns
    -------
    Roles

    Raises
    ------
    InputError
        If a flag names no column, no column is y, none is a prediction, or names allow two
        readings; the message tells the flag to use.

    Examples
    --------
    >>> roles = assign_roles(["y", "pred", "std", "region"], Flags(groups="region"))
    >>> roles.mean, roles.sd, roles.groups
    ('pred', 'std', ('region',))
    """
    return _Assignment(names, flags or Flags()).roles()


class _Assignment:
    """The work of `assign_roles`: flags claim their columns before any name is looked at."""

    def __init__(self, names: Sequence[str], flags: Flags) -> None:
        self._names = tuple(names)
        self._known = frozenset(names)
        self._flags = flags
        self._claimed: set[str] = set()
        self._guessed: set[str] = set()
        self._notes: dict[str, str] = {}
        self._single = {role: self._named(role) for role in SYNONYMS}
        self._features = self._split(flags.features, "features")
        for name in self._features:
            if not self._is_pattern(name):
                self._column(name, "features")
        self._many: dict[str, tuple[str, ...]] = {}
        for role in ("samples", "embedding", "groups"):
            given: Names = getattr(flags, role)
            if given is not None:
                self._many[role] = self._expanded(self._split(given, role), role, self._names)
        self._encode = self._named_encode()
        self._image = self._named("image")
        self._law = self._named_law()
        self._pairs = self._named_pairs()
        self._levels = (
            None if flags.quantiles is None else flagged_levels(flags.quantiles, self._column)
        )

    def roles(self) -> Roles:
        """Let the names decide what is still open."""
        for role in ("y", "model", "rows", "time", "cluster", "weights"):
            self._guess(role)
        y = self._single["y"]
        if y is None:
            raise InputError(
                "y must be a column of the table, and no column's name says that it is: say "
                f"y=COLUMN (--y COLUMN); the columns are {listed(self._names)}"
            )
        self._guess_matching("groups")
        pairs = self._guess_pairs() if self._pairs is None else self._pairs
        self._guess_law()
        for role in ("mean", "sd", "point"):
            self._guess(role)
        levels = self._guess_levels() if self._levels is None else self._levels
        self._guess_matching("samples")
        if self._encode is None:
            self._guess_matching("embedding")
        if self._flags.features is None:
            self._guess_matching("features")
        else:
            self._many["features"] = self._expanded(self._features, "features", self._free())
        mean, sd, point = self._normal_law()
        self._note_variance()
        made = Roles(
            y=y,
            point=point,
            intervals=pairs,
            mean=mean,
            sd=sd,
            quantiles=tuple(sorted(levels.items())),
            samples=self._many["samples"],
            law=self._law,
            groups=self._many["groups"],
            features=self._many["features"],
            embedding=self._many["embedding"],
            encode=self._encode,
            image=self._image,
            weights=self._single["weights"],
            cluster=self._single["cluster"],
            time=self._single["time"],
            model=self._single["model"],
            rows=self._single["rows"],
            guessed=frozenset(self._guessed),
            notes=self._notes,
        )
        self._check(made)
        return made

    def _free(self) -> list[str]:
        return [name for name in self._names if name not in self._claimed]

    def _column(self, name: str, flag: str) -> str:
        """The column that a flag names, spaces at its ends aside."""
        trimmed = (
            [name]
            if name in self._known
            else [column for column in self._names if column.strip() == name.strip()]
        )
        if len(trimmed) == 1:
            self._claimed.add(trimmed[0])
            return trimmed[0]
        near = difflib.get_close_matches(name, self._names[:1000], n=1)
        hint = f"; perhaps {quoted(near[0])}" if near else ""
        raise InputError(
            f"{flag} must name a column of the table, got {quoted(name)}{hint}; the columns are "
            f"{listed(self._names)}"
        )

    def _named(self, role: str) -> str | None:
        name = getattr(self._flags, role)
        if name is not None and not isinstance(name, str):
            raise InputError(f"{role} must be the name of a column, got {name!r}")
        return self._column(name, role) if name else None

    def _split(self, given: Names, role: str) -> list[str]:
        if given is None:
            return []
        if isinstance(given, str):
            given = [given] if given in self._known else given.split(",")
        if not isinstance(given, Sequence) or not all(isinstance(item, str) for item in given):
            raise InputError(f"{role} must hold names of columns, got {given!r}")
        return [item for item in given if item]

    def _is_pattern(self, name: str) -> bool:
        return name not in self._known and any(mark in name for mark in "*?[")

    def _expanded(self, given: Sequence[str], role: str, pool: Sequence[str]) -> tuple[str, ...]:
        """The columns that names stand for, and patterns among the columns of the pool."""
        found: dict[str, None] = {}
        for item in given:
            matches = [self._column(item, role)] if not self._is_pattern(item) else []
            matches = matches or [name for name in pool if name and fnmatchcase(name, item)]
            if not matches:
                raise InputError(
                    f"{role} must match a column, got the pattern {quoted(item)}; the columns "
                    f"are {listed(self._names)}"
                )
            found.update(dict.fromkeys(matches))
        self._claimed.update(found)
        return tuple(found)

    def _named_encode(self) -> tuple[str, Encoder] | None:
        """The column to encode, which leaves no other embedding."""
        found = parse_encode(self._flags.encode)
        if found is None:
            return None
        if self._many.get("embedding"):
            raise InputError("encode and embedding both give an embedding: give one of them")
        self._many["embedding"] = ()
        return self._column(found[0], "encode"), found[1]

    def _named_law(self) -> LawColumns | None:
        if not self._flags.law:
            return None
        if not isinstance(self._flags.law, str):
            raise InputError(f"law must be NAME:PARAMETER=COLUMN,…, got {self._flags.law!r}")
        law = parse_law(self._flags.law)
        parameters: dict[str, str | float] = {}
        for parameter, value in law.parameters.items():
            text = str(value)
            number = None if text in self._known else as_number(text)
            parameters[parameter] = (
                self._column(text, f"law parameter {parameter}") if number is None else number
            )
        return LawColumns(law.name, parameters)

    def _named_pairs(self) -> tuple[IntervalColumns, ...] | None:
        if self._flags.lower is None and self._flags.upper is None:
            return None
        lowers = [self._column(n, "lower") for n in self._split(self._flags.lower, "lower")]
        uppers = [self._column(n, "upper") for n in self._split(self._flags.upper, "upper")]
        return flagged_pairs(self._flags, lowers, uppers)

    def _guess(self, role: str) -> None:
        if self._single[role] is not None or getattr(self._flags, role) == "":
            return
        found = [name for name in self._free() if normal_form(name) in SYNONYMS[role]]
        if len(found) > 1:
            raise two_readings(role, found, f"{role}=COLUMN (--{role} COLUMN)")
        if found:
            self._single[role] = found[0]
            self._claimed.add(found[0])
            self._guessed.add(role)

    def _guess_matching(self, role: str) -> None:
        if role in self._many:
            return
        found = tuple(name for name in self._free() if PATTERNS[role].fullmatch(normal_form(name)))
        self._many[role] = found
        self._claimed.update(found)
        if found:
            self._guessed.add(role)

    def _guess_pairs(self) -> tuple[IntervalColumns, ...]:
        pairs = guessed_pairs(self._free(), self._flags)
        self._claimed.update(name for pair in pairs for name in (pair.lower, pair.upper))
        if pairs:
            self._guessed.add("intervals")
        return pairs

    def _guess_law(self) -> None:
        """The law that columns name, where neither a law nor an sd is given by a flag."""
        if self._flags.law is not None or self._single["sd"] is not None:
            return
        self._law = guessed_law(self._free())
        if self._law is not None:
            columns = self._law.parameters.values()
            self._claimed.update(name for name in columns if isinstance(name, str))
            self._guessed.add("law")

    def _guess_levels(self) -> dict[float, str]:
        levels, notes = guessed_levels(self._free())
        self._claimed.update(levels.values())
        self._notes.update(notes)
        if levels:
            self._guessed.add("quantiles")
        return levels

    def _normal_law(self) -> tuple[str | None, str | None, str | None]:
        """Mean, sd and point, as they go together."""
        mean, sd, point = (self._single[role] for role in ("mean", "sd", "point"))
        if sd is not None and self._law is not None:
            if "sd" not in self._guessed:
                raise InputError("a law and an sd are two distributions: give one of them")
            named = "by its parameters" if "law" in self._guessed else "by name"
            self._notes[sd] = f"the law is given {named}"
            sd = None
        if sd is not None and mean is None and point is None:
            if "sd" not in self._guessed:
                raise InputError("sd must stand beside a mean or a point forecast, got neither")
            self._notes[sd] = "an sd without a mean or a point forecast"
            sd = None
        if sd is not None:
            return mean or point, sd, point
        if mean is not None and point is not None and mean != point:
            self._notes[mean] = "a mean without an sd, beside a point forecast"
        return None, None, point or mean

    def _note_variance(self) -> None:
        for name in self._free():
            if normal_form(name) in _VARIANCE:
                self._notes[name] = "a variance is not read: give its square root as sd"

    def _check(self, roles: Roles) -> None:
        """Raise `InputError` where there is no prediction, or a column contradicts itself."""
        held = [name for pair in roles.intervals for name in (pair.lower, pair.upper)]
        held += [name for name in (roles.point, roles.mean, roles.sd) if name is not None]
        held += [*roles.samples, *(column for _, column in roles.quantiles)]
        parameters = roles.law.parameters.values() if roles.law else ()
        held += [value for value in parameters if isinstance(value, str)]
        if not held and roles.law is None:
            said = "; ".join(f"{quoted(name)}: {note}" for name, note in self._notes.items())
            raise InputError(
                "a prediction is needed, and no column's name says that it is one: say "
                "point=COLUMN, lower= and upper=, mean= and sd=, quantiles=, samples= or law= "
                f"(--point, …); the columns are {listed(self._names)}"
                + (f" ({said})" if said else "")
            )
        if roles.y in held:
            raise InputError(f"y must not be part of a prediction, got {quoted(roles.y)} for both")
        if roles.mean is not None and roles.mean == roles.sd:
            raise InputError(f"mean and sd must be two columns, got {quoted(roles.mean)} for both")
        if any(pair.lower == pair.upper for pair in roles.intervals):
            raise InputError("lower and upper must be two columns, got one for both")
