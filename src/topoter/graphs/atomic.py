"""Files that are either whole or not there."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
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
