"""Safety: the default on graphs that nobody tuned it for, beside what needs no training at all."""

from __future__ import annotations

from topoter.datasets.made_up import PLANS
from topoter.experiments.experiment import Experiment, Row
from topoter.experiments.node_classification import load_labelled, measure

EXPERIMENT = Experiment(
    name="safety",
    task="node",
    recipes="node-classification",
    datasets=("sbm", *PLANS),
    rows=(
        Row("raw", "tuned"),
        Row("propagated", "tuned"),
        Row("spectral", "default"),
        Row("hop-svd", "default"),
        Row("random-init", "default"),
        Row("topoter", "default"),
    ),
    metrics=("accuracy",),
    load=load_labelled,
    measure=measure,
)
