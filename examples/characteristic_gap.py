"""Case study: a gap in the training data, and what the characteristics curve makes of it.

The model sees x in [-4, -1] and [1, 4] and is asked over [-4, 4]. Its uncertainty grows in the gap,
so wide bands are spent where they are needed; but each band outside the gap is then scaled along
with them. The curve shows at which miss rates that pays.

Two models: a bootstrap ensemble of small networks (scikit-learn), and a Bayesian network sampled by
NUTS (needs howsure[bayes]). `python examples/characteristic_gap.py --help` lists what can be asked.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import BaggingRegressor
from sklearn.neural_network import MLPRegressor

from howsure.core.optional import require
from howsure.core.records import Table
from howsure.core.rng import child
from howsure.figures import Axis, Figure, Layer, Mark, plot
from howsure.metrics.characteristic import (
    AreaRequest,
    Bootstrapped,
    CharacteristicCurve,
    PerfectGain,
    bands_from_sd,
    bootstrap_curve,
    characteristic_curve,
    gain_of_perfect_model,
)

FloatArray = npt.NDArray[np.float64]
Model = Literal["ensemble", "network"]
MODELS: tuple[Model, ...] = ("ensemble", "network")

LOW = (0.0, 0.5)
POINTS = (0.2, 0.7)
NOISE = 0.1
HIDDEN = 20
PRIOR = 2.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """One gain: measured, with its bootstrap error, and what a perfect model would show."""

    label: str
    gain: Bootstrapped
    perfect: PerfectGain


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Study:
    """What the curve says of one model.

    Attributes
    ----------
    model : str
        Its name.
    curve : CharacteristicCurve
        Bandwidth against miss rate.
    gains : tuple of Found
        Over all miss rates; then over the low ones, in both readings of a partial area.
    crossing : Bootstrapped
        The miss rate below which the model needs less bandwidth than a constant band.
    notes : str
        How the fit went.
    """

    model: str
    curve: CharacteristicCurve
    gains: tuple[Found, ...]
    crossing: Bootstrapped
    notes: str = ""

    def table(self, points: Sequence[float]) -> str:
        """The numbers as plain text, with the bandwidth at some miss rates."""
        lines = [f"{self.model}  {self.notes}".rstrip()]
        for found in self.gains:
            gain, perfect = found.gain, found.perfect
            lines.append(
                f"  gain, {found.label:<24}{gain.value:7.1f} ± {gain.standard_error:4.1f} %   "
                f"perfect model {perfect.value:6.1f} [{perfect.lower:.1f}, {perfect.upper:.1f}] %"
            )
        cross = self.crossing
        lines.append(
            f"  better below the miss rate     {cross.value:6.3f} ± {cross.standard_error:.3f}   "
            f"{cross.confidence:.0%} interval [{cross.lower:.3f}, {cross.upper:.3f}]"
        )
        constant = self.curve.constant()
        for miss_rate in points:
            ours = self.curve.at(miss_rate=miss_rate).bandwidth
            theirs = constant.at(miss_rate=miss_rate).bandwidth
            lines.append(
                f"  bandwidth at miss rate {miss_rate:<7g} {ours:6.4g}   constant band {theirs:.4g}"
            )
        return "\n".join(lines)


def study_of(
    model: str,
    curve: CharacteristicCurve,
    *,
    low: tuple[float, float],
    draws: FloatArray | None = None,
    cluster: npt.ArrayLike | None = None,
    replicates: int = 200,
    seed: int = 0,
    notes: str = "",
) -> Study:
    """Gains, those of a perfect model, and the crossing.

    Without draws from the model, shape (n, m), the perfect model's gains are by permuted scales.
    Rows of one cluster are resampled together.
    """
    span = f"{low[0]:g} to {low[1]:g}"
    requests = {
        "all miss rates": AreaRequest(),
        f"{span}, under": AreaRequest(y_range=low),
        f"{span}, left": AreaRequest(y_range=low, reading="left"),
    }
    gains = tuple(
        Found(
            label=label,
            gain=bootstrap_curve(
                curve, request, replicates=replicates, cluster=cluster, seed=seed
            ).gain,
            perfect=gain_of_perfect_model(
                curve, request, draws=draws, replicates=replicates, seed=seed
            ),
        )
        for label, request in requests.items()
    )
    crossing = bootstrap_crossing(curve, cluster=cluster, replicates=replicates, seed=seed)
    return Study(model=model, curve=curve, gains=gains, crossing=crossing, notes=notes)


def crossing_of(curve: CharacteristicCurve, rows: npt.NDArray[np.int64] | None = None) -> float:
    """The miss rate below which the model needs less bandwidth than a constant band.

    Two empirical curves may cross many times in their tails. The bandwidth saved, summed over miss
    rates from 0 upwards, has one maximum: up to there the model is worth choosing. Where the curves
    cross once, it is the crossing. It is 0 where the model saves nothing from there on up, and 1
    where it saves throughout. Rows, with repeats, may be chosen.
    """
    bands = curve.bands
    chosen = slice(None) if rows is None else rows
    half_width = 0.5 * (bands.below + bands.above)[chosen]
    bandwidth = half_width.mean() * np.sort(bands.critical()[chosen])
    flat = bands.constant()
    constant = flat.mean_band() * np.sort(flat.critical()[chosen])
    saved = np.cumsum((constant - bandwidth)[::-1])
    best = int(np.argmax(saved))
    return 0.0 if saved[best] <= 0 else (best + 1) / len(saved)


def bootstrap_crossing(
    curve: CharacteristicCurve,
    *,
    cluster: npt.ArrayLike | None = None,
    replicates: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
) -> Bootstrapped:
    """`crossing_of` with its bootstrap error, over rows or clusters of rows."""
    labels = np.arange(curve.n) if cluster is None else np.asarray(cluster)
    names, member = np.unique(labels, return_inverse=True)
    groups = np.split(np.argsort(member, kind="stable"), np.cumsum(np.bincount(member))[:-1])
    rng = child(seed, "characteristic", "crossing")
    found = np.empty(replicates)
    for index in range(replicates):
        drawn = rng.integers(0, len(names), len(names))
        found[index] = crossing_of(curve, np.concatenate([groups[unit] for unit in drawn]))
    tail = 0.5 * (1.0 - confidence)
    lower, upper = np.quantile(found, [tail, 1.0 - tail])
    return Bootstrapped(
        value=crossing_of(curve),
        standard_error=float(found.std(ddof=1)),
        lower=float(lower),
        upper=float(upper),
        confidence=confidence,
        replicates=replicates,
        units=len(names),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Training rows on either side of the gap, and test rows over the whole range."""

    x: FloatArray
    y: FloatArray
    x_test: FloatArray
    y_test: FloatArray


