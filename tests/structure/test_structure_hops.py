"""Features at several hops: their preparation, and their leading directions against a dense SVD."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.dense_oracle import dense_adjacency, dense_propagation, random_graph

from topoter.kernels.sparse import SparseOperator
from topoter.structure.features import prepare_features
from topoter.structure.hops import Preparation, as_dense, leading_directions, propagate


def words(num_nodes: int = 60, num_words: int = 200, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    present = torch.rand(num_nodes, num_words, generator=generator) < 0.05
    return present * torch.randint(1, 9, (num_nodes, num_words), generator=generator).float()


@pytest.mark.parametrize("sparse", [True, False])
def test_a_bag_of_words_is_read_by_presence(sparse: bool) -> None:
    x = words()
    features = prepare_features(x, dense=not sparse)
    assert isinstance(features, SparseOperator) == sparse
    prepared = Preparation.fit(features)(features)
    present = (x != 0).double()
    expected = present / present.sum(1, keepdim=True).sqrt().clamp(min=1)
    torch.testing.assert_close(as_dense(prepared).double(), expected, atol=1e-6, rtol=0)
    if isinstance(prepared, SparseOperator):
        assert prepared.transposed is not None
        torch.testing.assert_close(as_dense(prepared.transposed).t().double(), expected, atol=1e-6, rtol=0)


def test_other_tables_get_standard_columns_and_new_rows_are_treated_alike() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(50, 20, generator=generator) * torch.logspace(-3, 3, 20) + 7
    x[:, 4] = 3.0  # never changes
    preparation = Preparation.fit(x)
    whole = preparation(x)
    standard = (x.double() - x.double().mean(0)) / x.double().std(0, correction=0).clamp(min=1e-9)
    standard[:, 4] = 0
    torch.testing.assert_close(whole.double(), torch.nn.functional.normalize(standard), atol=1e-4, rtol=0)
    torch.testing.assert_close(preparation(x[:7]), whole[:7])


def test_few_columns_keep_the_length_of_their_rows() -> None:
    income = torch.tensor([[1.0], [2.0], [4.0]]).repeat(60, 1)
    income[0] = 1e4
    prepared = Preparation.fit(income)(income)
    assert len(prepared.unique()) == 4
    assert float(prepared.abs().max()) == 5  # the outlier is cut, and the others stay apart


@pytest.mark.parametrize(("num_columns", "rank"), [(200, 10), (30, 12)])
@pytest.mark.parametrize("hops", [0, 1, 2])
def test_directions_are_the_leading_singular_vectors(num_columns: int, rank: int, hops: int) -> None:
    adjacency = random_graph(60, 0.1, 1)
    x = words(60, num_columns)
    x[:, :5] += 3 * torch.rand(60, 1)  # some directions stand out
    found = leading_directions(x, adjacency, hops, rank, torch.Generator().manual_seed(0))
    s = dense_propagation(dense_adjacency(adjacency))
    far = torch.linalg.matrix_power(s, hops) @ x.double()
    _, values, right = torch.linalg.svd(far)
    kept = (far @ found.double()).square().sum()
    assert found.shape == (num_columns, rank)
    assert float(kept / values[:rank].square().sum()) > 0.999
    torch.testing.assert_close(found[:, 0].abs().double(), right[0].abs(), atol=1e-3, rtol=0)
    torch.testing.assert_close(propagate(adjacency, x, hops).double(), far, atol=1e-4, rtol=1e-4)


def test_directions_that_hold_nothing_are_left_out() -> None:
    adjacency = random_graph(40, 0.1, 2)
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0)) @ torch.ones(3, 16)
    generator = torch.Generator().manual_seed(0)
    assert leading_directions(x, adjacency, 1, 512, generator).shape == (16, 1)
    assert leading_directions(torch.zeros(40, 16), adjacency, 1, 512, generator).shape == (16, 0)


def test_same_seed_same_bits() -> None:
    adjacency, x = random_graph(60, 0.1, 1), words(60, 200)
    first, second = (
        leading_directions(x, adjacency, 2, 10, torch.Generator().manual_seed(3)).numpy() for _ in range(2)
    )
    assert np.array_equal(first, second)
