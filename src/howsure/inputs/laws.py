"""Columns of the parameters of a law, by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from howsure.core.errors import InputError
from howsure.inputs.assigned import LawColumns
from howsure.inputs.naming import normal_form
from howsure.inputs.source import listed
from howsure.predictions import law_named
from howsure.predictions.counts.family import COUNT_FAMILIES

_MARKS: Final = ("_loc", "_weight_1")  # some parameter of every law that is not one of counts
_STEMS: Final = {
    "weight": "w weight pi prob probability",
    "loc": "mean mu loc",
    "scale": "sd std sigma scale",
}
_PART: Final = re.compile(
    rf"(?P<stem>{'|'.join(' '.join(_STEMS.values()).split())})_?(?P<number>\d+)", re.ASCII
)


def guessed_law(names: Sequence[str]) -> LawColumns | None:
    """The law whose parameters columns hold, if their names say so."""
    found = [*_families(names), *_mixtures(names)]
    if len(found) > 1:
        firsts = [str(next(iter(law.parameters.values()))) for law in found]
        raise InputError(
            f"law must be one, and names of columns say that there are {len(found)} (from "
            f"{listed(firsts)} on): say law=NAME:PARAMETER=COLUMN,… (--law …), or law=''"
        )
    return found[0] if found else None


def _families(names: Sequence[str]) -> Iterable[LawColumns]:
    """Laws whose family begins the names of all their parameters."""
    known = set(names)
    marked = [name.removesuffix(mark) for mark in _MARKS for name in names if name.endswith(mark)]
    for family in dict.fromkeys((*COUNT_FAMILIES, *marked)):
        try:
            law = law_named(family)
        except InputError:
            continue
        columns = {name: f"{family}_{name}" for name in law.parameters}
        if family in COUNT_FAMILIES and columns.get("loc") not in known:
            columns.pop("loc", None)
        if known.issuperset(columns.values()):
            yield LawColumns(family, columns)


def _mixtures(names: Sequence[str]) -> Iterable[LawColumns]:
    """Mixtures of normal laws whose parts are numbered."""
    columns: dict[str, dict[int, str]] = {}
    for name in names:
        match = _PART.fullmatch(normal_form(name))
        if match is not None:
            columns.setdefault(match["stem"], {})[int(match["number"])] = name
    for weights in _held(columns, "weight"):
        for means in _held(columns, "loc"):
            for sds in _held(columns, "scale"):
                numbers = sorted(weights)
                whole = numbers in ([*range(len(numbers))], [*range(1, len(numbers) + 1)])
                if len(numbers) > 1 and whole and weights.keys() == means.keys() == sds.keys():
                    roles = {"weight": weights, "loc": means, "scale": sds}
                    parts = {
                        f"{role}_{place}": held[number]
                        for place, number in enumerate(numbers, 1)
                        for role, held in roles.items()
                    }
                    yield LawColumns("+".join(["norm"] * len(numbers)), parts)


def _held(columns: dict[str, dict[int, str]], role: str) -> list[dict[int, str]]:
    return [columns[stem] for stem in _STEMS[role].split() if stem in columns]
