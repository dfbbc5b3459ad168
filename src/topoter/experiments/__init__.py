"""The paper's experiments: recipes with their parameters, runs kept as JSON, tables with ours beside the paper's."""

from __future__ import annotations

from importlib import import_module

from topoter.errors import unknown_name
from topoter.experiments.experiment import Experiment

# Where each experiment is described; a module is imported when its experiment is asked for.
EXPERIMENTS = {
    "node-classification": "topoter.experiments.node_classification",
    "graph-classification": "topoter.experiments.graph_classification",
}
# Names of `topoter evaluate`.
TASKS = {"node": "node-classification", "graph": "graph-classification"}


def experiment(name: str) -> Experiment:
    """An experiment by its name in `topoter reproduce`."""
    if name not in EXPERIMENTS:
        raise unknown_name("experiment", name, EXPERIMENTS)
    found: Experiment = import_module(EXPERIMENTS[name]).EXPERIMENT
    return found
