"""Originals are read where they are on this machine, the same in plans as in `data check`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from extras import needs
from howsure.core.errors import InputError
from howsure_studies.congruence import worlds as congruence
from howsure_studies.engine import canonical, load_plan, trials_of
from howsure_studies.engine.study import sources_of
from howsure_studies.shift import study as shift
from howsure_studies.tasks import DataNotFoundError
from howsure_studies.tasks.catalogue import entries
from howsure_studies.tasks.download import check
from howsure_studies.tasks.files import located
from howsure_studies.tasks.images import image_task, settled, settled_task
from howsure_studies.tasks.images.drawn import DRAWN, originals_folder
from tasks.test_image_tasks import chair_file

SIZES: dict[str, Any] = {"train": 40, "val": 20, "test": 20}
PART = {**SIZES, "complete": False}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where data are looked for: nothing is there yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOWSURE_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def cell_file(folder: Path, most: int = 200) -> Path:
    """A small Cell-200 as its authors pack it: two pictures of each count, which they show."""
    h5py = needs("h5py")
    folder.mkdir(parents=True)
    counts = np.repeat(np.arange(1, most + 1), 2)
    with h5py.File(folder / "Cell200_64x64.h5", "w") as held:
        held["IMGs_grey"] = np.broadcast_to(
            counts[:, None, None, None].astype(np.uint8), (len(counts), 1, 64, 64)
        )
        held["CellCounts"] = counts
    return folder


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_unless_the_original_is_there(name: str, here: Path) -> None:
    assert image_task(name, **SIZES).source == "drawn"
    (here / originals_folder(name)).mkdir()
    assert image_task(name, **SIZES).source == "original"
    assert image_task(name, source="drawn", **SIZES).source == "drawn"


@pytest.mark.parametrize("name", DRAWN)
def test_plans_look_where_data_check_looks(name: str, here: Path, tmp_path: Path) -> None:
    """Under HOWSURE_DATA, then in the cache; the entry and the task name one folder."""
    entry = next(e for e in entries().values() if name == e.name or name.startswith(f"{e.name}-"))
    assert entry.folder == originals_folder(name)
    cached = tmp_path / "cache" / "howsure" / entry.folder
    cached.mkdir(parents=True)
    assert located(entry.folder) == cached
    assert image_task(name).source == "original"
    (here / entry.folder).mkdir()
    assert located(entry.folder) == here / entry.folder
    assert not any(finding.good for finding in check(entry))
    with pytest.raises(InputError, match=str(here / entry.folder)):
        _ = image_task(name).train


def test_every_real_set_is_looked_for_where_its_entry_says(here: Path) -> None:
    from howsure_studies.tasks.images.naming import REAL
    from howsure_studies.tasks.shift import TABLES

    listed = entries()
    for name, facts in {**REAL, **TABLES}.items():
        assert listed[name].folder == facts.folder  # type: ignore[attr-defined]


def test_chairs_are_those_of_the_file(here: Path) -> None:
    chair_file(here / "RC-49")
    task = image_task("chair-angle-gap", complete=False)
    assert np.array_equal(task.train.x[:, 3, 3, 0], np.floor(task.train.y))
    drawn = image_task("chair-angle-gap", source="drawn", train=30)
    assert not np.array_equal(drawn.train.x[:, 3, 3, 0], np.floor(drawn.train.y))


def test_cells_are_those_of_the_authors_file(here: Path) -> None:
    cell_file(here / "Cell200")
    task = image_task("cells-gap", **PART)
    for part in (task.train, task.val, task.test):
        assert part.x.shape[1:] == (64, 64, 1)
        assert np.array_equal(part.x[:, 5, 5, 0], part.y)
    with pytest.raises(
        InputError, match=r"must contain 200000 images, got 400: .*; source=\"drawn\" draws"
    ):
        _ = image_task("cells", **SIZES).train


def test_half_an_authors_file_is_refused(here: Path) -> None:
    path = cell_file(here / "Cell200", 5) / "Cell200_64x64.h5"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="cannot be read"):
        _ = image_task("cells", **PART).train
    with needs("h5py").File(path, "w") as held:
        held["IMGs_grey"] = np.zeros((3, 64, 64), np.uint8)
        held["CellCounts"] = np.array([1, 2, 3])
    with pytest.raises(InputError, match=r"IMGs_grey must be \(3, 1, 64, 64\), got \(3, 64, 64\)"):
        _ = image_task("cells", **PART).train


def test_who_says_how_to_draw_wants_it_drawn(here: Path) -> None:
    (here / "Cell200").mkdir()
    assert image_task("cells", recipe="faithful").source == "drawn"
    assert image_task("cells", shortcut=False).source == "drawn"
    assert image_task("cells", shortcut=False, source="original").source == "original"
    with pytest.raises(InputError, match="shortcut must be True with the recipe micrograph"):
        image_task("cells", shortcut=False, recipe="micrograph")


def test_choices_of_the_source_are_checked(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="source must be drawn or original, got 'real'"):
        image_task("cells", source="real")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="for aaf cannot be drawn, got 'drawn'"):
        image_task("aaf", source="drawn")
    with pytest.raises(InputError, match="original where a folder is given, got 'drawn'"):
        image_task("cells", source="drawn", folder=tmp_path)
    with pytest.raises(DataNotFoundError, match="data set 'cells' is not on this machine"):
        image_task("cells", source="original")
    assert image_task("cells", folder=tmp_path).source == "original"


def test_what_is_settled_stays_so_wherever_it_is_made(here: Path) -> None:
    drawn = settled(image_task("cells", **SIZES), SIZES)
    assert drawn == {**SIZES, "recipe": "micrograph"}
    old = settled(image_task("cells", recipe="direct", **SIZES), {**SIZES, "recipe": "direct"})
    assert old == SIZES  # as older results have it
    without = settled(image_task("cells", shortcut=False, **SIZES), {**SIZES, "shortcut": False})
    assert without == {**SIZES, "shortcut": False}
    one, other = (settled_task("cells", **options).train for options in (drawn, old))
    assert np.array_equal(one.x, image_task("cells", source="drawn", **SIZES).train.x)
    assert not np.array_equal(one.x, other.x)
    cell_file(here / "Cell200")
    read = settled(image_task("cells", **PART), PART)
    assert read == {**PART, "source": "original"}
    assert settled_task("cells", **drawn).source == "drawn"
    assert settled_task("cells", **read).source == "original"


# In plans


def test_the_address_of_a_trial_tells_drawn_from_original(here: Path) -> None:
    entry = {"world": "cells", **SIZES}
    drawn, files = shift.task_identity("c", entry, Path(), 0)
    plain = {"images": "cells", **SIZES, "seed": 0}
    assert (drawn, files) == ({**plain, "recipe": "micrograph"}, {})
    cell_file(here / "Cell200")
    read, _ = shift.task_identity("c", entry, Path(), 0)
    assert read == {**plain, "source": "original"}
    asked, files = shift.task_identity("c", {**entry, "folder": str(here / "Cell200")}, Path(), 0)
    assert asked == read
    assert files == {"folder": str(here / "Cell200")}
    insisted, _ = shift.task_identity("c", {**entry, "source": "drawn"}, Path(), 0)
    assert insisted == drawn
    assert shift.make_task(drawn, {}).source == "drawn"
    assert shift.make_task(read, {}).source == "original"


def test_the_congruence_study_does_the_same(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def identity(**more: Any) -> dict[str, Any]:
        entry = {"world": "cells", "train": 30, "val": 10, "test": 10, **more}
        return congruence.task_identity("c", entry, Path(), seed=0, components=4)[0]

    drawn = identity()
    assert "source" not in drawn
    assert congruence.source_of(drawn) == "drawn"
    cell_file(here / "Cell200")
    read = identity()
    assert read == {**drawn, "source": "original"}
    assert congruence.source_of(read) == "original"
    assert identity(shortcut=False) == {**drawn, "shortcut": False}
    assert identity(source="drawn") == drawn
    monkeypatch.setattr(congruence, "photographs_task", lambda _, **options: options["source"])
    made = congruence._make_task.__wrapped__
    assert [made(canonical(one), "{}") for one in (drawn, read)] == ["drawn", "original"]
    assert congruence.source_of({"data": "x", "seed": 0}) == ""
    assert congruence.source_of({"task": "discrete-wave"}) == "drawn"
    assert congruence.source_of({"task": "digits"}) == "original"


def test_a_plan_tells_which_worlds_were_drawn(here: Path) -> None:
    plan = load_plan("shift_small")
    cells, chairs = ([n for n in plan.worlds if n.startswith(k)] for k in ("cells", "chair"))
    assert sources_of(trials_of(plan)) == f"drawn: {', '.join([*cells, *chairs])}"
    (here / "RC-49").mkdir()
    told = f"drawn: {', '.join(cells)}; read from originals: {', '.join(chairs)}"
    assert sources_of(trials_of(plan)) == told
