"""How much does a graph classification number gain if its epoch is chosen on test folds?

TopoTER is trained on a set of graphs with the paper's recipe, and its embedding is scored after every epoch by the same
cross validation. Reported are the weights that training keeps, those of the lowest training loss, and the epoch that
looks best on the test folds: one for all seeds, and one for each. The difference is only a look at the answers.

    python examples/chosen_on_test_folds.py                             # the bundled MUTAG
    python examples/chosen_on_test_folds.py --dataset ptc_mr --seeds 10 --out results/chosen-on-test-folds/ptc_mr.json
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

from torch_geometric.data import Data

from topoter import TopoTER
from topoter.datasets import load_graphs
from topoter.experiments.recipes import load_recipe
from topoter.graphs import atomic_write
from topoter.tasks.graph_classification import score, without_labels
from topoter.training import Callback, EpochRecord, TrainingState


def compare(graphs: list[Data], parameters: dict[str, object], seed: int) -> dict[str, list[float]]:
    """Test accuracy in percent before training and after every epoch, and that of the weights which training keeps."""
    unlabelled = without_labels(graphs)
    model = TopoTER(level="graph", **parameters, random_state=seed)

    def accuracy() -> float:
        return float(score(graphs, seed, z=model.transform(unlabelled))["test"])

    class ScoreEveryEpoch(Callback):
        def __init__(self) -> None:
            self.by_epoch: list[float] = []

        def on_start(self, state: TrainingState) -> None:
            model.model_ = state.module  # still training; fit would set it at the end
            self.by_epoch.append(accuracy())

        def on_epoch(self, state: TrainingState, record: EpochRecord) -> None:
            self.by_epoch.append(accuracy())

    scored = ScoreEveryEpoch()
    model.fit(unlabelled, callbacks=scored)
    return {"by_epoch": scored.by_epoch, "kept": [accuracy()]}


def summary(runs: list[dict[str, list[float]]]) -> dict[str, list[float]]:
    """The scores over seeds by how the epoch was chosen."""
    by_epoch = [run["by_epoch"] for run in runs]
    best = max(range(len(by_epoch[0])), key=lambda epoch: statistics.fmean(run[epoch] for run in by_epoch))
    return {
        "by the training loss": [run["kept"][0] for run in runs],
        "on test folds, one for all seeds": [run[best] for run in by_epoch],
        "on test folds, for each seed": [max(run) for run in by_epoch],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="mutag", help="a set of graphs of `topoter datasets`")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, help="instead of the recipe's")
    parser.add_argument("--out", type=Path, help="keep the runs as JSON")
    asked = parser.parse_args()

    parameters = load_recipe("graph-classification", "topoter", asked.dataset, "paper").parameters
    parameters |= {} if asked.epochs is None else {"epochs": asked.epochs}
    graphs = load_graphs(asked.dataset)
    runs = [compare(graphs, parameters, seed) for seed in range(asked.seeds)]
    print(f"Accuracy on {asked.dataset}, {asked.seeds} seed(s), by how the epoch was chosen")
    for row, values in summary(runs).items():
        spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
        print(f"  {row:33} {statistics.fmean(values):.1f}{spread}")
    if asked.out is not None:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(asked.out) as temporary:
            temporary.write_text(json.dumps({"dataset": asked.dataset, "runs": runs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
