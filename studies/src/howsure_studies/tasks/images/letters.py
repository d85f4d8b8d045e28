"""Drawn letters and digits in colour, whose difficulty is known: pixels are swapped by chance.

A picture has two colours, of its letter and of the ground. Each of its values, three a pixel, is
swapped for that of the other colour with a probability of its own. The share of labels that an
observer who knows both colours and that probability would be left with is known in closed form.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.convert import check_whole
from howsure.core.rng import child

# Columns of a font of 5 × 7 dots, the lowest bit on top.
_FONT: Final = {
    **{"A": "7E1111117E", "B": "7F49494936", "C": "3E41414122", "D": "7F4141221C"},
    **{"E": "7F49494941", "F": "7F09090901", "G": "3E4149497A", "H": "7F0808087F"},
    **{"I": "00417F4100", "J": "2040413F01", "K": "7F08142241", "L": "7F40404040"},
    **{"M": "7F020C027F", "N": "7F0408107F", "O": "3E4141413E", "P": "7F09090906"},
    **{"Q": "3E4151215E", "R": "7F09192946", "S": "4649494931", "T": "01017F0101"},
    **{"U": "3F4040403F", "V": "1F2040201F", "W": "3F4038403F", "X": "6314081463"},
    **{"Y": "0708700807", "Z": "6151494543", "0": "3E5149453E", "1": "00427F4000"},
    **{"2": "4261514946", "3": "2141454B31", "4": "1814127F10", "5": "2745454539"},
    **{"6": "3C4A494930", "7": "0171090503", "8": "3649494936", "9": "064949291E"},
}
LETTERS: Final = tuple(_FONT)
"""What is drawn, by the number of its class."""
_SWAPPED: Final = (0.2, 0.48)
"""Least and largest probability that a value is swapped."""


@cache
def _templates() -> BoolArray:
    """Where each letter's dots are, shape (36, 7, 5)."""
    columns = np.array([list(bytes.fromhex(code)) for code in _FONT.values()])
    return np.asarray((columns[:, None, :] >> np.arange(7)[:, None]) & 1, dtype=np.bool_)


def draw_letters(n: int, *, seed: int = 0) -> tuple[FloatArray, IntArray, FloatArray]:
    """Draw coloured letters and digits, their classes, and what can be known of these.

    Parameters
    ----------
    n : int
        How many, at least 1.
    seed : int
        Fixes all draws.

    Returns
    -------
    images : ndarray of float, shape (n, 7, 5, 3)
        In [0, 1]: red, green and blue; the letter is the lighter colour.
    classes : ndarray of int, shape (n,)
        Places in `LETTERS`, all equally likely.
    posterior : ndarray of float, shape (n, 36)
        P(class | image, its colours, its q) = q^H (1 − q)^(105 − H), made to sum to one, where H
        counts values that differ from the class's drawing, and q ~ U(0.2, 0.48) is the picture's
        probability of a swap.

    Raises
    ------
    InputError
        If n is no whole number from 1.

    Examples
    --------
    >>> images, classes, posterior = draw_letters(4)
    >>> images.shape, posterior.sum(axis=1)
    ((4, 7, 5, 3), array([1., 1., 1., 1.]))
    """
    check_whole(n, "n")
    rng, drawn = child(seed, "letters"), _templates()
    classes = rng.integers(len(drawn), size=n)
    q = rng.uniform(*_SWAPPED, n)
    light = rng.uniform(0.55, 1.0, (n, 1, 1, 3))
    dark = rng.uniform(0.0, 0.45, (n, 1, 1, 3))
    swapped = rng.random((n, *drawn.shape[1:], 3)) < q[:, None, None, None]
    lit = drawn[classes][..., None] ^ swapped
    seen = lit.reshape(n, -1).astype(np.float64)
    expected = np.repeat(drawn.reshape(len(drawn), -1), 3, axis=1).astype(np.float64)
    differing = seen @ (1 - expected).T + (1 - seen) @ expected.T
    logs = -differing * np.log((1 - q) / q)[:, None]
    posterior = np.exp(logs - logs.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    return np.where(lit, light, dark), classes.astype(np.int64), posterior
