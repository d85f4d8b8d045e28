"""What the congruence study takes its data from: known distributions, and tasks in three parts.

The discrete wave, drawn cells, pictures of blood, rotated digits, docstrings, published
photographs, and tables or images of one's own; and which of them a plan's worlds are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, lru_cache
from inspect import signature
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import AnyArray, FloatArray, IntArray, row_blocks
from howsure.core.classes import frozen
from howsure.core.convert import Positive, check_whole, checked
from howsure.core.errors import InputError
from howsure.core.registry import check_known, unknown
from howsure.core.rng import child
from howsure.inputs.encoders.encode import Transformer, encoder_named
from howsure.inputs.encoders.pretrained import Kind
from howsure.predictions import Distribution
from howsure.predictions.counts.dispersed import Dispersed, Family, checked_parameters
from howsure.predictions.laws import Law, Parameters
from howsure.topics.congruence.predictive import Mixtures, Normals, PredictiveLaw, Support
from howsure_studies.engine import (
    absolute,
    canonical,
    check_options,
    complete_numbers,
    numbers_hash,
)
from howsure_studies.methods.options import call_with_options
from howsure_studies.tasks import Part, Source, Space, Task, find_folder
from howsure_studies.tasks.images import (
    BLOOD,
    DIGITS,
    image_names,
    image_task,
    read_blood,
    rotated_digits,
    settled,
    settled_source,
)
from howsure_studies.tasks.images.naming import REAL
from howsure_studies.tasks.task import Embedding, plain_rows
from howsure_studies.tasks.texts import read_docstrings

TAU: Final = 2.0 * np.pi
PARTS: Final = ("train", "val", "test")
COMPONENTS: Final = 64
"""Principal components of images, at most."""
PHOTOGRAPHS: Final = (*image_names("congruence"), "nuclei-count")
_MOST_SIDE: Final = 64
"""Pixels a side of photographs for principal components; of more, they would fill the memory."""
_TOP: Final = 30.0
_TINY: Final = 1e-9
_PHOTOGRAPHS: Final = ("world", "folder", "train", "val", "test", "part", "broken", "complete")
"""What a plan may say of any photographs."""
_REAL: Final = {
    "blood": ("bccd", BLOOD),
    "blood-anew": ("bccd", BLOOD),
    "digits": ("mnist", DIGITS),
}
_TABLE: Final = ("target", "features", "counts", "units", "shares")


@final
class ConwayMaxwellPoisson(Dispersed):
    """Conway–Maxwell–Poisson law, p(k) ∝ (μ^k / k!)^ν.

    The usual rate is λ = μ^ν. ν = 1 gives the Poisson law, ν > 1 less dispersion, ν < 1 more;
    the mode is ⌊μ⌋ and the variance about μ/ν.

    Parameters
    ----------
    mu : array-like of shape (n,)
        μ, from 1e-100 to 1e15.
    nu : array-like of shape (n,)
        ν, from 1e-15 to 1e15.

    Raises
    ------
    InputError
        If a parameter lies outside its domain.

    References
    ----------
    Guikema and Goffelt (2008), A flexible count data regression model for risk analysis.

    Examples
    --------
    >>> ConwayMaxwellPoisson([3.0], [1.0]).mean().round(9).tolist()
    [3.0]
    """

    def __init__(self, mu: npt.ArrayLike, nu: npt.ArrayLike) -> None:
        mean, power = checked_parameters(mu, nu, "nu")
        self._family = Family(mean, power, power)


@final
class FallingCounts(Law):
    """Laws of top − K, K a Conway–Maxwell–Poisson count: p(k) ∝ (μᵏ/k!)^ν.

    Parameters of a law: ``mu`` (0 or more), ``nu`` (above 0) and ``top`` (whole).
    """

    __slots__ = ()
    name = "falling_counts"
    discrete = True
    parameters = ("mu", "nu", "top")

    def check(self, parameters: Parameters) -> None:
        """Raise `InputError` where a parameter leaves its domain."""
        if (parameters["top"] != np.floor(parameters["top"])).any():
            raise InputError(f"top must be whole, got {parameters['top']}")
        self._law(parameters)

    def cdf(self, y: FloatArray, parameters: Parameters) -> FloatArray:
        """P(Y ≤ y)."""
        k, law = self._below(y, parameters)
        return np.asarray(1.0 - law.cdf(np.ravel(np.ceil(k)) - 1.0).reshape(k.shape))

    def quantile(self, level: FloatArray, parameters: Parameters) -> FloatArray:
        """Smallest y with P(Y ≤ y) ≥ level."""
        # y = top − k with k the largest that leaves P(K < k) ≤ 1 − level.
        law = self._law(parameters)
        fallen = law.quantile(1.0 - level)
        kept = law.cdf(fallen) <= 1.0 - level
        return np.asarray(parameters["top"] - fallen - kept)

    def log_density(self, y: FloatArray, parameters: Parameters) -> FloatArray:
        """Log probability; −∞ where y cannot be."""
        k, law = self._below(y, parameters)
        return np.asarray(law.log_pmf(np.ravel(k)).reshape(k.shape))

    def mean(self, parameters: Parameters) -> FloatArray:
        """Expected value."""
        return np.asarray(parameters["top"] - self._law(parameters).mean())

    def sd(self, parameters: Parameters) -> FloatArray:
        """Standard deviation."""
        return np.asarray(np.sqrt(self._law(parameters).variance()))

    def sample(self, rng: np.random.Generator, size: int, parameters: Parameters) -> FloatArray:
        """Draws, shape (n, size)."""
        return np.asarray(parameters["top"][:, None] - self._law(parameters).sample(rng, size))

    @staticmethod
    def _law(parameters: Parameters) -> ConwayMaxwellPoisson:
        mu, nu = np.broadcast_arrays(parameters["mu"], parameters["nu"])
        return ConwayMaxwellPoisson(np.ravel(mu), np.ravel(nu))

    def _below(
        self, y: FloatArray, parameters: Parameters
    ) -> tuple[FloatArray, ConwayMaxwellPoisson]:
        """What is left to the top, and one law for each number of it."""
        y, mu, nu, top = np.broadcast_arrays(
            y, parameters["mu"], parameters["nu"], parameters["top"]
        )
        return np.asarray(top - y), self._law({"mu": mu, "nu": nu})


def wave_law(x: FloatArray) -> Distribution:
    """The law of y on the discrete wave: 30 − K, p(k) ∝ (λᵏ/k!)⁵ with λ = 10 sin x + 10."""
    rate = np.maximum(10.0 * np.sin(np.ravel(x)) + 10.0, _TINY)
    return Distribution(FallingCounts(), {"mu": rate, "nu": 5.0, "top": _TOP})


def draw_wave(seed: int, rows: int) -> tuple[FloatArray, FloatArray, np.random.Generator]:
    """Inputs uniform on (0, 2π) and outcomes of the discrete wave, and the generator after them."""
    rng = child(seed, "discrete wave")
    x = rng.uniform(0.0, TAU, rows)
    return x, wave_law(x).sample(rng, 1)[:, 0], rng


def law_distance(first: PredictiveLaw, second: PredictiveLaw, gamma: float) -> FloatArray:
    """Exact distance of two laws of one y in each row, in the space of a Gaussian kernel.

    ‖μ₁ − μ₂‖ with μ the mean embedding of a law under κ(a, b) = exp(−γ(a − b)²): the quantity
    that a conditional congruence error estimates, when λ falls to 0 and the reference grows.
    """
    checked(gamma, Positive, "gamma")
    if len(first) != len(second):
        raise InputError(f"second must have {len(first)} rows, got {len(second)}")
    left, right = _atoms(first), _atoms(second)
    mean, spread = (np.concatenate(pair, axis=1) for pair in zip(left[:2], right[:2], strict=True))
    weight = np.concatenate([left[2], -right[2]], axis=1)
    squares = np.empty(len(mean))
    for rows in row_blocks(len(mean), mean.shape[1] ** 2):
        gap = mean[rows, :, None] - mean[rows, None, :]
        wide = 1.0 + 2.0 * gamma * (spread[rows, :, None] ** 2 + spread[rows, None, :] ** 2)
        kernel = np.exp(-gamma * gap**2 / wide) / np.sqrt(wide)
        squares[rows] = np.einsum("ia,iab,ib->i", weight[rows], kernel, weight[rows])
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


def _atoms(predictive: PredictiveLaw) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means, sds and weights of what each row's law is made of, each of shape (n, a)."""
    if isinstance(predictive, Normals) and predictive.outputs == 1:
        return predictive.mean, predictive.sd, np.ones_like(predictive.mean)
    if isinstance(predictive, Mixtures):
        return predictive.means, predictive.sds, predictive.weights
    if isinstance(predictive, Support):
        values = np.broadcast_to(predictive.values, predictive.probabilities.shape)
        return values, np.zeros(values.shape), predictive.probabilities
    raise InputError(
        f"predictive must be Normals of one output, Mixtures or Support, got "
        f"{type(predictive).__name__}"
    )


