"""CSV and TSV: every hostile file gives a right answer or a clear error."""

from __future__ import annotations

import csv
import gzip
import io
import subprocess
import sys
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.errors import InputError
from howsure.inputs import load, open_table
from howsure.inputs.text import LAST_CELL, TextFile, _ArrowSource
from howsure.predictions import EvalSet

SETTINGS = examples(80)
ROWS = "y,pred,region\n1,1.5,north\n2,2.5,south\n"


def read(folder: Path, content: bytes | str, name: str = "t.csv", **options: Any) -> EvalSet:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return load(path, **{"groups": "region", **options}).evalsets[0]


def check(made: EvalSet) -> None:
    """The rows of `ROWS`."""
    assert made.y.tolist() == [1.0, 2.0]
    assert made.point is not None
    assert made.point.tolist() == [1.5, 2.5]
    assert made.groups["region"].values().tolist() == ["north", "south"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plain.csv", ROWS),
        ("upper.CSV", ROWS),
        ("no_last_newline.csv", ROWS.rstrip()),
        ("windows.csv", ROWS.replace("\n", "\r\n")),
        ("old_mac.csv", ROWS.replace("\n", "\r")),
        ("blank_lines.csv", "\n\n" + ROWS.replace("\n", "\n\n")),
        ("bom.csv", b"\xef\xbb\xbf" + ROWS.encode()),
        ("utf16.csv", ROWS.encode("utf-16")),
        ("utf16_be.csv", b"\xfe\xff" + ROWS.encode("utf-16-be")),
        ("utf32.csv", ROWS.encode("utf-32")),
        ("tabs.tsv", ROWS.replace(",", "\t")),
        ("tabs.csv", ROWS.replace(",", "\t")),
        ("commas.tsv", ROWS),
        ("semicolons.csv", ROWS.replace(",", ";")),
        ("bars.csv", ROWS.replace(",", "|")),
        ("quoted.csv", '"y","pred","region"\n"1","1.5","north"\n"2","2.5","south"\n'),
        ("spaces.csv", "y,pred,region\n 1 , 1.5,north\n2 ,+2.5 ,south\n"),
        ("t.csv.gz", gzip.compress(ROWS.encode(), mtime=0)),
        (
            "two_members.csv.gz",
            gzip.compress(ROWS[:20].encode(), mtime=0) + gzip.compress(ROWS[20:].encode(), mtime=0),
        ),
        ("t.csv.zst", pa.compress(ROWS.encode(), codec="zstd", asbytes=True)),
        ("t.tsv.GZ", gzip.compress(ROWS.replace(",", "\t").encode(), mtime=0)),
        ("unnamed.csv", ",y,pred,region\n0,1,1.5,north\n1,2,2.5,south\n"),
        ("unnamed_end.csv", "y,pred,region,,\n1,1.5,north,,\n2,2.5,south,,\n"),
        ("exponents.csv", "y,pred,region\n1e0,15E-1,north\n.2e1,2.5000,south\n"),
    ],
)
def test_forms_of_one_table(tmp_path: Path, name: str, content: bytes | str) -> None:
    check(read(tmp_path, content, name))


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16-le", "utf-8-sig", "UTF8"])
def test_encodings_by_name(tmp_path: Path, encoding: str) -> None:
    made = read(tmp_path, "y,pred,région\n1,2,Zürich\n".encode(encoding), encoding=encoding,
                groups="région")  # fmt: skip
    assert made.groups["région"].labels.tolist() == ["Zürich"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "the file is empty"),
        (b"\xef\xbb\xbf", "no header row found"),
        ("\n\n\n", "no header row found"),
        ("y,pred,region\n", "the file has column names but no rows"),
        ("y,pred,region", "the file has column names but no rows"),
        ("y,pred,region\n\n\n", "the file has column names but no rows"),
        ("y,y,pred,region\n1,2,3,a\n", "column names must differ; these occur more than once: 'y'"),
        (
            "y,pred,region\n1,2,a\n3,b\n4,5,c,d\n\n6\n",
            r"every row must have 3 cells like the header; 3 rows do not \(first: line 3 "
            r"has 2\)",
        ),
        ("y,pred,region\n1,2\n", r"1 row does not \(first: line 2 has 2"),
        (
            "y,pred,region\n1,2,a\nx,2,b\n3,z,c\n?,5,d\n",
            r"column 'y' must contain numbers, got 2 cells that are not \(first: 'x' at line 3",
        ),
        (
            "y,pred,region\n1,true,a\n",
            r"column 'pred' .* a cell that is not one \(first: 'true'",
        ),
        ("y,pred,region\n1,1_000,a\n", "'1_000' at line 2"),
        ("y,pred,region\n1,0x1A,a\n", "'0x1A' at line 2"),
        ("y,pred,region\n1,#DIV/0!,a\n", "'#DIV/0!' at line 2"),
        ("y,pred,region\n1,٣,a\n", "'٣' at line 2"),
        (
            "y;pred;region\n1,5;2;a\n",
            r"'1,5' at line 2\); howsure\.Table\(…, decimal=','\) reads a decimal comma$",
        ),
        (
            'y,pred,region\n1,"[-1.28, 1.28]80",a\n',
            r"'\[-1.28, 1.28\]80' at line 2\); each cell contains both ends of an interval: write",
        ),
        ('y,pred,region\n1,"1,2,3",a\n', r"'1,2,3' at line 2\)$"),
        ("y,pred,region\n\n1,2,a\n\n\nx,2,b\n", "'x' at line 6"),
        ('y,pred,region\n1,2,"a\nb"\nx,2,b\n', "'x' at line 3"),
        ("y,pred,region\n1,2,a\n,2,b\n", r"1 in 'y' \(first at line 3\)\. howsure\.Table"),
        ("y,pred,region\n1,2,a\n1,inf,b\n", r"infinite \(first at line 3\); only lower"),
        ('y,pred,region\n1,2,"a\n3,4,b\n5,6,c\n', "quote is opened in line 2 .* never closed"),
        ('y,pred,region\n1,2,a\n3,4,"', "quote is opened in line 3 .* never closed"),
        ('y,region,pred\n1,"a,2\n3,b,4\n', "a quote is opened and never closed"),
        ('"y,pred,region\n1,2,a\n', "perhaps a quote is opened and never closed"),
        (b"y,pred,region\n1,2,a\n1,2,Z\xfcrich\n", "invalid byte 0xfc in line 3, byte 25 of the"),
        (
            b"y,pred,r\xe9gion\n1,2,a\n",
            "not valid utf-8: invalid byte 0xe9 in line 1",
        ),
        ("é,y,pred,region\n".encode() + b"a,1,2,\xe9", "invalid byte 0xe9 in line 2, byte 23 of"),
        (b"y,pred,region\n1,\x002,a\n", "must not contain NUL bytes, got one in line 2"),
        (ROWS.encode("utf-16-le"), "NUL bytes, got one in line 1; .* encoding='utf-16-le'"),
        (ROWS.encode("utf-16")[:-1], "not valid utf-16"),
        (b"PK\x03\x04rest", "content is zip; if it is a spreadsheet, name it .xlsx"),
        (b"PAR1rest", "the ending says .csv file, but the content is Parquet"),
        (
            gzip.compress(ROWS.encode(), mtime=0),
            "the ending says .csv file, but the content is gzip",
        ),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, content: bytes | str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        read(tmp_path, content)
    assert "t.csv" in str(caught.value)


