"""Time the conditional congruence error against dense references, in the same run.

    python benchmarks/congruence.py --rows 1000 3000
    python benchmarks/congruence.py --rows 10000 --wide --dtype float32
    python benchmarks/congruence.py --rows 50000 100000 --no-reference
    python benchmarks/congruence.py --rows 1000000 --wide --dtype float32 --no-reference
    python benchmarks/congruence.py --rows 10000 50000 100000 --wide --dtype float32 \
        --method iterative --backend torch --device cuda --memory 50 --no-reference

The last needs PyTorch, array-api-compat and a GPU; inputs lie on the device beforehand, and
results come back to the host, so that the clock stops when the device is done.

Two references, both in 64 bits with whole Gram matrices: the two-sample formula with explicit
inverses, which treats outcomes and draws as unrelated samples, and the dense form that knows
that both share their inputs (one Cholesky factor).
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

from howsure.stats.kernels import normalize_rows, tiles
from howsure.stats.solvers import SolverOptions
from howsure.topics.congruence.predictive import Draws
from howsure.topics.congruence.reference import cce

T = TypeVar("T")
Array = npt.NDArray[np.float64]
Gram = Callable[[Array, Array], Array]

LAMBDA = 0.1
WIDTH = 512


def rbf(gamma: float) -> Gram:
    """Gaussian Gram matrices by one matrix product."""

    def gram(a: Array, b: Array) -> Array:
        squares = np.square(a).sum(axis=1)[:, None] + np.square(b).sum(axis=1) - 2.0 * (a @ b.T)
        np.maximum(squares, 0.0, out=squares)
        squares *= -gamma
        return np.asarray(np.exp(squares, out=squares))

    return gram


def cubic(a: Array, b: Array) -> Array:
    """(⟨a,b⟩ + 1)³."""
    base = a @ b.T + 1.0
    return np.asarray(base * base * base)


def two_sample(x: Array, y: Array, drawn: Array, inputs: Gram, outputs: Gram) -> Array:
    """αᵀK_YY α − 2αᵀK_YY' α' + α'ᵀK_Y'Y' α' with explicit inverses, both sides in full."""
    ridge = len(x) * LAMBDA * np.eye(len(x))
    first = np.linalg.inv(inputs(x, x) + ridge) @ inputs(x, x)
    second = np.linalg.inv(inputs(x, x) + ridge) @ inputs(x, x)
    own = np.einsum("ij,ij->j", first, outputs(y, y) @ first)
    both = np.einsum("ij,ij->j", first, outputs(y, drawn) @ second)
    other = np.einsum("ij,ij->j", second, outputs(drawn, drawn) @ second)
    return np.asarray(own - 2.0 * both + other)


def shared(x: Array, y: Array, drawn: Array, inputs: Gram, outputs: Gram) -> Array:
    """The same with one Cholesky factor and one matrix of differences."""
    gram = inputs(x, x)
    system = cho_factor(gram + len(x) * LAMBDA * np.eye(len(x)), lower=True)
    weights = cho_solve(system, gram)
    cross = outputs(y, drawn)
    inner = outputs(y, y) - cross - cross.T + outputs(drawn, drawn)
    return np.asarray(np.einsum("ij,ij->j", weights, inner @ weights))


def problem(rows: int, options: argparse.Namespace) -> tuple[Array, Array, Array]:
    """Inputs, outcomes and one draw a row from a model that is somewhat wrong."""
    rng = np.random.default_rng(0)
    if options.wide:
        mix = rng.standard_normal((32, WIDTH))
        x = np.empty((rows, WIDTH), dtype=options.dtype)
        for part in tiles(rows, 10_000):  # so that a million rows need no more than themselves
            some = rng.standard_normal((part.stop - part.start, 32)) @ mix
            some += 2.0 * rng.standard_normal(some.shape)
            x[part] = normalize_rows(some)
        signal = 10.0 * x[:, :1].astype(np.float64)
    else:
        x = rng.uniform(0.0, 2.0 * np.pi, (rows, options.columns))
        signal = np.cos(x[:, :1])
    y = signal + 0.5 * rng.standard_normal((rows, 1))
    return x, y, signal + 0.7 * rng.standard_normal((rows, 1))


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Seconds that a piece of work takes, and its answer."""
    start = time.perf_counter()
    answer = work()
    return time.perf_counter() - start, answer


