"""Time networks trained as one against the same networks one by one, and run the toy study.

    python benchmarks/networks.py speed
    python benchmarks/networks.py speed --together 1000 --chunk 32
    python benchmarks/networks.py study --method bootstrap --world toy_heteroscedastic
    python benchmarks/networks.py study --method dropout --simulations 20 --epochs 80

``speed`` trains a handful of networks one by one, by torch's own layers, gradients and Adam in
one thread, with the same first weights and order of rows; times are per network. ``study`` is the
simulation study of Sluijterman, Cator and Heskes on one of its worlds: 100 simulations, of 50
networks each for the bootstrap. Both use as many threads as torch is given (OMP_NUM_THREADS).
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from itertools import pairwise

import numpy as np
import torch

from howsure.core.rng import child
from howsure_studies.methods.deep import (
    BatchTraining,
    ConcreteDropout,
    DeepEnsemble,
    MCDropout,
    MeanVarianceNetwork,
    Member,
    Network,
    NetworkBootstrap,
    SquaredError,
    train,
)
from howsure_studies.methods.deep.batch import outputs
from howsure_studies.methods.deep.method import NetworkMethod
from howsure_studies.pointwise import pointwise
from howsure_studies.tasks.worlds import world_named

METHODS = {
    "bootstrap": NetworkBootstrap(validation=150),
    "dropout": ConcreteDropout(),
    "fixed_dropout": MCDropout(),
    "ensemble": DeepEnsemble(),
    "mean_variance": MeanVarianceNetwork(),
}


def alone(member: Member, options: BatchTraining) -> torch.nn.Sequential:
    """One network as anyone would train it."""
    x, y = (torch.tensor(part, dtype=torch.float32) for part in member.rows())
    x, y = (x - x.mean(0)) / x.std(0, correction=0), (y - y.mean()) / y.std(correction=0)
    layers: list[torch.nn.Module] = []
    first, order = member.rng("weights"), member.rng("order")
    for wide, narrow in pairwise((x.shape[1], *options.layers, 1)):
        linear = torch.nn.Linear(wide, narrow)
        limit = np.sqrt(6.0 / (wide + narrow))
        with torch.no_grad():
            linear.weight.copy_(torch.tensor(first.uniform(-limit, limit, (narrow, wide))))
            linear.bias.zero_()
        layers += [linear, torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    adam = torch.optim.Adam(model.parameters(), lr=options.learning_rate, eps=1e-7)
    for _ in range(options.epochs):
        shuffled = torch.from_numpy(order.permutation(len(y)))
        for batch in shuffled.split(options.batch_size):
            adam.zero_grad()
            torch.nn.functional.mse_loss(model(x[batch])[:, 0], y[batch]).backward()
            adam.step()
    return model


def gap(models: list[torch.nn.Sequential], networks: list[Network], x: np.ndarray) -> float:
    """Largest difference between outputs, in sds of y."""
    found = outputs(networks, x)[:, 0]
    largest = 0.0
    for model, network, ours in zip(models, networks, found, strict=True):
        inputs = torch.tensor(network.scale.inputs(x), dtype=torch.float32)
        with torch.no_grad():
            theirs = model(inputs)[:, 0].numpy()
        largest = max(largest, float(np.abs(ours - theirs).max()))
    return largest


def speed(options: argparse.Namespace) -> None:
    """Print seconds a network both ways, their ratio, and how far outputs lie apart."""
    world = world_named(options.world)
    drawn, test = world.training_set(0, 0, 1000), world.test_set(0, 1000)
    training = BatchTraining(epochs=options.epochs or 80, chunk=options.chunk)
    members = [Member(drawn.x, drawn.y, 0, k, k) for k in range(options.together)]
    train(members[:2], SquaredError(), BatchTraining(epochs=1))  # loads libraries, starts threads
    start = time.perf_counter()
    networks = train(members, SquaredError(), training)
    batched = (time.perf_counter() - start) / len(members)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    start = time.perf_counter()
    models = [alone(member, training) for member in members[: options.alone]]
    single = (time.perf_counter() - start) / options.alone
    short = BatchTraining(epochs=1)
    after = [alone(member, short) for member in members[: options.alone]]
    early = gap(after, train(members[: options.alone], SquaredError(), short), test.x)
    late = gap(models, networks[: options.alone], test.x)
    print(f"one by one {single:.3f} s a network; together {batched:.4f} s: {single / batched:.0f}×")
    print(f"5,000 networks: {5000 * single:.0f} s one by one, {5000 * batched:.0f} s together")
    print(f"outputs apart by at most {early:.1e} after 1 epoch, {late:.1e} after all (sds of y)")
    print(f"{threads} threads, chunks of at most {options.chunk}, load {os.getloadavg()[0]:.1f}")


def study(options: argparse.Namespace) -> None:
    """Print coverages, Brier scores and widths of one method on one world, and the time."""
    method: NetworkMethod = METHODS[options.method]
    settings = {"epochs": options.epochs} if options.epochs else {}
    settings |= {"drop_input": True} if options.drop_input else {}
    method = type(method)(**{**_given(method), **settings, "chunk": options.chunk})
    rows = 1150 if isinstance(method, NetworkBootstrap) else 1000
    start, spent = time.perf_counter(), time.process_time()
    result = pointwise(
        options.world,
        method,
        coverages=(0.8, 0.9),
        trials=options.simulations,
        n_train=rows,
        n_test=1000,
        seed=options.seed,
    )
    seconds, spent = time.perf_counter() - start, time.process_time() - spent
    likelihood = float(np.mean(result.log_likelihood))
    print(f"{result.method} on {options.world}, {result.trials} simulations: {seconds:.0f} s")
    print(f"{spent:.0f} s of processors, load {os.getloadavg()[0]:.1f}")
    print(f"log-likelihood {likelihood:.3f}, {len(result.failures)} failures")
    for coverage in result.coverages:
        line = f"{coverage:g}: PICP {np.mean(result.picp(coverage)):.3f}"
        for which in ("picf", "cicf") if result.mean_ends is not None else ("picf",):
            score, width = result.brier(which, coverage), result.width(which, coverage).mean()
            mean = result.band(which, coverage).value.mean()
            line += f", {which.upper()} {mean:.3f}, Brier {score.raw:.5f} ({score.corrected:.5f} "
            line += f"± {score.standard_error:.5f} corrected), width {width:.3f}"
        print(line)
    if isinstance(method, ConcreteDropout):
        drawn = world_named(options.world).training_set(options.seed, 0, rows)
        fitted = method.fit(drawn.x, drawn.y, child(options.seed, "rates"))
        trace = fitted.networks[0].rates
        places = np.unique(np.linspace(0, len(trace) - 1, 7).astype(int))
        for place in places:
            rates = ", ".join(f"{rate:.4f}" for rate in trace[place])
            print(f"rates after epoch {place + 1}: {rates}")


def _given(method: NetworkMethod) -> dict[str, object]:
    """A method's options by name."""
    return {name: getattr(method, name) for name in type(method).__dataclass_fields__}


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["speed", "study"])
    parser.add_argument("--world", default="toy_heteroscedastic")
    parser.add_argument("--method", choices=list(METHODS), default="bootstrap")
    parser.add_argument("--simulations", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=0, help="0: the method's own number")
    parser.add_argument("--drop-input", action="store_true", help="dropout of x too")
    parser.add_argument("--chunk", type=int, default=128, help="networks a thread at once")
    parser.add_argument("--together", type=int, default=256, help="networks to train as one")
    parser.add_argument("--alone", type=int, default=3, help="networks to train one by one")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.what == "speed":
        speed(options)
    else:
        study(options)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"peak memory {peak:.2f} GB")


if __name__ == "__main__":
    main()
