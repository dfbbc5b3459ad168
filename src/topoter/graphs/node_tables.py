"""Tables with one row per node: labels in, clusters and neighbours out; ids kept."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from topoter.errors import DataError, UsageError
from topoter.graphs.arrow import pa, pacsv, pc, pq
from topoter.graphs.atomic import atomic_write, check_writable
from topoter.graphs.headers import NODES, open_table, settle
from topoter.graphs.ids import NodeIds, arrow_ids, positions, same_type
from topoter.graphs.tables import NUMBER, Table
from topoter.graphs.text import TextTable

ID_NAMES = ("id", "node", "node_id", "nodeid")
TABLE_FORMATS = (".csv", ".tsv", ".parquet")


@dataclass
class NodeTable:
    """Columns about nodes, and what was noticed on the way."""

    path: Path
    ids: pa.ChunkedArray
    columns: dict[str, pa.ChunkedArray]
    notes: list[str]

    def for_nodes(self, node_ids: NodeIds) -> dict[str, list[Any]]:
        """Each column as a list in the order of these nodes, None for a node that the table does not have."""
        theirs, ours = same_type(self.ids, arrow_ids(node_ids))
        row = positions(ours, theirs.combine_chunks())
        found = int((row >= 0).sum())
        if not found:
            first = f"{theirs[0].as_py()!r} here, {ours[0].as_py()!r} there"
            raise DataError(f"{self.path}: none of its ids is that of a node ({first}).")
        if found < len(row):
            self.notes.append(f"{self.path}: {len(row) - found:,} of {len(row):,} nodes have no row.")
        if found < len(self.ids):
            strange = np.flatnonzero(positions(theirs, ours) < 0)
            example = repr(self.ids[int(strange[0])].as_py())
            self.notes.append(f"{self.path}: ids that no node has, left out: {len(strange):,}, such as {example}.")
        rows = pa.array(row, mask=row < 0)  # what is taken at null is null
        return {name: column.take(rows).to_pylist() for name, column in self.columns.items()}


def read_node_table(path: str | os.PathLike[str], *, id_column: str | None = None, drop_bad: bool = False) -> NodeTable:
    """Read labels or anything else about nodes: CSV, TSV, blanks, gzip or parquet, ids in the first column."""
    table = open_nodes(Path(path), id_column, drop_bad)
    ids, columns, keep = read_nodes(table, id_column)
    rows = np.flatnonzero(keep)
    return NodeTable(table.path, ids.take(rows), {name: columns[name].take(rows) for name in columns}, table.notes)


def columns_for(
    path: str | os.PathLike[str], node_ids: NodeIds, *, id_column: str | None = None, drop_bad: bool = False
) -> tuple[dict[str, list[Any]], list[str]]:
    """What a table says of these nodes, in their order, and notes; a single column without ids has a row for each."""
    path = Path(path)
    table = open_table(path, asked_columns=[id_column], drop_bad=drop_bad, single=True)
    if len(table.names) > 1 or id_column is not None:
        read = read_node_table(path, id_column=id_column, drop_bad=drop_bad)
        return read.for_nodes(node_ids), read.notes
    if isinstance(table, TextTable):
        rows = len(table.settled(header=False).read(["1"]))
        table = table.settled(header=rows == len(node_ids) + 1)  # one line more than there are nodes is a header
    values = table.read(table.names)[table.names[0]]
    if len(values) != len(node_ids):
        raise DataError(
            f"{path} has one column of {len(values):,} values, but there are {len(node_ids):,} embeddings. Give it a "
            "value for each, in their order, or a first column of ids."
        )
    name = table.names[0] if table.header else path.stem
    said = f"{path}: one column, taken for the values of {name!r} in the order of the embeddings."
    return {name: values.to_pylist()}, [said]


def open_nodes(path: Path, id_column: str | None, drop_bad: bool) -> Table:
    """Open a table with one row per node, with it decided whether its first line is a header or a node."""
    table = open_table(path, asked_columns=[id_column], drop_bad=drop_bad)
    # Ids stand once each, header or not; it is the other columns whose values recur.
    return settle([table], range(1, len(table.names)), NODES)[0]


def read_nodes(table: Table, id_column: str | None) -> tuple[pa.ChunkedArray, dict[str, pa.ChunkedArray], np.ndarray]:
    """The ids, the other columns, and which rows have an id that did not stand there before."""
    name = id_column or table.names[0]
    arrow = table.read(table.names)
    if table.ragged:
        table.notes.append(f"Dropped {table.ragged:,} lines of {table.path} with the wrong number of columns.")
    (ids,) = table.ids(arrow, [name])
    ids = without_quotes(ids) if isinstance(table, TextTable) else ids
    keep = table.rows_with_id(ids, name, f"rows of {table.path} without an id", lambda: _hint(arrow, name, id_column))
    codes = ids.combine_chunks().dictionary_encode(null_encoding="encode").indices.to_numpy()
    repeated = np.ones(len(codes), dtype=bool)
    repeated[np.unique(codes, return_index=True)[1]] = False
    keep &= table.keep_good(
        repeated & keep,
        lambda row: f"node id {ids[row].as_py()!r} stands here a second time{_hint(arrow, name, id_column)}",
        f"rows of {table.path} with an id seen before",
    )
    return ids, {column: arrow[column] for column in table.names if column != name}, keep


_FORMULA = r"^('*[=+\-@\t\r])"


def _without_formulas(table: pa.Table) -> pa.Table:
    quoted = {}
    for name, column in zip(table.column_names, table.columns):
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            written = pc.replace_substring_regex(column, pattern=_FORMULA, replacement=r"'\1")
            column = pc.if_else(pc.match_substring_regex(column, NUMBER), column, written)
        quoted[re.sub(_FORMULA, r"'\1", name)] = column
    return pa.table(quoted)


def without_quotes(ids: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Ids as they were before a ' was written before what looks like a formula."""
    if not pa.types.is_string(ids.type):
        return ids
    return pc.replace_substring_regex(ids, pattern=_FORMULA.replace("('*", "'('*"), replacement=r"\1")


