"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path

from howsure.core.errors import HowsureError, InputError


def cache_folder() -> Path:
    """The user's cache of howsure: ``XDG_CACHE_HOME`` or ``~/.cache``, and ``howsure`` in it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "howsure"


def remembered(name: str, make: Callable[[], str]) -> str:
    """A text that is dear to make, by its name in the user's cache; if not whole there, made."""
    path: Path | None = None
    with suppress(OSError, RuntimeError, UnicodeError):  # such as a user without a home
        path = cache_folder() / "made" / name
        check, _, text = path.read_bytes().decode().partition("\n")
        if check == _digest(text):
            return text
    text = make()
    with suppress(OSError, HowsureError):  # where nothing can be written it is made each time
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic_write(path, f"{_digest(text)}\n{text}")
    return text


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Lend a new file beside the wanted one, and put it in its place when the block ends well."""
    try:
        with _beside(path) as (target, temporary):
            if target.exists():
                temporary.chmod(target.stat().st_mode & 0o7777)
            yield temporary
            _flush(temporary)
            temporary.replace(target)
    except OSError as error:
        raise _refused(path, error) from error


def check_outputs(outputs: Sequence[Path], inputs: Sequence[Path] = ()) -> None:
    """Refuse outputs that cannot be written, or that would replace what is read, before work."""
    for number, path in enumerate(outputs):
        for read in inputs:
            if _same(path, read):
                raise InputError(
                    f"the output must be another file than the inputs, got {str(path)!r}, which "
                    f"is the input {str(read)!r}"
                )
        for other in outputs[:number]:
            if _same(path, other):
                raise InputError(
                    f"outputs must be different files, got {str(other)!r} and {str(path)!r}"
                )
        try:
            with _beside(path):
                pass
        except OSError as error:
            raise _refused(path, error) from error


@contextmanager
def new_folders(paths: Iterable[Path]) -> Iterator[None]:
    """Make the folders that are not there; if the block fails, take back those that stay empty."""
    made: list[Path] = []
    try:
        for path in paths:
            missing = [each for each in (path, *path.parents) if not each.exists()]
            for each in reversed(missing):
                each.mkdir()
                made.append(each)
    except OSError as error:
        raise _refused(path, error) from error
    try:
        yield
    except BaseException:
        for each in reversed(made):
            with suppress(OSError):
                each.rmdir()
        raise


def atomic_write(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Write a whole file, or leave everything as it was."""
    try:
        content = data.encode() if isinstance(data, str) else data
    except UnicodeError as error:
        raise _refused(path, error) from error
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def create_whole(path: Path, data: bytes) -> bool:
    """Write a whole file where there is none; whether there was none."""
    with _beside(path) as (target, temporary):
        temporary.write_bytes(data)
        _flush(temporary)
        try:
            os.link(temporary, target)
        except FileExistsError:
            return False
        except OSError:  # disks without links
            with suppress(FileExistsError), target.open("xb") as file:
                file.write(data)
                return True
            return False
    return True


@contextmanager
def _beside(path: str | os.PathLike[str]) -> Iterator[tuple[Path, Path]]:
    """The regular file, there or not, that a path leads to, and a new one beside it for a while."""
    try:
        target = Path(os.path.realpath(path))
    except ValueError as error:
        raise _refused(path, error) from error
    if target.is_dir():
        raise InputError(f"the output must be a file, got the folder {str(path)!r}")
    if target.exists() and not target.is_file():
        raise InputError(f"the output must be a regular file, got {str(path)!r}")
    if not target.parent.is_dir():
        raise InputError(f"the folder of the output must exist, got {str(path)!r}")
    temporary = target.with_name(f".{secrets.token_hex(8)}{target.suffix}")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield target, temporary
    finally:
        temporary.unlink(missing_ok=True)


def _same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, or would once it is there."""
    try:
        if os.path.normcase(os.path.realpath(one)) == os.path.normcase(os.path.realpath(other)):
            return True
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return False


def _flush(path: Path) -> None:
    """Wait until the content is on the disk, so that a crash cannot leave an empty file."""
    with path.open("rb") as handle:
        os.fsync(handle.fileno())


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _refused(path: str | os.PathLike[str], error: Exception) -> InputError:
    number = error.errno if isinstance(error, OSError) else None
    reason = str(error) if number is None else os.strerror(number)
    return InputError(f"{str(path)!r} cannot be written: {reason}")
