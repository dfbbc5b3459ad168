"""InfoGraph (Sun et al., 2020): tell which graph of a batch a node belongs to, from the embeddings of both."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from topoter.encoders import GIN
from topoter.methods.base import register
from topoter.methods.convolutions import glorot
from topoter.methods.pretrained import PretextModule, PretrainedOnSet
from topoter.pretext.objectives import Loss
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.structure.graph_sets import Batch
from topoter.training.batches import ShuffledBatches
from topoter.weights import linear_layers


class _FeedForward(nn.Module):
    """Three layers with ReLU beside a linear shortcut, as in InfoGraph's code."""

    def __init__(self, channels: int, generator: torch.Generator) -> None:
        super().__init__()
        self.block = linear_layers([channels] * 4)
        (self.shortcut,) = linear_layers([channels] * 2)
        glorot(self, generator)

    def forward(self, h: Tensor) -> Tensor:
        out = h
        for layer in self.block:
            out = torch.relu(layer(out))
        shortcut: Tensor = self.shortcut(h)
        return out + shortcut


class InfoGraph(PretextModule):
    """The mutual information between nodes and their graph, estimated by the Jensen-Shannon bound."""

    def __init__(self, encoder: GIN, seed: int) -> None:
        super().__init__(seed)
        self.encoder = encoder
        encoder.initialize("glorot", self.generator)
        self.of_node = _FeedForward(encoder.out_channels, self.generator)
        self.of_graph = _FeedForward(encoder.out_channels, self.generator)

    def forward(self, x: Features, adjacency: Adjacency) -> Loss:
        """The bound over nodes with their own graph, against the same nodes with the others; lower is better."""
        from torch_geometric.nn import global_add_pool

        assert adjacency.ptr is not None
        graph = torch.repeat_interleave(adjacency.ptr.diff())
        h = self.encoder(x, adjacency)  # [N, F]
        g = global_add_pool(h, graph, adjacency.ptr.numel() - 1)  # [G, F]
        score = self.of_node(h) @ self.of_graph(g).t()  # [N, G]
        own = score.gather(1, graph.unsqueeze(1))
        positive = math.log(2) - functional.softplus(-own).mean()
        others = functional.softplus(score).sum() - functional.softplus(own).sum()
        negative = others / (score.size(0) * (score.size(1) - 1)) - math.log(2)
        return negative - positive, {}


class SeveralGraphs(ShuffledBatches):
    """Batches of two graphs at least: one alone has no others to be told from."""

    def __iter__(self) -> Iterator[Batch]:
        for x, adjacency in super().__iter__():
            if adjacency.ptr is not None and adjacency.ptr.numel() > 2:
                yield x, adjacency


@register("infograph", "graph")
@dataclass(kw_only=True)
class InfoGraphMethod(PretrainedOnSet):
    """InfoGraph with TopoTER's encoder."""

    batches = SeveralGraphs

    def module(self, in_channels: int, seed: int) -> PretextModule:
        return InfoGraph(GIN(in_channels, self.hidden_channels, self.num_layers), seed)