def _hint(table: pa.Table, name: str, asked: str | None) -> str:
    """Which column may hold the ids, if it is not the first and none was named."""
    if asked is not None or name.lower() in ID_NAMES:
        return ""
    for other, column in zip(table.column_names, table.columns):
        may_be = pa.types.is_integer(column.type) or pa.types.is_string(column.type)
        if other != name and may_be and not column.null_count and len(column.unique()) == table.num_rows:
            return f"; if the ids are those in column {other!r}, give --id-column {other}"
    return ""


def write_node_table(path: str | os.PathLike[str], columns: Mapping[str, Any]) -> None:
    """Write columns of equal length, ids among them, as `.csv`, `.tsv` or `.parquet`."""
    check_table_destination(Path(path))
    with atomic_write(path) as temporary:
        write_columns(temporary, columns)


def check_table_destination(path: Path) -> None:
    """Raise if a table cannot be written there: to be asked before what it holds is computed."""
    if path.suffix.lower() not in TABLE_FORMATS:
        raise UsageError(f"{path}: unknown extension {path.suffix!r} for a table. Known: {', '.join(TABLE_FORMATS)}.")
    check_writable(path)


def write_columns(path: Path, columns: Mapping[str, Any], header: bool = True) -> None:
    """Write columns in the format of the extension, one of `TABLE_FORMATS`.

    In text, a word that a spreadsheet would take for a formula gets a ' before it, unless the environment variable
    TOPOTER_CSV_FORMULAS is 1; `without_quotes` takes it off again.
    """
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    if path.suffix.lower() != ".parquet" and os.environ.get("TOPOTER_CSV_FORMULAS") != "1":
        table = _without_formulas(table)
    if path.suffix.lower() == ".parquet":
        pq.write_table(table, path)
    else:
        delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
        pacsv.write_csv(table, path, pacsv.WriteOptions(include_header=header, delimiter=delimiter))
