"""From predictions to a verdict."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from howsure._version import __version__
from howsure.core.arrays import AnyArray, as_vector
from howsure.core.classes import frozen
from howsure.core.errors import InputError, attempt, collected
from howsure.core.formats import listed
from howsure.core.progress import Listener, report_progress, subscribe
from howsure.core.records import Record, Table
from howsure.core.registry import attribute_of
from howsure.core.text import one_line
from howsure.core.threads import one_thread
from howsure.core.weights import Weights
from howsure.engine.catalogue import every_topic
from howsure.engine.finding import Standing
from howsure.engine.measure import Evaluation
from howsure.engine.metric import MISS_RANGE, in_words
from howsure.inputs import Loaded
from howsure.inputs.columns import RECALIBRATED
from howsure.inputs.matching import Missing
from howsure.inputs.source import quoted
from howsure.predictions import EvalSet, Intervals, content_order
from howsure.report.assessment import Assessment, Basis, Later
from howsure.report.coercion import check_coverage_is_used, opened, source_fact
from howsure.report.document import ANSWER, STEP, VerdictLine, noted, overview
from howsure.report.images import missing_images
from howsure.report.measured import Measured, Model, Settings, TopicReport, given_inputs
from howsure.report.no_rows import check_no_state, of_many_rows, without_rows
from howsure.topics.baseline import with_baselines
from howsure.topics.compare import BEST_COMPARED, MAX_MODELS_IN_PAIRS, standing
from howsure.verdict import TOLERANCE, Advice, Finding, TrustAnswer, judge
from howsure.verdict.advice import Trials, run_trials
from howsure.verdict.dependence import Known, batches_in_words, follow
from howsure.verdict.family import Judging, ordered
from howsure.verdict.findings import questions
from howsure.verdict.words import STATES, answer

if TYPE_CHECKING:
    from howsure.topics.congruence.view import CongruenceOptions

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
    y: Any = None,
    point: Any = None,
    uncertainty: Any = None,
    x: Any = None,
    ease: Any = None,
    embedding: Any = None,
    encode: Any = None,
    image: Any = None,
    groups: Any = None,
    weights: Any = None,
    weights_kind: str | None = None,
    missing_value: float | Sequence[float] | None = None,
    cluster: Any = None,
    time: Any = None,
    cutoff: Any = None,
    horizon: Any = None,
    series: Any = None,
    rows: Any = None,
    common_rows: bool = False,
    missing: Missing | None = None,
    coverage: float | Sequence[float] = (),
    levels: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    model: str | None = None,
    slow: Iterable[str] = (),
    tolerance: float = TOLERANCE,
    ignore: Collection[str] = (),
    trials: bool = True,
    congruence: CongruenceOptions | None = None,
    miss_range: Sequence[float] = MISS_RANGE,
    cells: int | None = None,
    baseline: str = "",
    lead: int | None = None,
    season: int | None = None,
    no_rows: bool = False,
    memory: str | int | None = None,
    jobs: int | None = None,
    scheduler: Any = None,
    resume: bool = False,
    state: str | os.PathLike[str] | None = None,
    progress: Listener | None = None,
    **columns: Any,
) -> Assessment:
    """Assess the calibration, coverage and sharpness of predictions.

    Parameters
    ----------
    data : array-like of shape (n,), or a table
        The outcomes y; for label sets with names, the label. Or a table with y and
        predictions: a path, several paths, a data frame, a mapping of columns, a result of
        `howsure.load`, or a table of any size, which is read in parts beyond 2,000,000
        rows (`howsure.streaming.load_parts`): a folder, a pattern, a URL, a relation of
        DuckDB, a lazy frame of Polars, an iterator of batches. Then omit `prediction`;
        `point`, `uncertainty`, `x`, `ease`, `embedding`, `image`, `groups`, `weights`,
        `cluster`, `time`, `cutoff`, `horizon`, `series`, `rows` and `model` name its columns,
        as in `howsure.load`.
    y : str, or array-like of shape (n,), optional
        The outcome column of the table, if its name is not recognised; or y itself, if `data` is
        omitted.
    prediction : array-like, mapping, data frame, Prediction or frozen SciPy distribution
        The predictions in any form; docs/what-goes-in.md shows every form. Lists, NumPy,
        pandas, polars and torch are accepted, and shape (n, 1) is treated as (n,).
        If shapes are ambiguous, the error names the argument to add.

        - (n,): the point forecast; with one of `levels`, a quantile.
        - (lower, upper), each (n,), or (n, 2), with `coverage`: intervals.
        - (n, 2, k), or (lower, upper), each (n, k), with k numbers as `coverage`: intervals.
        - (point, intervals), the intervals as above: both.
        - (mean, sd), each (n,), if means exceed sds in many rows: normal distributions.
        - (n, k), (k, n) or k arrays (n,), with `levels`: quantiles.
        - (n, m), (m, n), (n, 1, m) or (m, n, 1), with m of 5 or more: samples.
        - (chains, draws, n): samples, chains pooled.
        - A mapping of levels to arrays (n,): quantiles.
        - A mapping or frame of columns with recognised names, as in a table: one model.
        - Any other mapping of names to predictions: models, compared on these rows.
        - Intervals, Quantiles, Distribution, Samples, LabelSets, a tuple of them, frozen SciPy.
    point : array-like of shape (n,), optional
        A point forecast; it is used in place of one in `prediction`.
    uncertainty : array-like of shape (n,), optional
        Any score of uncertainty, higher for less certain rows, such as the distance to the
        training rows. Selective prediction then ranks rows by it.
    x : array-like of shape (n, d), mapping or data frame, optional
        Inputs of the model.
    ease : array-like of shape (n,) or str, optional
        Ease score of each row, or the column of `x` with it; higher is easier. With access to the
        model, use ``ease=howsure.metrics.ease(model.predict_proba, X, 0.1)``: the stability of
        the prediction when noise of that standard deviation is added to its inputs.
    embedding : array-like of shape (n, e), optional
        A numeric representation of the inputs, for congruence; by default it is computed from `x`.
    encode : mapping of str to encoder, or "COLUMN=ENCODER", optional
        A column of `x` (or of the table) with texts or paths of images, and its encoder for the
        embedding: ``{"note": "transformers:FOLDER"}``; see `howsure.inputs.encoders.encode` for
        all encoders.
    image : str or sequence of paths of shape (n,), optional
        The column of `x` (or of the table) with paths of images, or the paths: the best and the
        worst are shown. Omit it for an encoded column of images. Paths are relative to the folder
        of the table, or to the current one.
    groups : mapping of str to array-like of shape (n,), or array-like of shape (n,), optional
        Labels that divide the rows.
    weights : array-like of shape (n,), optional
        Weights of rows; `weights_kind` sets their meaning.
    weights_kind : {"frequency", "importance"}, optional
        ``frequency`` (the default): a weight of two is a row twice.
    cluster, time : array-like of shape (n,), optional
        Clusters of dependent rows; times of rows.
    cutoff : array-like of shape (n,), optional
        The last time that was known when a row was predicted, in the units of `time`. Without
        `horizon`, the steps from `cutoff` to `time` are the horizon; without `time`, it orders
        the rows.
    horizon : array-like of shape (n,), optional
        Lead time of each row, in steps of time.
    series : array-like of shape (n,), optional
        The series of each row, if each time occurs once per series.
    rows : array-like of shape (n,), optional
        Names of the rows.
    common_rows : bool
        Whether models are compared on the rows that all tables have, matched by `rows`.
    missing_value : float or sequence of float, optional
        Numbers that stand for missing values in a table, such as -9999; arrays have NaN there.
    missing : {"error", "drop"}, optional
        What to do with rows that have missing values; an error if omitted.
    coverage : float or sequence of float
        Nominal coverages to assess; if omitted, those of the intervals, or 0.9; for quantiles,
        that of the two given levels nearest to 0.9. For bare arrays, it means that they are ends
        of intervals, at these coverages in this order.
    levels : float or array-like of shape (k,), optional
        Levels of bare arrays that are quantiles, in this order.
    confidence : float
        Confidence level of all confidence intervals.
    seed : int
        Fixes all draws.
    model : str, optional
        Name of the model.
    slow : iterable of str
        Slow measures to compute beyond 50,000 rows, and measures whose figures are drawn only on
        request, such as ``tail_miscalibration_right``.
    tolerance : float
        Largest coverage error to ignore (0.01 = 1 point); a significant fault within it is
        negligible. The tolerances of spread, bias and others scale with it.
    ignore : collection of str
        Ids of findings to omit from the verdict, such as ``{"width"}``.
    trials : bool
        Whether recalibration methods are tried in five-fold cross-validation, for the next step.
        Of several models, only the one with the lowest mean score is recalibrated.
    congruence : CongruenceOptions, optional
        Kernel, λ, draws and map of the conditional congruence error.
    miss_range : (float, float)
        Range of miss rates for gains over a constant width, ``(0, 0.2)``. With another range,
        models are also compared by these gains.
    cells : int, optional
        Cells by ease for T-CV and T-SS, from 3 to a fifth of the rows; 50 if omitted, or as many
        as have five rows each. More cells detect finer differences, but are noisier.
    baseline : str
        Baseline for skill: ``"climatology"``, the distribution of y (the default),
        ``"persistence"``, ``"seasonal"``, or the name of one of the models.
    lead : int, optional
        Lead time of all rows, in steps of `time`, if there is no `horizon`. Skill is then also
        reported against persistence and the seasonal naive forecast.
    season : int, optional
        Steps per season; if omitted, derived from the dates (a week of hours or days, a year of
        weeks, months or quarters).
    no_rows : bool
        For personal data: whether to omit names, values and pictures of single rows, and all
        results on fewer than 10 rows. Labels of groups and features with fewer rows are pooled as
        ``others``.
    memory : str or int, optional
        Memory limit, such as ``"2GB"``: a larger table is read in parts.
    jobs : int, optional
        Processes that read parts; one per core if omitted.
    scheduler : str or dask.distributed.Client, optional
        Dask cluster whose workers read parts.
    resume : bool
        Whether to go on from the parts that an interrupted run finished.
    state : path, optional
        Where to keep what `howsure.streaming.merged_states` needs of the table; ``.arrow``.
    progress : callable, optional
        Called with a stage's name, steps done and steps in all (0 where that is not known).
    **columns
        All else that `howsure.load` takes of a table: `lower`, `upper`, `mean`, `sd`, `quantiles`,
        `samples`, `points`, `crossing`, `decimal` and so on; `features` is `x`.

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
    coverages = () if coverage is None else coverage
    wanted = as_vector(coverages, "coverage", scalar=True).tolist() if np.size(coverages) else []
    if no_rows:
        check_no_state(state)
    with subscribe(progress):
        loaded = opened(
            data,
            prediction,
            y=y,
            point=point,
            uncertainty=uncertainty,
            x=x,
            ease=ease,
            embedding=embedding,
            encode=encode,
            image=image,
            groups=groups,
            weights=weights,
            weights_kind=weights_kind,
            missing_value=missing_value,
            cluster=cluster,
            time=time,
            cutoff=cutoff,
            horizon=horizon,
            series=series,
            rows=rows,
            model=model,
            common_rows=common_rows,
            missing=missing,
            coverage=wanted,
            levels=levels,
            seed=seed,
            **columns,
            parts={
                "memory": memory,
                "jobs": jobs,
                "scheduler": scheduler,
                "resume": resume,
                "state": state,
            },
        )
        return assess_loaded(
            loaded,
            facts=source_fact(data),
            coverages=wanted,
            confidence=confidence,
            seed=seed,
            slow=slow,
            tolerance=tolerance,
            ignore=ignore,
            trials=trials,
            congruence=congruence,
            miss_range=miss_range,
            cells=cells,
            baseline=baseline,
            lead=lead,
            season=season,
            no_rows=no_rows,
        )


