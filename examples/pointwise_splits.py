"""The twenty published splits of the UCI tables, with cheap methods beside published MC dropout.

    HOWSURE_DATA=FOLDER python examples/pointwise_splits.py [--tables boston,yacht]

Prints the tables of docs/case-studies/splits.md as Markdown: error and log-likelihood in the
target's own units over the splits of Hernández-Lobato and Adams as Gal published them, each with
its standard error, and coverage, which that procedure does not report.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from sklearn.ensemble import RandomForestRegressor

from howsure_studies.methods.bootstrap import NaiveBootstrap
from howsure_studies.methods.interface import Method
from howsure_studies.methods.linear import BayesianRidge, LinearT
from howsure_studies.methods.quantile_forest import QuantileForest
from howsure_studies.pointwise import SplitsResult, against_published, over_splits
from howsure_studies.tasks import UciTable, uci, uci_names

COVERAGE = 0.9
METRICS = ("rmse", "log_score", "empirical_coverage", "interval_score", "mean_width")


def methods() -> dict[str, Method]:
    """The methods compared, by what the table calls them."""
    tree = RandomForestRegressor(n_estimators=1, min_samples_leaf=3, bootstrap=False)
    return {
        "linear t": LinearT(),
        "Bayesian ridge": BayesianRidge(),
        "bootstrap of trees": NaiveBootstrap(tree, members=30),
        "quantile forest": QuantileForest(trees=100, coverages=(COVERAGE,)),
    }


def measured(table: UciTable, name: str) -> SplitsResult:
    """One method over the published splits of one table."""
    return over_splits(
        table.x,
        table.y,
        methods()[name],
        splits=table.splits,
        coverages=(COVERAGE,),
        metrics=METRICS,
        table=table.name,
    )


def row(table: UciTable, name: str, result: SplitsResult) -> list[str]:
    """A method's numbers: mean ± the corrected standard error, differences from published."""
    paired = against_published([result], table.reference).columns
    cells = [table.name, name]
    for metric, sign in (("rmse", 1.0), ("log_score", -1.0)):
        record = result.record(metric)
        known = record.value == record.value
        cells.append(_pm(sign * record.value, record.standard_error) if known else "—")
        place = [i for i, other in enumerate(paired.get("metric", ())) if other == metric]
        if not place:
            cells.append("—")
            continue
        gap, error = (float(paired[key][place[0]]) for key in ("difference", "standard_error"))
        cells.append(_pm(sign * gap, error))
    covered = result.record("empirical_coverage", COVERAGE)
    cells.append(f"{covered.value:.3f}")
    width = result.record("mean_width", COVERAGE)
    cells.append(f"{width.value / float(table.y.std()):.2f}")
    return cells


def published(table: UciTable) -> list[str]:
    """The published numbers as a row."""
    rmse, likelihood = table.reference["test_MC_rmse"], table.reference["test_ll"]
    told = [
        _pm(float(v.mean()), float(v.std(ddof=1)) * _inflation(table)) for v in (rmse, likelihood)
    ]
    return [table.name, "*MC dropout, published*", told[0], "0", told[1], "0", "—", "—"]


def _inflation(table: UciTable) -> float:
    """What turns an sd over splits into the corrected error of their mean."""
    train, test = table.splits[0]
    return float((1.0 / len(table.splits) + len(test) / len(train)) ** 0.5)


def _pm(value: float, error: float) -> str:
    places = 2 if error >= 0.01 else 3 if error >= 0.001 else 5
    return f"{value:.{places}f} ± {error:.{places}f}".replace("-", "−")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    small = [name for name in uci_names() if name != "year"]  # which takes hours
    parser.add_argument("--tables", default=",".join(small))
    parser.add_argument("--methods", default=",".join(methods()))
    chosen = parser.parse_args(arguments)
    print(
        "| table | method | RMSE | less published | LL | less published | covered at 90 % | width |"
    )
    print("|---|---|---|---|---|---|---|---|")
    started = time.perf_counter()
    for table in map(uci, chosen.tables.split(",")):
        print("| " + " | ".join(published(table)) + " |")
        for name in chosen.methods.split(","):
            print("| " + " | ".join(row(table, name, measured(table, name))) + " |", flush=True)
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
