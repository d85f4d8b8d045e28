"""Commands whose flags are made of the options that their functions take."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand

from howsure.cli.entry import echo
from howsure.core.options import NAMES, OptionField, options_of, spelled, with_names
from howsure.core.registry import attribute_of

if TYPE_CHECKING:
    from howsure.inputs.roles import Role

COLUMNS: Final = {
    "outcome": "Columns: outcome and predictions",
    "prediction": "Columns: outcome and predictions",
    "doubt": "Columns: outcome and predictions",
    "inputs": "Columns: model inputs",
    "rows": "Columns: groups, time, weights",
    "order": "Columns: models and rows",
    "long": "Columns of long tables",
}
OUTPUT: Final = "Output"
"""Panels of the help."""


def share(param: typer.CallbackParam, value: Any) -> Any:
    """Refuse, before any work, what is no share strictly between 0 and 1; several are a list."""
    return attribute_of("howsure.cli.options:check_shares")(value, spelled(param.name or ""))


# ---- what is described becomes flags, and flags become objects -----------------------------------

_parameter = functools.partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)


def options_for(kind: type[Any], verb: str) -> Iterator[OptionField]:
    """The options of a dataclass that a command has; all without a command."""
    for item in options_of(kind):
        if not verb or not item.flag.verbs or verb in item.flag.verbs.split():
            yield from options_for(item.kind, verb) if item.within else [item]


def keyword(item: OptionField, kind: Any) -> inspect.Parameter:
    """An option as a parameter that takes values of a kind, or None where it need not be given."""
    default = None if item.default == () else item.default
    return _parameter(
        item.name, default=default, annotation=kind | None if default is None else kind
    )


def flag_of(kind: type[Any], name: str) -> Any:
    """The flag of one option of a dataclass."""
    return _flag_info(next(item for item in options_of(kind) if item.name == name))


def _flag_info(item: OptionField, *, partial: bool = False) -> Any:
    """The flag of an option; where it need not be given, its default is another's."""
    flag, kind, default = item.flag, item.kind, item.default
    names = flag.flag.split() or [item.typed]
    if kind is bool and default is not False:
        names[-1] += names[-1].replace("--", "/--no-", 1)
    repeats = " Repeatable." if get_origin(kind) is list else ""
    return typer.Option(
        *names,
        help=with_names(flag.help, _typed_name) + repeats,
        metavar=flag.metavar or _METAVARS.get(kind),
        hidden=not flag.usual,
        rich_help_panel=flag.panel,
        min=None if flag.metavar else flag.least,
        show_default=str(default).strip("()") if partial and default else not partial,
    )


_METAVARS: Final = {NAMES: "A,B", Path: "FILE", list[Path]: "FILE"}


def _typed_name(name: str) -> str:
    """A role of columns or an option, as it is typed."""
    from howsure.inputs.roles import BY_NAME

    return BY_NAME[name].option if name in BY_NAME else spelled(name)


def declare_flags(kind: type[Any], verb: str, *, partial: bool = False) -> list[inspect.Parameter]:
    """The flags of a dataclass, as parameters of a command."""
    roles = (role for item in fields(kind) for role in item.metadata.get("roles", ()))
    parameters = list(map(_role_flag, roles))
    for item in options_for(kind, "" if partial else verb):
        takes = str if item.kind == NAMES else item.kind
        parameter = keyword(replace(item, default=None) if partial else item, takes)
        flag: Any = Annotated[parameter.annotation, _flag_info(item, partial=partial)]
        parameters.append(parameter.replace(annotation=flag))
    return parameters


def expand(
    work: Callable[..., Any], declare: Callable[..., list[inspect.Parameter]]
) -> tuple[list[inspect.Parameter], Callable[[dict[str, Any]], dict[str, Any]]]:
    """A function's parameters, options in place of their objects; and how these are made again.

    A dataclass is an object of options; a mapping that names one in its annotation has those that
    were given.
    """
    parameters: list[inspect.Parameter] = []
    objects: dict[str, tuple[Any, bool, list[str]]] = {}
    for parameter in _signature(work).parameters.values():
        kind = parameter.annotation
        partial = get_origin(kind) is Annotated and isinstance(get_args(kind)[1], type)
        kind = get_args(kind)[1] if partial else kind
        if isinstance(kind, type) and is_dataclass(kind):
            flags = declare(kind, partial=partial)
            objects[parameter.name] = kind, partial, [flag.name for flag in flags]
            parameters += flags
        else:
            parameters.append(parameter)

    def gather(chosen: dict[str, Any]) -> dict[str, Any]:
        for name, (kind, partial, names) in objects.items():
            values = {key: chosen.pop(key, None) for key in names}
            values = _as_fields(kind, {k: v for k, v in values.items() if v not in (None, [])})
            chosen[name] = values if partial else kind(**values)
        return chosen

    return parameters, gather


