"""Label sets around a classifier, compared by how they adapt over random splits of its rows.

Outputs and ease are computed once; every repeat of a comparison only chooses rows. Methods without
options to choose calibrate on the whole validation part of a split; those with some choose them on
one half of it and calibrate on the other. Source: Jang and Lee 2025, section 5.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, FloatArray, IntArray, as_matrix
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.registry import Registry
from howsure.methods.conformal.labels import APS, LAC, EaseColumn, LabelConformal, TunedLabels
from howsure.methods.conformal.labels.scores import LabelScore
from howsure.methods.options import attribute, made, options_of
from howsure.metrics.adaptivity import (
    REPEATS,
    TORCHCP_STRATA,
    EaseCells,
    Perturbation,
    StratumCells,
    class_numbers,
    label_rank,
    largest_violation,
    set_deficit,
    set_excess,
    signed_r2,
    surrogate_ease,
)
from howsure.predictions import LabelSets
from howsure.studies.adaptivity.comparison import (
    NO_SLOPE,
    Design,
    MethodComparison,
    Numbers,
    Split,
    chosen,
    eases_of,
)

LABEL_METHODS: Final = ("LAC", "APS", "RAPS", "SAPS", "O-LAC", "O-SAPS")
"""The paper's methods."""
LABEL_MEASURES: Final = (
    *("t_cv", "t_ss", "sscv", "escv", "set_deficit", "set_excess"),
    *("empirical_coverage", "set_size"),
)
"""What each is measured by."""
OTHERS: Final = Registry(
    "label-set method",
    "howsure.label_methods",
    {"label_conformal": "howsure.methods.conformal.labels:LabelConformal"},
)
"""Other methods by name; packages add theirs by entry points of ``howsure.label_methods``."""

_MISSING: Final = {"t_ss": NO_SLOPE, "escv": "all sets are empty"}
"""Why measures may have no answer."""
_PLAIN: Final[Mapping[str, LabelScore]] = {"LAC": LAC(), "APS": APS()}
_FAMILIES: Final[Mapping[str, Literal["raps", "saps", "o_lac", "o_saps"]]] = {
    "RAPS": "raps",
    "SAPS": "saps",
    "O-LAC": "o_lac",
    "O-SAPS": "o_saps",
}

Predict = Callable[[Any], npt.ArrayLike]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Classified:
    """A classifier's probabilities on labelled rows that it was not trained on.

    Attributes
    ----------
    name : str
        What reports call it.
    probabilities : ndarray of float, shape (n, classes)
        Its outputs.
    y : ndarray of int, shape (n,)
        True classes, from 0.
    eases : mapping of str to ndarray of float, shape (n,)
        Ease of the rows by the way of disturbing; measures use the first.
    surrogate : bool
        Whether ease comes from the probabilities, inputs being lost.
    """

    name: str
    probabilities: FloatArray
    y: IntArray
    eases: Mapping[str, FloatArray]
    surrogate: bool = False

    @property
    def accuracy(self) -> float:
        """Share of rows whose likeliest class is the true one."""
        return float((self.probabilities.argmax(axis=1) == self.y).mean())

    @property
    def rank(self) -> FloatArray:
        """Rank of the true label, shape (n,)."""
        return label_rank(self.probabilities, self.y)


