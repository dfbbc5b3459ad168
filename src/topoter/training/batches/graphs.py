"""What is trained on: one whole graph, or what happened to a graph between one time and the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import length_hint
from typing import TYPE_CHECKING

import torch

from topoter.errors import UsageError, unknown_name
from topoter.pretext.transformation import (
    SAMPLERS,
    Rate,
    TopologyTransformation,
    Transition,
    adding_and_deleting,
    check_transformable,
)
from topoter.structure.adjacency import Adjacency, Cleaning
from topoter.structure.features import Features, prepare_features
from topoter.structure.graph_sets import Batch

if TYPE_CHECKING:
    from torch_geometric.data import Data

TransitionBatch = tuple[Features, Transition]


@dataclass(frozen=True)
class Transformed:
    """Batches (x, graph) as the model takes them: (x, transformation), drawn anew for every step.

    In place of a graph a batch may hold a transition, a graph that was seen at two times: then its pairs are drawn.

    Args:
        perturbation_rate: r, the share of pairs that is flipped.
        sampler: which form of transformation, a name in `SAMPLERS`.
    """

    batches: Iterable[tuple[Features, Adjacency | Transition]]
    generator: torch.Generator
    perturbation_rate: Rate = 0.7
    sampler: str = "exact"

    def __length_hint__(self) -> int:
        return length_hint(self.batches)

    def __iter__(self) -> Iterator[tuple[Features, TopologyTransformation]]:
        for x, graph in self.batches:
            yield x, self._transform(graph)

    def _transform(self, graph: Adjacency | Transition) -> TopologyTransformation:
        if isinstance(graph, Transition):
            return graph.sample(self.generator)
        check_transformable(graph, self.perturbation_rate)
        return SAMPLERS[self.sampler](graph, self.perturbation_rate, self.generator)


def check_sampling(perturbation_rate: Rate, sampler: str) -> None:
    """Raise for a rate or a sampler that no graph could be transformed by."""
    adding_and_deleting(perturbation_rate)
    if sampler not in SAMPLERS:
        raise unknown_name("sampler", sampler, SAMPLERS)


def whole_graph(
    data: Data, feature_scaling: str = "none", device: torch.device | str = "cpu", *, dense: bool = False
) -> tuple[Batch, Cleaning]:
    """A graph as one batch, and what had to be changed to make its edges undirected and simple.

    `dense`: features are not kept sparse, because a module of the user's own takes tensors only.
    """
    adjacency, cleaning = Adjacency.from_edge_index(
        data.edge_index, data.num_nodes, data.get("edge_weight"), data.get("ptr")
    )
    features = prepare_features(data.x, feature_scaling, device=device, dense=dense)
    return (features, adjacency.to(device)), cleaning


def transitions(snapshots: Sequence[Batch]) -> list[TransitionBatch]:
    """From the graph at each time to what happened between one and the next; the features are the first one's."""
    features = snapshots[0][0]
    return [(features, Transition(before, after)) for (_, before), (_, after) in pairwise(snapshots)]


def usable_device(name: str) -> torch.device:
    """The device of that name, if this machine has it."""
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"The device {name!r} cannot be used here: {str(error).splitlines()[0]}") from error
    return device
