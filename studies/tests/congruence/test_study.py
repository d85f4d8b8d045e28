"""The congruence studies in a plan: what is fitted, what is kept, and what comes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import encoders_tried
from encoders_tried import brightness
from extras import needs
from howsure.core.errors import HowsureWarning, InputError
from howsure.inputs.encoders import encode
from howsure_studies.congruence import (
    TRUTH,
    CongruenceMeasure,
    CongruenceStudies,
    CongruenceStudyOptions,
    all_runs,
    answer,
    compare,
    fit_methods,
    wave_task,
)
from howsure_studies.congruence.encoders import encoded
from howsure_studies.congruence.experiments import diagnosis, monotonicity, rejection, robustness
from howsure_studies.congruence.networks import OnFeatures
from howsure_studies.congruence.options import NAMES, STUDIES
from howsure_studies.congruence.stored import packed, unpacked
from howsure_studies.congruence.worlds import is_counted, make_task
from howsure_studies.engine import (
    Plan,
    Store,
    Trial,
    combined,
    load_plan,
    run,
    study_of,
    survey,
    trials_of,
)
from howsure_studies.methods.deep import HeadNetwork
from howsure_studies.methods.deep.modules import ModuleTraining, train_module
from howsure_studies.methods.linear import BayesianRidge
from howsure_studies.tasks import DataNotFoundError, Space

needs("torch")
needs("PIL")

from tasks.test_photographs import (  # noqa: E402
    aaf_folder,
    coco_folder,
    eva_folder,
    fg_net_folder,
)

WAVE = {"world": "wave", "rows": 120}
CELLS = {"world": "cells", "train": 40, "val": 20, "test": 20}
MEASURE: dict[str, Any] = {"draws": 2, "samplings": 2, "bootstraps": 2}
TRAINING: dict[str, Any] = {"epochs": 2, "layers": [8]}
TINY: dict[str, Any] = {**MEASURE, **TRAINING, "trials": 2, "orders": 19, "components": 5}
METHODS = {"normal": "gaussian", "counted": "poisson", "line": "bayesian_ridge"}


def plan_of(
    methods: Any = METHODS,
    worlds: Any = None,
    folder: Path = Path(),
    seeds: tuple[int, ...] = (4,),
    **options: Any,
) -> Plan:
    return Plan(
        name="tiny",
        study="congruence",
        worlds={"wave": WAVE} if worlds is None else worlds,
        methods=methods,
        seeds=seeds,
        options={**TINY, **options},
        folder=folder,
    )


def results(plan: Plan, store: Store) -> dict[str, list[CongruenceStudies]]:
    return {k: list(v) for k, v in combined(plan, survey(plan, store), store).results.items()}


def done(plan: Plan, store: Store) -> dict[str, list[CongruenceStudies]]:
    summary = run(plan, store)
    assert (summary.failed, summary.done) == (0, summary.trials)
    return results(plan, store)


def same(found: Any, wanted: Any, path: str = "") -> None:
    """Equal to the last bit, whatever is within."""
    assert type(found) is type(wanted), path
    if isinstance(wanted, np.ndarray):
        assert found.dtype == wanted.dtype, path
        np.testing.assert_array_equal(found, wanted, err_msg=path)
    elif is_dataclass(wanted):
        for item in fields(wanted):
            same(getattr(found, item.name), getattr(wanted, item.name), f"{path}.{item.name}")
    elif isinstance(wanted, Mapping):
        assert list(found) == list(wanted), path
        for key in wanted:
            same(found[key], wanted[key], f"{path}[{key!r}]")
    elif isinstance(wanted, tuple):
        assert len(found) == len(wanted), path
        for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
            same(one, other, f"{path}[{place}]")
    else:
        assert found == wanted or (found != found and wanted != wanted), path


@pytest.fixture(scope="module")
def wave(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, Store, CongruenceStudies]:
    """Two heads, a line and the truth on a small wave, all studies."""
    plan, store = plan_of(), Store(tmp_path_factory.mktemp("store"))
    (found,) = done(plan, store)["wave"]
    return plan, store, found


def titles(plan: Plan) -> list[str]:
    return [trial.labels["method"] for trial in trials_of(plan)]


def test_heads_are_one_trial_and_other_methods_have_their_own() -> None:
    assert titles(plan_of()) == [TRUTH, "normal, counted", "line"]
    three = {"head": "gaussian", "method": "head_regressor", "members": 3}
    assert titles(plan_of({**METHODS, "three": three})) == [
        *(TRUTH, "normal, counted", "line", "three")
    ]
    assert titles(plan_of(truth=False)) == ["normal, counted", "line"]
    assert titles(plan_of(studies=["rejection"])) == ["normal, counted", "line"]


def test_results_are_those_of_the_protocol_by_hand(
    wave: tuple[Plan, Store, CongruenceStudies],
) -> None:
    found = wave[2]
    task, seed = wave_task(4, rows=120), 4
    heads = {"normal": "gaussian", "counted": "poisson"}
    methods: dict[str, Any] = {
        k: HeadNetwork(head=head, epochs=2, layers=(8,)) for k, head in heads.items()
    }
    methods["line"] = BayesianRidge()
    fits = fit_methods(methods, [task], seeds=[seed])
    measure = CongruenceMeasure(**MEASURE)
    direct = compare(methods, [task], measure=measure, seeds=[seed], truth=True, fits=fits)
    same(found.result.options, direct.options)
    assert found.models == (*methods, TRUTH)
    for ours, theirs in zip(found.result.runs, direct.runs, strict=True):
        same(ours, replace(theirs, task="wave"))
    options = CongruenceStudyOptions(measure=measure, orders=19, trials=2)
    assert found.monotonicity is not None
    curves = iter(found.monotonicity.curves)
    for k, label in enumerate(methods):
        given = task, label, fits[0][label], options, seed
        same(found.rejections[k], replace(rejection(*given), task="wave"))
        rising = monotonicity(*given)
        same(found.monotonicity.options, rising.options)
        for other in rising.curves:
            same(next(curves), replace(other, task="wave"))
        same(found.diagnoses[k], replace(diagnosis(*given), task="wave"))
        test = answer(fits[0][label], task.test, task.space.embed, model=label)
        own = replace(options, measure=measure.of_task(task))
        same(found.robustness[k], robustness(test, own, counts=True, seed=seed))
        law = fits[0][label].predict(task.test.x).outcome
        np.testing.assert_array_equal(found.beliefs[k].point, law.point())
        np.testing.assert_array_equal(found.beliefs[k].upper, law.quantile([0.975])[:, 0])
        np.testing.assert_array_equal(found.beliefs[k].x, task.test.x[:, 0])
    assert (list(curves), found.notes) == ([], ())


def test_studies_are_stored_and_rebuilt_to_the_last_bit(
    wave: tuple[Plan, Store, CongruenceStudies],
) -> None:
    studies = wave[2]
    same(unpacked(*packed(studies)), studies)
    again = results(wave[0], wave[1])["wave"][0]
    same(again, studies)
    assert studies.rejections
    assert studies.diagnoses
    assert studies.robustness
    assert studies.monotonicity is not None


def test_the_table_has_one_row_a_world_method_seed_and_metric(
    wave: tuple[Plan, Store, CongruenceStudies],
) -> None:
    plan, store, studies = wave
    rows = combined(plan, survey(plan, store), store).table.to_pylist()
    keys = [(row["world"], row["method"], row["seed"], row["metric"]) for row in rows]
    assert len(set(keys)) == len(keys) == len(studies.records())
    worlds = {key[0] for key in keys}
    assert {"wave", "wave: mixup", "wave: 5 rows, outliers at 10 sd"} < worlds
    values = {key: row["value"] for key, row in zip(keys, rows, strict=True)}
    assert values["wave", "line", 4, "mae"] == studies.result.mean("line", "mae")
    headline = set(study_of("congruence").headline)
    assert headline == headline & {key[3] for key in keys}


def test_the_same_plan_again_has_nothing_to_do_and_a_method_more_costs_itself(
    wave: tuple[Plan, Store, CongruenceStudies],
) -> None:
    plan, store, _ = wave
    again = run(plan, store)
    assert (again.done, again.skipped) == (0, 3)

    def todo(changed: Plan) -> list[str]:
        return [
            trial.labels["method"]
            for trial in trials_of(changed)
            if store.entry(trial.address).status != "done"
        ]

    line = {"method": "linear_t"}
    assert todo(replace(plan, methods={**METHODS, "t": line})) == ["t"]
    assert todo(replace(plan, methods={"line": "bayesian_ridge"})) == []
    more = replace(plan, methods={**METHODS, "robust": "student_t"})
    assert todo(more) == ["normal, counted, robust"]
    assert todo(replace(plan, options={**TINY, "epochs": 3})) == ["normal, counted"]
    assert todo(replace(plan, options={**TINY, "orders": 20})) == ["normal, counted", "line"]
    assert len(todo(replace(plan, options={**TINY, "draws": 3}))) == 3
    renamed = {"other": "bayesian_ridge"}  # labels seed draws
    assert todo(replace(plan, methods=renamed)) == ["other"]


def test_several_seeds_give_studies_each_and_one_comparison(tmp_path: Path) -> None:
    plan = plan_of({"line": "bayesian_ridge"}, seeds=(0, 1), studies=["correctness"])
    first, second = done(plan, Store(tmp_path))["wave"]
    assert (first.seed, second.seed) == (0, 1)
    whole = all_runs([first, second])
    assert [run.seed for run in whole.of("line")] == [0, 1]
    assert whole.tasks == ("wave",)
    assert first.rejections == ()
    assert first.monotonicity is None
    with pytest.raises(InputError, match="same options"):
        all_runs([first, replace(second, result=replace(second.result, options={}))])


def test_images_are_seen_through_components_or_by_networks_for_images(tmp_path: Path) -> None:
    backbone = {"name": "small", "widths": [4, 6]}
    recipe = {"epochs": 2, "warm_epochs": 0, "frozen_epochs": 0, "keep": "best"}
    network = {"backbone": backbone, "recipe": recipe}
    picture = {"method": "image_network", "head": "gaussian", **network}
    methods = {"g": "gaussian", "p": "poisson", "pictured": picture, "line": "bayesian_ridge"}
    plan = plan_of(methods, {"c": CELLS}, kinds=["blur"], severities={"blur": [1.0, 5.0]})
    store = Store(tmp_path)
    (found,) = done(plan, store)["c"]
    assert found.models == ("g", "p", "pictured", "line")
    assert found.diagnoses == ()
    task = make_task({"task": "cells", **_sizes(), "seed": 4, "components": 5}, {})
    head = OnFeatures(method=HeadNetwork(head="gaussian", epochs=2, layers=(8,)), components=5)
    fits = fit_methods({"g": head}, [task], seeds=[4])
    measure = CongruenceMeasure(**MEASURE)
    direct = compare({"g": head}, [task], measure=measure, seeds=[4], fits=fits)
    same(found.result.runs[0], replace(direct.runs[0], task="c"))
    options = CongruenceStudyOptions(
        kinds=("blur",), severities={"blur": (1.0, 5.0)}, trials=2, measure=measure
    )
    blurred = monotonicity(task, "g", fits[0]["g"], options, 4)
    assert found.monotonicity is not None
    same(found.monotonicity.curves[0], replace(blurred.curves[0], task="c"))
    short = plan_of({"g": "gaussian", "p": "poisson"}, {"c": CELLS}, network=network)
    assert titles(short) == ["g", "p"]  # networks for images train one by one
    (own,) = done(replace(short, options={**short.options, "embedding": "features"}), store)["c"]
    assert own.rejections[0].options["kernel"] == "auto"
    assert all(np.isfinite(run.value("cce")) for run in own.result.runs)


def test_an_encoder_by_name_says_where_inputs_are_alike(tmp_path: Path) -> None:
    name = "encoders_tried:brightness"
    worlds = {"c": CELLS, "wave": WAVE}
    options: dict[str, Any] = {"embedding": name, "kinds": ["mixup"], "grid": "fixed"}
    plan, store = plan_of({"g": "gaussian"}, worlds, **options), Store(tmp_path)
    assert {trial.identity["options"]["embedding"] for trial in trials_of(plan)} == {name}
    found = {label: parts[0] for label, parts in done(plan, store).items()}
    for part in found.values():
        assert part.notes == (f"Inputs are compared using vectors of {name}.",)
    assert found["wave"].models == ("g", TRUTH)  # the truth is judged in the same space
    cells = make_task({"task": "cells", **_sizes(), "seed": 4, "components": 5}, {})
    tasks = {"c": cells, "wave": wave_task(4, rows=120)}
    for label, task in tasks.items():
        single: Any = HeadNetwork(head="gaussian", epochs=2, layers=(8,))
        method = OnFeatures(method=single, components=5) if task.images else single
        kind = "image" if task.images else None
        lights = Space(
            lambda x, kind=kind: np.asarray(encode(x, brightness, kind=kind), np.float64)
        )
        space = replace(task, space=lights)
        measure = CongruenceMeasure(**MEASURE, grid="fixed")
        (run_,) = compare({"g": method}, [space], measure=measure, seeds=[4]).runs
        same(found[label].result.runs[0], replace(run_, task=label))
    plain = done(plan_of({"g": "gaussian"}, worlds, kinds=["mixup"], grid="fixed"), store)
    for label, part in found.items():  # and it matters which
        assert part.result.runs[0].value("cce") != plain[label][0].result.runs[0].value("cce")
        assert part.result.runs[0].value("nll") == plain[label][0].result.runs[0].value("nll")


@pytest.mark.rate
def test_real_pictures_are_compared_by_a_network_in_onnx(
    data_dir: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_dir("img_mnist_t10k")
    runtime = needs("onnxruntime")
    path = tmp_path / "network.onnx"
    encoders_tried.write_onnx(encoders_tried.train_network(), path)
    network = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    def pictures(images: list[Any]) -> Any:
        assert {image.shape for image in images} == {(28, 28, 3)}
        x = np.stack(images).transpose(0, 3, 1, 2).astype(np.float32) / 255.0
        return network.run(None, {"pixels": x})[0]

    monkeypatch.setattr(encoders_tried, "network", pictures, raising=False)
    shift = {"kinds": ["label_shift"], "severities": {"label_shift": [60.0]}, "epochs": 20}
    plan = plan_of(
        {"g": "gaussian"},
        {"turned": {"world": "digits", "rows": 400}},
        embedding="encoders_tried:network",
        studies=["correctness", "monotonicity"],
        **shift,
    )
    (found,) = done(plan, Store(tmp_path / "store"))["turned"]
    assert found.monotonicity is not None
    (curve,) = found.monotonicity.curves
    assert (curve.values["cce"][:, 1] > 1.5 * curve.values["cce"][:, 0]).all()
    encoded.cache_clear()


def test_an_encoder_may_be_a_worlds_own() -> None:
    own = {**CELLS, "embedding": "encoders_tried:brightness"}
    trials = trials_of(plan_of({"g": "gaussian"}, {"c": own, "wave": WAVE}))
    spaces = {t.labels["world"]: t.identity["options"]["embedding"] for t in trials}
    assert spaces == {"c": "encoders_tried:brightness", "wave": "task"}


@pytest.mark.parametrize(
    ("world", "embedding", "message"),
    [
        (WAVE, "transformers:some/model", "a model of texts or images, but x of world 'a' is a v"),
        (WAVE, "open_clip:ViT-B-32/tag", "set embedding='task' for that world"),
        (CELLS, "encoders_tried:ROWS", "a callable that takes a list of images for world 'a'"),
        (CELLS, "no_such_module:f", "embedding 'no_such_module:f' cannot be imported"),
        (CELLS, "encoders_tried:brightnes", "near: brightness"),
        (CELLS, "encoders_tried:Rows", "embedding must be 'transformers:NAME'"),
        (CELLS, "clip", "'task', 'features' or an encoder that assess takes"),
    ],
)
def test_encoders_that_do_not_fit_are_refused(world: Any, embedding: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        trials_of(plan_of({"g": "gaussian"}, {"a": world}, embedding=embedding))


def test_an_encoder_is_asked_once_for_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def count(images: list[Any]) -> list[list[float]]:
        asked.append(len(images))
        return [[float(image.mean()), 1.0] for image in images]

    monkeypatch.setattr(encoders_tried, "counted", count, raising=False)
    encoded.cache_clear()
    embed = encoded("encoders_tried:counted", "image")
    x = np.random.default_rng(0).integers(0, 256, (70, 4, 4, 3), dtype=np.uint8)
    first = embed(x)
    np.testing.assert_array_equal(embed(x.copy()), first)
    assert sum(asked) == 70
    np.testing.assert_array_equal(embed(x[::-1]), first[::-1])
    for number in range(64):
        embed(x[: number + 1])
    asked.clear()
    embed(x)  # which made room for others in the meantime
    assert sum(asked) == 70
    encoded.cache_clear()


def test_an_encoder_that_fails_is_named() -> None:
    with pytest.raises(InputError, match="'encoders_tried:broken' fails on these items: cannot"):
        encoded("encoders_tried:broken", "image")(np.zeros((2, 3, 3, 1), dtype=np.uint8))


def _sizes() -> dict[str, int]:
    return {key: value for key, value in CELLS.items() if isinstance(value, int)}


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(90, 2))
    y = rng.poisson(np.exp(0.5 * x[:, 0] + 1))
    rows = [f"{a},{b},{c}" for (a, b), c in zip(x, y, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,y", *rows]) + "\n")
    table = {"table": "t.csv", "target": "y"}
    worlds = {
        "counts": {**table, "counts": True, "features": ["a"], "units": "calls"},
        "numbers": {**table, "methods": ["normal", "counted"], "studies": ["robustness"]},
    }
    plan = plan_of(worlds=worlds, folder=tmp_path, kinds=["blur", "mixup"])
    assert titles(plan) == ["normal, counted", "line", "normal"]  # counts fit counts alone
    store = Store(tmp_path / "store")
    found = done(plan, store)
    (counts,), (numbers,) = found["counts"], found["numbers"]
    assert (counts.units, counts.counts, counts.models) == ("calls", True, tuple(METHODS))
    assert counts.beliefs[0].x is not None
    assert numbers.beliefs[0].x is None
    assert (numbers.result.runs, len(numbers.robustness)) == ((), 1)
    assert counts.monotonicity is not None
    assert {curve.kind for curve in counts.monotonicity.curves} == {"mixup"}
    (trial, *_) = trials_of(plan)
    (tmp_path / "t.csv").write_text("\n".join(["a,b,y", *rows[1:]]) + "\n")
    assert {t.address for t in trials_of(plan)}.isdisjoint(store.addresses())
    make_task({"task": "discrete-wave", "rows": 60, "seed": 0}, {})  # the last is remembered
    with pytest.raises(InputError, match="has changed since the plan was read"):
        study_of("congruence").run(trial)


def test_methods_without_an_answer_say_why(tmp_path: Path) -> None:
    plan = plan_of({"line": "bayesian_ridge", "q": "linear_quantiles"})
    (found,) = done(plan, Store(tmp_path))["wave"]
    assert [item.model for item in found.rejections] == ["line"]
    told = "congruence needs distributions or samples of y, got quantiles"
    assert found.result.of("q")[0].reasons["cce"] == told
    assert f"q has no robustness: {told}" in found.notes
    assert len(found.notes) == len(STUDIES) - 1


def test_worlds_without_data_are_left_out_only_where_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOWSURE_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    worlds = {"wave": WAVE, "red": "blood", "turned": "digits", "faces": "aaf"}
    with pytest.raises(DataNotFoundError, match="howsure data get bccd"):
        trials_of(plan_of(worlds=worlds))
    with pytest.warns(HowsureWarning, match="not on this machine: red, turned, faces"):
        trials = trials_of(plan_of(worlds=worlds, absent="skip"))
    assert {trial.labels["world"] for trial in trials} == {"wave"}
    with pytest.raises(DataNotFoundError, match="mnist"):
        trials_of(plan_of(worlds={"turned": "digits"}, absent="skip"))
    with pytest.raises(DataNotFoundError, match="aaf"):
        trials_of(plan_of(worlds={"wave": WAVE, "a": {"world": "aaf", "absent": "error"}}))


@pytest.mark.rate
def test_real_pictures_are_worlds(data_dir: Callable[[str], Path]) -> None:
    data_dir("img_bccd_cell_count")
    data_dir("img_mnist_t10k")
    worlds = {"red": {"world": "blood", "shrink": 40}, "turned": {"world": "digits", "rows": 40}}
    trials = trials_of(plan_of(worlds=worlds, studies=["correctness"]))
    assert [trial.labels["method"] for trial in trials] == [
        *("normal, counted", "line", "normal", "line")
    ]
    small: list[Trial] = [trials[0], trials[2]]
    for trial in small:
        facts = study_of("congruence").run(trial).facts
        assert facts["counts"] is is_counted(trial.identity["world"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"options": {"severites": {}}}, "near: severities"),
        ({"options": {"studies": ["correctnes"]}}, "near: correctness"),
        ({"options": {"studies": []}}, "must not be empty"),
        ({"options": {"kinds": ["fog"]}}, "kinds must be one of"),
        ({"options": {"kinds": "blur"}}, "kinds must be a list"),
        ({"options": {"severities": {"mixup": [0.2, 0.1]}}}, "must rise"),
        ({"options": {"draws": 0}}, "draws must be"),
        ({"options": {"samplings": 0}}, "samplings must be"),
        ({"options": {"grid": "free"}}, "grid must be"),
        ({"options": {"reference": "train"}}, "reference must be"),
        ({"options": {"embedding": "clip"}}, "embedding must be"),
        ({"options": {"outliers": [0]}}, "outliers must be"),
        ({"options": {"narrowing": 1.5}}, "narrowing must be"),
        ({"options": {"absent": "ignore"}}, "absent must be"),
        ({"options": {"epochs": 0}}, "epochs must be"),
        ({"options": {"network": 3}}, "network must be a table"),
        ({"worlds": {"a": "wav"}}, "near: wave"),
        ({"worlds": {"a": {"world": "wave", "train": 3}}}, "option of world 'a'"),
        ({"worlds": {"a": {"world": "wave", "methods": ["none"]}}}, "methods must be one of"),
        ({"worlds": {"a": {"world": "wave", "table": "t.csv"}}}, "one of world and table"),
        ({"worlds": {"a": {"table": "t.csv"}}}, "target column"),
        ({"methods": {"a": {"method": "gaussian", "k": 3}}}, "k"),
        ({"methods": {"a": "gausian"}}, "gausian"),
        ({"methods": {"the truth": "gaussian"}}, "must not be called"),
    ],
)
def test_bad_plans_are_refused_before_anything_runs(change: Any, message: str) -> None:
    plan = plan_of()
    options = {**plan.options, **change.pop("options", {})}
    with pytest.raises(InputError, match=message):
        trials_of(replace(plan, **{"options": options, **change}))


def test_no_method_that_fits_is_told(data_dir: Callable[[str], Path]) -> None:
    data_dir("img_mnist_t10k")
    with pytest.raises(InputError, match="a method that fits one of its worlds"):
        trials_of(plan_of({"p": "poisson"}, {"turned": "digits"}))


def test_options_of_a_trial_are_read_back() -> None:
    made = CongruenceStudyOptions.of(plan_of(severities={"mixup": [0.1, 0.2]}, draws="exact"))
    read = CongruenceStudyOptions(**made.identity())
    assert read.measure == made.measure
    assert read.measure.draws is None
    assert read.identity() == made.identity()
    assert {"kernel", "layers", "orders"} < set(NAMES)


PAPER: dict[str, dict[str, Any]] = {  # section 4 of the paper, and for EVA its configuration
    "aaf": {"epochs": 200, "batch_size": 32, "learning_rate": 1e-3, "weight_decay": 1e-5},
    "fg-net": {"epochs": 100, "batch_size": 32, "learning_rate": 1e-3, "weight_decay": 1e-5},
    "eva": {"epochs": 200, "batch_size": 32, "learning_rate": 1e-4, "weight_decay": 1e-6},
    "coco-people": {"epochs": 30, "batch_size": 256, "learning_rate": 1e-3, "weight_decay": 1e-5},
}
FOLDERS = {
    "aaf": aaf_folder,
    "fg-net": fg_net_folder,
    "eva": eva_folder,
    "coco-people": coco_folder,
}


@pytest.mark.parametrize("name", PAPER)
@pytest.mark.rate
def test_the_papers_recipe_reaches_the_training(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that the plan says, seen where a network is trained; which a small one then is."""
    folder = tmp_path / name
    folder.mkdir()
    plan = load_plan("congruence_paper")
    entry = {**plan.worlds[name], "folder": str(FOLDERS[name](folder)), "complete": False}
    plan = replace(plan, worlds={name: entry})
    seen: list[tuple[Any, dict[str, Any]]] = []

    def spy(x: Any, y: Any, **options: Any) -> Any:
        seen.append((x, options))
        small = {"backbone": {"name": "small", "widths": [2, 2]}}
        return train_module(x, y, **{**options, **small, "recipe": replace(recipe, epochs=1)})

    said = load_plan("congruence_paper").options["network"]
    recipe = ModuleTraining(**{**said["recipe"], **PAPER[name]})
    monkeypatch.setattr("howsure_studies.congruence.study.train_module", spy)
    trials = trials_of(plan)
    heads = 4 if name == "eva" else 7
    assert len(trials) == heads
    output = study_of("congruence").run(trials[0])
    ((x, options),) = seen
    assert x.shape[1:] == (224, 224, 3)
    assert options["recipe"] == recipe
    for key, value in {**said["recipe"], **PAPER[name]}.items():
        told = getattr(options["recipe"], key)
        assert (list(told) if isinstance(told, tuple) else told) == value
    assert options["backbone"]["name"] == "resnet34"
    assert len(options["held"][1]) > 0
    (run_,) = unpacked(output.arrays, output.facts).result.runs
    assert np.isfinite(run_.value("cce"))
    assert run_.repeats.shape == (5,)  # sets of draws
    assert run_.bootstraps["cce"].shape == (10, 5)  # bootstrap samples, and sets of draws
    measure = CongruenceStudyOptions.of(plan, name).measure
    assert (measure.draws, measure.replicates, measure.grid) == (1, 20, "resampled")


