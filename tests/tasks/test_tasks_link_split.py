"""Held-out edges: how many, which, and how predictions of them are scored."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score
from torch_geometric.data import Data

from topoter.datasets import block_model
from topoter.errors import DataError
from topoter.structure.adjacency import Adjacency
from topoter.tasks.link_split import HeldOut, auc_and_ap, check_splittable, hits_and_mrr, split_links


def edges_of(edge_index: torch.Tensor) -> set[tuple[int, int]]:
    return {(min(pair), max(pair)) for pair in edge_index.t().tolist()}


def test_five_and_ten_in_a_hundred_are_held_out_with_as_many_disconnected_pairs():
    data = block_model(100, 4, 8.0, 5, 0)
    everything = edges_of(data.edge_index)
    split = split_links(data, 0)
    train = edges_of(split.data.edge_index)
    counts = []
    for held_out in (split.val, split.test):
        connected = edges_of(held_out.pairs[:, held_out.label == 1])
        free = edges_of(held_out.pairs[:, held_out.label == 0])
        assert connected <= everything - train
        assert not free & everything
        assert held_out.label.tolist() == [1.0] * len(connected) + [0.0] * len(free)
        assert len(connected) == len(free)
        counts.append(len(connected))
    assert counts == [int(0.05 * len(everything)), int(0.10 * len(everything))]
    assert len(train) + sum(counts) == len(everything)
    assert torch.equal(split.data.edge_label_index, split.val.pairs)
    assert torch.equal(split.data.edge_label, split.val.label)
    assert torch.equal(split.data.x, data.x)
    # each edge of training both ways, and no pair to be predicted among them
    assert split.data.edge_index.size(1) == 2 * len(train)


def test_the_seed_decides_and_the_random_state_stays():
    data = block_model(60, 3, 6.0, 4, 0)
    state = torch.get_rng_state()
    one, again, other = (split_links(data, seed).test.pairs for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


@pytest.mark.parametrize(("free", "enough"), [(8, False), (9, True)])
def test_there_are_disconnected_pairs_for_validation_and_for_testing(free: int, enough: bool):
    """78 pairs: of 70 edges 3 and 7 are held out, of 69 edges 3 and 6."""
    adjacency = Adjacency(torch.combinations(torch.arange(13)).t()[:, free:].contiguous(), 13)
    if enough:
        check_splittable(adjacency)
    else:
        with pytest.raises(DataError, match="has 8 disconnected pairs; 10 are needed"):
            check_splittable(adjacency)


def test_a_split_is_not_changed_afterwards():
    split = split_links(block_model(60, 3, 6.0, 4, 0), 0)
    with pytest.raises(FrozenInstanceError):
        split.test = split.val
    with pytest.raises(FrozenInstanceError):
        split.test.label = split.val.label


def test_weights_stay_with_their_edges():
    data = block_model(60, 3, 6.0, 4, 0)
    weight = {pair: 1.0 + place for place, pair in enumerate(sorted(edges_of(data.edge_index)))}
    data.edge_weight = torch.tensor([weight[min(pair), max(pair)] for pair in data.edge_index.t().tolist()])
    kept = split_links(data, 0).data
    assert kept.edge_weight.tolist() == [weight[min(pair), max(pair)] for pair in kept.edge_index.t().tolist()]
    assert "edge_weight" not in split_links(block_model(60, 3, 6.0, 4, 0), 0).data


def path(edges: int) -> Data:
    row = torch.arange(edges)
    return Data(x=torch.ones(edges + 1, 1), edge_index=torch.stack([row, row + 1]))


def lacking(nodes: int, free: int) -> Data:
    """All pairs are edges, but for some."""
    pairs = torch.combinations(torch.arange(nodes)).t()
    return Data(x=torch.ones(nodes, 1), edge_index=pairs[:, free:])


def test_too_few_edges_or_free_pairs_are_refused_and_just_enough_are_not():
    with pytest.raises(DataError) as caught:
        split_links(path(19), 0)
    assert str(caught.value) == (
        "The graph has 19 edges: too few to hold out 5% for validation and 10% for testing. At least 20 are needed."
    )
    split = split_links(path(20), 0)
    assert (split.val.label.sum(), split.test.label.sum()) == (1, 2)
    with pytest.raises(DataError) as caught:
        split_links(lacking(8, 2), 0)  # 26 edges: 1 for validation, 2 for testing
    assert str(caught.value) == "The graph has 2 disconnected pairs; 3 are needed to hold out as many as edges."
    assert len(split_links(lacking(8, 3), 0).val.label) == 2


def held_out(edges: int, others: int) -> HeldOut:
    return HeldOut.of(torch.zeros(2, edges, dtype=torch.int64), torch.ones(2, others, dtype=torch.int64))


def test_areas_are_scikit_learns_in_percent():
    known = held_out(30, 50)
    assert known.pairs.tolist() == [[0] * 30 + [1] * 50] * 2
    scores = torch.from_numpy(np.random.default_rng(0).integers(0, 9, 80).astype(np.float32))
    auc, ap = auc_and_ap(known, scores)
    assert auc == pytest.approx(100 * roc_auc_score(known.label, scores))
    assert ap == pytest.approx(100 * average_precision_score(known.label, scores))


@pytest.mark.parametrize("others", [19, 20, 49, 50, 51, 100, 130])
def test_hits_and_ranks_are_those_of_the_definition(others):
    known = held_out(25, others)
    scores = np.random.default_rng(others).integers(0, 60, 25 + others).astype(np.float64)
    edges, free = scores[:25], scores[25:]
    found = hits_and_mrr(known, scores)
    for k in (20, 50, 100):
        bar = sorted(free)[-k] if others >= k else -1.0  # where there are fewer, every edge is a hit
        assert found[f"Hits@{k}"] == pytest.approx(100 * np.mean([edge > bar for edge in edges]))
    ranks = [1 + (free > edge).sum() + (free == edge).sum() / 2 for edge in edges]
    assert found["MRR"] == pytest.approx(100 * np.mean([1 / rank for rank in ranks]))
    assert set(found) == {"Hits@20", "Hits@50", "Hits@100", "MRR"}
