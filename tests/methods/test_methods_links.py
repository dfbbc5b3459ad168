"""Links: splits without leakage, training on training edges alone, peers, decoders, the joint loss."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from topoter.datasets import block_model, load
from topoter.errors import DataError, UsageError
from topoter.methods import build, methods_of
from topoter.methods.link_encoder import NoisyFeatures
from topoter.methods.links import CHECK_EVERY, LinkLearner, area_under_curve
from topoter.methods.neighbours import adamic_adar, feature_cosine
from topoter.methods.walks import deepwalk, random_walks, spectral
from topoter.pretext.pair_decoders import build_pair_decoder
from topoter.pretext.transformation import EdgeChange, hide, hide_edges
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import prepare_features
from topoter.tasks.link_split import HeldOut, auc_and_ap, hits_and_mrr, split_links

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
    # The validation pairs, and nothing else that could tell.
    assert set(split.data.keys()) == {"x", "edge_index", "num_nodes", "edge_label", "edge_label_index"}
    assert torch.equal(split.data.edge_label_index, split.val.pairs)
    assert torch.equal(split.data.edge_label, split.val.label)


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
    assert torch.isfinite(LinkLearner(**QUICK).fit(split.data, 0).score_pairs(split.data, split.val.pairs)).all()


@pytest.mark.parametrize("method", methods_of("link"))
def test_every_method_scores_pairs_and_repeats(graph, method):
    """A method gets the training graph alone, so no test pair can change what it learns."""
    split = split_links(graph, 0)
    asked = torch.randint(0, 200, (2, 50), generator=torch.Generator().manual_seed(1))
    parameters = SETTINGS.get(method, QUICK)
    found = [build(method, "link", parameters).fit(split.data, 0).score_pairs(split.data, asked) for _ in range(2)]
    assert found[0].shape == (50,)
    assert torch.isfinite(found[0]).all()
    assert torch.equal(found[0], found[1])


def test_messages_pass_along_training_edges_only(graph):
    """With the held-out edges put back into the graph the scores change: so they were not in it."""
    split = split_links(graph, 0)
    fitted = LinkLearner(**QUICK).fit(split.data, seed=0)
    whole = split.data.clone()
    whole.edge_index = graph.edge_index
    asked = split.test.pairs
    assert not torch.allclose(fitted.score_pairs(split.data, asked), fitted.score_pairs(whole, asked))


def test_the_best_weights_on_validation_are_kept(graph):
    split = split_links(graph, 0)
    fitted = LinkLearner(**QUICK | {"epochs": 60, "patience": 10}).fit(split.data, seed=0)
    short = LinkLearner(**QUICK | {"epochs": fitted.best_epoch, "patience": 10}).fit(split.data, seed=0)
    asked = split.val.pairs
    assert torch.equal(fitted.score_pairs(split.data, asked), short.score_pairs(split.data, asked))
    assert len(fitted.losses) < fitted.best_epoch + 10 + CHECK_EVERY
    checked = [record.epoch for record in fitted.history if "validation AUC" in record.metrics]
    assert checked[:3] == [CHECK_EVERY, 2 * CHECK_EVERY, 3 * CHECK_EVERY]


def test_training_learns_the_blocks(graph):
    split = split_links(graph, 0)
    for settings in ({"epochs": 100}, {"epochs": 100, "decoder": "hadamard", "hidden_edges": 0.5}):
        fitted = LinkLearner(**settings).fit(split.data, seed=0)
        auc, ap = auc_and_ap(split.val, fitted.score_pairs(split.data, split.val.pairs))
        assert auc > 70
        assert ap > 65


def test_without_pretraining_only_the_pretraining_is_left_out(graph):
    """The same start, the same draws: with zero epochs of pre-training the two rows are one."""
    split = split_links(graph, 0)
    parameters = {**QUICK, "pretraining_epochs": 0}
    asked = split.val.pairs
    ours, without = (
        build(method, "link", {"pretraining_epochs": 0, **QUICK} if method == "topoter" else QUICK)
        .fit(split.data, 3)
        .score_pairs(split.data, asked)
        for method in ("topoter", "no-pretraining")
    )
    assert torch.equal(ours, without)
    pretrained = build("topoter", "link", {**parameters, "pretraining_epochs": 5}).fit(split.data, 3)
    assert len(pretrained.pretraining) == 5
    assert not torch.equal(pretrained.score_pairs(split.data, asked), without)


HOPS = {
    "encoder": "hops",
    "out_channels": 12,
    "decoder": "paths",
    "feature_scaling": "prepared",
    "hidden_edges": 0.5,
    "epochs": 40,
}


@pytest.mark.parametrize("encoder", [{}, {"encoder": "hops and layers", "out_channels": 16, "hidden_channels": 8}])
def test_hops_start_where_pretraining_ended(graph, encoder):
    """The start from I(H; H~) is another than a random one, and both find the blocks with short paths."""
    split = split_links(graph, 0)
    found = {}
    for method, start in (("topoter", "mutual-information"), ("no-pretraining", "random")):
        fitted = build(method, "link", {**HOPS, **encoder, "start": start}).fit(split.data, 0)
        assert bool(fitted.pretraining) == (start != "random")
        found[method] = fitted.score_pairs(split.data, split.val.pairs)
        assert auc_and_ap(split.val, found[method])[0] > 70
    assert not torch.equal(found["topoter"], found["no-pretraining"])
    with pytest.raises(UsageError, match="no variational form"):
        build("vgae", "link", HOPS | encoder).fit(split.data, 0)


def test_hits_and_ranks_are_those_of_the_definition():
    scores = torch.tensor([5.0, 3.0, 1.0, 4.0, 3.0, *[0.0] * 28])
    held_out = HeldOut.of(torch.zeros(2, 3, dtype=torch.int64), torch.zeros(2, 30, dtype=torch.int64))
    found = hits_and_mrr(held_out, scores)
    assert found["Hits@20"] == 100  # all three are above the twentieth of thirty
    assert found["Hits@50"] == 100  # there are no fifty to be above of
    assert found["MRR"] == pytest.approx(100 * (1 + 1 / 2.5 + 1 / 3) / 3)  # a tie counts by half
    strict = HeldOut.of(torch.zeros(2, 3, dtype=torch.int64), torch.zeros(2, 20, dtype=torch.int64))
    assert hits_and_mrr(strict, torch.tensor([5.0, 3.0, 1.0, *[3.0] * 20]))["Hits@20"] == pytest.approx(100 / 3)


def test_a_frozen_encoder_stays_as_pretraining_left_it(graph):
    split = split_links(graph, 0)
    settings = {**QUICK, "pretraining_epochs": 3, "decoder": "hadamard", "frozen": True}
    trained, _, _ = LinkLearner(**settings).learn(split.data, seed=0)
    start, _, _ = LinkLearner(**settings | {"epochs": 0}).learn(split.data, seed=0)
    for name, weight in start.state_dict().items():
        same = torch.equal(weight, trained.state_dict()[name])
        assert same == name.startswith("topoter."), name


def test_the_joint_loss_is_the_sum_through_the_same_seam(graph):
    """The links' objective and TopoTER's own, of the same noise and draws, with its metrics beside it."""
    data = split_links(graph, 0).data
    x, (adjacency, _) = prepare_features(data.x), Adjacency.from_edge_index(data.edge_index, 200)
    losses = []
    for joint in (0.0, 0.5, 1.0):
        module, _, _ = LinkLearner(**QUICK | {"epochs": 0, "joint": joint}).learn(data, seed=0)
        loss, metrics = module(NoisyFeatures(x), adjacency)
        losses.append(float(loss.detach()))
        assert ("prior_entropy" in metrics) == (joint > 0)
    assert losses[1] - losses[0] == pytest.approx((losses[2] - losses[0]) / 2, rel=1e-4)


def test_hidden_edges_are_out_of_the_graph_and_all_are_given():
    adjacency, _ = Adjacency.from_edge_index(block_model(100, 2, 6.0, 4, seed=0).edge_index, 100)
    visible, hidden = hide_edges(adjacency, 0.3, torch.Generator().manual_seed(0))
    assert hidden.size(1) == round(0.3 * adjacency.num_edges)
    assert visible.num_edges + hidden.size(1) == adjacency.num_edges
    assert not keys(visible.edges, 100) & keys(hidden, 100)


def test_hiding_is_a_transformation_that_only_deletes():
    adjacency, _ = Adjacency.from_edge_index(block_model(100, 2, 6.0, 4, seed=0).edge_index, 100)
    hiding = hide(adjacency, 0.3, torch.Generator().manual_seed(0))
    deleted = hiding.pairs[:, hiding.pair_type == EdgeChange.DELETE]
    apart = hiding.pairs[:, hiding.pair_type == EdgeChange.KEEP_DISCONNECTED]
    assert deleted.size(1) == apart.size(1) == round(0.3 * adjacency.num_edges)
    assert keys(hiding.adjacency_t.edges, 100) == keys(adjacency.edges, 100) - keys(deleted, 100)
    assert not keys(apart, 100) & keys(adjacency.edges, 100)
    shown = hide(adjacency, 0.0, torch.Generator().manual_seed(0))
    assert shown.adjacency_t is adjacency
    assert int((shown.pair_type == EdgeChange.KEEP_CONNECTED).sum()) == adjacency.num_edges


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
        assert area_under_curve(scores, held_out.label) == pytest.approx(auc_and_ap(held_out, scores)[0])


def test_graphs_too_small_or_too_dense_to_split_are_refused():
    path = Data(x=torch.ones(10, 1), edge_index=torch.stack([torch.arange(9), torch.arange(1, 10)]))
    with pytest.raises(DataError, match="9 edges: too few to hold out 5%"):
        split_links(path, 0)
    complete = Data(x=torch.ones(20, 1), edge_index=torch.combinations(torch.arange(20)).t())
    with pytest.raises(DataError, match="0 disconnected pairs; 28 are needed"):
        split_links(complete, 0)
    with pytest.raises(UsageError, match="Did you mean 'gae'"):
        build("gaee", "link", {})


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
