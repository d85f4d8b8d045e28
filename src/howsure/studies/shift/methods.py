"""The methods of the shift benchmark by name, and which networks each run takes.

Source: F. K. Gustafsson, M. Danelljan and T. B. Schön (TMLR 2023), section 4, and their code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, final

import numpy as np

from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.registry import check_known
from howsure.methods.selective import FeatureScore, GMMScore, KNNScore

Network = Literal["direct", "gaussian", "quantile"]
Spread = Literal["variance", "ensemble_variance"]

OUTPUTS: Final[Mapping[str, int]] = {"direct": 1, "gaussian": 2, "quantile": 2}
"""Rows of a network's outputs by its kind: (mean), (mean, sd), (low, high)."""
_DRAWN: Final = 20
"""Networks from which runs are drawn as published."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
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
    score : FeatureScore or {"variance", "ensemble_variance"}, optional
        Which rows it declines; None where it predicts all.
    spectral_norm : bool
        Whether its networks' convolutions are bounded by spectral normalisation.
    """

    key: str
    title: str
    network: Network
    ensemble: bool = False
    score: FeatureScore | Spread | None = None
    spectral_norm: bool = False

    def __post_init__(self) -> None:
        check_known(self.network, OUTPUTS, "network")
        if self.score == "variance" and self.network == "quantile":
            raise InputError("score must not be the variance for quantile networks: they give none")
        if self.score == "ensemble_variance" and not self.ensemble:
            raise InputError("score 'ensemble_variance' must belong to an ensemble")
        if self.ensemble and self.network == "quantile":
            raise InputError("network must be 'direct' or 'gaussian' for an ensemble")
        if self.ensemble and isinstance(self.score, KNNScore):
            raise InputError("score of an ensemble must be a GMM or a variance: kNN has no mean")


def _named(*methods: ShiftMethod) -> Mapping[str, ShiftMethod]:
    return MappingProxyType({method.key: method for method in methods})


def _gaussian(key: str, title: str, score: FeatureScore | Spread, **more: bool) -> ShiftMethod:
    return ShiftMethod(key=key, title=title, network="gaussian", score=score, **more)


SHIFT_METHODS: Final[Mapping[str, ShiftMethod]] = _named(
    ShiftMethod(key="conformal", title="Conformal Prediction", network="direct"),
    ShiftMethod(key="ensemble", title="Ensemble", network="direct", ensemble=True),
    ShiftMethod(key="gaussian", title="Gaussian", network="gaussian"),
    ShiftMethod(
        key="gaussian_ensemble", title="Gaussian Ensemble", network="gaussian", ensemble=True
    ),
    ShiftMethod(key="quantile", title="Quantile Regression", network="quantile"),
    _gaussian("gaussian_gmm", "Gaussian + Selective GMM", GMMScore()),
    _gaussian("gaussian_knn", "Gaussian + Selective kNN", KNNScore()),
    _gaussian("gaussian_variance", "Gaussian + Selective Variance", "variance"),
    _gaussian(
        "gaussian_ensemble_gmm", "Gaussian Ensemble + Selective GMM", GMMScore(), ensemble=True
    ),
    _gaussian(
        "gaussian_ensemble_variance",
        "Gaussian Ensemble + Selective Ensemble Variance",
        "ensemble_variance",
        ensemble=True,
    ),
)
"""The ten methods of the benchmark, by key."""
INTERVAL_METHODS: Final = ("conformal", "ensemble", "gaussian", "gaussian_ensemble", "quantile")
"""Those that predict every row."""
VARIATIONS: Final[Mapping[str, ShiftMethod]] = _named(
    _gaussian(
        "gaussian_gmm_spectral",
        "Gaussian + Selective GMM, spectral norm",
        GMMScore(),
        spectral_norm=True,
    ),
    *(
        _gaussian(f"gaussian_gmm_{k}", f"Gaussian + Selective GMM, k={k}", GMMScore(k))
        for k in (2, 8)
    ),
    *(
        _gaussian(
            f"gaussian_ensemble_gmm_{k}",
            f"Gaussian Ensemble + Selective GMM, k={k}",
            GMMScore(k),
            ensemble=True,
        )
        for k in (2, 8)
    ),
    *(
        _gaussian(f"gaussian_knn_{k}", f"Gaussian + Selective kNN, k={k}", KNNScore(k))
        for k in (5, 20)
    ),
    *(
        _gaussian(
            "gaussian_knn_l2" if k == 10 else f"gaussian_knn_l2_{k}",
            f"Gaussian + Selective kNN, L2, k={k}",
            KNNScore(k, "euclidean"),
        )
        for k in (10, 5, 20)
    ),
)
"""Their variations, by the names of `howsure.studies.shift.published` where published."""


def shift_method(method: str | ShiftMethod) -> ShiftMethod:
    """A method by its key, among the ten and their variations; a method passes through.

    Raises
    ------
    InputError
        If there is no such key.

    Examples
    --------
    >>> shift_method("gaussian_knn").score
    KNNScore(neighbours=10, metric='angular')
    """
    if isinstance(method, ShiftMethod):
        return method
    known = {**SHIFT_METHODS, **VARIATIONS}
    check_known(method, known, "method")
    return known[method]


@final
@dataclass(frozen=True, slots=True)
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
            tuple((place,) for place in range(networks)),
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
