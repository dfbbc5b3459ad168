"""The search for recipes of link prediction: no test pairs, equal start for all, resumable."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch

from topoter.datasets import block_model
from topoter.errors import DataError, UsageError
from topoter.experiments import link_search
from topoter.experiments.link_search import STAGES, LinkSearch, Stage, without_test_pairs
from topoter.tasks.link_split import HeldOut, split_links

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def graph(monkeypatch):
    """A graph, and a space small enough for a test."""
    small = {"hidden_channels": 8, "out_channels": 4, "epochs": 4, "patience": 4}
    values = ({"dropout": 0.0}, {"dropout": 0.3})
    stages = {
        "shared": Stage("gae", {"dropout": values}, {"decoder": "hadamard", **small}),
        "topoter": Stage("topoter", {"topology": ({"joint": 0.1}, {"pretraining_epochs": 2})}, "shared"),
        "vgae": Stage("vgae", {"dropout": values}, "shared"),
    }
    monkeypatch.setattr(link_search, "STAGES", stages)
    return block_model(num_nodes=150, num_blocks=3, mean_degree=6.0, num_features=10, seed=1)


def test_test_pairs_are_gone_before_the_search_begins(graph, tmp_path):
    search = LinkSearch(graph, "sbm", 2, tmp_path / "link-sbm.json")
    for seed, split in enumerate(search.splits):
        whole = split_links(graph, seed)
        assert torch.equal(split.test.pairs, whole.val.pairs)
        assert torch.equal(split.data.edge_index, whole.data.edge_index)


def test_other_test_pairs_change_no_score_and_no_choice(graph, tmp_path, monkeypatch):
    found = [LinkSearch(graph, "sbm", 1, tmp_path / "a.json")]

    def other_test_pairs(data, seed):
        split = split_links(data, seed)
        return dataclasses.replace(split, test=HeldOut(split.test.pairs.flip(1), 1 - split.test.label))

    monkeypatch.setattr(link_search, "split_links", other_test_pairs)
    found.append(LinkSearch(graph, "sbm", 1, tmp_path / "b.json"))
    assert found[0].run() == found[1].run()
    assert found[0].trials == found[1].trials


def test_stages_start_where_the_shared_one_ended_and_trials_are_not_repeated(graph, tmp_path, monkeypatch):
    path = tmp_path / "link-sbm.json"
    search = LinkSearch(graph, "sbm", 1, path)
    best = search.run()
    shared = best["shared"].setting
    assert best["shared"].score == max(trial.score for trial in search.trials if trial.method == "gae")
    assert {name: best["topoter"].setting[name] for name in shared} == shared
    stored = json.loads(path.read_text())
    assert len(stored["trials"]) == 6
    assert not {"auc", "ap", "test_auc", "test_ap"} & set(stored["trials"][0])
    assert len(path.with_suffix(".md").read_text().splitlines()) == 8
    monkeypatch.setattr(link_search, "predict", None)  # would fail if anything were trained again
    assert LinkSearch(graph, "sbm", 1, path).run() == best
    with pytest.raises(DataError, match="holds another search"):
        LinkSearch(graph, "sbm", 2, path)


def test_a_walk_can_be_kept_to_some_parameters(graph, tmp_path):
    search = LinkSearch(graph, "sbm", 1, tmp_path / "link-sbm.json", only=["topoter.topology"])
    best = search.run()
    assert set(best) == {"topoter"}
    start = link_search.STAGES["shared"].start
    assert {name: best["topoter"].setting[name] for name in start} == start
    assert len(search.trials) == 2
    with pytest.raises(UsageError, match=r"Did you mean 'topoter\.topology'"):
        LinkSearch(graph, "sbm", 1, tmp_path / "link-sbm.json", only=["topoter.topologi"])


def test_the_peers_are_given_as_many_settings():
    """Beyond the start all share: as many for TopoTER's own parameters as for revisiting the peers' ones, or fewer."""
    sizes = {name: sum(len(values) - 1 for values in stage.space.values()) for name, stage in STAGES.items()}
    assert sizes["topoter"] <= sizes["gae"] == sizes["vgae"]
    assert STAGES["topoter"].start == STAGES["gae"].start == STAGES["vgae"].start == "shared"


def test_the_split_keeps_what_is_trained_on():
    split = split_links(block_model(100, 2, 6.0, 4, seed=0), 0)
    kept = without_test_pairs(split)
    assert kept.data is split.data
    assert kept.val is split.val
    assert kept.test is split.val
