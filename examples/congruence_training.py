"""CCE as a training loss: does NLL + λ·CCE² lower the congruence error on fresh data?

Networks with a mean and a standard deviation learn from 80 rows, once on the likelihood alone and
once with the squared conditional congruence error (CCE) of the same rows beside it. Each is judged
on 500 fresh rows, beside the law that the data came from. All networks train at once.

Here it does not: with λ = 100 the CCE of fresh rows falls by −.0014 ± .0022 over 16 tables. On the
rows that were trained on, the likelihood alone already leaves less CCE (.013) than the true law has
(.034), so that there is nothing left to learn from it. It holds networks back from certainty all
the same: the NLL of fresh rows falls by .38 ± .12.

`python examples/congruence_training.py` takes some seven seconds of a quiet core (needs
howsure[deep]).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from howsure.topics.congruence.predictive import Normals
from howsure.topics.congruence.reference import cce

FloatArray = npt.NDArray[np.float64]
REGULARIZATION = 0.1  # of CCE, as in the paper
WIDTH = 40
TRUE = "true law"
HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """Scores by the weight of the loss, shape (seeds,) each; on fresh rows unless said."""

    nll: Mapping[float | str, FloatArray]
    cce: Mapping[float | str, FloatArray]
    own: Mapping[float | str, FloatArray]  # CCE on the rows that it was trained on

    def gain(self, score: str, weight: float) -> tuple[float, float]:
        """By how much a score fell against the likelihood alone, seed by seed, with its error."""
        values: Mapping[float | str, FloatArray] = getattr(self, score)
        gained = values[0.0] - values[weight]
        return float(gained.mean()), float(gained.std(ddof=1) / math.sqrt(len(gained)))

    def text(self) -> str:
        """The numbers as plain text."""
        head = f"{'NLL':>8}{'falls by':>16}{'CCE':>8}{'falls by':>18}{'CCE of own rows':>18}"
        lines = [f"{'weight of CCE²':<16}{head}"]
        for weight in self.cce:
            fell = ["", ""]
            if not isinstance(weight, str) and weight:
                gains = self.gain("nll", weight), self.gain("cce", weight)
                fell = [f"{mean:.4f} ± {error:.4f}" for mean, error in gains]
            lines.append(
                f"{weight!s:<16}{self.nll[weight].mean():8.3f}{fell[0]:>16}"
                f"{self.cce[weight].mean():8.4f}{fell[1]:>18}{self.own[weight].mean():18.4f}"
            )
        return "\n".join(lines)


def truth(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the law that the data come from."""
    return np.sin(2.0 * x), 0.1 + 0.3 / (1.0 + np.exp(-2.0 * x))


