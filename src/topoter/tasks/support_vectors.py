"""How graph embeddings are scored: a support vector machine, cross-validated, its C chosen within training folds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from topoter.errors import DataError

FOLDS = 10
INNER_FOLDS = 3  # of a training fold, to choose C; three keep the largest sets affordable
PENALTIES = tuple(10.0**exponent for exponent in range(-3, 4))


@dataclass(frozen=True)
class FoldScore:
    """One of the folds: accuracies in percent, and the C that its training part chose."""

    inner: float
    test: float
    penalty: float | None = None


def check_classes(y: np.ndarray, folds: int = FOLDS) -> None:
    """Raise unless every class has a member for each fold."""
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise DataError(f"All {len(y)} graphs are of class {classes[0]}: there is nothing to classify.")
    for label, count in zip(classes, counts):
        if count < folds:
            raise DataError(
                f"Class {label} has {count} graph{'s' if count > 1 else ''}, fewer than the {folds} folds of the cross "
                "validation. Merge it with another class, or leave it out."
            )


def folds_of(y: np.ndarray, seed: int, folds: int = FOLDS) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Training and test graphs of every fold, each class in the same shares."""
    yield from StratifiedKFold(folds, shuffle=True, random_state=seed).split(y, y)


def cross_validate(
    y: np.ndarray,
    seed: int,
    *,
    z: np.ndarray | None = None,
    kernel: np.ndarray | None = None,
    folds: int = FOLDS,
    on_fold: Callable[[int, int], None] | None = None,
) -> list[FoldScore]:
    """Score embeddings z [G, F] (by the RBF kernel of scikit-learn's SVC), or a kernel [G, G], fold by fold.

    Nothing of a test fold is looked at before its score: the mean and deviation of z come from the training fold, and C
    from a cross validation within it. The seed shuffles both.
    """
    check_classes(y, folds)
    scores = []
    for train, test in folds_of(y, seed, folds):
        similarity = kernel if z is None else _rbf(z, train)
        assert similarity is not None, "either z or a kernel is given"
        scores.append(_score_fold(similarity, y, train, test, seed))
        if on_fold is not None:
            on_fold(len(scores), folds)
    return scores


def _rbf(z: np.ndarray, train: np.ndarray) -> np.ndarray:
    """exp(-gamma ||a - b||^2) between all graphs, with SVC's gamma="scale", standardised by the training graphs.

    Computed once for a fold, because the search for C needs it many times.
    """
    scaled = StandardScaler().fit(z[train]).transform(z.astype(np.float64))
    gamma = 1 / (scaled.shape[1] * (scaled[train].var() or 1.0))
    squares = (scaled**2).sum(axis=1)
    distance = squares[:, None] + squares - 2 * scaled @ scaled.T
    similarity: np.ndarray = np.exp(-gamma * np.maximum(distance, 0))
    return similarity


def _score_fold(kernel: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, seed: int) -> FoldScore:
    search = GridSearchCV(
        SVC(kernel="precomputed"),
        {"C": PENALTIES},  # ties go to the first, the strongest penalty
        cv=StratifiedKFold(INNER_FOLDS, shuffle=True, random_state=seed),
    )
    search.fit(kernel[np.ix_(train, train)], y[train])
    right = search.predict(kernel[np.ix_(test, train)]) == y[test]
    return FoldScore(100 * float(search.best_score_), 100 * float(right.mean()), float(search.best_params_["C"]))
