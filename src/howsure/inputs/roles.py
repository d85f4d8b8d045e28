"""Roles of columns: what a caller may say, what was decided, and how it is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field

from howsure.core.arrays import shortened
from howsure.core.errors import InputError
from howsure.inputs.encoders.encode import Encoder

Names = str | Sequence[str] | None
Encode = Mapping[str, Encoder] | str | Sequence[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """What the caller says of the columns; None leaves a role to the names, "" leaves it empty.

    Attributes
    ----------
    y, point, mean, sd, weights, cluster, time, model, rows, image : str, optional
        A column's name; `image` holds paths of image files.
    lower, upper : str or sequence of str, optional
        Columns of the ends of intervals, in one order.
    coverage : float or sequence of float, optional
        Nominal coverage of each pair of them.
    quantiles : mapping of float to str, or sequence of "LEVEL=COLUMN", optional
        Columns of quantiles.
    samples, embedding, groups, features : str or sequence of str, optional
        Names or patterns such as ``s_*``; a text may hold several with commas between. A pattern
        of features takes columns that have no other role. A column of the embedding may hold a
        list of numbers in each cell.
    encode : mapping of str to encoder, "COLUMN=ENCODER", or a sequence of one such, optional
        A column of texts or of paths of images, and what turns it into the embedding.
    law : str, optional
        ``NAME:PARAMETER=COLUMN,…``; a number may stand for a column.
    """

    y: str | None = None
    point: str | None = None
    lower: Names = None
    upper: Names = None
    coverage: float | Sequence[float] | None = None
    mean: str | None = None
    sd: str | None = None
    quantiles: Mapping[float, str] | Names = None
    samples: Names = None
    law: str | None = None
    groups: Names = None
    features: Names = None
    embedding: Names = None
    encode: Encode = None
    image: str | None = None
    weights: str | None = None
    cluster: str | None = None
    time: str | None = None
    model: str | None = None
    rows: str | None = None


@dataclass(frozen=True, slots=True)
class IntervalColumns:
    """Two columns that are the ends of intervals, and their nominal coverage if it is known."""

    lower: str
    upper: str
    coverage: float | None


@dataclass(frozen=True, slots=True)
class LawColumns:
    """A law of ``scipy.stats`` or of counts; for each parameter, a column or a number."""

    name: str
    parameters: Mapping[str, str | float]


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
    """The column of each role; frozen.

    Attributes
    ----------
    y, point, mean, sd, weights, cluster, time, model, rows, image : str, optional
        Column names; `y` is empty where rows need no label. `mean` is set where `sd` is: then
        the two are a normal law.
    intervals : tuple of IntervalColumns
        Pairs of ends.
    quantiles : tuple of (float, str)
        Levels and their columns.
    samples, groups, features, embedding : tuple of str
        Column names.
    law : LawColumns, optional
        A law by name.
    encode : (str, encoder), optional
        The column that becomes the embedding, and what encodes it.
    guessed : frozenset of str
        Roles that no flag gave.
    notes : mapping of str to str
        What to say of a column.
    """

    y: str
    point: str | None = None
    intervals: tuple[IntervalColumns, ...] = ()
    mean: str | None = None
    sd: str | None = None
    quantiles: tuple[tuple[float, str], ...] = ()
    samples: tuple[str, ...] = ()
    law: LawColumns | None = None
    groups: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    embedding: tuple[str, ...] = ()
    encode: tuple[str, Encoder] | None = None
    image: str | None = None
    weights: str | None = None
    cluster: str | None = None
    time: str | None = None
    model: str | None = None
    rows: str | None = None
    guessed: frozenset[str] = frozenset()
    notes: Mapping[str, str] = field(default_factory=dict)

    def by_column(self) -> dict[str, list[str]]:
        """For each column that is used, its roles in words.

        Examples
        --------
        >>> Roles(y="y", intervals=(IntervalColumns("lo", "hi", 0.9),)).by_column()
        {'y': ['y'], 'lo': ['lower end at 90 %'], 'hi': ['upper end at 90 %']}
        """
        said: dict[str, list[str]] = {}

        def say(column: str | float | None, role: str) -> None:
            if isinstance(column, str):
                said.setdefault(column, []).append(role)

        say(self.y, "y")
        say(self.point, "point forecast")
        for pair in self.intervals:
            at = "" if pair.coverage is None else f" at {100 * pair.coverage:g} %"
            say(pair.lower, f"lower end{at}")
            say(pair.upper, f"upper end{at}")
        say(self.mean, "mean of a normal law")
        say(self.sd, "sd of a normal law")
        for level, column in self.quantiles:
            say(column, f"quantile {level:g}")
        for parameter, value in (self.law.parameters if self.law else {}).items():
            say(value, f"{parameter} of the law {self.law.name if self.law else ''}")
        many = {"sample": self.samples, "group": self.groups, "feature": self.features}
        for role, columns in {**many, "embedding": self.embedding}.items():
            for column in columns:
                say(column, role)
        if self.encode is not None:
            column, encoder = self.encode
            say(column, f"encoded by {encoder_name(encoder)}")
        say(self.image, "path of an image")
        for role in ("weights", "cluster", "time", "model"):
            say(getattr(self, role), role)
        say(self.rows, "name of the row")
        return said

    def explain(self, names: Iterable[str], source: str = "") -> tuple[ColumnUse, ...]:
        """How each column is read, in the table's order, ignored ones too."""
        said = self.by_column()
        return tuple(
            ColumnUse(
                name, ", ".join(said.get(name, ["ignored"])), self.notes.get(name, ""), source
            )
            for name in names
        )


def encoder_name(encoder: Encoder) -> str:
    """What to call an encoder.

    Examples
    --------
    >>> encoder_name("transformers:folder"), encoder_name(len)
    ('transformers:folder', 'len')
    """
    if isinstance(encoder, str):
        return encoder
    return str(getattr(encoder, "__name__", type(encoder).__name__))


def parse_encode(given: Encode) -> tuple[str, Encoder] | None:
    """The column to encode and its encoder; None where none is given.

    Raises
    ------
    InputError
        If it is written otherwise, or there is more than one column.

    Examples
    --------
    >>> parse_encode("note=transformers:models/small"), parse_encode("")
    (('note', 'transformers:models/small'), None)
    """
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
    """Read ``NAME:PARAMETER=COLUMN,…``; a number may stand for a column.

    Raises
    ------
    InputError
        If it is written otherwise, or a parameter is given twice.

    Examples
    --------
    >>> dict(parse_law("t:df=4,loc=mu,scale=s").parameters)
    {'df': '4', 'loc': 'mu', 'scale': 's'}
    """
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
