"""From things to plain values, from which `howsure.methods.options` makes them again."""

from __future__ import annotations

import dataclasses
import inspect
import math
from typing import Any

from howsure.core import convert
from howsure.core.errors import InputError
from howsure.methods.options import attribute


def plain(value: Any, name: str) -> Any:
    """A thing as values that JSON knows, from which `thing` makes it again.

    Parameters
    ----------
    value : object
        A number, text, list or mapping; a dataclass or an estimator of scikit-learn, which
        becomes a mapping of ``name`` and all its options; or an importable function or class.
    name : str
        What it is, for the message.

    Returns
    -------
    object

    Raises
    ------
    InputError
        If it cannot be written down, as a function made on the spot cannot.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> plain(LinearRegression(positive=True), "regressor")["positive"]
    True
    """
    return convert.plain(value, _number, lambda thing: _told(thing, name))


def _number(value: float) -> Any:
    return value if math.isfinite(value) else {"number": str(value)}


def _told(thing: Any, name: str) -> dict[str, Any]:
    if inspect.isclass(thing) or inspect.isroutine(thing):
        return {"name": path_of(thing, name)}
    return {"name": path_of(type(thing), name), **options_of(thing, name)}


def options_of(value: Any, name: str) -> dict[str, Any]:
    """All options of a dataclass, an estimator or a plain class, as values that JSON knows.

    A plain class must keep every argument of its ``__init__`` as the attribute of that name, and
    nothing else before it is fitted.

    Raises
    ------
    InputError
        If it is none of them, or an option cannot be written down.

    Examples
    --------
    >>> from howsure.methods.linear import LinearT
    >>> options_of(LinearT(), "method")
    {'intercept': True}
    """
    if dataclasses.is_dataclass(value):
        held = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
    elif hasattr(value, "get_params"):
        held = value.get_params(deep=False)
    else:
        held = dict(getattr(value, "__dict__", {"": None}))
        wanted = inspect.signature(type(value)).parameters
        if set(held) != set(wanted):
            raise InputError(
                f"{name} must be a dataclass, have get_params, or keep what its __init__ takes and "
                f"no more, to be written down; got {value!r}"
            )
        held = {key: held[key] for key in wanted}
    return {key: plain(item, f"{name}: {key}") for key, item in held.items()}


def path_of(value: Any, name: str) -> str:
    """``module:attribute`` of a class or function.

    Raises
    ------
    InputError
        If it cannot be imported by that path.

    Examples
    --------
    >>> path_of(math.sqrt, "ratio")
    'math:sqrt'
    """
    module = getattr(value, "__module__", None)
    path = getattr(value, "__qualname__", "")
    target = f"{module}:{path}"
    importable = module is not None and "<" not in path
    if not importable or attribute(target, name) is not value:
        raise InputError(f"{name} must be importable to be written down, got {value!r}")
    return target
