"""Will this embedding be poor? Warned of when a fit ends: no or constant features, few directions, no learning."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from topoter.errors import PoorEmbeddingWarning
from topoter.graphs.features import STRUCTURAL_NAMES
from topoter.graphs.matrices import select_rows
from topoter.structure.features import prepare_features

if TYPE_CHECKING:
    from topoter.training import EpochRecord

LEAST_LEARNED = 0.01  # of the prior's entropy
LEAST_AUC = 52.0  # of hidden edges, in percent
LEAST_DEVIATION = 0.01  # of the widest direction: a narrower one hardly counts
LEAST_DIRECTIONS = 0.2  # of those there could be
SAMPLE = 5_000  # nodes whose features are compared
LARGEST = 200_000  # nodes; beyond, embedding them only to look at them would cost too much


def warn_if_poor(model: Any, data: Any, history: Sequence[EpochRecord]) -> None:
    """Warn of what a look at a fitted model can tell. An untrained one was asked for as it is."""
    if not model.effective_params()["epochs"]:
        return
    said = little_learned(history)
    if not isinstance(data, list) and data.num_nodes <= LARGEST:
        said += poor_features(model, data) or few_directions(model, data)
    for text in said:
        warnings.warn(text, PoorEmbeddingWarning, stacklevel=3)


def little_learned(history: Sequence[EpochRecord]) -> list[str]:
    """Whether the loss that was kept is hardly below what guessing costs, or hidden edges hardly found."""
    if not history:
        return []
    found = [record.metrics.get("hidden_edge_auc") or 0.0 for record in history]
    if 0 < max(found) < LEAST_AUC:
        return [
            f"Hidden edges are found with an AUC of {max(found):.1f} %, and guessing has 50: the features tell hardly "
            "anything of who is connected with whom. Look at your features, or give more of them."
        ]
    kept = min(history, key=lambda record: record.loss)
    prior = kept.metrics.get("prior_entropy")
    loss = kept.metrics.get("types-from-change_loss") or kept.loss  # its term of a sum
    if prior is None or loss <= (1 - LEAST_LEARNED) * prior:
        return []
    return [
        f"The loss, {loss:.3f}, is not {LEAST_LEARNED:.0%} below the prior, {prior:.3f}, what guessing by the shares "
        "of the types costs: little was learned. Try more epochs or a higher learning rate, and look at your features."
    ]


def poor_features(model: Any, data: Any) -> list[str]:
    """Whether there are no features, or none that tells nodes apart once rows are scaled."""
    if data.get("feature_names") == STRUCTURAL_NAMES:
        holds = (
            "the embedding holds their places in this graph: good for it as it grows, not for another one"
            if model.effective_params()["encoder"] == "hops"
            else "degrees alone tell them apart, and the embedding can hold little more"
        )
        return [f"The nodes have no features: {holds}. Give what you know of them (--features FILE, x= in Python)."]
    scaling = model.effective_params()["feature_scaling"]
    some = np.zeros(data.num_nodes, dtype=bool)
    some[np.random.default_rng(0).permutation(data.num_nodes)[:SAMPLE]] = True
    x = prepare_features(select_rows(data.x, some), scaling, dense=True)
    assert isinstance(x, Tensor)
    low, high = x.amin(dim=0), x.amax(dim=0)
    if float((high - low).max()) > 1e-6 * float(torch.maximum(high, -low).max()):
        return []
    if scaling == "none":
        return ["All nodes have the same features: they tell nothing. Give columns in which nodes differ."]
    return [
        f"All nodes have the same features once rows are scaled (feature_scaling {scaling!r}): they tell nothing. "
        'Give more columns, or set feature_scaling="none".'
    ]


def few_directions(model: Any, data: Any) -> list[str]:
    """Whether nodes differ in few directions, as they do where one feature outweighs all others."""
    encoder = model.model_.encoder
    if encoder.variances is not None:  # no need to embed all nodes once more
        rank = wide(encoder.variances)
    else:
        (features, adjacency), _ = model._batch(data)
        rank = directions(model.model_.embed(features, adjacency).float())
    width = encoder.out_channels
    most = min(width, int(data.x.size(1)))
    if rank >= max(3, LEAST_DIRECTIONS * most):
        return []
    return [
        f"The embedding has {width} channels, but nodes differ in {rank} directions only. Bring your features to "
        "one scale (a DataFrame or a table file is prepared so), or give more of them."
    ]


def directions(z: Tensor) -> int:
    """In how many directions rows differ, not counting those that vary a hundred times less than the widest."""
    centred = z - z.mean(dim=0)
    return wide(torch.linalg.eigvalsh((centred.t() @ centred).double()))


def wide(variances: Tensor) -> int:
    return int((variances > LEAST_DEVIATION**2 * variances.max().clamp(min=1e-30)).sum())
