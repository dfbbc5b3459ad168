"""Topology Transformation Equivariant Representations: graph embeddings without labels.

    graph -> transformation -> encoder -> objective -> training -> embeddings -> task -> store -> report

Each stage is a file or folder of that name; `TopoTER` is the whole way from a graph to its embeddings.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from topoter.errors import DataError, PoorEmbeddingWarning, TopoterError, UsageError

if TYPE_CHECKING:
    from topoter.estimator import TopoTER
    from topoter.node_embedding import NodeEmbedding
    from topoter.pretext.transformation import EdgeChange, TopologyTransformation
    from topoter.structure.adjacency import Adjacency
    from topoter.training.callbacks import Callback
    from topoter.training.model import TopoTERModel

__version__ = "0.2.0"

# Where each name is; a module is imported when its name is first asked for, because torch takes seconds to load.
_HOMES = {
    "Adjacency": "structure.adjacency",
    "Callback": "training.callbacks",
    "EdgeChange": "pretext.transformation",
    "NodeEmbedding": "node_embedding",
    "TopoTER": "estimator",
    "TopoTERModel": "training.model",
    "TopologyTransformation": "pretext.transformation",
}

__all__ = [
    "Adjacency",
    "Callback",
    "DataError",
    "EdgeChange",
    "NodeEmbedding",
    "PoorEmbeddingWarning",
    "TopoTER",
    "TopoTERModel",
    "TopologyTransformation",
    "TopoterError",
    "UsageError",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"topoter.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'topoter' has no attribute {name!r}")
