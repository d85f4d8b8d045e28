"""Whatever comes in, only errors of our own come out."""

from __future__ import annotations

import contextlib
import gzip
import importlib
import io
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import TIMES, examples
from howsure import Table
from howsure.cli.main import main
from howsure.core.errors import HowsureError, InputError, strict
from howsure.core.rng import child
from howsure.inputs import load
from howsure.report.assess import assess

Numbers = npt.NDArray[np.float64]
SETTINGS = examples(250)
PLAIN = b"""y,pred,sd,lower_90,upper_90,q0.1,q0.9,region,time,id,model
1.5,1,0.5,0,3,1,2,north,2026-01-01,a,m
2.5,2,0.5,1,4,2,3,"so,uth",2026-01-02,b,m
1.5,2,1,0,3,1,2,north,2026-01-01,a,n
2.5,3,1,1,4,2,3,"so,uth",2026-01-02,b,n
"""
PIECES = [
    *(b"", b"\0", b'"', b",", b"\n", b"\r", b"\xff", b"\xef\xbb\xbf", b"nan", b"inf", b"-1", b"NA"),
    *(b"1e999", b"=1", b"<script>", b"\xff\xfe", b"y", b"pred", b"q0.1", b"lower_05", b";", b"\t"),
]
options = st.fixed_dictionaries(
    {},
    optional={
        "groups": st.sampled_from(["region", "region,time", "*", "nope", ""]),
        "features": st.sampled_from(["*", "region", "x_*"]),
        "missing": st.sampled_from(["error", "drop"]),
        "crossing": st.sampled_from(["error", "sort"]),
        "encoding": st.sampled_from([None, "latin-1", "utf-16", "utf-7", "cp037", "punycode"]),
        "decimal": st.sampled_from([".", ","]),
        "samples": st.sampled_from(["*", "q*", "sd"]),
        "law": st.sampled_from(["t:df=sd,loc=pred", "gamma:a=pred", "poisson:mu=y", "x:y=z"]),
        "coverage": st.sampled_from([0.9, 0.5, 90]),
        "weights": st.sampled_from(["pred", "sd", "region", "id"]),
        "cluster": st.sampled_from(["region", "y"]),
        "rows": st.sampled_from(["id", "y", ""]),
        "model": st.sampled_from(["model", "region", ""]),
        "time": st.sampled_from(["time", "y", "region", ""]),
        "quantile_level": st.sampled_from(["sd", "region", "q0.1", ""]),
        "sample_id": st.sampled_from(["id", "region", "y", ""]),
        "output_type": st.sampled_from(["region", "id", ""]),
        "boundary": st.sampled_from(["region", ""]),
        "quantiles": st.just(""),
        "lower": st.just(""),
        "upper": st.just(""),
        "sd": st.just(""),
    },
)


