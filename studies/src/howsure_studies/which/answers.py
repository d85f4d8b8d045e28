"""Sentences of the page, each made from numbers and left out where they do not prove it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from howsure.core.formats import counted, fixed, listed
from howsure.report.document import VerdictLine
from howsure_studies.which.judging import ALL, ARMS, BEST, CONFORMAL, RAW
from howsure_studies.which.results import WhichResult
from howsure_studies.which.standing import (
    CLIMATOLOGY,
    Crossed,
    MeanOf,
    MethodScores,
    Which,
    coverage,
    log_ratio,
)

_NOMINAL: Final = 0.9
_NEAR: Final = 0.02
"""By how much a mean coverage may be off the nominal and be called near it."""
_NAMED: Final = 4


def best_lines(which: Which) -> tuple[VerdictLine, ...]:
    """Which methods lead by score, and what their intervals cover as they come."""
    standing = which.standing("home", ALL)
    if standing is None:
        return ()
    leaders, tables = standing.leaders, len(standing.scores.tables)
    of = f"{counted(tables, 'table')}"
    if len(leaders) == 1:
        others = "every other method"
        if not standing.best.compared.all():
            others += " with numbers on all"
        text = f"Use {leaders[0]}: over {of}, {others} has a significantly worse score."
    elif len(leaders) <= _NAMED:
        text = f"Use {listed(leaders, last='or')}: over {of}, no score is significantly worse."
    else:
        text = (
            f"Use any of {len(leaders)} methods, such as {listed(leaders[:2], last='or')}: over "
            f"{of}, none of their scores is significantly worse."
        )
    lines = [VerdictLine(text=text, tone="good", question="Score")]
    lines += _coverage_line(which, leaders)
    return tuple(lines)


def _coverage_line(which: Which, leaders: Sequence[str]) -> list[VerdictLine]:
    """How many of the leaders cover too little as they come."""
    covered = which.crossed("home", coverage(ALL)).means()
    known = {m: covered[m] for m in leaders if math.isfinite(covered[m].value)}
    short = {m: mean for m, mean in known.items() if mean.upper < _NOMINAL - _NEAR / 2}
    if not known:
        return []
    if not short:
        near = [m for m, mean in known.items() if abs(mean.value - _NOMINAL) <= _NEAR]
        if len(near) < len(known):
            return []
        span = _span(*(100 * f(m.value for m in known.values()) for f in (min, max)))
        text = f"Uncorrected, their 90 % intervals cover {span} on average."
        if len(known) == 1:
            text = f"Uncorrected, its 90 % intervals cover {span} on average."
        return [VerdictLine(text=text, tone="good", question="Coverage")]
    worst = min(short, key=lambda method: short[method].value)
    count = f"{len(short)} of these {len(known)}" if len(known) > 1 else "it"
    text = (
        f"Uncorrected, {count} under-cover (nominal 90 %); the worst is {worst}: "
        f"{_share(short[worst])}."
    )
    if len(known) == 1:
        text = f"Uncorrected, its 90 % intervals cover {_share(short[worst])}."
    return [VerdictLine(text=text, tone="bad", question="Coverage")]


def _share(mean: MeanOf) -> str:
    """A mean share with its interval."""
    ends = f"{fixed(100 * mean.lower, 0)} to {fixed(100 * mean.upper, 0)}"
    return f"{fixed(100 * mean.value, 0)} % ({ends})"


def _span(low: float, high: float) -> str:
    """A range in per cent; one number where both ends show as one."""
    ends = dict.fromkeys(fixed(end, 0) for end in (low, high))
    return f"{' to '.join(ends)} %"


def correction_lines(which: Which) -> tuple[VerdictLine, ...]:
    """What a conformal correction does to coverage, what it costs, and what was advised."""
    lines: list[VerdictLine] = []
    corrected = _known_means(which.crossed("home", coverage(CONFORMAL)))
    if corrected:
        values = [mean.value for mean in corrected.values()]
        low, high = min(values), max(values)
        near = [m for m, v in corrected.items() if abs(v.value - _NOMINAL) <= _NEAR]
        span = f"{_span(100 * low, 100 * high)} on average"
        if len(near) == len(corrected):
            text = f"Corrected with held-out rows, every method covers {span}."
            lines.append(VerdictLine(text=text, tone="good", question="Correction"))
        else:
            text = (
                f"Corrected with held-out rows, {len(near)} of {len(corrected)} methods cover "
                f"88 to 92 % on average; all methods cover {span}."
            )
            lines.append(VerdictLine(text=text, tone="caution", question="Correction"))
    lines += _price(which)
    lines += _advised(which)
    return tuple(lines)


def _known_means(crossed: Crossed) -> dict[str, MeanOf]:
    """Means of methods that have one, but for climatology."""
    return {
        method: mean
        for method, mean in crossed.means().items()
        if method != CLIMATOLOGY and math.isfinite(mean.value)
    }


def _difference(which: Which, arm: str, other: str) -> Crossed:
    """The logarithm of the ratio of two arms' scores."""
    first, second = (which.crossed("home", log_ratio(each)) for each in (arm, other))
    return Crossed(methods=first.methods, tables=first.tables, values=first.values - second.values)


