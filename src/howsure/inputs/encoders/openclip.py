"""Models of `open_clip`, where it is installed, as encoders of texts and images."""

from __future__ import annotations

import importlib
import os
from typing import Any, final

import numpy.typing as npt

from howsure.core.arrays import device_named
from howsure.core.errors import InputError, MissingDependencyError, message_of
from howsure.core.optional import require
from howsure.inputs.encoders.items import Embedder, Kind, opening
from howsure.inputs.source import listed

_SAFE = ".safetensors"


def open_clip_model(name: str, kind: Kind, device: str | None) -> Embedder:
    """Load a model of open_clip."""
    try:
        library = importlib.import_module("open_clip")
    except (ImportError, RuntimeError) as error:
        raise MissingDependencyError(
            "encoders named open_clip:… need open_clip and a torchvision that fits the installed "
            f"torch: run pip install open_clip_torch ({message_of(error)})"
        ) from error
    place = device_named(device, extra="text")
    with opening(f"open_clip:{name}"):
        model_name, pretrained = _checked(library, name)
        model, prepare = library.create_model_from_pretrained(
            model_name, pretrained, device=place, precision="fp32"
        )
        model.eval()
        if kind == "image":
            return ImageTower(model, prepare, place)
        return TextTower(model, library.get_tokenizer(model_name), place)


@final
class ImageTower(Embedder):
    """Images to vectors of the joint space, not normalised."""

    def __init__(self, model: Any, prepare: Any, device: Any) -> None:
        self._torch = require("torch", extra="text")
        self._image = require("PIL.Image", extra="text").fromarray
        self._model, self._prepare, self._device = model, prepare, device

    def embed(self, batch: list[Any]) -> npt.ArrayLike:
        pixels = self._torch.stack([self._prepare(self._image(image)) for image in batch])
        with self._torch.no_grad():
            vectors: npt.ArrayLike = self._model.encode_image(pixels.to(self._device)).cpu().numpy()
        return vectors


@final
class TextTower(Embedder):
    """Texts to vectors of the joint space, not normalised."""

    def __init__(self, model: Any, tokenizer: Any, device: Any) -> None:
        self._torch = require("torch", extra="text")
        self._model, self._tokenizer, self._device = model, tokenizer, device
        self.limit = self._reads = int(tokenizer.context_length)
        self._blank = self._longer([""])[0, -1]

    def embed(self, batch: list[str]) -> npt.ArrayLike:
        self.cut += int((self._longer(batch)[:, -1] != self._blank).sum())
        tokens = self._tokenizer(batch).to(self._device)
        with self._torch.no_grad():
            vectors: npt.ArrayLike = self._model.encode_text(tokens).cpu().numpy()
        return vectors

    def _longer(self, batch: list[str]) -> Any:
        """Tokens with one place more than the model reads, which is blank if the text fits."""
        return self._tokenizer(batch, context_length=self._reads + 1)


def _checked(library: Any, name: str) -> tuple[str, str | None]:
    """A model's name and weights, once those are known to lie in a safetensors file."""
    scheme, _, rest = name.partition(":")
    if scheme == "local-dir" and rest:
        folder = os.path.expanduser(rest)
        weights = os.path.join(folder, "open_clip_model" + _SAFE)
        if not os.path.isfile(weights):
            raise InputError(f"encoder 'open_clip:{name}' must hold weights, got no {weights}")
        return f"local-dir:{folder}", None
    if scheme == "hf-hub" and rest:
        hub = importlib.import_module("open_clip.pretrained")
        _must_be_safe(name, hub.download_pretrained_from_hf(rest))
        return name, None
    model_name, _, pretrained = name.partition("/")
    known = library.get_pretrained_cfg(model_name, pretrained) if pretrained else None
    path = os.path.expanduser(pretrained)
    if not known and not os.path.isfile(path):  # then the model would be random
        tags = library.list_pretrained_tags_by_model(model_name)
        raise InputError(
            f"encoder 'open_clip:NAME/PRETRAINED' must name weights: a safetensors file, or one "
            f"of the tags that {model_name!r} has ({listed(tags) or 'none'}), got {pretrained!r}"
        )
    path = library.download_pretrained(known) if known else path
    _must_be_safe(name, path)
    return model_name, pretrained if known else path


def _must_be_safe(name: str, path: str) -> None:
    if not str(path).endswith(_SAFE):
        raise InputError(
            f"encoder 'open_clip:{name}' must keep its weights in a safetensors file, got {path}: "
            "other formats can run code when they are read"
        )