def assess_loaded(
    loaded: Loaded,
    *,
    facts: Mapping[str, str] | None = None,
    command: str = "",
    no_rows: bool = False,
    baseline: str = "",
    lead: int | None = None,
    season: int | None = None,
    **options: Any,
) -> Assessment:
    """Assess what came through the door, as `assess` does; options are those of `Settings`.

    Where sets are a sample of more rows, what all rows of each model add up to stands beside them.
    Predictions that are recalibrated already have no command: `recalibrate` serves the model's own.
    """
    if not loaded.evalsets:
        raise InputError("evalsets needs at least one model, got none")
    check_coverage_is_used(loaded, options.get("coverages", ()))
    evalsets = with_baselines(loaded.evalsets, baseline=baseline, lead=lead, season=season)
    loaded = replace(loaded, evalsets=evalsets)
    if any(name.startswith(RECALIBRATED) for name in loaded.roles.by_column()):
        options["recalibration"] = {}
    if no_rows:
        loaded = without_rows(loaded)
    assessment = _assessed(loaded, Settings(**options), {**(facts or {}), **loaded.facts}, command)
    return of_many_rows(assessment) if no_rows else assessment


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
    asked, state = "Can it be trusted?", STATES[answered.reply]
    yield VerdictLine(answered.sentence, state, asked, about=ANSWER)


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
    names = [found.evalset.model for found in done]
    if len(names) <= MAX_MODELS_IN_PAIRS:
        return set(names), ""
    best = names[:BEST_COMPARED] if ranked is None else list(ranked.models[:BEST_COMPARED])
    how = "given first" if ranked is None else f"with the lowest mean {ranked.score.title}"
    return set(best), f"the {BEST_COMPARED} of {len(names):,} models {how}: {', '.join(best)}"


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
    silent: Table
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
    table = Table(name="not_judged", columns=columns, notes=notes)
    return _Judged(statements, table, states, uncovered, lead, tested)


