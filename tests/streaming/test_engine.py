"""Pieces of work: the same tables in the same order, whoever does them and whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.errors import DegenerateError, HowsureError, InputError
from howsure.core.progress import subscribe
from howsure.streaming.engine import (
    Kept,
    done_in_order,
    keep,
    read_kept,
    stream_bytes,
    stream_table,
)
from pace import slowness
from streaming import pieces

TESTS = str(Path(__file__).parents[1])


def done(work: Callable[[Any], pa.Table], items: Sequence[Any], **how: Any) -> list[pa.Table]:
    return list(done_in_order(work, items, **{"identities": [""] * len(items), **how}))


def squares(count: int) -> list[pa.Table]:
    return [pieces.square(number) for number in range(count)]


def names(count: int) -> list[str]:
    return [f"{number:032x}" for number in range(count)]


def wait(true: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether a process is there, and more than a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def children() -> set[int]:
    """The processes that this one has started."""
    found = Path("/proc/self/task").glob("*/children")
    return {int(pid) for path in found for pid in path.read_text().split()}


@pytest.fixture
def heard() -> Iterator[list[tuple[str, int, int]]]:
    told: list[tuple[str, int, int]] = []
    with subscribe(lambda *step: told.append(step)):
        yield told


class TestProcesses:
    @pytest.mark.parametrize("jobs", [1, 2, 3])
    @pytest.mark.rate
    def test_results_come_in_order(self, jobs: int) -> None:
        assert done(pieces.slow, range(6), jobs=jobs) == squares(6)

    def test_nothing_comes_to_nothing(self) -> None:
        assert done(pieces.square, []) == []

    def test_one_job_needs_no_child(self) -> None:
        assert done(pieces.who, [0, 1], jobs=1)[1]["pid"].to_pylist() == [os.getpid()]
        assert done(pieces.who, [0])[0]["pid"].to_pylist() == [os.getpid()]

    def test_a_child_has_one_thread(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            monkeypatch.setenv(name, "4")
        rows = pa.concat_tables(done(pieces.who, range(6), jobs=2)).to_pylist()
        assert {(row["blas"], row["arrow"]) for row in rows} == {(1, 1)}
        assert os.getpid() not in {row["pid"] for row in rows}

    def test_few_are_out_at_a_time(self, tmp_path: Path) -> None:
        items = [(number, tmp_path, 0.0) for number in range(20)]
        with_two = done_in_order(pieces.logged, items, identities=[""] * 20, jobs=2)
        next(with_two)
        time.sleep(0.3)
        assert len(list(tmp_path.iterdir())) <= 5
        assert pa.concat_tables(with_two).num_rows == 19
        assert not children()

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_the_first_error_is_raised_as_it_is(self, jobs: int) -> None:
        some = done_in_order(pieces.bad, range(9), identities=[""] * 9, jobs=jobs)
        assert [next(some), next(some)] == squares(2)
        with pytest.raises(DegenerateError, match=r"^row 73 of part 2 has no y$") as caught:
            next(some)
        assert caught.value.__cause__ is None
        assert not children()

    def test_an_error_of_another_kind_says_its_kind(self) -> None:
        with pytest.raises(HowsureError, match=r"^KeyError: 'no such column'$"):
            done(pieces.odd, range(3), jobs=2)

    def test_closing_ends_what_is_out(self, tmp_path: Path) -> None:
        items = [(number, tmp_path, 0.0 if number == 0 else 1000.0) for number in range(9)]
        some = done_in_order(pieces.logged, items, identities=[""] * 9, jobs=2)
        next(some)
        wait(lambda: len(list(tmp_path.iterdir())) == 3)
        started = time.monotonic()
        some.close()
        assert time.monotonic() - started < 20 * slowness()  # pieces that are out take 1,000 s
        assert not children()

    @pytest.mark.slow
    @pytest.mark.parametrize("times", [1, 2])
    def test_a_killed_child_costs_only_time(self, tmp_path: Path, times: int) -> None:
        items = [(number, tmp_path, times if number == 1 else 0) for number in range(4)]
        assert done(pieces.dies, items, jobs=2) == squares(4)
        assert len(list(tmp_path.glob("1-*"))) == times + 1

    def test_a_piece_that_kills_is_named(self, tmp_path: Path) -> None:
        items = [(number, tmp_path, 9 if number == 1 else 0) for number in range(4)]
        with pytest.raises(HowsureError, match=r"piece 2 of 4 .* 3 processes .* memory ran out$"):
            done(pieces.dies, items, jobs=2)
        assert len(list(tmp_path.glob("1-*"))) == 3
        assert not children()

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_rows_are_told(self, jobs: int, heard: list[tuple[str, int, int]]) -> None:
        done(pieces.square, range(3), jobs=jobs, stage="rows read", sizes=[10, 0, 5])
        assert heard == [("rows read", n, 15) for n in (0, 10, 10, 15)]

    def test_bad_arguments_are_refused(self) -> None:
        with pytest.raises(InputError, match="identities and sizes must have one entry per item"):
            done(pieces.square, [1], identities=[])
        with pytest.raises(InputError, match="jobs must be a whole number of at least 1, got 0"):
            done(pieces.square, [1], jobs=0)
        with pytest.raises(InputError, match="jobs cannot be combined with a scheduler, got 2"):
            done(pieces.square, [1], jobs=2, scheduler="tcp://127.0.0.1:9")


INTERRUPTED = """
import sys
import time
from pathlib import Path
from howsure.streaming.engine import done_in_order
from howsure.streaming.engine import Kept
from streaming.pieces import logged

