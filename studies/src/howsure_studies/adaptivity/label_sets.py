"""Label sets around a classifier, compared by how they adapt over random splits of its rows.

Outputs and ease are computed once; every repeat of a comparison only chooses rows. Methods without
options to choose calibrate on the whole validation part of a split; those with some choose them on
one half of it and calibrate on the other. Source: Jang and Lee 2025, section 5.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any, Final, Literal, final

import numpy as np
import numpy.typing as npt

from howsure.conformal.labels import APS, LAC, EaseColumn, LabelConformal, TunedLabels
from howsure.conformal.labels.scores import LabelScore
from howsure.core import formats
from howsure.core.arrays import AnyArray, BoolArray, FloatArray, IntArray, as_matrix
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.registry import Registry, check_known, unknown
from howsure.core.rng import child
from howsure.predictions import LabelSets
from howsure.stats.cells import (
    RAPS_STRATA,
    TORCHCP_STRATA,
    Cells,
    EaseCells,
    StratumCells,
    largest_violation,
    signed_r2,
)
from howsure.stats.dominance import class_numbers, label_rank
from howsure.stats.ease import REPEATS, GaussianNoise, Perturbation, surrogate_ease
from howsure.topics.adaptivity.coverage import set_deficit, set_excess
from howsure.topics.association import spearman
from howsure_studies.adaptivity.comparison import (
    NO_SLOPE,
    SURROGATE,
    MethodComparison,
    Numbers,
    Predict,
    RandomSplit,
    Subject,
    chosen,
    compared,
    different,
    eases_of,
    random_split,
)
from howsure_studies.adaptivity.image_jitter import Brightness, Contrast, Saturation
from howsure_studies.methods.options import attribute, call_with_options, options_of, thing

SCORES: Final = ("LAC", "APS", "RAPS", "SAPS")
"""The paper's methods that know no groups by ease."""
LABEL_METHODS: Final = (*SCORES, "O-LAC", "O-SAPS")
"""The paper's methods for label sets."""
LABEL_MEASURES: Final = (
    *("t_cv", "t_ss", "sscv", "escv", "rank_cv", "rank_ss", "set_deficit", "set_excess"),
    *("empirical_coverage", "set_size"),
)
"""What each method for label sets is measured by."""
OTHERS: Final = Registry(
    "label-set method",
    "howsure.label_methods",
    {"label_conformal": "howsure.conformal.labels:LabelConformal"},
)
"""Other methods by name; packages add theirs by entry points of ``howsure.label_methods``."""

TRUE_MEASURES: Final = ("t_cv_exact", "t_cv_true", "ease_truth")
"""And where the chance of each label is known: T-CV of these chances, by the same cells and by
cells of true ease (the largest chance of a label), and Spearman's correlation of both eases."""

_MISSING: Final = {
    "t_ss": NO_SLOPE,
    "escv": "all sets are empty",
    "rank_ss": "true labels have fewer than three strata of rank, or all sets have one size",
}
"""Why measures may have no answer."""
_PLAIN: Final[Mapping[str, LabelScore]] = {"LAC": LAC(), "APS": APS()}
_FAMILIES: Final[Mapping[str, Literal["raps", "saps", "o_lac", "o_saps"]]] = {
    "RAPS": "raps",
    "SAPS": "saps",
    "O-LAC": "o_lac",
    "O-SAPS": "o_saps",
}


@final
@frozen(kw_only=True, eq=False)
class RankByEase:
    """The mean rank of the true class in cells of equal numbers of rows by ease, hardest first.

    Attributes
    ----------
    task : str
        The classifier and its rows.
    rank, error : ndarray of float, shape (bins,)
        The mean of each cell, and its standard error.
    """

    task: str
    rank: FloatArray
    error: FloatArray

    @classmethod
    def of(cls, task: Classified, bins: int) -> RankByEase:
        """The ranks of a classifier's rows."""
        order = np.argsort(task.ease, kind="stable")
        cells = np.array_split(label_rank(task.probabilities, task.y)[order], bins)
        return cls(
            task=task.name,
            rank=np.array([cell.mean() for cell in cells]),
            error=np.array([cell.std(ddof=1) / math.sqrt(len(cell)) for cell in cells]),
        )


