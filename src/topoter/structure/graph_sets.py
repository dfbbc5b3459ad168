"""Sets of graphs: read once, kept end to end, cut into batches; and from node to graph embeddings."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from topoter.errors import DataError, UsageError, unknown_name
from topoter.graphs import as_data
from topoter.graphs.arrow import pa
from topoter.graphs.features import table_features
from topoter.graphs.frames import is_a
from topoter.graphs.molecules import molecule_set
from topoter.graphs.objects import tell
from topoter.graphs.preparation import PreparedTable
from topoter.graphs.sets import as_list, networkx_set
from topoter.structure.adjacency import Adjacency, Cleaning
from topoter.structure.features import Features, prepare_features

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from topoter.graphs.preparation import Preparation

Batch = tuple[Features, Adjacency]
# From the nodes of a graph to the graph: our names and those of torch.segment_reduce.
POOLINGS = {"sum": "sum", "mean": "mean", "max": "max"}


def read_graph_set(graphs: Any, preparation: Preparation | None = None) -> list[Data]:
    """Graphs of any accepted kind as PyG's `Data`, all with as many features; what is wrong is said of which graph.

    A PyG `Dataset`, `Batch` or `DataLoader` gives one graph after another, a loader that shuffles those of its dataset
    in their own order. Attributes of NetworkX nodes and RDKit's molecules become features by one preparation for the
    whole set: `preparation`, or one that is learned from all graphs together.
    """
    graphs = _taken_apart(graphs)
    # Something that can be read only once would be empty the second time, in `fit_transform`.
    if not hasattr(graphs, "__len__") or hasattr(graphs, "edge_index") or hasattr(graphs, "nodes"):
        raise UsageError(
            f"A set of graphs must be a list of graphs. Got {type(graphs).__qualname__} instead: "
            "for one graph use level='node', or put it in a list."
        )
    for module, name, read_all in (("networkx", "Graph", networkx_set), ("rdkit.Chem", "Mol", molecule_set)):
        if len(graphs) and all(is_a(graph, module, name) for graph in graphs):
            raw = read_all(list(graphs), "The set", np.arange(len(graphs)), preparation)
            graphs = as_list(raw)
            tell(raw.notes, raw.met)
            break
    read: list[Data] = []
    for number, graph in enumerate(_prepared(graphs, preparation)):
        try:
            data = as_data(graph, preparation=preparation)
        except (DataError, UsageError) as error:
            raise type(error)(f"Graph {number} of the set (counted from 0): {error}") from None
        if read and data.x.size(1) != read[0].x.size(1):
            raise DataError(
                f"Graph {number} of the set (counted from 0) has {data.x.size(1)} features per node, graph 0 has "
                f"{read[0].x.size(1)}: all graphs of a set need the same ones."
            )
        read.append(data)
    if not read:
        raise DataError("The set of graphs is empty.")
    return read


def _taken_apart(graphs: Any) -> Any:
    """The graphs in what PyG has for many of them."""
    from torch.utils.data import IterableDataset, RandomSampler, SequentialSampler

    if is_a(graphs, "torch_geometric.loader", "DataLoader"):
        whole = isinstance(getattr(graphs, "sampler", None), (RandomSampler, SequentialSampler))
        if not whole or isinstance(graphs.dataset, IterableDataset) or graphs.drop_last:
            return [graph for batch in graphs for graph in batch.to_data_list()]
        graphs = graphs.dataset  # in its own order, whether the loader shuffles or not
    if is_a(graphs, "torch_geometric.data", "Dataset"):
        return [graphs[number] for number in range(len(graphs))]
    return graphs.to_data_list() if is_a(graphs, "torch_geometric.data", "Batch") else graphs


def _prepared(graphs: Any, preparation: Preparation | None) -> Any:
    """Graphs that know the tables they were made of, prepared as a model knows them, all at once."""
    tables: list[Any] = [
        graph.get("table") if is_a(graph, "torch_geometric.data", "Data") else None for graph in graphs
    ]
    if preparation is None or any(table is None or table.preparation is preparation for table in tables):
        return graphs
    features = table_features(pa.concat_tables([table.arrow for table in tables]), "the set", preparation=preparation)
    tell(features.notes, features.met)
    x = features.x.to_dense()
    prepared, first = [], 0
    for graph, table in zip(graphs, tables):
        graph, size = copy.copy(graph), table.arrow.num_rows
        graph.x, graph.feature_names = x[first : first + size], features.feature_names
        graph.table = PreparedTable(table.arrow, preparation)
        prepared.append(graph)
        first += size
    return prepared


class GraphSet:
    """Many graphs as one that falls into pieces, so that a batch is cut out of it and nothing is built twice.

    Args:
        x: the features of all nodes, graph by graph, [N, C].
        adjacency: all edges; its `ptr` says where each graph starts.
    """

    def __init__(self, x: Tensor, adjacency: Adjacency) -> None:
        assert adjacency.ptr is not None, "a set of graphs needs the places where graphs start"
        self.x = x
        self.adjacency = adjacency
        self.nodes = adjacency.ptr
        # Edges are sorted by their first node, so those of a graph stand together.
        self.edges = torch.searchsorted(adjacency.edges[0].contiguous(), self.nodes)

    @classmethod
    def from_graphs(cls, graphs: Sequence[Data], feature_scaling: str = "none") -> tuple[GraphSet, Cleaning]:
        """Put graphs end to end; directions, duplicates and self-loops are cleaned in all of them at once.

        Features are kept dense: node labels of graph sets are few, and batches are cut out of the rows.
        """
        sizes = torch.tensor([graph.num_nodes for graph in graphs])
        ptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        edge_index = torch.cat([graph.edge_index + start for graph, start in zip(graphs, ptr)], dim=1)
        weight = None
        if any(graph.get("edge_weight") is not None for graph in graphs):
            weight = torch.cat([_weights(graph) for graph in graphs])
        x = torch.cat([graph.x.to_dense().float() for graph in graphs])
        x = cast("Tensor", prepare_features(x, feature_scaling, dense=True))
        adjacency, cleaning = Adjacency.from_edge_index(edge_index, int(ptr[-1]), weight, ptr)
        return cls(x, adjacency), cleaning

    def __len__(self) -> int:
        return self.nodes.numel() - 1

    def batch(self, which: Tensor, device: torch.device | str = "cpu") -> Batch:
        """Some of the graphs, in the order of their numbers in `which`, as one graph without edges between them."""
        nodes, ptr = _stretches(self.nodes, which)
        edges, edge_ptr = _stretches(self.edges, which)
        moved = torch.repeat_interleave(ptr[:-1] - self.nodes[which], edge_ptr.diff())
        weight = self.adjacency.weight
        adjacency = Adjacency(
            self.adjacency.edges[:, edges] + moved, nodes.numel(), None if weight is None else weight[edges], ptr
        )
        return self.x[nodes].to(device), adjacency.to(device)

    def example(self, size: int, device: torch.device | str = "cpu") -> Batch:
        """So many graphs from all over the set, which may be sorted by class."""
        size = min(size, len(self))
        return self.batch(torch.arange(size) * len(self) // size, device)

    def in_order(self, batch_size: int, device: torch.device | str = "cpu") -> Iterator[Batch]:
        """All graphs in their own order."""
        for which in torch.arange(len(self)).split(batch_size):
            yield self.batch(which, device)

    @torch.no_grad()
    def embed(
        self,
        encode: Callable[[Features, Adjacency], Tensor],
        batch_size: int,
        pooling: str | None,
        device: torch.device | str = "cpu",
    ) -> Tensor:
        """One row per graph, [G, F]: its nodes encoded, then pooled, if `encode` has not done so."""
        pooled = []
        for x, adjacency in self.in_order(batch_size, device):
            assert adjacency.ptr is not None
            h = encode(x, adjacency).cpu()
            pooled.append(h if pooling is None else pool(h, adjacency.ptr.cpu(), pooling))
        return torch.cat(pooled)


def pool(h: Tensor, ptr: Tensor, pooling: str) -> Tensor:
    """From the nodes of a batch [N, F] to its graphs [G, F]: the sum, mean or maximum over each graph's nodes."""
    if pooling not in POOLINGS:
        raise unknown_name("pooling", pooling, POOLINGS)
    return torch.segment_reduce(h, POOLINGS[pooling], lengths=ptr.diff(), axis=0)


def _weights(graph: Data) -> Tensor:
    weight = graph.get("edge_weight")
    return torch.ones(graph.edge_index.size(1)) if weight is None else weight.float()


def _stretches(starts: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
    """The places within the chosen stretches, one after another, and where each now starts."""
    sizes = starts.diff()[which]
    ptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    shift = torch.repeat_interleave(starts[which] - ptr[:-1], sizes)
    return torch.arange(int(ptr[-1])) + shift, ptr
