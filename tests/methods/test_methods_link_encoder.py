"""The encoder of link prediction: what it computes, its noise, and how it is handed over to an inner product."""

from __future__ import annotations

import pytest
import torch

from topoter.datasets import block_model
from topoter.encoders import GCN
from topoter.errors import UsageError
from topoter.kernels.sparse import SparseOperator
from topoter.methods.link_encoder import Dropout, LinkEncoder, NoisyFeatures
from topoter.methods.links import LinkLearner
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import prepare_features
from topoter.tasks.link_split import split_links

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def graph() -> tuple[torch.Tensor, Adjacency]:
    data = block_model(num_nodes=80, num_blocks=2, mean_degree=5.0, num_features=6, seed=0)
    adjacency, _ = Adjacency.from_edge_index(data.edge_index, 80)
    return data.x, adjacency


def test_plain_it_is_the_gcn_of_the_paper(graph):
    x, adjacency = graph
    ours, gcn = LinkEncoder(6, 8, 4, "relu", batch_norm=False), GCN(6, 4, hidden_channels=8)
    gcn.load_state_dict(ours.state_dict())
    torch.testing.assert_close(ours(x, adjacency), gcn(x, adjacency))


def test_channels_are_normalised_over_the_nodes_at_hand_in_evaluation_too(graph):
    x, adjacency = graph
    encoder = LinkEncoder(6, 8, 4, "elu", batch_norm=True).eval()
    encoder.activation = lambda hidden: hidden
    hidden = encoder.first(encoder.project(x), adjacency)
    torch.testing.assert_close(hidden.mean(0), torch.zeros(8), atol=1e-5, rtol=0)
    assert ((hidden.var(0) - 1).abs() < 0.05).all()
    with pytest.raises(UsageError, match="Did you mean 'relu'"):
        LinkEncoder(6, 8, 4, "rellu", batch_norm=True)


def test_recentring_moves_and_scales_all_representations_alike(graph):
    x, adjacency = graph
    encoder = LinkEncoder(6, 8, 4, "relu", batch_norm=False)
    with torch.no_grad():
        encoder.layers[1].bias += 50.0  # a vector that all nodes share, as pre-training leaves it
        before = encoder(x, adjacency)
        encoder.recentre(x, adjacency)
        after = encoder(x, adjacency)
    torch.testing.assert_close(after.mean(0), torch.zeros(4), atol=1e-4, rtol=0)
    assert float(after.square().sum(1).mean()) == pytest.approx(1, abs=1e-3)
    centred = before - before.mean(0)
    torch.testing.assert_close(after, centred / centred.square().sum(1).mean().sqrt(), atol=1e-4, rtol=1e-3)


def test_dropout_keeps_the_mean_and_repeats():
    values = torch.ones(200, 100)
    dropped = Dropout(1)(values, 0.3)
    assert float((dropped == 0).float().mean()) == pytest.approx(0.3, abs=0.02)
    assert float(dropped.mean()) == pytest.approx(1, abs=0.02)
    torch.testing.assert_close(dropped.unique(), torch.tensor([0.0, 1 / 0.7]), atol=1e-4, rtol=0)
    assert torch.equal(dropped, Dropout(1)(values, 0.3))
    assert not torch.equal(dropped, Dropout(2)(values, 0.3))
    assert Dropout(1)(values, 0.0) is values


def test_noisy_sparse_features_are_one_matrix_forward_and_backward():
    generator = torch.Generator().manual_seed(0)
    dense = torch.rand(50, 30, generator=generator) * (torch.rand(50, 30, generator=generator) < 0.1)
    sparse = prepare_features(dense)
    assert isinstance(sparse, SparseOperator)
    noisy = NoisyFeatures(sparse).drop(Dropout(0), 0.5)
    weight = torch.rand(30, 5, generator=generator, requires_grad=True)
    seen = noisy @ torch.eye(30)  # the matrix that the product uses
    kept = seen != 0
    assert (dense[kept] > 0).all()
    torch.testing.assert_close(seen[kept], 2 * dense[kept])
    assert 0.3 < float(kept.sum()) / float((dense > 0).sum()) < 0.7
    outer = torch.rand(50, 5, generator=generator)
    ((noisy @ weight) * outer).sum().backward()
    torch.testing.assert_close(weight.grad, seen.t() @ outer)
    assert isinstance(NoisyFeatures(dense).drop(Dropout(0), 0.5), torch.Tensor)
    assert NoisyFeatures(sparse).drop(Dropout(0), 0.0) is sparse


def test_shares_out_of_range_are_refused():
    split = split_links(block_model(100, 2, 6.0, 4, seed=0), 0)
    for name in ("feature_dropout", "dropout", "decoder_dropout", "hidden_edges"):
        with pytest.raises(UsageError, match=f"'{name}' parameter of LinkSettings must be at least 0 and less than 1"):
            LinkLearner(**{name: 1.0}).fit(split.data, seed=0)
