"""Methods under shift: what each answers on every part of a task, before calibration.

The ten of the benchmark and their variations, from what trained networks say of each part; methods
that share networks share their answers, and a density of features is fitted once for all. And any
other method that can be fitted. Source: F. K. Gustafsson, M. Danelljan and T. B. Schön (TMLR
2023), section 4, and their code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final, Literal, final

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import AnyArray, FloatArray, check_fraction, check_length
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.registry import check_known
from howsure.core.rng import child
from howsure_studies.methods.catalogue import method_named
from howsure_studies.methods.conformal.inductive import InductiveConformal
from howsure_studies.methods.interface import Fitted, Method
from howsure_studies.methods.regressors import as_method
from howsure_studies.methods.selective import (
    FeatureScore,
    GMMScore,
    KNNScore,
    Selective,
    mean_likelihood,
)
from howsure_studies.shift.evaluate import Answers
from howsure_studies.tasks import Part, Task

NetworkKind = Literal["direct", "gaussian", "quantile"]

_OUTPUTS: Final[Mapping[str, int]] = {"direct": 1, "gaussian": 2, "quantile": 2}
"""Rows of a network's outputs by its kind: (mean), (mean, sd), (low, high)."""
_DRAWN: Final = 20
"""Networks from which runs are drawn as published."""


@final
@frozen(kw_only=True)
class ShiftMethod:
    """A method of the benchmark.

    Attributes
    ----------
    key, title : str
        Short name, and what reports call it.
    network : {"direct", "gaussian", "quantile"}
        The kind of its networks.
    ensemble : bool
        Whether it joins several networks.
    score : FeatureScore or {"variance", "ensemble_variance", "forecast"}, optional
        Which rows it declines; None where it predicts all.
    spectral_norm : bool
        Whether its networks' convolutions are bounded by spectral normalisation.
    """

    key: str
    title: str
    network: NetworkKind
    ensemble: bool = False
    score: FeatureScore | Literal["variance", "ensemble_variance", "forecast"] | None = None
    spectral_norm: bool = False

    def __post_init__(self) -> None:
        check_known(self.network, _OUTPUTS, "network")
        if self.score == "variance" and self.network == "quantile":
            raise InputError("score must not be the variance for quantile networks: they have none")
        if self.score == "ensemble_variance" and not self.ensemble:
            raise InputError("score 'ensemble_variance' must belong to an ensemble")
        if self.ensemble and self.network == "quantile":
            raise InputError("network must be 'direct' or 'gaussian' for an ensemble")
        if self.ensemble and isinstance(self.score, KNNScore):
            raise InputError("score of an ensemble must be a GMM or a variance: kNN has no mean")


def _method(key: str, title: str, network: NetworkKind = "gaussian", **more: Any) -> ShiftMethod:
    return ShiftMethod(key=key, title=title, network=network, **more)


def _by_key(*methods: ShiftMethod) -> Mapping[str, ShiftMethod]:
    return MappingProxyType({method.key: method for method in methods})


_GMM, _KNN = "Gaussian + Selective GMM", "Gaussian + Selective kNN"
_ENSEMBLE_GMM = "Gaussian Ensemble + Selective GMM"
_ENSEMBLE_VARIANCE = "Gaussian Ensemble + Selective Ensemble Variance"

