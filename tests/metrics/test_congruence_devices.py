"""Conditional congruence of tensors on another device: nothing strays to the host."""

from __future__ import annotations

import numpy as np
import pytest

from extras import needs
from howsure.stats.kernels import RBF, GramOperator, Kernel, Laplacian, Polynomial, cross_product
from howsure.stats.namespace import (
    add_to_diagonal,
    cholesky_solve,
    like,
    triangular_solve,
)
from howsure.stats.solvers import SolverOptions
from howsure.topics.congruence.predictive import Normals
from howsure.topics.congruence.reference import cce, mcmd

needs("array_api_compat")
torch = needs("torch")

from strays import HostTensors, Unplaced  # noqa: E402

KERNELS = [RBF(0.5), Laplacian(0.5), Polynomial(2, 0.5, 1.0)]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("memory", [0.0, 2e9])
def test_products_and_solvers_stay_on_their_device(kernel: Kernel, memory: float) -> None:
    """All that costs more than n steps, on torch's `meta` device, which has no numbers."""
    rows = torch.empty(30, 4, dtype=torch.float64, device="meta")
    vectors = like(np.ones((30, 2)), rows)
    with HostTensors() as host:
        made = [GramOperator(kernel, rows, memory=memory).product(vectors)]
        made.append(cross_product(kernel, rows[:7], rows, vectors))
        gram = kernel.gram(rows, rows)
        add_to_diagonal(gram, 0.1)
        made += [gram, cholesky_solve(gram, vectors), triangular_solve(gram, vectors)]
    assert host.found == []
    assert {part.device.type for part in made} == {"meta"}


@pytest.mark.parametrize("method", ["iterative", "dense", "nystrom"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_whole_errors_tell_their_device(method: str, dtype: str) -> None:
    """Solvers ask their numbers when to stop, which `meta` has not: here no tensor is made on the
    CPU by default, so that none would be where the inputs are elsewhere."""
    rng = np.random.default_rng(0)
    x, grid = (torch.from_numpy(rng.normal(size=(size, 3))) for size in (90, 20))
    y = rng.normal(size=(90, 1))
    solver = SolverOptions(method=method, dtype=dtype, landmarks=40)
    predictive = Normals(np.zeros(90), np.ones(90))
    with Unplaced() as unplaced:
        error = cce(x, y, predictive, grid, solver=solver)
        mcmd(x, y, x[:50], y[:50], grid, solver=solver)
    assert unplaced.found == []
    assert np.isfinite(error.values).all()