def test_where_bytes_are_no_text_deep_in_a_file(tmp_path: Path) -> None:
    """Across blocks, and with characters of several bytes at their edges."""
    start = b"y,pred,region\n"
    row = "1,2,é\n".encode()
    count = (9 << 20) // len(row)
    content = start + row * count + b"1,2,\xe9\n"
    with pytest.raises(
        InputError, match=f"line {count + 2}, byte {len(start) + len(row) * count + 4} "
    ):
        read(tmp_path, content)
    assert read(tmp_path, start + row * count).n == count


@pytest.mark.parametrize(
    ("options", "content", "said"),
    [
        ({"encoding": "nope"}, ROWS, "encoding must be one that Python supports"),
        ({"encoding": "hex"}, ROWS, "encoding must be one that Python supports"),
        ({"encoding": 8}, ROWS, "encoding must be one that Python supports"),
        ({"encoding": "latin-1"}, ROWS.encode("utf-16"), "byte order mark is that of utf-16"),
        ({"encoding": "utf-16"}, ROWS, "not valid utf-16"),
        ({"encoding": "ascii"}, ROWS.replace("north", "é"), "invalid byte 0xc3 in line 2"),
        ({"decimal": "x"}, ROWS, "decimal must be '.' or ','"),
        ({"decimal": ","}, ROWS, "decimal mark must differ from the separator of cells"),
        ({"decimal": ","}, "y;pred;region\n1.500;2;a\n", "'1.500' at line 2"),
    ],
)
def test_options_are_checked(tmp_path: Path, options: Any, content: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read(tmp_path, content, **options)


def test_decimal_commas(tmp_path: Path) -> None:
    content = "y;pred;region\n1;1,5;north\n2;+2,5;south\n"
    check(read(tmp_path, content, decimal=","))


@pytest.mark.parametrize(
    "compress", [gzip.compress, lambda b: pa.compress(b, "zstd", asbytes=True)]
)
def test_a_compressed_file_that_is_cut_short(tmp_path: Path, compress: Any) -> None:
    rows = np.random.default_rng(0).random(3000)
    content = "y,pred,region\n" + "".join(f"{v},{v},a\n" for v in rows)
    whole = compress(content.encode())
    name = "t.csv.gz" if whole[:2] == b"\x1f\x8b" else "t.csv.zst"
    assert read(tmp_path, whole, name).n == 3000
    for length in (len(whole) - 1 - 8 * name.endswith("gz"), len(whole) // 2, 20):
        with pytest.raises(InputError, match="the compressed file is cut short"):
            read(tmp_path, whole[:length], name)
    with pytest.raises(InputError, match="content is something else"):
        read(tmp_path, content, name)
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path, whole + b"junk", name)


def test_a_stray_quote_deep_in_a_large_file(tmp_path: Path) -> None:
    """A cell longer than a block is refused, whatever it holds."""
    content = 'y,pred,region\n1,2,"a\n' + "1,2,b\n" * 2_000_000
    with pytest.raises(InputError, match=r"a quote is opened .*and never closed|a row is longer"):
        read(tmp_path, content)


@pytest.mark.slow
def test_rows_longer_than_a_block(tmp_path: Path) -> None:
    """Of 2 MB, in the header and below it; lines and rows of more than 16 MB are refused."""
    long = "x" * (2 << 20)
    made = read(tmp_path, f'y,pred,region,{long}\n1,2,"{long}",\n3,4,b,\n')
    assert made.groups["region"].labels.tolist() == ["b", long]
    for content, line in (
        (f'y,pred,region\n1,2,"{long * 24}"\n' + "1,2,a\n" * 99, 2),
        (f"y,pred,region\n1,2,a\n3,4,{long * 12}", 3),
        (f"y,pred,region{long * 12}\n1,2,a\n", 1),
        (long * 12, 1),
    ):
        with pytest.raises(InputError, match=f"at most 16 MB long, got a longer one, line {line};"):
            read(tmp_path, content)
    lines = "x" * 1000 + "\n"
    with pytest.raises(InputError, match="a row is longer than 16 MB"):
        read(tmp_path, f'y,pred,region\n1,2,"{lines * 40_000}"\n' + "1,2,a\n" * 99)


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_a_file_may_be_longer_than_a_line(tmp_path: Path, end: str) -> None:
    """Whatever ends its lines, and with lines of another ending in its cells."""
    row = f'1,2,"{"x" * 1000}"{end}'
    cell = "\r" if end == "\n" else "\n"
    made = read(tmp_path, f"y,pred,region{end}" + row * 20_000 + f'3,4,"a{cell}b"{end}' + row)
    assert made.n == 20_002


CASES = {
    "good": "y,pred,region\n" + "1,2,a\n" * 300_000,
    "ragged": "y,pred,region\n" + "1,2,a\n" * 300_000 + "1,2\n" + "1,2,a\n" * 300_000,
    "quote": "y,pred,region\n" + "1,2,a\n" * 300_000 + '1,2,"a\n' + "1,2,a\n" * 900_000,
    "word": "y,pred,region\n" + "x,2,a\n" + "1,2,a\n" * 600_000,
    "long": "x" * (48 << 20),
    "bytes": "y,pred,region\n" + "1,2,a\n" * 300_000 + "1,2,\xe9\n" + "1,2,a\n" * 900_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("packed", [False, True])
def test_no_thread_of_a_reader_outlives_it(
    tmp_path: Path, case: str, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that reads on, or gives a block back, may find the interpreter gone, and abort."""
    lent: list[weakref.ref[Any]] = []
    left: list[weakref.ref[Any]] = []
    parse, make = TextFile._parsed, _ArrowSource.__init__

    def noted(one: Any) -> Any:
        lent.append(weakref.ref(one))
        return one

    def made(self: _ArrowSource, read: Callable[[int], memoryview]) -> None:
        make(noted(self), lambda size: noted(read(size)))  # no frame that an error keeps holds it

    def parsed(*arguments: Any, **more: Any) -> Any:
        try:
            return parse(*arguments, **more)
        finally:
            left.extend(one for one in lent if one() is not None)

    monkeypatch.setattr(_ArrowSource, "__init__", made)
    monkeypatch.setattr(TextFile, "_parsed", parsed)
    content = CASES[case].encode("latin-1")
    name = "t.csv.gz" if packed else "t.csv"
    with nullcontext() if case == "good" else pytest.raises(InputError):
        read(tmp_path, gzip.compress(content, 1) if packed else content, name)
    assert len(lent) > 1
    assert not left


@pytest.mark.rate
def test_a_header_that_unpacks_to_far_more_takes_no_more_room(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(400):
            file.write(b"a" * 1_000_000)
    script = (
        "import resource, sys\nfrom howsure.core.errors import InputError\n"
        "from howsure.inputs import load\nload({'y': [1.0], 'pred': [1.0]})\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n    load(sys.argv[1])\nexcept InputError as error:\n    print(error)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    said, room = done.stdout.splitlines()
    assert "a line must be at most 16 MB long, got a longer one, line 1" in said
    assert int(room) < 160


def test_text_is_text(tmp_path: Path) -> None:
    """SMILES, formulas, HTML, quotes and newlines in cells and names are kept as they are."""
    texts = ["C#N", "#c", "=cmd()", "<script>alert(1)</script>", 'say "hi"', "two\nlines", "a,b"]
    texts += ["-1+2", "@x", "\\", "NA", " padded ", "\x1b[31m", "é\u202e", "'", "0x1", "1_0"]
    column = 'region "<b>",\n'
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerows([["y", "pred", column], *([i, i, text] for i, text in enumerate(texts))])
    loaded = load(written(tmp_path, out.getvalue()), groups=[column])
    assert loaded.evalsets[0].groups[column].values().tolist() == texts
    assert "'NA' is read as a label" in loaded.notes[0]


def written(folder: Path, content: str) -> Path:
    path = folder / "t.csv"
    path.write_bytes(content.encode())
    return path


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["2", "10", "-3"], [-3, 2, 10]),
        (["01", "1", "10"], ["01", "1", "10"]),
        (["2", "x"], ["2", "x"]),
        (["1.0", "2"], ["1.0", "2"]),
        (["True", "False"], ["False", "True"]),
        (["9" * 20, "1"], ["1", "9" * 20]),
        (["2026-01-01", "2025-01-01"], ["2025-01-01", "2026-01-01"]),
    ],
)
def test_labels_keep_their_writing(tmp_path: Path, cells: list[str], labels: list[Any]) -> None:
    content = "y,pred,region\n" + "".join(f"1,2,{cell}\n" for cell in cells)
    assert read(tmp_path, content).groups["region"].labels.tolist() == labels


def test_the_last_row_is_the_readers_own(tmp_path: Path) -> None:
    """A table whose last cells are the reader's mark keeps them."""
    made = read(tmp_path, f"y,pred,region\n1,2,a\n{LAST_CELL},{LAST_CELL},{LAST_CELL}\n")
    assert made.n == 2
    assert made.groups["region"].labels.tolist() == [LAST_CELL, "a"]


def test_only_needed_columns_matter(tmp_path: Path) -> None:
    made = read(tmp_path, "y,note,pred,region\n1,,1.5,north\n2,x,2.5,south\n")
    check(made)


def test_how_it_was_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(ROWS.replace(",", ";").encode("utf-16"))
    notes = load(path, groups="region").notes
    assert notes == (f"{path}: cells are separated by ';'", f"{path}: encoding utf-16")


cell = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=6)


@SETTINGS
@given(st.lists(st.tuples(st.floats(allow_nan=False, allow_infinity=False), cell), min_size=1,
                max_size=8), st.sampled_from([",", ";", "\t", "|"]))  # fmt: skip
def test_what_python_writes_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[float, str]], mark: str
) -> None:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=mark, lineterminator="\n")
    writer.writerows([["y", "pred", "region"], *([y, y, text] for y, text in rows)])
    path = tmp_path_factory.mktemp("t") / "t.csv"
    path.write_bytes(out.getvalue().encode())
    source = open_table(path)
    table = source.read({"y": "number", "region": "text"})
    assert table["y"].to_pylist() == [y for y, _ in rows]
    assert table["region"].to_pylist() == [text for _, text in rows]
