"""Parts of a graph as batches: clusters joined anew each epoch (Cluster-GCN), or neighbourhoods that are sampled.

Transformations, pairs and normalisation are those of the part: edges that leave it are cut off. Every node is in at
least one part in each epoch.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from topoter.errors import TopoterError, UsageError, whole_number
from topoter.graphs import GraphDirectory
from topoter.structure.adjacency import Adjacency, Cleaning
from topoter.structure.features import Features, prepare_features
from topoter.structure.graph_sets import Batch
from topoter.structure.large_graph import LargeGraph
from topoter.structure.partition import cut_share, partition
from topoter.training.batches.read_ahead import read_ahead
from topoter.training.distributed import current_group

if TYPE_CHECKING:
    from torch_geometric.data import Data

_logger = logging.getLogger("topoter")

CLUSTERS_JOINED = 8  # per part: more of them mix better, and cut off more edges
HOPS, FANOUT = 2, 4  # of sampled neighbourhoods


class SubgraphBatches(ABC):
    """The batches of an epoch; the parts are drawn anew for every pass, by the training's own generator.

    Args:
        graph: in memory or on disk.
        batch_nodes: how many nodes a step takes, about: a part, or with several processes a part for each.
        prepare: from features as they are stored to those the encoder takes.
        dealt: whether the encoder takes sums over whole parts (`numbered`), and not a step for each of them.
    """

    def __init__(
        self,
        graph: LargeGraph,
        batch_nodes: int,
        generator: torch.Generator,
        device: torch.device | str = "cpu",
        prepare: Callable[[torch.Tensor], Features] = prepare_features,
        dealt: bool = False,
    ) -> None:
        self.graph, self.batch_nodes, self.generator, self.device = graph, batch_nodes, generator, device
        self.prepare, self.dealt, self.group = prepare, dealt, current_group()
        self.kept_edges = 0  # in the parts of the last epoch, as often as they were there
        self._told = False

    def __iter__(self) -> Iterator[Batch]:
        for _, x, adjacency in self._pass(dealt=False):
            if adjacency.num_edges:
                yield x, adjacency
            elif self.group.size > 1:  # the other processes would wait for this step
                raise TopoterError("A part without edges: several processes need larger parts (--batch-nodes).")

    def numbered(self) -> Iterator[tuple[np.ndarray, Features, Adjacency]]:
        """A pass over the parts with the numbers of their nodes, for sums over all nodes.

        Several processes deal out the parts: no part is a smaller one than a single process has.
        """
        return self._pass(dealt=True)

    def _pass(self, dealt: bool) -> Iterator[tuple[np.ndarray, Features, Adjacency]]:
        """The first one tells what is cut off."""
        self.kept_edges, parts, total = 0, 0, 0
        for nodes, x, adjacency in read_ahead(self._mine(dealt), lambda nodes: (nodes, *self._make(nodes))):
            self.kept_edges += adjacency.num_edges
            parts, total = parts + 1, total + adjacency.num_nodes
            yield nodes, x, adjacency
            self.graph.release()
        if not self._told:
            self._told = True
            self.group.wait()
            self.kept_edges = round(self.group.total(self.kept_edges)[0])
            if dealt:
                parts, total = map(round, self.group.total(parts, total))
            _logger.info("%d parts per epoch, %s nodes each; %s", parts, f"{total // max(parts, 1):,}", self.cut_off())

    @property
    def count(self) -> int:
        """About how many parts a pass has."""
        return max(1, round(self.graph.num_nodes / self.batch_nodes))

    def example(self) -> Batch:
        """One batch, for what looks at the data before the training; draws nothing from the generator."""
        state = self.generator.get_state()
        try:
            return self._make(next(self._mine(self.dealt)))
        finally:
            self.generator.set_state(state)

    def _mine(self, dealt: bool) -> Iterator[np.ndarray]:
        """The nodes of each part of this process: its share of every part, or all of every few parts."""
        rank, size = self.group.rank, self.group.size
        parts = self.draw()
        mine = parts[rank::size] if dealt else [pieces[rank::size] for pieces in parts]
        if not all(map(len, mine)) or not mine:
            raise UsageError(
                f"{len(parts):,} parts are too few or too small to be shared among {size} processes: "
                "give smaller parts (--batch-nodes), or take fewer processes."
            )
        return map(self.joined, mine)

    @abstractmethod
    def draw(self) -> list[np.ndarray]:
        """The pieces of each part of an epoch, the same in all processes."""

    @abstractmethod
    def joined(self, pieces: np.ndarray) -> np.ndarray:
        """The nodes of a part, ascending."""

    @abstractmethod
    def cut_off(self) -> str:
        """Which edges an epoch does not see, in words."""

    def _make(self, nodes: np.ndarray) -> Batch:
        x, adjacency = self.graph.part(nodes)
        return self.prepare(x), adjacency.to(self.device)


class ClusterBatches(SubgraphBatches):
    """The graph is cut into clusters once; each epoch joins them at random, with the edges between those joined."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.steps = max(1, round(self.graph.num_nodes / self.batch_nodes))
        if self.dealt:  # sums over all parts are the same however clusters are joined, and want as few edges cut off
            clusters = self.steps
        else:
            # Processes that share a step join as many clusters each, smaller ones: with fewer, unconnected pairs would
            # be of one cluster more often, which are harder to tell, and losses 3 % above those of one process.
            clusters = self.group.size * (1 if self.steps == 1 else CLUSTERS_JOINED * self.steps)
        seed = self.generator.initial_seed()
        part = partition(self.graph, clusters, seed)
        self.between = cut_share(self.graph, part)
        order = np.argsort(part, kind="stable")
        found = np.split(order, np.cumsum(np.bincount(part, minlength=clusters))[:-1])
        self.clusters = [nodes.astype(np.int64) for nodes in found if len(nodes)]
        self.graph.release()

    def draw(self) -> list[np.ndarray]:
        order = torch.randperm(len(self.clusters), generator=self.generator).numpy()
        return np.array_split(order, min(self.steps, len(order)))

    def joined(self, pieces: np.ndarray) -> np.ndarray:
        return np.sort(np.concatenate([self.clusters[number] for number in pieces]))

    def cut_off(self) -> str:
        share = 1 - self.kept_edges / max(self.graph.num_edges, 1)
        return f"{share:.1%} of the edges lie between parts and are cut off ({self.between:.1%} between clusters)."


