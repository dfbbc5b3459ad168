"""The equivariance picture: four heat maps on one colour scale, and the numbers that say what the eye cannot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from topoter.adjacency import Adjacency
from topoter.datasets import dataset_kind, load, load_snapshots
from topoter.estimator import TopoTER
from topoter.experiments.experiment import Experiment, Measured, Progress, Row
from topoter.experiments.runs import Run
from topoter.features import prepare_features
from topoter.report import Html, Table, heat_map
from topoter.tasks.equivariance import measure_equivariance, sampled_rows
from topoter.training import EpochRecord, pretrain
from topoter.transformation import SAMPLERS, Transition

SHOWN_NODES, SHOWN_CHANNELS = 64, 64  # of each matrix; the numbers are those of all nodes and channels
PANELS = ("H(t-1)", "H(t)", "dH^ of the estimated dA^", "H(t-1) + dH^")
TYPES = ("add", "delete", "keep apart", "keep connected")  # in the order of `EdgeChange`


class Observed:
    """A graph seen at one time or at two, with its features."""

    def __init__(self, graphs: list[Adjacency], x: torch.Tensor | None) -> None:
        self.graphs, self.x = graphs, x


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
    parameters = dict(run.parameters)
    one_hot = parameters.pop("features") == "one-hot" or data.x is None
    num_nodes = data.graphs[0].num_nodes
    raw = torch.eye(num_nodes) if one_hot else data.x
    assert raw is not None
    model = TopoTER(**parameters, random_state=run.seed)
    x = prepare_features(raw, model.feature_scaling)
    generator = torch.Generator().manual_seed(run.seed)

    def on_epoch(record: EpochRecord) -> None:
        if progress is not None:
            progress(record.epoch, model.epochs, f"loss {record.loss:.3f} (prior {record.prior_entropy:.3f})")

    if len(data.graphs) > 1:
        transition = Transition(data.graphs[0], data.graphs[1])
        state, _ = model.start_snapshots([graph.edges for graph in data.graphs], raw)
        pretrain(state, [(x, transition)], model.settings(), on_epoch=on_epoch)
        transformation = transition.all_pairs()
    else:
        from torch_geometric.data import Data

        state, _ = model.start(Data(x=raw, edge_index=data.graphs[0].edge_index))
        pretrain(state, [(x, data.graphs[0])], model.settings(), on_epoch=on_epoch)
        transformation = SAMPLERS[model.sampler](data.graphs[0], model.perturbation_rate, generator)
    found = measure_equivariance(state.model, x, transformation)
    rows, columns = sampled_rows(num_nodes, SHOWN_NODES), sampled_rows(found.h.size(1), SHOWN_CHANNELS)
    matrices = (found.h, found.h_t, found.delta_h, found.h + found.delta_h)
    shown = [np.round(matrix.numpy()[np.ix_(rows, columns)].astype(float), 4).tolist() for matrix in matrices]
    last = state.history[-1]
    result = found.numbers() | {
        "loss": last.loss,
        "prior_entropy": last.prior_entropy,
        "epochs": len(state.history),
        "nodes": num_nodes,
        "channels": found.h.size(1),
        "transformation": "observed, the one trained on, as in the paper"
        if len(data.graphs) > 1
        else f"random, r = {model.perturbation_rate}, not one trained on",
        "panels": shown if run.seed == 0 else [],  # one picture is enough
    }
    return Measured(result, [record.loss for record in state.history])


def scores(result: dict[str, Any]) -> dict[str, list[float]]:
    """Relative errors in percent, so that 100 means no better than no estimate, and the accuracy of the four types."""
    return {
        "error": [100 * result["error"]],
        "formula error": [100 * result["formula_error"]],
        "formula error of the true dA": [100 * result["formula_error_of_truth"]],
        "accuracy": [result["accuracy"]],
    }


def charts(runs: Sequence[dict[str, Any]]) -> list[tuple[str, Html]]:
    """Per dataset the four heat maps, and numbers under them."""
    return [
        (run["dataset"], heat_maps(run["result"]) + numbers(run["result"]) + confusion(run["result"]))
        for run in runs
        if run["result"]["panels"]
    ]


def heat_maps(result: dict[str, Any]) -> Html:
    nodes, channels = np.shape(result["panels"][0])
    shown = f"{nodes} of {result['nodes']} nodes, {channels} of {result['channels']} channels"
    return heat_map(
        dict(zip(PANELS, (np.array(panel) for panel in result["panels"]))),
        title="Representations before and after, and with the estimated change",
        x_label="channel",
        y_label="node",
        caption=f"All four on one colour scale; {shown}. If the representation is equivariant, the last is the second. "
        f"Transformation: {result['transformation']}.",
    )


def numbers(result: dict[str, Any]) -> Html:
    return Table(
        ["number", "value"],
        [
            ["‖H(t-1) + dH^ - H(t)‖ / ‖H(t) - H(t-1)‖", f"{result['error']:.3f}"],
            ["the same with the paper's formula for dH^", f"{result['formula_error']:.3f}"],
            ["the same with that formula and the true dA", f"{result['formula_error_of_truth']:.3f}"],
            ["accuracy of the four types", f"{result['accuracy']:.1f} %"],
            ["training loss", f"{result['loss']:.3f}"],
            ["loss of guessing the shares of the types", f"{result['prior_entropy']:.3f}"],
        ],
        caption="How equivariant",
        note="1 is as good as no estimate. Here dH^ = E(X, A + dA^) - E(X, A); the paper's formula, "
        "D~^-1/2 dA^ D~^-1/2 X W, leaves out that degrees change, so that even the true dA does not bring it to 0.",
    ).html()


def confusion(result: dict[str, Any]) -> Html:
    return Table(
        ["true type", *(f"estimated: {name}" for name in TYPES)],
        [[name, *row] for name, row in zip(TYPES, result["confusion"])],
        caption="Estimated types of all pairs looked at",
    ).html()


EXPERIMENT = Experiment(
    name="equivariance",
    datasets=("sparrow-social", "cora"),
    rows=(Row("topoter", "paper"),),
    metrics=("error", "accuracy", "formula error", "formula error of the true dA"),
    load=load_observed,
    measure=measure,
    scores=scores,
    charts=charts,
    about="One training, seed 0, of each dataset.",
)
