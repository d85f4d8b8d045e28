"""Options of a plan of the shift benchmark."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal, final

from howsure.core.convert import Checked, Count, Fraction, plain
from howsure.core.errors import InputError
from howsure.methods.deep.modules import Recipe, backbone_named
from howsure.methods.interface import Coverages
from howsure.methods.selective import SHARE
from howsure.studies.shift.result import Rule

_SPECTRAL: Final = 3.0
"""The bound on convolutions in the benchmark's variation."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Checked):
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
        `howsure.studies.shift.methods.paper_runs`.
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

    coverages: Coverages = (0.9,)
    rule: Rule = "paper"
    share: Fraction = SHARE
    networks: Count = 5
    members: Count = 5
    runs: Count = 5
    backbone: Any = "resnet34"
    table_backbone: Any = "mlp"
    absent: Literal["error", "skip"] = "error"
    recipe: Recipe = field(default_factory=Recipe)

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
    return {key: value for key, value in plain(recipe).items() if key != "device"}
