"""Networks of torch modules: a backbone with outputs on top, trained or not, and as bytes."""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, placed, to_host
from howsure.core.classes import frozen
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.optional import require
from howsure.predictions import Prediction
from howsure_studies.methods.deep.heads import Head, head_named, head_spec
from howsure_studies.methods.deep.modules.backbones import Backbone, backbone_named, soften
from howsure_studies.methods.deep.modules.inputs import DeviceRows, Scaling, checked_inputs
from howsure_studies.methods.deep.training import Standardization

Module = Any
Tensor = Any

BLOCK: Final = 256
"""Rows that pass through a network at once when it is not trained."""

_FORMAT: Final = 1
_MARK: Final = b"howsure\x01"
_DIGEST: Final = 32
_DRAWING: Final = threading.Lock()


@contextmanager
def torch_draws(seed: int, device: Any = "cpu") -> Iterator[None]:
    """Torch's own random numbers from a seed inside; outside they go on as if nothing had been."""
    torch = require("torch", extra="deep")
    where = torch.device(device)
    with torch.random.fork_rng(devices=[where] if where.type == "cuda" else []):
        reseed(seed, device)
        yield


def reseed(seed: int, device: Any = "cpu") -> None:
    """Seed torch's generator, and that of the GPU that is used, inside `torch_draws`."""
    torch = require("torch", extra="deep")
    torch.default_generator.manual_seed(seed)
    if torch.device(device).type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)


@final
@frozen(eq=False)
class Net:
    """Modules: a backbone ``body``; for each output a ``hidden`` layer, and weights in ``last``."""

    modules: Module
    shielded: int

    @classmethod
    def of(
        cls,
        backbone: Backbone,
        example: Tensor,
        *,
        outputs: int,
        shielded: int = 0,
        hidden: int | None = None,
        seed: int = 0,
    ) -> Net:
        """A net with first weights drawn by torch from a seed, on the processor.

        The example holds two rows as the body takes them; `hidden` is as `ModuleTraining` has it.
        """
        nn = require("torch", extra="deep").nn
        with _DRAWING, torch_draws(seed):
            body = backbone.make(int(example.shape[1]))
            features = _width(body, example, backbone.name)
            if backbone.spectral is not None:
                soften(body, example, backbone.spectral)
            units = features if hidden is None else hidden
            parts = {"body": body, "last": nn.Linear(units or features, outputs)}
            if units:
                parts["hidden"] = nn.Linear(features, outputs * units)
        return cls(nn.ModuleDict(parts), shielded)

    @property
    def body(self) -> Module:
        """The backbone."""
        return self.modules["body"]

    def outputs(self, features: Tensor) -> Tensor:
        """Outputs, shape (k, b), for features, shape (b, d)."""
        count = len(self.modules["last"].bias)
        free = count - self.shielded
        open_part = self._some(features, 0, free)
        if not self.shielded:
            return open_part
        still = self._some(features.detach(), free, count)
        return require("torch", extra="deep").cat((open_part, still))

    def passed(self, inputs: DeviceRows) -> tuple[Tensor, Tensor]:
        """Outputs (k, n) and features (n, d) of rows that pass through in blocks."""
        blocks = [slice(start, start + BLOCK) for start in range(0, len(inputs), BLOCK)]
        features = [self.body(inputs.batch(block)) for block in blocks]
        cat = require("torch", extra="deep").cat
        return cat([self.outputs(of_block) for of_block in features], dim=1), cat(features)

    def _some(self, features: Tensor, start: int, stop: int) -> Tensor:
        """Some of the outputs."""
        last = self.modules["last"]
        weight, bias = last.weight[start:stop], last.bias[start:stop, None]
        if "hidden" not in self.modules:
            return weight @ features.T + bias
        hidden, units = self.modules["hidden"], weight.shape[1]
        own = slice(start * units, stop * units)
        linear = require("torch", extra="deep").nn.functional.linear
        inner = linear(features, hidden.weight[own], hidden.bias[own]).relu()
        return (inner.view(len(inner), *weight.shape) * weight).sum(-1).T + bias


def _width(body: Module, example: Tensor, name: str) -> int:
    """How many features a body gives for each row; checked by passing two rows through it."""
    torch = require("torch", extra="deep")
    if not isinstance(body, torch.nn.Module):
        raise InputError(f"backbone {name!r} must give a torch module, got {type(body).__name__}")
    was = body.training
    try:
        with torch.no_grad():
            features = body.eval()(example)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        raise InputError(
            f"backbone {name!r} must take a batch of shape {tuple(example.shape)}, got the error: "
            f"{error}"
        ) from error
    finally:
        body.train(was)
    what = tuple(features.shape) if isinstance(features, torch.Tensor) else type(features).__name__
    if (
        not isinstance(features, torch.Tensor)
        or features.ndim != 2
        or len(features) != len(example)
    ):
        raise InputError(
            f"backbone {name!r} must give features of shape ({len(example)}, d) for "
            f"{len(example)} rows, got {what}"
        )
    if features.shape[1] < 1 or not features.is_floating_point():
        raise InputError(
            f"backbone {name!r} must give floating numbers, got {features.dtype}, {what}"
        )
    return int(features.shape[1])


