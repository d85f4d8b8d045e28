"""Advice on real tables: before, what is advised, and after it was followed on held-out rows.

Run ``HOWSURE_DATA=FOLDER python -m benchmarks.advice_real`` (some minutes). It writes
``docs/advice.md``. One half of each table is assessed and its advice is fitted there; the other
half is judged before and after. Halves go by time where rows are dated, else by a hash of the rows.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.advice import advised, called, followed, levels_of, scores

from howsure.core.formats import percent
from howsure.core.rng import row_keys, row_uniforms
from howsure.engine.finding import Finding
from howsure.engine.measure import evaluate
from howsure.predictions import Distribution, EvalSet, Intervals, Samples
from howsure.report.document import TONES
from howsure.verdict.advice import Advice, try_recalibrations
from howsure.verdict.family import examine

PAGE = Path(__file__).parent.parent / "docs" / "advice.md"
Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Study:
    """One table in two halves: the rows that advise, and those on which it is followed."""

    title: str
    about: str
    make: Callable[[Path], tuple[EvalSet, EvalSet]]


def read(path: Path, *names: str) -> Columns:
    """Columns of a table: numbers where all are, else words."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        held = list(csv.DictReader(file))
    made: Columns = {}
    for name in names or tuple(held[0]):
        words = np.array([row[name] for row in held])
        try:
            made[name] = words.astype(float)
        except ValueError:
            made[name] = words
    return made


def halves(held: EvalSet) -> tuple[EvalSet, EvalSet]:
    """Two halves of rows without a date, by their content."""
    first = row_uniforms(0, "advice", row_keys(held.y, held.predictions[0].point())) < 0.5
    return held.take(first), held.take(~first)


def in_time(held: EvalSet) -> tuple[EvalSet, EvalSet]:
    """The earlier half of rows in the order of time, and the later."""
    earlier = np.arange(held.n) < held.n // 2
    return held.take(earlier), held.take(~earlier)


def perovskites(folder: Path) -> tuple[EvalSet, EvalSet]:
    """Errors of a random forest, with its stated sd."""
    held = read(folder / "preds_chem_pernot" / "PAL2022__Perovskite_RF_Test_uncal.csv.gz")
    return halves(EvalSet.checked(held["E"], Distribution.normal(0.0 * held["E"], held["uE"])))


def molecules(folder: Path) -> tuple[EvalSet, EvalSet]:
    """log P of a graph network, with the uncertainty of its latent space."""
    path = folder / "preds_chem_pernot" / "RAS2023__logP_150k_LS-GCN_test.csv.gz"
    held = read(path, "logP", "y_pred", "uq")
    return halves(EvalSet.checked(held["logP"], Distribution.normal(held["y_pred"], held["uq"])))


def poverty(folder: Path) -> tuple[EvalSet, EvalSet]:
    """Wealth of places by models that never saw their country."""
    held = read(folder / "preds_poverty_africa" / "dhs_ooc.csv.gz")
    known = ("lat", "lon", "country", "year", "urban", "label")
    models = [name for name in held if name not in (*known, "Resnet-18 RGB Transfer")]
    samples = np.stack([held[name] for name in models], axis=1)
    where = {"country": held["country"], "urban": held["urban"]}
    features = {"latitude": held["lat"], "longitude": held["lon"]}
    return halves(EvalSet.checked(held["label"], Samples(samples), groups=where, features=features))


def series(folder: Path) -> tuple[EvalSet, EvalSet]:
    """Intervals of an hourly series."""
    held = read(folder / "preds_ucc_uq360" / "sample_predict.csv.gz")
    bands = Intervals(held["lb"], held["ub"], coverage=0.9)
    return in_time(EvalSet.checked(held["actual"], bands, time=np.arange(len(held["lb"]))))


