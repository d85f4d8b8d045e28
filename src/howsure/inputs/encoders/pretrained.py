"""What encoders are given, and pretrained models of `transformers` and `open_clip` that take it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import AnyArray, IntArray, device_named, shortened
from howsure.core.errors import HowsureError, InputError, MissingDependencyError, message_of
from howsure.core.optional import require
from howsure.inputs.frames import is_missing
from howsure.inputs.source import listed

Kind = Literal["text", "image"]
Pixels = npt.NDArray[np.uint8]

KINDS = ("text", "image")
_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
# Bad files that a message names: a few lines.
_MAX_FILES_NAMED = 5
# Characters of a path that a message shows: a line and a half.
_MAX_CHARACTERS = 120
_WIDE_MODES = ("I", "F")  # Pillow's modes of more than 8 bits a channel begin so


class Items:
    """Items to encode, one per row: of unknown kind, and passed on unchanged."""

    kind: Kind | None = None

    def __init__(self, values: Sequence[Any] | AnyArray) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: IntArray) -> list[Any]:
        """The items of some rows, as an encoder wants them."""
        return [self.values[row] for row in rows]


@final
class Texts(Items):
    """Texts, all of them Unicode."""

    kind = "text"

    def __init__(self, values: Sequence[str]) -> None:
        super().__init__(list(map(str, values)))
        for row, text in enumerate(self.values):
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise InputError(
                    f"items must contain Unicode text, got {shortened(text)} at row {row}"
                ) from error


@final
class ImageFiles(Items):
    """Paths of image files, which are read when their batch comes."""

    kind = "image"

    def __init__(self, paths: Sequence[str | Path]) -> None:
        super().__init__([os.path.expanduser(path) for path in paths])
        missing = [path for path in self.values if not os.path.isfile(path)]
        if missing:
            raise InputError(
                f"items must be existing image files; {len(missing)} of {len(self)} are missing: "
                f"{_named(missing)}"
            )

    def take(self, rows: IntArray) -> list[Pixels]:
        """The pixels of some files; the error counts and names all that cannot be read."""
        images = []
        for row in rows:
            image = read_image(self.values[row])
            if isinstance(image, str):
                bad = [path for path in self.values[row:] if isinstance(read_image(path), str)]
                raise InputError(
                    f"items must be readable image files; {len(bad)} of {len(self)} are not: "
                    f"{_named(bad)} (the first: {image})"
                )
            images.append(image)
        return images


@final
class ImageArray(Items):
    """Images of one size in an array."""

    kind = "image"

    def __init__(self, array: AnyArray) -> None:
        if array.ndim not in (3, 4):
            raise InputError(
                "images must have shape (n, height, width) or (n, height, width, channels), "
                f"got {array.shape}"
            )
        if array.ndim == 3 and array.shape[2] in (3, 4):
            raise InputError(
                f"images must have shape (n, height, width[, channels]), got {array.shape}, "
                "which looks like one image: give it as image[None]"
            )
        if array.ndim == 4 and array.shape[3] not in (1, 3, 4):
            raise InputError(
                "images must have 1, 3 or 4 channels, in the last dimension, got shape "
                f"{array.shape}"
            )
        if 0 in array.shape:
            raise InputError(f"images must have pixels, got shape {array.shape}")
        super().__init__(array)
        self._scale = _scale(array)

    def take(self, rows: IntArray) -> list[Pixels]:
        batch: Any = np.asarray(self.values)[rows]
        pixels = np.rint(batch * self._scale).astype(np.uint8) if self._scale else batch
        pixels = pixels.astype(np.uint8, copy=False)
        if pixels.ndim == 3:
            pixels = pixels[..., None]
        pixels = np.repeat(pixels, 3, axis=3) if pixels.shape[3] == 1 else pixels[..., :3]
        return list(np.ascontiguousarray(pixels))


def as_items(items: Any, kind: str | None) -> Items:
    """Check texts or images at the door, and find out which they are."""
    if len(getattr(items, "shape", ())) > 1:
        items = np.asarray(items)
    if isinstance(items, np.ndarray) and items.dtype.kind not in "OSU":
        return ImageArray(_not_text(items, kind))
    values = as_list(items)
    missing = [row for row, value in enumerate(values) if is_missing(value)]
    if missing:
        raise InputError(
            f"items must not be missing; {len(missing)} are (first at row {missing[0]})"
        )
    wanted = _wanted(values)
    if wanted is np.ndarray:
        return ImageArray(_stacked(_not_text(values, kind)))
    if wanted is Path:
        return ImageFiles(_not_text(values, kind))
    if kind is None:
        files = are_image_files(values)
        if 0 < files < len(values):
            raise InputError(
                f"{files} of {len(values)} strings end like image files: pass kind='text' or "
                "kind='image'"
            )
        kind = "image" if files else "text"
    return ImageFiles(values) if kind == "image" else Texts(values)


def as_list(items: Any) -> list[Any]:
    """Items as a list that is not empty."""
    if isinstance(items, str | bytes | os.PathLike | Mapping):
        raise InputError(f"items must be a sequence of texts or images, got {shortened(items)}")
    try:
        values = list(np.asarray(items) if len(getattr(items, "shape", ())) > 1 else items)
    except TypeError as error:
        raise InputError(
            f"items must be a sequence of texts or images, got {shortened(items)}"
        ) from error
    if not values:
        raise InputError("items must not be empty")
    return values


def are_image_files(texts: Iterable[str]) -> int:
    """How many texts end as names of image files do."""
    return sum(text.lower().endswith(_SUFFIXES) for text in texts)


def read_image(path: str) -> Pixels | str:
    """Read an image file as RGB; its first frame, turned as its orientation tag says."""
    pil = require("PIL.Image", extra="text")
    turned = require("PIL.ImageOps", extra="text").exif_transpose
    try:
        with pil.open(path) as image:
            if image.mode.startswith(_WIDE_MODES):
                return (
                    f"more than 8 bits per channel (mode {image.mode}); give such images as an "
                    "array scaled to 0 to 1"
                )
            pixels: Pixels = np.asarray(turned(image).convert("RGB"))
    except (OSError, ValueError, SyntaxError, EOFError, pil.DecompressionBombError) as error:
        return message_of(error)
    return pixels


def _named(paths: list[str]) -> str:
    """Some paths for a message; of long ones the end, which tells them apart."""
    shown = [
        repr(path if len(path) <= _MAX_CHARACTERS else "…" + path[-_MAX_CHARACTERS:])
        for path in paths[:_MAX_FILES_NAMED]
    ]
    more = len(paths) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _wanted(values: list[Any]) -> type:
    """The one type of all items: str, Path or ndarray."""
    for accepted in (str, Path, np.ndarray):
        if all(isinstance(value, accepted) for value in values):
            return accepted
    names = sorted({type(value).__name__ for value in values})
    raise InputError(
        f"items must be all texts, all paths or all image arrays, got {', '.join(names)}"
    )


def _not_text(value: Any, kind: str | None) -> Any:
    if kind == "text":
        raise InputError("kind 'text' needs strings, got images")
    return value


def _stacked(values: list[AnyArray]) -> AnyArray:
    shapes = sorted({value.shape for value in values})
    if len(shapes) > 1:
        raise InputError(
            f"images in arrays must have one shape, got {len(shapes)}: {shortened(shapes)}"
        )
    return np.stack(values)


def _scale(array: AnyArray) -> float | None:
    """What brings numbers to 0…255; None where they are there."""
    kind = array.dtype.kind
    if kind not in "biuf":
        raise InputError(f"images must contain numbers, got dtype {array.dtype}")
    if array.dtype == np.uint8:
        return None
    low, high = array.min(), array.max()
    top = 255 if kind in "iu" else 1
    if not (low >= 0 and high <= top):
        raise InputError(
            f"images of dtype {array.dtype} must be between 0 and {top}, got {low:g} to {high:g}"
        )
    return None if kind in "iu" else 255.0


# ---- safe loading of pretrained models: errors that name them, and no global state left changed --

_FAILURES = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError),
    *(ImportError, AssertionError),
)


@contextmanager
def opening(name: str) -> Iterator[None]:
    """Load a model: failures become `InputError`, and torch's random state stays as it was."""
    torch = require("torch", extra="text")
    broken = require("safetensors", extra="text").SafetensorError
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    except HowsureError:
        raise
    except (broken, *_FAILURES) as error:
        raise InputError(f"encoder {name!r} cannot be loaded: {message_of(error)}") from error


