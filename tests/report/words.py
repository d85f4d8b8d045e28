"""What every document of a study must obey, whatever it says."""

from __future__ import annotations

import re
from collections.abc import Iterator

from howsure.figures import Figure
from howsure.report.document import Document, Grid

MOST_WORDS = 25
FOREIGN = ("belief", "laws", "surely", "too seldom", "too often", "right model", "perfect model")
"""Words that the field does not use so."""


def figures(document: Document) -> Iterator[Figure]:
    """Every figure of a document."""
    for part in (document.opening, *document.sections):
        for choice in part.choices:
            for option in choice.options:
                yield from option.figures


def grid_of(document: Document, section: str, title: str) -> Grid:
    """A table of a section."""
    (held,) = (part for part in document.sections if part.title == section)
    (grid,) = (grid for grid in held.grids if grid.title == title)
    return grid


def check_words(document: Document) -> None:
    """No long sentence, no foreign word, no published value beside ours in a figure."""
    told = [line.text for line in document.lines]
    for figure in figures(document):
        told += [figure.question, figure.reading]
        assert len(re.findall(r"[.?!](\s|$)", figure.reading)) <= 2, figure.reading
        assert not [layer.series for layer in figure.layers if "published" in layer.series]
    for text in told:
        for sentence in re.split(r"(?<=[.?!])\s+(?=[A-Z\d])", text):
            assert len(re.findall(r"\S*\w\S*", sentence)) <= MOST_WORDS, sentence
    everything = " ".join([*told, document.title, document.to_markdown()]).lower()
    assert not [word for word in FOREIGN if re.search(rf"\b{word}", everything)]
    anchors = [part.anchor for part in document.sections]
    assert len(set(anchors)) == len(anchors)
