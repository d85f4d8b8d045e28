"""A plan: a frozen grid of worlds, methods and seeds of one study, and how it is read from TOML.

Plans that come with howsure lie beside their studies and are known by name, others by their file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeVar, final

from howsure.core.classes import frozen
from howsure.core.convert import check_fields, from_options
from howsure.core.errors import InputError
from howsure.core.files import parse_toml, read_toml
from howsure.core.registry import Registry, check_known, unknown

T = TypeVar("T")

_TABLES: Final = ("plan", "options", "worlds", "methods")
_PLAN: Final = ("name", "study", "description", "seeds")
_PROFILE: Final = "small"
"""The profile that a name stands for which is no plan's own."""

studies: Final = Registry(
    "study",
    "howsure.studies",
    {
        "pointwise": "howsure_studies.pointwise.study:PointwiseStudy",
        "splits": "howsure_studies.pointwise.repeated:SplitsStudy",
        "adaptivity": "howsure_studies.adaptivity.study:AdaptivityStudy",
        "shift": "howsure_studies.shift.study:ShiftStudy",
        "congruence": "howsure_studies.congruence.study:CongruenceStudy",
        "characteristic": "howsure_studies.characteristic.study:CharacteristicStudy",
        "which": "howsure_studies.which.study:WhichStudy",
    },
)
"""Studies by name; they load when they are asked for."""


@final
@frozen(kw_only=True)
class Plan:
    """What is to be run: every method on every world under every seed.

    Parameters
    ----------
    name : str
        What it is called.
    protocol : str
        Which experiment; see `howsure_studies.engine.study`.
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

    def on_worlds(self, names: Sequence[str]) -> Plan:
        """The plan on some of its worlds; on all where none is named."""
        for name in names:
            check_known(name, self.worlds, "--world")
        return replace(self, worlds={k: self.worlds[k] for k in names}) if names else self


def plan_names() -> tuple[str, ...]:
    """Names of the plans that lie beside the studies.

    Examples
    --------
    >>> "smoke" in plan_names()
    True
    """
    return tuple(sorted(_plans()))


def plan_file(name: str) -> Path:
    """The file of a plan that lies beside a study."""
    return _plans()[name]


def load_plan(name: str, changes: Sequence[str] = (), *, profile: str | None = None) -> Plan:
    """A plan by its name or its file.

    Parameters
    ----------
    name : str
        One of `plan_names`, or the path of a TOML file. The name before the underscore of plans
        that come in several profiles, as ``shift``, stands for the profile ``small``.
    changes : sequence of str
        Changes, each ``key=value``: ``simulations=20`` sets an option of the study,
        ``seeds=[0, 1]`` the seeds, ``methods.bootstrap.members=10`` an option of the method
        labelled so, and likewise ``worlds``. Values are TOML; what is not is text.
    profile : str, optional
        Which profile: ``load_plan("shift", profile="paper")`` is ``load_plan("shift_paper")``.

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        If there is no such plan (the message names the near ones), the file is not TOML, or it
        holds a key that no plan has.

    Examples
    --------
    >>> load_plan("smoke", ["simulations=2"]).options["simulations"]
    2
    >>> load_plan("smok")
    Traceback (most recent call last):
    ...
    howsure.core.errors.InputError: plan must be one of adaptivity_cells, ... or a .toml file,
    got 'smok'; near: smoke
    """
    path = Path(name)
    if profile is not None or (name not in plan_names() and path.suffix != ".toml"):
        name = _profiled(name, profile)
    if path.suffix == ".toml":
        tables, folder = read_toml(path, f"plan {name!r}"), path.parent
    elif name in plan_names():
        tables, folder = read_toml(_plans()[name], f"plan {name!r}"), Path()
    else:
        message = unknown(name, plan_names(), "plan")
        raise InputError(message.replace(", got", " or a .toml file, got", 1))
    for change in changes:
        _change(tables, change)
    return _plan(tables, path.stem, folder)


def plan_folders() -> tuple[Path, ...]:
    """Folders of plans beside the studies; no study is imported for them."""
    plans: list[Path] = []
    for module in studies.modules():
        try:
            spec = find_spec(module.rpartition(".")[0] or module)
        except ImportError:
            continue
        folders = (spec.submodule_search_locations if spec else None) or ()
        plans += [Path(folder, "plans") for folder in folders]
    return tuple(dict.fromkeys(plans))


def _plans() -> dict[str, Path]:
    """The plans that lie beside a study, by name; one of howsure's keeps its name."""
    by_name: dict[str, Path] = {}
    for file in (file for folder in plan_folders() for file in folder.glob("*.toml")):
        by_name.setdefault(file.stem, file)
    return by_name


