"""Images and other inputs at the door, and as tensors, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import AnyArray, placed, plain_array
from howsure.core.classes import frozen
from howsure.core.convert import checked
from howsure.core.errors import InputError
from howsure.core.optional import require
from howsure_studies.methods.deep.training import Augment

Tensor = Any
Array = AnyArray
Scaling = Literal["imagenet", "none"]

_MEAN: Final = np.array([0.485, 0.456, 0.406], dtype=np.float32)
_SD: Final = np.array([0.229, 0.224, 0.225], dtype=np.float32)


def checked_inputs(x: npt.ArrayLike, name: str, scaling: Scaling, shape: Any = None) -> Array:
    """Inputs of a network: 8-bit images as they are, all else as 32-bit floats."""
    checked(scaling, Scaling, "scaling")
    array = plain_array(x, name)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must contain real numbers, got dtype {array.dtype}")
    if array.ndim < 2 or not array.size:
        raise InputError(f"{name} must have rows of at least one number, got shape {array.shape}")
    if shape is not None and array.shape[1:] != tuple(shape):
        raise InputError(f"{name} must have rows of shape {tuple(shape)}, got {array.shape[1:]}")
    if array.ndim == 4 and scaling == "imagenet":
        if array.dtype != np.uint8 or array.shape[3] not in (1, 3):
            raise InputError(
                f"{name} must be 8-bit with 1 or 3 channels for scaling 'imagenet', got "
                f"{array.dtype} with {array.shape[3]}; scaling 'none' takes numbers as they are"
            )
        return np.ascontiguousarray(array)
    with np.errstate(over="ignore"):
        floats = np.ascontiguousarray(array, dtype=np.float32)
    sound = np.isfinite(floats).reshape(len(floats), -1).all(axis=1)
    if not sound.all():
        raise InputError(
            f"{name} must contain finite numbers of 32 bits, got {int((~sound).sum())} rows with "
            f"others (first at row {int(np.argmin(sound))})"
        )
    return floats


@final
@frozen(eq=False)
class DeviceRows:
    """Rows (n, …) on a device, of which batches are made; 8-bit images are scaled on the way."""

    values: Tensor
    factor: Tensor | None
    shift: Tensor | None
    channels_last: bool

    @classmethod
    def of(
        cls, x: Array, *, grey: bool, channels_last: bool = True, device: Any = "cpu"
    ) -> DeviceRows:
        """Rows that `checked_inputs` has passed; 8-bit ones are images to be scaled."""
        values = placed(x, device)
        if x.dtype != np.uint8:
            return cls(values, None, None, channels_last)
        count = 1 if grey and x.shape[3] == 1 else 3
        pixels = np.repeat(np.array([0, 255], dtype=np.uint8), 3).reshape(2, 1, 1, 3)
        black, white = network_input(pixels)[:, :count, 0, 0]
        factor, shift = (placed(colour, device) for colour in ((white - black) / 255.0, black))
        return cls(values, factor, shift, channels_last)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.values)

    def batch(self, rows: Tensor | slice) -> Tensor:
        """Some rows, by a tensor of their numbers or a slice: images as (b, c, h, w)."""
        torch = require("torch", extra="deep")
        chosen = self.values[rows]
        if self.factor is not None:
            chosen = torch.addcmul(self.shift, chosen.to(torch.float32), self.factor)
        if chosen.ndim != 4:
            return chosen
        layout = torch.channels_last if self.channels_last else torch.contiguous_format
        return chosen.permute(0, 3, 1, 2).contiguous(memory_format=layout)


def augmented(images: Tensor, kinds: Sequence[Augment]) -> Tensor:
    """Images (b, c, h, w), each changed at random by torch's generator; see `ModuleTraining`."""
    torch = require("torch", extra="deep")
    count, channels, high, wide = images.shape
    device, out = images.device, images
    if "flip" in kinds:
        turned = torch.rand(count, device=device) < 0.5
        out = torch.where(turned[:, None, None, None], out.flip(3), out)
    if "crop" in kinds:
        # An image of one pixel cannot be shifted, nor one of few pixels by an eighth.
        down, along = (min(size - 1, max(1, size // 8)) for size in (high, wide))
        padded = torch.nn.functional.pad(out, (along, along, down, down), mode="reflect")
        top = torch.randint(2 * down + 1, (count, 1, 1, 1), device=device)
        left = torch.randint(2 * along + 1, (count, 1, 1, 1), device=device)
        rows = top + torch.arange(high, device=device)[:, None]
        columns = left + torch.arange(wide, device=device)
        each = torch.arange(count, device=device)[:, None, None, None]
        out = padded[each, torch.arange(channels, device=device)[:, None, None], rows, columns]
    last = images.is_contiguous(memory_format=torch.channels_last)
    return out.contiguous(memory_format=torch.channels_last if last else torch.contiguous_format)


def network_input(x: AnyArray, scaling: Scaling = "imagenet") -> npt.NDArray[np.float32]:
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
