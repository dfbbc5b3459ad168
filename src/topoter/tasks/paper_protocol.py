"""The authors' way to score embeddings. It selects on test labels: shown only beside the paper's numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from topoter.tasks.probe import Split

MAX_EPOCHS = 300
LEARNING_RATE = 0.01


@dataclass(frozen=True)
class PaperResult:
    """Test accuracies in percent of every restart, and the number of epochs that the TEST labels chose."""

    test: list[float]
    epochs: int


def score_as_the_authors(z: np.ndarray, y: np.ndarray, split: Split, restarts: int, seed: int) -> PaperResult:
    """One linear layer trained by Adam: its epochs are those with the best test accuracy, then many restarts.

    This is what the authors' public code does, on one encoder: optimistic in its mean, and without the variance
    of pre-training in its deviation.
    """
    features, labels = torch.from_numpy(z), torch.from_numpy(y).long()
    generator = torch.Generator().manual_seed(seed)
    curve = _test_accuracy_by_epoch(features, labels, split, MAX_EPOCHS, 1, generator)
    epochs = int(curve[:, 0].argmax()) + 1
    runs = _test_accuracy_by_epoch(features, labels, split, epochs, restarts, generator)[-1]
    return PaperResult(runs.tolist(), epochs)


def _test_accuracy_by_epoch(
    z: Tensor, y: Tensor, split: Split, epochs: int, restarts: int, generator: torch.Generator
) -> Tensor:
    """Test accuracies in percent, [epochs, restarts]; the restarts are trained side by side, each on its own."""
    classes = int(y.max()) + 1
    weights = [torch.empty(classes, z.size(1)) for _ in range(restarts)]
    for start in weights:
        torch.nn.init.xavier_uniform_(start, generator=generator)
    weight = torch.cat(weights).requires_grad_()
    bias = torch.zeros(restarts * classes, requires_grad=True)
    optimizer = torch.optim.Adam([weight, bias], lr=LEARNING_RATE)
    train, test = torch.from_numpy(split.train), torch.from_numpy(split.test)
    z_train, z_test = z[train], z[test]
    curve = []
    for _ in range(epochs):
        optimizer.zero_grad()
        logits = functional.linear(z_train, weight, bias).view(-1, classes)  # a row per node and restart
        # The mean over nodes is each restart's own loss; their sum gives each its own gradient.
        loss = restarts * functional.cross_entropy(logits, y[train].repeat_interleave(restarts))
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            predicted = functional.linear(z_test, weight, bias).view(-1, restarts, classes).argmax(2)
        curve.append(100 * (predicted == y[test].unsqueeze(1)).float().mean(0))
    return torch.stack(curve)
