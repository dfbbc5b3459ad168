"""Embeddings out and in: parquet, CSV, NumPy, PyG, and the TensorFlow projector's pair of TSV files."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from topoter.errors import DataError, UsageError, invalid_parameter
from topoter.graphs.array_files import write_array
from topoter.graphs.arrow import pa, pacsv, pc, pq
from topoter.graphs.atomic import atomic_write, check_writable
from topoter.graphs.ids import NodeIds, arrow_ids, text_ids, user_ids
from topoter.graphs.node_tables import without_quotes, write_columns
from topoter.graphs.problems import READING_ERRORS, existing, first_line

WRITTEN = (".parquet", ".csv", ".npy", ".pt", ".tsv")
READ = (".parquet", ".csv", ".npy")
LAYOUTS = ("list", "columns")
# The file of ids that goes beside an array, whose own format has no place for them.
IDS_BESIDE = {".npy": ".ids.txt", ".tsv": ".metadata.tsv"}


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
    with atomic_write(path) as temporary:
        _write(temporary, array.astype(np.float32, copy=False), ids, layout)
        suffix = path.suffix.lower()
        if suffix in IDS_BESIDE:
            # Renamed before the array is: whoever sees the array finds its ids.
            with atomic_write(path.with_suffix(IDS_BESIDE[suffix])) as beside:
                beside.write_text(one_per_line(ids, path), encoding="utf-8")


def check_destination(path: Path, layout: str = "list") -> None:
    """Raise if embeddings cannot be written there in that form: to be asked before they are computed."""
    _check_extension(path, WRITTEN)
    if layout not in LAYOUTS:
        raise invalid_parameter("layout", "write_embeddings", f"one of {', '.join(LAYOUTS)}", layout)
    check_writable(path)


def read_embeddings(path: str | os.PathLike[str]) -> tuple[NodeIds, np.ndarray]:
    """Read back what `write_embeddings` wrote: ids and z [N, F].

    Text formats do not tell the id 7 from the id "7": ids that all look like integers come back as integers.
    """
    path = Path(path)
    _check_extension(path, READ)
    if not (path.is_dir() and path.suffix.lower() == ".parquet"):  # a folder of parts is read as one table
        existing(path)
    try:
        ids, z = _read_array(path) if path.suffix.lower() == ".npy" else _read_table(path)
    except READING_ERRORS as error:
        reason = first_line(error)
        reason = "it is no array of numbers" if "pickle" in reason else reason  # no advice to load it unsafely
        raise DataError(f"{path} does not hold embeddings: {reason}. `topoter embed` writes such files.") from error
    if z.ndim != 2 or not np.isrealobj(z) or not np.issubdtype(z.dtype, np.number):
        raise DataError(
            f"{path} does not hold embeddings: numbers [N, F] were expected, {z.dtype} {list(z.shape)} found."
        )
    if len(ids) != len(z):
        raise DataError(f"{path}: there are {len(ids):,} node ids for {len(z):,} embeddings.")
    if len(ids.unique()) != len(ids):
        counted = ids.value_counts()
        twice = counted.field("values").filter(pc.greater(counted.field("counts"), 1))[0]
        raise DataError(f"{path}: node id {twice.as_py()!r} stands there more than once.")
    return user_ids(ids), z


def _check_extension(path: Path, known: Iterable[str]) -> None:
    if path.suffix.lower() not in known:
        raise UsageError(f"{path}: unknown extension {path.suffix!r} for embeddings. Known: {', '.join(known)}.")


def _write(path: Path, z: np.ndarray, ids: pa.Array, layout: str) -> None:
    suffix = path.suffix.lower()
    if suffix == ".npy":
        write_array(path, z)
    elif suffix == ".pt":
        from torch_geometric.data import Data

        # Integers as a tensor: a pickled NumPy array would not load with torch.load(weights_only=True).
        node_ids = user_ids(ids)
        safe_ids = torch.tensor(node_ids) if isinstance(node_ids, np.ndarray) else node_ids
        content = io.BytesIO()  # on a full disk PyTorch raises what does not tell of it
        torch.save(Data(x=torch.tensor(z), num_nodes=len(z), node_ids=safe_ids), content)
        path.write_bytes(content.getvalue())
    elif suffix == ".tsv":
        columns = embedding_columns(ids, z, "columns")
        del columns["id"]  # they go beside it
        write_columns(path, columns, header=False)
    else:
        write_columns(path, embedding_columns(ids, z, layout if suffix == ".parquet" else "columns"))


def embedding_columns(ids: pa.Array, z: np.ndarray, layout: str) -> dict[str, Any]:
    """Ids and embeddings [n, F] as the columns of a table."""
    if layout == "list":
        return {"id": ids, "embedding": pa.FixedSizeListArray.from_arrays(pa.array(z.ravel()), z.shape[1])}
    return {"id": ids, **{f"z{column}": np.ascontiguousarray(z[:, column]) for column in range(z.shape[1])}}


def one_per_line(ids: pa.Array, path: Path) -> str:
    lines = [str(value) for value in ids.to_pylist()]
    broken = next((line for line in lines if "\n" in line or "\t" in line), None)
    if broken is not None:
        raise DataError(f"{path}: node id {broken!r} has a tab or line break in it: write .parquet instead.")
    return "".join(f"{line}\n" for line in lines)


def _read_table(path: Path) -> tuple[pa.Array, np.ndarray]:
    in_text = path.suffix.lower() == ".csv"
    if in_text:
        table = pacsv.read_csv(path, convert_options=pacsv.ConvertOptions(column_types={"id": pa.string()}))
    else:
        table = pq.read_table(path)
    columns = [name for name in table.column_names if name != "id"]
    if len(columns) == len(table.column_names):
        raise ValueError(f"it has no column 'id', but {', '.join(columns[:5])}")
    if not columns:
        raise ValueError("it has no columns but the ids")
    ids = table["id"].combine_chunks()
    ids = (
        without_quotes(text_ids(ids)) if in_text else arrow_ids(ids.to_numpy(zero_copy_only=False)) if len(ids) else ids
    )
    if "embedding" in columns and not in_text:
        values = pc.list_flatten(table["embedding"]).to_numpy()
        return ids, values.reshape(len(table), -1).astype(np.float32, copy=False)
    try:
        with np.errstate(over="raise"):
            return ids, np.stack([table[name].to_numpy() for name in columns], axis=1).astype(np.float32)
    except FloatingPointError:
        raise ValueError("it has a number beyond float32") from None


def _read_array(path: Path) -> tuple[pa.Array, np.ndarray]:
    z = np.load(path, allow_pickle=False)
    beside = path.with_suffix(IDS_BESIDE[".npy"])
    if not beside.is_file():
        return arrow_ids(np.arange(len(z))), z
    return text_ids(pa.array(beside.read_text(encoding="utf-8").split("\n")[:-1], type=pa.string())), z
