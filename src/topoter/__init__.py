"""Topology Transformation Equivariant Representations: graph embeddings without labels.

    graph -> transformation -> encoder -> decoder -> loss -> embeddings -> task -> report

Each stage is a file or folder of that name; `TopoTER` is the whole way from a graph to its embeddings.
"""

from topoter.adjacency import Adjacency
from topoter.errors import DataError, TopoterError, UsageError
from topoter.estimator import TopoTER
from topoter.model import TopoTERModel
from topoter.node_embedding import NodeEmbedding
from topoter.transformation import EdgeChange, TopologyTransformation

__version__ = "0.1.0"

__all__ = [
    "Adjacency",
    "DataError",
    "EdgeChange",
    "NodeEmbedding",
    "TopoTER",
    "TopoTERModel",
    "TopologyTransformation",
    "TopoterError",
    "UsageError",
    "__version__",
]
