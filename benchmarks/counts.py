"""Time laws of counts against tables of 2,000 columns, in the same run.

    python benchmarks/counts.py
    python benchmarks/counts.py --law conway_maxwell_poisson --rows 200000

Each row has its own law: μ in [0.1, 1000], and a second parameter in [0.2, 5], both uniform or
both uniform in their logarithms. The reference normalises every row over the counts 0, …, 1999,
as published code does; it is run on some of the rows, and its time is scaled to all. Errors are
those of the cdf on the same rows, beside that table, which is exact there. In the end, the counts
of negative binomial laws with means of 0.5 to 8 are listed with their probabilities.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, xlogy

from howsure.predictions.counts import DoublePoisson, NegativeBinomial
from howsure_studies.congruence.worlds import ConwayMaxwellPoisson

T = TypeVar("T")
Array = npt.NDArray[np.float64]

COLUMNS = np.arange(2000.0)
LAWS = {"double_poisson": DoublePoisson, "conway_maxwell_poisson": ConwayMaxwellPoisson}


def log_weights(law: str, mu: Array, second: Array) -> Array:
    """Log probabilities of 0, …, 1999 but for a constant in each row, shape (n, 2000)."""
    k, mean, power = COLUMNS, mu[:, None], second[:, None]
    if law == "conway_maxwell_poisson":
        return np.asarray(power * (k * np.log(mean) - gammaln(k + 1.0)))
    own = -k + xlogy(k, k) - gammaln(k + 1.0)
    return np.asarray(own + power * (k + k * np.log(mean) - xlogy(k, k)))


def tabulated(law: str, mu: Array, second: Array) -> Array:
    """The cdf of each row by a table of all columns."""
    weights = log_weights(law, mu, second)
    shares = np.exp(weights - weights.max(axis=1, keepdims=True))
    below = np.cumsum(shares, axis=1)
    return np.asarray(below / below[:, -1:])


def reference(law: str, mu: Array, second: Array, y: Array, levels: Array) -> Array:
    """Cdf, quantiles and draws, each from its own table; the cdf is returned."""
    rows = np.arange(len(mu))
    found = tabulated(law, mu, second)[rows, y.astype(np.int64)]
    draws = np.random.default_rng(1).random(len(mu))
    for wanted in (levels, draws):
        (tabulated(law, mu, second) < wanted[:, None]).sum(axis=1)
    return np.asarray(found)


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Seconds that a piece of work takes, and its answer."""
    start = time.perf_counter()
    answer = work()
    return time.perf_counter() - start, answer


def problem(rows: int, spread: str) -> tuple[Array, Array, Array, Array]:
    """Means, second parameters, counts and levels."""
    rng = np.random.default_rng(0)
    if spread == "log":
        mu = 10.0 ** rng.uniform(-1.0, 3.0, rows)
        second = 5.0 ** rng.uniform(-1.0, 1.0, rows)
    else:
        mu, second = rng.uniform(0.1, 1000.0, rows), rng.uniform(0.2, 5.0, rows)
    y = np.minimum(np.floor(mu * rng.uniform(0.5, 1.5, rows)), COLUMNS[-1])
    return mu, second, y, rng.uniform(1e-12, 1.0, rows)


def compare(law: str, options: argparse.Namespace, spread: str) -> str:
    """Time one law, and say how it went."""
    mu, second, y, levels = problem(options.rows, spread)
    rng = np.random.default_rng(2)
    cdf, below = timed(lambda: LAWS[law](mu, second).cdf(y))
    quantile, _ = timed(lambda: LAWS[law](mu, second).quantile(levels))
    sample, _ = timed(lambda: LAWS[law](mu, second).sample(rng, 1))
    total = cdf + quantile + sample
    some = slice(0, min(options.sample, options.rows))
    parts = mu[some], second[some], y[some], levels[some]
    slow, truth = timed(lambda: reference(law, *parts))
    slow *= options.rows / len(truth)
    error = float(np.abs(below[some] - truth).max())
    return (
        f"{law:24} {spread:8} {cdf:6.2f} {quantile:9.2f} {sample:7.2f} {total:7.2f} "
        f"{slow:10.1f} {slow / total:6.1f} {error:8.1e}"
    )


def main() -> None:
    """Print one line for each law and spread of parameters."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--law", choices=[*LAWS, "all"], default="all")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--sample", type=int, default=2_000, help="rows of the reference")
    options = parser.parse_args()
    print(
        f"{'law':24} {'spread':8} {'cdf':>6} {'quantile':>9} {'sample':>7} {'sum':>7} "
        f"{'reference':>10} {'ratio':>6} {'error':>8}"
    )
    for law in [*LAWS] if options.law == "all" else [options.law]:
        for spread in ("uniform", "log"):
            print(compare(law, options, spread), flush=True)
    mu = np.random.default_rng(3).uniform(0.5, 8.0, options.rows // 10)
    negative = NegativeBinomial(mu, np.full(len(mu), 0.3))
    seconds, (values, _) = timed(negative.support)
    print(f"support of {len(mu)} negative binomial rows, {values.shape[1]} counts: {seconds:.2f} s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"peak memory {peak:.2f} GB")


if __name__ == "__main__":
    main()
