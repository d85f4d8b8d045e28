"""Products with Gram matrices that need not fit in memory.

A Gram matrix of n rows is kept whole while it is small enough and is otherwise made again,
tile by tile, in every product.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from howsure.core.errors import UnanswerableError
from howsure.core.progress import reported
from howsure.stats.kernels import Kernel
from howsure.stats.namespace import Array, namespace

MEMORY: Final = 2e9
"""Bytes that one kernel matrix may take, unless another number is given."""

_TILE = 1024  # rows and columns of a tile: 8 MB in 64 bits, within reach of a cache
_DEVICE_TILE = 8192  # the same on an accelerator, which many small steps would leave idle


class GramOperator:
    """The symmetric matrix K of a kernel on one set of rows, for products K V.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    rows : ndarray or tensor of float, shape (n, d)
        The rows, in the number type and on the device to work in.
    memory : float
        Bytes that K may take; above, it is never held whole.

    Examples
    --------
    >>> import numpy as np
    >>> from howsure.stats.kernels import RBF
    >>> operator = GramOperator(RBF(0.5), np.array([[0.0], [1.0]]))
    >>> operator.product(np.array([[1.0], [0.0]]))[:, 0]
    array([1. , 0.60653066])
    """

    __slots__ = ("_kernel", "_matrix", "fits", "rows")

    def __init__(
        self,
        kernel: Kernel,
        rows: Array,
        *,
        memory: float = MEMORY,
    ) -> None:
        self._kernel = kernel
        self._matrix: Array | None = None
        self.rows = rows
        self.fits = len(rows) ** 2 * rows.dtype.itemsize <= memory

    def matrix(self) -> Array:
        """K itself, shape (n, n), made once."""
        if not self.fits:
            size = len(self.rows) ** 2 * self.rows.dtype.itemsize / 1e9
            raise UnanswerableError(
                f"the Gram matrix of {len(self.rows)} rows takes {size:.1f} GB, more than allowed"
            )
        if self._matrix is None:
            matrix: Array = namespace(self.rows).empty(
                (len(self.rows), len(self.rows)), dtype=self.rows.dtype, device=self.rows.device
            )
            for left, right in self._tiles("kernel matrix"):
                tile = self._kernel.gram(self.rows[left], self.rows[right])
                matrix[left, right] = tile
                if left != right:
                    matrix[right, left] = tile.T
            self._matrix = matrix
        return self._matrix

    def product(self, vectors: Array) -> Array:
        """K V, shape (n, r)."""
        if self.fits:
            whole: Array = self.matrix() @ vectors
            return whole
        out: Array = namespace(vectors).zeros_like(vectors)
        for left, right in self._tiles("kernel product"):
            tile = self._kernel.gram(self.rows[left], self.rows[right])
            out[left] += tile @ vectors[right]
            if left != right:  # the mirror image comes free
                out[right] += tile.T @ vectors[left]
        return out

    def _tiles(self, stage: str) -> Iterator[tuple[slice, slice]]:
        parts = tiles(len(self.rows), tile_size(self.rows))
        pairs = [(parts[i], parts[j]) for i in range(len(parts)) for j in range(i, len(parts))]
        return reported(pairs, stage)


def cross_product(
    kernel: Kernel,
    left: Array,
    right: Array,
    vectors: Array,
) -> Array:
    """Product of the Gram matrix of two sets of rows with vectors, by tiles."""
    out: Array = namespace(vectors).zeros(
        (len(left), vectors.shape[1]), dtype=vectors.dtype, device=vectors.device
    )
    size = tile_size(left)
    pairs = [(a, b) for a in tiles(len(left), size) for b in tiles(len(right), size)]
    for a, b in reported(pairs, "kernel at new rows"):
        out[a] += kernel.gram(left[a], right[b]) @ vectors[b]
    return out


def tiles(rows: int, size: int = _TILE) -> list[slice]:
    """Slices of at most `size` that cover a number of rows."""
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def tile_size(rows: Array) -> int:
    """Rows of a tile on the device where some rows live."""
    return _TILE if str(rows.device) == "cpu" else _DEVICE_TILE
