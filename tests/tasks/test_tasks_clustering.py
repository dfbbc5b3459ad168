"""k-means with its silhouette: planted groups are found, the seed decides, too few nodes are refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import adjusted_rand_score, silhouette_score

from topoter.errors import DataError, UsageError
from topoter.tasks import clustering
from topoter.tasks.clustering import best_clustering, centred_rows, cluster


def planted(sizes: tuple[int, ...], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    lengths = generator.uniform(1, 9, size=(len(labels), 1))  # groups are directions: lengths must not matter
    directions = np.eye(len(sizes), 8)[labels] + generator.normal(scale=0.05, size=(len(labels), 8))
    return (lengths * directions).astype(np.float32), labels


def test_planted_groups_are_found_and_numbered_by_size():
    z, labels = planted((10, 40, 20))
    result = cluster(z, 3)
    assert adjusted_rand_score(labels, result.labels) == 1.0
    assert result.sizes == [40, 20, 10]
    assert result.labels[10] == 0
    assert result.distance.max() < 0.5
    unit = centred_rows(z)
    assert result.silhouette == pytest.approx(silhouette_score(unit, labels), abs=1e-5)


def test_the_same_seed_gives_the_same_groups():
    z = np.random.default_rng(0).normal(size=(80, 5))
    assert (cluster(z, 6, seed=3).labels == cluster(z, 6, seed=3).labels).all()


def test_the_number_of_groups_is_found():
    z, _ = planted((30, 30, 30, 30))
    tried = best_clustering(z)
    assert next(iter(tried)) == 4
    assert sorted(tried) == list(clustering.TRIED)


def test_eight_of_eight_communities_are_found():
    generator = np.random.default_rng(0)
    labels = np.arange(800) % 8
    # One wide direction parts the groups in two halves; all nodes share a mean; the groups themselves are narrow.
    wide = np.where(labels < 4, 3.0, -3.0)[:, None] * np.eye(1, 12)
    z = 5 + wide + np.eye(8, 12, 1)[labels] * 2.5 + generator.normal(scale=0.35, size=(800, 12))
    tried = best_clustering(z)
    assert next(iter(tried)) == 8
    assert adjusted_rand_score(labels, tried[8].labels) > 0.99


def test_the_graph_has_a_say():
    generator = np.random.default_rng(1)
    labels = np.arange(600) % 6
    same = labels[:, None] == labels[None]
    edge = np.triu(generator.random((600, 600)) < np.where(same, 0.1, 0.004), 1)
    graph = scipy.sparse.csr_matrix((edge | edge.T).astype(np.float32))
    z = np.eye(6, 16)[labels] * 2 + generator.normal(size=(600, 16))  # features alone blur
    alone, among = best_clustering(z), best_clustering(z, graph=graph)
    assert next(iter(among)) == 6
    assert adjusted_rand_score(labels, among[6].labels) > 0.95 > adjusted_rand_score(labels, alone[6].labels)


def test_silhouette_of_many_nodes_is_taken_over_a_sample(monkeypatch):
    z, _ = planted((300, 200))
    whole = cluster(z, 2).silhouette
    monkeypatch.setattr(clustering, "SAMPLE", 100)
    assert cluster(z, 2).silhouette == pytest.approx(whole, abs=0.05)


def test_one_group_has_no_silhouette():
    z, _ = planted((5, 5))
    assert cluster(z, 1).silhouette is None
    assert cluster(z, 10).silhouette is None, "every node a group of its own"


def test_what_cannot_be_grouped_is_refused():
    z, _ = planted((5, 5))
    with pytest.raises(UsageError, match=r"at least 1. Got 0"):
        cluster(z, 0)
    with pytest.raises(DataError, match="There are 10 different embeddings: too few for 11 clusters"):
        cluster(z, 11)
    with pytest.raises(DataError, match="There are 1 different embeddings: too few to look for clusters"):
        best_clustering(np.ones((9, 3)))
    z[3, 2] = np.nan
    with pytest.raises(DataError, match=r"row 3 .* not finite"):
        cluster(z, 2)
