"""Trained networks of torch modules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.optional import require
from howsure.methods.deep.heads import Head, head_named, head_spec
from howsure.methods.deep.members import Scale
from howsure.methods.deep.modules.backbones import Backbone, backbone_named
from howsure.methods.deep.modules.inputs import Inputs, Scaling, checked_inputs
from howsure.methods.deep.modules.loop import BLOCK
from howsure.methods.deep.modules.net import Net
from howsure.methods.deep.modules.states import packed, unpacked
from howsure.predictions import Prediction

_FORMAT: Final = 1


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ModuleNetwork:
    """A trained network: outputs, features and beliefs at new rows.

    Attributes
    ----------
    net : Net
        Its modules, in evaluation mode.
    head : Head
        What its outputs mean.
    backbone : Backbone
        What made its body.
    scale : Scale
        What its targets were standardised by; it has no columns of inputs.
    shape : tuple of int
        Of one row of its inputs.
    scaling : {"imagenet", "none"}
        What is done to images.
    hidden : int or None
        Hidden units of each output; see `Recipe`.
    channels_last : bool
        How images are laid out.
    failure : str or None
        Where its loss or its weights stopped being finite, if they did.
    kept : int
        The epoch after which it was as it is; 0 for first weights.
    losses : ndarray of float, shape (epochs, 2)
        Mean loss of each epoch's steps, and the loss on the rows held out; NaN without such rows.
    """

    net: Net
    head: Head
    backbone: Backbone
    scale: Scale
    shape: tuple[int, ...]
    scaling: Scaling
    hidden: int | None
    channels_last: bool
    failure: str | None
    kept: int
    losses: FloatArray

    def predict_all(self, x: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Outputs and features, in one pass over the rows in blocks of fixed size.

        Parameters
        ----------
        x : array-like, shape (n, …)
            Inputs, each of `shape`.

        Returns
        -------
        outputs : ndarray of float, shape (k, n)
            As the head takes them: of standardised targets, where they were standardised.
        features : ndarray of float, shape (n, d)
            What the backbone gives.

        Raises
        ------
        InputError
            If x does not hold finite numbers of the shape and type that it was trained on.
        UnanswerableError
            If its training failed within the first epoch.
        """
        torch = require("torch", extra="deep")
        rows = checked_inputs(x, "x", self.scaling, self.shape)
        if self.failure is not None and self.kept == 0:
            raise UnanswerableError(f"the network was never trained: {self.failure}")
        inputs = Inputs.of(
            rows, grey=self.backbone.grey, channels_last=self.channels_last, device=self.device
        )
        outputs, features = [], []
        with torch.inference_mode():
            for start in range(0, len(rows), BLOCK):
                found = self.net.body(inputs.batch(slice(start, start + BLOCK)))
                features.append(found.cpu())
                outputs.append(self.net.outputs(found).cpu())
            both = torch.cat(outputs, dim=1).numpy(), torch.cat(features).numpy()
        return both[0].astype(np.float64), both[1].astype(np.float64)

    def outputs(self, x: npt.ArrayLike) -> FloatArray:
        """Outputs, shape (k, n); see `predict_all`."""
        return self.predict_all(x)[0]

    def features(self, x: npt.ArrayLike) -> FloatArray:
        """Features, shape (n, d); see `predict_all`."""
        return self.predict_all(x)[1]

    def belief(self, x: npt.ArrayLike) -> Prediction:
        """What is believed of y, in its own units; errors as `predict_all`."""
        return self.believed(self.outputs(x))

    def believed(self, outputs: FloatArray) -> Prediction:
        """What outputs, shape (k, n), say of y, in its own units."""
        return self.head.belief(outputs, self.scale.y_center, self.scale.y_unit)

    @property
    def device(self) -> str:
        """Where its weights are: ``cpu`` or ``cuda``."""
        return str(self.net.modules["last"].bias.device.type)

    def to_bytes(self) -> bytes:
        """The network as bytes, from which `from_bytes` makes it again on any machine."""
        state = {key: value.cpu() for key, value in self.net.modules.state_dict().items()}
        return packed(
            {
                "format": _FORMAT,
                "backbone": None if self.backbone.spec is None else dict(self.backbone.spec),
                "head": head_spec(self.head),
                "outputs": self.head.outputs,
                "shape": list(self.shape),
                "scaling": self.scaling,
                "hidden": self.hidden,
                "channels_last": self.channels_last,
                "scale": [self.scale.y_center, self.scale.y_unit],
                "failure": self.failure,
                "kept": self.kept,
                "losses": self.losses.tolist(),
                "state": state,
            }
        )

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        *,
        backbone: Any = None,
        head: str | Mapping[str, Any] | Head | None = None,
        device: str = "cpu",
    ) -> ModuleNetwork:
        """A network that `to_bytes` wrote.

        Parameters
        ----------
        data : bytes
            What it wrote.
        backbone : str, mapping, Backbone or callable, optional
            Needed where the backbone was a callable of one's own: bytes never import code.
        head : str, mapping or Head, optional
            Needed where the head was one's own.
        device : {"cpu", "cuda"}
            Where to put it.

        Raises
        ------
        InputError
            If the bytes are damaged or of another kind, or a backbone or head is needed or does
            not fit.
        """
        held = unpacked(data, "data")
        if held.get("format") != _FORMAT:
            raise InputError(f"data must hold a network of format {_FORMAT}, got another content")
        body = _chosen(backbone, held["backbone"], "backbone")
        law = head_named(_chosen(head, held["head"], "head"))
        made = backbone_named(body)
        if law.outputs != held["outputs"]:
            raise InputError(f"head must have {held['outputs']} outputs, got {law.outputs}")
        shape = tuple(held["shape"])
        kind = np.uint8 if held["scaling"] == "imagenet" and len(shape) == 3 else np.float32
        layout = held["channels_last"]
        example = Inputs.of(np.zeros((2, *shape), kind), grey=made.grey, channels_last=layout)
        net = Net.of(
            made,
            example.batch(slice(0, 2)),
            outputs=law.outputs,
            shielded=law.shielded,
            hidden=held["hidden"],
        )
        torch = require("torch", extra="deep")
        try:
            net.modules.load_state_dict(held["state"])
        except RuntimeError as error:
            raise InputError(f"backbone must fit the weights in data, got {error}") from error
        memory = torch.channels_last if layout else torch.contiguous_format
        net.modules.to(device=device, memory_format=memory).eval()
        center, unit = held["scale"]
        return cls(
            net=net,
            head=law,
            backbone=made,
            scale=Scale(np.empty(0), np.empty(0), center, unit),
            shape=shape,
            scaling=held["scaling"],
            hidden=held["hidden"],
            channels_last=layout,
            failure=held["failure"],
            kept=held["kept"],
            losses=np.array(held["losses"], dtype=np.float64).reshape(-1, 2),
        )


def _chosen(given: Any, written: Any, name: str) -> Any:
    """What the caller gives, or else what the bytes say."""
    if given is not None:
        return given
    own = isinstance(written, Mapping) and ":" in str(written["name"])
    if written is None or own:
        raise InputError(f"{name} must be given for a network with one of the caller's own")
    return written


def check_sound(networks: tuple[ModuleNetwork, ...]) -> None:
    """Raise `UnanswerableError` if a network has failed.

    Examples
    --------
    >>> check_sound(())
    """
    bad = [(k, item.failure) for k, item in enumerate(networks) if item.failure is not None]
    if bad:
        raise UnanswerableError(
            f"{len(bad)} of {len(networks)} networks failed (first network {bad[0][0]}: "
            f"{bad[0][1]})"
        )