def make_data(seed: int, *, rows: int = 80, test_rows: int = 2_000) -> Data:
    """cos 2x with noise. Its highest point lies in the gap, where no training row shows it."""
    rng = child(seed, "gap", "data")
    x = rng.uniform(1.0, 4.0, rows) * rng.choice([-1.0, 1.0], rows)
    x_test = rng.uniform(-4.0, 4.0, test_rows)
    y, y_test = (np.cos(2.0 * at) + NOISE * rng.normal(size=len(at)) for at in (x, x_test))
    return Data(x, y, x_test, y_test)


@dataclass(frozen=True, slots=True, eq=False)
class Functions:
    """What a model believes: functions at the test rows, one a column, and the noise of each."""

    values: FloatArray
    noise: FloatArray
    notes: str

    def curve(self, y: FloatArray) -> CharacteristicCurve:
        """Bands of one predictive standard deviation about the mean function."""
        sd = np.sqrt(self.values.var(axis=1) + np.mean(self.noise**2))
        return characteristic_curve(y, *bands_from_sd(self.values.mean(axis=1), sd))

    def draws(self, seed: int, limit: int) -> FloatArray:
        """Draws of all test rows at once: one function each, with its noise. Shape (n, draws).

        Rows of one draw share their function, so they err together in the gap, as the data do.
        """
        rng = child(seed, "gap", "draws")
        kept = np.linspace(0, len(self.noise) - 1, min(limit, len(self.noise))).astype(np.int64)
        values = self.values[:, kept]
        return values + self.noise[kept] * rng.normal(size=values.shape)


