"""Pretrained models of `transformers` and `open_clip`, from a folder or the hub, as encoders.

Weights come from safetensors files alone, which cannot hold code, and no code of a model's
author is ever run. Models work in 32 bits, in evaluation mode, without gradients.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import device_named
from howsure.core.errors import InputError, MissingDependencyError, message_of
from howsure.core.optional import require
from howsure.inputs.encoders.items import Embedder, Kind, Pixels, opening, quiet
from howsure.inputs.source import listed

_UNSTATED = 10**9  # a tokenizer that does not know its longest text states an absurd length


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A model in memory."""

    model: Any  # on its device, in evaluation mode
    kinds: tuple[str, ...]  # what it can encode
    joint: bool  # whether it puts texts and images into one space, as CLIP does
    pooler: bool  # whether the checkpoint held the weights of the pooling layer
    source: dict[str, Any]  # where it came from, for what else must be loaded


def open_hugging(name: str, kind: Kind, device: str | None) -> Embedder:
    """Load a model and what prepares its inputs."""
    place = device_named(device, extra="text")
    with opening(name):
        loaded = _load(name, place)
        if kind not in loaded.kinds:
            raise InputError(
                f"kind must be one that encoder {name!r} takes "
                f"({' or '.join(loaded.kinds) or 'neither text nor image'}), got {kind!r}"
            )
        return TextModel(loaded) if kind == "text" else ImageModel(loaded)


@final
class TextModel(Embedder):
    """Texts to vectors.

    The last hidden state averaged over a text's tokens, padding excluded; models of texts and
    images give their own text vector in the joint space. Pooling layers of plain text models
    are not used: they were trained for something else, and many checkpoints lack them.
    """

    sorts = True

    def __init__(self, loaded: _Loaded) -> None:
        tokenizers = require("transformers", extra="text").AutoTokenizer
        self._torch = require("torch", extra="text")
        self._tokenizer = tokenizers.from_pretrained(padding_side="right", **loaded.source)
        if len(self._tokenizer) - len(self._tokenizer.added_tokens_encoder) <= 1:
            # Without its files a tokenizer is made all the same, and knows no word.
            raise InputError("encoder must come with its tokenizer's files, got no vocabulary")
        if self._tokenizer.pad_token is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        encoder_decoder = getattr(loaded.model.config, "is_encoder_decoder", False)
        self._model = loaded.model.get_encoder() if encoder_decoder else loaded.model
        self._joint = loaded.joint
        self.limit = _longest(self._tokenizer, self._model)

    def embed(self, batch: list[str]) -> npt.ArrayLike:
        # Joint models were trained on texts padded to one length, and some pool the last place.
        padding = "max_length" if self._joint and self.limit else True
        counts = [len(ids) for ids in self._tokenizer(batch, verbose=False)["input_ids"]]
        if not all(counts):
            raise InputError(
                f"items must hold texts with at least one token, got {counts.count(0)} without "
                f"(the first: {batch[counts.index(0)]!r})"
            )
        if self.limit:
            self.cut += sum(count > self.limit for count in counts)
        inputs = self._tokenizer(
            batch,
            padding=padding,
            truncation=self.limit is not None,
            max_length=self.limit,
            return_tensors="pt",
            **({} if self._joint else {"return_attention_mask": True}),
        ).to(self._model.device)
        with self._torch.no_grad():
            if self._joint:
                vectors = _pooled(self._model.get_text_features(**inputs))
            else:
                states = self._model(**inputs).last_hidden_state
                mask = inputs["attention_mask"].unsqueeze(-1).to(states.dtype)
                vectors = (states * mask).sum(dim=1) / mask.sum(dim=1)
        return _to_numpy(vectors)


@final
class ImageModel(Embedder):
    """Images to vectors.

    The projected image vector of models of texts and images; else the model's pooled output;
    else, where it has none or its weights are not in the checkpoint, the last hidden state
    averaged over places.
    """

    def __init__(self, loaded: _Loaded) -> None:
        processors = require("transformers", extra="text").AutoImageProcessor
        self._torch = require("torch", extra="text")
        # The other backend rounds otherwise: vectors would depend on torchvision's presence.
        self._processor = processors.from_pretrained(backend="pil", **loaded.source)
        self._loaded = loaded

    def embed(self, batch: list[Pixels]) -> npt.ArrayLike:
        model = self._loaded.model
        inputs = self._processor(
            images=batch, return_tensors="pt", input_data_format="channels_last"
        )
        pixels = inputs["pixel_values"].to(model.device)
        with self._torch.no_grad():
            if self._loaded.joint:
                return _to_numpy(_pooled(model.get_image_features(pixel_values=pixels)))
            out = model(pixel_values=pixels)
        projected = getattr(out, "image_embeds", None)
        if projected is not None:
            return _to_numpy(projected)
        pooled = getattr(out, "pooler_output", None)
        if pooled is not None and self._loaded.pooler:
            return _to_numpy(pooled.flatten(1))
        states = out.last_hidden_state
        return _to_numpy(states.mean(dim=1 if states.ndim == 3 else (2, 3)))


def _load(name: str, place: Any) -> _Loaded:
    transformers = require("transformers", extra="text")
    folder = os.path.expanduser(name)
    local = os.path.isdir(folder)
    if not local and name.startswith(("/", ".", "~")):
        raise InputError(f"encoder must be a folder that exists or a name on the hub, got {name!r}")
    source = {
        "pretrained_model_name_or_path": folder if local else name,
        "local_files_only": local,
        "trust_remote_code": False,
    }
    with quiet(transformers.utils.logging):
        config = transformers.AutoConfig.from_pretrained(**source)
        architecture = (getattr(config, "architectures", None) or [""])[0]
        projects = architecture.endswith("ModelWithProjection")
        factory = getattr(transformers, architecture if projects else "AutoModel")
        model, report = factory.from_pretrained(
            use_safetensors=True,
            dtype=require("torch", extra="text").float32,
            output_loading_info=True,
            **source,
        )
    missing = sorted(report["missing_keys"])
    needed = [key for key in missing if "pooler" not in key.split(".")]
    if needed:
        raise InputError(
            f"encoder {name!r} must come with all its weights, got a checkpoint without "
            f"{listed(needed, 5)}, which would be random numbers"
        )
    joint = hasattr(model, "get_text_features") and hasattr(model, "get_image_features")
    takes = {"text": "input_ids", "image": "pixel_values"}
    kinds = tuple(kind for kind in takes if joint or takes[kind] == model.main_input_name)
    return _Loaded(model.to(place).eval(), kinds, joint, not missing, source)


def _longest(tokenizer: Any, model: Any) -> int | None:
    """Tokens that a model reads of a text; None where there is no limit."""
    config = getattr(model.config, "text_config", model.config)
    places = getattr(config, "max_position_embeddings", None) or _UNSTATED
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None):
            places = places - module.padding_idx - 1  # where places are counted after padding's
    longest = min(places, tokenizer.model_max_length)
    return None if longest >= _UNSTATED else int(longest)


def _pooled(features: Any) -> Any:
    return getattr(features, "pooler_output", features)


def _to_numpy(tensor: Any) -> npt.NDArray[np.float32]:
    array: npt.NDArray[np.float32] = tensor.float().cpu().numpy()
    return array


# ---- models of `open_clip`, where it is installed, as encoders of texts and images ---------------

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
