"""One HTML file that holds everything: text, tables, drawings, and the code that draws them."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from importlib import resources
from types import ModuleType
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from howsure.core.classes import frozen
from howsure.core.errors import MissingDependencyError, attempt, collected
from howsure.core.files import remembered
from howsure.core.optional import installs, require
from howsure.core.text import legible
from howsure.figures.palette import DARK, LIGHT, Palette
from howsure.report.document import TONES, Choice, Document, Section, by_model, noted, slug
from howsure.report.page.figures import Block, block_of, packed

# What fits into two lines under a title. By eye.
MAX_FACT_CHARACTERS = 48
"""Facts up to this length stand under the title; all stand at the end."""
# Two lines of three; all stand at the end. By eye.
MAX_FACTS = 6
LATER = ("Seed",)
"""Facts that stand at the end alone."""
# A line that is folded.
MAX_NAMED = 4
"""How many of the things in a fold its title names."""


@frozen(kw_only=True)
class _Option:
    anchor: str
    label: str
    blocks: tuple[Block, ...]


@frozen(kw_only=True)
class _Choice:
    name: str
    label: str
    options: tuple[_Option, ...]


@frozen(kw_only=True)
class _DrawnSection:
    """A section with its figures ready to be drawn, how many of its tables are shown, and what
    its fold holds in words.
    """

    section: Section
    choices: tuple[_Choice, ...]
    tables: int
    more: str


def render(document: Document) -> str:
    """The report as one self-contained HTML page, which works offline."""
    counter = itertools.count()
    with collected() as faults:
        opening = _draw_section(document.opening, counter, first=True)
        sections = [_draw_section(section, counter) for section in document.sections]
    facts = [(str(name), str(fact)) for name, fact in noted(document.facts, faults).items()]
    figured = any(shown.choices for shown in (opening, *sections))
    library = _drawing_library() if figured else ""
    code = Markup(_resource("page.js"))
    return (
        _environment()
        .get_template("page.html")
        .render(
            document=document,
            opening=opening,
            sections=sections,
            tones=TONES,
            by_model=by_model,
            figured=figured,
            drawn=bool(library),
            installs=installs("report"),
            facts=facts,
            headline_facts=[
                (name, fact)
                for name, fact in facts
                if name not in LATER and len(fact) <= MAX_FACT_CHARACTERS
            ][:MAX_FACTS],
            style=Markup(properties() + _resource("page.css")),
            code=code,
            library=_packed_library(library),
            policy=_policy(*filter(None, (library, code))),
            slug=slug,
            apart=_numbering(),
        )
    )


def _numbering() -> Callable[[str], str]:
    """What tells names of one page apart: a number after each that was there before."""
    counts: Counter[str] = Counter()

    def number_repeat(name: str) -> str:
        counts[name] += 1
        return name if counts[name] == 1 else f"{name} ({counts[name]})"

    return number_repeat


def _draw_section(
    section: Section, counter: Iterator[int], *, first: bool = False
) -> _DrawnSection:
    """A section as its template needs it: one table is shown where nothing else is, or first."""
    choices = tuple(_choice(choice, counter) for choice in section.choices)
    choices = tuple(choice for choice in choices if choice.options)
    tables = int(first or not (choices or section.lines))
    titles = [choice.options[0].blocks[0].figure.title for choice in choices[section.opened :]]
    titles += [gallery.title for gallery in section.galleries]
    titles += [grid.name or grid.title for grid in section.grids[tables:]]
    names = list(dict.fromkeys(filter(None, titles)))
    more = ", ".join(names[:MAX_NAMED]) + (", …" if len(names) > MAX_NAMED else "")
    return _DrawnSection(section=section, choices=choices, tables=tables, more=more)


def _choice(choice: Choice, counter: Iterator[int]) -> _Choice:
    """A choice whose figures are drawn; one that cannot be drawn is left out, and noted."""
    number = next(counter)
    options = []
    for position, option in enumerate(choice.options):
        drawn = (
            attempt(f"figure {f.name}", partial(block_of, f), lambda _: None)
            for f in option.figures
        )
        blocks = tuple(replace(b, number=next(counter)) for b in drawn if b is not None)
        if blocks:
            anchor = f"choice-{number}-{position}"
            options.append(_Option(anchor=anchor, label=option.label, blocks=blocks))
    return _Choice(name=f"choice-{number}", label=choice.label, options=tuple(options))


def _drawing_library() -> str:
    """Vega, Vega-Lite, their embedding and expression interpreter; empty without vl-convert."""
    try:
        return _bundle(require("vl_convert", extra="report"))
    except MissingDependencyError:
        return ""


@cache
def _bundle(converter: ModuleType) -> str:
    name = f"vega of vl-convert {converter.__version__}.js"
    return remembered(name, partial(converter.javascript_bundle, "window.vegaEmbed = vegaEmbed;"))


@cache
def _packed_library(library: str) -> Markup:
    return packed(library) if library else Markup("")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("howsure.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["whole"] = partial(_BESIDE.sub, "\N{NO-BREAK SPACE}")
    return environment


_BESIDE = re.compile(r"(?<=\d) (?=%)|(?<=\bp) (?=[=<])|(?<=[=<]) (?=\d)")
"""Spaces between a number and its sign, where no line may end."""


def _finalize(value: Any) -> Any:
    """Text from outside without the characters that no page may hold, or that turn a line about."""
    return legible(value, lines=True) if type(value) is str else value


@cache
def _resource(name: str) -> str:
    return (resources.files("howsure.report.page") / "templates" / name).read_text("utf-8")


def _policy(*code: str) -> str:
    """Nothing from the network, and no script but these."""
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()) for text in code)
    hashes = " ".join(f"'sha256-{digest.decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


# ---- the page's colours on light and on dark, as CSS properties ----------------------------------

_LIGHT = {
    "paper": "#f6f6f3",
    "muted": "#59636c",
    "line": "#dddfdc",
    "accent": "#0b6688",
    "good": "#17754a",
    "bad": "#b2341a",
    "undecided": "#7d6100",
    "info": "#0b6688",
    "good-tint": "#e8f4ec",
    "bad-tint": "#fbece7",
    "undecided-tint": "#f8f1da",
    "info-tint": "#e6f1f6",
}
_DARK = {
    "paper": "#14181b",
    "muted": "#a3adb5",
    "line": "#333a40",
    "accent": "#6cc3e6",
    "good": "#5ccf97",
    "bad": "#ff9270",
    "undecided": "#e3c050",
    "info": "#6cc3e6",
    "good-tint": "#1a2e25",
    "bad-tint": "#38231c",
    "undecided-tint": "#322c17",
    "info-tint": "#17303b",
}


def properties() -> str:
    """CSS that names every colour: light at first, dark where the system or the reader says so."""
    light = _declared("light", LIGHT, _LIGHT)
    dark = _declared("dark", DARK, _DARK)
    chosen = f':root[data-theme="dark"] {{ {dark} }}'
    system = f':root:not([data-theme="light"]) {{ {dark} }}'
    return (
        f":root {{ {light} }}\n"
        f"@media screen {{ {chosen} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ {system} }}\n"
    )


def _declared(scheme: str, palette: Palette, page: Mapping[str, str]) -> str:
    colours = {f"series-{rank}": colour for rank, colour in enumerate(palette.series)}
    colours |= {f"ramp-{rank}": colour for rank, colour in enumerate(palette.ramp)}
    colours |= {
        "reference": palette.reference,
        "highlight": palette.highlight,
        "ink": palette.ink,
        "grid": palette.grid,
        "surface": palette.surface,
        **page,
    }
    words = "; ".join(f"--{name}: {colour}" for name, colour in colours.items())
    return f"color-scheme: {scheme}; {words};"
