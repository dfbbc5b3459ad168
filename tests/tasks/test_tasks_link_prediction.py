"""Link prediction: splits without leakage, training that never sees test pairs, peers, decoders."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from topoter.adjacency import Adjacency
from topoter.baselines.neighbours import adamic_adar, feature_cosine
from topoter.baselines.node_embeddings import deepwalk, random_walks, spectral
from topoter.datasets import block_model, load
from topoter.errors import DataError, UsageError
from topoter.tasks.link_prediction import METHODS, predict
from topoter.tasks.link_split import HeldOut, LinkSplit, auc, auc_and_ap, split_links
from topoter.tasks.link_training import CHECK_EVERY, LinkSettings, hide_edges, train_links
from topoter.tasks.pair_scores import build_pair_decoder

pytestmark = pytest.mark.usefixtures("one_thread")
QUICK = {"hidden_channels": 8, "out_channels": 4, "epochs": 6}
SETTINGS = {
    "feature-cosine": {},
    "adamic-adar": {},
    "spectral": {"out_channels": 8},
    "deepwalk": {"out_channels": 8, "walks": 2, "length": 10, "window": 2},
    "topoter": {
        **QUICK,
        "pretraining_epochs": 3,
        "decoder": "hadamard",
        "joint": 0.5,
        "hidden_edges": 0.5,
        "dropout": 0.2,
        "feature_dropout": 0.2,
        "decoder_dropout": 0.2,
        "batch_norm": True,
        "recentre": True,
    },
    "topoter-frozen": {**QUICK, "pretraining_epochs": 3, "decoder": "hadamard"},
}


@pytest.fixture(scope="module")
def graph() -> Data:
    return block_model(num_nodes=200, num_blocks=4, mean_degree=8.0, num_features=12, seed=3, within=0.95)


def keys(pairs: torch.Tensor, num_nodes: int) -> set[int]:
    low, high = torch.minimum(*pairs), torch.maximum(*pairs)
    return set((low * num_nodes + high).tolist())


def test_a_split_holds_out_5_and_10_percent_and_nothing_leaks(real_data):
    data = load("cora", data_root=real_data)
    split = split_links(data, seed=0)
    assert (int(split.val.label.sum()), int(split.test.label.sum())) == (263, 527)  # of 5,278
    assert split.val.label.numel() == 2 * 263
    assert split.test.label.numel() == 2 * 527
    whole, train = keys(data.edge_index, 2708), keys(split.data.edge_index, 2708)
    for part in (split.val, split.test):
        connected, apart = part.pairs[:, part.label == 1], part.pairs[:, part.label == 0]
        assert keys(connected, 2708) <= whole
        assert not keys(connected, 2708) & train
        assert not keys(apart, 2708) & whole
    assert not keys(split.val.pairs, 2708) & keys(split.test.pairs, 2708)
    assert len(train) == 5278 - 263 - 527
    assert set(split.data.keys()) == {"x", "edge_index", "num_nodes"}  # nothing else that could tell


def test_the_split_depends_on_the_seed_only(graph):
    torch.manual_seed(5)
    one = split_links(graph, 1)
    state = torch.get_rng_state()
    again, other = split_links(graph, 1), split_links(graph, 2)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(one.test.pairs, again.test.pairs)
    assert not torch.equal(one.test.pairs, other.test.pairs)


def test_weights_stay_with_their_edges(graph):
    weighted = graph.clone()
    weighted.edge_weight = (graph.edge_index.sum(0) % 7 + 1).float()
    split = split_links(weighted, 0)
    torch.testing.assert_close(split.data.edge_weight, (split.data.edge_index.sum(0) % 7 + 1).float())
    assert torch.isfinite(train_links(split, LinkSettings(**QUICK), 0).scores(split.val.pairs)).all()


@pytest.mark.parametrize("method", METHODS)
def test_predictions_do_not_depend_on_the_test_pairs(graph, method):
    """Other test pairs, and test pairs with shuffled labels, change no score of any pair."""
    split = split_links(graph, 0)
    shuffled = split.test.label[torch.randperm(split.test.label.numel(), generator=torch.Generator().manual_seed(0))]
    asked = torch.randint(0, 200, (2, 50), generator=torch.Generator().manual_seed(1))
    parameters = SETTINGS.get(method, QUICK)
    found = []
    for test in (split.test, HeldOut(split.test.pairs.flip(0), shuffled), HeldOut(asked, torch.ones(50))):
        found.append(predict(LinkSplit(split.data, split.val, test), method, parameters, seed=0).scores(asked))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_messages_pass_along_training_edges_only(graph):
    """With the held-out edges put back into the graph the scores change: so they were not in it."""
    split = split_links(graph, 0)
    model = train_links(split, LinkSettings(**QUICK), seed=0)
    asked = split.test.pairs
    scores = model.scores(asked)
    assert keys(model.adjacency.edges, 200) == keys(split.data.edge_index, 200)
    whole, _ = Adjacency.from_edge_index(graph.edge_index, 200)
    assert not torch.allclose(scores, dataclasses.replace(model, adjacency=whole).scores(asked))


def test_the_best_weights_on_validation_are_kept(graph):
    split = split_links(graph, 0)
    model = train_links(split, LinkSettings(**{**QUICK, "epochs": 60, "patience": 10}), seed=0)
    short = train_links(split, LinkSettings(**{**QUICK, "epochs": model.best_epoch, "patience": 10}), seed=0)
    assert torch.equal(model.scores(split.val.pairs), short.scores(split.val.pairs))
    assert len(model.losses) < model.best_epoch + 10 + CHECK_EVERY


def test_training_learns_the_blocks(graph):
    split = split_links(graph, 0)
    for settings in (LinkSettings(epochs=100), LinkSettings(epochs=100, decoder="hadamard", hidden_edges=0.5)):
        auc, ap = auc_and_ap(split.val, train_links(split, settings, seed=0).scores(split.val.pairs))
        assert auc > 70
        assert ap > 65


def test_without_pretraining_only_the_pretraining_is_left_out(graph):
    """The same start, the same draws: with zero epochs of pre-training the two rows are one."""
    split = split_links(graph, 0)
    parameters = {**QUICK, "pretraining_epochs": 0}
    asked = split.val.pairs
    ours, without = (predict(split, method, parameters, 3).scores(asked) for method in ("topoter", "no-pretraining"))
    assert torch.equal(ours, without)
    pretrained = predict(split, "topoter", {**QUICK, "pretraining_epochs": 5}, 3)
    assert len(pretrained.history) == 5
    assert not torch.equal(pretrained.scores(asked), without)


def test_a_frozen_encoder_stays_as_pretraining_left_it(graph):
    split = split_links(graph, 0)
    settings = LinkSettings(**QUICK, pretraining_epochs=3, decoder="hadamard", frozen=True)
    trained = train_links(split, settings, seed=0)
    start = train_links(split, dataclasses.replace(settings, epochs=0), seed=0)
    for name, weight in start.module.state_dict().items():
        same = torch.equal(weight, trained.module.state_dict()[name])
        assert same == name.startswith("topoter."), name


def test_hidden_edges_are_out_of_the_graph_and_all_are_given():
    adjacency, _ = Adjacency.from_edge_index(block_model(100, 2, 6.0, 4, seed=0).edge_index, 100)
    visible, hidden = hide_edges(adjacency, 0.3, torch.Generator().manual_seed(0))
    assert hidden.size(1) == round(0.3 * adjacency.num_edges)
    assert visible.num_edges + hidden.size(1) == adjacency.num_edges
    assert not keys(visible.edges, 100) & keys(hidden, 100)


def test_decoders_are_symmetric_and_the_inner_product_is_one():
    h, pairs = torch.randn(6, 5), torch.tensor([[0, 1, 2], [3, 4, 5]])
    for name in ("inner product", "hadamard"):
        decoder = build_pair_decoder(name, 5, torch.Generator().manual_seed(0)).eval()
        torch.testing.assert_close(decoder(h, pairs), decoder(h, pairs.flip(0)))
    inner = build_pair_decoder("inner product", 5, torch.Generator())
    torch.testing.assert_close(inner(h, pairs), (h @ h.t())[pairs[0], pairs[1]])
    with pytest.raises(UsageError, match="Did you mean 'hadamard'"):
        build_pair_decoder("hadamrd", 5, torch.Generator())


def test_the_quick_auc_is_scikit_learns_ties_included():
    generator = torch.Generator().manual_seed(0)
    held_out = HeldOut.of(torch.zeros(2, 40, dtype=torch.int64), torch.zeros(2, 60, dtype=torch.int64))
    for scores in (torch.rand(100, generator=generator), torch.randint(0, 5, (100,), generator=generator).float()):
        assert auc(held_out, scores) == pytest.approx(auc_and_ap(held_out, scores)[0])


def test_graphs_too_small_or_too_dense_to_split_are_refused():
    path = Data(x=torch.ones(10, 1), edge_index=torch.stack([torch.arange(9), torch.arange(1, 10)]))
    with pytest.raises(DataError, match="9 edges: too few to hold out 5%"):
        split_links(path, 0)
    complete = Data(x=torch.ones(20, 1), edge_index=torch.combinations(torch.arange(20)).t())
    with pytest.raises(DataError, match="0 disconnected pairs; 28 are needed"):
        split_links(complete, 0)
    with pytest.raises(UsageError, match="Did you mean 'gae'"):
        predict(split_links(block_model(100, 2, 6.0, 4), 0), "gaee", {}, 0)


def test_adamic_adar_by_hand():
    # 0 and 1 share 2 (degree 3) and 3 (degree 2); 4 hangs on 2; 5 is alone.
    edges = torch.tensor([[0, 1, 0, 1, 2], [2, 2, 3, 3, 4]])
    adjacency, _ = Adjacency.from_edge_index(edges, 6)
    found = adamic_adar(adjacency, torch.tensor([[0, 0, 0], [1, 4, 5]]))
    expected = [1 / math.log(3) + 1 / math.log(2), 1 / math.log(3), 0.0]
    np.testing.assert_allclose(found.numpy(), expected)


def test_feature_cosine_by_hand():
    x = torch.tensor([[3.0, 4.0], [3.0, 0.0], [0.0, 0.0]])
    torch.testing.assert_close(feature_cosine(x, torch.tensor([[0, 0], [1, 2]])), torch.tensor([0.6, 0.0]))


def test_walks_follow_edges_and_stay_where_there_are_none():
    adjacency, _ = Adjacency.from_edge_index(block_model(60, 2, 4.0, 4, seed=1).edge_index, 62)
    operator = adjacency.summed
    walks = random_walks(operator.indptr, operator.indices.long(), 12, torch.Generator().manual_seed(0))
    assert sorted(walks[:, 0].tolist()) == list(range(62))
    known, linked = keys(adjacency.edges, 62), set(adjacency.edges.flatten().tolist())
    assert not {60, 61} & linked
    for walk in walks.tolist():
        if walk[0] in linked:
            assert keys(torch.tensor([walk[:-1], walk[1:]]), 62) <= known
        else:
            assert set(walk) == {walk[0]}


@pytest.mark.parametrize("embed", [spectral, deepwalk], ids=["spectral", "deepwalk"])
def test_embeddings_of_edges_find_the_blocks_and_repeat(graph, embed):
    split = split_links(graph, 0)
    adjacency, _ = Adjacency.from_edge_index(split.data.edge_index, 200)
    z = embed(adjacency, out_channels=8, seed=0)
    assert z.shape == (200, 8)
    assert torch.equal(z, embed(adjacency, out_channels=8, seed=0))
    unit = torch.nn.functional.normalize(z, dim=1)
    same = graph.y.unsqueeze(0) == graph.y.unsqueeze(1)
    assert (unit @ unit.t())[same].mean() > (unit @ unit.t())[~same].mean() + 0.1


def test_spectral_looks_into_a_component_though_there_are_many():
    """Two blocks in one component beside 40 pairs of nodes: unregularised, all four eigenvectors tell pairs apart."""
    blocks = block_model(num_nodes=100, num_blocks=2, mean_degree=8.0, num_features=4, seed=2, within=0.95)
    lonely = torch.arange(100, 180).view(2, 40)
    adjacency, _ = Adjacency.from_edge_index(torch.cat([blocks.edge_index, lonely], dim=1), 180)
    same = blocks.y.unsqueeze(0) == blocks.y.unsqueeze(1)
    gap = {}
    for regularization in (0.0, 0.03):
        z = spectral(adjacency, out_channels=4, regularization=regularization, seed=0)[:100]
        unit = torch.nn.functional.normalize(z, dim=1)
        products = unit @ unit.t()
        gap[regularization] = float(products[same].mean() - products[~same].mean())
    assert gap[0.03] > gap[0.0] + 0.2
