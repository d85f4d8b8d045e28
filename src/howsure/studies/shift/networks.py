"""The ten methods of the shift benchmark, from what trained networks say of each part.

Networks come trained: a view holds one network's outputs and features on every part. Methods that
share networks share their answers, and a density of features is fitted once for all that ask.
Source: F. K. Gustafsson, M. Danelljan and T. B. Schön (TMLR 2023), section 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import FloatArray, check_fraction, check_length
from howsure.core.errors import InputError
from howsure.core.registry import check_known
from howsure.core.rng import child
from howsure.methods.selective import SHARE, FeatureScore, mean_likelihood
from howsure.studies.shift.evaluate import Answers, evaluate_shift
from howsure.studies.shift.methods import (
    INTERVAL_METHODS,
    OUTPUTS,
    SHIFT_METHODS,
    VARIATIONS,
    NetworkRuns,
    ShiftMethod,
    paper_runs,
    shift_method,
)
from howsure.studies.shift.result import Rule, ShiftResult, ShiftRun

__all__ = [
    "INTERVAL_METHODS",
    "SHIFT_METHODS",
    "VARIATIONS",
    "NetworkRuns",
    "NetworkView",
    "SharedWork",
    "ShiftMethod",
    "network_answers",
    "network_shift",
    "paper_runs",
    "shift_method",
]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NetworkView:
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

    outputs: Mapping[str, npt.NDArray[Any]]
    features: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
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
        What the fits told, by network and score.
    """

    __slots__ = ("_answers", "_fitted", "_scores", "fits", "notes", "seed")

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.fits = 0
        self.notes: list[str] = []
        self._fitted: dict[tuple[NetworkView, FeatureScore], Any] = {}
        self._scores: dict[tuple[NetworkView, FeatureScore, str], FloatArray] = {}
        self._answers: dict[tuple[Any, ...], tuple[FloatArray, FloatArray, FloatArray]] = {}

    def score(self, view: NetworkView, score: FeatureScore, part: str) -> FloatArray:
        """κ of a part's rows by the density of a network's training features, shape (n,).

        All NaN where a feature is not finite, as of a network that diverged.

        Raises
        ------
        InputError
            If the view lacks features of the part or of ``train``.
        """
        key = (view, score, part)
        if key not in self._scores:
            rows = _features(view, part)
            training = _features(view, "train")
            if np.isfinite(rows).all() and np.isfinite(training).all():
                self._scores[key] = self._fit(view, score, training)(rows)
            else:
                self._scores[key] = np.full(len(rows), np.nan)
        return self._scores[key]

    def keep(
        self, view: NetworkView, score: FeatureScore, scores: Mapping[str, FloatArray]
    ) -> None:
        """Take scores of a network's rows by part, shape (n,) each, as fitted elsewhere."""
        self._scores.update({(view, score, part): found for part, found in scores.items()})

    def base(
        self, method: ShiftMethod, views: Sequence[NetworkView], part: str, coverage: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Point, lower and upper of a part's rows, shared by methods with the same networks."""
        key = (method.network, method.ensemble, tuple(views), part, coverage)
        if key not in self._answers:
            self._answers[key] = _base(method, views, part, coverage)
        return self._answers[key]

    def _fit(self, view: NetworkView, score: FeatureScore, training: npt.NDArray[Any]) -> Any:
        key = (view, score)
        if key not in self._fitted:
            rng = child(self.seed, "shift", "density", view.name, score.name)
            self._fitted[key] = score.fit(training, rng)
            self.fits += 1
            where = view.name or f"network {self.fits}"
            self.notes += [f"{where}, {score.name}: {note}" for note in self._fitted[key].notes]
        return self._fitted[key]


def network_answers(
    method: str | ShiftMethod,
    views: Sequence[NetworkView],
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
    views : sequence of NetworkView
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

    Raises
    ------
    InputError
        If the method is unknown, views are too many or too few, or a part is missing or of
        another length.

    Notes
    -----
    With z = Φ⁻¹((1 + coverage)/2): ``direct`` μ ± 0, so that calibration makes it split
    conformal; its ensemble μ̂ ± zσ̂ with σ̂² the population variance of the means; ``gaussian``
    μ ± zσ, its ensemble with σ̂² = mean σ² + population variance of the means; ``quantile`` as
    they are, crossed or not, around their midpoint.

    Examples
    --------
    >>> view = NetworkView(outputs={"val": np.array([[0.0]]), "far": np.array([[2.0]])})
    >>> val, tests = network_answers("conformal", [view], {"val": [0.5], "far": [1.0]})
    >>> tests["far"].excess()
    array([1.])
    """
    chosen = shift_method(method)
    check_fraction(coverage, "coverage")
    if chosen.ensemble and len(views) < 2:
        raise InputError(f"views must hold at least 2 networks for {chosen.key}, got {len(views)}")
    if not chosen.ensemble and len(views) != 1:
        raise InputError(f"views must hold one network for {chosen.key}, got {len(views)}")
    if "val" not in y or len(y) < 2:
        raise InputError(f"y must hold 'val' and a test at least, got {', '.join(y) or 'none'}")
    kept = SharedWork() if work is None else work
    answers = {part: _answers(chosen, views, part, y[part], coverage, kept) for part in y}
    return answers.pop("val"), answers


def network_shift(
    task: str,
    method: str | ShiftMethod,
    runs: Sequence[Sequence[NetworkView]],
    y: Mapping[str, npt.ArrayLike],
    *,
    coverage: float = 0.9,
    rule: Rule = "paper",
    share: float = SHARE,
    work: SharedWork | None = None,
    units: str = "1",
    options: Mapping[str, str | float] | None = None,
) -> ShiftResult:
    """A method over several runs: one network or one ensemble each.

    Parameters
    ----------
    task : str
        Its name.
    method, y, coverage, work
        As in `network_answers`.
    runs : sequence of sequences of NetworkView
        The networks of each run; see `paper_runs`.
    rule, share
        As in `evaluate_shift`.
    units : str
        Of y.
    options : mapping, optional
        Choices to keep beside the numbers.

    Returns
    -------
    ShiftResult
        Its `method` is the method's key.

    Raises
    ------
    InputError
        As `network_answers` and `evaluate_shift`.
    """
    chosen = shift_method(method)
    kept = SharedWork() if work is None else work
    done: list[ShiftRun] = []
    for views in runs:
        val, tests = network_answers(chosen, views, y, coverage=coverage, work=kept)
        done.append(evaluate_shift(val, tests, coverage=coverage, rule=rule, share=share))
    return ShiftResult(
        task=task,
        method=chosen.key,
        coverage=coverage,
        rule=rule,
        runs=tuple(done),
        units=units,
        share=share,
        notes=tuple(kept.notes) if isinstance(chosen.score, FeatureScore) else (),
        options=options or {},
    )


def _answers(
    method: ShiftMethod,
    views: Sequence[NetworkView],
    part: str,
    y: npt.ArrayLike,
    coverage: float,
    work: SharedWork,
) -> Answers:
    point, lower, upper = work.base(method, views, part, coverage)
    score = _score(method, views, part, work)
    return Answers(y=np.asarray(y), point=point, lower=lower, upper=upper, score=score)


def _score(
    method: ShiftMethod, views: Sequence[NetworkView], part: str, work: SharedWork
) -> FloatArray | None:
    if method.score is None:
        return None
    if isinstance(method.score, FeatureScore):
        scores = [work.score(view, method.score, part) for view in views]
        if len(scores) == 1:
            return scores[0]
        if np.isnan(scores).any():
            return np.full(len(scores[0]), np.nan)
        return mean_likelihood(np.stack(scores))
    outputs = _outputs(method, views, part)
    if method.score == "ensemble_variance":
        return np.asarray(outputs[:, 0].std(axis=0))
    return _spread(outputs)


def _base(
    method: ShiftMethod, views: Sequence[NetworkView], part: str, coverage: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    outputs = _outputs(method, views, part)
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
def _outputs(method: ShiftMethod, views: Sequence[NetworkView], part: str) -> FloatArray:
    """Outputs of all networks, shape (M, k, n)."""
    wanted = OUTPUTS[method.network]
    found: list[FloatArray] = []
    for view in views:
        check_known(part, view.outputs, "part")
        array = np.asarray(view.outputs[part], dtype=np.float64)
        if array.ndim != 2 or len(array) != wanted:
            raise InputError(
                f"outputs of a {method.network} network must have shape ({wanted}, n), got "
                f"{array.shape} for {part}"
            )
        check_length(array[0], f"outputs for {part}", found[0].shape[1] if found else None)
        found.append(array)
    stacked = np.stack(found)
    if method.network == "gaussian" and (stacked[:, 1] < 0).any():
        raise InputError(f"outputs of a gaussian network must hold sds of at least 0, in {part}")
    return np.where(np.isfinite(stacked).all(axis=(0, 1)), stacked, np.nan)


def _features(view: NetworkView, part: str) -> npt.NDArray[Any]:
    if part not in view.features:
        held = ", ".join(view.features) or "none"
        raise InputError(f"features must hold {part}, got {held}")
    return view.features[part]
