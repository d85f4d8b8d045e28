"""Sentences that people read use the field's terms, in plain English; those of the help are short.

All patterns are here: of documentation, of texts in modules, of help, and of findings, each of
which `verdict.test_words` makes in all its states.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from howsure.cli.main import app
from howsure.engine.catalogue import catalogue

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "howsure"
STUDIES = ROOT / "studies" / "src" / "howsure_studies"
LONGEST = 25
"""Words of a sentence."""

FORBIDDEN = {
    r"\bbelie(fs?|ves?|ved)\b": "prediction, predictive distribution",
    r"\blaws?\b": "distribution",
    r"\b(right|wrong) models?\b": "correctly specified model",
    r"\bholds? (a|the|its) (new )?(y|mean)\b|\bintervals hold\b": "contains, covers",
    r"\btoo (seldom|often)\b|\bseldom\b": "under-covers, over-covers",
    r"\bdares?\b": "accepts, prediction rate",
    r"\bmend(s|ed|ing)?\b": "recalibrate, correct",
    r"\bsurely off\b|\bpoints off\b": "under-covers, over-covers",
    r"\ba wish\b|\btell of\b|\bsay the\b": "plain English",
}
EACH = "row|draw|model|level|core|group|site|world|topic|question|replicate|image|quantile|sample"
EACH = f"(?:{EACH}|column|table|file|case|series|test|trial|worker|unit|fold|method|member)"
TIME = "(?:second|minute|hour|day|week|month|year|night)"
THING = r"\b(?:row|model|forecast|table|prediction|method|report|page|ledger)"
THINGS = f"{THING}s?(?: (?:also|alone|then|often))?"
RESULT = "(?:fault|departure|difference|gain|loss|drift|change|skew)"
WHAT = r"(?:^|(?<=[.;:] ))What (?:is|was|are|were) (?:(?!\n\n)[^?.!:|]){1,80}?"
DIALECT = {
    rf"\b(?:one|once|twice) an? {EACH}\b": ("per, each", "Processes, one a core."),
    rf"\b(?:an?|one) (?:row|line|column|array|fit|entry|file) an? (?:{EACH}|{TIME})\b": (
        "one row per draw",
        "samples, a row a draw",
    ),
    rf"\b(?:rows|images|labels|trials|simulations) an? (?:{EACH}|{TIME})\b(?! (?:late|ago|old))": (
        "rows per day",
        "500 rows a day",
    ),
    rf"{THINGS} (?:tells|told|holds(?! out)|lies|lay|teaches|taught)\b": (
        "shows, contains, is",
        "One table holds two models.",
    ),
    rf"{THINGS} (?:serves|knows|knew|held(?![- ]out))\b": ("is used, uses", "A model knows y."),
    rf"{THING}s(?: (?:also|alone|then|often))? (?:tell|hold(?! out)|lie|teach|serve|know)\b": (
        "show, contain, are",
        "46 % of rows lie where nothing is known.",
    ),
    r"\b(?:is|are|was|were)(?: not)? (?:told|taught)\b": ("is reported, is fitted", "It is told."),
    r"(?<!^\| )\blearnt\b": ("estimated, fitted", "The factor is learnt on new rows."),
    r"\bwhoever\b": ("If you …, Users who …", "Whoever writes a method wants a test."),
    r"^(?:- |\d\. )?Who (?:(?!\n\n)[^?.|])*\.": ("If you …", "Who acts on it plans for misses."),
    rf"{WHAT} (?:is|are|was|were)\b": (
        "start with the subject",
        "What is not needed is folded.",
    ),
    r"\bby (?:(?:its|their|the) )?(?:own )?held-out (?:rows|data)\b": (
        "from, with, using held-out rows",
        "Intervals that cover, by held-out rows.",
    ),
    rf"\b{RESULT}s? (?:is|are)(?: not)? proven\b": (
        "significant",
        "No departure is proven.",
    ),
    r"\bcounts? as (?:fewer|about [\d,]+)\b": ("effective sample size", "Rows count as fewer."),
    r"\b(?:cannot be told|told apart|too few(?: rows)? to tell)\b": (
        "inconclusive, do not differ significantly",
        "Too few rows to tell.",
    ),
    r"\bas far as (?:[\d,]+|x) rows\b": ("Yes: no problems found in …", "As far as 9 rows tell."),
    r"\b(?:would|will) settle\b": ("should decide", "About 9 more would settle it."),
    r"\bbeyond chance\b": ("significant", "Nothing that was tried helps beyond chance."),
    r"\b(?:is|are) no sizes?\b": ("is not an effect size", "A p-value is no size."),
    r"\bread (?:it|them) beside\b": ("read it with, compare", "Read it beside the deficit."),
    r"\b(?:asked for by name|looked at unless)\b": ("requested", "Drawn if asked for by name."),
    r"\bmust (?:hold|lie)\b": ("must be, contain", "y must hold numbers."),
    r"\b(?:rows|data) held back\b|\bheld-back\b": ("held-out", "Rows held back, held-back data."),
    r"\bstated sizes?\b": ("the predicted spread", "Errors are 1.57 times their stated size."),
}
"""Patterns of a terse dialect, each with plain English and an example; see docs/style.md."""
OF_FINDINGS = {
    r"\bbandwidths?\b": "half-width",
    r"\b(?:nan|inf|none)\b|∞": "a number, or why there is none",
    r"\?": "what was found",
}
"""What no sentence of a finding contains besides."""
ALLOWED = (
    r"power laws?",
    r"\*\*Laws\.\*\*|^#+ Laws$",  # what a measure obeys
    r"[\w-]+[=.(]law\b|\blaw=|--law\b",  # an argument
    r"\b(law|[Bb]eliefs?) must\b",  # an argument, where it is refused
)
"""Where such a word is right."""


def matched(folder: Path, *patterns: str) -> list[Path]:
    """The files of a folder that patterns match: each pattern some."""
    found = {pattern: sorted(folder.glob(pattern)) for pattern in patterns}
    blind = [pattern for pattern, paths in found.items() if not paths]
    assert not blind, f"nothing in {folder} matches {blind}"
    return [path for paths in found.values() for path in paths]


MODULES = [*matched(SOURCE, "**/*.py"), *matched(STUDIES, "**/*.py")]
TOPICS = ("explanations", "findings", "how-to", "measures", "reference")
STREAMS = ("child", "row_uniforms")
"""Functions that draw from a stream of random numbers, which they take by a name nobody reads."""
PAGES = [
    *matched(ROOT, "README.md", "docs/*.md", *(f"docs/{topic}/*.md" for topic in TOPICS)),
    *matched(SOURCE, "report/page/templates/*.html"),
]

PLAIN = [page for page in PAGES if page != ROOT / "README.md"]
PLAIN += matched(ROOT, "CONTRIBUTING.md", "docs/case-studies/*.md", "docs/gallery/*.rst")
"""Pages in plain English."""


def wrong(text: str) -> list[str]:
    """The forbidden words of a text, each with what to say instead."""
    for right in ALLOWED:
        text = re.sub(right, "", text, flags=re.MULTILINE)
    return matches(text, FORBIDDEN)


def dialect(text: str) -> list[str]:
    """Where a text is not plain English, each with what to say instead."""
    return matches(text, {pattern: better for pattern, (better, _) in DIALECT.items()})


def wrong_in_finding(text: str) -> list[str]:
    """What a sentence of a finding must not contain, each with what to say instead."""
    return [*wrong(text), *dialect(text), *matches(text, OF_FINDINGS)]


def matches(text: str, patterns: dict[str, str]) -> list[str]:
    return [
        f"{found[0]!r} in {text[max(found.start() - 40, 0) : found.end() + 20]!r}: say {better}"
        for pattern, better in patterns.items()
        for found in re.finditer(pattern, text, flags=re.IGNORECASE | re.MULTILINE)
    ]


def prose(page: str) -> str:
    """A page without its code, its links' targets and its addresses."""
    page = re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)
    page = re.sub(r"`[^`\n]*`", "", page)
    return re.sub(r"\]\([^)]*\)", "]", page)


