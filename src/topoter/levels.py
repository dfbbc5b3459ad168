"""The two levels of embedding, nodes and whole graphs: what each takes where nothing is said, and what each reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from topoter.errors import UsageError, unknown_name
from topoter.graphs import as_data
from topoter.structure.graph_sets import read_graph_set

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from topoter.graphs.preparation import Preparation

# What is taken where the user says nothing: for the nodes of one graph, and for whole graphs of a set.
LEVELS: dict[str, dict[str, Any]] = {
    "node": {
        "encoder": "sgc",
        "num_layers": 1,
        "hidden_channels": 64,
        "perturbation_rate": 0.7,
        "feature_scaling": "unit",
        "init": "orthogonal",
        "init_gain": 6.0,
        "epochs": 160,
        "learning_rate": 1e-2,
    },
    "graph": {
        "encoder": "gin",
        "num_layers": 3,
        "hidden_channels": 32,
        "perturbation_rate": 0.5,
        "feature_scaling": "none",
        "init": "spread",
        "init_gain": 1.0,
        "epochs": 20,
        "learning_rate": 1e-3,
    },
}


def read_at_level(level: str, graph: Any, x: Any = None, preparation: Preparation | None = None) -> Data | list[Data]:
    """One graph, or at level "graph" a list of them, checked; `preparation` is the one of a model for its tables."""
    if level not in LEVELS:
        raise unknown_name("level", level, LEVELS)
    if level == "node":
        return as_data(graph, x, preparation)
    if x is not None:
        raise UsageError("x= goes with one graph; the graphs of a set carry their own features.")
    return read_graph_set(graph)
