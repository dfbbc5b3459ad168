"""Nodes grouped so that few edges lie between groups: by METIS where it fits, else in passes over the lists."""

from __future__ import annotations

import logging

import numpy as np

from topoter.errors import UsageError
from topoter.kernels.subgraphs import stream_partition
from topoter.structure.large_graph import LargeGraph

_logger = logging.getLogger("topoter")

# METIS takes about 120 bytes for each entry of the lists, so here up to 1 GB. A fixed size, not what happens to be
# free: the same graph and seed must give the same parts everywhere, or a training could not be resumed.
METIS_ENTRIES = 8_000_000
PASSES = 10  # of the streaming partition; more change little
SLACK = 1.05  # how much larger than the mean a part may grow


def partition(graph: LargeGraph, parts: int, seed: int = 0) -> np.ndarray:
    """The part of each node, int32 [N], all parts about as large."""
    if parts <= 1:
        return np.zeros(graph.num_nodes, dtype=np.int32)
    found = _metis(graph, parts, seed) if len(graph.indices) <= METIS_ENTRIES else None
    return stream(graph, parts) if found is None else found


def stream(graph: LargeGraph, parts: int, passes: int = PASSES) -> np.ndarray:
    """The part of each node by linear deterministic greedy streaming: no copy of the graph, linear time."""
    capacity = int(np.ceil(SLACK * graph.num_nodes / parts)) + 1
    return stream_partition(np.asarray(graph.indptr), np.asarray(graph.indices), parts, capacity, passes)


def cut_share(graph: LargeGraph, part: np.ndarray) -> float:
    """The share of the edges whose ends are in different parts."""
    if not len(graph.indices):
        return 0.0
    cut, block = 0, 1 << 16
    for start in range(0, graph.num_nodes, block):
        stop = min(start + block, graph.num_nodes)
        counts = np.diff(graph.indptr[start : stop + 1])
        theirs = part[graph.indices[graph.indptr[start] : graph.indptr[stop]]]
        cut += int(np.count_nonzero(np.repeat(part[start:stop], counts) != theirs))
    return cut / len(graph.indices)


def _metis(graph: LargeGraph, parts: int, seed: int) -> np.ndarray | None:
    try:
        import pymetis
    except ImportError:
        _logger.info('Without METIS the partition is coarser: pip install "topoter[scale]".')
        return None
    options = pymetis.Options(seed=seed % 2**31)
    adjacency = pymetis.CSRAdjacency(np.asarray(graph.indptr), np.asarray(graph.indices))
    try:
        _, part = pymetis.part_graph(parts, adjacency=adjacency, options=options)
    except RuntimeError as error:
        raise UsageError(f"METIS cannot cut the graph into {parts:,} parts: {error}.") from error
    return np.asarray(part, dtype=np.int32)
