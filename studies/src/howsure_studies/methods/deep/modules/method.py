"""Networks of torch modules, alone or as an ensemble, as a method."""

from __future__ import annotations

from dataclasses import field
from typing import Any, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.classes import frozen
from howsure.core.convert import Count, check_fields
from howsure.core.rng import child
from howsure_studies.methods.deep.heads import head_named
from howsure_studies.methods.deep.method import Combine, check_combine, combined
from howsure_studies.methods.deep.modules.backbones import backbone_named
from howsure_studies.methods.deep.modules.inputs import Scaling
from howsure_studies.methods.deep.modules.network import ModuleNetwork
from howsure_studies.methods.deep.modules.training import train_module
from howsure_studies.methods.deep.training import check_sound, recipe_named
from howsure_studies.methods.interface import Fitted, Method, Predictions, held_out


@final
@frozen(kw_only=True)
class ImageNetwork(Method):
    """Networks for images with a head of any kind; several make a mixture of their laws.

    Parameters
    ----------
    head : str, mapping or Head
        What outputs mean: see `howsure_studies.methods.deep.heads.head_named`.
    backbone : str, mapping or callable
        What turns images into features: see `backbone_named`.
    recipe : str, mapping or ModuleTraining
        How to train: see `recipe_named`.
    members : int
        Networks that differ by their first weights and order of rows, at least 1.
    validation : int or float, optional
        Rows, or the share of rows, held out to choose the epoch that is kept.
    scaling : {"imagenet", "none"}
        What is done to images: see `howsure_studies.methods.deep.modules.inputs.network_input`.
    combine : {"mixture", "moments"}
        How members predict together: see `howsure_studies.methods.deep.combined`.

    Raises
    ------
    InputError
        If an option breaks its rule, or the best epoch is wanted and no rows are held out.

    Notes
    -----
    Inputs need not be images: a module of one's own takes what it likes.

    Examples
    --------
    >>> ImageNetwork(head="gaussian", members=5).name
    'Gaussian deep ensemble, small (16-32-64-64)'
    """

    head: Any = "gaussian"
    backbone: Any = "small"
    recipe: Any = "shift"
    members: Count = 1
    validation: float | None = None
    scaling: Scaling = "imagenet"
    combine: Combine = field(default="mixture", metadata={"later": True})

    def __post_init__(self) -> None:
        made = backbone_named(self.backbone)
        plain = made.spec if made.spec is not None else self.backbone
        object.__setattr__(self, "head", head_named(self.head))
        object.__setattr__(self, "backbone", plain)
        object.__setattr__(self, "recipe", recipe_named(self.recipe))
        check_fields(self)
        self.recipe.check_held(self.validation, "validation is None")
        check_combine(self.combine, self.head)

    @property
    def name(self) -> str:
        kind = "network" if self.members == 1 else "deep ensemble"
        return f"{self.head.title} {kind}, {backbone_named(self.backbone).name}"

    @property
    def fixed_coverages(self) -> tuple[float, ...] | None:
        """The coverages that the levels of a head of quantiles bound; None for other heads."""
        fixed: tuple[float, ...] | None = self.head.fixed_coverages
        return fixed

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> ImageFit:
        """Train the networks, one after the other."""
        seed = int(rng.integers(2**63 - 1))
        images, targets, validation = np.asarray(x), np.asarray(y), None
        if self.validation is not None and images.ndim and len(images) == targets.size:
            chosen = held_out(rng, len(images), self.validation, "validation")
            validation = images[chosen], targets[chosen]
            images, targets = images[~chosen], targets[~chosen]
        networks = tuple(
            train_module(
                images,
                targets,
                head=self.head,
                backbone=self.backbone,
                recipe=self.recipe,
                rng=child(seed, "member", member),
                held=validation,
                scaling=self.scaling,
            )
            for member in range(self.members)
        )
        return ImageFit(networks, self.combine)


@final
@frozen(eq=False)
class ImageFit(Fitted):
    """Trained networks with one head.

    Attributes
    ----------
    networks : tuple of ModuleNetwork
        Each with whether it failed.
    combine : {"mixture", "moments"}
        How they predict together.

    Examples
    --------
    >>> ImageFit(()).combine
    'mixture'
    """

    networks: tuple[ModuleNetwork, ...]
    combine: Combine = "mixture"

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """What is predicted at rows of the shape in training; an error if a network failed."""
        check_sound(self.networks)
        parts = [network.prediction(x) for network in self.networks]
        return combined(parts, self.combine)

    def features(self, x: npt.ArrayLike) -> FloatArray:
        """What the backbones give, those of several networks side by side, shape (n, M·d)."""
        check_sound(self.networks)
        return np.concatenate([network.features(x) for network in self.networks], axis=1)
