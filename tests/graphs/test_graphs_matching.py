"""Features of a new graph matched with a model's by name, and each mismatch in words."""

from __future__ import annotations

import logging

import pytest
import scipy.sparse
import torch
from torch_geometric.data import Data

from topoter.errors import DataError
from topoter.graphs import match_features
from topoter.graphs.matrices import as_matrix

KNOWN = ["age", "colour=blue", "colour=red"]


def graph(names: list[str] | None, x: list[list[float]]) -> Data:
    data = Data(x=torch.tensor(x), edge_index=torch.empty(2, 0, dtype=torch.long))
    if names is not None:
        data.feature_names = names
    return data


def test_the_same_names_in_another_order_are_put_right():
    data = graph(["colour=red", "age", "colour=blue"], [[3.0, 1.0, 2.0]])
    assert match_features(data, KNOWN, 3).x.tolist() == [[1.0, 2.0, 3.0]]
    assert data.x.tolist() == [[3.0, 1.0, 2.0]]


def test_sparse_features_are_put_right_too():
    data = graph(["colour=red", "age", "colour=blue"], [[3.0, 0.0, 2.0]])
    data.x = as_matrix(scipy.sparse.csr_matrix(data.x.numpy()), "x")
    assert match_features(data, KNOWN, 3).x.tolist() == [[0.0, 2.0, 3.0]]


def test_a_category_that_no_new_node_has_is_zero_and_said(caplog):
    with caplog.at_level(logging.INFO, logger="topoter"):
        matched = match_features(graph(["age", "colour=blue"], [[1.0, 1.0]]), KNOWN, 3)
    assert matched.x.tolist() == [[1.0, 1.0, 0.0]]
    assert matched.feature_names == KNOWN
    assert caplog.messages == ["No node of this graph is 'colour=red': those features are zero."]


def test_without_names_the_number_must_agree():
    assert match_features(graph(None, [[1.0, 2.0, 3.0]]), KNOWN, 3).x.size(1) == 3
    with pytest.raises(DataError, match="The graph has 2 features per node; the model was fitted on 3"):
        match_features(graph(None, [[1.0, 2.0]]), KNOWN, 3)


@pytest.mark.parametrize(
    ("known", "names", "message"),
    [
        (KNOWN, ["colour=blue", "colour=red"], "The features are not those the model was fitted on: missing 'age'."),
        (
            KNOWN,
            ["age", "size"],
            "The features are not those the model was fitted on: missing 'colour=blue', 'colour=red', "
            "not known to the model 'size'.",
        ),
        (
            KNOWN,
            [*KNOWN, "colour=green"],
            "The features are not those the model was fitted on: not known to the model 'colour=green'. "
            "A category the model has never seen has no weights: fit again, or blank it.",
        ),
        (
            ["log_degree", "constant"],
            ["age"],
            "The model was fitted on a graph without features (on degrees and a constant), but this graph has 'age'. "
            "Leave the features out, or fit a model with them.",
        ),
        (
            [f"f{number}" for number in range(7)],
            ["log_degree", "constant"],
            "The model was fitted on the features 'f0', 'f1', 'f2', 'f3', 'f4' and 2 more, but this graph has none. "
            "Give its features (--features FILE, or x= in Python).",
        ),
    ],
    ids=["missing", "both", "new category", "model without", "graph without"],
)
def test_what_differs_is_said(known, names, message):
    with pytest.raises(DataError) as caught:
        match_features(graph(names, [[0.0] * len(names)]), known, len(known))
    assert str(caught.value) == message


def test_a_graph_without_features_fits_a_model_of_one_nameless_number_and_it_is_said(caplog):
    data = graph(["log_degree", "constant"], [[0.7, 1.0], [0.0, 1.0]])
    with caplog.at_level(logging.INFO, logger="topoter"):
        matched = match_features(data, None, 1)
    assert matched.x.tolist() == [[1.0], [1.0]]
    assert "the number 1 takes the place of degree and constant" in caplog.text
    assert data.x.shape == (2, 2)
    with pytest.raises(DataError, match="2 features per node; the model was fitted on 3"):
        match_features(data, None, 3)
