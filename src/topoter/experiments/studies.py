"""The paper's studies on node classification: one parameter changes, the others stay, curves instead of rows.

They take the recipes of node classification (`tuned` for TopoTER, the paper's encoder with our settings: its own hardly
train), give all encoders the paper's width and put a variation over them. `propagated` and `random-init` stand beside
every curve; where the parameter makes no difference to them they are run once, and their line is level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from topoter.experiments.experiment import Experiment, Row
from topoter.experiments.node_classification import load_labelled, measure
from topoter.experiments.recipes import load_recipe

DATASETS = ("cora", "citeseer", "pubmed")
REFERENCES = (Row("propagated", "tuned"), Row("random-init", "tuned"))
OURS = Row("topoter", "tuned")


def paper_width(dataset: str) -> dict[str, Any]:
    """The channels that the paper gives every encoder: curves of unequal widths could not be compared."""
    recipe = load_recipe("node-classification", "topoter", dataset, "paper")
    return {"out_channels": recipe.parameters["out_channels"]}


def _study(
    name: str,
    methods: Sequence[Row],
    variations: Sequence[dict[str, Any]],
    fixed: Callable[[str], dict[str, Any]] = paper_width,
) -> Experiment:
    return Experiment(
        name=name,
        task="node",
        recipes="node-classification",
        datasets=DATASETS,
        rows=(*methods, *REFERENCES),
        metrics=("accuracy",),
        load=load_labelled,
        measure=measure,
        fixed=fixed,
        variations=variations,
    )


ORDER = _study("order", (OURS, Row("dgi"), Row("gae")), [{"order": k} for k in range(1, 6)])
LAYERS = _study(
    "layers",
    (OURS,),
    [{"num_layers": n, "hidden_channels": 64} for n in range(1, 6)],
    # `tuned` is linear, but layers without anything between them would be one layer of 64 channels.
    fixed=lambda dataset: {"out_channels": 512, "order": 2, "negative_slope": 0.1},
)
PERTURBATION_RATE = _study("perturbation-rate", (OURS,), [{"order": 1, "perturbation_rate": r / 10} for r in range(11)])
