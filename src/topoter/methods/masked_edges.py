"""MaskGAE (Li et al., 2023): hide the edges along random walks, and find them from what is left.

"What's Behind the Mask: Understanding Masked Graph Modeling for Graph Autoencoders", KDD 2023. A hidden edge is hidden
in both directions; in the authors' code the other direction of an edge may stay visible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from topoter.errors import unknown_name
from topoter.methods.base import register
from topoter.methods.convolutions import Convolutions, glorot
from topoter.methods.link_encoder import Dropout, NoisyFeatures
from topoter.methods.pretrained import PretextModule, Pretrained
from topoter.methods.walks import random_walks
from topoter.pretext.hidden_edges import area_under_curve
from topoter.pretext.objectives import Loss
from topoter.pretext.pair_decoders import products
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.training import Keep, Validate
from topoter.training.callbacks import Callback
from topoter.training.state import RandomStream
from topoter.weights import linear_layers

VALIDATION = "validation AUC"
CHECK_EVERY = 10  # epochs between two looks at the held-out edges


def mask_paths(adjacency: Adjacency, share: float, steps: int, generator: torch.Generator) -> Tensor:
    """Which edges [M] are walked along by walks of so many steps from a share of the nodes."""
    operator = adjacency.summed
    walks = random_walks(operator.indptr, operator.indices.long(), steps + 1, generator)
    walks = walks[: int(share * adjacency.num_nodes)]  # they begin in random order
    ends = torch.stack([walks[:, :-1].flatten(), walks[:, 1:].flatten()])
    return torch.isin(adjacency.keys, ends.amin(0) * adjacency.num_nodes + ends.amax(0))


def mask_edges(adjacency: Adjacency, share: float, steps: int, generator: torch.Generator) -> Tensor:
    """Which edges [M] are hidden, each with the same probability."""
    return torch.rand(adjacency.num_edges, generator=generator) < share


MASKS: dict[str, Callable[[Adjacency, float, int, torch.Generator], Tensor]] = {"path": mask_paths, "edge": mask_edges}


@register("maskgae", "node")
@dataclass(kw_only=True)
class MaskGAE(Pretrained):
    """Masked edges, found again.

    Args:
        mask: how edges are hidden, a name in `MASKS`, from or at a share `mask_rate`.
        degree_weight: of the error in how many hidden edges a node has.
        held_out: share of the edges that no training step sees: they tell when to stop.
    """

    out_channels: int = 64
    hidden_channels: int = 128
    num_layers: int = 2
    decoder_channels: int = 32
    mask: str = "path"
    mask_rate: float = 0.7
    degree_weight: float = 0.0
    dropout: float = 0.8
    decoder_dropout: float = 0.2
    held_out: float = 0.1
    epochs: int = 500
    patience: int | None = 100
    learning_rate: float = 1e-2
    weight_decay: float = 5e-5
    feature_scaling: str = "none"

    shares = ("mask_rate", "dropout", "decoder_dropout", "held_out")
    largest_gradient = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mask not in MASKS:
            raise unknown_name("mask", self.mask, MASKS)

    @property
    def keep(self) -> Keep | None:  # type: ignore[override]
        return Keep(VALIDATION, highest=True, weights="after") if self.held_out else None

    def callbacks(self, module: MaskedEdges) -> list[Callback]:
        return [Validate(VALIDATION, module.auc, CHECK_EVERY)] if module.held_out else []

    def module(self, in_channels: int, seed: int) -> PretextModule:
        return MaskedEdges(in_channels, self, seed)


class MaskedEdges(PretextModule):
    """Graph convolutions, a decoder of pairs and one of degrees."""

    def __init__(self, in_channels: int, method: MaskGAE, seed: int) -> None:
        super().__init__(seed)
        hidden = [method.hidden_channels] * (method.num_layers - 1)
        widths = [in_channels, *hidden, method.out_channels]
        self.encoder = Convolutions(widths, self.generator, activation="elu", batch_norm=True)
        self.edge_decoder = linear_layers([widths[-1], method.decoder_channels, 1])
        self.degree_decoder = linear_layers([widths[-1], method.decoder_channels, 1])
        for decoder in (self.edge_decoder, self.degree_decoder):
            glorot(decoder, self.generator)
        self.mask, self.mask_rate, self.steps = MASKS[method.mask], method.mask_rate, len(widths)
        self.degree_weight, self.held_out = method.degree_weight, method.held_out
        self.dropout, self.decoder_dropout = method.dropout, method.decoder_dropout
        self.noise = Dropout(seed)
        self.validation: tuple[Any, ...] = ()

    @property
    def streams(self) -> Mapping[str, RandomStream]:
        return {"generator": self.generator, "noise": self.noise.generator}

    def prepare(self, x: Features, adjacency: Adjacency) -> tuple[Any, ...]:
        held_out = torch.rand(adjacency.num_edges, generator=self.generator) < self.held_out
        seen, edges = adjacency.keep(~held_out), adjacency.edges[:, held_out]
        pairs = torch.cat([edges, self._disconnected(adjacency, edges.size(1))], dim=1)
        self.validation = (x, seen, pairs, torch.arange(pairs.size(1)) < edges.size(1))
        return NoisyFeatures(x), seen

    def forward(self, x: NoisyFeatures, adjacency: Adjacency) -> Loss:  # type: ignore[override]
        hidden = self.mask(adjacency, self.mask_rate, self.steps, self.generator)
        masked = adjacency.edges[:, hidden]
        h = self.encoder.of_layers(
            x.drop(self.noise, self.dropout),
            adjacency.keep(~hidden),
            noise=lambda values: self.noise(values, self.dropout),
        )[-1]
        disconnected = self._disconnected(adjacency, masked.size(1))
        loss = (
            functional.softplus(-self.logits(h, masked)).mean()
            + functional.softplus(self.logits(h, disconnected)).mean()
        )
        degree = torch.bincount(masked.flatten(), minlength=adjacency.num_nodes).float()
        first, last = self.degree_decoder
        found = torch.relu(last(torch.relu(self.noise(first(h), self.decoder_dropout)))).squeeze(1)
        return loss + self.degree_weight * functional.mse_loss(found, degree), {}

    def logits(self, h: Tensor, pairs: Tensor) -> Tensor:
        """How likely pairs [2, P] are edges."""
        first, last = self.edge_decoder
        share = self.decoder_dropout if self.training else 0.0
        found: Tensor = last(torch.relu(first(self.noise(products(h, pairs), share))))
        return found.squeeze(1)

    @torch.no_grad()
    def auc(self) -> float:
        """How well held-out edges are told from pairs that are none, in percent."""
        self.eval()
        x, seen, pairs, connected = self.validation
        return area_under_curve(self.logits(self.encoder(x, seen), pairs), connected)

    def encode(self, x: Features, adjacency: Adjacency) -> Tensor:
        """The outputs of all layers side by side, of length one."""
        return functional.normalize(torch.cat(self.encoder.of_layers(x, adjacency), dim=1), dim=1)

    def _disconnected(self, adjacency: Adjacency, count: int) -> Tensor:
        space = adjacency.pair_space
        return space.disconnected(space.num_disconnected.clamp(max=count), self.generator)