class NeighbourBatches(SubgraphBatches):
    """Random nodes with some of their neighbours and of those one hop further, and all edges between them."""

    def draw(self) -> list[np.ndarray]:
        nodes = self.graph.num_nodes
        seeds = max(1, self.batch_nodes // sum(FANOUT**hop for hop in range(HOPS + 1)))
        order = torch.randperm(nodes, generator=self.generator).numpy()
        drawn = int(torch.randint(1 << 62, (), generator=self.generator))
        self.random = np.random.default_rng([drawn, self.group.rank])
        return np.array_split(order, -(-nodes // max(seeds, self.group.size)))

    def joined(self, pieces: np.ndarray) -> np.ndarray:
        found = frontier = pieces
        for _ in range(HOPS):
            frontier = _some_neighbours(self.graph, frontier, self.random)
            found = np.concatenate([found, frontier])
        return np.unique(found)

    def cut_off(self) -> str:
        return f"of each node {FANOUT} neighbours are sampled, {HOPS} hops far, and the other edges cut off."


def _some_neighbours(graph: LargeGraph, nodes: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Up to `FANOUT` neighbours of each node, drawn with repetition."""
    start, degree = graph.indptr[nodes], graph.indptr[nodes + 1] - graph.indptr[nodes]
    start, degree = start[degree > 0], degree[degree > 0]
    offset = (random.random((FANOUT, len(start))) * degree).astype(np.int64)
    return np.unique(graph.indices[(start + offset).ravel()]).astype(np.int64)


SUBGRAPHS: dict[str, type[SubgraphBatches]] = {"clusters": ClusterBatches, "neighbours": NeighbourBatches}


def parts_of(
    data: Data | GraphDirectory,
    kind: str,
    batch_nodes: int,
    seed: int,
    device: torch.device,
    prepare: Callable[[torch.Tensor], Features],
    dealt: bool,
) -> tuple[SubgraphBatches, Cleaning]:
    """The parts of a graph, in memory or on disk, as batches; and what had to be changed in its edges."""
    if isinstance(data, GraphDirectory):
        graph, cleaning = LargeGraph.from_directory(data), Cleaning(0, 0, 0)
    else:
        graph, cleaning = LargeGraph.from_data(data)
    order = torch.Generator().manual_seed(seed)  # the same in all processes
    return SUBGRAPHS[kind](graph, whole_number("batch_nodes", batch_nodes, 2), order, device, prepare, dealt), cleaning
