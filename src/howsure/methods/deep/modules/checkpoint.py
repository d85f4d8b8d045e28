"""Training saved in a file, and resumed from it."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol, final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.core.files import atomic_write
from howsure.methods.deep.heads import Head
from howsure.methods.deep.modules.backbones import Backbone
from howsure.methods.deep.modules.inputs import Array
from howsure.methods.deep.modules.recipe import Recipe
from howsure.methods.deep.modules.states import packed, unpacked


class Saved(Protocol):
    """What can be saved and resumed."""

    def state(self) -> dict[str, Any]:
        """All that `restore` needs."""

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from an earlier state."""


@final
class Checkpoint:
    """A file with the state of one training.

    Parameters
    ----------
    path : path
        Where it is.
    stamp : str
        Which training it is of; see `stamp`.
    every : float
        Seconds between saves, at least.
    """

    __slots__ = ("_every", "_last", "_path", "_stamp")

    def __init__(self, path: str | os.PathLike[str], stamp: str, every: float) -> None:
        if not every >= 0.0:
            raise InputError(f"every must be a number of seconds of at least 0, got {every!r}")
        self._path, self._stamp, self._every = Path(path), stamp, every
        self._last = time.monotonic()

    @staticmethod
    def stamp(
        backbone: Backbone,
        head: Head,
        recipe: Recipe,
        seed: int,
        rows: tuple[Array, FloatArray],
        held: tuple[Array, FloatArray] | None,
    ) -> str:
        """A hash of all that decides how a training comes out, but the code of callables."""
        options = {key: value for key, value in asdict(recipe).items() if key != "device"}
        text = repr((backbone.name, backbone.spec, head, sorted(options.items()), seed))
        digest = hashlib.sha256(text.encode())
        for part in (*rows, *(held or ())):
            digest.update(repr((part.shape, part.dtype.str)).encode())
            digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()

    def resume(self, training: Saved) -> int:
        """Go on where the file left off, if there is one; how many epochs it has seen.

        Raises
        ------
        InputError
            If the file cannot be read, is damaged, or is of another training.
        """
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise InputError(
                f"checkpoint {str(self._path)!r} cannot be read: {error.strerror}"
            ) from error
        content = unpacked(data, f"checkpoint {str(self._path)!r}")
        if content.get("stamp") != self._stamp:
            raise InputError(
                f"checkpoint must be of this training, got {str(self._path)!r}, which is of other "
                "data, options or random numbers"
            )
        training.restore(content["training"])
        return int(content["epochs"])

    def save(self, training: Saved, epochs: int, *, done: bool) -> None:
        """Save the state after so many epochs, if it is time or training is done."""
        now = time.monotonic()
        if done or now - self._last >= self._every:
            content = {"stamp": self._stamp, "epochs": epochs, "training": training.state()}
            atomic_write(self._path, packed(content))
            self._last = now
