"""Case study: do conformal label sets adapt to the difficulty of an image?

Classifiers are trained here on scikit-learn's digits and on 10,000 MNIST images; three that others
trained on CIFAR come as softmax outputs, whose images are lost: their ease is a surrogate. LAC,
APS, RAPS, SAPS, O-LAC and O-SAPS are compared over random splits; the measures are validated
against the property that they are to measure; and cells are cut by other disturbances.

`python examples/adaptivity_labels.py FOLDER`; FOLDER holds the folders of data that DATA names.
"""

from __future__ import annotations

import argparse
import gzip
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import numpy as np
import numpy.typing as npt

from howsure.core.optional import require
from howsure.core.records import Table
from howsure.core.rng import child
from howsure.figures import Figure, figures_of, plot
from howsure.methods.conformal.labels import (
    APS,
    LAC,
    RAPS,
    SAPS,
    LabelConformal,
    LabelScore,
    TunedLabels,
)
from howsure.metrics.adaptivity import Brightness, Contrast, GaussianNoise, Perturbation, Resampling
from howsure.metrics.measure import curves_of, evaluate
from howsure.predictions import EvalSet, LabelSets
from howsure.studies.adaptivity import (
    Classified,
    MethodComparison,
    average_table,
    classified,
    compare_label_sets,
    ease_sensitivity,
    given_probabilities,
    methods_figure,
    rank_counts,
    sensitivity_figure,
    validate_measures,
)

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

DATA = ("img_mnist_t10k", "preds_cifar_softmax")
SHARES = (0.5, 0.2, 0.1)  # noise, as shares of the standard deviation of all pixels
CIFAR = ("lenet-5-cifar-10", "lenet-5-cifar-100", "wideresnet-16-4-cifar-100")
SCORES: Mapping[str, LabelScore] = {
    "LAC": LAC(),
    "APS": APS(),
    "RAPS": RAPS(0.01, 2),
    "SAPS": SAPS(0.1),
}


@dataclass(frozen=True)
class Size:
    """How much is done.

    Attributes
    ----------
    repeats, trials : int
        Random splits of a comparison; trials of the validation.
    rows : int
        At most so many rows of a task.
    tried : TunedLabels
        What is tried for options.
    coverages : tuple of float
    """

    repeats: int
    trials: int
    rows: int
    tried: TunedLabels
    coverages: tuple[float, ...]


FULL = Size(12, 200, 10_000, TunedLabels(share=0.5), (0.9, 0.95))
QUICK = Size(3, 20, 1_200, TunedLabels(share=0.5, bins=(2, 5), penalties=(0.05, 0.2)), (0.9,))


@dataclass(frozen=True)
class Trained:
    """A task, and what its ease came from."""

    task: Classified
    bins: int
    predict: Callable[[FloatArray], FloatArray] | None = None
    images: FloatArray | None = None


