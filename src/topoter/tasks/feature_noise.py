"""Robustness of node classification: encoder and probe trained on the features X, tested on X + E.

E is added to the features as the dataset gives them, before the scaling of rows that a method's recipe asks for: every
method meets the same noisy graph. (The paper does not say whether its X is scaled.) All rows are noisy, those of
training nodes too, because a node is classified by its neighbours' features.

A scaling of rows may then harm more than the noise itself: on features that are mostly zero, a little noise in each of
them multiplies the sum of a row, so that dividing by it shrinks what the encoder was trained on. This says nothing
about the encoder. Each curve therefore has a twin whose rows are multiplied by what the clean ones were.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from topoter.structure.features import FEATURE_SCALINGS
from topoter.tasks.node_classification import score_classes, split_of, without_labels
from topoter.tasks.probe import choose_probe

if TYPE_CHECKING:
    from torch_geometric.data import Data

LEVELS = tuple(step / 100 for step in range(11))  # sigma or scale; 0 is where every curve starts
# Centred noise of standard deviation (Gaussian) or scale (Laplace) one.
NOISES: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "gaussian": lambda random, shape: random.normal(size=shape),
    "laplace": lambda random, shape: random.laplace(size=shape),
}
# What is measured: the kind of noise, and whether rows are scaled as the clean ones were.
CURVES = {
    "gaussian": ("gaussian", False),
    "laplace": ("laplace", False),
    "gaussian_clean_scale": ("gaussian", True),
    "laplace_clean_scale": ("laplace", True),
}


def draw_noise(kind: str, shape: tuple[int, ...], seed: int) -> Tensor:
    """The noise of a seed at level one: a level multiplies it, so that a curve shows the level and not the draw."""
    random = np.random.default_rng([seed, list(NOISES).index(kind)])
    return torch.from_numpy(NOISES[kind](random, shape).astype(np.float32))


def scaled_rows(data: Data, scaling: str) -> Data:
    """The graph with its features scaled already, for a method that then scales none."""
    scaled = data.clone()
    scaled.x = FEATURE_SCALINGS[scaling](data.x.to_dense().float())
    return scaled


def score_under_noise(
    embed: Callable[[Data], np.ndarray],
    data: Data,
    scaling: str,
    seed: int,
    on_level: Callable[[int, int], None] | None = None,
    classify: Callable[[Data], np.ndarray] | None = None,
) -> dict[str, Any]:
    """Test accuracies in percent, a list over LEVELS for each of CURVES, of the probe that clean features chose.

    The noise depends on nothing but the seed and the shape of the features, and so is the same for every method.

    Args:
        embed: what a method learned from `scaled_rows`.
        data: the graph with its features as given.
        scaling: of rows, by its name in FEATURE_SCALINGS.
        on_level: called with the number of levels measured and that of all.
        classify: what a method that was trained with labels predicts itself, in place of a probe on embeddings.
    """
    y, split = data.y.numpy(), split_of(data)
    other = scaled_rows(without_labels(data), scaling)

    def accuracy(predicted: np.ndarray) -> float:
        return 100 * float((predicted[split.test] == y[split.test]).mean())

    result: dict[str, Any]
    if classify is None:
        probe = choose_probe(embed(other), y, split.train, split.val)
        classify = lambda graph: probe.predict(embed(graph))  # noqa: E731
        clean = accuracy(probe.predicted)
        result = {"val": probe.val, "test": clean, "scaling": probe.scaling, "penalty": probe.penalty}
    else:
        result = score_classes(classify(other), data)
        clean = result["test"]
    result["levels"] = list(LEVELS)
    x = data.x.to_dense().float()
    factor = row_factors(x, scaling)
    for place, (curve, (kind, as_clean)) in enumerate(CURVES.items()):
        if as_clean and scaling == "none":
            result[curve] = result[kind]  # the same by definition
            continue
        noise = draw_noise(kind, tuple(x.shape), seed)
        result[curve] = [clean]
        for level in LEVELS[1:]:
            noisy = x + level * noise
            scaled = noisy * factor if as_clean else FEATURE_SCALINGS[scaling](noisy)
            other.x = scaled
            result[curve].append(accuracy(classify(other)))
            if on_level is not None:
                on_level(place * len(LEVELS) + len(result[curve]), len(CURVES) * len(LEVELS))
    return result


def row_factors(x: Tensor, scaling: str) -> Tensor:
    """What a scaling multiplies each row by, [N, 1]; for rows of zeros, where this is not defined, the mean of all."""
    before, after = (rows.abs().sum(dim=1, keepdim=True) for rows in (x, FEATURE_SCALINGS[scaling](x)))
    factor = after / before
    return torch.where(before > 0, factor, factor[before > 0].mean())
