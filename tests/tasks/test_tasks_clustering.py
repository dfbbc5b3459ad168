"""k-means with its silhouette: planted groups are found, the seed decides, too few nodes are refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, silhouette_score

from topoter.errors import DataError, UsageError
from topoter.tasks import clustering
from topoter.tasks.clustering import best_clustering, cluster


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
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    assert result.silhouette == pytest.approx(silhouette_score(unit, labels), abs=1e-5)


def test_the_same_seed_gives_the_same_groups():
    z = np.random.default_rng(0).normal(size=(80, 5))
    assert (cluster(z, 6, seed=3).labels == cluster(z, 6, seed=3).labels).all()


def test_the_number_of_groups_is_found_by_silhouette():
    z, _ = planted((30, 30, 30, 30))
    tried = best_clustering(z)
    assert next(iter(tried)) == 4
    assert sorted(tried) == list(clustering.TRIED)
    silhouettes = [result.silhouette for result in tried.values()]
    assert silhouettes == sorted(silhouettes, reverse=True)


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