def draw(rows: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Inputs and outcomes."""
    x = rng.uniform(-3.0, 3.0, rows)
    mean, sd = truth(x)
    return x, mean + sd * rng.normal(size=rows)


def squared_cce(
    smoothing: torch.Tensor, y: torch.Tensor, mean: torch.Tensor, variance: torch.Tensor
) -> torch.Tensor:
    """Mean over the rows of CCE² at each, of normal laws; arrays of shape (tables, n).

    `smoothing`, shape (tables, n, n), is AᵀA/n with A = K(K + nλI)⁻¹; the kernel of y is Gaussian
    with γ = 1/(2 var y). Averages over normal laws are closed forms, so gradients pass.
    """
    gamma = 0.5 / y.var(dim=1)[:, None, None]

    def average(a: torch.Tensor, b: torch.Tensor, spread: torch.Tensor | float) -> torch.Tensor:
        widened = 1.0 + 2.0 * gamma * spread
        gap = (a[:, :, None] - b[:, None, :]) ** 2
        return torch.exp(-gamma * gap / widened) / widened**0.5

    crossed = average(mean, y, variance[:, :, None])
    within = average(mean, mean, variance[:, :, None] + variance[:, None, :])
    return (smoothing * (average(y, y, 0.0) - 2.0 * crossed + within)).sum(dim=(1, 2))


def smoother(x: torch.Tensor) -> torch.Tensor:
    """AᵀA/n of each table of inputs, shape (tables, n, n)."""
    n = x.shape[1]
    gamma = 0.5 / x.var(dim=1)[:, None, None]
    kernel = torch.exp(-gamma * (x[:, :, None] - x[:, None, :]) ** 2)
    weights = torch.linalg.solve(kernel + n * REGULARIZATION * torch.eye(n), kernel)
    return weights @ weights.transpose(1, 2) / n


def train(
    x: FloatArray, y: FloatArray, weights: Sequence[float], steps: int
) -> list[list[tuple[torch.Tensor, ...]]]:
    """Parameters of a network for each weight of the loss and each table, trained at once."""
    tables = len(x)
    inputs, targets = (
        torch.from_numpy(np.tile(each, (len(weights), 1))).float() for each in (x, y)
    )
    smoothing = smoother(inputs)
    share = torch.tensor(weights).float().repeat_interleave(tables)
    rng = np.random.default_rng(0)  # one start for all weights
    shapes = ((1, WIDTH), (1, WIDTH), (WIDTH, WIDTH), (1, WIDTH), (WIDTH, 2), (1, 2))
    scales = (1.0, 1.0, WIDTH**-0.5, 0.0, WIDTH**-0.5, 0.0)
    parameters = [
        torch.from_numpy(np.tile(scale * rng.normal(size=(tables, *shape)), (len(weights), 1, 1)))
        .float()
        .requires_grad_()
        for shape, scale in zip(shapes, scales, strict=True)
    ]
    optimiser = torch.optim.Adam(parameters, lr=0.01)
    for _ in range(steps):
        mean, variance = answer(parameters, inputs)
        likelihood = 0.5 * ((targets - mean) ** 2 / variance + torch.log(variance)).mean(dim=1)
        loss = likelihood + share * squared_cce(smoothing, targets, mean, variance)
        optimiser.zero_grad()
        loss.sum().backward()  # of networks that share nothing
        optimiser.step()
    found = [part.detach() for part in parameters]
    return [
        [tuple(part[row * tables + k][None] for part in found) for k in range(tables)]
        for row in range(len(weights))
    ]


def answer(
    parameters: Sequence[torch.Tensor], x: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Means and variances, shape (tables, n)."""
    first, first_bias, second, second_bias, last, last_bias = parameters
    hidden = torch.tanh(x[:, :, None] @ first + first_bias)
    hidden = torch.tanh(hidden @ second + second_bias)
    mean, log_variance = (hidden @ last + last_bias).unbind(dim=2)
    return mean, torch.exp(log_variance.clamp(-9.0, 5.0))


def main(
    seeds: int = 16, weights: Sequence[float] = (0.0, 10.0, 100.0), steps: int = 400, rows: int = 80
) -> Training:
    """Train on as many tables, with each weight, and judge on fresh rows."""
    tables = [draw(rows, np.random.default_rng([1, seed])) for seed in range(seeds)]
    networks = train(*(np.stack(side) for side in zip(*tables, strict=True)), weights, steps)
    names: list[float | str] = [*map(float, weights), TRUE]
    nll, fresh, own = ({name: np.empty(seeds) for name in names} for _ in range(3))
    for seed, known in enumerate(tables):
        x, y = draw(500, np.random.default_rng([2, seed]))
        for place, name in enumerate(names):
            network = None if name == TRUE else networks[place][seed]
            mean, sd = stated(network, x)
            nll[name][seed] = np.mean(0.5 * ((y - mean) / sd) ** 2 + np.log(sd)) + HALF_LOG_2PI
            fresh[name][seed] = cce(x, y, Normals(mean, sd)).values.mean()
            own[name][seed] = cce(*known, Normals(*stated(network, known[0]))).values.mean()
    return Training(nll, fresh, own)


def stated(network: Sequence[torch.Tensor] | None, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation that a network states, or the true ones."""
    if network is None:
        return truth(x)
    mean, variance = answer(network, torch.from_numpy(x[None]).float())
    return mean[0].double().numpy(), np.sqrt(variance[0].double().numpy())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=16, help="tables")
    print(main(parser.parse_args().seeds).text())