def traffic(folder: Path) -> tuple[EvalSet, EvalSet]:
    """Mean and sd of each hour of the week, learnt before a gap of ten months."""
    held = read(folder / "metro_traffic" / "data.csv.gz", "date_time", "traffic_volume")
    when = held["date_time"].astype("datetime64[h]")
    when, only = np.unique(when, return_index=True)
    y = held["traffic_volume"][only]
    hour = ((when - np.datetime64("2012-10-01T00")) // np.timedelta64(1, "h")) % 168
    past = when < np.datetime64("2015-01-01")
    mean, sd = (
        np.array([of(y[past & (hour == each)]) for each in range(168)])[hour]
        for of in (np.mean, np.std)
    )
    day = np.array(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])[hour // 24]
    whole = EvalSet.checked(
        y[~past],
        Distribution.normal(mean[~past], sd[~past]),
        groups={"day": day[~past]},
        features={"hour": (hour % 24)[~past].astype(float)},
        time=when[~past],
    )
    return in_time(whole)


def california(folder: Path) -> tuple[EvalSet, EvalSet]:
    """House values by least squares on what a block holds, not where it lies."""
    held = read(folder / "shift_california_housing" / "data.csv.gz")
    y = held["median_house_value"] / 1e5
    homes = held["households"]
    inputs = np.stack(
        [
            held["median_income"],
            held["median_income"] ** 2,
            held["housing_median_age"],
            np.log(held["total_rooms"] / homes),
            np.log(held["population"] / homes),
            np.ones(len(y)),
        ],
        axis=1,
    )
    below = y < 5.0  # the census cuts values off there
    part = row_uniforms(0, "california", row_keys(held["longitude"], held["latitude"], y))
    train = below & (part < 1 / 3)
    beta = np.linalg.lstsq(inputs[train], y[train], rcond=None)[0]
    mean = inputs @ beta
    sd = np.sqrt(np.mean((y - mean)[train] ** 2))
    test = below & ~train
    places = {name: held[name][test] for name in ("longitude", "latitude")}
    return halves(
        EvalSet.checked(
            y[test],
            Distribution.normal(mean[test], np.full(int(test.sum()), sd)),
            features=places,
            groups={"ocean": held["ocean_proximity"][test]},
        )
    )


STUDIES = (
    Study(
        "Perovskites",
        "3,836 errors of a random forest, with its stated sd (Palmer et al. 2022, collected by "
        "Pernot).",
        perovskites,
    ),
    Study(
        "Lipophilicity of molecules",
        "log P of 5,000 molecules predicted with a graph network, sd from its latent space "
        "(Rasmussen et al. 2023, collected by Pernot).",
        molecules,
    ),
    Study(
        "Wealth of villages",
        "19,669 places in 23 African countries; the samples are the predictions of eleven models "
        "that were trained without the country (Yeh et al. 2020).",
        poverty,
    ),
    Study(
        "An hourly series",
        "8,807 hours with the bands that UQ360 includes for its characteristics curve; no coverage "
        "is stated, 90 % is assumed (Navratil et al.).",
        series,
    ),
    Study(
        "Traffic on a motorway",
        "Vehicles per hour near Minneapolis; mean and sd of each hour of the week were estimated "
        "from 2012 to 2014 (UCI 492).",
        traffic,
    ),
    Study(
        "Houses of California",
        "House values from a least-squares regression on income, age, rooms and people, fitted to "
        "a third of the rows; values at the cap are left out (census of 1990).",
        california,
    ),
)


def coverage(held: EvalSet) -> tuple[float, float]:
    """A nominal coverage, and the share of rows that intervals of it cover."""
    (found,) = evaluate(held, metrics=["empirical_coverage"]).records[:1]
    return found.coverage, found.value


def line(finding: Finding | None) -> str:
    """A finding as a cell of a table."""
    return f"{TONES[finding.state][0]} {finding.sentence}" if finding else "–"


def told(study: Study, folder: Path) -> list[str]:
    """The section of one table."""
    here, there = study.make(folder)
    found = try_recalibrations(here)
    advice = found.advice
    lines = [
        f"## {study.title}",
        "",
        study.about,
        "",
        f"Recommendation from {here.n:,} rows, tested on {there.n:,} others.",
        "",
    ]
    sentence = "No recommendation." if advice is None else advice.sentence
    lines += [f"> {sentence}", ""]
    if advice is not None and advice.command:
        lines += ["```text", advice.command, "```", ""]
    before = {each.id: each for each in examine(there)[0]}
    nominal, covered = coverage(there)
    if advice is None or not advice.method:
        lines += [f"In the other half, {percent(nominal)} intervals cover {percent(covered)}.", ""]
        return [*lines, *(f"- {line(before[name])}" for name in red(before)), ""]
    mended = followed(advice, here).apply(there)
    after = {each.id: each for each in examine(mended)[0]}
    names = [*red(before), *(name for name in red(after) if name not in red(before))]
    then = coverage(mended)[1]
    old, new = scores(there, mended, levels_of(found.trials, here))
    lines += [
        "| other half | before | after |",
        "|:--|:--|:--|",
        f"| {percent(nominal)} intervals cover | {percent(covered)} | {percent(then)} |",
        f"| {found.score} | {old:.4g} | {new:.4g} |",
        *(f"| {name} | {line(before.get(name))} | {line(after.get(name))} |" for name in names),
        "",
    ]
    return [*lines, meaning(old, new, before, after, advised(mended)[0]), ""]


def meaning(
    old: float,
    new: float,
    before: dict[str, Finding],
    after: dict[str, Finding],
    following: Advice | None,
) -> str:
    """What the table shows, in sentences."""
    reds = {
        "Corrected": [n for n in red(before) if n not in red(after)],
        "Still ✗": [n for n in red(before) if n in red(after)],
        "New ✗": [n for n in red(after) if n not in red(before)],
    }
    told = [f"The score {'falls' if new < old else 'rises'} by {100 * abs(old - new) / old:.1f} %."]
    told += [f"{title}: {', '.join(names)}." for title, names in reds.items() if names]
    told.append(
        f"A second assessment of these rows recommends: {called(following)}."
        if following
        else "A second assessment of these rows has no recommendation."
    )
    return " ".join(told)


def red(findings: dict[str, Finding]) -> list[str]:
    """Ids of what is bad."""
    return [name for name, each in findings.items() if each.state == "bad"]


def page(studies: Sequence[Study], folder: Path) -> str:
    """The page."""
    lines = [
        "# Recommendations on real tables",
        "",
        "Made with `python -m benchmarks.advice_real`. One half of each table is assessed, and the "
        "recommended recalibration is fitted to it. The other half is assessed before and after "
        "the recalibration. Tables with dates are split in time, others at random, based on a "
        "hash of their content.",
        "",
    ]
    for study in studies:
        lines += told(study, folder)
        print(study.title, flush=True)
    return "\n".join(lines)


def main() -> None:
    """Judge, advise, follow, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("HOWSURE_DATA", "data")))
    parser.add_argument("-o", "--output", type=Path, default=PAGE)
    chosen = parser.parse_args()
    chosen.output.write_text(page(STUDIES, chosen.data), encoding="utf-8")


if __name__ == "__main__":
    main()
