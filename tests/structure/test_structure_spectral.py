"""Eigenvectors of the adjacency against a dense solver, and what hidden edges say of each."""

from __future__ import annotations

import numpy as np
import torch
from tests.dense_oracle import dense_adjacency, random_graph

from topoter.datasets import block_model
from topoter.structure.adjacency import Adjacency
from topoter.structure.spectral import eigenvectors, refound, regularized, spectral_places


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_leading_eigenvectors_are_those_of_a_dense_solver() -> None:
    data = block_model(200, 4, 12, 8, 0)
    adjacency, _ = Adjacency.from_edge_index(data.edge_index, 200)
    operator, scale = regularized(adjacency)
    a = dense_adjacency(adjacency)
    expected_scale = (a.sum(1) + a.sum(1).mean()).rsqrt()
    dense = expected_scale[:, None] * a * expected_scale
    torch.testing.assert_close(scale.double(), expected_scale, atol=1e-6, rtol=0)
    values, vectors = eigenvectors(operator, 20, seeded())
    exact = torch.linalg.eigvalsh(dense)
    exact = exact[exact.abs().argsort(descending=True)]
    torch.testing.assert_close(values[:4].double(), exact[:4], atol=1e-4, rtol=0)
    residual = dense @ vectors[:, :4].double() - vectors[:, :4].double() * values[:4]
    assert float(residual.norm()) < 1e-2
    assert torch.equal(eigenvectors(operator, 20, seeded())[1], vectors)


def test_hidden_edges_keep_communities_and_drop_noise() -> None:
    data = block_model(600, 6, 10, 8, 0)
    adjacency, _ = Adjacency.from_edge_index(data.edge_index, 600)
    found = spectral_places(adjacency, 64, seeded())
    place, strength = found.of_nodes, found.strength
    torch.testing.assert_close(found.to_spread.norm(dim=0)[1:], place.norm(dim=0) ** 2, atol=1e-4, rtol=1e-4)
    assert 5 <= place.size(1) <= 20  # five directions separate six communities
    assert strength > 0.2
    leading = place[:, place.norm(dim=0).argsort(descending=True)[:5]].numpy()
    centres = np.stack([leading[data.y.numpy() == kind].mean(0) for kind in range(6)])
    nearest = ((leading[:, None] - centres) ** 2).sum(2).argmin(1)
    assert (nearest == data.y.numpy()).mean() > 0.9
    by_chance = random_graph(600, 10 / 600, 0)
    assert spectral_places(by_chance, 64, seeded()).strength < strength / 3


def test_places_are_found_again_in_a_graph_that_lost_edges_and_not_in_another() -> None:
    data = block_model(600, 6, 10, 8, 0)
    adjacency, _ = Adjacency.from_edge_index(data.edge_index, 600)
    place = spectral_places(adjacency, 64, seeded()).of_nodes[:, :5]
    kept = torch.rand(adjacency.num_edges, generator=seeded()) > 0.1
    rows = torch.arange(600)
    found = refound(place, rows, adjacency.keep(kept), 64)
    assert found is not None
    assert float((found - place).norm() / place.norm()) < 0.5
    unknown = torch.where(rows < 500, rows, -1)
    partly = refound(place, unknown, adjacency, 64)
    assert partly is not None
    assert float((partly[500:] * place[500:]).sum() / place[500:].square().sum()) > 0.5
    assert refound(place, rows, random_graph(600, 10 / 600, 0), 64) is None
    assert refound(place, torch.full((600,), -1), adjacency, 64) is None
