"""The layer of GAT (Velickovic et al., 2018): neighbours count by scores that are learned."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from topoter.kernels.weighted import Pattern
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features

Noise = Callable[[Tensor], Tensor]
_patterns: weakref.WeakKeyDictionary[Adjacency, Pattern] = weakref.WeakKeyDictionary()


def neighbours(adjacency: Adjacency) -> Pattern:
    """The entries of A + I, found once for each graph."""
    if adjacency not in _patterns:
        _patterns[adjacency] = Pattern(adjacency.normalized)
    return _patterns[adjacency]


class Attention(nn.Module):
    """Heads side by side, or their mean: sum_j softmax_j(LeakyReLU(a . W h_i + b . W h_j)) W h_j, over A + I.

    Equal to PyG's `GATConv`. Works in two steps, like our encoders: `project`, then `attend`.

    Args:
        channels: of each head.
        mean: whether heads are averaged instead of put side by side.
    """

    def __init__(
        self,
        in_channels: int,
        channels: int,
        heads: int,
        generator: torch.Generator,
        *,
        mean: bool = False,
        negative_slope: float = 0.2,
    ) -> None:
        super().__init__()
        self.channels, self.heads, self.mean, self.negative_slope = channels, heads, mean, negative_slope
        self.weight = nn.Parameter(torch.empty(heads * channels, in_channels))
        self.target = nn.Parameter(torch.empty(heads, channels))  # a, of the node that looks
        self.source = nn.Parameter(torch.empty(heads, channels))  # b, of the neighbour
        self.bias = nn.Parameter(torch.zeros(channels if mean else heads * channels))
        for parameter in (self.weight, self.target, self.source):
            nn.init.xavier_uniform_(parameter, generator=generator)

    def forward(self, x: Features, adjacency: Adjacency, noise: Noise | None = None) -> Tensor:
        """`noise` is what the shares of the neighbours go through."""
        return self.attend(self.project(x), adjacency, noise)

    def project(self, x: Features) -> Tensor:
        """W h of all heads [N, K * C]."""
        return x @ self.weight.t()

    def attend(self, signal: Tensor, adjacency: Adjacency, noise: Noise | None = None) -> Tensor:
        pattern = neighbours(adjacency)
        by_head = signal.view(-1, self.heads, self.channels)
        shares = self._shares((by_head * self.target).sum(2), (by_head * self.source).sum(2), pattern, noise)
        h = pattern.weighted_sum(shares, signal)
        if self.mean:
            h = h.view(-1, self.heads, self.channels).mean(1)
        return h + self.bias

    def summed(self, h: Tensor, adjacency: Adjacency, rows: Tensor, noise: Noise | None = None) -> Tensor:
        """What `forward` makes from W and the bias, for some rows, of one head: neighbours are summed before W widens
        them."""
        assert self.heads == 1, "several heads have several sums"
        pattern = neighbours(adjacency)
        target, source = (h @ (self.weight.t() @ vector.t()) for vector in (self.target, self.source))
        return pattern.weighted_sum(self._shares(target, source, pattern, noise), h).index_select(0, rows)

    def _shares(self, target: Tensor, source: Tensor, pattern: Pattern, noise: Noise | None) -> Tensor:
        scores = target.index_select(0, pattern.row) + source.index_select(0, pattern.column)  # [E, K]
        shares = pattern.softmax(functional.leaky_relu(scores, self.negative_slope))
        return shares if noise is None else noise(shares)
