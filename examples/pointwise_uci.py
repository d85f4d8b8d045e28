"""Algorithm 3 of Sluijterman, Cator and Heskes on the UCI tables, with cheap methods.

    HOWSURE_DATA=FOLDER python examples/pointwise_uci.py [--tables boston,yacht] [-o PAGE.html]

Each table becomes a world: a random forest fitted to it is the true mean, another one its noise.
Twenty training sets are drawn from each world and intervals tested at every test point. Prints the
table of docs/case-studies/pointwise.md as Markdown; the page shows where in x each method fails.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from sklearn.ensemble import RandomForestRegressor

from howsure_studies.methods.bootstrap import NaiveBootstrap
from howsure_studies.methods.interface import Method
from howsure_studies.methods.linear import BayesianRidge, LinearT
from howsure_studies.methods.quantile_forest import QuantileForest
from howsure_studies.methods.regressors import SplitConformal
from howsure_studies.pointwise import PointwiseResult, pointwise
from howsure_studies.tasks import UciTable, uci, uci_names
from howsure_studies.tasks.worlds import ForestWorld

COVERAGE = 0.8
TEST_ROWS, TRAIN_ROWS = 1000, 2000


def methods() -> dict[str, Method]:
    """The methods compared, by what the table calls them."""
    small = RandomForestRegressor(n_estimators=20, max_depth=8)
    return {
        "linear t": LinearT(),
        "Bayesian ridge": BayesianRidge(),
        "conformal forest": SplitConformal(small, coverages=(COVERAGE,)),
        "quantile forest": QuantileForest(trees=50, coverages=(COVERAGE,)),
        "bootstrap of trees": NaiveBootstrap(
            RandomForestRegressor(n_estimators=1, min_samples_leaf=5, bootstrap=False), members=20
        ),
    }


def simulated(table: UciTable, trials: int, names: Sequence[str]) -> list[PointwiseResult]:
    """The methods tested in the world that the table becomes."""
    world = ForestWorld.from_data(table.x, table.y, name=table.name)
    n_test = min(len(table.y) // 5, TEST_ROWS)
    n_train = min(len(table.y) - n_test, TRAIN_ROWS)
    given = methods()
    return [
        pointwise(
            world,
            given[name],
            coverages=(COVERAGE,),
            trials=trials,
            n_train=n_train,
            n_test=n_test,
        )
        for name in names
    ]


def rows(
    table: UciTable, results: Sequence[PointwiseResult], names: Sequence[str]
) -> Iterator[list[str]]:
    """One row a method: scores corrected for Monte-Carlo error, widths in sd of y."""
    sd = float(table.y.std())
    for name, result in zip(names, results, strict=True):
        score = result.brier("picf", COVERAGE)
        off = float((result.band("picf", COVERAGE).verdict(COVERAGE) != 0).mean())
        cells = [
            table.name,
            f"{len(table.y):,}",
            name,
            f"{result.picp(COVERAGE).mean():.3f}",
            f"{score.corrected:.3f} ± {score.standard_error:.3f}",
            f"{100 * off:.0f} %",
            f"{result.width('picf', COVERAGE).mean() / sd:.2f}",
        ]
        if result.mean_ends is None:
            yield [*cells, "—", "—"]
            continue
        confidence = result.brier("cicf", COVERAGE)
        yield [*cells, f"{result.cicp(COVERAGE).mean():.2f}", f"{confidence.corrected:.2f}"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print, and write the page where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    small = [name for name in uci_names() if name != "year"]  # which takes hours
    parser.add_argument("--tables", default=",".join(small))
    parser.add_argument("--methods", default=",".join(methods()))
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("-o", "--output", type=Path)
    chosen = parser.parse_args(arguments)
    names = chosen.methods.split(",")
    results: dict[str, list[PointwiseResult]] = {}
    columns: dict[str, tuple[str, ...]] = {}
    print("| table | rows | method | PICP | Brier PICF | points off | width | CICP | Brier CICF |")
    print("|---|---|---|---|---|---|---|---|---|")
    started = time.perf_counter()
    for table in map(uci, chosen.tables.split(",")):
        results[table.name] = simulated(table, chosen.trials, names)
        columns[table.name] = table.columns
        for row in rows(table, results[table.name], names):
            print("| " + " | ".join(row) + " |", flush=True)
    print(f"{time.perf_counter() - started:.0f} s")
    if chosen.output is not None:
        from howsure_studies.pointwise import pointwise_report

        title = "UCI tables as worlds"
        pointwise_report(results, title=title, names=columns).save(chosen.output)
        print(f"written: {chosen.output}")


if __name__ == "__main__":
    main()
