"""Encoders with weights learned from real text and real pictures, tried as users would use them.

A static embedding of words, learned from what libraries say of their functions; and a
convolutional network in ONNX, learned from handwritten digits. Both are judged on rows that they
have not seen.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from encoders_tried import digits, halves, library_sentences, train_network, write_onnx
from extras import needs
from howsure import Table, assess
from howsure.core.arrays import FloatArray
from howsure.core.records import Record
from howsure.inputs.encoders import encode

pytestmark = pytest.mark.few_draws

SENTENCES = "encoders_tried:sentences"

PAGE = Path(__file__).parents[2] / "docs" / "inputs.md"


def unit(vectors: FloatArray) -> FloatArray:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12))


def hits(known: FloatArray, new: FloatArray, label: Any, asked: Any) -> tuple[float, float]:
    """Share of new rows whose nearest known row has their label, and the most by chance.

    The latter is the most of 999 random orders of the labels that are asked for: a share above it
    has p ≤ .001, exactly.
    """
    near = label[(unit(new) @ unit(known).T).argmax(axis=1)]
    rng = np.random.default_rng(1)
    chance = max(float((near == rng.permutation(asked)).mean()) for _ in range(999))
    return float((near == asked).mean()), chance


def cce_of(result: Any) -> Record:
    (found,) = (record for record in result.records if record.metric == "mean_cce")
    assert isinstance(found, Record)
    return found


def wrong_at(special: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """A model that states the marginal law of y in each row, where y is higher by 3 in some rows.

    So it is right over all rows, and wrong wherever inputs tell which rows these are.
    """
    share, n = special.mean(), len(special)
    y = np.random.default_rng(0).normal(size=n) + 3.0 * special
    law = {"w1": 1.0 - share, "mean1": 0.0, "sd1": 1.0, "w2": share, "mean2": 3.0, "sd2": 1.0}
    return {"y": y, **{name: np.full(n, value) for name, value in law.items()}}


class TestText:
    def test_neighbours_are_of_one_topic(self) -> None:
        texts, topics = library_sentences()
        assert len(texts) > 600
        learned, new = halves(len(texts))
        vectors = encode(list(texts), SENTENCES)
        share, chance = hits(vectors[learned], vectors[new], topics[learned], topics[new])
        assert share > chance
        assert share > 0.7  # .26 of the sentences are of the most frequent topic

    def test_rows_in_another_order_give_vectors_in_that_order(self) -> None:
        texts = np.array(library_sentences()[0][:50])
        order = np.random.default_rng(2).permutation(50)
        vectors = encode(texts.tolist(), SENTENCES, batch_size=7)
        np.testing.assert_allclose(
            encode(texts[order].tolist(), SENTENCES), vectors[order], atol=1e-6
        )

    @pytest.mark.rate
    def test_congruence_finds_a_model_that_is_wrong_on_one_topic(self) -> None:
        texts, topics = library_sentences()
        new = halves(len(texts))[1]
        table = wrong_at(topics[new] == "scipy.special")
        words = [texts[row] for row in new]
        found = cce_of(assess(Table({**table, "text": words}, encode=f"text={SENTENCES}")))
        assert (found.n, found.source) == (len(new), "embedding")
        assert found.value > 1.5 * found.null_upper
        mixed = np.random.default_rng(3).permutation(words).tolist()  # y no longer goes with them
        lost = cce_of(assess(Table({**table, "text": mixed}, encode=f"text={SENTENCES}")))
        assert lost.value < lost.null_upper


@pytest.fixture(scope="module")
def network() -> Any:
    return train_network()


@pytest.fixture
def folder(network: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a user works: the network in ONNX, a module with a function, and pictures."""
    needs("onnxruntime")
    write_onnx(network, tmp_path / "network.onnx")
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)
    (tmp_path / "my_encoders.py").write_text(example)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_encoders", raising=False)
    return tmp_path


@pytest.mark.slow
class TestPictures:
    name = "my_encoders:pictures"

    def test_vectors_are_those_of_the_network(self, folder: Path, network: Any) -> None:
        torch = needs("torch")
        images = digits()[0][:40]
        with torch.no_grad():
            pixels = torch.tensor(images.transpose(0, 3, 1, 2) / 255.0, dtype=torch.float32)
            wanted = network(pixels).numpy()
        got = encode(images, self.name, kind="image", batch_size=16)
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)

    def test_neighbours_are_the_same_digit(self, folder: Path) -> None:
        images, labels = digits()
        learned, new = halves(len(labels))
        vectors = encode(images, self.name, kind="image")
        share, chance = hits(vectors[learned], vectors[new], labels[learned], labels[new])
        assert share > chance
        assert share > 0.9

    def test_rows_in_another_order_give_vectors_in_that_order(self, folder: Path) -> None:
        images = digits()[0][:50]
        order = np.random.default_rng(2).permutation(50)
        vectors = encode(images, self.name, kind="image", batch_size=7)
        again = encode(images[order], self.name, kind="image")
        np.testing.assert_allclose(again, vectors[order], rtol=1e-5, atol=1e-6)

    @pytest.mark.rate
    def test_congruence_finds_a_model_that_is_wrong_on_one_digit(self, folder: Path) -> None:
        pil, frames = needs("PIL.Image"), needs("pandas")
        images, labels = digits()
        new = halves(len(labels))[1]
        table = wrong_at(labels[new] == 3)
        (folder / "img").mkdir()
        paths = [f"img/{row}.png" for row in new]
        for row, path in zip(new, paths, strict=True):
            pil.fromarray(images[row]).save(path)
        frames.DataFrame({**table, "path": paths}).to_csv("table.csv", index=False)
        found = cce_of(assess(Table("table.csv", encode=f"path={self.name}")))
        assert (found.n, found.source) == (len(new), "embedding")
        assert found.value > 1.5 * found.null_upper
        mixed = np.random.default_rng(3).permutation(paths)  # y no longer goes with them
        frames.DataFrame({**table, "path": mixed}).to_csv("mixed.csv", index=False)
        lost = cce_of(assess(Table("mixed.csv", encode=f"path={self.name}")))
        assert lost.value < lost.null_upper

    @pytest.mark.rate
    def test_the_command_line_takes_the_name(self, folder: Path) -> None:
        pil = needs("PIL.Image")
        images, _ = digits()
        lines = ["y,mean,sd,path"]
        for row, image in enumerate(images[:60]):
            pil.fromarray(image).save(f"{row}.png")
            lines.append(f"{row % 7},3,2,{row}.png")
        Path("table.csv").write_text("\n".join(lines))
        run = "from howsure.cli.entry import main; main()"
        told = subprocess.run(
            [sys.executable, "-c", run, "assess", "table.csv", "--encode", f"path={self.name}"],
            capture_output=True,
            text=True,
        )
        assert told.returncode == 0, told.stderr
        assert "CCE" in told.stdout
