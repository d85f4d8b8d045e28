"""Models of the paper's two problems that stand nowhere else in howsure.

The paper samples a Bayesian network over the gap, and learns a meta-model of errors for traffic.
A plan names these as ``howsure_studies.characteristic:ErrorModel``; any other method serves too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, Literal, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, placed, to_host
from howsure.core.classes import frozen
from howsure.core.convert import Bound, Checked, Count, Fraction, Natural, Positive
from howsure.core.optional import require
from howsure.predictions import Distribution, Intervals, Quantiles
from howsure_studies.methods.deep.batch import one_thread_each
from howsure_studies.methods.deep.modules.network import torch_draws
from howsure_studies.methods.interface import Fitted, Method, Predictions, checked_rows

SizeLoss = Literal["squared", "absolute", "gamma"]

_CONSISTENT: Final = 0.6745  # the median of |z| for a standard normal z
_BLOCKS: Final = 5
_THIN: Final = 1e-3  # sd of y: no band of the recurrent model is thinner
_START: Final = -2.0  # before softplus: first bands are about an eighth of the sd of y
_AT_ONCE: Final = 16  # windows of a step of training
_RATE: Final = 3e-3  # the first learning rate; it falls to 0 along half a cosine
_CLIP: Final = 1.0  # the greatest norm of a step's gradient


@final
@frozen(eq=False)
class Functions(Fitted):
    """Functions that a model holds possible: of x to one column each, with its noise's sd."""

    of: Any
    noise: FloatArray
    notes: str = ""

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """A normal distribution of y about the mean function."""
        values = self.of(np.asarray(x, dtype=np.float64))
        sd = np.sqrt(values.var(axis=1) + np.mean(self.noise**2))
        return Predictions(Distribution.normal(values.mean(axis=1), sd))

    def joint(self, x: npt.ArrayLike, rng: np.random.Generator, size: int) -> FloatArray:
        """Draws of y at all rows at once, shape (n, at most size): one function each, and noise.

        Rows of one draw share their function, so that they err together in the gap, as data do.
        """
        count = len(self.noise)
        kept = np.linspace(0, count - 1, min(size, count)).astype(np.int64)
        values: FloatArray = self.of(np.asarray(x, dtype=np.float64))[:, kept]
        return values + self.noise[kept] * rng.normal(size=values.shape)


@final
@frozen
class BaggedNetworks(Method, Checked):
    """Small networks (scikit-learn's), each on a bootstrap sample; noise from rows left out.

    Parameters
    ----------
    members : int
        Networks, at least 2.
    hidden : int
        tanh units of each.
    penalty : float
        On squared weights.

    Examples
    --------
    >>> BaggedNetworks(members=20).name
    'bagged networks'
    """

    name: ClassVar[str] = "bagged networks"
    members: Annotated[int, Bound(2)] = 60
    hidden: Count = 20
    penalty: Positive = 1e-3

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> Functions:
        """Train all members; the noise is the scaled median error of rows left out."""
        from sklearn.ensemble import BaggingRegressor
        from sklearn.neural_network import MLPRegressor

        inputs, targets = checked_rows(x, y, least=4)
        network = MLPRegressor(
            hidden_layer_sizes=(self.hidden,),
            activation="tanh",
            solver="lbfgs",
            alpha=self.penalty,
            max_iter=20_000,
        )
        bag = BaggingRegressor(network, n_estimators=self.members, random_state=_draw_state(rng))
        bag.fit(inputs, targets)
        total, count = np.zeros(len(targets)), np.zeros(len(targets))
        for member, rows in zip(bag.estimators_, bag.estimators_samples_, strict=True):
            out = np.setdiff1d(np.arange(len(targets)), rows)
            total[out] += member.predict(inputs[out])
            count[out] += 1
        known = count > 0  # few members leave no row out for some
        error = np.abs(targets[known] - total[known] / count[known])
        noise = float(np.median(error)) / _CONSISTENT

        def of(at: FloatArray) -> FloatArray:
            return np.stack([member.predict(at) for member in bag.estimators_], axis=1)

        return Functions(of, np.full(self.members, noise))