def test_the_papers_wave_is_trained_as_published() -> None:
    plan = load_plan("congruence_paper")
    trials = trials_of(replace(plan, worlds={"wave": plan.worlds["wave"]}))
    labels = "poisson, negative_binomial, gaussian, double_poisson"
    assert [trial.labels["method"] for trial in trials] == [TRUTH, labels]
    published = {
        **{"layers": [128, 128, 128, 64], "epochs": 200, "batch_size": 32, "keep": "best"},
        **{"learning_rate": 1e-3, "weight_decay": 1e-5, "schedule": "cosine"},
    }
    for told in trials[1].identity["methods"].values():
        assert published.items() <= told["options"].items()


def test_the_papers_plan_is_changed_as_its_page_says() -> None:
    clip = "open_clip:ViT-B-32/laion2b_s34b_b79k"
    backbone = 'worlds.aaf.network={backbone = "encoders_tried:make"}'
    changes = [f"embedding={clip}", "worlds.wave.embedding=task", backbone]
    plan = load_plan("congruence_paper", changes)
    spaces = {label: CongruenceStudyOptions.of(plan, label).embedding for label in plan.worlds}
    assert spaces == {"wave": "task", **dict.fromkeys(PAPER, clip)}
    network = CongruenceStudyOptions.of(plan, "aaf").network
    assert network is not None
    assert network["backbone"] == "encoders_tried:make"
    assert PAPER["aaf"].items() <= network["recipe"].items()