@final
@frozen(eq=False)
class PixelPCA:
    """Principal components of images (or rows), fitted once."""

    center: FloatArray
    axes: FloatArray

    @classmethod
    def of(cls, x: AnyArray, components: int = COMPONENTS) -> PixelPCA:
        """Fit."""
        check_whole(components, "components")
        flat = plain_rows(x)
        if len(flat) < 2:
            raise InputError(f"x must have at least 2 rows, got {len(flat)}")
        from sklearn.decomposition import PCA

        most = min(int(components), min(flat.shape))
        solver = "full" if most >= 0.5 * min(flat.shape) else "randomized"
        fitted = PCA(most, svd_solver=solver, random_state=0).fit(flat)
        return cls(np.asarray(fitted.mean_), np.asarray(fitted.components_.T))

    def __call__(self, x: AnyArray) -> FloatArray:
        """Scores of rows, shape (n, e)."""
        flat = plain_rows(x)
        if flat.shape[1] != len(self.center):
            raise InputError(f"x must have {len(self.center)} numbers per row, got {flat.shape[1]}")
        scores: FloatArray = (flat - self.center) @ self.axes
        return scores


@final
@frozen(eq=False)
class WordComponents:
    """Components of the words of texts, weighted by how rare they are; fitted once."""

    fitted: Any

    @classmethod
    def of(cls, x: AnyArray, components: int = COMPONENTS) -> WordComponents:
        """Fit: a singular value decomposition of TF-IDF weights, its first axes."""
        check_whole(components, "components")
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.pipeline import make_pipeline

        words = TfidfVectorizer(sublinear_tf=True, min_df=min(2, len(x)))
        counts = words.fit_transform(x.tolist())
        axes = TruncatedSVD(min(int(components), min(counts.shape) - 1), random_state=0)
        return cls(make_pipeline(words, axes.fit(counts)))

    def __call__(self, x: AnyArray) -> FloatArray:
        """Scores of texts, shape (n, e)."""
        return np.asarray(self.fitted.transform(np.asarray(x).tolist()), dtype=np.float64)


