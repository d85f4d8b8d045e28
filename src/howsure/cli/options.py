"""The options that say how a table is read, shared by every command that reads one."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_type_hints

import typer

if TYPE_CHECKING:
    from howsure.inputs import ColumnUse, Loaded
    from howsure.metrics.congruence.view import CongruenceOptions

R = TypeVar("R")
_READ = "How the columns are read"
_CONGRUENCE = "Conditional congruence"


def share(param: typer.CallbackParam, value: Any) -> Any:
    """Refuse, before any work, what is no share strictly between 0 and 1; several are a list."""
    from howsure.core.arrays import check_fraction

    for one in value if isinstance(value, list | tuple) else [value]:
        if one is not None:
            check_fraction(one, f"--{param.name}")
    return value


@dataclass(frozen=True)
class ReadOptions:
    """What the reader is told; every field is a flag of the same name."""

    y: Annotated[
        str | None, typer.Option("--y", help="Column of what happened.", rich_help_panel=_READ)
    ] = None
    point: Annotated[
        str | None, typer.Option(help="Column of the point forecast.", rich_help_panel=_READ)
    ] = None
    lower: Annotated[
        list[str], typer.Option(help="Column of lower ends; repeat.", rich_help_panel=_READ)
    ] = field(default_factory=list)
    upper: Annotated[
        list[str], typer.Option(help="Column of upper ends; repeat.", rich_help_panel=_READ)
    ] = field(default_factory=list)
    coverage: Annotated[
        list[float],
        typer.Option(
            help="Nominal coverage of the intervals, such as 0.9; repeat for several.",
            callback=share,
            rich_help_panel=_READ,
        ),
    ] = field(default_factory=list)
    at: Annotated[
        list[float],
        typer.Option(
            help="Coverage to assess, where it can be derived; repeat.",
            callback=share,
            rich_help_panel=_READ,
        ),
    ] = field(default_factory=list)
    mean: Annotated[
        str | None, typer.Option(help="Column of predicted means.", rich_help_panel=_READ)
    ] = None
    sd: Annotated[
        str | None,
        typer.Option(help="Column of predicted standard deviations.", rich_help_panel=_READ),
    ] = None
    quantile: Annotated[
        list[str],
        typer.Option(metavar="LEVEL=COL", help="A quantile column; repeat.", rich_help_panel=_READ),
    ] = field(default_factory=list)
    samples: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN", help="Sample columns, such as 's_*'.", rich_help_panel=_READ
        ),
    ] = None
    law: Annotated[
        str | None,
        typer.Option(
            metavar="NAME:PARAM=COL,…",
            help="A law of scipy.stats or of counts: t:df=nu,scale=s; double_poisson:mu=m,phi=p.",
            rich_help_panel=_READ,
        ),
    ] = None
    groups: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Columns that divide the rows.", rich_help_panel=_READ),
    ] = None
    features: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Columns of model inputs.", rich_help_panel=_READ),
    ] = None
    embedding: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN", help="Embedding columns, such as 'emb_*'.", rich_help_panel=_READ
        ),
    ] = None
    encode: Annotated[
        list[str],
        typer.Option(
            metavar="COL=ENCODER",
            help="Encode a column of texts or image paths, as text=transformers:FOLDER.",
            rich_help_panel=_READ,
        ),
    ] = field(default_factory=list)
    image: Annotated[
        str | None,
        typer.Option(
            help="Column of image paths: the best and worst are shown.", rich_help_panel=_READ
        ),
    ] = None
    weights: Annotated[
        str | None, typer.Option(help="Column of weights.", rich_help_panel=_READ)
    ] = None
    weights_kind: Annotated[
        Literal["frequency", "importance"] | None,
        typer.Option(help="What weights mean.", rich_help_panel=_READ),
    ] = None
    cluster: Annotated[
        str | None,
        typer.Option(help="Column whose equal rows are not independent.", rich_help_panel=_READ),
    ] = None
    time: Annotated[
        str | None, typer.Option(help="Column that orders the rows.", rich_help_panel=_READ)
    ] = None
    model: Annotated[
        str | None,
        typer.Option(help="Column that names the model of a row.", rich_help_panel=_READ),
    ] = None
    rows: Annotated[
        str | None, typer.Option("--row-id", help="Column of row names.", rich_help_panel=_READ)
    ] = None
    missing: Annotated[
        Literal["error", "drop"], typer.Option(help="Missing values.", rich_help_panel=_READ)
    ] = "error"
    crossing: Annotated[
        Literal["error", "sort"], typer.Option(help="Crossing quantiles.", rich_help_panel=_READ)
    ] = "error"
    encoding: Annotated[
        str | None, typer.Option(help="Text encoding of the file.", rich_help_panel=_READ)
    ] = None
    decimal: Annotated[
        Literal[".", ","],
        typer.Option(help="Decimal mark of text files.", rich_help_panel=_READ),
    ] = "."

    @property
    def assessed(self) -> list[float]:
        """The coverages to assess; empty leaves the choice to the content."""
        return self.at or self.coverage

    def load(self, source: Any) -> Loaded:
        """Read a file, or several, as these options say."""
        from howsure.inputs import load

        return load(source, **self._chosen())

    def explain(self, source: Any) -> tuple[ColumnUse, ...]:
        """How the columns would be read, from their names alone."""
        from howsure.inputs import Flags, explain

        chosen = self._chosen()
        flags = Flags(**{f.name: chosen[f.name] for f in dataclasses.fields(Flags)})
        return explain(source, flags, encoding=self.encoding, decimal=self.decimal)

    def _chosen(self) -> dict[str, Any]:
        chosen = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        del chosen["at"]
        chosen["quantiles"] = chosen.pop("quantile")
        for name in ("lower", "upper", "coverage", "quantiles", "encode"):
            chosen[name] = chosen[name] or None
        return chosen


@dataclass(frozen=True)
class CongruenceFlags:
    """What the conditional congruence error is told; every field is a flag."""

    gamma: Annotated[
        float | None,
        typer.Option(
            help="γ of the kernel of the inputs; from their variance if omitted.",
            rich_help_panel=_CONGRUENCE,
        ),
    ] = None
    regularization: Annotated[
        float, typer.Option(help="λ of the regression on the inputs.", rich_help_panel=_CONGRUENCE)
    ] = 0.1
    kernel: Annotated[
        Literal["auto", "rbf", "laplacian", "polynomial"],
        typer.Option(help="Kernel of the inputs.", rich_help_panel=_CONGRUENCE),
    ] = "auto"
    draws: Annotated[
        int | None,
        typer.Option(
            help="Draws a row; exact where the laws allow it if omitted.",
            rich_help_panel=_CONGRUENCE,
        ),
    ] = None
    layout: Annotated[
        Literal["pca", "t-sne"],
        typer.Option("--map", help="Map of the inputs.", rich_help_panel=_CONGRUENCE),
    ] = "pca"

    def options(self) -> CongruenceOptions:
        """The choices that these flags make.

        Raises
        ------
        InputError
            If one lies outside its domain.
        """
        from howsure.metrics.congruence.view import CongruenceOptions

        return CongruenceOptions(
            kernel=self.kernel,
            bandwidth=self.gamma,
            regularization=self.regularization,
            draws=self.draws,
            layout=self.layout,
        )


def reads_tables(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command every field of `ReadOptions` as a flag; it receives them as ``read``."""
    return _spread(command, "read", ReadOptions)


def tunes_congruence(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command every field of `CongruenceFlags` as a flag; it receives them as ``tuned``."""
    return _spread(command, "tuned", CongruenceFlags)


def _spread(command: Callable[..., R], name: str, flags: type[Any]) -> Callable[..., R]:
    """A command whose one argument of a dataclass comes as a flag for each field."""
    hints = get_type_hints(flags, include_extras=True)
    extra = [
        inspect.Parameter(
            f.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=f.default_factory()
            if f.default_factory is not dataclasses.MISSING
            else f.default,
            annotation=hints[f.name],
        )
        for f in dataclasses.fields(flags)
    ]

    @functools.wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> R:
        chosen = {p.name: kwargs.pop(p.name) for p in extra}
        return command(*args, **{name: flags(**chosen)}, **kwargs)

    own = inspect.signature(command, eval_str=True).parameters.values()
    kept = [p.replace(kind=p.KEYWORD_ONLY) for p in own if p.name != name]
    wrapper.__signature__ = inspect.Signature([*kept, *extra])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in [*kept, *extra]}
    return wrapper
