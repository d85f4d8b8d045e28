"""The published tables of the shift benchmark hold together, and say what their paper says.

Gustafsson, Danelljan and Schön (2023), tables A1 to A42. Where they do not, the slip is named.
"""

from __future__ import annotations

import csv
import math
from importlib import resources

import numpy as np
import pytest
from scipy.stats import beta, rankdata

from howsure.core.errors import InputError
from howsure_studies.engine import published
from howsure_studies.tasks.images import image_names, image_task

EVERY = published("shift")
PUBLISHED_DATASETS = tuple(dict.fromkeys(value.task for value in EVERY))
PUBLISHED_METHODS = tuple(dict.fromkeys(value.method for value in EVERY))
PUBLISHED_COVERAGES = (0.8, 0.9, 0.95)
SYNTHETIC, REAL = PUBLISHED_DATASETS[:6], PUBLISHED_DATASETS[6:]
UNSHIFTED = ("cells", "chair-angle")
ALWAYS, SELECTIVE = PUBLISHED_METHODS[:5], PUBLISHED_METHODS[5:10]
SIX = ("conformal", "gaussian", "gaussian_ensemble", "quantile", SELECTIVE[0], SELECTIVE[4])
VARIED = ("gaussian_gmm", "gaussian_knn", *PUBLISHED_METHODS[10:])
NINE = tuple(
    name
    for name in PUBLISHED_DATASETS
    if name not in ("cells-gap", "chair-angle-tails", "asset-wealth")
)
LAYOUT = (
    *((name, 0.9, PUBLISHED_METHODS[:10]) for name in PUBLISHED_DATASETS),
    *((name, coverage, SIX) for coverage in (0.8, 0.95) for name in NINE),
    *((name, 0.9, VARIED) for name in PUBLISHED_DATASETS),
)
"""Set, coverage and methods of tables A1, A2, … A42."""

QUANTITIES = ("val_mae", "val_width", "test_empirical_coverage", "prediction_rate")
RUNS = 5

Row = dict[str, str]


def sizes(name: str) -> tuple[int, int]:
    """Rows of the validation and test parts, as the task itself knows them."""
    task = image_task(name, folder=".")
    return task.published["val"], task.published[task.tests[0]]


TEST_ROWS = {name: sizes(name)[1] for name in PUBLISHED_DATASETS}


@pytest.fixture(scope="module")
def printed() -> list[Row]:
    """The file as it is, repeated rows and digits included."""
    file = resources.files("howsure_studies.shift") / "published.csv"
    rows = []
    for row in csv.DictReader(file.read_text("utf-8").splitlines()):
        assert (row["paper"], row["note"]) == ("Gustafsson, Danelljan and Schön 2023", "")
        quantity, coverage = row["measure"].split("@")
        named = {"table": row["table"].removeprefix("table "), "dataset": row["task"]}
        named |= {"coverage": coverage, "method": row["method"], "quantity": quantity}
        rows.append({**named, "mean": row["value"], "sd": row["sd"]})
    return rows


def numbers(
    quantity: str,
    methods: tuple[str, ...],
    sets: tuple[str, ...] = PUBLISHED_DATASETS,
    coverage: float = 0.9,
) -> np.ndarray:
    """Means, a row for each set and a column for each method."""
    held = {
        (value.task, value.method): value.value
        for value in published("shift", measure=quantity, coverage=coverage)
    }
    return np.array([[held[name, method] for method in methods] for name in sets])


def one(name: str, method: str, quantity: str = "test_empirical_coverage") -> float:
    return float(numbers(quantity, (method,), (name,))[0, 0])


# The file


def test_all_tables_are_there_whole(printed: list[Row]) -> None:
    wanted = [
        (f"A{number}", name, f"{coverage:g}", method, quantity)
        for number, (name, coverage, methods) in enumerate(LAYOUT, start=1)
        for method in methods
        for quantity in QUANTITIES
    ]
    found = [tuple(row.values())[:5] for row in printed]
    assert sorted(found) == sorted(wanted)
    assert len(set(found)) == len(found) == 1296
    assert list(dict.fromkeys(row["table"] for row in printed)) == [f"A{k}" for k in range(1, 43)]


def test_numbers_are_printed_with_six_digits_at_most(printed: list[Row]) -> None:
    for row in printed:
        for text in (row["mean"], row["sd"]):
            assert len(text.replace(".", "").lstrip("0")) <= 6
        always = row["quantity"] == "prediction_rate" and row["method"] in ALWAYS
        assert (row["sd"] == "") == (always and row["mean"] == "1.0") == always
        assert always or float(row["sd"]) > 0


