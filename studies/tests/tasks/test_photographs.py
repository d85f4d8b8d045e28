"""The photographs of the congruence experiments in their true forms, tiny, and as they break."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from extras import needs
from howsure.core.errors import HowsureWarning, InputError
from howsure_studies.tasks import DataNotFoundError
from howsure_studies.tasks.catalogue import entries
from howsure_studies.tasks.download import check
from howsure_studies.tasks.images import image_names, image_task, network_input
from howsure_studies.tasks.images.photographs import cuts, sizes, split, split_groups, squared
from tasks.refusing import refused

Image = needs("PIL.Image")

TINY: dict[str, Any] = {"complete": False, "side": 8}
ROWS = 30


def colour(number: int) -> tuple[int, int, int]:
    """A colour that tells the image's number, far enough from others to survive JPEG."""
    return (20 + 7 * number, 200, 90)


def save(path: Path, number: int, mode: str = "RGB") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (20, 12), colour(number)).convert(mode).save(path, quality=95)


def number_of(part: Any) -> np.ndarray:
    """The images' numbers, from their pixels."""
    return np.rint((part.x[:, 4, 4, 0].astype(float) - 20) / 7).astype(int)


def aaf_folder(folder: Path) -> Path:
    """Thirty faces of ages 10 … 39, on two lists that are not in order."""
    lines = []
    for number in range(ROWS):
        save(folder / "aligned faces" / f"{number:05d}A{10 + number:02d}.jpg", number)
        ending = "" if number % 3 else ".jpg"
        lines.append(f"{number:05d}A{10 + number:02d}{ending} {int(number > 14)}\n")
    (folder / "image sets").mkdir()
    (folder / "image sets" / "train.txt").write_text("".join(lines[20:] + lines[:12]))
    (folder / "image sets" / "val.txt").write_text("".join(lines[12:20]) + "\n")
    return folder


def fg_net_folder(folder: Path) -> Path:
    """Six persons with five photographs each; two more are grey, and there is other stuff."""
    for number in range(ROWS):
        letter = "abc"[number % 3] if number % 2 else ""
        save(folder / "images" / f"{1 + number // 5:03d}A{number:02d}{letter}.JPG", number)
    for age in (41, 42):
        save(folder / "images" / f"009A{age}.JPG", 1, mode="L")
    (folder / "images" / "Thumbs.db").write_bytes(b"x")
    (folder / "images" / "._001A02.JPG").write_bytes(b"a Macintosh's leftover")
    return folder


def eva_folder(folder: Path) -> Path:
    """Thirty images, three votes each: n/4, n/4 + 1 and 4."""
    head = "image_id=user_id=score=difficulty=visual=composition=quality=semantic=vote_time=1=2=3=4"
    lines = [head]
    for vote in range(3):
        for number in range(ROWS):
            score = (number // 4, number // 4 + 1, 4)[vote]
            lines.append(f"{1000 + number}=U{vote}={score}=2=3=3=3=4=12.5=1=0=0=1")
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "votes_filtered.csv").write_text("\n".join(lines) + "\n")
    for number in range(ROWS):
        save(folder / "images" / "EVA_together" / f"{1000 + number}.jpg", number)
    return folder


def coco_folder(folder: Path, place: str = "train2017") -> Path:
    """Thirty images with 1 … 4 people, five with dogs alone; image 3 has a crowd besides."""
    images, annotations = [], []

    def annotate(image: int, category: int, crowd: int = 0) -> None:
        outline = {"counts": [1, 2], "size": [12, 20]} if crowd else [[0.5, 1.5, 2.5, 3.5]]
        annotations.append(
            {"id": len(annotations), "image_id": image, "category_id": category,
             "iscrowd": crowd, "segmentation": outline, "bbox": [0, 0, 1, 1], "area": 1.0}
        )  # fmt: skip

    for number in range(ROWS + 5):
        file = f"{100 + number:012d}.jpg"
        images.append({"id": 100 + number, "file_name": file, "width": 20, "height": 12})
        save(folder / place / file, number)
        annotate(100 + number, 18)
        for _ in range(1 + number % 4 if number < ROWS else 0):
            annotate(100 + number, 7)
    annotate(103, 7, crowd=1)
    held = {
        "info": {"year": 2017},
        "images": images,
        "annotations": annotations,
        "categories": [{"id": 7, "name": "person"}, {"id": 18, "name": "dog"}],
    }
    (folder / "annotations").mkdir()
    (folder / "annotations" / "instances_train2017.json").write_text(json.dumps(held))
    return folder


