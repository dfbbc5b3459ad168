"""The fast paths of the peers' losses against their plain twins: values and gradients."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from dense_oracle import random_graph
from topoter.kernels import contrast as of_views
from topoter.kernels.contrast import contrast, contrast_plain
from topoter.kernels.neighbour_max import neighbour_max, neighbour_max_plain
from topoter.kernels.pair_dots import pair_dots, pair_dots_plain
from topoter.methods.gradients import PReLU, gram
from topoter.methods.masked_features import Wanted
from topoter.structure.features import prepare_features


def drawn(*shape: int, seed: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def with_gradients(function, *tensors):
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    value = function(*leaves)
    (value.square().sum() if value.dim() else 3 * value).backward()
    return value.detach(), *(leaf.grad for leaf in leaves)


@pytest.mark.parametrize("temperature", [0.1, 0.9])
@pytest.mark.parametrize("num_nodes", [1, 7, 8, 21])  # blocks of 7 rows: less than one, one, more, three
def test_the_contrast_is_its_plain_twin(monkeypatch, num_nodes, temperature):
    monkeypatch.setattr(of_views, "_ROWS", 7)
    views = [functional.normalize(drawn(num_nodes, 5, seed=seed), dim=1) for seed in (0, 1)]
    found = with_gradients(lambda a, b: contrast(a, b, temperature), *views)
    expected = with_gradients(lambda a, b: contrast_plain(a, b, temperature), *views)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_a_temperature_that_would_overflow_takes_the_twin():
    views = [functional.normalize(drawn(9, 5, seed=seed), dim=1) for seed in (0, 1)]
    assert torch.equal(contrast(*views, 0.005), contrast_plain(*views, 0.005))
    assert torch.isfinite(contrast(*views, 0.02))


@pytest.mark.parametrize("threads", [1, 2])
def test_inner_products_of_pairs_are_their_plain_twin(threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        left, right = drawn(9, 6, seed=0), drawn(7, 6, seed=1)
        pairs = torch.stack([torch.arange(40) * 5 % 9, torch.arange(40) * 3 % 7])
        found = with_gradients(lambda a, b: pair_dots(a, b, pairs), left, right)
        expected = with_gradients(lambda a, b: pair_dots_plain(a, b, pairs), left, right)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
        same = with_gradients(lambda a: pair_dots(a, a, pairs % 7), left)
        torch.testing.assert_close(same, with_gradients(lambda a: pair_dots_plain(a, a, pairs % 7), left))
        assert pair_dots(left, right, pairs[:, :0]).shape == (0,)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_largest_neighbour_is_the_plain_twins_with_ties(threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        operator = random_graph(20, 0.2, seed=1).summed
        h = torch.relu(drawn(20, 5, seed=0))  # many are 0, and 0 may be the largest
        h[3] = h[4]
        found = with_gradients(lambda a: neighbour_max(operator, a), h + 1)
        torch.testing.assert_close(found, with_gradients(lambda a: neighbour_max_plain(operator, a), h + 1))
    finally:
        torch.set_num_threads(before)


def test_the_activation_is_that_of_torch():
    x, ours, theirs = drawn(20, 3, seed=0), PReLU(), torch.nn.PReLU()
    x[0] = 0
    torch.testing.assert_close(with_gradients(ours, x), with_gradients(theirs, x))
    torch.testing.assert_close(ours.weight.grad, theirs.weight.grad)


def test_the_gradient_of_a_gram_matrix():
    w, factor = drawn(7, 3, seed=0), drawn(3, 3, seed=1)  # of a gradient that is not symmetric
    found = with_gradients(lambda a: gram(a) * factor, w)
    torch.testing.assert_close(found, with_gradients(lambda a: (a.t() @ a) * factor, w))


def test_how_like_sparse_features_a_map_is_without_making_it():
    x = drawn(60, 90, seed=0) * (torch.arange(60 * 90).view(60, 90) % 13 == 0)
    x[5] = 0
    sparse, rows = Wanted(prepare_features(x)), torch.arange(0, 60, 2)
    h, weight, bias = drawn(30, 3, seed=1), drawn(90, 3, seed=2), drawn(90, seed=3)
    found = with_gradients(lambda *map_: sparse.cosines(*map_, rows), h, weight, bias)
    assert sparse.dense is None  # it took the path that is tested
    expected = with_gradients(lambda *map_: Wanted(x).cosines(*map_, rows), h, weight, bias)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
