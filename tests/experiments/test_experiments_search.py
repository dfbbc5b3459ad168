"""The search for recipes: it cannot see test labels or test pairs, can be resumed, and gives the same each time."""

from __future__ import annotations

import dataclasses
import inspect
import json

import numpy as np
import pytest
import torch

from topoter import TopoTER
from topoter.datasets import block_model, random_split
from topoter.encoders import Hops
from topoter.errors import DataError, UsageError
from topoter.experiments import search
from topoter.experiments.search import (
    SPACES,
    LinkScores,
    NodeScores,
    Search,
    Trial,
    labelled_splits,
    start_of,
    without_test_pairs,
)
from topoter.experiments.store import read_lines
from topoter.graphs.atomic import this_process
from topoter.methods import UNKNOWN_LABEL, methods_of
from topoter.tasks.link_split import HeldOut, split_links
from topoter.tasks.node_classification import known_labels

pytestmark = pytest.mark.usefixtures("one_thread")
pytest.importorskip("optuna")


@pytest.fixture
def graph(monkeypatch):
    """A graph, and spaces small enough for a test."""
    small = {"out_channels": (8, 16), "epochs": (2, 5)}
    monkeypatch.setitem(SPACES, ("node", "topoter"), {**small, "order": (1, 2), "learning_rate": (1e-3, 1e-2)})
    monkeypatch.setitem(SPACES, ("node", "dgi"), small)
    width = ({"hidden_channels": 8, "out_channels": 4},)
    topology = ({"joint": 0.1}, {"joint": 0.0, "pretraining_epochs": 2})
    monkeypatch.setitem(
        SPACES, ("link", "topoter"), {"width": width, "epochs": (4,), "dropout": (0.0, 0.3), "topology": topology}
    )
    data = block_model(num_nodes=300, num_blocks=3, mean_degree=6.0, num_features=20, seed=1, noise=2.0)
    data.train_mask, data.val_mask, data.test_mask = random_split(data.y, seed=0, train_per_class=10, val_per_class=15)
    return data


def found(data, folder, task="node", method="topoter", trials=4, seeds=1):
    one = Search(data, "sbm", task, method, seeds, 0, folder / "search")
    return one.run(trials), one.trials


# ---- what it may see -------------------------------------------------------------------------------------------------


def test_test_labels_are_gone_before_the_search_begins(graph):
    erased = known_labels(graph)
    assert (erased.y[graph.test_mask] == UNKNOWN_LABEL).all()
    assert torch.equal(erased.y[~graph.test_mask], graph.y[~graph.test_mask])
    for train, val in labelled_splits(erased):
        assert not set(train) & set(val)
        assert (erased.y[np.concatenate([train, val])] != UNKNOWN_LABEL).all()
        assert len(train) == 30
    scores = NodeScores(graph, 1)
    assert torch.equal(scores.data.y, erased.y)
    assert not {"y", "train_mask", "val_mask", "test_mask"} & set(scores.graph.keys())


def test_test_pairs_are_gone_before_the_search_begins(graph):
    for seed, split in enumerate(LinkScores(graph, 2).splits):
        whole = split_links(graph, seed)
        assert torch.equal(split.test.pairs, whole.val.pairs)
        assert torch.equal(split.data.edge_index, whole.data.edge_index)
    split = split_links(graph, 0)
    kept = without_test_pairs(split)
    assert kept.data is split.data
    assert kept.val is split.val
    assert kept.test is split.val


def test_other_test_labels_change_no_score_and_no_choice(graph, tmp_path):
    permuted = graph.clone()
    permuted.y = torch.where(graph.test_mask, (graph.y + 1) % 3, graph.y)
    assert found(graph, tmp_path / "a") == found(permuted, tmp_path / "b")


def test_other_test_pairs_change_no_score_and_no_choice(graph, tmp_path, monkeypatch):
    first = found(graph, tmp_path / "a", task="link")

    def other_test_pairs(data, seed):
        split = split_links(data, seed)
        return dataclasses.replace(split, test=HeldOut(split.test.pairs.flip(1), 1 - split.test.label))

    monkeypatch.setattr(search, "split_links", other_test_pairs)
    assert found(graph, tmp_path / "b", task="link") == first
    assert set(first[0].scores) == {"validation AUC", "validation AP"}
    assert len(first[0].best_epochs) == 1


# ---- what it does ----------------------------------------------------------------------------------------------------


