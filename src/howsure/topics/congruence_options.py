"""The options of the conditional congruence error."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final, Literal

from howsure.core.errors import InputError
from howsure.core.options import Described, described, option

MapLayout = Literal["inputs", "pca", "t-sne"]
# Columns above which inputs are taken for an embedding of images or texts, which are hundreds
# wide; tables of features are narrower. By hand; not tuned.
MIN_WIDTH_OF_EMBEDDING = 16
_choice = partial(option, panel="Conditional congruence")
_POSITIVE: Final = "howsure.topics.congruence_options:check_positive"


@described
class CongruenceOptions(Described):
    """The choices behind a conditional congruence error.

    Examples
    --------
    >>> CongruenceOptions(bandwidth=1.0, draws=1).regularization
    0.1
    """

    bandwidth: str | float | None = _choice(
        "γ of the kernel on inputs; derived from their variance if omitted.",
        flag="--gamma",
        kind=float,
        rule=_POSITIVE,
    )
    regularization: float = _choice(
        "λ of the kernel regression on the inputs.", rule=_POSITIVE, default=0.1
    )
    kernel: str = _choice(
        "Kernel on the inputs.",
        "``auto`` is ``polynomial`` for inputs of more than 16 columns and ``rbf`` otherwise, "
        "or the one that a named bandwidth belongs to.",
        kind=Literal["auto", "rbf", "laplacian", "polynomial"],
        default="auto",
    )
    draws: int | None = _choice(
        "Draws per row. If omitted, none are drawn where the distribution allows it.",
        "Otherwise 5 are.",
        least=1,
    )
    layout: MapLayout = _choice(
        "How inputs are mapped to two dimensions in the figure.",
        "``inputs`` are the two numeric ones along which errors differ most.",
        flag="--map",
        default="inputs",
    )

    def __post_init__(self) -> None:
        import numpy as np

        from howsure.topics.congruence.reference import choose_kernel

        Described.__post_init__(self)
        choose_kernel(self.kernel_for(1), self.bandwidth, np.array([[0.0], [1.0]]), "x")

    def kernel_for(self, width: int) -> str:
        """The kernel for inputs of so many columns."""
        if self.kernel != "auto":
            return self.kernel
        if isinstance(self.bandwidth, str):
            return "polynomial" if self.bandwidth == "inverse-width" else "rbf"
        return "polynomial" if width > MIN_WIDTH_OF_EMBEDDING else "rbf"


def check_positive(value: Any, name: str) -> Any:
    """A number above 0; or the name of a rule by which it is chosen."""
    if not (isinstance(value, str) or (math.isfinite(value) and value > 0)):
        raise InputError(f"{name} must be positive, got {value!r}")
    return value
