"""The equivariance picture: four matrices, and the numbers that say what the eye cannot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from topoter.datasets import dataset_kind, load, load_snapshots
from topoter.estimator import TopoTER
from topoter.experiments.experiment import Experiment, Measured, Progress, Row
from topoter.experiments.following import Follow
from topoter.experiments.runs import Run
from topoter.pretext.transformation import SAMPLERS, Transition
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import prepare_features
from topoter.tasks.equivariance import measure_equivariance, sampled_rows

SHOWN = 32  # nodes and channels of each matrix; the numbers are those of all
RATES = (0.3, 0.5)  # beside that of the recipes "paper" and "full"


@dataclass(frozen=True)
class Observed:
    """A graph seen at one time or at two, with its features."""

    graphs: list[Adjacency]
    x: torch.Tensor | None


def load_observed(dataset: str, data_root: Path | None) -> Observed:
    """Of a temporal graph the first two snapshots; of any other the graph itself."""
    if dataset_kind(dataset, data_root) == "temporal":
        over_time = load_snapshots(dataset, data_root=data_root)
        graphs = [Adjacency.from_edge_index(edges, over_time.num_nodes)[0] for edges in over_time.edges[:2]]
        return Observed(graphs, None)
    data = load(dataset, data_root=data_root)
    return Observed([Adjacency.from_edge_index(data.edge_index, data.num_nodes)[0]], data.x)


def measure(run: Run, data: Observed, progress: Progress | None) -> Measured:
    """Train on the transformation that was observed, or on random ones; then estimate one, and compare."""
    from torch_geometric.data import Data

    parameters = dict(run.parameters)
    first, num_nodes = data.graphs[0], data.graphs[0].num_nodes
    one_hot = parameters.pop("features") == "one-hot" or data.x is None
    x = torch.eye(num_nodes) if one_hot else data.x
    assert x is not None
    model = TopoTER(**parameters, random_state=run.seed)
    effective = model.effective_params()
    observed = len(data.graphs) > 1
    if observed:
        transition = Transition(data.graphs[0], data.graphs[1])
        model.fit_transitions(x, [transition], callbacks=Follow(progress))
        transformation, what = transition.all_pairs(), "observed, the one trained on, as in the paper"
    else:
        model.fit(Data(x=x, edge_index=first.edge_index), callbacks=Follow(progress))
        rate, generator = effective["perturbation_rate"], torch.Generator().manual_seed(run.seed)
        transformation = SAMPLERS[model.sampler](first, rate, generator)
        what = f"random, r = {rate}, not one trained on"
    found = measure_equivariance(model.model_, prepare_features(x, effective["feature_scaling"]), transformation)
    rows, columns = sampled_rows(num_nodes, SHOWN), sampled_rows(found.h.size(1), SHOWN)
    matrices = (found.h, found.h_t, found.delta_h, found.h + found.delta_h)
    shown = [np.round(matrix.numpy()[np.ix_(rows, columns)].astype(float), 4).tolist() for matrix in matrices]
    numbers = found.numbers()
    # Relative errors in percent: 100 means no better than no estimate.
    scores = {
        "error": [100 * numbers["error"]],
        "formula error": [100 * numbers["formula_error"]],
        "formula error of the true dA": [100 * numbers["formula_error_of_truth"]],
        "accuracy": [numbers.pop("accuracy")],
    }
    last = model.history_[-1]
    details: dict[str, Any] = numbers | {
        "loss": last.loss,
        "prior_entropy": last.prior_entropy,
        "epochs": len(model.history_),
        "nodes": num_nodes,
        "channels": found.h.size(1),
        "transformation": what,
        "panels": shown if run.seed == 0 else [],  # one picture is enough
    }
    return Measured(scores, details, [record.loss for record in model.history_])


EXPERIMENT = Experiment(
    name="equivariance",
    task="node",
    datasets=("sparrow-social", "cora"),
    rows=tuple(
        Row("topoter", f"{objective}{rate}", except_on=frozenset({"sparrow-social"} if rate else ()))
        for rate in ("", *(f"-{rate}" for rate in RATES))
        for objective in ("paper", "full")
    ),
    metrics=("error", "accuracy", "formula error", "formula error of the true dA"),
    load=load_observed,
    measure=measure,
)
