"""Texts, images or rows to vectors, by a pretrained model or anything that encodes."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import plain_array, shortened
from howsure.core.errors import HowsureWarning, InputError
from howsure.core.progress import reported
from howsure.core.registry import imported
from howsure.inputs.encoders.pretrained import (
    KINDS,
    Embedder,
    Items,
    Kind,
    as_items,
    as_list,
    open_clip_model,
    open_hugging,
    working,
)
from howsure.stats.kernels import tiles

Embedding = npt.NDArray[np.float32]


@runtime_checkable
class Transformer(Protocol):
    """A fitted scikit-learn transformer, or anything that works as one."""

    def transform(self, X: Any, /) -> Any:
        """Vectors of rows."""


Encoder = str | Transformer | Embedder | Callable[[list[Any]], npt.ArrayLike]

_FORMS = (
    "'transformers:NAME', 'open_clip:NAME/PRETRAINED', a callable or an object with a method "
    "transform, or MODULE:NAME of one of these"
)
_OPENERS: Mapping[str, Callable[..., Embedder]] = {
    "transformers": open_hugging,
    "open_clip": open_clip_model,
}


def encode(
    items: Any,
    encoder: Encoder,
    *,
    kind: str | None = None,
    batch_size: int = 32,
    device: str | None = None,
) -> Embedding:
    """Turn things that are not vectors into vectors, for measures that compare rows by them.

    Vectors are given as the encoder makes them, not normalised: a kernel normalises where it
    should. No global state of torch is changed: neither its random numbers nor its number type
    nor its threads.

    Parameters
    ----------
    items : sequence of str or pathlib.Path, or array of n images
        Texts; paths of image files; or images of shape (n, height, width[, channels]) with 1, 3
        or 4 channels, whole numbers from 0 to 255 or fractions from 0 to 1 (taken to 8 bits,
        as files have). Grey becomes RGB, transparency is dropped. For an encoder of the
        caller's: anything with rows.
    encoder : str, transformer or callable
        What encodes.

        ``transformers:NAME``: a model of Hugging Face's library in a local folder (nothing is
        downloaded) or on the hub, with weights in safetensors files. Texts: the last hidden
        state averaged over tokens. Images: the pooled output, or the average over places where
        there is none. Models of texts and images (CLIP and its like): the vectors of their
        joint space.

        ``open_clip:NAME/PRETRAINED``, ``open_clip:hf-hub:…`` or ``open_clip:local-dir:…``: a
        model of open_clip, where that is installed; the vectors of its joint space.

        ``MODULE:NAME``: a function or a fitted object that a module holds, which stands for what
        it names. The module is imported, which runs its code.

        An object with a method `transform`, such as a fitted scikit-learn transformer or a
        `TabularEncoder`: it gets all items at once. A sparse result is made dense.

        A callable: it gets a list of at most `batch_size` items, in order, and returns their
        vectors, shape (b, e).

        What `opened` has made of any of these but a transformer, which is not loaded again.
    kind : {"text", "image"}, optional
        What the items are. By default, for a model by name, arrays and `pathlib.Path` are
        images, and strings are texts unless all of them end as image files do. Other encoders
        get items as they came, unless `kind` is stated: then texts are checked, and a callable
        gets images as RGB arrays of uint8, shape (height, width, 3).
    batch_size : int
        Items that are encoded at once. It changes results by rounding at most.
    device : str, optional
        Where a model by name runs, such as ``cpu`` or ``cuda:0``; by default a GPU where there
        is one.

    Returns
    -------
    ndarray of float32, shape (n, e)

    Warns
    -----
    HowsureWarning
        If texts are longer than the model reads, so that their ends do not count.

    Raises
    ------
    InputError
        If there are no items, or they are missing, of mixed types or shapes, or not of the kind
        that the encoder takes; if image files are missing or cannot be read (all of them are
        counted); if a model cannot be loaded or lacks weights; or if vectors are not finite, or
        not one of one width an item.
    MissingDependencyError
        If a library that the encoder needs is not installed.

    Examples
    --------
    >>> encode(["a", "abc"], lambda texts: [[len(text), 1.0] for text in texts])
    array([[1., 1.],
           [3., 1.]], dtype=float32)
    """
    if kind is not None and kind not in KINDS:
        raise InputError(f"kind must be one of {', '.join(KINDS)} or None, got {kind!r}")
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise InputError(f"batch_size must be a whole number of at least 1, got {batch_size!r}")
    meant = encoder_named(encoder)
    if isinstance(meant, Transformer) and not isinstance(meant, str):
        return _transformed(items, meant, kind)
    checked = as_items(items, kind) if isinstance(meant, str) or kind else Items(as_list(items))
    embedder = opened(encoder, checked.kind, device)
    out: Embedding | None = None
    order = np.arange(len(checked))
    if embedder.sorts:  # long texts first, which saves padding
        order = np.argsort([-len(text) for text in checked.values], kind="stable")
    batches = tiles(len(checked), batch_size)
    for tile in reported(batches, f"embeddings of {checked.kind or 'item'}s"):
        rows = order[tile]
        batch = checked.take(rows)
        with working(embedder.name) if embedder.name else nullcontext():
            vectors = _checked(embedder.embed(batch), len(rows))
        width = vectors.shape[1]
        out = np.empty((len(checked), width), dtype=np.float32) if out is None else out
        if width != out.shape[1]:
            raise InputError(
                f"encoder must return vectors of equal width, got {out.shape[1]} and {width} "
                "numbers"
            )
        out[rows] = vectors
    assert out is not None  # there is an item
    if embedder.cut:
        warnings.warn(
            f"{embedder.cut} of {len(checked)} texts are longer than the {embedder.limit} tokens "
            "that the encoder reads: their ends are ignored",
            HowsureWarning,
            stacklevel=2,
        )
    return _finite(out)


def encoder_named(encoder: Any, argument: str = "encoder") -> Encoder:
    """What a name stands for, but for models by name, which nothing loads yet; all else as it is.

    Examples
    --------
    >>> encoder_named("transformers:some/model")
    'transformers:some/model'
    >>> encoder_named("builtins:len")
    <built-in function len>
    """
    target = encoder
    if isinstance(encoder, str):
        scheme, _, name = encoder.partition(":")
        if scheme in _OPENERS and name:
            return encoder
        try:
            target = imported(encoder, argument) if scheme and name else None
        except InputError as error:
            raise InputError(f"{error}; {argument} must be {_FORMS}") from error
    usable = callable(target) or isinstance(target, Transformer | Embedder)
    if not usable or inspect.isclass(target):
        raise InputError(f"{argument} must be {_FORMS}, got {shortened(encoder)}")
    named: Encoder = target
    return named


def opened(encoder: Encoder, kind: Kind | None, device: str | None = None) -> Embedder:
    """An encoder that is loaded once for many calls of `encode`; not a transformer."""
    meant = encoder_named(encoder)
    if isinstance(meant, Embedder):
        return meant
    if isinstance(meant, str):
        scheme, _, name = meant.partition(":")
        embedder = _OPENERS[scheme](name, kind, device)
    else:
        assert callable(meant)
        embedder = Embedder(meant)
    embedder.name = encoder if isinstance(encoder, str) else ""
    return embedder


def _transformed(items: Any, encoder: Transformer, kind: str | None) -> Embedding:
    if kind == "image":
        raise InputError(
            "kind must be 'text' or None if the encoder has a method transform, got 'image': "
            "give images as rows of numbers, or a callable"
        )
    if kind == "text":
        texts = as_items(items, kind)
        items = texts.take(np.arange(len(texts)))
    count = _count(items)
    from sklearn.exceptions import NotFittedError

    try:
        vectors = encoder.transform(items)
    except NotFittedError as error:
        raise InputError(f"encoder must be fitted before it is used, got {error}") from error
    if hasattr(vectors, "toarray"):
        vectors = vectors.toarray()
    return _finite(_checked(vectors, count))


def _count(items: Any) -> int:
    """Rows of a table, an array or a list."""
    if isinstance(items, Mapping) and items:
        items = next(iter(items.values()))
    shape = getattr(items, "shape", None)
    count = int(shape[0]) if shape else len(as_list(items))
    if count == 0:
        raise InputError("items must not be empty")
    return count


def _checked(vectors: Any, count: int) -> Embedding:
    """One vector an item, in 32 bits."""
    array = plain_array(vectors, "embeddings")
    if array.dtype.kind not in "biuf":
        raise InputError(f"encoder must return real numbers, got dtype {array.dtype}")
    if array.ndim != 2 or array.shape[0] != count or array.shape[1] == 0:
        raise InputError(
            f"encoder must return one vector for each of {count} items, got shape {array.shape}"
        )
    with np.errstate(over="ignore"):
        return array.astype(np.float32, copy=False)


def _finite(vectors: Embedding) -> Embedding:
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise InputError(
            f"embeddings must be finite; {len(bad)} of {len(vectors)} are not (first at row "
            f"{bad[0]})"
        )
    return vectors