def _price(which: Which) -> list[VerdictLine]:
    """What score a corrected fit loses to one that trains on all rows."""
    price = _known_means(_difference(which, CONFORMAL, ALL))
    shown = {m: mean.percent for m, mean in price.items() if mean.lower > 0.0}
    if not shown:
        return []
    values = sorted(mean.value for mean in shown.values())
    text = (
        f"Holding out rows for a correction worsens the score of {_of(len(shown), len(price))} "
        f"methods by {_span(values[0], values[-1])}, compared with training on all rows."
    )
    return [VerdictLine(text=text, tone="caution", question="Price")]


def _of(some: int, every: int) -> str:
    return f"all {every}" if some == every else f"{some} of {every}"


def _advised(which: Which) -> list[VerdictLine]:
    """What the advised correction bought on rows that it never saw."""
    home = [r for r in which.of("home") if not r.failure and r.method != CLIMATOLOGY]
    chosen = [result for result in home if result.advised]
    by_table = _by_table(chosen, lambda r: math.log(r.ratio(BEST) / r.ratio(RAW)))
    if len(by_table) < 5:
        return []
    gain = MeanOf.over(by_table.values()).percent
    before = MeanOf.over(_by_table(chosen, lambda r: _off(r, RAW)).values())
    after = MeanOf.over(_by_table(chosen, lambda r: _off(r, BEST)).values())
    share = fixed(100 * len(chosen) / len(home), 0)
    change = f"{fixed(abs(gain.value), 1)} % ({fixed(-gain.upper, 1)} to {fixed(-gain.lower, 1)})"
    if gain.upper < 0.0:
        bought = f"lowered the score on new rows by {change}"
    elif gain.lower > 0.0:
        bought = f"raised the score on new rows by {fixed(gain.value, 1)} %"
    else:
        bought = "did not significantly change the score on new rows"
    nearer = f"{fixed(100 * (before.value - after.value), 1)} points closer to nominal"
    text = f"Advised in {share} % of fits, corrections {bought} and moved coverage {nearer}."
    better = gain.upper < 0.0 and after.value < before.value
    return [VerdictLine(text=text, tone="good" if better else "caution", question="Advice")]


def _off(result: WhichResult, arm: str) -> float:
    """How far a coverage is off the nominal."""
    return abs(result.covered(arm) - _NOMINAL)


def _by_table(
    results: Sequence[WhichResult], value: Callable[[WhichResult], float]
) -> dict[str, float]:
    """By table, the mean over its results."""
    found: dict[str, list[float]] = {}
    for result in results:
        found.setdefault(result.table, []).append(value(result))
    return {table: float(np.nanmean(values)) for table, values in found.items()}


def shift_lines(which: Which) -> tuple[VerdictLine, ...]:
    """Whether any method keeps its coverage on late and foreign rows, raw or corrected."""
    lines: list[VerdictLine] = []
    crossed = which.crossed("shift", coverage(ALL))
    late = _known_means(crossed)
    fixed_up = _known_means(which.crossed("shift", coverage(CONFORMAL)))
    if len(crossed.tables) < 5 or not late or not fixed_up:
        return ()
    low, high = min(m.value for m in late.values()), max(m.value for m in late.values())
    ends = [mean.value for mean in fixed_up.values()]
    kept = [
        method
        for by_method in (late, fixed_up)
        for method, mean in by_method.items()
        if mean.upper >= _NOMINAL
    ]
    span, corrected = _span(100 * low, 100 * high), _span(100 * min(ends), 100 * max(ends))
    if not kept:
        text = (
            f"On late or foreign rows, no method has 90 % coverage: {span} uncorrected, "
            f"{corrected} corrected."
        )
        lines.append(VerdictLine(text=text, tone="bad", question="Shift"))
    else:
        text = (
            f"On late or foreign rows, methods cover {span} on average (nominal 90 %); "
            f"corrected, {corrected}."
        )
        lines.append(VerdictLine(text=text, tone="caution", question="Shift"))
    return tuple(lines)