@final
@frozen(kw_only=True, eq=False)
class Classified(Subject):
    """A classifier's probabilities on labelled rows that it was not trained on.

    Attributes
    ----------
    name, y, eases
        As in every subject: what reports call it, true classes from 0, ease by the way of
        disturbing.
    probabilities : ndarray of float, shape (n, classes)
        Its outputs.
    truth : ndarray of float, shape (n, classes), optional
        The true chance of each class, where rows are drawn and it is known.
    """

    probabilities: FloatArray
    truth: FloatArray | None = None

    @property
    def accuracy(self) -> float:
        """Share of rows whose likeliest class is the true one."""
        return float((self.probabilities.argmax(axis=1) == self.y).mean())

    @property
    def about(self) -> Mapping[str, str]:
        """Accuracy and mean rank."""
        rank = formats.number(float(self.rank.mean()), 3)
        return {"Accuracy": formats.share(self.accuracy), "Mean rank of the true label": rank}

    @property
    def surrogate(self) -> bool:
        """Whether ease comes from the probabilities, inputs being lost."""
        return self.source.startswith(SURROGATE)

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
        As in `howsure.topics.adaptivity.ease`.
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
    >>> from howsure.stats.ease import GaussianNoise
    >>> def predict(x):
    ...     p = 1 / (1 + np.exp(-x[:, 0]))
    ...     return np.column_stack((1 - p, p))
    >>> x = np.linspace(-3, 3, 7)[:, None]
    >>> classified(predict, x, (x[:, 0] > 0).astype(int), {"noise": GaussianNoise(0.5)}).accuracy
    1.0
    """
    table = as_matrix(predict(x), "predict's outputs")
    labels = class_numbers(y, *table.shape)
    eases = eases_of(predict, x, perturbations, repeats, seed)
    return Classified(name=name, probabilities=table, y=labels, eases=eases)


def given_probabilities(
    probabilities: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    sds: Sequence[float] = (1.0,),
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
    seed : int
        As in `howsure.topics.adaptivity.surrogate_ease`.
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
        raise InputError("sds must contain at least one number, got none")
    eases = {f"{SURROGATE}, noise {sd:g}": surrogate_ease(table, sd=sd, seed=seed) for sd in sds}
    labels = class_numbers(y, *table.shape)
    return Classified(name=name, probabilities=table, y=labels, eases=eases)


CLASSIFIERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "logistic": {"name": "sklearn.linear_model:LogisticRegression", "C": 0.1, "max_iter": 200},
    "network": {
        "name": "sklearn.neural_network:MLPClassifier",
        "hidden_layer_sizes": (64,),
        "max_iter": 30,
    },
    "forest": {"name": "sklearn.ensemble:RandomForestClassifier", "n_estimators": 100},
    "discriminant": {
        "name": "sklearn.discriminant_analysis:LinearDiscriminantAnalysis",
        "solver": "lsqr",
        "shrinkage": "auto",
    },
}
"""Classifiers by name: regularised logistic regression, a network with one hidden layer of 64, 100
trees, and linear discriminants with shrunken covariance."""
TRANSFORMATIONS: Final[Mapping[str, Callable[[float, FloatArray], Perturbation]]] = {
    "noise": lambda size, images: GaussianNoise.relative(images, size, each_column=False),
    "brightness": lambda size, images: Brightness(size),
    "contrast": lambda size, images: Contrast(size),
    "saturation": lambda size, images: Saturation(size),
}
"""Ways of disturbing images by name: normal noise of so many standard deviations of the pixels,
factors of brightness, of contrast and of saturation (of colour images) from 1 ± size."""


def _small_digits() -> tuple[FloatArray, IntArray]:
    from sklearn.datasets import load_digits

    digits = load_digits()
    return digits.images / 16.0, digits.target.astype(np.int64)


def _mnist() -> tuple[FloatArray, IntArray]:
    from howsure_studies.tasks.images import read_digits

    images, digits = read_digits()
    return images / 255.0, digits


def _letters(count: int) -> tuple[FloatArray, IntArray, FloatArray]:
    from howsure_studies.tasks.images import draw_letters

    return draw_letters(count)


IMAGES: Final[Mapping[str, Callable[[], tuple[AnyArray, ...]]]] = {
    "digits": _small_digits,
    "mnist": _mnist,
    "letters": partial(_letters, 20_000),
    "letters-56000": partial(_letters, 56_000),
}
"""Images in [0, 1] with their classes, by name: 1,797 digits of scikit-learn; the 10,000 test
images of MNIST, which must be on this machine; 20,000 or 56,000 drawn letters in colour, of 36
classes, with the true chance of each class."""


def transformation(name: str, images: FloatArray) -> Perturbation:
    """A way of disturbing images in [0, 1], by its name and size, as ``noise 0.5``."""
    kind, _, text = name.partition(" ")
    check_known(kind, TRANSFORMATIONS, "transformation")
    try:
        size = float(text)
    except ValueError:
        size = math.nan
    if not 0 < size < math.inf:
        words = f"transformation must be a name and a size above 0, as '{kind} 0.5', got {name!r}"
        raise InputError(words)
    return TRANSFORMATIONS[kind](size, images)


def transformations_named(names: Sequence[str], argument: str) -> Sequence[str]:
    """Names of ways of disturbing, all known and different, as a rule of an annotation."""
    for name in different(names, argument):
        transformation(name, np.zeros((1, 1, 3)))
    return names


def classifier_named(given: Any, seed: int = 0) -> Any:
    """An untrained classifier: of `CLASSIFIERS`, or as ``module:attribute`` with its options.

    What draws at random and has no seed of its own is given one.
    """
    spec = dict(given) if isinstance(given, Mapping) else {"name": given}
    name = spec.get("name")
    if isinstance(name, str) and name in CLASSIFIERS and len(spec) == 1:
        spec = dict(CLASSIFIERS[name])
    elif not isinstance(name, str) or ":" not in name:
        message = unknown(str(name), CLASSIFIERS, "classifier")
        raise InputError(message.replace(", got", " or module:attribute, got", 1))
    classifier = thing(spec, "classifier")
    if not hasattr(classifier, "fit") or not hasattr(classifier, "predict_proba"):
        raise InputError(f"classifier must have fit and predict_proba, got {classifier!r}")
    options = classifier.get_params() if hasattr(classifier, "get_params") else {}
    if options.get("random_state", 0) is None:
        classifier.set_params(random_state=seed)
    return classifier


def classifier_task(
    images: npt.ArrayLike,
    y: npt.ArrayLike,
    classifier: Any = "logistic",
    *,
    train: int = 2000,
    rows: int | None = None,
    transformations: Sequence[str] = ("noise 0.5", "noise 0.2", "noise 0.1"),
    repeats: int = REPEATS,
    seed: int = 0,
    name: str = "classifier",
    truth: npt.ArrayLike | None = None,
) -> Classified:
    """Train a classifier on some images; the others, disturbed and not, make the task.

    Parameters
    ----------
    images : array-like of shape (n, …)
        Pixels in [0, 1]; of shape (n, height, width, 3) in colour.
    y : array-like of shape (n,)
        True classes, whole numbers from 0.
    classifier : str or mapping
        ``logistic``, ``network``, ``forest`` or ``discriminant``; or ``module:attribute`` of a
        class as scikit-learn has them, alone or as ``name`` beside its options.
    train : int
        Images that train, drawn at random.
    rows : int, optional
        Images of the task, at most; all others if omitted.
    transformations : sequence of str
        How images are disturbed: ``noise 0.5`` (normal noise of half the standard deviation of
        the training images' pixels), ``brightness 0.5``, ``contrast 0.5`` or, in colour,
        ``saturation 0.5`` (a factor from 0.5 to 1.5). The first gives the cells of the measures.
    repeats : int
        Disturbances an image.
    seed : int
        Fixes the choice of images, the classifier's draws and the disturbances.
    name : str
        What reports call it.
    truth : array-like of shape (n, classes), optional
        The true chance of each class, where it is known.

    Returns
    -------
    Classified

    Raises
    ------
    InputError
        If a name is not known, pixels leave [0, 1], or too few images train to show every class.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.tile([0, 1], 40)
    >>> images = rng.uniform(0, 0.5, (80, 2, 2)) + 0.5 * y[:, None, None]
    >>> task = classifier_task(images, y, "discriminant", train=20, repeats=2)
    >>> task.probabilities.shape, list(task.eases), task.accuracy > 0.9
    ((60, 2), ['noise 0.5', 'noise 0.2', 'noise 0.1'], True)
    """
    pixels = np.asarray(images, dtype=np.float64)
    if pixels.ndim < 2 or not (pixels.min(initial=0) >= 0 and pixels.max(initial=0) <= 1):
        raise InputError(f"images must be pixels in [0, 1], got shape {pixels.shape}")
    labels = class_numbers(y, len(pixels), len(pixels))
    check_whole(train, "train", 2, len(labels) - 2)
    names = transformations_named(transformations, "transformations")
    order = child(seed, "adaptivity", "images").permutation(len(labels))
    own, rest = order[:train], order[train:][:rows]
    classes = np.unique(labels[own])
    if not np.array_equal(classes, np.arange(labels.max() + 1)):
        raise InputError(
            f"train must be large enough that all {labels.max() + 1} classes are among them, "
            f"got {train}, with {len(classes)}"
        )
    model = classifier_named(classifier, seed)
    flat = pixels.reshape(len(pixels), -1)
    with warnings.catch_warnings():
        from sklearn.exceptions import ConvergenceWarning

        warnings.simplefilter("ignore", ConvergenceWarning)  # it stops when it has learnt enough
        model.fit(flat[own], labels[own])
    shown = pixels if pixels.ndim == 4 else flat  # a change of colour needs to know the colours
    task = classified(
        lambda rows: model.predict_proba(rows.reshape(len(rows), -1)),
        shown[rest],
        labels[rest],
        {way: transformation(way, shown[own]) for way in names},
        repeats=repeats,
        seed=seed,
        name=name,
    )
    if truth is None:
        return task
    chances = as_matrix(truth, "truth")
    if chances.shape != (len(labels), task.probabilities.shape[1]):
        raise InputError(
            f"truth must have shape {(len(labels), task.probabilities.shape[1])}, got "
            f"{chances.shape}"
        )
    return replace(task, truth=chances[rest])


@final
@frozen
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
    >>> method.make_method(0.8).coverage
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

    def make_method(self, coverage: float, seed: int = 0, model: Any = None) -> Any:
        """The method at a coverage."""
        offered = {"coverage": coverage, "seed": seed, "model": model}
        given = {key: value for key, value in offered.items() if key in self.takes}
        method = call_with_options(self.factory, {**self.options, **given}, self.what)
        if not hasattr(method, "calibrate"):
            raise InputError(f"{self.what} must have calibrate(x, y), got {method!r}")
        return method

    def identity(self, entry: Mapping[str, Any], coverage: float) -> dict[str, Any]:
        """What decides it: all its options where it can tell them, else the plan's words."""
        method = self.make_method(coverage)
        try:
            options = options_of(method, self.what)
        except InputError:
            return dict(entry)
        return {**{k: entry[k] for k in ("method", "revision") if k in entry}, "options": options}


_TUNING: Final = TunedLabels(share=0.5)
_SHARE: Final = 0.6
"""Share of the rows that validate: 30,000 of the 50,000 of Jang and Lee."""


def compare_label_sets(
    task: Classified,
    *,
    coverages: Sequence[float] = (0.9,),
    methods: Sequence[str] = LABEL_METHODS,
    own: Mapping[str, LabelMethod] | None = None,
    repeats: int = 20,
    share: float = _SHARE,
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
    >>> (comparison,) = compare_label_sets(task, methods=("LAC", "APS"), repeats=3, bins=10)
    >>> comparison.values.shape
    (3, 2, 10)
    """
    sets_of, rank, truth = _set_maker(task, own, tuning, bins), task.rank, task.truth
    measures = LABEL_MEASURES if truth is None else (*LABEL_MEASURES, *TRUE_MEASURES)

    def numbers_of(name: str, split: RandomSplit) -> list[Numbers]:
        cells = EaseCells(task.ease[split.test], bins)
        numbers: list[Numbers] = []
        for coverage in coverages:
            try:
                sets = sets_of(name, coverage, split)
            except UnanswerableError as error:
                numbers.append(dict.fromkeys(measures, str(error)))
                continue
            known = label_numbers(sets, task.y[split.test], rank[split.test], cells)
            if truth is not None:
                chances, ease = truth[split.test], task.ease[split.test]
                known = {**known, **true_measures(sets, chances, ease, cells)}
            numbers.append(known)
        return numbers

    return compared(
        task,
        numbers_of,
        methods=chosen(methods, LABEL_METHODS, own),
        measures=measures,
        coverages=coverages,
        repeats=repeats,
        share=share,
        bins=bins,
        seed=seed,
    )


def first_sets(
    task: Classified,
    method: str,
    *,
    coverage: float,
    bins: int,
    own: Mapping[str, LabelMethod] | None = None,
    seed: int = 0,
) -> tuple[LabelSets, IntArray]:
    """The sets that a method gives in the first split of a comparison, and their rows."""
    split = random_split(len(task.y), _SHARE, seed)
    return _set_maker(task, own, bins=bins)(method, coverage, split), split.test


def _set_maker(
    task: Classified,
    own: Mapping[str, LabelMethod] | None = None,
    tuning: TunedLabels = _TUNING,
    bins: int = 50,
) -> Callable[[str, float, RandomSplit], LabelSets]:
    """What gives the sets of a method at a coverage for the test rows of a split."""
    classes = task.probabilities.shape[1]
    model = _FirstColumns(classes)
    beside = np.column_stack((task.probabilities, *task.eases.values()))
    groups = tuple(EaseColumn(classes + number) for number in range(len(task.eases)))
    tuned = replace(tuning, groups=groups, evaluation_bins=bins)

    def sets_of(name: str, coverage: float, split: RandomSplit) -> LabelSets:
        other, x = (own or {}).get(name), beside
        if other is not None:
            method = other.make_method(coverage, split.seed, model)
            x = beside if "model" in other.takes else task.probabilities
        else:
            base = LabelConformal(model=model, coverage=coverage, seed=split.seed)
            if name in _PLAIN:
                method = replace(base, score=_PLAIN[name])
            else:
                method = replace(tuned, base=base, family=_FAMILIES[name])
        learnt = method.calibrate(x[split.validation], task.y[split.validation])
        shape = len(split.test), classes
        return LabelSets(_members(learnt.predict(x[split.test]), shape, name), coverage)

    return sets_of


def label_numbers(sets: LabelSets, y: IntArray, rank: FloatArray, cells: EaseCells) -> Numbers:
    """Every measure of `LABEL_MEASURES`, or the reason why there is none."""
    covered = sets.contains(y.astype(np.float64))
    values = set_measures(sets.sizes, rank, covered, sets.coverage, cells)
    return {
        name: value if math.isfinite(value) else _MISSING.get(name, value)
        for name, value in values.items()
    }


def set_measures(
    sizes: npt.ArrayLike,
    rank: FloatArray,
    inside: npt.ArrayLike,
    coverage: float,
    cells: EaseCells,
) -> dict[str, float]:
    """Every measure of `LABEL_MEASURES` on rows; NaN where it has no answer."""
    size, covered = (np.asarray(column, dtype=np.float64) for column in (sizes, inside))
    once, some = np.ones(len(rank)), size >= 1

    def violation(cells: Cells, rows: slice | BoolArray = slice(None)) -> float:
        return largest_violation(cells, covered[rows], once[rows], coverage)

    def slope(cells: Cells) -> float:
        mass, means = cells.means(np.column_stack((size, rank)), once)
        return signed_r2(*means[mass > 0].T)

    by_rank = StratumCells(rank, RAPS_STRATA)
    return {
        "t_cv": violation(cells),
        "t_ss": slope(cells),
        "sscv": violation(StratumCells(size, TORCHCP_STRATA)),
        "escv": violation(StratumCells(size[some], None), some) if some.any() else math.nan,
        "rank_cv": violation(by_rank),
        "rank_ss": slope(by_rank),
        "set_deficit": float(set_deficit(rank, size).mean()),
        "set_excess": float(set_excess(rank, size).mean()),
        "empirical_coverage": float(covered.mean()),
        "set_size": float(size.mean()),
    }


def true_measures(
    sets: LabelSets, truth: FloatArray, ease: FloatArray, cells: EaseCells
) -> dict[str, float]:
    """`TRUE_MEASURES`: a set holds the label with the sum of its labels' chances."""
    chance = np.where(sets.members, truth, 0.0).sum(axis=1)
    true_ease, once = truth.max(axis=1), np.ones(len(truth))
    by_truth = EaseCells(true_ease, cells.bins)
    return {
        "t_cv_exact": largest_violation(cells, chance, once, sets.coverage),
        "t_cv_true": largest_violation(by_truth, chance, once, sets.coverage),
        "ease_truth": spearman(ease, true_ease).value,
    }


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
@frozen
class _FirstColumns:
    """The first columns: probabilities that stand before the eases."""

    columns: int

    def __call__(self, x: FloatArray) -> FloatArray:
        return x[:, : self.columns]
