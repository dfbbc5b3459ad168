"""From ranks among the disconnected pairs to the pairs themselves, in one walk over both sorted lists."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from topoter.kernels.compiled import compile_kernel, run


def pairs_of_ranks(rank: Tensor, disconnected_before_edge: Tensor, ptr: Tensor) -> Tensor:
    """The disconnected pairs with these ranks (sorted), [2, K].

    Args:
        disconnected_before_edge: how many disconnected pairs come before each edge; increasing.
        ptr: where each graph of the batch starts.
    """
    return torch.from_numpy(
        run("sampler", _pairs_of_ranks, rank.numpy(), disconnected_before_edge.numpy(), ptr.numpy())
    )


@compile_kernel()
def _pairs_of_ranks(rank, disconnected_before_edge, ptr):  # type: ignore[no-untyped-def]
    pairs = np.empty((2, rank.shape[0]), dtype=np.int64)
    graph, edges_before = 0, 0
    row, row_start = ptr[0], 0  # the first node of the pairs under way, and the number of its first pair
    for place in range(rank.shape[0]):
        while (
            edges_before < disconnected_before_edge.shape[0] and disconnected_before_edge[edges_before] <= rank[place]
        ):
            edges_before += 1
        number = rank[place] + edges_before
        while number - row_start >= ptr[graph + 1] - row - 1:  # pairs (row, j) with j > row in the same graph
            row_start += ptr[graph + 1] - row - 1
            row += 1
            while row == ptr[graph + 1]:  # graphs without nodes are passed over
                graph += 1
        pairs[0, place] = row
        pairs[1, place] = row + 1 + number - row_start
    return pairs
