"""Tables of any origin behind one face: ids as they were written, numbers, bad rows named or dropped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from topoter.errors import DataError
from topoter.graphs.arrow import pa, pc, pq
from topoter.graphs.ids import text_ids
from topoter.graphs.problems import explained, keep_good

_DECIMAL_COMMA = r"^[+-]?[0-9]{1,3}(\.?[0-9]{3})*,[0-9]+$|^[+-]?[0-9]+,[0-9]+$"
NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"


@dataclass(kw_only=True)
class Table(ABC):
    """Columns by name, the place of a row for messages, and notes on what was found and dropped."""

    path: Path
    drop_bad: bool = False
    header: bool = True  # whether columns have names; else they are numbered
    ragged: int = 0  # rows with the wrong number of columns, dropped by the last read()
    notes: list[str] = field(default_factory=list)

    @property
    @abstractmethod
    def names(self) -> list[str]: ...

    @abstractmethod
    def read(self, columns: Sequence[str], as_text: Iterable[str] = ()) -> pa.Table:
        """Some columns, those in `as_text` as strings."""

    @abstractmethod
    def where(self, row: int) -> str:
        """The place of a row in words."""

    def padded_integers(self) -> bool:
        """Whether some field may look like 007 or 0x7, which type inference would turn into 7."""
        return False

    def keep_good(self, bad: np.ndarray, complaint: Callable[[int], str], dropped: str) -> np.ndarray:
        """The rows that stay; without `drop_bad`, the first bad one is an error that says where it stands."""
        return keep_good(bad, lambda row: f"{self.where(row)}: {complaint(row)}.", self.drop_bad, self.notes, dropped)

    def ids(self, arrow: pa.Table, names: Sequence[str]) -> list[pa.ChunkedArray]:
        """Id columns as integers or strings, exactly as written; `arrow` is the table as first read.

        A second pass reads them as text when the inferred type may have changed them (007, 1e5, dates, numbers
        beyond 64 bits). It counts for those columns alone that it did change.
        """
        columns = [arrow[name] for name in names]
        exact = all(pa.types.is_signed_integer(ids.type) or pa.types.is_string(ids.type) for ids in columns)
        if not exact or self.padded_integers():
            text = self.read(names, as_text=names)
            columns = [ids if _as_written(ids, text[name]) else text[name] for ids, name in zip(columns, names)]
        return [ids.cast(pa.int64()) if pa.types.is_integer(ids.type) else text_ids(ids) for ids in columns]

    def rows_with_id(
        self, ids: pa.ChunkedArray, name: str, dropped: str, hint: Callable[[], str] = lambda: ""
    ) -> np.ndarray:
        """The rows whose id in the column `name` is neither null nor blank; `hint` is added to the complaint."""
        missing = pc.is_null(ids)
        if pa.types.is_string(ids.type):
            missing = pc.or_(missing, pc.fill_null(pc.equal(ids, ""), True))
        return self.keep_good(missing.to_numpy(), lambda _: f"no node id in column {name!r}{hint()}", dropped)


def _as_written(ids: pa.ChunkedArray, text: pa.ChunkedArray) -> bool:
    """Whether integers are what the text says, but for those that are missing."""
    if not pa.types.is_signed_integer(ids.type):
        return False
    same = pc.equal(ids.cast(pa.string()), pc.utf8_trim_whitespace(text))
    return bool(pc.all(pc.fill_null(same, True)).as_py())


@dataclass(kw_only=True)
class ArrowTable(Table):
    """A table whose columns already have types: a parquet file or a pandas DataFrame."""

    table: pa.Table

    @property
    def names(self) -> list[str]:
        # pandas writes an unnamed index as a column of this name: no data of the user's.
        return [name for name in self.table.column_names if not name.startswith("__index_level_")]

    def read(self, columns: Sequence[str], as_text: Iterable[str] = ()) -> pa.Table:
        table = self.table.select(list(columns))
        for name in as_text:
            column = table[name]
            try:
                table = table.set_column(table.column_names.index(name), name, column.cast(pa.string()))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                raise DataError(f"{self.path}: column {name!r} of type {column.type} cannot hold node ids.") from None
        return table

    def where(self, row: int) -> str:
        return f"{self.path}, row {row}"  # counted from 0, as in pandas


def open_parquet(path: Path, drop_bad: bool) -> ArrowTable:
    with explained(f"{path} is not a parquet file"):
        table = pq.read_table(path)
    if not table.num_rows:
        raise DataError(f"{path} is empty: it holds no rows.")
    return ArrowTable(path=path, drop_bad=drop_bad, table=table)


def is_numeric(kind: pa.DataType) -> bool:
    """Whether an Arrow type is a number or a boolean."""
    checks = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(check(kind) for check in checks)


def mostly_numbers(column: pa.ChunkedArray) -> bool:
    """Whether a column means numbers, though a few bad values may have turned it into text."""
    return is_numeric(column.type) or bool(np.isfinite(to_float(column)).mean() >= 0.5)


def to_float(column: pa.ChunkedArray) -> np.ndarray:
    """A column as float64, with NaN for what is null or no number."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif not is_numeric(column.type):
        column = _points_for_commas(pc.utf8_trim_whitespace(column.cast(pa.string())))
        column = pc.if_else(pc.match_substring_regex(column, NUMBER), column, None)
        column = pc.replace_substring_regex(column, pattern=r"^\+", replacement="")
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _points_for_commas(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Decimal commas as points, where every number of a column can be read so: 3,5 but also 1.234,5."""
    with_comma = pc.match_substring_regex(column, _DECIMAL_COMMA)
    count = pc.sum(with_comma).as_py() or 0
    plain = pc.match_substring_regex(column, r"^[+-]?[0-9]+$")
    if not count or count < pc.sum(pc.and_(pc.match_substring_regex(column, NUMBER), pc.invert(plain))).as_py():
        return column
    pointed = pc.replace_substring(pc.replace_substring(column, ".", ""), ",", ".")
    return pc.if_else(with_comma, pointed, column)
