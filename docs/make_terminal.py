"""Draw docs/assets/terminal.svg: what the start page's command prints in a terminal."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

HERE = Path(__file__).parent
PICTURE = HERE / "assets" / "terminal.svg"
COMMAND = "howsure assess examples/rentals.csv --groups day"
WIDTH = 80
UNSET = ("NO_COLOR", "COLORTERM", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
"""Variables that change the colours of a terminal."""
THEME = TerminalTheme(
    (13, 17, 23),
    (230, 237, 243),
    [
        *((72, 79, 88), (255, 123, 114), (86, 211, 100), (227, 179, 65)),
        *((121, 192, 255), (210, 168, 255), (86, 212, 221), (230, 237, 243)),
    ],
)
"""A background of its own, so that text and marks are legible on light and dark pages alike."""
FORM = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font: {char_height}px/{line_height}px ui-monospace, SFMono-Regular, Menlo, Consolas,
    "DejaVu Sans Mono", monospace;
}}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""As rich's own form, without the font that it loads from elsewhere."""
RATIO = 0.6
"""The width of a character of the fonts above, as a share of its height."""


def printed() -> str:
    """What the command prints on a terminal of 80 columns, with its colours."""
    done = subprocess.run(
        [sys.executable, "-c", "from howsure.cli.entry import main; main()", *words()],
        cwd=HERE.parent,
        env={
            **{name: value for name, value in os.environ.items() if name not in UNSET},
            **{"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": str(WIDTH)},
            **{"PYTHONIOENCODING": "utf-8"},
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return done.stdout.decode("utf-8")


def words() -> list[str]:
    """What follows the program's name in the command."""
    return shlex.split(COMMAND)[1:]


def picture(output: str) -> str:
    """The picture of the command and its output."""
    console = Console(
        record=True, file=StringIO(), width=WIDTH, force_terminal=True, color_system="standard"
    )
    console.print(Text.assemble(("$ ", "dim"), (COMMAND, "bold")))
    for line in output.splitlines():
        text = Text.from_ansi(line)
        ends = range(WIDTH, max(text.cell_len, 1), WIDTH)  # where a terminal begins a new line
        for part in text.divide(ends):
            console.print(part, no_wrap=True, highlight=False)
    return console.export_svg(
        title="", theme=THEME, code_format=FORM, font_aspect_ratio=RATIO, unique_id="terminal"
    )


def main() -> None:
    """Draw the picture anew."""
    PICTURE.write_text(picture(printed()), encoding="utf-8")


if __name__ == "__main__":
    main()
