"""scikit-learn's tools around TopoTER: clone, pickle, Pipeline and GridSearchCV over node numbers."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from torch_geometric.nn import GCNConv

from topoter import NodeEmbedding, TopoTER
from topoter.datasets import block_model
from topoter.errors import DataError, UsageError

GRAPH = block_model(90, 3, 8, 8, 0)
NODES, LABELS = np.arange(90), GRAPH.y.numpy()


def small(**options) -> TopoTER:
    return TopoTER(**{"encoder": "sgc", "out_channels": 8, "epochs": 4, **options})


@pytest.fixture
def trainings(monkeypatch) -> list[int]:
    """One entry for each time a model is trained."""
    seen: list[int] = []
    fit = TopoTER.fit

    def counted(self, *arguments, **options):
        seen.append(self.order)
        return fit(self, *arguments, **options)

    monkeypatch.setattr(TopoTER, "fit", counted)
    return seen


def test_rows_are_those_of_the_embedding_in_the_order_asked():
    step = NodeEmbedding(GRAPH, small()).fit(NODES)
    z = small().fit_transform(GRAPH)
    assert (step.transform([7, 3, 7]) == z[[7, 3, 7]]).all()
    assert (step.transform(np.array([[7], [3]])) == z[[7, 3]]).all()
    assert (step.fit_transform(NODES) == z).all()


def test_a_grid_over_the_model_and_the_classifier(tmp_path, trainings):
    pipeline = Pipeline([("nodes", NodeEmbedding(GRAPH, small(), memory=tmp_path)), ("classify", LogisticRegression())])
    grid = {"nodes__model__order": [1, 2], "classify__C": [0.1, 10.0]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(NODES[:60], LABELS[:60])
    assert len(search.cv_results_["params"]) == 4
    assert sorted(trainings) == [1, 2], "once for each setting of the model, not for each fold"
    assert (search.predict(NODES[60:]) == LABELS[60:]).mean() > 0.8
    best = search.best_estimator_.named_steps["nodes"]
    assert best.model.order == search.best_params_["nodes__model__order"]
    assert pipeline.named_steps["nodes"].model.order == 2, "the pipeline given is not changed"


def test_folds_agree_with_and_without_memory(tmp_path):
    scores = [
        cross_val_score(
            make_pipeline(NodeEmbedding(GRAPH, small(), memory=memory), LogisticRegression()), NODES, LABELS
        )
        for memory in (None, str(tmp_path))
    ]
    assert (scores[0] == scores[1]).all()


def mine(h, h_t, transformation):
    return (h_t - h).square().mean(), {}


@pytest.mark.parametrize(
    ("options", "times"),
    [
        ({}, 1),
        ({"encoder": "gcn"}, 1),
        ({"objective": "full"}, 1),
        ({"random_state": None}, 2),
        ({"random_state": np.random.RandomState(0)}, 2),
        ({"objective": mine}, 2),
        ({"encoder": GCNConv(8, 4)}, 2),
    ],
    ids=["default", "name", "full", "no seed", "random state", "own objective", "own encoder"],
)
def test_only_what_the_parameters_decide_is_remembered(tmp_path, trainings, options, times):
    for _ in range(2):
        NodeEmbedding(GRAPH, small(**options), memory=tmp_path).fit(NODES)
    assert len(trainings) == times


def test_labels_do_not_reach_the_embedding():
    mixed = np.random.default_rng(0).permutation(LABELS)
    fitted = [NodeEmbedding(GRAPH, small()).fit(NODES, labels).embedding_ for labels in (LABELS, mixed, None)]
    assert (fitted[0] == fitted[1]).all()
    assert (fitted[0] == fitted[2]).all()


def test_clone_and_pickle():
    model = small(order=1).fit(GRAPH)
    again = pickle.loads(pickle.dumps(model))
    assert again.get_params() == model.get_params()
    assert (again.transform(GRAPH) == model.transform(GRAPH)).all()
    step = NodeEmbedding(GRAPH, small(order=1))
    copy = clone(step.fit(NODES))
    assert not hasattr(copy, "embedding_")
    assert copy.get_params()["model__order"] == 1
    assert copy.set_params(model__order=3).model.order == 3
    assert step.model.order == 1
    assert (pickle.loads(pickle.dumps(step)).transform([1]) == step.transform([1])).all()


def test_wrong_nodes_are_named():
    step = NodeEmbedding(GRAPH, small(epochs=0)).fit(NODES)
    with pytest.raises(DataError, match="Node 90 does not exist: the graph has 90 nodes, numbered from 0"):
        step.transform([0, 90])
    with pytest.raises(DataError, match="Node -1 does not exist"):
        step.fit([-1])
    with pytest.raises(UsageError, match=r"whole numbers \[n\] or \[n, 1\]. Got float64 \[2, 3\]"):
        step.transform(np.zeros((2, 3)))
    with pytest.raises(UsageError, match="not fitted yet"):
        clone(step).transform([0])
    with pytest.raises(UsageError, match="needs the graph"):
        NodeEmbedding().fit([0])