def _unknown(evalsets: Sequence[EvalSet]) -> Iterator[VerdictLine]:
    """What must be said before all else of intervals whose coverage is unknown."""
    predictions = (prediction for evalset in evalsets for prediction in evalset.predictions)
    if any(
        isinstance(prediction, Intervals) and not prediction.coverages for prediction in predictions
    ):
        yield _about_coverage(
            "The nominal coverage of the intervals is unknown, so coverage is not judged: state "
            "it, such as --coverage 0.9 (coverage=0.9)."
        )


def _about_coverage(text: str, model: str = "") -> VerdictLine:
    """A line in place of the finding on coverage."""
    question = questions()["coverage"]
    return VerdictLine(text, "undecided", question.asked, model=model, about=question.id)


def _unread(names: Sequence[str], censoring: Sequence[str]) -> Iterator[VerdictLine]:
    """Columns that may state an uncertainty, or mark censored rows."""
    if censoring:
        name = quoted(censoring[0])
        text = (
            f"Column {name} may mark censored rows and is not used: --groups {name} judges them "
            "as groups."
        )
        yield VerdictLine(text, "info")
    if names:
        name = listed(map(quoted, names), most=3)
        text = (
            f"Column {name} may contain an uncertainty, but is not used as a spread: use it with "
            "--sd or --variance."
        )
        if len(names) > 1:
            text = f"Columns {name} may contain uncertainties: use one with --sd or --variance."
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


def _trial_table(trials_of_model: Trials, model: str) -> list[Table]:
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
    return [Table(name="mends", columns=columns, labels=labels, model=model, notes=notes)]


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
        "Models": ", ".join(model.name for model in models),
        "Predictions": ", ".join([*kinds, *(["point"] if first.point is not None else [])]),
        "Nominal coverage": ", ".join(coverages) or "unknown",
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
        facts["Groups"] = ", ".join(first.groups)
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
