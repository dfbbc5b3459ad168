"""Semi-supervised systems: layers against PyG's, filters against eigenvectors, and which weights decay."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.nn import GCNConv, GMMConv, MixHopConv, SGConv

from dense_oracle import dense_adjacency, dense_propagation, random_graph
from topoter.kernels.sparse import SparseOperator
from topoter.methods import build
from topoter.methods.attention import neighbours
from topoter.methods.labelled_attention import GaussianMixture
from topoter.methods.labelled_convolutions import ConvolutionClassifier, MixHopLayer, PropagatedClassifier
from topoter.methods.labelled_filters import (
    FeedbackClassifier,
    NormalizedFeatures,
    WaveletClassifier,
    feedback_coefficients,
    filtered,
    polynomial,
    without_loops,
)
from topoter.structure.adjacency import Adjacency

pytestmark = pytest.mark.usefixtures("one_thread")


def seeded_generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def nothing(values: torch.Tensor) -> torch.Tensor:
    return values


@pytest.fixture(scope="module")
def adjacency() -> Adjacency:
    return random_graph(24, 0.2, seed=1)


@pytest.fixture(scope="module")
def x() -> torch.Tensor:
    return torch.randn(24, 10, generator=seeded_generator(5))


def test_gcn_is_that_of_pyg(adjacency, x):
    ours, theirs = ConvolutionClassifier([10, 6, 3], seeded_generator()), [GCNConv(10, 6), GCNConv(6, 3)]
    for layer, own in zip(theirs, ours.convolutions.layers):
        layer.lin.weight.data = own.weight.data
    expected = theirs[1](torch.relu(theirs[0](x, adjacency.edge_index)), adjacency.edge_index)
    torch.testing.assert_close(ours(x, adjacency, nothing), expected)


def test_sgc_is_that_of_pyg(adjacency, x):
    ours, theirs = PropagatedClassifier(10, 3, 2, seeded_generator()), SGConv(10, 3, K=2)
    theirs.lin.weight.data, theirs.lin.bias.data = ours.convolution.layers[0].weight.data, torch.zeros(3)
    torch.testing.assert_close(ours(x, adjacency, nothing), theirs(x, adjacency.edge_index))


def test_a_layer_of_mixhop_is_that_of_pyg(adjacency, x):
    ours, theirs = MixHopLayer(10, [4, 4, 4], seeded_generator()), MixHopConv(10, 4, powers=[0, 1, 2], bias=False)
    for layer, weight in zip(theirs.lins, ours.weights):
        layer.weight.data = weight.data.t()
    torch.testing.assert_close(ours(x, adjacency), theirs(x, adjacency.edge_index))
    fewer = MixHopLayer(10, [0, 3, 2], seeded_generator())
    assert fewer(x, adjacency).shape == (24, 5)
    assert fewer.powers == [1, 2]


def test_a_layer_of_monet_is_that_of_pyg(adjacency, x):
    ours = GaussianMixture(10, 4, 3, seeded_generator())
    ours.inverse_sigma.data.uniform_(0.5, 2.0, generator=seeded_generator(2))
    theirs = GMMConv(10, 4, dim=2, kernel_size=3)
    theirs.root.weight.data.zero_()
    theirs.g.data, theirs.mu.data, theirs.sigma.data = ours.weight.data, ours.mu.data, 1 / ours.inverse_sigma.data
    pattern = neighbours(adjacency)
    u = torch.rand(pattern.num_entries, 2, generator=seeded_generator(3))
    expected = theirs(x, torch.stack([pattern.column, pattern.row]), u)  # from the neighbour to the node
    torch.testing.assert_close(ours.mix(x @ ours.weight, adjacency, u), expected, rtol=1e-4, atol=1e-5)
    assert ours(x, adjacency).shape == (24, 4)


def spectrum(adjacency: Adjacency) -> tuple[torch.Tensor, torch.Tensor]:
    """Eigenvalues and eigenvectors of I - D^-1/2 A D^-1/2."""
    a = dense_adjacency(adjacency)
    scale = torch.where(a.sum(1) > 0, a.sum(1).clamp(min=1) ** -0.5, 0.0)
    return torch.linalg.eigh(torch.eye(len(a), dtype=a.dtype) - scale[:, None] * a * scale)


@pytest.mark.parametrize("s", [0.5, 1.0, -1.0])
def test_wavelets_are_those_of_the_eigenvectors(adjacency, x, s):
    values, vectors = spectrum(adjacency)
    expected = vectors @ torch.diag(torch.exp(-s * values)) @ vectors.t() @ x.double()
    found = filtered(without_loops(adjacency), x, lambda eigenvalue: np.exp(-s * eigenvalue))
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-5)


def test_a_layer_of_gwnn_by_the_paper_and_by_its_code(adjacency, x):
    values, vectors = spectrum(adjacency)

    def kernel(function):
        return vectors @ torch.diag(function(values)) @ vectors.t()

    psi = kernel(lambda v: torch.exp(-0.7 * v))
    inverses = {True: psi.inverse(), False: kernel(lambda v: torch.exp(0.7 * torch.exp(-0.7 * v)))}
    for exact, inverse in inverses.items():
        network = WaveletClassifier([10, 3], adjacency, 0.7, exact, seeded_generator())
        network.filters[0].data.uniform_(0.5, 2.0, generator=seeded_generator(4))
        expected = psi @ (network.filters[0].double() * (inverse @ (x.double() @ network.weights[0].double())))
        torch.testing.assert_close(network(x, adjacency, nothing).double(), expected, rtol=1e-3, atol=1e-4)


def test_polynomials_of_dfnet_are_those_of_the_dense_matrix(adjacency, x):
    s = dense_propagation(dense_adjacency(adjacency))
    laplacian = torch.eye(24, dtype=s.dtype) - s - torch.eye(24, dtype=s.dtype)
    powers = [torch.linalg.matrix_power(laplacian, power) for power in range(4)]
    coefficients = [0.3, -1.2, 0.5, 2.0]
    expected = sum(c * power for c, power in zip(coefficients, powers)) @ x.double()
    torch.testing.assert_close(polynomial(adjacency, x, coefficients).double(), expected, rtol=1e-4, atol=1e-4)


def test_the_filter_of_dfnet_is_stable_and_nothing_near_it_is_better():
    a, b = (np.array(part) for part in feedback_coefficients(5, 3))
    m = np.linspace(0, 2, 70)
    step = (m >= 0.5).astype(float)

    def error(a, b):
        return (
            (step * (1 + np.vander(m, 6, increasing=True)[:, 1:] @ a) - np.vander(m, 4, increasing=True) @ b) ** 2
        ).sum()

    def stable(a):
        return np.abs(np.vander(m, 5, increasing=True) @ a).max() <= 0.9 + 1e-6

    assert stable(a)
    assert error(a, b) == pytest.approx(0.6547**2, rel=0.01)  # what the solver of the authors' notebook prints
    rng = np.random.default_rng(0)
    for _ in range(300):
        nearby = a + rng.normal(size=5) * 1e-3, b + rng.normal(size=4) * 1e-3
        assert not stable(nearby[0]) or error(*nearby) >= error(a, b) - 1e-6


@pytest.mark.parametrize("keep", [lambda x: x, SparseOperator.from_dense], ids=["dense", "sparse"])
def test_normalized_features_are_those_of_batch_norm(x, keep):
    plain, ours = nn.BatchNorm1d(x.size(1)), NormalizedFeatures(x.size(1))
    for norm in (plain, ours):
        norm.weight.data = torch.linspace(0.5, 2.0, x.size(1))
        norm.bias.data = torch.linspace(-1.0, 1.0, x.size(1))
    weight = torch.randn(x.size(1), 3, generator=seeded_generator())
    features = keep(x)
    for _ in range(3):
        torch.testing.assert_close(ours.times(features, weight), plain(x) @ weight, rtol=1e-4, atol=1e-5)
    plain.eval()
    ours.eval()
    torch.testing.assert_close(ours.times(features, weight), plain(x) @ weight, rtol=1e-4, atol=1e-5)


def test_the_size_of_dfnet_on_cora_is_that_of_the_authors():
    """757,376 trainable parameters, as their notebook prints."""
    network = FeedbackClassifier(1433, 7, [8, 16, 32, 64, 128], 5, 3, seeded_generator())
    assert sum(parameter.numel() for parameter in network.parameters()) == 757_376


def test_only_the_first_layer_of_gcn_decays(adjacency):
    made = build("gcn", "node", {"hidden_channels": 4})
    network = made.network(10, 3, adjacency, seeded_generator())
    decayed, others = made.parameter_groups(network)
    assert decayed["weight_decay"] == 5e-4
    assert [tuple(parameter.shape) for parameter in decayed["params"]] == [(4, 10), (4,)]
    assert others["weight_decay"] == 0
    assert [tuple(parameter.shape) for parameter in others["params"]] == [(3, 4), (3,)]
    (all_of_gat,) = (made := build("gat", "node", {})).parameter_groups(
        made.network(10, 3, adjacency, seeded_generator())
    )
    assert all_of_gat["weight_decay"] == 5e-4
