"""Link prediction on Cora, CiteSeer and PubMed: the paper's table, and the row that shows what pre-training adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from topoter.experiments.experiment import Experiment, Measured, Progress, Row
from topoter.experiments.following import Follow, said_of
from topoter.experiments.node_classification import load_labelled
from topoter.experiments.runs import Run
from topoter.methods import build
from topoter.tasks.link_split import auc_and_ap, hits_and_mrr, split_links

if TYPE_CHECKING:
    from torch_geometric.data import Data


def measure(run: Run, data: Data, progress: Progress | None) -> Measured:
    """Split the edges by the run's seed, train on what is left, and score the test pairs once."""
    split = split_links(data, run.seed)
    fitted = build(run.recipe.method, "link", run.parameters).fit(split.data, run.seed, [Follow(progress)])
    val_auc, val_ap = auc_and_ap(split.val, fitted.score_pairs(split.data, split.val.pairs))
    tested = fitted.score_pairs(split.data, split.test.pairs)
    auc, ap = auc_and_ap(split.test, tested)
    ranks = {name: [value] for name, value in hits_and_mrr(split.test, tested).items()}
    details: dict[str, Any] = {"val_ap": val_ap}
    if fitted.history:
        details |= {"epochs": len(fitted.history), "best_epoch": fitted.best_epoch}
    if fitted.pretraining:
        last = fitted.pretraining[-1]
        details |= {"pretraining_epochs": len(fitted.pretraining), "pretraining_loss": last.loss} | said_of(last)
    # Validation AUC chose the epoch.
    return Measured({"AUC": [auc], "AP": [ap], **ranks, "validation AUC": [val_auc]}, details, fitted.losses)


EXPERIMENT = Experiment(
    name="link-prediction",
    task="link",
    datasets=("cora", "citeseer", "pubmed"),
    rows=(
        Row("feature-cosine", "best"),
        Row("adamic-adar", "best"),
        Row("spectral", "paper"),
        Row("deepwalk", "paper"),
        Row("gae", "paper"),
        Row("vgae", "paper"),
        Row("censnet-vae", "paper"),
        Row("maskgae", "paper"),
        Row("topoter-frozen", "paper"),
        Row("no-pretraining", "paper"),
        Row("topoter", "paper"),
        Row("spectral", "best"),
        Row("deepwalk", "best"),
        Row("gae", "best"),
        Row("vgae", "best"),
        Row("censnet-vae", "best"),
        Row("maskgae", "best"),
        Row("topoter-frozen", "best"),
        Row("no-pretraining", "best"),
        Row("topoter", "best"),
        Row("gae", "default"),
        Row("vgae", "default"),
        Row("no-pretraining", "default"),
        Row("topoter", "default"),
    ),
    metrics=("AUC", "AP", "Hits@20", "Hits@50", "Hits@100", "MRR"),
    load=load_labelled,
    measure=measure,
)
