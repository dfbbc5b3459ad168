"""The linear probe: one classifier for every method, its regularisation and scaling chosen on validation labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from topoter.errors import DataError

# Inverse strengths of the L2 penalty, for embeddings whose mean squared length is one. Few and wide apart:
# choosing among many settings on some hundred validation nodes fits their noise.
PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


@dataclass(frozen=True)
class Split:
    """Node indices for training, choosing and reporting."""

    train: np.ndarray
    val: np.ndarray
    test: np.ndarray


@dataclass(frozen=True)
class ProbeResult:
    """Accuracies in percent, and what was chosen on validation."""

    val: float
    test: float
    scaling: str
    penalty: float


Map = Callable[[np.ndarray], np.ndarray]


def _center(z: np.ndarray) -> Map:
    """Centred, and of mean squared length one: directions with more variance count more."""
    mean = z.mean(axis=0)
    length = np.sqrt(((z - mean) ** 2).sum(axis=1).mean()) or 1.0
    return lambda other: (other - mean) / length


def _unit(z: np.ndarray) -> Map:
    """Centred, and every row of length one: only directions count."""
    mean = z.mean(axis=0)

    def scale(other: np.ndarray) -> np.ndarray:
        centred = other - mean
        length = np.linalg.norm(centred, axis=1, keepdims=True)
        return centred / np.where(length > 0, length, 1.0)

    return scale


# Each is fitted on embeddings [N, F]; what it returns scales those or others of the same encoder.
SCALINGS = {"center": _center, "unit": _unit}


def fit_probe(z: np.ndarray, y: np.ndarray, split: Split) -> ProbeResult:
    """Fit on the training labels, choose on the validation labels, read the test labels once.

    Args:
        z: embeddings [N, F].
        y: labels [N].
    """
    chosen = choose_probe(z, y, split.train, split.val)
    test = float((chosen.predicted[split.test] == y[split.test]).mean())
    return ProbeResult(chosen.val, 100 * test, chosen.scaling, chosen.penalty)


@dataclass(frozen=True)
class Choice:
    """The probe that validation chose.

    Args:
        val: its accuracy on validation nodes in percent.
        predicted: the class it gives every node, [N].
        predict: the classes it gives other embeddings of the same encoder, [M, F] -> [M].
    """

    val: float
    scaling: str
    penalty: float
    predicted: np.ndarray
    predict: Map


def choose_probe(z: np.ndarray, y: np.ndarray, train: np.ndarray, val: np.ndarray) -> Choice:
    """Fit every scaling and penalty on the training nodes, choose on the validation nodes; reads no other label."""
    if len(np.unique(y[train])) < 2:
        raise DataError("The training nodes hold a single class: there is nothing to classify.")
    best: tuple[float, Choice] | None = None
    for scaling, fit_scale in SCALINGS.items():
        scale = _then_in_span_of(fit_scale(z.astype(np.float64)), z, train)
        scaled = scale(z.astype(np.float64))
        classifiers = [_classifier(scaled[train], y[train], penalty) for penalty in PENALTIES]
        predicted = [classifier.predict(scaled) for classifier in classifiers]
        accuracy = np.array([(labels[val] == y[val]).mean() for labels in predicted])
        smooth = _with_neighbours(accuracy)
        place = int(smooth.argmax())  # ties go to the stronger penalty, and to the scaling tried first
        if best is None or smooth[place] > best[0]:
            predict = _composed(scale, classifiers[place])
            choice = Choice(100 * float(accuracy[place]), scaling, PENALTIES[place], predicted[place], predict)
            best = float(smooth[place]), choice
    assert best is not None
    return best[1]


def _with_neighbours(accuracy: np.ndarray) -> np.ndarray:
    """Each accuracy averaged with those of the next weaker and stronger penalty.

    The true curve is smooth in the penalty; a lone peak on some hundred validation nodes is luck.
    """
    padded = np.pad(accuracy, 1, constant_values=np.nan)
    return np.nanmean([padded[:-2], padded[1:-1], padded[2:]], axis=0)


def _then_in_span_of(scale: Map, z: np.ndarray, train: np.ndarray) -> Map:
    """Scaled, and the same classification problem in as many dimensions as there are training nodes.

    The weights that minimise a loss with an L2 penalty are a combination of the training rows, so nothing is lost
    by looking at the part of every row that lies in their span.
    """
    if z.shape[1] <= len(train):
        return scale
    basis, _ = np.linalg.qr(scale(z[train].astype(np.float64)).T)
    return lambda other: scale(other) @ basis


def _classifier(z: np.ndarray, y: np.ndarray, penalty: float) -> LogisticRegression:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 300 steps are part of the protocol
        return LogisticRegression(C=penalty, max_iter=300).fit(z, y)


def _composed(scale: Map, classifier: LogisticRegression) -> Map:
    """From embeddings to classes."""
    return lambda z: classifier.predict(scale(z.astype(np.float64)))
