"""Formulas of the catalogue, which are plain text, as LaTeX; and LaTeX as MathML in a page."""

from __future__ import annotations

import re
from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

_SIGNS = {
    **{"≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "−": "-", "·": r"\cdot ", "×": r"\times "},
    **{"∞": r"\infty ", "∫": r"\int ", "Σ": r"\sum ", "½": r"\tfrac{1}{2}", "Δ": r"\Delta "},
    **{"α": r"\alpha ", "τ": r"\tau ", "φ": r"\varphi ", "μ": r"\mu ", "λ": r"\lambda "},
    **{"π": r"\pi ", "κ": r"\kappa ", "ρ": r"\rho ", "ℓ": r"\ell ", "∈": r"\in "},
    **{"⌈": r"\lceil ", "⌉": r"\rceil ", "~": r"\sim ", "%": r"\%", "′": "'", "'": "'"},
    **{"ŷ": r"\hat{y}", "ȳ": r"\bar{y}", "|": r"\vert ", "‖": r"\Vert "},
    **{";": r";\quad ", ",": r",\ ", " ": " ", "\u0303": ""},
}
_RAISED = dict(zip("⁰¹²³⁻⁺", "0123-+", strict=True))
_LOWERED = dict(zip("₀₁₂₊", "012+", strict=True))
_WORD = r"(?:p-value|[a-z]{2,}_[a-z]{4,}|[A-Za-zé–’]{2,}(?:-[a-z]+)*(?:'s|(?<=s)'(?= ))?)"
_BETWEEN = rf"(?:(?:a|\d\d %?) ?(?!to\b)(?={_WORD}))?"
"""An article or a share, before a word."""
_PHRASE = re.compile(rf"(?:a (?!to\b)(?={_WORD}))?{_WORD}(?: {_BETWEEN}(?!max\b){_WORD})*")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_FUNCTIONS = {"max", "min", "log"}


def to_latex(formula: str) -> str:
    """A formula as it stands in the catalogue, in LaTeX: words upright, roots and scripts set."""
    written, rest = _sequence(formula, "")
    assert not rest, rest
    return re.sub(r"(?<=[^ \\]) +(?=\\text)", r"\\ ", written).strip()


def _sequence(text: str, end: str) -> tuple[str, str]:
    """LaTeX up to a closing sign, and what follows it."""
    parts: list[str] = []
    while text and not (end and text.startswith(end)):
        part, text = _next(text, end)
        parts.append(part)
    return "".join(parts), text[len(end) :]


def _next(text: str, end: str) -> tuple[str, str]:
    """What a formula begins with, in LaTeX, and the rest."""
    first, rest = text[0], text[1:]
    if text.startswith("1{"):
        inner, rest = _sequence(text[2:], "}")
        return rf"\mathbf{{1}}\{{{inner}\}}", rest
    if first == "√":
        if rest.startswith("("):
            inner, rest = _sequence(rest[1:], ")")
        else:
            inner, rest = _sequence(rest, end)
            rest = f"{end}{rest}" if end else rest
        return rf"\sqrt{{{inner}}}", rest
    if first in "_^":
        return _script(first, rest)
    for sign, signs in (("^", _RAISED), ("_", _LOWERED)):
        if first in signs:
            length = next((i for i, each in enumerate(text) if each not in signs), len(text))
            return f"{sign}{{{''.join(map(signs.__getitem__, text[:length]))}}}", text[length:]
    if first in "({[":
        closing = {"(": ")", "{": "}", "[": "]"}[first]
        inner, rest = _sequence(rest, closing)
        return (rf"\{{{inner}\}}", rest) if first == "{" else (f"{first}{inner}{closing}", rest)
    if rest.startswith("\u0303"):
        return rf"\tilde{{{first}}}", rest[1:]
    if found := re.match(r"d([tzpρ])\b", text):
        return rf"\,d{_SIGNS.get(found[1], found[1])}", text[found.end() :]
    if found := _PHRASE.match(text):
        words = found[0].replace("_", " ").replace("%", r"\%")
        if words in _FUNCTIONS:
            return rf"\{words} ", text[found.end() :]
        head = re.match(r"(max|min|log)(?= )", words)
        if head:
            return rf"\{head[0]} ", text[head.end() :]
        space = r"\ " if text[found.end() : found.end() + 1] == " " else ""
        return rf"\text{{{words}}}{space}", text[found.end() :]
    if found := _NUMBER.match(text):
        return found[0], text[found.end() :]
    return _SIGNS.get(first, first), rest


def _script(sign: str, text: str) -> tuple[str, str]:
    """A subscript or superscript: in braces or brackets, or a word, a number or a sign."""
    closing = {"{": "}", "(": ")"}.get(text[0])
    if closing:
        inner, rest = _sequence(text[1:], closing)
        return f"{sign}{{{inner}}}", rest
    found = re.match(r"\d+|[a-z]{2,}|.", text)
    assert found is not None
    inner = rf"\text{{{found[0]}}}" if len(found[0]) > 1 else _next(found[0], "")[0]
    return f"{sign}{{{inner}}}", text[found.end() :]


def visit_math(translator: Any, node: Any) -> None:
    """Write a formula as MathML, which needs neither a script nor a network."""
    translator.body.append(convert(node.astext()))
    raise SkipNode
