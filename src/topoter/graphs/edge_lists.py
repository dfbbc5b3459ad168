"""Edge lists: which columns are the ends, the weight and the time, and the nodes numbered by their ids."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from topoter.errors import DataError, UsageError
from topoter.graphs.arrow import pa
from topoter.graphs.assembly import RawGraph
from topoter.graphs.headers import EDGES, open_table, settle
from topoter.graphs.ids import positions, same_type, sorted_unique
from topoter.graphs.problems import bad_weight, bad_weights
from topoter.graphs.sniffing import END_NAMES
from topoter.graphs.tables import Table, mostly_numbers, to_float
from topoter.graphs.text import TextTable

WEIGHT_NAMES = ("weight", "w")


def open_edges(
    *paths: Path,
    weight_column: str | None = None,
    time_column: str | None = None,
    graph_column: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    drop_bad: bool = False,
) -> list[Table]:
    """Open edge lists, with it decided for each whether its first line is a header or an edge."""
    asked = [weight_column, time_column, graph_column]
    tables = [
        open_table(path, delimiter=delimiter, header=header, asked_columns=asked, drop_bad=drop_bad) for path in paths
    ]
    ends = [[table.names.index(name) for name in _ends(table, asked)] for table in tables]
    # Files of one folder are decided together; where their columns differ, nothing can be learned from one for another.
    if all(places == ends[0] for places in ends):
        return settle(tables, ends[0], EDGES)
    return [settled for table, places in zip(tables, ends) for settled in settle([table], places, EDGES)]


def read_edges(
    table: Table,
    weight_column: str | None = None,
    time_column: str | None = None,
    graph_column: str | None = None,
) -> RawGraph:
    """Turn a table of edges into a graph whose nodes are in ascending order of their ids."""
    source, target = _ends(table, [weight_column, time_column, graph_column])
    assumed = weight_column is None
    if assumed:
        free = [name for name in table.names if name not in (source, target, time_column, graph_column)]
        free = [name for name in free if name.lower() in WEIGHT_NAMES] if table.header else free
        weight_column = free[0] if free else None
    columns = [name for name in (source, target, weight_column, time_column, graph_column) if name]
    arrow = table.read(list(dict.fromkeys(columns)))
    if weight_column and assumed:
        if not table.header and not mostly_numbers(arrow[weight_column]):
            weight_column = None  # a third column of words, in a file that says nothing of weights
        else:
            hint = "" if table.header else " If it is a time, name it as the time column."
            table.notes.append(f"{table.path}: column {weight_column!r} taken as the edge weight.{hint}")
    if table.ragged:
        table.notes.append(f"Dropped {table.ragged:,} lines with the wrong number of columns.")
    ignored = [name for name in table.names if name not in columns]
    if ignored:
        table.notes.append(f"{table.path}: ignored the columns {', '.join(ignored)}.")

    ends = same_type(*table.ids(arrow, [source, target]))
    keep = np.ones(arrow.num_rows, dtype=bool)
    for name, column in zip((source, target), ends):
        keep &= table.rows_with_id(column, name, f"edges without an id in column {name!r}")
    weight = time = graph = None
    if graph_column:
        (graph,) = table.ids(arrow, [graph_column])
        keep &= table.rows_with_id(graph, graph_column, f"edges without a graph id in column {graph_column!r}")
        graph = graph.combine_chunks()
    if weight_column:
        written = arrow[weight_column]
        with np.errstate(over="ignore"):  # what float32 cannot hold is infinite, and so a bad weight
            weight = to_float(written).astype(np.float32)
        dropped = f"edges with a bad weight in column {weight_column!r}"
        keep &= table.keep_good(bad_weights(weight), lambda row: bad_weight(written[row].as_py()), dropped)
    if time_column:
        time, good = _times(table, arrow[time_column], time_column)
        keep &= good
    if not keep.any():
        raise DataError(f"{table.path} is empty: no usable edge is left.")
    if not keep.all():
        ends = [column.filter(pa.array(keep)) for column in ends]
        weight = weight if weight is None else weight[keep]
        time = time if time is None else time[keep]
        graph = graph if graph is None else graph.filter(pa.array(keep))

    node_ids = sorted_unique(*ends)
    edge_index = np.stack([positions(column, node_ids) for column in ends])
    return RawGraph(
        str(table.path), node_ids, edge_index, table.where, weight, time, graph, has_node_order=False, notes=table.notes
    )


def _ends(table: Table, taken: Collection[str | None]) -> tuple[str, str]:
    named = table.first if isinstance(table, TextTable) and table.header else table.names
    return end_columns(table.path, table.names, taken, named)


def end_columns(
    path: Path, names: Sequence[str], taken: Collection[str | None], named: Collection[str]
) -> tuple[str, str]:
    """Which two columns hold the ends of the edges: by their names, else the first two that are not taken.

    `named`: those that the file itself names.
    """
    by_lower = {name.lower(): name for name in names}
    for source, target in END_NAMES:
        if source in by_lower and target in by_lower:
            return by_lower[source], by_lower[target]
    free = [name for name in names if name not in taken]
    # A column without a name beside two that have one is the index that pandas writes.
    with_name = [name for name in free if name in named]
    free = with_name if len(with_name) >= 2 else free
    if len(free) < 2:
        raise UsageError(f"{path}: two columns of node ids are needed; found {', '.join(free) or 'none'}.")
    return free[0], free[1]


def _times(table: Table, column: pa.ChunkedArray, name: str) -> tuple[np.ndarray, np.ndarray]:
    if pa.types.is_temporal(column.type) and not pa.types.is_time(column.type):
        table.notes.append(f"{table.path}: dates in column {name!r} read as seconds since 1970.")
        column = column.cast(pa.timestamp("s"), safe=False).cast(pa.int64())
    if pa.types.is_integer(column.type) and not column.null_count:
        time = column.cast(pa.int64()).to_numpy()  # no detour over float64, which rounds beyond 2^53
        return time, np.ones(len(time), dtype=bool)
    time = to_float(column)
    return time, table.keep_good(
        ~np.isfinite(time),
        lambda row: f"time {column[row].as_py()!r} is neither a number nor a date",
        f"edges with a bad time in {name!r}",
    )
