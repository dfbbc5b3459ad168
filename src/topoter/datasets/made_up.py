"""Seven graphs of 3,000 nodes made on the spot, each hard in its own way: an embedding must be safe on all of them.

Features may be weak, missing, noise or words; neighbours may be of the same class, of the next one on a ring, of the
other one of two, or most of them hubs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from topoter.datasets.base import Dataset, register

if TYPE_CHECKING:
    from torch_geometric.data import Data

NUM_NODES = 3000
_COLUMNS = 32
_VOCABULARY, _WORDS, _TOPIC_WORDS, _ON_TOPIC = 1000, 20, 60, 0.3


@dataclass(frozen=True)
class Plan:
    """What a graph is like.

    Args:
        classes: how many, of equal size.
        mean_degree: of the nodes.
        linked: the share of a node's edges that go where the `wiring` says, the rest anywhere else.
        wiring: "inside" its own class, to the classes beside it on a "ring", or to any "other" class.
        features: "none" (the number 1), "words", or numbers that are 0 but for noise.
        signal: how far the column of its class stands out of that noise.
        hubs: 1 where all nodes are as popular, more where some have most of the edges.
    """

    classes: int
    mean_degree: int
    linked: float
    wiring: str = "inside"
    features: str = "numbers"
    signal: float = 0.0
    hubs: float = 1.0


PLANS = {
    "made-weak": Plan(8, 10, 0.5, signal=0.5),
    "made-none": Plan(8, 12, 0.65, features="none"),
    "made-noise": Plan(8, 12, 0.65),
    "made-ring": Plan(6, 8, 0.8, "ring", signal=1.5),
    "made-bipartite": Plan(2, 6, 0.85, "other", signal=0.7),
    "made-words": Plan(6, 5, 0.6, features="words"),
    "made-hubs": Plan(6, 30, 0.25, features="words", hubs=2.0),
}


def make(plan: Plan, seed: int = 0) -> Data:
    """The graph of a plan; the same seed gives the same graph."""
    from torch_geometric.data import Data

    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(NUM_NODES) % plan.classes)
    edges = torch.from_numpy(_edges(plan, y, rng))
    x = torch.from_numpy(_features(plan, y, rng).astype(np.float32))
    return Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], dim=1), y=torch.from_numpy(y))


def _edges(plan: Plan, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Different pairs of nodes whose classes the wiring allows, [2, M]."""
    wanted = NUM_NODES * plan.mean_degree // 2
    distance = (np.arange(plan.classes) - np.arange(plan.classes)[:, None]) % plan.classes
    near = {"inside": distance == 0, "ring": np.isin(distance, [1, plan.classes - 1]), "other": distance > 0}
    there = near[plan.wiring]
    share = np.where(there, plan.linked / there.sum(), (1 - plan.linked) / (~there).sum())
    members = np.argsort(y, kind="stable").reshape(plan.classes, -1)
    keys = np.zeros(0, dtype=np.int64)
    while len(keys) < wanted:  # some pairs are drawn twice
        cell = rng.choice(plan.classes**2, size=wanted - len(keys), p=share.ravel())
        place = _places(plan, members.shape[1], len(cell), rng)
        u, v = members[cell // plan.classes, place[0]], members[cell % plan.classes, place[1]]
        drawn = (np.minimum(u, v) * NUM_NODES + np.maximum(u, v))[u != v]
        keys = np.unique(np.concatenate([keys, drawn]))
    return np.stack([keys // NUM_NODES, keys % NUM_NODES])


def _places(plan: Plan, size: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Where in their classes the two ends of so many pairs stand, [2, count]; the first are the popular ones."""
    if plan.hubs == 1:
        return rng.integers(size, size=(2, count))
    places: np.ndarray = (size * rng.random((2, count)) ** plan.hubs).astype(np.int64)
    return places


def _features(plan: Plan, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if plan.features == "none":
        return np.ones((NUM_NODES, 1))
    if plan.features == "words":
        return _words(plan, y, rng)
    x = rng.normal(size=(NUM_NODES, _COLUMNS))
    x[np.arange(NUM_NODES), y] += plan.signal
    return x


def _words(plan: Plan, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Which words occur in a node's text: mostly common ones, some of the topic of its class."""
    common = 1 / np.arange(10, _VOCABULARY + 10)
    topics = np.stack([rng.choice(_VOCABULARY, _TOPIC_WORDS, replace=False) for _ in range(plan.classes)])
    node = np.repeat(np.arange(NUM_NODES), np.maximum(rng.poisson(_WORDS, NUM_NODES), 3))
    on_topic = topics[y[node], rng.integers(_TOPIC_WORDS, size=len(node))]
    any_word = rng.choice(_VOCABULARY, size=len(node), p=common / common.sum())
    x = np.zeros((NUM_NODES, _VOCABULARY))
    x[node, np.where(rng.random(len(node)) < _ON_TOPIC, on_topic, any_word)] = 1
    return x


class MadeUp(Dataset):
    """One of the plans, by name."""

    family = "made-up"
    how = "made on the spot"

    def load(self, data_root: str | Path | None, seed: int) -> Data:
        return make(PLANS[self.name], seed)


def _columns(plan: Plan) -> int:
    return {"none": 1, "words": _VOCABULARY}.get(plan.features, _COLUMNS)


register(
    *(
        MadeUp("", NUM_NODES, NUM_NODES * plan.mean_degree // 2, _columns(plan), plan.classes, name=name)
        for name, plan in PLANS.items()
    )
)