@final
@frozen
class BayesianNetwork(Method, Checked):
    """One hidden layer of tanh units with normal priors, sampled by NUTS (the extra ``bayes``).

    The prior of the output does not grow with the number of units; the noise level is learnt.

    Parameters
    ----------
    draws : int
        Of each chain, after as many of warm-up.
    chains, depth : int
        How many chains; the greatest depth of a tree.
    hidden : int
        Units.
    prior : float
        sd of weights.

    Examples
    --------
    >>> BayesianNetwork(draws=150, chains=1).name
    'Bayesian network'
    """

    name: ClassVar[str] = "Bayesian network"
    draws: Count = 500
    chains: Count = 2
    depth: Count = 8
    hidden: Count = 20
    prior: Positive = 2.0

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> Functions:
        """Sample the weights; notes tell divergent draws and the worst split R̂ of the function."""
        inputs, targets = checked_rows(x, y, least=4)
        infer = require("numpyro.infer", extra="bayes", of="howsure-studies")
        jax = require("jax", extra="bayes", of="howsure-studies")
        chain = infer.MCMC(
            infer.NUTS(self._model, max_tree_depth=self.depth),
            num_warmup=self.draws,
            num_samples=self.draws,
            num_chains=self.chains,
            chain_method="sequential",
            progress_bar=False,
        )
        chain.run(jax.random.key(_draw_state(rng)), inputs, targets)
        drawn = {name: np.asarray(v, dtype=np.float64) for name, v in chain.get_samples().items()}
        layers = [drawn[name] for name in ("weight", "bias", "out", "level")]

        def of(at: FloatArray) -> FloatArray:
            columns = [
                np.tanh(at @ weight + bias) @ out + level
                for weight, bias, out, level in zip(*layers, strict=True)
            ]
            return np.stack(columns, axis=1)

        diverged = int(np.asarray(chain.get_extra_fields()["diverging"]).sum())
        note = f"{diverged} divergent draws, worst split R̂ {self._worst(of(inputs)):.2f}"
        return Functions(of, drawn["noise"], note)

    def _model(self, x: FloatArray, y: FloatArray) -> None:
        numpyro = require("numpyro", extra="bayes", of="howsure-studies")
        jnp = require("jax.numpy", extra="bayes", of="howsure-studies")
        law, sample = numpyro.distributions, numpyro.sample
        weights = law.Normal(0.0, self.prior).expand([x.shape[1], self.hidden])
        weight = sample("weight", weights)
        bias = sample("bias", law.Normal(0.0, self.prior).expand([self.hidden]))
        spread = self.prior / self.hidden**0.5
        out = sample("out", law.Normal(0.0, spread).expand([self.hidden]))
        level = sample("level", law.Normal(0.0, 1.0))
        noise = sample("noise", law.HalfNormal(1.0))
        sample("y", law.Normal(jnp.tanh(x @ weight + bias) @ out + level, noise), obs=y)

    def _worst(self, values: FloatArray) -> float:
        """Split R̂ of the function at each row: weights may swap places, the function may not."""
        diagnostics = require("numpyro.diagnostics", extra="bayes", of="howsure-studies")
        return float(
            np.max(diagnostics.split_gelman_rubin(values.T.reshape(self.chains, -1, len(values))))
        )


@final
@frozen
class QuantileBoosting(Method, Checked):
    """Boosted trees (scikit-learn's) at the median and at the two ends of an interval.

    Parameters
    ----------
    rounds : int
        Trees of each.
    categories : tuple of int
        Columns of x that are categories. Inputs may be missing.
    coverage : float
        Nominal coverage of the interval.
    centred : bool
        Whether to put the interval's width equally on both sides of the median. A band that is
        thin on one side alone has a huge critical scale where y falls on that side, and a few
        such rows can rule the whole area.

    Examples
    --------
    >>> QuantileBoosting(centred=True).fixed_coverages
    (0.9,)
    """

    rounds: Count = 100
    categories: tuple[Natural, ...] = ()
    coverage: Fraction = 0.9
    centred: bool = False

    @property
    def name(self) -> str:
        """What reports call it."""
        return "quantile boosting, centred" if self.centred else "quantile boosting"

    @property
    def fixed_coverages(self) -> tuple[float, ...]:
        """The coverage of its interval."""
        return (self.coverage,)

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> Fitted:
        """Fit the three regressors."""
        levels = np.array([0.5 - 0.5 * self.coverage, 0.5, 0.5 + 0.5 * self.coverage])
        state = _draw_state(rng)
        trained = [_boosted("quantile", self, state, quantile=level).fit(x, y) for level in levels]
        return _FittedLevels(tuple(trained), levels, self.centred)


