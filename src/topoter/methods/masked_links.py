"""MaskGAE for links (Li et al., 2023): edges along random walks are hidden and predicted, and how many a node lost.

A hidden edge is hidden in both directions, and the encoder sees training edges only, also when test pairs are scored.
In the authors' code the other direction of a hidden edge may stay visible.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from topoter.errors import unknown_name
from topoter.methods.base import register
from topoter.methods.convolutions import glorot
from topoter.methods.links import LinkLearner, LinkModule, LinkSettings
from topoter.methods.masked_edges import MASKS
from topoter.pretext.transformation import EdgeChange, TopologyTransformation
from topoter.structure.adjacency import Adjacency
from topoter.training import TopoTERModel
from topoter.weights import linear_layers

DEGREE_CHANNELS = 32  # between the layers that predict degrees


@dataclass(frozen=True)
class MaskSettings(LinkSettings):
    """How links are learned from masked edges; the rest as in `LinkSettings`.

    Args:
        mask: how edges are hidden, a name in `MASKS`; from, or at, a share `mask_rate`.
        walk_steps: how far a masked path goes.
        degree_weight: of the squared error in how many hidden edges a node has.
    """

    mask: str = "path"
    mask_rate: float = 0.7
    walk_steps: int = 3
    degree_weight: float = 2e-3

    def check(self) -> None:
        super().check()
        if self.mask not in MASKS:
            raise unknown_name("mask", self.mask, MASKS)


class MaskedLinks(LinkModule):
    """Two graph convolutions, a decoder of pairs and one of degrees."""

    settings: MaskSettings

    def __init__(self, topoter: TopoTERModel, settings: MaskSettings, seed: int) -> None:
        super().__init__(topoter, settings, seed)
        self.degrees = linear_layers([settings.out_channels, DEGREE_CHANNELS, 1])
        glorot(self.degrees, self.generator)

    def hide(self, adjacency: Adjacency) -> TopologyTransformation:
        settings = self.settings
        hidden = MASKS[settings.mask](adjacency, settings.mask_rate, settings.walk_steps, self.generator)
        connected, space = adjacency.edges[:, hidden], adjacency.pair_space
        disconnected = space.disconnected(space.num_disconnected.clamp(max=connected.size(1)), self.generator)
        kinds = [(connected, EdgeChange.DELETE), (disconnected, EdgeChange.KEEP_DISCONNECTED)]
        pair_type = torch.cat([torch.full((pairs.size(1),), int(kind)) for pairs, kind in kinds])
        pairs = torch.cat([connected, disconnected], dim=1)
        return TopologyTransformation(adjacency, adjacency.keep(~hidden), pairs, pair_type)

    def further_loss(self, h_t: Tensor, hiding: TopologyTransformation) -> Tensor | None:
        if not self.settings.degree_weight:
            return None
        lost = hiding.pairs[:, hiding.pair_type == EdgeChange.DELETE]
        degree = torch.bincount(lost.flatten(), minlength=len(h_t)).float()
        first, last = self.degrees
        found = torch.relu(last(torch.relu(self.dropout(first(h_t), self.settings.decoder_dropout)))).squeeze(1)
        return self.settings.degree_weight * functional.mse_loss(found, degree)


@register("maskgae", "link", pretraining_epochs=0)
class MaskGAELinks(LinkLearner):
    """Masked edges, predicted; the weights with the best validation AUC are kept."""

    settings_type = MaskSettings
    module_type = MaskedLinks
