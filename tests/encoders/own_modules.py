"""Modules as users write them, which can be imported."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv


class Keeps(nn.Module):
    """Keeps all its arguments as attributes, as PyG's own modules do."""

    def __init__(self, in_channels: int, sizes: tuple[int, ...] = (5,), slope: float = 0.0) -> None:
        super().__init__()
        self.in_channels, self.sizes, self.slope = in_channels, sizes, slope
        self.convs = nn.ModuleList(GCNConv(a, b) for a, b in zip((in_channels, *sizes), sizes))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for conv in self.convs:
            x = nn.functional.leaky_relu(conv(x, edge_index), self.slope)
        return x


class Forgets(Keeps):
    """Does not keep an argument that has no default."""

    def __init__(self, in_channels: int, width: int) -> None:
        super().__init__(in_channels, (width,))


class ForgetsSlope(Keeps):
    """Does not keep an argument that changes what is computed, but no weight."""

    def __init__(self, in_channels: int, power: float = 1.0) -> None:
        super().__init__(in_channels)
        self._power = power

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self._power * super().forward(x, edge_index)


class TakesFunction(Keeps):
    """Its argument is code, with a default."""

    def __init__(self, in_channels: int, act: Callable[[Tensor], Tensor] = torch.tanh) -> None:
        super().__init__(in_channels)
        self.act = act

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.act(super().forward(x, edge_index))


class Refuses(Keeps):
    """Its constructor finds a value wrong."""

    def __init__(self, in_channels: int, width: int = 5) -> None:
        if width < 1:
            raise ValueError("width must be positive")
        super().__init__(in_channels, (width,))
        self.width = width


class Outer:
    class Inner(Keeps):
        """Found by no plain name."""


def a_function(x: Tensor, edge_index: Tensor) -> Tensor:
    return x


an_object = Keeps(8)
