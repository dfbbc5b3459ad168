"""Link prediction: scores of pairs by any method, from the training edges only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from topoter.adjacency import Adjacency
from topoter.baselines.neighbours import adamic_adar, feature_cosine
from topoter.baselines.node_embeddings import deepwalk, spectral
from topoter.errors import unknown_name
from topoter.tasks.link_split import LinkSplit
from topoter.tasks.link_training import LinkSettings, Progress, train_links
from topoter.training import EpochRecord


@dataclass(frozen=True)
class Predictor:
    """A function from pairs [2, P] to scores [P], and what its training showed."""

    scores: Callable[[Tensor], Tensor]
    losses: list[float] = field(default_factory=list)
    history: list[EpochRecord] = field(default_factory=list)
    best_epoch: int | None = None


Method = Callable[[LinkSplit, dict[str, Any], int, "Progress | None"], Predictor]


def _trained(**fixed: Any) -> Method:
    """A method that is a setting of our training loop."""

    def predictor(split: LinkSplit, parameters: dict[str, Any], seed: int, progress: Progress | None) -> Predictor:
        model = train_links(split, LinkSettings(**{**parameters, **fixed}), seed, progress)
        return Predictor(model.scores, model.losses, model.history, model.best_epoch)

    return predictor


def _embedded(embed: Callable[..., Tensor]) -> Method:
    """Embeddings of the training graph, scored by their inner products."""

    def predictor(split: LinkSplit, parameters: dict[str, Any], seed: int, progress: Progress | None) -> Predictor:
        settings = {name: value for name, value in parameters.items() if name != "decoder"}
        if progress is not None and embed is deepwalk:
            settings["on_walk"] = lambda done, rounds: progress(done, rounds, "rounds of walks")
        z = embed(_training_graph(split), seed=seed, **settings)
        return Predictor(lambda pairs: (z[pairs[0]] * z[pairs[1]]).sum(1))

    return predictor


def _by_features(split: LinkSplit, parameters: dict[str, Any], seed: int, progress: Progress | None) -> Predictor:
    return Predictor(lambda pairs: feature_cosine(split.data.x, pairs))


def _by_neighbours(split: LinkSplit, parameters: dict[str, Any], seed: int, progress: Progress | None) -> Predictor:
    adjacency = _training_graph(split)
    return Predictor(lambda pairs: adamic_adar(adjacency, pairs))


def _training_graph(split: LinkSplit) -> Adjacency:
    adjacency, _ = Adjacency.from_edge_index(split.data.edge_index, split.data.num_nodes)
    return adjacency


METHODS: dict[str, Method] = {
    "feature-cosine": _by_features,
    "adamic-adar": _by_neighbours,
    "spectral": _embedded(spectral),
    "deepwalk": _embedded(deepwalk),
    "gae": _trained(pretraining_epochs=0),
    "vgae": _trained(pretraining_epochs=0, variational=True),
    "no-pretraining": _trained(pretraining_epochs=0),
    "topoter-frozen": _trained(frozen=True),
    "topoter": _trained(),
}


def predict(
    split: LinkSplit, method: str, parameters: dict[str, Any], seed: int, progress: Progress | None = None
) -> Predictor:
    """Train a named method on the training edges; the test pairs are not passed on."""
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    without_test = LinkSplit(split.data, split.val, split.val)
    return METHODS[method](without_test, parameters, seed, progress)
