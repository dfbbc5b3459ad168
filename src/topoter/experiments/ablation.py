"""Ablation: the one default without each of its parts, with each term of the loss, other rates, hops and widths."""

from __future__ import annotations

from topoter.experiments.experiment import Experiment, Row
from topoter.experiments.node_classification import EXPERIMENT as NODES
from topoter.experiments.node_classification import load_labelled, measure

RECIPES = (
    "default", "untrained",
    "types-from-change", "types-from-pair", "both-types", "information-and-change", "information-and-pair", "full",
    "delete-a-fifth", "delete-four-fifths", "add-a-fifth",
    "one-hop", "three-hops", "half-the-directions", "width-256",
    "without-hops-0-and-1", "without-structure", "without-likely-neighbours",
)  # fmt: skip

EXPERIMENT = Experiment(
    name="ablation",
    task="node",
    datasets=NODES.datasets,
    rows=tuple(Row("topoter", recipe) for recipe in RECIPES),
    metrics=("accuracy",),
    load=load_labelled,
    measure=measure,
)
