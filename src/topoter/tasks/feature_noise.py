"""Robustness of node classification: encoder and probe trained on the features X, tested on X + E.

E is added to the features as the dataset gives them, before the scaling of rows that a method's recipe asks for: every
method meets the same noisy graph, and treats it as it treats any other. (The paper does not say whether its X is
scaled.) All rows are noisy, those of training nodes too, because a node is classified by its neighbours' features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from topoter.tasks.node_classification import Embedding, split_of
from topoter.tasks.probe import choose_probe

if TYPE_CHECKING:
    from torch_geometric.data import Data

LEVELS = tuple(step / 100 for step in range(11))  # sigma or scale; 0 is where every curve starts
# Centred noise of standard deviation (Gaussian) or scale (Laplace) one.
NOISES: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "gaussian": lambda random, shape: random.normal(size=shape),
    "laplace": lambda random, shape: random.laplace(size=shape),
}


def draw_noise(kind: str, shape: tuple[int, ...], seed: int) -> Tensor:
    """The noise of a seed at level one: a level multiplies it, so that a curve shows the level and not the draw."""
    random = np.random.default_rng([seed, list(NOISES).index(kind)])
    return torch.from_numpy(NOISES[kind](random, shape).astype(np.float32))


def score_under_noise(
    embedding: Embedding, data: Data, seed: int, on_level: Callable[[int, int], None] | None = None
) -> dict[str, Any]:
    """Test accuracies in percent by kind of noise and level; the probe is fitted and chosen on clean features.

    The noise depends on nothing but the seed and the shape of the features, and so is the same for every method.

    Args:
        on_level: called with the number of levels measured and that of all.
    """
    assert embedding.encode is not None, "the method gives no encoder for other features"
    y, split = data.y.numpy(), split_of(data)
    probe = choose_probe(embedding.z, y, split.train, split.val)
    x = data.x.to_dense().float()

    def accuracy(predicted: np.ndarray) -> float:
        return 100 * float((predicted[split.test] == y[split.test]).mean())

    clean = accuracy(probe.predicted)
    result: dict[str, Any] = {"val": probe.val, "test": clean, "scaling": probe.scaling, "penalty": probe.penalty}
    result["levels"] = list(LEVELS)
    for kind in NOISES:
        noise = draw_noise(kind, tuple(x.shape), seed)
        result[kind] = [clean]
        for level in LEVELS[1:]:
            result[kind].append(accuracy(probe.predict(embedding.encode(x + level * noise))))
            if on_level is not None:
                on_level(sum(len(result.get(name, ())) for name in NOISES), len(NOISES) * len(LEVELS))
    return result
