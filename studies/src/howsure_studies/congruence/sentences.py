"""What a page on congruence says: which models are wrong, where, and whether ECE detects it.

`ModelFinding` is what was found of one model on one task, `TaskExperiments` all of a task; each
value is computed once, and sentences, tables and figures read it there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, final

import numpy as np

from howsure.core import formats
from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.core.formats import counted, listed
from howsure.core.records import Record, Table
from howsure.report.document import GlossaryEntry, Tone, VerdictLine
from howsure_studies.congruence.measure import TRUTH
from howsure_studies.congruence.published import Published, published_numbers, published_reliability
from howsure_studies.congruence.result import (
    MEASURES,
    TITLES,
    CongruenceResult,
    CongruenceRun,
    CongruenceStudies,
    Diagnosis,
    Monotonicity,
    MonotonicityResult,
    Rejection,
    Reliability,
    Robustness,
    sample_sd,
)
from howsure_studies.engine import named

Verdict = Literal["wrong", "accepted", "not known"]
CORRECT: Final = "a correctly specified model"
TRUE: Final = "the true distribution"
SURE: Final = 2.0
"""Standard errors by which CCE must exceed that of a correctly specified model to be wrong."""
LEVEL: Final = 0.05
"""Up to which p an order or a trend is called beyond chance."""
_SOURCE: Final = "Young et al. 2025"
_LOSSES: Final[Mapping[str, str]] = {"mae": "MAE", "nll": "NLL"}
_SOURCES: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(("discretewave", "wave"), ("figure 2", "discrete wave")),
    "aaf": ("table 2", "AAF"),
    "eva": ("table 2", "EVA"),
    "fgnet": ("table 2", "FG-Net"),
    "cocopeople": ("table 2", "COCO-People"),
}
"""By the letters of a task's name: where the paper prints its numbers, and under which name."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ModelFinding:
    """One model on one task (by the plan's name and its own), over all its sets of data.

    `truths` are the runs of the true distribution, by seed.
    """

    world: str
    task: str
    model: str
    runs: tuple[CongruenceRun, ...]
    truths: Mapping[int, CongruenceRun]

    @property
    def is_truth(self) -> bool:
        """Whether this is the distribution that the data came from."""
        return self.model == TRUTH

    @cached_property
    def means(self) -> dict[str, float]:
        """Mean of each measure over the sets of data with an answer."""
        return {name: mean_known(run.value(name) for run in self.runs) for name in TITLES}

    def mean(self, measure: str) -> float:
        """Mean over the sets of data with an answer."""
        return self.means[measure]

    def bootstrap_mean(self, measure: str) -> float:
        """Mean over bootstrap samples and sets of data; as `mean` where there are no samples."""
        known = mean_known(run.bootstrap_mean(measure) for run in self.runs)
        return known if math.isfinite(known) else self.mean(measure)

    def seed_sd(self, measure: str) -> float:
        """Standard deviation over sets of data; NaN for fewer than two."""
        return sample_sd([run.value(measure) for run in self.runs])

    @property
    def draws_sd(self) -> float:
        """Root mean square over sets of data of CCE's standard deviation over sets of draws."""
        return _root_mean_square(run.monte_carlo_sd for run in self.runs)

    @cached_property
    def data_sds(self) -> dict[str, float]:
        """Root mean square of the standard deviation of each measure over bootstrap samples."""
        return {
            name: _root_mean_square(run.data_sd(name) for run in self.runs)
            for name in (*MEASURES, "mae")
        }

    def data_sd(self, measure: str) -> float:
        """Root mean square of the standard deviation over bootstrap samples."""
        return self.data_sds[measure]

    @cached_property
    def yardstick(self) -> tuple[float, str]:
        """CCE of a correctly specified model, and what it is of; NaN where neither is known.

        It is what a model of these predictive distributions would have if they were correct, else
        what the distribution has that the data came from.
        """
        null = self.mean("cce_null")
        if math.isfinite(null):
            return null, CORRECT
        truth = mean_known(run.value("cce") for run in self.truths.values())
        known = math.isfinite(truth) and not self.is_truth
        return (truth, TRUE) if known else (math.nan, "")

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
        error = _error(self.runs)
        if words == TRUE:
            error = math.hypot(error, _error(tuple(self.truths.values())))
        away = self.mean("cce") - null
        if math.isnan(away) or math.isnan(error):
            return "not known"
        return "wrong" if away > SURE * error else "accepted"

    @cached_property
    def reasons(self) -> dict[str, str]:
        """Why measures are missing, of the first set of data that lacks each."""
        reasons: dict[str, str] = {}
        for run in self.runs:
            reasons = {**run.reasons, **reasons}
        return reasons

    @cached_property
    def source(self) -> tuple[str, str] | None:
        """Where the paper prints numbers of this task, and under which name; often nowhere."""
        return printed_source(self.task) or printed_source(self.world)

    @cached_property
    def printed(self) -> tuple[Published, ...]:
        """What the paper prints of this head on this task; often nothing."""
        if self.source is None:
            return ()
        return published_numbers(self.source[0], task=self.source[1], model=head_of(self.model))


