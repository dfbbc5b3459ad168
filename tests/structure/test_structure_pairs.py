"""PairSpace: the numbering is a bijection, and disconnected pairs are drawn exactly and uniformly."""

from __future__ import annotations

import pytest
import scipy.stats
import torch

from dense_oracle import all_pairs, as_set, batch_of, random_graph
from topoter.structure.adjacency import Adjacency
from topoter.structure.pairs import PairSpace, sample_distinct, sorted_draws, union_of_sorted

pytestmark = pytest.mark.usefixtures("one_thread")

NO_EDGES = torch.empty(2, 0, dtype=torch.int64)


@pytest.mark.parametrize("sizes", [[1], [2], [3], [7], [12], [4, 1, 5], [1, 1, 3, 0, 2], [2, 6, 1]])
def test_every_pair_of_a_small_batch_has_its_number(sizes):
    ptr = torch.tensor([0, *sizes]).cumsum(0)
    space = PairSpace(NO_EDGES, sum(sizes), ptr)
    pairs = torch.tensor(all_pairs(sizes), dtype=torch.int64).reshape(-1, 2).t().contiguous()
    graph = space.graph_of_node(pairs[0])
    number = torch.arange(pairs.size(1))
    assert torch.equal(space.number(pairs, graph), number)
    assert torch.equal(space.pair(number, graph), pairs)


# At 134 million nodes the numbers come near 2^53, where the square root alone is off by a row.
@pytest.mark.parametrize("num_nodes", [1_000_000, 134_000_000])
def test_number_and_pair_are_inverse_on_a_large_graph(num_nodes):
    space = PairSpace(NO_EDGES, num_nodes)
    generator = torch.Generator().manual_seed(0)
    ends = torch.randint(num_nodes, (2, 200_000), generator=generator)
    pairs = torch.stack([ends.amin(0), ends.amax(0)])
    pairs = pairs[:, pairs[0] < pairs[1]]
    last = torch.tensor([[0, 0, num_nodes - 2, num_nodes - 3], [1, num_nodes - 1, num_nodes - 1, num_nodes - 2]])
    ends_of_rows = torch.stack([pairs[0], torch.full_like(pairs[0], num_nodes - 1)])
    starts_of_rows = torch.stack([pairs[0], pairs[0] + 1])
    pairs = torch.cat([pairs, last, starts_of_rows, ends_of_rows], dim=1)
    graph = torch.zeros(pairs.size(1), dtype=torch.int64)
    assert torch.equal(space.pair(space.number(pairs, graph), graph), pairs)
    assert space.number(last, graph[:4])[2] == num_nodes * (num_nodes - 1) // 2 - 1


def test_number_and_pair_are_inverse_in_a_large_batch():
    ptr = torch.tensor([0, 500_000, 500_001, 900_000, 1_000_000])
    space = PairSpace(NO_EDGES, 1_000_000, ptr)
    generator = torch.Generator().manual_seed(0)
    number = torch.randint(int(space.num_pairs.sum()), (200_000,), generator=generator)
    graph = torch.searchsorted(space.offset, number, right=True) - 1
    pairs = space.pair(number, graph)
    assert torch.equal(space.number(pairs, graph), number)
    assert bool((pairs[0] < pairs[1]).all())
    for end in pairs:
        assert torch.equal(space.graph_of_node(end), graph)


def star(num_nodes: int) -> Adjacency:
    return Adjacency(torch.stack([torch.zeros(num_nodes - 1).long(), torch.arange(1, num_nodes)]), num_nodes)


def complete(num_nodes: int) -> Adjacency:
    return Adjacency(torch.tensor(all_pairs([num_nodes])).t().contiguous(), num_nodes)


BATCH = batch_of(random_graph(9, 0.5, 0), complete(4), Adjacency(NO_EDGES, 1), star(6), random_graph(15, 0.9, 1))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("adjacency", [random_graph(30, 0.2, 0), star(8), complete(5), BATCH])
def test_disconnected_pairs_are_different_sorted_no_edges_and_as_many_as_asked_for(adjacency, share):
    space = adjacency.pair_space
    count = (space.num_disconnected * share).round().long()
    drawn = space.disconnected(count, torch.Generator().manual_seed(0))
    assert bool((drawn[0] < drawn[1]).all())
    assert drawn.t().tolist() == sorted(drawn.t().tolist())
    assert len(as_set(drawn)) == drawn.size(1)
    assert not as_set(drawn) & as_set(adjacency.edges)
    graph = space.graph_of_node(drawn[0])
    assert torch.equal(graph, space.graph_of_node(drawn[1]))
    assert torch.bincount(graph, minlength=count.numel()).tolist() == count.tolist()


def test_all_disconnected_pairs_together_are_the_complement():
    space = BATCH.pair_space
    drawn = space.disconnected(space.num_disconnected, torch.Generator().manual_seed(0))
    sizes = (BATCH.ptr[1:] - BATCH.ptr[:-1]).tolist()
    assert as_set(drawn) == set(all_pairs(sizes)) - as_set(BATCH.edges)


