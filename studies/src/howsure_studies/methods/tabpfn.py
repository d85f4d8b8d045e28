"""TabPFN: a network that was trained on made-up tables and reads the training rows at once."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any, ClassVar, Final, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix
from howsure.core.classes import frozen
from howsure.core.convert import Checked, Count, Coverages
from howsure.core.errors import InputError, MissingDependencyError
from howsure.inputs.distributions import central_levels
from howsure.predictions import Quantiles
from howsure_studies.methods.interface import COVERAGES, Fitted, Method, Predictions, checked_rows

WEIGHTS: Final = "HOWSURE_TABPFN"
"""The variable of the environment that names the file of weights."""


@final
@frozen(kw_only=True)
class TabPFN(Method, Checked):
    """TabPFN's quantiles of y; its weights are a file of one's own, and are never fetched.

    Parameters
    ----------
    weights : str, optional
        The file of weights for regression, such as ``tabpfn-v2-regressor.ckpt``; that which the
        variable ``HOWSURE_TABPFN`` of the environment names, if omitted. It does not enter what
        a result is known by: name it here where several are compared.
    rows : int
        The most training rows; a random choice of so many where there are more.
    coverages : tuple of float
        The coverages of its central intervals.

    Raises
    ------
    InputError
        If an option breaks its rule; when fitted, if no file of weights is named, or none is
        there.
    MissingDependencyError
        When fitted, if the package ``tabpfn`` is not installed.

    Notes
    -----
    Quantiles at the coverages' levels and the median, of ``TabPFNRegressor`` as it comes, on the
    processor. Its licence is its makers' own: read it. Source: Hollmann et al. 2025, "Accurate
    predictions on small data with a tabular foundation model", Nature 637.

    Examples
    --------
    >>> TabPFN(coverages=(0.9,)).fixed_coverages
    (0.9,)
    """

    name: ClassVar[str] = "TabPFN"
    weights: str | None = None
    rows: Count = 10_000
    coverages: Coverages = COVERAGES

    @property
    def fixed_coverages(self) -> tuple[float, ...]:
        return self.coverages

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> Fitted:
        """Give the network the training rows."""
        inputs, targets = checked_rows(x, y, least=2)
        file = self._file()
        try:
            library = importlib.import_module("tabpfn")
        except ImportError as error:
            raise MissingDependencyError(
                "TabPFN needs the package tabpfn, which is not installed: pip install tabpfn"
            ) from error
        chosen = np.sort(rng.permutation(len(targets))[: self.rows])
        model = library.TabPFNRegressor(
            model_path=str(file), device="cpu", random_state=int(rng.integers(2**31 - 1))
        )
        model.fit(inputs[chosen], targets[chosen])
        return _Read(model, np.union1d(central_levels(self.coverages), [0.5]))

    def _file(self) -> Path:
        named = self.weights or os.environ.get(WEIGHTS, "")
        if not named:
            raise InputError(
                f"weights must name the file of TabPFN's weights, or the variable {WEIGHTS} of the "
                "environment must: howsure does not download any"
            )
        file = Path(named).expanduser()
        if not file.is_file():
            raise InputError(f"weights must be an existing file, got {named!r}")
        return file


@final
@frozen(eq=False)
class _Read(Fitted):
    model: Any
    levels: FloatArray

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """Quantiles of a new y at each row of x."""
        inputs = as_matrix(x, "x")
        columns = self.model.predict(
            inputs, output_type="quantiles", quantiles=self.levels.tolist()
        )
        values = np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)
        table = as_matrix(values, "TabPFN's quantiles", length=len(inputs))
        return Predictions(Quantiles(self.levels, table, crossing="sort"))
