"""What is trained on: one whole graph, or what happened to a graph between one time and the next.

Sets of graphs, cut into batches that are shuffled anew every epoch, are in `graph_sets`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import torch

from topoter.adjacency import Adjacency, Cleaning
from topoter.errors import UsageError
from topoter.features import prepare_features
from topoter.training import Batch, TransitionBatch
from topoter.transformation import Transition

if TYPE_CHECKING:
    from torch_geometric.data import Data


def whole_graph(data: Data, feature_scaling: str, device: torch.device, *, dense: bool) -> tuple[Batch, Cleaning]:
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
