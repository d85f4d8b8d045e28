"""Small pictures of best and worst rows: what is shown, what is named, what cannot do harm."""

from __future__ import annotations

import base64
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure
from extras import needs
from howsure.core.records import ResultTable
from howsure.core.rng import child
from howsure.report.images import SIDE, galleries, image_table, missing_images, thumbnail
from howsure.report.questions import document_of

pil = needs("PIL.Image")


def decoded(uri: str) -> Any:
    kind, _, data = uri.partition(";base64,")
    assert kind in ("data:image/jpeg", "data:image/png")
    return pil.open(io.BytesIO(base64.b64decode(data)))


def saved(path: Path, mode: str, size: tuple[int, int], **options: Any) -> str:
    rng = child(0, mode, *size)
    if mode in ("I;16", "F"):
        values = rng.integers(0, 4096, (size[1], size[0])).astype(np.uint16)
        if mode == "F":
            values = np.where(values < 9, np.nan, 1e6 * values).astype(np.float32)
        pil.fromarray(values).save(path, **options)
    else:
        pil.frombytes(
            mode, size, rng.bytes(size[0] * size[1] * len(pil.new(mode, (1, 1)).getbands()))
        ).save(path, **options)
    return str(path)


class TestThumbnail:
    @pytest.mark.parametrize(
        ("name", "mode"),
        [
            ("a.jpg", "RGB"),
            ("a.png", "RGBA"),
            ("a.png", "LA"),
            ("a.png", "L"),
            ("a.png", "I;16"),
            ("a.tif", "F"),
            ("a.tif", "CMYK"),
            ("a.gif", "P"),
        ],
    )
    def test_every_kind_of_image_is_made_small(self, tmp_path: Path, name: str, mode: str) -> None:
        uri, problem = thumbnail(saved(tmp_path / name, mode, (300, 200)))
        assert problem == ""
        small = decoded(uri)
        assert small.size == (SIDE, round(SIDE * 200 / 300))
        assert small.mode == "RGB"
        assert len(uri) < 12_000

    def test_tiny_images_keep_every_pixel(self, tmp_path: Path) -> None:
        path = saved(tmp_path / "digit.png", "L", (28, 28))
        uri, _ = thumbnail(path)
        assert uri.startswith("data:image/png")
        np.testing.assert_array_equal(
            np.asarray(decoded(uri))[..., 0], np.asarray(pil.open(path).convert("L"))
        )

    def test_the_camera_is_obeyed_and_then_forgotten(self, tmp_path: Path) -> None:
        exif = pil.Exif()
        exif[0x0112], exif[0x010F] = 6, "SecretCam"  # turned by a quarter; maker
        path = saved(tmp_path / "a.jpg", "RGB", (300, 200), exif=exif)
        small = decoded(thumbnail(path)[0])
        assert small.size[0] < small.size[1]
        assert not small.getexif()

    def test_transparency_stands_on_white(self, tmp_path: Path) -> None:
        pil.new("RGBA", (60, 60), (0, 0, 0, 0)).save(tmp_path / "clear.png")
        uri, _ = thumbnail(str(tmp_path / "clear.png"))
        assert np.asarray(decoded(uri)).min() > 250

    def test_what_cannot_be_shown_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "text.png").write_text("no image")
        whole = Path(saved(tmp_path / "whole.png", "RGB", (80, 80))).read_bytes()
        (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
        os.mkfifo(tmp_path / "pipe.png")
        for name, words in (
            ("gone.png", "not found"),
            ("a\0b", "not found"),
            ("", "not a file"),
            ("pipe.png", "not a file"),
            ("text.png", "unreadable"),
            ("cut.png", "unreadable"),
        ):
            uri, problem = thumbnail(os.path.join(tmp_path, name))
            assert uri == ""
            assert words in problem, name

    def test_a_bomb_does_not_go_off(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = saved(tmp_path / "big.png", "L", (300, 300))
        monkeypatch.setattr(pil, "MAX_IMAGE_PIXELS", 1000)
        uri, problem = thumbnail(path)
        assert uri == ""
        assert "unreadable" in problem


def rows(count: int = 20) -> ResultTable:
    half = count // 2
    kinds = np.array(["worst"] * half + ["best"] * half, dtype=object)
    columns = {"kind": kinds, "row": np.arange(count) + 100, "cce": np.linspace(1, 0, count)}
    columns |= {"y": np.arange(count) * 1.5, "prediction": np.ones(count), "x": np.ones(count)}
    return ResultTable(name="cce_rows", columns=columns, model="m")


class TestGallery:
    def test_a_bounded_number_of_each_kind(self) -> None:
        files = np.array([f"/none/{k}.png" for k in range(20)], dtype=object)
        table = image_table(rows(), files)
        assert table.columns["row"].tolist() == [*range(100, 106), *range(110, 116)]
        assert table.columns["image"][6] == "10.png"
        assert "x" not in table.columns
        assert table.notes == "12 of 12 images cannot be shown."
        (gallery,) = galleries([table, rows()])
        assert [len(strip.tiles) for strip in gallery.strips] == [6, 6]
        tile = gallery.strips[0].tiles[0]
        assert (tile.title, tile.problem) == ("Row 100", "file not found")
        assert dict(tile.facts) == {"y": "0", "predicted": "1", "CCE": "1"}

    @pytest.mark.parametrize(
        "uri",
        [
            "javascript:alert(1)",
            "data:image/svg+xml;base64,AAAA",
            "data:text/html;base64,AAAA",
            'data:image/png;base64,AAAA" onerror="alert(1)',
            "http://tracker/a.png",
        ],
    )
    def test_nothing_but_pictures_is_shown(self, uri: str) -> None:
        table = image_table(rows(), np.array(["/n"] * 20, dtype=object))
        columns = dict(table.columns)
        columns["thumbnail"] = np.array([uri] * 12, dtype=object)
        shown = document_of(title="t", tables=(ResultTable(name="cce_images", columns=columns),))
        page = shown.to_html()
        assert uri not in page
        assert "<img" not in page

    def test_captions_are_escaped(self, tmp_path: Path) -> None:
        name = "<img src=x onerror=alert(1)>.png"
        saved(tmp_path / name, "RGB", (60, 60))
        files = np.array([str(tmp_path / name)] * 20, dtype=object)
        page = document_of(title="t", tables=(image_table(rows(), files),)).to_html()
        assert page.count("<img") == 12
        assert "onerror=alert(1)>" not in page
        assert "&lt;img src=x onerror=alert(1)&gt;.png" in page
        assert "img-src data:" in page

    def test_plain_forms_hold_names_and_no_pixels(self, tmp_path: Path) -> None:
        saved(tmp_path / "a.png", "RGB", (60, 60))
        table = image_table(rows(), np.array([str(tmp_path / "a.png")] * 20, dtype=object))
        document = document_of(title="t", tables=(table,))
        assert "a.png" in document.to_json()
        for text in (document.to_markdown(), document.to_csv()):
            assert "data:image" not in text
            assert "Thumbnail" not in text


def test_gone_files_are_named_in_few_words() -> None:
    files = np.array([f"/none/{k}.png" for k in range(12)], dtype=object)
    said = missing_images(files, np.arange(12) + 5)
    assert said.startswith("12 of 12 images: row 5 ('0.png'), row 6 ('1.png')")
    assert said.endswith("and 7 more")


@pytest.mark.rate
@pytest.mark.few_draws
def test_assess_shows_images_and_names_those_that_are_gone(tmp_path: Path) -> None:
    rng = child(0, "pictures")
    n, shade = 60, rng.uniform(20, 230, 60)
    for k in range(n):
        pil.new("RGB", (40, 40), (int(shade[k]),) * 3).save(tmp_path / f"{k}.png")
    y = shade + 5 * rng.normal(size=n) + 60 * (shade > 150)
    table = {
        "y": y,
        "mean": shade,
        "sd": np.full(n, 5.0),
        "path": [str(tmp_path / f"{k}.png") for k in range(n)],
    }

    def brightness(images: list[Any]) -> list[list[float]]:
        return [[float(image.mean())] for image in images]

    result = howsure.assess(howsure.Table(table, encode={"path": brightness}))
    images = next(table for table in result.tables if table.name == "cce_images")
    worst = images.columns["kind"] == "worst"
    assert (shade[images.columns["row"][worst].astype(int)] > 120).all()
    for uri, row in zip(images.columns["thumbnail"], images.columns["row"], strict=True):
        assert abs(float(np.asarray(decoded(uri)).mean()) - int(shade[row])) < 2
    page = result.to_html()
    assert page.count('<img src="data:image/') == 12
    assert json.loads(result.to_json())["tables"]
    for k in range(10):
        (tmp_path / f"{k}.png").unlink()
    result = howsure.assess(howsure.Table({**table, "emb_1": shade}, image="path"))
    assert result.facts["Missing images"].startswith("10 of 60 images: row 0 ('0.png')")