@pytest.fixture(scope="module")
def attempt(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("fuzz")

    def attempt(content: bytes, ending: str, chosen: dict[str, Any]) -> None:
        path = folder / f"t{ending}"
        path.write_bytes(content)
        with contextlib.suppress(HowsureError):
            load(path, **chosen)

    return attempt


@SETTINGS
@given(
    st.binary(max_size=60),
    st.sampled_from([".csv", ".tsv", ".csv.gz", ".csv.zst", ".parquet", ".arrow", ".feather"]),
    options,
)
def test_random_bytes(attempt: Any, content: bytes, ending: str, chosen: Any) -> None:
    attempt(content, ending, chosen)


def test_the_sound_table_is_sound(tmp_path: Any) -> None:
    (tmp_path / "t.csv").write_bytes(PLAIN)
    assert [made.model for made in load(tmp_path / "t.csv").evalsets] == ["m", "n"]


@SETTINGS
@given(
    st.lists(
        st.tuples(st.integers(0, len(PLAIN)), st.integers(0, 8), st.sampled_from(PIECES)),
        max_size=4,
    ),
    options,
    st.sampled_from([".csv", ".tsv", ".csv.gz", ".csv.zst"]),
)
def test_broken_tables(attempt: Any, edits: Any, chosen: Any, ending: str) -> None:
    """A sound table with some bytes cut out and some pieces put in."""
    content = PLAIN
    for place, cut, piece in edits:
        content = content[:place] + piece + content[place + cut :]
    if ending.endswith("gz"):
        content = gzip.compress(content, mtime=0)
    elif ending.endswith("zst"):
        content = pa.compress(content, codec="zstd", asbytes=True)
    attempt(content, ending, chosen)


cells = st.one_of(
    st.none(), st.text(max_size=4), st.integers(), st.floats(), st.booleans(), st.dates(),
    st.datetimes(), st.binary(max_size=3), st.decimals(), st.complex_numbers(), st.times(),
    st.lists(st.integers(), max_size=2), st.builds(object),
)  # fmt: skip
column = st.one_of(
    st.lists(st.floats(-5, 5), min_size=3, max_size=3),
    st.lists(st.integers(-2, 9), min_size=3, max_size=3),
    st.lists(cells, min_size=3, max_size=3),
    st.lists(cells, max_size=4),
    cells,
)
names = st.sampled_from(
    [
        *("y", "pred", "mean", "sd", "lower", "upper", "q05", "q95", "s_1", "s_2", "weight"),
        *("time", "id", "model", "group", "x_1", "emb_1", "cluster", "<b>", ""),
        *("quantile_level", "sample", "output_type", "boundary", "range", "value", "algo"),
        *("unique_id", "ds", "a-lo-90", "a-hi-90", "a", "b_mean", "b_sd", "c_mean", "c_sd"),
    ]
)


@SETTINGS
@given(st.dictionaries(names, column, max_size=8), options)
def test_any_mapping(table: dict[str, Any], chosen: dict[str, Any]) -> None:
    with contextlib.suppress(HowsureError):
        load(table, **chosen)


@SETTINGS
@given(st.lists(st.tuples(st.text(max_size=5), st.sampled_from(["1", "2.5", "x", ""])), max_size=6))
def test_hostile_names(attempt: Any, columns: list[tuple[str, str]]) -> None:
    names = ["y", "pred", *(name.encode("utf-8", "replace").decode() for name, _ in columns)]
    rows = [",".join(name.join('""') for name in names)]
    rows += [",".join(["1", "2", *(cell for _, cell in columns)])]
    attempt("\n".join(rows).encode(), ".csv", {"groups": "*"})


@SETTINGS
@given(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            ["y", "point", "lower", "upper", "coverage", "quantiles", "samples", "law", "groups"],
            st.one_of(cells, st.lists(cells, max_size=2)),
        ),
    )
)
def test_any_flag(chosen: dict[str, Any]) -> None:
    with contextlib.suppress(HowsureError):
        load({"y": [1.0], "pred": [1.0], "a": [1.0]}, **chosen)


BOUND = 60
"""Seconds after which a case hangs."""