def placed(x: Array, options: argparse.Namespace) -> Any:
    """Inputs as the array of the library, on the device, that will work with them."""
    if options.backend == "numpy":
        return x
    import torch

    kind = getattr(torch, options.dtype)
    moved = torch.from_numpy(x).to(device=options.device, dtype=kind)
    if moved.is_cuda:
        torch.cuda.synchronize()
    return moved


def compare(rows: int, options: argparse.Namespace) -> str:
    """Time one size, and say how it went."""
    x, y, drawn = problem(rows, options)
    grid = placed(problem(options.grid, options)[0], options) if options.grid else None
    solver = SolverOptions(
        method=options.method,
        dtype=options.dtype,
        landmarks=options.landmarks,
        memory=1e9 * options.memory,
    )
    choices = {"kernel": "polynomial"} if options.wide else {"bandwidth": options.gamma}
    inputs = placed(x, options)
    seconds, result = timed(lambda: cce(inputs, y, Draws(drawn), grid, solver=solver, **choices))
    line = f"{rows:8d} {seconds:8.2f} "
    if options.no_reference or grid is not None:
        line += f"{'':>10} {'':>6} {'':>7} {'':>6} {'':>8}"
    else:
        x = x.astype(np.float64, copy=False)
        kernel = cubic if options.wide else rbf(options.gamma)
        outputs = rbf(1.0 / (2.0 * float(y.var(ddof=1))))
        slow, truth = timed(lambda: two_sample(x, y, drawn, kernel, outputs))
        dense, _ = timed(lambda: shared(x, y, drawn, kernel, outputs))
        gap = float(np.abs(np.square(result.values) - truth).max())
        line += f"{slow:10.2f} {slow / seconds:6.1f} {dense:7.2f} {dense / seconds:6.1f} {gap:8.1e}"
    how = result.diagnostics
    error = how.typical_error if how.landmarks else how.squared_error
    return f"{line}  {how.solver}, {how.rank}, {how.landmarks}, {how.iterations}, {error:.1e}"


def main() -> None:
    """Print one line for each number of rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 3000])
    parser.add_argument("--columns", type=int, default=1, help="columns of x, Gaussian kernel")
    parser.add_argument("--gamma", type=float, default=1.0, help="of the Gaussian input kernel")
    parser.add_argument("--wide", action="store_true", help="512 columns, cubic polynomial kernel")
    parser.add_argument("--dtype", choices=["float64", "float32"], default="float64")
    parser.add_argument(
        "--method", choices=["auto", "iterative", "dense", "nystrom"], default="auto"
    )
    parser.add_argument("--landmarks", type=int, default=1000)
    parser.add_argument("--grid", type=int, default=0, help="new points to score (0: the rows)")
    parser.add_argument("--memory", type=float, default=2.0, help="GB for one kernel matrix")
    parser.add_argument("--backend", choices=["numpy", "torch"], default="numpy")
    parser.add_argument("--device", default="cpu", help="of torch: cpu, cuda, cuda:1")
    parser.add_argument("--no-reference", action="store_true")
    options = parser.parse_args()
    print(
        f"{'rows':>8} {'seconds':>8} {'two-sample':>10} {'ratio':>6} {'shared':>7} {'ratio':>6} "
        f"{'gap²':>8}  solver, rank, landmarks, products, error"
    )
    warm = problem(300, options)  # loads libraries, starts threads and the device
    for method in ("iterative", "nystrom"):
        solver = SolverOptions(method=method, dtype=options.dtype)
        cce(placed(warm[0], options), warm[1], Draws(warm[2]), solver=solver)
    for rows in options.rows:
        print(compare(rows, options), flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"peak memory {peak:.2f} GB")
    if options.device != "cpu":
        import torch

        print(f"peak memory of the device {torch.cuda.max_memory_allocated() / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