def test_every_number_is_given_once_and_by_its_names(printed: list[Row]) -> None:
    assert len(EVERY) == 1296 - 96
    assert len({(v.task, v.coverage, v.method, v.measure) for v in EVERY}) == len(EVERY)
    assert set(PUBLISHED_DATASETS) <= set(image_names())
    assert {v.coverage for v in EVERY} == set(PUBLISHED_COVERAGES)
    assert {v.measure for v in EVERY} == set(QUANTITIES)
    chosen = published("shift", task="cells", coverage=0.8, method="quantile")
    assert [(v.table, v.value) for v in chosen][:2] == [
        ("table A13", 4.40758),
        ("table A13", 13.3314),
    ]
    assert math.isnan(chosen[3].sd)
    assert published("shift", task="cells-gap", coverage=0.8) == ()


def test_names_that_are_not_there_are_refused() -> None:
    with pytest.raises(InputError, match=r"task must be one of cells, .*got 'Cells'; near"):
        published("shift", task="Cells")
    with pytest.raises(InputError, match=r"method must be one of conformal, .*got 'gmm'"):
        published("shift", method="gmm")


# Arithmetic within and between tables


def test_repeated_rows_agree(printed: list[Row]) -> None:
    """The variations' tables repeat two methods of the set's first table, digit by digit."""
    held: dict[tuple[str, ...], set[tuple[str, str]]] = {}
    for row in printed:
        key = (row["dataset"], row["coverage"], row["method"], row["quantity"])
        held.setdefault(key, set()).add((row["mean"], row["sd"]))
    assert all(len(values) == 1 for values in held.values())


def test_methods_of_the_same_networks_share_errors_and_widths(printed: list[Row]) -> None:
    held: dict[tuple[str, ...], set[tuple[str, str]]] = {}
    for row in printed:
        if row["quantity"] in QUANTITIES[:2] and row["method"] != "gaussian_gmm_spectral":
            ensemble = row["method"].startswith("gaussian_ensemble")
            family = "gaussian_ensemble" if ensemble else row["method"].split("_")[0]
            key = (row["dataset"], row["coverage"], family, row["quantity"])
            held.setdefault(key, set()).add((row["mean"], row["sd"]))
    assert all(len(values) == 1 for values in held.values())


def test_only_quantile_regression_is_trained_again_for_another_coverage(
    printed: list[Row],
) -> None:
    held: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for row in printed:
        if row["quantity"] == "val_mae" and row["dataset"] in NINE:
            held.setdefault((row["method"], row["dataset"]), set()).add((row["mean"], row["sd"]))
    for (method, _), values in held.items():
        assert len(values) == (3 if method == "quantile" else 1)


def on_grid(row: Row) -> bool:
    """Whether a mean of five shares of the test rows can round to this."""
    whole = RUNS * TEST_ROWS[row["dataset"]]
    total = float(row["mean"]) * whole
    slack = 0.51 * 10.0 ** (math.floor(math.log10(float(row["mean"]))) - 5) * whole
    return abs(total - round(total)) <= slack


def counted(row: Row) -> bool:
    """Shares of all test rows: rates, and coverage of methods that always predict."""
    share = row["quantity"] == "test_empirical_coverage" and row["method"] in ALWAYS
    return share or (row["quantity"] == "prediction_rate" and row["sd"] != "")


def test_shares_are_means_of_five_counts_but_for_one(printed: list[Row]) -> None:
    """Which checks their digits, and the sizes of the test sets."""
    off = [row for row in printed if counted(row) and not on_grid(row)]
    assert [(row["table"], row["method"], row["quantity"], row["mean"]) for row in off] == [
        ("A21", "gaussian", "test_empirical_coverage", "0.60129")
    ]
    assert sum(map(counted, printed)) == 324
    assert round(0.60129 * RUNS * 3890) / (RUNS * 3890) == pytest.approx(0.601285, abs=5e-7)


def test_spreads_have_the_divisor_five(printed: list[Row]) -> None:
    """Five counts of sum S: (5 n sd)² = 5 Σk² − S², a whole number that S² fixes modulo 5."""
    tried = held = off = 0
    for row in filter(counted, printed):
        rows, sd = TEST_ROWS[row["dataset"]], float(row["sd"])
        square = (RUNS * rows * sd) ** 2
        slack = 1e-6 + square * 1.02 * 10.0 ** (math.floor(math.log10(sd)) - 5) / sd
        if slack < 0.4:
            tried += 1
            total = round(float(row["mean"]) * RUNS * rows)
            above = (square + total**2) % 5
            held += min(above, 5 - above) <= slack
            unbiased = (square * 4 / 5 + total**2) % 5
            off += min(unbiased, 5 - unbiased) > slack
    assert held == tried == 185
    assert off > 0.9 * held


