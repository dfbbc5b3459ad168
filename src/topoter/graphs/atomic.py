"""Files and folders that are either whole or not there."""

from __future__ import annotations

import errno
import glob
import os
import platform
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from topoter.errors import DataError, UsageError

DISK_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write a file under a temporary name beside `path`, and rename it when the block ends well.

    Yields the temporary path (an empty file with the same extension). An exception leaves what stood at `path`
    before, and no temporary file. So does a kill, but for the temporary file, which the next writer of `path` removes.

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
        _going_on.discard(temporary)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise as `atomic_write` would if a file cannot be made there; what stands there stays."""
    temporary = _new_file(path)[1]
    temporary.unlink()
    _going_on.discard(temporary)


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
            if before.exists() and not target.exists():  # killed between the two renames
                os.replace(before, target)
            for left in (folder, before):
                shutil.rmtree(left, ignore_errors=True)
            try:
                folder.mkdir()
                yield folder
                if target.exists():
                    os.replace(target, before)
                try:
                    os.replace(folder, target)
                except BaseException:
                    with suppress(OSError):
                        os.replace(before, target)
                    raise
            finally:
                for left in (folder, before):
                    shutil.rmtree(left, ignore_errors=True)
                with suppress(OSError):
                    Path(lock.lock_file).unlink()
    except Timeout:
        raise UsageError(f"Another process is writing {path} right now.") from None
    except OSError as error:
        if error.errno in DISK_FULL:
            raise DataError(
                f"The disk of {target.parent} is full; nothing was left there. Free some space, or choose another -o."
            ) from error
        raise DataError(f"Cannot write {path}: {error.strerror or error}.") from error


def this_process() -> str:
    """A name of this process among those of all machines that may share a folder: machine-number."""
    return f"{zlib.crc32(platform.node().encode()):08x}-{os.getpid()}"


def is_gone(name: str) -> bool:
    """Whether a process that `this_process` named has certainly ended; of another machine's nobody can tell."""
    machine, _, number = name.partition("-")
    if os.name != "posix" or machine != this_process().partition("-")[0] or not number.isdigit():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OverflowError:
        return False
    except PermissionError:  # another user's
        return False
    return int(number) == os.getpid()  # what we write ourselves is in _going_on: this was written by a namesake


_going_on: set[Path] = set()  # temporary files of this process


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
    for left in target.parent.glob(f".{glob.escape(target.stem)}.*-*-*{glob.escape(target.suffix)}"):
        written_by = left.name.removeprefix(f".{target.stem}.").removesuffix(target.suffix)
        if left not in _going_on and is_gone(written_by.rpartition("-")[0]):
            left.unlink(missing_ok=True)
    temporary = target.with_name(f".{target.stem}.{this_process()}-{secrets.token_hex(4)}{target.suffix}")
    _going_on.add(temporary)
    try:
        # Not tempfile.mkstemp: its mode 0600 would outlive the rename, against the user's umask.
        temporary.open("xb").close()
    except OSError as error:
        raise UsageError(f"Cannot write {path}: {error.strerror or error}.") from error
    return target, temporary
