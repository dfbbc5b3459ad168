"""Natural graph networks (de Haan, Cohen and Welling, 2020), in their form with a graph network for messages (GCN^2).

A node q has a feature v[q, u] for every node u of its neighbourhood (itself and its neighbours), not one that forgets
which neighbour is which. The message from p to q is a graph convolution on the union of both neighbourhoods, of p's
features and two marks that say which nodes p and q are. Its weights are shared by all edges, so that isomorphic
surroundings give the same message: this is naturality.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn

from topoter.methods.base import register
from topoter.methods.labelled_graphs import GraphClassifier, LabelledGraphs
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.structure.graph_sets import pool


@dataclass(frozen=True)
class Surroundings:
    """The neighbourhoods of a graph's nodes and of its edges, numbered.

    Args:
        node, near: of each place (q, u) the node q and its neighbour u, itself included, [places].
        place_in, place_out: of each member u of the surroundings of an edge p -> q the places (p, u) and (q, u), or the
            number of places where u is no neighbour [members].
        marks: whether a member is p, and whether it is q, [members, 2].
        edges: between members of the same surroundings, self-loops included, [2, E].
        weight: D^-1/2 (A + I) D^-1/2 of each surroundings, [E].
    """

    node: Tensor
    near: Tensor
    place_in: Tensor
    place_out: Tensor
    marks: Tensor
    edges: Tensor
    weight: Tensor

    @classmethod
    def of(cls, adjacency: Adjacency) -> Surroundings:
        """Those of a batch of graphs, edges p -> q in both directions and p = q."""
        size = adjacency.num_nodes
        operator = adjacency.summed
        ones = np.ones(operator.indices.numel(), np.int8)
        shape = (size, size)
        matrix = sparse.csr_matrix((ones, operator.indices.numpy(), operator.indptr.numpy()), shape=shape)
        closed = (matrix + sparse.identity(size, np.int8, format="csr")).tocsr()
        closed.sort_indices()
        node, near = closed.nonzero()
        places = node.astype(np.int64) * size + near  # increasing
        # Edges p -> q are numbered like places: p is the neighbour, q the node.
        union = (closed[near] + closed[node]).tocsr()  # [edges, nodes]
        edge, member = union.nonzero()
        p, q = near[edge], node[edge]
        keys = edge.astype(np.int64) * size + member
        order = np.argsort(keys)
        edge, member, p, q, keys = edge[order], member[order], p[order], q[order], keys[order]
        starts, ends = closed.indptr[member], closed.indptr[member + 1]
        count = ends - starts
        source = np.repeat(np.arange(len(member)), count)
        inside = np.arange(count.sum()) - np.repeat(count.cumsum() - count, count)
        other = closed.indices[np.repeat(starts, count) + inside]
        wanted = edge[source].astype(np.int64) * size + other
        target = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        found = keys[target] == wanted
        source, target = source[found], target[found]
        degree = np.bincount(source, minlength=len(member))
        weight = 1 / np.sqrt(degree[source] * degree[target])
        return cls(
            torch.from_numpy(node.astype(np.int64)),
            torch.from_numpy(near.astype(np.int64)),
            torch.from_numpy(_place(places, p.astype(np.int64) * size + member)),
            torch.from_numpy(_place(places, q.astype(np.int64) * size + member)),
            torch.from_numpy(np.stack([member == p, member == q], axis=1)).float(),
            torch.from_numpy(np.stack([source, target]).astype(np.int64)),
            torch.from_numpy(weight).float(),
        )


def _place(places: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    found = np.minimum(np.searchsorted(places, wanted), len(places) - 1)
    return np.where(places[found] == wanted, found, len(places))


class NaturalLayer(nn.Module):
    """v[q, u] from the sum over p of messages, each two graph convolutions on the surroundings of p -> q."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.first = nn.Linear(in_channels + 2, out_channels)
        self.second = nn.Linear(out_channels, out_channels)
        self.own = nn.Linear(in_channels, out_channels)
        self.norm = nn.BatchNorm1d(out_channels)

    def forward(self, v: Tensor, around: Surroundings) -> Tensor:
        missing = v.new_zeros(1, v.size(1))  # a member that is no neighbour of p has no feature there
        at_members = torch.cat([v, missing]).index_select(0, around.place_in)
        h = torch.relu(_convolve(self.first(torch.cat([at_members, around.marks], dim=1)), around))
        h = _convolve(self.second(h), around)
        received = h.new_zeros(len(v) + 1, h.size(1)).index_add(0, around.place_out, h)[:-1]
        out: Tensor = torch.relu(self.norm(received + self.own(v)))
        return out


def _convolve(h: Tensor, around: Surroundings) -> Tensor:
    source, target = around.edges
    return torch.zeros_like(h).index_add(0, target, h.index_select(0, source) * around.weight.unsqueeze(1))


class NaturalNetwork(GraphClassifier):
    """Layers, then a node is the sum over its places, a graph that over its nodes; classified after every layer."""

    def __init__(
        self, in_channels: int, hidden_channels: int, num_layers: int, num_classes: int, *, pooling: str,
        dropout: float, seed: int,
    ) -> None:  # fmt: skip
        widths = [in_channels, *[hidden_channels] * num_layers]
        super().__init__(nn.ModuleList(), widths, num_classes, pooling=pooling, dropout=dropout, seed=seed)
        self.natural = nn.ModuleList(NaturalLayer(*pair) for pair in pairwise(widths))

    def outputs(self, x: Features, adjacency: Adjacency) -> list[Tensor]:
        around = Surroundings.of(adjacency)
        v = cast("Tensor", x).index_select(0, around.near)  # at (q, u) the features of u
        outputs = [cast("Tensor", x)]
        for layer in self.natural:
            v = layer(v, around)
            outputs.append(pool(v, torch.cat([v.new_zeros(1).long(), torch.bincount(around.node).cumsum(0)]), "sum"))
        return outputs


@register("ngn", "graph")
class NaturalGraphNetwork(LabelledGraphs):
    """A natural graph network, trained and chosen like the other networks with labels."""

    def module(self, in_channels: int, num_classes: int, seed: int) -> GraphClassifier:
        return NaturalNetwork(
            in_channels,
            self.hidden_channels,
            self.num_layers,
            num_classes,
            pooling=self.pooling,
            dropout=self.dropout,
            seed=seed,
        )
