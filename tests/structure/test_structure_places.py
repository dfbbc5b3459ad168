"""Places of nodes by walks and degrees: against dense formulas, what they foretell, and tiny graphs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.dense_oracle import dense_adjacency, dense_propagation, random_graph

from topoter import TopoTER
from topoter.datasets import block_model
from topoter.encoders.hops import STRUCTURES
from topoter.errors import UsageError
from topoter.structure.adjacency import Adjacency
from topoter.structure.degrees import degrees_around
from topoter.structure.walks import projected_walks, walk_places


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def communities() -> tuple[Adjacency, np.ndarray]:
    data = block_model(600, 6, 10, 8, 0)
    adjacency, _ = Adjacency.from_edge_index(data.edge_index, 600)
    return adjacency, data.y.numpy()


def test_walks_are_powers_of_the_adjacency_times_random_numbers() -> None:
    adjacency, _ = communities()
    a = dense_adjacency(adjacency)
    scale = (a.sum(1) + a.sum(1).mean()).rsqrt()
    p = scale[:, None] * a * scale
    drawn = torch.randn(600, 16, generator=seeded())
    powers = [torch.linalg.matrix_power(p, step) @ drawn.double() for step in (2, 3, 4)]
    expected = sum(power / power.norm(dim=1, keepdim=True) for power in powers)
    torch.testing.assert_close(projected_walks(adjacency, drawn).double(), expected, atol=1e-4, rtol=0)


def test_walks_tell_communities_and_by_chance_tell_little() -> None:
    adjacency, y = communities()
    found = walk_places(adjacency, 64, seeded())
    place = found.of_nodes.numpy()
    centres = np.stack([place[y == kind].mean(0) for kind in range(6)])
    assert (((place[:, None] - centres) ** 2).sum(2).argmin(1) == y).mean() > 0.9
    assert walk_places(random_graph(600, 10 / 600, 0), 64, seeded()).strength < found.strength


def test_degrees_are_those_of_the_node_and_of_its_surroundings() -> None:
    adjacency, _ = communities()
    a = dense_adjacency(adjacency)
    s, degree = dense_propagation(a), torch.log1p(a.sum(1, keepdim=True))
    columns = torch.cat([degree, s @ degree, s @ s @ degree], dim=1)
    expected = (columns - columns.mean(0)) / columns.std(0, correction=0)
    torch.testing.assert_close(degrees_around(adjacency).double(), expected, atol=1e-3, rtol=0)


@pytest.mark.parametrize("structure", [name for name, find in STRUCTURES.items() if find is not None])
def test_tiny_graphs_have_no_places_and_a_seed_gives_the_same_bits(structure: str) -> None:
    find = STRUCTURES[structure]
    assert find is not None
    for num_nodes, edges in ((1, [[], []]), (2, [[0], [1]]), (30, [[], []])):
        found = find(Adjacency(torch.tensor(edges, dtype=torch.long), num_nodes), 64, seeded())
        assert found.of_nodes.shape == found.to_spread.shape == (num_nodes, 0)
        assert found.strength == 0
    data = block_model(150, 3, 8, 4, 0)
    data.x = None
    data.num_nodes = 150
    z = TopoTER(structure=structure).fit_transform(data)
    assert np.isfinite(z).all()
    assert np.array_equal(TopoTER(structure=structure).fit_transform(data), z)


def test_structure_is_of_hops() -> None:
    with pytest.raises(UsageError, match="structure goes with the encoder 'hops', not with 'gcn'"):
        TopoTER("gcn", structure="walks").fit(block_model(50, 2, 6, 4, 0))
    with pytest.raises(UsageError, match="wakls"):
        TopoTER(structure="wakls").fit(block_model(50, 2, 6, 4, 0))
