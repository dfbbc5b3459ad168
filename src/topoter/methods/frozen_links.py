"""A decoder of pairs that is learned on embeddings which stay as they are.

The embeddings were made from the very edges that the decoder learns, as those of an encoder without hidden edges are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from topoter.methods.links import CHECK_EVERY, VALIDATION, ConnectedPairs, area_under_curve
from topoter.pretext.objectives import Loss
from topoter.pretext.transformation import hide
from topoter.structure.adjacency import Adjacency
from topoter.training import EpochRecord, TrainingSettings, TrainingState, Validate, train
from topoter.training.callbacks import Callback

if TYPE_CHECKING:
    from torch_geometric.data import Data


class FrozenLinks(nn.Module):
    """A decoder of pairs on fixed embeddings z [N, F], brought to one scale."""

    def __init__(self, z: Tensor, decoder: str, seed: int) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)
        self.links = ConnectedPairs(z.size(1), decoder, self.generator, lambda values: values)
        learned = any(True for _ in self.parameters())
        # A learned decoder needs entries near 1; the order of inner products is the same at any scale.
        self.z = z / z.square().mean().sqrt().clamp(min=1e-12) if learned else z

    def forward(self, adjacency: Adjacency) -> Loss:
        return self.links(self.z, self.z, hide(adjacency, 0.0, self.generator))

    @torch.no_grad()
    def scores(self, pairs: Tensor) -> Tensor:
        """Logits [P] of pairs [2, P]."""
        found: Tensor = self.links.decoder(self.z, pairs)
        return found

    def learn(
        self, adjacency: Adjacency, graph: Data, settings: TrainingSettings, callbacks: Sequence[Callback] = ()
    ) -> tuple[list[EpochRecord], int | None]:
        """Train on the edges, choose the epoch on the graph's validation pairs: what each epoch showed, and the best.

        A decoder without weights needs neither.
        """
        if not any(True for _ in self.parameters()):
            return [], None
        state = TrainingState.start(self, settings, {"generator": self.generator})
        state.phase = "links"
        pairs, label = graph.edge_label_index, graph.edge_label
        auc = Validate(VALIDATION, lambda: area_under_curve(self.scores(pairs), label), CHECK_EVERY)
        train(state, [(adjacency,)], [auc, *callbacks])
        return state.history, state.best_epoch