def power_lines(which: Which) -> tuple[VerdictLine, ...]:
    """Which gap these tables show, and how many would tell the first two apart."""
    standing = which.standing("home", ALL)
    if standing is None:
        return ()
    tables = len(standing.scores.tables)
    gap = fixed(100 * standing.separable(tables), 0)
    first = f"{counted(tables, 'table').capitalize()} detect a gap of {gap} % with 80 % power"
    first_two = standing.leaders[:2]
    needed = standing.tables_needed(first_two[-1])
    pair = listed(first_two)
    if needed is None or needed <= tables:
        return (VerdictLine(text=f"{first}.", question="Power"),)
    about = f"about {needed:,}" if needed < 10_000 else "over 10,000"
    text = f"{first}; to separate {pair} takes {about}."
    return (VerdictLine(text=text, question="Power"),)


def rank_lines(which: Which) -> tuple[VerdictLine, ...]:
    """How many pairs are told apart, and what more rows change."""
    lines = []
    home, large = which.standing("home", ALL), which.standing("large", ALL)
    if home is not None:
        better = int(home.ranks.better.sum())
        pairs = len(home.scores.methods) * (len(home.scores.methods) - 1) // 2
        text = f"Of {pairs} pairs of methods, {better} differ significantly (95 %, simultaneous)."
        lines.append(VerdictLine(text=text, question="Pairs"))
    if large is not None:
        same = [result for result in which.of("home") if result.table in large.scores.tables]
        before = MethodScores.of(Crossed.of(same, log_ratio(ALL)))
        lines += [] if before is None else [_more_rows(before, large)]
    return tuple(lines)


def _more_rows(home: MethodScores, large: MethodScores) -> VerdictLine:
    """Who leads with more rows, or how many do not, beside fewer rows of the same tables."""
    left = [m for m in home.leaders if m in large.scores.methods and m not in large.leaders]
    count, methods = len(large.leaders), len(large.scores.methods)
    if 2 * count > methods:
        worse, before = (len(each.scores.methods) - len(each.leaders) for each in (large, home))
        text = (
            f"On {counted(len(large.scores.tables), 'table')} with up to 10,000 rows, "
            f"{worse or 'none'} of {methods} methods {'are' if worse > 1 else 'is'} significantly "
            f"worse than the best; with 1,000 rows, {before or 'none'} of "
            f"{len(home.scores.methods)}."
        )
        return VerdictLine(text=text, question="More rows")
    who = listed(large.leaders) if count <= _NAMED else f"{count} methods"
    text = f"With up to 10,000 rows, {who} {'lead' if count > 1 else 'leads'}"
    if set(large.leaders) == set(home.leaders):
        return VerdictLine(text=f"{text}, as with 1,000 on the same tables.", question="More rows")
    if left:
        does = "do" if len(left) > 1 else "does"
        text += f"; {listed(left, _NAMED)} {does} so only with 1,000 on the same tables"
    return VerdictLine(text=f"{text}.", question="More rows")


def finding_lines(which: Which) -> tuple[VerdictLine, ...]:
    """How many cuts have any fault of the verdict."""
    home = [r for r in which.of("home") if not r.failure and r.method != CLIMATOLOGY]
    if not home:
        return ()
    whole, best = ARMS.index(ALL), ARMS.index(BEST)
    shares = [np.mean([(r.states[arm] == 4).any() for r in home]) for arm in (whole, best)]
    before, after = (fixed(100 * float(share), 0) for share in shares)
    text = (
        f"Uncorrected, {before} % of fits have a fault on test rows; corrected as advised, "
        f"{after} %."
    )
    return (VerdictLine(text=text, question="Faults"),)


def cost_lines(which: Which) -> tuple[VerdictLine, ...]:
    """The cheapest of the leaders."""
    standing = which.standing("home", ALL)
    if standing is None or len(standing.leaders) < 2:
        return ()
    spent = {
        method: float(np.median([r.seconds[1] for r in which.of("home", method) if not r.failure]))
        for method in standing.leaders
    }
    cheap, dear = min(spent, key=spent.__getitem__), max(spent, key=spent.__getitem__)
    text = (
        f"Of the leaders, {cheap} is the fastest ({_seconds(spent[cheap])} per fit) and {dear} the "
        f"slowest ({_seconds(spent[dear])})."
    )
    return (VerdictLine(text=text, question="Cost"),)


def _seconds(value: float) -> str:
    return f"{fixed(value, 1)} s" if value >= 0.05 else "less than 0.1 s"