def test_higher_coverage_covers_more_with_wider_intervals_but_for_one() -> None:
    found = {
        quantity: np.stack([numbers(quantity, SIX, NINE, c) for c in PUBLISHED_COVERAGES])
        for quantity in QUANTITIES
    }
    assert (np.diff(found["test_empirical_coverage"], axis=0) > 0).all()
    shorter = np.argwhere(np.diff(found["val_width"], axis=0) <= 0)
    assert [(NINE[name], SIX[method]) for _, name, method in shorter] == [
        ("cells-tails", "quantile")
    ]
    assert (numbers("val_width", ("quantile",), ("cells-tails",), 0.8) == 13.1241).all()


def test_rates_move_with_the_coverage_only_where_mixtures_are_fitted_again() -> None:
    """The rule does not know the coverage, so this is the noise of a refit without a seed."""
    rates = np.stack([numbers("prediction_rate", SIX, NINE, c) for c in PUBLISHED_COVERAGES])
    moved = np.ptp(rates, axis=0).max(axis=0)
    assert dict(zip(SIX, moved > 0, strict=True)) == {name: name == "gaussian_gmm" for name in SIX}
    assert moved.max() == pytest.approx(0.0045, abs=1e-5)


@pytest.mark.parametrize("name", UNSHIFTED)
@pytest.mark.parametrize("coverage", PUBLISHED_COVERAGES)
def test_without_shift_coverage_is_what_split_conformal_gives(name: str, coverage: float) -> None:
    """The rank ⌊(1 − α) n⌋ + 1 of n makes the coverage a beta variable; the test set adds noise."""
    val, test = sizes(name)
    rank = math.floor(coverage * val + 1e-9) + 1
    law = beta(rank, val + 1 - rank)
    sd = math.sqrt(law.var() + coverage * (1 - coverage) / test)
    methods = ALWAYS if coverage == 0.9 else SIX[:4]
    assert (
        abs(numbers("test_empirical_coverage", methods, (name,), coverage) - law.mean()) < 2.5 * sd
    ).all()


# What the paper says of them


def test_landmarks() -> None:
    assert [one("cells-tails", method) for method in PUBLISHED_METHODS[:8]] == pytest.approx(
        [0.554, 0.501, 0.544, 0.587, 0.522, 0.890, 0.859, 0.687], abs=5e-4
    )
    assert [
        one("cells-tails", method, "prediction_rate") for method in SELECTIVE[:3]
    ] == pytest.approx([0.537, 0.567, 0.691], abs=5e-4)
    for name, plain, kept, rate in (
        ("cells-gap", 0.660, 0.891, 0.494),
        ("chair-angle-tails", 0.623, 0.902, 0.655),
        ("chair-angle-gap", 0.694, 0.912, 0.649),
        ("ventricular-volume", 0.731, 0.752, 0.708),
    ):
        assert [
            one(name, "gaussian"),
            one(name, "gaussian_gmm"),
            one(name, "gaussian_gmm", "prediction_rate"),
        ] == pytest.approx([plain, kept, rate], abs=5e-4)


def test_without_shift_all_cover_and_with_it_none_does() -> None:
    at_home = numbers("test_empirical_coverage", ALWAYS, UNSHIFTED)
    assert (abs(at_home - 0.9) < 0.012).all()
    shifted = tuple(name for name in PUBLISHED_DATASETS if name not in UNSHIFTED)
    away = numbers("test_empirical_coverage", ALWAYS, shifted)
    assert (away < 0.9).all()
    assert (numbers("test_empirical_coverage", PUBLISHED_METHODS[:10], REAL) < 0.9).all()
    tails, gap = numbers("test_empirical_coverage", ALWAYS, ("cells-tails", "cells-gap"))
    assert (tails < gap).all()
    for coverage in (0.8, 0.95):
        strained = tuple(name for name in NINE if name in REAL and name != "brain-tumour-pixels")
        assert (numbers("test_empirical_coverage", SIX, strained, coverage) < coverage - 0.05).all()


def test_ensembles_give_shorter_intervals() -> None:
    plain, ensemble, gaussian, both, quantile = numbers("val_width", ALWAYS).T
    assert (ensemble < plain).all()
    assert (both < gaussian).sum() == 10
    assert 4 <= (quantile < gaussian).sum() <= 8