def classified(
    predict: Predict,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    perturbations: Mapping[str, Perturbation],
    *,
    repeats: int = REPEATS,
    seed: int = 0,
    name: str = "classifier",
) -> Classified:
    """Run a classifier on rows and on disturbed copies of them.

    Parameters
    ----------
    predict : callable
        Maps inputs, shape (k, …), to probabilities, shape (k, classes).
    x : array-like of shape (n, …)
        Inputs that it was not trained on.
    y : array-like of shape (n,)
        True classes, whole numbers from 0.
    perturbations : mapping of str to Perturbation
        Ways of disturbing, by name; the first gives the cells of the measures.
    repeats, seed
        As in `howsure.metrics.adaptivity.ease`.
    name : str
        What reports call it.

    Returns
    -------
    Classified

    Raises
    ------
    InputError
        If there is no way of disturbing, outputs are not finite, or y holds no classes.

    Examples
    --------
    >>> from howsure.metrics.adaptivity import GaussianNoise
    >>> def predict(x):
    ...     p = 1 / (1 + np.exp(-x[:, 0]))
    ...     return np.column_stack((1 - p, p))
    >>> x = np.linspace(-3, 3, 7)[:, None]
    >>> classified(predict, x, (x[:, 0] > 0).astype(int), {"noise": GaussianNoise(0.5)}).accuracy
    1.0
    """
    table = as_matrix(predict(x), "predict's outputs")
    labels = class_numbers(y, *table.shape)
    found = eases_of(predict, x, perturbations, repeats, seed)
    return Classified(name=name, probabilities=table, y=labels, eases=found)


def given_probabilities(
    probabilities: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    sds: Sequence[float] = (1.0,),
    repeats: int = REPEATS,
    seed: int = 0,
    name: str = "classifier",
) -> Classified:
    """Outputs of a classifier whose inputs are lost; ease is a surrogate, and marked as one.

    Parameters
    ----------
    probabilities : array-like of shape (n, classes)
        Rows that sum to one.
    y : array-like of shape (n,)
        True classes, whole numbers from 0.
    sds : sequence of float
        Standard deviations of the noise on log-probabilities.
    repeats, seed
        As in `howsure.metrics.adaptivity.surrogate_ease`.
    name : str
        What reports call it.

    Returns
    -------
    Classified

    Raises
    ------
    InputError
        If a probability is negative, y holds no classes, or no sd is given.

    Examples
    --------
    >>> given_probabilities([[0.9, 0.1], [0.4, 0.6]], [0, 0]).surrogate
    True
    """
    table = as_matrix(probabilities, "probabilities")
    if not len(sds):
        raise InputError("sds must hold at least one number, got none")
    found = {
        f"surrogate, noise {sd:g}": surrogate_ease(table, sd=sd, repeats=repeats, seed=seed)
        for sd in sds
    }
    labels = class_numbers(y, *table.shape)
    return Classified(name=name, probabilities=table, y=labels, eases=found, surrogate=True)


@final
@dataclass(frozen=True, slots=True)
class LabelMethod:
    """A method for label sets that is none of the paper's.

    Parameters
    ----------
    factory : class
        Made with ``coverage``, and with ``seed`` and ``model`` where it takes them. What is made
        has ``calibrate(x, y)``; what that gives has ``predict(x)``, which gives `LabelSets` or
        booleans of shape (n, classes). Rows of x are probabilities of all classes. A method that
        takes a ``model``, as `LabelConformal` does, finds the eases in further columns, and the
        model maps such rows to probabilities.
    options : mapping
        Its other options, as plain values.
    what : str
        What messages call it.

    Raises
    ------
    InputError
        If the factory takes no coverage, or an option is one that the study sets.

    Examples
    --------
    >>> method = LabelMethod(LabelConformal, {"allow_empty": False})
    >>> method.make(0.8).coverage
    0.8
    """

    factory: Any
    options: Mapping[str, Any] = field(default_factory=dict)
    what: str = "method"

    def __post_init__(self) -> None:
        if not inspect.isclass(self.factory) or "coverage" not in self.takes:
            raise InputError(f"{self.what} must be a class with coverage, got {self.factory!r}")
        for key in ("coverage", "seed", "model"):
            if key in self.options:
                raise InputError(f"{self.what} must leave {key} to the study, got {self.options}")

    @property
    def takes(self) -> frozenset[str]:
        """Names of its options."""
        return frozenset(inspect.signature(self.factory).parameters)

    def make(self, coverage: float, seed: int = 0, model: Any = None) -> Any:
        """The method at a coverage."""
        offered = {"coverage": coverage, "seed": seed, "model": model}
        given = {key: value for key, value in offered.items() if key in self.takes}
        method = made(self.factory, {**self.options, **given}, self.what)
        if not hasattr(method, "calibrate"):
            raise InputError(f"{self.what} must have calibrate(x, y), got {method!r}")
        return method

    def identity(self, entry: Mapping[str, Any], coverage: float) -> dict[str, Any]:
        """What decides it: all its options where it can tell them, else the plan's words."""
        method = self.make(coverage)
        try:
            options = options_of(method, self.what)
        except InputError:
            return dict(entry)
        return {**{k: entry[k] for k in ("method", "revision") if k in entry}, "options": options}