@final
@frozen(eq=False)
class _FittedLevels(Fitted):
    trained: tuple[Any, ...]
    levels: FloatArray
    centred: bool

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """Quantiles, in order."""
        table = np.sort([model.predict(x) for model in self.trained], axis=0).T
        if self.centred:
            half = 0.5 * (table[:, 2] - table[:, 0])
            table = table[:, 1, None] + half[:, None] * np.array([-1.0, 0.0, 1.0])
        return Predictions(Quantiles(self.levels, table))


@final
@frozen
class ErrorModel(Method, Checked):
    """Boosting of the mean, and of the mean size of its errors on blocks that it had not seen.

    The nearest to the paper's meta-model that trees can do: bands of one mean absolute error.

    Parameters
    ----------
    rounds : int
        Trees of each model.
    categories : tuple of int
        Columns of x that are categories. Inputs may be missing.
    least : float
        No predicted size of errors may be less, in units of y.

    Examples
    --------
    >>> ErrorModel(rounds=60).name
    'error model'
    """

    name: ClassVar[str] = "error model"
    rounds: Count = 100
    categories: tuple[Natural, ...] = ()
    least: Positive = 1.0

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> Fitted:
        """Fit the mean out of five blocks of rows in their order, then the size of its errors."""
        from sklearn.model_selection import KFold, cross_val_predict

        state = _draw_state(rng)
        mean = _boosted("squared_error", self, state)
        unseen = cross_val_predict(mean, x, y, cv=KFold(_BLOCKS))
        error = np.maximum(np.abs(np.asarray(y) - unseen), self.least)
        size = _boosted("gamma", self, state).fit(np.column_stack([x, unseen]), error)
        return _MeanAndSize(mean.fit(x, y), size, self.least)


@final
@frozen(eq=False)
class _MeanAndSize(Fitted):
    mean: Any
    size: Any
    least: float

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """An interval of no stated coverage: the mean, give or take the size of its error."""
        point = self.mean.predict(x)
        size = np.maximum(self.size.predict(np.column_stack([x, point])), self.least)
        return Predictions(Intervals(point - size, point + size))


@final
@frozen
class RecurrentErrorModel(Method, Checked):
    """An LSTM of the mean, and one of the size of its errors, trained together (extra ``deep``).

    After the paper's joint meta-model: the second network sees the inputs, the states of the first
    and its forecast, and the sum of two losses trains both. The errors that the second learns are
    those of rows in training. Rows must stand in the order of time, also for prediction.

    Parameters
    ----------
    hidden : int
        Units of each network.
    epochs : int
        Passes over the rows, each in windows that begin elsewhere.
    window : int
        Rows that a network reads at a stretch.
    loss : {"squared", "absolute", "gamma"}
        Of the predicted size z of an error e, beside (y − f̂)²: (|e| − z)², ||e| − z|, or
        |e|/z + log z.
    categories : tuple of int
        Columns of x that are categories. Inputs may be missing; the mean stands for them.

    Examples
    --------
    >>> RecurrentErrorModel(loss="gamma").name
    'recurrent error model, gamma'
    """

    hidden: Count = 32
    epochs: Count = 60
    window: Annotated[int, Bound(2)] = 168
    loss: SizeLoss = "squared"
    categories: tuple[Natural, ...] = ()

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"recurrent error model, {self.loss}"

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> Fitted:
        """Train both networks on windows of the rows in their order."""
        torch = require("torch", extra="deep")
        inputs, targets = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        columns = _InputColumns.of(inputs, self.categories)
        rows = placed(columns.apply(inputs))
        center, unit = float(targets.mean()), float(targets.std()) or 1.0
        wanted = placed(((targets - center) / unit).astype(np.float32))
        length = min(self.window, len(targets))
        with torch_draws(_draw_state(rng)), one_thread_each():
            networks = _networks(rows.shape[1], self.hidden)
            optimiser = torch.optim.Adam(networks.parameters(), lr=_RATE)
            for epoch in range(self.epochs):
                rate = 0.5 * _RATE * (1.0 + np.cos(np.pi * epoch / self.epochs))
                optimiser.param_groups[0]["lr"] = rate
                first = int(rng.integers(min(length, len(targets) - length + 1)))
                begins = rng.permutation(np.arange(first, len(targets) - length + 1, length))
                for step in range(0, len(begins), _AT_ONCE):
                    windows = begins[step : step + _AT_ONCE, None] + np.arange(length)
                    point, size = _outputs(networks, rows[windows])
                    error = wanted[windows] - point
                    loss = error.square().mean() + self._loss(error.detach().abs(), size).mean()
                    optimiser.zero_grad()
                    loss.backward()
                    torch.nn.utils.clip_grad_norm_(networks.parameters(), _CLIP)
                    optimiser.step()
        return _FittedRecurrent(networks, columns, center, unit, self.window)

    def _loss(self, error: Any, size: Any) -> Any:
        """The loss of each predicted size of an error."""
        if self.loss == "gamma":
            return error / size + size.log()
        return (error - size).square() if self.loss == "squared" else (error - size).abs()