def test_ensembles_rank_best_on_real_sets() -> None:
    for quantity in ("val_mae", "val_width"):
        ranks = rankdata(numbers(quantity, ALWAYS, REAL), axis=1).mean(axis=0)
        assert set(np.argsort(ranks)[:2].tolist()) == {1, 3}
    error = abs(numbers("test_empirical_coverage", ALWAYS, REAL) - 0.9).mean(axis=0)
    assert set(np.argsort(error)[:2].tolist()) == {1, 3}


def test_better_coverage_costs_predictions() -> None:
    """Figure A6: the order by average coverage error is the order by prediction rate."""
    error = abs(numbers("test_empirical_coverage", SELECTIVE) - 0.9).mean(axis=0)
    rate = numbers("prediction_rate", SELECTIVE).mean(axis=0)
    order = [SELECTIVE[k] for k in np.argsort(error)]
    assert order == [SELECTIVE[k] for k in np.argsort(rate)]
    assert order == [SELECTIVE[k] for k in (3, 0, 1, 4, 2)]
    assert error.min() == pytest.approx(0.0564, abs=5e-5)
    assert rate.min() == pytest.approx(0.7689, abs=5e-5)


def test_density_of_features_improves_coverage_on_every_set() -> None:
    plain, gmm, _, both, ensemble_gmm = numbers(
        "test_empirical_coverage",
        ("gaussian", "gaussian_gmm", "gaussian_knn", "gaussian_ensemble", "gaussian_ensemble_gmm"),
    ).T
    assert (gmm > plain).all()
    assert (abs(gmm[:6] - 0.9) < 0.0125).all()
    assert (gmm - plain)[6:].max() < 0.07
    lower = [PUBLISHED_DATASETS[k] for k in np.flatnonzero(ensemble_gmm <= both)]
    assert lower == list(UNSHIFTED)
    better = np.diff(numbers("test_empirical_coverage", SELECTIVE[4:2:-1]), axis=1)[:, 0] > 0
    assert better.sum() == 10


def test_only_conformal_prediction_stands_on_nuclei() -> None:
    best, second = np.sort(numbers("test_empirical_coverage", ALWAYS, REAL), axis=1)[:, :-3:-1].T
    winner = numbers("test_empirical_coverage", ALWAYS, REAL).argmax(axis=1)
    clear = [REAL[k] for k in np.flatnonzero((winner == 0) & (best - second > 0.02))]
    assert clear == ["histology-nuclei-pixels"]


# Where the tables do not bear out the text


def test_variance_is_no_marginal_help_on_tails_and_none_in_gaps() -> None:
    change = np.diff(
        numbers("test_empirical_coverage", ("gaussian", "gaussian_variance"), SYNTHETIC)
    )[:, 0]
    found = dict(zip(SYNTHETIC, change.round(3).tolist(), strict=True))
    assert found["cells-tails"] == 0.143
    assert (found["cells-gap"], found["chair-angle-gap"]) == (-0.008, -0.003)


def test_variations_matter_on_some_sets() -> None:
    """The distance on three sets, the number of neighbours on one, of components on one."""
    knn, far = (
        numbers("test_empirical_coverage", (m,))[:, 0] for m in ("gaussian_knn", "gaussian_knn_l2")
    )
    large = {PUBLISHED_DATASETS[k] for k in np.flatnonzero(far - knn > 0.035)}
    assert large == {"cells-tails", "chair-angle-tails", "aerial-building-pixels"}
    assert (far - knn).max() == pytest.approx(0.163, abs=5e-4)
    neighbours = [
        one("chair-angle-tails", m) for m in ("gaussian_knn_5", "gaussian_knn", "gaussian_knn_20")
    ]
    assert neighbours == pytest.approx([0.886, 0.860, 0.810], abs=5e-4)
    components = [
        one("aerial-building-pixels", m)
        for m in ("gaussian_gmm_2", "gaussian_gmm", "gaussian_gmm_8")
    ]
    assert components == pytest.approx([0.752, 0.765, 0.850], abs=5e-4)


def test_the_chairs_baseline_keeps_more_than_the_rule() -> None:
    """Test angles lie between the training angles, so nearer to them than validation rows are."""
    methods = ("gaussian_gmm", "gaussian_knn", *PUBLISHED_METHODS[10:12], *PUBLISHED_METHODS[13:])
    for name, low, high in (("cells", -2, 2), ("chair-angle", 3, 11)):
        val, test = sizes(name)
        kept = (math.floor(0.95 * val + 1e-9) + 1) / val
        sd = math.sqrt(0.95 * 0.05 * (1 / val + 1 / test))
        off = (numbers("prediction_rate", methods, (name,)) - kept) / sd
        assert (off > low).all()
        assert (off < high).all()
