"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from howsure.core.errors import InputError


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Lend a new file beside the wanted one, and put it in its place when the block ends well.

    If the block fails, the new file goes and what was there before stays as it was. A link is
    followed; the rights of a file that is replaced are kept.

    Parameters
    ----------
    path : path
        The file that the caller wants.

    Yields
    ------
    Path
        An empty file in the same folder with the same ending, for the caller to write.

    Raises
    ------
    InputError
        If the folder does not exist, the path is not that of a regular file, or the system
        refuses.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "report.html"
    >>> with replacing(target) as temporary:
    ...     _ = temporary.write_text("<p>done</p>")
    >>> target.read_text()
    '<p>done</p>'
    """
    try:
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise InputError(f"the output must be a file, got the folder {str(path)!r}")
        if target.exists() and not target.is_file():
            raise InputError(f"the output must be a regular file, got {str(path)!r}")
        if not target.parent.is_dir():
            raise InputError(f"the folder of the output must exist, got {str(path)!r}")
        temporary = target.with_name(f".{secrets.token_hex(8)}{target.suffix}")
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except (OSError, ValueError) as error:
        raise _refused(path, error) from error
    try:
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o7777)
        yield temporary
        _flush(temporary)
        temporary.replace(target)
    except OSError as error:
        raise _refused(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def atomic_write(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Write a whole file, or leave everything as it was.

    Parameters
    ----------
    path : path
        The file.
    data : bytes or str
        All that it shall hold; text is written as UTF-8.

    Raises
    ------
    InputError
        As `replacing`, or if text is not Unicode.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "records.json"
    >>> atomic_write(target, "[]")
    >>> target.read_text()
    '[]'
    """
    try:
        content = data.encode() if isinstance(data, str) else data
    except UnicodeError as error:
        raise _refused(path, error) from error
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def _flush(path: Path) -> None:
    """Wait until the content is on the disk, so that a crash cannot leave an empty file."""
    with path.open("rb") as handle:
        os.fsync(handle.fileno())


def _refused(path: str | os.PathLike[str], error: Exception) -> InputError:
    if isinstance(error, InputError):
        return error
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return InputError(f"{str(path)!r} cannot be written: {reason}")