def test_the_best_trial_wins_and_a_search_goes_on_where_it_was(graph, tmp_path, monkeypatch):
    best, trials = found(graph, tmp_path, trials=5)
    assert best.score == max(trial.score for trial in trials)
    assert {trial.parameters["out_channels"] for trial in trials} <= {8, 16}
    kept = [trial for _, trial in read_lines(tmp_path / "search.jsonl", Trial)]
    settings = [json.dumps(trial.parameters, sort_keys=True) for trial in kept]
    assert len(set(settings)) == len(settings)  # a setting proposed twice was not trained twice
    assert set(settings) == {json.dumps(trial.parameters, sort_keys=True) for trial in trials}
    assert all(trial.search == "node-sbm-topoter" and trial.versions["torch"] for trial in kept)
    with monkeypatch.context() as patch:
        patch.setattr(search, "build", None)  # would fail if anything were trained again
        assert found(graph, tmp_path, trials=5) == (best, trials)
    more = found(graph, tmp_path, trials=6)[1]
    assert more[:5] == trials
    assert len(more) == 6
    with pytest.raises(DataError, match="holds another search"):
        found(graph, tmp_path, seeds=2)


def test_stopped_and_resumed_it_tries_what_it_would_have_tried(graph, tmp_path):
    found(graph, tmp_path / "a", trials=3)
    assert found(graph, tmp_path / "a", trials=6) == found(graph, tmp_path / "b", trials=6)


def test_a_trial_that_is_interrupted_is_not_counted(graph, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(NodeScores, "__call__", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            found(graph, tmp_path)
    assert len(found(graph, tmp_path, trials=2)[1]) == 2


def test_a_search_that_was_killed_goes_on_as_if_it_had_never_been(graph, tmp_path, monkeypatch):
    """A killed process tells nobody: its trial is still going on in the journal, and nothing is in the file."""
    tried = []

    def scores(of, method, setting):
        tried.append(setting)
        return {"scores": {"validation accuracy": [float(len(json.dumps(setting)) % 7 + setting["order"])]}}

    monkeypatch.setattr(NodeScores, "__call__", scores)
    undisturbed = found(graph, tmp_path / "a", trials=4)
    asked = list(tried)
    for done in range(4):
        folder = tmp_path / f"killed-{done}"
        if done:
            found(graph, folder, trials=done)
        left = Search(graph, "sbm", "node", "topoter", 1, 0, folder / "search")
        if not done:  # the recipe itself was being tried
            given = {name: search._label(left.start[name]) for name in left.space if name in left.start}
            left.study.enqueue_trial(given)
        cut_off = left.study.ask()
        cut_off.set_user_attr("process", f"{this_process().partition('-')[0]}-{2**22 + 1}")
        if done == 2:  # killed after the trial, before its row
            (folder / "search.jsonl").write_text("")
        del tried[:]
        best, trials = found(graph, folder, trials=4)
        assert (best.parameters, best.scores) == (undisturbed[0].parameters, undisturbed[0].scores)
        assert [trial.parameters for trial in trials] == [trial.parameters for trial in undisturbed[1]]
        assert tried == asked[done:]


def test_peers_are_searched_in_the_same_way(graph, tmp_path):
    best, trials = found(graph, tmp_path, method="dgi", trials=3)
    assert best.method == "dgi"
    assert all(trial.parameters["patience"] == trial.parameters["epochs"] for trial in trials)
    assert len(trials) == 3
    with pytest.raises(UsageError, match=r"no space to search for the method 'raw' on nodes\. Known: topoter, dgi"):
        found(graph, tmp_path, method="raw")


def test_every_space_belongs_to_a_method_and_holds_its_parameters():
    for (task, method), space in SPACES.items():
        assert method in methods_of(task)
        start = start_of(task, method)
        for name, values in space.items():
            assert len(values) > 1
            together = [value for value in values if isinstance(value, dict)]
            assert together or name in (start or TopoTER().effective_params()), (task, method, name)
    ours = SPACES["link", "topoter"]  # peers have what they share with TopoTER, and the same values of it
    for peer in ("gae", "vgae"):
        assert all(ours[name] == values for name, values in SPACES["link", peer].items())


def test_the_default_is_tried_first_so_that_no_search_ends_below_it():
    default = TopoTER().effective_params()
    first = {name: values[0] for name, values in SPACES["node", "topoter"].items()}
    hops = inspect.signature(Hops).parameters
    beside = first.pop("beside")["encoder_parameters"]
    assert {name: hops[name].default for name in beside} == beside
    assert {name: default[name] for name in first} == {**first, "perturbation_rate": (0.0, 0.5)}


def test_the_first_trial_is_the_default(graph, tmp_path):
    _, trials = found(graph, tmp_path, trials=1)
    first = {name: values[0] for name, values in SPACES["node", "topoter"].items()}
    assert trials[0].parameters == first
