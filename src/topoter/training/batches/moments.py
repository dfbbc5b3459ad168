"""For a linear encoder: the second moments of a few transformed graphs in place of a new graph at every step."""

from __future__ import annotations

import torch

from topoter.encoders import Hops, Profile
from topoter.kernels import buffers
from topoter.pretext.hidden_edges import HiddenEdges, mean_auc
from topoter.pretext.moments import DirectionMoments, EndSums, Moments, draw_moments
from topoter.pretext.transformation import SAMPLERS, Rate
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.training.callbacks import Validate
from topoter.training.state import Keep

DRAWS = 3  # pairs of transformed graphs whose moments are averaged
HIDDEN_SHARE = 0.1  # of the edges, in each of several draws: they tell when to stop
HIDDEN_DRAWS = 4
ENDS = 200_000  # edges whose ends are compared at hop 0
GRAPH_DRAWS = 4  # transformations of a set of graphs; all pairs of them are compared
JUDGED_EVERY = 5  # epochs: judging one costs about as much as training it
HIDDEN_AUC = "hidden_edge_auc"
KEEP = Keep(HIDDEN_AUC, highest=True, weights="after")


def moment_batches(
    encoder: Hops, x: Features, adjacency: Adjacency, rate: Rate, generator: torch.Generator
) -> tuple[list[tuple[Features, Moments]], Validate]:
    """The one batch of every epoch, and the callback that measures how well the weights foretell hidden edges.

    One draw of hidden edges would stop Cora anywhere from epoch 16 to 40, the mean of four stops near the best. The
    moments are those of the whole graph: they are too few numbers to remember single edges.

    How far neighbours' features agree is written into the encoder, which gives its parts their lengths by it.
    """
    encoder.agreement_here = agreement_here(encoder, x, adjacency).agreement
    signal = encoder.signal(x)
    moments = draw_moments(signal, adjacency, encoder.order, rate, DRAWS, generator)
    buffers.release()
    hidden = [
        HiddenEdges.draw(signal, adjacency, encoder.order, HIDDEN_SHARE, rate, generator) for _ in range(HIDDEN_DRAWS)
    ]
    buffers.release()
    encoder.agreement = torch.tensor(moments.agreement, device=signal.device)
    return [(x, moments)], Validate(HIDDEN_AUC, lambda: mean_auc(hidden, encoder.weight), JUDGED_EVERY)


@torch.no_grad()
def agreement_here(encoder: Hops, x: Features, adjacency: Adjacency, most: int = ENDS) -> EndSums:
    """Of the features themselves, in their leading directions, at both ends of so many edges."""
    ends = EndSums(encoder.hop0.size(1))
    ends.add(encoder.prepared(x) @ encoder.hop0, adjacency.edges[:, :: max(adjacency.num_edges // most, 1)])
    return ends


def direction_batches(
    encoder: Profile, x: Features, adjacency: Adjacency, rate: Rate, sampler: str, generator: torch.Generator
) -> list[tuple[Features, DirectionMoments]]:
    """The one batch of every epoch for a set of graphs: how its directions agree between transformations."""
    drawn = (SAMPLERS[sampler](adjacency, rate, generator).adjacency_t for _ in range(GRAPH_DRAWS))
    with torch.no_grad():
        return [(x, DirectionMoments.of(encoder.directions(x, each) for each in drawn))]
