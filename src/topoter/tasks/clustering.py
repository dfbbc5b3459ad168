"""Groups among embeddings: k-means, how many there are (modularity), and how well apart they are (silhouette)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from topoter.errors import DataError, UsageError
from topoter.tasks.neighbors import compact, unit_rows

TRIED = range(2, 21)  # numbers of groups looked at when none is given
NEIGHBORS = (15, 100)  # least and most of each node in the graph of similar nodes, whose modularity is looked at
EQUAL = 0.01  # modularities that differ by less
SMOOTHING = (0, 8)  # hops over which rows are averaged along a graph's edges
SAMPLE = 5_000  # nodes the silhouette is averaged over: its cost grows with their square
_STARTS = 4  # of k-means, each from far-apart centres (k-means++); the best is kept


@dataclass(frozen=True)
class Clustering:
    """Groups numbered by size, the largest 0.

    `distance` is that of each node to the centre of its group, between centred rows of unit length: 0 is the same
    direction, sqrt(2) a right angle. `modularity` is the share of similar nodes that are in one group, beyond what
    chance would give.
    """

    labels: np.ndarray  # [N]
    distance: np.ndarray  # [N]
    modularity: float
    sizes: list[int]
    rows: np.ndarray = field(repr=False)  # [N, F], what was grouped
    seed: int = 0

    @cached_property
    def silhouette(self) -> float | None:
        """Between -1 and 1 (near 0, groups touch); `None` where it is not defined, as for one group."""
        from sklearn.metrics import silhouette_score
        from threadpoolctl import threadpool_limits

        sample = np.random.default_rng(self.seed).permutation(len(self.rows))[:SAMPLE]
        if not 1 < len(np.unique(self.labels[sample])) < len(sample):
            return None
        with threadpool_limits(1):
            return float(silhouette_score(self.rows[sample], self.labels[sample]))


def cluster(z: np.ndarray, count: int, *, seed: int = 0, graph: Any = None) -> Clustering:
    """Group embeddings [N, F] by direction from their mean into `count` groups, with scikit-learn's k-means.

    `graph` [N, N], sparse: each node's neighbours in it have a say in its group, if that makes more of its edges stay
    within groups.
    """
    return best_clustering(z, [count], seed=seed, graph=graph)[count]


def best_clustering(
    z: np.ndarray, tried: Sequence[int] | None = None, *, seed: int = 0, graph: Any = None
) -> dict[int, Clustering]:
    """Clusterings by their number of groups, the best number first.

    Silhouettes favour two groups wherever the widest direction parts the nodes in two. Modularity asks of every node
    whether those that belong to it are in its group: its neighbours in the graph if one is given, else those most
    similar to it, where of nearly equal numbers the smallest is taken.
    """
    rows = centred_rows(z)
    distinct = len(np.unique(rows, axis=0))
    counts = [count for count in TRIED if count < distinct] if tried is None else list(tried)
    if not counts:
        raise DataError(f"There are {distinct:,} different embeddings: too few to look for clusters. Give a number.")
    if graph is None:
        sample = np.random.default_rng(seed).permutation(len(rows))[:SAMPLE]
        similar = similar_nodes(rows[sample])
        found = {count: _cluster(rows, similar, sample, count, seed) for count in counts}
        enough = max(one.modularity for one in found.values()) - EQUAL
        order = sorted(counts, key=lambda count: (found[count].modularity < enough, count))
        return {count: found[count] for count in order}
    everyone = np.arange(len(rows))
    smoothed = [rows if hops == 0 else smooth(rows, graph, hops) for hops in SMOOTHING]
    found = {
        count: max((_cluster(each, graph, everyone, count, seed) for each in smoothed), key=lambda one: one.modularity)
        for count in counts
    }
    return {count: found[count] for count in sorted(counts, key=lambda count: -found[count].modularity)}


def _cluster(rows: np.ndarray, similar: Any, judged: np.ndarray, count: int, seed: int) -> Clustering:
    """k-means on rows, judged by the modularity of `similar`, a graph of the nodes `judged`."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    if count < 1:
        raise UsageError(f"The number of clusters must be at least 1. Got {count} instead.")
    distinct = len(np.unique(rows, axis=0))
    if count > distinct:
        raise DataError(f"There are {distinct:,} different embeddings: too few for {count:,} clusters.")
    # One thread: several add up in an order that varies, and the same seed should give the same groups.
    with threadpool_limits(1):
        fitted = KMeans(count, n_init=_STARTS, random_state=seed).fit(rows)
        by_size = np.argsort(-np.bincount(fitted.labels_, minlength=count), kind="stable")
        labels = np.argsort(by_size)[fitted.labels_]
    centres = fitted.cluster_centers_[by_size]
    distance = np.linalg.norm(rows - centres[labels], axis=1)
    sizes = np.bincount(labels, minlength=count).tolist()
    return Clustering(labels, distance, modularity(similar, labels[judged]), sizes, rows, seed)


def smooth(rows: np.ndarray, graph: Any, hops: int) -> np.ndarray:
    """Rows averaged with those of the nodes up to so many hops away, as directions from their mean."""
    import scipy.sparse

    averaging = graph + scipy.sparse.identity(len(rows), format="csr")
    averaging = scipy.sparse.diags(1 / np.asarray(averaging.sum(axis=1)).ravel()) @ averaging
    for _ in range(hops):
        rows = averaging @ rows
    return centred_rows(rows)


def centred_rows(z: np.ndarray) -> np.ndarray:
    """Embeddings [N, F] as directions from their mean; what all nodes share would make all of them alike."""
    unit = unit_rows(z)
    return compact(unit_rows(unit - unit.mean(axis=0)))


def similar_nodes(rows: np.ndarray) -> Any:
    """The graph [N, N] of the nodes most similar to each, a twentieth of all, sparse and symmetric."""
    from sklearn.neighbors import kneighbors_graph

    count = int(np.clip(len(rows) // 20, *NEIGHBORS))
    graph: Any = kneighbors_graph(rows, max(1, min(count, len(rows) // 8)), include_self=len(rows) == 1)
    return graph.maximum(graph.T)


def modularity(graph: Any, labels: np.ndarray) -> float:
    """The share of a graph's edges within groups, less the share that groups of their degrees would have by chance."""
    member = np.eye(labels.max() + 1, dtype=np.float32)[labels]  # [N, K]
    between = member.T @ (graph @ member)
    total = float(between.sum()) or 1.0
    return float(np.trace(between) / total - ((between.sum(axis=0) / total) ** 2).sum())
