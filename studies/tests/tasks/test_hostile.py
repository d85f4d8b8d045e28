"""Pictures, lists and packed arrays made to harm: refused by name, and nothing left behind."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from extras import needs
from howsure.core.errors import InputError
from howsure_studies.tasks import shift_task, uci
from howsure_studies.tasks.files import UnreadableError, arrays, gunzipped
from howsure_studies.tasks.images import drawn, medical, satellite, small
from howsure_studies.tasks.images.medical import read_frame
from howsure_studies.tasks.images.reading import Reading, inside, read_picture

tifffile = needs("tifffile")
Image = needs("PIL.Image")


def test_gzip_bombs_are_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes(3 << 20)))
    assert len(gunzipped(path, 3 << 20)) == 3 << 20
    with pytest.raises(UnreadableError, match=r"bomb\.gz must unpack to at most 3,145,727 bytes"):
        gunzipped(path, (3 << 20) - 1)
    for name in ("t10k-images-idx3-ubyte.gz", "data.csv.gz", "BRATS_001.nii.gz"):
        (tmp_path / name).write_bytes(path.read_bytes())
    for module in ("images.small", "images.medical", "files"):
        monkeypatch.setattr(f"howsure_studies.tasks.{module}._MOST", 1 << 20)
    with pytest.raises(UnreadableError, match="must unpack to at most"):
        small.read_digits(tmp_path)
    with pytest.raises(UnreadableError, match="must unpack to at most"):
        medical.read_volume(tmp_path / "BRATS_001.nii.gz")
    with pytest.raises(InputError, match="must unpack to at most"):
        uci("yacht", tmp_path)
    with pytest.raises(InputError, match="must unpack to at most"):
        shift_task("bike-hours", tmp_path)


def npy(shape: tuple[int, ...], kind: str = "<f8", held: bytes = b"") -> bytes:
    out = io.BytesIO()
    told = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(out, told)
    return out.getvalue() + held


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (npy((1 << 50,)), "must take at most 1,048,576 bytes, got 9,007,199,254,740,992"),
        (npy((200_000,), held=bytes(1_600_000)), "must take at most 1,048,576 bytes"),
        (npy((-5,)), "must take at most"),
        (npy((1,), "|O", b"cos\nsystem\n(S'false'\ntR."), "plain numbers, got pickled objects"),
        (b"cos\nsystem\n(S'false'\ntR.", "cannot be read"),
        (npy((3,), held=b"short"), "cannot be read"),
    ],
)
def test_arrays_are_bounded_and_never_unpickled(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "splits.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("train_0.npy", content)
    with pytest.raises(UnreadableError, match=rf"splits\.npz.*{said}"):
        arrays(path, 1 << 20)


def test_a_zip_of_many_is_bounded_in_sum(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez_compressed(path, **{f"a{i}": np.zeros(60_000) for i in range(3)})
    with pytest.raises(UnreadableError, match="must take at most 1,048,576"):
        arrays(path, 1 << 20)
    assert len(arrays(path, 1 << 21)) == 3


def volume_bytes(shape: tuple[int, ...]) -> bytes:
    nibabel = needs("nibabel")

    header = nibabel.Nifti1Header()
    header.set_data_shape(shape)
    header.set_data_dtype(np.int16)
    header["vox_offset"] = 352
    return bytes(header.binaryblock) + bytes(4 + 64)


@pytest.mark.parametrize("shape", [(30_000, 30_000, 30_000), (100, 100, 100)])
def test_a_volume_may_not_say_more_than_it_holds(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = tmp_path / "BRATS_001.nii"
    path.write_bytes(volume_bytes(shape).replace(b"ni1\0", b"n+1\0"))
    with pytest.raises(UnreadableError, match=r"BRATS_001\.nii must take at most"):
        medical.read_volume(path)


def test_tiles_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tile, label = tmp_path / "t.tif", tmp_path / "t.mat"
    zeros = np.zeros((2000, 2000), dtype=np.uint8)
    tifffile.imwrite(tile, zeros, compression="zlib")
    savemat(label, {"inst_map": zeros}, do_compression=True)
    assert satellite.read_tiff(tile).shape == medical.read_nuclei(label).shape
    monkeypatch.setattr(satellite, "_MOST", 1 << 20)
    monkeypatch.setattr(medical, "_MOST_TILE", 1 << 20)
    with pytest.raises(UnreadableError, match=r"t\.tif must take at most 1,048,576 bytes"):
        satellite.read_tiff(tile)
    with pytest.raises(UnreadableError, match=r"t\.mat: inst_map must take at most 1,048,576"):
        medical.read_nuclei(label)


def test_a_tile_reads_no_other_file(tmp_path: Path) -> None:
    """Nor expands the entities of what describes it."""
    laughs = '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'
    other = tmp_path / "other.tif"
    tifffile.imwrite(other, np.full((4, 4), 7, dtype=np.uint8))
    told = f'{laughs}<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06">&b;</OME>'
    path = tmp_path / "t.tif"
    tifffile.imwrite(path, np.ones((4, 4), dtype=np.uint8), description=told, metadata=None)
    assert (satellite.read_tiff(path) == 1).all()


@pytest.mark.parametrize(
    "content",
    [
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + b"\0\1\0\0" * 2 + b"\x08\2\0\0\0\0\0\0\0",
    ],
)
def test_pictures_that_run_programs_or_fill_the_memory_are_refused(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "picture.jpg"
    path.write_bytes(content)
    with pytest.raises(UnreadableError, match=r"picture\.jpg cannot be read"):
        read_picture(path)
    Image.new("RGB", (3, 2)).save(tmp_path / "good.png")
    assert read_picture(tmp_path / "good.png").shape == (2, 3, 3)


def test_a_play_list_is_no_video(tmp_path: Path) -> None:
    """FFmpeg would open the files and addresses that it lists."""
    path = tmp_path / "a.avi"
    path.write_bytes(b"#EXTM3U\n#EXTINF:1,\nfile:///etc/hostname\n#EXT-X-ENDLIST\n")
    with pytest.raises(UnreadableError, match="does not open"):
        read_frame(path, 0)
    assert medical._OPTIONS["protocol_whitelist"] == "file"


@pytest.mark.parametrize("name", ["../x.jpg", "/etc/passwd", "a/b.jpg", "..", "", "a\\b", "a\0b"])
def test_names_from_lists_stay_in_their_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="must be the name of a file in"):
        inside(tmp_path, name)
    assert inside(tmp_path, "a..b.jpg").parent == tmp_path


@pytest.mark.parametrize("spoil", ["labels", "indx_train"])
def test_chairs_may_not_declare_endless_labels(tmp_path: Path, spoil: str) -> None:
    h5py = needs("h5py")
    make: Callable[..., Any]
    with h5py.File(tmp_path / drawn.RC49, "w") as held:
        make = held.create_dataset
        make("images", (4, 3, 64, 64), "u1", chunks=True)
        for name in ("labels", "indx_train"):
            make(name, (1 << 45 if name == spoil else 4,), "f8", chunks=(4,))
    with pytest.raises(InputError, match=f"{spoil} must take at most"):
        drawn.original_chairs(Reading(folder=tmp_path, complete=False))
