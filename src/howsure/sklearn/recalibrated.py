"""Estimators whose predictions are recalibrated by their own out-of-fold predictions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final, Self, cast, final

import numpy as np
import numpy.typing as npt
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    RegressorMixin,
    clone,
    is_classifier,
)
from sklearn.model_selection import check_cv
from sklearn.utils import (
    _safe_indexing,
    check_array,
    check_consistent_length,
    column_or_1d,
    get_tags,
    indexable,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from howsure.core.arrays import AnyArray, FloatArray, IntArray, check_fraction
from howsure.core.errors import InputError
from howsure.core.progress import subscribe
from howsure.core.registry import check_known
from howsure.inputs.classes import label_text
from howsure.inputs.given import PredictionInput
from howsure.predictions import EvalSet, Intervals, Prediction, Probabilities, Quantiles
from howsure.predictions.base import wanted_levels
from howsure.recalibration import METHODS, Recalibrator, methods_of
from howsure.recalibration.base import POINT, Pieces, kinds_of
from howsure.recalibration.dispatch import BEST, applied, method_of
from howsure.recalibration.info import MethodInfo, RecalibrationOptions
from howsure.recalibration.levels import levels_with
from howsure.report.model import ask_model
from howsure.verdict import try_recalibrations

PREFIT: Final = "prefit"
"""The `cv` of an estimator that is fitted already, to other rows."""
_PLAIN: Final = "split"
"""What makes intervals of a point forecast where the method is left open."""
_NONE: Final = "None in finite samples"


class _Recalibrated(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator with the recalibration that its errors on rows of other folds teach."""

    estimator: Any
    method: str
    cv: Any
    coverage: float
    calibration_: EvalSet
    estimator_: Any
    _recalibrator: Recalibrator | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "fit"):
            within = get_tags(self.estimator).input_tags
            tags.input_tags.sparse = within.sparse
            tags.input_tags.allow_nan = within.allow_nan
        return tags

    @abstractmethod
    def _read_outcomes(self, y: npt.ArrayLike) -> tuple[FloatArray, AnyArray]:
        """Outcomes as the numbers of an evaluation set, and as the estimator is fitted to them."""

    def fit(self, X: Any, y: npt.ArrayLike) -> Self:
        """Cross-fit, fit the recalibration, and fit to all rows.

        Parameters
        ----------
        X : array-like of shape (n, d), or data frame
            What the estimator predicts from.
        y : array-like of shape (n,)
            What happened.
        """
        check_fraction(self.coverage, "coverage")
        methods = [name for name, info in METHODS.items() if not info.needs]
        if self.method not in (BEST, *methods, *(a for n in methods for a in METHODS[n].aliases)):
            check_known(self.method, (BEST, *methods), "method")
        if isinstance(self.cv, str) and self.cv != PREFIT:
            raise InputError(f"cv must be folds or {PREFIT!r}, got {self.cv!r}")
        if y is None:
            raise InputError(
                f"y must be the outcomes ({type(self).__name__} requires y to be passed, but the "
                "target y is None)"
            )
        (X,) = indexable(X)
        validate_data(self, X, skip_check_array=True)
        truth, targets = self._read_outcomes(y)
        check_consistent_length(X, truth)
        if self.cv == PREFIT:
            self.estimator_ = self.estimator
            self.calibration_ = self._rows(X, truth)
        else:
            folds = list(
                check_cv(self.cv, targets, classifier=is_classifier(self)).split(X, targets)
            )
            self.calibration_ = self._out_of_fold(X, truth, targets, folds)
            self.estimator_ = _fitted(self.estimator, X, targets)
        self.method_ = self._chosen()
        self._recalibrator = None if not self.method_ else self._taught(self.coverage)
        self.guarantee_ = self._guarantee()
        return self

    def _recalibrated(self, X: Any) -> EvalSet:
        """What is predicted at X, recalibrated where that makes no intervals of it."""
        check_is_fitted(self)
        (X,) = indexable(X)
        if np.ndim(X) == 1:
            raise InputError(
                "X must have two dimensions, got one. Reshape your data: X.reshape(1, -1) is a row"
            )
        validate_data(self, X, reset=False, skip_check_array=True)
        rows = self._rows(X, None)
        if self._recalibrator is None or self._makes_intervals():
            return rows
        return applied((self._recalibrator,), rows).evalset

    def _rows(self, X: Any, y: FloatArray | None) -> EvalSet:
        """What the fitted estimator predicts at X, beside y where it is known."""
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        stated = self._ask_estimator(self.estimator_, X, n)
        unread = np.zeros(n)
        return EvalSet.checked(
            unread if y is None else y, stated.predictions[:1], point=stated.point
        )

    def _ask_estimator(self, fitted: Any, X: Any, n: int) -> PredictionInput:
        """What one says; an error of its own comes as it is, as scikit-learn's users expect."""
        try:
            return ask_model(fitted, X, n, coverages=(self.coverage,), called="estimator")
        except InputError as error:
            cause: BaseException | None = error
            while isinstance(cause, InputError):
                cause = cause.__cause__
            if cause is None:
                raise
            raise cause from None

    def _out_of_fold(
        self,
        X: Any,
        y: FloatArray,
        targets: AnyArray,
        folds: list[tuple[IntArray, IntArray]],
    ) -> EvalSet:
        """Rows that are in a test fold, in their order, each predicted without its fold."""
        tested, times = np.unique(np.concatenate([test for _, test in folds]), return_counts=True)
        if (times > 1).any():
            raise InputError(
                "cv must put each row in at most one test fold, got row "
                f"{tested[np.argmax(times)]} in {times.max()}"
            )
        point: FloatArray | None = None
        pieces: Pieces | None = None
        for train, test in folds:
            fitted = _fitted(self.estimator, _safe_indexing(X, train), targets[train])
            stated = self._ask_estimator(fitted, _safe_indexing(X, test), len(test))
            places = np.searchsorted(tested, test)
            if stated.point is not None:
                point = np.empty(len(tested)) if point is None else point
                point[places] = stated.point
            for prediction in stated.predictions[:1]:
                pieces = Pieces(prediction, len(tested)) if pieces is None else pieces
                pieces.put(places, prediction)
        predictions = () if pieces is None else (pieces.join(),)
        return EvalSet.checked(y[tested], predictions, point=point)

    def _chosen(self) -> str:
        """The name of the method to use; empty where nothing helps."""
        if self.method != BEST:
            return str(self.method)
        if not self.calibration_.predictions:
            return _PLAIN
        with subscribe(lambda *_: None):  # one fit of many, whose steps hide those of the whole
            advice = try_recalibrations(self.calibration_).advice
        return "" if advice is None else advice.method

    @property
    def _info(self) -> MethodInfo:
        (kind,) = kinds_of(self.calibration_)
        info = method_of(kind, self.method_)
        bare = kind == POINT
        if info is None or (bare and info.gives != "intervals"):
            suiting = (
                name
                for name, method in methods_of(kind).items()
                if not method.needs and (method.gives == "intervals" or not bare)
            )
            raise InputError(
                f"method must suit what the estimator predicts, {kind} ({', '.join(suiting)}), "
                f"got {self.method!r}"
            )
        return info

    def _makes_intervals(self) -> bool:
        """Whether the method makes intervals, at the coverage asked for, of something else."""
        if not self.method_ or self._info.gives != "intervals":
            return False
        return kinds_of(self.calibration_) != (Intervals.kind,)

    def _taught(self, coverage: float) -> Recalibrator:
        """What the calibration rows teach; of intervals that it makes, at this coverage."""
        options = RecalibrationOptions(
            coverage=coverage if self._makes_intervals() else None,
            levels=levels_with((self.coverage,)),
        )
        (kind,) = kinds_of(self.calibration_)
        return self._info.make(kind, options).fit(self.calibration_)

    def _guarantee(self) -> str:
        if self._recalibrator is None:
            return f"{_NONE}: predictions are those of the estimator."
        if self.cv != PREFIT:
            return f"{_NONE}: calibration rows were predicted by other models, fold by fold."
        if self.method == BEST and self.calibration_.predictions:
            return f"{_NONE}: the same rows selected the method and fitted it."
        return self._recalibrator.guarantee