FOLDERS: dict[str, Callable[[Path], Path]] = {
    "aaf": aaf_folder,
    "fg-net": fg_net_folder,
    "eva": eva_folder,
    "coco-people": coco_folder,
}


def truth(name: str, number: np.ndarray) -> np.ndarray:
    if name == "aaf":
        return 10.0 + number
    if name == "fg-net":
        return number.astype(float)
    if name == "eva":
        return (2 * (number // 4) + 5) / 3
    return 1.0 + number % 4 + (number == 3)


@pytest.mark.parametrize("name", list(FOLDERS))
def test_every_image_lies_in_one_part_beside_its_own_target(name: str, tmp_path: Path) -> None:
    task = image_task(name, folder=FOLDERS[name](tmp_path / "set"), **TINY)
    assert name in image_names("congruence")
    assert task.tests == ("test",)
    parts = [task.train, task.val, task.test]
    assert [len(part) for part in parts] == [21, 3, 6]
    for part in parts:
        assert part.x.shape == (len(part), 8, 8, 3)
        assert part.x.dtype == np.uint8
        assert np.allclose(part.y, truth(name, number_of(part)), rtol=1e-15)
        assert np.abs(part.x[..., 1].astype(int) - 200).max() <= 2
    numbers = np.concatenate([number_of(part) for part in parts])
    assert sorted(numbers) == list(range(ROWS))
    assert not np.array_equal(numbers, np.sort(numbers))
    assert network_input(task.test.x).shape == (6, 3, 8, 8)


@pytest.mark.parametrize("name", list(FOLDERS))
def test_the_seed_alone_makes_the_split(name: str, tmp_path: Path) -> None:
    folder = FOLDERS[name](tmp_path / "set")
    first, again, other = (
        image_task(name, folder=folder, seed=seed, **TINY).train.ids.tolist() for seed in (0, 0, 1)
    )
    assert first == again
    assert sorted(first) != sorted(other)
    fewer = image_task(name, folder=folder, train=4, test=2, **TINY)
    assert (len(fewer.train), len(fewer.test), len(fewer.val)) == (4, 2, 3)
    assert set(fewer.train.ids.tolist()) < set(first)


@pytest.mark.parametrize("name", list(FOLDERS))
def test_tasks_travel_and_turn_their_colours(name: str, tmp_path: Path) -> None:
    folder = FOLDERS[name](tmp_path / "set")
    task = pickle.loads(pickle.dumps(image_task(name, folder=folder, **TINY)))
    turned = image_task(name, folder=folder, order="bgr", **TINY)
    assert np.array_equal(turned.val.x, task.val.x[..., ::-1])


@pytest.mark.parametrize("name", list(FOLDERS))
def test_photographs_have_224_pixels_a_side_unless_asked(name: str, tmp_path: Path) -> None:
    folder = FOLDERS[name](tmp_path / "set")
    assert image_task(name, folder=folder, complete=False).val.x.shape == (3, 224, 224, 3)
    for side in (0, -3, 5000, 2.5, True):
        with pytest.raises(
            InputError, match="side must be a whole number of at least 1 and at most 1024"
        ):
            _ = image_task(name, folder=folder, complete=False, side=side).val


@pytest.mark.parametrize("name", list(FOLDERS))
def test_half_a_download_is_refused(name: str, tmp_path: Path) -> None:
    folder = FOLDERS[name](tmp_path / "set")
    refused("the download is not whole; complete=False", name, folder, complete=True)
    assert not all(finding.good for finding in check(entries()[name], folder))


@pytest.mark.parametrize("name", list(FOLDERS))
def test_corrupt_images_are_named_and_counted(name: str, tmp_path: Path) -> None:
    folder = FOLDERS[name](tmp_path / "set")
    images = sorted(path for path in folder.rglob("*.[jJ]*[gG]") if not path.name.startswith("."))
    images[0].write_bytes(b"not a picture")
    whole = images[1].read_bytes()
    images[1].write_bytes(whole[: len(whole) // 2])
    task = image_task(name, folder=folder, **TINY)
    said = ""
    for name_of_part in ("train", "val", "test"):
        try:
            task.part(name_of_part)
        except InputError as error:
            said += str(error)
    assert f"images cannot be read: {images[0].name}" in said or f", {images[0].name}" in said
    assert images[1].name in said
    lenient = image_task(name, folder=folder, broken="skip", **TINY)
    with pytest.warns(HowsureWarning, match="cannot be read"):
        parts = [lenient.part(part) for part in ("train", "val", "test")]
    assert sum(map(len, parts)) == ROWS - 2
    ids = {one for part in parts for one in part.ids.tolist()}
    assert not ids & {images[0].stem, images[1].stem}
    for part in parts:
        assert np.allclose(part.y, truth(name, number_of(part)), rtol=1e-15)
    assert any("cannot be read" in note for part in parts for note in part.notes)


@pytest.mark.parametrize("name", ["aaf", "eva", "coco-people"])
def test_listed_images_that_are_absent_are_named_and_counted(name: str, tmp_path: Path) -> None:
    folder = FOLDERS[name](tmp_path / "set")
    images = sorted(folder.rglob("*.jpg"))
    for path in images[:2]:
        path.unlink()
    said = f"2 of 30 listed images are absent: {images[0].name}, {images[1].name}"
    refused(f"{said}; complete=False leaves them out", name, folder, complete=True)
    task = image_task(name, folder=folder, **TINY)
    assert said in task.test.notes
    assert sum(len(task.part(part)) for part in ("train", "val", "test")) == ROWS - 2
    for path in images[2:]:
        path.unlink()
    refused("30 of 30 listed images are absent", name, folder, side=8)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are not here")
def test_a_pipe_named_as_an_image_does_not_hang(tmp_path: Path) -> None:
    folder = aaf_folder(tmp_path / "set")
    image = folder / "aligned faces" / "00003A13.jpg"
    image.unlink()
    os.mkfifo(image)
    assert any(
        "absent: 00003A13.jpg" in n for n in image_task("aaf", folder=folder, **TINY).val.notes
    )


@pytest.mark.parametrize("name", list(FOLDERS))
def test_empty_folders_and_lost_ones_are_refused(name: str, tmp_path: Path) -> None:
    refused(r"cannot be read|got 0: the download", name, tmp_path, side=8)
    with pytest.raises(InputError, match="folder must exist"):
        image_task(name, folder=tmp_path / "none")


@pytest.mark.parametrize("name", list(FOLDERS))
def test_sets_that_are_not_here_say_how_to_get_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOWSURE_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(DataNotFoundError, match=f"howsure data get {name}"):
        image_task(name)


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("../../secret/00000A10.jpg 0", "<number>A<age>"),
        ("00000A1٢.jpg 0", "<number>A<age>"),
        ("00000B10.jpg 0", "<number>A<age>"),
        ("00000A10.jpg 2", "<number>A<age>"),
        ("00000A10.jpg", "<number>A<age>"),
        ("00000A10.jpg\x00 0", "<number>A<age>"),
        ("00004A14 1", "must be listed once"),
    ],
)
def test_aaf_lists_of_other_form_are_refused(line: str, wrong: str, tmp_path: Path) -> None:
    folder = aaf_folder(tmp_path / "set")
    with (folder / "image sets" / "val.txt").open("a", encoding="utf-8") as lists:
        lists.write(line + "\n")
    refused(rf"val\.txt, line 10.*{wrong}", "aaf", folder, side=8)


def test_aaf_lists_that_are_missing_empty_or_no_text_are_refused(tmp_path: Path) -> None:
    folder = aaf_folder(tmp_path / "set")
    lists = folder / "image sets"
    (lists / "val.txt").unlink()
    refused(r"val\.txt cannot be read", "aaf", folder, side=8)
    (lists / "val.txt").write_bytes(b"\xff\xfe\x00")
    refused(r"val\.txt cannot be read", "aaf", folder, side=8)
    for name in ("train.txt", "val.txt"):
        (lists / name).write_text("\n")
    refused("must list images, got none", "aaf", folder, side=8)


def test_fg_net_names_of_other_form_are_named_and_counted(tmp_path: Path) -> None:
    folder = fg_net_folder(tmp_path / "set")
    for name in ("portrait.jpg", "001A٢٣.JPG", "01A02.JPG", "001A0.JPG", "001A02ab.JPG"):
        save(folder / "images" / name, 1)
    refused(r"5 of 37 images cannot be read: 001A0\.JPG \(its name", "fg-net", folder, side=8)
    with pytest.warns(HowsureWarning, match="5 of 37"):
        part = image_task("fg-net", folder=folder, broken="skip", **TINY).train
    assert len(part) == 21


def test_fg_net_drops_grey_photographs_or_keeps_them(tmp_path: Path) -> None:
    folder = fg_net_folder(tmp_path / "set")
    task = image_task("fg-net", folder=folder, **TINY)
    assert "2 grey images left out" in task.train.notes
    assert task.published == {"train": 578, "val": 82, "test": 167}
    kept = image_task("fg-net", folder=folder, grey="keep", **TINY)
    parts = [kept.part(part) for part in ("train", "val", "test")]
    assert [len(part) for part in parts] == [22, 3, 7]
    assert {41.0, 42.0} < set(np.concatenate([part.y for part in parts]))
    assert kept.published == {}
    refused("grey must be drop or keep, got 'colour'", "fg-net", folder, grey="colour", side=8)


def test_fg_net_persons_may_be_kept_apart(tmp_path: Path) -> None:
    folder = fg_net_folder(tmp_path / "set")
    for seed in range(4):
        task = image_task("fg-net", folder=folder, persons="apart", seed=seed, **TINY)
        seen = [{one[:3] for one in task.part(part).ids} for part in ("train", "test")]
        assert not seen[0] & seen[1]
        assert len(task.train) == 20
    refused("persons must be mixed or apart", "fg-net", folder, persons="both", side=8)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("1000=U0=0=", "1000=U0=11=", "score must be in 0 … 10, got 11 for image 1000"),
        ("1000=U0=0=", "1000=U0=-1=", "score must be in 0 … 10, got -1"),
        ("1000=U0=0=", "1000=U0=nan=", "'score' must have no missing value, got 1"),
        ("1000=U0=0=", "1000=U0==", "'score' must have no missing value, got 1"),
        ("1000=U0=0=", "1000=U0=fine=", "'score' must contain numbers"),
        ("1000=U0=0=", "../../1000=U0=0=", r"image_id must be a number, got '\.\./\.\./1000'"),
        ("image_id=", "image=", "must have the column 'image_id'"),
        ("1000=U0=0=", "1000=U0=0=0=", "cannot be read"),
        ("=", ",", "must have the column 'image_id'"),
    ],
)
def test_eva_votes_of_other_form_are_refused(old: str, new: str, said: str, tmp_path: Path) -> None:
    folder = eva_folder(tmp_path / "set")
    votes = folder / "data" / "votes_filtered.csv"
    text = votes.read_text()
    votes.write_text(text.replace(old, new) if old == "=" else text.replace(old, new, 1))
    refused(said, "eva", folder, side=8)


