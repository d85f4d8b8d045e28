"""Columns of texts and of paths of images: where the files lie, and what the columns become."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.errors import HowsureError, InputError
from howsure.inputs.encoders.encode import Encoder, Transformer, encode
from howsure.inputs.encoders.items import are_image_files
from howsure.inputs.roles import Roles
from howsure.inputs.source import quoted

Texts = npt.NDArray[Any]


def image_column(roles: Roles, texts: Sequence[Any] | Texts | None) -> str | None:
    """The column of paths of images: the one so named, or the encoded one if its cells are paths.

    Parameters
    ----------
    roles : Roles
        The columns' roles.
    texts : sequence of str, optional
        The cells of the encoded column.

    Raises
    ------
    InputError
        If only some cells end as image files do.
    """
    if roles.image is not None or roles.encode is None or texts is None:
        return roles.image
    files = are_image_files(texts)
    if 0 < files < len(texts):
        raise InputError(
            f"column {quoted(roles.encode[0])} must hold texts or paths of images, got {files} of "
            f"{len(texts)} cells that end as image files do: if all are paths, say image=COLUMN "
            "(--image COLUMN) as well"
        )
    return roles.encode[0] if files else None


def located(paths: Sequence[Any] | Texts, folder: Path | None) -> Texts:
    """Paths as they stand in a table, made absolute: they start from the table's folder.

    Examples
    --------
    >>> located(["a/b.png", "/c.png"], Path("/data")).tolist()
    ['/data/a/b.png', '/c.png']
    """
    root = Path.cwd() if folder is None else folder.absolute()
    out = np.empty(len(paths), dtype=object)
    out[:] = [os.path.join(root, str(path)) for path in paths]
    return out


def encoded(
    texts: Texts,
    column: str,
    encoder: Encoder,
    *,
    images: Texts | None,
    title: str,
) -> FloatArray:
    """The embedding of a column.

    Parameters
    ----------
    texts : ndarray of str, shape (n,)
        Its cells, none of them missing.
    column : str
        Its name, for messages.
    encoder : str, transformer or callable
        As in `howsure.inputs.encoders.encode`.
    images : ndarray of str, shape (n,), optional
        The files, if the column holds paths.
    title : str
        The table, for messages.

    Returns
    -------
    ndarray of float, shape (n, e)

    Raises
    ------
    InputError
        As `encode`, with the table and the column named.
    """
    items: list[Any] = list(texts if images is None else images)
    kind: str | None = "text" if images is None else "image"
    if not isinstance(encoder, str) and (images is None or isinstance(encoder, Transformer)):
        kind = None
    try:
        vectors = encode(items, encoder, kind=kind)
    except InputError as error:
        raise InputError(f"{title}: column {quoted(column)}: {error}") from error
    except HowsureError as error:
        raise type(error)(f"column {quoted(column)}: {error}") from error
    return vectors.astype(np.float64)
