"""Tables of any origin (text, parquet, pandas) behind one face, and their columns as ids or numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from topoter.errors import DataError, UsageError, unknown_name
from topoter.graphs.ids import text_ids
from topoter.graphs.raw import keep_good
from topoter.graphs.text import open_text_table

if TYPE_CHECKING:
    import pyarrow as pa

_NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"


class Table(Protocol):
    """Columns by name, and the place of a row for messages."""

    path: Path
    header: bool
    ragged: int

    @property
    def names(self) -> list[str]: ...

    @property
    def notes(self) -> list[str]: ...

    def read(self, columns: Sequence[str], as_text: Iterable[str] = ()) -> pa.Table: ...

    def padded_integers(self) -> bool: ...

    def where(self, row: int) -> str: ...


@dataclass
class ArrowTable:
    """A table whose columns already have types: a parquet file or a pandas DataFrame."""

    path: Path
    table: pa.Table
    header: bool = True
    notes: list[str] = field(default_factory=list)
    ragged: int = 0

    @property
    def names(self) -> list[str]:
        # pandas writes an unnamed index as a column of this name: no data of the user's.
        return [name for name in self.table.column_names if not name.startswith("__index_level_")]

    def read(self, columns: Sequence[str], as_text: Iterable[str] = ()) -> pa.Table:
        """Some columns, those in `as_text` cast to strings."""
        import pyarrow as pa

        table = self.table.select(list(columns))
        for name in as_text:
            place = table.column_names.index(name)
            try:
                table = table.set_column(place, name, table[name].cast(pa.string()))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                raise DataError(
                    f"{self.path}: column {name!r} of type {table[name].type} cannot hold node ids."
                ) from None
        return table

    def padded_integers(self) -> bool:
        """Never: integers in a typed table are integers."""
        return False

    def where(self, row: int) -> str:
        """The place of a row, counted from 0 as in pandas."""
        return f"{self.path}, row {row}"


def _open_parquet(path: Path) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise DataError(f"{path}: no such file.")
    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path} is not a parquet file: {str(error).splitlines()[0]}") from error
    if not table.num_rows:
        raise DataError(f"{path} is empty: it holds no rows.")
    return ArrowTable(path, table)


TABLE_FORMATS: dict[str, Callable[[Path], Table]] = {".parquet": _open_parquet, ".pq": _open_parquet}


def open_table(
    path: Path,
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    asked_columns: Iterable[str | None],
    drop_bad: bool,
) -> Table:
    """Open a table by its extension; what is not parquet is taken for delimited text."""
    opener = TABLE_FORMATS.get(path.suffix.lower())
    table = opener(path) if opener else open_text_table(path, delimiter, header, asked_columns, drop_bad)
    for name in asked_columns:
        if name is not None and name not in table.names:
            error = unknown_name("column", name, table.names)
            hint = "" if table.header else " The file has no header: columns are numbered from 1."
            raise UsageError(f"{path}: {error}{hint}")
    return table


def read_ids(table: Table, arrow: pa.Table, names: Sequence[str]) -> list[pa.ChunkedArray]:
    """Id columns as integers or strings, exactly as written; `arrow` is the table as first read.

    A second pass reads them as text when the inferred type may have changed them (007, 1e5, dates, numbers
    beyond 64 bits).
    """
    import pyarrow as pa

    kept = (pa.types.is_signed_integer, pa.types.is_string)
    exact = all(any(check(arrow[name].type) for check in kept) for name in names)
    if not exact or table.padded_integers():
        arrow = table.read(names, as_text=names)
    return [
        arrow[name].cast(pa.int64()) if pa.types.is_integer(arrow[name].type) else text_ids(arrow[name])
        for name in names
    ]


def missing_ids(column: pa.ChunkedArray) -> np.ndarray:
    """True where an id is null or blank."""
    import pyarrow as pa
    import pyarrow.compute as pc

    missing = pc.is_null(column)
    if pa.types.is_string(column.type):
        missing = pc.or_(missing, pc.fill_null(pc.equal(column, ""), True))
    return missing.to_numpy()


def unique_ids(
    table: Table, arrow: pa.Table, name: str, drop_bad: bool, notes: list[str]
) -> tuple[pa.ChunkedArray, np.ndarray]:
    """The ids of a table with one row per node, and which rows have one that did not stand there before."""
    ids = read_ids(table, arrow, [name])[0]
    keep = keep_good(
        missing_ids(ids),
        lambda row: f"{table.where(row)}: no node id in column {name!r}.",
        drop_bad,
        notes,
        f"rows of {table.path} without an id",
    )
    codes = ids.combine_chunks().dictionary_encode(null_encoding="encode").indices.to_numpy()
    repeated = np.ones(len(codes), dtype=bool)
    repeated[np.unique(codes, return_index=True)[1]] = False
    keep &= keep_good(
        repeated & keep,
        lambda row: f"{table.where(row)}: node id {ids[row].as_py()!r} stands here a second time.",
        drop_bad,
        notes,
        f"rows of {table.path} with an id seen before",
    )
    return ids, keep


def is_numeric(kind: pa.DataType) -> bool:
    """Whether an Arrow type is a number or a boolean."""
    import pyarrow as pa

    checks = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(check(kind) for check in checks)


def mostly_numbers(column: pa.ChunkedArray) -> bool:
    """Whether a column means numbers, though a few bad values may have turned it into text."""
    return is_numeric(column.type) or bool(np.isfinite(to_float(column)).mean() >= 0.5)


def to_float(column: pa.ChunkedArray) -> np.ndarray:
    """A column as float64, with NaN for what is null or no number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif not is_numeric(column.type):
        column = pc.utf8_trim_whitespace(column.cast(pa.string()))
        column = pc.if_else(pc.match_substring_regex(column, _NUMBER), column, None)
        column = pc.replace_substring_regex(column, pattern=r"^\+", replacement="")
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
