"""The slow, obviously right versions: dense matrices, loops over pairs, explicit sums, all in float64."""

from __future__ import annotations

import math
from itertools import combinations

import torch
from torch import Tensor

from topoter.structure.adjacency import Adjacency


def random_graph(num_nodes: int, share: float, seed: int, weighted: bool = False) -> Adjacency:
    """A graph in which every pair is connected with probability `share`; node 0 is left without edges."""
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.tensor(list(combinations(range(1, num_nodes), 2))).t().contiguous()
    edges = pairs[:, torch.rand(pairs.size(1), generator=generator) < share]
    weight = torch.rand(edges.size(1), generator=generator) + 0.1 if weighted else None
    return Adjacency(edges, num_nodes, weight)


def batch_of(*graphs: Adjacency) -> Adjacency:
    """Several graphs side by side as one adjacency with `ptr`."""
    ptr = torch.tensor([0, *(graph.num_nodes for graph in graphs)]).cumsum(0)
    edges = torch.cat([graph.edges + start for graph, start in zip(graphs, ptr)], dim=1)
    return Adjacency(edges, int(ptr[-1]), ptr=ptr)


def as_set(pairs: Tensor) -> set[tuple[int, int]]:
    """Pairs [2, P] as a set of tuples."""
    return {(i, j) for i, j in pairs.t().tolist()}


def dense_adjacency(adjacency: Adjacency) -> Tensor:
    """A as a dense matrix, entry by entry."""
    a = torch.zeros(adjacency.num_nodes, adjacency.num_nodes, dtype=torch.float64)
    for place, (i, j) in enumerate(adjacency.edges.t().tolist()):
        a[i, j] = a[j, i] = 1.0 if adjacency.weight is None else float(adjacency.weight[place])
    return a


def dense_propagation(a: Tensor) -> Tensor:
    """D^-1/2 (A + I) D^-1/2."""
    with_loops = a + torch.eye(a.size(0), dtype=a.dtype)
    scale = torch.diag(with_loops.sum(1) ** -0.5)
    return scale @ with_loops @ scale


def all_pairs(sizes: list[int]) -> list[tuple[int, int]]:
    """Every pair i < j inside each graph of a batch, graph by graph, row by row."""
    pairs, start = [], 0
    for size in sizes:
        pairs += [(start + i, start + j) for i, j in combinations(range(size), 2)]
        start += size
    return pairs


def edge_representation(delta_h: Tensor, i: int, j: int) -> list[float]:
    """e_ij = exp{-(dh_i - dh_j)^2} / ||exp{-(dh_i - dh_j)^2}||_1, for one pair."""
    exponents = [-((a - b) ** 2) for a, b in zip(delta_h[i].tolist(), delta_h[j].tolist())]
    top = max(exponents)  # common factor of numerator and denominator
    parts = [math.exp(exponent - top) for exponent in exponents]
    return [part / math.fsum(parts) for part in parts]


def pair_logits(delta_h: Tensor, pairs: Tensor, weight: Tensor, bias: Tensor) -> list[list[float]]:
    """W e_ij + b for every pair."""
    rows = []
    for i, j in pairs.t().tolist():
        e = edge_representation(delta_h, i, j)
        rows.append([math.fsum(w * v for w, v in zip(row, e)) + b for row, b in zip(weight.tolist(), bias.tolist())])
    return rows


def pair_loss(
    delta_h: Tensor, pairs: Tensor, pair_type: Tensor, weight: Tensor, bias: Tensor
) -> tuple[float, list[list[int]]]:
    """The mean of -log softmax(z)[y] over the pairs, and the counts of true against predicted types."""
    losses, confusion = [], [[0] * 4 for _ in range(4)]
    for z, y in zip(pair_logits(delta_h, pairs, weight, bias), pair_type.tolist()):
        losses.append(math.log(math.fsum(math.exp(value) for value in z)) - z[y])
        confusion[y][z.index(max(z))] += 1
    return math.fsum(losses) / len(losses), confusion
