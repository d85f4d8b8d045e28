"""Time and memory of label sets against TorchCP's on the same softmax table.

    pip install --no-deps --target /some/folder torchcp
    python benchmarks/label_sets.py --peer /some/folder [--rows 50000] [--classes 1000]

Each measurement runs in a process of its own: thresholds from half of the rows' labels, sets for
all rows, both on one table of float32. Memory is the peak above what the loaded table takes.
TorchCP imports torchvision for data sets that are not needed here, so that stand-ins do.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import json
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

import numpy as np

ABSENT = ("torchvision", "torchsort", "torch_geometric", "transformers", "tqdm", "networkx")


def make_table(path: Path, rows: int, classes: int) -> None:
    """Softmax rows like those of a large image classifier, and labels drawn from them."""
    rng = np.random.default_rng(0)
    sharpness = rng.uniform(1.0, 5.0, size=(rows, 1)).astype(np.float32)
    logits = sharpness * rng.normal(size=(rows, classes)).astype(np.float32)
    table = np.exp(logits - logits.max(axis=1, keepdims=True))
    table /= table.sum(axis=1, keepdims=True)
    labels = (table.cumsum(axis=1) > rng.random((rows, 1))).argmax(axis=1)
    np.save(path / "table.npy", table)
    np.save(path / "labels.npy", labels)


def memory(name: str) -> float:
    """A line of this process's status, in MB."""
    status = Path("/proc/self/status").read_text()
    return float(status.split(f"{name}:")[1].split()[0]) / 2**10


def ours(table: np.ndarray, labels: np.ndarray, name: str) -> tuple[float, float]:
    """Share covered and mean size."""
    from howsure.conformal.labels import APS, RAPS, SAPS, LabelConformal

    score = {"aps": APS(), "raps": RAPS(0.01, 5), "saps": SAPS(0.1)}[name]
    half = len(table) // 2
    sets = LabelConformal(score=score).calibrate(table[:half], labels[:half]).predict(table)
    return float(sets.contains(labels.astype(np.float64)).mean()), float(sets.sizes.mean())


def theirs(table: np.ndarray, labels: np.ndarray, name: str) -> tuple[float, float]:
    """Share covered and mean size."""
    import torch
    from torchcp.classification.predictor import SplitPredictor
    from torchcp.classification.score import APS, RAPS, SAPS

    score = {
        "aps": lambda: APS(score_type="identity"),
        "raps": lambda: RAPS(score_type="identity", penalty=0.01, kreg=5),
        "saps": lambda: SAPS(score_type="identity", weight=0.1),
    }[name]()
    predictor = SplitPredictor(score, device=torch.device("cpu"))
    probabilities, classes = torch.from_numpy(table), torch.from_numpy(labels)
    half = len(table) // 2
    predictor.calculate_threshold(probabilities[:half], classes[:half], 0.1)
    sets = predictor.predict_with_logits(probabilities)
    inside = sets[torch.arange(len(table)), classes]
    return float(inside.float().mean()), float(sets.sum(dim=1).float().mean())


def stand_ins() -> None:
    """Empty modules in place of what TorchCP imports and these calls do not use."""

    class Standing(types.ModuleType):
        __path__: list[str] = []  # noqa: RUF012

        def __getattr__(self, name: str) -> object:
            if name.startswith("__"):
                raise AttributeError(name)
            return Standing(f"{self.__name__}.{name}")

        def __call__(self, *args: object, **options: object) -> object:
            return self

        def __mro_entries__(self, bases: object) -> tuple[type, ...]:
            return (object,)

    class Finder:
        def find_spec(self, name: str, path: object = None, target: object = None) -> object:
            if name.split(".")[0] in ABSENT:
                return importlib.machinery.ModuleSpec(name, self, is_package=True)
            return None

        def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
            return Standing(spec.name)

        def exec_module(self, module: types.ModuleType) -> None:
            """Nothing to run."""

    sys.meta_path.append(Finder())  # type: ignore[arg-type]


def measure(side: str, name: str, folder: Path) -> dict[str, float]:
    table, labels = np.load(folder / "table.npy"), np.load(folder / "labels.npy")
    run = ours if side == "ours" else theirs
    run(table[:2000], labels[:2000], name)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before, start = memory("VmRSS"), time.perf_counter()
    covered, size = run(table, labels, name)
    seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "memory": memory("VmHWM") - before,
        "covered": covered,
        "size": size,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", default="", help="folder that TorchCP was installed into")
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--only", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        side, name, folder = options.only
        if side == "theirs":
            sys.path.append(options.peer)
            stand_ins()
        print(json.dumps(measure(side, name, Path(folder))))
        return
    with tempfile.TemporaryDirectory() as folder:
        make_table(Path(folder), options.rows, options.classes)
        print(f"{'score':6} {'side':7} {'seconds':>8} {'MB':>8} {'covered':>8} {'size':>8}")
        for name in ("aps", "raps", "saps"):
            found = {}
            for side in ("ours", "theirs") if options.peer else ("ours",):
                command = [sys.executable, __file__, "--peer", options.peer]
                command += ["--only", side, name, folder]
                run = subprocess.run(command, check=True, capture_output=True, text=True)
                one = json.loads(run.stdout.splitlines()[-1])
                found[side] = one
                print(
                    f"{name:6} {side:7} {one['seconds']:8.2f} {one['memory']:8.0f} "
                    f"{one['covered']:8.4f} {one['size']:8.2f}"
                )
            if options.peer:
                faster = found["theirs"]["seconds"] / found["ours"]["seconds"]
                smaller = found["theirs"]["memory"] / found["ours"]["memory"]
                print(f"{name:6} {faster:.1f} times faster, in 1/{smaller:.1f} of the memory")


if __name__ == "__main__":
    main()