def plain_prose(page: str) -> str:
    """The prose of a page without the table of `docs/style.md`, which shows what not to write."""
    return re.sub(r"^<!-- before and after -->\n.*?\n\n", "", prose(page), flags=re.DOTALL | re.M)


def sentences(path: Path) -> list[str]:
    """Texts of a module but docstrings and names of streams; what is filled in stands as x."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    streams = (
        node.args
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in STREAMS
    )
    skipped = {id(part) for parts in streams for part in parts} | {
        id(part)
        for node in ast.walk(tree)
        for part in (
            [node.value]
            if isinstance(node, ast.Expr)
            else node.values
            if isinstance(node, ast.JoinedStr)
            else []
        )
    }
    texts = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (p.value if isinstance(p, ast.Constant) else "x" for p in node.values)
            texts.append("".join(str(part) for part in parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts += [] if id(node) in skipped else [node.value]
    return [text for text in texts if re.search(r"\b[a-z]+ | [a-z]+\b", text)]


def helps(command: Any, path: str) -> Iterator[tuple[str, str]]:
    """Each text of the help of a command and of those below it, by where it stands."""
    yield path, command.help or ""
    for option in command.params:
        yield f"{path} {option.opts[0]}", getattr(option, "help", None) or ""
        yield f"{path} {option.opts[0]}", getattr(option, "rich_help_panel", None) or ""
    for name, inner in getattr(command, "commands", {}).items():
        yield from helps(inner, f"{path} {name}")


def long_sentences(sentences: Iterable[str]) -> list[str]:
    return [sentence for sentence in sentences if len(sentence.split()) > LONGEST]


def test_texts_were_found() -> None:
    findings = [path for path in MODULES if "FindingQuestion(" in path.read_text("utf-8")]
    assert sum(len(sentences(path)) for path in findings) > 200
    assert len(sentences(SOURCE / "report" / "questions.py")) > 10
    assert len(PAGES) > 100


def test_a_pattern_that_matches_nothing_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a_words.py").touch()
    assert matched(tmp_path, "*_words.py") == [tmp_path / "a_words.py"]
    with pytest.raises(AssertionError, match=r"matches \['report/\*_words.py'\]"):
        matched(tmp_path, "*_words.py", "report/*_words.py")


def test_forbidden_words_are_seen() -> None:
    for text in (
        "Which laws are right?",
        "How far the belief is off",
        "the intervals hold",
        "holds a new y",
        "a right model",
        "They miss too often.",
        "the mend",
    ):
        assert wrong(text), text
    for text in ("a power law", "pass --law t", "law must be", "## Laws", "amend"):
        assert not wrong(text), text
    assert prose("a `law` [b](law.md)\n```\nlaw\n```\n") == "a  [b]\n\n"


@pytest.mark.parametrize(("pattern", "example"), [(p, e) for p, (_, e) in DIALECT.items()])
def test_the_dialect_is_seen(pattern: str, example: str) -> None:
    assert re.search(pattern, example, flags=re.IGNORECASE | re.MULTILINE)
    assert dialect(example)


@pytest.mark.parametrize(
    "text",
    [
        "Held-out rows; rows held out for calibration; the method holds out rows.",
        "What does the model know?",
        "500 rows per day, and look once a day. Labels a day late.",
        "Who needs this? A user who acts on it.",
        "## What is monitored\n\n- **Coverage** is one of them.",
        "The effective sample size is 140 of 2,400; nine rows count as one.",
        "The result tells you whether to trust it.",
    ],
)
def test_plain_english_passes(text: str) -> None:
    assert not dialect(text)


def test_pages_are_in_plain_english() -> None:
    found = {path: plain_prose(path.read_text("utf-8")) for path in PLAIN}
    assert len(found) > 190
    faults = [f"{path}: {fault}" for path, text in found.items() for fault in dialect(text)]
    assert not faults, "\n".join(faults)


def test_help_uses_the_fields_terms_in_short_sentences() -> None:
    texts = sorted({*helps(typer.main.get_command(app), "howsure")})
    assert len(texts) > 200
    faults = [
        f"{where}: {fault}"
        for where, text in texts
        for fault in (
            *wrong(text),
            *dialect(text),
            *long_sentences(re.split(r"(?<=[.;:?!]) ", text)),
        )
    ]
    assert not faults, "\n".join(faults)


@pytest.mark.slow
def test_sentences_use_the_fields_terms_in_plain_english() -> None:
    assert len(MODULES) > 400
    faults = [
        f"{path}: {fault}"
        for path in MODULES
        for text in sentences(path)
        for fault in (*wrong(text), *dialect(text))
    ]
    assert not faults, "\n".join(faults)


def test_pages_use_the_fields_terms() -> None:
    faults = [f"{path}: {word}" for path in PAGES for word in wrong(prose(path.read_text("utf-8")))]
    assert not faults, faults


def test_measures_use_the_fields_terms_in_plain_english() -> None:
    for metric in catalogue().values():
        texts = (metric.title, metric.question.value, metric.meaning, metric.beware)
        faults = [fault for text in texts for fault in (*wrong(text), *dialect(text))]
        assert not faults, (metric.name, faults)
