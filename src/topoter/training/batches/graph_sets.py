"""The graphs of a set, in batches that are shuffled anew every epoch."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from topoter.structure.graph_sets import Batch, GraphSet


class ShuffledBatches:
    """The batches of an epoch: all graphs, in an order that is drawn anew for every pass.

    The order comes from the training's own generator, whose state is part of a checkpoint: a training that goes on
    sees the batches it would have seen. A batch without any edge has nothing to transform and is left out.
    """

    def __init__(
        self, graphs: GraphSet, batch_size: int, generator: torch.Generator, device: torch.device | str
    ) -> None:
        self.graphs = graphs
        self.batch_size = batch_size
        self.generator = generator
        self.device = device

    def __iter__(self) -> Iterator[Batch]:
        order = torch.randperm(len(self.graphs), generator=self.generator)
        for which in order.split(self.batch_size):
            x, adjacency = self.graphs.batch(which, self.device)
            if adjacency.num_edges:
                yield x, adjacency
