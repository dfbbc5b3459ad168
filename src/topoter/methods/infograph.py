"""InfoGraph (Sun et al., 2020): tell which graph of a batch a node belongs to, from the embeddings of both."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from topoter.encoders import GIN
from topoter.methods.base import Fitted, Method, register
from topoter.pretext.objectives import Loss
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.structure.graph_sets import Batch, GraphSet, read_graph_set
from topoter.training import TrainingSettings, TrainingState, train
from topoter.training.batches import ShuffledBatches
from topoter.training.callbacks import Callback
from topoter.weights import linear_layers

if TYPE_CHECKING:
    import numpy as np
    from torch_geometric.data import Data


class _FeedForward(nn.Module):
    """Three layers with ReLU beside a linear shortcut, as in InfoGraph's code."""

    def __init__(self, channels: int, generator: torch.Generator) -> None:
        super().__init__()
        self.block = linear_layers([channels] * 4)
        (self.shortcut,) = linear_layers([channels] * 2)
        for layer in (*self.block, self.shortcut):
            nn.init.xavier_uniform_(layer.weight, generator=generator)
            nn.init.zeros_(layer.bias)

    def forward(self, h: Tensor) -> Tensor:
        out = h
        for layer in self.block:
            out = torch.relu(layer(out))
        shortcut: Tensor = self.shortcut(h)
        return out + shortcut


class InfoGraph(nn.Module):
    """The mutual information between nodes and their graph, estimated by the Jensen-Shannon bound."""

    def __init__(self, encoder: GIN, generator: torch.Generator) -> None:
        super().__init__()
        self.encoder = encoder
        self.of_node = _FeedForward(encoder.out_channels, generator)
        self.of_graph = _FeedForward(encoder.out_channels, generator)

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


@register("infograph", "graph")
class InfoGraphMethod(Method):
    """InfoGraph with TopoTER's encoder."""

    def __init__(
        self,
        *,
        hidden_channels: int = 32,
        num_layers: int = 3,
        epochs: int = 20,
        learning_rate: float = 1e-3,
        batch_size: int = 64,
        pooling: str = "sum",
    ) -> None:
        self.hidden_channels, self.num_layers = hidden_channels, num_layers
        self.batch_size, self.pooling = batch_size, pooling
        self.settings = TrainingSettings(epochs, None, learning_rate, keep=None)

    def fit(self, graph: list[Data], seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        graphs, _ = GraphSet.from_graphs(read_graph_set(graph))
        generator = torch.Generator().manual_seed(seed)
        encoder = GIN(graphs.x.size(1), self.hidden_channels, self.num_layers)
        encoder.initialize("glorot", generator)
        state = TrainingState.start(InfoGraph(encoder, generator), self.settings, {"generator": generator})
        train(state, SeveralGraphs(graphs, self.batch_size, generator, "cpu"), callbacks)
        encoder.eval()

        def embed(others: list[Data]) -> np.ndarray:
            graph_set, _ = GraphSet.from_graphs(read_graph_set(others))
            return graph_set.embed(encoder, self.batch_size, self.pooling).numpy()

        return Fitted(embedding=embed, history=state.history)


class SeveralGraphs(ShuffledBatches):
    """Batches of two graphs at least: one alone has no others to be told from."""

    def __iter__(self) -> Iterator[Batch]:
        for x, adjacency in super().__iter__():
            if adjacency.ptr is not None and adjacency.ptr.numel() > 2:
                yield x, adjacency
