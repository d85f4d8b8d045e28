"""Case study: heads for counts on the discrete wave, where the variance is a fifth of Poisson's.

x is uniform on (0, 2π) and y = 30 − K, where K has p(k) ∝ (λᵏ/k!)⁵ with λ = 10 sin x + 10. Four
networks that differ by their head alone say what they believe of y: Poisson, negative binomial,
Gaussian, double Poisson. Beside them stands the law that the data came from. All networks of one
shape, whatever their head and their set of data, train as one.

`python examples/congruence_heads.py --help` lists what can be asked (needs howsure[deep]).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.optional import require
from howsure.core.rng import child
from howsure.methods.deep import DoublePoisson, Head, Member, Network, Training, head_named, train
from howsure.methods.deep.outputs import outputs
from howsure.metrics.calibration import calibration_error
from howsure.metrics.congruence import CongruenceReference, Draws, Support, null_reference
from howsure.metrics.evaluate.congruence import belief_of
from howsure.predictions import CountFamily, Distribution, EvalSet
from howsure.predictions.counts import ConwayMaxwellPoisson
from howsure.predictions.counts import DoublePoisson as DoublePoissonLaw

FloatArray = npt.NDArray[np.float64]

ROWS, TOP, GAMMA = 1000, 30.0, 0.5
WIDEST = 150.0
HEADS = ("poisson", "negative_binomial", "gaussian", "double_poisson")
SCORES = ("NLL", "NLL published", "ECE", "ECE exact", "CCE", "CCE exact", "CCE null")
PUBLISHED: Mapping[str, Mapping[str, float]] = {
    "Poisson": {"NLL published": 2.461, "ECE": 0.135, "CCE": 0.120},
    "negative binomial": {"NLL published": 2.447, "ECE": 0.128, "CCE": 0.118},
    "Gaussian": {"NLL published": 1.432, "ECE": 0.059, "CCE": 0.028},
    "double Poisson": {"NLL published": 1.448, "ECE": 0.119, "CCE": 0.029},
}
STUDY = Training(
    layers=(128, 128, 128, 64), weight_decay=1e-5, epochs=200, schedule="cosine", keep="best"
)
SETTINGS: Mapping[str, Training] = {
    "ours": STUDY,
    "raw scale": replace(STUDY, standardise=False, initial="torch"),
    "cold start": replace(STUDY, warm=False),
    "torch's first weights": replace(STUDY, initial="torch"),
    "last epoch": replace(STUDY, keep="last"),
    "all as published": replace(STUDY, standardise=False, warm=False, initial="torch"),
}


@dataclass(frozen=True, slots=True, eq=False)
class Wave:
    """One set of data: 800 rows to train on, 100 to choose the epoch by, 100 to judge by."""

    seed: int
    x: FloatArray
    y: FloatArray
    parts: tuple[npt.NDArray[np.int64], ...]

    @classmethod
    def drawn(cls, seed: int, rows: int = ROWS) -> Wave:
        """The data of a seed."""
        rng = child(seed, "discrete wave")
        x = rng.uniform(0.0, 2.0 * np.pi, rows)
        y = TOP - below(x).sample(rng, 1)[:, 0]
        first, second = int(0.8 * rows), int(0.9 * rows)
        return cls(seed, x, y, tuple(np.split(rng.permutation(rows), [first, second])))

    def part(self, which: int) -> tuple[FloatArray, FloatArray]:
        """Inputs, as a column, and targets of one part."""
        rows = self.parts[which]
        return self.x[rows][:, None], self.y[rows]

    def member(self) -> Member:
        """A network to be trained on it."""
        return Member(*self.part(0), seed=self.seed, held=self.part(1))


def below(x: FloatArray) -> ConwayMaxwellPoisson:
    """The law of 30 − y at x."""
    rate = np.maximum(10.0 * np.sin(x) + 10.0, 1e-9)
    return ConwayMaxwellPoisson(rate, np.full(len(x), 5.0))


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """What is believed of the rows of a test set: all that the scores need."""

    nll: float
    nll_published: float
    pit: FloatArray
    pit_left: FloatArray
    exact: Any
    sampler: Any


def believed(head: Head, network: Network, x: FloatArray) -> Distribution:
    """The laws that a trained network states."""
    if network.failure is not None:
        raise RuntimeError(f"{head.title}: {network.failure}")
    values = outputs([network], x)[0]
    found = head.belief(values, network.scale.y_center, network.scale.y_unit)
    assert isinstance(found, Distribution)
    return found


def judged(head: Head, law: Distribution, x: FloatArray, y: FloatArray) -> Judged:
    """A head's laws. Published likelihoods of the double Poisson law lack its constant."""
    stated = law.log_density(y)
    published = stated
    if isinstance(head, DoublePoisson) and isinstance(law.law, CountFamily):
        frozen = law.law.frozen(law.parameters)
        assert isinstance(frozen, DoublePoissonLaw)
        published = frozen.log_pmf(y, "none")
    held = EvalSet.checked(y, law, embedding=x)
    return Judged(
        nll=-float(stated.mean()),
        nll_published=-float(published.mean()),
        pit=law.cdf(y),
        pit_left=law.cdf_left(y),
        exact=None if wide(law) else belief_of(held, "exact"),
        sampler=law.sample,
    )


