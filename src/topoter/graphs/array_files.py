"""NumPy files written piece by piece: an array that never is in memory as a whole."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

_HEADER = 128  # bytes: room for any shape, so that the header can be written last


class ArrayWriter:
    """Appends rows to a `.npy` file, whose header tells their number once all are there.

    with ArrayWriter(path, np.float32, columns=64) as writer:
        writer.append(rows)
    """

    def __init__(self, path: Path, dtype: Any, columns: int | None = None, rows: int = 0) -> None:
        """`rows`: how many of those that stand there already are kept, to go on after them."""
        self.dtype, self.columns, self.rows = np.dtype(dtype), columns, rows
        self._file = path.open("r+b" if rows else "wb")
        if rows:
            self._file.truncate(_HEADER + rows * (columns or 1) * self.dtype.itemsize)
            self._file.seek(0, 2)
        else:
            self._file.write(b"\0" * _HEADER)

    def append(self, rows: np.ndarray) -> None:
        self._file.write(np.ascontiguousarray(rows, dtype=self.dtype).data)
        self.rows += len(rows)

    def __enter__(self) -> ArrayWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            if error is None:
                self._file.seek(0)
                self._file.write(_header(self.dtype, self.rows, self.columns))


def write_array(path: Path, rows: np.ndarray) -> None:
    """As `np.save`, which calls it a success if the disk has no room for the last bytes: NumPy leaves them to C."""
    with ArrayWriter(path, rows.dtype, rows.shape[1]) as writer:
        writer.append(rows)


def rows_written(path: Path, dtype: Any, columns: int) -> int:
    """How many whole rows a file holds that an `ArrayWriter` did not finish."""
    size = path.stat().st_size if path.exists() else 0
    return max(0, size - _HEADER) // (columns * np.dtype(dtype).itemsize)


def read_rows(path: Path, start: int, stop: int) -> np.ndarray:
    """Rows of a two-dimensional `.npy` file, read and not mapped: nothing of the file stays in memory."""
    shape, dtype = _shape(path)
    place = path.stat().st_size - shape[0] * shape[1] * dtype.itemsize
    wanted, width = stop - start, shape[1] * dtype.itemsize
    return np.fromfile(path, dtype, wanted * shape[1], offset=place + start * width).reshape(wanted, shape[1])


def _shape(path: Path) -> tuple[tuple[int, ...], np.dtype[Any]]:
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    return array.shape, array.dtype


def _header(dtype: np.dtype[Any], rows: int, columns: int | None) -> bytes:
    """The header of version 1.0 of the format, filled up with blanks."""
    shape = (rows,) if columns is None else (rows, columns)
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': {shape}, }}"
    start = b"\x93NUMPY\x01\x00" + (_HEADER - 10).to_bytes(2, "little")
    return start + text.encode().ljust(_HEADER - 11) + b"\n"
