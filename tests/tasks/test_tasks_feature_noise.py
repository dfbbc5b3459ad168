"""Noisy features: the noise is what it says, and encoder, probe and choice are those of clean features."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from topoter.datasets import block_model, random_split
from topoter.methods import build
from topoter.structure.features import FEATURE_SCALINGS
from topoter.tasks import node_classification
from topoter.tasks.feature_noise import LEVELS, NOISES, draw_noise, row_factors, scaled_rows, score_under_noise

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


def fit(data, method, parameters):
    return build(method, "node", parameters).fit(node_classification.without_labels(data), seed=0)


def fit_scaled(data, method, parameters):
    """Trained on rows that are scaled already, as the study does it."""
    rows = scaled_rows(data, parameters.get("feature_scaling", "none"))
    return fit(rows, method, parameters | {"feature_scaling": "none"})


def with_features(data, x):
    other = data.clone()
    other.x = x
    return other


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
    fitted = fit(graph, method, PARAMETERS.get(method, {}))
    z = fitted.embed(graph)
    np.testing.assert_array_equal(fitted.embed(graph), z)
    noisy = fitted.embed(with_features(graph, graph.x + 0.1 * draw_noise("gaussian", tuple(graph.x.shape), 0)))
    assert noisy.shape == z.shape
    assert not np.allclose(noisy, z, atol=1e-3)


def test_noise_costs_accuracy_and_zero_is_the_usual_score(graph):
    fitted = fit_scaled(graph, "propagated", {})
    seen = []
    result = score_under_noise(fitted.embed, graph, "none", 0, lambda *step: seen.append(step))
    usual = node_classification.score(fit(graph, "propagated", {}).embed(graph), graph)
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
    usual, scaled = fit(graph, method, parameters), fit_scaled(graph, method, parameters)
    np.testing.assert_array_equal(usual.embed(graph), scaled.embed(scaled_rows(graph, parameters["feature_scaling"])))
    noisy = graph.x + 0.1 * draw_noise("gaussian", tuple(graph.x.shape), 0)
    rows = FEATURE_SCALINGS[parameters["feature_scaling"]](noisy)
    ours, theirs = usual.embed(with_features(graph, noisy)), scaled.embed(with_features(graph, rows))
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_the_twin_scales_rows_as_the_clean_ones():
    x = torch.tensor([[1.0, 3.0], [0.0, 0.0], [2.0, 0.0]])
    torch.testing.assert_close(row_factors(x, "sum"), torch.tensor([[0.25], [0.375], [0.5]]))
    torch.testing.assert_close(row_factors(x, "none"), torch.ones(3, 1))


def test_scaling_noisy_rows_to_sum_one_is_what_harms_where_features_are_mostly_zero():
    data = block_model(num_nodes=300, num_blocks=3, mean_degree=6.0, num_features=20, seed=1, noise=0.5)
    data.x = torch.cat([(data.x > 0.8).float(), torch.zeros(300, 1500)], dim=1)
    data.train_mask, data.val_mask, data.test_mask = random_split(data.y, seed=0, train_per_class=10, val_per_class=15)
    fitted = fit_scaled(data, "propagated", {"feature_scaling": "sum"})
    result = score_under_noise(fitted.embed, data, "sum", 0)
    assert result["gaussian"][-1] < result["gaussian_clean_scale"][-1] - 5


def test_test_labels_change_nothing_but_the_scores(graph):
    changed = graph.clone()
    changed.y = torch.where(graph.test_mask, (graph.y + 1) % 3, graph.y)
    fitted = fit_scaled(graph, "propagated", {})
    a, b = (score_under_noise(fitted.embed, data, "none", 0) for data in (graph, changed))
    assert all(a[key] == b[key] for key in ("val", "scaling", "penalty"))
    assert a["gaussian"] != b["gaussian"]
