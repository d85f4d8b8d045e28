"""How often verdicts on class probabilities are right: models that are, and faults planted.

Run ``python -m benchmarks.classes --kept FOLDER`` (some two hours of one core; ``--tables 20`` for
a first look). Finished cells are kept in the folder, so that a run that is stopped goes on where it
was. ``--peers FOLDER`` compares
numbers with those of other libraries, netcal's from a folder (``pip install --no-deps --target
FOLDER netcal``), and ``--data FOLDER`` judges softmax tables of real networks. With ``--write`` the
tables replace what ``docs/verdict.md`` has between their markers.

A cell is a law of the stated probabilities, a fault or none, a number of rows, and whether these
are independent. Rows of a cluster share a latent normal variable of correlation .5, which decides
what comes. Seeds are the numbers of the table, its rows and its law.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.intervals import write
from benchmarks.verdict import PAGE, Section, beyond, share
from scipy import special

from howsure import Options, assess
from howsure.core.rng import row_keys
from howsure.engine.measure import evaluate
from howsure.predictions import EvalSet, Probabilities
from howsure.recalibration.classes import advise_classes, learn_classes
from howsure.stats.binomial import holm
from howsure.stats.estimate import spread_of
from howsure.topics.classes import questions
from howsure.topics.classes.questions import FLOOR, draw_classes
from howsure.topics.classes.scores import BINS, brier_score, ece, frequency_forecast, log_loss
from howsure.verdict.family import examine

MARKS = ("<!-- classes: made by benchmarks/classes.py -->", "<!-- end of classes -->")
PEER_MARKS = (
    "<!-- numbers of classes: made by benchmarks/classes.py --peers -->",
    "<!-- end of numbers of classes -->",
)
NETWORK_MARKS = (
    "<!-- networks: made by benchmarks/classes.py --data -->",
    "<!-- end of networks -->",
)
FOLLOWED, FRESH = 40, 20_000
"""Tables of a fault whose advice is followed, and fresh rows."""
NUMBERS = ("brier", "log_score", "auc")
TABLES = 400
SIZES = (50, 200, 1_000, 5_000)
CLUSTER, CORRELATION = 10, 0.5
MANY, OUTCOMES = 200, 40
"""Rows from which on so many outcomes are drawn of one table of probabilities."""
POOL = 120
"""Draws for each correlation of clusters, from which those of a set are sampled."""
NAMES = {"groups": "class_groups", "region": "class_region", "skill": "class_skill"}
"""Questions whose findings have another name."""
Law = Callable[[np.random.Generator, int], np.ndarray]


def of_two(claims: np.ndarray) -> np.ndarray:
    """Probabilities of two classes, from those of the second."""
    return np.column_stack([1 - claims, claims])


def soft(size: float, k: int) -> Law:
    """Probabilities of k classes whose logits have this sd."""
    return lambda rng, n: special.softmax(size * rng.normal(size=(n, k)), axis=1)


LAWS: dict[str, Law] = {
    "uniform": lambda rng, n: of_two(rng.random(n)),
    "U-shaped": lambda rng, n: of_two(np.clip(rng.beta(0.5, 0.5, n), 1e-9, 1 - 1e-9)),
    "rare, 1 to 5 %": lambda rng, n: of_two(rng.uniform(0.01, 0.05, n)),
    "near-certain": lambda rng, n: of_two(
        special.expit(rng.choice([-1, 1], n) * rng.normal(5, 1, n))
    ),
    "3 classes": soft(1.5, 3),
    "10 classes": soft(2.5, 10),
    "50 classes": soft(2.5, 50),
}
"""Probabilities that a model states."""


def moved(shifts: Callable[[int], np.ndarray], slope: float = 1.0) -> Callable[..., np.ndarray]:
    """What is true where log p is to be multiplied and shifted."""
    return lambda p, x: special.softmax(slope * np.log(p) + shifts(p.shape[1]), axis=1)


def noisy_labels(p: np.ndarray, x: np.ndarray) -> np.ndarray:
    """One label of twenty is any other class."""
    return 0.95 * p + 0.05 * (1 - p) / (p.shape[1] - 1)


def flipped(p: np.ndarray, x: np.ndarray) -> np.ndarray:
    """In a tenth of the inputs the first and the last class are exchanged."""
    turned = p.copy()
    turned[:, [0, -1]] = turned[:, [-1, 0]]
    return np.where(((x > 0.4) & (x < 0.5))[:, None], turned, p)


def last(size: float) -> Callable[[int], np.ndarray]:
    """A shift of the log odds of the last class."""
    return lambda k: size * np.eye(k)[-1]


def none(k: int) -> np.ndarray:
    """No shift."""
    return np.zeros(k)


@dataclass(frozen=True)
class Fault:
    """What is true in place of what is stated, and the findings of which one must name it."""

    name: str
    law: str
    true: Callable[[np.ndarray, np.ndarray], np.ndarray]
    named: tuple[str, ...]
    with_input: bool = False


FAULTS = (
    *(
        Fault(f"{what}, {law}", law, true, named)
        for what, true, laws, named in (
            (
                "temperature 1.25",
                moved(none, 1 / 1.25),
                ("uniform", "3 classes", "10 classes"),
                ("sureness",),
            ),
            ("temperature .8", moved(none, 1 / 0.8), ("uniform", "10 classes"), ("sureness",)),
            (
                "5 % of the labels wrong",
                noisy_labels,
                ("uniform", "U-shaped", "10 classes"),
                ("sureness", "shape"),
            ),
            (
                "log odds off by .3",
                moved(last(0.3)),
                ("uniform", "U-shaped", "rare, 1 to 5 %"),
                ("level",),
            ),
            ("log odds off by .7", moved(last(0.7)), ("rare, 1 to 5 %",), ("level",)),
            ("one class off by .7", moved(last(0.7)), ("10 classes",), ("level",)),
        )
        for law in laws
    ),
    Fault(
        "two classes exchanged in a tenth of the inputs, 10 classes",
        "10 classes",
        flipped,
        ("class_region",),
        with_input=True,
    ),
    Fault(
        "two classes exchanged in a tenth of the inputs, uniform",
        "uniform",
        flipped,
        ("class_region",),
        with_input=True,
    ),
)


def draw(
    law: str,
    n: int,
    number: int,
    *,
    clustered: bool = False,
    fault: Fault | None = None,
    outcome: int = 0,
) -> EvalSet:
    """One table, with one of its outcomes."""
    seed = [number, n, [*LAWS].index(law), clustered]
    rng = np.random.default_rng(seed)
    p, x = LAWS[law](rng, n), rng.random(n)
    rng = np.random.default_rng([*seed, outcome]) if n >= MANY else rng
    latent, beside = rng.normal(size=n), {}
    if clustered:
        cluster = np.arange(n) // CLUSTER
        shared = rng.normal(size=cluster[-1] + 1)[cluster]
        latent = math.sqrt(CORRELATION) * shared + math.sqrt(1 - CORRELATION) * latent
        beside["cluster"] = cluster
    if fault is not None and fault.with_input:
        beside["features"] = {"x": x}
    true = p if fault is None else fault.true(p, x)
    y = draw_classes(true, special.ndtr(latent)[:, None])[:, 0]
    stated = Probabilities(p[:, 1] if p.shape[1] == 2 else p)
    return EvalSet.checked(y.astype(float), stated, **beside)


Judged = list[dict[str, tuple[float, str]]]


def judge(law: str, n: int, *, clustered: bool, tables: int) -> Judged:
    """P-value and state of each finding of whole verdicts on a right model."""
    judged = []
    for number in range(tables):
        findings, _ = examine(draw(law, n, number, clustered=clustered), seed=number)
        judged.append({each.id: (each.p, each.state) for each in findings})
    return judged


def judge_many(
    law: str, n: int, *, clustered: bool = False, fault: Fault | None = None, tables: int = TABLES
) -> Judged:
    """The same of many rows: questions on several outcomes of one table share their draws."""
    judged: Judged = []
    for number in range(math.ceil(tables / OUTCOMES)):
        sets = [
            draw(law, n, number, clustered=clustered, fault=fault, outcome=outcome)
            for outcome in range(min(OUTCOMES, tables - len(judged)))
        ]
        judged += answer_many(sets, number)
    return judged


def answer_many(sets: Sequence[EvalSet], seed: int) -> Judged:
    """Questions on sets that differ in y alone, from draws that all share.

    Where rows depend, draws of each correlation are made once; those of a set are sampled from
    them by how likely it makes each correlation.
    """
    first = sets[0]
    p = first.predictions[0].table
    y = np.stack([each.y.astype(np.int64) for each in sets], 1)
    rows = questions._ClaimedRows.of(p, None)
    x = dict(first.features)
    keys = row_keys(p, *x.values())
    asked, _ = questions._arrange(rows, x, [], list(x))
    rng = np.random.default_rng(seed)

    def largest(codes: np.ndarray, inflation: np.ndarray) -> dict[questions.Key, np.ndarray]:
        outcomes = rows.sums(codes, inflation)
        return {
            key: np.max([np.abs(part.scores(outcomes, rows)).max(0) for part in parts], 0)
            for key, parts in asked.items()
        }

    ones = np.ones(y.shape[1])
    if first.cluster is None:
        never = dict.fromkeys(asked, math.inf)  # so that all are drawn
        drawn = questions._draw_null(rows, keys, asked, None, never, seed)
        observed, chosen = largest(y, ones), [np.arange(questions.DRAWS[-1])] * y.shape[1]
    else:
        codes = first.cluster.codes
        totals = np.zeros(int(codes.max()) + 1, dtype=np.uint64)
        np.add.at(totals, codes, keys)
        even = np.full(len(questions._CORRELATIONS), 1.0 / len(questions._CORRELATIONS))
        clusters = questions._Clusters(codes, totals, even)
        pools, logs = [], []
        for correlation in questions._CORRELATIONS:
            latent = clusters.latent(keys, seed, f"pool {correlation}", POOL)
            outcome = clusters.draw(p, latent, np.array([correlation]))
            inflation = clusters.inflation(rows, outcome)
            pools.append(largest(outcome, inflation))
            logs.append(np.log(inflation))
        drawn = {key: np.concatenate([pool[key] for pool in pools]) for key in asked}
        seen = clusters.inflation(rows, y)
        observed = largest(y, seen)
        mean, spread = np.mean(logs, 1), np.std(logs, 1) + 0.02
        off = (np.log(seen)[:, None] - mean) / spread
        likelihood = np.exp(-0.5 * np.square(off)) / spread + 1e-12
        chances = likelihood / likelihood.sum(1, keepdims=True)
        chosen = [
            POOL * rng.choice(len(mean), 999, p=each) + rng.integers(0, POOL, 999)
            for each in chances
        ]
    judged: Judged = []
    for place, (each, draws) in enumerate(zip(sets, chosen, strict=True)):
        chance = {}
        for question in questions._QUESTIONS:
            parts = [key for key in asked if key[0] == question]
            if parts:
                chance[question] = questions.joint_p_value(
                    np.array([observed[key][place] for key in parts]),
                    np.stack([drawn[key][draws] for key in parts]),
                )
        chance["skill"] = max(chance["skill"], chance_of_skill(p, each))
        adjusted = holm([*chance.values()])
        judged.append(
            {
                NAMES.get(name, name): (own, "bad" if level <= 0.05 else "")
                for (name, own), level in zip(chance.items(), adjusted, strict=True)
            }
        )
    return judged


def chance_of_skill(p: np.ndarray, held: EvalSet) -> float:
    """One-sided p-value of Student's t that the Brier score is below that of frequencies."""
    y = held.y.astype(np.int64)
    gain = brier_score(frequency_forecast(y, p.shape[1]), y) - brier_score(p, y)
    cluster = None if held.cluster is None else held.cluster.codes
    spread = spread_of(gain - gain.mean(), None, cluster)
    return float(special.stdtr(float(spread.degrees[0]), gain.mean() / float(spread.error[0])))