@contextmanager
def working(name: str) -> Iterator[None]:
    """Encode with a model: its failures become `InputError`."""
    try:
        yield
    except HowsureError:
        raise
    except _FAILURES as error:
        raise InputError(f"encoder {name!r} fails on these items: {message_of(error)}") from error


@contextmanager
def quiet(log: Any) -> Iterator[None]:
    """Hold back the loading reports of `transformers`, and then let it speak as before."""
    verbosity, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(verbosity)
        if bars:
            log.enable_progress_bar()


# ---- what turns one batch of items into vectors --------------------------------------------------


@dataclass(slots=True, eq=False)
class Embedder:
    """Turns batches into vectors."""

    embed: Callable[[list[Any]], npt.ArrayLike]  # vectors of b items, shape (b, e)
    sorts: bool = False  # whether texts of like length should share a batch
    limit: int | None = None  # tokens that the model reads of a text
    cut: int = 0  # texts that were longer than the model reads, so far
    name: str = ""  # what it was named by; a function of the caller's has no name


# ---- pretrained models of `transformers` and `open_clip`, from a folder or the hub, as encoders --
# Weights come from safetensors files alone, which cannot hold code, and no code of a model's
# author is ever run. Models work in 32 bits, in evaluation mode, without gradients.

# A tokenizer that does not know its longest text states an absurd length: 10³⁰ in transformers.
_UNSTATED_LENGTH = 10**9


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
                f"encoder {name!r} must have all its weights: its checkpoint has no "
                f"{listed(needed, 5)}, so these would be random numbers"
            )
        joint = hasattr(model, "get_text_features") and hasattr(model, "get_image_features")
        takes = {"text": "input_ids", "image": "pixel_values"}
        kinds = [kind for kind in takes if joint or takes[kind] == model.main_input_name]
        model = model.to(target).eval()
        if kind not in kinds:
            raise InputError(
                f"kind must be one that encoder {name!r} accepts "
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
        raise InputError("encoder needs the files of its tokenizer; the vocabulary is missing")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if getattr(model.config, "is_encoder_decoder", False):
        model = model.get_encoder()
    limit = _longest(tokenizer, model)

    def embed(batch: list[str]) -> npt.ArrayLike:
        counts = [len(ids) for ids in tokenizer(batch, verbose=False)["input_ids"]]
        if not all(counts):
            raise InputError(
                f"items must be texts with at least one token; {counts.count(0)} have none (the "
                f"first: {batch[counts.index(0)]!r})"
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
    places = getattr(config, "max_position_embeddings", None) or _UNSTATED_LENGTH
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None):
            places = places - module.padding_idx - 1  # where places are counted after padding's
    longest = min(places, tokenizer.model_max_length)
    return None if longest >= _UNSTATED_LENGTH else int(longest)


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
            "encoders named open_clip:… need open_clip and a torchvision that matches the "
            f"installed torch: run pip install open_clip_torch ({message_of(error)})"
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
    scheme, _, location = name.partition(":")
    if scheme == "local-dir" and location:
        folder = os.path.expanduser(location)
        weights = os.path.join(folder, "open_clip_model" + _SAFE)
        if not os.path.isfile(weights):
            raise InputError(
                f"encoder 'open_clip:{name}' must contain weights, but has no {weights}"
            )
        return f"local-dir:{folder}", None
    if scheme == "hf-hub" and location:
        hub = importlib.import_module("open_clip.pretrained")
        _must_be_safe(name, hub.download_pretrained_from_hf(location))
        return name, None
    model_name, _, pretrained = name.partition("/")
    config = library.get_pretrained_cfg(model_name, pretrained) if pretrained else None
    path = os.path.expanduser(pretrained)
    if not config and not os.path.isfile(path):  # then the model would be random
        tags = library.list_pretrained_tags_by_model(model_name)
        raise InputError(
            f"encoder 'open_clip:NAME/PRETRAINED' must name weights: a safetensors file, or one "
            f"of the tags that {model_name!r} has ({listed(tags) or 'none'}), got {pretrained!r}"
        )
    path = library.download_pretrained(config) if config else path
    _must_be_safe(name, path)
    return model_name, pretrained if config else path


def _must_be_safe(name: str, path: str) -> None:
    if not str(path).endswith(_SAFE):
        raise InputError(
            f"encoder 'open_clip:{name}' must have its weights in a safetensors file, got "
            f"{path}: other formats can run code when they are read"
        )
