"""A network that measures nuclei, and what it predicts where it was not trained.

python examples/nuclei.py docs/case-studies    # needs the images: howsure data get nuclei-pixels

Writes nuclei.csv, one row for each patch, and nuclei.png with patches that a density of the
network's features accepts and rejects. The network is one of those of the plan shift_nuclei.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from howsure.core.optional import require
from howsure.core.rng import child
from howsure_studies.engine import load_plan
from howsure_studies.methods.deep.heads import Gaussian
from howsure_studies.methods.deep.modules import train_module
from howsure_studies.methods.selective import GMMScore
from howsure_studies.methods.selective.threshold import threshold
from howsure_studies.shift.study import ShiftOptions
from howsure_studies.tasks.images import image_task

IMAGES = {"val": 15, "home": 15, "experiment": 75, "magnified": 25, "stained": 50}
"""Images of each part that the table has, so that it stays small."""
PATCHES_A_DAY = 60  # about one image at home; days are made up, for the source has none
FIRST_DAY = {"val": 1, "home": 18, "experiment": 34, "magnified": 34, "stained": 34}
SEED, NETWORK = 0, 7  # the network of the plan's first run


def main() -> None:
    """Train, predict, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    options = load_plan("shift_nuclei").read(ShiftOptions)
    task = image_task("nuclei-pixels", seed=SEED)
    network = train_module(
        task.train.x,
        task.train.y,
        head=Gaussian(),
        backbone=options.backbone,
        recipe=options.recipe,
        rng=child(SEED, "shift", "gaussian", NETWORK),
    )
    density = GMMScore().fit(network.features(task.train.x), child(SEED, "nuclei", "density"))
    limit = threshold(density(network.features(task.val.x)))
    columns: dict[str, list[np.ndarray]] = {}
    shown = {}
    for name, images in IMAGES.items():
        part = task.part(name)
        image = np.array([key.split("/")[0] for key in part.ids.tolist()])
        part = part.take(np.isin(image, np.unique(image)[:images]))
        law, foreign = network.prediction(part.x), density(network.features(part.x))
        shown[name] = (part.x, part.y, law.quantile([0.05, 0.95]), foreign)
        order = np.arange(len(part))
        values = {
            "part": np.full(len(part), name),
            "image": np.array([key.split("/")[0] for key in part.ids.tolist()]),
            "patch": part.ids,
            "day": FIRST_DAY[name] + order // PATCHES_A_DAY,
            "y": part.y,
            "mean": law.point().round(1),
            "sd": law.sd().round(2),
            "foreign": (foreign - limit).round(2),
        }
        for title, column in values.items():
            columns.setdefault(title, []).append(column)
    table = pa.table({title: np.concatenate(parts) for title, parts in columns.items()})
    options_of_file = csv.WriteOptions(quoting_style="needed")
    csv.write_csv(table, folder / "nuclei.csv", options_of_file)
    draw(shown, limit, folder / "nuclei.png")


def draw(shown: Mapping[str, tuple[np.ndarray, ...]], limit: float, path: Path) -> None:
    """A patch of each part that is accepted, and one that is rejected: the middle ones of each."""
    pyplot = require("matplotlib.pyplot", extra="plots")
    tests = [name for name in shown if name != "val"]
    sheet, axes = pyplot.subplots(2, len(tests), figsize=(2.4 * len(tests), 5.6))
    for column, name in zip(axes.T, tests, strict=True):
        x, y, ends, foreign = shown[name]
        for ax, word in zip(column, ("accepted", "rejected"), strict=True):
            rows = np.flatnonzero((foreign <= limit) == (word == "accepted"))
            ax.set_axis_off()
            if not len(rows):
                ax.text(0.5, 0.5, f"none is {word}", ha="center")
                continue
            row = rows[np.argsort(foreign[rows], kind="stable")[len(rows) // 2]]
            picture = x[row].astype(float)
            ax.imshow(picture / max(picture.max(), 1.0))
            share = len(rows) / len(foreign)
            low, high = ends[row]
            told = f"y {y[row]:.0f}, predicted {low:.0f} to {high:.0f}"
            ax.set_title(f"{name}: {word} ({share:.0%})\n{told}", fontsize=8)
    sheet.savefig(path, dpi=90, bbox_inches="tight")
    pyplot.close(sheet)


if __name__ == "__main__":
    main()