def components_of(x: AnyArray, components: int = COMPONENTS) -> Embedding:
    """Components of images (or rows), or of texts, fitted to some."""
    kind: type[PixelPCA | WordComponents] = PixelPCA if x.dtype.kind != "U" else WordComponents
    return kind.of(x, components)


def wave_task(seed: int = 0, *, rows: int = 1000) -> Task:
    """The discrete wave: 80 per cent to train on, 10 to choose the epoch by, 10 to judge by.

    Parameters
    ----------
    seed : int
        Fixes the data.
    rows : int
        Rows in all, at least 30.

    Raises
    ------
    InputError
        If there are fewer rows.

    Notes
    -----
    Of the authors of the double Poisson network; x is one column, and γ of x is 0.5, as in figure
    2 of Young et al. 2025.

    Examples
    --------
    >>> wave_task(rows=100).space.bandwidth
    0.5
    """
    check_whole(rows, "rows", 30)
    x, y, rng = draw_wave(seed, rows)
    order = rng.permutation(rows)
    parts = _cut(x[:, None], y, order, (int(0.8 * rows), int(0.9 * rows)))
    return Task.of(
        parts,
        name="discrete wave",
        units="counts",
        counts=True,
        space=Space(kernel="rbf", bandwidth=0.5),
        truth=wave_law,
        source="drawn",
    )


def array_task(
    name: str,
    x: AnyArray,
    y: npt.ArrayLike,
    *,
    counts: bool = False,
    units: str = "y",
    seed: int = 0,
    shares: Sequence[float] = (0.7, 0.1),
) -> Task:
    """A task of rows or images of one's own, split at random."""
    inputs, rows = np.asarray(x), len(x)
    cuts = (round(shares[0] * rows), round((shares[0] + shares[1]) * rows))
    if min(cuts[0], cuts[1] - cuts[0], rows - cuts[1]) < 2:
        raise InputError(f"shares must leave at least 2 of {rows} rows to each part, got {shares}")
    target = np.asarray(y, dtype=np.float64)
    if target.shape != (rows,):
        raise InputError(f"y must have shape ({rows},), got {target.shape}")
    parts = _cut(inputs, target, child(seed, "congruence split").permutation(rows), cuts)
    space = Space(_embedding(parts["train"].x))
    return Task.of(
        parts, name=name, units=units, counts=counts, space=space, images=inputs.ndim == 4
    )


