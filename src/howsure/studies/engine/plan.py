"""A plan: a frozen grid of worlds, methods and seeds of one study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, final

from howsure.core.convert import check_fields, from_options
from howsure.core.errors import InputError

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be run: every method on every world under every seed.

    Parameters
    ----------
    name : str
        What it is called.
    protocol : str
        Which experiment; see `howsure.studies.engine.studys`.
    worlds : mapping of str to mapping or str
        By label: where data come from. Text is the name of a world.
    methods : mapping of str to mapping or str
        By label: what is tested. Text is the name of a method.
    seeds : tuple of int
        Distinct, each at least 0.
    options : mapping
        The study's own.
    description : str
        What it is for.
    folder : Path
        Where paths of data files start.

    Raises
    ------
    InputError
        If there is no world, method or seed, or one is not as it should be. Names and options
        are looked at when trials are made.

    Examples
    --------
    >>> plan = Plan(
    ...     name="lines", study="pointwise", worlds={"line": "linear"}, methods={"t": "linear_t"}
    ... )
    >>> plan.worlds["line"]
    {'world': 'linear'}
    """

    name: str
    study: str
    worlds: Mapping[str, Any]
    methods: Mapping[str, Any]
    seeds: tuple[int, ...] = (0,)
    options: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""
    folder: Path = Path()

    def __post_init__(self) -> None:
        object.__setattr__(self, "worlds", _entries(self.worlds, "world"))
        object.__setattr__(self, "methods", _entries(self.methods, "method"))
        object.__setattr__(self, "seeds", _seeds(self.seeds))
        check_fields(self, " of a plan")

    def read(self, kind: type[T]) -> T:
        """The study's options, as the dataclass that declares them."""
        return from_options(kind, self.options, f"option of study {self.study!r}")


def _entries(given: Any, kind: str) -> dict[str, dict[str, Any]]:
    """Worlds or methods by label, each a table; text stands for the name alone."""
    if not isinstance(given, Mapping) or not given:
        raise InputError(f"a plan must have at least one {kind}, got {given!r}")
    found: dict[str, dict[str, Any]] = {}
    for label, entry in given.items():
        if isinstance(entry, str):
            found[label] = {kind: entry}
        elif isinstance(entry, Mapping):
            found[label] = dict(entry)
        else:
            raise InputError(f"{kind} {label!r} of a plan must be a name or a table, got {entry!r}")
    return found


def _seeds(given: Any) -> tuple[int, ...]:
    seeds = tuple(given) if isinstance(given, list | tuple) else (given,)
    whole = [seed for seed in seeds if type(seed) is int and seed >= 0]
    if not seeds or len(whole) < len(seeds) or len(set(seeds)) < len(seeds):
        raise InputError(
            f"seeds of a plan must be distinct whole numbers of at least 0, got {given!r}"
        )
    return seeds
