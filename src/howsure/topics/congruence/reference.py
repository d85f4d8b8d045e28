"""Conditional congruence error: how far predictive laws are from nature's, at any input.

Fit once on labelled reference rows; score anywhere, with no labels.
"""

from __future__ import annotations

from typing import final

import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.stats.kernels import Kernel, check_positive_definite, check_range
from howsure.stats.namespace import Array, on_host
from howsure.stats.ridge import KernelSystem, Solution, kernel_system
from howsure.stats.solvers import SolverOptions
from howsure.topics.congruence.beliefs import Belief
from howsure.topics.congruence.choices import (
    Bandwidth,
    KernelChoice,
    KernelInputs,
    as_outputs,
    choose_inputs,
    choose_kernel,
)
from howsure.topics.congruence.outputs import OutputFactor, fit_outputs
from howsure.topics.congruence.results import CCE
from howsure.topics.congruence.smoothing import diagnose, largest_kernel, lengths, nystrom_error


def cce(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    belief: Belief,
    grid: npt.ArrayLike | None = None,
    *,
    kernel: KernelChoice = "rbf",
    bandwidth: Bandwidth = None,
    output_kernel: KernelChoice = "rbf",
    output_bandwidth: Bandwidth = None,
    regularization: float = 0.1,
    normalize: bool | None = None,
    solver: SolverOptions | None = None,
) -> CCE:
    """Conditional congruence error of a model at given points.

    The distance, in the space of the output kernel, between the conditional law estimated from
    outcomes and the one estimated from beliefs at the same reference inputs. With μᵢ the
    embedding of the belief at xᵢ and φ(yᵢ) that of the outcome,
    CCE(x) = ‖Σᵢ αᵢ(x) (φ(yᵢ) − μᵢ)‖ with α(x) = (K + nλI)⁻¹ k(x).

    Parameters
    ----------
    x : array-like or tensor of shape (n,) or (n, d)
        Reference inputs, or embeddings of them. Where x is a PyTorch tensor the work with inputs
        is done on its device, as in `howsure.topics.congruence.mcmd`.
    y : array-like or tensor of shape (n,) or (n, p)
        Reference outcomes.
    belief : Belief
        What the model believes at the reference inputs. `Draws` gives the Monte-Carlo mode (ℓ
        draws a row, as published); `Normals`, `Mixtures`, `Support` and `Empirical` the exact
        mode, with no Monte-Carlo noise. The two modes give different values for one model.
    grid : array-like or tensor of shape (g, d), optional
        Where to evaluate; no labels are needed. By default the reference inputs.
    kernel, output_kernel, bandwidth, output_bandwidth, regularization, normalize, solver
        As in `howsure.topics.congruence.mcmd`. A bandwidth of ``"grid-variance"`` takes
        the variance of the grid, as published code does.

    Returns
    -------
    CCE
        Values: zero or more, lower is better, never NaN. They mean nothing alone: compare them
        with `howsure.topics.congruence.null.null_reference`, or with another model's at equal
        choices.

    Raises
    ------
    InputError
        If shapes do not match, a number is not finite, there are fewer than two rows, a
        bandwidth cannot be set (constant y), a kernel is not positive definite, or the grid is
        a tensor on another device than x.

    Notes
    -----
    ℓ draws at each xᵢ are a sample of nℓ pairs. Its regularised system has the solution of the
    n distinct inputs, spread evenly over the draws, so both samples share one system.

    References
    ----------
    Young et al. (2025), Assessing the probabilistic fit of neural regressors via conditional
    congruence, equation 3.

    Examples
    --------
    >>> import numpy as np
    >>> from howsure.topics.congruence.beliefs import Normals
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0.0, 6.0, 500)
    >>> y = np.cos(x) + 0.5 * rng.standard_normal(500)
    >>> right = cce(x, y, Normals(np.cos(x), np.full(500, 0.5)))
    >>> wrong = cce(x, y, Normals(np.cos(x), np.full(500, 2.0)))
    >>> right.mean < 0.05 < wrong.mean
    True
    """
    if bandwidth == "grid-variance":
        dtype = (solver or SolverOptions()).dtype
        kernel = choose_inputs(
            x, kernel, bandwidth, normalize=normalize, dtype=dtype, grid=x if grid is None else grid
        ).kernel
        bandwidth = None
    reference = CongruenceReference(
        x,
        y,
        belief,
        kernel=kernel,
        bandwidth=bandwidth,
        output_kernel=output_kernel,
        output_bandwidth=output_bandwidth,
        regularization=regularization,
        normalize=normalize,
        solver=solver,
    )
    return reference.score(grid)


