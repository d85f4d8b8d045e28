"""Which column plays which role: by flags first, by names where no flag speaks."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from howsure.core.errors import InputError
from howsure.core.registry import unknown
from howsure.inputs.assigned import LawColumns, Roles, parse_encode, parse_law
from howsure.inputs.laws import guessed_law
from howsure.inputs.naming import normal_form
from howsure.inputs.pairing import (
    IntervalColumns,
    as_number,
    flagged_levels,
    flagged_pairs,
    guessed_levels,
    guessed_pairs,
    two_readings,
)
from howsure.inputs.roles import BY_NAME, ROLES, Columns, Names
from howsure.inputs.source import listed, quoted

_VARIANCE: Final = frozenset({"var", "variance", "pred_var", "y_var", "predictive_variance"})


def assign_roles(names: Sequence[str], said: Columns | None = None) -> Roles:
    """Decide the role of each column.

    What the caller says decides; where that is silent, the column's name does
    (`howsure.inputs.roles.ROLES` holds the names, `howsure.inputs.laws` those of a law's
    parameters). A point forecast beside an sd serves as the mean of a normal law; a mean without
    an sd is a point forecast.

    Parameters
    ----------
    names : sequence of str
        The table's column names.
    said : mapping, optional
        What the caller says, by role; None leaves a role to the names, ``""`` leaves it empty.

    Returns
    -------
    Roles

    Raises
    ------
    InputError
        If what is said names no role or no column, no column is y, none is a prediction, or
        names allow two readings; the message tells the flag to use.

    Examples
    --------
    >>> roles = assign_roles(["y", "pred", "std", "region"], {"groups": "region"})
    >>> roles["mean"], roles["sd"], roles["groups"]
    (('pred',), ('std',), ('region',))
    """
    return _Assignment(names, said or {}).roles()


class _Assignment:
    """The work of `assign_roles`: flags claim their columns before any name is looked at."""

    def __init__(self, names: Sequence[str], said: Columns) -> None:
        self._names = tuple(names)
        self._known = frozenset(names)
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
        for role in ROLES:
            if role.many or role.kind is None or role.name in ("encode", "law"):
                continue
            if role.name in self._said:
                self._columns[role.name] = self._named(role.name, self._said[role.name])
        self._features = self._split("features")
        for name in self._features:
            if not self._is_pattern(name):
                self._column(name, "features")
        for many in ("samples", "embedding", "groups"):
            if many in self._said:
                self._columns[many] = self._expanded(self._split(many), many, self._names)
        self._encoder = self._named_encode()
        self._named_law()
        if "lower" in self._said or "upper" in self._said:
            lowers = [self._column(name, "lower") for name in self._split("lower")]
            uppers = [self._column(name, "upper") for name in self._split("upper")]
            self._set_pairs(flagged_pairs(self._said.get("coverage"), lowers, uppers))
        if "quantiles" in self._said:
            self._set_levels(flagged_levels(self._said["quantiles"], self._column))

    def roles(self) -> Roles:
        """Let the names decide what is still open."""
        for entry in ROLES:
            if entry.of in ("outcome", "order", "rows") and entry.guessable and not entry.many:
                self._guess(entry.name)
        if not self._columns.get("y"):
            raise InputError(
                "y must be a column of the table, and no column's name says that it is: say "
                f"y=COLUMN (--y COLUMN); the columns are {listed(self._names)}"
            )
        self._guess("groups")
        if "lower" not in self._columns:
            pairs = guessed_pairs(self._free(), self._said.get("coverage"))
            self._set_pairs(pairs, guessed=bool(pairs))
        self._guess_law()
        for role in ("mean", "sd", "point"):
            self._guess(role)
        if "quantiles" not in self._columns:
            levels, notes = guessed_levels(self._free())
            self._notes.update(notes)
            self._set_levels(levels, guessed=bool(levels))
        self._guess("samples")
        self._guess("embedding")
        if "features" in self._said:
            self._columns["features"] = self._expanded(self._features, "features", self._free())
        self._guess("features")
        self._normal_law()
        for name in self._free():
            if normal_form(name) in _VARIANCE:
                self._notes[name] = "a variance is not read: give its square root as sd"
        weighed = normal_form("".join(self._columns.get("weights", ())))
        made = Roles(
            columns={name: held for name, held in self._columns.items() if held},
            coverages=self._coverages,
            levels=self._levels,
            law=self._law,
            encoder=self._encoder,
            weights_kind=self._said.get("weights_kind")
            or ("importance" if weighed.startswith("importance") else "frequency"),
            guessed=frozenset(self._guessed),
            notes=self._notes,
        )
        self._check(made)
        return made

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

    def _named(self, role: str, name: Any) -> tuple[str, ...]:
        if not isinstance(name, str):
            raise InputError(f"{role} must be the name of a column, got {name!r}")
        return (self._column(name, role),) if name else ()

    def _split(self, role: str) -> list[str]:
        given: Names = self._said.get(role)
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

    def _named_encode(self) -> Any:
        """The encoder, whose column leaves no other embedding."""
        found = parse_encode(self._said.get("encode"))
        if found is None:
            return None
        if self._columns.get("embedding"):
            raise InputError("encode and embedding both give an embedding: give one of them")
        self._columns |= {"embedding": (), "encode": (self._column(found[0], "encode"),)}
        return found[1]

    def _named_law(self) -> None:
        text = self._said.get("law")
        if not text:
            return
        if not isinstance(text, str):
            raise InputError(f"law must be NAME:PARAMETER=COLUMN,…, got {text!r}")
        law = parse_law(text)
        parameters: dict[str, str | float] = {}
        for parameter, value in law.parameters.items():
            number = None if value in self._known else as_number(str(value))
            parameters[parameter] = (
                self._column(str(value), f"law parameter {parameter}") if number is None else number
            )
        self._set_law(LawColumns(law.name, parameters))

    def _set_law(self, law: LawColumns, *, guessed: bool = False) -> None:
        self._law = law
        self._claim("law", law.columns().values(), guessed=guessed)

    def _guess(self, role: str) -> None:
        """The free columns whose names say that they play a role of which no flag speaks."""
        if role in self._columns:
            return
        entry = BY_NAME[role]
        found = [name for name in self._free() if entry.matches(normal_form(name))]
        if len(found) > 1 and not entry.many:
            raise two_readings(role, found, f"{role}=COLUMN (--{role} COLUMN)")
        self._claim(role, found, guessed=True)

    def _guess_law(self) -> None:
        """The law that columns name, where neither a law nor an sd is given by a flag."""
        if "law" in self._said or self._columns.get("sd"):
            return
        law = guessed_law(self._free())
        if law is not None:
            self._set_law(law, guessed=True)

    def _normal_law(self) -> None:
        """Settle mean, sd and point, as they go together."""
        mean, sd, point = (self._columns[role] for role in ("mean", "sd", "point"))
        if sd and self._law is not None:
            if "sd" not in self._guessed:
                raise InputError("a law and an sd are two distributions: give one of them")
            named = "by its parameters" if "law" in self._guessed else "by name"
            self._notes[sd[0]] = f"the law is given {named}"
            sd = ()
        if sd and not mean and not point:
            if "sd" not in self._guessed:
                raise InputError("sd must stand beside a mean or a point forecast, got neither")
            self._notes[sd[0]] = "an sd without a mean or a point forecast"
            sd = ()
        if not sd and mean and point and mean != point:
            self._notes[mean[0]] = "a mean without an sd, beside a point forecast"
        settled = (mean or point, sd, point) if sd else ((), (), point or mean)
        self._columns |= dict(zip(("mean", "sd", "point"), settled, strict=True))

    def _check(self, roles: Roles) -> None:
        """Raise `InputError` where there is no prediction, or a column contradicts itself."""
        held = [column for role, column, _ in roles.uses() if role.of == "belief"]
        if not held and roles.law is None:
            said = "; ".join(f"{quoted(name)}: {note}" for name, note in self._notes.items())
            raise InputError(
                "a prediction is needed, and no column's name says that it is one: say "
                "point=COLUMN, lower= and upper=, mean= and sd=, quantiles=, samples= or law= "
                f"(--point, …); the columns are {listed(self._names)}"
                + (f" ({said})" if said else "")
            )
        y = roles["y"][0]
        if y in held:
            raise InputError(f"y must not be part of a prediction, got {quoted(y)} for both")
        if roles["mean"] and roles["mean"] == roles["sd"]:
            mean = quoted(roles["mean"][0])
            raise InputError(f"mean and sd must be two columns, got {mean} for both")
        if any(pair[0] == pair[1] for pair in zip(roles["lower"], roles["upper"], strict=True)):
            raise InputError("lower and upper must be two columns, got one for both")
