"""Graph classification: embeddings of whole graphs by any method, scored by one support vector machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from topoter.baselines.graph_kernels import weisfeiler_lehman
from topoter.baselines.infograph import infograph
from topoter.errors import DataError, unknown_name
from topoter.estimator import TopoTER
from topoter.graph_sets import GraphSet, read_graph_set
from topoter.tasks.support_vectors import check_classes, cross_validate
from topoter.training import EpochRecord

if TYPE_CHECKING:
    from torch_geometric.data import Data

Progress = Callable[[int, float], None]


@dataclass(frozen=True)
class Embedding:
    """What a method made of a set: z [G, F] or a kernel [G, G], and the loss of every epoch if it was trained."""

    z: np.ndarray | None = None
    kernel: np.ndarray | None = None
    losses: list[float] = field(default_factory=list)
    history: list[EpochRecord] = field(default_factory=list)


def topoter(graphs: list[Data], parameters: dict[str, Any], seed: int, progress: Progress | None) -> Embedding:
    """TopoTER, pre-trained on the graphs without labels."""
    on_epoch = None if progress is None else lambda record: progress(record.epoch, record.loss)
    model = TopoTER(level="graph", **parameters, random_state=seed, on_epoch=on_epoch)
    z = model.fit_transform(graphs)
    return Embedding(z, losses=[record.loss for record in model.history_], history=model.history_)


def random_init(graphs: list[Data], parameters: dict[str, Any], seed: int, progress: Progress | None) -> Embedding:
    """TopoTER's encoder before its first step."""
    return topoter(graphs, {**parameters, "epochs": 0}, seed, None)


def infomax(graphs: list[Data], parameters: dict[str, Any], seed: int, progress: Progress | None) -> Embedding:
    """InfoGraph with the same encoder."""
    graph_set, _ = GraphSet.from_graphs(read_graph_set(graphs))
    z, losses = infograph(graph_set, seed=seed, on_epoch=progress, **parameters)
    return Embedding(z.numpy(), losses=losses)


def degree_histogram(graphs: list[Data], parameters: dict[str, Any], seed: int, progress: Progress | None) -> Embedding:
    """How many nodes of each degree a graph has; those of `bins - 1` and more together. The trivial row."""
    graph_set, _ = GraphSet.from_graphs(read_graph_set(graphs))
    degree = torch.bincount(graph_set.adjacency.edges.flatten(), minlength=graph_set.adjacency.num_nodes)
    bins = parameters["bins"]
    graph = torch.repeat_interleave(graph_set.nodes.diff())
    counts = torch.bincount(graph * bins + degree.clamp(max=bins - 1), minlength=len(graph_set) * bins)
    return Embedding(counts.view(-1, bins).float().numpy())


def weisfeiler_lehman_kernel(
    graphs: list[Data], parameters: dict[str, Any], seed: int, progress: Progress | None
) -> Embedding:
    """The Weisfeiler-Lehman subtree kernel; nothing about it is random."""
    return Embedding(kernel=weisfeiler_lehman(read_graph_set(graphs), **parameters))


Method = Callable[["list[Data]", dict[str, Any], int, "Progress | None"], Embedding]
METHODS: dict[str, Method] = {
    "degree-histogram": degree_histogram,
    "wl": weisfeiler_lehman_kernel,
    "random-init": random_init,
    "infograph": infomax,
    "topoter": topoter,
}


def embed(
    graphs: list[Data], method: str, parameters: dict[str, Any], seed: int, progress: Progress | None = None
) -> Embedding:
    """Embeddings of the graphs by a named method; labels are not passed on."""
    from torch_geometric.data import Data

    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    keys = ("x", "edge_index", "edge_weight", "num_nodes")
    unlabelled = [Data(**{key: graph[key] for key in keys if key in graph}) for graph in graphs]
    return METHODS[method](unlabelled, parameters, seed, progress)


def labels_of(graphs: list[Data]) -> np.ndarray:
    """The class of every graph [G], of which each has enough members to be cross-validated."""
    for number, graph in enumerate(graphs):
        if graph.get("y") is None or graph.y.numel() != 1:
            raise DataError(f"Graph {number} of the set (counted from 0) has no label: its y must be one number.")
    y = np.array([int(graph.y) for graph in graphs])
    check_classes(y)
    return y


def score(
    embedding: Embedding, graphs: list[Data], seed: int, on_fold: Callable[[int, int], None] | None = None
) -> dict[str, Any]:
    """Mean accuracy in percent over ten folds; that of every fold, and what was chosen inside it."""
    folds = cross_validate(labels_of(graphs), seed, z=embedding.z, kernel=embedding.kernel, on_fold=on_fold)
    return {
        "test": float(np.mean([fold.test for fold in folds])),
        "val": float(np.mean([fold.inner for fold in folds])),
        "folds": [fold.test for fold in folds],
        "penalties": [fold.penalty for fold in folds],
    }
