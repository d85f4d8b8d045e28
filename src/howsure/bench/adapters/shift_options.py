"""Options of a plan of the shift benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, Literal, final, get_args

from howsure.bench.plan import Plan
from howsure.core.arrays import check_fraction
from howsure.core.errors import InputError
from howsure.core.registry import unknown
from howsure.methods.deep.modules import Recipe, backbone_named
from howsure.methods.interface import checked_coverages
from howsure.methods.selective import SHARE
from howsure.protocols.shift_result import Rule

_RECIPE: Final = tuple(item.name for item in fields(Recipe))
_SPECTRAL: Final = 3.0
"""The bound on convolutions in the benchmark's variation."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a plan, with their defaults; those of `Recipe` stand among them in a plan.

    Attributes
    ----------
    coverages : tuple of float
        Nominal coverages.
    rule : {"paper", "conformal"}
        Which order statistic calibrates.
    share : float
        Share of validation rows that scores accept, nearly.
    networks, members, runs : int
        Networks trained of each kind, those in an ensemble, and runs of a method; see
        `howsure.protocols.shift_methods.paper_runs`.
    backbone : str or mapping
        For images; see `backbone_named`.
    table_backbone : str or mapping
        For tables.
    absent : {"error", "skip"}
        What becomes of worlds whose data are not on this machine: an error, or they are left out
        with a warning, as long as one is left.
    recipe : Recipe
        How networks are trained.
    """

    coverages: tuple[float, ...] = (0.9,)
    rule: Rule = "paper"
    share: float = SHARE
    networks: int = 5
    members: int = 5
    runs: int = 5
    backbone: Any = "resnet34"
    table_backbone: Any = "mlp"
    absent: Literal["error", "skip"] = "error"
    recipe: Recipe = field(default_factory=Recipe)

    @classmethod
    def of(cls, plan: Plan) -> Options:
        """Check those of a plan.

        Raises
        ------
        InputError
            If an option is not known or breaks its rule.
        """
        own = tuple(item.name for item in fields(cls) if item.name != "recipe")
        for key in plan.options:
            if key not in (*own, *_RECIPE):
                raise InputError(unknown(key, (*own, *_RECIPE), "option of protocol 'shift'"))
        given = {key: plan.options[key] for key in plan.options if key in own}
        coverages = given.pop("coverages", (0.9,))
        if not isinstance(coverages, list | tuple):
            raise InputError(f"coverages must be a list of numbers, got {coverages!r}")
        recipe = Recipe(**{key: plan.options[key] for key in plan.options if key in _RECIPE})
        found = cls(coverages=checked_coverages(tuple(coverages)), recipe=recipe, **given)
        for name in ("networks", "members", "runs"):
            value = getattr(found, name)
            if type(value) is not int or value < 1:
                raise InputError(f"{name} must be a whole number of at least 1, got {value!r}")
        if found.rule not in get_args(Rule):
            raise InputError(f"rule must be 'paper' or 'conformal', got {found.rule!r}")
        if found.absent not in ("error", "skip"):
            raise InputError(f"absent must be 'error' or 'skip', got {found.absent!r}")
        check_fraction(found.share, "share")
        return found

    def training(self, *, images: bool, spectral: bool) -> dict[str, Any]:
        """What decides how a network is trained, as plain values."""
        backbone = backbone_named(self.backbone if images else self.table_backbone)
        if backbone.spec is None:
            raise InputError(f"backbone of a plan must be a name or a table, got {backbone.name}")
        spec = dict(backbone.spec)
        if spectral and images:
            spec["spectral"] = _SPECTRAL
        return {"backbone": spec, "recipe": recipe_identity(self.recipe)}


def recipe_identity(recipe: Recipe) -> dict[str, Any]:
    """What of a recipe decides a network; the device it is trained on is not part of it.

    Examples
    --------
    >>> "device" in recipe_identity(Recipe())
    False
    """
    return {key: value for key, value in asdict(recipe).items() if key != "device"}


def made_recipe(identity: Mapping[str, Any]) -> Recipe:
    """The recipe of an identity."""
    return Recipe(**identity)
