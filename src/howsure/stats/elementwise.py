"""Elementwise steps on whole Gram matrices, in place and near the cache.

The one place where NumPy arrays and tensors part ways: NumPy works on one small block after
another, on every core; PyTorch spreads each step over its device by itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from howsure.core.arrays import is_tensor
from howsure.stats.namespace import Array, namespace

_BLOCK = 1 << 15  # elements worked on at once: a quarter of a megabyte stays in the cache


def in_blocks(out: Array, work: Callable[[slice], object]) -> None:
    """Run `work` over slices of rows of `out`; it must only use elementwise steps.

    Matrix products stay outside: their library keeps its own threads, and the two would fight.
    """
    if is_tensor(out):
        work(slice(0, len(out)))
        return
    rows = max(1, _BLOCK // max(1, out.shape[1]))
    blocks = [slice(start, start + rows) for start in range(0, len(out), rows)]
    workers = min(os.cpu_count() or 1, 16)
    if workers == 1 or len(blocks) < 8:
        for block in blocks:
            work(block)
        return

    def run(share: list[slice]) -> None:
        for block in share:
            work(block)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(run, [blocks[start::workers] for start in range(workers)]))


def squared_distances(left: Array, right: list[Array], out: Array) -> None:
    """Squared distances of rows of `left` to the rows with columns `right`, written to `out`."""
    xp = namespace(out)
    xp.subtract(left[:, :1], right[0], out=out)
    xp.multiply(out, out, out=out)
    step = xp.empty_like(out) if len(right) > 1 else out
    for column in range(1, len(right)):
        xp.subtract(left[:, column : column + 1], right[column], out=step)
        xp.multiply(step, step, out=step)
        out += step


def absolute_distances(left: Array, right: list[Array], out: Array) -> None:
    """Sums of absolute differences, as `squared_distances`."""
    xp = namespace(out)
    xp.subtract(left[:, :1], right[0], out=out)
    xp.abs(out, out=out)
    step = xp.empty_like(out) if len(right) > 1 else out
    for column in range(1, len(right)):
        xp.subtract(left[:, column : column + 1], right[column], out=step)
        xp.abs(step, out=step)
        out += step


def exp_minus(block: Array) -> None:
    """exp(−·), in place."""
    xp = namespace(block)
    xp.negative(block, out=block)
    xp.exp(block, out=block)


def exp_capped(block: Array) -> None:
    """exp(min(·, 0)), in place: rounding may lift minus a distance of zero above zero."""
    xp = namespace(block)
    xp.clip(block, None, 0.0, out=block)
    xp.exp(block, out=block)


def raise_to(block: Array, power: int) -> None:
    """Whole powers of one or more, in place, by repeated products: faster than a power."""
    base = namespace(block).asarray(block, copy=True)
    for _ in range(power - 1):
        block *= base
