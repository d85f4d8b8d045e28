"""Time the training of networks for images: one by one, together, and by their options.

    python benchmarks/modules.py together
    python benchmarks/modules.py together --members 5 --widths 8 16 32 64
    python benchmarks/modules.py options
    python benchmarks/modules.py options --backbone resnet34 --rows 96 --device cuda
    python benchmarks/modules.py processes --processes 2
    python benchmarks/modules.py learn --epochs 20

All figures are milliseconds for one step of one network on 32 images of 64 × 64 pixels.
``together`` sets networks trained one by one beside the same networks as one: by convolutions in
groups, and by ``torch.func.vmap``. ``options`` trains by `train_module` with each option of the
recipe; ``processes`` runs it in several processes at once, of one thread each. ``learn`` trains
on drawn cells and tells errors. In brackets: the processor's own time, which other work on the
machine disturbs less than the clock.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch

from howsure.core.progress import subscribe
from howsure.core.rng import child
from howsure_studies.methods.deep.modules import ModuleTraining, train_module
from howsure_studies.methods.deep.modules.backbones import backbone_named
from howsure_studies.methods.deep.modules.training import reuse_memory
from howsure_studies.tasks.images import image_task

BATCH = 32
SIDE = 64


def best(step: Callable[[], object], steps: int, networks: int) -> str:
    """Least and median time of a step for each network, after a few that are not counted."""
    for _ in range(5):
        step()
    clocks, busy = [], []
    for _ in range(steps):
        start = time.perf_counter(), time.process_time()
        step()
        clocks.append(time.perf_counter() - start[0])
        busy.append(time.process_time() - start[1])
    least, middle = (1e3 * value / networks for value in (min(clocks), float(np.median(clocks))))
    return f"{least:6.2f}, median {middle:6.2f} ({1e3 * min(busy) / networks:.2f})"


def gaussian(outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    mean, spread = outputs[..., 0, :], outputs[..., 1, :]
    return ((y - mean).square() * (-spread).exp() + spread).mean(-1)


class Alone(torch.nn.Module):
    """One small network with two linear outputs."""

    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__()
        self.body = backbone_named({"name": "small", "widths": widths}).make(1)
        self.last = torch.nn.Linear(widths[-1], 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.body(x)).T


class Grouped(torch.nn.Module):
    """Several small networks as one, by convolutions in groups."""

    def __init__(self, widths: tuple[int, ...], count: int) -> None:
        super().__init__()
        layers: list[torch.nn.Module] = []
        for wide, narrow in pairwise((1, *widths)):
            layers += [
                torch.nn.Conv2d(
                    count * wide, count * narrow, 3, 2, padding=1, bias=False, groups=count
                ),
                torch.nn.BatchNorm2d(count * narrow),
                torch.nn.LeakyReLU(0.01, inplace=True),
            ]
        self.body = torch.nn.Sequential(*layers)
        self.last = torch.nn.Parameter(torch.randn(count, 2, widths[-1]) / 8)
        self.count = count

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features = self.body(x).mean((2, 3)).view(len(x), self.count, -1)
        return self.last @ features.permute(1, 2, 0)


def stepper(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor, bf16: bool) -> Any:
    """A training step of a model."""
    adam = torch.optim.Adam(model.parameters(), fused=True)

    def step() -> None:
        adam.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            outputs = model(x)
        gaussian(outputs.float(), y).sum().backward()
        adam.step()

    return step


def mapped(widths: tuple[int, ...], count: int) -> Any:
    """A training step of several networks by vmap."""
    models = [Alone(widths) for _ in range(count)]
    for model in models:
        torch.func.replace_all_batch_norm_modules_(model)
    parameters, buffers = torch.func.stack_module_state(models)
    adam = torch.optim.Adam(parameters.values(), fused=True)
    x, y = torch.randn(count, BATCH, 1, SIDE, SIDE), torch.randn(count, BATCH)

    def loss(held: Any, fixed: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return gaussian(torch.func.functional_call(models[0], (held, fixed), (x,)), y)

    slopes = torch.func.vmap(torch.func.grad(loss))

    def step() -> None:
        found = slopes(parameters, buffers, x, y)
        for name, value in parameters.items():
            value.grad = found[name]
        adam.step()

    return step


def together(widths: tuple[int, ...], members: int, steps: int) -> None:
    print(f"widths {widths}, {members} networks, {torch.get_num_threads()} threads")
    reuse_memory()
    y = torch.randn(members, BATCH)
    for layout in (torch.contiguous_format, torch.channels_last):
        for bf16 in (False, True):
            name = f"{str(layout).split('.')[-1]}, {'bfloat16' if bf16 else 'float32'}"
            one = Alone(widths).to(memory_format=layout)
            x = torch.randn(BATCH, 1, SIDE, SIDE).contiguous(memory_format=layout)
            print(f"  one by one, {name}: {best(stepper(one, x, y[0], bf16), steps, 1)}")
            many = Grouped(widths, members).to(memory_format=layout)
            x = torch.randn(BATCH, members, SIDE, SIDE).contiguous(memory_format=layout)
            print(f"  in groups,  {name}: {best(stepper(many, x, y, bf16), steps, members)}")
    print(f"  by vmap: {best(mapped(widths, members), steps, members)}")


def images(n: int) -> tuple[np.ndarray, np.ndarray]:
    draws = child(0, "benchmark", "modules")
    x = draws.integers(0, 256, size=(n, SIDE, SIDE, 1), dtype=np.uint8)
    return x, x.mean(axis=(1, 2, 3))


def trained(rows: int, epochs: int, backbone: Any, options: dict[str, Any], seed: int = 0) -> str:
    """Milliseconds a step of `train_module`: the fastest epoch."""
    x, y = images(rows)
    ends = [(time.perf_counter(), time.process_time())]
    with subscribe(lambda *_: ends.append((time.perf_counter(), time.process_time()))):
        train_module(
            x,
            y,
            head="gaussian",
            backbone=backbone,
            recipe=ModuleTraining.small(epochs, warm_epochs=0, frozen_epochs=0, **options),
            rng=child(seed, "network"),
        )
    steps = -(-rows // BATCH)
    clock, busy = np.diff(np.array(ends)[1:], axis=0).min(axis=0) / steps * 1e3
    return f"{clock:6.2f} ({busy:.2f})"


def options(rows: int, epochs: int, backbone: Any, device: Any) -> None:
    print(f"{backbone}, {torch.get_num_threads()} threads")
    choices: list[dict[str, Any]] = [
        {},
        {"channels_last": False},
        {"precision": "bfloat16"},
        {"precision": "bfloat16", "channels_last": False},
        {"hidden": 0},
        {"compile": True},
    ]
    for choice in choices:
        label = ", ".join(f"{key}={value}" for key, value in choice.items()) or "as it comes"
        print(f"  {label}: {trained(rows, epochs, backbone, {'device': device, **choice})}")


def _alone(seed: int, rows: int, epochs: int, backbone: Any) -> str:
    torch.set_num_threads(1)
    return trained(rows, epochs, backbone, {}, seed)


def processes(count: int, rows: int, epochs: int, backbone: Any) -> None:
    with get_context("spawn").Pool(count) as pool:
        work = partial(_alone, rows=rows, epochs=epochs, backbone=backbone)
        for place, words in enumerate(pool.map(work, range(count))):
            print(f"  process {place} of {count}: {words}")


def learn(rows: int, epochs: int, backbone: Any, device: Any) -> None:
    task = image_task("cells", train=rows, val=1000, test=10)
    for head in ("squared_error", "gaussian", "pair"):
        start = time.perf_counter()
        network = train_module(
            task.train.x,
            task.train.y,
            head=head,
            backbone=backbone,
            recipe=ModuleTraining.small(epochs, device=device),
            rng=child(0, "learn", head),
        )
        took = time.perf_counter() - start
        error = np.abs(network.prediction(task.val.x).point() - task.val.y).mean()
        print(f"  {head}: {took:.1f} s, mean absolute error {error:.2f} of counts to 200")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("together", "options", "processes", "learn"))
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--widths", type=int, nargs="+", default=[16, 32, 64, 64])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rows", type=int, default=640)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--backbone", default="small")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    backbone: Any = given.backbone
    if backbone == "small":
        backbone = {"name": "small", "widths": given.widths}
    if given.what == "together":
        together(tuple(given.widths), given.members, given.steps)
    elif given.what == "options":
        options(given.rows, given.epochs, backbone, given.device)
    elif given.what == "processes":
        processes(given.processes, given.rows, given.epochs, backbone)
    else:
        learn(given.rows, given.epochs, backbone, given.device)


if __name__ == "__main__":
    main()
