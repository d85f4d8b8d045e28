"""Displays: what an assessment draws, made and held as scikit-learn's displays are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self, final

import numpy.typing as npt

from howsure.core.errors import InputError
from howsure.figures import plot
from howsure.figures.groups import groups_figures
from howsure.figures.layouts import layout_of_table
from howsure.report.assess import assess
from howsure.report.model import assess_model
from howsure.report.options import Options

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawn
    from matplotlib.figure import SubFigure

    from howsure.report.assessment import Assessment


class _Display:
    """A figure of an assessment."""

    _curves: ClassVar[tuple[str, ...]] = ()
    ax_: Axes
    figure_: Drawn | SubFigure

    def __init__(self, assessment: Assessment) -> None:
        self.assessment = assessment

    @classmethod
    def from_predictions(
        cls, y: npt.ArrayLike, prediction: Any, *, ax: Axes | None = None, **arguments: Any
    ) -> Self:
        """Draw what was predicted beside what happened.

        Parameters
        ----------
        y : array-like of shape (n,)
            What happened.
        prediction : Prediction, array-like, or mapping of names to these
            As `howsure.assess` takes it; a mapping draws models side by side.
        ax : matplotlib Axes, optional
            Where to draw; new axes where absent.
        **arguments
            All else that `howsure.assess` takes.
        """
        return cls(assess(y, prediction, **{"options": Options(trials=False), **arguments})).plot(
            ax
        )

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: npt.ArrayLike, *, ax: Axes | None = None, **arguments: Any
    ) -> Self:
        """Draw what a fitted estimator predicts at X.

        Parameters
        ----------
        estimator : fitted estimator, or mapping of names to these
            As `howsure.assess_model` takes it.
        X : array-like of shape (n, d), or data frame
            What it predicts from, in rows that it was not fitted to.
        y : array-like of shape (n,)
            What happened.
        ax : matplotlib Axes, optional
            Where to draw; new axes where absent.
        **arguments
            All else that `howsure.assess_model` takes.
        """
        choices = {"options": Options(trials=False), "features": None, **arguments}
        return cls(assess_model(estimator, X, y, **choices)).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw, on new axes if none are given; they become ``ax_``, their figure ``figure_``.

        Raises
        ------
        InputError
            If the prediction gives no such figure.
        MissingDependencyError
            If matplotlib is not installed.
        """
        self.ax_ = self._drawn(ax)
        self.figure_ = self.ax_.figure
        return self

    def _drawn(self, ax: Axes | None) -> Axes:
        """The first of the curves that there is."""
        drawable = {curve.name for curve in self.assessment.curves}
        name = next((curve_name for curve_name in self._curves if curve_name in drawable), None)
        if name is None:
            raise InputError(
                f"prediction must give one of the curves {', '.join(self._curves)}, which "
                f"{self.assessment.facts['Predictions']} do not"
            )
        drawn: Axes = self.assessment.plot(name, ax=ax)
        return drawn


@final
class CalibrationDisplay(_Display):
    """The reliability diagram: shares of y below each quantile against its level, with a band.

    Of intervals alone, at two coverages or more, it is empirical against nominal coverage. Of class
    probabilities it is the share that happened against the probability stated.

    Parameters
    ----------
    assessment : Assessment
        What is drawn; ``print`` shows its verdict.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import howsure, numpy as np
    >>> y = np.random.default_rng(0).normal(size=200)
    >>> normal = howsure.Distribution.normal(np.zeros(200), np.ones(200))
    >>> CalibrationDisplay.from_predictions(y, normal).ax_.get_xlabel()
    'Nominal level'
    """

    _curves = ("class_reliability", "calibration", "interval_calibration")


@final
class CoverageDisplay(_Display):
    """Coverage of all rows, and of each group where `groups` are given, with error bars.

    Parameters
    ----------
    assessment : Assessment
        What is drawn; ``print`` shows its verdict.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> y = np.random.default_rng(0).normal(size=200)
    >>> ends = np.full(200, -1.6), np.full(200, 1.6)
    >>> CoverageDisplay.from_predictions(y, ends, coverage=0.9).ax_.get_xlabel()
    'Empirical coverage'
    """

    def _drawn(self, ax: Axes | None) -> Axes:
        """Of the models, in the colours of their other figures."""
        models = dict.fromkeys(record.model for record in self.assessment.records)
        tables = [
            table
            for table in self.assessment.tables
            if layout_of_table(table.name).figure == "cover"
        ]
        figures = groups_figures(tables, {name: number for number, name in enumerate(models)})
        if not figures:
            raise InputError(
                "prediction must give intervals of known coverage, got "
                f"{self.assessment.facts['Predictions']}"
            )
        return plot(figures[0], ax)


@final
class WidthDisplay(_Display):
    """Errors by predicted uncertainty: do they grow as the model says?

    Parameters
    ----------
    assessment : Assessment
        What is drawn; ``print`` shows its verdict.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import howsure, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sd = rng.uniform(0.5, 2.0, size=200)
    >>> normal = howsure.Distribution.normal(np.zeros(200), sd)
    >>> WidthDisplay.from_predictions(sd * rng.normal(size=200), normal).ax_.get_title(loc="left")
    'Error by predicted uncertainty'
    """

    _curves = ("error_by_width",)