marks, jobs, where = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
items = [(n, marks, 0.0 if n < 2 else 1000.0) for n in range(9)]
names = [f"{n:032x}" for n in range(9)]
with Kept.of("run", resume=False) as kept:
    for table in done_in_order(logged, items, identities=names, jobs=jobs, resume=kept.folder):
        if table["number"][0].as_py() == where:
            time.sleep(1000)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("jobs", "where", "how"), [(1, 9, "INT"), (2, 9, "INT"), (2, 1, "INT"), (2, 9, "KILL")]
)
def test_an_interrupt_leaves_what_is_whole_and_no_child(
    jobs: int, where: int, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    marks = tmp_path / "marks"
    marks.mkdir()
    path = os.pathsep.join([TESTS, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(marks), str(jobs), str(where)],
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        wait(lambda: len(list(marks.iterdir())) >= 2 + jobs)
        time.sleep(0.2)
        run.send_signal(getattr(signal, f"SIG{how}"))
        _, told = run.communicate(timeout=20 * slowness())
    assert told.rstrip().endswith("KeyboardInterrupt" if how == "INT" else "")
    workers = {int(path.name.split("-")[1]) for path in marks.iterdir()}
    wait(lambda: not any(map(alive, workers)), 10)
    (folder,) = (tmp_path / "cache" / "howsure" / "streaming").iterdir()
    assert {path.name for path in folder.iterdir()} == {f"{name}.arrow" for name in names(2)}
    with Kept.of("run", resume=True) as again:
        assert len(again) == 2
        items = [(number, marks, 0.0) for number in range(4)]
        found = done(pieces.logged, items, identities=names(4), jobs=1, resume=again.folder)
    assert found == squares(4)
    assert {path.name for path in marks.glob(f"*-{os.getpid()}")} == {
        f"{number}-{os.getpid()}" for number in (2, 3)
    }
    assert not folder.exists()


class TestKept:
    @pytest.fixture(autouse=True)
    def cache(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def marked(self, marks: Path, folder: Path, count: int = 4, **how: Any) -> set[int]:
        """Do pieces, and say which were not read."""
        marks.mkdir(exist_ok=True)
        items = [(number, marks, 0.0) for number in range(count)]
        how = {"jobs": 1, "identities": names(count), "resume": folder, **how}
        assert done(pieces.logged, items, **how) == squares(count)
        begun = {int(path.name.split("-")[0]) for path in marks.iterdir()}
        for path in marks.iterdir():
            path.unlink()
        return begun

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_what_is_kept_is_read(self, tmp_path: Path, jobs: int) -> None:
        marks, folder = tmp_path / "marks", tmp_path / "kept"
        assert self.marked(marks, folder, 3) == {0, 1, 2}
        assert self.marked(marks, folder, 5, jobs=jobs) == {3, 4}
        assert not self.marked(marks, folder, 5, jobs=3 - jobs)

    def test_without_identity_nothing_is_kept(self, tmp_path: Path) -> None:
        own = ["", *names(3)]
        for _ in range(2):
            begun = self.marked(tmp_path / "marks", tmp_path / "kept", identities=own)
        assert begun == {0}

    @pytest.mark.parametrize("broken", [b"", b"ARROW1", None, "cut", "flipped"])
    def test_a_broken_piece_is_done_again(self, tmp_path: Path, broken: Any) -> None:
        marks, folder = tmp_path / "marks", tmp_path / "kept"
        self.marked(marks, folder)
        path = folder / f"{names(4)[2]}.arrow"
        whole = path.read_bytes()
        if broken is None:
            path.unlink()
        elif broken == "flipped":
            path.write_bytes(whole[:300] + bytes([whole[300] ^ 1]) + whole[301:])
        else:
            path.write_bytes(whole[:-40] if broken == "cut" else broken)
        assert self.marked(marks, folder) == {2}
        assert path.read_bytes() == whole

    def test_a_kept_piece_is_a_file_of_arrow(self, tmp_path: Path) -> None:
        keep(tmp_path, "a", stream_bytes(pieces.square(3)))
        with pa.ipc.open_stream(tmp_path / "a.arrow") as reader:
            assert reader.read_all() == pieces.square(3)

    def test_where_nothing_can_be_written_the_work_is_done(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        assert len(self.marked(tmp_path / "marks", tmp_path / "file" / "kept")) == 4

    def test_a_run_that_ends_well_leaves_nothing(self) -> None:
        with Kept.of("a", resume=False) as held:
            keep(held.folder, "x", b"1")
            assert len(held) == 1
        assert not held.folder.exists()

    def test_an_interrupted_run_is_gone_on_with_only_where_that_is_asked(self) -> None:
        def interrupted(resume: bool) -> Path:
            held = Kept.of("a", resume=resume)
            with suppress(KeyboardInterrupt), held:
                assert len(held) == resume
                keep(held.folder, "x", b"1")
                raise KeyboardInterrupt
            return held.folder

        folder = interrupted(resume=False)
        assert interrupted(resume=True) == folder
        assert read_kept(folder, "x") == b"1"
        with Kept.of("b", resume=True) as other:
            assert read_kept(other.folder, "x") is None
        with Kept.of("a", resume=False) as anew:
            assert anew.folder == folder
            assert read_kept(anew.folder, "x") is None

    @pytest.mark.slow
    def test_two_runs_of_one_command_do_no_harm(self, tmp_path: Path) -> None:
        with Kept.of("a", resume=False) as one:
            items = [(number, tmp_path / "marks", 0.0) for number in range(6)]
            (tmp_path / "marks").mkdir()
            how = {"identities": names(6), "jobs": 2, "resume": one.folder}
            first = done_in_order(pieces.logged, items, **how)
            tables = [next(first), next(first)]
            with Kept.of("a", resume=False) as other:
                assert done(pieces.logged, items, **{**how, "resume": other.folder}) == squares(6)
            assert not one.folder.exists()
            assert [*tables, *first] == squares(6)

    def test_what_nobody_went_on_with_goes(self) -> None:
        old, new = Kept.of("old", resume=False), Kept.of("new", resume=False)
        for held in (old, new):
            keep(held.folder, "x", b"1")
        os.utime(old.folder, (0, 0))
        with Kept.of("third", resume=False):
            assert not old.folder.exists()
            assert new.folder.exists()


@given(st.lists(st.lists(st.one_of(st.none(), st.text()), max_size=4), max_size=4))
@examples(50)
def test_a_table_is_the_same_packed(chunks: list[list[str | None]]) -> None:
    words = pa.chunked_array([pa.array(chunk, pa.string()) for chunk in chunks], pa.string())
    table = pa.table({"word": words}, metadata={"version": "1"})
    for one in (table, table.slice(1), table.cast(pa.schema([("word", pa.large_string())]))):
        assert stream_table(stream_bytes(one)).equals(one)
        assert stream_table(stream_bytes(one)).schema.equals(one.schema, check_metadata=True)
