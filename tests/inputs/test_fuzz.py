"""Whatever comes in, only errors of our own come out."""

from __future__ import annotations

import contextlib
import gzip
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from howsure.core.errors import HowsureError
from howsure.inputs import load

SETTINGS = settings(derandomize=True, deadline=None, max_examples=250)
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
