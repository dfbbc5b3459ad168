"""The rows that point most nearly the same way, without a table of all pairs: products by blocks, the best few kept.

A block of products says as much of its columns as of its rows, so each pair of rows is multiplied once. Of every block
only what is larger than the least of those kept so far is looked at again.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from topoter.kernels import use_compiled
from topoter.kernels.compiled import compile_kernel, num_threads, run, run_parallel

_BLOCK = 1024  # rows; their products with as many others take 4 MB
_STRIDE = 32  # products that are compared at once
_ENTRIES = 1 << 24  # of the products of the twin's blocks: 64 MB


def nearest(unit: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """For each row the largest products with other rows, as far as they are above 0, and which rows they are.

    Args:
        unit: [N, K].

    Returns values [N, count], 0 where there is none, and rows [N, count].
    """
    if not use_compiled(unit):
        return nearest_plain(unit, count)
    num_rows = len(unit)
    best = torch.zeros(num_rows, count)
    place = torch.zeros(num_rows, count, dtype=torch.int32)
    if not count:
        return best, place
    kept = best.numpy(), place.numpy(), np.zeros(num_rows, dtype=np.float32)
    blocks = unit.split(_BLOCK)
    for a, rows in enumerate(blocks):
        for b, columns in enumerate(blocks[: a + 1]):
            products = (rows @ columns.t()).numpy()
            for kernel, length in ((_keep_of_rows, len(rows)), (_keep_of_columns, len(columns)))[: 1 + (a != b)]:
                cuts = [length * part // num_threads() for part in range(num_threads() + 1)]
                calls = [(*cut, products, a * _BLOCK, b * _BLOCK, *kept) for cut in pairwise(cuts)]
                run_parallel("nearest rows", kernel, calls)
    return best, place


def nearest_plain(unit: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The twin: all products of a block of rows, on any device."""
    num_rows = len(unit)
    values, places = [], []
    for start in range(0, num_rows, max(_ENTRIES // max(num_rows, 1), 1)):
        rows = torch.arange(start, min(start + max(_ENTRIES // num_rows, 1), num_rows), device=unit.device)
        products = unit[rows] @ unit.t()
        products[torch.arange(len(rows), device=unit.device), rows] = 0  # not its own neighbour
        found = products.topk(count, dim=1)
        values.append(found.values.clamp(min=0))
        places.append(found.indices.int())
    return torch.cat(values), torch.cat(places)


def joined_both_ways(value: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
    """Every pair that one of its two rows has among its nearest, as sorted edges [2, M] with their values [M]."""
    if use_compiled(value):
        found = run("join of nearest rows", _join, value.numpy(), place.numpy())
        return torch.from_numpy(found[0]), torch.from_numpy(found[1])
    num_rows = len(value)
    source = torch.arange(num_rows, device=value.device).repeat_interleave(value.size(1))
    kept = value.view(-1) > 0
    source, target, values = source[kept], place.view(-1)[kept].long(), value.view(-1)[kept]
    keys, order = (torch.minimum(source, target) * num_rows + torch.maximum(source, target)).sort()
    first = torch.ones_like(keys, dtype=torch.bool)
    first[1:] = keys.diff() > 0
    keys = keys[first]
    return torch.stack([keys // num_rows, keys % num_rows]), values[order[first]]


@compile_kernel()
def _keep_of_rows(start, stop, products, first_row, first_column, best, place, least):  # type: ignore[no-untyped-def]
    width = products.shape[1]
    for row in range(start, stop):
        node, line = first_row + row, products[row]
        for begin in range(0, width, _STRIDE):
            end = min(begin + _STRIDE, width)
            bound, above = least[node], 0
            for column in range(begin, end):
                above += line[column] > bound
            if above:
                for column in range(begin, end):
                    if line[column] > least[node] and first_column + column != node:
                        _insert(best[node], place[node], line[column], first_column + column)
                        least[node] = best[node, 0]


@compile_kernel()
def _keep_of_columns(start, stop, products, first_row, first_column, best, place, least):  # type: ignore[no-untyped-def]
    bound = least[first_column : first_column + products.shape[1]]
    for row in range(products.shape[0]):
        line = products[row]
        for begin in range(start, stop, _STRIDE):
            end = min(begin + _STRIDE, stop)
            above = 0
            for column in range(begin, end):
                above += line[column] > bound[column]
            if above:
                for column in range(begin, end):
                    if line[column] > bound[column]:
                        node = first_column + column
                        _insert(best[node], place[node], line[column], first_row + row)
                        bound[column] = best[node, 0]


@compile_kernel(inline=True)
def _insert(best, place, value, which):  # type: ignore[no-untyped-def]
    """Put a value in the place of the least, which stands first: a heap."""
    count, at = best.shape[0], 0
    while True:
        child = 2 * at + 1
        if child >= count:
            break
        if child + 1 < count and best[child + 1] < best[child]:
            child += 1
        if value <= best[child]:
            break
        best[at], place[at] = best[child], place[child]
        at = child
    best[at], place[at] = value, which


@compile_kernel()
def _join(value, place):  # type: ignore[no-untyped-def]
    num_rows, count = value.shape
    # An edge is listed by its lower row, or where that has not chosen it by the other one.
    start = np.zeros(num_rows + 1, dtype=np.int64)
    listed = np.zeros((num_rows, count), dtype=np.bool_)
    for i in range(num_rows):
        for c in range(count):
            if value[i, c] > 0:
                j, mutual = place[i, c], False
                if j < i:
                    for other in range(count):
                        mutual |= place[j, other] == i and value[j, other] > 0
                if not mutual:
                    listed[i, c] = True
                    start[min(i, j) + 1] += 1
    for i in range(num_rows):
        start[i + 1] += start[i]
    edges = np.empty((2, start[num_rows]), dtype=np.int64)
    weight = np.empty(start[num_rows], dtype=np.float32)
    filled = start[:-1].copy()
    for i in range(num_rows):
        for c in range(count):
            if listed[i, c]:
                low, high = min(i, place[i, c]), max(i, place[i, c])
                at = filled[low]
                while at > start[low] and edges[1, at - 1] > high:  # few: sorted as they come
                    edges[1, at], weight[at] = edges[1, at - 1], weight[at - 1]
                    at -= 1
                edges[0, filled[low]], edges[1, at], weight[at] = low, high, value[i, c]
                filled[low] += 1
    return edges, weight
