"""Options of a plan of the congruence studies; a world may set its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from itertools import pairwise
from typing import Any, Final, Literal, final, get_args

from howsure.bench.plan import Plan
from howsure.core.errors import InputError
from howsure.core.registry import unknown
from howsure.protocols.congruence_measure import CongruenceMeasure, check_whole
from howsure.protocols.congruence_perturbations import SEVERITIES, Kind
from howsure.protocols.congruence_tasks import COMPONENTS

STUDIES: Final = ("correctness", "rejection", "monotonicity", "diagnosis", "robustness")
EXACT: Final = "exact"
_MEASURE: Final = tuple(item.name for item in fields(CongruenceMeasure))
TRAINING: Final = (
    *("layers", "epochs", "batch_size", "learning_rate", "penalty", "weight_decay"),
    *("schedule", "keep", "initial", "warm", "standardise"),
)
"""Options of `HeadNetwork` that a plan sets for all heads."""

Embedded = Literal["task", "features"]
Bandwidth = Literal["each", "fixed"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options with their defaults; those of `CongruenceMeasure` and `TRAINING` stand among them.

    Attributes
    ----------
    studies : tuple of str
        Which of `STUDIES`. A diagnosis needs a world whose truth is known, and is left out
        elsewhere.
    methods : tuple of str, optional
        Labels of the methods that are meant; all if omitted. A world's own entry is the place.
    reference : {"test", "val"}
        The labelled rows S of correctness.
    truth : bool
        Whether the true law is judged as if it were a model, where it is known.
    embedding : {"task", "features"}
        Where inputs are alike: in the task's own embedding, or in each model's own features.
    components : int
        Principal components of images: of the embedding, and of what heads for tables take.
    kinds : tuple of str, optional
        Perturbations; by default as published, and blur of images alone.
    severities : mapping of str to list of float
        In place of the published.
    trials : int
        How often each perturbation is done.
    resample : bool
        Whether each takes a bootstrap sample of the test part.
    gamma_of_y : {"each", "fixed"}
        Whether γ of y is set anew for each perturbed part.
    orders : int
        Random orders behind p-values of rejection.
    outliers : tuple of int
        Rows spoilt, setting by setting.
    distance : float
        How far, in predicted standard deviations.
    narrowing : float
        What one law's standard deviation is multiplied by; 0 for no such setting.
    absent : {"error", "skip"}
        What becomes of worlds whose data are not on this machine.
    measure : CongruenceMeasure
        How CCE and ECE are measured.
    training : mapping
        Options of heads.
    network : mapping, optional
        Options of `ImageNetwork`, as ``backbone`` and ``recipe``. Where it is given, heads on
        worlds of images are networks for images, trained one by one; else they are networks for
        tables, on principal components.
    """

    studies: tuple[str, ...] = STUDIES
    methods: tuple[str, ...] | None = None
    reference: Literal["test", "val"] = "test"
    truth: bool = True
    embedding: Embedded = "task"
    components: int = COMPONENTS
    kinds: tuple[Kind, ...] | None = None
    severities: Mapping[Kind, Any] = field(default_factory=dict)
    trials: int = 5
    resample: bool = True
    gamma_of_y: Bandwidth = "each"
    orders: int = 999
    outliers: tuple[int, ...] = (1, 2, 5)
    distance: float = 10.0
    narrowing: float = 1e-3
    absent: Literal["error", "skip"] = "error"
    measure: CongruenceMeasure = field(default_factory=CongruenceMeasure)
    training: Mapping[str, Any] = field(default_factory=dict)
    network: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, plan: Plan, world: str | None = None) -> Options:
        """Check those of a plan, or of one of its worlds.

        Raises
        ------
        InputError
            If an option is not known or breaks its rule.
        """
        given = dict(plan.options)
        for key in given:
            if key not in NAMES:
                raise InputError(unknown(key, NAMES, "option of protocol 'congruence'"))
        if world is not None:
            entry = plan.worlds[world]
            given |= {key: entry[key] for key in entry if key in NAMES}
        own = {key: value for key, value in given.items() if key in _OWN}
        for key in ("studies", "methods", "kinds", "outliers"):
            if key in own:
                own[key] = _listed(own[key], key)
        measure = {key: value for key, value in given.items() if key in _MEASURE}
        if measure.get("draws") == EXACT:
            measure["draws"] = None
        found = cls(
            **own,
            measure=CongruenceMeasure(**measure),
            training={key: value for key, value in given.items() if key in TRAINING},
        )
        found._check(plan)
        return found

    def _check(self, plan: Plan) -> None:
        for name, chosen, known in (
            ("studies", self.studies, STUDIES),
            ("kinds", self.kinds or (), tuple(SEVERITIES)),
            ("severities", tuple(self.severities), tuple(SEVERITIES)),
            ("methods", self.methods or (), tuple(plan.methods)),
        ):
            for value in chosen:
                if value not in known:
                    raise InputError(unknown(str(value), known, name))
        if not self.studies or self.methods == ():
            raise InputError("studies and methods must name at least one, got none")
        for name, choices in (
            ("reference", ("test", "val")),
            ("truth", (True, False)),
            ("resample", (True, False)),
            ("embedding", get_args(Embedded)),
            ("gamma_of_y", get_args(Bandwidth)),
            ("absent", ("error", "skip")),
        ):
            if getattr(self, name) not in choices:
                raise InputError(
                    f"{name} must be one of {', '.join(map(str, choices))}, got "
                    f"{getattr(self, name)!r}"
                )
        for name in ("components", "trials", "orders"):
            check_whole(getattr(self, name), name, 1)
        for number in self.outliers:
            check_whole(number, "outliers", 1)
        self._check_numbers()

    def _check_numbers(self) -> None:
        for name, most in (("distance", math.inf), ("narrowing", 1.0)):
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0.0 <= value < most:
                raise InputError(f"{name} must be from 0 and below {most:g}, got {value!r}")
        for kind, levels in self.severities.items():
            numbers = [0.0, *_listed(levels, f"severities of {kind}")]
            if not all(first < second for first, second in pairwise(numbers)):
                raise InputError(f"severities must rise from above 0, got {levels!r} of {kind}")
        if self.network is not None and not isinstance(self.network, Mapping):
            raise InputError(f"network must be a table of options, got {self.network!r}")

    @classmethod
    def read(cls, identity: Mapping[str, Any]) -> Options:
        """The options of an identity, as far as a trial needs them.

        Examples
        --------
        >>> Options.read(Options(trials=3).identity()).trials
        3
        """
        own: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in identity.items()
            if name != "measure"
        }
        return cls(**own, measure=CongruenceMeasure(**identity["measure"]))

    def identity(self) -> dict[str, Any]:
        """What decides the results of a trial, as plain values; training is the methods' own."""
        told: dict[str, Any] = {
            "reference": self.reference,
            "embedding": self.embedding,
            "measure": asdict(self.measure),
            "studies": sorted(self.studies),
        }
        if "monotonicity" in self.studies:
            told |= {
                "kinds": None if self.kinds is None else list(self.kinds),
                "severities": {key: list(value) for key, value in self.severities.items()},
                **{name: getattr(self, name) for name in ("trials", "resample", "gamma_of_y")},
            }
        if "rejection" in self.studies:
            told["orders"] = self.orders
        if "robustness" in self.studies:
            told |= {
                "outliers": list(self.outliers),
                "distance": self.distance,
                "narrowing": self.narrowing,
            }
        return told


_OWN: Final = tuple(
    item.name for item in fields(Options) if item.name not in ("measure", "training")
)
NAMES: Final = (*_OWN, *_MEASURE, *TRAINING)
"""All options that a plan or a world may set."""


def _listed(value: Any, name: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise InputError(f"{name} must be a list, got {value!r}")
    return tuple(value)
