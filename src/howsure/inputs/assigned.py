"""The roles of a table's columns, once they are decided, and how they are told."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from howsure.core.arrays import shortened
from howsure.core.errors import InputError
from howsure.inputs.roles import LONG, ROLES, Role

if TYPE_CHECKING:
    from howsure.inputs.encoders.encode import Encoder


@dataclass(frozen=True, slots=True)
class LawColumns:
    """A distribution of ``scipy.stats`` or of counts; for each parameter, a column or a number."""

    name: str
    parameters: Mapping[str, str | float]

    def columns(self) -> dict[str, str]:
        """The parameters that columns hold."""
        return {name: value for name, value in self.parameters.items() if isinstance(value, str)}


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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
        return bool(self["softmax"] or self["label_set"])

    def one(self, role: str) -> str | None:
        """The one column of a role, if there is one."""
        return next(iter(self[role]), None)

    def only(self, wanted: Callable[[Role], bool]) -> Roles:
        """The same for some roles alone."""
        names = {role.name for role in ROLES if wanted(role)}
        return replace(self, columns={n: held for n, held in self.columns.items() if n in names})

    def uses(self) -> Iterator[tuple[Role, str, str]]:
        """Each use of a column: the role, the column, and the role in words."""
        for role in ROLES:
            for place, column in enumerate(self[role.name]):
                yield role, column, self._words(role, place)

    def by_column(self) -> dict[str, list[str]]:
        """For each column that is used, its roles in words."""
        said: dict[str, list[str]] = {}
        for _, column, words in self.uses():
            said.setdefault(column, []).append(words)
        return said

    def explain(self, names: Iterable[str], source: str = "") -> tuple[ColumnUse, ...]:
        """How each column is read, in the table's order, ignored ones too."""
        return explain_models(names, [self], source)

    def _words(self, role: Role, place: int) -> str:
        told = role.told or role.name
        if role.name == "point" and self.long:
            return "prediction, a part in each row"
        if role.name in ("lower", "upper"):
            share = self.coverages[place]
            return told if share is None else f"{told} at {100 * share:g} %"
        if role.name == "label_set":
            (share,) = self.coverages
            return told if share is None else f"{told} at {100 * share:g} %"
        if role.name == "softmax":
            return f"{told} {self.labels[place]}"
        if role.name == "quantiles":
            level = self.levels[place]
            bounds = {0.0: "lower bound of y", 1.0: "upper bound of y"}
            return bounds.get(level, f"{told} {level:g}")
        if role.name == "law" and self.law is not None:
            return f"{list(self.law.columns())[place]} {told} {self.law.name}"
        if self.encoder is not None and role.name == "encode":
            return f"{told} {encoder_name(self.encoder)}"
        return told


def explain_models(
    names: Iterable[str], models: Sequence[Roles], source: str = ""
) -> tuple[ColumnUse, ...]:
    """How each column of a table is read, in its order, and why the ignored ones are."""
    said: dict[str, dict[str, None]] = {}
    notes: dict[str, str] = {}
    for roles in models:
        for role, column, words in roles.uses():
            own = role.of == "belief" and roles.model
            said.setdefault(column, {})[f"{words} of {roles.model}" if own else words] = None
        notes.update(roles.notes)
    unit = models[0].long and not models[0]["rows"]

    def use(name: str) -> ColumnUse:
        note = notes.get(name, "")
        if name in said:
            return ColumnUse(name, ", ".join(said[name]), note, source)
        if unit and name.strip() and not note:
            note = "unless it numbers the rows or follows the level"
            return ColumnUse(name, "tells cases apart", note, source)
        return ColumnUse(name, "ignored", note or _why_ignored(name), source)

    return tuple(map(use, names))


def _why_ignored(name: str) -> str:
    if not name.strip():
        return "it has no name"
    word = shlex.quote(name)
    return f"name not recognised; --groups {word} or --features {word} would use it"


def encoder_name(encoder: Encoder) -> str:
    """What to call an encoder."""
    if isinstance(encoder, str):
        return encoder
    return str(getattr(encoder, "__name__", type(encoder).__name__))


def parse_encode(given: Any) -> tuple[str, Encoder] | None:
    """The column to encode and its encoder; None where none is given."""
    if given is None or (isinstance(given, Sized) and len(given) == 0):
        return None
    if isinstance(given, Mapping):
        pairs = list(given.items())
    else:
        parts = [given] if isinstance(given, str) else given
        if not isinstance(parts, Sequence) or not all(isinstance(part, str) for part in parts):
            raise InputError(f"encode must be a mapping or COLUMN=ENCODER, got {shortened(given)}")
        pairs = [(column, encoder) for column, _, encoder in (p.partition("=") for p in parts)]
    if len(pairs) > 1:
        raise InputError(f"encode must name one column, got {len(pairs)}")
    column, encoder = pairs[0]
    if not isinstance(column, str) or not column or (isinstance(encoder, str) and not encoder):
        raise InputError(
            "encode must be COLUMN=ENCODER, such as note=transformers:FOLDER, got "
            f"{shortened(given)}"
        )
    return column, encoder


def parse_law(text: str) -> LawColumns:
    """Read ``NAME:PARAMETER=COLUMN,…``; a number may stand for a column."""
    name, _, rest = text.partition(":")
    parameters: dict[str, str | float] = {}
    for part in rest.split(",") if rest else ():
        parameter, equals, column = part.partition("=")
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
