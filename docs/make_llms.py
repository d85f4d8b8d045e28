"""Make llms.txt of the site's own pages: what language models read first (llmstxt.org).

`conf.py` calls this at the end of every build. Titles, order and sections are those of the site;
a page's description is its first sentence, and what follows as far as there is room.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx import addnodes

OPTIONAL = ("Gallery", "Papers repeated")
"""Sections that may be left out where little fits; the form has a heading for them."""

LEAD = "lead"
"""Where a page's first paragraph is noted as the page is read, while its tree is at hand."""

LONGEST = 160
"""Characters of a description, if its first sentence has fewer."""


def text(app: Any) -> str:
    """The whole file."""
    env, root = app.env, app.config.root_doc
    sections: dict[str, list[str]] = {}
    for tree in env.get_doctree(root).findall(addnodes.toctree):
        caption = "Optional" if tree["caption"] in OPTIONAL else tree["caption"]
        lines = sections.setdefault(caption, [])
        for page in tree["includefiles"]:
            lines += [_line(app, name) for name in _below(env, page)]
    lines = [f"# {env.titles[root].astext()}", "", f"> {env.metadata[root][LEAD]}"]
    for caption, listed in sections.items():
        lines += ["", f"## {caption}", "", *listed]
    return "\n".join([*lines, ""])


def _below(env: Any, page: str) -> Iterator[str]:
    """A page, and all that stand below it."""
    yield page
    for name in env.toctree_includes.get(page, ()):
        yield from _below(env, name)


def _line(app: Any, page: str) -> str:
    """A page as an item of a list."""
    description, *sentences = re.split(r"(?<=[.?!])\s", app.env.metadata[page][LEAD])
    for sentence in sentences:
        if len(description) + len(sentence) >= LONGEST:
            break
        description += f" {sentence}"
    title, target = app.env.titles[page].astext(), app.builder.get_target_uri(page)
    return f"- [{title}]({target})" + (f": {description}" if description else "")


def note_lead(app: Any, doctree: Any) -> None:
    """Note the first paragraph of a page that is in no box and introduces nothing else."""
    lead = ""
    for paragraph in doctree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if isinstance(paragraph.parent, nodes.section | nodes.document) and not text.endswith(":"):
            lead = text
            break
    app.env.metadata[app.env.docname][LEAD] = lead