def cells(tables: int) -> Iterator[tuple[str, Callable[[], Judged]]]:
    """Name and work of each cell, the quickest first."""
    for n in SIZES:
        how = judge if n < MANY else judge_many
        for clustered in (False, True):
            for law in LAWS:
                yield (
                    right_name(law, n, clustered),
                    partial(how, law, n, clustered=clustered, tables=tables),
                )
        if n >= MANY:
            for fault in FAULTS:
                yield (
                    f"{fault.name} | {n:,}",
                    partial(judge_many, fault.law, n, fault=fault, tables=tables // 4),
                )


Followed = dict[str, Any]
"""Of a cell: `tables`, those `red` with a fault that a recalibration may remove, and `gains`: of
each method advised, the log loss saved on fresh rows."""


def follow(judged: Judged, draw: Callable[[int], EvalSet], fault: Fault | None) -> Followed:
    """What comes of advice on judged tables, which are drawn again."""
    red: int = 0
    gains: dict[str, list[float]] = {}
    for number, found in enumerate(judged):
        faults = {
            question: found[question][0]
            for question in ("level", "sureness", "shape")
            if question in found and found[question][1] == "bad"
        }
        if not faults:
            continue
        red += 1
        held = draw(number)
        p, y = held.predictions[0].table, held.y.astype(np.int64)
        cluster = None if held.cluster is None else held.cluster.codes
        advice = advise_classes(p, y, faults, clusters=cluster, seed=number)
        if advice is None:
            continue
        gain = math.nan
        if fault is not None:
            rng = np.random.default_rng(10**6)
            fresh = LAWS[fault.law](rng, FRESH)
            true = fault.true(fresh, rng.random(FRESH))
            new = learn_classes(p, y, advice.method).apply(fresh)
            change = np.log(np.maximum(new, FLOOR) / np.maximum(fresh, FLOOR))
            gain = float((true * change).sum(1).mean())
        gains.setdefault(advice.method, []).append(gain)
    return {"tables": len(judged), "red": red, "gains": gains}


def advice_cells(found: dict[str, Judged]) -> Iterator[tuple[str, Callable[[], Followed]]]:
    """Name and work of each cell of advice."""
    for n in SIZES[1:3]:
        for fault in FAULTS:
            key = f"{fault.name} | {n:,}"
            if key in found:
                again = partial(drawn_again, fault.law, n, fault=fault)
                yield key, partial(follow, found[key][:FOLLOWED], again, fault)
        keys = [(law, c) for law in LAWS for c in (False, True)]
        for law, clustered in keys:
            key = right_name(law, n, clustered)
            if key in found:
                again = partial(drawn_again, law, n, clustered=clustered)
                yield key, partial(follow, found[key], again, None)


def drawn_again(law: str, n: int, place: int, **how: Any) -> EvalSet:
    """The table of a place among those judged together."""
    return draw(law, n, place // OUTCOMES, outcome=place % OUTCOMES, **how)


def advice_lines(followed: dict[str, Followed]) -> list[str]:
    """Calibrated tables in one line for each n, then a line for each fault."""
    lines = []
    for n in SIZES[1:3]:
        names = {right_name(law, n, c) for law in LAWS for c in (False, True)}
        some = [each for key, each in followed.items() if key in names]
        if some:
            tables, red = sum(each["tables"] for each in some), sum(each["red"] for each in some)
            advised = Counter(m for each in some for m, g in each["gains"].items() for _ in g)
            which = ", ".join(f"{name} {count}" for name, count in advised.most_common())
            lines.append(
                f"| calibrated, all | {n:,} | {red} | {sum(advised.values())} | – | – "
                f"| {which} | {tables:,} |"
            )
    for fault in FAULTS:
        for n in SIZES[1:3]:
            key = f"{fault.name} | {n:,}"
            if key in followed:
                each = followed[key]
                gains = [gain for some in each["gains"].values() for gain in some]
                better = str(sum(gain > 0 for gain in gains))
                which = ", ".join(f"{name} {len(some)}" for name, some in each["gains"].items())
                mean = f"{1e3 * np.mean(gains):.1f}" if gains else "–"
                lines.append(
                    f"| {key} | {each['red']} | {len(gains)} | {better} | {mean} | {which} "
                    f"| {each['tables']} |"
                )
    return lines


def overall(followed: dict[str, Followed]) -> str:
    """What came of all advice on faults that was followed."""
    sums = []
    for n in SIZES[1:3]:
        gains = [
            gain
            for key, each in followed.items()
            if key.endswith(f"| {n:,}")
            for some in each["gains"].values()
            for gain in some
            if not math.isnan(gain)
        ]
        if gains:
            worse = sum(gain < 0 for gain in gains)
            sums.append(f"at n = {n:,} {worse} of {len(gains)} make the log loss worse")
    return f"Of all advice on faults that was followed, {' and '.join(sums) or 'none'}."


def right_name(law: str, n: int, clustered: bool) -> str:
    """The first cells of a line."""
    return f"{law}{', clusters' if clustered else ''} | {n:,}"


def right_lines(found: dict[str, Judged]) -> list[str]:
    """Right models with any ✗: a line for each cell."""
    lines = []
    for key in (right_name(law, n, c) for law in LAWS for c in (False, True) for n in SIZES):
        if key in found:
            judged = found[key]
            red = Counter(i for each in judged for i, (_, state) in each.items() if state == "bad")
            any_red = sum(any(state == "bad" for _, state in each.values()) for each in judged)
            which = ", ".join(f"{name} {count}" for name, count in red.most_common())
            lines.append(f"| {key} | {share(any_red, len(judged))} | {which} | {len(judged)} |")
    return lines


def fault_lines(found: dict[str, Judged]) -> list[str]:
    """Faults that their own findings name."""
    lines = []
    for fault in FAULTS:
        for n in SIZES[1:]:
            key = f"{fault.name} | {n:,}"
            if key not in found:
                continue
            judged = found[key]
            red = [{i for i, (_, state) in each.items() if state == "bad"} for each in judged]
            named = sum(bool(each & {*fault.named}) for each in red)
            others = Counter(i for each in red for i in each if i not in fault.named)
            which = ", ".join(f"{i} {share(k, len(red))}" for i, k in others.most_common(4))
            lines.append(
                f"| {key} | {', '.join(fault.named)} | {share(named, len(red))} "
                f"| {share(sum(map(bool, red)), len(red))} | {which} | {len(red)} |"
            )
    return lines


ADVICE = Section(
    "Advice on class probabilities",
    "*Red* counts tables with a significant fault of level, sureness or curve, *advised* those "
    "with an advice, *better* those whose log loss on 20,000 fresh rows falls when it is followed; "
    "*gain* is its mean, in thousandths. The bars are 5 % of the advice on faults worse, and no "
    "advice in 99.9 % of calibrated tables, with three binomial errors each.",
    "| probabilities | n | red | advised | better | gain | which | tables |",
    [
        *(("calibrated, all", f"{n:,}") for n in SIZES[1:3]),
        *((fault.name, f"{n:,}") for fault in FAULTS for n in SIZES[1:3]),
    ],
    lambda line: (
        beyond(
            str(100 * int(line[3]) / int(line[7].replace(",", ""))), 0.001, line[7].replace(",", "")
        )
        if line[4] == "–"
        else line[3] != "0" and beyond(str(100 - 100 * int(line[4]) / int(line[3])), 0.05, line[3])
    ),
)


def misses_fault(line: list[str]) -> bool:
    """Whether a fault of many rows is seldom named."""
    return line[1] == "5,000" and float(line[3]) < 95.0


RIGHT = Section(
    "Class probabilities of correctly specified models: tables with any ✗",
    "Two classes but where a number of classes is given. Clusters have ten rows with a common "
    "latent normal variable of correlation .5. From 200 rows on, 40 outcomes are drawn for each "
    "of ten tables of probabilities. The bar is 5 %; by chance alone, up to 8.3 % of 400 tables "
    "are possible.",
    "| probabilities | n | any ✗, % | of which | tables |",
    [
        tuple(right_name(law, n, c).split(" | "))
        for law in LAWS
        for c in (False, True)
        for n in SIZES
    ],
    lambda line: beyond(line[2], 0.05, line[4]),
)
WRONG = Section(
    "Class probabilities with a fault",
    "*Named* counts tables with ✗ in the fault's own finding, *any* those with any ✗. The bar is "
    "95 % named at n = 5,000.",
    "| fault | n | own finding | named, % | any ✗, % | other ✗, % | tables |",
    [(fault.name, f"{n:,}") for fault in FAULTS for n in SIZES[1:]],
    misses_fault,
)


Cells = Iterator[tuple[str, Callable[[], Any]]]


def kept(folder: Path, cells: Cells, chosen: Sequence[str]) -> dict[str, Any]:
    """All cells that are done, after those chosen and not yet done."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for name, work in cells:
        path = folder / file_name(name)
        if not path.exists():
            if not any(part in name for part in chosen or [""]):
                continue
            start = time.process_time()
            path.write_text(json.dumps(work()), encoding="utf-8")
            print(f"{folder.name}: {name} ({time.process_time() - start:.0f} s)", flush=True)
        found[name] = json.loads(path.read_text(encoding="utf-8"))
    return found


def file_name(cell: str) -> str:
    """Of what is kept of a cell."""
    return f"{cell.replace(' | ', ' n ').replace(',', '')}.json"


Coverages = dict[str, list[bool]]


def truths(p: np.ndarray, true: np.ndarray) -> dict[str, float]:
    """What the numbers are in endless rows."""
    k = p.shape[1]
    at = np.ones(len(p), dtype=np.int64) if k == 2 else p.argmax(1)
    claims, share = p[np.arange(len(p)), at], true[np.arange(len(p)), at]
    scores = [(np.square(p).sum(1) + 1 - 2 * (true * p).sum(1)).mean() / (1 + (k == 2))]
    base = (1 - np.square(true.mean(0)).sum()) / (1 + (k == 2))
    uncertainty = share.mean() * (1 - share.mean())
    recalibrated = (share * (1 - share)).mean()  # for a fault that leaves the order as it is
    found = {
        "brier": scores[0],
        "log_score": -(true * np.log(np.maximum(p, 1e-300))).sum(1).mean(),
        "class_skill": 1 - scores[0] / base,
        "class_miscalibration": np.square(claims - share).mean(),
        "class_discrimination": uncertainty - recalibrated,
        "class_uncertainty": uncertainty,
    }
    if k == 2:
        rising = share[np.argsort(claims)]
        found["auc"] = (rising * (np.cumsum(1 - rising) - (1 - rising))).sum() / (
            rising.sum() * (1 - rising).sum()
        )
    return found


def hold(law: str, slope: float, n: int, tables: int) -> Coverages:
    """Whether the 95 % interval of each number that has one holds the truth."""
    rng = np.random.default_rng(1)
    p = LAWS[law](rng, 200_000 if law != "10 classes" else 50_000)
    wanted = truths(p, moved(none, slope)(p, p))
    fault = Fault("", law, moved(none, slope), ())
    held: Coverages = {name: [] for name in wanted}
    for number in range(tables):
        rows = draw(law, n, number, fault=fault)
        for record in evaluate(rows, metrics=tuple(wanted)).records:
            if record.metric in wanted and record.lower <= record.upper:
                inside = record.lower <= wanted[record.metric] <= record.upper
                held[record.metric].append(bool(inside))
    return held


HELD_LAWS = ("uniform", "U-shaped", "rare, 1 to 5 %", "near-certain", "10 classes")
SHARPNESS = {"": 1.0, ", temperature 1.5": 1 / 1.5}
HELD_NUMBERS = {
    "brier": "Brier",
    "log_score": "log score",
    "class_skill": "skill",
    "auc": "AUC",
    "class_miscalibration": "MCB",
    "class_discrimination": "DSC",
    "class_uncertainty": "UNC",
}


def interval_cells(tables: int) -> Iterator[tuple[str, Callable[[], Coverages]]]:
    """Name and work of each cell of intervals."""
    for n in SIZES[:3]:
        for law in HELD_LAWS:
            for name, slope in SHARPNESS.items():
                yield f"{law}{name} | {n:,}", partial(hold, law, slope, n, tables)


def interval_lines(found: dict[str, Coverages]) -> list[str]:
    """How often each interval holds: a line for each cell."""
    lines = []
    for law in HELD_LAWS:
        for name in SHARPNESS:
            for n in SIZES[:3]:
                key = f"{law}{name} | {n:,}"
                if key not in found:
                    continue
                held = [found[key].get(number, []) for number in HELD_NUMBERS]
                tables = max(map(len, held))
                shown = " | ".join(
                    share(sum(each), len(each)) if len(each) >= tables / 2 else "–" for each in held
                )
                lines.append(f"| {key} | {shown} | {tables} |")
    return lines


HELD = Section(
    "Intervals of the numbers of class probabilities",
    "How often 95 % intervals contain the population value, in %, of calibrated "
    "probabilities and of those with a temperature of 1.5. A dash: most tables have no interval, "
    "for too few rows come otherwise than claimed. The bar is 92 %, less three binomial errors. "
    "Intervals of MCB and DSC are wide where the recalibration is fitted to few rows: what "
    "fitting costs lies between the parts in-sample and in folds.",
    f"| probabilities | n | {' | '.join(HELD_NUMBERS.values())} | tables |",
    [(f"{law}{name}", f"{n:,}") for law in HELD_LAWS for name in SHARPNESS for n in SIZES[:3]],
    lambda line: any(
        beyond(str(100 - float(value)), 0.08, line[-1]) for value in line[2:-1] if value != "–"
    ),
)


def answered(law: str, n: int, tables: int, fault: Fault | None = None) -> dict[str, int]:
    """The answers that tables get."""
    options = Options(trials=False)
    replies = Counter(
        assess(rows.y, rows.predictions[0], options=options).answer.reply
        for rows in (draw(law, n, number, fault=fault) for number in range(tables))
    )
    return dict(replies)


YES_SIZES = (500, 1_000, 2_000)
WRONG_OF_ALL = {each.law: each for each in FAULTS if each.name.startswith("temperature 1.25")}


def answer_cells(tables: int) -> Iterator[tuple[str, Callable[[], dict[str, int]]]]:
    """Name and work of each cell of answers."""
    for n in YES_SIZES:
        for law in LAWS:
            yield f"{law} | {n:,}", partial(answered, law, n, tables)
        for law, fault in WRONG_OF_ALL.items():
            yield f"{fault.name} | {n:,}", partial(answered, law, n, tables, fault)


def answer_lines(found: dict[str, dict[str, int]]) -> list[str]:
    """How often each is the answer: a line for each cell."""
    lines = []
    for name in (*LAWS, *(fault.name for fault in WRONG_OF_ALL.values())):
        for n in YES_SIZES:
            key = f"{name} | {n:,}"
            if key in found:
                tables = sum(found[key].values())
                shares = [share(found[key].get(reply, 0), tables) for reply in REPLIES]
                lines.append(f"| {key} | {' | '.join(shares)} | {tables} |")
    return lines


REPLIES = ("yes", "unknown", "no")
ANSWERS = Section(
    "Class probabilities: when the answer is yes",
    "Answers on calibrated probabilities, and on those of a temperature of 1.25, where *yes* is "
    "wrong: the bar is 5 % there. *Yes* needs an interval of the fitted calibration curve within 4 "
    "points, or within half of a rare event's probability.",
    "| probabilities | n | yes, % | inconclusive, % | no, % | tables |",
    [
        (name, f"{n:,}")
        for name in (*LAWS, *(fault.name for fault in WRONG_OF_ALL.values()))
        for n in YES_SIZES
    ],
    lambda line: line[0].startswith("temperature") and beyond(line[2], 0.05, line[5]),
)


def peers(folder: Path) -> list[str]:
    """Numbers of calibrated probabilities and of wrong ones, beside those of other libraries."""
    sys.path.append(str(folder))
    from mapie.metrics.calibration import spiegelhalter_p_value, top_label_ece
    from model_diagnostics.calibration import compute_bias
    from netcal.metrics import ECE
    from sklearn.calibration import calibration_curve
    from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

    rng = np.random.default_rng(0)
    p, many = LAWS["uniform"](rng, 2_000), LAWS["10 classes"](rng, 2_000)
    y, of_many = (draw_classes(each, rng.random((2_000, 1)))[:, 0] for each in (p, many))

    def compared(p: np.ndarray, many: np.ndarray) -> list[tuple[str, float, str, float]]:
        two = evaluate(EvalSet.checked(y.astype(float), Probabilities(p[:, 1])), metrics=NUMBERS)
        ours = {each.metric: each.value for each in two.records}
        answers = questions.judge_classes(p, y).answers
        top, right = many.max(1), many.argmax(1) == of_many
        share, _ = calibration_curve(y, p[:, 1], n_bins=10, strategy="quantile")
        parts = np.array_split(np.argsort(p[:, 1], kind="stable"), 10)
        apart = np.abs(share - [y[part].mean() for part in parts]).max()
        netcal, mapie = ECE(BINS), partial(top_label_ece, num_bins=BINS, split_strategy="uniform")
        return [
            ("Brier score", ours["brier"], "scikit-learn", brier_score_loss(y, p[:, 1])),
            ("log loss", ours["log_score"], "scikit-learn", log_loss(y, p[:, 1])),
            ("AUC", ours["auc"], "scikit-learn", roc_auc_score(y, p[:, 1])),
            ("curve, largest difference in ten bins", 0.0, "scikit-learn", apart),
            ("ECE", ece(p[:, 1], y == 1).value, "netcal", netcal.measure(p[:, 1], y)),
            ("ECE of a perfect model", ece(p[:, 1], y == 1).null, "none", math.nan),
            ("top-label ECE", ece(top, right).value, "netcal", netcal.measure(many, of_many)),
            ("top-label ECE, mean of classes", math.nan, "MAPIE", mapie(of_many, many)),
            (
                "p-value, level",
                answers["level"].p,
                "model-diagnostics",
                float(compute_bias(y, p[:, 1])["p_value"][0]),
            ),
            (
                "p-value, sureness",
                answers["sureness"].p,
                "Spiegelhalter, of MAPIE",
                spiegelhalter_p_value(y, p[:, 1]),
            ),
        ]

    def shown(value: float) -> str:
        return "–" if math.isnan(value) else f"{value:.4f}"

    wrong = moved(none, 1.25)
    rows = zip(compared(p, many), compared(wrong(p, p), wrong(many, many)), strict=True)
    return [
        "## Class probabilities: numbers of other libraries",
        "",
        "Of 2,000 rows with uniform probabilities, and of 2,000 with ten classes, both calibrated "
        "and with log odds 1.25 times too large. An expected calibration error is read beside that "
        "of a perfect model. Spiegelhalter's test does not tell level and sureness apart.",
        "",
        "| number | other library | calibrated: howsure | other | too sure: howsure | other |",
        "|:--|:--|--:|--:|--:|--:|",
        *(
            f"| {name} | {library} | {shown(ours)} | {shown(theirs)} "
            f"| {shown(wrong_ours)} | {shown(wrong_theirs)} |"
            for (name, ours, library, theirs), (_, wrong_ours, _, wrong_theirs) in rows
        ),
        "",
    ]


def networks(folder: Path) -> list[str]:
    """Real networks: half of the rows teach a temperature, the others judge."""
    lines = [
        "## Class probabilities of networks",
        "",
        "Softmax tables of CIFAR test images, from the examples of netcal. The expected "
        "calibration error (ECE, 15 bins) of all rows, beside that of a perfect model; then the "
        "temperature fitted to 5,000 rows, and ECE and log loss of the other 5,000.",
        "",
        "| network | accuracy, % | ECE | perfect | temperature | ECE | log loss | answer |",
        "|:--|--:|--:|--:|--:|:--|:--|:--|",
    ]
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as table:
            p, y = table["predictions"].astype(np.float64), table["ground_truth"].astype(np.int64)
        p /= p.sum(1, keepdims=True)
        first = np.random.default_rng(0).permutation(len(p)) < len(p) // 2
        learnt = learn_classes(p[first], y[first], "temperature")
        sets = p[~first], learnt.apply(p[~first])
        errors = [ece(each.max(1), each.argmax(1) == y[~first]).value for each in sets]
        losses = [log_loss(each, y[~first]).mean() for each in sets]
        whole = ece(p.max(1), p.argmax(1) == y)
        answer = assess(y.astype(float), Probabilities(p), options=Options(trials=False)).answer
        lines.append(
            f"| {path.stem} | {100 * np.mean(p.argmax(1) == y):.1f} | {whole.value:.4f} "
            f"| {whole.null:.4f} | {1 / (1 + learnt.slopes[0]):.2f} "
            f"| {errors[0]:.4f} → {errors[1]:.4f} | {losses[0]:.3f} → {losses[1]:.3f} "
            f"| {answer.sentence} |"
        )
        print(lines[-1], flush=True)
    return [*lines, ""]


def main() -> None:
    """Draw, judge, count, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=TABLES)
    parser.add_argument("--kept", type=Path, help="folder of finished cells")
    parser.add_argument("--cells", nargs="*", default=[], help="parts of names")
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    for folder, lines_of, marks in (
        (chosen.peers, peers, PEER_MARKS),
        (chosen.data, networks, NETWORK_MARKS),
    ):
        if folder is not None:
            text = "\n".join(lines_of(folder))
            print(text)
            if chosen.write:
                write(text, marks)
    if chosen.kept is None:
        return
    before = PAGE.read_text(encoding="utf-8").partition(MARKS[0])[2].partition(MARKS[1])[0]
    keep, tables = partial(kept, chosen=chosen.cells), chosen.tables
    judged = keep(chosen.kept, cells(tables))
    followed = keep(chosen.kept / "advice", advice_cells(judged))
    held = keep(chosen.kept / "intervals", interval_cells(tables // 2))
    answers = keep(chosen.kept / "answers", answer_cells(tables // 10))
    text = [
        *RIGHT.text(right_lines(judged), before),
        *WRONG.text(fault_lines(judged), before),
        *ANSWERS.text(answer_lines(answers), before),
        *ADVICE.text(advice_lines(followed), before),
        overall(followed),
        "",
        *HELD.text(interval_lines(held), before),
    ]
    if chosen.write:
        write("\n".join(text), MARKS)


if __name__ == "__main__":
    main()
