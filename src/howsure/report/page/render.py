"""One HTML file that holds everything: text, tables, drawings, and the code that draws them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import replace
from functools import cache, partial
from importlib import resources
from types import ModuleType
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from howsure.core.errors import MissingDependencyError
from howsure.core.faults import attempt, collected
from howsure.core.optional import require
from howsure.core.text import clean
from howsure.figures import figures_of
from howsure.report.content import TONES, PageContent, noted
from howsure.report.overview import OVERVIEW
from howsure.report.page import sections
from howsure.report.page.figures import blocks_of
from howsure.report.page.galleries import Gallery, galleries
from howsure.report.page.theme import properties

FACT_LENGTH = 48
"""Facts up to this length stand under the title; all stand at the end."""
FACT_COUNT = 6


def render_page(content: PageContent) -> str:
    """The report as one self-contained HTML page, which works offline."""
    with collected() as faults:
        figures = figures_of(content.curves, content.tables)
        blocks = blocks_of(figures)
        shown = [table for table in content.tables if table.name != "cce_images"]
        first = [table for table in shown if table.name == OVERVIEW]
        others = [table for table in shown if table.name != OVERVIEW]
        models, tables = (sections.table_grids(each, content.glossary) for each in (first, others))
        pictures: list[Gallery] = attempt(
            "images", partial(galleries, content.tables), lambda _: []
        )
    return render_template(
        "page.html",
        replace(content, facts=noted(content.facts, faults)),
        figured=bool(figures),
        blocks=blocks,
        galleries=pictures,
        models=models,
        tables=tables,
        records=sections.record_grid(content),
        groups=sections.group_grid(content),
        unanswered=sections.unanswered_grid(content),
    )


def render_template(
    template: str, content: PageContent, *, figured: bool = True, extra: str = "", **context: Any
) -> str:
    """A page that extends ``base.html``, with all that every page needs."""
    library = _drawing_library() if figured else ""
    own = [Markup(_resource(f"{extra}.js"))] if extra else []
    code = [*own, *([Markup(library)] if library else []), _own_code()]
    facts = [(str(name), str(fact)) for name, fact in content.facts.items()]
    return (
        _environment()
        .get_template(template)
        .render(
            content=content,
            tones=TONES,
            drawn=bool(library),
            facts=facts,
            headline_facts=[fact for fact in facts if len(fact[1]) <= FACT_LENGTH][:FACT_COUNT],
            style=_style() + Markup(_resource(f"{extra}.css") if extra else ""),
            code=code,
            policy=_policy(code),
            anchor=sections.anchor,
            **context,
        )
    )


def _drawing_library() -> str:
    """Vega, Vega-Lite, their embedding and expression interpreter; empty without vl-convert."""
    try:
        return _bundle(require("vl_convert", extra="report"))
    except MissingDependencyError:
        return ""


@cache
def _bundle(converter: ModuleType) -> str:
    bundle: str = converter.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("\r\n", "\n").replace("</script", "<\\/script")


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
    return environment


def _finalize(value: Any) -> Any:
    """Text from outside without the characters that no page may hold."""
    return clean(value) if type(value) is str else value


def _resource(name: str) -> str:
    return (resources.files("howsure.report.page") / "templates" / name).read_text("utf-8")


@cache
def _own_code() -> Markup:
    return Markup(_resource("page.js"))


@cache
def _style() -> Markup:
    return Markup(properties() + _resource("page.css"))


def _policy(code: Iterable[str]) -> str:
    """Nothing from the network, and no script but these."""
    hashes = " ".join(f"'sha256-{_digest(text)}'" for text in code)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
