"""The sampler's loops: each one walk over sorted lists, where PyTorch would search, sort or gather."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from topoter.kernels.buffers import empty
from topoter.kernels.compiled import compile_kernel, run

_BUCKETS = 4096
_NO_WEIGHTS = np.empty(0, dtype=np.float32)


def spread_gaps(gaps: Tensor, first: Tensor, size: Tensor, count: Tensor) -> Tensor:
    """Numbers [sum of count] that part each range [first[g], first[g] + size[g]) as its count[g] + 1 gaps do.

    The gaps of all ranges stand one after another; their sign does not matter. They are used up.
    """
    drawn = empty(int(count.sum()), dtype=torch.int64)
    run("draw", _spread_gaps, *(array.numpy() for array in (gaps, first, size, count, drawn)))
    return drawn


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
    kept, added = (empty(whole.size(1) + 1, dtype=torch.int64) for whole in (edges, pairs))
    arrays = (edges, flip_edge, kept, pairs, flip_pair, added, flipped)
    run("flip", _flip_pairs, *(array.numpy() for array in arrays), *weights)
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
def _spread_gaps(gaps, first, size, count, drawn):  # type: ignore[no-untyped-def]
    reached = gaps
    for gap in range(1, gaps.shape[0]):
        reached[gap] += reached[gap - 1]
    before, start, place = 0.0, 0, 0
    for group in range(count.shape[0]):
        end = start + count[group]
        stretch = size[group] / (reached[end] - before)
        for gap in range(start, end):
            inside = min(max(int((reached[gap] - before) * stretch), 0), size[group] - 1)
            drawn[place + gap - start] = first[group] + inside
        before, start, place = reached[end], end + 1, place + count[group]


# Which of two sorted lists comes next, and what is flipped, is random: a branch on it would be guessed wrong half the
# time. So the loops below write whatever may come next, and move on only past what was right.


@compile_kernel()
def _pairs_of_ranks(rank, disconnected_before_edge, ptr, pairs):  # type: ignore[no-untyped-def]
    number = pairs[1]  # of each pair; then its second node, in the same place
    place, edges_before = 0, 0
    while place < rank.shape[0] and edges_before < disconnected_before_edge.shape[0]:
        edge_first = disconnected_before_edge[edges_before] <= rank[place]
        number[place] = rank[place] + edges_before
        edges_before += edge_first
        place += not edge_first
    while place < rank.shape[0]:
        number[place] = rank[place] + edges_before
        place += 1
    graph = 0
    row, row_start = ptr[0], 0  # the first node of the pairs under way, and the number of its first pair
    for place in range(rank.shape[0]):
        while number[place] - row_start >= ptr[graph + 1] - row - 1:  # pairs (row, j) with j > row in the same graph
            row_start += ptr[graph + 1] - row - 1
            row += 1
            while row == ptr[graph + 1]:  # graphs without nodes are passed over
                graph += 1
        pairs[0, place] = row
        pairs[1, place] = row + 1 + number[place] - row_start


@compile_kernel()
def _flip_pairs(edges, flip_edge, kept, pairs, flip_pair, added, flipped, weight, flipped_weight):  # type: ignore[no-untyped-def]
    weighted = weight.shape[0] > 0
    # First what is left of both lists, each pair as one number.
    kept_weight = np.empty(weight.shape[0] + 1, dtype=weight.dtype)
    num_kept = 0
    for edge in range(edges.shape[1]):
        kept[num_kept] = (edges[0, edge] << 32) | edges[1, edge]
        if weighted:
            kept_weight[num_kept] = weight[edge]
        num_kept += not flip_edge[edge]
    num_added = 0
    for pair in range(pairs.shape[1]):
        added[num_added] = (pairs[0, pair] << 32) | pairs[1, pair]
        num_added += flip_pair[pair]
    # Then one list after the other has nothing left: a number above all others stands at its end.
    kept[num_kept] = added[num_added] = np.iinfo(np.int64).max
    edge, pair = 0, 0
    for place in range(flipped.shape[1]):
        is_new = added[pair] < kept[edge]
        number = added[pair] if is_new else kept[edge]
        flipped[0, place], flipped[1, place] = number >> 32, number & 0xFFFFFFFF
        if weighted:
            flipped_weight[place] = np.float32(1) if is_new else kept_weight[edge]
        pair += is_new
        edge += not is_new


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
