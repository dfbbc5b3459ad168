"""CensNet-VAE (Jiang et al., 2020): nodes and edges are embedded in turn, each weighing the other's neighbours.

A node layer is a graph convolution in which the weight of a neighbour is learned from the edge between them. An edge
layer is one on the line graph, whose nodes are the edges, in which two edges weigh by the node that they share. The
autoencoder has a node layer, an edge layer and a node layer, which gives means and deviations as in VGAE.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from topoter.kernels.sparse import SparseOperator
from topoter.methods.base import register
from topoter.methods.link_encoder import LinkEncoder
from topoter.methods.links import LinkLearner, LinkSettings
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features


@dataclass(frozen=True)
class CoEmbeddingSettings(LinkSettings):
    """As in `LinkSettings`; `edge_channels` are those of an edge between the node layers."""

    edge_channels: int = 8


class CoEncoder(LinkEncoder):
    """Two node layers with an edge layer between them.

    Args:
        known: the training graph, whose edges have features [M, 2]: 1 and the cosine distance of the two ends'
            features. An edge that is not in it has 1 and 0.
    """

    known: Tensor
    distance: Tensor

    def __init__(self, x: Features, known: Adjacency, settings: CoEmbeddingSettings) -> None:
        hidden, edge_channels = settings.hidden_channels, settings.edge_channels
        super().__init__(x.shape[1], hidden, 2 * settings.out_channels, settings.activation, settings.batch_norm)
        self.register_buffer("known", known.keys, persistent=False)
        self.register_buffer("distance", cosine_distance(x, known), persistent=False)
        # Weights of neighbours start at 1: the first step is VGAE's.
        self.of_edge = nn.Parameter(torch.tensor([1.0, 0.0]))
        self.of_node = nn.Parameter(torch.zeros(hidden))
        self.of_edge_after = nn.Parameter(torch.zeros(edge_channels))
        self.edge_map = nn.Linear(2, edge_channels)

    def first(self, signal: Tensor, adjacency: Adjacency) -> Tensor:
        weight = self.edge_features(adjacency) @ self.of_edge
        return self.activation(self.norm(node_layer(signal, adjacency, weight) + self.layers[0].bias))

    def second(self, hidden: Tensor, adjacency: Adjacency) -> Tensor:
        edges = self.edge_map(self.edge_features(adjacency))
        edges = torch.relu(edge_layer(edges, adjacency, 1 + hidden @ self.of_node))
        last = self.layers[1]
        return node_layer(hidden @ last.weight.t(), adjacency, 1 + edges @ self.of_edge_after) + last.bias

    def edge_features(self, adjacency: Adjacency) -> Tensor:
        """[M, 2], of the edges of a graph on the same nodes."""
        place = torch.searchsorted(self.known, adjacency.keys).clamp(max=max(self.known.numel() - 1, 0))
        distance = torch.where(self.known[place] == adjacency.keys, self.distance[place], torch.zeros(()))
        return torch.stack([torch.ones_like(distance), distance], dim=1)


def node_layer(signal: Tensor, adjacency: Adjacency, weight: Tensor) -> Tensor:
    """D^-1/2 (A + I) D^-1/2 with every edge's entry times its weight [M], times the signal [N, F]."""
    source, target = adjacency.edge_index
    scale = (torch.bincount(source, minlength=adjacency.num_nodes) + 1).to(signal).rsqrt()
    entry = scale[source] * scale[target] * torch.cat([weight, weight])
    messages = signal.index_select(0, source) * entry.unsqueeze(1)
    return (signal * scale.square().unsqueeze(1)).index_add(0, target, messages)


def edge_layer(h: Tensor, adjacency: Adjacency, weight: Tensor) -> Tensor:
    """The same on the line graph: of edges h [M, F], where two edges weigh by the node they share, weight [N].

    The line graph is never built: what edges at a node have together is summed up there once.
    """
    i, j = adjacency.edges
    degree = torch.bincount(adjacency.edges.flatten(), minlength=adjacency.num_nodes)
    scale = (degree[i] + degree[j] - 1).to(h).rsqrt().unsqueeze(1)  # edges that share an end, and the edge itself
    scaled = h * scale
    at_node = h.new_zeros(adjacency.num_nodes, h.size(1)).index_add(0, i, scaled).index_add(0, j, scaled)
    others = sum(weight[end].unsqueeze(1) * (at_node[end] - scaled) for end in (i, j))
    return scale * (others + scaled)


def cosine_distance(x: Features, adjacency: Adjacency) -> Tensor:
    """1 - the cosine between the features of an edge's two ends, [M], as in the authors' code."""
    dense = x @ torch.eye(x.shape[1]) if isinstance(x, SparseOperator) else x
    unit = nn.functional.normalize(dense.float(), dim=1)
    i, j = adjacency.edges
    return 1 - torch.cat([(unit[a] * unit[b]).sum(1) for a, b in zip(i.split(4096), j.split(4096))])


@register("censnet-vae", "link", pretraining_epochs=0, variational=True)
class CensNetVAE(LinkLearner):
    """A variational autoencoder that embeds nodes and edges in turn."""

    settings_type = CoEmbeddingSettings

    def encoder(self, x: Features, adjacency: Adjacency, settings: LinkSettings) -> LinkEncoder:
        assert isinstance(settings, CoEmbeddingSettings)
        return CoEncoder(x, adjacency, settings)
