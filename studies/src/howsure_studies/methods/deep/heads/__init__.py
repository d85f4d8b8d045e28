"""Heads: what a network's outputs mean, as a loss and as a law.

A head says how many outputs it needs, what each row of data costs given them, and what is
believed of y given them. A new head is one more class of the same shape; it works with any
network that makes its outputs, alone or by the thousand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final, cast

from howsure_studies.methods.deep.heads.base import Head, Start
from howsure_studies.methods.deep.heads.counts import (
    CountHead,
    DoublePoissonHead,
    NegativeBinomialHead,
    PoissonHead,
)
from howsure_studies.methods.deep.heads.normal import (
    BetaGaussian,
    FaithfulGaussian,
    Gaussian,
    NaturalGaussian,
    NormalMixture,
    SquaredError,
    StudentTHead,
)
from howsure_studies.methods.deep.heads.quantiles import PairHead, QuantileHead
from howsure_studies.methods.options import named

__all__ = [
    "HEADS",
    "BetaGaussian",
    "CountHead",
    "DoublePoissonHead",
    "FaithfulGaussian",
    "Gaussian",
    "Head",
    "NaturalGaussian",
    "NegativeBinomialHead",
    "NormalMixture",
    "PairHead",
    "PoissonHead",
    "QuantileHead",
    "SquaredError",
    "Start",
    "StudentTHead",
    "head_named",
    "head_spec",
]

HEADS: Final[Mapping[str, type[Head]]] = {
    "poisson": PoissonHead,
    "negative_binomial": NegativeBinomialHead,
    "double_poisson": DoublePoissonHead,
    "gaussian": Gaussian,
    "beta_gaussian": BetaGaussian,
    "natural_gaussian": NaturalGaussian,
    "faithful_gaussian": FaithfulGaussian,
    "quantile": QuantileHead,
    "student_t": StudentTHead,
    "mixture": NormalMixture,
}
"""Heads of distributions and of many quantiles, by name."""

_OTHERS: Final[Mapping[str, type[Head]]] = {"squared_error": SquaredError, "pair": PairHead}


def head_named(head: str | Mapping[str, Any] | Head) -> Head:
    """The head of this name, or of this mapping of ``name`` and options; a head passes through.

    Names are those of `HEADS`, ``squared_error`` (a mean alone) and ``pair`` (two quantiles).

    Raises
    ------
    InputError
        If the name or an option is unknown, or an option breaks its rule.

    Examples
    --------
    >>> head_named({"name": "beta_gaussian", "beta": 0.3})
    BetaGaussian(beta=0.3)
    """
    if isinstance(head, Head):
        return head
    made: Head = named(head, {**HEADS, **_OTHERS}, "head")
    return made


def head_spec(head: Head) -> dict[str, Any] | None:
    """Name and options of a head, from which `head_named` makes it again; None if it has no name.

    Examples
    --------
    >>> head_spec(head_named("student_t"))
    {'name': 'student_t'}
    """
    known = {**HEADS, **_OTHERS}
    names = [name for name, kind in known.items() if kind is type(head)]
    return {"name": names[0], **asdict(cast(Any, head))} if names else None
