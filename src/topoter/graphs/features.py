"""Node features from a table with ids, an array in node order, or the structure of the graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor

from topoter.errors import DataError, TopoterError, UsageError
from topoter.graphs.archives import check_zip
from topoter.graphs.arrow import pa
from topoter.graphs.matrices import as_matrix, finite_rows, first_bad_value, select_rows
from topoter.graphs.node_tables import open_nodes, read_nodes
from topoter.graphs.preparation import Preparation, PreparedTable, TableOptions
from topoter.graphs.problems import existing, explained, keep_good
from topoter.graphs.table_notes import summary, suspicions

STRUCTURAL_NAMES = ["log_degree", "constant"]
STRUCTURAL_NOTE = "No features given: every node gets log(1 + degree) and a constant as its features."


@dataclass
class Features:
    """Rows of numbers, and the nodes they belong to."""

    name: str
    x: Tensor  # [n, C], dense or sparse CSR
    feature_names: list[str]
    ids: pa.Array | None  # None: the rows are the nodes in order
    rows: np.ndarray  # [n] row numbers in the source, fewer than `total` if bad ones were dropped
    total: int
    notes: list[str] = field(default_factory=list)
    table: PreparedTable | None = None  # what x was made of, where that was a table
    met: list[str] = field(default_factory=list)  # of the notes, those on what a model's preparation does not know


def read_features(
    path: Path,
    *,
    id_column: str | None = None,
    drop_bad: bool = False,
    options: TableOptions | None = None,
    preparation: Preparation | None = None,
) -> Features:
    """Read node features: .npy and .npz hold rows in node order, a table holds an id per row.

    A table is made into numbers by `preparation` (a model's), or by one that is learned from it under `options`.
    """
    if path.suffix.lower() not in (".npy", ".npz"):
        return _feature_table(path, id_column, drop_bad, options, preparation)
    if options is not None and options != TableOptions():
        raise UsageError(
            f"{path} holds rows of numbers without names: columns cannot be chosen or turned into anything."
        )
    # Opened here, because NumPy leaves a damaged file open.
    with existing(path).open("rb") as file, explained(f"{path} is not an array of numbers"):
        check_zip(path)
        values = _load_npz(file) if path.suffix.lower() == ".npz" else np.load(file, allow_pickle=False)
    return array_features(values, str(path), drop_bad)


def array_features(values: Any, name: str, drop_bad: bool = False) -> Features:
    """Features whose rows are the nodes in order."""
    x = as_matrix(values, name)
    notes: list[str] = []

    def message(row: int) -> str:
        column, value = first_bad_value(x, row)
        return f"{name}, row {row}, column {column} (from 0): {value} is not a finite number."

    good = keep_good(~finite_rows(x).numpy(), message, drop_bad, notes, f"nodes with a bad value in {name}")
    names = [f"x{column}" for column in range(x.size(1))]
    return Features(name, select_rows(x, good), names, None, np.flatnonzero(good), x.size(0), notes)


def structural_features(edge_index: np.ndarray, num_nodes: int) -> Tensor:
    """[N, 2]: the logarithm of 1 + the number of neighbours, and a constant one."""
    source, target = edge_index.min(axis=0), edge_index.max(axis=0)
    # Neighbours as the training sees them: each once, however often and in whatever direction; no self-loops.
    pairs = np.sort((source * num_nodes + target)[source != target])
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]  # np.unique may hash instead, which was slower
    degree = np.bincount(pairs // num_nodes, minlength=num_nodes)
    degree += np.bincount(pairs % num_nodes, minlength=num_nodes)
    columns = [np.log1p(degree), np.ones(num_nodes)]
    return torch.from_numpy(np.stack(columns, axis=1).astype(np.float32))


def _feature_table(
    path: Path,
    id_column: str | None,
    drop_bad: bool,
    options: TableOptions | None,
    preparation: Preparation | None,
) -> Features:
    table = open_nodes(path, id_column, drop_bad)
    name = id_column or table.names[0]
    if id_column is None:
        table.notes.append(f"{path}: node ids taken from the first column, {name!r}.")
    if len(table.names) < 2:
        raise DataError(f"{path} has ids but no features: its only column is {table.names[0]!r}.")
    ids, columns, keep = read_nodes(table, id_column)
    rows = np.flatnonzero(keep)
    if not len(rows):
        raise DataError(f"{path} is empty: no usable row is left.")
    found = table_features(pa.table(columns).take(rows), str(path), options, preparation)
    found.ids, found.rows, found.total = ids.take(rows).combine_chunks(), rows, len(keep)
    found.notes = [*table.notes, *found.notes]
    return found


def table_features(
    table: pa.Table, name: str, options: TableOptions | None = None, preparation: Preparation | None = None
) -> Features:
    """Features out of a table's columns, one row per node."""
    notes: list[str] = []
    try:
        if preparation is None:
            preparation = Preparation.fit(table, options)
            notes.append(f"{name}: {summary(preparation)}.")
            notes += suspicions(preparation, name)
        x, met = preparation.transform(table)
    except TopoterError as error:
        raise type(error)(f"{name}: {error}") from None
    met = [f"{name}: {said}" for said in met]
    rows, prepared = np.arange(table.num_rows), PreparedTable(table, preparation)
    return Features(name, x, preparation.feature_names, None, rows, len(rows), [*notes, *met], prepared, met)


def _load_npz(file: IO[bytes]) -> Any:
    """A SciPy sparse matrix, or the only array (or the one named x) of a NumPy archive."""
    import scipy.sparse

    with np.load(file, allow_pickle=False) as archive:
        if "format" not in archive.files:
            key = "x" if "x" in archive.files else archive.files[0]
            if key != "x" and len(archive.files) > 1:
                raise ValueError(f"it holds several ({', '.join(archive.files)}). Name one of them x.")
            return archive[key]
    file.seek(0)
    return scipy.sparse.load_npz(file)
