"""How conditional congruence is measured, and what a fitted model says of labelled rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.convert import Checked, Count, Natural, plain
from howsure.core.errors import InputError, UnanswerableError
from howsure.methods.interface import Fitted
from howsure.metrics.calibration import Weighting, calibration_error
from howsure.metrics.congruence import Belief, CongruenceReference, Draws
from howsure.metrics.congruence.laws import belief_of, embeds_exactly
from howsure.metrics.congruence.view import CongruenceOptions
from howsure.predictions import CountFamily, Distribution, EvalSet, Prediction, Samples
from howsure.predictions.counts import DoublePoisson
from howsure.studies.congruence.tasks import CongruenceTask, Embedding
from howsure.studies.tasks import Part


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CongruenceMeasure(Checked):
    """How CCE and ECE are measured, and how often.

    Parameters
    ----------
    draws : int or None
        ℓ, Monte-Carlo draws a row. None, as in an assessment: the exact embedding of beliefs,
        which has no noise, and 5 draws where they have none. The paper takes 1.
    samplings : int
        Sets of draws, at least 1; taken as 1 in exact mode.
    bootstraps : int
        Bootstrap samples of the data; 0 for none.
    grid : {"resampled", "fixed"}
        Whether a bootstrap sample is also where CCE is taken, as for a new data set, or CCE is
        always taken at the test inputs, so that a band over x can be had.
    kernel, bandwidth, output_bandwidth, regularization
        As in `howsure.metrics.congruence.cce`; kernel ``auto`` and no bandwidth are the task's.
    levels, weighting, exponent
        Of the ECE, as in `howsure.metrics.calibration.calibration_error`.
    replicates : int
        Data sets drawn from the beliefs themselves, for the CCE that a right model would have in
        exact mode; 0 for none.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Examples
    --------
    >>> CongruenceMeasure(draws=5).kernel_for(64)
    'polynomial'
    """

    draws: Count | None = None
    samplings: Count = 5
    bootstraps: Natural = 10
    grid: Literal["resampled", "fixed"] = "resampled"
    kernel: str = "auto"
    bandwidth: str | float | None = None
    output_bandwidth: str | float | None = None
    regularization: float = 0.1
    levels: int = 50
    weighting: Weighting = "frequency"
    exponent: float = 1.0
    replicates: Natural = 0

    @property
    def sets(self) -> int:
        """Sets of draws: one where none are asked for."""
        return 1 if self.draws is None else self.samplings

    def kernel_for(self, width: int) -> str:
        """The kernel for embeddings of so many columns."""
        options = CongruenceOptions(kernel=self.kernel, bandwidth=self.bandwidth)
        return options.kernel_for(width)

    def of_task(self, task: CongruenceTask) -> CongruenceMeasure:
        """The same with the task's kernel and bandwidth, where none is chosen."""
        if self.kernel != "auto" or self.bandwidth is not None:
            return self
        return replace(self, kernel=task.kernel, bandwidth=task.bandwidth)

    def options(self) -> dict[str, str | float]:
        """The choices as plain values."""
        told = {name: value for name, value in plain(self).items() if value is not None}
        return {
            name: value if isinstance(value, str) else float(value) for name, value in told.items()
        }


def answer(
    fitted: Fitted, part: Part, embed: Embedding | None = None, *, model: str = "model"
) -> EvalSet:
    """What a fitted method believes of a part's rows, beside what happened.

    Parameters
    ----------
    fitted : Fitted
        A fitted method.
    part : Part
        Rows.
    embed : callable, optional
        Inputs to embeddings; by default the fitted method's own ``features``.
    model : str
        Its name.

    Raises
    ------
    InputError
        If no embedding is given and the method has no features.
    UnanswerableError
        If the method has failed, or believes no law of y.
    """
    space = embed or own_features(fitted)
    return believed(fitted.predict(part.x).outcome, part, space, model=model)


def believed(law: Prediction, part: Part, embed: Embedding, *, model: str) -> EvalSet:
    """Laws of y at a part's rows, beside what happened.

    Raises
    ------
    UnanswerableError
        If it is no law of y, which draws could stand for.
    """
    return stated(law, part.y, embed(part.x), model=model)


