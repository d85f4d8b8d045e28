"""An image task: what is predicted from what, and its parts, read or drawn when first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, final

from howsure.core.registry import check_known
from howsure.methods.deep.modules.inputs import Scaling
from howsure.studies.tasks.parts import Part

Family = Literal["shift", "congruence"]

FAMILIES: Final[tuple[Family, ...]] = ("shift", "congruence")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ImageTask:
    """Images beside a number each, in a training, a validation and one or more test parts.

    Attributes
    ----------
    name : str
        As in `howsure.studies.tasks.images.image_names`.
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
        What networks do to images; see `howsure.methods.deep.modules.inputs.network_input`.

    Examples
    --------
    >>> from howsure.studies.tasks.images import image_task
    >>> task = image_task("cells-tails", train=20, val=10, test=10)
    >>> task.train.x.shape, task.target, task.tests
    ((20, 64, 64, 1), 'nuclei', ('full', 'step-1', 'step-2', 'step-3'))
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