# Few of many are drawn one by one, most of few by drawing what is left out.
@pytest.mark.parametrize("share", [0.15, 0.85])
@pytest.mark.parametrize("adjacency", [random_graph(10, 0.35, 3), BATCH], ids=["graph", "batch"])
def test_every_disconnected_pair_is_equally_likely(adjacency, share):
    space = adjacency.pair_space
    count = (space.num_disconnected * share).round().long()
    generator = torch.Generator().manual_seed(0)
    rounds = 1500
    seen: dict[tuple[int, int], int] = {}
    for _ in range(rounds):
        for pair in map(tuple, space.disconnected(count, generator).t().tolist()):
            seen[pair] = seen.get(pair, 0) + 1
    sizes = (space.ptr[1:] - space.ptr[:-1]).tolist()
    edges = as_set(adjacency.edges)
    for graph, (size, wanted) in enumerate(zip(space.num_disconnected.tolist(), count.tolist())):
        if not 0 < wanted < size:
            continue
        start = sum(sizes[:graph])
        inside = [(i + start, j + start) for i, j in all_pairs([sizes[graph]])]
        observed = [seen.get(pair, 0) for pair in inside if pair not in edges]
        expected = rounds * wanted / size
        # Draws within a round exclude each other, which shrinks the variance by (size - wanted) / (size - 1).
        statistic = sum((o - expected) ** 2 for o in observed) / expected * (size - 1) / (size - wanted)
        assert 0.001 < scipy.stats.chi2.sf(statistic, size - 1) < 0.999


def test_the_same_seed_draws_the_same_and_the_next_call_others():
    space = random_graph(40, 0.2, 0).pair_space
    generator = torch.Generator().manual_seed(5)
    first = space.disconnected(torch.tensor([50]), generator)
    second = space.disconnected(torch.tensor([50]), generator)
    assert torch.equal(first, space.disconnected(torch.tensor([50]), torch.Generator().manual_seed(5)))
    assert as_set(first) != as_set(second)


def test_distinct_numbers_stay_in_their_ranges():
    first, size = torch.tensor([0, 10, 10, 1000]), torch.tensor([10, 0, 990, 5])
    count = torch.tensor([9, 0, 100, 5])
    drawn = sample_distinct(first, size, count, torch.Generator().manual_seed(0)).tolist()
    assert drawn == sorted(set(drawn))
    inside = [sum(f <= number < f + s for number in drawn) for f, s in zip(first.tolist(), size.tolist())]
    assert inside == count.tolist()


@pytest.mark.parametrize("groups", [1, 3])
def test_sorted_draws_are_independent_uniform_numbers_in_order(groups):
    """Each order statistic of n uniform numbers has its own beta distribution; together they are uniform again."""
    size, count, rounds = 1_000_000, 5, 2000
    generator = torch.Generator().manual_seed(0)
    first, sizes, counts = torch.arange(groups) * size, torch.full((groups,), size), torch.full((groups,), count)
    drawn = torch.stack([sorted_draws(first, sizes, counts, generator) for _ in range(rounds)])
    drawn = drawn.view(rounds, groups, count) - first.view(1, groups, 1)
    assert bool((drawn.diff(dim=2) >= 0).all())
    for group in range(groups):
        shares = (drawn[:, group].double() + 0.5) / size
        for rank in range(count):
            law = scipy.stats.beta(rank + 1, count - rank).cdf
            assert scipy.stats.kstest(shares[:, rank].numpy(), law).pvalue > 1e-3
        assert scipy.stats.kstest(shares.flatten().numpy(), "uniform").pvalue > 1e-3


def test_draws_from_small_ranges_repeat_as_often_as_independent_ones_do():
    drawn = sorted_draws(torch.tensor([7]), torch.tensor([3]), torch.tensor([30_000]), torch.Generator().manual_seed(0))
    counts = torch.bincount(drawn - 7, minlength=3)
    assert scipy.stats.chisquare(counts.numpy()).pvalue > 1e-3


@pytest.mark.parametrize("adjacency", [random_graph(30, 0.2, 0), BATCH], ids=["graph", "batch"])
def test_compiled_and_plain_sampling_draw_the_same(adjacency, monkeypatch):
    space = adjacency.pair_space
    count = (space.num_disconnected * 0.4).long()
    compiled = space.disconnected(count, torch.Generator().manual_seed(3))
    monkeypatch.setenv("TOPOTER_KERNELS", "plain")
    assert torch.equal(compiled, space.disconnected(count, torch.Generator().manual_seed(3)))


@pytest.mark.parametrize("lists", [([], []), ([1, 4], []), ([], [2, 2, 5]), ([1, 4, 9], [0, 0, 4, 4, 10]), ([3], [3])])
def test_the_union_of_sorted_lists_holds_every_number_once(lists):
    a, b = (torch.tensor(numbers, dtype=torch.int64) for numbers in lists)
    assert union_of_sorted(a, b).tolist() == sorted({*lists[0], *lists[1]})