SHIFT_METHODS: Final = _by_key(
    _method("conformal", "Conformal Prediction", "direct"),
    _method("ensemble", "Ensemble", "direct", ensemble=True),
    _method("gaussian", "Gaussian"),
    _method("gaussian_ensemble", "Gaussian Ensemble", ensemble=True),
    _method("quantile", "Quantile Regression", "quantile"),
    _method("gaussian_gmm", _GMM, score=GMMScore()),
    _method("gaussian_knn", _KNN, score=KNNScore()),
    _method("gaussian_variance", "Gaussian + Selective Variance", score="variance"),
    _method("gaussian_ensemble_gmm", _ENSEMBLE_GMM, score=GMMScore(), ensemble=True),
    _method(
        "gaussian_ensemble_variance", _ENSEMBLE_VARIANCE, score="ensemble_variance", ensemble=True
    ),
)
"""The ten methods of the benchmark, by key."""
INTERVAL_METHODS: Final = tuple(
    key for key, method in SHIFT_METHODS.items() if method.score is None
)
"""Methods that predict every row."""
VARIATIONS: Final = _by_key(
    _method(
        "gaussian_gmm_spectral", f"{_GMM}, spectral norm", score=GMMScore(), spectral_norm=True
    ),
    *(_method(f"gaussian_gmm_{k}", f"{_GMM}, k={k}", score=GMMScore(k)) for k in (2, 8)),
    *(
        _method(
            f"gaussian_ensemble_gmm_{k}",
            f"{_ENSEMBLE_GMM}, k={k}",
            score=GMMScore(k),
            ensemble=True,
        )
        for k in (2, 8)
    ),
    *(_method(f"gaussian_knn_{k}", f"{_KNN}, k={k}", score=KNNScore(k)) for k in (5, 20)),
    *(
        _method(f"gaussian_knn_l2{end}", f"{_KNN}, L2, k={k}", score=KNNScore(k, "euclidean"))
        for end, k in (("", 10), ("_5", 5), ("_20", 20))
    ),
    _method("gaussian_forecast", "Gaussian + Selective forecast", score="forecast"),
)
"""Variations of the ten methods, by the names under which some were published."""
_NEAREST: Final = 10
"""Forecasts from home whose mean distance tells how foreign another is."""

_STATISTICS: Final = "howsure_studies.shift.baselines:GlobalStatistics"
BASELINES: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "constant": {"method": "howsure_studies.methods.constant:Constant"},
        "global_statistics": {"method": _STATISTICS},
        "global_statistics_knn": {
            "method": "selective",
            "inner": {"name": _STATISTICS},
            "score": {"name": "knn", "metric": "euclidean"},
        },
    }
)
"""Trivial baselines without networks, by key: what a plan's entry of each is short for."""
_BASELINE: Final = "baseline:"
"""What the names of baselines in a plan start with."""


def shift_method(method: str | ShiftMethod) -> ShiftMethod:
    """A method by its key, among the ten and their variations; a method passes through.

    Raises
    ------
    InputError
        If there is no such key.

    Examples
    --------
    >>> shift_method("gaussian_knn").score
    KNNScore()
    """
    if isinstance(method, ShiftMethod):
        return method
    known = {**SHIFT_METHODS, **VARIATIONS}
    check_known(method, known, "method")
    return known[method]


def key_of(name: str) -> str | None:
    """The benchmark's key of a method that is called by its key or its title; else None."""
    wanted = name.casefold()
    for known in (*SHIFT_METHODS.values(), *VARIATIONS.values()):
        if wanted in (known.key.casefold(), known.title.casefold()):
            return known.key
    return None


def is_baseline(name: str) -> bool:
    """Whether a method is called as a trivial baseline is: by its key, or ``Baseline: …``."""
    return name.casefold() in BASELINES or name.casefold().startswith(_BASELINE)


@final
@frozen
class NetworkRuns:
    """Which networks each run takes.

    Attributes
    ----------
    single : tuple of tuple of int
        One network a run.
    ensembles : tuple of tuple of int
        The members of each run's ensemble.
    """

    single: tuple[tuple[int, ...], ...]
    ensembles: tuple[tuple[int, ...], ...]


def paper_runs(networks: int = 20, members: int = 5, runs: int = 5) -> NetworkRuns:
    """Which of the trained networks each run takes.

    Parameters
    ----------
    networks : int
        How many there are.
    members : int
        Networks in an ensemble.
    runs : int
        Runs, where networks are drawn.

    Returns
    -------
    NetworkRuns
        With 20 networks or more, as Gustafsson, Danelljan and Schön draw theirs: each run
        shuffles one list four times more, and takes the first, or the first few; draws of
        several runs may overlap. With
        fewer, each network is a run of its own, and ensembles are disjoint, or one of all
        networks where they are fewer than an ensemble has members.

    Raises
    ------
    InputError
        If a number is below 1.

    Examples
    --------
    >>> paper_runs().single
    ((7,), (6,), (19,), (18,), (0,))
    >>> paper_runs(10, 5).ensembles
    ((0, 1, 2, 3, 4), (5, 6, 7, 8, 9))
    """
    check_whole(networks, "networks")
    check_whole(members, "members")
    check_whole(runs, "runs")
    if networks < _DRAWN:
        size = min(members, networks)
        starts = range(0, networks - size + 1, size)
        return NetworkRuns(
            tuple((index,) for index in range(networks)),
            tuple(tuple(range(start, start + size)) for start in starts),
        )
    legacy = np.random.RandomState(0)
    order, orders = list(range(networks)), []
    for _ in range(runs):
        for _ in range(4):
            legacy.shuffle(order)
        orders.append(order.copy())
    return NetworkRuns(
        tuple((order[0],) for order in orders), tuple(tuple(order[:members]) for order in orders)
    )


