"""Transformations: A~ - A is non-zero exactly on flipped pairs, counts are exact, nothing crosses graphs."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest
import scipy.stats
import torch

from dense_oracle import all_pairs, as_set, batch_of, dense_adjacency, random_graph
from topoter.errors import DataError, UsageError
from topoter.kernels.pairs import join_pairs
from topoter.pretext.transformation import (
    SAMPLERS,
    EdgeChange,
    TopologyTransformation,
    Transition,
    bernoulli,
    check_transformable,
    exact,
    hide,
    join_pairs_plain,
    paired,
)
from topoter.structure.adjacency import Adjacency

pytestmark = pytest.mark.usefixtures("one_thread")

NO_EDGES = torch.empty(2, 0, dtype=torch.int64)
COMPLETE = Adjacency(torch.tensor(all_pairs([6])).t().contiguous(), 6)
SINGLE_EDGE = Adjacency(torch.tensor([[0], [1]]), 2)
EDGE_AND_NODE = Adjacency(torch.tensor([[0], [2]]), 3)
STAR = Adjacency(torch.stack([torch.zeros(7).long(), torch.arange(1, 8)]), 8)
SPARSE = random_graph(25, 0.15, 0)
DENSE = random_graph(12, 0.85, 1)
BATCH = batch_of(SPARSE, COMPLETE, Adjacency(NO_EDGES, 1), STAR, DENSE, Adjacency(NO_EDGES, 3))
GRAPHS = {
    "complete": COMPLETE,
    "single edge": SINGLE_EDGE,
    "edge and node": EDGE_AND_NODE,
    "star": STAR,
    "sparse": SPARSE,
    "dense": DENSE,
    "batch": BATCH,
}

each_graph = pytest.mark.parametrize("adjacency", GRAPHS.values(), ids=GRAPHS.keys())
each_sampler = pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS.keys())
each_rate = pytest.mark.parametrize("rate", [0.0, 0.3, 0.7, 1.0])


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def of_type(transformation: TopologyTransformation, *types: EdgeChange) -> set[tuple[int, int]]:
    wanted = torch.isin(transformation.pair_type, torch.tensor([int(kind) for kind in types]))
    return as_set(transformation.pairs[:, wanted])


def test_types_are_numbered_in_the_papers_order():
    names = ["ADD", "DELETE", "KEEP_DISCONNECTED", "KEEP_CONNECTED"]
    assert [(kind.name, kind.value) for kind in EdgeChange] == list(zip(names, range(4)))


@each_graph
@each_sampler
@each_rate
def test_the_graphs_differ_exactly_on_added_and_deleted_pairs(adjacency, sampler, rate):
    transformation = sampler(adjacency, rate, seeded())
    a, a_t = dense_adjacency(adjacency), dense_adjacency(transformation.adjacency_t)
    changed = as_set((a_t - a).triu().nonzero().t())
    assert changed == of_type(transformation, EdgeChange.ADD, EdgeChange.DELETE)
    assert torch.equal(a_t, a_t.t())
    assert not a_t.diagonal().any()
    # No edge is listed twice, which the dense matrix would hide.
    edges_t = transformation.adjacency_t.edges
    assert len(as_set(edges_t)) == edges_t.size(1) == int(a_t.sum()) // 2
    assert bool((edges_t[0] < edges_t[1]).all())


@each_graph
@each_sampler
@each_rate
def test_every_pair_looked_at_has_the_type_its_ends_say(adjacency, sampler, rate):
    transformation = sampler(adjacency, rate, seeded())
    a, a_t = dense_adjacency(adjacency), dense_adjacency(transformation.adjacency_t)
    pairs = transformation.pairs
    assert bool((pairs[0] < pairs[1]).all())
    assert len(as_set(pairs)) == pairs.size(1) == transformation.pair_type.numel()
    before_and_after = {
        (0, 1): "ADD",
        (1, 0): "DELETE",
        (0, 0): "KEEP_DISCONNECTED",
        (1, 1): "KEEP_CONNECTED",
    }
    for (i, j), kind in zip(pairs.t().tolist(), transformation.pair_type.tolist()):
        assert EdgeChange(kind).name == before_and_after[int(a[i, j]), int(a_t[i, j])]
    assert of_type(transformation, EdgeChange.DELETE, EdgeChange.KEEP_CONNECTED) == as_set(adjacency.edges)


@each_sampler
@each_rate
def test_no_pair_crosses_two_graphs_of_a_batch(sampler, rate):
    space = BATCH.pair_space
    for seed in range(5):
        i, j = sampler(BATCH, rate, seeded(seed)).pairs
        assert torch.equal(space.graph_of_node(i), space.graph_of_node(j))


@each_graph
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.7, 0.99, 1.0])
def test_exactly_the_share_of_each_kind_is_flipped(adjacency, rate):
    transformation = exact(adjacency, rate, seeded())
    space = adjacency.pair_space
    num_edges = adjacency.num_edges
    disconnected = int(torch.minimum(space.num_edges, space.num_disconnected).sum())
    counts = torch.bincount(transformation.pair_type, minlength=4).tolist()
    add, delete = round(rate * disconnected), round(rate * num_edges)
    assert counts == [add, delete, disconnected - add, num_edges - delete]


def test_in_a_batch_each_graph_gets_as_many_disconnected_pairs_as_edges_or_all_it_has():
    space = BATCH.pair_space
    transformation = exact(BATCH, 0.5, seeded())
    disconnected = transformation.pairs[:, transformation.pair_type % 2 == 0]
    found = torch.bincount(space.graph_of_node(disconnected[0]), minlength=space.num_edges.numel())
    assert torch.equal(found, torch.minimum(space.num_edges, space.num_disconnected))


def test_rate_zero_changes_nothing_and_rate_one_exchanges_everything():
    same = exact(SPARSE, 0.0, seeded())
    assert as_set(same.adjacency_t.edges) == as_set(SPARSE.edges)
    other = exact(SPARSE, 1.0, seeded())
    assert other.adjacency_t.num_edges == SPARSE.num_edges
    assert not as_set(other.adjacency_t.edges) & as_set(SPARSE.edges)


def test_graphs_without_a_choice_are_handled_as_far_as_they_go():
    assert exact(COMPLETE, 0.4, seeded()).adjacency_t.num_edges == 15 - 6
    assert exact(SINGLE_EDGE, 1.0, seeded()).adjacency_t.num_edges == 0
    turned = exact(EDGE_AND_NODE, 1.0, seeded())
    assert as_set(turned.adjacency_t.edges) <= {(0, 1), (1, 2)}
    assert turned.adjacency_t.num_edges == 1


def test_a_graph_without_edges_is_refused_in_words():
    with pytest.raises(DataError) as caught:
        check_transformable(Adjacency(NO_EDGES, 5), 0.5)
    assert str(caught.value) == (
        "The graph has 5 nodes and no edges between different nodes: there is no topology to transform. "
        "Check the edge list, or pass a graph with edges."
    )


@pytest.mark.parametrize("rate", [-0.1, 1.5, float("nan")])
def test_a_rate_out_of_range_is_refused_with_its_value(rate):
    with pytest.raises(UsageError) as caught:
        check_transformable(STAR, rate)
    assert str(caught.value) == (
        f"The 'perturbation_rate' parameter of TopoTER must be between 0 and 1. Got {rate!r} instead."
    )


@each_sampler
def test_every_call_is_fresh_and_every_seed_repeatable(sampler):
    generator = seeded(7)
    first, second = sampler(SPARSE, 0.5, generator), sampler(SPARSE, 0.5, generator)
    again = sampler(SPARSE, 0.5, seeded(7))
    assert torch.equal(first.pairs, again.pairs)
    assert torch.equal(first.pair_type, again.pair_type)
    assert torch.equal(first.adjacency_t.edges, again.adjacency_t.edges)
    assert as_set(first.pairs) != as_set(second.pairs)
    assert as_set(first.adjacency_t.edges) != as_set(second.adjacency_t.edges)


@each_sampler
def test_the_graph_given_is_never_changed_and_weights_are_carried(sampler):
    adjacency = random_graph(15, 0.3, 2, weighted=True)
    edges, weight = adjacency.edges.clone(), adjacency.weight.clone()
    transformation = sampler(adjacency, 0.5, seeded())
    assert torch.equal(adjacency.edges, edges)
    assert torch.equal(adjacency.weight, weight)
    a, a_t = dense_adjacency(adjacency), dense_adjacency(transformation.adjacency_t)
    for i, j in of_type(transformation, EdgeChange.KEEP_CONNECTED):
        assert a_t[i, j] == a[i, j]
    for i, j in of_type(transformation, EdgeChange.ADD):
        assert a_t[i, j] == 1


def test_exact_flips_every_edge_and_connects_every_free_pair_equally_often():
    generator = seeded()
    graph = random_graph(9, 0.5, 4)
    rounds, seen = 2000, torch.zeros(9, 9)
    for _ in range(rounds):
        transformation = exact(graph, 0.4, generator)
        i, j = transformation.pairs[:, transformation.pair_type <= EdgeChange.DELETE]
        seen[i, j] += 1
    connected = dense_adjacency(graph) > 0
    above = torch.ones(9, 9).triu(1) > 0
    for group in (seen[above & connected], seen[above & ~connected]):
        size, mean = group.numel(), group.mean()
        # The same number in every round: the variance shrinks by one minus the share drawn.
        statistic = ((group - mean) ** 2).sum() / mean / (1 - mean / rounds) * (size - 1) / size
        assert 0.001 < scipy.stats.chi2.sf(float(statistic), size - 1) < 0.999


@pytest.mark.parametrize("rate", [0.05, 0.4, 0.9])
@pytest.mark.parametrize("adjacency", [SPARSE, BATCH], ids=["graph", "batch"])
def test_bernoulli_flips_every_pair_with_the_same_probability(adjacency, rate):
    space = adjacency.pair_space
    generator = seeded(1)
    rounds = 200
    flips = torch.zeros(2, dtype=torch.int64)
    for _ in range(rounds):
        flips += torch.bincount(bernoulli(adjacency, rate, generator).pair_type, minlength=4)[:2]
    totals = int(space.num_disconnected.sum()), adjacency.num_edges
    for flipped, total in zip(flips.tolist(), totals):
        assert scipy.stats.binomtest(flipped, rounds * total, rate).pvalue > 0.001


@pytest.mark.parametrize("rate", [0.05, 0.5])
def test_bernoulli_adds_every_free_pair_equally_often(rate):
    generator = seeded(3)
    graph = random_graph(9, 0.5, 4)
    rounds, seen = 2000, torch.zeros(9, 9, dtype=torch.float64)
    for _ in range(rounds):
        transformation = bernoulli(graph, rate, generator)
        i, j = transformation.pairs[:, transformation.pair_type == EdgeChange.ADD]
        seen[i, j] += 1
    free = (torch.ones(9, 9).triu(1) > 0) & (dense_adjacency(graph) == 0)
    statistic = ((seen[free] - rounds * rate) ** 2).sum() / (rounds * rate * (1 - rate))
    assert 0.001 < scipy.stats.chi2.sf(float(statistic), int(free.sum())) < 0.999


def test_bernoulli_varies_as_independent_coins_do():
    generator = seeded(2)
    total = int(SPARSE.pair_space.num_disconnected)
    added = [int((bernoulli(SPARSE, 0.3, generator).pair_type == EdgeChange.ADD).sum()) for _ in range(400)]
    variance = float(torch.tensor(added).double().var())
    statistic = variance * 399 / (total * 0.3 * 0.7)
    assert 0.001 < scipy.stats.chi2.sf(statistic, 399) < 0.999


@pytest.mark.parametrize("rate", [0.0, 0.02, 0.6])
def test_bernoulli_looks_at_all_flips_and_fills_up_to_the_number_of_edges(rate):
    space = BATCH.pair_space
    transformation = bernoulli(BATCH, rate, seeded())
    groups = space.num_edges.numel()

    def per_graph(kinds: list[int]) -> torch.Tensor:
        i = transformation.pairs[0, torch.isin(transformation.pair_type, torch.tensor(kinds))]
        return torch.bincount(space.graph_of_node(i), minlength=groups)

    added = per_graph([EdgeChange.ADD])
    looked_at = per_graph([EdgeChange.ADD, EdgeChange.KEEP_DISCONNECTED])
    assert torch.equal(looked_at, torch.minimum(torch.maximum(space.num_edges, added), space.num_disconnected))


def test_paired_couples_each_edge_with_a_pair_at_its_left_end_under_one_coin():
    # One edge per left end, so that it can be seen which pair belongs to which edge.
    graph = Adjacency(torch.tensor([[0, 10, 20], [1, 11, 21]]), 30)
    flipped = 0
    for seed in range(60):
        transformation = paired(graph, 0.5, seeded(seed))
        coin = dict(zip(map(tuple, graph.edges.t().tolist()), [None] * 3))
        for (i, j), kind in zip(transformation.pairs.t().tolist(), transformation.pair_type.tolist()):
            if (i, j) in coin:
                coin[i, j] = kind == EdgeChange.DELETE
        disconnected = transformation.pair_type % 2 == 0
        kinds = zip(transformation.pairs[:, disconnected].t().tolist(), transformation.pair_type[disconnected])
        lefts = []
        for (i, k), kind in kinds:
            ends = [left for left in (0, 10, 20) if left in (i, k)]
            assert ends
            if len(ends) == 1:
                lefts.append(ends[0])
                assert (kind == EdgeChange.ADD) == coin[ends[0], ends[0] + 1]
        assert len(lefts) == len(set(lefts))
        flipped += sum(coin.values())
    assert scipy.stats.binomtest(flipped, 180, 0.5).pvalue > 0.001


def test_paired_is_repeatable_on_several_threads():
    ends = torch.randint(1500, (2, 50_000), generator=seeded())
    ends[0] %= 75
    graph, _ = Adjacency.from_edge_index(ends, 1500)
    torch.set_num_threads(2)
    try:
        first, *others = (paired(graph, 0.5, seeded()).pair_type for _ in range(4))
    finally:
        torch.set_num_threads(1)
    assert all(torch.equal(first, other) for other in others)


def test_paired_leaves_an_edge_without_partner_where_there_is_none():
    transformation = paired(COMPLETE, 1.0, seeded())
    assert as_set(transformation.pairs) == as_set(COMPLETE.edges)
    assert transformation.adjacency_t.num_edges == 0
    # The centre of a star is the left end of all edges and has no free partner.
    assert as_set(paired(STAR, 0.5, seeded()).pairs) == as_set(STAR.edges)


def test_paired_finds_the_first_node_as_a_partner():
    transformation = paired(Adjacency(torch.tensor([[1], [2]]), 3), 1.0, seeded())
    assert as_set(transformation.pairs) == {(1, 2), (0, 1)}


def test_a_transformation_is_not_changed_afterwards():
    with pytest.raises(FrozenInstanceError):
        exact(SPARSE, 0.5, seeded()).pairs = NO_EDGES


def test_a_transformed_graph_can_be_transformed_again():
    for seed in range(5):
        once = exact(SPARSE, 0.5, seeded(seed)).adjacency_t
        twice = exact(once, 0.5, seeded(seed))
        disconnected = twice.pairs[:, twice.pair_type % 2 == 0]
        assert not as_set(disconnected) & as_set(once.edges)


@pytest.mark.parametrize("sizes", [(0, 4), (5, 0), (40, 25)])
def test_pairs_are_joined_as_by_plain_operations(sizes):
    generator = torch.Generator().manual_seed(0)
    arguments = []
    for size in sizes:
        arguments += [torch.randint(9, (2, size), generator=generator), torch.rand(size, generator=generator) < 0.5]
    for found, expected in zip(join_pairs(*arguments), join_pairs_plain(*arguments)):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_hiding_deletes_a_share_of_the_edges_and_looks_at_as_many_disconnected_pairs(share):
    graph = random_graph(20, 0.2, 0)
    hiding = hide(graph, share, torch.Generator().manual_seed(0))
    before, after = as_set(graph.edges), as_set(hiding.adjacency_t.edges)
    assert after <= before
    assert len(before - after) == round(share * graph.num_edges)
    looked_at = as_set(hiding.pairs[:, hiding.pair_type != EdgeChange.KEEP_DISCONNECTED])
    assert looked_at == (before - after if share else before)
    apart = as_set(hiding.pairs[:, hiding.pair_type == EdgeChange.KEEP_DISCONNECTED])
    assert len(apart) == len(looked_at)
    assert not apart & before
    kinds = set(hiding.pair_type.tolist())
    assert kinds == {EdgeChange.KEEP_DISCONNECTED, EdgeChange.DELETE if share else EdgeChange.KEEP_CONNECTED}


def _transition(hidden: list[tuple[int, int]]) -> tuple[Transition, Adjacency, Adjacency]:
    before, after = random_graph(12, 0.3, 0), random_graph(12, 0.3, 1)
    numbers = torch.tensor(sorted(12 * i + j for i, j in hidden), dtype=torch.int64)
    return Transition(before, after, numbers if hidden else None), before, after


def _kinds_of(transformation: TopologyTransformation) -> dict[tuple[int, int], int]:
    pairs, kinds = transformation.pairs.t().tolist(), transformation.pair_type.tolist()
    assert len(pairs) == len(kinds)
    found = {tuple(pair): kind for pair, kind in zip(pairs, kinds)}
    assert len(found) == len(pairs)
    return found


@pytest.mark.parametrize("hides", [False, True])
def test_all_pairs_of_a_transition_have_what_happened_to_them(hides):
    _, before, after = _transition([])
    was, became = as_set(before.edges), as_set(after.edges)
    free = sorted(set(all_pairs([12])) - was - became)
    hidden = [sorted(was - became)[0], sorted(became - was)[0], sorted(was & became)[0], free[0]] if hides else []
    transition, *_ = _transition(hidden)
    wanted = {
        (i, j): {(0, 0): 2, (0, 1): 0, (1, 0): 1, (1, 1): 3}[(i, j) in was, (i, j) in became]
        for i, j in all_pairs([12])
        if (i, j) not in hidden
    }
    assert _kinds_of(transition.all_pairs()) == wanted
    assert transition.all_pairs().adjacency is transition.before
    assert transition.all_pairs().adjacency_t is transition.after


def test_a_step_of_a_transition_looks_at_every_change_and_draws_as_many_that_stay_apart():
    transition, before, after = _transition([])
    was, became = as_set(before.edges), as_set(after.edges)
    one, other = (_kinds_of(transition.sample(seeded(seed))) for seed in (0, 1))
    apart = [pair for pair, kind in one.items() if kind == EdgeChange.KEEP_DISCONNECTED]
    assert set(one) - set(apart) == was | became
    assert len(apart) == max(len(was & became), len(became - was))
    assert set(one) != set(other)
    with pytest.raises(FrozenInstanceError):
        transition.before = after


def test_a_transition_without_anything_that_stays_or_is_added_draws_one_pair():
    alone = Transition(SINGLE_EDGE, Adjacency(NO_EDGES, 2))
    assert _kinds_of(alone.sample(seeded())) == {(0, 1): EdgeChange.DELETE}  # there is no pair that stays apart
    wider = Transition(EDGE_AND_NODE, Adjacency(NO_EDGES, 3))
    assert sorted(_kinds_of(wider.sample(seeded())).values()) == [EdgeChange.DELETE, EdgeChange.KEEP_DISCONNECTED]
