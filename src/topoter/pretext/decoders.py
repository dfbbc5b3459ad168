"""Decoders: from the representations of two nodes to what happened to the pair."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from topoter.errors import invalid_parameter
from topoter.kernels import mode
from topoter.kernels.pair_chunks import mean_over_pairs
from topoter.kernels.pair_decoder import NUM_TYPES, pair_loss
from topoter.pretext.transformation import EdgeChange, Rate, adding_and_deleting
from topoter.weights import linear_layers


class TransformationDecoder(nn.Module):
    """dH -> e_ij -> four logits (Section "Transformation Decoder").

    Args:
        channels: F, the width of the representations.
        num_layers: linear layers after e_ij; the paper uses one. ReLU stands between several.
        hidden_channels: width between several layers.
        scale_edges: multiply e_ij by F, so that its entries average 1 instead of 1/F. Not in the paper: without
            it the logits stay near zero and mostly the bias moves.
    """

    def __init__(
        self, channels: int, num_layers: int = 1, hidden_channels: int = 64, scale_edges: bool = False
    ) -> None:
        super().__init__()
        if num_layers < 1:
            raise invalid_parameter("num_layers", "TransformationDecoder", "at least 1", num_layers)
        widths = [channels] + [hidden_channels] * (num_layers - 1) + [NUM_TYPES]
        self.layers = linear_layers(widths)
        self.scale = float(channels) if scale_edges else 1.0
        self.initialize()

    def edge_representation(self, delta_h: Tensor, pairs: Tensor) -> Tensor:
        """e_ij = exp{-(dh_i - dh_j)^2} / ||exp{-(dh_i - dh_j)^2}||_1, [P, F]."""
        return _edge_representation(delta_h[pairs[0]], delta_h[pairs[1]])

    def forward(self, delta_h: Tensor, pairs: Tensor) -> Tensor:
        """The logits of the four types of change, [P, 4]."""
        return self.of_ends(delta_h[pairs[0]], delta_h[pairs[1]])

    def of_ends(self, first: Tensor, second: Tensor) -> Tensor:
        """The same from dh_i and dh_j of every pair, [P, F] each."""
        h = self.scale * _edge_representation(first, second)
        for layer in self.layers[:-1]:
            h = torch.relu(layer(h))
        logits: Tensor = self.layers[-1](h)
        return logits

    def loss(self, delta_h: Tensor, pairs: Tensor, pair_type: Tensor) -> tuple[Tensor, Tensor]:
        """Mean cross entropy, and the counts of true (row) against predicted (column) types [4, 4].

        One linear layer goes through the fused kernel, more go through chunks of pairs.
        """
        if len(self.layers) == 1 and mode() == "fast":
            linear = self.layers[0]
            return pair_loss(delta_h, pairs, pair_type, self.scale * linear.weight, linear.bias)
        return loss_of_types(self.of_ends, delta_h, pairs, pair_type, [*self.parameters()])

    def initialize(self, generator: torch.Generator | None = None) -> None:
        """Draw all weights anew, as nn.Linear would, from one generator (seed 0 if none is given)."""
        generator = generator or torch.Generator().manual_seed(0)
        for layer in self.layers:
            bound = 1 / math.sqrt(layer.in_features)
            for parameter in layer.parameters():
                nn.init.uniform_(parameter, -bound, bound, generator=generator)

    @torch.no_grad()
    def start_at_prior(self, perturbation_rate: Rate) -> None:
        """Set the last bias so that a pair whose representations do not change gets the log share of each type."""
        last = self.layers[-1]
        last.bias.zero_()
        no_change = torch.zeros(2, self.layers[0].in_features)
        logits = self(no_change, torch.tensor([[0], [1]]))[0]
        last.bias.copy_(type_prior(perturbation_rate).clamp(min=1e-3).log() - logits)


def _edge_representation(first: Tensor, second: Tensor) -> Tensor:
    d = first - second
    return torch.softmax(-d * d, dim=1)


def loss_of_types(
    logits_of: Callable[[Tensor, Tensor], Tensor],
    h: Tensor,
    pairs: Tensor,
    pair_type: Tensor,
    weights: Sequence[Tensor],
) -> tuple[Tensor, Tensor]:
    """Mean cross entropy and counts of types, by a decoder that takes both ends of every pair.

    Chunk by chunk, unless TOPOTER_KERNELS=plain: then all pairs at once, which autograd keeps.

    Args:
        logits_of: h_i and h_j, [P, F] each -> [P, 4].
        weights: of the decoder.
    """
    if mode() == "plain":
        first, second = (h.index_select(0, end) for end in pairs)
        return cross_entropy_of_types(logits_of(first, second), pair_type)

    def of_pairs(first: Tensor, second: Tensor, kind: Tensor) -> tuple[Tensor, Tensor]:
        loss, confusion = cross_entropy_of_types(logits_of(first, second), kind)
        return loss * len(kind), confusion

    return mean_over_pairs(of_pairs, h, pairs, pair_type, weights)


def cross_entropy_of_types(logits: Tensor, pair_type: Tensor) -> tuple[Tensor, Tensor]:
    """Mean cross entropy of logits [P, 4], and the counts of true (row) against predicted (column) types [4, 4]."""
    target = pair_type.long()
    predicted = logits.detach().argmax(1)
    confusion = torch.bincount(target * NUM_TYPES + predicted, minlength=NUM_TYPES**2)
    return functional.cross_entropy(logits, target), confusion.view(NUM_TYPES, NUM_TYPES)


def type_prior(perturbation_rate: Rate) -> Tensor:
    """The share of each type among the pairs: r : r : 1 - r : 1 - r, or with two rates each by its own."""
    add, delete = adding_and_deleting(perturbation_rate)
    prior = torch.empty(NUM_TYPES)
    prior[EdgeChange.ADD], prior[EdgeChange.DELETE] = add / 2, delete / 2
    prior[EdgeChange.KEEP_DISCONNECTED], prior[EdgeChange.KEEP_CONNECTED] = (1 - add) / 2, (1 - delete) / 2
    return prior


def entropy_of_types(counts: Tensor) -> float:
    """The loss of guessing each type with its share of `counts` [4]; a loss above it has learned nothing."""
    return float(torch.special.entr(counts.double() / counts.sum()).sum())
