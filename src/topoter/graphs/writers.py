"""Embeddings out and in: parquet, CSV, NumPy, PyG, and the TensorFlow projector's pair of TSV files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from topoter.errors import DataError, UsageError, invalid_parameter
from topoter.graphs.atomic import atomic_write, check_writable
from topoter.graphs.ids import NodeIds, arrow_ids, text_ids, user_ids

if TYPE_CHECKING:
    import pyarrow as pa


def write_embeddings(
    path: str | os.PathLike[str],
    z: np.ndarray | Tensor,
    node_ids: Sequence[Any] | np.ndarray | None = None,
    layout: str = "list",
) -> None:
    """Write embeddings z [N, F], one row per node, in the format of the extension.

    `.parquet`: `id` and one list column `embedding` (layout="list") or `z0`, `z1`, ... (layout="columns");
    `.csv`: id, z0, z1, ...; `.npy`: the array, and the ids in `.ids.txt` beside it; `.pt`: PyG Data with x=z;
    `.tsv`: vectors, and the ids in `.metadata.tsv` beside it, for projector.tensorflow.org.
    `node_ids` default to 0, 1, 2, ...
    """
    path = Path(path)
    check_destination(path, layout)
    array = np.ascontiguousarray(z.detach().cpu().numpy() if isinstance(z, Tensor) else z)
    if array.ndim != 2 or not np.issubdtype(array.dtype, np.number):
        raise UsageError(f"Embeddings must be numbers [N, F]. Got {array.dtype} {list(array.shape)} instead.")
    ids = arrow_ids(np.arange(len(array)) if node_ids is None else node_ids)
    if len(ids) != len(array):
        raise UsageError(f"There are {len(ids):,} node ids for {len(array):,} embeddings.")
    EMBEDDING_WRITERS[path.suffix.lower()](path, array.astype(np.float32, copy=False), ids, layout)


def check_destination(path: Path, layout: str = "list") -> None:
    """Raise if embeddings cannot be written there in that form: to be asked before they are computed."""
    if path.suffix.lower() not in EMBEDDING_WRITERS:
        raise _unknown_extension(path, EMBEDDING_WRITERS)
    if layout not in PARQUET_LAYOUTS:
        raise invalid_parameter("layout", "write_embeddings", f"one of {', '.join(PARQUET_LAYOUTS)}", layout)
    check_writable(path)


def read_embeddings(path: str | os.PathLike[str]) -> tuple[NodeIds, np.ndarray]:
    """Read back what `write_embeddings` wrote: ids and z [N, F].

    Text formats do not tell the id 7 from the id "7": ids that all look like integers come back as integers.
    """
    path = Path(path)
    reader = EMBEDDING_READERS.get(path.suffix.lower())
    if reader is None:
        raise _unknown_extension(path, EMBEDDING_READERS)
    if not path.is_file():
        raise DataError(f"{path} is a folder, not a file." if path.is_dir() else f"{path}: no such file.")
    try:
        ids, z = reader(path)
    except (ValueError, OSError, EOFError, KeyError) as error:
        reason = str(error).splitlines()[0]
        reason = "it is no array of numbers" if "pickle" in reason else reason  # no advice to load it unsafely
        raise DataError(f"{path} does not hold embeddings: {reason}") from error
    if z.ndim != 2 or not np.isrealobj(z) or not np.issubdtype(z.dtype, np.number):
        raise DataError(
            f"{path} does not hold embeddings: numbers [N, F] were expected, {z.dtype} {list(z.shape)} found."
        )
    if len(ids) != len(z):
        raise DataError(f"{path}: there are {len(ids):,} node ids for {len(z):,} embeddings.")
    if len(ids.unique()) != len(ids):
        twice = ids.value_counts()
        first = next(item["values"].as_py() for item in twice if item["counts"].as_py() > 1)
        raise DataError(f"{path}: node id {first!r} stands there more than once.")
    return user_ids(ids), z


def _unknown_extension(path: Path, known: dict[str, Any]) -> UsageError:
    return UsageError(f"{path}: unknown extension {path.suffix!r} for embeddings. Known: {', '.join(known)}.")


def _list_column(z: np.ndarray) -> dict[str, Any]:
    import pyarrow as pa

    return {"embedding": pa.FixedSizeListArray.from_arrays(pa.array(z.ravel()), z.shape[1])}


def _plain_columns(z: np.ndarray) -> dict[str, Any]:
    return {f"z{column}": np.ascontiguousarray(z[:, column]) for column in range(z.shape[1])}


PARQUET_LAYOUTS: dict[str, Callable[[np.ndarray], dict[str, Any]]] = {
    "list": _list_column,
    "columns": _plain_columns,
}


def _write_parquet(path: Path, z: np.ndarray, ids: pa.Array, layout: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with atomic_write(path) as temporary:
        pq.write_table(pa.table({"id": ids, **PARQUET_LAYOUTS[layout](z)}), temporary)


def _write_csv(path: Path, z: np.ndarray, ids: pa.Array, _layout: str) -> None:
    import pyarrow as pa
    import pyarrow.csv as pacsv

    with atomic_write(path) as temporary:
        pacsv.write_csv(pa.table({"id": ids, **_plain_columns(z)}), temporary)


def _write_npy(path: Path, z: np.ndarray, ids: pa.Array, _layout: str) -> None:
    # The inner file is renamed first: whoever sees the array finds its ids.
    with atomic_write(path) as temporary, atomic_write(path.with_suffix(".ids.txt")) as temporary_ids:
        np.save(temporary, z)
        temporary_ids.write_text(_one_per_line(ids, path), encoding="utf-8")


def _write_pt(path: Path, z: np.ndarray, ids: pa.Array, _layout: str) -> None:
    from torch_geometric.data import Data

    # Integers as a tensor: a pickled NumPy array would not load with torch.load(weights_only=True).
    node_ids = user_ids(ids)
    safe_ids = torch.tensor(node_ids) if isinstance(node_ids, np.ndarray) else node_ids
    with atomic_write(path) as temporary:
        torch.save(Data(x=torch.tensor(z), num_nodes=len(z), node_ids=safe_ids), temporary)


def _write_projector(path: Path, z: np.ndarray, ids: pa.Array, _layout: str) -> None:
    import pyarrow as pa
    import pyarrow.csv as pacsv

    options = pacsv.WriteOptions(include_header=False, delimiter="\t")
    with atomic_write(path) as temporary, atomic_write(path.with_suffix(".metadata.tsv")) as metadata:
        pacsv.write_csv(pa.table(_plain_columns(z)), temporary, options)
        metadata.write_text(_one_per_line(ids, path), encoding="utf-8")


def _one_per_line(ids: pa.Array, path: Path) -> str:
    lines = [str(value) for value in ids.to_pylist()]
    broken = next((line for line in lines if "\n" in line or "\t" in line), None)
    if broken is not None:
        raise DataError(f"{path}: node id {broken!r} has a tab or line break in it: write .parquet instead.")
    return "".join(f"{line}\n" for line in lines)


def _read_parquet(path: Path) -> tuple[Any, np.ndarray]:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table = _with_ids(pq.read_table(path).combine_chunks())
    ids = arrow_ids(table["id"].to_numpy()) if len(table) else table["id"]
    if "embedding" in table.column_names:
        values = pc.list_flatten(table["embedding"]).to_numpy()
        return ids, values.reshape(len(table), -1).astype(np.float32, copy=False)
    return ids, _stack(table)


def _read_csv(path: Path) -> tuple[Any, np.ndarray]:
    import pyarrow as pa
    import pyarrow.csv as pacsv

    table = _with_ids(pacsv.read_csv(path, convert_options=pacsv.ConvertOptions(column_types={"id": pa.string()})))
    return text_ids(table["id"]).combine_chunks(), _stack(table)


def _with_ids(table: pa.Table) -> pa.Table:
    if "id" not in table.column_names:
        raise ValueError(f"it has no column 'id', but {', '.join(table.column_names[:5])}")
    return table


def _stack(table: pa.Table) -> np.ndarray:
    columns = [name for name in table.column_names if name != "id"]
    if not columns:
        raise ValueError("it has no columns but the ids")
    return np.stack([table[name].to_numpy() for name in columns], axis=1).astype(np.float32)


def _read_npy(path: Path) -> tuple[Any, np.ndarray]:
    import pyarrow as pa

    z = np.load(path, allow_pickle=False)
    beside = path.with_suffix(".ids.txt")
    if not beside.is_file():
        return arrow_ids(np.arange(len(z))), z
    return text_ids(pa.array(beside.read_text(encoding="utf-8").split("\n")[:-1], type=pa.string())), z


EMBEDDING_WRITERS: dict[str, Callable[[Path, np.ndarray, Any, str], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".npy": _write_npy,
    ".pt": _write_pt,
    ".tsv": _write_projector,
}
EMBEDDING_READERS: dict[str, Callable[[Path], tuple[Any, np.ndarray]]] = {
    ".parquet": _read_parquet,
    ".csv": _read_csv,
    ".npy": _read_npy,
}
