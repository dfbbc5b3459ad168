"""Labels for the rest: the accuracy that is promised is met, and stated probabilities mean what they say."""

from __future__ import annotations

import numpy as np
import pytest

from topoter import DataError
from topoter.tasks.labelling import best_labelling, calibration_error, label_nodes, sure_of
from topoter.tasks.own_labels import UNLABELLED, Labels

CLASSES, NODES, KNOWN = 4, 4000, 400


def made(seed: int = 0, noise: float = 0.2) -> tuple[np.ndarray, np.ndarray, Labels]:
    """Embeddings, what every node is, and labels for some; a share of all nodes is something at random."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, CLASSES, NODES)
    z = np.eye(CLASSES)[y] @ rng.normal(size=(CLASSES, 30)) + rng.normal(0, 1.5, (NODES, 30))
    y = np.where(rng.random(NODES) < noise, rng.integers(0, CLASSES, NODES), y)
    known = np.full(NODES, UNLABELLED)
    some = rng.permutation(NODES)[:KNOWN]
    known[some] = y[some]
    return z.astype(np.float32), y, Labels(known, list("abcd"), [])


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_what_is_promised_is_met(noise: float) -> None:
    z, y, labels = made(noise=noise)
    found = label_nodes(z, labels)
    rest = labels.y == UNLABELLED
    true = 100 * (found.predicted[rest] == y[rest]).mean()
    assert abs(true - found.accuracy) < 3 * found.error
    assert calibration_error(found.probabilities[rest], y[rest]) < 6
    assert np.allclose(found.probabilities.sum(axis=1), 1)
    share, right = sure_of(found, labels, 0.7)
    assert right is not None
    sure = rest & (found.probabilities.max(axis=1) >= 0.7)
    assert abs(100 * sure.sum() / rest.sum() - share) < 10
    assert abs(100 * (found.predicted[sure] == y[sure]).mean() - right) < 8


def test_the_better_embedding_is_used_and_labels_of_others_change_nothing() -> None:
    z, _, labels = made()
    noise = np.random.default_rng(5).normal(size=z.shape)
    chosen, tried = best_labelling({"noise": noise, "good": z}, labels)
    assert chosen == "good"
    assert tried["noise"].accuracy < tried["good"].accuracy
    assert np.array_equal(label_nodes(z, labels).probabilities, tried["good"].probabilities)


def test_too_few_labels() -> None:
    y = np.array([0] * 10 + [1] * 3 + [UNLABELLED] * 10)
    with pytest.raises(DataError, match="Every class needs 5 labelled nodes"):
        label_nodes(np.eye(23), Labels(y, ["a", "b"], []))


def test_a_few_labels_all_of_them_right_are_no_certainty() -> None:
    y = np.arange(40) % 2
    z = np.stack([10.0 * y, np.random.default_rng(0).normal(size=40)], axis=1).astype(np.float32)
    found = label_nodes(z, Labels(np.where(np.arange(40) < 30, y, UNLABELLED), ["a", "b"], []))
    assert found.accuracy == 100
    assert 2 < found.error < 5