_TUNING: Final = TunedLabels(share=0.5)


def compare_label_sets(
    task: Classified,
    *,
    coverages: Sequence[float] = (0.9,),
    methods: Sequence[str] = LABEL_METHODS,
    own: Mapping[str, LabelMethod] | None = None,
    repeats: int = 20,
    share: float = 0.6,
    bins: int = 50,
    tuning: TunedLabels = _TUNING,
    seed: int = 0,
) -> tuple[MethodComparison, ...]:
    """Compare methods for label sets over random splits of one classifier's rows.

    Parameters
    ----------
    task : Classified
        The classifier's outputs; the first of its eases gives the cells of T-CV and T-SS, and
        O-LAC and O-SAPS choose among all of them.
    coverages : sequence of float
        Nominal coverages.
    methods : sequence of str
        Of `LABEL_METHODS`.
    own : mapping of str to LabelMethod, optional
        Further methods by name.
    repeats : int
        Random splits, at least 1; Jang and Lee do not say theirs.
    share : float
        Share of the rows that validate; the others test. Theirs are 30,000 and 20,000.
    bins : int
        Cells by ease.
    tuning : TunedLabels
        How RAPS, SAPS, O-LAC and O-SAPS choose: its criterion, share, penalties and bins. Jang
        and Lee say T-SS in their text, and SSCV for RAPS and SAPS in an appendix.
    seed : int
        Fixes the splits and the draws.

    Returns
    -------
    tuple of MethodComparison
        One a coverage. A method of which no choice can be judged has no numbers in that repeat.

    Raises
    ------
    InputError
        If an option breaks its rule, or the test part has fewer rows than cells.

    Notes
    -----
    The ease that forms the groups of O-LAC and O-SAPS also forms the cells that judge them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.full(5, 0.3), size=600)
    >>> y = (p.cumsum(axis=1) > rng.random(600)[:, None]).argmax(axis=1)
    >>> task = given_probabilities(p, y)
    >>> (found,) = compare_label_sets(task, methods=("LAC", "APS"), repeats=3, bins=10)
    >>> found.values.shape
    (3, 2, 8)
    """
    n, classes = task.probabilities.shape
    design = Design(
        task=task.name,
        n=n,
        methods=chosen(methods, LABEL_METHODS, own),
        measures=LABEL_MEASURES,
        coverages=tuple(coverages),
        repeats=repeats,
        share=share,
        bins=bins,
        seed=seed,
        surrogate=task.surrogate,
    )
    columns = np.column_stack((task.probabilities, *task.eases.values()))
    groups = tuple(EaseColumn(classes + place) for place in range(len(task.eases)))
    model, rank = _First(classes), task.rank

    def ready(name: str, coverage: float, split: Split) -> tuple[Any, FloatArray]:
        """A method, and the rows that it reads."""
        if own and name in own:
            method = own[name].make(coverage, split.seed, model)
            return method, columns if "model" in own[name].takes else task.probabilities
        base = LabelConformal(model=model, coverage=coverage, seed=split.seed)
        if name in _PLAIN:
            return replace(base, score=_PLAIN[name]), columns
        tuned = replace(
            tuning, base=base, family=_FAMILIES[name], groups=groups, evaluation_bins=bins
        )
        return tuned, columns

    def one(name: str, split: Split) -> list[Numbers]:
        cells = EaseCells(columns[split.test, classes], bins)
        found: list[Numbers] = []
        for coverage in design.coverages:
            method, x = ready(name, coverage, split)
            try:
                learnt = method.calibrate(x[split.validation], task.y[split.validation])
                given = learnt.predict(x[split.test])
            except UnanswerableError as error:
                found.append(dict.fromkeys(LABEL_MEASURES, str(error)))
                continue
            sets = LabelSets(_members(given, (len(split.test), classes), name), coverage)
            found.append(label_numbers(sets, task.y[split.test], rank[split.test], cells))
        return found

    return design.run(one)


