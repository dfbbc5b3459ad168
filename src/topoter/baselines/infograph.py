"""InfoGraph (Sun et al., 2020): tell which graph of a batch a node belongs to, from the embeddings of both."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from topoter.adjacency import Adjacency
from topoter.encoders import GIN, Features, linear_layers
from topoter.errors import TopoterError
from topoter.graph_sets import GraphSet, ShuffledBatches


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

    def loss(self, x: Features, adjacency: Adjacency) -> Tensor:
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
        return negative - positive


def infograph(
    graphs: GraphSet,
    *,
    seed: int,
    hidden_channels: int = 32,
    num_layers: int = 3,
    epochs: int = 20,
    learning_rate: float = 1e-3,
    batch_size: int = 64,
    pooling: str = "sum",
    on_epoch: Callable[[int, float], None] | None = None,
) -> tuple[Tensor, list[float]]:
    """Embeddings [G, F] by InfoGraph, and the mean loss of every epoch."""
    generator = torch.Generator().manual_seed(seed)
    encoder = GIN(graphs.x.size(1), hidden_channels, num_layers)
    encoder.initialize("glorot", generator)
    module = InfoGraph(encoder, generator)
    optimizer = torch.optim.Adam(module.parameters(), lr=learning_rate)
    losses: list[float] = []
    for epoch in range(1, epochs + 1):
        found = []
        for x, adjacency in ShuffledBatches(graphs, batch_size, generator, "cpu"):
            if adjacency.ptr is None or adjacency.ptr.numel() <= 2:
                continue  # a graph alone has no others to be told from
            optimizer.zero_grad(set_to_none=True)
            loss = module.loss(x, adjacency)
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        losses.append(sum(found) / len(found))
        if not math.isfinite(losses[-1]):
            raise TopoterError(f"The loss of InfoGraph became {losses[-1]} in epoch {epoch}.")
        if on_epoch is not None:
            on_epoch(epoch, losses[-1])
    encoder.eval()
    return graphs.embed(encoder, batch_size, pooling), losses
