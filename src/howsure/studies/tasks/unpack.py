"""Opening what others have packed: never beyond a size, never outside a folder, never run."""

from __future__ import annotations

import gzip
import math
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from tokenize import TokenError
from typing import Any, Final
from zipfile import BadZipFile, ZipFile

import numpy as np
import numpy.typing as npt

from howsure.core.errors import InputError

BROKEN: Final = (
    *(OSError, EOFError, ValueError, TypeError, LookupError, AttributeError, SyntaxError),
    *(RuntimeError, ArithmeticError, MemoryError, TokenError, BadZipFile, zlib.error),
)
"""What readers of other libraries raise on a file that is broken."""

_BLOCK: Final = 1 << 20


class UnreadableError(InputError):
    """A file does not hold what its name promises."""


def bounded(size: int, most: int, what: object) -> None:
    """Raise `UnreadableError` where something says that it will take more room than it may."""
    if not 0 <= size <= most:
        raise UnreadableError(f"{what} must take at most {most:,} bytes, got {size:,}")


def gunzipped(path: Path, most: int) -> bytes:
    """What a gzip file holds, if that is at most so many bytes."""
    held = bytearray()
    try:
        with gzip.open(path, "rb") as file:
            while len(held) <= most and (block := file.read(_BLOCK)):
                held += block
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableError(f"{path} cannot be read: {error}") from error
    if len(held) > most:
        raise UnreadableError(f"{path} must unpack to at most {most:,} bytes, got more")
    return bytes(held)


def arrays(path: Path, most: int) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a .npz file, if they take at most so many bytes; nothing is unpickled."""
    try:
        with ZipFile(path) as packed:
            bounded(sum(one.file_size for one in packed.infolist()), most, path)
            for one in packed.infolist():
                with packed.open(one) as file:
                    _check_declared(file, most, path)
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as held:
            return {name: np.asarray(held[name]) for name in held.files}
    except UnreadableError:
        raise
    except (*BROKEN, NotImplementedError) as error:
        raise UnreadableError(f"{path} cannot be read: {error}") from error


def untar(archive: Path, folder: str, place: Path) -> None:
    """Unpack one folder of a TAR archive as `place`, whole or not at all.

    Raises
    ------
    UnreadableError
        If it is no such archive, lacks the folder, or holds a link, a device, a file with holes,
        or a path that leads out of it.
    """
    temporary = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=place.parent))
    try:
        with tarfile.open(archive, "r:") as packed:
            members = list(_inside(packed, folder, archive))
            if not members:
                raise UnreadableError(f"{archive} must hold the folder {folder!r}, got none")
            if not all(_there(member, place) for member in members):
                packed.extractall(temporary, members, filter="data")
                _move(temporary / folder, place)
    except (*BROKEN, tarfile.TarError) as error:
        if isinstance(error, UnreadableError):
            raise
        raise UnreadableError(f"{archive} cannot be unpacked: {error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _check_declared(file: Any, most: int, path: Path) -> None:
    """Hold an array's header to the size: NumPy makes room for it before it reads."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0
    shape, _, kind = (read if version == (1, 0) else np.lib.format.read_array_header_2_0)(file)
    if kind.hasobject:
        raise UnreadableError(f"{path} must hold plain numbers, got pickled objects")
    bounded(math.prod(shape) * kind.itemsize, most, path)


def _inside(packed: tarfile.TarFile, folder: str, archive: Path) -> Iterable[tarfile.TarInfo]:
    """Members of the folder; what lies beside it is left."""
    for member in packed:
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or "\\" in member.name:
            raise UnreadableError(
                f"{archive}: paths must stay inside the archive, got {member.name!r}"
            )
        if not (member.isfile() or member.isdir()) or member.issparse():
            raise UnreadableError(
                f"{archive} must hold plain files and folders alone, got {member.name!r}, "
                "a link, a device or a file with holes"
            )
        if path.parts[:1] == (folder,):
            yield member


def _there(member: tarfile.TarInfo, place: Path) -> bool:
    path = place.joinpath(*PurePosixPath(member.name).parts[1:])
    if member.isdir():
        return path.is_dir()
    return path.is_file() and path.stat().st_size == member.size


def _move(source: Path, place: Path) -> None:
    """Put a folder in its place; in one that is there, its files replace those of their names."""
    if not place.exists():
        source.rename(place)
        return
    for path in sorted(source.rglob("*")):
        target = place / path.relative_to(source)
        if path.is_dir():
            target.mkdir(exist_ok=True)
        else:
            path.replace(target)
