"""The plain twin: TopoTER's step with PyG's layers and PyTorch's operations, nothing of ours but the sampler."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import SGConv

from topoter.pretext.transformation import TopologyTransformation


class PlainTopoTER(nn.Module):
    """The paper's model as its text reads: SGConv on both graphs, e_ij for all pairs, one linear layer."""

    def __init__(self, in_channels: int, channels: int, order: int) -> None:
        super().__init__()
        self.conv = SGConv(in_channels, channels, K=order)
        self.linear = nn.Linear(channels, 4)

    def loss(self, x: Tensor, transformation: TopologyTransformation) -> Tensor:
        h = functional.leaky_relu(self.conv(x, transformation.adjacency.edge_index), 0.1)
        h_t = functional.leaky_relu(self.conv(x, transformation.adjacency_t.edge_index), 0.1)
        delta_h = h_t - h
        i, j = transformation.pairs
        e = torch.softmax(-((delta_h[i] - delta_h[j]) ** 2), dim=1)
        return functional.cross_entropy(self.linear(e), transformation.pair_type)


class PlainDefault(nn.Module):
    """What the default trains, as its equations read: S~^k X W on two transformed graphs, and I(H; H~)."""

    def __init__(self, in_channels: int, channels: int, order: int) -> None:
        super().__init__()
        self.conv = SGConv(in_channels, channels, K=order, bias=False)

    def loss(self, x: Tensor, edge_index: Tensor, edge_index_t: Tensor) -> Tensor:
        h, h_t = self.conv(x, edge_index), self.conv(x, edge_index_t)
        a, b = ((each - each.mean(0)) / each.std(0) for each in (h, h_t))
        agreement = (a * b).mean()
        apart = [((z.t() @ z) / len(z)).fill_diagonal_(0).square().mean() for z in (a, b)]
        return 1 - agreement + 0.75 * torch.stack(apart).mean()
