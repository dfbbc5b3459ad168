"""What a training or an embedding will need, before it starts.

Memory by formulas whose constants `python -m benchmarks.scale --parts memory` measures (docs/scale.md); time by a
short run on a block model with as many features and the same mean degree.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from inspect import signature
from itertools import pairwise
from typing import Any

from topoter.encoders import Hops
from topoter.errors import UsageError
from topoter.estimator import TopoTER
from topoter.memory import show_memory
from topoter.structure.large_graph import ROWS
from topoter.structure.likely_graph import MOST_TOGETHER
from topoter.structure.partition import METIS_ENTRIES

PROCESS = 700e6  # bytes: Python with torch and the compiled kernels
METIS = 120  # bytes per entry of the lists of neighbours
PAGES = 16 * 4096  # bytes of a mapped file that come with each place that is looked at
LIKELY = 3000  # bytes per node of likely neighbours
SAFETY = 1.25  # on all that grows with the graph
HOPS = {name: value.default for name, value in signature(Hops).parameters.items()}
LEAST_BATCH = 1000  # nodes: smaller parts hold too few pairs to learn from
SAMPLE = 50_000  # edges of the block model that time is measured on


@dataclass(frozen=True)
class Size:
    """What memory and time depend on; `far` are the directions that the encoder hops trains, of another encoder 0."""

    nodes: int
    edges: int
    features: int
    channels: int
    far: int = 0

    @property
    def mean_degree(self) -> float:
        return 2 * self.edges / max(self.nodes, 1)

    @property
    def is_cut_by_metis(self) -> bool:
        """Beyond, training on parts goes without places and likely neighbours."""
        return 2 * self.edges <= METIS_ENTRIES

    def part(self, nodes: int) -> Size:
        """A part of the graph of so many nodes, all edges kept."""
        return replace(self, nodes=nodes, edges=round(self.edges * nodes / max(self.nodes, 1)))

    @property
    def width(self) -> int:
        """Columns that are in memory at once: of hops, all its parts side by side."""
        return (
            self.far + 2 * min(HOPS["rank_beside"], self.features) + HOPS["eigenvectors"] if self.far else self.channels
        )


def size_of(graph: Any, model: TopoTER) -> Size:
    """The size of PyG's `Data` or of a `GraphDirectory`, with the widest layer of a model."""
    parameters = model.effective_params()
    channels = max(parameters["out_channels"], parameters["hidden_channels"])
    if parameters["encoder"] == "gin":
        channels = 2 * parameters["hidden_channels"] * parameters["num_layers"]
    edges = int(graph.num_edges) if hasattr(graph, "manifest") else int(graph.num_edges) // 2
    features = int(graph.num_features)
    far = min(HOPS["rank"], features) if parameters["encoder"] == "hops" else 0
    return Size(int(graph.num_nodes), edges, features, channels, far)


def fit_memory(size: Size) -> float:
    """Bytes of a training on the whole graph, the graph itself included."""
    return PROCESS + SAFETY * _step(size)


def embed_memory(size: Size) -> float:
    """Bytes of embedding all nodes at once."""
    likely = LIKELY if size.far else 0
    return PROCESS + SAFETY * (size.nodes * (80 + likely + 4 * size.features + 22 * size.width) + 152 * size.edges)


def parts_memory(size: Size, batch_nodes: int) -> float:
    """Bytes of a training on parts: one in training, one read ahead, and a few numbers per node of the graph."""
    cutting = METIS * 2 * size.edges if size.is_cut_by_metis else 0
    part = size.part(min(batch_nodes, size.nodes))
    sampled = min(size.nodes, MOST_TOGETHER) * (LIKELY + 8 * size.width) if size.far and size.is_cut_by_metis else 0
    # Nodes lie scattered in the files: each brings pages of others along, until they are let go.
    mapped = min(4 * size.features * size.nodes, PAGES * ROWS) + min(8 * size.edges, PAGES * part.nodes)
    return PROCESS + 40 * size.nodes + mapped + max(cutting, SAFETY * (1.5 * _step(part) + sampled))


def batch_nodes_within(size: Size, memory: int) -> int:
    """The largest parts that a training within so much memory can take."""
    least = parts_memory(size, LEAST_BATCH)
    if least > memory:
        needed = show_memory(least).replace(" ", "")
        raise UsageError(
            f"{show_memory(memory)} are too little to train on this graph: give at least --memory {needed}."
        )
    low, high = LEAST_BATCH, size.nodes
    while low < high:  # the memory grows with the parts
        middle = (low + high + 1) // 2
        low, high = (middle, high) if parts_memory(size, middle) <= memory else (low, middle - 1)
    return max(low, LEAST_BATCH)


def measured_seconds(model: TopoTER, size: Size, on_parts: bool = False) -> tuple[float, float, float]:
    """Seconds before and after the epochs, of an epoch, and of embedding all nodes: a block model's, by the edges."""
    from topoter.datasets import block_model

    degree = min(max(size.mean_degree, 1.0), 50.0)
    nodes = int(min(2 * SAMPLE / degree, max(size.nodes, 10 * degree, 100)))
    sample = block_model(nodes, 2, degree, max(2, size.features), 0)
    once = TopoTER(**{**model.get_params(), "batch_nodes": None, "epochs": 1, "random_state": 0})
    once.fit(sample)  # compiles and warms up
    stamps = list[float]()
    timed = TopoTER(**{**once.get_params(), "epochs": 4, "on_epoch": lambda record: stamps.append(time.perf_counter())})
    start = time.perf_counter()
    timed.fit(sample)
    trained = time.perf_counter()
    timed.transform(sample)  # the fit has left it what it found of likely neighbours
    embedding = time.perf_counter() - trained
    timed.transform(sample)
    likely = max(time.perf_counter() - trained - 2 * embedding, 0.0) if size.far else 0.0
    epoch = min((b - a for a, b in pairwise(stamps)), default=0.0)  # few where neighbours do not agree
    around = max(trained - start - len(stamps) * epoch - likely, 0.0)
    factor = max(size.edges, 1) / max(int(sample.num_edges) // 2, 1)
    # Each node is compared with all others, or with those of its group; for training on parts those of a sample are.
    together = min(size.nodes, MOST_TOGETHER)
    likely *= 0 if on_parts and not size.is_cut_by_metis else together / (nodes * min(nodes, MOST_TOGETHER))
    compared = together if on_parts else size.nodes
    epoch = epoch if size.far else factor * epoch  # moments have the same size
    return factor * around + likely * compared, epoch, factor * embedding + likely * size.nodes


def _step(size: Size) -> float:
    """Of hops also both ends of the edges that are deleted, in all directions."""
    nodes = size.nodes * (430 + (LIKELY if size.far else 0) + 8 * size.features + 17 * size.width)
    return nodes + (224 + 6 * size.far) * size.edges