def test_eva_without_votes_is_refused(tmp_path: Path) -> None:
    folder = eva_folder(tmp_path / "set")
    (folder / "data" / "votes_filtered.csv").unlink()
    refused(r"votes_filtered\.csv cannot be read", "eva", folder, side=8)


@pytest.mark.parametrize("place", ["images/train2017", "images"])
def test_coco_images_may_lie_elsewhere(place: str, tmp_path: Path) -> None:
    task = image_task("coco-people", folder=coco_folder(tmp_path / "set", place), **TINY)
    assert len(task.train) == 21


def test_coco_crowds_count_as_one_or_are_left_out(tmp_path: Path) -> None:
    folder = coco_folder(tmp_path / "set")
    task = image_task("coco-people", folder=folder, **TINY)
    assert "1 images count a crowd as one person" in task.val.notes
    dropped = image_task("coco-people", folder=folder, crowds="drop", **TINY)
    parts = [dropped.part(part) for part in ("train", "val", "test")]
    assert sum(map(len, parts)) == ROWS - 1
    assert "000000000103" not in {one for part in parts for one in part.ids.tolist()}
    assert dropped.published == {}
    refused("crowds must be one or drop", "coco-people", folder, crowds="count", side=8)


def broken_annotations(change: str, held: dict[str, Any]) -> Any:
    if change == "path":
        held["images"][0]["file_name"] = "../../secret.jpg"
    elif change == "person":
        held["categories"][0]["name"] = "human"
    elif change == "nobody":
        held["annotations"] = [one for one in held["annotations"] if one["category_id"] == 18]
    elif change == "stray":
        held["annotations"][1]["image_id"] = 999
    elif change == "text":
        held["annotations"][1]["image_id"] = "100"
    elif change == "keyless":
        del held["annotations"][0]["iscrowd"]
    elif change == "listless":
        del held["images"]
    return [] if change == "list" else held


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("path", r"file_name must be <number>\.jpg, got '\.\./\.\./secret\.jpg'"),
        ("person", "must have one category 'person', got 0"),
        ("nobody", "no image with a person"),
        ("stray", "annotations must be of listed images, got 999"),
        ("text", "must have the list 'annotations' of rows with image_id"),
        ("keyless", "must have the list 'annotations' of rows with image_id"),
        ("listless", "must have the list 'images' of rows with id, file_name"),
        ("list", "must have the list 'images'"),
    ],
)
def test_coco_annotations_of_other_form_are_refused(change: str, said: str, tmp_path: Path) -> None:
    folder = coco_folder(tmp_path / "set")
    place = folder / "annotations" / "instances_train2017.json"
    place.write_text(json.dumps(broken_annotations(change, json.loads(place.read_text()))))
    refused(said, "coco-people", folder, side=8)


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 100_000, b"\xff\xfe"])
def test_coco_annotations_that_are_no_json_are_refused(content: bytes, tmp_path: Path) -> None:
    folder = coco_folder(tmp_path / "set")
    (folder / "annotations" / "instances_train2017.json").write_bytes(content)
    refused(r"instances_train2017\.json cannot be read", "coco-people", folder, side=8)


