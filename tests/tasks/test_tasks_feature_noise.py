"""Noisy features: the noise is what it says, and encoder, probe and choice are those of clean features."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from topoter.datasets import block_model, random_split
from topoter.features import FEATURE_SCALINGS
from topoter.tasks import node_classification
from topoter.tasks.feature_noise import LEVELS, NOISES, draw_noise, embed_scaled, row_factors, score_under_noise

pytestmark = pytest.mark.usefixtures("one_thread")
PARAMETERS = {
    "topoter": {"out_channels": 16, "epochs": 4, "feature_scaling": "unit"},
    "dgi": {"out_channels": 16, "epochs": 4, "feature_scaling": "sum"},
    "gae": {"out_channels": 16, "epochs": 4},
}


@pytest.fixture(scope="module")
def graph():
    data = block_model(num_nodes=300, num_blocks=3, mean_degree=6.0, num_features=20, seed=1, noise=0.5)
    data.x = data.x / 40  # noise of 0.1 is then much
    data.train_mask, data.val_mask, data.test_mask = random_split(data.y, seed=0, train_per_class=10, val_per_class=15)
    return data


def test_the_levels_are_those_of_the_paper_from_zero_on():
    assert pytest.approx([0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.10]) == LEVELS
    assert list(NOISES) == ["gaussian", "laplace"]


def test_noise_has_its_distribution_and_follows_the_seed_alone():
    gaussian, laplace = (draw_noise(kind, (400, 500), seed=3) for kind in NOISES)
    assert gaussian.mean().item() == pytest.approx(0, abs=0.01)
    assert gaussian.std().item() == pytest.approx(1, rel=0.01)
    assert laplace.abs().mean().item() == pytest.approx(1, rel=0.01)  # the scale is the mean absolute value
    assert laplace.std().item() == pytest.approx(2**0.5, rel=0.02)
    assert torch.equal(gaussian, draw_noise("gaussian", (400, 500), seed=3))
    assert not torch.equal(gaussian, draw_noise("gaussian", (400, 500), seed=4))


@pytest.mark.parametrize("method", ["raw", "propagated", "random-init", "topoter", "dgi", "gae", "vgae"])
def test_the_trained_encoder_takes_other_features(graph, method):
    embedding = node_classification.embed(graph, method, PARAMETERS.get(method, {}), seed=0)
    np.testing.assert_allclose(embedding.encode(graph.x), embedding.z, rtol=1e-4, atol=1e-6)
    noisy = embedding.encode(graph.x + 0.1 * draw_noise("gaussian", tuple(graph.x.shape), 0))
    assert noisy.shape == embedding.z.shape
    assert not np.allclose(noisy, embedding.z, atol=1e-3)


def test_noise_costs_accuracy_and_zero_is_the_usual_score(graph):
    embedding = embed_scaled(graph, "propagated", {}, seed=0)
    seen = []
    result = score_under_noise(embedding, graph, "none", 0, lambda *step: seen.append(step))
    usual = node_classification.score(node_classification.embed(graph, "propagated", {}, seed=0), graph)
    assert {key: result[key] for key in usual} == usual
    assert seen[-1] == (22, 44)
    for kind in NOISES:
        assert len(result[kind]) == len(result["levels"]) == 11
        assert result[kind][0] == usual["test"]
        assert result[kind][-1] < usual["test"] - 5
        assert result[f"{kind}_clean_scale"] == result[kind]  # nothing is scaled
    assert result["laplace"][-1] < result["gaussian"][-1]  # its deviation is larger at the same level


@pytest.mark.parametrize("method", ["propagated", "topoter", "dgi"])
def test_scaling_first_trains_the_same_encoder(graph, method):
    parameters = PARAMETERS.get(method, {"feature_scaling": "sum"})
    usual = node_classification.embed(graph, method, parameters, seed=0)
    scaled = embed_scaled(graph, method, parameters, seed=0)
    np.testing.assert_array_equal(usual.z, scaled.z)
    noisy = graph.x + 0.1 * draw_noise("gaussian", tuple(graph.x.shape), 0)
    rows = FEATURE_SCALINGS[parameters["feature_scaling"]](noisy)
    np.testing.assert_allclose(usual.encode(noisy), scaled.encode(rows), atol=1e-6)


def test_the_twin_scales_rows_as_the_clean_ones():
    x = torch.tensor([[1.0, 3.0], [0.0, 0.0], [2.0, 0.0]])
    torch.testing.assert_close(row_factors(x, "sum"), torch.tensor([[0.25], [0.375], [0.5]]))
    torch.testing.assert_close(row_factors(x, "none"), torch.ones(3, 1))


def test_scaling_noisy_rows_to_sum_one_is_what_harms_where_features_are_mostly_zero():
    data = block_model(num_nodes=300, num_blocks=3, mean_degree=6.0, num_features=20, seed=1, noise=0.5)
    data.x = torch.cat([(data.x > 0.8).float(), torch.zeros(300, 1500)], dim=1)
    data.train_mask, data.val_mask, data.test_mask = random_split(data.y, seed=0, train_per_class=10, val_per_class=15)
    embedding = embed_scaled(data, "propagated", {"feature_scaling": "sum"}, seed=0)
    result = score_under_noise(embedding, data, "sum", 0)
    assert result["gaussian"][-1] < result["gaussian_clean_scale"][-1] - 5


def test_test_labels_change_nothing_but_the_scores(graph):
    changed = graph.clone()
    changed.y = torch.where(graph.test_mask, (graph.y + 1) % 3, graph.y)
    embedding = embed_scaled(graph, "propagated", {}, seed=0)
    a, b = (score_under_noise(embedding, data, "none", 0) for data in (graph, changed))
    assert all(a[key] == b[key] for key in ("val", "scaling", "penalty"))
    assert a["gaussian"] != b["gaussian"]
