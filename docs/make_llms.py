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

OPTIONAL = ("Gallery", "The papers done again")
"""Sections that may be left out where little fits; the form has a heading for them."""

LONGEST = 160
"""Characters of a description, if its first sentence has fewer."""


def text(app: Any) -> str:
    """The whole file."""
    env, root = app.env, app.config.root_doc
    start = env.get_doctree(root)
    sections: dict[str, list[str]] = {}
    for tree in start.findall(addnodes.toctree):
        caption = "Optional" if tree["caption"] in OPTIONAL else tree["caption"]
        lines = sections.setdefault(caption, [])
        for page in tree["includefiles"]:
            lines += [_line(app, name) for name in _below(env, page)]
    lines = [f"# {env.titles[root].astext()}", "", f"> {_paragraph(start)}"]
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
    told, *more = re.split(r"(?<=[.?!])\s", _paragraph(app.env.get_doctree(page)))
    for sentence in more:
        if len(told) + len(sentence) >= LONGEST:
            break
        told += f" {sentence}"
    title, target = app.env.titles[page].astext(), app.builder.get_target_uri(page)
    return f"- [{title}]({target})" + (f": {told}" if told else "")


def _paragraph(doctree: Any) -> str:
    """The first paragraph of a page that stands in no box and introduces nothing else."""
    for each in doctree.findall(nodes.paragraph):
        told = " ".join(each.astext().split())
        if isinstance(each.parent, nodes.section | nodes.document) and not told.endswith(":"):
            return told
    return ""
