"""What the names of single columns say: ends of intervals and levels of quantiles."""

from __future__ import annotations

import math
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
    rf"(?:_?(?:bound|limit|pi|ci))?(?:_?(?P<after>{_NUMBER})(?:_?%|pct)?)?",
    re.ASCII,
)
_QUANTILE = re.compile(
    r"(?P<prefix>(?:(?:y|yhat|y_hat|y_pred|pred|prediction|forecast)_)?"
    rf"(?:q|quantile|p|pct|percentile))_?(?P<number>{_NUMBER})",
    re.ASCII,
)
UNNAMED = re.compile(r"unnamed: ?\d+", re.IGNORECASE)
"""What pandas calls a column without a name."""
NAMELESS = re.compile(rf"\s*|{UNNAMED.pattern}|level_0|index|__index_level_0__", re.IGNORECASE)
"""Names of the index of a frame in files."""
_LOW = frozenset(("low", "lower", "lo", "lwr", "lb", "min", "minimum"))
_HIGH = frozenset(("high", "higher", "upper", "hi", "upr", "ub", "max", "maximum"))
_PREDICTED = frozenset(("y", "pred", "prediction", "predicted", "yhat", "hat", "forecast"))
_PREDICTED |= {"pi", "pis", "ci", "interval"}
_BARE = re.compile(r"(?P<level>0?\.\d+)|(?P<percent>\d+(?:\.\d+)?)%", re.ASCII)


@dataclass(frozen=True, slots=True)
class IntervalEnd:
    """One end of an interval, as a name tells it."""

    side: Literal["lower", "upper"]  # {"lower", "upper"}: which end
    stem: str  # the words before it, which the other end shares
    # nominal coverage, where the name holds a number that can be nothing else
    coverage: float | None
    unclear: bool  # whether the name holds a number that may mean several things


@lru_cache(maxsize=1 << 17)  # a table may have a hundred thousand columns
def normal_form(name: str) -> str:
    """The name as it is compared."""
    return re.sub(r"[\s\-]+", "_", name.strip().lower())


def bound(name: str) -> IntervalEnd | None:
    """Read a name as that of an interval's end."""
    match = _BOUND.fullmatch(normal_form(name))
    if match is None or (match["before"] and match["after"]):
        return None
    number = match["before"] or match["after"]
    side: Literal["lower", "upper"] = "lower" if match["lower"] else "upper"
    share = None if number is None else _share(number)
    return IntervalEnd(side, match["prefix"] or "", share, number is not None and share is None)


def in_words(name: str) -> str:
    """The words of a name, and its numbers, in lower case."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=\d)", " ", name)
    return " ".join(re.findall(r"[a-z]+|\d+", apart.lower()))


def likely_ends(names: Iterable[str]) -> tuple[str, str] | None:
    """The two names that may be those of the ends of intervals, though `bound` knows neither.

    >>> likely_ends(["y_pred", "y_pred_low", "pred_high"])
    ('y_pred_low', 'pred_high')
    >>> likely_ends(["temp_min", "temp_max", "PI min", "PI max"])
    ('PI min', 'PI max')
    """
    words = {name: frozenset(in_words(name).split()) for name in names}
    predicted = {name: held for name, held in words.items() if held & _PREDICTED}
    for pool in (predicted, words):
        low = {held - _LOW: name for name, held in pool.items() if held & _LOW}
        high = {held - _HIGH: name for name, held in pool.items() if held & _HIGH}
        pairs = [(low[rest], high[rest]) for rest in low if rest in high]
        if pool is predicted and not pairs and len(low) == len(high) == 1:
            pairs = list(zip(low.values(), high.values(), strict=True))
        if pairs:
            return pairs[0]
    return None


def quantile_levels(names: Iterable[str]) -> dict[str, float | None]:
    """Read names as those of quantiles; None where a name may mean several levels.

    Levels 0 and 1, which bound y, count beside others alone.
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
        percent = any("." in number and float(number) > 1 for number in numbers)
        whole = numbers - {"0", "1"} if not percent else numbers
        mixed = prefix.endswith(("p", "pct", "percentile")) and any("." not in n for n in whole)
        for name, number in family.items():
            if "." not in number:
                shares = not percent and any("." in other for other in numbers)
                found[name] = 1.0 if shares and number == "1" else _whole_level(number, numbers)
            elif percent:
                found[name] = _round(float(number) / 100)
            else:
                found[name] = None if mixed else float(number)
    inner = any(level is not None and 0 < level < 1 for level in found.values())
    return {n: p for n, p in found.items() if p is None or 0 < p < 1 or (inner and p in (0, 1))}


def is_quantile(plain: str) -> bool:
    """Whether a name, in normal form, may be that of a quantile."""
    return plain == "median" or bool(_QUANTILE.fullmatch(plain) or _BARE.fullmatch(plain))


def _share(number: str) -> float | None:
    if "." in number or "_" in number:
        value = float(number.replace("_", "."))
        share = value if value < 1 else _round(value / 100)
        return share if 0 < share < 1 else None
    return int(number) / 100 if len(number) == 2 and number[0] != "0" else None


def _whole_level(digits: str, family: set[str]) -> float | None:
    """Level of a number without a point; one that is out of reach where it is none."""
    if int(digits) == 0 or len(digits) > 3:
        return 0.0 if int(digits) == 0 else math.inf
    if len(digits) == 1:
        return int(digits) / 100 if str(100 - int(digits)) in family else None
    if len(digits) == 2:
        return int(digits) / 100
    clear = any(o.isdigit() and len(o) == 3 and o[0] != "0" for o in family - {"100"})
    if digits == "100":
        percent = any(len(other) == 2 or float(other) > 1 for other in family - {"100"})
        return 1.0 if percent and not clear else None
    return int(digits) / 1000 if clear else None


def _round(value: float) -> float:
    return round(value, 12)
