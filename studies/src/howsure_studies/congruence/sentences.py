"""What a page on congruence says: which models are wrong, where, and whether ECE detects it.

`ModelFinding` is what was found of one model on one task, `TaskExperiments` all of a task.
Of the sentences that may be said of something, the first is said whose condition holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Final, Literal, final

import numpy as np

from howsure.core import formats
from howsure.core.arrays import FloatArray
from howsure.core.formats import counted, listed
from howsure.core.records import Record, ResultTable
from howsure.report.document import GlossaryEntry, Tone, VerdictLine
from howsure_studies.congruence.measure import TRUTH
from howsure_studies.congruence.reliability import Reliability, published_reliability
from howsure_studies.congruence.result import (
    CongruenceResult,
    CongruenceRun,
    CongruenceStudies,
    Diagnosis,
    Monotonicity,
    MonotonicityResult,
    Rejection,
    Robustness,
    joined,
    mean_known,
)
from howsure_studies.engine import named

Verdict = Literal["wrong", "accepted", "not known"]
CORRECT: Final = "a correctly specified model"
TRUE: Final = "the true distribution"
SURE: Final = 2.0
"""Standard errors by which CCE must exceed that of a correctly specified model to be wrong."""
LEVEL: Final = 0.05
"""Up to which p an order or a trend is called beyond chance."""
LOSSES: Final[Mapping[str, str]] = {"mae": "MAE", "nll": "NLL"}
"""What rejection may lower."""
_SOURCE: Final = "Young et al. 2025"
_ECE: Final[Mapping[str, str]] = {"ece_exact": "ECE, cells", "ece": "Plain ECE"}
Places = Mapping[tuple[str, int], FloatArray | None]
"""The only input of the test rows, by model and seed; None where there are more."""


def first_said(question: str, *sentences: tuple[bool, Tone, str]) -> VerdictLine:
    """The first of several sentences whose condition holds."""
    tone, text = next((tone, text) for holds, tone, text in sentences if holds)
    return VerdictLine(text=text, tone=tone, question=question)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ModelFinding:
    """One model on one task, as the plan calls it, over all its sets of data.

    `truths` are the runs of the true distribution, by seed.
    """

    world: str
    model: str
    runs: tuple[CongruenceRun, ...]
    truths: tuple[CongruenceRun, ...]

    @property
    def is_truth(self) -> bool:
        """Whether this is the distribution that the data came from."""
        return self.model == TRUTH

    def mean(self, measure: str) -> float:
        """Mean over the sets of data with an answer."""
        return mean_known([run.value(measure) for run in self.runs])

    def data_sd(self, measure: str) -> float:
        """Root mean square over sets of data of the standard deviation over bootstrap samples."""
        return _root_mean_square(run.data_sd(measure) for run in self.runs)

    @property
    def draws_sd(self) -> float:
        """Root mean square over sets of data of CCE's standard deviation over sets of draws."""
        return _root_mean_square(run.monte_carlo_sd for run in self.runs)

    @cached_property
    def yardstick(self) -> tuple[float, str]:
        """CCE of a correctly specified model, and what it is of; NaN where neither is known.

        It is what a model of these predictive distributions would have if they were correct, else
        what the distribution has that the data came from.
        """
        null = self.mean("cce_null")
        if math.isfinite(null):
            return null, CORRECT
        truth = mean_known([run.value("cce") for run in self.truths])
        return (truth, TRUE) if math.isfinite(truth) and not self.is_truth else (math.nan, "")

    @property
    def ratio(self) -> float:
        """CCE by that of a correctly specified model."""
        null = self.yardstick[0]
        return self.mean("cce") / null if null > 0 else math.nan

    @cached_property
    def verdict(self) -> Verdict:
        """Whether CCE lies significantly above that of a correctly specified model.

        The standard error is the spread over bootstrap samples (where there are none, over sets of
        draws), for the mean over sets of data; that of the true distribution is added where it
        stands for the correctly specified model.
        """
        null, words = self.yardstick
        error = math.hypot(_error(self.runs), _error(self.truths) if words == TRUE else 0.0)
        away = self.mean("cce") - null
        if math.isnan(away) or math.isnan(error):
            return "not known"
        return "wrong" if away > SURE * error else "accepted"

    @property
    def reasons(self) -> dict[str, str]:
        """Why measures are missing, of the first set of data that lacks each."""
        return {name: why for run in reversed(self.runs) for name, why in run.reasons.items()}


