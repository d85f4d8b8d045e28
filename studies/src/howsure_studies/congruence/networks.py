"""Models of the congruence studies: methods on features, and heads trained as one batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import AnyArray, FloatArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.progress import part_of, report_progress
from howsure.core.rng import child
from howsure_studies.congruence.encoders import encoded, kind_of
from howsure_studies.congruence.worlds import COMPONENTS, components_of
from howsure_studies.methods.interface import Fitted, Method, Predictions
from howsure_studies.tasks import Task
from howsure_studies.tasks.task import Embedding

if TYPE_CHECKING:
    from howsure_studies.methods.deep import HeadNetwork


@final
@frozen(kw_only=True)
class OnFeatures(Method):
    """A method for tables, on features of images or texts.

    These are components of pixels or words, or the vectors of an encoder where one is named.
    """

    method: Method  # What is fitted to the features
    components: int = COMPONENTS  # How many, at most
    encoder: str = ""  # By name, in place of components

    @property
    def name(self) -> str:
        """What reports call it."""
        return self.method.name

    @property
    def fixed_coverages(self) -> tuple[float, ...] | None:
        """Those of the method."""
        return self.method.fixed_coverages

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> FeatureFit:
        """Fit components to x, shape (n, …), and the method to the components."""
        features = self.features(np.asarray(x))
        return FeatureFit(self.method.fit(features(np.asarray(x)), y, rng), features)

    def features(self, x: AnyArray) -> Embedding:
        """What the method sees of inputs, learned from those of the training part."""
        if self.encoder:
            return encoded(self.encoder, kind_of(x))
        return components_of(x, self.components)


@final
@frozen(eq=False)
class FeatureFit(Fitted):
    """A fitted method on features."""

    fitted: Fitted
    features: Embedding

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """What is believed at inputs of shape (n, …)."""
        return self.fitted.predict(self.features(np.asarray(x)))


def head_methods(
    heads: Sequence[str], *, components: int | None = None, **options: Any
) -> dict[str, Method]:
    """Networks by the names of their heads; on principal components of images where asked.

    Parameters
    ----------
    heads : sequence of str
        Names of `howsure_studies.methods.deep.HEADS`.
    components : int, optional
        Principal components that the networks take; None for inputs that are tables.
    **options
        Of `howsure_studies.methods.deep.HeadNetwork`.

    Raises
    ------
    InputError
        If a head is unknown, or an option breaks its rule.

    Examples
    --------
    >>> list(head_methods(["poisson", "gaussian"], epochs=5))
    ['poisson', 'gaussian']
    """
    from howsure_studies.methods.deep import HeadNetwork

    networks = {head: HeadNetwork(head=head, **options) for head in heads}
    if components is None:
        return {**networks}
    return {k: OnFeatures(method=net, components=components) for k, net in networks.items()}


def fit_methods(
    methods: Mapping[str, Method], tasks: Sequence[Task], *, seeds: Sequence[int] | None = None
) -> list[dict[str, Fitted]]:
    """Fit every method to the training part of every task.

    Single networks with heads (`HeadNetwork`, alone or within `OnFeatures`) train as one batch,
    all heads and all tasks together, and keep the epoch of least loss on the validation part.
    Any other method is fitted by itself, to the training part alone.

    Parameters
    ----------
    methods : mapping of str to Method
        What is fitted.
    tasks : sequence of Task
        What to.
    seeds : sequence of int, optional
        One a task; 0, 1, … by default. A method's draws depend on its own seed and name alone.

    Returns
    -------
    list of dict of str to Fitted
        One a task, in the order given.

    Raises
    ------
    InputError
        If there is no method or task, or not one seed a task; and as the methods have it.

    Examples
    --------
    >>> from howsure_studies.methods.linear import LinearT
    >>> from howsure_studies.congruence import wave_task
    >>> list(fit_methods({"line": LinearT()}, [wave_task(rows=60)])[0])
    ['line']
    """
    own = list(range(len(tasks))) if seeds is None else [int(seed) for seed in seeds]
    if not methods or not tasks or len(own) != len(tasks):
        raise InputError(
            "methods and tasks must contain at least one, and seeds one per task, got "
            f"{len(methods)}, {len(tasks)} and {len(own)}"
        )
    networks = {k: net for k, method in methods.items() if (net := batched(method)) is not None}
    together = _batched(methods, networks, tasks, own)
    alone = [label for label in methods if label not in networks]
    total, fitted = len(alone) * len(tasks), []
    for index, (task, seed) in enumerate(zip(tasks, own, strict=True)):
        fits = {label: together[label, index] for label in networks}
        for number, label in enumerate(alone):
            rng = child(seed, "congruence fit", label)
            with part_of(f"fitting {label}", index * len(alone) + number, total):
                fits[label] = methods[label].fit(task.train.x, task.train.y, rng)
        fitted.append({label: fits[label] for label in methods})
    return fitted


def batched(method: Method) -> HeadNetwork | None:
    """The single network with a head that a method trains, so that it is one of a batch."""
    inner = method.method if isinstance(method, OnFeatures) else method
    if not type(inner).__module__.startswith("howsure_studies.methods.deep."):
        return None  # so that torch-free methods need nothing of that room
    from howsure_studies.methods.deep import HeadNetwork

    single = isinstance(inner, HeadNetwork) and inner.members == 1 and not inner.resampled
    return inner if isinstance(inner, HeadNetwork) and single else None


def _batched(
    methods: Mapping[str, Method],
    networks: Mapping[str, HeadNetwork],
    tasks: Sequence[Task],
    seeds: Sequence[int],
) -> dict[tuple[str, int], Fitted]:
    """Networks of one recipe, trained as one whatever their heads and data."""
    if not networks:
        return {}
    from howsure_studies.methods.deep import HeadFit, Member, train

    seen: dict[tuple[int, str, int], Embedding] = {}

    def features(method: OnFeatures, index: int) -> Embedding:
        """Learned once a task, for all methods that see the same."""
        key = method.components, method.encoder, index
        if key not in seen:
            seen[key] = method.features(tasks[index].train.x)
        return seen[key]

    recipes: dict[Any, list[tuple[str, int]]] = {}
    views: dict[tuple[str, int], Embedding] = {}
    for label, network in networks.items():
        pairs = [(label, index) for index in range(len(tasks))]
        recipes.setdefault(network.training, []).extend(pairs)
        if isinstance(method := methods[label], OnFeatures):
            views |= {pair: features(method, pair[1]) for pair in pairs}
    total = len(networks) * len(tasks)
    fits: dict[tuple[str, int], Fitted] = {}
    for training, pairs in recipes.items():
        report_progress("training networks", len(fits), total)
        members = []
        for pair in pairs:
            view, task, seed = views.get(pair, _numbers), tasks[pair[1]], seeds[pair[1]]
            validation = view(task.val.x), task.val.y
            members.append(Member(view(task.train.x), task.train.y, seed=seed, held=validation))
        heads = [networks[label].head for label, _ in pairs]
        trained = train(members, heads, training)
        for pair, head, single in zip(pairs, heads, trained, strict=True):
            fit = HeadFit((single,), head)
            fits[pair] = FeatureFit(fit, views[pair]) if pair in views else fit
    report_progress("training networks", len(fits), total)
    return fits


def _numbers(x: AnyArray) -> FloatArray:
    return np.asarray(x, dtype=np.float64)
