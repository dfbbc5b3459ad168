"""The sampler's loops: each one walk over sorted lists, where PyTorch would search, sort or gather."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from topoter.kernels.buffers import empty
from topoter.kernels.compiled import compile_kernel, run

_BUCKETS = 4096
_NO_WEIGHTS = np.empty(0, dtype=np.float32)


def pairs_of_ranks(rank: Tensor, disconnected_before_edge: Tensor, ptr: Tensor) -> Tensor:
    """The disconnected pairs with these ranks (sorted), [2, K].

    Args:
        disconnected_before_edge: how many disconnected pairs come before each edge; increasing.
        ptr: where each graph of the batch starts.
    """
    pairs = empty(2, rank.numel(), dtype=torch.int64)
    run("sampler", _pairs_of_ranks, rank.numpy(), disconnected_before_edge.numpy(), ptr.numpy(), pairs.numpy())
    return pairs


def flip_pairs(
    edges: Tensor, weight: Tensor | None, flip_edge: Tensor, pairs: Tensor, flip_pair: Tensor
) -> tuple[Tensor, Tensor | None]:
    """Sorted edges [2, M] without the flipped ones and with the flipped ones of other sorted pairs [2, K], sorted.

    Also their weights, if there are any: 1 for what is new.
    """
    size = edges.size(1) - np.count_nonzero(flip_edge.numpy()) + np.count_nonzero(flip_pair.numpy())
    flipped = empty(2, size, dtype=torch.int64)
    flipped_weight = None if weight is None else weight.new_empty(size)
    weights = [_NO_WEIGHTS if values is None else values.numpy() for values in (weight, flipped_weight)]
    arrays = (edges.numpy(), flip_edge.numpy(), pairs.numpy(), flip_pair.numpy(), flipped.numpy())
    run("flip", _flip_pairs, *arrays, *weights)
    return flipped, flipped_weight


def join_pairs(
    disconnected: Tensor, flip_disconnected: Tensor, connected: Tensor, flip_connected: Tensor
) -> tuple[Tensor, Tensor]:
    """Disconnected and connected pairs as one list, [2, K + M], and what a flip of the marked ones does to each."""
    size = disconnected.size(1) + connected.size(1)
    pairs, pair_type = empty(2, size, dtype=torch.int64), empty(size, dtype=torch.int64)
    arrays = (disconnected, flip_disconnected, connected, flip_connected, pairs, pair_type)
    run("join", _join_pairs, *(array.numpy() for array in arrays))
    return pairs, pair_type


def mark_smallest(keys: Tensor, wanted: int) -> Tensor:
    """Mark the keys, drawn uniformly from [0, 1), that are no larger than the `wanted`-th smallest one."""
    marked = empty(keys.numel(), dtype=torch.bool)
    run("selection", _mark_smallest, keys.numpy(), wanted, marked.numpy())
    return marked


@compile_kernel()
def _pairs_of_ranks(rank, disconnected_before_edge, ptr, pairs):  # type: ignore[no-untyped-def]
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


@compile_kernel()
def _flip_pairs(edges, flip_edge, pairs, flip_pair, flipped, weight, flipped_weight):  # type: ignore[no-untyped-def]
    num_edges, num_pairs, size = edges.shape[1], pairs.shape[1], flipped.shape[1]
    weighted = weight.shape[0] > 0
    edge, pair, place = 0, 0, 0
    # Which list comes next and what is flipped are random: instead of branches that cannot be foreseen, the next of
    # both lists is written to the next place, and the place moves on only past what is an edge now.
    while place < size and edge < num_edges and pair < num_pairs:
        i, j = edges[0, edge], edges[1, edge]
        a, b = pairs[0, pair], pairs[1, pair]
        pair_first = (a < i) | ((a == i) & (b < j))
        flipped[0, place] = a if pair_first else i
        flipped[1, place] = b if pair_first else j
        if weighted:
            flipped_weight[place] = np.float32(1) if pair_first else weight[edge]
        place += (pair_first & flip_pair[pair]) | (~pair_first & ~flip_edge[edge])
        pair += pair_first
        edge += ~pair_first
    while place < size and edge < num_edges:
        flipped[0, place], flipped[1, place] = edges[0, edge], edges[1, edge]
        if weighted:
            flipped_weight[place] = weight[edge]
        place += not flip_edge[edge]
        edge += 1
    while place < size:
        flipped[0, place], flipped[1, place] = pairs[0, pair], pairs[1, pair]
        if weighted:
            flipped_weight[place] = 1
        place += flip_pair[pair]
        pair += 1


@compile_kernel()
def _join_pairs(disconnected, flip_disconnected, connected, flip_connected, pairs, pair_type):  # type: ignore[no-untyped-def]
    split = disconnected.shape[1]
    for end in range(2):
        pairs[end, :split] = disconnected[end]
        pairs[end, split:] = connected[end]
    # The numbers of `EdgeChange`: add 0, delete 1, keep disconnected 2, keep connected 3.
    for pair in range(split):
        pair_type[pair] = 2 - 2 * flip_disconnected[pair]
    for pair in range(connected.shape[1]):
        pair_type[split + pair] = 3 - 2 * flip_connected[pair]


@compile_kernel()
def _mark_smallest(keys, wanted, marked):  # type: ignore[no-untyped-def]
    # The keys are uniform, so equal buckets hold about equally many: only the border's bucket need be looked into.
    counts = np.zeros(_BUCKETS, dtype=np.int64)
    for place in range(keys.shape[0]):
        counts[int(keys[place] * _BUCKETS)] += 1
    bucket, below = 0, 0
    while below + counts[bucket] < wanted:
        below += counts[bucket]
        bucket += 1
    inside = np.empty(counts[bucket], dtype=np.float64)
    found = 0
    for place in range(keys.shape[0]):
        if int(keys[place] * _BUCKETS) == bucket:
            inside[found] = keys[place]
            found += 1
    inside.sort()
    border = inside[wanted - below - 1]
    for place in range(keys.shape[0]):
        marked[place] = keys[place] <= border