def _error(runs: Sequence[CongruenceRun]) -> float:
    spreads = [run.data_sd("cce") for run in runs]
    if not np.isfinite(spreads).any():
        spreads = [run.monte_carlo_sd for run in runs]
    return _root_mean_square(spreads) / math.sqrt(len(runs))


def _root_mean_square(values: Iterable[float]) -> float:
    return math.sqrt(mean_known([value**2 for value in values]))


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class TaskExperiments:
    """All experiments of one task, by the plan's name; `studies` holds one a set of data."""

    name: str
    studies: tuple[CongruenceStudies, ...]

    @cached_property
    def combined(self) -> CongruenceStudies:
        """Those of all sets of data as one; trials side by side, where severities agree."""
        every = joined(self.studies)
        if every.monotonicity is None:
            return every
        groups: dict[tuple[str, str, tuple[float, ...]], list[Monotonicity]] = {}
        for curve in every.monotonicity.curves:
            key = (curve.model, curve.kind, tuple(curve.severities.tolist()))
            groups.setdefault(key, []).append(curve)
        curves = []
        for first, *others in groups.values():
            tables = {k: [v, *(o.values[k] for o in others)] for k, v in first.values.items()}
            values = {k: np.concatenate(own, dtype=np.float64) for k, own in tables.items()}
            curves.append(replace(first, values=values))
        return replace(every, monotonicity=replace(every.monotonicity, curves=tuple(curves)))

    @property
    def several(self) -> bool:
        """Whether there is more than one set of data."""
        return len(self.studies) > 1

    @cached_property
    def findings(self) -> tuple[ModelFinding, ...]:
        """One finding a model."""
        return findings(self.name, self.combined.result.runs)

    @property
    def records(self) -> tuple[Record, ...]:
        """Every number; of experiments on several sets of data, with the seed."""
        whole, records = self.combined, list(self.combined.result.records())
        for study in self.studies:
            seed = {"seed": float(study.seed)} if self.several else {}
            own = replace(study, result=CongruenceResult(runs=()), monotonicity=None)
            records += [replace(r, options={**r.options, **seed}) for r in own.records()]
        return (*records, *(whole.monotonicity.records() if whole.monotonicity else ()))

    @property
    def tables(self) -> tuple[ResultTable, ...]:
        """The tables of the experiments."""
        whole = self.combined
        tables = [whole.result.table()] if whole.result.runs else []
        for study in self.studies:
            own = [result.table() for result in study.robustness]
            own += [result.table() for result in study.diagnoses]
            where = f"{self.name}, seed {study.seed}."
            tables += [replace(table, notes=f"{where} {table.notes}".strip()) for table in own]
        return tuple(tables)


def findings(world: str, runs: Sequence[CongruenceRun]) -> tuple[ModelFinding, ...]:
    """One finding a model of one task, in order of first appearance, the true distribution last."""
    truths = tuple(run for run in runs if run.model == TRUTH)
    own: dict[str, tuple[CongruenceRun, ...]] = {}
    for run in sorted(runs, key=lambda run: run.model == TRUTH):
        own[run.model] = (*own.get(run.model, ()), run)
    return tuple(
        ModelFinding(world=world, model=model, runs=own[model], truths=truths) for model in own
    )


def blind_spots(
    findings: Sequence[ModelFinding], measure: str
) -> list[tuple[ModelFinding, ModelFinding]]:
    """Pairs that an ECE puts the wrong way round: a misspecified model before an accepted one."""
    every = product(_wrong(findings), _right(findings))
    pairs = [(bad, good) for bad, good in every if bad.mean(measure) < good.mean(measure)]
    return sorted(pairs, key=lambda pair: pair[0].mean(measure) - pair[1].mean(measure))


def _wrong(findings: Iterable[ModelFinding]) -> list[ModelFinding]:
    return [finding for finding in findings if finding.verdict == "wrong" and not finding.is_truth]


