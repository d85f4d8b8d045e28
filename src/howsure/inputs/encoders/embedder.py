"""What turns one batch of items into vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, final

import numpy.typing as npt


class Embedder(ABC):
    """Turns batches into vectors.

    Attributes
    ----------
    sorts : bool
        Whether texts of like length should share a batch.
    cut : int
        Texts that were longer than the model reads, so far.
    limit : int, optional
        Tokens that the model reads of a text.
    name : str
        What it was named by; a function of the caller's has no name.
    """

    sorts = False
    cut = 0
    limit: int | None = None
    name: str = ""

    @abstractmethod
    def embed(self, batch: list[Any]) -> npt.ArrayLike:
        """Vectors of b items, shape (b, e)."""


@final
class Function(Embedder):
    """A function of the caller's."""

    def __init__(self, function: Callable[[list[Any]], npt.ArrayLike]) -> None:
        self._function = function

    def embed(self, batch: list[Any]) -> npt.ArrayLike:
        return self._function(batch)