@final
@frozen(eq=False, kw_only=True)
class ModuleNetwork:
    """A trained network: outputs, features and predictions at new rows.

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
        Hidden units of each output; see `ModuleTraining`.
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
    scale: Standardization
    shape: tuple[int, ...]
    scaling: Scaling
    hidden: int | None
    channels_last: bool
    failure: str | None
    kept: int
    losses: FloatArray

    def predict_all(self, x: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Outputs (k, n), as the head takes them, and features (n, d), in one pass in blocks."""
        torch = require("torch", extra="deep")
        rows = checked_inputs(x, "x", self.scaling, self.shape)
        if self.failure is not None and self.kept == 0:
            raise UnanswerableError(f"the network was never trained: {self.failure}")
        inputs = DeviceRows.of(
            rows, grey=self.backbone.grey, channels_last=self.channels_last, device=self.device
        )
        with torch.inference_mode():
            outputs, features = map(to_host, self.net.passed(inputs))
        return np.asarray(outputs, dtype=np.float64), np.asarray(features, dtype=np.float64)

    def outputs(self, x: npt.ArrayLike) -> FloatArray:
        """Outputs, shape (k, n); see `predict_all`."""
        return self.predict_all(x)[0]

    def features(self, x: npt.ArrayLike) -> FloatArray:
        """Features, shape (n, d); see `predict_all`."""
        return self.predict_all(x)[1]

    def prediction(self, x: npt.ArrayLike) -> Prediction:
        """What is believed of y, in its own units; errors as `predict_all`."""
        return self.believed(self.outputs(x))

    def believed(self, outputs: FloatArray) -> Prediction:
        """What outputs, shape (k, n), say of y, in its own units."""
        return self.head.prediction(outputs, self.scale.y_center, self.scale.y_unit)

    @property
    def device(self) -> str:
        """Where its weights are: ``cpu``, ``cuda:0`` and the like."""
        return str(self.net.modules["last"].bias.device)

    def to_bytes(self) -> bytes:
        """The network as bytes, from which `from_bytes` makes it again on any machine."""
        state = {key: placed(value) for key, value in self.net.modules.state_dict().items()}
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
        device: Any = "cpu",
    ) -> ModuleNetwork:
        """A network that `to_bytes` wrote; a backbone or head of one's own must be given again."""
        content = unpacked(data, "data")
        if content.get("format") != _FORMAT:
            raise InputError(f"data must be a network of format {_FORMAT}, got another content")
        body = _chosen(backbone, content["backbone"], "backbone")
        law = head_named(_chosen(head, content["head"], "head"))
        made = backbone_named(body)
        if law.outputs != content["outputs"]:
            raise InputError(f"head must have {content['outputs']} outputs, got {law.outputs}")
        shape = tuple(content["shape"])
        kind = np.uint8 if content["scaling"] == "imagenet" and len(shape) == 3 else np.float32
        layout = content["channels_last"]
        example = DeviceRows.of(np.zeros((2, *shape), kind), grey=made.grey, channels_last=layout)
        net = Net.of(
            made,
            example.batch(slice(0, 2)),
            outputs=law.outputs,
            shielded=law.shielded,
            hidden=content["hidden"],
        )
        torch = require("torch", extra="deep")
        try:
            net.modules.load_state_dict(content["state"])
        except RuntimeError as error:
            raise InputError(f"backbone must fit the weights in data, got {error}") from error
        memory = torch.channels_last if layout else torch.contiguous_format
        net.modules.to(device=device, memory_format=memory).eval()
        center, unit = content["scale"]
        return cls(
            net=net,
            head=law,
            backbone=made,
            scale=Standardization(np.empty(0), np.empty(0), center, unit),
            shape=shape,
            scaling=content["scaling"],
            hidden=content["hidden"],
            channels_last=layout,
            failure=content["failure"],
            kept=content["kept"],
            losses=np.array(content["losses"], dtype=np.float64).reshape(-1, 2),
        )


def _chosen(given: Any, written: Any, name: str) -> Any:
    """What the caller gives, or else what the bytes say."""
    if given is not None:
        return given
    own = isinstance(written, Mapping) and ":" in str(written["name"])
    if written is None or own:
        raise InputError(f"{name} must be given for a network with one of the caller's own")
    return written


def packed(content: dict[str, Any]) -> bytes:
    """Tensors, numbers and text as bytes that tell whether they are whole."""
    torch = require("torch", extra="deep")
    buffer = io.BytesIO()
    torch.save(content, buffer)
    data = buffer.getvalue()
    return _MARK + hashlib.sha256(data).digest() + data


def unpacked(data: bytes, name: str) -> dict[str, Any]:
    """What `packed` was given, on the processor; no code is run in reading it."""
    torch = require("torch", extra="deep")
    start = len(_MARK) + _DIGEST
    body = data[start:]
    if data[: len(_MARK)] != _MARK:
        raise InputError(
            f"{name} must be what howsure wrote, got {len(data)} bytes of another kind"
        )
    if hashlib.sha256(body).digest() != data[len(_MARK) : start]:
        raise InputError(f"{name} must be whole, got {len(data)} bytes that are damaged or cut")
    content: dict[str, Any] = torch.load(io.BytesIO(body), map_location="cpu", weights_only=True)
    return content
