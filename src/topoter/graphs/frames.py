"""pandas and polars tables: as Arrow, and with the ids of the nodes that their rows belong to."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from topoter.errors import DataError
from topoter.graphs.arrow import pa, pc
from topoter.graphs.columns import is_text
from topoter.graphs.features import Features, table_features
from topoter.graphs.ids import arrow_ids, positions, same_type
from topoter.graphs.node_tables import ID_NAMES
from topoter.graphs.preparation import Preparation, TableOptions

FEWEST_NAMED = 20  # rows


def is_a(value: Any, module: str, name: str) -> bool:
    """isinstance without an import: an object of a library that was never imported cannot exist."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(value, kind)


def is_frame(value: Any) -> bool:
    """Whether it is a DataFrame of pandas or polars."""
    return is_a(value, "pandas", "DataFrame") or is_a(value, "polars", "DataFrame")


def framed(value: Any) -> Any:
    """A pandas Series as the DataFrame of one column that it is; anything else as it came."""
    return value.to_frame("x" if value.name is None else value.name) if is_a(value, "pandas", "Series") else value


def as_arrow(frame: Any) -> pa.Table:
    """The columns of a DataFrame; the index is no column. Spans of time are numbers of days."""
    if not len(frame):
        raise DataError("The DataFrame is empty: it holds no rows.")
    if is_a(frame, "polars", "DataFrame"):
        table = frame.to_arrow()
    else:
        names = [str(name) for name in frame.columns]
        twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
        if twice is not None:
            raise DataError(f"The DataFrame has two columns called {twice!r}: rename one, or leave it out.")
        table = pa.table({name: _pandas_column(frame.iloc[:, place], name) for place, name in enumerate(names)})
    for place, kind in enumerate(table.schema.types):
        if pa.types.is_duration(kind):
            milliseconds = table.column(place).cast(pa.duration("ms"), safe=False).cast(pa.int64())
            in_days = pc.divide(milliseconds.cast(pa.float64()), 86_400_000.0)
            table = table.set_column(place, table.column_names[place], in_days)
    return table


def _pandas_column(series: Any, name: str) -> pa.Array:
    if str(series.dtype).startswith("period["):
        series = series.dt.to_timestamp()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Arrow's, of how pandas will keep time zones
            found = pa.array(series, from_pandas=True)
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    except pa.ArrowNotImplementedError:
        problem = f"is of type {series.dtype}: turn it into numbers"
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        kinds = sorted({type(value).__name__ for value in series.dropna()})
        problem = f"holds values of several types ({', '.join(kinds[:4])}): make it one, as by .astype(str)"
    raise DataError(f"The DataFrame's column {name!r} {problem}, or leave it out: .drop(columns={name!r}).")


def frame_features(
    frame: Any,
    preparation: Preparation | None = None,
    options: TableOptions | None = None,
    node_ids: pa.Array | None = None,
) -> Features:
    """Features of a DataFrame, with ids by its index, or by a column: one called id, or one that holds `node_ids`."""
    table = as_arrow(frame)
    rows = np.arange(table.num_rows)
    indexed = is_a(frame, "pandas", "DataFrame") and not np.array_equal(frame.index, rows)
    ids: Any = frame.index if indexed else rows
    where = "index" if indexed else "row numbers"
    named = None if indexed else _id_column(table, node_ids)
    if named is not None:
        where, ids = f"column {named!r}", table[named].to_pylist()
        table = table.drop_columns([named])
    if not table.num_columns:
        raise DataError("The DataFrame of features has no columns but its ids.")
    try:
        found = table_features(table, "x", options, preparation)
    except DataError as error:
        hint = " In Python: x.drop(columns=...), or as_data(graph, x, options=TableOptions(...))."
        raise DataError(f"{error}{hint if '--exclude' in str(error) else ''}") from None
    found.ids = arrow_ids(ids)
    if len(found.ids.unique()) < len(found.ids):
        counted = found.ids.value_counts()
        twice = counted.field("values")[int(np.argmax(counted.field("counts").to_numpy()))].as_py()
        raise DataError(f"x: node id {twice!r} stands in its {where} more than once.")
    found.notes.append(f"x: rows belong to nodes by its {where}.")
    if where == "row numbers" and is_a(frame, "polars", "DataFrame"):
        said = "x has no column that names the nodes (id, say): row i is taken for node i."
        warnings.warn(said, UserWarning, stacklevel=5)
    found.name = f"x (ids by its {where})"
    return found


def _id_column(table: pa.Table, node_ids: pa.Array | None) -> str | None:
    """A column called id, or else one that names every node."""
    named = next((name for name in table.column_names if name.lower() in ID_NAMES), None)
    if named is not None or node_ids is None:
        return named
    # Where row numbers are ids, too, a column has to name every node just once: of few nodes it may do so by chance.
    rows = pa.array(np.arange(table.num_rows))
    numbered = pa.types.is_integer(node_ids.type) and positions(node_ids, rows).min() >= 0
    if numbered and table.num_rows < FEWEST_NAMED:
        return None
    for name, column in zip(table.column_names, table.columns):
        if pa.types.is_integer(column.type) or is_text(column.type):
            ours, theirs = same_type(node_ids, column.combine_chunks())
            once = not numbered or len(theirs.unique()) == len(theirs)
            if once and positions(ours, theirs).min() >= 0:
                return name
    return None


def in_node_order(features: Features, node_ids: pa.Array) -> Features:
    """The same features, a row for each of these nodes; a node without one is an error, a row without one a note."""
    theirs, ours = same_type(features.ids, node_ids)
    rows = positions(ours, theirs)
    if (rows < 0).any():
        node, known = ours[int((rows < 0).argmax())].as_py(), theirs[0].as_py()
        raise DataError(
            f"{features.name} has no row for node {node!r}, nor for {int((rows < 0).sum()) - 1:,} others. "
            f"Its ids are like {known!r}: give the table the graph's ids as its index."
        )
    if len(rows) < len(theirs):
        features.notes.append(f"{features.name}: {len(theirs) - len(rows):,} rows belong to no node of the graph.")
    assert features.table is not None
    ordered = table_features(features.table.arrow.take(rows), features.name, preparation=features.table.preparation)
    ordered.notes = features.notes
    return ordered