def fit_ensemble(data: Data, *, seed: int, quick: bool) -> Functions:
    """Small networks, each on a bootstrap sample; the noise from the rows it left out."""
    network = MLPRegressor(
        hidden_layer_sizes=(HIDDEN,), activation="tanh", solver="lbfgs", alpha=1e-3, max_iter=20_000
    )
    members = 20 if quick else 60
    bag = BaggingRegressor(network, n_estimators=members, oob_score=True, random_state=seed)
    bag.fit(data.x[:, None], data.y)
    values = np.stack([one.predict(data.x_test[:, None]) for one in bag.estimators_], axis=1)
    noise = float(np.median(np.abs(data.y - bag.oob_prediction_))) / 0.6745
    return Functions(values, np.full(members, noise), f"({members} members)")


def fit_network(data: Data, *, seed: int, quick: bool) -> Functions:
    """A Bayesian network by NUTS: Gaussian weights, and a noise level learnt with them."""
    draws, chains, depth = (150, 1, 6) if quick else (500, 2, 8)
    infer = require("numpyro.infer", extra="bayes")
    jax = require("jax", extra="bayes")
    chain = infer.MCMC(
        infer.NUTS(_network, max_tree_depth=depth),
        num_warmup=draws,
        num_samples=draws,
        num_chains=chains,
        chain_method="sequential",
        progress_bar=False,
    )
    chain.run(jax.random.key(seed), data.x, data.y)
    found = {
        name: np.asarray(value, dtype=np.float64) for name, value in chain.get_samples().items()
    }
    layers = (found["weight"], found["bias"], found["out"], found["level"])
    values = np.stack(
        [
            np.tanh(np.outer(data.x_test, weight) + bias) @ out + level
            for weight, bias, out, level in zip(*layers, strict=True)
        ],
        axis=1,
    )
    diverged = int(np.asarray(chain.get_extra_fields()["diverging"]).sum())
    notes = f"({chains} × {draws} draws, {diverged} divergent, worst split R̂ of the "
    notes += f"function {_worst_r_hat(values, chains):.2f})"
    return Functions(values, found["noise"], notes)


def _network(x: FloatArray, y: FloatArray) -> None:
    """One hidden layer of tanh units. The output's prior does not grow with their number."""
    numpyro = require("numpyro", extra="bayes")
    jnp = require("jax.numpy", extra="bayes")
    normal, half_normal = numpyro.distributions.Normal, numpyro.distributions.HalfNormal
    weight = numpyro.sample("weight", normal(0.0, PRIOR).expand([HIDDEN]))
    bias = numpyro.sample("bias", normal(0.0, PRIOR).expand([HIDDEN]))
    out = numpyro.sample("out", normal(0.0, PRIOR / HIDDEN**0.5).expand([HIDDEN]))
    level = numpyro.sample("level", normal(0.0, 1.0))
    noise = numpyro.sample("noise", half_normal(1.0))
    mean = jnp.tanh(x[:, None] * weight + bias) @ out + level
    numpyro.sample("y", normal(mean, noise), obs=y)


def _worst_r_hat(values: FloatArray, chains: int) -> float:
    """Split R̂ of the function at each test row: weights may swap places, the function may not."""
    diagnostics = require("numpyro.diagnostics", extra="bayes")
    by_chain = values.T.reshape(chains, -1, len(values))
    return float(np.max(diagnostics.split_gelman_rubin(by_chain)))


FITS = {"ensemble": fit_ensemble, "network": fit_network}


def main(
    seed: int = 0,
    models: Sequence[Model] = MODELS,
    *,
    quick: bool = False,
    figure: Path | None = None,
) -> tuple[Study, ...]:
    """Fit the models to one set of data, study their curves, and draw them into a file if asked."""
    data = make_data(seed)
    studies = []
    for model in models:
        functions = FITS[model](data, seed=seed, quick=quick)
        replicates = 50 if quick else 500
        studies.append(
            study_of(
                model,
                functions.curve(data.y_test),
                low=LOW,
                draws=functions.draws(seed, replicates),
                replicates=replicates,
                seed=seed,
                notes=functions.notes,
            )
        )
    if figure is not None:
        draw(figure, data, studies)
    return tuple(studies)


