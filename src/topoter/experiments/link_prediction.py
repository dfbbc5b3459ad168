"""Link prediction on Cora, CiteSeer and PubMed: the paper's table, and the row that shows what pre-training adds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from topoter.datasets import load
from topoter.experiments.experiment import Experiment, Measured, Progress, Row
from topoter.experiments.runs import Run
from topoter.tasks.link_prediction import predict
from topoter.tasks.link_split import auc_and_ap, split_links

if TYPE_CHECKING:
    from torch_geometric.data import Data


def load_graph(dataset: str, data_root: Path | None) -> Data:
    return load(dataset, data_root=data_root)


def measure(run: Run, data: Data, progress: Progress | None) -> Measured:
    """Split the edges by the run's seed, train, and score the test pairs once."""
    split = split_links(data, run.seed)
    predictor = predict(split, run.recipe.method, run.parameters, run.seed, progress)
    val_auc, val_ap = auc_and_ap(split.val, predictor.scores(split.val.pairs))
    auc, ap = auc_and_ap(split.test, predictor.scores(split.test.pairs))
    result: dict[str, Any] = {"auc": auc, "ap": ap, "val_auc": val_auc, "val_ap": val_ap}
    if predictor.losses:
        result |= {"epochs": len(predictor.losses), "best_epoch": predictor.best_epoch}
    if predictor.history:
        last = predictor.history[-1]
        result |= {
            "pretraining_epochs": len(predictor.history),
            "pretraining_loss": last.loss,
            "prior_entropy": last.prior_entropy,
            "accuracy_by_type": list(last.accuracy),
        }
    return Measured(result, predictor.losses)


def scores(result: dict[str, Any]) -> dict[str, list[float]]:
    """Of the test pairs; validation AUC, which chose the epoch, beside them."""
    return {"AUC": [result["auc"]], "AP": [result["ap"]], "validation AUC": [result["val_auc"]]}


EXPERIMENT = Experiment(
    name="link-prediction",
    datasets=("cora", "citeseer", "pubmed"),
    rows=(
        Row("feature-cosine", "best"),
        Row("adamic-adar", "best"),
        Row("spectral", "paper"),
        Row("deepwalk", "paper"),
        Row("gae", "paper"),
        Row("vgae", "paper"),
        Row("topoter-frozen", "paper"),
        Row("no-pretraining", "paper"),
        Row("topoter", "paper"),
        Row("gae", "best"),
        Row("vgae", "best"),
        Row("topoter-frozen", "best"),
        Row("no-pretraining", "best"),
        Row("topoter", "best"),
    ),
    metrics=("AUC", "AP"),
    load=load_graph,
    measure=measure,
    scores=scores,
)
