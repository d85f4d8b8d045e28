"""Families of laws by their names."""

from __future__ import annotations

from typing import Any

from howsure.predictions.counts.family import COUNT_FAMILIES, CountFamily
from howsure.predictions.laws import Law, NormalLaw, ScipyLaw, StudentLaw
from howsure.predictions.mixtures import MixtureLaw


def law_named(name: str) -> Law:
    """The family of this name.

    Parameters
    ----------
    name : str
        ``poisson``, ``negative_binomial`` or ``double_poisson`` (see `CountFamily`), or a name
        of ``scipy.stats``, such as ``norm``, ``t`` or ``nbinom``. Several
        with plus signs between them are a mixture: ``norm+norm`` (see `MixtureLaw`).

    Returns
    -------
    Law

    Raises
    ------
    InputError
        If there is no such family.

    Examples
    --------
    >>> law_named("norm").parameters
    ('loc', 'scale')
    >>> law_named("nbinom").parameters
    ('n', 'p', 'loc')
    >>> law_named("negative_binomial").parameters
    ('mu', 'dispersion')
    """
    if "+" in name:
        return MixtureLaw([law_named(family) for family in name.split("+")])
    if name in ("norm", "normal", "gaussian"):
        return NormalLaw()
    if name == "t":
        return StudentLaw()
    return CountFamily(name) if name in COUNT_FAMILIES else ScipyLaw(name)


def law_of_scipy(family: Any) -> Law:
    """The family that answers for a distribution object of ``scipy.stats``.

    Examples
    --------
    >>> from scipy import stats
    >>> type(law_of_scipy(stats.norm)).__name__, type(law_of_scipy(stats.gamma)).__name__
    ('NormalLaw', 'ScipyLaw')
    """
    if family.name == "norm":
        return NormalLaw()
    if family.name == "t":
        return StudentLaw()
    return CountFamily("poisson") if family.name == "poisson" else ScipyLaw(family)
