"""Kernels on rows of numbers, and Gram matrices made quickly.

A kernel says how alike two rows are. Every kernel here returns the matrix of all pairs of two
sets of rows, in the number type that came (32 or 64 bits) and where they live: NumPy arrays, or
PyTorch tensors on any device.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import is_tensor
from howsure.core.classes import frozen
from howsure.core.errors import DegenerateError, InputError, UnanswerableError
from howsure.core.progress import reported
from howsure.core.rng import child
from howsure.stats.namespace import Array, as_rows, like, namespace, on_host, row_parts

_MAX_WIDTH_OF_DIFFERENCES = (
    6  # up to this width distances are sums of squared differences, free of cancellation
)
_MAX_SQUARES = {
    4: 2.0**8,
    8: 2.0**15,
}  # squared lengths, by bytes a number, that may cancel above it
# Rows whose kernel matrix is checked to be positive definite: its eigenvalues take 10 ms.
_ROWS_CHECKED = 256


class Kernel(ABC):
    """A symmetric similarity of two rows.

    Every kernel has `gram`, `diagonal` and `describe`; `certain` says whether theory guarantees
    that it is positive definite for rows of a given width.
    """

    @abstractmethod
    def gram(self, a: Array, b: Array) -> Array:
        """Kernel of every row of ``a`` with every row of ``b``."""

    def diagonal(self, a: Array) -> Array:
        """Kernel of every row with itself, shape (n,)."""
        ones: Array = namespace(a).ones((len(a),), dtype=a.dtype, device=a.device)
        return ones

    def certain(self, width: int) -> bool:
        """Whether the kernel is known to be positive definite on rows of this width."""
        return True

    @abstractmethod
    def describe(self) -> str:
        """Name and constants, as text for a record."""


@frozen
class RBF(Kernel):
    """Gaussian kernel exp(−γ‖a−b‖²).

    Parameters
    ----------
    gamma : float
        γ, positive, in the inverse square of the units of the rows.

    Examples
    --------
    >>> RBF(0.5).gram(np.array([[0.0]]), np.array([[0.0], [1.0]]))
    array([[1. , 0.60653066]])
    """

    gamma: float

    def __post_init__(self) -> None:
        _check_positive(self.gamma, "gamma")

    def gram(self, a: Array, b: Array) -> Array:
        scale = math.sqrt(self.gamma)
        by_product = (
            self._by_product(a, b, scale) if a.shape[1] > _MAX_WIDTH_OF_DIFFERENCES else None
        )
        return _exponential(a, b, scale, power=2) if by_product is None else by_product

    def describe(self) -> str:
        return f"rbf(gamma={self.gamma:.6g})"

    @staticmethod
    def _by_product(a: Array, b: Array, scale: float) -> Array | None:
        """By one matrix product; None where rows lie so far out that digits would cancel."""
        xp = namespace(a)
        centre = xp.mean(b, axis=0)
        left, right = scale * (a - centre), scale * (b - centre)
        squares = [-xp.vecdot(rows, rows)[:, None] for rows in (left, right)]
        if min(float(square.min()) for square in squares) < -_MAX_SQUARES[a.dtype.itemsize]:
            return None
        out = _empty_gram(a, b)
        ones = [xp.ones_like(square) for square in squares]
        lifted = xp.concat([2.0 * left, squares[0], ones[0]], axis=1)
        other = xp.concat([right, ones[1], squares[1]], axis=1)
        xp.matmul(lifted, other.T, out=out)  # −‖a−b‖² for every pair
        in_blocks(out, lambda rows: exp_capped(out[rows]))
        return out


@frozen
class Laplacian(Kernel):
    """Laplacian kernel exp(−γ‖a−b‖₁), with the sum of absolute differences.

    Parameters
    ----------
    gamma : float
        γ, positive, in the inverse of the units of the rows.
    squared : bool
        Whether the distance is squared, exp(−γ‖a−b‖₁²), as one public implementation of the
        conditional congruence error has it. That is the Gaussian kernel for one column, and for
        more it is not positive definite in general.

    Examples
    --------
    >>> Laplacian(1.0).gram(np.array([[0.0, 0.0]]), np.array([[0.5, -0.5]]))
    array([[0.36787944]])
    """

    gamma: float
    squared: bool = False

    def __post_init__(self) -> None:
        _check_positive(self.gamma, "gamma")

    def gram(self, a: Array, b: Array) -> Array:
        scale = math.sqrt(self.gamma) if self.squared else float(self.gamma)
        return _exponential(a, b, scale, power=1, squared=self.squared)

    def certain(self, width: int) -> bool:
        return not self.squared or width == 1

    def describe(self) -> str:
        name = "laplacian-squared" if self.squared else "laplacian"
        return f"{name}(gamma={self.gamma:.6g})"


@frozen
class Polynomial(Kernel):
    """Polynomial kernel (γ⟨a,b⟩ + c)^q.

    Parameters
    ----------
    degree : int
        q, one or more.
    gamma : float
        γ, positive. One by default; common libraries divide by the number of columns instead.
    offset : float
        c, zero or more.

    Examples
    --------
    >>> Polynomial(degree=3).gram(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    array([[8., 1.]])
    """

    degree: int = 3
    gamma: float = 1.0
    offset: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.degree, bool) or int(self.degree) != self.degree or self.degree < 1:
            raise InputError(f"degree must be a whole number of at least 1, got {self.degree!r}")
        _check_positive(self.gamma, "gamma")
        if not 0.0 <= self.offset < np.inf:
            raise InputError(f"offset must be a number of at least 0, got {self.offset!r}")

    def gram(self, a: Array, b: Array) -> Array:
        out = _empty_gram(a, b)
        namespace(a).matmul(a, b.T, out=out)

        def fill(rows: slice) -> None:
            block = out[rows]
            if self.gamma != 1.0:
                block *= float(self.gamma)
            block += float(self.offset)
            raise_to(block, int(self.degree))

        in_blocks(out, fill)
        return out

    def diagonal(self, a: Array) -> Array:
        with np.errstate(over="ignore"):  # an infinite kernel is refused where rows come in
            base: Array = float(self.gamma) * namespace(a).vecdot(a, a) + float(self.offset)
            raise_to(base, int(self.degree))
        return base

    def describe(self) -> str:
        return f"polynomial(degree={self.degree}, gamma={self.gamma:.6g}, offset={self.offset:.6g})"


@frozen
class CustomKernel(Kernel):
    """A kernel given as a function of two sets of rows.

    Nothing is known of it, so wherever it is used a sample is checked for symmetry, finite
    values and positive definiteness.

    Parameters
    ----------
    function : callable
        Takes arrays of shape (n, d) and (m, d), returns shape (n, m). Inputs that came as tensors
        come as tensors, outputs as arrays.
    name : str
        What to call it in records.

    Examples
    --------
    >>> linear = CustomKernel(lambda a, b: a @ b.T, "linear")
    >>> linear.gram(np.array([[2.0]]), np.array([[3.0]]))
    array([[6.]])
    """

    function: Callable[[Array, Array], npt.ArrayLike]
    name: str = "custom"

    def gram(self, a: Array, b: Array) -> Array:
        xp = namespace(a)
        out = like(self.function(a, b), a)
        if tuple(out.shape) != (len(a), len(b)):
            raise InputError(
                f"kernel {self.name!r} must return shape {(len(a), len(b))}, got {tuple(out.shape)}"
            )
        if not bool(xp.all(xp.isfinite(out))):
            raise InputError(f"kernel {self.name!r} must return finite numbers, got others")
        return out

    def diagonal(self, a: Array) -> Array:
        blocks = [a[rows] for rows in tiles(len(a), 32)]
        diagonal: Array = namespace(a).concat(
            [self.gram(block, block).reshape(-1)[:: len(block) + 1] for block in blocks]
        )
        return diagonal

    def certain(self, width: int) -> bool:
        return False

    def describe(self) -> str:
        return self.name


def check_positive_definite(kernel: Kernel, rows: Array, name: str = "kernel") -> None:
    """Look at a sample of rows for proof that a kernel is not positive definite.

    Kernels for which theory answers are not looked at. A pass is no proof; a failure is.
    """
    if kernel.certain(rows.shape[1]):
        return
    take = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _ROWS_CHECKED)).astype(np.int64))
    sample = rows[take]
    gram = on_host(kernel.gram(sample, sample)).astype(np.float64)
    precision = math.sqrt(namespace(rows).finfo(rows.dtype).eps)
    slack = precision * max(float(np.abs(gram).max()), 1e-300)
    if np.abs(gram - gram.T).max() > slack:
        raise InputError(f"{name} must be symmetric, got {kernel.describe()}, which is not")
    values = np.linalg.eigvalsh((gram + gram.T) / 2)
    if values[0] < -slack * len(take):
        raise InputError(
            f"{name} must be positive definite, got {kernel.describe()} with smallest eigenvalue "
            f"{values[0]:.3g} beside largest {max(values[-1], 0.0):.3g} on {len(take)} rows"
        )


def check_range(kernel: Kernel, rows: Array, name: str = "x") -> None:
    """Refuse rows so large that a kernel would leave the range of their number type."""
    if isinstance(kernel, CustomKernel):
        return
    xp = namespace(rows)
    largest = max(float(xp.max(xp.abs(block))) for block in row_parts(rows))
    kind = str(rows.dtype).rpartition(".")[2]
    try:
        with np.errstate(over="raise", invalid="raise"):
            corner = np.full((1, rows.shape[1]), 4.0) * np.float64(largest)
            corner = corner.astype(kind)
            kernel.gram(corner, np.concatenate([corner, -corner]))
    except FloatingPointError as error:
        raise InputError(
            f"{name} must be numbers for which {kernel.describe()} stays in the range of {kind}, "
            f"got {largest:.3g}"
        ) from error


def _check_positive(value: float, name: str) -> None:
    if not (isinstance(value, (int, float, np.number)) and 0.0 < value < np.inf):
        raise InputError(f"{name} must be a positive number, got {value!r}")


def _empty_gram(a: Array, b: Array) -> Array:
    out: Array = namespace(a).empty((len(a), len(b)), dtype=a.dtype, device=a.device)
    return out


def _exponential(a: Array, b: Array, scale: float, *, power: int, squared: bool = False) -> Array:
    """exp(−d), d the sum over columns of scaled differences to a power, or its square."""
    out = _empty_gram(a, b)
    left, right = scale * a, [scale * b[:, column] for column in range(b.shape[1])]

    def fill(rows: slice) -> None:
        block = out[rows]
        add_distances(left[rows], right, block, power)
        if squared:
            block *= block
        exp_minus(block)

    in_blocks(out, fill)
    return out


# Rows whose pairs give the median distance: 1.1 million pairs are 9 MB, and leave a sampling error
# of the median far below what a bandwidth must be known to.
_ROWS_FOR_DISTANCES = 1500


def _rows_for_bandwidth(rows: npt.ArrayLike, name: str) -> Array:
    array = as_rows(rows, name, dtype=None)
    if len(array) < 2:
        raise DegenerateError(f"{name} must have at least 2 rows for a bandwidth, got {len(array)}")
    return array


def total_variance(rows: npt.ArrayLike, name: str = "x") -> float:
    """Sum over columns of the sample variance (divisor n−1)."""
    array = _rows_for_bandwidth(rows, name)
    xp = namespace(array)
    centre = sum(xp.sum(block, axis=0, dtype=xp.float64) for block in row_parts(array)) / len(array)
    squares = sum(float(xp.sum((block - centre) ** 2)) for block in row_parts(array))
    variance = squares / (len(array) - 1)
    equal = all(bool(xp.all(block == array[:1])) for block in row_parts(array))
    if not variance > 0.0 or equal:
        raise DegenerateError(
            f"{name} must vary for its variance to set a bandwidth, got {len(array)} equal rows; "
            "give the bandwidth as a number"
        )
    return variance


def median_distance(rows: npt.ArrayLike, name: str = "x", *, absolute: bool = False) -> float:
    """Median distance of two different rows."""
    array = _rows_for_bandwidth(rows, name)
    if len(array) > _ROWS_FOR_DISTANCES:
        rng = child(0, "median distance")
        array = array[np.sort(rng.choice(len(array), _ROWS_FOR_DISTANCES, replace=False))]
    from scipy.spatial.distance import pdist

    distances = pdist(on_host(array), "cityblock" if absolute else "euclidean")
    median = float(np.median(distances))
    if median == 0.0:
        raise DegenerateError(
            f"{name} must have mostly different rows for the median distance to set a bandwidth, "
            "got equal ones; give the bandwidth as a number"
        )
    return median


def normalize_rows(rows: npt.ArrayLike, name: str = "x") -> Array:
    """Divide every row by its Euclidean length."""
    array = as_rows(rows, name, dtype=None)
    xp = namespace(array)
    empty = on_host(xp.concat([xp.all(block == 0.0, axis=1) for block in row_parts(array)]))
    if empty.any():
        raise DegenerateError(
            f"{name} must have no row of zeros to be normalised, got "
            f"{int(empty.sum())} (first at row {int(np.argmax(empty))})"
        )
    unit: Array = xp.empty_like(array)
    for block, out in zip(row_parts(array), row_parts(unit), strict=True):
        scaled = (
            block / xp.max(xp.abs(block), axis=1)[:, None]
        )  # squares neither overflow nor vanish
        out[...] = scaled / xp.sqrt(xp.vecdot(scaled, scaled))[:, None]
    return unit


# ---- elementwise steps on whole Gram matrices, in place and near the cache -----------------------
# The one place where NumPy arrays and tensors part ways: NumPy works on one small block after
# another, on every core; PyTorch spreads each step over its device by itself.

_ELEMENTS_AT_ONCE = (
    1 << 15
)  # elements worked on at once: a quarter of a megabyte stays in the cache


def in_blocks(out: Array, work: Callable[[slice], object]) -> None:
    """Run `work` over slices of rows of `out`; it must only use elementwise steps.

    Matrix products stay outside: their library keeps its own threads, and the two would fight.
    """
    if is_tensor(out):
        work(slice(0, len(out)))
        return
    rows = max(1, _ELEMENTS_AT_ONCE // max(1, out.shape[1]))
    blocks = tiles(len(out), rows)
    workers = min(os.cpu_count() or 1, 16)

    def run(share: list[slice]) -> None:
        for block in share:
            work(block)

    if workers == 1 or len(blocks) < 8:
        run(blocks)
        return
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(run, [blocks[start::workers] for start in range(workers)]))


def add_distances(left: Array, right: list[Array], out: Array, power: int) -> None:
    """Sums of absolute or squared differences of rows of `left` and rows of columns `right`."""
    xp = namespace(out)
    step = xp.empty_like(out) if len(right) > 1 else out
    for column, values in enumerate(right):
        block = step if column else out
        xp.subtract(left[:, column : column + 1], values, out=block)
        if power == 1:
            xp.abs(block, out=block)
        else:
            xp.multiply(block, block, out=block)
        if column:
            out += block


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


# ---- products with Gram matrices that need not fit in memory -------------------------------------
# A Gram matrix of n rows is kept whole while it is small enough and is otherwise made again,
# tile by tile, in every product.

# 15,800 rows of 64 bits. It leaves most of an 8 GB machine free; not tuned. Larger, more rows are
# solved from a matrix that is held, which is faster.
MEMORY = 2e9
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
            product: Array = self.matrix() @ vectors
            return product
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
