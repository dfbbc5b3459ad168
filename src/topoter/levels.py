"""The two levels of embedding, nodes and whole graphs: what each takes where nothing is said, and what each reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from topoter.errors import UsageError, unknown_name
from topoter.graphs import as_data
from topoter.structure.graph_sets import read_graph_set

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from topoter.graphs.preparation import Preparation

# What is taken where the user says nothing. One default for every graph: no dataset has settings of its own here.
NODES: dict[str, Any] = {
    "encoder": "hops",
    "structure": "spectral",
    "objective": "mutual-information",
    "out_channels": 1024,
    "num_layers": 1,
    "hidden_channels": 64,
    "perturbation_rate": (0.0, 0.5),
    "feature_scaling": "none",  # the encoder prepares features itself
    "init": "orthogonal",
    "init_gain": 1.0,
    "epochs": 80,
    "patience": 15,
    "learning_rate": 2e-2,
}
# For an encoder of layers, and for what hops cannot be started from: changes over time.
LAYERS: dict[str, Any] = {
    "encoder": "sgc",
    "objective": "paper",
    "out_channels": 512,
    "num_layers": 1,
    "hidden_channels": 64,
    "perturbation_rate": 0.7,
    "feature_scaling": "unit",
    "init": "orthogonal",
    "init_gain": 6.0,
    "epochs": 160,
    "patience": 50,
    "learning_rate": 1e-2,
}
GRAPHS: dict[str, Any] = {
    "encoder": "profile",
    "objective": "graph-recovery",
    "out_channels": 1024,
    "num_layers": 1,
    "hidden_channels": 64,
    "perturbation_rate": (0.02, 0.05),
    "feature_scaling": "none",
    "init": "orthogonal",
    "init_gain": 1.0,
    "epochs": 80,
    "patience": 15,
    "learning_rate": 5e-2,
}
# For a set of graphs with an encoder of layers.
GRAPH_LAYERS: dict[str, Any] = {
    "encoder": "gin",
    "objective": "paper",
    "out_channels": 512,
    "num_layers": 3,
    "hidden_channels": 32,
    "perturbation_rate": 0.5,
    "feature_scaling": "none",
    "init": "spread",
    "init_gain": 1.0,
    "epochs": 20,
    "patience": 50,
    "learning_rate": 1e-3,
}
LEVELS = ("node", "graph")


def defaults(level: str, encoder: Any, objective: Any, over_time: bool = False) -> dict[str, Any]:
    """The values of parameters that were not given, at a level and with the encoder and objective given, if any."""
    if level not in LEVELS:
        raise unknown_name("level", level, LEVELS)
    if level == "graph":
        given = (("encoder", encoder), ("objective", objective))
        profiles = all(value is None or (isinstance(value, str) and value == GRAPHS[name]) for name, value in given)
        return GRAPHS if profiles else GRAPH_LAYERS
    is_hops = isinstance(encoder, str) and encoder == "hops"
    trains_hops = objective is None or (isinstance(objective, str) and objective == NODES["objective"])
    return NODES if is_hops or (encoder is None and trains_hops and not over_time) else LAYERS


def read_at_level(level: str, graph: Any, x: Any = None, preparation: Preparation | None = None) -> Data | list[Data]:
    """One graph, or at level "graph" a list of them, checked; `preparation` is the one of a model for its tables."""
    if level not in LEVELS:
        raise unknown_name("level", level, LEVELS)
    if level == "node":
        return as_data(graph, x, preparation)
    if x is not None:
        raise UsageError("x= goes with one graph; the graphs of a set carry their own features.")
    return read_graph_set(graph, preparation)
