"""What is wrong with a file or with one row of it, said in one line."""

from __future__ import annotations

import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from topoter.errors import BadRowError, DataError, TopoterError
from topoter.memory import is_shortage

# What libraries raise over a file that is damaged or holds something else; NumPy takes its headers apart with Python's
# own tokenizer, and a declared size may be more than there is memory.
READING_ERRORS = (
    *(ValueError, TypeError, LookupError, OSError, EOFError, SyntaxError, OverflowError, MemoryError),
    *(zipfile.BadZipFile, zlib.error, tokenize.TokenError, struct.error, NotImplementedError),
)
_LONGEST = 300


def existing(path: Path) -> Path:
    if not path.is_file():
        raise DataError(f"{path} is a folder, not a file." if path.is_dir() else f"{path}: no such file.")
    return path


def first_line(error: Exception) -> str:
    line = (str(error) or type(error).__name__).splitlines()[0]
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..."  # it may quote the file


@contextmanager
def explained(problem: str, errors: tuple[type[Exception], ...] = READING_ERRORS) -> Iterator[None]:
    """Turn what a library raises into a DataError: the problem, and the first line of the library's reason."""
    try:
        yield
    except TopoterError:
        raise
    except errors as error:
        larger = ", or there is not enough memory for what it declares" if is_shortage(error) else ""
        raise DataError(f"{problem}{larger}: {first_line(error)}") from error


def keep_good(
    bad: np.ndarray, message: Callable[[int], str], drop_bad: bool, notes: list[str], dropped: str
) -> np.ndarray:
    """Raise for the first bad row, or, with `drop_bad`, note how many go and return the rows that stay.

    `message` describes the row whose number it gets; `dropped` reads like "edges with a missing id".
    """
    if bad.any():
        if not drop_bad:
            raise BadRowError(message(int(bad.argmax())))
        notes.append(f"Dropped {int(bad.sum()):,} {dropped}.")
    return ~bad


def bad_weights(weight: np.ndarray) -> np.ndarray:
    return ~(np.isfinite(weight) & (weight >= 0))


def bad_weight(value: object) -> str:
    return "the edge has no weight" if value is None else f"edge weight {value!r} is not a finite number >= 0"