def wide(law: Distribution) -> bool:
    """Whether laws of counts span so many that their exact embedding would take minutes.

    Heads that were hardly trained state such laws.
    """
    ends = law.quantile([1e-12, 1.0 - 1e-12])
    return law.discrete and float((ends[:, 1] - ends[:, 0]).max()) > WIDEST


def truth(x: FloatArray, y: FloatArray) -> Judged:
    """The law that the data came from."""
    law = below(x[:, 0])
    values, shares = law.support()
    nll = -float(law.log_pmf(TOP - y).mean())
    return Judged(
        nll=nll,
        nll_published=nll,
        pit=1.0 - law.cdf(TOP - y - 1.0),
        pit_left=1.0 - law.cdf(TOP - y),
        exact=Support(TOP - values, shares),
        sampler=lambda rng, size: TOP - law.sample(rng, size),
    )


@dataclass(frozen=True, slots=True)
class Effort:
    """How often the congruence error is sampled, bootstrapped, and drawn under its null."""

    samplings: int = 5
    bootstraps: int = 10
    replicates: int = 49


def scores(found: Judged, x: FloatArray, y: FloatArray, seed: int, effort: Effort) -> FloatArray:
    """The numbers named in `SCORES`.

    ECE: 50 levels, power 1, weights by frequency, from P(Y ≤ y) as published and, exact, spread
    over the cell of a discrete law. CCE: the test set, bootstrapped, beside 5 draws a row; exact:
    the test set as it is beside the laws themselves, with what a right model would score; NaN
    for laws that span too many counts.
    """
    options: dict[str, Any] = {"levels": 50, "weighting": "frequency"}
    plain = calibration_error(found.pit, **options).value
    exact = calibration_error(found.pit, left=found.pit_left, **options).value
    rng, drawn = child(seed, "wave scores"), []
    for _ in range(effort.samplings):
        samples = found.sampler(rng, 5)
        for _ in range(effort.bootstraps):
            rows = rng.integers(len(y), size=len(y))
            reference = CongruenceReference(x[rows], y[rows], Draws(samples[rows]), bandwidth=GAMMA)
            drawn.append(reference.score(x).values.mean())
    right = (np.nan, np.nan)
    if found.exact is not None:
        whole = CongruenceReference(x, y, found.exact, bandwidth=GAMMA)
        null = null_reference(whole, replicates=effort.replicates, seed=seed)
        right = (null.observed, null.expected)
    return np.array(
        [
            found.nll,
            found.nll_published,
            plain,
            exact,
            np.mean(drawn),
            *right,
        ]
    )


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """One setting: scores of each head, and of the truth, for each set of data.

    Attributes
    ----------
    name : str
    table : dict of str to ndarray of float, shape (seeds, scores)
    kept : dict of str to list of int
        Epochs that were kept.
    networks : dict of str to list of Network
    seconds : float
        Training alone.
    """

    name: str
    table: dict[str, FloatArray]
    kept: dict[str, list[int]]
    networks: dict[str, list[Network]]
    seconds: float

    def mean(self, head: str, score: str) -> float:
        """Mean over the sets of data."""
        return float(self.table[head][:, SCORES.index(score)].mean())

    def text(self) -> str:
        """The numbers as plain text."""
        head = "".join(f"{score:>17}" for score in SCORES)
        lines = [f"{self.name} (training {self.seconds:.0f} s)", f"  {'':<18}{head}"]
        for name, numbers in self.table.items():
            spread = numbers.std(axis=0, ddof=1) if len(numbers) > 1 else np.full(len(SCORES), 0.0)
            cells = zip(numbers.mean(axis=0), spread, strict=True)
            lines.append(f"  {name:<18}" + "".join(f"  {m:7.3f} ± {s:5.3f}" for m, s in cells))
            if name in PUBLISHED:
                known = [PUBLISHED[name].get(score) for score in SCORES]
                cells_ = "".join(f"{'' if v is None else f'({v:.3f})':>17}" for v in known)
                lines.append(f"  {'  published':<18}{cells_}")
        return "\n".join(lines)