class HangError(BaseException):
    """A case took too long; nothing that catches errors shall catch this."""


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """End what takes longer than a table of a few rows ever may."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise HangError(f"not done after {BOUND} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, BOUND)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# What is predicted: the columns beside y, of n rows.
def _sets(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"set": ["|".join(list("abc")[: rng.integers(1, 4)]) for _ in range(n)]}


KINDS: Mapping[str, Callable[[np.random.Generator, int], dict[str, Any]]] = {
    "point": lambda rng, n: {"pred": rng.normal(size=n)},
    "normal": lambda rng, n: {"mean": rng.normal(size=n), "sd": rng.uniform(0.5, 2, n)},
    "interval": lambda rng, n: {
        "lower_90": rng.normal(size=n) - 2,
        "upper_90": rng.normal(size=n) + 2,
    },
    "quantiles": lambda rng, n: {
        f"q{level:g}": rng.normal(size=n) * 0.1 + level * 4 - 2 for level in (0.05, 0.5, 0.95)
    },
    "samples": lambda rng, n: {f"sample_{k}": rng.normal(size=n) for k in range(5)},
    "sets": _sets,
}

# What a column of numbers may come as.
DTYPES: Mapping[str, Callable[[Numbers], Any]] = {
    **{
        name: (lambda values, name=name: np.abs(values * 3).astype(name))
        for name in ("int8", "uint8", "int16", "int32", "uint64", "int64")
    },
    **{
        name: (lambda values, name=name: values.astype(name))
        for name in ("float16", "float32", "float64")
    },
    "bool": lambda values: values > 0,
    "decimal": lambda values: [Decimal(f"{value:.3f}") for value in values],
    "strings": lambda values: [f"{value:.3f}" for value in values],
    "words": lambda values: ["ab"[int(value > 0)] for value in values],
    "dates": lambda values: np.datetime64("2026-01-01") + np.arange(len(values)),
    "durations": lambda values: [timedelta(seconds=float(value)) for value in values],
    "nested": lambda values: [[float(value)] for value in values],
    "nulls": lambda values: [None] * len(values),
    "nullable": lambda values: [None if k % 3 == 0 else float(v) for k, v in enumerate(values)],
    "mixed": lambda values: [float(v) if k % 2 else str(v) for k, v in enumerate(values)],
}

# What numbers a column may hold.
CONTENTS: Mapping[str, Callable[[Numbers], Numbers]] = {
    "as they are": lambda values: values,
    "ties": lambda values: np.round(values),
    "constant": lambda values: np.full_like(values, 1.5),
    "zero": np.zeros_like,
    "a NaN": lambda values: np.where(np.arange(len(values)) == 0, np.nan, values),
    "an infinity": lambda values: np.where(np.arange(len(values)) == 0, np.inf, values),
    "minus infinity": lambda values: np.full_like(values, -np.inf),
    "huge": lambda values: values * 1e300,
    "tiny": lambda values: values * 1e-300,
    "far": lambda values: values + 1e9,
}


def _arrays(table: dict[str, Any]) -> dict[str, Any]:
    """The keywords of `assess`: y, what is predicted, and arrays beside them."""
    beside = {EXTRAS[name]: column for name, column in table.items() if name in EXTRAS}
    predicted = {n: column for n, column in table.items() if n != "y" and n not in EXTRAS}
    kind = "".join(sorted(predicted))
    if kind == "lower_90upper_90":
        beside["coverage"] = 0.9
    if kind[:2] == "q0":
        beside["levels"] = [float(name[1:]) for name in predicted]
    if kind[:6] == "sample":
        predicted = {"samples": [list(row) for row in zip(*predicted.values(), strict=True)]}
    elif len(predicted) > 1 and kind != "meansd":
        return {"data": table["y"], "prediction": tuple(predicted.values()), **beside}
    return {"data": table["y"], "prediction": predicted, **beside}


EXTRAS: Mapping[str, str] = {
    **{"group": "groups", "x_1": "x", "time": "time", "weight": "weights", "cluster": "cluster"},
}
FRAMES: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "dict": lambda table: table,
    "lists": lambda table: {name: list(column) for name, column in table.items()},
    "pandas": lambda table: importlib.import_module("pandas").DataFrame(table),
    "polars": lambda table: importlib.import_module("polars").DataFrame(table, strict=False),
    "pyarrow": pa.table,
    "arrays": _arrays,
}


def case(seed: int) -> tuple[str, dict[str, Any], Any, dict[str, Any]]:
    """What a small table is, its columns, what makes a frame of it, and how it is assessed."""
    rng = child(seed, "fuzz")
    kind = list(KINDS)[seed % len(KINDS)]
    frame = str(rng.choice(list(FRAMES)))
    n = int(rng.choice([0, 1, 2, 3, 8, 30], p=[0.04, 0.08, 0.08, 0.1, 0.35, 0.35]))
    table = {"y": rng.normal(size=n), **KINDS[kind](rng, n)}
    if kind == "sets":
        table["y"] = [str(label) for label in rng.choice(list("abcd"), n)]
    for name in rng.choice(list(EXTRAS), rng.integers(0, 3), replace=False):
        counts = rng.integers(1, 4, n).astype(np.float64)
        table[str(name)] = rng.normal(size=n) if name in ("x_1", "time") else counts
    said = [f"{seed}: {n} rows of {kind}, {frame}"]
    for name in rng.choice(list(table), rng.integers(0, 3)):
        values = table[name]
        if isinstance(values, np.ndarray) and values.dtype == np.float64:
            content = str(rng.choice(list(CONTENTS)))
            table[name] = CONTENTS[content](values)
            said.append(f"{name} {content}")
    for name in rng.choice(list(table), rng.integers(0, 3)):
        values = table[name]
        plain = isinstance(values, np.ndarray) and values.dtype == np.float64
        if plain and (np.abs(values) < 1e4).all():
            dtype = str(rng.choice(list(DTYPES)))
            table[name] = DTYPES[dtype](values)
            said.append(f"{name} as {dtype}")
    chosen: dict[str, Any] = {"missing": "drop"} if rng.random() < 0.7 else {}
    if kind == "sets" or rng.random() < 0.1:
        chosen["coverage"] = 0.9
    if "group" in table and frame != "arrays":
        chosen["groups"] = ["group"]
    return ", ".join(said), table, FRAMES[frame], chosen


def tried(seed: int) -> str:
    """That a table was assessed, or why it was refused; whatever else comes of it is raised."""
    said, table, framed, chosen = case(seed)
    try:
        frame = framed(table)
    except (pa.ArrowException, ImportError, TypeError, ValueError, OverflowError):
        frame = table  # no library, or one that cannot hold such a column
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with bounded(), strict():
                given = frame if "data" in frame else {"data": frame}
                found = assess(Table(**{**given, **chosen}))
                assert "internal error" not in found.to_json() + found.to_markdown()
            return "assessed"
        except HowsureError as error:
            return f"refused: {error}"
        except BaseException as error:
            error.add_note(said)
            raise


LATER = (pytest.param(block, marks=pytest.mark.rate) for block in range(1, 10))


@pytest.mark.parametrize("block", [0, *LATER])
@pytest.mark.slow
def test_any_table_is_assessed_or_refused(block: int) -> None:
    """Every kind of prediction, type of column, frame, and content."""
    size = 50 * max(TIMES, 1)
    outcomes = [tried(seed) for seed in range(block * size, (block + 1) * size)]
    assert size / 4 < outcomes.count("assessed") < size
    assert not [words for words in outcomes if "please report it" in words]


@pytest.mark.parametrize("missing", [None, "drop"])
def test_nested_lists_of_several_shapes_are_refused(missing: Any) -> None:
    for ragged in ([[1.0, 2.0], [1.0, [2.0]]], [[1.0], [1.0, 2.0]]):
        for predicted in ({"samples": ragged}, ragged, (ragged, ragged)):
            with pytest.raises(InputError, match="must be one rectangular array"):
                assess(Table([1.0, 2.0], predicted, missing=missing))
    with pytest.raises(InputError, match=r"y must"):
        assess(Table([1.0, [2.0]], [1.0, 2.0], missing=missing))


TABLE = pacsv.read_csv(
    io.BytesIO(PLAIN), convert_options=pacsv.ConvertOptions(column_types={"y": pa.float64()})
)


def _binary(write: Callable[[Any], object]) -> bytes:
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


def _ipc(opened: Callable[..., Any]) -> bytes:
    def write(stream: io.BytesIO) -> None:
        with opened(stream, TABLE.schema) as writer:
            writer.write_table(TABLE)

    return _binary(write)


def _zstd(content: bytes) -> bytes:
    packed: bytes = pa.compress(content, codec="zstd", asbytes=True)
    return packed


TSV = PLAIN.replace(b'"so,uth"', b"south").replace(b",", b"\t")
FORMATS: Mapping[str, tuple[str, bytes]] = {
    "csv": (".csv", PLAIN),
    "csv of another system": (".CSV", PLAIN.replace(b"\n", b"\r\n")),
    "csv with semicolons": (".csv", TSV.replace(b"\t", b";")),
    "csv in UTF-16": (".csv", PLAIN.decode().encode("utf-16")),
    "csv with a mark": (".csv", b"\xef\xbb\xbf" + PLAIN),
    "csv.gz": (".csv.gz", gzip.compress(PLAIN, mtime=0)),
    "csv.zst": (".csv.zst", _zstd(PLAIN)),
    "tsv": (".tsv", TSV),
    "tsv.gz": (".tsv.gz", gzip.compress(TSV, mtime=0)),
    "tsv.zst": (".tsv.zst", _zstd(TSV)),
    "parquet": (".parquet", _binary(lambda stream: pq.write_table(TABLE, stream))),
    "parquet, gzip": (".parquet", _binary(lambda s: pq.write_table(TABLE, s, compression="gzip"))),
    "pq": (".pq", _binary(lambda s: pq.write_table(TABLE, s, compression="zstd"))),
    "arrow": (".arrow", _ipc(pa.ipc.new_file)),
    "arrow stream": (".arrow", _ipc(pa.ipc.new_stream)),
    "ipc": (".ipc", _ipc(pa.ipc.new_file)),
    "feather, lz4": (".feather", _binary(lambda s: feather.write_feather(TABLE, s, "lz4"))),
    "feather, zstd": (".feather", _binary(lambda s: feather.write_feather(TABLE, s, "zstd"))),
    "json": (".json", b'[{"y": 1, "pred": 2}]'),
}


def damaged(content: bytes, rng: np.random.Generator) -> Iterator[tuple[str, bytes]]:
    """What becomes of files."""
    half = len(content) // 2
    yield "whole", content
    yield "cut in half", content[:half]
    yield "without its end", content[:-5]
    yield "another sign", b"XXXX" + content[4:]
    yield "empty", b""
    yield "twice", content + content
    yield "NUL", content[:half] + b"\0\0" + content[half:]
    yield "no UTF-8", content[:half] + b"\xff\xfe" + content[half:]
    yield "a mark of byte order", b"\xef\xbb\xbf" + content
    yield "ragged", content[:half] + b"1,2\n,,,,,,,,,,,,,,,,,\n" + content[half:]
    yield "a quote", content[:half] + b'"' + content[half:]
    yield "of zeros", bytes(len(content))
    for number in range(5 * max(TIMES, 1)):
        changed = bytearray(content)
        for place in rng.integers(0, len(content), 3):
            changed[place] = rng.integers(0, 256)
        yield f"changed {number}", bytes(changed)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.slow
def test_any_file_is_assessed_or_refused(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the command line, whole and damaged in every way."""
    ending, content = FORMATS[form]
    monkeypatch.chdir(tmp_path)
    for number, (damage, held) in enumerate(damaged(content, child(0, form))):
        path = tmp_path / f"{number}{ending}"
        path.write_bytes(held)
        monkeypatch.setattr(sys, "argv", ["howsure", "check", path.name, "--max", "mae=9"])
        try:
            with bounded(), strict():
                status = main()
        except BaseException as error:
            error.add_note(f"{form}, {damage}")
            raise
        out, told = capsys.readouterr()
        said = f"{form}, {damage}: {out}{told}"
        assert status in (0, 1, 2), said
        assert not any(words in said for words in ("internal error", "fault in howsure")), said
        assert told.startswith("howsure: ") or status < 2, said
        if damage == "whole" and ending != ".json":
            assert status < 2, said
