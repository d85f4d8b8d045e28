"""Things by name: those that come with howsure, and those that other packages bring.

Another package adds a thing by an entry point in its own metadata::

    [project.entry-points."howsure.methods"]
    my_method = "my_package.module:MyMethod"

Nothing is imported before it is asked for, so a broken package harms only who uses it.
"""

from __future__ import annotations

import difflib
import importlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any, final

from howsure.core.errors import HowsureError, InputError, error_line, message_of
from howsure.core.optional import way_to_install

_OURS = ("howsure", "howsure_studies", "sklearn")
"""Packages that run nobody's code when they are imported."""
_LOOKING: ContextVar[bool] = ContextVar("howsure_looking", default=False)


class PluginError(HowsureError):
    """A thing that another package announces cannot be loaded."""


class NotImportedError(HowsureError):
    """A module that is named is not imported yet, where looking may run nobody's code."""


@final
class Registry:
    """Things of one kind by name, loaded when they are asked for.

    Parameters
    ----------
    kind : str
        What one of them is called in messages, such as ``"method"``.
    group : str
        Name of the entry points by which other packages add to it, such as
        ``"howsure.methods"``.
    built_in : mapping of str to str
        What comes with howsure: a name, and ``"module:attribute"``. A built-in keeps its name
        whatever other packages announce.

    Examples
    --------
    >>> codecs = Registry("codec", "howsure.no_such_group", {"json": "json:dumps"})
    >>> codecs.names()
    ('json',)
    >>> codecs.get("json")([1])
    '[1]'
    >>> codecs.get("jsno")
    Traceback (most recent call last):
    ...
    howsure.core.errors.InputError: codec must be one of json, got 'jsno'; near: json
    """

    __slots__ = ("_built_in", "group", "kind")

    def __init__(self, kind: str, group: str, built_in: Mapping[str, str] | None = None) -> None:
        self.kind = kind
        self.group = group
        self._built_in = MappingProxyType(dict(built_in or {}))

    def names(self) -> tuple[str, ...]:
        """All names: the built-in ones in their order, then those of other packages."""
        brought = sorted({point.name for point in self._points()} - set(self._built_in))
        return (*self._built_in, *brought)

    def modules(self) -> tuple[str, ...]:
        """The modules that define them, none of which is loaded."""
        targets = [*self._built_in.values(), *(point.value for point in self._points())]
        return tuple(dict.fromkeys(target.partition(":")[0] for target in targets))

    def get(self, name: object) -> Any:
        """Load the thing of this name."""
        if isinstance(name, str) and name in self._built_in:
            return attribute_of(self._built_in[name])
        points = [point for point in self._points() if point.name == name]
        if not points:
            raise InputError(unknown(name, self.names(), self.kind))
        return self._loaded(points)

    def _points(self) -> tuple[EntryPoint, ...]:
        return tuple(entry_points(group=self.group))

    def _loaded(self, points: list[EntryPoint]) -> Any:
        """What an entry point names; whatever its package raises is told as one error."""
        first = points[0]
        if len({point.value for point in points}) > 1:
            owners = " and ".join(sorted(map(_owner, points)))
            raise PluginError(
                f"{self.kind} {first.name!r} is defined by {owners}: uninstall all but one"
            )
        try:
            return first.load()
        except (Exception, SystemExit) as error:
            raise PluginError(
                f"{self.kind} {first.name!r} from {_owner(first)} cannot be loaded "
                f"({first.value}): {error_line(error)}"
            ) from error


def nearest(name: str, choices: Iterable[str], most: int = 3, cutoff: float = 0.5) -> list[str]:
    """The known names that are near to a name, whatever their case and the marks between words.

    >>> nearest("medv", ["CRIM", "MEDV"]), nearest("y true", ["y_true"])
    (['MEDV'], ['y_true'])
    """
    plain: dict[str, list[str]] = {}
    for candidate in choices:
        plain.setdefault(_bare(candidate), []).append(candidate)
    matches = difflib.get_close_matches(_bare(name), plain, n=most, cutoff=cutoff)
    return [candidate for match in matches for candidate in plain[match]][:most]


def _bare(name: str) -> str:
    return re.sub(r"[\W_]+", "_", name.strip().casefold())


def unknown(name: object, choices: Iterable[str], argument: str) -> str:
    """The message for a name that is not known: what there is, and what is near."""
    names = list(choices)
    near = nearest(str(name), names)
    hint = f"; near: {', '.join(near)}" if near else ""
    return f"{argument} must be one of {', '.join(names)}, got {name!r}{hint}"


def check_known(name: object, choices: Iterable[str], argument: str) -> None:
    """Refuse a name that is not known; see `unknown`."""
    names = list(choices)
    if name not in names:
        raise InputError(unknown(name, names, argument))


@contextmanager
def importing_nothing() -> Iterator[None]:
    """Within, a module that is named and not imported yet raises `NotImportedError`."""
    token = _LOOKING.set(True)
    try:
        yield
    finally:
        _LOOKING.reset(token)


def imported(target: str, argument: str) -> Any:
    """What ``module:attribute`` names; an error says what is wrong with such a name.

    Modules of the current folder are found too, after all that are installed, so that no file
    there stands in for a library.
    """
    module, _, path = target.partition(":")
    if not module or not path:
        raise InputError(f"{argument} must have the form module:attribute, got {target!r}")
    if _LOOKING.get() and module not in sys.modules and module.partition(".")[0] not in _OURS:
        raise NotImportedError(f"{argument} {target!r} is not imported when only showing results")
    _search_here()
    try:
        target_object: Any = importlib.import_module(module)
        for attribute in path.split("."):
            if not hasattr(target_object, attribute):
                near = nearest(attribute, dir(target_object))
                hint = f"; near: {', '.join(near)}" if near else ""
                raise InputError(
                    f"{argument} must be in {module!r}, got {path!r}{hint}{_taken(module)}"
                )
            target_object = getattr(target_object, attribute)
    except HowsureError:
        raise
    except ImportError as error:
        raise InputError(
            f"{argument} {target!r} cannot be imported: {message_of(error)}"
            f"{way_to_install(error.name)}"
        ) from error
    except (Exception, SystemExit) as error:
        raise InputError(
            f"{argument} {target!r} cannot be imported: importing module {module!r} fails: "
            f"{error_line(error)}"
        ) from error
    return target_object


def _search_here() -> None:
    """Let modules of the current folder be found, last of all."""
    try:
        here = os.getcwd()
    except OSError:  # it was removed
        return
    if here not in sys.path:
        sys.path.append(here)


def _taken(module: str) -> str:
    """Words for a module of the current folder whose name belongs to another."""
    used = getattr(sys.modules.get(module), "__file__", None) or "built in"
    file = os.path.abspath(f"{module.replace('.', os.sep)}.py")
    if not os.path.exists(file) or (os.path.exists(used) and os.path.samefile(file, used)):
        return ""
    return f"; {module!r} is {used}: rename {file}"


def attribute_of(target: str) -> Any:
    """What ``module:attribute`` names."""
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _owner(point: EntryPoint) -> str:
    return f"package {point.dist.name}" if point.dist is not None else "an unnamed package"
