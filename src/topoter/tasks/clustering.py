"""Groups among embeddings: k-means, and how well apart the groups are (silhouette)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from topoter.errors import DataError, UsageError
from topoter.tasks.neighbors import unit_rows

TRIED = range(2, 13)  # numbers of groups looked at when none is given
SAMPLE = 5_000  # nodes the silhouette is averaged over: its cost grows with their square
_STARTS = 4  # of k-means, each from far-apart centres (k-means++); the best is kept


@dataclass(frozen=True)
class Clustering:
    """Groups numbered by size, the largest 0.

    `distance` is that of each node to the centre of its group, between rows of unit length: 0 is the same
    direction, sqrt(2) a right angle. `silhouette` is between -1 and 1 (near 0, groups touch), or `None` where it is
    not defined, as for one group.
    """

    labels: np.ndarray  # [N]
    distance: np.ndarray  # [N]
    silhouette: float | None
    sizes: list[int]


def cluster(z: np.ndarray, count: int, *, seed: int = 0) -> Clustering:
    """Group embeddings [N, F] by direction into `count` groups, with scikit-learn's k-means."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score
    from threadpoolctl import threadpool_limits

    if count < 1:
        raise UsageError(f"The number of clusters must be at least 1. Got {count} instead.")
    rows = unit_rows(z)
    distinct = len(np.unique(rows, axis=0))
    if count > distinct:
        raise DataError(f"There are {distinct:,} different embeddings: too few for {count:,} clusters.")
    # One thread: several add up in an order that varies, and the same seed should give the same groups.
    with threadpool_limits(1):
        fitted = KMeans(count, n_init=_STARTS, random_state=seed).fit(rows)
        by_size = np.argsort(-np.bincount(fitted.labels_, minlength=count), kind="stable")
        labels = np.argsort(by_size)[fitted.labels_]
        silhouette = None
        if 1 < count < len(rows):
            sample = np.random.default_rng(seed).permutation(len(rows))[:SAMPLE]
            if 1 < len(np.unique(labels[sample])) < len(sample):
                silhouette = float(silhouette_score(rows[sample], labels[sample]))
    centres = fitted.cluster_centers_[by_size]
    distance = np.linalg.norm(rows - centres[labels], axis=1)
    return Clustering(labels, distance, silhouette, np.bincount(labels, minlength=count).tolist())


def best_clustering(z: np.ndarray, tried: Sequence[int] = TRIED, *, seed: int = 0) -> dict[int, Clustering]:
    """Clusterings by their number of groups, the one with the largest silhouette first."""
    distinct = len(np.unique(unit_rows(z), axis=0))
    counts = [count for count in tried if count < distinct]
    if not counts:
        raise DataError(f"There are {distinct:,} different embeddings: too few to look for clusters. Give a number.")
    found = {count: cluster(z, count, seed=seed) for count in counts}
    order = sorted(counts, key=lambda count: -(found[count].silhouette or -1.0))
    return {count: found[count] for count in order}
