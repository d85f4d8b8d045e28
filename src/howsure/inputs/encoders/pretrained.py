"""Pretrained models of `transformers` and `open_clip`, from a folder or the hub, as encoders.

Weights come from safetensors files alone, which cannot hold code, and no code of a model's
author is ever run. Models work in 32 bits, in evaluation mode, without gradients.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import device_named
from howsure.core.errors import InputError, MissingDependencyError, message_of
from howsure.core.optional import require
from howsure.inputs.encoders.items import Embedder, Kind, Pixels, opening, quiet
from howsure.inputs.source import listed

_UNSTATED = 10**9  # a tokenizer that does not know its longest text states an absurd length


def open_hugging(name: str, kind: Kind, device: str | None) -> Embedder:
    """Load a model and what prepares its inputs."""
    target = device_named(device, extra="text")
    torch = require("torch", extra="text")
    with opening(name):
        transformers = require("transformers", extra="text")
        folder = os.path.expanduser(name)
        local = os.path.isdir(folder)
        if not local and name.startswith(("/", ".", "~")):
            raise InputError(
                f"encoder must be a folder that exists or a name on the hub, got {name!r}"
            )
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
                use_safetensors=True, dtype=torch.float32, output_loading_info=True, **source
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
        kinds = [kind for kind in takes if joint or takes[kind] == model.main_input_name]
        model = model.to(target).eval()
        if kind not in kinds:
            raise InputError(
                f"kind must be one that encoder {name!r} takes "
                f"({' or '.join(kinds) or 'neither text nor image'}), got {kind!r}"
            )
        if kind == "text":
            tokenizer = transformers.AutoTokenizer.from_pretrained(padding_side="right", **source)
            return _texts_of_hugging(model, tokenizer, joint=joint)
        # The other backend rounds otherwise: vectors would depend on torchvision's presence.
        processor = transformers.AutoImageProcessor.from_pretrained(backend="pil", **source)
        return _images_of_hugging(model, processor, joint=joint, pooler=not missing)


def _texts_of_hugging(model: Any, tokenizer: Any, *, joint: bool) -> Embedder:
    """Texts to vectors.

    The last hidden state averaged over a text's tokens, padding excluded; models of texts and
    images give their own text vector in the joint space. Pooling layers of plain text models
    are not used: they were trained for something else, and many checkpoints lack them.
    """
    torch = require("torch", extra="text")
    if len(tokenizer) - len(tokenizer.added_tokens_encoder) <= 1:
        # Without its files a tokenizer is made all the same, and knows no word.
        raise InputError("encoder must come with its tokenizer's files, got no vocabulary")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if getattr(model.config, "is_encoder_decoder", False):
        model = model.get_encoder()
    limit = _longest(tokenizer, model)

    def embed(batch: list[str]) -> npt.ArrayLike:
        counts = [len(ids) for ids in tokenizer(batch, verbose=False)["input_ids"]]
        if not all(counts):
            raise InputError(
                f"items must hold texts with at least one token, got {counts.count(0)} without "
                f"(the first: {batch[counts.index(0)]!r})"
            )
        if limit:
            embedder.cut += sum(count > limit for count in counts)
        inputs = tokenizer(
            batch,
            # Joint models were trained on texts padded to one length; some pool the last place.
            padding="max_length" if joint and limit else True,
            truncation=limit is not None,
            max_length=limit,
            return_tensors="pt",
            **({} if joint else {"return_attention_mask": True}),
        ).to(model.device)
        with torch.no_grad():
            if joint:
                return _to_numpy(_pooled(model.get_text_features(**inputs)))
            states = model(**inputs).last_hidden_state
            mask = inputs["attention_mask"].unsqueeze(-1).to(states.dtype)
            return _to_numpy((states * mask).sum(dim=1) / mask.sum(dim=1))

    embedder = Embedder(embed, sorts=True, limit=limit)
    return embedder


def _images_of_hugging(model: Any, processor: Any, *, joint: bool, pooler: bool) -> Embedder:
    """Images to vectors.

    The projected image vector of models of texts and images; else the model's pooled output;
    else, where it has none or its weights are not in the checkpoint, the last hidden state
    averaged over places.
    """
    torch = require("torch", extra="text")

    def embed(batch: list[Pixels]) -> npt.ArrayLike:
        inputs = processor(images=batch, return_tensors="pt", input_data_format="channels_last")
        pixels = inputs["pixel_values"].to(model.device)
        with torch.no_grad():
            if joint:
                return _to_numpy(_pooled(model.get_image_features(pixel_values=pixels)))
            out = model(pixel_values=pixels)
        projected = getattr(out, "image_embeds", None)
        if projected is not None:
            return _to_numpy(projected)
        pooled = getattr(out, "pooler_output", None)
        if pooled is not None and pooler:
            return _to_numpy(pooled.flatten(1))
        states = out.last_hidden_state
        return _to_numpy(states.mean(dim=1 if states.ndim == 3 else (2, 3)))

    return Embedder(embed)


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
    target = device_named(device, extra="text")
    torch = require("torch", extra="text")
    with opening(f"open_clip:{name}"):
        model_name, pretrained = _checked(library, name)
        model, prepare = library.create_model_from_pretrained(
            model_name, pretrained, device=target, precision="fp32"
        )
        model.eval()
        if kind == "image":
            as_image = require("PIL.Image", extra="text").fromarray

            def embed_images(batch: list[Pixels]) -> npt.ArrayLike:
                pixels = torch.stack([prepare(as_image(image)) for image in batch])
                with torch.no_grad():
                    return _to_numpy(model.encode_image(pixels.to(target)))

            return Embedder(embed_images)
        tokenizer = library.get_tokenizer(model_name)
        limit = int(tokenizer.context_length)

        def last_tokens(batch: list[str]) -> Any:
            """One token more than the model reads, which is blank if the text fits."""
            return tokenizer(batch, context_length=limit + 1)[:, -1]

        blank = last_tokens([""])[0]

        def embed_texts(batch: list[str]) -> npt.ArrayLike:
            embedder.cut += int((last_tokens(batch) != blank).sum())
            with torch.no_grad():
                return _to_numpy(model.encode_text(tokenizer(batch).to(target)))

        embedder = Embedder(embed_texts, limit=limit)
        return embedder


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