def label_numbers(sets: LabelSets, y: IntArray, rank: FloatArray, cells: EaseCells) -> Numbers:
    """Every measure of `LABEL_MEASURES`, or the reason why there is none."""
    rows = SetRows(sets.sizes, rank, sets.contains(y.astype(np.float64)), sets.coverage, cells)
    values = {name: rows.measure(name) for name in LABEL_MEASURES}
    return {
        name: value if math.isfinite(value) else _MISSING.get(name, value)
        for name, value in values.items()
    }


@final
class SetRows:
    """Rows of a test part, or of a trial, as the measures read them."""

    def __init__(
        self,
        size: npt.ArrayLike,
        rank: FloatArray,
        covered: npt.ArrayLike,
        coverage: float,
        cells: EaseCells,
    ) -> None:
        self.size = np.asarray(size, dtype=np.float64)
        self.covered = np.asarray(covered, dtype=np.float64)
        self.rank, self.coverage, self.cells = rank, coverage, cells
        self.once = np.ones(len(rank))

    def measure(self, name: str) -> float:
        """One of `LABEL_MEASURES`; NaN where it has no answer."""
        size, rank = self.size, self.rank
        match name:
            case "t_cv":
                return largest_violation(self.cells, self.covered, self.once, self.coverage)
            case "t_ss":
                means = self.cells.means(np.column_stack((size, rank)), self.once)[1]
                return signed_r2(*means.T)
            case "sscv":
                strata = StratumCells(size, TORCHCP_STRATA)
                return largest_violation(strata, self.covered, self.once, self.coverage)
            case "escv":
                some = size >= 1
                if not some.any():
                    return math.nan
                own = StratumCells(size[some], None)
                return largest_violation(own, self.covered[some], self.once[some], self.coverage)
            case "set_deficit":
                return float(set_deficit(rank, size).mean())
            case "set_excess":
                return float(set_excess(rank, size).mean())
            case "empirical_coverage":
                return float(self.covered.mean())
            case _:
                return float(size.mean())


def _members(sets: Any, shape: tuple[int, int], name: str) -> BoolArray:
    """Who is in the sets that a method gave."""
    members = np.asarray(getattr(sets, "members", sets))
    if members.shape != shape or members.dtype != np.bool_:
        raise InputError(
            f"method {name!r} must predict label sets, or booleans of shape {shape}, got "
            f"{members.dtype} of shape {members.shape}"
        )
    return members


def label_method(label: str, entry: Mapping[str, Any]) -> LabelMethod | None:
    """The method of a plan's entry that names none of `LABEL_METHODS`; None if not of label sets.

    A class of the form ``module:attribute`` with ``calibrate`` and no ``fit`` is one.
    """
    name, what = entry.get("method"), f"method {label!r}"
    if name in OTHERS.names():
        factory = OTHERS.get(name)
    else:
        factory = attribute(name, what) if isinstance(name, str) and ":" in name else None
        if not hasattr(factory, "calibrate") or hasattr(factory, "fit"):
            return None
    options = {key: value for key, value in entry.items() if key not in ("method", "revision")}
    return LabelMethod(factory, options, what)


@final
@dataclass(frozen=True, slots=True)
class _First:
    """The first columns: probabilities that stand before the eases."""

    columns: int

    def __call__(self, x: FloatArray) -> FloatArray:
        return x[:, : self.columns]