def stated(law: Prediction, y: FloatArray, embedding: FloatArray, *, model: str) -> EvalSet:
    """Laws of y beside what happened and embedded inputs.

    Raises
    ------
    UnanswerableError
        If it is no law of y, which draws could stand for.
    """
    if not isinstance(law, Distribution | Samples):
        raise UnanswerableError(f"congruence needs laws or samples of y, got {law.kind}")
    return EvalSet.checked(y, law, embedding=embedding, model=model)


def own_features(fitted: Fitted) -> Embedding:
    """The features of a fitted method, as an embedding.

    Raises
    ------
    InputError
        If it has none.
    """
    features = getattr(fitted, "features", None)
    if not callable(features):
        raise InputError("embed must be given where a method has no features, got none")
    return lambda x: np.asarray(features(x), dtype=np.float64)


def law_of(held: EvalSet) -> Prediction:
    """The law of y that a set holds.

    Raises
    ------
    UnanswerableError
        If it holds none.
    """
    for law in held.beliefs:
        if isinstance(law, Distribution | Samples):
            return law
    raise UnanswerableError("congruence needs laws or samples of y, got neither")


def congruence_at(
    held: EvalSet,
    grid: npt.ArrayLike | None,
    measure: CongruenceMeasure,
    rng: np.random.Generator,
) -> FloatArray:
    """CCE at points, with a set as the labelled reference S.

    Parameters
    ----------
    held : EvalSet
        Labelled rows with beliefs and embeddings.
    grid : array-like of shape (g, e), optional
        Embeddings of the points; the reference's own by default.
    measure : CongruenceMeasure
        Kernels, λ and ℓ.
    rng : numpy.random.Generator
        Makes the draws.

    Returns
    -------
    ndarray of float, shape (g,)
    """
    return reference_of(held, measure, rng).score(grid).values


def reference_of(
    held: EvalSet, measure: CongruenceMeasure, rng: np.random.Generator
) -> CongruenceReference:
    """A set as the labelled reference of a CCE, by draws or exactly.

    Raises
    ------
    UnanswerableError
        If there is no law of y.
    """
    assert held.embedding is not None
    belief: Belief
    if measure.draws is None:
        belief = belief_of(held, "exact" if embeds_exactly(held) else "samples")
    else:
        belief = Draws(law_of(held).sample(rng, measure.draws))
    return CongruenceReference(
        held.embedding,
        held.y,
        belief,
        kernel=measure.kernel_for(held.embedding.shape[1]),
        bandwidth=measure.bandwidth,
        output_bandwidth=measure.output_bandwidth,
        regularization=measure.regularization,
    )


def calibration_of(held: EvalSet, measure: CongruenceMeasure, *, exact: bool) -> float:
    """ECE of a set: by P(Y ≤ y) as published, or spread over the cells of discrete laws."""
    law = law_of(held)
    left = law.cdf_left(held.y) if exact else None
    return calibration_error(
        np.clip(law.cdf(held.y), 0.0, 1.0),
        left=None if left is None else np.clip(left, 0.0, 1.0),
        levels=measure.levels,
        weighting=measure.weighting,
        exponent=measure.exponent,
    ).value


def losses(held: EvalSet) -> dict[str, FloatArray]:
    """NLL and absolute error of each row, and NLL as published of double Poisson laws.

    The published likelihood of the double Poisson law lacks its normalising constant; for any
    other law, ``nll_unnormalised`` is the NLL.
    """
    law = law_of(held)
    found = {"error": np.abs(held.y - law.point())}
    try:
        found["nll"] = -law.log_density(held.y)
    except UnanswerableError:
        return found
    found["nll_unnormalised"] = found["nll"]
    if isinstance(law, Distribution) and isinstance(law.law, CountFamily):
        frozen = law.law.frozen(law.parameters)
        if isinstance(frozen, DoublePoisson):
            found["nll_unnormalised"] = -frozen.log_pmf(held.y, "none")
    return found
