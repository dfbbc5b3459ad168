"""Sorted edges to lists of neighbours: what DuckDB's sort gives is made simple and written as it comes."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from topoter.graphs.array_files import ArrayWriter
from topoter.graphs.engine import Engine

_ROWS = 1 << 20  # that are taken from the sort at once


def write_neighbours(engine: Engine, folder: Path, num_nodes: int, weighted: bool) -> tuple[np.ndarray, dict[str, int]]:
    """Write indptr, indices and weight from the table `pairs`; returns the degrees [N] and what was cleaned.

    An edge (a, b) becomes two numbers that sort by their first end, then the second: a N + b and b N + a. One bit
    more tells which of them was given, so that edges given in one direction only can be counted.
    """
    w = ", w" if weighted else ""
    given = f"SELECT 2 * (a::BIGINT * {num_nodes} + b) + 1 AS k{w} FROM pairs WHERE a <> b"
    reverse = f"SELECT 2 * (b::BIGINT * {num_nodes} + a) AS k{w} FROM pairs WHERE a <> b"
    rows = int(engine.value("SELECT count(*) FROM pairs"))
    with ExitStack() as files:
        neighbours = files.enter_context(ArrayWriter(folder / "indices.npy", np.int32))
        weights = files.enter_context(ArrayWriter(folder / "weight.npy", np.float32)) if weighted else None
        merged = _Merged(num_nodes, neighbours, weights)
        for batch in engine.batches(f"{given} UNION ALL {reverse} ORDER BY k", _ROWS):
            merged.add(batch.column(0).to_numpy(), batch.column(1).to_numpy() if weighted else None)
        merged.finish()
    with ArrayWriter(folder / "indptr.npy", np.int64) as writer:
        writer.append(np.concatenate([[0], np.cumsum(merged.degree)]))
    cleaned = {
        "self_loops": rows - merged.given,
        "duplicates": merged.given - merged.distinct,
        "one_way": int(merged.degree.sum()) - merged.distinct,
    }
    return merged.degree, cleaned


@dataclass
class _Merged:
    """Takes sorted keys in pieces, writes each edge once, with the largest of its weights."""

    num_nodes: int
    neighbours: ArrayWriter
    weights: ArrayWriter | None
    given: int = 0  # rows of the input, without self-loops
    distinct: int = 0  # of them, each direction of an edge once
    degree: np.ndarray = field(init=False)
    _held: tuple[np.ndarray, np.ndarray | None] | None = None

    def __post_init__(self) -> None:
        self.degree = np.zeros(self.num_nodes, dtype=np.int64)

    def add(self, keys: np.ndarray, weight: np.ndarray | None) -> None:
        if self._held is not None:
            held_keys, held_weight = self._held
            keys = np.concatenate([held_keys, keys])
            weight = None if weight is None or held_weight is None else np.concatenate([held_weight, weight])
        if not len(keys):
            return
        # The last edge may go on in the next piece: it waits.
        cut = int(np.searchsorted(keys, keys[-1] >> 1 << 1))
        self._held = keys[cut:], None if weight is None else weight[cut:]
        self._write(keys[:cut], None if weight is None else weight[:cut])

    def finish(self) -> None:
        if self._held is not None:
            self._write(*self._held)

    def _write(self, keys: np.ndarray, weight: np.ndarray | None) -> None:
        if not len(keys):
            return
        given = keys[(keys & 1) == 1]
        self.given += len(given)
        self.distinct += int(np.count_nonzero(np.diff(given, prepend=-1)))
        edge = keys >> 1
        first = np.flatnonzero(np.diff(edge, prepend=-1))
        edge = edge[first]
        source = edge // self.num_nodes
        start = int(source[0])
        counts = np.bincount(source - start)
        self.degree[start : start + len(counts)] += counts
        self.neighbours.append(edge - source * self.num_nodes)
        if self.weights is not None and weight is not None:
            self.weights.append(np.maximum.reduceat(weight, first))