def repeat(times: int, models: Sequence[Model] = MODELS, *, quick: bool = False) -> str:
    """The same over many sets of data, as a plain table: what one set cannot tell."""
    titles = ("gain, all", f"gain to {LOW[1]:g}", "crossing")
    header = "".join(f"{title + ' (median, 5–95 %)':>34}" for title in titles)
    lines = [f"{'':<10}{header}{'pattern':>10}"]
    for model in models:
        rows = np.array(list(_repeats(times, model, quick)))
        middle, low, high = np.quantile(rows, [0.5, 0.05, 0.95], axis=0)
        cells = (
            f"{f'{m:.2f} [{a:.2f}, {b:.2f}]':>34}"
            for m, a, b in zip(middle, low, high, strict=True)
        )
        shown = (rows[:, 1] > np.maximum(rows[:, 0], 0)) & (rows[:, 2] > 0) & (rows[:, 2] < 1)
        lines.append(f"{model:<10}{''.join(cells)}{f'{shown.sum()}/{times}':>10}")
    return "\n".join(lines)


def _repeats(times: int, model: Model, quick: bool) -> Iterator[tuple[float, float, float]]:
    for seed in range(times):
        data = make_data(seed)
        curve = FITS[model](data, seed=seed, quick=quick).curve(data.y_test)
        yield curve.gain().value, curve.partial_gain(y_range=LOW).value, crossing_of(curve)


def draw(path: Path, data: Data, studies: Sequence[Study]) -> None:
    """One row a model: its bands, its curve, and the constant band, at two miss rates."""
    matplotlib = require("matplotlib.figure", extra="plots")
    sheet = matplotlib.Figure(figsize=(12.0, 3.6 * len(studies)), layout="constrained", dpi=72)
    rows = sheet.subplots(len(studies), 3, squeeze=False)
    for axes, study in zip(rows, studies, strict=True):
        constant = study.curve.constant()
        plot(bands_figure(study.model, data, study.curve), axes[0])
        plot([study.curve.drawn(model=study.model), operating_points(study)], axes[1])
        plot(bands_figure("constant band", data, constant), axes[2])
    sheet.savefig(path)


def operating_points(study: Study, miss_rates: Sequence[float] = POINTS) -> Table:
    """The model's points at some miss rates, to be set on its curve."""
    found = [study.curve.at(miss_rate=miss_rate) for miss_rate in miss_rates]
    columns: dict[str, npt.NDArray[Any]] = {
        "point": np.array([f"miss rate {miss_rate:g}" for miss_rate in miss_rates]),
        "bandwidth": np.array([point.bandwidth for point in found]),
        "miss_rate": np.array([point.miss_rate for point in found]),
    }
    return Table(name="characteristic_points", columns=columns)


def bands_figure(name: str, data: Data, curve: CharacteristicCurve) -> Figure:
    """Test rows, the point prediction, and its bands at the two miss rates."""
    order = np.argsort(data.x_test)[:: max(len(data.x_test) // 200, 1)]
    bands = curve.bands
    x, point = data.x_test[order], (bands.y - bands.error)[order]
    layers = [
        Layer(
            mark=Mark.BAND,
            x=x,
            lower=point - scale * bands.below[order],
            upper=point + scale * bands.above[order],
            series=f"miss rate {miss_rate:g}",
            colour=colour,
        )
        for colour, miss_rate in enumerate(POINTS)
        for scale in [curve.at(miss_rate=miss_rate).knob]
    ]
    layers.append(Layer(mark=Mark.LINE, x=x, y=point, series="prediction", colour=2))
    rows = np.arange(0, len(data.x_test), max(len(data.x_test) // 100, 1))
    layers.append(
        Layer(
            mark=Mark.POINTS,
            x=data.x_test[rows],
            y=data.y_test[rows],
            series="test rows",
            colour=-1,
        )
    )
    return Figure(
        name="gap",
        question="Where are the bands wide?",
        title=name,
        x=Axis(title="x"),
        y=Axis(title="y", domain=(-1.7, 2.3)),
        layers=tuple(layers),
    )


def command() -> None:
    """Read the command line, print the tables, draw the figure."""
    parser = argparse.ArgumentParser(description="The characteristics curve over a data gap.")
    parser.add_argument("--seed", type=int, default=0, help="of the data and the fits")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--quick", action="store_true", help="few members and draws")
    parser.add_argument("--repeats", type=int, default=0, help="many data sets instead of one")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figure")
    asked = parser.parse_args()
    if asked.repeats:
        print(repeat(asked.repeats, asked.models, quick=asked.quick))
        return
    for study in main(asked.seed, asked.models, quick=asked.quick, figure=asked.plot):
        print(study.table(POINTS))


if __name__ == "__main__":
    command()
