"""Link prediction on animals' social networks over time, by two evaluations, with the persistence baseline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from topoter.datasets import Snapshots, load_snapshots
from topoter.experiments.experiment import Experiment, Measured, Progress, Row
from topoter.experiments.following import Follow, how_it_ended
from topoter.experiments.runs import Run
from topoter.methods import build
from topoter.tasks.temporal_links import PROTOCOLS, mean_scores

TWO_SNAPSHOTS = frozenset({"sparrow-social"})  # there is no next one to predict
COLONIES = tuple(f"ant-colony{number}" for number in range(1, 7))
DATASETS = ("sparrow-social", "wildbird-network", *COLONIES)
SIMPLE = ("persistence", "common-neighbours", "preferential-attachment")
ROWS = (
    *((method, "paper") for method in (*SIMPLE, "random-init", "gae", "vgae", "topoter")),
    ("topoter", "best"),
)


def load_over_time(dataset: str, data_root: Path | None) -> Snapshots:
    return load_snapshots(dataset, data_root=data_root)


def measure(run: Run, data: Snapshots, progress: Progress | None) -> Measured:
    """Hold out by the run's seed, train, and score the test pairs once."""
    split = PROTOCOLS[run.protocol](data.edges, data.num_nodes, run.seed)
    made = build(run.recipe.method, "temporal", run.parameters)
    fitted = made.fit(split.transitions, run.seed, [Follow(progress)])
    auc, ap = mean_scores(fitted.score_pairs, split, "test")
    details: dict[str, Any] = {"predicted_snapshots": len(split.predictions)}
    if split.predictions[0].val is not None:
        val_auc, val_ap = mean_scores(fitted.score_pairs, split, "val")
        details |= {"val_auc": val_auc, "val_ap": val_ap}
    return Measured({"AUC": [auc], "AP": [ap]}, details | how_it_ended(fitted), fitted.losses)


EXPERIMENT = Experiment(
    name="temporal-links",
    task="temporal",
    datasets=DATASETS,
    rows=(
        *(Row(method, recipe, "held-out-pairs") for method, recipe in (*ROWS, ("topoter", "completed"))),
        *(Row(method, recipe, "next-snapshot", TWO_SNAPSHOTS) for method, recipe in ROWS),
    ),
    metrics=("AUC", "AP"),
    load=load_over_time,
    measure=measure,
    protocols=tuple(PROTOCOLS),
    means={"ant colonies, mean of six": COLONIES},  # the paper has one number for `Ant Colony`
)
