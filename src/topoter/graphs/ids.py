"""Node ids: integers or strings, as Arrow arrays, so that ten million are numbered without a Python loop."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
import torch

from topoter.errors import DataError, UsageError
from topoter.graphs.arrow import pa, pc

NodeIds: TypeAlias = "np.ndarray | list[str]"

# 007 and 7 are different ids: only what survives the way to an integer and back is read as one.
PLAIN_INTEGER = r"^(0|-?[1-9][0-9]{0,18})$"


def text_ids(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Ids given as text: 64-bit integers if every one is a plain integer, else strings, trimmed."""
    column = pc.utf8_trim_whitespace(column.cast(pa.string()))
    plain = pc.all(pc.match_substring_regex(column, PLAIN_INTEGER)).as_py()
    try:
        return column.cast(pa.int64()) if plain else column
    except pa.ArrowInvalid:  # beyond 64 bits
        return column


def arrow_ids(ids: Sequence[object] | np.ndarray | torch.Tensor) -> pa.Array:
    """A user's sequence of ids as an Arrow array: integers stay integers, anything else becomes text."""
    if isinstance(ids, torch.Tensor):
        ids = ids.cpu().numpy()
    if isinstance(ids, np.ndarray) and np.issubdtype(ids.dtype, np.integer):
        return pa.array(ids.astype(np.int64))
    ids = list(ids)
    if ids and all(isinstance(value, (int, np.integer)) and not isinstance(value, bool) for value in ids):
        return pa.array(np.asarray(ids, dtype=np.int64))
    if ids and all(isinstance(value, float) and value.is_integer() for value in ids):  # pandas after a gap in a join
        return pa.array(np.asarray(ids, dtype=np.float64).astype(np.int64))
    return pa.array([str(value) for value in ids], type=pa.string())


def user_ids(ids: pa.Array) -> NodeIds:
    """The ids as they leave the library: a NumPy array of integers, or a list of strings."""
    if pa.types.is_integer(ids.type):
        return np.require(ids.to_numpy(zero_copy_only=False), requirements="W")  # Arrow's memory is read-only
    return ids.to_pylist()


def same_type(*columns: pa.ChunkedArray | pa.Array) -> list[pa.ChunkedArray | pa.Array]:
    """Make ids comparable: all integers, or all strings as soon as one column holds strings."""
    common = pa.int64() if all(pa.types.is_integer(column.type) for column in columns) else pa.string()
    return [column.cast(common) for column in columns]


def sorted_unique(*columns: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Every id once, in ascending order (so the order of the lines in a file does not matter)."""
    chunks = [chunk for column in columns for chunk in getattr(column, "chunks", [column])]
    unique = pc.unique(pa.chunked_array(chunks, type=columns[0].type))
    return unique.take(pc.sort_indices(unique))


def positions(ids: pa.ChunkedArray | pa.Array, among: pa.Array) -> np.ndarray:
    """Where each id stands in `among`, as 64-bit integers; -1 where it does not."""
    found = pc.index_in(ids, value_set=among)
    return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)


def rows_of_nodes(nodes: Sequence[object] | np.ndarray, node_ids: NodeIds) -> np.ndarray:
    """The rows of nodes that are asked for by their ids."""
    if isinstance(nodes, (str, bytes)) or not isinstance(nodes, Iterable):
        raise UsageError(f"nodes must be a list of node ids. Got {nodes!r} instead: give [{nodes!r}].")
    asked, known = same_type(arrow_ids(nodes), arrow_ids(node_ids))
    rows = positions(asked, known)
    if (rows < 0).any():
        missing = asked[int((rows < 0).argmax())].as_py()
        raise DataError(f"Node {missing!r} is not in the graph, whose ids are like {known[0].as_py()!r}.")
    return rows


def keys_of(node_ids: NodeIds) -> np.ndarray:
    """A 64-bit number for every id, by which a model file knows a node again without telling who it is, [N]."""
    written = (str(each).encode() for each in arrow_ids(node_ids).to_pylist())
    digests = b"".join(hashlib.blake2b(each, digest_size=8).digest() for each in written)
    return np.frombuffer(digests, dtype=np.int64).copy()
