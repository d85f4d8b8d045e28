"""Columns that become embeddings: texts, images, lists; the same on labelled and new rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from extras import needs
from howsure.core.errors import HowsureError, InputError, MissingDependencyError
from howsure.inputs import load, load_unlabelled
from howsure.inputs.encoders import encode

pd = needs("pandas")
pl = needs("polars")

VECTORS = np.arange(12.0).reshape(4, 3)
BASE = {"y": [1.0, 2.0, 3.0, 4.0], "mean": [1.0, 2.0, 3.0, 4.5], "sd": [1.0, 1.0, 1.0, 1.0]}
NOTES = ["a cat", "a dog", "no", "a very long note, with commas"]


def lengths(texts: list[str]) -> list[list[float]]:
    return [[float(len(text)), 1.0] for text in texts]


def brightness(images: list[Any]) -> list[list[float]]:
    return [[float(image.mean()), float(image.shape[0])] for image in images]


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """A table in one folder whose images lie in a folder beside it."""
    pil = needs("PIL.Image")
    (tmp_path / "img").mkdir()
    for shade in range(4):
        pil.new("RGB", (8, 4 + shade), (shade * 20,) * 3).save(tmp_path / "img" / f"{shade}.png")
    table = pa.table({**BASE, "path": [f"img/{shade}.png" for shade in range(4)]})
    csv.write_csv(table, tmp_path / "table.csv")
    return tmp_path / "table.csv"


class TestTexts:
    def test_a_column_becomes_the_embedding(self, tmp_path: Path) -> None:
        path = tmp_path / "t.csv"
        csv.write_csv(pa.table({**BASE, "note": NOTES}), path)
        held = load(path, encode={"note": lengths})
        assert held.evalsets[0].embedding is not None
        assert held.evalsets[0].embedding[:, 0].tolist() == [len(note) for note in NOTES]
        assert held.texts["note"].tolist() == NOTES
        assert held.images is None
        assert "encoded by lengths" in {use.role for use in held.explanation}

    def test_any_source_and_any_encoder(self) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        fitted = TfidfVectorizer().fit(NOTES)
        for table in (pd.DataFrame, pl.DataFrame, pa.table, dict):
            (held,) = load(table({**BASE, "note": NOTES}), encode={"note": fitted}).evalsets
            np.testing.assert_allclose(held.embedding, fitted.transform(NOTES).toarray(), atol=1e-6)

    def test_dropped_rows_are_not_encoded(self) -> None:
        seen: list[str] = []

        def remember(texts: list[str]) -> list[list[float]]:
            seen.extend(texts)
            return lengths(texts)

        table = {**BASE, "note": ["a", None, "ccc", "dd"]}
        with pytest.raises(InputError, match="cells are missing: 1 in 'note'"):
            load(table, encode={"note": remember})
        (held,) = load(table, encode={"note": remember}, missing="drop").evalsets
        assert seen == ["a", "ccc", "dd"]
        assert held.embedding is not None
        assert held.embedding[:, 0].tolist() == [1.0, 3.0, 2.0]

    def test_several_models_share_one_embedding(self) -> None:
        table = {name: values * 2 for name, values in BASE.items()}
        table |= {"note": NOTES * 2, "model": ["a"] * 4 + ["b"] * 4}
        first, second = load(table, encode={"note": lengths}).evalsets
        assert first.embedding is second.embedding or (first.embedding == second.embedding).all()

    @pytest.mark.parametrize(
        ("given", "match"),
        [
            ({"nope": lengths}, "encode: no column of"),
            ({"note": lengths, "other": lengths}, "encode must name one column, got 2"),
            ("note", "COLUMN=ENCODER"),
            ("=transformers:x", "COLUMN=ENCODER"),
            (["note=transformers:x", "b=c"], "one column, got 2"),
            (7, "COLUMN=ENCODER"),
            ({"note": 7}, "column 'note': encoder must be"),
            ({"count": lengths}, "column 'count' must contain texts, got type int64"),
            ({"note": lambda texts: [[np.nan]] * len(texts)}, "column 'note': embeddings must be"),
            ({"note": "transformers:/no/such/folder"}, "column 'note': encoder must be a folder"),
        ],
    )
    def test_bad_choices_are_named(self, given: Any, match: str) -> None:
        with pytest.raises(HowsureError, match=match):
            load({**BASE, "note": NOTES, "count": [1, 2, 3, 4]}, encode=given)
        with pytest.raises(InputError, match="both define an embedding"):
            load({**BASE, "note": NOTES, "e": NOTES}, encode={"note": lengths}, embedding="e")

    def test_a_missing_library_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "torch", None)
        with pytest.raises(MissingDependencyError, match=r"column 'note': .*howsure\[text\]"):
            load({**BASE, "note": NOTES}, encode="note=transformers:/tmp")


class TestImages:
    def test_paths_start_from_the_table(
        self, pictures: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any
    ) -> None:
        monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
        held = load(pictures, encode={"path": brightness})
        (one,) = held.evalsets
        assert one.embedding is not None
        assert one.embedding.tolist() == [[0, 4], [20, 5], [40, 6], [60, 7]]
        assert held.images is not None
        assert held.images.tolist() == [str(pictures.parent / f"img/{k}.png") for k in range(4)]
        assert held.texts["path"].tolist() == [f"img/{k}.png" for k in range(4)]
        monkeypatch.chdir(pictures.parent)
        in_memory = load(pd.read_csv(pictures), encode={"path": brightness})
        np.testing.assert_array_equal(in_memory.evalsets[0].embedding, one.embedding)

    def test_a_column_of_images_beside_another_embedding(self, pictures: Path) -> None:
        table = pd.read_csv(pictures).assign(emb_1=[1.0, 2.0, 3.0, 4.0], path=["gone"] * 4)
        held = load(table, image="path")
        assert held.images is not None
        assert held.images[0].endswith("/gone")  # it need not exist: the report names it
        assert held.evalsets[0].embedding is not None
        assert held.evalsets[0].embedding.shape == (4, 1)

    def test_bad_files_are_counted_and_named(self, pictures: Path) -> None:
        bad = pictures.parent / "img" / "2.png"
        bad.write_bytes(b"no image")
        with pytest.raises(InputError, match=r"column 'path': .*1 of 4 are not: .*2\.png"):
            load(pictures, encode={"path": brightness})
        bad.unlink()
        with pytest.raises(InputError, match=r"table\.csv: column 'path': .*1 of 4 are missing"):
            load(pictures, encode={"path": brightness})

    @pytest.mark.parametrize("name", ["\x1b[31m.png", "</script>.png", "a\u202egnp.png", "\n.png"])
    def test_hostile_paths_are_shown_escaped(self, pictures: Path, name: str) -> None:
        table = pd.read_csv(pictures)
        table.loc[1, "path"] = name
        with pytest.raises(InputError) as caught:
            load(table, encode={"path": brightness})
        shown = str(caught.value)
        assert shown.isprintable()
        assert repr(name)[1:-1] in shown

    def test_some_texts_that_look_like_images_are_asked_about(self) -> None:
        table = {**BASE, "note": ["a.png", "b.png", "c", "d"]}
        with pytest.raises(InputError, match="2 of 4 cells that end like image files"):
            load(table, encode={"note": lengths})

    def test_an_unfit_column_is_refused_by_the_model(self, pictures: Path) -> None:
        with pytest.raises(InputError, match="image: no column of"):
            load(pictures, image="nope")


class TestLists:
    @pytest.mark.parametrize("form", ["several", "list", "fixed", "pandas", "polars", "array"])
    def test_every_form_of_an_embedding(self, tmp_path: Path, form: str) -> None:
        table: Any = {**BASE, "embedding": VECTORS}
        if form == "several":
            table = {**BASE, **{f"emb_{k}": VECTORS[:, k] for k in range(3)}}
        elif form == "list":
            table = tmp_path / "t.parquet"
            parquet.write_table(pa.table({**BASE, "embedding": VECTORS.tolist()}), table)
        elif form == "fixed":
            kind = pa.list_(pa.float32(), 3)
            made = pa.table({**BASE, "embedding": pa.array(VECTORS.tolist(), type=kind)})
            table = tmp_path / "t.arrow"
            with pa.ipc.new_file(str(table), made.schema) as writer:
                writer.write_table(made)
        elif form == "pandas":
            table = pd.DataFrame({**BASE, "embedding": list(VECTORS)})
        elif form == "polars":
            table = pl.DataFrame({**BASE, "embedding": VECTORS})
        np.testing.assert_array_equal(load(table).evalsets[0].embedding, VECTORS)

    def test_lists_in_text(self, tmp_path: Path) -> None:
        path = tmp_path / "t.csv"
        cells = [json.dumps(row) for row in VECTORS.tolist()]
        csv.write_csv(pa.table({**BASE, "vector": cells}), path)
        (held,) = load(path, embedding="vector").evalsets
        np.testing.assert_array_equal(held.embedding, VECTORS)

    def test_several_patterns_together(self) -> None:
        table = {**BASE, "v": VECTORS, "w1": BASE["y"], "w2": BASE["sd"]}
        (held,) = load(table, embedding="v,w*").evalsets
        assert held.embedding is not None
        assert held.embedding.shape == (4, 5)

    @pytest.mark.parametrize(
        ("cells", "match"),
        [
            ([[1.0], [1.0, 2.0], [1.0], [1.0]], "equal length, at least 1, got 1 to 2"),
            ([[1.0], None, [1.0], [1.0]], "cells are missing: 1 in 'v'"),
            ([[1.0], [None], [1.0], [1.0]], "cells are missing: 1 in 'v'"),
            ([[1.0], [np.inf], [1.0], [1.0]], "finite numbers, got 1 infinite .first at row 1"),
            ([["a"], ["b"], ["c"], ["d"]], "lists of numbers, got type"),
            (pa.array([[], [], [], []], type=pa.list_(pa.float64())), "at least 1, got 0 to 0"),
            (["[1]", "[2", "[3]", "[4]"], r"lists of numbers such as .* got '\[2' at row 1"),
            (["[1]", "[true]", "[3]", "[4]"], "at row 1"),
            (["[1]", '{"a": 1}', "[3]", "[4]"], "at row 1"),
        ],
    )
    def test_bad_lists_are_named(self, cells: list[Any], match: str) -> None:
        with pytest.raises(InputError, match=match):
            load({**BASE, "v": pa.array(cells)}, embedding="v")

    def test_a_list_elsewhere_is_still_refused(self) -> None:
        with pytest.raises(InputError, match="one value per row"):
            load({**BASE, "v": pa.array(VECTORS.tolist())}, features="v")


class TestNewRows:
    def test_both_go_through_the_same_encoder(self, pictures: Path) -> None:
        like = load(pictures, encode={"path": brightness})
        new = pd.read_csv(pictures).drop(columns=["y", "mean", "sd"]).iloc[[2, 0]]
        new.to_csv(pictures.parent / "new.csv", index=False)
        found = load_unlabelled(pictures.parent / "new.csv", like)
        assert like.evalsets[0].embedding is not None
        np.testing.assert_array_equal(found.inputs.embedding, like.evalsets[0].embedding[[2, 0]])
        assert found.labelled is None
        assert found.images is not None
        assert found.images[0].endswith("img/2.png")

    def test_embedding_columns(self) -> None:
        like = load({**BASE, "embedding": VECTORS})
        found = load_unlabelled({"embedding": VECTORS[1:]}, like)
        np.testing.assert_array_equal(found.inputs.embedding, VECTORS[1:])
        with pytest.raises(InputError, match="reference's embedding, but has none of 'embedding'"):
            load_unlabelled({"other": VECTORS}, like)

    def test_rows_with_outcomes_are_labelled(self) -> None:
        like = load({**BASE, "x": BASE["y"], "id": ["a", "b", "c", "d"]})
        new = {**BASE, "x": BASE["y"], "y": [None, 5.0, None, 7.0], "id": [9, 8, 7, 6]}
        found = load_unlabelled(new, like)
        assert found.places.tolist() == [1, 3]
        assert found.labelled is not None
        assert found.labelled.y.tolist() == [5.0, 7.0]
        assert found.labelled.predictions[0].point().tolist() == [2.0, 4.5]
        assert found.inputs.row_names().tolist() == [9, 8, 7, 6]
        for dropped in ("y", "sd"):
            partial = {name: column for name, column in new.items() if name != dropped}
            assert load_unlabelled(partial, like).labelled is None
        assert load_unlabelled({**new, "y": [None] * 4}, like).labelled is None

    def test_missing_inputs_are_named(self) -> None:
        like = load({**BASE, "note": NOTES}, encode={"note": lengths})
        with pytest.raises(InputError, match="'note' must not contain missing cells, got 1"):
            load_unlabelled({"note": ["a", None]}, like)
        with pytest.raises(InputError, match="none of 'note'"):
            load_unlabelled({"text": ["a"]}, like)
        with pytest.raises(InputError, match="neither features nor an embedding"):
            load_unlabelled({"x": [1.0]}, load(BASE))


def test_a_pretrained_model_serves_load(tmp_path: Path) -> None:
    """A tiny model of random weights in a folder, through the table's door."""
    torch = needs("torch")
    hugging = needs("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["[PAD]", "[UNK]", "a", "cat", "dog", "no"]
    small = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = hugging.BertConfig(vocab_size=len(words), intermediate_size=8, **small)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        hugging.BertModel(config).save_pretrained(tmp_path / "model")
    known = Tokenizer(models.WordLevel({w: k for k, w in enumerate(words)}, unk_token="[UNK]"))
    known.pre_tokenizer = pre_tokenizers.Whitespace()
    named = {"unk_token": "[UNK]", "pad_token": "[PAD]"}
    fast = hugging.PreTrainedTokenizerFast(tokenizer_object=known, **named)
    fast.save_pretrained(tmp_path / "model")
    name = f"transformers:{tmp_path / 'model'}"
    held = load({**BASE, "note": NOTES}, encode=f"note={name}")
    np.testing.assert_allclose(held.evalsets[0].embedding, encode(NOTES, name), atol=1e-6)
    found = load_unlabelled({"note": NOTES[1:]}, held)
    np.testing.assert_allclose(found.inputs.embedding, encode(NOTES, name)[1:], atol=1e-5)
