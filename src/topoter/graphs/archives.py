"""Archives from anywhere: how much they unpack to, and what they name, is looked at before anything is unpacked."""

from __future__ import annotations

import zipfile
from pathlib import Path, PurePosixPath
from typing import IO

from topoter.errors import DataError
from topoter.memory import free_memory, show_memory

_PIECE = 1 << 24
_LINK = 0o120000  # a symbolic link, in the upper half of a member's attributes


def check_zip(path: Path) -> None:
    """Raise if a zip unpacks to more than fits into memory, or holds links or paths that leave its folder."""
    if not zipfile.is_zipfile(path):
        return  # whoever reads it says what is wrong
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    for member in members:
        parts = PurePosixPath(member.filename.replace("\\", "/"))
        if parts.is_absolute() or ".." in parts.parts or ":" in parts.parts[0]:
            raise DataError(f"{path} is refused: its member {member.filename!r} would leave the folder.")
        if member.external_attr >> 16 & 0o170000 == _LINK:
            raise DataError(f"{path} is refused: its member {member.filename!r} is a symbolic link.")
    _check_size(path, sum(member.file_size for member in members))


def read_unpacked(file: IO[bytes], path: Path) -> bytes:
    """All of a file that may unpack while it is read, or a DataError as soon as that is more than fits."""
    pieces, size = [], 0
    while piece := file.read(_PIECE):
        pieces.append(piece)
        size += len(piece)
        _check_size(path, size)
    return b"".join(pieces)


def _check_size(path: Path, size: int) -> None:
    free = free_memory()
    if size > free:
        raise DataError(
            f"{path} is refused: it unpacks to {show_memory(size)} or more, and {show_memory(free)} of memory are free."
        )
