"""Sums by learned weights: the compiled product against its plain twin and a dense matrix, values and gradients."""

from __future__ import annotations

import pytest
import torch

from dense_oracle import random_graph
from topoter.kernels.weighted import (
    Pattern,
    dot_products,
    dot_products_plain,
    weighted_sum,
    weighted_sum_plain,
)


@pytest.fixture(scope="module")
def pattern() -> Pattern:
    return Pattern(random_graph(25, 0.2, seed=1).normalized)


@pytest.mark.parametrize("heads", [1, 3])
def test_the_kernel_is_its_plain_twin(pattern, heads):
    generator = torch.Generator().manual_seed(0)
    weight = torch.rand(pattern.num_entries, heads, generator=generator)
    h, grad = (torch.randn(25, heads * 4, generator=generator) for _ in range(2))
    torch.testing.assert_close(weighted_sum(pattern, weight, h), weighted_sum_plain(pattern, weight, h))
    torch.testing.assert_close(dot_products(pattern, grad, h, heads), dot_products_plain(pattern, grad, h, heads))


def test_the_product_is_the_dense_one_with_its_gradients(pattern):
    generator = torch.Generator().manual_seed(0)
    weight = torch.rand(pattern.num_entries, 2, generator=generator, requires_grad=True)
    h = torch.randn(25, 6, generator=generator, requires_grad=True)
    found = pattern.weighted_sum(weight, h)
    found.square().sum().backward()
    own = weight.grad.clone(), h.grad.clone()
    weight.grad = h.grad = None
    heads = []
    for head in range(2):
        dense = torch.zeros(25, 25).index_put((pattern.row, pattern.column), weight[:, head])
        heads.append(dense @ h[:, 3 * head : 3 * head + 3])
    expected = torch.cat(heads, dim=1)
    torch.testing.assert_close(found, expected)
    expected.square().sum().backward()
    torch.testing.assert_close(own, (weight.grad, h.grad), rtol=1e-4, atol=1e-4)


def test_the_plain_twin_has_right_gradients_in_double_precision():
    small = Pattern(random_graph(6, 0.5, seed=1).normalized)
    weight = torch.rand(small.num_entries, 2, dtype=torch.float64, requires_grad=True)
    h = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(small.weighted_sum, (weight, h))


def test_mirrored_entries_are_those_of_the_transpose(pattern):
    assert torch.equal(pattern.row[pattern.mirror], pattern.column)
    assert torch.equal(pattern.column[pattern.mirror], pattern.row)


def test_shares_of_a_row_sum_to_one(pattern):
    scores = 50 * torch.randn(pattern.num_entries, 2, generator=torch.Generator().manual_seed(1))
    shares = pattern.softmax(scores)
    sums = torch.zeros(25, 2).index_add_(0, pattern.row, shares)
    torch.testing.assert_close(sums, torch.ones(25, 2))
