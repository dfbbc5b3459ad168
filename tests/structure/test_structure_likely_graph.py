"""Likely neighbours against a plain search, cut into groups, and at the edges of what can be asked."""

from __future__ import annotations

import pytest
import torch

from topoter.kernels import nearest as kernel
from topoter.structure import likely_graph as module
from topoter.structure.likely_graph import Likely, likely_graph, likely_groups, likely_means


def rows(count: int, width: int = 5, seed: int = 0) -> torch.Tensor:
    z = torch.randn(count, width, generator=torch.Generator().manual_seed(seed))
    return z - z.mean(0)


def likely_sums(z: torch.Tensor) -> torch.Tensor:
    """S^ Z."""
    return Likely.of(z).draw(z.clone(), 1.0) - z


def test_each_node_is_joined_to_those_of_the_largest_cosine_above_zero() -> None:
    z = rows(40)
    graph = likely_graph(z, neighbours=3)
    unit = z / z.norm(dim=1, keepdim=True)
    cosine = (unit @ unit.t()).fill_diagonal_(-2)
    wanted = torch.zeros(40, 40)
    for node in range(40):
        for other in cosine[node].argsort(descending=True)[:3]:
            weight = cosine[node, other].clamp(min=0)
            wanted[node, other] = wanted[other, node] = weight
    found = torch.zeros(40, 40)
    assert graph.weight is not None
    found[graph.edges[0], graph.edges[1]] = graph.weight
    torch.testing.assert_close(found + found.t(), wanted)


def test_a_large_graph_is_searched_in_groups_and_finds_most_of_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    centres = 8 * rows(6, seed=1)
    z = centres.repeat_interleave(50, 0) + rows(300)
    whole = set(map(tuple, likely_graph(z, 5).edges.t().tolist()))
    sums = likely_sums(z)
    monkeypatch.setattr(module, "MOST_TOGETHER", 100)
    groups = list(likely_groups(lambda nodes: (z[some] for some in nodes.split(7)), 300))
    assert sorted(torch.cat(groups).tolist()) == list(range(300))
    assert max(map(len, groups)) <= 100
    found = {(int(g[i]), int(g[j])) for g in groups for i, j in likely_graph(z[g], 5).edges.t().tolist()}
    assert len(found & whole) > 0.8 * len(whole)
    for group in groups:
        torch.testing.assert_close(likely_sums(z)[group], likely_graph(z[group]).normalized @ z[group])
    assert (likely_sums(z) - sums).norm() < 0.2 * sums.norm()


def test_some_nodes_of_a_graph_tell_about_what_all_tell() -> None:
    z = (4 * rows(6, seed=1)).repeat_interleave(50, 0) + rows(300)
    sums, some = likely_sums(z), z[torch.randperm(300, generator=torch.Generator().manual_seed(0))[:100]]
    told = likely_means(z, some, 300)
    assert (told - sums).norm() < 0.2 * sums.norm()
    assert (z - sums).norm() > 1.5 * (told - sums).norm(), "more than a node tells alone"


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_graph_of_few_nodes_has_as_many_neighbours_as_there_are(count: int) -> None:
    assert likely_graph(rows(count).abs() + 1).num_edges == count * (count - 1) // 2


def test_equal_rows_and_rows_of_zeros_do_not_fail() -> None:
    assert likely_graph(torch.ones(10, 3), 4).num_edges > 0
    assert likely_graph(torch.zeros(10, 3), 4).num_edges == 0


@pytest.mark.parametrize("threads", [1, 2])
def test_the_kernel_finds_what_its_twin_finds(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    unit = torch.nn.functional.normalize(rows(150, 6), dim=1)
    unit[7] = 0
    monkeypatch.setattr(kernel, "_BLOCK", 40)
    monkeypatch.setattr(kernel, "num_threads", lambda: threads)
    fast, plain = kernel.nearest(unit, 4), kernel.nearest_plain(unit, 4)
    torch.testing.assert_close(*(found[0].sort(dim=1).values for found in (fast, plain)))
    joined = [kernel.joined_both_ways(*found) for found in (fast, plain)]
    assert torch.equal(joined[0][0], joined[1][0])
    torch.testing.assert_close(joined[0][1], joined[1][1])
    keys = joined[0][0][0] * 150 + joined[0][0][1]
    assert bool((keys.diff() > 0).all())
    assert not bool((joined[0][0] == 7).any())
