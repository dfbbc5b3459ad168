"""Node classification: the probe is right, and test labels influence nothing but the reported score."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from topoter.datasets import block_model, random_split
from topoter.errors import DataError, TopoterError, UsageError
from topoter.methods import UNKNOWN_LABEL, build, methods_of
from topoter.tasks import node_classification, paper_protocol
from topoter.tasks.paper_protocol import score_as_the_authors

SMALL = {"out_channels": 16, "epochs": 12, "patience": None}
PEER = {"out_channels": 16, "epochs": 8}
WALKS = {"out_channels": 8, "walks": 1, "length": 8, "window": 2}
SIGNED = ("gmi", "graphter", "cca-ssg", "grace", "bgrl", "graphmae", "maskgae")  # their defaults are for words
LABELLED = {"epochs": 40, "feature_scaling": "none"}
# Small ones for every method that has other parameters than `PEER`'s.
PARAMETERS: dict[str, dict[str, object]] = {"topoter": SMALL, "random-init": SMALL}
PARAMETERS |= {name: {} for name in ("raw", "propagated", "propagated-tuned")}
PARAMETERS |= dict.fromkeys(("deepwalk", "deepwalk+features", "node2vec"), WALKS)
PARAMETERS |= dict.fromkeys(("gcn", "monet", "sgc", "gwnn", "mixhop", "dfnet"), LABELLED)
PARAMETERS |= {"gat": {**LABELLED, "learning_rate": 0.05, "feature_dropout": 0.1, "dropout": 0.1}}
WITH_LABELS = [name for name in methods_of("node") if build(name, "node", PARAMETERS.get(name, PEER)).needs_labels]
NOTHING_RANDOM = ("raw", "propagated", "propagated-tuned", "hop-svd")
WITHOUT_LABELS = [name for name in methods_of("node") if name not in WITH_LABELS]


@pytest.fixture(scope="module")
def graph():
    data = block_model(num_nodes=400, num_blocks=4, mean_degree=8.0, num_features=24, seed=3, noise=1.5)
    data.train_mask, data.val_mask, data.test_mask = random_split(data.y, seed=0, train_per_class=10, val_per_class=20)
    return data


def fit(data, method, parameters, seed=0):
    """What the experiments do: labels are taken away before a method sees the graph."""
    unlabelled = node_classification.without_labels(data)
    fitted = build(method, "node", parameters).fit(unlabelled, seed)
    return fitted, fitted.embed(unlabelled)


def with_permuted_test_labels(data):
    changed = data.clone()
    test = data.test_mask.nonzero().view(-1)
    order = torch.randperm(test.numel(), generator=torch.Generator().manual_seed(1))
    changed.y = data.y.clone()
    changed.y[test] = data.y[test[order]]
    return changed


@pytest.mark.parametrize("method", WITHOUT_LABELS)
def test_test_labels_influence_nothing_but_the_reported_score(graph, method):
    parameters = PARAMETERS.get(method, PEER)
    permuted = with_permuted_test_labels(graph)
    before, z = fit(graph, method, parameters)
    after, z_after = fit(permuted, method, parameters)
    np.testing.assert_array_equal(z, z_after)  # no weight
    assert before.losses == after.losses  # no epoch count
    a, b = node_classification.score(z, graph), node_classification.score(z_after, permuted)
    assert {key: a[key] for key in ("val", "scaling", "penalty")} == {
        key: b[key] for key in ("val", "scaling", "penalty")
    }  # no choice
    assert a["test"] != b["test"]  # but the score is another one, so the labels did change


@pytest.mark.parametrize("method", WITH_LABELS)
def test_a_method_with_labels_knows_none_of_the_test(graph, method):
    made = build(method, "node", PARAMETERS[method])
    permuted = with_permuted_test_labels(graph)
    given = [node_classification.graph_for(made, data) for data in (graph, permuted)]
    assert torch.equal(given[0].y, given[1].y)
    fitted = [made.fit(data, 0) for data in given]
    assert fitted[0].history == fitted[1].history  # no weight and no epoch
    first, second = (each.predict(data) for each, data in zip(fitted, given))
    np.testing.assert_array_equal(first, second)
    a, b = node_classification.score_classes(first, graph), node_classification.score_classes(second, permuted)
    assert a["val"] == b["val"]
    assert a["test"] != b["test"]  # but the score is another one, so the labels did change
    assert a["test"] > 60  # of four classes


def test_labels_of_the_test_are_erased_before_a_method_sees_the_graph(graph):
    known = node_classification.known_labels(graph)
    assert "test_mask" not in known
    chosen = graph.train_mask | graph.val_mask
    assert torch.equal(known.y[chosen], graph.y[chosen])
    assert (known.y[~chosen] == UNKNOWN_LABEL).all()
    assert (graph.y >= 0).all(), "the graph itself stays as it was"
    with pytest.raises(UsageError, match=r"The method learns from labels, and the graph has no y\."):
        build("gcn", "node", {}).fit(node_classification.without_labels(graph), 0)
    with pytest.raises(TopoterError, match="it predicts no classes"):
        build("raw", "node", {}).fit(graph, 0).predict(graph)


def test_validation_labels_choose_the_weights_that_are_kept(graph):
    """Other validation labels, another epoch; the training steps themselves stay the same."""
    made = build("gcn", "node", {"epochs": 60, "patience": None})
    known = node_classification.known_labels(graph)
    other = known.clone()
    val = graph.val_mask.nonzero().view(-1)
    other.y[val] = known.y[val].roll(7)
    first, second = made.fit(known, 0), made.fit(other, 0)
    assert first.losses == second.losses
    assert first.best_epoch != second.best_epoch


def test_methods_see_no_labels(graph):
    seen = set(node_classification.without_labels(graph).keys())
    assert seen >= {"x", "edge_index"}
    assert not seen & {"y", "train_mask", "val_mask", "test_mask"}
    assert "y" in graph, "the graph itself stays as it was"


@pytest.mark.parametrize("method", [name for name in WITHOUT_LABELS if name not in NOTHING_RANDOM])
def test_a_seed_gives_the_same_embedding_and_another_seed_another(graph, method):
    parameters = PARAMETERS.get(method, PEER)
    state = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first, again, other = (fit(graph, method, parameters, seed)[1] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3
    assert torch.equal(state[0], torch.random.get_rng_state())
    assert (state[1] == np.random.get_state()[1]).all()  # noqa: NPY002


@pytest.mark.parametrize(
    "method", ["dgi", "gae", "vgae", "gmi", "graphter", "cca-ssg", "grace", "bgrl", "graphmae", "maskgae"]
)
def test_peers_learn(graph, method):
    own = {"out_channels": 32, "epochs": 60} | ({"feature_scaling": "none"} if method in SIGNED else {})
    fitted, z = fit(graph, method, own | ({"dropout": 0.2} if method == "maskgae" else {}))
    first, last = np.mean(fitted.losses[:5]), np.mean(fitted.losses[-5:])
    assert last < first - 0.04 * abs(first)
    assert node_classification.score(z, graph)["test"] > 60


def test_propagated_is_the_dense_formula(graph):
    n = graph.num_nodes
    a = torch.eye(n)
    a[graph.edge_index[0], graph.edge_index[1]] = 1
    a[graph.edge_index[1], graph.edge_index[0]] = 1
    scale = a.sum(1).rsqrt()
    expected = torch.linalg.matrix_power(scale[:, None] * a * scale, 3) @ graph.x
    _, z = fit(graph, "propagated", {"order": 3})
    np.testing.assert_allclose(z, expected.numpy(), rtol=1e-4, atol=1e-5)


def test_the_authors_protocol_does_select_on_test(graph):
    """The mark on its numbers is earned: other test labels choose another number of epochs."""
    _, z = fit(graph, "raw", {})
    split = node_classification.split_of(graph)
    honest = score_as_the_authors(z, graph.y.numpy(), split, restarts=3, seed=0)
    permuted = with_permuted_test_labels(graph)
    fooled = score_as_the_authors(z, permuted.y.numpy(), split, restarts=3, seed=0)
    assert len(honest.test) == 3
    assert honest.epochs != fooled.epochs


def test_restarts_of_the_authors_classifier_do_not_influence_each_other(graph):
    z = torch.from_numpy(fit(graph, "propagated", {})[1])
    split = node_classification.split_of(graph)
    together, *alone = (
        paper_protocol._test_accuracy_by_epoch(z, graph.y, split, 5, count, generator)
        for generator in [torch.Generator().manual_seed(0)]
        for count in (1, 2)
    )
    generator = torch.Generator().manual_seed(0)
    one_by_one = [paper_protocol._test_accuracy_by_epoch(z, graph.y, split, 5, 1, generator) for _ in range(3)]
    torch.testing.assert_close(torch.cat([together, *alone], dim=1), torch.cat(one_by_one, dim=1), rtol=0, atol=0.5)


def test_a_random_split_follows_the_seed_and_a_published_one_stays(graph):
    assert node_classification.split_by_seed(graph, 3) is graph
    unsplit = graph.clone()
    unsplit.split_is_random = True
    first, second = (node_classification.split_by_seed(unsplit, seed).train_mask for seed in (0, 1))
    assert not torch.equal(first, second)
    assert torch.equal(second, node_classification.split_by_seed(unsplit, 1).train_mask)


def test_clear_errors(graph):
    with pytest.raises(UsageError, match=r"Unknown method 'topotr'\. Did you mean 'topoter'\?"):
        fit(graph, "topotr", {})
    unlabelled = graph.clone()
    del unlabelled.train_mask
    with pytest.raises(DataError, match="no labels or no split"):
        node_classification.split_of(unlabelled)