@final
@frozen(eq=False)
class _FittedRecurrent(Fitted):
    networks: Any
    columns: _InputColumns
    center: float
    unit: float
    window: int

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """An interval of no stated coverage: the mean, give or take the size of its error.

        Windows overlap by half, and each speaks for its second half, but for the first.
        """
        torch = require("torch", extra="deep")
        rows = placed(self.columns.apply(np.asarray(x, dtype=np.float64)))
        length = min(self.window, len(rows))
        half = max(length // 2, 1)
        begins = np.unique([*range(0, len(rows) - length, half), len(rows) - length])
        point, size = np.empty(len(rows)), np.empty(len(rows))
        with torch.no_grad(), one_thread_each():
            for begin in begins.tolist():
                spoken = slice(half if begin else 0, length)
                whole = slice(begin, begin + length)
                ends = _outputs(self.networks, rows[None, whole])
                point[whole][spoken], size[whole][spoken] = (to_host(e[0, spoken]) for e in ends)
        mean, band = self.center + self.unit * point, self.unit * size
        return Predictions(Intervals(mean - band, mean + band))


@final
@frozen(eq=False)
class _InputColumns:
    """How columns become inputs of a network: categories one by one, others standardised."""

    center: FloatArray
    unit: FloatArray
    values: Mapping[int, FloatArray]

    @classmethod
    def of(cls, x: FloatArray, categories: Sequence[int]) -> _InputColumns:
        center, unit = np.nanmean(x, axis=0), np.nanstd(x, axis=0)
        values = {column: np.unique(x[:, column]) for column in categories}
        return cls(center, np.where(unit > 0, unit, 1.0), values)

    def apply(self, x: FloatArray) -> npt.NDArray[np.float32]:
        """Inputs (n, k); what is missing is the mean, and a category never seen is none."""
        scaled = np.nan_to_num((x - self.center) / self.unit)
        parts = [
            x[:, [k]] == self.values[k] if k in self.values else scaled[:, [k]]
            for k in range(x.shape[1])
        ]
        return np.concatenate(parts, axis=1, dtype=np.float32)


def _networks(columns: int, hidden: int) -> Any:
    """The networks of the mean and of the size of its errors, each an LSTM and its output."""
    nn = require("torch", extra="deep").nn
    return nn.ModuleDict(
        {
            "mean": nn.LSTM(columns, hidden, batch_first=True),
            "point": nn.Linear(hidden + columns, 1),
            "errors": nn.LSTM(columns + hidden + 1, hidden, batch_first=True),
            "size": nn.Linear(hidden, 1),
        }
    )


def _outputs(networks: Any, rows: Any) -> tuple[Any, Any]:
    """Forecasts and sizes of their errors, (b, length), of windows (b, length, k)."""
    torch = require("torch", extra="deep")
    states, _ = networks["mean"](rows)
    point = networks["point"](torch.cat([states, rows], -1))
    errors, _ = networks["errors"](torch.cat([rows, states, point], -1))
    size = torch.nn.functional.softplus(networks["size"](errors) + _START)
    return point[..., 0], size[..., 0] + _THIN


def _boosted(loss: str, method: QuantileBoosting | ErrorModel, state: int, **options: Any) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(
        loss=loss,
        max_iter=method.rounds,
        categorical_features=list(method.categories) or None,
        early_stopping=False,
        random_state=state,
        **options,
    )


def _draw_state(rng: np.random.Generator) -> int:
    """A random state for a library that takes a whole number."""
    return int(rng.integers(2**31 - 1))