def _error(runs: Sequence[CongruenceRun]) -> float:
    spreads = [run.data_sd("cce") for run in runs]
    if not np.isfinite(spreads).any():
        spreads = [run.monte_carlo_sd for run in runs]
    return _root_mean_square(spreads) / math.sqrt(len(runs))


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class TaskExperiments:
    """All experiments of one task, by the plan's name; `studies` holds one a set of data."""

    name: str
    studies: tuple[CongruenceStudies, ...]

    @cached_property
    def result(self) -> CongruenceResult:
        """The measures of all sets of data."""
        runs = tuple(run for study in self.studies for run in study.result.runs)
        return CongruenceResult(runs=runs, options=self.studies[0].result.options)

    @property
    def several(self) -> bool:
        """Whether there is more than one set of data."""
        return len(self.studies) > 1

    @cached_property
    def findings(self) -> tuple[ModelFinding, ...]:
        """One finding a model."""
        return findings(self.name, self.result.runs)

    @cached_property
    def rejections(self) -> tuple[Rejection, ...]:
        """Those of all sets of data."""
        return tuple(rejection for study in self.studies for rejection in study.rejections)

    @cached_property
    def diagnoses(self) -> tuple[Diagnosis, ...]:
        """Those of all sets of data."""
        return tuple(diagnosis for study in self.studies for diagnosis in study.diagnoses)

    @cached_property
    def robustness(self) -> tuple[Robustness, ...]:
        """Those of all sets of data."""
        return tuple(result for study in self.studies for result in study.robustness)

    @cached_property
    def monotonicity(self) -> MonotonicityResult | None:
        """Trials of all sets of data side by side, where severities agree."""
        results = [study.monotonicity for study in self.studies if study.monotonicity is not None]
        groups: dict[tuple[str, str, tuple[float, ...]], list[Monotonicity]] = {}
        for curve in (curve for result in results for curve in result.curves):
            key = (curve.model, curve.kind, tuple(curve.severities.tolist()))
            groups.setdefault(key, []).append(curve)
        if not groups:
            return None
        curves = tuple(
            parts[0]
            if len(parts) == 1
            else replace(
                parts[0],
                values={m: np.concatenate([p.values[m] for p in parts]) for m in parts[0].values},
            )
            for parts in groups.values()
        )
        return MonotonicityResult(curves=curves, options=results[0].options)

    @cached_property
    def trends(self) -> Table | None:
        """Measures under perturbations as a table."""
        return None if self.monotonicity is None else self.monotonicity.table()

    @cached_property
    def scatters(self) -> tuple[tuple[Diagnosis, Table], ...]:
        """Diagnoses with their tables."""
        return tuple((diagnosis, diagnosis.table()) for diagnosis in self.diagnoses)

    @property
    def records(self) -> tuple[Record, ...]:
        """Every number; of experiments on several sets of data, with the seed."""
        rest = []
        for study in self.studies:
            seed = {"seed": float(study.seed)} if self.several else {}
            own = replace(study, result=CongruenceResult(runs=()), monotonicity=None)
            rest += [replace(r, options={**r.options, **seed}) for r in own.records()]
        trend = self.monotonicity
        return (*self.result.records(), *rest, *(trend.records() if trend is not None else ()))

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables of the experiments that the page draws from."""
        tables = [self.result.table()] if self.result.runs else []
        tables += [self.trends] if self.trends is not None else []
        scatters = dict(self.scatters)
        for study in self.studies:
            own = [result.table() for result in study.robustness]
            for table in (*own, *(scatters[diagnosis] for diagnosis in study.diagnoses)):
                notes = f"{self.name}, seed {study.seed}. {table.notes}".strip()
                tables.append(replace(table, notes=notes))
        return tuple(tables)


def findings(world: str, runs: Sequence[CongruenceRun]) -> tuple[ModelFinding, ...]:
    """One finding a model of one task, in order of first appearance, the true distribution last."""
    truths = {run.seed: run for run in runs if run.model == TRUTH}
    groups: dict[str, list[CongruenceRun]] = {}
    for run in runs:
        groups.setdefault(run.model, []).append(run)
    judged = [
        ModelFinding(
            world=world, task=own_runs[0].task, model=model, runs=tuple(own_runs), truths=truths
        )
        for model, own_runs in groups.items()
    ]
    return tuple(sorted(judged, key=lambda finding: finding.is_truth))


def mean_known(values: Iterable[float]) -> float:
    """Mean of the finite values; NaN where there is none."""
    known = [value for value in values if math.isfinite(value)]
    return float(np.mean(known)) if known else math.nan


def head_of(model: str) -> str:
    """The key of a head that a plan calls by its key or its title."""
    words = model.casefold().replace("β", "beta").replace("-", "_").replace(" ", "_")
    return words if words in {row.model for row in published_numbers()} else model


def printed_source(task: str) -> tuple[str, str] | None:
    """Where the paper prints numbers of a task of this name; None where it does not."""
    letters = "".join(char for char in task.casefold() if char.isalnum())
    return _SOURCES.get(letters)


def blind_spots(
    findings: Sequence[ModelFinding], measure: str
) -> list[tuple[ModelFinding, ModelFinding]]:
    """Pairs that an ECE puts the wrong way round: a misspecified model before an accepted one."""
    wrong = [finding for finding in findings if finding.verdict == "wrong" and not finding.is_truth]
    right = [finding for finding in findings if finding.verdict == "accepted" or finding.is_truth]
    pairs = [
        (bad, good) for bad in wrong for good in right if bad.mean(measure) < good.mean(measure)
    ]
    pairs.sort(key=lambda pair: pair[0].mean(measure) - pair[1].mean(measure))
    return pairs


def worst_stretch(x: FloatArray, cce: FloatArray, bins: int = 8) -> tuple[float, float, float]:
    """Between which x CCE is largest: ends of the bin of equal mass, and its mean CCE."""
    order = np.argsort(x, kind="stable")
    parts = np.array_split(order, max(1, min(bins, len(x) // 5)))
    means = [float(cce[members].mean()) for members in parts]
    worst = parts[int(np.argmax(means))]
    return float(x[worst].min()), float(x[worst].max()), max(means)


def _root_mean_square(values: Iterable[float]) -> float:
    return math.sqrt(mean_known(value**2 for value in values))


def title_of(models: int, tasks: Sequence[str]) -> str:
    """What was studied."""
    on = f"{counted(models, 'model')} on {named(tasks, 'task')}"
    return f"Are predictive distributions correct at every x? {on}"


def headline(findings: Sequence[ModelFinding]) -> VerdictLine | None:
    """Which models are wrong, and whether ECE detects it; None where no model has an answer."""
    models = [
        finding
        for finding in findings
        if not finding.is_truth and math.isfinite(finding.mean("cce"))
    ]
    judged = [finding for finding in models if finding.verdict != "not known"]
    if not judged:
        text = f"No model can be judged by CCE: that of {CORRECT} is not known."
        return VerdictLine(text=text) if models else None
    wrong = [finding for finding in judged if finding.verdict == "wrong"]
    tasks = list(dict.fromkeys(finding.world for finding in judged))
    tests = "models" if len(tasks) == 1 else "tests of a model"
    where = f"{len(judged)} {tests} on {named(tasks, 'task')}"
    if not wrong:
        text = (
            f"CCE finds none of {where} significantly misspecified: all lie within what "
            f"{CORRECT} shows by chance."
        )
        return VerdictLine(text=text, tone="undecided")
    first = max(wrong, key=lambda finding: finding.ratio)
    on = "" if len(tasks) == 1 else f" on {first.world}"
    text = (
        f"CCE finds {len(wrong)} of {where} significantly misspecified at some x. "
        f"The worst is {first.model}{on}: its CCE is {_times(first)}.{_unseen(wrong, findings)}"
    )
    return VerdictLine(text=text, tone="bad" if len(wrong) == len(judged) else "info")


def _unseen(wrong: Sequence[ModelFinding], findings: Sequence[ModelFinding]) -> str:
    """How many of the misspecified models ECE ranks behind every accepted one."""
    hidden, compared = {"ece_exact": 0, "ece": 0}, 0
    for world in dict.fromkeys(finding.world for finding in wrong):
        here = [finding for finding in findings if finding.world == world]
        if not any(finding.verdict == "accepted" or finding.is_truth for finding in here):
            continue
        compared += sum(finding.world == world for finding in wrong)
        for measure in hidden:
            hidden[measure] += len({bad.model for bad, _ in blind_spots(here, measure)})
    if not compared:
        return ""
    cells, plain = (compared - hidden[measure] for measure in ("ece_exact", "ece"))
    if compared == 1:
        if cells == plain:
            return f" ECE ranks it {'behind every' if cells else 'before an'} accepted model."
        how = "spread over the cells of counts" if cells else "by P(Y ≤ y) alone"
        return f" ECE ranks it behind every accepted model only if {how}."
    text = f" ECE ranks {cells or 'none'} of these {compared} behind every accepted model"
    if cells == plain:
        return f"{text}."
    return f"{text} if spread over the cells of counts, {plain or 'none'} by P(Y ≤ y) alone."


def model_lines(
    findings: Sequence[ModelFinding], places: Mapping[tuple[str, int], FloatArray | None]
) -> tuple[VerdictLine, ...]:
    """Of each model: is it correctly specified, and where is it not?"""
    lines = []
    adrift = [finding for finding in findings if _adrift(finding)]
    for finding in findings:
        cce, (null, words) = finding.mean("cce"), finding.yardstick
        if finding in adrift:
            lines += [_adrift_line(adrift)] if finding is adrift[0] else []
            continue
        if math.isnan(cce):
            reason = finding.reasons.get("cce", "no reason was given")
            lines.append(VerdictLine(text=f"Not known: {reason}.", question=finding.model))
            continue
        tone: Tone = "info"
        text = f"CCE is {_short(cce)}"
        if finding.is_truth:
            text = (
                f"The true distribution has a CCE of {_short(cce)} and an ECE of "
                f"{_short(finding.mean('ece'))} ({_short(finding.mean('ece_exact'))} spread over "
                "cells)."
            )
        elif finding.verdict == "wrong":
            tone = "bad"
            text += f", significantly more: {_times(finding)} ({_short(null)})."
            text += _where(finding, places)
        else:
            tone = "undecided" if finding.verdict == "accepted" else "info"
            text += f"; that of {words} is {_short(null)}."
            if finding.verdict == "not known":
                text += " Its variation is not known."
            elif cce > null:
                text += " The difference is not significant."
        lines.append(VerdictLine(text=text, tone=tone, question=finding.model))
    return tuple(lines)


def _times(finding: ModelFinding) -> str:
    return f"{finding.ratio:.2g} times that of {finding.yardstick[1]}"


def _adrift(finding: ModelFinding) -> bool:
    """Whether there is no correctly specified model to compare with."""
    known = math.isfinite(finding.mean("cce"))
    return known and math.isnan(finding.yardstick[0]) and not finding.is_truth


def _adrift_line(findings: Sequence[ModelFinding]) -> VerdictLine:
    order = sorted(findings, key=lambda finding: finding.mean("cce"))
    low, high = order[0], order[-1]
    text = f"CCE is {_short(low.mean('cce'))}"
    if len(order) > 1:
        text += f" ({low.model}) to {_short(high.mean('cce'))} ({high.model})"
    text += f". That of {CORRECT} is not known, so no model can be judged by it."
    question = "Models" if len(order) > 1 else low.model
    return VerdictLine(text=text, question=question)


def _where(finding: ModelFinding, places: Mapping[tuple[str, int], FloatArray | None]) -> str:
    """Where CCE is largest along x, else how it is spread over the rows."""
    rows = finding.runs[0].rows.get("cce")
    if rows is None or len(rows) < 10:
        return ""
    x = places.get((finding.model, finding.runs[0].seed))
    if x is not None and len(x) == len(rows):
        low, high, mean = worst_stretch(x, rows)
        ends = f"{formats.number(low, 3)} to {formats.number(high, 3)}"
        return f" It is largest for x from {ends} ({_short(mean)})."
    low, high = np.quantile(rows, [0.1, 0.9]).tolist()
    return f" For four rows in five it lies between {_short(low)} and {_short(high)}."


def ece_lines(findings: Sequence[ModelFinding], *, counts: bool) -> tuple[VerdictLine, ...]:
    """Whether ECE detects what CCE does, on one task."""
    known = [finding for finding in findings if math.isfinite(finding.mean("cce"))]
    wrong = [finding for finding in known if finding.verdict == "wrong" and not finding.is_truth]
    right = [finding for finding in known if finding.verdict == "accepted" or finding.is_truth]
    if not wrong or not right:
        return _orders([finding for finding in known if not finding.is_truth])
    lines = []
    kinds = {"ece_exact": "ECE"} if not counts else {"ece_exact": "ECE, cells", "ece": "Plain ECE"}
    for measure, question in kinds.items():
        pairs = blind_spots(known, measure)
        if not pairs:
            text = "It agrees with CCE: larger for all misspecified models than for accepted ones."
            lines.append(VerdictLine(text=text, tone="good", question=question))
            continue
        bad, good = pairs[0]
        names = listed(list(dict.fromkeys(pair[0].model for pair in pairs)), 4)
        other = TRUE if good.is_truth else f"{good.model}, which CCE accepts"
        text = (
            f"It does not detect the misspecification of {names}: {_short(bad.mean(measure))} for "
            f"{bad.model}, {_short(good.mean(measure))} for {other}."
        )
        lines.append(VerdictLine(text=text, tone="bad", question=question))
    return tuple(lines)


def _orders(known: Sequence[ModelFinding]) -> tuple[VerdictLine, ...]:
    """Which models either measure puts first and last."""
    sentences = []
    for measure, words in (("cce", "CCE"), ("ece_exact", "ECE")):
        values = {finding.model: finding.mean(measure) for finding in known}
        order = sorted((m for m in values if math.isfinite(values[m])), key=values.__getitem__)
        if len(order) < 2:
            return ()
        sentences.append(f"{words} is least for {order[0]} and largest for {order[-1]}")
    return (VerdictLine(text=f"{'. '.join(sentences)}.", question="ECE beside CCE"),)


def monotonicity_line(result: MonotonicityResult) -> VerdictLine | None:
    """In how many curves CCE rises significantly with severity; None where there is none."""
    p_values = {m: [c.page(m)[1] for c in result.curves] for m in ("cce", "ece")}
    known = [p for p in p_values["cce"] if math.isfinite(p)]
    if not known:
        return None
    rises = {m: sum(p <= LEVEL for p in of_measure) for m, of_measure in p_values.items()}
    curves = f"{len(known)} curves of models and perturbations"
    text = (
        f"CCE rises significantly with severity in {rises['cce']} of {curves} (Page's trend test, "
        f"p ≤ {LEVEL:g}), ECE in {rises['ece']}."
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
    """Whether rejecting rows by CCE lowers the losses; None where there is no test."""
    shares, spans, best = [], [], 0.0
    for loss, words in _LOSSES.items():
        tested = [rejection for rejection in rejections if loss in rejection.curves]
        gains = [rejection.curves[loss].gain for rejection in tested]
        known = [gain for gain in gains if math.isfinite(gain)]
        if not known:
            continue
        lower = sum(rejection.p_values[loss] <= LEVEL for rejection in tested)
        best = max(best, lower / len(tested))
        span = _span(known, lambda gain: formats.fixed(gain, 2))
        shares.append(f"the {words} in {lower} of {len(tested)}")
        spans.append(f"{span} ({words})")
    if not shares:
        return None
    text = (
        f"Rejecting rows of high CCE, without their labels, lowers {listed(shares)} tests "
        f"(p ≤ {LEVEL:g}). The gain is {listed(spans)}; 1 is the best order, 0 a random one."
    )
    return VerdictLine(text=text, tone="good" if best == 1.0 else "info", question="Rejection")


def diagnosis_line(diagnoses: Sequence[Diagnosis]) -> VerdictLine | None:
    """How CCE without labels follows the true error; None where nothing is known."""
    spans = {}
    for score in ("cce", "nll"):
        known = [
            v for diagnosis in diagnoses if math.isfinite(v := diagnosis.correlation(score)[0])
        ]
        if known:
            spans[score] = _span(known, lambda value: formats.fixed(value, 2))
    if "cce" not in spans:
        return None
    text = f"Spearman correlation of CCE without labels with the true error: {spans['cce']}"
    if "nll" in spans:
        text += f". NLL, which needs labels: {spans['nll']}"
    return VerdictLine(text=f"{text}.", question="Diagnosis")


def robustness_line(results: Sequence[Robustness]) -> VerdictLine | None:
    """How far the most outliers move NLL, ECE and CCE; None where they were not tried."""
    changes: dict[str, list[float]] = {"nll": [], "ece": [], "cce": []}
    most = max((rows for result in results for rows in _outliers(result)), default=0)
    for result in results:
        setting = _outliers(result).get(most)
        if setting is None:
            continue
        for measure, values in changes.items():
            change = float(result.changes[measure][setting])
            values += [change] if math.isfinite(change) else []
    effects = [
        f"{m.upper()} by {_span(values, _change)}" for m, values in changes.items() if values
    ]
    if not effects:
        return None
    rows = "1 outlying row changes" if most == 1 else f"{most} outlying rows change"
    text = f"{rows} {listed(effects)}."
    return VerdictLine(text=text, question="Outliers")


def _outliers(result: Robustness) -> dict[int, int]:
    """Places of the settings with outliers, by how many there are."""
    return {
        int(rows): number
        for number, (setting, rows) in enumerate(zip(result.settings, result.spoilt, strict=True))
        if setting.startswith("outliers")
    }


def reliability_lines(reliability: Reliability) -> tuple[VerdictLine, ...]:
    """Welch's test of the coefficients of variation, ours and the paper's."""
    lines = []
    try:
        test = reliability.test
        known = int((np.isfinite(reliability.cce) & np.isfinite(reliability.ece)).sum())
        varies = test.greater <= LEVEL
        text = (
            f"The mean coefficient of variation over {known} pairs of task and model is "
            f"{formats.share(test.means[0])} for CCE and {formats.share(test.means[1])} for ECE. "
            f"Welch's test: p = {test.two_sided:.3f} against any difference, "
            f"{test.greater:.3f} against a CCE that varies more."
        )
        lines.append(VerdictLine(text=text, tone="bad" if varies else "good", question="Here"))
    except InputError as error:
        lines.append(VerdictLine(text=f"Not known: {error}.", question="Here"))
    theirs = published_reliability().test
    text = (
        f"Over 25 pairs of other data (table 2): {formats.share(theirs.means[0])} for CCE and "
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


_GLOSSARY: Final = (
    (
        *("mean_cce", "CCE", "pointwise", "lower", f"{_SOURCE}, section 3"),
        "Distance between the predictive distribution at x and the distribution of y in the data "
        "there, averaged over x. Compare it with that of a correctly specified model, which grows "
        "as rows become few. Values compare within a task only.",
    ),
    (
        *("ece", "ECE", "marginal", "lower", "Kuleshov et al. 2018"),
        "Distance of observed shares from nominal levels over all rows, by P(Y ≤ y). Predictive "
        "distributions of counts have a large one even when correct.",
    ),
    (
        *("ece_exact", "ECE, spread over cells", "marginal", "lower", "Czado et al. 2009"),
        "The same with the probability integral transform of each row spread over the cell of its "
        "count, as if it were randomised. A correctly specified model shows chance alone.",
    ),
    (
        *("nll", "NLL", "", "lower", ""),
        "Mean negative log likelihood. Densities and probabilities do not compare.",
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
        "Standard deviation by mean over bootstrap samples of the test rows.",
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
