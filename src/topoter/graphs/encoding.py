"""Columns of a features table as numbers: numbers and booleans as they are, categories one-hot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from topoter.errors import DataError
from topoter.graphs.raw import keep_good
from topoter.graphs.tables import Table, is_numeric, mostly_numbers, to_float

if TYPE_CHECKING:
    import pyarrow as pa

MAX_CATEGORIES = 100
UNEVEN = 10.0  # columns that differ more in size than this are remarked on
_FEW = 10  # so many distinct values are categories even in a table of few rows


def encode_columns(
    table: Table, arrow: pa.Table, columns: Sequence[str], drop_bad: bool, notes: list[str]
) -> tuple[np.ndarray, list[str], np.ndarray]:
    """Features [N, C] as float32, their names, and which rows are good [N]."""
    blocks, names = [], []
    keep = np.ones(arrow.num_rows, dtype=bool)
    for name in columns:
        column = arrow[name]
        block, block_names = _encode(table, name, column, notes)
        bad = ~np.isfinite(block).all(axis=1)
        keep &= keep_good(
            bad,
            lambda row, name=name, column=column: _complaint(table, name, column, row),  # type: ignore[misc]
            drop_bad,
            notes,
            f"nodes with a bad value in column {name!r} of {table.path}",
        )
        blocks.append(block)
        names.extend(block_names)
    notes += _uneven_scales(table, columns, [block[keep] for block in blocks])
    return np.concatenate(blocks, axis=1), names, keep


def _uneven_scales(table: Table, columns: Sequence[str], blocks: Sequence[np.ndarray]) -> list[str]:
    """A note where a column is so large that another hardly counts beside it: rows are scaled as a whole."""
    sizes = {
        name: float(np.sqrt(np.square(block, dtype=np.float64).sum(1).mean())) for name, block in zip(columns, blocks)
    }
    sizes = {name: size for name, size in sizes.items() if size > 0}
    if not sizes:
        return []
    large, small = max(sizes, key=sizes.__getitem__), min(sizes, key=sizes.__getitem__)
    ratio = sizes[large] / sizes[small]
    if ratio < UNEVEN:
        return []
    return [
        f"{table.path}: column {large!r} is about {ratio:,.0f} times as large as {small!r}, which hardly counts beside "
        "it. Bring columns to one scale first, for example (value - mean) / deviation."
    ]


def _encode(table: Table, name: str, column: pa.ChunkedArray, notes: list[str]) -> tuple[np.ndarray, list[str]]:
    import pyarrow as pa

    kind = column.type
    if is_numeric(kind) or pa.types.is_null(kind):  # null: every value is missing, which is reported
        return _numbers(column), [name]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _lists(table, name, column)
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise DataError(f"{table.path}: column {name!r} is of type {kind}: turn it into numbers or leave it out.")
    if mostly_numbers(column):  # its bad values are to be reported, not made categories
        return _numbers(column), [name]
    return _categories(table, name, column, notes)


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    with np.errstate(over="ignore"):  # beyond float32 becomes infinity, which is reported as such
        return to_float(column).astype(np.float32)[:, None]


def _lists(table: Table, name: str, column: pa.ChunkedArray) -> tuple[np.ndarray, list[str]]:
    import pyarrow.compute as pc

    lengths = pc.unique(pc.list_value_length(column)).to_pylist()
    if len(lengths) != 1 or not lengths[0] or not is_numeric(column.type.value_type):
        raise DataError(f"{table.path}: the lists in column {name!r} must hold numbers and be of one length.")
    values = to_float(pc.list_flatten(column)).astype(np.float32)
    return values.reshape(-1, lengths[0]), [f"{name}{place}" for place in range(lengths[0])]


def _categories(table: Table, name: str, column: pa.ChunkedArray, notes: list[str]) -> tuple[np.ndarray, list[str]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pc.utf8_trim_whitespace(column.cast(pa.string()))
    values = sorted(value for value in pc.unique(column).to_pylist() if value)
    if len(values) > min(MAX_CATEGORIES, max(_FEW, len(column) // 2)):
        found = f"{len(values):,} distinct values, such as {values[0][:40]!r}"
        raise DataError(
            f"{table.path}: column {name!r} holds text ({found}): "
            "leave it out, or turn it into numbers (for example with a sentence encoder)."
        )
    codes = pc.fill_null(pc.index_in(column, value_set=pa.array(values, type=pa.string())), -1).to_numpy()
    one_hot = (codes[:, None] == np.arange(len(values))[None, :]).astype(np.float32)
    empty = int((codes < 0).sum())
    said = f"; {empty:,} rows are blank and get zeros" if empty else ""
    notes.append(f"{table.path}: column {name!r} one-hot encoded, {len(values)} categories{said}.")
    return one_hot, [f"{name}={value}" for value in values]


def _complaint(table: Table, name: str, column: pa.ChunkedArray, row: int) -> str:
    value: Any = column[row].as_py()
    if value is None or value != value or value == "":
        problem = "is empty or NaN"
    elif isinstance(value, str):
        problem = f"has {value!r}, which is not a number"
    elif isinstance(value, list):
        problem = "has a list with an empty, NaN or infinite value"
    else:
        problem = f"has {value!r}, which is not a finite 32-bit number"
    return f"{table.where(row)}: column {name!r} {problem}."