def run(name: str, training: Training, waves: Sequence[Wave], effort: Effort) -> Result:
    """Train all heads on all sets of data at once, and judge them."""
    pairs = [(head_named(head), wave) for head in HEADS for wave in waves]
    begun = time.perf_counter()
    trained = train([wave.member() for _, wave in pairs], [head for head, _ in pairs], training)
    seconds = time.perf_counter() - begun
    table: dict[str, list[FloatArray]] = {}
    kept: dict[str, list[int]] = {}
    networks: dict[str, list[Network]] = {}
    for (head, wave), network in zip(pairs, trained, strict=True):
        x, y = wave.part(2)
        found = judged(head, believed(head, network, x), x, y)
        table.setdefault(head.title, []).append(scores(found, x, y, wave.seed, effort))
        kept.setdefault(head.title, []).append(network.kept)
        networks.setdefault(head.title, []).append(network)
    for wave in waves:
        x, y = wave.part(2)
        right = scores(truth(x, y), x, y, wave.seed, effort)
        table.setdefault("the truth", []).append(right)
    stacked = {key: np.stack(rows) for key, rows in table.items()}
    return Result(name, stacked, kept, networks, seconds)


def draw(folder: Path, result: Result, wave: Wave) -> None:
    """Above: what each head believes of the first test set. Below: its congruence error over x."""
    matplotlib = require("matplotlib.figure", extra="plots")
    sheet = matplotlib.Figure(figsize=(12.0, 5.0), layout="constrained", dpi=72)
    panels = sheet.subplots(2, len(HEADS), sharex=True, sharey="row")
    grid = np.linspace(0.0, 2.0 * np.pi, 200)[:, None]
    x, y = wave.part(2)
    for column, name in zip(panels.T, HEADS, strict=True):
        head = head_named(name)
        network = result.networks[head.title][0]
        law = believed(head, network, grid)
        lower, upper = law.interval(0.9)
        column[0].fill_between(grid[:, 0], lower, upper, color="C0", alpha=0.25, linewidth=0)
        column[0].plot(grid[:, 0], law.point(), color="C0")
        column[0].plot(x[:, 0], y, ".", color="0.3", markersize=3)
        column[0].set_title(head.title, fontsize=9)
        at_rows = believed(head, network, x)
        if wide(at_rows):
            continue
        belief = belief_of(EvalSet.checked(y, at_rows, embedding=x), "exact")
        found = null_reference(
            CongruenceReference(x, y, belief, bandwidth=GAMMA), grid, replicates=49
        )
        column[1].plot(grid[:, 0], found.point_observed, color="C0")
        column[1].plot(grid[:, 0], found.point_expected, color="0.5", dashes=(3, 2))
    panels[0, 0].set_ylabel("y: mean, 90 %, test rows", fontsize=8)
    panels[1, 0].set_ylabel("CCE at x (grey: a right model)", fontsize=8)
    sheet.savefig(folder / "heads-wave.png")


def main(
    seeds: int = 3,
    settings: Sequence[str] = ("ours",),
    *,
    quick: bool = False,
    folder: Path | None = None,
) -> Mapping[str, Result]:
    """Train and judge under each setting, on as many sets of data; draw the first into a folder.

    Quick: a few epochs and few draws, to see that it runs.
    """
    effort = Effort(1, 2, 4) if quick else Effort()
    waves = [Wave.drawn(seed) for seed in range(seeds)]
    results = {}
    for name in settings:
        training = replace(SETTINGS[name], epochs=6) if quick else SETTINGS[name]
        results[name] = run(name, training, waves, effort)
    if folder is not None:
        draw(folder, next(iter(results.values())), waves[0])
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="sets of data")
    parser.add_argument(
        "--settings", nargs="+", choices=[*SETTINGS, "all"], default=["ours"], help="of training"
    )
    parser.add_argument("--quick", action="store_true", help="a few epochs, to see that it runs")
    parser.add_argument("--plot", type=Path, metavar="FOLDER", help="draw here")
    given = parser.parse_args()
    wanted = list(SETTINGS) if "all" in given.settings else given.settings
    start = time.perf_counter()
    for place, setting in enumerate(wanted):
        where = given.plot if place == 0 else None
        (outcome,) = main(given.seeds, [setting], quick=given.quick, folder=where).values()
        print(outcome.text(), end="\n\n", flush=True)
    print(f"{time.perf_counter() - start:.0f} s in all")
