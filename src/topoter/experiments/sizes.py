"""The paper's table of model sizes, counted on the modules themselves."""

from __future__ import annotations

import torch

from topoter.encoders import SGC
from topoter.experiments.recipes import load_recipe
from topoter.methods.gmi import GraphicalInformation
from topoter.methods.infomax import Infomax
from topoter.pretext.objectives import build_objectives
from topoter.training import TopoTERModel

PUBLISHED = {"dgi": 996_354, "gmi": 1_730_052, "topoter": 736_260}
NOTES = {
    "dgi": "PyG's bilinear form has no bias, so one parameter fewer than the original",
    "gmi": "",
    "topoter": "",
}


def model_sizes(num_features: int = 1433, dataset: str = "cora") -> list[dict[str, object]]:
    """Parameters of each model on Cora with the paper's settings, beside the published counts."""
    parameters = load_recipe("node-classification", "topoter", dataset, "paper").parameters
    width, order = parameters["out_channels"], parameters["order"]
    objectives = build_objectives("paper", width, {}, torch.Generator())
    modules: dict[str, torch.nn.Module] = {
        "dgi": Infomax(num_features, out_channels=width, order=order, seed=0),
        "gmi": GraphicalInformation(num_features, width, order, seed=0),
        "topoter": TopoTERModel(SGC(num_features, width, order), objectives),
    }
    return [
        {
            "method": method,
            "ours": sum(p.numel() for p in modules[method].parameters()),
            "paper": published,
            "note": NOTES[method],
        }
        for method, published in PUBLISHED.items()
    ]
