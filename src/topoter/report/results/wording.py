"""What the pages say of each experiment, and of each protocol."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wording:
    """An experiment's title, what its numbers are, and how they were scored."""

    title: str
    intro: str
    protocol: str


_NODES = (
    "One linear probe for every method, its penalty and scaling chosen on validation labels; a new encoder for every "
    "seed; test labels are read once, for the number shown."
)
WORDINGS = {
    "node-classification": Wording(
        "Node classification",
        "Test accuracy of a linear classifier on frozen embeddings, public splits. “raw”, “propagated” (the "
        "smoothing alone) and “random-init” need no training: a method is worth its training if it beats them.",
        _NODES + " The column “selects on test” is the authors' way: their code chooses the classifier's epochs by "
        "test accuracy and restarts the classifier 50 times on one encoder.",
    ),
    "order": Wording("Study: order of the adjacency", "Test accuracy by the number of hops k.", _NODES),
    "layers": Wording(
        "Study: number of layers", "Test accuracy by the number of SGC layers, 64 channels between them.", _NODES
    ),
    "perturbation-rate": Wording(
        "Study: edge perturbation rate", "Test accuracy by the share r of edges that is changed, at k = 1.", _NODES
    ),
    "noise": Wording(
        "Study: noise in the features",
        "Test accuracy on features with noise added, trained on clean ones, at k = 1. Scaling noisy rows by their own "
        "sum costs some methods more than the noise itself: “clean scale” leaves that out.",
        _NODES,
    ),
    "graph-classification": Wording(
        "Graph classification",
        "Accuracy of a support vector machine on embeddings of whole graphs, ten-fold cross validation.",
        "The machine's C is chosen by cross validation within each training fold, features are standardised by it, "
        "and test folds are read once. Every seed trains a new encoder and shuffles the folds.",
    ),
    "link-prediction": Wording(
        "Link prediction",
        "AUC and average precision on held-out edges (85 % training, 5 % validation, 10 % test).",
        "Every seed has its own split and encoder; the epoch is chosen on validation AUC, test pairs are scored once.",
    ),
    "temporal-links": Wording(
        "Temporal link prediction",
        "AUC and average precision on networks of animals over time. “persistence” predicts that edges stay as "
        "they are.",
        "Held-out pairs: what a tested pair of nodes is at the tested time is never seen in training (85/5/10), what "
        "it is at other times may be. Next snapshot: trained up to the last but one, tested on the last.",
    ),
    "equivariance": Wording(
        "Equivariance",
        "How well the change of the representation follows from the estimated change of the graph. Errors are "
        "relative, in %: 100 is no better than no estimate, lower is better.",
        "The encoder is trained by predicting transformations alone, then estimates one; no labels are involved. The "
        "estimated change of the graph is encoded again, so the error says how well types are told apart, on the "
        "sparrows for the very transition that was trained on.",
    ),
}


def wording(name: str) -> Wording:
    """The words for an experiment; plain ones for one that has none here."""
    return WORDINGS.get(name) or Wording(name.replace("-", " ").capitalize(), "", "")
