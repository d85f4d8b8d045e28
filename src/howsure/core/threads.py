"""One thread for linear algebra, so that numbers do not depend on how many there are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_LIMITED: ContextVar[bool] = ContextVar("limited", default=False)


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep BLAS and OpenMP to one thread of this process meanwhile; also a decorator."""
    if _LIMITED.get():
        yield
        return
    import scipy.linalg  # noqa: F401 (its BLAS is not NumPy's)
    from threadpoolctl import threadpool_limits

    token = _LIMITED.set(True)
    try:
        with threadpool_limits(1):
            yield
    finally:
        _LIMITED.reset(token)
