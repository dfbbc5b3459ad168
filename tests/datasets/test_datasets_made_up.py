"""The graphs made up to be hard: their sizes, and that classes are linked as each plan says."""

from __future__ import annotations

import pytest
import torch

from topoter.datasets import available, load
from topoter.datasets.made_up import PLANS, make


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_kept(name: str) -> None:
    plan, data = PLANS[name], make(PLANS[name], seed=1)
    info = next(info for info in available() if info.name == name)
    assert (data.num_nodes, data.edge_index.size(1), data.x.size(1)) == (info.nodes, 2 * info.edges, info.features)
    assert data.edge_index.unique(dim=1).size(1) == data.edge_index.size(1)
    assert not data.has_self_loops()
    step = (data.y[data.edge_index[0]] - data.y[data.edge_index[1]]) % plan.classes
    there = {"inside": step == 0, "ring": (step == 1) | (step == plan.classes - 1), "other": step > 0}
    assert there[plan.wiring].float().mean() == pytest.approx(plan.linked, abs=0.03)


def test_hubs_have_most_of_the_edges() -> None:
    shares = []
    for name in ("made-words", "made-hubs"):
        degree = make(PLANS[name]).edge_index[0].bincount(minlength=3000).sort(descending=True).values
        shares.append(float(degree[:300].sum() / degree.sum()))
    assert shares[0] < 0.2 < 0.3 < shares[1]


def test_features_say_as_much_of_the_class_as_planned() -> None:
    for name in ("made-weak", "made-noise", "made-ring"):
        data = make(PLANS[name])
        own = data.x[torch.arange(data.num_nodes), data.y]
        assert own.mean() == pytest.approx(PLANS[name].signal, abs=0.1)
    words = make(PLANS["made-words"])
    assert set(words.x.unique().tolist()) == {0.0, 1.0}
    assert 3 <= words.x.sum(1).mean() <= 20


def test_the_same_seed_gives_the_same_graph_and_a_split_is_drawn() -> None:
    first, again, other = load("made-ring", seed=3), load("made-ring", seed=3), load("made-ring", seed=4)
    assert torch.equal(first.x, again.x)
    assert torch.equal(first.edge_index, again.edge_index)
    assert not torch.equal(first.x, other.x)
    assert first.y[first.train_mask].bincount().tolist() == [20] * 6
