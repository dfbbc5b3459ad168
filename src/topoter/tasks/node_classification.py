"""Node classification: embeddings by any method, scored by one linear probe."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from topoter.adjacency import Adjacency
from topoter.baselines.autoencoders import autoencoder
from topoter.baselines.infomax import dgi
from topoter.datasets.splits import random_split
from topoter.encoders import Features
from topoter.errors import DataError, unknown_name
from topoter.estimator import TopoTER
from topoter.features import FEATURE_SCALINGS, prepare_features
from topoter.tasks.probe import Split, fit_probe
from topoter.training import EpochRecord

if TYPE_CHECKING:
    from torch_geometric.data import Data

Progress = Callable[[int, float], None]


@dataclass(frozen=True)
class Embedding:
    """What a method made of a graph.

    Args:
        z: the embeddings [N, F].
        losses, history: the loss of every epoch if it was trained, and what else is known of each.
        encode: the embeddings [N, F] that the same encoder gives the same graph with other features [N, C].
    """

    z: np.ndarray
    losses: list[float] = field(default_factory=list)
    history: list[EpochRecord] = field(default_factory=list)
    encode: Callable[[Tensor], np.ndarray] | None = None


def raw(data: Data, parameters: dict[str, Any], seed: int, progress: Progress | None) -> Embedding:
    """The features as they are."""

    def encode(x: Tensor) -> np.ndarray:
        return _scaled(x, parameters).numpy()

    return Embedding(encode(data.x), encode=encode)


def propagated(data: Data, parameters: dict[str, Any], seed: int, progress: Progress | None) -> Embedding:
    """(D^-1/2 (A + I) D^-1/2)^k X: the encoder's propagation, with no weights and no training."""
    adjacency, _ = Adjacency.from_edge_index(data.edge_index, data.num_nodes, data.get("edge_weight"))

    def encode(x: Tensor) -> np.ndarray:
        h = _scaled(x, parameters)
        for _ in range(parameters.get("order", 2)):
            h = adjacency.normalized @ h
        return h.numpy()

    return Embedding(encode(data.x), encode=encode)


def random_init(data: Data, parameters: dict[str, Any], seed: int, progress: Progress | None) -> Embedding:
    """TopoTER's encoder before its first step."""
    return topoter(data, {**parameters, "epochs": 0}, seed, None)


def topoter(data: Data, parameters: dict[str, Any], seed: int, progress: Progress | None) -> Embedding:
    """TopoTER, pre-trained on the graph without labels."""
    on_epoch = None if progress is None else lambda record: progress(record.epoch, record.loss)
    model = TopoTER(**parameters, random_state=seed, on_epoch=on_epoch)

    def encode(x: Tensor) -> np.ndarray:
        other = copy.copy(data)
        other.x = x
        return model.transform(other)

    z = model.fit_transform(data)
    return Embedding(z, [record.loss for record in model.history_], model.history_, encode)


def _peer(train: Callable[..., tuple[Callable[[Features], Tensor], list[float]]], **fixed: Any) -> Method:
    def embed(data: Data, parameters: dict[str, Any], seed: int, progress: Progress | None) -> Embedding:
        adjacency, _ = Adjacency.from_edge_index(data.edge_index, data.num_nodes, data.get("edge_weight"))
        settings = {name: value for name, value in parameters.items() if name != "feature_scaling"}
        scaling = parameters.get("feature_scaling", "none")
        x = prepare_features(data.x, scaling)
        encode, losses = train(x, adjacency, seed=seed, on_epoch=progress, **fixed, **settings)
        return Embedding(
            encode(x).numpy(), losses, encode=lambda other: encode(prepare_features(other, scaling)).numpy()
        )

    return embed


Method = Callable[["Data", dict[str, Any], int, "Progress | None"], Embedding]
METHODS: dict[str, Method] = {
    "raw": raw,
    "propagated": propagated,
    "propagated-tuned": propagated,  # with parameters of its own, not those of TopoTER's recipe
    "random-init": random_init,
    "topoter": topoter,
    "dgi": _peer(dgi),
    "gae": _peer(autoencoder, variational=False),
    "vgae": _peer(autoencoder, variational=True),
}


def embed(
    data: Data, method: str, parameters: dict[str, Any], seed: int, progress: Progress | None = None
) -> Embedding:
    """Embeddings of the graph's nodes by a named method; labels are not passed on."""
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    unlabelled = data.clone()
    for name in ("y", "train_mask", "val_mask", "test_mask"):
        if name in unlabelled:
            del unlabelled[name]
    return METHODS[method](unlabelled, parameters, seed, progress)


def split_by_seed(data: Data, seed: int) -> Data:
    """The same graph; where no split was published, with the random one of this seed."""
    if not data.get("split_is_random", False):
        return data
    other = data.clone()
    other.train_mask, other.val_mask, other.test_mask = random_split(data.y, seed=seed)
    return other


def split_of(data: Data) -> Split:
    """The split that comes with a dataset."""
    if any(data.get(name) is None for name in ("y", "train_mask", "val_mask", "test_mask")):
        raise DataError("The graph has no labels or no split: node classification needs y and three masks.")
    return Split(*(mask.nonzero().view(-1).numpy() for mask in (data.train_mask, data.val_mask, data.test_mask)))


def score(embedding: Embedding, data: Data) -> dict[str, Any]:
    """Validation and test accuracy in percent, and the probe that validation chose."""
    result = fit_probe(embedding.z, data.y.numpy(), split_of(data))
    return {"val": result.val, "test": result.test, "scaling": result.scaling, "penalty": result.penalty}


def _scaled(x: Tensor, parameters: dict[str, Any]) -> Tensor:
    return FEATURE_SCALINGS[parameters.get("feature_scaling", "none")](x.to_dense().to(torch.float32))
