"""Columns of several models in one wide table, named after them: LGBM-lo-90, ridge_sd."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Final

from howsure.core.errors import InputError
from howsure.inputs.names import bound, is_quantile, likely_ends, normal_form
from howsure.inputs.roles import BY_NAME
from howsure.inputs.source import listed, quoted

Families = dict[str, dict[str, str]]
"""For each model its columns, by what each would be called were the model alone."""

KEYS: Final = ("unique_id", "ds", "cutoff")
"""What nixtla calls the series of a row, its time, and when it was forecast."""
FEWEST_SERIES: Final = 10
"""From which on guessed series are clusters; a few clusters prove nothing, so they are groups."""

_NUMBER: Final = r"\d+(?:\.\d+)?"
_NIXTLA: Final = re.compile(
    rf"(?P<model>.+?)(?:-(?P<side>lo|hi)-(?P<percent>{_NUMBER})|[-_]ql(?P<level>0?\.\d+)"
    r"|-(?P<median>median))"
)
_SPLIT: Final = re.compile(r"[_\-. ]+")
_SURE_POINTS: Final = frozenset(
    ("pred", "prediction", "predicted", "y_pred", "ypred", "yhat", "y_hat")
)


def nixtla(names: Sequence[str]) -> Families:
    """Models by the columns that nixtla's libraries write: ``LGBM``, ``LGBM-lo-90``, …."""
    matches = {name: match for name in names if (match := _NIXTLA.fullmatch(name))}
    models = [match["model"] for match in matches.values() if not match["median"]]
    found: Families = {model: {} for model in dict.fromkeys(models)}
    for name in names:
        match = matches.get(name)
        if name in found:
            found[name][name] = "point"
        elif match is not None and match["model"] in found:
            found[match["model"]][name] = _plain(match)
    return found


def _plain(match: re.Match[str]) -> str:
    if match["median"]:
        return "median"
    if match["level"]:
        return f"q{float(match['level']):g}"
    side = "lower" if match["side"] == "lo" else "upper"
    return f"{side}_{round(float(match['percent']) / 100, 12):g}"


def alike(names: Sequence[str]) -> Families:
    """Models whose names begin the names of their columns, or end them: ``ridge_sd``, ``sd_ridge``.

    There must be two at least, and each must have what the others have.
    """
    for first in (True, False):
        found: Families = {}
        for name in names:
            parts = _parts(name, model_first=first)
            if parts is not None:
                found.setdefault(parts[0], {})[name] = parts[1]
        sets = {model: frozenset(held.values()) for model, held in found.items()}
        whole = {model: held for model, held in sets.items() if _is_whole(held)}
        if len(whole) < 2:
            continue
        if len(set(sets.values())) == 1:
            if (pair := likely_ends(found)) is not None:
                low, high = (next(iter(found[model])) for model in pair)
                raise InputError(
                    f"columns {quoted(low)} and {quoted(high)} may be ends of intervals or point "
                    f"forecasts of two models: pass lower=, upper= and coverage= (--lower, "
                    f"--upper, --coverage), or points= (--points {shlex.quote(f'{low},{high}')})"
                )
            return found
        ends = {model for model, held in sets.items() if any(bound(name) for name in held)}
        if ends.issuperset(whole):
            every = frozenset().union(*(sets[model] for model in ends))
            for model in sorted(ends):
                if sets[model] != every:
                    raise InputError(
                        f"names of columns suggest the models {listed(sorted(ends))}, and "
                        f"{quoted(model)} has no {listed(sorted(every - sets[model]))}: complete "
                        "it or drop it, or pass lower=, upper= and coverage= of one (--lower, "
                        "--upper, --coverage)"
                    )
    return {}


def _parts(name: str, *, model_first: bool) -> tuple[str, str] | None:
    """The model and the rest of a name; of several readings that of the shortest model."""
    found = []
    for match in _SPLIT.finditer(name):
        head, tail = name[: match.start()], name[match.end() :]
        model, rest = (head, tail) if model_first else (tail, head)
        plain = normal_form(rest)
        if model and _is_prediction(plain) and not _is_prediction(normal_form(model)):
            found.append((model, plain))
    return min(found, key=lambda pair: len(pair[0]), default=None)


def _is_prediction(plain: str) -> bool:
    return (
        any(BY_NAME[role].matches(plain) for role in ("mean", "sd", "point"))
        or bound(plain) is not None
        or is_quantile(plain)
    )


def _is_whole(names: frozenset[str]) -> bool:
    """Whether these names are a prediction."""
    sd = any(BY_NAME["sd"].matches(name) for name in names)
    centre = any(BY_NAME[role].matches(name) for role in ("mean", "point") for name in names)
    sides = [end.side for name in names if (end := bound(name)) is not None]
    quantiles = sum(map(is_quantile, names))
    ends = bool(sides) and sides.count("lower") == sides.count("upper")
    return (sd and centre) or ends or quantiles > 1 or bool(names & _SURE_POINTS)
