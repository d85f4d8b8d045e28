"""Training a network of torch modules, with any head."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_vector
from howsure.core.errors import InputError
from howsure.methods.deep.heads import Head, head_named
from howsure.methods.deep.members import Scale
from howsure.methods.deep.modules.backbones import Backbone, backbone_named
from howsure.methods.deep.modules.checkpoint import Checkpoint
from howsure.methods.deep.modules.inputs import Array, Inputs, Scaling, checked_inputs
from howsure.methods.deep.modules.loop import Loop
from howsure.methods.deep.modules.net import Net
from howsure.methods.deep.modules.network import ModuleNetwork
from howsure.methods.deep.modules.recipe import Recipe, recipe_named

Rows = tuple[npt.ArrayLike, npt.ArrayLike]

_SECONDS: Final = 60.0


def train_module(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    head: str | Mapping[str, Any] | Head,
    backbone: Any = "small",
    recipe: str | Mapping[str, Any] | Recipe = "shift",
    rng: np.random.Generator,
    held: Rows | None = None,
    scaling: Scaling = "imagenet",
    checkpoint: str | os.PathLike[str] | None = None,
    every: float = _SECONDS,
) -> ModuleNetwork:
    """Train one network on images, or on anything that a torch module takes.

    Parameters
    ----------
    x : array-like, shape (n, height, width, channels) or (n, …)
        Images, or rows of any other shape for a module of one's own; at least two rows.
    y : array-like of shape (n,)
        What happened.
    head : str, mapping or Head
        What outputs mean: see `howsure.methods.deep.heads.head_named`.
    backbone : str, mapping, Backbone or callable
        What turns inputs into features: see `backbone_named`.
    recipe : str, mapping or Recipe
        How to train: see `recipe_named`; ``shift``, the default, is `Recipe` as it comes.
    rng : numpy.random.Generator
        The only source of randomness: one number is drawn, from which all follows.
    held : tuple of array-like, shapes (h, …) and (h,), optional
        Rows to judge the network by after each epoch.
    scaling : {"imagenet", "none"}
        What is done to images, as `network_input` has it; other inputs are taken as they
        are.
    checkpoint : path, optional
        A file that training is saved in and, where it is there, resumed from: the network comes
        out as if training had never stopped. It is left there when training has ended.
    every : float
        Seconds between saves, at least; they happen between epochs.

    Returns
    -------
    ModuleNetwork
        If a loss stops being finite, training stops, and the network says where and is as it was
        after the epoch before.

    Raises
    ------
    InputError
        If inputs or targets break a rule, the backbone does not give features, the best epoch is
        wanted without rows held out, or the checkpoint is damaged or of another training.
    MissingDependencyError
        If torch is not installed.

    Notes
    -----
    On a processor, the same generator gives the same network bit for bit, for one number of
    threads; torch's own generators are left as they were. Threads are torch's own affair: for
    small networks, one (``OMP_NUM_THREADS=1``) and several processes are the fastest.

    Examples
    --------
    >>> import pytest
    >>> _ = pytest.importorskip("torch")
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 256, size=(40, 16, 16, 1), dtype=np.uint8)
    >>> network = train_module(
    ...     x, x.mean(axis=(1, 2, 3)), head="gaussian", recipe=Recipe.small(2), rng=rng
    ... )
    >>> network.belief(x[:3]).sd().shape, network.features(x[:3]).shape
    ((3,), (3, 64))
    """
    chosen = recipe_named(recipe)
    law, made = head_named(head), backbone_named(backbone)
    inputs, targets = _rows(x, y, "x", "y", law, scaling)
    if len(targets) < 2:
        raise InputError("x must have at least 2 rows, got 1")
    judged = None
    if held is not None:
        judged = _rows(held[0], held[1], "held", "held y", law, scaling, inputs.shape[1:])
    elif chosen.keep == "best":
        raise InputError("keep must be 'last' where no rows are held out, got 'best'")
    seed = int(rng.integers(2**63 - 1))
    scale = Scale.of(
        np.empty((len(targets), 0)),
        targets,
        targets=chosen.standardise and law.standardises,
    )
    if not scale.sound:
        raise InputError("y must be small enough for a finite mean and sd, got larger numbers")
    device = chosen.place()
    loop = _loop((inputs, targets), judged, law, made, chosen, scale, seed, device)
    saved = None
    if checkpoint is not None:
        stamp = Checkpoint.stamp(made, law, chosen, seed, (inputs, targets), judged)
        saved = Checkpoint(checkpoint, stamp, every)
    loop.run(saved)
    return ModuleNetwork(
        net=loop.net,
        head=law,
        backbone=made,
        scale=scale,
        shape=inputs.shape[1:],
        scaling=scaling,
        hidden=chosen.hidden,
        channels_last=chosen.channels_last,
        failure=loop.keeper.failure,
        kept=loop.keeper.kept,
        losses=loop.keeper.trace,
    )


def _rows(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    name: str,
    target: str,
    head: Head,
    scaling: Scaling,
    shape: tuple[int, ...] | None = None,
) -> tuple[Array, FloatArray]:
    inputs = checked_inputs(x, name, scaling, shape)
    targets = as_vector(y, target, length=len(inputs))
    head.check_targets(targets)
    return inputs, targets


def _loop(
    rows: tuple[Array, FloatArray],
    held: tuple[Array, FloatArray] | None,
    head: Head,
    backbone: Backbone,
    recipe: Recipe,
    scale: Scale,
    seed: int,
    device: str,
) -> Loop:
    def data(part: tuple[Array, FloatArray]) -> tuple[Inputs, FloatArray]:
        inputs = Inputs.of(
            part[0], grey=backbone.grey, channels_last=recipe.channels_last, device=device
        )
        return inputs, scale.targets(part[1])

    inputs, targets = data(rows)
    net = Net.of(
        backbone,
        inputs.batch(slice(0, 2)).cpu(),
        outputs=head.outputs,
        shielded=head.shielded,
        hidden=recipe.hidden,
        seed=seed % 2**63,
    )
    return Loop(net, head, recipe, (inputs, targets), None if held is None else data(held), seed)
