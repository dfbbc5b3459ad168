"""From a list of edges to the CSR matrix of an undirected graph, by counting instead of sorting."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from topoter.kernels.compiled import compile_kernel, run


def symmetric_csr(
    edges: Tensor, weight: Tensor | None, num_nodes: int, self_loops: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """indptr, indices and values of A, or with `self_loops` of D^-1/2 (A + I) D^-1/2; linear in nodes and edges."""
    weights = np.empty(0, dtype=np.float32) if weight is None else weight.float().numpy()
    arrays = run("adjacency", _symmetric_csr, edges[0].numpy(), edges[1].numpy(), weights, num_nodes, self_loops)
    indptr, indices, values = (torch.from_numpy(array) for array in arrays)
    return indptr, indices, values


@compile_kernel()
def _symmetric_csr(source, target, weight, num_nodes, self_loops):  # type: ignore[no-untyped-def]
    num_edges = source.shape[0]
    loops = 1 if self_loops else 0
    weighted = weight.shape[0] > 0
    indptr = np.zeros(num_nodes + 1, dtype=np.int64)
    degree = np.full(num_nodes, np.float32(loops))
    for edge in range(num_edges):
        i, j = source[edge], target[edge]
        w = weight[edge] if weighted else np.float32(1)
        indptr[i + 1] += 1
        indptr[j + 1] += 1
        degree[i] += w
        degree[j] += w
    for node in range(num_nodes):
        indptr[node + 1] += indptr[node] + loops
    indices = np.empty(2 * num_edges + loops * num_nodes, dtype=np.int32)
    values = np.empty(indices.shape[0], dtype=np.float32)
    scale = np.ones(num_nodes, dtype=np.float32)
    cursor = indptr[:-1].copy()
    if self_loops:
        for node in range(num_nodes):
            scale[node] = np.float32(1) / np.sqrt(degree[node])
            place = cursor[node]
            indices[place] = node
            values[place] = scale[node] * scale[node]
            cursor[node] = place + 1
    for edge in range(num_edges):
        i, j = source[edge], target[edge]
        value = scale[i] * scale[j]
        if weighted:
            value *= weight[edge]
        place = cursor[i]
        indices[place] = j
        values[place] = value
        cursor[i] = place + 1
        place = cursor[j]
        indices[place] = i
        values[place] = value
        cursor[j] = place + 1
    return indptr, indices, values
