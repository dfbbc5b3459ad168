"""The paper's experiments: what to run, by which recipes, and the store of what came out."""

from __future__ import annotations

from importlib import import_module

from topoter.errors import unknown_name
from topoter.experiments.experiment import Experiment

# Where each experiment is described (module:name); a module is imported when its experiment is asked for.
EXPERIMENTS = {
    "node-classification": "node_classification:EXPERIMENT",
    "safety": "safety:EXPERIMENT",
    "ablation": "ablation:EXPERIMENT",
    "order": "studies:ORDER",
    "layers": "studies:LAYERS",
    "noise": "noise:EXPERIMENT",
    "perturbation-rate": "studies:PERTURBATION_RATE",
    "graph-classification": "graph_classification:EXPERIMENT",
    "link-prediction": "link_prediction:EXPERIMENT",
    "temporal-links": "temporal_links:EXPERIMENT",
    "equivariance": "equivariance:EXPERIMENT",
}
# Names of `topoter evaluate`.
TASKS = {
    "node": "node-classification",
    "graph": "graph-classification",
    "link": "link-prediction",
    "temporal": "temporal-links",
}


def experiment(name: str) -> Experiment:
    """An experiment by its name in `topoter reproduce`."""
    if name not in EXPERIMENTS:
        raise unknown_name("experiment", name, EXPERIMENTS)
    module, attribute = EXPERIMENTS[name].split(":")
    found: Experiment = getattr(import_module(f"topoter.experiments.{module}"), attribute)
    return found
