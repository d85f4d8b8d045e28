"""What is concluded of coverage: of all rows, on both sides, in groups."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from howsure.core.errors import UnanswerableError
from howsure.core.formats import fixed, listed, percent
from howsure.core.records import Record
from howsure.core.text import capitalized
from howsure.core.times import Chronology
from howsure.engine.finding import (
    FROM_ALL,
    LEVEL,
    MARGIN,
    SDS,
    Case,
    Draft,
    Finding,
    FindingQuestion,
    Words,
    at_worst,
    draft_departure,
    of_value,
    points,
    share_with_span,
    since_change,
    small,
    student_p,
)
from howsure.stats.binomial import binomial_test
from howsure.stats.estimate import spread_of, weighted_mean
from howsure.topics.calibration.components import MOVED
from howsure.topics.group_scores import ERRORS

# Share of the misses at the nominal coverage that label sets must claim for coverage to test them.
# Sets that claim fewer hold nearly every class: they cover whatever the probabilities are. By
# hand; not tuned.
_MIN_MISSES_CLAIMED = 0.1
_LIMIT_OF_SURE_SETS = (
    "Sets with nominal coverage near 100 % hardly test the probabilities; use a lower coverage."
)

# ---- of all rows ---------------------------------------------------------------------------------


def _coverage(case: Case) -> Draft:
    if math.isnan(case.coverage):
        case.get("empirical_coverage")
        raise UnanswerableError("the nominal coverage of the intervals is unknown")
    return at_worst(case, _coverage_at, short_first=True)


def _coverage_at(case: Case) -> Draft:
    cover = case.get("empirical_coverage")
    least = case.coverage if math.isnan(cover.null) else cover.null
    most = float(cover.options.get("claimed_most", least))
    claimed = least if cover.value < least else most

    def beyond(share: float) -> float:
        return share - min(max(share, least), most)

    if least < cover.value < most:
        p = 1.0
    elif case.evalset.independent:  # past the most: y strictly inside more often than the least
        hits = cover.value - (most - least if cover.value >= most else 0.0)
        p = float(binomial_test(round(hits * cover.n), cover.n, least))
    elif case.evalset.chronology is not None:
        p = _in_time(case, case.evalset.chronology, cover.value - claimed, claimed)
    else:
        spread = cover.value * (1.0 - cover.value)
        wider = math.sqrt(max(claimed * (1.0 - claimed) / spread, 1.0)) if spread > 0 else 1.0
        p = student_p(cover.value - claimed, wider * cover.standard_error, case.freedom)
    return Draft(
        effect=beyond(cover.value),
        lower=beyond(cover.lower),
        upper=beyond(cover.upper),
        p=p,
        n=cover.n,
        within=since_change(case, "coverage"),
        telling=not case.of_sets or 1.0 - least > _MIN_MISSES_CLAIMED * (1.0 - case.coverage),
        facts={
            "record": cover,
            "coverage": case.coverage,
            "claims": (least, most),
            "sets": case.of_sets,
            "quantile": case.one_quantile if cover.source == "quantiles" else None,
        },
    )


def _in_time(case: Case, times: Chronology, off: float, claimed: float) -> float:
    """The p-value of coverage where rows follow each other: hits hide the memory of sizes.

    The variance of a hit is that of the claim at least: one that is smaller is luck.
    """
    weights, counts = case.evalset.weights, case.evalset.multiplicities
    hits = case.array("covered")
    mean = weighted_mean(hits, counts)
    least = math.sqrt(claimed * (1.0 - claimed))
    if hits.min() == hits.max():  # the signal alone tells
        rows, scale = times.size, 1.0 / least if least > 0 else math.nan
        if rows is None:
            return math.nan
        rows = rows - weighted_mean(rows, counts)
        rows = rows / math.sqrt(weighted_mean(np.square(rows), counts))
    else:
        rows, scale = hits - mean, min(math.sqrt(mean * (1.0 - mean)) / least, 1.0)
    return spread_of(rows, weights, times.hiding(times.size)).p(scale * off)


def _coverage_words(draft: Draft, _: Finding) -> Words:
    facts = draft.facts
    if facts.get("quantile") is not None:
        return _quantile_words(draft)
    what = "sets" if facts["sets"] else "intervals"
    sentence = f"The {percent(facts['coverage'])} {what} cover {share_with_span(facts['record'])}"
    least, most = facts["claims"]
    claim = percent(least)
    # Half of a tenth of a point, which is what is shown: nearer claims read the same.
    if most - least > 5e-4:
        claim += f" to {percent(most)}"
    elif abs(least - facts["coverage"]) <= 5e-4:
        claim = ""
    sentence += f", expected {claim}" if claim else ""
    way = "under-cover" if draft.effect < 0 else "over-cover"
    well = f"in line with the {'expected' if claim else 'nominal'} coverage"
    clause = f"the {percent(facts['coverage'])} {what} cover {percent(facts['record'].value)}"
    more = ""
    if "above" in facts:
        level, off = facts["above"]
        more = f"Those at {percent(level)} over-cover by {points(off)}."
    clause += f" (expected {claim})" if claim else ""
    limit = "" if draft.telling else _LIMIT_OF_SURE_SETS
    return Words(
        sentence,
        f"they {way} by {points(draft.effect)}",
        well + _as_others(draft, what),
        more,
        limit=limit,
        clause=clause,
    )


def _quantile_words(draft: Draft) -> Words:
    """Of one quantile alone, by the share of y on the side that it bounds."""
    level, record = draft.facts["quantile"], draft.facts["record"]
    upper = level >= 0.5
    where = f"of y are {'at or below' if upper else 'at or above'} the {level:g} quantile"
    least, most = draft.facts["claims"]
    claim = percent(least) if most - least <= 5e-4 else f"{percent(least)} to {percent(most)}"
    way = "low" if (draft.effect < 0) == upper else "high"
    return Words(
        f"{share_with_span(record)} {where}, expected {claim}",
        f"the quantile is too {way}, by {points(draft.effect)} of coverage",
        "in line with the expected share" + _as_others(draft, "intervals"),
        clause=f"{percent(record.value)} {where} (expected {claim})",
    )


def _as_others(draft: Draft, what: str) -> str:
    """That what holds at one stated level holds at the others too."""
    levels = sorted(draft.facts.get("others", ()))
    if not levels:
        return ""
    if len(levels) > _MAX_LEVELS_NAMED:
        return f", as are the {what} of the {len(levels)} other levels"
    return f", as are those at {listed([percent(level) for level in levels])}"


# A sentence of 25 words holds no more.
_MAX_LEVELS_NAMED = 3

# ---- with two ends -------------------------------------------------------------------------------


def _ends(case: Case) -> Draft:
    below, above = (np.isinf(end) for end in case.ends or (np.zeros(1),) * 2)
    infinite = below | above
    if not infinite.any():
        raise UnanswerableError("")  # of intervals with two ends nothing is said
    counts, others_cover = case.evalset.multiplicities, math.nan
    if not infinite.all():
        others_counts = None if counts is None else counts[~infinite]
        others_cover = weighted_mean(case.array("covered")[~infinite], others_counts)
    kinds = {
        "no bounds": below & above,
        "no lower bound": below & ~above,
        "no upper bound": above & ~below,
    }
    return Draft(
        effect=weighted_mean(infinite.astype(float), counts),
        n=float(len(below)),
        facts={
            "kinds": {
                what: weighted_mean(rows.astype(float), counts) for what, rows in kinds.items()
            },
            "others": others_cover,
            "bad": bool(kinds["no bounds"].all()),
        },
    )


def _ends_words(draft: Draft, _: Finding) -> Words:
    others_cover = float(draft.facts["others"])
    kinds = listed(
        [
            what if share == 1.0 else f"{what} in {percent(share)} of rows"
            for what, share in draft.facts["kinds"].items()
            if share
        ]
    )
    sentence, clause = f"Intervals have {kinds}", f"intervals have {kinds}"
    if not math.isnan(others_cover):
        return Words(f"{sentence}; the others cover {percent(others_cover)}", clause=clause)
    if draft.facts["bad"]:
        sentence += ": they always cover and carry no information"
    return Words(sentence, clause=clause)


# ---- on both sides -------------------------------------------------------------------------------


def _one_sided(case: Case) -> Draft:
    return at_worst(case, _one_sided_at)


def _one_sided_at(case: Case) -> Draft:
    cover = case.get("empirical_coverage")
    if cover.source == "label sets":
        raise UnanswerableError("label sets have no sides")
    if cover.source != "intervals":
        raise UnanswerableError("bias and skew judge both sides of a predictive distribution")
    if "claimed_most" in cover.options:
        raise UnanswerableError("y often equals an end of its interval")
    record = case.get("miss_imbalance")
    if math.isnan(record.p):
        raise UnanswerableError("no row is missed")
    below = case.get("misses_below").value
    facts = {"record": record, "below": below, "coverage": case.coverage}
    return of_value(record, p=record.p, facts=facts)


def _one_sided_words(draft: Draft, _: Finding) -> Words:
    below = float(draft.facts["below"])
    above = below + draft.facts["record"].value
    level = f"{percent(draft.facts['coverage'])} " if draft.facts.get("others") else ""
    sentence = (
        f"y is below its {level}interval in {percent(below)} of rows and above it in "
        f"{percent(above)}"
    )
    side = "above" if draft.effect > 0 else "below"
    return Words(sentence, f"misses are mostly {side}", "misses are balanced")


# ---- in groups -----------------------------------------------------------------------------------


def _groups(case: Case) -> Draft:
    """By coverage, bias and spread: two tests, of which the clearer tells.

    What is not clear by itself, and a spread that coverage shows too, is told by coverage.
    """
    try:
        errors = case.get(ERRORS)
    except UnanswerableError:
        return _by_coverage(case)
    try:
        covered = _by_coverage(case)
    except UnanswerableError:
        return _by_errors(errors)
    p = min(2.0 * min(errors.p, covered.p), 1.0)
    by_rows = [
        2.0 * min(test.p, float(facts.get("p_here", 1.0))) < LEVEL
        for test, facts in ((errors, errors.options), (covered, covered.facts))
    ]
    told_by_coverage = by_rows[1] and (
        errors.p >= covered.p or errors.options["signal"] == "spread"
    )
    if told_by_coverage or not by_rows[0]:
        return replace(covered, p=p)
    return replace(_by_errors(errors), p=p, good=covered.good)


def _by_errors(test: Record) -> Draft:
    details = test.options
    moved = MOVED[str(details["signal"])]
    effect, *ends = (moved * float(details[name]) for name in ("deviation", "lower", "upper"))
    return Draft(
        effect=effect,
        lower=ends[0],
        upper=ends[1],
        p=test.p,
        where=str(details["where"]),
        n=test.n,
        facts={**details, "errors": True},
    )


def _by_coverage(case: Case) -> Draft:
    worst = case.records.get("worst_group_shortfall")
    shared = {"worst": worst, "sets": case.of_sets}
    try:
        test = case.get("groups_differ")
        cover = case.records.get("empirical_coverage")
        overall = math.nan if cover is None else cover.value
        return draft_departure(test, {**shared, "overall": overall, "claimed": False})
    except UnanswerableError:  # of a range of claims, a group can fall short of the least
        if worst is None or math.isnan(worst.p):
            raise
    claimed = float(worst.options["claimed"])
    return Draft(
        effect=-worst.value,
        lower=-worst.upper,
        upper=-worst.lower,
        p=worst.p if worst.value > 0 else 1.0,
        where=worst.group,
        n=worst.n,
        good=worst.upper <= MARGIN,
        facts={
            **shared,
            "value": claimed - worst.value,
            "expected": claimed,
            "claimed": True,
            "rows": worst.n,
            "spells": worst.options.get("spells", 0.0),
        },
    )


def _in_groups(draft: Draft, finding: Finding) -> Words:
    """The group whose bias or spread differs most clearly, and the next if it is of that kind."""
    facts, more = draft.facts, ""
    size, overall = float(facts["size"]), float(facts["overall"])
    other = float(facts["size_2"]) if facts.get("signal_2") == facts["signal"] else None
    if facts["signal"] == "bias":
        clause = f"in {draft.where} predictions are {_far(size, f'{SDS} ')}"
        sentence, second = f"{clause} on average", "" if other is None else _far(other)
        if (
            other is not None
            and other * size < 0.0
            and abs(overall) < _MAX_BIAS_OVERALL * abs(size)
        ):
            more = "The biases cancel overall."
        else:
            way = f" {_far(overall).partition(' ')[2]}" if overall * size < 0.0 else ""
            sentence += f", {fixed(abs(overall), 2)}{way} overall"
    else:
        times, overall_size, second = (
            "" if each is None else f"{small(each, 2, trim=False)} ×"
            for each in (size, overall, other)
        )
        clause = f"in {draft.where} actual errors are {times} the predicted spread"
        sentence = f"{clause}, {overall_size} overall"
    if second:
        sentence += f", {second} in {facts['where_2']}"
    fault = f"groups differ in {facts['signal']}"
    limit = _limit_of_spells(draft, finding)
    return Words(capitalized(sentence), fault, _well(), more, limit, clause)


# Bias of all rows beside that of a group, below which groups cancel. It decides words alone.
_MAX_BIAS_OVERALL = 0.25


def _far(shift: float, unit: str = "") -> str:
    """By how many predicted sds predictions are off, and which way."""
    return f"{small(abs(shift), 2, trim=False)} {unit}too {'low' if shift > 0 else 'high'}"


def _well() -> str:
    return f"no group differs by more than {points(MARGIN)}"


def _limit_of_spells(draft: Draft, finding: Finding) -> str:
    """That so few spells show nothing in general, where rows alone would."""
    count = int(draft.facts.get("spells", 0))
    if float(draft.facts.get("p_here", 1.0)) < LEVEL <= finding.p:
        return f"With only {_spells(count)}, this may not apply to {draft.where} in general."
    return ""


def _spells(count: int) -> str:
    return "1 period" if count == 1 else f"{count:,} periods"


def _groups_words(draft: Draft, finding: Finding) -> Words:
    facts, where = draft.facts, draft.where
    if facts.get("errors"):
        return _in_groups(draft, finding)
    spells = int(facts.get("spells", 0))
    cover, expected = percent(float(facts["value"])), percent(float(facts["expected"]))
    what, clause = "Sets" if facts["sets"] else "Intervals", f"coverage is {cover} in {where}"
    sentence = (
        f"{what} cover {cover} of {float(facts['rows']):,.0f} rows"
        f"{f' in {_spells(spells)}' if spells else ''} in {where}, "
    )
    worst, more = facts.get("worst"), ""
    if draft.effect > 0 and isinstance(worst, Record) and worst.group not in ("", where):
        least = percent(float(worst.options["claimed"]) - worst.value)
        sentence = f"{what} cover {least} in {worst.group}, but {cover} in {where}, "
        clause = f"coverage is {least} in {worst.group}"
    if facts["claimed"]:
        sentence += f"where at least {expected} is expected"
    elif expected == percent(float(facts["overall"])):
        sentence += f"{expected} overall"
    else:
        sentence += f"{expected} {FROM_ALL}"
    if finding.state == "bad" and isinstance(worst, Record) and worst.lower > 0:
        who = "That group" if worst.group == where else worst.group
        more = f"{who} under-covers by at least {points(worst.lower)}."
    margin = points(MARGIN)
    if facts["claimed"]:
        return Words(
            sentence,
            "this group under-covers",
            f"no group under-covers by {margin}",
            more,
            clause=clause,
        )
    limit = _limit_of_spells(draft, finding)
    return Words(sentence, "groups differ in coverage", _well(), more, limit, clause)


FINDINGS = (
    FindingQuestion(
        id="ends",
        kind="data",
        asked="Are all intervals bounded?",
        label="Bounds",
        draft=_ends,
        words=_ends_words,
        tolerance=0.0,
        margin=math.nan,
        healed="none",
    ),
    FindingQuestion(
        id="coverage",
        asked="Do the intervals have their nominal coverage?",
        label="Coverage",
        draft=_coverage,
        words=_coverage_words,
        measures=("empirical_coverage",),
        name="overall coverage",
    ),
    FindingQuestion(
        id="one_sided",
        asked="Are misses equally frequent on both sides?",
        label="Left/right balance",
        draft=_one_sided,
        words=_one_sided_words,
        measures=("misses_below", "miss_imbalance"),
        name="the balance of misses",
    ),
    FindingQuestion(
        id="groups",
        asked="Do groups differ in coverage, bias or spread?",
        label="Groups",
        draft=_groups,
        words=_groups_words,
        measures=("groups_differ", ERRORS, "worst_group_shortfall"),
        section="Groups",
        name="coverage in groups",
        cause="how groups differ",
        needs="Needed for groups: more rows of {where}, or a model that uses this column.",
        measured=False,  # its effect may be of probabilities, its sentence of bias
        healed="aimed",
    ),
)
