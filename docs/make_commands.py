"""Write docs/reference/commands.md: every command, from the program itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperArgument

from howsure.cli.main import app

PAGE = Path(__file__).parent / "reference" / "commands.md"
COLUMNS = "Columns: "
START = """\
# Commands

`--help` after a command shows the same. Where a command has many options, `--help` shows the usual
ones and `--help-all` shows all. Commands that read tables recognise columns by their names; the
flags that name them otherwise are described in [columns](../inputs.md).

Options and outputs are checked before any work. An output is written whole or not at all. It
replaces an older file, but never one that the same command reads.

| status | meaning |
|---|---|
| 0 | done |
| 1 | what was asked for failed: a limit, a trial, a file; the command's line below says which |
| 2 | an error; one line says why |
| 130 | interrupted by Ctrl-C |
| 141 | the reader of the output closed it, as `head` does |

`howsure --install-completion` completes commands and flags in your shell.
"""


def commands() -> Iterator[tuple[str, Any, Any]]:
    """Each command with its full name and a context, groups before what they hold."""
    root = typer.main.get_command(app)

    def below(command: Any, path: str, parent: Any) -> Iterator[tuple[str, Any, Any]]:
        context = command.context_class(command, info_name=path.split()[-1], parent=parent)
        yield path, command, context
        for name in getattr(command, "list_commands", lambda _: [])(context):
            yield from below(command.get_command(context, name), f"{path} {name}", context)

    return below(root, "howsure", None)


def page() -> str:
    """The whole page."""
    found = list(commands())
    rows = [START, "| command | what it does |", "|---|---|"]
    for path, command, _ in found[1:]:
        if not hasattr(command, "list_commands"):
            anchor = path.replace(" ", "-")
            rows.append(f"| [`{path}`](#{anchor}) | {_cell(_first(command.help))} |")
    for path, command, context in found[1:]:
        rows += ["", *_section(path, command, context)]
    return "\n".join([*rows, ""])


def _section(path: str, command: Any, context: Any) -> list[str]:
    group = hasattr(command, "list_commands")
    depth = "#" * len(path.split())
    told = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    rows = [f"{depth} `{path}`", "", told]
    if group:
        return rows
    rows += ["", "```text", " ".join([path, *command.collect_usage_pieces(context)]), "```"]
    if command.epilog:
        rows += ["", "```console", f"$ {command.epilog.removeprefix('Example: ')}", "```"]
    panels: dict[str, list[Any]] = {}
    for param in command.get_params(context):
        if not getattr(param, "hidden", False) and param.name not in ("help", "help_all"):
            kind = "Arguments" if isinstance(param, TyperArgument) else "Options"
            panels.setdefault(getattr(param, "rich_help_panel", None) or kind, []).append(param)
    own = {name: held for name, held in panels.items() if not name.startswith(COLUMNS)}
    for name, held in own.items():
        rows += ["", f"| {name.lower()} | takes | meaning |", "|---|---|---|"]
        rows += [_line(param, context) for param in held]
    for name, held in panels.items():
        if name.startswith(COLUMNS):
            flags = ", ".join(f"`{param.opts[0]}`" for param in held)
            rows += ["", f"[{name.removeprefix(COLUMNS).capitalize()}](../inputs.md): {flags}."]
    return rows


def _line(param: Any, context: Any) -> str:
    if isinstance(param, TyperArgument):
        name, takes = f"`{param.display_name_raw}`", "several" if param.nargs == -1 else ""
        flag = False
    else:
        name = ", ".join(f"`{option}`" for option in [*param.opts, *param.secondary_opts])
        flag = param.is_flag
        takes = "" if flag else f"`{param.metavar or param.display_type_rich(ctx=context)}`"
        takes = takes.replace("<", "").replace(">", "").replace(" range", "")
    told = [param.help or ""]
    if param.required:
        told.append("Required.")
    default, usual = param.default, getattr(param, "show_default", True)
    default = usual if isinstance(usual, str) else default  # of what a file may say, too
    shown = usual and not (default is None or flag)
    if shown and not (isinstance(default, bool) or default in ("", [])):
        told.append(f"Default: `{str(getattr(default, 'value', default)).strip('()')}`.")
    return f"| {name} | {_cell(takes)} | {_cell(' '.join(told))} |"


def _first(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