def _right(findings: Iterable[ModelFinding]) -> list[ModelFinding]:
    return [finding for finding in findings if finding.verdict == "accepted" or finding.is_truth]


def worst_stretch(x: FloatArray, cce: FloatArray) -> tuple[float, float, float]:
    """Between which x CCE is largest: ends of the bin of equal mass, and its mean CCE."""
    order = np.argsort(x, kind="stable")
    parts = np.array_split(order, max(1, min(8, len(x) // 5)))
    means = [float(cce[members].mean()) for members in parts]
    worst = parts[int(np.argmax(means))]
    return float(x[worst].min()), float(x[worst].max()), max(means)


def title_of(models: int, tasks: Sequence[str]) -> str:
    """What was studied."""
    on = f"{counted(models, 'model')} on {named(tasks, 'task')}"
    return f"Are predictive distributions correct at every x? {on}"


def headline(findings: Sequence[ModelFinding]) -> VerdictLine | None:
    """Which models are wrong; None where no model has an answer."""
    models = [f for f in findings if not f.is_truth and math.isfinite(f.mean("cce"))]
    if not models:
        return None
    judged = [finding for finding in models if finding.verdict != "not known"]
    wrong, tasks = _wrong(judged), list(dict.fromkeys(finding.world for finding in judged))
    first = max(wrong, key=lambda finding: finding.ratio, default=models[0])
    on, count = f"on {named(tasks, 'task')}" if tasks else "", len(wrong) or "none"
    found = f"{count} of {counted(len(judged), 'model')} {on} misspecified at some x"
    if len(tasks) > 1:
        found = f"a model misspecified at some x in {count} of {len(judged)} tests {on}"
    worst = f"{first.model}{f' on {first.world}' if len(tasks) > 1 else ''}"
    worst = f"The worst, {worst}, has {first.ratio:.2g} times the CCE of {first.yardstick[1]}."
    sure = f"{SURE:g} standard errors"
    return first_said(
        "",
        (not judged, "info", f"Inconclusive: the CCE of {CORRECT} is not known."),
        (not wrong, "undecided", f"No significant fault: CCE finds {found} by more than {sure}."),
        (len(wrong) == len(judged), "bad", f"No: CCE finds {found}. {worst}"),
        (True, "caution", f"Not all: CCE finds {found}, by more than {sure}. {worst}"),
    )


def behind_line(findings: Sequence[ModelFinding]) -> VerdictLine | None:
    """How many of the misspecified models ECE finds worse than every accepted one of their task."""
    seen, compared = {"ece_exact": 0, "ece": 0}, 0
    for world in dict.fromkeys(finding.world for finding in findings):
        here = [finding for finding in findings if finding.world == world]
        wrong = _wrong(here) if _right(here) else []
        compared += len(wrong)
        for measure in seen:
            seen[measure] += len(wrong) - len({bad.model for bad, _ in blind_spots(here, measure)})
    if not compared:
        return None
    cells, plain = (str(count or "none") for count in seen.values())
    these = f"Of {counted(compared, 'misspecified model')} on a task with an accepted one, ECE"
    both = f"with P(Y ≤ y) finds {plain} worse"
    spread = f"Spread over the cells of counts, ECE finds {cells} worse"
    return first_said(
        "ECE compared with CCE",
        (min(seen.values()) == compared, "good", f"{these} finds {cells} worse, as CCE does."),
        (cells == plain, "bad", f"{these} finds {plain} worse."),
        (True, "caution", f"{these} {both}. {spread}."),
    )


def model_lines(findings: Sequence[ModelFinding], places: Places) -> tuple[VerdictLine, ...]:
    """Of each model: is it correctly specified, and where is it not? Accepted ones in one line."""
    accepted = [f for f in findings if f.verdict == "accepted" and not f.is_truth]
    alone = [f for f in findings if f not in accepted or len(accepted) == 1]
    lines = [_model_line(finding, places) for finding in alone]
    if len(accepted) > 1:
        names = listed([finding.model for finding in accepted])
        ratios = _span([finding.ratio for finding in accepted], lambda ratio: f"{ratio:.2f}")
        times = f"{ratios} times that of {accepted[0].yardstick[1]}"
        text = f"{names}. Their CCE is {times}: no significant difference."
        wrong = sum(finding.verdict == "wrong" for finding in alone)
        lines.insert(wrong, VerdictLine(text=text, tone="undecided", question="Accepted"))
    return tuple(lines)


def _model_line(finding: ModelFinding, places: Places) -> VerdictLine:
    null, of = finding.yardstick
    verdict = finding.verdict
    cce, ece, cells = (_short(finding.mean(m)) for m in ("cce", "ece", "ece_exact"))
    compared = f"CCE is {cce}, that of {of or CORRECT} {_short(null) if of else 'is not known'}"
    times = f"{finding.ratio:.2g} times that of {of} ({_short(null)})"
    reason = finding.reasons.get("cce", "no reason was given")
    right = f"The true distribution has a CCE of {cce} and an ECE of {ece}"
    wrong = f"Misspecified: its CCE of {cce} is {times}.{_where(finding, places)}"
    return first_said(
        finding.model,
        (math.isnan(finding.mean("cce")), "info", f"Not known: {reason}."),
        (finding.is_truth, "info", f"{right} ({cells} spread over cells)."),
        (not of, "info", f"{compared}, so it cannot be assessed."),
        (verdict == "wrong", "bad", wrong),
        (verdict == "not known", "info", f"{compared}; its variation is not known."),
        (True, "undecided", f"{compared}: no significant difference."),
    )


def _where(finding: ModelFinding, places: Places) -> str:
    """Where CCE is largest along x, else how it is spread over the rows."""
    rows = finding.runs[0].rows.get("cce")
    if rows is None or len(rows) < 10:
        return ""
    x = places.get((finding.model, finding.runs[0].seed))
    if x is None or len(x) != len(rows):
        low, high = np.quantile(rows, [0.1, 0.9]).tolist()
        return f" For 80 % of rows it is between {_short(low)} and {_short(high)}."
    low, high, mean = worst_stretch(x, rows)
    ends = f"{formats.number(low, 3)} to {formats.number(high, 3)}"
    return f" It is largest for x from {ends} ({_short(mean)})."


def ece_lines(findings: Sequence[ModelFinding], *, counts: bool) -> tuple[VerdictLine, ...]:
    """Whether ECE detects what CCE does, on one task."""
    known = [finding for finding in findings if math.isfinite(finding.mean("cce"))]
    if not _wrong(known) or not _right(known):
        return _orders([finding for finding in known if not finding.is_truth])
    lines = []
    for measure, question in _ECE.items() if counts else [("ece_exact", "ECE")]:
        pairs = blind_spots(known, measure)
        bad, good = pairs[0] if pairs else (known[0], known[0])
        names = listed(list(dict.fromkeys(bad.model for bad, _ in pairs)) or [""], 4)
        other = TRUE if good.is_truth else f"{good.model}, which CCE accepts"
        missed = (
            f"It does not detect the misspecification of {names}: {_short(bad.mean(measure))} for "
            f"{bad.model}, {_short(good.mean(measure))} for {other}."
        )
        agrees = "It agrees with CCE: larger for all misspecified models than for accepted ones."
        lines.append(first_said(question, (not pairs, "good", agrees), (True, "bad", missed)))
    return tuple(lines)


def _orders(known: Sequence[ModelFinding]) -> tuple[VerdictLine, ...]:
    """Which models either measure puts first and last."""
    sentences = []
    for measure, words in (("cce", "CCE"), ("ece_exact", "ECE")):
        values = {finding.model: finding.mean(measure) for finding in known}
        order = sorted((m for m in values if math.isfinite(values[m])), key=values.__getitem__)
        if len(order) < 2:
            return ()
        sentences.append(f"{words} is smallest for {order[0]} and largest for {order[-1]}")
    return (VerdictLine(text=f"{'. '.join(sentences)}.", question="ECE compared with CCE"),)


def monotonicity_line(result: MonotonicityResult | None) -> VerdictLine | None:
    """In how many curves CCE rises significantly with severity; None where there is none."""
    known = [] if result is None else [c for c in result.curves if math.isfinite(c.pages["cce"][1])]
    if not known:
        return None
    cce, ece = (sum(c.pages[m][1] <= LEVEL for c in known) for m in ("cce", "ece"))
    missed = [curve for curve in known if curve.pages["cce"][1] > LEVEL]
    flat = [f"{curve.model} under {curve.kind.replace('_', ' ')}" for curve in missed]
    text = (
        f"CCE rises significantly with severity in {cce} of {len(known)} curves of models and "
        f"perturbations (Page's trend test, p ≤ {LEVEL:g}), ECE in {ece}."
    )
    if not flat:
        return VerdictLine(text=text, tone="good", question="Perturbed data")
    text += f" CCE does not rise significantly for {listed(flat, 4)}."
    return VerdictLine(text=text, tone="undecided" if cce else "bad", question="Perturbed data")


def rejection_line(rejections: Sequence[Rejection]) -> VerdictLine | None:
    """Whether rejecting rows by CCE lowers the losses; None where there is no test."""
    lowers, gains, best = [], [], 0.0
    for loss, words in LOSSES.items():
        tested = [rejection for rejection in rejections if loss in rejection.curves]
        known = [g for r in tested if math.isfinite(g := r.curves[loss].gain)]
        if not known:
            continue
        lower = sum(rejection.p_values[loss] <= LEVEL for rejection in tested)
        best = max(best, lower / len(tested))
        lowers.append(f"the {words} in {lower} of {len(tested)}")
        gains.append(f"{_span(known, lambda gain: formats.fixed(gain, 2))} ({words})")
    if not lowers:
        return None
    text = (
        f"Rejecting rows of high CCE, without their labels, lowers {listed(lowers)} tests "
        f"(p ≤ {LEVEL:g}). The gain is {listed(gains)}; 1 is the best order, 0 a random one."
    )
    return VerdictLine(text=text, tone="good" if best == 1.0 else "info", question="Rejection")


def diagnosis_line(diagnoses: Sequence[Diagnosis]) -> VerdictLine | None:
    """How CCE without labels follows the true error; None where nothing is known."""
    spans = []
    for score in ("cce", "nll"):
        known = [v for d in diagnoses if math.isfinite(v := d.correlations[score][0])]
        spans.append(_span(known, lambda value: formats.fixed(value, 2)) if known else "")
    cce, nll = spans
    text = f"CCE without labels follows the true error with a Spearman correlation of {cce}"
    text += f"; NLL, which needs labels, with {nll}." if nll else "."
    return VerdictLine(text=text, question="Diagnosis") if cce else None


def robustness_line(results: Sequence[Robustness]) -> VerdictLine | None:
    """How far the most outliers move NLL, ECE and CCE; None where they were not tried."""
    settings = [
        (int(rows), result.changes, place)
        for result in results
        for place, (name, rows) in enumerate(zip(result.settings, result.spoilt, strict=True))
        if name.startswith("outliers")
    ]
    most = max((rows for rows, _, _ in settings), default=0)
    effects = []
    for measure in ("nll", "ece", "cce"):
        moved = [float(changes[measure][at]) for rows, changes, at in settings if rows == most]
        known = [change for change in moved if math.isfinite(change)]
        effects += [f"{measure.upper()} by {_span(known, change_words)}"] if known else []
    if not effects:
        return None
    rows = "1 outlying row changes" if most == 1 else f"{most} outlying rows change"
    return VerdictLine(text=f"{rows} {listed(effects)}.", question="Outliers")


def reliability_lines(reliability: Reliability) -> tuple[VerdictLine, ...]:
    """Whether CCE varies more from sample to sample than ECE, here and in the paper's table."""
    lines = []
    for question, given in (("Here", reliability), ("Published", published_reliability())):
        test, reason = given.tested
        if test is None:
            lines.append(VerdictLine(text=f"Not known: {reason}.", question=question))
            continue
        cce, ece = map(formats.share, test.means)
        means = f"by {cce} on average, ECE by {ece}"
        varies = f"CCE varies {means}"
        pairs = f"{int(given.answered.sum())} pairs of task and model; Welch's test"
        either, more = (formats.p_words(p) for p in (test.two_sided, test.greater))
        line = first_said(
            question,
            (test.greater <= LEVEL, "bad", f"CCE varies more: {means} ({pairs}, {more})."),
            (test.two_sided <= LEVEL, "good", f"CCE varies less: {means} ({pairs}, {either})."),
            (True, "undecided", f"No significant difference: {varies} ({pairs}, {either})."),
        )
        lines.append(line)
    theirs = published_reliability(unswap=True)
    if reliability.answered.sum() > 2 and (reliability.ece[reliability.answered] > 0.0).all():
        expected = float(theirs.ece_expected(reliability).mean())
        seen = float(reliability.ece[reliability.answered].mean())
        text = (
            f"ECE varies by {formats.share(seen)} here. From its size relative to 1/√n, the "
            f"published pairs predict {formats.share(expected)}."
        )
        near = abs(math.log(seen / expected)) < math.log(1.25)
        lines.append(VerdictLine(text=text, tone="info" if near else "caution", question="Why"))
    return tuple(lines)


def _short(value: float) -> str:
    return formats.number(value, 2) if value < 0.01 else f"{value:.3f}"


def change_words(value: float) -> str:
    """A relative change in percent, a large one as so many times."""
    if math.isnan(value):
        return formats.MISSING
    if abs(value) >= 10:
        return f"{formats.fixed(value, 0, plus=True)} times"
    text = f"{100 * value:+.2g}" if abs(value) < 0.995 else f"{100 * value:+,.0f}"
    return f"{formats.minus(text)} %"


def _span(values: Sequence[float], show: Callable[[float], str]) -> str:
    """The ends of a range in words, or the one value."""
    low, high = show(min(values)), show(max(values))
    return low if low == high else f"{low} to {high}"


_GLOSSARY: Final = (
    (
        *("mean_cce", "CCE", "pointwise", "lower", f"{_SOURCE}, section 3"),
        "Distance between the predictive distribution at x and the distribution of y in the data "
        "there, averaged over x. Compare it with that of a correctly specified model, which is "
        "larger with fewer rows. Compare values within one task only.",
    ),
    (
        *("ece", "ECE", "marginal", "lower", "Kuleshov et al. 2018"),
        "Distance of observed shares from nominal levels over all rows, using P(Y ≤ y). It is "
        "large for predictive distributions of counts even when they are correct.",
    ),
    (
        *("ece_exact", "ECE, spread over cells", "marginal", "lower", "Czado et al. 2009"),
        "The same with the probability integral transform of each row spread over the cell of its "
        "count, as if it were randomised. A correctly specified model differs only by chance.",
    ),
    (
        *("nll", "NLL", "", "lower", ""),
        "Mean negative log likelihood. Do not compare densities with probabilities.",
    ),
    (
        *("nll_unnormalised", "NLL without constant", "", "lower", ""),
        "NLL as published: double Poisson without its normalising constant.",
    ),
    (*("mae", "MAE", "", "lower", ""), "Mean absolute error."),
    (
        *("cce_steps_up", "Steps up", "", "higher", f"{_SOURCE}, section 4.4"),
        "Share of steps from one severity of a perturbation to the next at which mean CCE rises; "
        "Page's L tests the trend over all severities.",
    ),
    (
        *("rejection_gain_mae", "Gain by rejection", "local", "higher", f"{_SOURCE}, appendix A.3"),
        "Gain of rejecting rows by CCE without labels, as a share of the best order's gain: 1 for "
        "the best, 0 for a random order.",
    ),
    (
        *("cce_error_spearman", "Correlation with the true error", "local", "higher"),
        f"{_SOURCE}, section 4.7",
        "Spearman's correlation over test inputs of CCE without labels with the exact distance "
        "from the true distribution.",
    ),
    (
        *("cce_variation", "Coefficient of variation", "", "", f"{_SOURCE}, section 4.5"),
        "Standard deviation divided by mean, over bootstrap samples of the test rows.",
    ),
)
GLOSSARY: Final = tuple(
    GlossaryEntry(
        name=name,
        title=title,
        meaning=meaning,
        formula="mean over x of ‖embedding of y at x − embedding of the prediction at x‖"
        if name == "mean_cce"
        else "",
        units="nats" if name.startswith("nll") else "",
        source=source,
        direction=f"{better} is better" if better else "",
        notion=notion,
    )
    for name, title, notion, better, source, meaning in _GLOSSARY
)
