"""Equivariance as a number: a perfect estimate gives zero, none gives one; the formula against dense matrices."""

from __future__ import annotations

import pytest
import torch

from topoter import TopoTER
from topoter.datasets import block_model
from topoter.errors import DataError
from topoter.pretext.transformation import EdgeChange, exact
from topoter.structure.adjacency import Adjacency
from topoter.tasks import equivariance
from topoter.tasks.equivariance import apply_types, linear_delta, measure_equivariance

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def case():
    data = block_model(60, 2, 6.0, 8, seed=0)
    model = TopoTER("sgc", order=1, out_channels=16, negative_slope=1.0, epochs=5, feature_scaling="none").fit(data)
    adjacency, _ = Adjacency.from_edge_index(data.edge_index, 60)
    return model.model_, data.x, exact(adjacency, 0.5, torch.Generator().manual_seed(0))


def dense(adjacency: Adjacency) -> torch.Tensor:
    matrix = torch.zeros(adjacency.num_nodes, adjacency.num_nodes)
    matrix[adjacency.edge_index[0], adjacency.edge_index[1]] = 1
    return matrix


def test_the_papers_formula_equals_the_dense_one(case):
    model, x, transformation = case
    before, after = dense(transformation.adjacency), dense(transformation.adjacency_t)
    scale = (after.sum(1) + 1).rsqrt()
    signal = model.encoder.project(x).detach()
    expected = scale[:, None] * (after - before) * scale[None, :] @ signal
    found = linear_delta(signal, transformation.pairs, transformation.pair_type, transformation.adjacency_t)
    torch.testing.assert_close(found, expected)


def test_applying_the_true_types_gives_the_transformed_graph(case):
    _, _, transformation = case
    found = apply_types(transformation.adjacency, transformation.pairs, transformation.pair_type)
    assert torch.equal(found.edges, transformation.adjacency_t.edges)


def test_errors_of_the_truth_and_of_no_estimate(case, monkeypatch):
    model, x, transformation = case
    monkeypatch.setattr(equivariance, "estimate_types", lambda *_: transformation.pair_type)
    right = measure_equivariance(model, x, transformation)
    assert right.error < 1e-6
    assert right.accuracy == 1
    assert right.formula_error == right.formula_error_of_truth > 0.01  # degrees changed: the formula leaves it out
    assert int(right.confusion.sum()) == int(right.confusion.diagonal().sum()) == transformation.pairs.size(1)
    unchanged = torch.full_like(transformation.pair_type, int(EdgeChange.KEEP_CONNECTED))
    monkeypatch.setattr(equivariance, "estimate_types", lambda *_: unchanged)
    none = measure_equivariance(model, x, transformation)
    assert none.error == pytest.approx(1)
    assert none.formula_error == pytest.approx(1)


def test_only_one_linear_convolution_has_the_formula(case):
    _, _, transformation = case
    other = TopoTER("gcn", out_channels=4, epochs=1).fit(block_model(60, 2, 6.0, 8, seed=0))
    with pytest.raises(DataError, match="one linear graph convolution"):
        measure_equivariance(other.model_, torch.ones(60, 8), transformation)
    still = exact(transformation.adjacency, 0.0, torch.Generator())
    model, x, _ = case
    with pytest.raises(DataError, match="changes no representation"):
        measure_equivariance(model, x, still)