@final
class RecalibratedRegressor(RegressorMixin, _Recalibrated):  # type: ignore[misc]
    """A regressor, recalibrated with its errors on rows that it was not fitted to.

    `fit` predicts each fold of the rows with a clone fitted to the other folds. The recalibration
    is fitted to these out-of-fold predictions; then the estimator is fitted to all rows.

    Parameters
    ----------
    estimator : regressor, or list of quantile regressors
        What `howsure.assess_model` can ask: a regressor whose ``predict`` takes ``return_std``, one
        that gives intervals or quantiles, several with one level each, or any other, whose forecast
        is a point.
    method : str
        A method that `howsure.recalibration.methods_of` lists for the kind of prediction, and that
        needs nothing beside it. ``best`` uses the one with a significant gain in cross-validation
        on the out-of-fold predictions, or none, as in `howsure.recalibrate`. For a point forecast,
        which has no spread, it is ``split``, conformal intervals.
    cv : int, splitter, iterable of pairs, or "prefit"
        Folds, as in scikit-learn; each row is in one test fold at most. With ``prefit`` the
        estimator is fitted already, and `fit` needs other rows.
    coverage : float
        Nominal coverage of intervals if none is asked for, also when asking an estimator for its
        intervals.

    Attributes
    ----------
    estimator_ : the fitted estimator, or list of these
    calibration_ : EvalSet
        The out-of-fold predictions beside y.
    method_ : str
        The method that is used; empty if none helps, and predictions stay as they are.
    guarantee_ : str
        The guarantee in finite samples, in words.
    n_features_in_ : int
        Columns of X in `fit`, where these can be counted.
    feature_names_in_ : ndarray of str
        Their names, where X has names.

    Raises
    ------
    InputError
        If an argument breaks its rule, or the method does not suit what the estimator predicts.

    Notes
    -----
    With cross-fitting there is no finite-sample guarantee. Errors come from models fitted to fewer
    rows than the final model, and out-of-fold predictions of different folds depend on each
    other. Coverage is near the nominal one if leaving a fold out changes predictions little.
    (Cross-conformal sets and CV+ guarantee 2·coverage − 1; these intervals are neither.)
    With ``prefit`` and a fixed method, the guarantee in ``guarantee_`` applies to new rows
    exchangeable with those of `fit`: for ``split`` and ``cqr``, nominal coverage on average. After
    ``best`` there is no guarantee, because the same rows select the method and fit it.

    Rows that depend on each other need folds that keep them together, such as those of
    ``GroupKFold().split(X, y, groups)``. Row weights are not supported.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> y = X[:, 0] + rng.normal(size=400)
    >>> model = RecalibratedRegressor(LinearRegression()).fit(X, y)
    >>> model.method_
    'split'
    >>> model.predict_interval([[0.0]], coverage=0.9).round(1)
    array([[-1.7,  1.6]])
    """

    def __init__(
        self, estimator: Any, *, method: str = BEST, cv: Any = 5, coverage: float = 0.9
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.coverage = coverage

    def _read_outcomes(self, y: npt.ArrayLike) -> tuple[FloatArray, AnyArray]:
        numbers = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        truth = column_or_1d(numbers, warn=True)
        return truth, truth

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The point forecast: mean, median or midpoint of what is predicted, or its one quantile.

        Parameters
        ----------
        X : array-like of shape (n, d), or data frame
            What to predict from.
        return_std : bool
            Whether to give the predicted standard deviation too.

        Returns
        -------
        ndarray of float, shape (n,), or a pair of these

        Raises
        ------
        UnanswerableError
            If a standard deviation is asked for, but intervals or quantiles have none.
        """
        rows = self._recalibrated(X)
        if rows.point is not None:
            point = rows.point
        else:
            (prediction,) = rows.predictions
            is_single = isinstance(prediction, Quantiles) and len(prediction.levels) == 1
            point = (
                prediction.quantile(prediction.own_levels)[:, 0]
                if is_single
                else prediction.point()
            )
        return (point, self._uncertain(rows, ()).sd()) if return_std else point

    def predict_interval(self, X: Any, coverage: float | None = None) -> FloatArray:
        """Central intervals at a nominal coverage; `coverage` of the regressor if omitted.

        Returns
        -------
        ndarray of float, shape (n, 2)
            Lower and upper ends; infinite with too few calibration rows.

        Raises
        ------
        UnanswerableError
            If what is predicted has no interval at this coverage.
        """
        at = self.coverage if coverage is None else check_fraction(coverage, "coverage")
        return np.column_stack(self.predict_uncertainty(X, coverages=(at,)).interval(at))

    def predict_quantiles(self, X: Any, levels: npt.ArrayLike) -> FloatArray:
        """Quantiles at levels of (0, 1), in any order.

        Returns
        -------
        ndarray of float, shape (n, k)

        Raises
        ------
        UnanswerableError
            If what is predicted has no such quantiles; intervals have none.
        """
        return self.predict_uncertainty(X).quantile(wanted_levels(levels))

    def predict_uncertainty(self, X: Any, coverages: Iterable[float] = ()) -> Prediction:
        """All that is predicted, as one of howsure's predictions.

        Parameters
        ----------
        X : array-like of shape (n, d), or data frame
            What to predict from.
        coverages : iterable of float
            Nominal coverages, where the method makes intervals of something else; `coverage` of
            the regressor if empty.

        Returns
        -------
        Prediction
        """
        return self._uncertain(self._recalibrated(X), tuple(coverages))

    def _uncertain(self, rows: EvalSet, coverages: tuple[float, ...]) -> Prediction:
        """The prediction of rows that are recalibrated; intervals are made here."""
        if self._makes_intervals():
            fits = [(at, self._taught(at)) for at in coverages or (self.coverage,)]
            ends = [
                cast("Intervals", recalibrator.transform(rows)[0]).interval(at)
                for at, recalibrator in fits
            ]
            lower, upper = (np.column_stack(side) for side in zip(*ends, strict=True))
            return Intervals(lower, upper, [at for at, _ in fits])
        return rows.predictions[0]


@final
class RecalibratedClassifier(ClassifierMixin, _Recalibrated):  # type: ignore[misc]
    """A classifier, recalibrated with its class probabilities for rows that it was not fitted to.

    As `RecalibratedRegressor`, of an estimator with ``predict_proba``; folds are stratified.

    Parameters
    ----------
    estimator : classifier
        With ``predict_proba``, binary or of several classes.
    method : str
        shift, temperature, platt, beta or isotonic. ``best`` uses the one that significantly helps
        on the out-of-fold probabilities, or none.
    cv : int, splitter, iterable of pairs, or "prefit"
        As in `RecalibratedRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The labels of y.
    estimator_, calibration_, method_, guarantee_, n_features_in_, feature_names_in_
        As in `RecalibratedRegressor`.

    Raises
    ------
    InputError
        If an argument breaks its rule, or y has fewer than two classes.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(rng.normal(size=(600, 1)), 6, axis=1)
    >>> y = X[:, 0] + 2 * rng.normal(size=600) > 0
    >>> model = RecalibratedClassifier(GaussianNB()).fit(X, y)
    >>> model.method_, model.predict_proba(X[:1]).round(2)
    ('temperature', array([[0.5, 0.5]]))
    """

    coverage = 0.9  # which class probabilities have none of

    def __init__(self, estimator: Any, *, method: str = BEST, cv: Any = 5) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv

    def _read_outcomes(self, y: npt.ArrayLike) -> tuple[FloatArray, AnyArray]:
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError("y must have at least two classes, got only one class")
        return codes.astype(np.float64), labels

    def _ask_estimator(self, fitted: Any, X: Any, n: int) -> PredictionInput:
        """Probabilities of all classes: 0 of those that the rows of a fold lack."""
        stated = super()._ask_estimator(fitted, X, n)
        kept = np.searchsorted(self.classes_, fitted.classes_)
        table = np.zeros((n, len(self.classes_)))
        table[:, kept] = cast("Probabilities", stated.predictions[0]).table
        names = list(map(label_text, self.classes_.tolist()))
        return replace(stated, predictions=(Probabilities(table, names),))

    def predict_proba(self, X: Any) -> FloatArray:
        """Recalibrated probabilities of the classes, in the order of ``classes_``.

        Parameters
        ----------
        X : array-like of shape (n, d), or data frame
            What to predict from.

        Returns
        -------
        ndarray of float, shape (n, k)
        """
        return cast("Probabilities", self._recalibrated(X).predictions[0]).table

    def predict(self, X: Any) -> AnyArray:
        """The class of the highest recalibrated probability, shape (n,)."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[likeliest])


def _fitted(estimator: Any, X: Any, y: AnyArray) -> Any:
    """A clone of an estimator, or of each of several, fitted."""
    if isinstance(estimator, list | tuple):
        return [clone(member).fit(X, y) for member in estimator]
    return clone(estimator).fit(X, y)
