"""Tests of a mean difference over rows in time: ours beside those of the literature.

Run ``python -m benchmarks.paired``. With ``--write`` the table replaces what ``docs/verdict.md``
has between its markers. A difference of scores of two models is a series; where its mean is 0 a
test at 5 % should reject 5 % of the series, and where it is 2.8 true standard errors, 80 %.

* Diebold and Mariano: as if differences were independent.
* Newey and West: Bartlett's weights over 1.3 √n lags, with fixed-b critical values (E. Lazarus,
  D. J. Lewis, J. H. Stock and M. W. Watson, 2018; N. M. Kiefer and T. J. Vogelsang, 2005).
* Cosine estimator: the first .4 n^⅔ ordinates, Student's t (the former).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import numpy as np
from benchmarks.intervals import write
from scipy import fft, signal, stats

from howsure.core.times import Chronology
from howsure.stats.estimate import spread_of

MARKS = ("<!-- paired: made by benchmarks/paired.py -->", "<!-- end of paired -->")
AWAY = 2.8  # true standard errors, for a power of 80 %
BURN = 2_000


def ours(off: np.ndarray) -> bool:
    """One memory: short, long and seasonal shapes."""
    mean = float(off.mean())
    return spread_of(off - mean, None, Chronology(np.arange(len(off)))).p(mean) < 0.05


def plain(off: np.ndarray) -> bool:
    """Diebold and Mariano's, of forecasts one step ahead."""
    return abs(off.mean()) > 1.96 * off.std(ddof=1) / math.sqrt(len(off))


def newey_west(off: np.ndarray) -> bool:
    """With critical values for a band that is a share b of all rows."""
    n, x = len(off), off - off.mean()
    lags = math.ceil(1.3 * math.sqrt(n))
    weights = 1 - np.arange(1, lags + 1) / (lags + 1)
    products = [x[lag:] @ x[:-lag] for lag in range(1, lags + 1)]
    variance = (x @ x + 2 * weights @ products) / n
    b = (lags + 1) / n
    limit = 1.96 + 2.9694 * b + 0.416 * b**2 - 0.5324 * b**3
    return abs(off.mean()) > limit * math.sqrt(max(variance, 1e-300) / n)


def cosine(off: np.ndarray) -> bool:
    """Of equal weights over the lowest ordinates."""
    n = len(off)
    count = int(0.4 * n ** (2 / 3))
    power = fft.dct(off - off.mean(), type=2, norm="ortho")[1 : count + 1]
    error = math.sqrt(power @ power / count / n)
    return abs(off.mean()) > stats.t.ppf(0.975, count) * error


TESTS = {"howsure": ours, "Newey and West": newey_west, "cosine": cosine, "Diebold–Mariano": plain}


def filtered(*past: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    """An autoregression."""
    return lambda rng, n: signal.lfilter([1.0], [1.0, *past], rng.normal(size=n + BURN))[BURN:]


def squared(rng: np.random.Generator, n: int) -> np.ndarray:
    """Differences of squared errors, heavy in both tails."""
    return np.square(rng.normal(size=n)) - np.square(rng.normal(size=n))


def day(short: float, season: float) -> tuple[float, ...]:
    """What errors of hours take of the hour and the day before."""
    both = np.convolve([1.0, -short], np.r_[1.0, np.zeros(23), -season])
    return tuple(both[1:])


SERIES = {
    "independent": filtered(),
    "squared errors": squared,
    "AR(.5)": filtered(-0.5),
    "AR(.8)": filtered(-0.8),
    "hours with a day, φ .4 and .5": filtered(*day(0.4, 0.5)),
}


def error_of_mean(draw: Callable[[np.random.Generator, int], np.ndarray], n: int) -> float:
    """The sd of the mean of n rows, from 4,000 series."""
    return float(np.std([draw(np.random.default_rng((7, k)), n).mean() for k in range(4_000)]))


def row(name: str, n: int, tables: int) -> str:
    """Size and power of each test on the same series, in %."""
    draw = SERIES[name]
    away = AWAY * error_of_mean(draw, n)
    found = np.zeros((len(TESTS), 2))
    for seed in range(tables):
        off = draw(np.random.default_rng(seed), n)
        found += [[test(off), test(off + away)] for test in TESTS.values()]
    shares = [f"{size:.1f} / {power:.0f}" for size, power in 100 * found / tables]
    return f"| {name} | {n:,} | {' | '.join(shares)} |"


def main() -> None:
    """Draw, count, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1_000)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    lines = [
        "## Tests of a mean difference over time",
        "",
        f"Rejections at 5 %, in % of {chosen.tables:,} series: for a mean difference of 0, and "
        f"of {AWAY} true standard errors, where a perfect test has 80 %.",
        "",
        f"| differences | n | {' | '.join(TESTS)} |",
        f"|:--|--:|{'--:|' * len(TESTS)}",
    ]
    for name in SERIES:
        for n in (300, 2_000):
            lines.append(row(name, n, chosen.tables))
            print(lines[-1], flush=True)
    if chosen.write:
        write("\n".join([*lines, ""]), MARKS)


if __name__ == "__main__":
    main()
