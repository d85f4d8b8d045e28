"""Columns of texts and of paths of images: where the files lie, and what the columns become."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.errors import HowsureError, InputError
from howsure.inputs.names import Roles
from howsure.inputs.source import quoted

Texts = npt.NDArray[Any]


def embedded(
    texts: Mapping[str, Texts],
    roles: Roles,
    *,
    folder: Path | None,
    title: str,
) -> tuple[FloatArray | None, Texts | None]:
    """The vectors of the encoded column, and the files of the column of images.

    Paths are in the column so named, or in the encoded one if all its cells end as image files do.
    """
    column, image, encoder = roles.one("encode"), roles.one("image"), roles.encoder
    if column is None or encoder is None:
        return None, None if image is None else located(texts[image], folder)
    # slow to load
    from howsure.inputs.encoders.encode import Transformer, encode, encoder_named
    from howsure.inputs.encoders.items import are_image_files

    items = texts[column]
    if image is None:
        files = are_image_files(items)
        if 0 < files < len(items):
            raise InputError(
                f"{title}: column {quoted(column)} must hold texts or paths of images, got {files} "
                f"of {len(items)} cells that end as image files do: if all are paths, pass "
                "image=COLUMN (--image COLUMN) as well"
            )
        image = column if files else None
    images = None if image is None else located(texts[image], folder)
    kind: str | None = "text"
    if image == column and images is not None:
        kind, items = "image", images
    try:
        meant = encoder_named(encoder)
        if not isinstance(meant, str) and (kind == "text" or isinstance(meant, Transformer)):
            kind = None
        vectors = encode(list(items), encoder, kind=kind)
    except InputError as error:
        raise InputError(f"{title}: column {quoted(column)}: {error}") from error
    except HowsureError as error:
        raise type(error)(f"column {quoted(column)}: {error}") from error
    return vectors.astype(np.float64), images


def located(paths: Sequence[Any] | Texts, folder: Path | None) -> Texts:
    """Paths as they stand in a table, made absolute: they start from the table's folder."""
    root = Path.cwd() if folder is None else folder.absolute()
    out = np.empty(len(paths), dtype=object)
    out[:] = [os.path.join(root, str(path)) for path in paths]
    return out
