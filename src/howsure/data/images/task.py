"""An image task: what is predicted from what, and its parts, read or drawn when first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, final

import numpy as np
import numpy.typing as npt

from howsure.core.errors import InputError
from howsure.core.registry import check_known
from howsure.data.parts import Part

Scaling = Literal["imagenet", "none"]
Family = Literal["shift", "congruence"]

FAMILIES: Final[tuple[Family, ...]] = ("shift", "congruence")

_MEAN: Final = np.array([0.485, 0.456, 0.406], dtype=np.float32)
_SD: Final = np.array([0.229, 0.224, 0.225], dtype=np.float32)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ImageTask:
    """Images beside a number each, in a training, a validation and one or more test parts.

    Attributes
    ----------
    name : str
        As in `howsure.data.images.image_names`.
    title : str
        The name that its paper gives it.
    family : {"shift", "congruence"}
        Whose task it is: the shift benchmark's of Gustafsson, Danelljan and Schön (2023), or the
        conditional congruence's of Young et al. (2025).
    target, units : str
        What y is, and its units.
    tests : tuple of str
        Names of the test parts; the first is the main one.
    read : callable
        Gives a part by name, with those that come along with it.
    published : mapping of str to int
        Rows of the parts in the paper, or by its rule from the published number of images.
    scaling : {"imagenet", "none"}
        What `network_input` does.

    Examples
    --------
    >>> from howsure.data.images import image_task
    >>> task = image_task("cells-tails", train=20, val=10, test=10)
    >>> task.train.x.shape, task.target, task.tests
    ((20, 64, 64, 1), 'nuclei', ('full', 'step-1', 'step-2', 'step-3'))
    >>> network_input(task.train.x, task.scaling).shape
    (20, 3, 64, 64)
    """

    name: str
    title: str
    target: str
    units: str
    tests: tuple[str, ...]
    read: Callable[[str], Mapping[str, Part]]
    family: Family = "shift"
    published: Mapping[str, int] = field(default_factory=dict)
    scaling: Scaling = "imagenet"
    _held: dict[str, Part] = field(default_factory=dict, init=False, repr=False)

    def part(self, name: str) -> Part:
        """A part by name: ``train``, ``val``, or one of `tests`.

        Raises
        ------
        InputError
            If there is no such part, or what is read breaks a rule.
        """
        names = ("train", "val", *self.tests)
        check_known(name, names, "part")
        if name not in self._held:
            self._held.update(self.read(name))
        return self._held[name]

    @property
    def train(self) -> Part:
        """The part that models are fitted to."""
        return self.part("train")

    @property
    def val(self) -> Part:
        """The part that intervals are calibrated on."""
        return self.part("val")

    @property
    def test(self) -> Part:
        """The main test part."""
        return self.part(self.tests[0])


def network_input(x: npt.NDArray[Any], scaling: Scaling = "imagenet") -> npt.NDArray[np.float32]:
    """Images as the benchmark's networks take them.

    Parameters
    ----------
    x : ndarray, shape (n, height, width, channels)
        With ``imagenet``, 8-bit and of one or three channels.
    scaling : {"imagenet", "none"}
        ``imagenet``: one channel is copied to three; divide by 255, subtract (0.485, 0.456,
        0.406) and divide by (0.229, 0.224, 0.225). ``none``: numbers as they are.

    Returns
    -------
    ndarray of float32, shape (n, channels, height, width)

    Raises
    ------
    InputError
        If the shape or type does not fit the scaling.

    Examples
    --------
    >>> network_input(np.full((1, 2, 2, 1), 255, dtype=np.uint8))[0, :, 0, 0]
    array([2.2489083, 2.4285715, 2.64     ], dtype=float32)
    """
    if x.ndim != 4:
        raise InputError(f"x must have four dimensions, got shape {x.shape}")
    if scaling == "imagenet":
        if x.dtype != np.uint8 or x.shape[3] not in (1, 3):
            raise InputError(
                f"x must be 8-bit with 1 or 3 channels for imagenet scaling, got {x.dtype} with "
                f"{x.shape[3]}"
            )
        x = (x / np.float32(255.0) - _MEAN) / _SD
    return np.ascontiguousarray(np.moveaxis(x, 3, 1), dtype=np.float32)
