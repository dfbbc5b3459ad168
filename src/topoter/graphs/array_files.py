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

    def __init__(self, path: Path, dtype: Any, columns: int | None = None) -> None:
        self.dtype, self.columns, self.rows = np.dtype(dtype), columns, 0
        self._file = path.open("wb")
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


def _header(dtype: np.dtype[Any], rows: int, columns: int | None) -> bytes:
    """The header of version 1.0 of the format, filled up with blanks."""
    shape = (rows,) if columns is None else (rows, columns)
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': {shape}, }}"
    start = b"\x93NUMPY\x01\x00" + (_HEADER - 10).to_bytes(2, "little")
    return start + text.encode().ljust(_HEADER - 11) + b"\n"