@final
@frozen(kw_only=True, eq=False)
class NetworkOutputs:
    """What one trained network says of every part.

    Attributes
    ----------
    outputs : mapping of str to ndarray of float, shape (k, n)
        By part, ``val`` and the tests, in the units of y: (mean) of a direct network, (mean, sd)
        of a Gaussian one, (low, high) of a quantile one.
    features : mapping of str to ndarray, shape (n, d)
        By part, ``train`` too; needed by methods with a density of features alone.
    name : str
        Of the network; densities draw their randomness by it.
    """

    outputs: Mapping[str, AnyArray]
    features: Mapping[str, AnyArray] = field(default_factory=dict)
    name: str = ""


@final
class SharedWork:
    """Densities fitted and scores taken, kept for all methods that ask for the same.

    Parameters
    ----------
    seed : int
        Fixes the densities' randomness, by network and score.

    Attributes
    ----------
    fits : int
        How many densities have been fitted.
    notes : list of str
        What the reader must know of the fits, by network and score.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.fits = 0
        self.notes: list[str] = []
        self._fitted: dict[tuple[NetworkOutputs, FeatureScore], Any] = {}
        self._scores: dict[tuple[NetworkOutputs, FeatureScore, str], FloatArray] = {}
        self._intervals: dict[tuple[Any, ...], tuple[FloatArray, FloatArray, FloatArray]] = {}

    def score(self, network: NetworkOutputs, score: FeatureScore, part: str) -> FloatArray:
        """κ of a part's rows by the density of a network's training features, shape (n,).

        All NaN where a feature is not finite, as of a network that diverged.

        Raises
        ------
        InputError
            If there are no features of the part or of ``train``.
        """
        key = (network, score, part)
        if key not in self._scores:
            rows, training = _features(network, part), _features(network, "train")
            if np.isfinite(rows).all() and np.isfinite(training).all():
                self._scores[key] = self._fit(network, score, training)(rows)
            else:
                self._scores[key] = np.full(len(rows), np.nan)
        return self._scores[key]

    def keep(
        self, network: NetworkOutputs, score: FeatureScore, scores: Mapping[str, FloatArray]
    ) -> None:
        """Take scores of a network's rows by part, shape (n,) each, as fitted elsewhere."""
        self._scores.update({(network, score, part): own for part, own in scores.items()})

    def intervals(
        self, method: ShiftMethod, networks: Sequence[NetworkOutputs], part: str, coverage: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Point, lower and upper of a part's rows, shared by methods with the same networks."""
        key = (method.network, method.ensemble, tuple(networks), part, coverage)
        if key not in self._intervals:
            self._intervals[key] = _intervals(method, networks, part, coverage)
        return self._intervals[key]

    def _fit(self, network: NetworkOutputs, score: FeatureScore, training: AnyArray) -> Any:
        key = (network, score)
        if key not in self._fitted:
            rng = child(self.seed, "shift", "density", network.name, score.name)
            self._fitted[key] = score.fit(training, rng)
            self.fits += 1
            where = network.name or f"network {self.fits}"
            self.notes += [f"{where}, {score.name}: {note}" for note in self._fitted[key].notes]
        return self._fitted[key]


def network_answers(
    method: str | ShiftMethod,
    networks: Sequence[NetworkOutputs],
    y: Mapping[str, npt.ArrayLike],
    *,
    coverage: float = 0.9,
    work: SharedWork | None = None,
) -> tuple[Answers, dict[str, Answers]]:
    """What a method answers, before calibration, from its network or its ensemble of networks.

    Parameters
    ----------
    method : str or ShiftMethod
        A key of `SHIFT_METHODS` or `VARIATIONS`, or one's own.
    networks : sequence of NetworkOutputs
        One network, or all members of the ensemble.
    y : mapping of str to array-like of shape (n,)
        Targets of ``val`` and of the tests, the main test first.
    coverage : float
        Nominal coverage; networks of quantiles must be those of this coverage.
    work : SharedWork, optional
        Where densities and answers are kept for other methods.

    Returns
    -------
    val : Answers
    tests : dict of str to Answers
        What `evaluate_shift` takes.

    Raises
    ------
    InputError
        If the method is unknown, networks are too many or too few, or a part is missing or of
        another length.

    Notes
    -----
    With z = Φ⁻¹((1 + coverage)/2): ``direct`` μ ± 0, so that calibration makes it split
    conformal; its ensemble μ̂ ± zσ̂ with σ̂² the population variance of the means; ``gaussian``
    μ ± zσ, its ensemble with σ̂² = mean σ² + population variance of the means; ``quantile`` as
    they are, crossed or not, around their midpoint. The score ``forecast`` is the mean distance of
    the point forecast from the ten nearest forecasts of other validation rows.

    Examples
    --------
    >>> network = NetworkOutputs(outputs={"val": np.array([[0.0]]), "far": np.array([[2.0]])})
    >>> val, tests = network_answers("conformal", [network], {"val": [0.5], "far": [1.0]})
    >>> tests["far"].excess()
    array([1.])
    """
    chosen = shift_method(method)
    check_fraction(coverage, "coverage")
    if chosen.ensemble and len(networks) < 2:
        raise InputError(
            f"networks must contain at least 2 networks for {chosen.key}, got {len(networks)}"
        )
    if not chosen.ensemble and len(networks) != 1:
        raise InputError(f"networks must contain one network for {chosen.key}, got {len(networks)}")
    if "val" not in y or len(y) < 2:
        raise InputError(f"y must contain 'val' and a test at least, got {', '.join(y) or 'none'}")
    shared = SharedWork() if work is None else work
    answers = {}
    for part, targets in y.items():
        point, lower, upper = shared.intervals(chosen, networks, part, coverage)
        score = _score(chosen, networks, part, shared)
        if chosen.score == "forecast":
            home = shared.intervals(chosen, networks, "val", coverage)[0]
            score = _outlying(point, home, own=part == "val")
        answers[part] = Answers(
            y=np.asarray(targets), point=point, lower=lower, upper=upper, score=score
        )
    return answers.pop("val"), answers


def _score(
    method: ShiftMethod, networks: Sequence[NetworkOutputs], part: str, work: SharedWork
) -> FloatArray | None:
    if method.score in (None, "forecast"):
        return None
    if isinstance(method.score, FeatureScore):
        scores = [work.score(network, method.score, part) for network in networks]
        if len(scores) == 1:
            return scores[0]
        if np.isnan(scores).any():
            return np.full(len(scores[0]), np.nan)
        return mean_likelihood(np.stack(scores))
    outputs = _outputs(method, networks, part)
    if method.score == "ensemble_variance":
        return np.asarray(outputs[:, 0].std(axis=0))
    return _spread(outputs)


def _outlying(points: FloatArray, home: FloatArray, *, own: bool) -> FloatArray:
    """Mean distance of points from the ten nearest from home, or from all where they are fewer.

    Where points are those from home themselves (`own`), each leaves itself out.
    """
    order = np.argsort(home, kind="stable")
    count = min(_NEAREST, len(home) - own)
    reach = count + own  # so many on either side hold the nearest ten
    padding = np.full(reach, np.inf)
    sorted_home = np.concatenate([-padding, home[order], padding])
    rows = np.concatenate([np.full(reach, -1), order, np.full(reach, -1)])
    near = np.searchsorted(home[order], points)[:, None] + np.arange(2 * reach)
    distances = np.abs(points[:, None] - sorted_home[near])
    if own:
        distances[rows[near] == np.arange(len(points))[:, None]] = np.inf
    return np.asarray(np.sort(distances, axis=1)[:, :count].mean(axis=1))


def _intervals(
    method: ShiftMethod, networks: Sequence[NetworkOutputs], part: str, coverage: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    outputs = _outputs(method, networks, part)
    if method.network == "quantile":
        low, high = outputs[0]
        return low / 2.0 + high / 2.0, low, high
    point = outputs[:, 0].mean(axis=0)
    if method.network == "direct" and not method.ensemble:
        return point, point, point
    reach = float(special.ndtri(0.5 + 0.5 * coverage)) * _spread(outputs)
    return point, point - reach, point + reach


def _spread(outputs: FloatArray) -> FloatArray:
    """sd of the mixture of the members' laws, or of their means where they have no sd, (n,)."""
    variance = outputs[:, 0].var(axis=0)
    if outputs.shape[1] == 2:
        variance = variance + np.square(outputs[:, 1]).mean(axis=0)
    return np.asarray(np.sqrt(variance))


@np.errstate(invalid="ignore", over="ignore")
def _outputs(method: ShiftMethod, networks: Sequence[NetworkOutputs], part: str) -> FloatArray:
    """Outputs of all networks, shape (M, k, n)."""
    wanted = _OUTPUTS[method.network]
    every: list[FloatArray] = []
    for network in networks:
        check_known(part, network.outputs, "part")
        array = np.asarray(network.outputs[part], dtype=np.float64)
        if array.ndim != 2 or len(array) != wanted:
            raise InputError(
                f"outputs of a {method.network} network must have shape ({wanted}, n), got "
                f"{array.shape} for {part}"
            )
        check_length(array[0], f"outputs for {part}", every[0].shape[1] if every else None)
        every.append(array)
    stacked = np.stack(every)
    if method.network == "gaussian" and (stacked[:, 1] < 0).any():
        raise InputError(f"outputs of a gaussian network must have sds of at least 0, in {part}")
    return np.where(np.isfinite(stacked).all(axis=(0, 1)), stacked, np.nan)


def _features(network: NetworkOutputs, part: str) -> AnyArray:
    if part not in network.features:
        names = ", ".join(network.features) or "none"
        raise InputError(f"features must contain {part}, got {names}")
    return network.features[part]


def fit_shift(
    method: Any,
    task: Task,
    rng: np.random.Generator,
    coverages: tuple[float, ...] | None = None,
) -> Fitted:
    """Any method trained on a task's training rows.

    Parameters
    ----------
    method : Method, regressor or str
        As `howsure_studies.methods.catalogue.method_named` takes it. A `Selective` one keeps none
        of the training rows back: its threshold comes from the validation rows. So do the
        thresholds of a conformal one for another population, which sees the inputs of the main
        test.
    task : Task
        Training rows, validation rows and tests.
    rng : numpy.random.Generator
        The only source of randomness.
    coverages : tuple of float, optional
        Nominal coverages for regressors that fix them as they are trained; see `as_method`.

    Returns
    -------
    Fitted

    Raises
    ------
    InputError
        If there is no such method, or it refuses the rows.
    """
    chosen = as_method(method_named(method) if isinstance(method, str) else method, coverages)
    train = task.part("train")
    if isinstance(chosen, Selective):
        return chosen.fit_with(train.x, train.y, task.part("val").x, rng)
    if isinstance(chosen, InductiveConformal) and is_for_elsewhere(chosen):
        val = task.part("val")
        return chosen.fit_for((train.x, train.y), (val.x, val.y), task.test.x, rng)
    return chosen.fit(train.x, train.y, rng)


def is_for_elsewhere(method: Method) -> bool:
    """Whether a method calibrates itself for the main test's population: no offset is added."""
    return isinstance(method, InductiveConformal) and method.adapt.for_elsewhere


def fold_of(task: Task, run: int, seed: int) -> Task:
    """A task whose validation rows are others from home in each run, as many.

    The first run has the task's own; the next ones have training rows, in whose place the task's
    own validation rows are then. None is there twice, but for the few that a share rounds.

    Parameters
    ----------
    task : Task
        As it is.
    run : int
        From 0.
    seed : int
        Fixes which rows are whose.

    Raises
    ------
    InputError
        If the training rows are too few for so many runs.

    Examples
    --------
    >>> from howsure_studies.tasks import table_task
    >>> task = table_task({"x": np.arange(50.0), "y": np.ones(50), "at": np.arange(50)}, "y",
    ...                   split_by="at", up_to=39)
    >>> second = fold_of(task, 1, 0)
    >>> len(task.val), len(second.val), set(second.val.ids) <= set(task.train.ids)
    (8, 8, True)
    """
    if run == 0:
        return task
    train, val = task.train, task.val
    most = round(len(train) / len(val))
    if run > most:
        raise InputError(f"folds must be at most {most + 1} for {task.name}, got {run + 1}")
    order = child(seed, "shift", "folds").permutation(len(train))
    start = min((run - 1) * len(val), len(train) - len(val))
    chosen = np.isin(np.arange(len(train)), order[start : start + len(val)])
    rest = train.take(~chosen)
    joined = Part(
        x=np.concatenate([rest.x, val.x]),
        y=np.concatenate([rest.y, val.y]),
        ids=np.concatenate([rest.ids, val.ids]),
        columns=train.columns,
        notes=train.notes,
    )
    tests = {name: task.part(name) for name in task.tests}
    parts = {"train": joined, "val": train.take(chosen), **tests}
    return Task.of(parts, name=task.name, target=task.target, units=task.units, images=task.images)


def model_answers(
    fitted: Fitted, task: Task, coverage: float = 0.9
) -> tuple[Answers, dict[str, Answers]]:
    """What a fitted method answers on every part of a task, before calibration.

    Parameters
    ----------
    fitted : Fitted
        Gives predictions, and scores where it has ``score(x)``: it is then taken as selective.
    task : Task
        Validation rows and tests.
    coverage : float
        Nominal coverage of the intervals.

    Returns
    -------
    val : Answers
    tests : dict of str to Answers
        What `evaluate_shift` takes. Point forecasts are NaN where the predictions imply none, as
        intervals without end do.

    Raises
    ------
    UnanswerableError
        If the predictions give no interval at this coverage.

    Examples
    --------
    >>> from howsure_studies.shift import ShiftResult, evaluate_shift
    >>> from howsure_studies.tasks import table_task
    >>> x = np.linspace(0.0, 1.0, 200)
    >>> table = {"x": x, "y": np.where(x < 0.5, x, 1.0) + 0.01 * np.sin(99 * x), "at": x}
    >>> task = table_task(table, "y", split_by="at", up_to=0.5)
    >>> fitted = fit_shift("linear_t", task, np.random.default_rng(0))
    >>> run = evaluate_shift(*model_answers(fitted, task))
    >>> result = ShiftResult(
    ...     task="steps", method="linear", coverage=0.9, rule="paper", runs=(run,)
    ... )
    >>> bool(result.value("test_empirical_coverage", "home").mean > 0.6)
    True
    >>> bool(result.value("test_empirical_coverage", "shift").mean < 0.1)
    True
    """
    answers = {}
    for name in ("val", *task.tests):
        part = task.part(name)
        prediction = fitted.predict(part.x).outcome
        lower, upper = prediction.interval(coverage)
        try:
            point = prediction.point()
        except UnanswerableError:
            point = np.full(prediction.n, math.nan)
        score = getattr(fitted, "score", None)
        answers[name] = Answers(
            y=part.y,
            point=point,
            lower=lower,
            upper=upper,
            score=score(part.x) if callable(score) else None,
        )
    return answers.pop("val"), answers


def check_coverages(method: Method, coverages: Sequence[float]) -> None:
    """Refuse coverages at which a method gives no intervals."""
    fixed = method.fixed_coverages
    for coverage in coverages:
        if fixed is not None and all(abs(coverage - known) > 1e-9 for known in fixed):
            known = ", ".join(f"{each:g}" for each in fixed)
            raise InputError(
                f"coverages must be among those that {method.name} gives ({known}), got {coverage}"
            )