def test_a_world_says_some_of_the_network_and_the_plan_the_rest() -> None:
    network = {"backbone": "small", "recipe": {"epochs": 3, "learning_rate": 0.1}}
    worlds = {"a": CELLS, "b": {**CELLS, "network": {"recipe": {"epochs": 9}}}}
    plan = plan_of({"g": "gaussian"}, worlds, network=network)
    own = {"backbone": "small", "recipe": {"epochs": 9, "learning_rate": 0.1}}
    assert CongruenceStudyOptions.of(plan, "a").network == network
    assert CongruenceStudyOptions.of(plan, "b").network == own
    alone = plan_of({"g": "gaussian"}, worlds)
    assert CongruenceStudyOptions.of(alone, "b").network == {"recipe": {"epochs": 9}}
    wrong = {**CELLS, "network": {"recipe": {"epoch": 9}}}
    with pytest.raises(InputError, match="near: epochs"):
        trials_of(plan_of({"g": "gaussian"}, {"b": wrong}, network=network))


def test_the_small_plan_stands_for_its_family() -> None:
    plan = load_plan("congruence")
    assert plan.name == "congruence_small"
    assert plan.worlds["wave"]["draws"] == 5
    wave = CongruenceStudyOptions.of(plan, "wave")
    assert (wave.measure.grid, wave.measure.bootstraps, wave.measure.samplings) == ("fixed", 10, 5)
    assert wave.methods == ("poisson", "negative_binomial", "gaussian", "double_poisson")
    assert CongruenceStudyOptions.of(plan, "cells").measure.draws == 1
