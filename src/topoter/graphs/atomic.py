"""Files and folders that are either whole or not there."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from topoter.errors import DataError, UsageError


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write a file under a temporary name beside `path`, and rename it when the block ends well.

    Yields the temporary path (an empty file with the same extension). An exception leaves what stood at `path`
    before, and no temporary file; so does a kill, but for the temporary file, whose name begins with a dot.

        with atomic_write("z.npy") as temporary:
            np.save(temporary, z)
    """
    target, temporary = _new_file(path)
    try:
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        raise DataError(f"Cannot write {path}: {error.strerror or error}.") from error
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise as `atomic_write` would if a file cannot be made there; what stands there stays."""
    _new_file(path)[1].unlink()


@contextmanager
def atomic_folder(path: str | os.PathLike[str], replaces: Callable[[Path], bool]) -> Iterator[Path]:
    """Fill a folder beside `path` that takes its name once the block ends well, and else is removed.

    `replaces` tells whether what stands there now may be replaced; an empty folder always may. One process at a time;
    what one that was killed left behind is removed by the next.
    """
    from filelock import FileLock, Timeout

    target = Path(path).resolve()
    if target.exists() and not (replaces(target) or (target.is_dir() and not any(target.iterdir()))):
        raise UsageError(f"Cannot write {path}: there is something else that would be lost.")
    if not target.parent.is_dir():
        raise UsageError(f"Cannot write {path}: the folder {target.parent} does not exist.")
    folder, before = (target.with_name(f".{target.name}.{kind}") for kind in ("importing", "before"))
    try:
        lock = FileLock(target.with_name(f".{target.name}.lock"))
        with lock.acquire(timeout=0):
            for left in (folder, before):
                shutil.rmtree(left, ignore_errors=True)
            try:
                folder.mkdir()
                yield folder
                if target.exists():
                    os.replace(target, before)
                os.replace(folder, target)
            finally:
                for left in (folder, before):
                    shutil.rmtree(left, ignore_errors=True)
                with suppress(OSError):
                    Path(lock.lock_file).unlink()
    except Timeout:
        raise UsageError(f"Another process is writing {path} right now.") from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            raise DataError(
                f"The disk of {target.parent} is full; nothing was left there. Free some space, or choose another -o."
            ) from error
        raise DataError(f"Cannot write {path}: {error.strerror or error}.") from error


def _new_file(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Where the file belongs, and an empty one of a temporary name beside it."""
    # A link is followed, so that its target is replaced and not the link itself.
    target = Path(path).resolve()
    if target.is_dir():
        raise UsageError(f"Cannot write {path}: it is a folder.")
    if target.exists() and not target.is_file():  # a rename would put a file in the place of a device or a pipe
        raise UsageError(f"Cannot write {path}: it is not a regular file.")
    if not target.parent.is_dir():
        raise UsageError(f"Cannot write {path}: the folder {target.parent} does not exist.")
    temporary = target.with_name(f".{target.stem}.{secrets.token_hex(4)}{target.suffix}")
    try:
        # Not tempfile.mkstemp: its mode 0600 would outlive the rename, against the user's umask.
        temporary.open("xb").close()
    except OSError as error:
        raise UsageError(f"Cannot write {path}: {error.strerror or error}.") from error
    return target, temporary
