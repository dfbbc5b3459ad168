"""CensNet-VAE, MaskGAE and decoders on fixed embeddings: against dense formulas, and by what is hidden from them."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data

from topoter.datasets import block_model
from topoter.errors import UsageError
from topoter.methods import build
from topoter.methods.co_embedding import (
    CensNetVAE,
    CoEmbeddingSettings,
    CoEncoder,
    cosine_distance,
    edge_layer,
    node_layer,
)
from topoter.methods.link_encoder import NoisyFeatures
from topoter.methods.masked_links import MaskedLinks, MaskGAELinks
from topoter.pretext.transformation import EdgeChange
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import prepare_features
from topoter.tasks.link_split import auc_and_ap, split_links
from topoter.training.batches import whole_graph

pytestmark = pytest.mark.usefixtures("one_thread")
QUICK = {"hidden_channels": 8, "out_channels": 4, "epochs": 6}


@pytest.fixture(scope="module")
def split():
    graph = block_model(num_nodes=200, num_blocks=4, mean_degree=8.0, num_features=12, seed=3, within=0.95)
    return split_links(graph, 0)


def dense(adjacency: Adjacency) -> tuple[torch.Tensor, torch.Tensor]:
    """A [N, N] and T [N, M], which says which edges a node has."""
    i, j = adjacency.edges
    size, number = adjacency.num_nodes, torch.arange(adjacency.num_edges)
    a, t = torch.zeros(size, size), torch.zeros(size, adjacency.num_edges)
    a[i, j] = a[j, i] = 1
    t[i, number] = t[j, number] = 1
    return a, t


def normalized(a: torch.Tensor) -> torch.Tensor:
    a = a + torch.eye(len(a))
    scale = a.sum(1).rsqrt()
    return scale[:, None] * a * scale


# ---- CensNet ---------------------------------------------------------------------------------------------------------


def test_the_layers_of_nodes_and_edges_are_the_papers_formulas():
    """(T diag(w) T^T with a diagonal of ones) * A~ H, and the same with T^T on the line graph."""
    graph = block_model(30, 2, 4.0, 3, seed=0)
    adjacency, _ = Adjacency.from_edge_index(graph.edge_index, 32)  # the last two are alone
    a, t = dense(adjacency)
    generator = torch.Generator().manual_seed(0)
    h_v, h_e = (torch.randn(size, 5, generator=generator) for size in t.shape)
    w_e, w_v = torch.randn(t.size(1), generator=generator), torch.randn(32, generator=generator)

    weights = t @ torch.diag(w_e) @ t.t()
    weights.fill_diagonal_(1)
    torch.testing.assert_close(node_layer(h_v, adjacency, w_e), (weights * normalized(a)) @ h_v)

    line = ((t.t() @ t) > 0).float()
    line.fill_diagonal_(0)
    weights = t.t() @ torch.diag(w_v) @ t
    weights.fill_diagonal_(1)
    expected = (weights * normalized(line)) @ h_e
    torch.testing.assert_close(edge_layer(h_e, adjacency, w_v), expected, atol=1e-5, rtol=1e-4)


def test_before_the_first_step_it_is_vgae(split):
    """All neighbours weigh 1 then."""
    ours, _, _ = CensNetVAE(**QUICK | {"epochs": 0}, variational=True).learn(split.data, seed=3)
    theirs, _, _ = type(build("vgae", "link", {}))(**QUICK | {"epochs": 0}, variational=True).learn(split.data, seed=3)
    x, adjacency = whole_graph(split.data)[0]
    encoder = ours.topoter.encoder
    assert isinstance(encoder, CoEncoder)
    for mine, other in zip(encoder.layers, theirs.topoter.encoder.layers):
        mine.load_state_dict(other.state_dict())
    torch.testing.assert_close(ours.encode(x, adjacency), theirs.encode(x, adjacency))


def test_features_of_edges_are_found_again_in_any_part_of_the_graph(split):
    x, adjacency = whole_graph(split.data)[0]
    distance = cosine_distance(x, adjacency)
    i, j = adjacency.edges
    expected = 1 - torch.cosine_similarity(split.data.x[i].float(), split.data.x[j].float())
    torch.testing.assert_close(distance, expected, atol=1e-5, rtol=1e-4)
    sparse = prepare_features(torch.nn.functional.one_hot(torch.arange(200) % 60, 900).float())
    assert not isinstance(sparse, torch.Tensor)
    assert set(cosine_distance(sparse, adjacency).round().tolist()) <= {0.0, 1.0}
    encoder = CoEncoder(x, adjacency, CoEmbeddingSettings())
    some = torch.arange(adjacency.num_edges) % 3 == 0
    torch.testing.assert_close(encoder.edge_features(adjacency.keep(some))[:, 1], distance[some])
    foreign = Adjacency(adjacency.pair_space.disconnected(torch.tensor([5]), torch.Generator()), 200)
    assert encoder.edge_features(foreign)[:, 1].tolist() == [0.0] * 5


# ---- MaskGAE ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", ["path", "edge"])
def test_a_masked_edge_is_seen_in_neither_direction(split, mask):
    module, _, _ = MaskGAELinks(**QUICK | {"epochs": 0, "mask": mask}).learn(split.data, seed=0)
    adjacency, _ = Adjacency.from_edge_index(split.data.edge_index, 200)
    hiding = module.hide(adjacency)
    hidden = hiding.pairs[:, hiding.pair_type == EdgeChange.DELETE]
    seen = {tuple(pair) for pair in hiding.adjacency_t.edge_index.t().tolist()}
    assert hidden.size(1) + hiding.adjacency_t.num_edges == adjacency.num_edges
    assert not {tuple(pair) for pair in hidden.t().tolist()} & seen
    assert not {tuple(pair) for pair in hidden.flip(0).t().tolist()} & seen
    # Nor do the encoder's messages pass along them.
    operator = hiding.adjacency_t.normalized
    passed = set(zip(operator.row.tolist(), operator.indices.tolist()))
    assert not {tuple(pair) for pair in hidden.t().tolist()} & passed
    apart = hiding.pairs[:, hiding.pair_type == EdgeChange.KEEP_DISCONNECTED]
    assert apart.size(1) == hidden.size(1)
    assert not {tuple(pair) for pair in apart.t().tolist()} & set(map(tuple, adjacency.edges.t().tolist()))


def test_the_loss_is_that_of_pairs_and_that_of_degrees(split):
    x, adjacency = whole_graph(split.data)[0]
    losses = []
    for weight in (0.0, 1.0, 2.0):
        module, _, _ = MaskGAELinks(**QUICK | {"epochs": 0, "degree_weight": weight}).learn(split.data, seed=0)
        losses.append(float(module(NoisyFeatures(x), adjacency)[0].detach()))
    assert losses[2] - losses[1] == pytest.approx(losses[1] - losses[0], rel=1e-4)
    assert isinstance(module, MaskedLinks)
    hiding = module.hide(adjacency)
    h = torch.randn(200, 4, generator=torch.Generator().manual_seed(0))
    for layer in module.degrees:
        torch.nn.init.zeros_(layer.weight)
    with torch.no_grad():  # all predictions are 0, so the error is the mean of squared counts
        counts = [0] * 200
        for i, j in hiding.pairs[:, hiding.pair_type == EdgeChange.DELETE].t().tolist():
            counts[i] += 1
            counts[j] += 1
        expected = 2.0 * sum(count**2 for count in counts) / 200
        assert float(module.further_loss(h, hiding)) == pytest.approx(expected, rel=1e-5)


def test_an_unknown_mask_is_told_with_the_nearest(split):
    with pytest.raises(UsageError, match=r"Unknown mask 'paths'\. Did you mean 'path'"):
        MaskGAELinks(**QUICK | {"mask": "paths"}).fit(split.data, 0)


# ---- all of them -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decoder", ["inner product", "hadamard"])
@pytest.mark.parametrize("name", ["spectral", "deepwalk", "censnet-vae", "maskgae"])
def test_either_decoder_finds_the_blocks_from_training_edges_alone(split, name, decoder):
    own = {"spectral": {"out_channels": 4}, "deepwalk": {"out_channels": 16, "walks": 10, "length": 40, "window": 5}}
    trained = {"epochs": 150, "patience": 150, "out_channels": 16} | (
        {"hidden_edges": 0.5, "batch_norm": True} if name == "censnet-vae" else {}
    )
    parameters = {"decoder": decoder} | own.get(name, trained)
    fitted = build(name, "link", parameters).fit(split.data, 0)
    scores = fitted.score_pairs(split.data, split.test.pairs)
    assert auc_and_ap(split.test, scores)[0] > 70
    swapped = fitted.score_pairs(split.data, split.test.pairs.flip(0))
    torch.testing.assert_close(scores, swapped, atol=1e-5, rtol=1e-4)
    assert bool(fitted.history) == (decoder == "hadamard" or name not in own)


def test_a_decoder_learns_while_the_embeddings_stay(split):
    plain, learned = (build("spectral", "link", {"decoder": d, "out_channels": 8}).fit(split.data, 0)
                      for d in ("inner product", "hadamard"))  # fmt: skip
    assert (plain.embed(split.data) == learned.embed(split.data)).all()
    assert min(learned.losses) < learned.losses[0]
    assert learned.best_epoch is not None
    again = build("spectral", "link", {"decoder": "hadamard", "out_channels": 8}).fit(split.data, 0)
    assert again.losses == learned.losses


def test_inner_products_need_no_validation_pairs():
    graph = Data(x=torch.ones(4, 1), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]))
    fitted = build("spectral", "link", {"out_channels": 2}).fit(graph, 0)  # nothing to choose, nothing missed
    assert fitted.history == []
