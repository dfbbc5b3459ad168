"""Edge lists: which columns are the ends, the weight and the time, and the nodes numbered by their ids."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from topoter.errors import DataError, UsageError
from topoter.graphs.headers import EDGES, settle
from topoter.graphs.ids import positions, same_type, sorted_unique
from topoter.graphs.raw import RawGraph, bad_weight, bad_weights, keep_good
from topoter.graphs.sniffing import END_NAMES
from topoter.graphs.tables import Table, missing_ids, mostly_numbers, open_table, read_ids, to_float
from topoter.graphs.text import TextTable

if TYPE_CHECKING:
    import pyarrow as pa

WEIGHT_NAMES = ("weight", "w")


def open_edges(
    *paths: Path,
    weight_column: str | None = None,
    time_column: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    drop_bad: bool = False,
) -> list[Table]:
    """Open edge lists, with it decided for each whether its first line is a header or an edge."""
    asked = [weight_column, time_column]
    tables = [
        open_table(path, delimiter=delimiter, header=header, asked_columns=asked, drop_bad=drop_bad) for path in paths
    ]
    ends = [[table.names.index(name) for name in _ends(table, weight_column, time_column)] for table in tables]
    # Files of one folder are decided together; where their columns differ, nothing can be learned from one for another.
    if all(places == ends[0] for places in ends):
        return settle(tables, ends[0], EDGES)
    return [settled for table, places in zip(tables, ends) for settled in settle([table], places, EDGES)]


def read_edges(
    table: Table, *, weight_column: str | None = None, time_column: str | None = None, drop_bad: bool = False
) -> RawGraph:
    """Turn a table of edges into a graph whose nodes are in ascending order of their ids."""
    notes = list(table.notes)
    source, target = _ends(table, weight_column, time_column)
    weight_column, assumed = _weight(table, weight_column, {source, target, time_column})
    columns = [name for name in (source, target, weight_column, time_column) if name]
    arrow = table.read(list(dict.fromkeys(columns)))
    if weight_column and not table.header and assumed and not mostly_numbers(arrow[weight_column]):
        weight_column = None  # a third column of words, in a file that says nothing of weights
    elif weight_column and assumed:
        hint = "" if table.header else " If it is a time, name it as the time column."
        notes.append(f"{table.path}: column {weight_column!r} taken as the edge weight.{hint}")
    if table.ragged:
        notes.append(f"Dropped {table.ragged:,} lines with the wrong number of columns.")
    ignored = [name for name in table.names if name not in (source, target, weight_column, time_column)]
    if ignored:
        notes.append(f"{table.path}: ignored the columns {', '.join(ignored)}.")

    ends = same_type(*read_ids(table, arrow, [source, target]))
    keep = np.ones(arrow.num_rows, dtype=bool)
    for name, column in zip((source, target), ends):
        keep &= keep_good(
            missing_ids(column),
            lambda row, name=name: f"{table.where(row)}: no node id in column {name!r}.",  # type: ignore[misc]
            drop_bad,
            notes,
            f"edges without an id in column {name!r}",
        )
    weight = time = None
    if weight_column:
        weight, good = _weights(table, arrow[weight_column], weight_column, drop_bad, notes)
        keep &= good
    if time_column:
        time, good = _times(table, arrow[time_column], time_column, drop_bad, notes)
        keep &= good
    if not keep.all():
        ends = [column.filter(_mask(keep)) for column in ends]
        weight = weight if weight is None else weight[keep]
        time = time if time is None else time[keep]
    if not keep.any():
        raise DataError(f"{table.path} is empty: no usable edge is left.")

    node_ids = sorted_unique(*ends)
    edge_index = np.stack([positions(column, node_ids) for column in ends])
    return RawGraph(str(table.path), node_ids, edge_index, table.where, weight, time, has_node_order=False, notes=notes)


def _ends(table: Table, weight_column: str | None, time_column: str | None) -> tuple[str, str]:
    by_lower = {name.lower(): name for name in table.names}
    for source, target in END_NAMES:
        if source in by_lower and target in by_lower:
            return by_lower[source], by_lower[target]
    free = [name for name in table.names if name not in (weight_column, time_column)]
    if isinstance(table, TextTable) and table.header:
        # A column without a name beside two that have one is the index that pandas writes.
        named = [name for name in free if name in table.first]
        free = named if len(named) >= 2 else free
    if len(free) < 2:
        raise UsageError(f"{table.path}: two columns of node ids are needed; found {', '.join(free) or 'none'}.")
    return free[0], free[1]


def _weight(table: Table, asked: str | None, taken: set[str | None]) -> tuple[str | None, bool]:
    """The weight column, and whether it was assumed rather than asked for."""
    if asked:
        return asked, False
    free = [name for name in table.names if name not in taken]
    if table.header:
        return next((name for name in free if name.lower() in WEIGHT_NAMES), None), True
    return (free[0] if free else None), True


def _weights(
    table: Table, column: pa.ChunkedArray, name: str, drop_bad: bool, notes: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    weight = to_float(column).astype(np.float32)

    def message(row: int) -> str:
        return bad_weight(table.where(row), column[row].as_py())

    dropped = f"edges with a bad weight in column {name!r}"
    return weight, keep_good(bad_weights(weight), message, drop_bad, notes, dropped)


def _times(
    table: Table, column: pa.ChunkedArray, name: str, drop_bad: bool, notes: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    import pyarrow as pa

    if pa.types.is_temporal(column.type) and not pa.types.is_time(column.type):
        notes.append(f"{table.path}: dates in column {name!r} read as seconds since 1970.")
        column = column.cast(pa.timestamp("s"), safe=False).cast(pa.int64())
    if pa.types.is_integer(column.type) and not column.null_count:
        time = column.cast(pa.int64()).to_numpy()  # no detour over float64, which rounds beyond 2^53
        return time, np.ones(len(time), dtype=bool)
    time = to_float(column)

    def message(row: int) -> str:
        return f"{table.where(row)}: time {column[row].as_py()!r} is neither a number nor a date."

    return time, keep_good(~np.isfinite(time), message, drop_bad, notes, f"edges with a bad time in {name!r}")


def _mask(keep: np.ndarray) -> pa.Array:
    import pyarrow as pa

    return pa.array(keep)