def mnist(folder: Path) -> tuple[FloatArray, IntArray]:
    """Images in [0, 1], shape (10000, 28, 28), and their classes."""

    def read(name: str, offset: int) -> npt.NDArray[np.uint8]:
        with gzip.open(folder / "img_mnist_t10k" / name) as file:
            return np.frombuffer(file.read(), np.uint8, offset=offset)

    images = read("t10k-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28) / 255.0
    return images, read("t10k-labels-idx1-ubyte.gz", 8).astype(np.int64)


def digits() -> tuple[FloatArray, IntArray]:
    """Images in [0, 1], shape (1797, 8, 8), and their classes."""
    from sklearn.datasets import load_digits

    held = load_digits()
    return held.images / 16.0, held.target.astype(np.int64)


def trained(
    name: str, images: FloatArray, y: IntArray, *, kind: str, train: int, rows: int, bins: int
) -> Trained:
    """Train a classifier on some images; the others, disturbed and not, make the task."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    order = child(0, "adaptivity", name).permutation(len(y))
    own, rest = order[:train], order[train : train + rows]
    flat = images.reshape(len(y), -1)
    model = (
        LogisticRegression(C=0.1, max_iter=200)
        if kind == "logistic"
        else MLPClassifier((64,), max_iter=30, random_state=0)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it stops when it has learnt enough
        model.fit(flat[own], y[own])

    def predict(x: FloatArray) -> FloatArray:
        return np.asarray(model.predict_proba(x.reshape(len(x), -1)))

    ways: dict[str, Perturbation] = {
        f"noise {share:g}": GaussianNoise.relative(images[own], share, each_column=False)
        for share in SHARES
    }
    task = classified(predict, images[rest], y[rest], ways, name=name)
    return Trained(task, bins, predict, images[rest])


def tasks(folder: Path, size: Size) -> list[Trained]:
    """Every classifier with the rows that it was not trained on."""
    small, large = digits(), mnist(folder)
    made = [
        trained("digits, logistic", *small, kind="logistic", train=300, rows=size.rows, bins=10),
        trained("MNIST, logistic", *large, kind="logistic", train=2000, rows=size.rows, bins=50),
        trained("MNIST, network", *large, kind="network", train=2000, rows=size.rows, bins=50),
    ]
    for name in CIFAR:
        with np.load(folder / "preds_cifar_softmax" / f"{name}.npz") as held:
            p = held["predictions"][: size.rows].astype(np.float64)
            y = held["ground_truth"][: size.rows].astype(np.int64)
        task = given_probabilities(p / p.sum(axis=1, keepdims=True), y, name=name)
        made.append(Trained(task, 50))
    kept = [(item, max(5, min(item.bins, len(item.task.y) // 50))) for item in made]
    return [replace(item, bins=bins) for item, bins in kept]


def comparisons(made: Sequence[Trained], size: Size) -> dict[float, list[MethodComparison]]:
    """Every method on every task, by coverage."""
    found: dict[float, list[MethodComparison]] = {c: [] for c in size.coverages}
    for item in made:
        for result in compare_label_sets(
            item.task,
            coverages=size.coverages,
            repeats=size.repeats,
            bins=item.bins,
            tuning=size.tried,
        ):
            found[result.coverage].append(result)
    return found


def halves(item: Trained, score: LabelScore, coverage: float) -> tuple[LabelSets, IntArray]:
    """Sets of three quarters of a task's rows, calibrated on the others, and those rows."""
    task = item.task
    order = child(1, "adaptivity", task.name).permutation(len(task.y))
    held, new = np.split(order, [len(order) // 4])
    method = LabelConformal(score=score, coverage=coverage)
    learnt = method.calibrate(task.probabilities[held], task.y[held])
    return learnt.predict(task.probabilities[new]), new.astype(np.int64)


def validation(made: Sequence[Trained], size: Size, coverage: float) -> tuple[Table, Table]:
    """Correlations of measures with the rate of the property, and how often each is first."""
    names, rho, ceiling = [], [], []
    for item in made:
        for name, score in SCORES.items():
            sets, new = halves(item, score, coverage)
            found = validate_measures(
                sets.sizes,
                item.task.rank[new],
                sets.contains(item.task.y[new].astype(np.float64)),
                next(iter(item.task.eases.values()))[new],
                coverage=coverage,
                rows=min(500, len(new) // 2),
                pairs=4000,
                trials=size.trials,
                bins=20,
            )
            names.append(f"{item.task.name}: {name}")
            rho.append(found.rho)
            ceiling.append(found.reliability**0.5)
    measures = ("set_deficit", "set_excess", "sscv", "escv", "t_ss")
    columns = dict(zip(measures, np.array(rho).T, strict=True))
    setting = {"setting": np.array(names, dtype=object)}
    columns["at_most"] = np.array(ceiling)
    return Table(name="correlations", columns=setting | columns), rank_counts(rho, measures)


def sensitivity(item: Trained, coverage: float) -> dict[str, Table]:
    """T-CV and T-SS of the same sets under other disturbances and numbers of them, by method."""
    assert item.predict is not None
    assert item.images is not None
    scale = GaussianNoise.relative(item.images, SHARES[0], each_column=False)
    kinds: dict[str, Perturbation] = {
        "noise": scale,
        "brightness": Brightness(0.5),
        "contrast": Contrast(0.5),
    }
    eases = dict(
        classified(item.predict, item.images, item.task.y, kinds, name=item.task.name).eases
    )
    for count in (10, 30, 50):
        again = classified(
            item.predict, item.images, item.task.y, {"noise": scale}, repeats=count, seed=count
        )
        eases[f"noise, {count} times"] = again.eases["noise"]
    found = {}
    for name, score in SCORES.items():
        sets, new = halves(item, score, coverage)
        found[name] = ease_sensitivity(
            sets.sizes,
            item.task.rank[new],
            sets.contains(item.task.y[new].astype(np.float64)),
            {way: values[new] for way, values in eases.items()},
            coverage=coverage,
            bins=tuple(sorted({5, max(item.bins // 2, 3), item.bins})),
        )
    return found


def drawn(item: Trained, coverage: float) -> list[Figure]:
    """Coverage and size over ease, of three methods."""
    by_ease, by_size = [], []
    for name in ("LAC", "APS", "SAPS"):
        sets, new = halves(item, SCORES[name], coverage)
        ease = next(iter(item.task.eases.values()))[new]
        held = EvalSet.checked(item.task.y[new], sets, features={"ease": ease}, model=name)
        report = evaluate(
            held,
            beside="ease",
            given={
                "class_scores": item.task.probabilities[new],
                "bins": min(item.bins, len(new) // 40),
                "resampling": Resampling(replicates=0, permutations=0),
            },
        )
        cells, sizes = curves_of(report)
        by_ease.append(cells)
        by_size.append(sizes)
    return list(figures_of([*by_ease, *by_size]))


def markdown(table: Table) -> str:
    """A table as Markdown, numbers to three digits."""

    def shown(value: object) -> str:
        if isinstance(value, float | np.floating):
            return "—" if np.isnan(value) else f"{value:.3g}" if value < 100 else f"{value:.0f}"
        return str(value)

    names = list(table.columns)
    lines = [names, [":--", *["--:"] * (len(names) - 1)]]
    lines += [list(map(shown, row)) for row in zip(*table.columns.values(), strict=True)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def save(figures: Sequence[Figure], path: Path) -> None:
    """Figures side by side in one file."""
    pyplot = require("matplotlib.pyplot", extra="plots")
    picture, axes = pyplot.subplots(
        1, len(figures), figsize=(6.2 * len(figures), 4.2), layout="constrained", squeeze=False
    )
    for figure, ax in zip(figures, axes[0], strict=True):
        plot(figure, ax)
        legend = ax.get_legend()
        if legend is not None and len(figures) > 1 and len(figure.layers) > 5:
            legend.set_loc("upper left")
            legend.set_bbox_to_anchor((1.0, 1.0))
    picture.savefig(path, dpi=110)
    pyplot.close(picture)


def study(folder: Path, size: Size, pictures: Path | None) -> None:
    """Everything, printed as Markdown."""
    start = perf_counter()
    made = tasks(folder, size)
    for item in made:
        source = "surrogate" if item.task.surrogate else "images"
        print(
            f"* {item.task.name}: {len(item.task.y):,} rows, accuracy {item.task.accuracy:.3f}, "
            f"mean rank {item.task.rank.mean():.2f}, {item.bins} cells, ease from {source}"
        )
    found = comparisons(made, size)
    for coverage, results in found.items():
        for result in results:
            print(f"\n### {result.task}, coverage {coverage:g}\n\n{markdown(result.table())}")
            print(f"\n{result.table().notes}")
        for told, part in (
            ("images", [r for r in results if not r.surrogate]),
            ("surrogate ease", [r for r in results if r.surrogate]),
        ):
            print(f"\n### Averages, {told}, coverage {coverage:g}\n")
            print(markdown(average_table(part)))
    correlations, counts = validation(made, size, 0.9)
    print(f"\n### Validation\n\n{markdown(correlations)}\n\n{markdown(counts)}")
    network = made[2]
    sensitive = sensitivity(network, 0.9)
    for name, table in sensitive.items():
        print(f"\n### Sensitivity, {network.task.name}, {name}\n\n{markdown(table)}")
    print(f"\n{perf_counter() - start:.0f} seconds")
    if pictures is not None:
        draw(made, found, sensitive, pictures)


def draw(
    made: Sequence[Trained],
    found: Mapping[float, Sequence[MethodComparison]],
    sensitive: Mapping[str, Table],
    folder: Path,
) -> None:
    """The figures of the case study, as files of a folder."""
    save(drawn(made[2], 0.9), folder / "adaptivity-ease.png")
    results = found[0.9]
    pairs = []
    for measure in ("t_cv", "t_ss"):
        values = {result.task: result.medians(measure) for result in results}
        floor = max(result.floor.median for result in results)
        rules = {"perfect, at most": floor} if measure == "t_cv" else {}
        pairs.append(methods_figure(values, measure, rules=rules))
    save(pairs, folder / "adaptivity-methods.png")
    first = next(iter(sensitive.values()))
    most = first.columns["bins"] == first.columns["bins"].max()
    ways = [str(way) for way in first.columns["ease"][most]]
    shown = [
        sensitivity_figure(
            ways,
            {name: table.columns[measure][most] for name, table in sensitive.items()},
            measure,
            title="way of disturbing",
        )
        for measure in ("t_cv", "t_ss")
    ]
    save(shown, folder / "adaptivity-sensitivity.png")


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and run the study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help=f"holds the folders {', '.join(DATA)}")
    parser.add_argument("--quick", action="store_true", help="few rows, splits and trials")
    parser.add_argument("--pictures", type=Path, help="folder for the figures")
    chosen = parser.parse_args(arguments)
    study(chosen.folder, QUICK if chosen.quick else FULL, chosen.pictures)


if __name__ == "__main__":
    main()
