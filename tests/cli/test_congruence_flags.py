"""Congruence from the command line: encoders, images, new rows, choices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import csv
from typer.testing import CliRunner

from extras import needs
from howsure.cli.main import app
from howsure.core.errors import HowsureError, InputError
from howsure.core.rng import child

pd = needs("pandas")

WORDS = ["[PAD]", "[UNK]", "good", "bad", "very", "film"]


def inside(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny text model of random weights in a folder."""
    torch = needs("torch")
    hugging = needs("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder = tmp_path_factory.mktemp("model")
    small = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = hugging.BertConfig(vocab_size=len(WORDS), intermediate_size=8, **small)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        hugging.BertModel(config).save_pretrained(folder)
    known = Tokenizer(models.WordLevel({w: k for k, w in enumerate(WORDS)}, unk_token="[UNK]"))
    known.pre_tokenizer = pre_tokenizers.Whitespace()
    named = {"unk_token": "[UNK]", "pad_token": "[PAD]"}
    hugging.PreTrainedTokenizerFast(tokenizer_object=known, **named).save_pretrained(folder)
    return f"transformers:{folder}"


def reviews(path: Path, n: int, seed: int, *, labels: bool = True) -> Path:
    """Grades of films by their review; the model does not read what is bad."""
    rng = child(seed, "reviews")
    bad = rng.random(n) < 0.3
    texts = np.where(bad, "very bad film", np.where(rng.random(n) < 0.5, "good film", "good"))
    grade = 8.0 - 4.0 * bad + rng.normal(size=n)
    table = pd.DataFrame({"text": texts, "y": grade, "mean": 8.0, "sd": 1.0})
    (table if labels else table[["text"]]).to_csv(path, index=False)
    return path


@pytest.mark.rate
def test_a_column_of_texts_is_encoded(tmp_path: Path, model: str) -> None:
    path = reviews(tmp_path / "r.csv", 200, 0)
    out = tmp_path / "r.json"
    shown = inside("assess", path, "--encode", f"text={model}", "-o", out)
    assert "at some inputs the predictive distribution is wrong" in shown
    held = json.loads(out.read_text(encoding="utf-8"))
    assert held["facts"]["Embedding"] == f"text by {model}"
    rows = next(t for t in held["tables"] if t["name"] == "cce_rows")["columns"]
    worst = {t for t, kind in zip(rows["text"], rows["kind"], strict=True) if kind == "worst"}
    assert worst == {"very bad film"}
    told = inside("assess", path, "--encode", f"text={model}", "--explain-input")
    assert "encoded by" in told


@pytest.mark.slow
def test_new_texts_go_through_the_same_encoder(tmp_path: Path, model: str) -> None:
    reference = reviews(tmp_path / "val.csv", 300, 0)
    new = reviews(tmp_path / "new.csv", 60, 1, labels=False)
    outs = [tmp_path / name for name in ("scored.csv", "report.html", "report.md")]
    flags = [part for path in outs for part in ("-o", path)]
    shown = inside("assess", new, "--reference", reference, "--encode", f"text={model}", *flags)
    assert "are flagged" in shown
    scored = csv.read_csv(outs[0]).to_pydict()
    bad = np.array([text == "very bad film" for text in scored["text"]])
    assert np.array(scored["flagged"])[bad].all()
    assert np.array(scored["cce"])[bad].min() > np.array(scored["cce"])[~bad].max()
    assert "Rows in detail" in outs[1].read_text(encoding="utf-8")
    assert "leaving out suspect rows" not in outs[2].read_text(encoding="utf-8")
    labelled = reviews(tmp_path / "labelled.csv", 60, 1)
    shown = inside("assess", labelled, "--reference", reference, "--encode", f"text={model}")
    assert "lowers the mean |error| of 60 labelled rows" in shown
    assert "lowers the mean NLL of 60 labelled rows" in shown


def test_the_published_choices_are_flags(tmp_path: Path) -> None:
    rng = child(0, "flags")
    x = rng.uniform(-2, 2, 300)
    table = pd.DataFrame({"x": x, "y": x + rng.normal(size=300), "mean": x, "sd": 1.0})
    table.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "t.json"
    published = ["--gamma", 1, "--regularization", 0.1, "--draws", 1, "--map", "t-sne"]
    inside("assess", tmp_path / "t.csv", "--embedding", "x", *published, "-o", out)
    held = json.loads(out.read_text(encoding="utf-8"))
    record = next(r for r in held["records"] if r["metric"] == "mean_cce")
    assert (record["options"]["mode"], record["options"]["draws"]) == ("samples", 1.0)
    assert "gamma=1" in record["options"]["kernel"]
    shown = inside(
        "assess", tmp_path / "t.csv", "--reference", tmp_path / "t.csv", "--embedding", "x",
        *published,
    )  # fmt: skip
    assert "300 labelled rows" in shown


def test_images_are_shown_and_named(tmp_path: Path) -> None:
    pil = needs("PIL.Image")
    (tmp_path / "img").mkdir()
    for k in range(30):
        pil.new("RGB", (60, 40), (8 * k, 0, 0)).save(tmp_path / "img" / f"{k}.jpg")
    table: dict[str, Any] = {"y": np.arange(30.0), "mean": np.arange(30.0), "sd": 1.0}
    table |= {"path": [f"img/{k}.jpg" for k in range(30)], "x": np.arange(30.0)}
    pd.DataFrame(table).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "img" / "7.jpg").unlink()
    out = tmp_path / "t.html"
    shown = inside("assess", tmp_path / "t.csv", "--image", "path", "-o", out)
    assert "○ Missing images: 1 of 30 images: row 7 ('7.jpg')" in shown
    page = out.read_text(encoding="utf-8")
    assert page.count('src="data:image/jpeg;base64,') >= 11


def test_an_encoder_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    needs("torch")
    words = ["assess", str(reviews(tmp_path / "r.csv", 30, 0)), "--encode"]
    with pytest.raises(HowsureError, match="must be a folder that exists"):
        CliRunner().invoke(app, [*words, "text=transformers:/no/such"], catch_exceptions=False)


@pytest.mark.parametrize(
    ("flags", "match"),
    [
        (["--encode", "text"], "COLUMN=ENCODER"),
        (["--encode", "nope=transformers:/x"], "encode: no column of"),
        (["--encode", "text=sentence:/x"], "encoder must be"),
        (["--encode", "text=transformers:/x", "--encode", "y=transformers:/x"], "one column"),
        (["--image", "nope"], "image: no column of"),
        (["--gamma", "0"], "--gamma must be positive"),
        (["--regularization", "0"], "--regularization must be positive"),
    ],
)
def test_bad_flags_raise_one_clear_error(tmp_path: Path, flags: list[str], match: str) -> None:
    path = reviews(tmp_path / "r.csv", 30, 0)
    with pytest.raises(HowsureError, match=match):
        CliRunner().invoke(app, ["assess", str(path), *flags], catch_exceptions=False)


@pytest.mark.slow
def test_new_rows_must_hold_the_encoded_column(tmp_path: Path, model: str) -> None:
    reference = reviews(tmp_path / "val.csv", 60, 0)
    pd.DataFrame({"other": ["a"]}).to_csv(tmp_path / "new.csv", index=False)
    flags = ["--reference", str(reference), "--encode", f"text={model}"]
    with pytest.raises(InputError, match="reference's embedding, but has none of 'text'"):
        CliRunner().invoke(
            app, ["assess", str(tmp_path / "new.csv"), *flags], catch_exceptions=False
        )