@final
class CongruenceReference:
    """A labelled reference set, fitted once, that scores any inputs without labels.

    Parameters
    ----------
    x, y, belief, kernel, bandwidth, output_kernel, output_bandwidth, regularization, normalize
        As in `cce`.
    solver : SolverOptions, optional
        How to solve, and how accurately.

    Raises
    ------
    InputError
        As `cce`.

    Examples
    --------
    >>> import numpy as np
    >>> from howsure.topics.congruence.beliefs import Normals
    >>> x = np.linspace(0.0, 1.0, 50)
    >>> reference = CongruenceReference(x, np.sin(x), Normals(np.sin(x) + 1.0, np.ones(50)))
    >>> reference.score([0.2, 0.5]).values.shape
    (2,)
    """

    __slots__ = (
        "_left_out",
        "_solution",
        "belief",
        "inputs",
        "output_kernel",
        "outputs",
        "system",
        "target",
        "y",
    )

    def __init__(
        self,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        belief: Belief,
        *,
        kernel: KernelChoice = "rbf",
        bandwidth: Bandwidth = None,
        output_kernel: KernelChoice = "rbf",
        output_bandwidth: Bandwidth = None,
        regularization: float = 0.1,
        normalize: bool | None = None,
        solver: SolverOptions | None = None,
    ) -> None:
        options = solver or SolverOptions()
        self.inputs: KernelInputs = choose_inputs(
            x, kernel, bandwidth, normalize=normalize, dtype=options.dtype
        )
        self.y: FloatArray = as_outputs(y, "y", length=len(self.inputs.rows))
        self.belief = checked_belief(belief, self.y)
        peak = largest_kernel(self.inputs.kernel, self.inputs.rows)
        self.output_kernel: Kernel = choose_kernel(output_kernel, output_bandwidth, self.y, "y")
        check_outputs(self.output_kernel, self.y, belief)
        self.system: KernelSystem = kernel_system(
            self.inputs.kernel, self.inputs.rows, regularization, options
        )
        found = fit_outputs(
            self.output_kernel,
            self.y,
            belief,
            tolerance=options.accuracy * regularization / (2.0 * peak),
            options=options,
        )
        self.outputs: OutputFactor = found[0]
        self.target: FloatArray = found[1]
        self._left_out = found[2]
        self._solution: Solution | None = None

    @property
    def regularization(self) -> float:
        """λ."""
        return self.system.ridge / len(self.y)

    def solution(self) -> Solution:
        """The solved system, made once."""
        if self._solution is None:
            self._solution = self.system.solve(self.target)
        return self._solution

    def points(self, grid: npt.ArrayLike | None) -> Array | None:
        """Checked evaluation points; None stands for the reference inputs."""
        return None if grid is None else self.inputs.more(grid, "grid")

    def vectors(self, points: Array | None, solution: Solution) -> Array:
        """Smoothed differences at points whose lengths are the errors, on the host, (g, r)."""
        if points is None:
            return on_host(self.system.fitted(solution))
        return on_host(self.system.predict(points, solution))

    def score(self, grid: npt.ArrayLike | None = None) -> CCE:
        """Conditional congruence error at any inputs; no labels are needed.

        Parameters
        ----------
        grid : array-like or tensor of shape (g,) or (g, d), optional
            Where to evaluate; by default the reference inputs.

        Returns
        -------
        CCE

        Raises
        ------
        InputError
            If the grid's width is not the reference's, or a number is not finite.
        """
        points = self.points(grid)
        solution = self.solution()
        values = lengths(self.vectors(points, solution))
        rows = self.inputs.rows if points is None else points
        peak = largest_kernel(self.inputs.kernel, self.inputs.rows, rows)
        left_out = self._left_out / self.regularization
        return CCE(
            values=values,
            mode=self.belief.mode,
            draws=self.belief.draws,
            n=len(self.y),
            regularization=self.regularization,
            kernel=self.inputs.kernel.describe(),
            output_kernel=self.output_kernel.describe(),
            diagnostics=diagnose(
                [self.system],
                [solution],
                values,
                rank=self.target.shape[1],
                peak=peak,
                left_out=left_out,
                estimate=nystrom_error([self.system], [self.target], rows),
            ),
        )


def check_outputs(kernel: Kernel, y: FloatArray, belief: Belief) -> None:
    """Check that an output kernel suits the outcomes and what was believed of them."""
    atoms = belief.atoms()
    check_range(kernel, y, "y")
    check_range(kernel, atoms.mean, "belief")
    if atoms.sd is not None:
        check_range(kernel, atoms.sd, "predicted standard deviations")
    check_positive_definite(kernel, y, "output_kernel")


def checked_belief(belief: Belief, y: FloatArray) -> Belief:
    """Check that a belief fits the outcomes."""
    if not isinstance(belief, Belief):
        raise InputError(
            "belief must be Normals, Mixtures, Support, Empirical or Draws, got "
            f"{type(belief).__name__}"
        )
    if len(belief) != len(y):
        raise InputError(f"belief must have {len(y)} rows, got {len(belief)}")
    if belief.outputs != y.shape[1]:
        raise InputError(f"belief must have {y.shape[1]} outputs as y has, got {belief.outputs}")
    return belief
