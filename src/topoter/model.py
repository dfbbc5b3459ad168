"""TopoTER's module: the paper's forward pass."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from topoter.adjacency import Adjacency
from topoter.decoder import TransformationDecoder
from topoter.encoders import Encoder, Features
from topoter.transformation import TopologyTransformation


class TopoTERModel(nn.Module):
    """Encode a graph before and after a topology transformation; predict from the change what was done.

    Args:
        encoder: E, shared by the graph before and after.
        decoder: D, from the change of the representations to the four types.
    """

    def __init__(self, encoder: Encoder, decoder: TransformationDecoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def delta(self, x: Features, transformation: TopologyTransformation) -> Tensor:
        """dH, the change of every node's representation, [N, F]."""
        signal = self.encoder.project(x)  # X W, the same for both graphs
        fused = self.encoder.fused_delta(signal, transformation.adjacency, transformation.adjacency_t)
        if fused is not None:
            return fused
        # fmt: off
        h   = self.encoder.propagate(signal, transformation.adjacency)      # H  = E(X, A)    [N, F]
        h_t = self.encoder.propagate(signal, transformation.adjacency_t)    # H~ = E(X, A~)   [N, F]
        return h_t - h                                                      # dH              [N, F]
        # fmt: on

    def forward(self, x: Features, transformation: TopologyTransformation) -> Tensor:
        """The logits of the four types for every pair, [P, 4]."""
        logits: Tensor = self.decoder(self.delta(x, transformation), transformation.pairs)
        return logits

    def loss(self, x: Features, transformation: TopologyTransformation) -> tuple[Tensor, Tensor]:
        """Cross entropy of the types, and the counts of true against predicted ones [4, 4]."""
        delta_h = self.delta(x, transformation)
        return self.decoder.loss(delta_h, transformation.pairs, transformation.pair_type)

    @torch.no_grad()
    def embed(self, x: Features, adjacency: Adjacency) -> Tensor:
        """H of the original graph, in evaluation mode, [N, F]."""
        was_training = self.training
        self.eval()
        try:
            h: Tensor = self.encoder(x, adjacency)
        finally:
            self.train(was_training)
        return h
