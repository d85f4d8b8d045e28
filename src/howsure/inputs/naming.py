"""What a column's name says: a bound with its coverage, a quantile with its level.

Names are compared in lower case, with spaces and hyphens as underscores.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

_PREFIX = r"(?:(?P<prefix>pi|ci|y|yhat|y_hat|y_pred|pred|prediction|forecast|interval|obs_ci)_?)?"
_NUMBER = r"\d+(?:[._]\d+)?"
_BOUND = re.compile(
    _PREFIX + rf"(?:(?P<before>{_NUMBER})_?)?"
    r"(?:(?P<lower>lower|lwr|lo|lb)|(?P<upper>upper|upr|hi|ub))"
    rf"(?:_?(?:bound|limit|pi|ci))?(?:_?(?P<after>{_NUMBER})(?:%|pct)?)?",
    re.ASCII,
)
_QUANTILE = re.compile(
    r"(?P<prefix>(?:(?:y|yhat|y_hat|y_pred|pred|prediction|forecast)_)?"
    rf"(?:q|quantile|p|pct|percentile))_?(?P<number>{_NUMBER})",
    re.ASCII,
)
_BARE = re.compile(r"(?P<level>0?\.\d+)|(?P<percent>\d+(?:\.\d+)?)%", re.ASCII)


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of an interval, as a name tells it.

    Attributes
    ----------
    side : {"lower", "upper"}
        Which end.
    stem : str
        The words before it, which the other end shares.
    coverage : float, optional
        Nominal coverage, where the name holds a number that can be nothing else.
    unclear : bool
        Whether the name holds a number that may mean several things.
    """

    side: Literal["lower", "upper"]
    stem: str
    coverage: float | None
    unclear: bool


@lru_cache(maxsize=1 << 17)  # a table may have a hundred thousand columns
def normal_form(name: str) -> str:
    """The name as it is compared.

    Examples
    --------
    >>> normal_form(" Y-True ")
    'y_true'
    """
    return re.sub(r"[\s\-]+", "_", name.strip().lower())


def bound(name: str) -> Bound | None:
    """Read a name as that of an interval's end.

    A number of two digits that starts with none is a percentage, as is one such as 97.5; a number
    between 0 and 1 is a share. Anything else (``lower_5``, ``lower_05``, ``lower_975``) is
    unclear: it may be a coverage or a quantile's level.

    Examples
    --------
    >>> bound("lower_90").coverage, bound("PI-0.95-upper").coverage, bound("yhat_lower").coverage
    (0.9, 0.95, None)
    >>> bound("lower_05").unclear
    True
    >>> bound("lowland") is None
    True
    """
    match = _BOUND.fullmatch(normal_form(name))
    if match is None or (match["before"] and match["after"]):
        return None
    number = match["before"] or match["after"]
    side: Literal["lower", "upper"] = "lower" if match["lower"] else "upper"
    share = None if number is None else _share(number)
    return Bound(side, match["prefix"] or "", share, number is not None and share is None)


def quantile_levels(names: Iterable[str]) -> dict[str, float | None]:
    """Read names as those of quantiles; None where a name may mean several levels.

    ``0.05``, ``q0.05``, ``q_0_05``, ``quantile_0.05`` are levels; ``5%``, ``q97.5``, ``p97.5`` are
    percentages, and where a family of names holds one of these, its other numbers with a point
    are percentages too. Without a point, two digits are a percentage (``q05``, ``P95``). One
    digit is a percentage if the same family holds its complement (``q5`` beside ``q95``): alone,
    ``q1`` may be a quartile or a decile. Three digits are thousandths (``q025``, ``q975``) if one
    of the family starts with no zero: otherwise ``q005`` may be 0.5 % or 5 %. ``median`` is the
    level 0.5.

    Examples
    --------
    >>> quantile_levels(["q025", "q50", "q975", "y"])
    {'q025': 0.025, 'q50': 0.5, 'q975': 0.975}
    >>> quantile_levels(["q1", "q2", "q3"])
    {'q1': None, 'q2': None, 'q3': None}
    """
    found: dict[str, float | None] = {}
    families: dict[str, dict[str, str]] = {}
    for name in names:
        plain = normal_form(name)
        bare = _BARE.fullmatch(plain)
        if plain == "median":
            found[name] = 0.5
        elif bare is not None:
            found[name] = float(bare["level"] or 0) or _round(float(bare["percent"] or 0) / 100)
        elif (match := _QUANTILE.fullmatch(plain)) is not None:
            families.setdefault(match["prefix"], {})[name] = match["number"].replace("_", ".")
    for prefix, family in families.items():
        numbers = set(family.values())
        percent = any("." in number and float(number) >= 1 for number in numbers)
        mixed = prefix.endswith(("p", "pct", "percentile")) and any("." not in n for n in numbers)
        for name, number in family.items():
            if "." not in number:
                found[name] = _whole_level(number, numbers)
            elif percent:
                found[name] = _round(float(number) / 100)
            else:
                found[name] = None if mixed else float(number)
    return {name: level for name, level in found.items() if level is None or 0 < level < 1}


def _share(number: str) -> float | None:
    if "." in number or "_" in number:
        value = float(number.replace("_", "."))
        share = value if value < 1 else _round(value / 100)
        return share if 0 < share < 1 else None
    return int(number) / 100 if len(number) == 2 and number[0] != "0" else None


def _whole_level(digits: str, family: set[str]) -> float | None:
    """Level of a number without a point; 0 where it is none."""
    if int(digits) == 0 or len(digits) > 3:
        return 0.0
    if len(digits) == 1:
        return int(digits) / 100 if str(100 - int(digits)) in family else None
    if len(digits) == 2:
        return int(digits) / 100
    clear = any(len(other) == 3 and other[0] != "0" for other in family - {"100"})
    return int(digits) / 1000 if clear and digits != "100" else None


def _round(value: float) -> float:
    return round(value, 12)
