"""Labels for nodes that have none: a linear classifier on embeddings, its probabilities calibrated on held-out labels.

Every labelled node is predicted once by a classifier that did not see its label. These predictions tell the accuracy
to expect, and how to state probabilities so that of those called 80 % likely, 80 of 100 are right.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from topoter.errors import DataError
from topoter.tasks.neighbors import compact
from topoter.tasks.own_labels import Labels
from topoter.tasks.probe import SCALINGS

FOLDS = 5
INNER_FOLDS = 3  # that choose the penalty, within the labels that are not held out
PENALTIES = (0.1, 1.0, 10.0, 100.0)
BINS = 10
TEMPERATURES = (0.05, 20.0)
NOISE = tuple(np.linspace(0, 0.5, 26).tolist())


@dataclass(frozen=True)
class Labelled:
    """What every node is, and how sure that is.

    Args:
        probabilities: of every class [N, K].
        held_out: of the labelled nodes, by classifiers that did not see their label [L, K].
        accuracy: in percent, on held-out labels; `error` is its standard error.
        calibration_error: mean gap between stated and true probability on held-out labels, in points; `before` it
            was calibrated.
    """

    probabilities: np.ndarray
    held_out: np.ndarray
    accuracy: float
    error: float
    calibration_error: float
    before: float

    @property
    def predicted(self) -> np.ndarray:
        return self.probabilities.argmax(axis=1)


@dataclass(frozen=True)
class Calibration:
    """Logits divided by a temperature, and a share of labels that nothing predicts, drawn from all classes' shares."""

    temperature: float
    noise: float
    shares: np.ndarray

    def applied(self, logits: np.ndarray) -> np.ndarray:
        return (1 - self.noise) * _softmax(logits / self.temperature) + self.noise * self.shares


def label_nodes(z: np.ndarray, labels: Labels, seed: int = 0) -> Labelled:
    """Classes and calibrated probabilities of all nodes, from embeddings z [N, F] and the labels of some."""
    from sklearn.model_selection import StratifiedKFold

    known, z = labels.known, np.asarray(z, dtype=np.float64)
    y = labels.y[known]
    if np.bincount(y).min() < FOLDS:
        raise DataError(f"Every class needs {FOLDS} labelled nodes at least, to hold some out.")
    # What no label is needed for is learned from all nodes: centre, length, and the directions that matter.
    scaled = compact(SCALINGS["center"](z)(z))
    held_out = np.empty((len(known), len(labels.names)))
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(known, y):
        classifier = _classifier(scaled[known[train]], y[train], seed)
        held_out[test] = classifier.predict_log_proba(scaled[known[test]])
    calibration = calibrated_by(held_out, y)
    after, raw = calibration.applied(held_out), _softmax(held_out)
    right = after.argmax(axis=1) == y
    everywhere = _classifier(scaled[known], y, seed).predict_log_proba(scaled)
    return Labelled(
        probabilities=calibration.applied(everywhere),
        held_out=after,
        accuracy=100 * float(right.mean()),
        error=100 * _standard_error(right),
        calibration_error=calibration_error(after, y),
        before=calibration_error(raw, y),
    )


def best_labelling(
    embeddings: Mapping[str, np.ndarray], labels: Labels, seed: int = 0
) -> tuple[str, dict[str, Labelled]]:
    """A labelling by each of several embeddings, and the name of the one that is likeliest to be right."""
    found = {name: label_nodes(z, labels, seed) for name, z in embeddings.items()}
    y = labels.y[labels.known]
    return min(found, key=lambda name: _loss(found[name].held_out, y)), found


def sure_of(labelled: Labelled, labels: Labels, least: float) -> tuple[float, float | None]:
    """The share of held-out nodes stated with at least this probability, and how many of them are right, in percent."""
    sure = labelled.held_out.max(axis=1) >= least
    right = labelled.held_out.argmax(axis=1) == labels.y[labels.known]
    return 100 * float(sure.mean()), 100 * float(right[sure].mean()) if sure.any() else None


def _standard_error(right: np.ndarray) -> float:
    """Of a share of right answers, as if one more were right and one more wrong: 30 of 30 are not certainty."""
    share = (right.sum() + 1) / (len(right) + 2)
    return float(np.sqrt(share * (1 - share) / len(right)))


def calibration_error(probabilities: np.ndarray, y: np.ndarray) -> float:
    """Mean gap, in points, between what is stated and what is right, over bins of stated probability."""
    stated, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == y
    place = np.minimum((stated * BINS).astype(int), BINS - 1)
    gaps = [abs(stated[place == one].sum() - right[place == one].sum()) for one in np.unique(place)]
    return 100 * float(np.sum(gaps) / len(y))


def _classifier(z: np.ndarray, y: np.ndarray, seed: int):  # type: ignore[no-untyped-def]
    """Logistic regression whose penalty is chosen on held-out parts of these labels."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    folds = StratifiedKFold(INNER_FOLDS, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 300 steps are enough to choose and to predict
        search = GridSearchCV(LogisticRegression(max_iter=300), {"C": PENALTIES}, scoring="neg_log_loss", cv=folds)
        return search.fit(z, y).best_estimator_


def calibrated_by(logits: np.ndarray, y: np.ndarray) -> Calibration:
    """The temperature and the share of noise under which held-out labels are likeliest."""
    from scipy.optimize import minimize_scalar

    shares = np.bincount(y, minlength=logits.shape[1]) / len(y)
    best: tuple[float, Calibration] | None = None
    for noise in NOISE:

        def loss(log_t: float, noise: float = noise) -> float:
            return _loss(Calibration(np.exp(log_t), noise, shares).applied(logits), y)

        found = minimize_scalar(loss, bounds=tuple(np.log(TEMPERATURES)), method="bounded")
        if best is None or found.fun < best[0]:
            best = found.fun, Calibration(float(np.exp(found.x)), noise, shares)
    assert best is not None
    return best[1]


def _softmax(logits: np.ndarray) -> np.ndarray:
    from scipy.special import softmax

    probabilities: np.ndarray = softmax(logits, axis=1)
    return probabilities


def _loss(probabilities: np.ndarray, y: np.ndarray) -> float:
    return float(-np.log(np.clip(probabilities[np.arange(len(y)), y], 1e-12, None)).mean())
