"""The search for recipes: it cannot see test labels, and what it reads off a training is what training would give."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from topoter import TopoTER
from topoter.datasets import block_model, random_split
from topoter.errors import DataError
from topoter.experiments import search
from topoter.experiments.search import Search, embeddings_on_the_way, labelled_splits, without_test_labels

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def graph(monkeypatch):
    monkeypatch.setattr(search, "EPOCHS", (2, 5, 9))
    monkeypatch.setattr(search, "SPACE", {"order": (1, 2), "out_channels": (8, 512), "learning_rate": (1e-3, 1e-2)})
    data = block_model(num_nodes=300, num_blocks=3, mean_degree=6.0, num_features=20, seed=1, noise=2.0)
    data.train_mask, data.val_mask, data.test_mask = random_split(data.y, seed=0, train_per_class=10, val_per_class=15)
    return data


def test_test_labels_are_gone_before_the_search_begins(graph):
    erased = without_test_labels(graph)
    assert (erased.y[graph.test_mask] == search.UNKNOWN).all()
    assert torch.equal(erased.y[~graph.test_mask], graph.y[~graph.test_mask])
    for train, val in labelled_splits(erased):
        assert not set(train) & set(val)
        assert (erased.y[np.concatenate([train, val])] != search.UNKNOWN).all()
        assert len(train) == 30


def test_other_test_labels_change_no_score_and_no_choice(graph, tmp_path):
    permuted = graph.clone()
    permuted.y = torch.where(graph.test_mask, (graph.y + 1) % 3, graph.y)
    found = [Search(data, "sbm", 1, tmp_path / f"{place}.json", 5) for place, data in enumerate((graph, permuted))]
    assert found[0].run() == found[1].run()
    assert found[0].trials == found[1].trials
    assert found[0].propagated == found[1].propagated


def test_the_best_trial_wins_and_trials_on_disk_are_not_repeated(graph, tmp_path, monkeypatch):
    path = tmp_path / "sbm.json"
    first = Search(graph, "sbm", 1, path, 5)
    best = first.run()
    assert best.best()[0] == max(trial.best()[0] for trial in first.trials)
    assert {"order", "out_channels", "learning_rate"} <= set(json.loads(path.read_text())["space"])
    rows, references = (part.splitlines()[2:] for part in path.with_suffix(".md").read_text().split("\n\n")[::2])
    assert len(rows) == len(first.trials)
    assert len(references) == len(first.propagated) == 2  # two orders
    assert rows[0].startswith(f"| {best.best()[0]:.2f} | {best.best()[1]} |")
    for name in ("embeddings_on_the_way", "propagated"):
        monkeypatch.setattr(search, name, None)  # would fail if anything were done again
    assert Search(graph, "sbm", 1, path, 5).run() == best
    with pytest.raises(DataError, match="holds another search"):
        Search(graph, "sbm", 2, path, 5)


def test_embeddings_on_the_way_are_those_of_shorter_trainings(graph):
    setting = {"out_channels": 8, "order": 1}
    for epochs, z in embeddings_on_the_way(graph, setting, 3, [2, 5]):
        whole = TopoTER(**setting, epochs=epochs, patience=None, random_state=3).fit_transform(graph)
        np.testing.assert_array_equal(z, whole)
