"""Link prediction on animals' social networks over time, by two evaluations, with the guess that nothing changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from topoter.datasets import Snapshots, load_snapshots
from topoter.experiments.experiment import Experiment, Measured, Progress, Row, epochs_of
from topoter.experiments.runs import Run
from topoter.tasks.temporal_links import PROTOCOLS, mean_scores, predict

TWO_SNAPSHOTS = frozenset({"sparrow-social"})  # there is no next one to predict
COLONIES = tuple(f"ant-colony{number}" for number in range(1, 7))
DATASETS = ("sparrow-social", "wildbird-network", *COLONIES)
ROWS = tuple((method, "paper") for method in ("persistence", "random-init", "gae", "vgae", "topoter"))


def load_over_time(dataset: str, data_root: Path | None) -> Snapshots:
    return load_snapshots(dataset, data_root=data_root)


def measure(run: Run, data: Snapshots, progress: Progress | None) -> Measured:
    """Hold out by the run's seed, train, and score the test pairs once."""
    split = PROTOCOLS[run.protocol](data.edges, data.num_nodes, run.seed)
    on_epoch = epochs_of(progress, run.parameters.get("epochs", 0))
    predictor = predict(split, run.recipe.method, run.parameters, run.seed, on_epoch)
    auc, ap = mean_scores(predictor, split, "test")
    result: dict[str, Any] = {"auc": auc, "ap": ap, "predicted_snapshots": len(split.predictions)}
    if split.predictions[0].val is not None:
        val_auc, val_ap = mean_scores(predictor, split, "val")
        result |= {"val_auc": val_auc, "val_ap": val_ap}
    return Measured.trained(result, predictor.losses, predictor.history)


def scores(result: dict[str, Any]) -> dict[str, list[float]]:
    return {"AUC": [result["auc"]], "AP": [result["ap"]]}


EXPERIMENT = Experiment(
    name="temporal-links",
    datasets=DATASETS,
    rows=(
        *(Row(method, recipe, "held-out-pairs") for method, recipe in ROWS),
        *(Row(method, recipe, "next-snapshot", TWO_SNAPSHOTS) for method, recipe in ROWS),
    ),
    metrics=("AUC", "AP"),
    load=load_over_time,
    measure=measure,
    scores=scores,
    protocols=tuple(PROTOCOLS),
    means={"ant colonies, mean of six": COLONIES},  # the paper has one number for `Ant Colony`
)
