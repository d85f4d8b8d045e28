"""The gallery of images in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from extras import needs
from howsure.core.records import ResultTable
from howsure.report.document import Document
from howsure.report.images import image_table
from howsure.report.questions import document_of


def gallery(folder: Path) -> Document:
    """Twelve rows with pictures of many shapes, one of them gone, one with a hostile name."""
    pil = needs("PIL.Image")
    files = []
    for k in range(12):
        name = "<img src=x onerror=alert(1)>.png" if k == 3 else f"{'long' * 20}{k}.png"
        pil.new("RGB", (20 + 40 * k, 300 - 20 * k), (20 * k, 90, 90)).save(folder / name)
        files.append(str(folder / name))
    (folder / f"{'long' * 20}1.png").unlink()
    columns = {
        "kind": np.array(["worst"] * 6 + ["best"] * 6, dtype=object),
        "row": np.array([f"row name {k}" * (k % 3 + 1) for k in range(12)], dtype=object),
        "y": np.linspace(-1e6, 1e6, 12),
        "prediction": np.linspace(0, 1e-9, 12),
        "cce": np.linspace(1, 0, 12),
    }
    rows = ResultTable(name="cce_rows", columns=columns, model="m")
    pictures = image_table(rows, np.array(files, dtype=object))
    return document_of(title="images", tables=[pictures, rows])


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.slow
def test_pictures_are_seen_and_nothing_overflows(
    opened: Callable[..., tuple[Any, Any]], tmp_path: Path, width: int
) -> None:
    page, _ = opened(gallery(tmp_path), viewport={"width": width, "height": 800})
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    sizes = page.eval_on_selector_all(
        ".tiles img", "all => all.map((one) => [one.naturalWidth, one.naturalHeight])"
    )
    assert len(sizes) == 11
    assert all(max(size) == 112 for size in sizes)
    assert page.locator(".tiles img").first.is_visible()
    assert page.locator(".no-image").all_inner_texts() == ["file not found"]
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    assert page.eval_on_selector_all(
        ".tiles li", "all => all.every((one) => one.scrollWidth <= one.clientWidth + 1)"
    )
