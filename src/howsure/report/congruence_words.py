"""What a page on congruence says: whose laws are wrong, where, and whether ECE sees it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from howsure.core import formats
from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.protocols.congruence_diagnosis import Diagnosis
from howsure.protocols.congruence_perturbations import MonotonicityResult
from howsure.protocols.congruence_published import published_reliability
from howsure.protocols.congruence_rejection import Rejection
from howsure.protocols.congruence_reliability import Reliability
from howsure.protocols.congruence_robustness import Robustness
from howsure.report.congruence_findings import Found, blind_spots, worst_stretch
from howsure.report.document import GlossaryEntry, Tone, VerdictLine
from howsure.report.shift_words import listed

LEVEL: Final = 0.05
"""Up to which p an order or a trend is called beyond chance."""
_SOURCE: Final = "Young et al. 2025"
_LOSSES: Final[Mapping[str, str]] = {"mae": "MAE", "nll": "NLL"}

GLOSSARY: Final = (
    GlossaryEntry(
        name="mean_cce",
        title="CCE",
        meaning="Distance between the law of y that a model believes at x and the law that the "
        "data show there, averaged over x. It means nothing without that of a right model, "
        "which grows as rows become few; values compare within a task alone.",
        formula="mean over x of ‖embedding of y at x − embedding of beliefs at x‖",
        source=f"{_SOURCE}, section 3",
        direction="lower is better",
        notion="pointwise",
    ),
    GlossaryEntry(
        name="ece",
        title="ECE",
        meaning="Distance of observed shares from stated levels over all rows, by P(Y ≤ y). Laws "
        "of counts have a large one even when they are right.",
        source="Kuleshov et al. 2018",
        direction="lower is better",
        notion="marginal",
    ),
    GlossaryEntry(
        name="ece_exact",
        title="ECE, spread over cells",
        meaning="The same with the probability integral transform of each row spread over the "
        "cell of its count, as if it were randomised; a right law of counts has none but chance.",
        source="Czado et al. 2009",
        direction="lower is better",
        notion="marginal",
    ),
    GlossaryEntry(
        name="nll",
        title="NLL",
        meaning="Mean negative log likelihood. Densities and probabilities do not compare.",
        units="nats",
        direction="lower is better",
    ),
    GlossaryEntry(
        name="nll_unnormalised",
        title="NLL without constant",
        meaning="NLL as published: that of double Poisson laws lacks its normalising constant.",
        units="nats",
        direction="lower is better",
    ),
    GlossaryEntry(
        name="mae", title="MAE", meaning="Mean absolute error.", direction="lower is better"
    ),
    GlossaryEntry(
        name="cce_steps_up",
        title="Steps up",
        meaning="Share of steps from one severity of a perturbation to the next at which mean CCE "
        "rises; Page's L tests the trend over all severities.",
        source=f"{_SOURCE}, section 4.4",
        direction="higher is better",
    ),
    GlossaryEntry(
        name="rejection_gain_mae",
        title="Gain by rejection",
        meaning="How much of what the best order of withholding rows gains, the order by CCE "
        "without labels does: 1 for the best, 0 for a random order.",
        source=f"{_SOURCE}, appendix A.3",
        direction="higher is better",
        notion="local",
    ),
    GlossaryEntry(
        name="cce_error_spearman",
        title="Correlation with the true error",
        meaning="Spearman's correlation over test inputs of CCE without labels with the exact "
        "distance of the model's law from the true one.",
        source=f"{_SOURCE}, section 4.7",
        direction="higher is better",
        notion="local",
    ),
    GlossaryEntry(
        name="cce_variation",
        title="Coefficient of variation",
        meaning="Standard deviation by mean over bootstrap samples of the test rows.",
        source=f"{_SOURCE}, section 4.5",
    ),
)


def headline(found: Sequence[Found]) -> VerdictLine | None:
    """Whose laws are wrong, and whether ECE sees it; None where no model has an answer."""
    models = [one for one in found if not one.is_truth and math.isfinite(one.mean("cce"))]
    judged = [one for one in models if one.verdict != "not known"]
    if not judged:
        told = "What a right model would show is not known, so that no model can be judged by CCE."
        return VerdictLine(text=told) if models else None
    wrong = [one for one in judged if one.verdict == "wrong"]
    tasks = len({one.world for one in judged})
    where = f"{len(judged)} tests of models on {tasks} {'task' if tasks == 1 else 'tasks'}"
    if not wrong:
        text = (
            f"In none of {where} does CCE show laws of y that are wrong: all lie within what a "
            "right model shows by chance."
        )
        return VerdictLine(text=text, tone="undecided")
    text = f"In {len(wrong)} of {where}, CCE shows laws of y that are wrong at some x"
    first = max(wrong, key=lambda one: one.ratio)
    text += f", most of all {first.model} on {first.world} ({_times(first)})."
    text += _unseen(wrong, found)
    return VerdictLine(text=text, tone="bad" if len(wrong) == len(judged) else "info")


def _unseen(wrong: Sequence[Found], found: Sequence[Found]) -> str:
    """In how many of the tests ECE does not see what CCE does."""
    hidden, compared = {"ece_exact": 0, "ece": 0}, 0
    for world in dict.fromkeys(one.world for one in wrong):
        held = [one for one in found if one.world == world]
        if not any(one.verdict == "not told" or one.is_truth for one in held):
            continue
        compared += sum(one.world == world for one in wrong)
        for measure in hidden:
            hidden[measure] += len({bad.model for bad, _ in blind_spots(held, measure)})
    if not compared:
        return ""
    cells, plain = (compared - hidden[measure] or "none" for measure in ("ece_exact", "ece"))
    verb = "stands" if compared == 1 else "stand"
    beside = f"the {compared} that {verb} beside a law which CCE lets pass"
    if cells == plain:
        return f" ECE sees {cells} of {beside}."
    return (
        f" Of {beside}, ECE sees {cells} if spread over the cells of counts, and {plain} by "
        "P(Y ≤ y) alone."
    )


def model_lines(
    found: Sequence[Found], places: Mapping[tuple[str, int], FloatArray | None]
) -> tuple[VerdictLine, ...]:
    """One sentence a model: is its law right, and where is it not?"""
    lines = []
    adrift = [one for one in found if _adrift(one)]
    for one in found:
        cce, (null, words) = one.mean("cce"), one.yardstick
        if one in adrift:
            lines += [_adrift_line(adrift)] if one is adrift[0] else []
            continue
        if math.isnan(cce):
            reason = one.reasons.get("cce", "no reason was given")
            lines.append(VerdictLine(text=f"Not known: {reason}.", question=one.model))
            continue
        tone: Tone = "info"
        text = f"CCE is {_short(cce)}"
        if one.is_truth:
            text = (
                f"The law that the data came from has a CCE of {_short(cce)}, an ECE of "
                f"{_short(one.mean('ece'))}, and {_short(one.mean('ece_exact'))} spread over cells."
            )
        elif one.verdict == "wrong":
            tone = "bad"
            text += f", {_times(one)} ({_short(null)}) and beyond chance.{_where(one, places)}"
        else:
            tone = "undecided" if one.verdict == "not told" else "info"
            text += f"; that of {words} is {_short(null)}."
            if one.verdict == "not known":
                text += " How much it varies is not known."
            elif cce > null:
                text += " The difference may be chance."
        lines.append(VerdictLine(text=text, tone=tone, question=one.model))
    return tuple(lines)


def _times(one: Found) -> str:
    return f"{one.ratio:.2g} times that of {one.yardstick[1]}"


def _adrift(one: Found) -> bool:
    """Whether there is no right model to compare with."""
    known = math.isfinite(one.mean("cce"))
    return known and math.isnan(one.yardstick[0]) and not one.is_truth


def _adrift_line(found: Sequence[Found]) -> VerdictLine:
    order = sorted(found, key=lambda one: one.mean("cce"))
    low, high = order[0], order[-1]
    text = f"CCE is {_short(low.mean('cce'))}"
    if len(order) > 1:
        text += f" ({low.model}) to {_short(high.mean('cce'))} ({high.model})"
    text += "; that of a right model is not known, so that no model can be judged by it."
    question = "Models" if len(order) > 1 else low.model
    return VerdictLine(text=text, question=question)


def _where(one: Found, places: Mapping[tuple[str, int], FloatArray | None]) -> str:
    """Where CCE is largest along x, else how it is spread over the rows."""
    rows = one.runs[0].rows.get("cce")
    if rows is None or len(rows) < 10:
        return ""
    x = places.get((one.model, one.runs[0].seed))
    if x is not None and len(x) == len(rows):
        low, high, mean = worst_stretch(x, rows)
        ends = f"{formats.number(low, 3)} to {formats.number(high, 3)}"
        return f" It is largest for x from {ends} ({_short(mean)})."
    low, high = np.quantile(rows, [0.1, 0.9]).tolist()
    return f" Four rows in five have between {_short(low)} and {_short(high)}."


def ece_lines(found: Sequence[Found], *, counts: bool) -> tuple[VerdictLine, ...]:
    """Whether ECE sees what CCE does, on one task."""
    known = [one for one in found if math.isfinite(one.mean("cce"))]
    wrong = [one for one in known if one.verdict == "wrong" and not one.is_truth]
    right = [one for one in known if one.verdict == "not told" or one.is_truth]
    if not wrong or not right:
        return _orders([one for one in known if not one.is_truth])
    lines = []
    kinds = {"ece_exact": "ECE"} if not counts else {"ece_exact": "ECE, cells", "ece": "Plain ECE"}
    for measure, question in kinds.items():
        pairs = blind_spots(known, measure)
        if not pairs:
            text = "It agrees with CCE: larger for all models that CCE finds wrong than for others."
            lines.append(VerdictLine(text=text, tone="good", question=question))
            continue
        bad, good = pairs[0]
        names = listed(list(dict.fromkeys(pair[0].model for pair in pairs)), 4)
        other = "the law that the data came from" if good.is_truth else good.model
        lets = "" if good.is_truth else ", which CCE does not find wrong"
        text = (
            f"It does not see what is wrong with {names}: {_short(bad.mean(measure))} for "
            f"{bad.model}, {_short(good.mean(measure))} for {other}{lets}."
        )
        lines.append(VerdictLine(text=text, tone="bad", question=question))
    return tuple(lines)


def _orders(known: Sequence[Found]) -> tuple[VerdictLine, ...]:
    """Which models either measure puts first and last."""
    told = []
    for measure, words in (("cce", "CCE"), ("ece_exact", "ECE")):
        values = {one.model: one.mean(measure) for one in known}
        order = sorted((m for m in values if math.isfinite(values[m])), key=values.__getitem__)
        if len(order) < 2:
            return ()
        told.append(f"{words} is least for {order[0]} and largest for {order[-1]}")
    return (VerdictLine(text=f"{'; '.join(told)}.", question="ECE beside CCE"),)


def monotonicity_line(result: MonotonicityResult) -> VerdictLine | None:
    """In how many curves CCE rises with severity, beyond chance; None where there is none."""
    p_values = {m: [c.page(m)[1] for c in result.curves] for m in ("cce", "ece")}
    known = [p for p in p_values["cce"] if math.isfinite(p)]
    if not known:
        return None
    rises = {m: sum(p <= LEVEL for p in held) for m, held in p_values.items()}
    curves = f"{len(known)} curves of models and perturbations"
    text = (
        f"CCE rises with severity in {rises['cce']} of {curves} (Page's trend test, p ≤ {LEVEL:g})"
        f", ECE in {rises['ece']}."
    )
    flat = [
        f"{curve.model} under {curve.kind.replace('_', ' ')}"
        for curve, p in zip(result.curves, p_values["cce"], strict=True)
        if p > LEVEL
    ]
    if flat:
        text += f" CCE does not for {listed(flat, 4)}."
    tone: Tone = "good" if not flat else "bad" if rises["cce"] == 0 else "undecided"
    return VerdictLine(text=text, tone=tone, question="Perturbed data")


def rejection_line(rejections: Sequence[Rejection]) -> VerdictLine | None:
    """Whether withholding rows by CCE lowers the losses; None where there is no test."""
    told, best = [], 0.0
    for loss, words in _LOSSES.items():
        held = [one for one in rejections if loss in one.curves]
        gains = [one.curves[loss].gain for one in held]
        known = [gain for gain in gains if math.isfinite(gain)]
        if not known:
            continue
        lower = sum(one.p_values[loss] <= LEVEL for one in held)
        best = max(best, lower / len(held))
        span = _span(known, lambda gain: formats.fixed(gain, 2))
        told.append(f"{words} in {lower} of {len(held)} tests (gain {span})")
    if not told:
        return None
    text = (
        f"Withholding rows of high CCE, without their labels, lowers the {'; the '.join(told)}. "
        f"1 is the best order, 0 a random one; counted are p ≤ {LEVEL:g}."
    )
    return VerdictLine(text=text, tone="good" if best == 1.0 else "info", question="Rejection")


def diagnosis_line(diagnoses: Sequence[Diagnosis]) -> VerdictLine | None:
    """How CCE without labels follows the true error; None where nothing is known."""
    spans = {}
    for score in ("cce", "nll"):
        known = [v for one in diagnoses if math.isfinite(v := one.correlation(score)[0])]
        if known:
            spans[score] = _span(known, lambda value: formats.fixed(value, 2))
    if "cce" not in spans:
        return None
    text = f"Over test inputs, CCE without labels follows the true error: Spearman {spans['cce']}"
    if "nll" in spans:
        text += f". NLL, which needs labels: {spans['nll']}"
    return VerdictLine(text=f"{text}.", question="Diagnosis")


def robustness_line(held: Sequence[Robustness]) -> VerdictLine | None:
    """How far the most outliers move NLL, ECE and CCE; None where they were not tried."""
    changes: dict[str, list[float]] = {"nll": [], "ece": [], "cce": []}
    most = max((rows for one in held for rows in _outliers(one)), default=0)
    for one in held:
        place = _outliers(one).get(most)
        if place is None:
            continue
        for measure, values in changes.items():
            change = float(one.relative_change(measure)[place])
            values += [change] if math.isfinite(change) else []
    told = [f"{m.upper()} by {_span(values, _change)}" for m, values in changes.items() if values]
    if not told:
        return None
    rows = "1 row" if most == 1 else f"{most} rows"
    verb = "moves" if most == 1 else "move"
    text = f"{rows} put far from what is believed {verb} {listed(told)}."
    return VerdictLine(text=text, question="Outliers")


def _outliers(one: Robustness) -> dict[int, int]:
    """Places of the settings with outliers, by how many there are."""
    return {
        int(rows): place
        for place, (setting, rows) in enumerate(zip(one.settings, one.spoilt, strict=True))
        if setting.startswith("outliers")
    }


def reliability_lines(found: Reliability) -> tuple[VerdictLine, ...]:
    """Welch's test of the coefficients of variation, ours and the paper's."""
    lines = []
    try:
        test = found.test
        known = int((np.isfinite(found.cce) & np.isfinite(found.ece)).sum())
        varies = test.greater <= LEVEL
        text = (
            f"Coefficients of variation are {formats.share(test.means[0])} for CCE and "
            f"{formats.share(test.means[1])} for ECE on average over {known} pairs of a task and a "
            f"model. Welch's test: p = {test.two_sided:.3f} against any difference, "
            f"{test.greater:.3f} against a CCE that varies more."
        )
        lines.append(VerdictLine(text=text, tone="bad" if varies else "good", question="Here"))
    except InputError as error:
        lines.append(VerdictLine(text=f"Not known: {error}.", question="Here"))
    theirs = published_reliability().test
    text = (
        f"Over 25 pairs of table 2, {formats.share(theirs.means[0])} for CCE and "
        f"{formats.share(theirs.means[1])} for ECE; p = {theirs.two_sided:.3f} and "
        f"{theirs.greater:.3f}."
    )
    return (*lines, VerdictLine(text=text, question="Published"))


def _short(value: float) -> str:
    return formats.number(value, 2) if value < 0.01 else f"{value:.3f}"


def _change(value: float) -> str:
    text = f"{100 * value:+.2g}" if abs(value) < 0.995 else f"{100 * value:+,.0f}"
    return f"{formats.minus(text)} %"


def _span(values: Sequence[float], show: Callable[[float], str]) -> str:
    """The ends of a range in words, or the one value."""
    low, high = show(min(values)), show(max(values))
    return low if low == high else f"{low} to {high}"