def image_parts_task(
    name: str,
    parts: Mapping[str, Any],
    *,
    counts: bool,
    units: str,
    components: int = COMPONENTS,
    most: int | None = None,
) -> Task:
    """A task of images already split, embedded by principal components of the training part.

    A side of more than `most` pixels is first made smaller, by means over squares of pixels.
    """
    space = Space(_components(parts["train"].x, components, most))
    return Task.of(parts, name=name, units=units, counts=counts, space=space, images=True)


_SIMULATED: Final[Mapping[str, Any]] = {"recipe": "direct"}
"""Cells as the simulator draws them: their count is a matter of light, which components hold."""


def cells_task(
    seed: int = 0,
    *,
    train: int = 2000,
    val: int = 500,
    test: int = 1000,
    folder: str | None = None,
    source: Source | None = None,
    shortcut: bool = True,
    components: int = COMPONENTS,
) -> Task:
    """Fluorescent cells, to be counted; see `howsure_studies.tasks.images.image_task`."""
    sizes = {"train": train, "val": val, "test": test}
    own: dict[str, Any] = {"folder": folder, "source": source, "shortcut": shortcut}
    if image_task("cells", **own).source == "drawn":
        own |= _SIMULATED
    own |= {"seed": seed, **sizes}
    return photographs_task("cells", counts=True, components=components, units="cells", **own)


def photographs_task(
    name: str,
    *,
    counts: bool,
    components: int,
    units: str | None = None,
    part: str | None = None,
    **options: Any,
) -> Task:
    """Images of `howsure_studies.tasks.images.image_task`, with one of its tests, or the main."""
    images = image_task(name, **options)
    tested = images.test if part is None else images.part(part)
    parts = {"train": images.train, "val": images.val, "test": tested}
    own = images.units if units is None else units
    return image_parts_task(
        name, parts, counts=counts, units=own, components=components, most=_MOST_SIDE
    )


def blood_task(folder: str | None = None, *, shrink: int = 5, components: int = COMPONENTS) -> Task:
    """Pictures of blood with red cells to be counted; see `read_blood`."""
    parts = read_blood(folder, shrink=shrink)
    return image_parts_task("blood", parts, counts=True, units="red cells", components=components)


def blood_anew_task(
    seed: int = 0,
    *,
    folder: str | None = None,
    shrink: int = 5,
    train: int = 160,
    val: int = 44,
    components: int = COMPONENTS,
) -> Task:
    """The same pictures split at random, so that more are left to judge by."""
    given = list(read_blood(folder, shrink=shrink).values())
    check_whole(train + val, "train + val", 4, sum(map(len, given)) - 2)
    parts = _cut(
        np.concatenate([part.x for part in given]),
        np.concatenate([part.y for part in given]),
        child(seed, "congruence split").permutation(sum(map(len, given))),
        (train, train + val),
    )
    return image_parts_task("blood", parts, counts=True, units="red cells", components=components)


def digits_task(
    seed: int = 0,
    *,
    folder: str | None = None,
    rows: int | None = None,
    most: float = 60.0,
    components: int = COMPONENTS,
) -> Task:
    """Rotated digits, whose angle is to be predicted; see `rotated_digits`."""
    parts = rotated_digits(folder, rows=rows, most=most, seed=seed)
    return image_parts_task("digits", parts, counts=False, units="degrees", components=components)


def docstrings_task(
    seed: int = 0,
    *,
    python: str | None = None,
    train: int = 1200,
    val: int = 200,
    test: int = 400,
    components: int = COMPONENTS,
) -> Task:
    """Docstrings, and how long the functions are that they describe; see `read_docstrings`."""
    parts = read_docstrings(seed, python=python, train=train, val=val, test=test)

    @cache
    def fitted() -> Embedding:
        return components_of(parts["train"].x, components)

    space = Space(lambda rows: fitted()(rows))
    return Task.of(parts, name="docstrings", units="log characters", space=space)


TASKS: Final[Mapping[str, Callable[..., Task]]] = {
    "discrete-wave": wave_task,
    "cells": cells_task,
    "digits": digits_task,
    "blood": blood_task,
    "blood-anew": blood_anew_task,
    "docstrings": docstrings_task,
}
"""Makers of tasks by name; all but ``blood`` take a seed."""
TEXTS: Final = ("docstrings",)
"""Those whose inputs are texts."""


