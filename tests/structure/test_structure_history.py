"""A graph's past and short paths, against the same computed densely and one by one."""

from __future__ import annotations

import numpy as np
import torch

from topoter.structure.adjacency import Adjacency
from topoter.structure.history import DECAYS, History
from topoter.structure.pair_features import NAMES, pair_features

NODES = 12


def drawn(seed: int) -> Adjacency:
    pairs = torch.combinations(torch.arange(NODES)).t()
    kept = torch.rand(pairs.size(1), generator=torch.Generator().manual_seed(seed)) < 0.3
    return Adjacency(pairs[:, kept], NODES)


def dense(adjacency: Adjacency) -> np.ndarray:
    a = np.zeros((NODES, NODES))
    a[tuple(adjacency.edge_index.numpy())] = 1
    return a


def test_the_past_is_that_of_all_snapshots():
    graphs = [drawn(seed) for seed in range(5)]
    history, matrices = History.of(graphs), [dense(graph) for graph in graphs]
    for decay, met, active in zip(DECAYS, history.met, history.active):
        weights = decay ** np.arange(4, -1, -1)
        np.testing.assert_allclose(met.toarray(), np.average(matrices, axis=0, weights=weights), atol=1e-12)
        present = [a.any(axis=1) for a in matrices]
        np.testing.assert_allclose(active, np.average(present, axis=0, weights=weights), atol=1e-12)
    pairs = torch.combinations(torch.arange(NODES)).t()
    known = history.pairs(pairs)
    torch.testing.assert_close(known, history.pairs(pairs.flip(0)))
    i, j = pairs.numpy()
    assert known[:, 0].tolist() == matrices[-1][i, j].tolist()
    last = np.max([(t + 1) * a for t, a in enumerate(matrices)], axis=0)[i, j]
    np.testing.assert_allclose(known[:, 1 + len(DECAYS)], 1 / (6 - last), rtol=1e-6)
    np.testing.assert_allclose(known[:, 2 + len(DECAYS)], np.log1p((matrices[-1] @ matrices[-1])[i, j]), rtol=1e-6)


def test_short_paths_are_entries_of_powers():
    graph = drawn(1)
    a, pairs = dense(graph), torch.combinations(torch.arange(NODES)).t()
    i, j = pairs.numpy()
    found = pair_features(graph, pairs).numpy()
    degree = a.sum(axis=1)
    s = a / np.sqrt(np.outer(np.maximum(degree, 1), np.maximum(degree, 1)))
    assert found.shape == (len(i), len(NAMES))
    np.testing.assert_allclose(found[:, 2], np.log1p((a @ a)[i, j]), rtol=1e-5)
    np.testing.assert_allclose(found[:, 5], np.log1p(10 * (s @ s @ s)[i, j]), rtol=1e-5)
    np.testing.assert_allclose(found[:, 6], np.log1p(10 * (s @ s @ s @ s)[i, j]), rtol=1e-5)
    np.testing.assert_allclose(found, pair_features(graph, pairs.flip(0)).numpy(), rtol=1e-6)
