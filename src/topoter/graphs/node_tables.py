"""Tables with one row per node: labels in, clusters and neighbours out; ids kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from topoter.errors import DataError, UsageError
from topoter.graphs.atomic import atomic_write, check_writable
from topoter.graphs.headers import open_node_table
from topoter.graphs.ids import NodeIds, arrow_ids, positions, same_type
from topoter.graphs.tables import unique_ids

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class NodeTable:
    """Columns about nodes, and what was noticed on the way."""

    path: Path
    ids: pa.ChunkedArray
    columns: dict[str, pa.ChunkedArray]
    notes: list[str] = field(default_factory=list)

    def for_nodes(self, node_ids: NodeIds) -> dict[str, list[Any]]:
        """Each column as a list in the order of these nodes, None for a node that the table does not have."""
        theirs, ours = same_type(self.ids, arrow_ids(node_ids))
        row = positions(ours, theirs.combine_chunks())
        found = int((row >= 0).sum())
        if not found:
            first = f"{theirs[0].as_py()!r} here, {ours[0].as_py()!r} there"
            raise DataError(f"{self.path}: none of its ids is among the embeddings' ({first}).")
        if found < len(row):
            self.notes.append(f"{self.path}: {len(row) - found:,} of {len(row):,} nodes have no row.")
        if found < len(self.ids):
            self.notes.append(f"{self.path}: {len(self.ids) - found:,} rows belong to no node of the embeddings.")
        columns = {}
        for name, column in self.columns.items():
            values = column.to_pylist()
            columns[name] = [values[place] if place >= 0 else None for place in row.tolist()]
        return columns


def read_node_table(path: str | os.PathLike[str], *, id_column: str | None = None, drop_bad: bool = False) -> NodeTable:
    """Read labels or anything else about nodes: CSV, TSV, blanks, gzip or parquet, ids in the first column."""
    path = Path(path)
    table = open_node_table(path, id_column, drop_bad)
    notes = list(table.notes)
    name = id_column or table.names[0]
    columns = [column for column in table.names if column != name]
    arrow = table.read(table.names)
    ids, keep = unique_ids(table, arrow, name, drop_bad, notes)
    rows = np.flatnonzero(keep)
    return NodeTable(path, ids.take(rows), {column: arrow[column].take(rows) for column in columns}, notes)


def write_node_table(path: str | os.PathLike[str], columns: Mapping[str, Any]) -> None:
    """Write columns of equal length, ids among them, as `.csv`, `.tsv` or `.parquet`."""
    import pyarrow as pa

    path = Path(path)
    check_table_destination(path)
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    with atomic_write(path) as temporary:
        TABLE_WRITERS[path.suffix.lower()](table, temporary)


def check_table_destination(path: Path) -> None:
    """Raise if a table cannot be written there: to be asked before what it holds is computed."""
    if path.suffix.lower() not in TABLE_WRITERS:
        raise UsageError(f"{path}: unknown extension {path.suffix!r} for a table. Known: {', '.join(TABLE_WRITERS)}.")
    check_writable(path)


def _write_csv(table: pa.Table, path: Path) -> None:
    import pyarrow.csv as pacsv

    pacsv.write_csv(table, path)


def _write_tsv(table: pa.Table, path: Path) -> None:
    import pyarrow.csv as pacsv

    pacsv.write_csv(table, path, pacsv.WriteOptions(delimiter="\t"))


def _write_parquet(table: pa.Table, path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, path)


TABLE_WRITERS: dict[str, Callable[[Any, Path], None]] = {
    ".csv": _write_csv,
    ".tsv": _write_tsv,
    ".parquet": _write_parquet,
}