def _profiled(name: str, profile: str | None) -> str:
    """The plan of a profile; a name without profiles is left as it is."""
    known = [plan.removeprefix(f"{name}_") for plan in plan_names() if plan.startswith(f"{name}_")]
    if profile is None:
        return f"{name}_{_PROFILE}" if _PROFILE in known else name
    if profile not in known:
        if not known:
            raise InputError(f"profile must be left out: plan {name!r} has none, got {profile!r}")
        raise InputError(unknown(profile, known, f"profile of plan {name!r}"))
    return f"{name}_{profile}"


def _plan(tables: Mapping[str, Any], stem: str, folder: Path) -> Plan:
    _check_keys(tables, _TABLES, "table of a plan")
    head = tables.get("plan", {})
    if not isinstance(head, Mapping):
        raise InputError(f"plan must be a table, got {head!r}")
    if "protocol" in head:
        raise InputError("[plan] must name its study as study; protocol is the former name")
    _check_keys(head, _PLAN, "key of [plan]")
    if "study" not in head:
        raise InputError("[plan] must name its study, got none")
    return Plan(
        **{"name": stem, **head},
        worlds=tables.get("worlds", {}),
        methods=tables.get("methods", {}),
        options=tables.get("options", {}),
        folder=folder,
    )


def _check_keys(table: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    for key in table:
        check_known(key, known, what)


def _change(tables: dict[str, Any], change: str) -> None:
    """Set one value of the tables of a plan."""
    key, sign, text = change.partition("=")
    path = key.strip().split(".")
    if not sign or not all(path):
        raise InputError(f"a change must be key=value, got {change!r}")
    if len(path) == 1 and path[0] not in _TABLES:
        path.insert(0, "plan" if path[0] in _PLAN else "options")
    if path[0] not in _TABLES:
        raise InputError(unknown(path[0], _TABLES, "table of a plan"))
    if len(path) != (3 if path[0] in ("worlds", "methods") else 2):
        raise InputError(
            "a change must name one value, such as simulations or methods.LABEL.OPTION, got "
            f"{key!r}"
        )
    table = tables.setdefault(path[0], {})
    if len(path) == 3:
        if path[1] not in table:
            raise InputError(unknown(path[1], table, f"label in [{path[0]}]"))
        if isinstance(table[path[1]], str):
            table[path[1]] = {path[0].removesuffix("s"): table[path[1]]}
        table = table[path[1]]
    table[path[-1]] = toml_value(text.strip())


def toml_value(text: str) -> Any:
    """A value of TOML; what is none is text."""
    try:
        return parse_toml(f"value = {text}", "value")["value"]
    except InputError:
        return text


def _entries(given: Any, kind: str) -> dict[str, dict[str, Any]]:
    """Worlds or methods by label, each a table; text stands for the name alone."""
    if not isinstance(given, Mapping) or not given:
        raise InputError(f"a plan must have at least one {kind}, got {given!r}")
    entries: dict[str, dict[str, Any]] = {}
    for label, entry in given.items():
        if isinstance(entry, str):
            entries[label] = {kind: entry}
        elif isinstance(entry, Mapping):
            entries[label] = dict(entry)
        else:
            raise InputError(f"{kind} {label!r} of a plan must be a name or a table, got {entry!r}")
    return entries


def _seeds(given: Any) -> tuple[int, ...]:
    seeds = tuple(given) if isinstance(given, list | tuple) else (given,)
    whole = [seed for seed in seeds if type(seed) is int and seed >= 0]
    if not seeds or len(whole) < len(seeds) or len(set(seeds)) < len(seeds):
        raise InputError(
            f"seeds of a plan must be distinct whole numbers of at least 0, got {given!r}"
        )
    return seeds