def _signature(work: Any) -> inspect.Signature:
    """A function's signature, where its module imports no class of options."""
    modules = map(importlib.import_module, _OPTIONS)
    names = {name: value for module in modules for name, value in vars(module).items()}
    return inspect.signature(work, globals={**names, **work.__globals__}, eval_str=True)


_OPTIONS: Final = ("howsure.cli.options", "howsure.report.options")
"""Modules that declare options; they are imported with the first command that is asked."""


def _as_fields(kind: type[Any], values: dict[str, Any]) -> dict[str, Any]:
    """The fields of a dataclass from what its flags took, as far as they were given."""
    chosen: dict[str, Any] = {}
    for field in fields(kind):
        if roles := field.metadata.get("roles"):
            chosen[field.name] = {r.name: values[r.name] for r in roles if r.name in values}
    for item in options_of(kind):
        if item.within:
            if within := _as_fields(item.kind, values):
                chosen[item.name] = item.kind(**within)
        elif item.name in values:
            value = values[item.name]
            if item.kind == NAMES and isinstance(value, str):
                value = tuple(name.strip() for name in value.split(",") if name.strip())
            chosen[item.name] = value
    return chosen


class Command(TyperCommand):
    """A command whose flags are made when they are asked for; its help shows the usual ones."""

    def __init__(self, *, work: Any, target: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.work, self.target = work, target
        self.rare: list[Any] = []
        del self.params

    @functools.cached_property
    def params(self) -> Any:  # type: ignore[override]
        """Arguments and flags; those that are declared hidden are for --help-all."""
        flags, gather = expand(self.work, functools.partial(declare_flags, verb=self.work.__name__))
        flags = [flag.replace(kind=flag.KEYWORD_ONLY) for flag in flags]
        if len(flags) > _MAX_FLAGS_SHOWN:
            flags.append(_HELP_ALL)

        def run(**chosen: Any) -> None:
            chosen.pop("help_all", None)
            chosen = gather(chosen)
            work = attribute_of(f"howsure.cli.{self.target}") if self.target else self.work
            if work(**chosen):
                raise typer.Exit(1)

        run.__signature__ = inspect.Signature(flags)  # type: ignore[attr-defined]
        run.__annotations__ = {flag.name: flag.annotation for flag in flags}
        single = typer.Typer(add_completion=False)
        single.command()(run)
        built: Any = typer.main.get_command(single)
        self.callback = built.callback
        for param in built.params:
            if param.hidden and param.help:
                param.hidden = False
                self.rare += [param] if len(flags) > _MAX_FLAGS_SHOWN else []
        return built.params

    def format_help(self, ctx: Any, *args: Any) -> None:
        every = self.params
        rare = [] if "howsure.help_all" in ctx.meta else self.rare
        self.params = [param for param in every if param not in rare]
        super().format_help(ctx, *args)
        self.params = every
        if rare:
            echo(f" --help-all shows {len(rare)} more options.")


def command(
    app: typer.Typer, target: str = "", *, epilog: str, panel: str | None = None
) -> Callable[[Any], Any]:
    """Add a command, of which the function declares the flags, and does the work without a target.

    The module of a target is imported when the command is called. True is status 1. The panel is
    that of the help which lists it.
    """

    def add(work: Any) -> Any:
        cls: Any = functools.partial(Command, work=work, target=target)
        app.command(
            work.__name__, cls=cls, help=work.__doc__, epilog=epilog, rich_help_panel=panel
        )(lambda: None)
        return work

    return add


def _help_all(ctx: typer.Context, wanted: bool) -> None:
    """Show the help with every flag."""
    if wanted:
        ctx.meta["howsure.help_all"] = True
        echo(ctx.get_help())
        raise typer.Exit


# All of them then fit on a screen of 60 lines.
_MAX_FLAGS_SHOWN: Final = 16
"""A command with no more flags than these shows all of them."""
_HELP_ALL: Final = _parameter(
    "help_all",
    default=False,
    annotation=Annotated[
        bool,
        typer.Option(
            "--help-all",
            is_eager=True,
            expose_value=False,
            callback=_help_all,
            help="Show all options and exit.",
        ),
    ],
)


def _role_flag(role: Role) -> inspect.Parameter:
    """The flag of a role."""
    kind: Any = str if role.kind else Literal[role.choices] if role.choices else float
    option = typer.Option(
        role.option,
        help=role.help,
        metavar=role.metavar,
        hidden=not role.usual,
        callback=share if role.name == "coverage" else None,
        rich_help_panel=COLUMNS[role.of],
    )
    return _parameter(
        role.name,
        default=[] if role.repeats else None,
        annotation=Annotated[list[kind] if role.repeats else kind | None, option],
    )


def address(path: Path) -> Path | str:
    """A path as it was typed, where it is an address such as s3://bucket/file."""
    typed_path = re.sub(r"^([a-z][a-z0-9+.-]+):/(?=[^/])", r"\1://", str(path))
    return typed_path if "://" in typed_path and not os.path.exists(path) else path
