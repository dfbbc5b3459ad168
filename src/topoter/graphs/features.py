"""Node features from a table with ids, an array in node order, or the structure of the graph."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from topoter.errors import DataError
from topoter.graphs.checks import finite_rows, first_bad_value
from topoter.graphs.encoding import encode_columns
from topoter.graphs.headers import open_node_table
from topoter.graphs.matrices import as_matrix, select_rows
from topoter.graphs.raw import keep_good
from topoter.graphs.tables import unique_ids

if TYPE_CHECKING:
    import pyarrow as pa

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


def read_features(path: Path, *, id_column: str | None = None, drop_bad: bool = False) -> Features:
    """Read node features: .npy and .npz hold rows in node order, a table holds an id per row."""
    reader = ARRAY_FORMATS.get(path.suffix.lower())
    if reader is None:
        return _read_feature_table(path, id_column, drop_bad)
    if not path.is_file():
        raise DataError(f"{path}: no such file.")
    try:
        with path.open("rb") as file:  # opened here, because NumPy leaves a damaged file open
            values = reader(file)
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} is not an array of numbers: {str(error).splitlines()[0]}") from error
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


def _read_feature_table(path: Path, id_column: str | None, drop_bad: bool) -> Features:
    table = open_node_table(path, id_column, drop_bad)
    notes = list(table.notes)
    name = id_column or table.names[0]
    if id_column is None:
        notes.append(f"{path}: node ids taken from the first column, {name!r}.")
    columns = [column for column in table.names if column != name]
    if not columns:
        raise DataError(f"{path} has ids but no features: its only column is {name!r}.")
    arrow = table.read(table.names)
    if table.ragged:
        notes.append(f"Dropped {table.ragged:,} lines of {path} with the wrong number of columns.")
    ids, keep = unique_ids(table, arrow, name, drop_bad, notes)
    x, names, good = encode_columns(table, arrow, columns, drop_bad, notes)
    keep &= good
    rows = np.flatnonzero(keep)
    ids = ids.take(rows).combine_chunks()
    if not len(rows):
        raise DataError(f"{path} is empty: no usable row is left.")
    return Features(str(path), torch.from_numpy(x[rows]), names, ids, rows, len(keep), notes)


def _read_npy(file: IO[bytes]) -> Any:
    return np.load(file, allow_pickle=False)


def _read_npz(file: IO[bytes]) -> Any:
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


ARRAY_FORMATS: dict[str, Callable[[IO[bytes]], Any]] = {".npy": _read_npy, ".npz": _read_npz}
