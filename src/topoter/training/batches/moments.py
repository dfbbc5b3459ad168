"""For a linear encoder: the second moments of a few transformed graphs in place of a new graph at every step."""

from __future__ import annotations

import torch

from topoter.encoders import Hops
from topoter.pretext.hidden_edges import HiddenEdges
from topoter.pretext.moments import Moments, draw_moments
from topoter.pretext.transformation import Rate
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.training.callbacks import Validate
from topoter.training.state import Keep

DRAWS = 3  # pairs of transformed graphs whose moments are averaged
HIDDEN_SHARE = 0.1  # of the edges, which no transformed graph has: they tell when to stop
HIDDEN_AUC = "hidden_edge_auc"
KEEP = Keep(HIDDEN_AUC, highest=True, weights="after")


def moment_batches(
    encoder: Hops, x: Features, adjacency: Adjacency, rate: Rate, generator: torch.Generator
) -> tuple[list[tuple[Features, Moments]], Validate]:
    """The one batch of every epoch, and the callback that measures how well the weights foretell hidden edges.

    How far neighbours' features agree is written into the encoder, which gives its parts their lengths by it.
    """
    signal = encoder.signal(x)
    hidden, visible = HiddenEdges.draw(signal, adjacency, encoder.order, HIDDEN_SHARE, rate, generator)
    moments = draw_moments(signal, visible, encoder.order, rate, DRAWS, generator)
    encoder.agreement = torch.tensor(moments.agreement, device=signal.device)
    return [(x, moments)], Validate(HIDDEN_AUC, lambda: hidden.auc(encoder.weight))
