"""Methods of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from howsure.core.errors import InputError
from howsure.methods.catalogue import method_named, method_spec
from howsure.methods.interface import Method
from howsure.methods.regressors import as_method

_NO_OPTIONS: Final = ("method", "revision", "n_train")


def make_method(
    label: str, entry: Mapping[str, Any], coverages: tuple[float, ...] | None
) -> Method:
    """The method of a plan's entry.

    Parameters
    ----------
    label : str
        What the plan calls it, for messages.
    entry : mapping
        ``method`` (a name, as `method_named` has them) and the method's options. Some keys are no
        options: ``revision`` only enters the trial's address, so that a change of the method's
        own code can be told; ``n_train`` is the study's. Where a method has an option
        ``method``, it is called ``inner`` here.
    coverages : tuple of float or None
        For methods that fix them when they are made, where the entry names none; None for their
        own.

    Returns
    -------
    Method

    Raises
    ------
    InputError
        If there is no such method or option.

    Examples
    --------
    >>> make_method("t", {"method": "linear_t", "revision": 2}, (0.9,)).name
    'linear t'
    """
    options = {key: value for key, value in entry.items() if key not in _NO_OPTIONS}
    name = entry.get("method")
    if not isinstance(name, str):
        raise InputError(f"method {label!r} of a plan must name its method, got {dict(entry)!r}")
    if "name" in options:
        raise InputError(f"method {label!r} of a plan has no option 'name'")
    if "inner" in options:
        options["method"] = options.pop("inner")
    made = method_named(name, **options)
    asks = made.fixed_coverages is not None and hasattr(made, "coverages")
    if asks and coverages is not None and "coverages" not in options:
        made = method_named(name, **options, coverages=list(coverages))
    return as_method(made, coverages)


def method_identity(method: Method, entry: Mapping[str, Any]) -> dict[str, Any]:
    """What decides a method: all its options where it can tell them, else the plan's words.

    Examples
    --------
    >>> method_identity(make_method("t", {"method": "linear_t"}, (0.9,)), {"method": "linear_t"})
    {'method': 'linear_t', 'options': {'intercept': True}}
    """
    kept = {key: entry[key] for key in ("method", "revision") if key in entry}
    try:
        return {**kept, "options": method_spec(method)["options"]}
    except InputError:
        return {key: value for key, value in entry.items() if key != "n_train"}
