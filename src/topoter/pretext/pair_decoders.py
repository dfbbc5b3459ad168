"""How two nodes' representations become the score of an edge between them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from topoter.errors import unknown_name
from topoter.structure.adjacency import Adjacency
from topoter.structure.pair_features import NAMES, pair_features
from topoter.weights import linear_layers

HIDDEN = 64  # width of the learned decoder

Noise = Callable[[Tensor], Tensor]


class PairDecoder(nn.Module):
    """Logits [P] of pairs [2, P], from representations [N, F].

    `noise` goes between the layers of a learned decoder, in training. A decoder that `sees_the_graph` is given that on
    which the representations were made.

    Args:
        channels: F.
    """

    sees_the_graph = False

    def __init__(self, channels: int) -> None:
        super().__init__()

    def forward(
        self, h: Tensor, pairs: Tensor, noise: Noise | None = None, adjacency: Adjacency | None = None
    ) -> Tensor:
        raise NotImplementedError

    def initialize(self, generator: torch.Generator) -> None:
        """Draw all weights anew."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight, generator=generator)
                nn.init.zeros_(module.bias)


class InnerProduct(PairDecoder):
    """h_i . h_j, the paper's: nothing to learn."""

    def forward(
        self, h: Tensor, pairs: Tensor, noise: Noise | None = None, adjacency: Adjacency | None = None
    ) -> Tensor:
        return products(h, pairs).sum(1)


class Hadamard(PairDecoder):
    """Two layers on the products h_i * h_j of each channel, learned with the encoder."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.layers = linear_layers([channels, HIDDEN, 1])

    def inputs(self, h: Tensor, pairs: Tensor, adjacency: Adjacency | None) -> Tensor:
        """What the first layer takes, [P, channels]."""
        return products(h, pairs)

    def forward(
        self, h: Tensor, pairs: Tensor, noise: Noise | None = None, adjacency: Adjacency | None = None
    ) -> Tensor:
        hidden = torch.relu(self.layers[0](self.inputs(h, pairs, adjacency)))
        logits: Tensor = self.layers[1](hidden if noise is None else noise(hidden))
        return logits.squeeze(1)


class Paths(Hadamard):
    """The same, beside what the graph alone says of the pair: degrees, common neighbours, short paths."""

    sees_the_graph = True

    def __init__(self, channels: int) -> None:
        super().__init__(channels + len(NAMES))

    def inputs(self, h: Tensor, pairs: Tensor, adjacency: Adjacency | None) -> Tensor:
        assert adjacency is not None, "this decoder looks at the graph"
        return torch.cat([products(h, pairs), pair_features(adjacency, pairs)], dim=1)


def products(h: Tensor, pairs: Tensor) -> Tensor:
    """h_i * h_j, channel by channel, [P, F]; `index_select` has a far faster backward pass than h[i]."""
    return h.index_select(0, pairs[0]) * h.index_select(0, pairs[1])


PAIR_DECODERS: dict[str, type[PairDecoder]] = {"inner product": InnerProduct, "hadamard": Hadamard, "paths": Paths}


def build_pair_decoder(name: str, channels: int, generator: torch.Generator) -> PairDecoder:
    """A decoder by its name."""
    if name not in PAIR_DECODERS:
        raise unknown_name("pair decoder", name, PAIR_DECODERS)
    decoder = PAIR_DECODERS[name](channels)
    decoder.initialize(generator)
    return decoder
