"""Node features from a table with ids, an array in node order, or the structure of the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor

from topoter.errors import DataError
from topoter.graphs.arrow import pa, pc
from topoter.graphs.matrices import as_matrix, finite_rows, first_bad_value, select_rows
from topoter.graphs.node_tables import open_nodes, read_nodes
from topoter.graphs.problems import existing, explained, keep_good
from topoter.graphs.tables import Table, is_numeric, mostly_numbers, to_float

STRUCTURAL_NAMES = ["log_degree", "constant"]
STRUCTURAL_NOTE = "No features given: every node gets log(1 + degree) and a constant as its features."
MAX_CATEGORIES = 100
UNEVEN = 10.0  # columns that differ more in size than this are remarked on
_FEW = 10  # so many distinct values are categories even in a table of few rows


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
    if path.suffix.lower() not in (".npy", ".npz"):
        return _feature_table(path, id_column, drop_bad)
    # Opened here, because NumPy leaves a damaged file open.
    with existing(path).open("rb") as file, explained(f"{path} is not an array of numbers"):
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


def _feature_table(path: Path, id_column: str | None, drop_bad: bool) -> Features:
    table = open_nodes(path, id_column, drop_bad)
    if id_column is None:
        table.notes.append(f"{path}: node ids taken from the first column, {table.names[0]!r}.")
    if len(table.names) < 2:
        raise DataError(f"{path} has ids but no features: its only column is {table.names[0]!r}.")
    ids, columns, keep = read_nodes(table, id_column)
    x, names, good = _encode_columns(table, columns)
    rows = np.flatnonzero(keep & good)
    if not len(rows):
        raise DataError(f"{path} is empty: no usable row is left.")
    kept_ids = ids.take(rows).combine_chunks()
    return Features(str(path), torch.from_numpy(x[rows]), names, kept_ids, rows, len(keep), table.notes)


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


def _encode_columns(table: Table, columns: Mapping[str, pa.ChunkedArray]) -> tuple[np.ndarray, list[str], np.ndarray]:
    """Features [N, C] as float32, their names, and which rows are good [N]."""
    encoded = {name: _encode(table, name, column) for name, column in columns.items()}
    keep = np.logical_and.reduce(
        [
            table.keep_good(
                ~np.isfinite(block).all(axis=1),
                lambda row, name=name: f"column {name!r} {_problem(columns[name][row].as_py())}",  # type: ignore[misc]
                f"nodes with a bad value in column {name!r} of {table.path}",
            )
            for name, (block, _) in encoded.items()
        ]
    )
    _note_uneven_scales(table, {name: block[keep] for name, (block, _) in encoded.items()})
    names = [name for _, names in encoded.values() for name in names]
    return np.concatenate([block for block, _ in encoded.values()], axis=1), names, keep


def _note_uneven_scales(table: Table, blocks: Mapping[str, np.ndarray]) -> None:
    """Remark on a column so large that another hardly counts beside it: rows are scaled as a whole."""
    sizes = {name: float(np.sqrt(np.square(block, dtype=np.float64).sum(1).mean())) for name, block in blocks.items()}
    sizes = {name: size for name, size in sizes.items() if size > 0}
    if not sizes:
        return
    large, small = max(sizes, key=sizes.__getitem__), min(sizes, key=sizes.__getitem__)
    ratio = sizes[large] / sizes[small]
    if ratio >= UNEVEN:
        table.notes.append(
            f"{table.path}: column {large!r} is about {ratio:,.0f} times as large as {small!r}, which hardly counts "
            "beside it. Bring columns to one scale first, for example (value - mean) / deviation."
        )


def _encode(table: Table, name: str, column: pa.ChunkedArray) -> tuple[np.ndarray, list[str]]:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _lists(table, name, column)
    words = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (words or is_numeric(kind) or pa.types.is_null(kind)):
        raise DataError(f"{table.path}: column {name!r} is of type {kind}: turn it into numbers or leave it out.")
    # Among numbers, bad values are to be reported, not made categories; null: every value is missing.
    if words and not mostly_numbers(column):
        return _categories(table, name, column)
    with np.errstate(over="ignore"):  # beyond float32 becomes infinity, which is reported as such
        return to_float(column).astype(np.float32)[:, None], [name]


def _lists(table: Table, name: str, column: pa.ChunkedArray) -> tuple[np.ndarray, list[str]]:
    lengths = pc.unique(pc.list_value_length(column)).to_pylist()
    if len(lengths) != 1 or not lengths[0] or not is_numeric(column.type.value_type):
        raise DataError(f"{table.path}: the lists in column {name!r} must hold numbers and be of one length.")
    values = to_float(pc.list_flatten(column)).astype(np.float32)
    return values.reshape(-1, lengths[0]), [f"{name}{place}" for place in range(lengths[0])]


def _categories(table: Table, name: str, column: pa.ChunkedArray) -> tuple[np.ndarray, list[str]]:
    column = pc.utf8_trim_whitespace(column.cast(pa.string()))
    values = sorted(value for value in pc.unique(column).to_pylist() if value)
    if len(values) > most_categories(len(column)):
        found = f"{len(values):,} distinct values, such as {values[0][:40]!r}"
        raise DataError(
            f"{table.path}: column {name!r} holds text ({found}): "
            "leave it out, or turn it into numbers (for example with a sentence encoder)."
        )
    codes = pc.fill_null(pc.index_in(column, value_set=pa.array(values, type=pa.string())), -1).to_numpy()
    one_hot = (codes[:, None] == np.arange(len(values))[None, :]).astype(np.float32)
    empty = int((codes < 0).sum())
    said = f"; {empty:,} rows are blank and get zeros" if empty else ""
    table.notes.append(f"{table.path}: column {name!r} one-hot encoded, {len(values)} categories{said}.")
    return one_hot, [f"{name}={value}" for value in values]


def most_categories(rows: int) -> int:
    """How many distinct words a column may hold to be one-hot encoded."""
    return min(MAX_CATEGORIES, max(_FEW, rows // 2))


def _problem(value: Any) -> str:
    if value is None or value != value or value == "":
        return "is empty or NaN"
    if isinstance(value, str):
        return f"has {value!r}, which is not a number"
    if isinstance(value, list):
        return "has a list with an empty, NaN or infinite value"
    return f"has {value!r}, which is not a finite 32-bit number"