def congruence_task(name: str, *, seed: int = 0, **options: Any) -> Task:
    """A task by name, with the options of its maker."""
    check_known(name, TASKS, "task")
    given = options if name == "blood" else {"seed": seed, **options}
    task: Task = call_with_options(TASKS[name], given, f"task {name!r}")
    return task


def _components(x: AnyArray, components: int, most: int | None) -> Embedding:
    """Principal components of images, fitted when they are first asked for."""
    longest = max(x.shape[1:3])
    width = 1 if most is None else -(-longest // most)

    @cache
    def fitted() -> PixelPCA:
        return PixelPCA.of(_coarse(x, width), components)

    check_whole(components, "components")
    return lambda rows: fitted()(_coarse(np.asarray(rows), width))


def _coarse(x: AnyArray, width: int) -> AnyArray:
    """Means over squares of so many pixels a side; what is left at the far edges is dropped."""
    if width == 1:
        return x
    n, high, wide, channels = x.shape
    rows, columns = high // width, wide // width
    cut = x[:, : rows * width, : columns * width]
    squares = cut.reshape(n, rows, width, columns, width, channels)
    return np.asarray(squares.mean(axis=(2, 4), dtype=np.float64))


def _embedding(x: AnyArray) -> Embedding:
    if x.ndim > 2:
        return PixelPCA.of(x)
    sd = plain_rows(x).std(axis=0, ddof=1)
    unit = np.where(sd > 0, sd, 1.0)
    return lambda rows: np.asarray(plain_rows(rows) / unit)


def _cut(x: AnyArray, y: FloatArray, order: IntArray, cuts: Sequence[int]) -> dict[str, Any]:
    """The rows of each part, in a random order."""
    return {
        name: Part(x=x[rows], y=y[rows], ids=rows.astype(np.str_))
        for name, rows in zip(PARTS, np.split(order, list(cuts)), strict=True)
    }


NAMED: Final[Mapping[str, str]] = {"wave": "discrete-wave", **{name: name for name in TASKS}}
"""Names of tasks by those that plans have for them."""


def task_identity(
    label: str, entry: Mapping[str, Any], folder: Path, *, seed: int, components: int
) -> tuple[dict[str, Any], dict[str, str]]:
    """What decides a task, and where its files lie."""
    if ("world" in entry) == ("table" in entry):
        raise InputError(f"world {label!r} must have one of world and table, got {list(entry)}")
    if "encoder" in entry:
        bare = {key: value for key, value in entry.items() if key != "encoder"}
        identity, files = task_identity(label, bare, folder, seed=seed, components=components)
        kind = input_kind(identity)
        if kind is None:
            raise InputError(
                f"encoder of world {label!r} must be left out where x is a vector, "
                f"got {entry['encoder']!r}"
            )
        check_encoder(entry["encoder"], label, kind, "encoder")
        return {**identity, "encoder": entry["encoder"]}, files
    if "table" in entry:
        return _table_identity(label, entry, folder, seed)
    name = entry["world"]
    known = (*NAMED, *PHOTOGRAPHS)
    if name not in known:
        raise InputError(unknown(str(name), known, f"world {label!r}"))
    own = {key: value for key, value in entry.items() if key not in ("world", "folder")}
    files = {"folder": absolute(folder, entry["folder"])} if "folder" in entry else {}
    given, usual = {**own, **files}, {"seed": seed, "components": components}
    takes: Collection[str] = usual
    if name in PHOTOGRAPHS:
        check_options(label, entry, (*_PHOTOGRAPHS, *REAL[name].choices))
        task = image_task(name, seed=seed, **{key: given[key] for key in given if key != "part"})
        if "part" in given:
            check_known(given["part"], task.tests, f"part of world {label!r}")
    else:
        takes = signature(TASKS[NAMED[name]]).parameters
        check_options(label, entry, ("world", *sorted(set(takes) - set(usual))))
        if name in _REAL and not files:
            find_folder(*_REAL[name])
        if name == "cells":
            own = settled(image_task(name, **given), {**own, **_SIMULATED})
        if name in TEXTS:
            own["data"] = _texts_hash(name, canonical({**own, **usual}))
            own.pop("python", None)  # which says no more than the texts themselves
    used = {key: value for key, value in usual.items() if key in takes}
    return {"task": NAMED.get(name, name), **own, **used}, files


def make_task(identity: Mapping[str, Any], files: Mapping[str, str]) -> Task:
    """The task of an identity; the last is remembered, for drawing and components take time."""
    own = {key: value for key, value in identity.items() if key != "encoder"}
    return _make_task(canonical(own), canonical(files))


def is_counted(identity: Mapping[str, Any]) -> bool:
    """Whether y of a task counts something, so that heads for counts fit it."""
    measured = (None, "digits", "eva", *TEXTS)
    return bool(identity.get("counts", identity.get("task") not in measured))


def is_simulated(identity: Mapping[str, Any]) -> bool:
    """Whether the law of y is known."""
    return identity.get("task") == "discrete-wave"


def source_of(identity: Mapping[str, Any]) -> str:
    """Whether a task is drawn or read from its original; of a table of one's own, neither."""
    if "task" not in identity:
        return ""
    if is_simulated(identity):
        return "drawn"
    if identity["task"] in TEXTS:
        return "original"
    return settled_source(identity["task"], identity)


def input_kind(identity: Mapping[str, Any]) -> Kind | None:
    """Whether inputs are images or texts; None where they are vectors."""
    if "task" not in identity or is_simulated(identity):
        return None
    return "text" if identity["task"] in TEXTS else "image"


def check_encoder(encoder: str, label: str, kind: Kind | None, option: str = "embedding") -> None:
    """Refuse an encoder that does not take what the inputs of a world are."""
    meant = encoder_named(encoder, option)
    if isinstance(meant, str) and kind is None:
        raise InputError(
            f"{option} {encoder!r} is a model of texts or images, but x of world {label!r} is "
            "a vector: set embedding='task' for that world"
        )
    if isinstance(meant, Transformer) and kind == "image":
        raise InputError(
            f"{option} {encoder!r} must be a callable that takes a list of images for world "
            f"{label!r}, got an object with a method transform"
        )


@cache
def _texts_hash(name: str, options: str) -> str:
    """What ties a task of texts to the very texts, which are not the same on every machine."""
    task: Task = TASKS[name](**json.loads(options))
    parts = [task.part(part) for part in PARTS]
    return numbers_hash(*(part.x for part in parts), *(part.y for part in parts))


@lru_cache(maxsize=1)
def _make_task(identity_text: str, files_text: str) -> Task:
    identity, files = json.loads(identity_text), json.loads(files_text)
    if "task" not in identity:
        return _table_task(identity, Path(files["table"]))
    own = {key: value for key, value in identity.items() if key != "task"} | files
    name = identity["task"]
    if name == "cells":
        own["source"] = settled_source(name, own)
    if name in PHOTOGRAPHS:
        return photographs_task(name, counts=is_counted(identity), **own)
    if name in TEXTS and own.pop("data") != _texts_hash(name, canonical(own)):
        raise InputError(f"texts of {name!r} are others than when the plan was read: run it again")
    return congruence_task(name, **own)


def _table_identity(
    label: str, entry: Mapping[str, Any], folder: Path, seed: int
) -> tuple[dict[str, Any], dict[str, str]]:
    check_options(label, entry, ("table", *_TABLE))
    if "target" not in entry:
        raise InputError(f"world {label!r} must name its target column, got none")
    path = Path(absolute(folder, entry["table"]))
    counts = entry.get("counts", False)
    if not isinstance(counts, bool):
        raise InputError(f"counts of world {label!r} must be true or false, got {counts!r}")
    given = {key: value for key, value in entry.items() if key != "table"} | {"counts": counts}
    data = numbers_hash(*_columns(path, given))
    identity = {**given, "seed": seed, "data": data}
    _table_task(identity, path)  # so that what breaks a rule is told before anything runs
    return identity, {"table": str(path)}


def _table_task(identity: Mapping[str, Any], path: Path) -> Task:
    x, y = _columns(path, identity)
    if numbers_hash(x, y) != identity["data"]:
        raise InputError(f"table {str(path)!r} has changed since the plan was read: run it again")
    names = ("counts", "units", "seed", "shares")
    options = {name: identity[name] for name in names if name in identity}
    return array_task(path.name.partition(".")[0], x, y, **options)


def _columns(path: Path, given: Mapping[str, Any]) -> tuple[FloatArray, FloatArray]:
    return complete_numbers(path, given["target"], given.get("features"))
