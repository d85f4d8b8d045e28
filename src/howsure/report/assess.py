"""From predictions to a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from howsure._version import __version__
from howsure.core.arrays import AnyArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError, attempt, collected
from howsure.core.formats import joined, listed
from howsure.core.progress import Listener, report_progress, subscribe
from howsure.core.records import Record, ResultTable
from howsure.core.registry import attribute_of
from howsure.core.text import one_line, quoted
from howsure.core.threads import one_thread
from howsure.core.weights import Weights
from howsure.engine.catalogue import every_topic
from howsure.engine.finding import Standing
from howsure.engine.measure import Evaluation
from howsure.engine.metric import MISS_RANGE, in_words
from howsure.inputs import Loaded
from howsure.inputs.columns import RECALIBRATED
from howsure.inputs.roles import name_roles
from howsure.predictions import EvalSet, Intervals, Probabilities, content_order
from howsure.report.assessment import Assessment, Basis, Later
from howsure.report.coercion import check_coverage_is_used, check_thresholds, source_fact
from howsure.report.document import ANSWER, STEP, VerdictLine, noted, overview
from howsure.report.images import missing_images
from howsure.report.measured import Measured, Model, TopicReport, given_inputs
from howsure.report.no_rows import check_no_state, of_many_rows, without_rows
from howsure.report.options import Options, Settings
from howsure.report.table import Table, as_coverages, refuse_unknown
from howsure.streaming import Large
from howsure.topics.baseline import with_baselines
from howsure.topics.compare import BEST_COMPARED, MAX_MODELS_IN_PAIRS, standing
from howsure.verdict import Advice, Finding, TrustAnswer, judge
from howsure.verdict.advice import Trials, run_trials
from howsure.verdict.dependence import Known, batches_in_words, follow
from howsure.verdict.family import Judging, ordered
from howsure.verdict.findings import questions
from howsure.verdict.words import STATES, answer

if TYPE_CHECKING:
    pass

MISSING_IMAGES = "Missing images"
"""The fact that names them."""
WEIGHTS = "Weights"
"""The fact that says in which sense weights were taken."""


Said = Finding | VerdictLine
"""What the verdict says: a finding, or a line that comes from none."""


def assess(
    data: Any = None,
    prediction: Any = None,
    *,
    coverage: float | Sequence[float] = (),
    levels: npt.ArrayLike | None = None,
    features: Any = None,
    groups: Any = None,
    time: Any = None,
    series: Any = None,
    cluster: Any = None,
    weights: Any = None,
    model: str | None = None,
    options: Options | None = None,
    large: Large | None = None,
    progress: Listener | None = None,
    **unknown: Any,
) -> Assessment:
    """Assess the calibration, coverage and sharpness of predictions.

    Parameters
    ----------
    data : howsure.Table, array-like of shape (n,), or whatever `howsure.Table` takes
        The outcomes y beside `prediction`; or a table with both. Roles that are no arguments here
        are named in a `howsure.Table`.
    prediction : array-like, mapping, data frame, Prediction or frozen SciPy distribution
        The predictions in any form, as for `howsure.Table`.
    coverage : float or sequence of float
        Nominal coverages to assess; if omitted, those of the intervals, or 0.9; for quantiles,
        that of the two given levels nearest to 0.9. For bare arrays, it means that they are ends
        of intervals, at these coverages in this order.
    levels : float or array-like of shape (k,), optional
        Levels of bare arrays that are quantiles, in this order.
    features : array-like of shape (n, d), mapping, data frame, or names of columns, optional
        Inputs of the model.
    groups : mapping of str to array-like of shape (n,), array-like, or names of columns, optional
        Labels that divide the rows.
    time, series, cluster : array-like of shape (n,), or name of a column, optional
        Times of rows; the series of each row, if each time occurs once per series; clusters of
        dependent rows.
    weights : array-like of shape (n,), or name of a column, optional
        Weights of rows: a weight of two is a row twice.
    model : str, optional
        Name of the model; or the column of names.
    options : Options, optional
        What is judged, and how: confidence, seed, tolerance, trials, baseline and so on.
    large : Large, optional
        How a table too large for memory is read: memory, processes, a cluster.
    progress : callable, optional
        Called with a stage's name, steps done and steps in all (0 where that is not known).

    Returns
    -------
    Assessment
        With ``.verdict``, ``.findings``, ``.records``, ``.value(name)``, ``.to_frame()``,
        ``.numbers()``, ``.plot()``, ``.save(path)``.

    Raises
    ------
    InputError
        If an argument breaks a rule; the message names it.

    Examples
    --------
    >>> from howsure.predictions import Intervals
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=500)
    >>> result = assess(y, Intervals(np.full(500, -1.0), np.full(500, 1.0), coverage=0.9))
    >>> print(result.verdict.splitlines()[0])
    No. The 90 % intervals cover 66 %; a climatology baseline is better.

    The same from bare arrays:

    >>> assess(y, (np.full(500, -1.0), np.full(500, 1.0)), coverage=0.9).verdict == result.verdict
    True

    A table, whose columns are recognised by their names:

    >>> table = {"y": y, "lower_90": np.full(500, -1.0), "upper_90": np.full(500, 1.0)}
    >>> assess(table).verdict == result.verdict
    True
    """
    refuse_unknown(unknown)
    roles = {"features": features, "groups": groups, "time": time, "series": series}
    roles |= {"cluster": cluster, "weights": weights, "model": model, "levels": levels}
    named = {name: value for name, value in roles.items() if value is not None}
    if isinstance(data, Table):
        names = [*named, *(["prediction"] if prediction is not None else [])]
        if names:
            raise InputError(f"name roles in the Table; got {', '.join(names)} beside one")
        table = data
    else:
        table = Table(data, prediction, coverage=coverage, **named)
    coverages = as_coverages(coverage) or table.coverages
    options = options or Options()
    if options.no_rows and large is not None:
        check_no_state(large.state)
    with subscribe(progress):
        loaded = table.read(large, options.seed)
        facts = source_fact(table.source)
        return assess_loaded(loaded, options, facts=facts, coverages=coverages)


def assess_loaded(
    loaded: Loaded,
    options: Options | None = None,
    *,
    coverages: Sequence[float] = (),
    facts: Mapping[str, str] | None = None,
    command: str = "",
    recalibration: Mapping[str, str] | None = None,
) -> Assessment:
    """Assess what came through the door, as `assess` does.

    Where sets are a sample of more rows, what all rows of each model add up to stands beside them.
    Predictions that are recalibrated already have no command: `recalibrate` serves the model's own.
    """
    if not loaded.evalsets:
        raise InputError("evalsets needs at least one model, got none")
    options = options or Options()
    check_coverage_is_used(loaded, coverages)
    check_thresholds(options.threshold, loaded.evalsets)
    evalsets = with_baselines(
        loaded.evalsets, baseline=options.baseline, lead=options.lead, season=options.season
    )
    loaded = replace(loaded, evalsets=evalsets)
    if any(name.startswith(RECALIBRATED) for name in loaded.roles.by_column()):
        recalibration = {}
    if options.no_rows:
        loaded = without_rows(loaded)
    settings = Settings.of(options, coverages=coverages, recalibration=recalibration)
    assessment = _assessed(loaded, settings, {**(facts or {}), **loaded.facts}, command)
    return of_many_rows(assessment) if options.no_rows else assessment


@one_thread()
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _assessed(
    loaded: Loaded, settings: Settings, facts: Mapping[str, str], command: str
) -> Assessment:
    """The five steps; neither the order of rows nor the number of threads changes a number."""
    facts = {**facts, **missing_fact(loaded.images, loaded.evalsets[0].row_names())}
    loaded, dependences = _in_order(loaded)
    with collected() as faults:
        measured = _measured(loaded, dependences, settings)
        judged = _judged(measured, settings)
    assessment = _build_assessment(loaded, measured, judged, facts, faults)
    return replace(assessment, command=command)


def _in_order(loaded: Loaded) -> tuple[Loaded, Sequence[Known]]:
    """Rows in an order that only their content decides, and which of them depend."""
    order = content_order(loaded.evalsets)
    evalsets, dependences = follow(loaded.evalsets, order)
    texts = {name: value[order] for name, value in loaded.texts.items() if len(value) == len(order)}
    images = loaded.images
    images = images[order] if images is not None and len(images) == len(order) else None
    ordered = replace(loaded, evalsets=tuple(evalsets), texts=texts, images=images)
    return ordered, dependences


def _measured(loaded: Loaded, dependences: Sequence[Known], settings: Settings) -> Measured:
    totals = loaded.totals or (None,) * len(dependences)
    models = [
        Model(evalset, dependence, total, settings)
        for evalset, dependence, total in zip(loaded.evalsets, dependences, totals, strict=True)
    ]
    for number, model in enumerate(models):
        report_progress(f"measures of {model.name}", number, len(models))
        model.answer(key_numbers=len(models) == 1)
    evaluations = given_inputs(loaded.evalsets, settings)
    reports: list[TopicReport] = []
    for target in filter(None, (topic.reports for topic in every_topic())):
        reports += attempt(target, partial(_reported, target, loaded, settings), lambda _: [])
    done = [model.found for model in models]
    ranked = None
    if len(done) > 1:
        report_progress("comparison of models", 0, 0)
        ranked = attempt(
            "the best of the models",
            partial(standing, done, confidence=settings.confidence, seed=settings.seed),
            lambda _: None,
        )
    return Measured(models, evaluations, reports, ranked, *_in_detail(done, ranked))


def _reported(target: str, loaded: Loaded, settings: Settings) -> list[TopicReport]:
    """What a topic tells of every model beside its measures."""
    reports: list[TopicReport] = attribute_of(target)(
        loaded.evalsets, settings, loaded.texts, loaded.images
    )
    return reports


def _tested(model: Model, findings: Sequence[Finding], settings: Settings) -> Trials | None:
    """What was tried to recalibrate a model."""
    commands = settings.recalibration
    judging = Judging(
        settings.coverages,
        settings.seed,
        ignore=settings.ignore,
        miss_range=settings.miss_range,
    )
    return attempt(
        f"trials of {model.name}",
        partial(
            run_trials,
            model.found.view,
            model.dependence,
            findings,
            judging,
            prefix="" if commands is None else commands.get(model.name),
        ),
        lambda _: None,
    )


def _build_assessment(
    loaded: Loaded,
    measured: Measured,
    judged: _Judged,
    facts: Mapping[str, str],
    faults: Sequence[str],
) -> Assessment:
    models, several = measured.models, len(measured.models) > 1
    answered = _answer(loaded, measured, judged)
    verdict = [*_first_lines(answered), *_in_sequence(judged, loaded, several)]
    last = [judged.silent, *([loaded.manifest.table()] if loaded.manifest.files else [])]
    if judged.tested is not None:
        last = [*_trial_table(judged.tested, judged.lead.name), *last]
    before = [overview(judged.states, measured.standing)] if several else []
    by_group = [m.groups.table for m in measured.detailed if m.groups.table is not None]
    brief = Basis(
        records=measured.records,
        tables=(*before, *by_group, *last),
        facts=noted(
            {
                **_facts(models),
                **facts,
                **({"In detail": measured.about} if measured.about else {}),
            },
            [*(note for model in models for note in model.groups.notes), *faults],
        ),
    )
    return Assessment(
        answer=answered,
        lines=tuple(_line(statement, several) for statement in verdict),
        findings=tuple(_findings(verdict)),
        brief=brief,
        whole=Later(partial(measured.everything, brief.facts, before, last)),
        advice=judged.advice,
        title=_title([model.evalset for model in models], facts),
    )


def _first_lines(answered: TrustAnswer) -> Iterator[VerdictLine]:
    """Which of several models to use, and whether it can be trusted."""
    if answered.choice:
        yield VerdictLine(answered.choice, "info", "Which model is best?", about=ANSWER)
    question, state = "Can it be trusted?", STATES[answered.reply]
    yield VerdictLine(answered.sentence, state, question, about=ANSWER)


def _answer(loaded: Loaded, measured: Measured, judged: _Judged) -> TrustAnswer:
    """Whether the first model can be trusted, and, of several, why it comes first."""
    lead = judged.lead
    findings = _findings(judged.said[lead.name])
    if judged.tested is not None:
        findings = list(ordered(findings, judged.tested.costs))
    unknown = next(_unknown([lead.evalset]), None)
    names = dict.fromkeys(model.name for model in (lead, *measured.models))
    return answer(
        findings,
        loaded.totals[0].n if loaded.totals else lead.evalset.n,
        reason=_WITHOUT_COVERAGE if unknown else judged.uncovered.get(lead.name, ""),
        standing=measured.standing,
        models=list(names),
        recalibrates=judged.advice is not None and bool(judged.advice.method),
    )


_WITHOUT_COVERAGE = "the nominal coverage of the intervals is unknown"


def _title(evalsets: Sequence[EvalSet], facts: Mapping[str, str]) -> str:
    """What is asked, with the name of the data: its file, its models, or its number of rows."""
    names = [evalset.model for evalset in evalsets]
    if facts.get("Source"):
        data = f"in {one_line(facts['Source'], _MAX_CHARACTERS)}"
    elif len(names) > 3:
        data = f"of {len(names)} models"
    elif names != [_UNNAMED]:
        data = f"of {listed(one_line(name, _MAX_CHARACTERS // 2) for name in names)}"
    else:
        rows = evalsets[0].n
        data = f"of {rows:,} predictions" if rows > 1 else "of this prediction"
    what = "uncertainty" if any(evalset.predictions for evalset in evalsets) else "point forecast"
    return f"Can the {what} {data} be trusted?"


# A title of one line.
_MAX_CHARACTERS = 60
_UNNAMED = "model"  # as sets are called whose model has no name


def _in_detail(done: Sequence[Evaluation], ranked: Standing | None) -> tuple[set[str], str]:
    """The models whose figures, tables and sentences are shown, and which these are, in words."""
    names = [evaluation.evalset.model for evaluation in done]
    if len(names) <= MAX_MODELS_IN_PAIRS:
        return set(names), ""
    best = names[:BEST_COMPARED] if ranked is None else list(ranked.models[:BEST_COMPARED])
    how = "given first" if ranked is None else f"with the lowest mean {ranked.score.title}"
    return set(best), f"the {BEST_COMPARED} of {len(names):,} models {how}: {joined(best)}"


def missing_fact(images: AnyArray | None, names: AnyArray) -> dict[str, str]:
    """What to state of images that are gone; nothing where none is."""
    if images is None or len(images) != len(names):
        return {}
    gone = missing_images(images, names)
    return {MISSING_IMAGES: gone} if gone else {}


@frozen
class _Judged:
    """What the verdict says of each model, what is not judged and why, the states of all, and what
    was tried to recalibrate the model that is told of first.
    """

    said: Mapping[str, list[Said]]
    silent: ResultTable
    states: Mapping[str, dict[str, str]]
    uncovered: Mapping[str, str]  # why coverage is not judged, by model
    lead: Model
    tested: Trials | None

    @property
    def advice(self) -> Advice | None:
        return None if self.tested is None else self.tested.advice


def _judged(measured: Measured, settings: Settings) -> _Judged:
    """Findings of each model, the first alone of those not shown in detail, or a line of one that
    has none.
    """
    models, shown, ranked = measured.models, measured.shown, measured.standing
    by_model: dict[str, list[Record]] = {model.name: [] for model in models}
    for record in measured.records:
        by_model[record.model].append(record)
    last = measured.detailed[-1].name
    several = len(models) > 1
    statements: dict[str, list[Said]] = {}
    silent: list[tuple[str, str, str, str]] = []
    states: dict[str, dict[str, str]] = {}
    uncovered: dict[str, str] = {}
    for model in models:
        name = model.name
        findings, reasons = judge(
            by_model[name],
            model.evalset,
            comparison=ranked if name == last else None,
            dependence=model.dependence,
            tolerance=settings.tolerance,
            ignore=settings.ignore,
        )
        if several and "comparison" not in settings.ignore:  # which all models share
            reasons.pop("comparison", None)
            if ranked is None and name == last:
                reasons["comparison"] = "no two models have a score in common"
        states[name] = {
            finding.id: finding.state for finding in findings if finding.id != "comparison"
        }
        if name in shown:
            silent += [(name, i, questions()[i].asked, why) for i, why in reasons.items()]
        else:
            findings = findings[:1]
        statements[name] = list(findings)
        if model.evalset.predictions and "coverage" in reasons:
            uncovered[name] = reasons["coverage"]
        if not findings and several:
            text = f"Nothing can be judged: {reasons['coverage']}."
            statements[name].append(_about_coverage(text, name))
    names = ("model", "id", "question", "reason")
    columns = {
        name: np.array([row[column] for row in silent], dtype=object)
        for column, name in enumerate(names)
        if several or name != "model"
    }
    notes = "Questions that do not apply to these data, and why."
    best = models[0].name if ranked is None else ranked.models[0]
    lead = next(model for model in models if model.name == best)
    tested = _tested(lead, _findings(statements[lead.name]), settings) if settings.trials else None
    table = ResultTable(name="not_judged", columns=columns, notes=notes)
    return _Judged(statements, table, states, uncovered, lead, tested)


def _unknown(evalsets: Sequence[EvalSet]) -> Iterator[VerdictLine]:
    """What must be said before all else of intervals whose coverage is unknown."""
    predictions = (prediction for evalset in evalsets for prediction in evalset.predictions)
    if any(
        isinstance(prediction, Intervals) and not prediction.coverages for prediction in predictions
    ):
        yield _about_coverage(
            "The nominal coverage of the intervals is unknown, so coverage is not judged: state "
            f"it, such as {name_roles(coverage=0.9)}. It is the level that was passed to the "
            "library that made the ends, such as level=90, alpha=0.1 or interval_width=0.9."
        )


def _about_coverage(text: str, model: str = "") -> VerdictLine:
    """A line in place of the finding on coverage."""
    question = questions()["coverage"]
    return VerdictLine(text, "undecided", question.asked, model=model, about=question.id)


def _unread(names: Sequence[str], censoring: Sequence[str]) -> Iterator[VerdictLine]:
    """Columns that may state an uncertainty, or mark censored rows."""
    if censoring:
        text = (
            f"Column {quoted(censoring[0])} may mark censored rows and is not used: "
            f"{name_roles(groups=censoring[0])} judges them as groups."
        )
        yield VerdictLine(text, "info")
    if names:
        name = listed(map(quoted, names), most=3)
        column: Any = names[0] if len(names) == 1 else ...
        way = f"{name_roles(sd=column)} or {name_roles(variance=column)}"
        text = (
            f"Column {name} may contain an uncertainty, but is not used as a spread: use it with "
            f"{way}."
        )
        if len(names) > 1:
            text = f"Columns {name} may contain uncertainties: use one with {way}."
        yield VerdictLine(text, "info")


def _findings(statements: Iterable[Said]) -> list[Finding]:
    return [statement for statement in statements if isinstance(statement, Finding)]


def _in_sequence(judged: _Judged, loaded: Loaded, several: bool) -> list[Said]:
    """The comparison, what is unknown, then model by model, and what was not read.

    What is bad of the first model stands by its cost, and behind it the next step.
    """
    compared: list[Said] = []
    in_order: list[Said] = []
    steps: list[Said] = []
    if judged.advice is not None:
        steps = [_step(judged.advice, judged.lead.name, several)]
    for model, said_of_model in judged.said.items():
        compared += [
            statement for statement in said_of_model if getattr(statement, "id", "") == "comparison"
        ]
        unranked = [
            statement for statement in said_of_model if getattr(statement, "id", "") != "comparison"
        ]
        findings = _findings(unranked)
        if model == judged.lead.name and judged.tested is not None and findings:
            costly = ordered(findings, judged.tested.costs)
            bad = [
                position for position, statement in enumerate(costly) if statement.state == "bad"
            ]
            behind = max(bad, default=-1) + 1
            unranked, steps = [*costly[:behind], *steps, *costly[behind:]], []
        in_order += unranked
    unread = _unread(loaded.unread, loaded.censoring)
    return [*compared, *_unknown(loaded.evalsets), *in_order, *unread, *steps]


def _step(advice: Advice, model: str, several: bool) -> VerdictLine:
    """The next step, as a line."""
    named = model if several else ""
    return VerdictLine(advice.sentence, "info", STEP, advice.command, named, about=STEP)


def _trial_table(trials_of_model: Trials, model: str) -> list[ResultTable]:
    """All that was tried."""
    if not trials_of_model.trials:
        return []
    trials = trials_of_model.trials
    texts = {
        "mend": [" ".join((trial.method, *trial.by)) for trial in trials],
        "heals": [", ".join(trial.heals) for trial in trials],
        "leaves": [", ".join(trial.leaves) for trial in trials],
        "harms": [trial.harms for trial in trials],
        "accepted": ["yes" if trial.accepted else "" for trial in trials],
        "reason": [trial.reason for trial in trials],
    }
    names = ("mend", "gain", "lower", "upper", "heals", "leaves", "harms", "accepted", "reason")
    columns = {
        name: np.array(texts[name], dtype=object)
        if name in texts
        else np.array([getattr(trial, name) for trial in trials])
        for name in names
        if name not in ("harms", "reason") or any(texts[name])
    }
    title = trials_of_model.score or "score"
    notes = (
        f"Reduction of the {title} with each method in five-fold cross-validation, with a 95 % "
        "interval. The table shows which faults each method fixes and which remain."
    )
    if "harms" in columns:
        notes += " Methods that harm some rows are not recommended."
    labels = {
        "mend": "method",
        "heals": "fixes",
        "leaves": "remaining",
        "reason": "why not tried",
    }
    return [ResultTable(name="mends", columns=columns, labels=labels, model=model, notes=notes)]


def _line(finding: Said, several: bool) -> VerdictLine:
    """The finding as a line, with its model before it where there are several."""
    if isinstance(finding, VerdictLine):
        return finding
    model = finding.model if several and finding.id != "comparison" else ""
    return VerdictLine(
        finding.sentence, finding.state, finding.question, model=model, about=finding.id
    )


def _facts(models: Sequence[Model]) -> dict[str, str]:
    model = models[0]
    first, settings = model.evalset, model.how
    coverages = [f"{c:g}" for c in model.found.coverages if not math.isnan(c)]
    kinds, miss_range = (
        [prediction.kind for prediction in first.predictions],
        model.found.view.miss_range,
    )
    facts = {
        "Rows": f"{first.n:,}",
        "Models": joined(model.name for model in models),
        "Predictions": ", ".join([*kinds, *(["point"] if first.point is not None else [])]),
        **(
            {}
            if kinds == [Probabilities.kind]  # which have none
            else {"Nominal coverage": ", ".join(coverages) or "unknown"}
        ),
        "Confidence of intervals": f"{settings.confidence:g}",
        **(
            {"Miss rates of partial areas": in_words(miss_range)}
            if miss_range != MISS_RANGE
            else {}
        ),
        "Seed": str(settings.seed),
        "howsure": __version__,
    }
    if first.groups:
        facts["Groups"] = joined(first.groups)
    if first.weights is not None:
        facts[WEIGHTS] = _sense(first.weights)
    if first.cluster is not None:
        dependences = [model.dependence for model in models]
        facts["Clusters"] = batches_in_words(dependences) or f"{len(first.cluster.labels):,}"
    return facts


def _sense(weights: Weights) -> str:
    """In which sense weights were taken, how much they come to, and how to say the other."""
    if weights.kind == "frequency":
        return (
            f"frequency, {weights.total:,.0f} rows in all; weight 2 means a row seen twice "
            "(alternative: weights kind importance, for shares of another population)"
        )
    return (
        f"importance, effective sample size {weights.effective_n:,.1f}; weights are shares of "
        "another population (alternative: weights kind frequency, for rows seen several times)"
    )