def test_too_few_images_for_three_parts_are_refused(tmp_path: Path) -> None:
    folder = aaf_folder(tmp_path / "set")
    (folder / "image sets" / "train.txt").write_text("")
    task = image_task("aaf", folder=folder, **TINY)
    assert len(task.train) == 5
    with pytest.raises(InputError, match="has 8 images, too few for the part 'val'"):
        _ = task.val


def test_published_sizes_are_the_rules_of_the_published_numbers() -> None:
    wanted = {"aaf": 13_322, "fg-net": 827, "eva": 4_070, "coco-people": 64_115}
    assert set(wanted) == set(image_names("congruence"))
    for rows in (*wanted.values(), 10, 11, 997):
        first, second = cuts(rows)
        assert (first, second) == (int(0.7 * rows), int(0.7 * rows) + int(0.1 * rows))
        assert sum(sizes(rows).values()) == rows
    parts = split(997, 3, "eva")
    assert sorted(np.concatenate(list(parts.values()))) == list(range(997))
    assert {name: len(rows) for name, rows in parts.items()} == sizes(997)


def test_groups_are_split_whole_and_near_the_wanted_shares() -> None:
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 82, 1000).astype(str).tolist()
    for seed in range(5):
        parts = split_groups(groups, seed, "fg-net")
        assert sorted(np.concatenate(list(parts.values()))) == list(range(1000))
        members = [{groups[row] for row in rows} for rows in parts.values()]
        assert sum(map(len, members)) == len(set(groups))
        for rows, share in zip(parts.values(), (700, 100, 200), strict=True):
            assert abs(len(rows) - share) <= 20


def test_resizing_weighs_pixels_by_a_tent() -> None:
    image = np.random.default_rng(0).integers(0, 256, (37, 90, 3), dtype=np.uint8)

    def tent(size: int, wanted: int) -> np.ndarray:
        """Weights of the pixels, one row for each wanted one."""
        scale = size / wanted
        centres = (np.arange(wanted)[:, None] + 0.5) * scale
        reach = max(scale, 1.0)
        weights = np.maximum(1.0 - np.abs(np.arange(size) + 0.5 - centres) / reach, 0.0)
        return weights / weights.sum(axis=1, keepdims=True)

    wanted = np.einsum("ij,jkc,lk->ilc", tent(37, 8), image.astype(float), tent(90, 8))
    assert np.abs(squared(image, 8) - wanted).max() <= 1.01
    larger = np.einsum("ij,jkc,lk->ilc", tent(37, 64), image.astype(float), tent(90, 64))
    assert np.abs(squared(image, 64) - larger).max() <= 1.01
