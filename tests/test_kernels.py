"""Kernels: the switch between compiled and plain, the sparse product, the schedule of the pair decoder."""

from __future__ import annotations

from itertools import combinations_with_replacement, pairwise

import numpy as np
import pytest
import torch

from dense_oracle import as_set, dense_adjacency, dense_propagation, random_graph
from topoter.encoders import SGC
from topoter.errors import UsageError
from topoter.kernels import active, buffers, mode, use_compiled
from topoter.kernels.adjacency import symmetric_csr
from topoter.kernels.pair_decoder import _exp, _tournament
from topoter.kernels.pairs import flip_pairs, mark_smallest
from topoter.kernels.sparse import SparseOperator, multiply, multiply_plain, multiply_transposed
from topoter.pretext.transformation import SAMPLERS, mark_smallest_plain
from topoter.structure.adjacency import _flip_pairs_plain, _symmetric_csr_plain


def test_the_environment_switches_the_compiled_kernels_off(monkeypatch):
    monkeypatch.delenv("TOPOTER_KERNELS", raising=False)
    assert mode() == "fast"
    assert use_compiled(torch.empty(0))
    assert not use_compiled(torch.empty(0, dtype=torch.float64))
    assert not use_compiled(torch.empty(0, device="meta"))
    assert all("plain" not in path for path in active().values())
    monkeypatch.setenv("TOPOTER_KERNELS", "plain")
    assert mode() == "plain"
    assert not use_compiled(torch.empty(0))
    assert all("plain PyTorch" in path for path in active().values())


def test_an_unknown_switch_is_refused(monkeypatch):
    monkeypatch.setenv("TOPOTER_KERNELS", "slow")
    with pytest.raises(UsageError, match=r"TOPOTER_KERNELS must be one of fast, plain\. Got 'slow' instead\."):
        mode()


@pytest.mark.parametrize("threads", range(1, 9))
def test_every_two_blocks_meet_once_and_no_block_plays_twice_in_a_round(threads):
    match, starts = _tournament(threads)
    blocks = match.shape[0]
    assert blocks == (1 if threads == 1 else 2 * threads)
    assert (match == match.T).all()
    pairings = list(combinations_with_replacement(range(blocks), 2))
    # Every match is one pairing of blocks, and every pairing has its match.
    number = {int(match[a, b]): (a, b) for a, b in pairings}
    assert sorted(number) == list(range(len(pairings))) == list(range(int(starts[-1])))
    for first, last in pairwise(starts.tolist()):
        playing = [block for m in range(first, last) for block in set(number[m])]
        assert len(playing) == len(set(playing))
        assert last - first <= blocks


def test_the_exponential_of_the_kernel_is_right_to_float32_precision():
    x = np.linspace(-87, 0, 2000).astype(np.float32)
    found = np.array([_exp(value) for value in x], dtype=np.float64)
    np.testing.assert_allclose(found, np.exp(x.astype(np.float64)), rtol=1e-5)
    near = x > -20  # the argument's own rounding grows with it
    np.testing.assert_allclose(found[near], np.exp(x[near].astype(np.float64)), rtol=2e-6)
    assert _exp(np.float32(0)) == 1
    assert 0 <= _exp(np.float32(-1e30)) < 1e-37


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("self_loops", [False, True])
def test_both_builders_of_the_matrix_agree(weighted, self_loops):
    graph = random_graph(30, 0.2, 0, weighted=weighted)
    a = dense_adjacency(graph)
    expected = dense_propagation(a) if self_loops else a
    for build in (symmetric_csr, _symmetric_csr_plain):
        indptr, indices, values = build(graph.edges, graph.weight, 30, self_loops)
        found = torch.zeros(30, 30, dtype=torch.float64)
        for row in range(30):
            for entry in range(int(indptr[row]), int(indptr[row + 1])):
                found[row, indices[entry]] += values[entry]
        assert indices.dtype == torch.int32
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 3, 5), (40, 90, 33), (5, 0, 4)])
def test_the_sparse_product_equals_the_dense_one(shape):
    rows, columns, width = shape
    generator = torch.Generator().manual_seed(0)
    dense = torch.randn(rows, columns, generator=generator)
    dense *= torch.rand(rows, columns, generator=generator) < 0.2
    right = torch.randn(width, columns, generator=generator).t()  # not contiguous, as a transposed weight is
    operator = SparseOperator.from_dense(dense)
    assert operator.shape == (rows, columns)
    by_torch = operator.as_torch(torch.float32) @ right  # what a GPU takes
    for product in (multiply(operator, right), multiply_plain(operator, right), by_torch):
        torch.testing.assert_close(product, dense @ right, rtol=1e-5, atol=1e-6)
    double = multiply(operator, right.double())  # not for the compiled kernel: by torch's product
    torch.testing.assert_close(double, dense.double() @ right.double())


def test_gradcheck_of_the_sparse_product():
    generator = torch.Generator().manual_seed(0)
    dense = torch.randn(6, 4, generator=generator).double() * (torch.rand(6, 4, generator=generator) < 0.5)
    operator = SparseOperator.from_dense(dense)
    right = torch.randn(4, 3, generator=generator).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda right: operator @ right, (right,))


def test_the_sparse_product_is_the_same_on_one_and_two_threads(monkeypatch):
    monkeypatch.setattr("topoter.kernels.sparse._WORTH_A_THREAD", 0)
    graph = random_graph(50, 0.2, 0)
    h = torch.randn(50, 9, generator=torch.Generator().manual_seed(0))
    threads = torch.get_num_threads()
    try:
        products = []
        for number in (1, 2):
            torch.set_num_threads(number)
            products.append(graph.normalized @ h)
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(*products)


# ---- dH of an SGC layer, scattered transposes, buffers -------------------------------------------------------


@pytest.mark.parametrize("slope", [1.0, 0.1])
@pytest.mark.parametrize("channels", [1, 7, 600])
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("threads", [1, 2])
def test_fused_delta_is_the_difference_of_two_propagations(slope, channels, order, threads, monkeypatch):
    monkeypatch.setattr("topoter.kernels.sparse._WORTH_A_THREAD", 0)
    graph = random_graph(300, 0.03, 4)
    after = SAMPLERS["exact"](graph, 0.5, torch.Generator().manual_seed(0)).adjacency_t
    encoder = SGC(5, channels, order, negative_slope=slope)
    generator = torch.Generator().manual_seed(1)
    signal = torch.randn(300, channels, generator=generator, requires_grad=True)
    grad = torch.randn(300, channels, generator=generator)
    results = []
    before_threads = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for delta in (
            encoder.fused_delta(signal, graph, after),
            encoder.propagate(signal, after) - encoder.propagate(signal, graph),
        ):
            gradients = torch.autograd.grad(delta, [signal, encoder.layers[0].bias], grad)
            results.append((delta.detach(), *gradients))
    finally:
        torch.set_num_threads(before_threads)
    for fused, plain, scale in zip(*results, (1.0, 1.0, 300.0)):  # the bias sums over all nodes
        torch.testing.assert_close(fused, plain, rtol=1e-5, atol=1e-6 * scale)


def test_fused_delta_serves_one_compiled_layer_only(monkeypatch):
    graph = random_graph(20, 0.2, 0)
    signal = torch.randn(20, 4, generator=torch.Generator().manual_seed(0))
    assert SGC(3, 4).fused_delta(signal, graph, graph) is not None
    assert SGC(3, 4, num_layers=2, hidden_channels=4).fused_delta(signal, graph, graph) is None
    assert SGC(3, 4).fused_delta(signal.double(), graph, graph) is None
    monkeypatch.setenv("TOPOTER_KERNELS", "plain")
    assert SGC(3, 4).fused_delta(signal, graph, graph) is None


@pytest.mark.parametrize("threads", [1, 2])
def test_a_tall_matrix_is_transposed_by_scattering(threads, monkeypatch):
    monkeypatch.setattr("topoter.kernels.sparse._WORTH_A_THREAD", 0)
    generator = torch.Generator().manual_seed(0)
    dense = torch.rand(900, 13, generator=generator) * (torch.rand(900, 13, generator=generator) < 0.2)
    grad = torch.randn(900, 37, generator=generator)
    operator = SparseOperator.from_dense(dense)
    monkeypatch.setattr("topoter.kernels.sparse._CACHE_BYTES", 13 * 37 * 4)  # the result just fits, the input does not
    called = []
    monkeypatch.setattr("topoter.kernels.sparse.multiply", lambda *_: called.append(True))
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        product = multiply_transposed(operator, grad)
    finally:
        torch.set_num_threads(before)
    assert not called
    torch.testing.assert_close(product, dense.t() @ grad, rtol=1e-5, atol=1e-5)


def test_buffers_are_used_again_only_when_nothing_refers_to_them():
    buffers.release()
    first = buffers.empty(1024, 512)
    place = first.data_ptr()
    view = first[3:]
    del first
    second = buffers.empty(1024, 512)
    assert second.data_ptr() != place, "a view still needs the memory"
    del view
    third = buffers.empty(512, 1024)
    assert third.data_ptr() == place
    assert buffers.empty(4, 4).shape == (4, 4)


def test_buffers_of_ever_new_sizes_do_not_pile_up():
    """Batches of graphs have another number of nodes each time; one by one they need one buffer, not one each."""
    buffers.release()
    rng = np.random.default_rng(0)
    for rows in rng.integers(9_000, 11_000, 200):
        assert buffers.empty(int(rows), 64).shape == (rows, 64)
    held = sum(block.nbytes for waiting in buffers._free.values() for block in waiting)
    assert held < 5 * 11_000 * 64 * 4
    buffers.release()


def test_the_backward_pass_keeps_its_buffers():
    """A buffer saved for the backward pass is not handed out again before it."""
    buffers.release()
    x = torch.randn(4096, 128, requires_grad=True, generator=torch.Generator().manual_seed(0))
    operator = SparseOperator.from_dense(torch.eye(4096)[:, :4096])
    y = operator @ x
    loss = (y * y).sum()  # saves y
    kept = y.detach().clone()
    del y
    buffers.empty(4096, 128).fill_(7.0)
    loss.backward()
    torch.testing.assert_close(x.grad, 2 * kept)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shares", [(0.0, 0.0), (1.0, 1.0), (0.0, 1.0), (1.0, 0.0), (0.7, 0.3)])
def test_flipping_sorted_lists_gives_the_exclusive_or(shares, weighted):
    adjacency = random_graph(25, 0.3, 0, weighted)
    generator = torch.Generator().manual_seed(1)
    pairs = adjacency.pair_space.disconnected(torch.tensor([60]), generator)
    flip_edge, flip_pair = (
        torch.rand(count, generator=generator) < share for count, share in zip((adjacency.num_edges, 60), shares)
    )
    arguments = (adjacency.edges, adjacency.weight, flip_edge, pairs, flip_pair)
    edges, weight = flip_pairs(*arguments)
    plain_edges, plain_weight = _flip_pairs_plain(*arguments)
    assert torch.equal(edges, plain_edges)
    expected = as_set(adjacency.edges[:, ~flip_edge]) | as_set(pairs[:, flip_pair])
    assert list(map(tuple, edges.t().tolist())) == sorted(expected)
    if weighted:
        assert torch.equal(weight, plain_weight)
        old = dict(zip(map(tuple, adjacency.edges.t().tolist()), adjacency.weight.tolist()))
        assert weight.tolist() == [old.get(pair, 1.0) for pair in sorted(expected)]


@pytest.mark.parametrize("count", [1, 2, 7, 20_000])
def test_the_smallest_keys_are_marked_as_by_sorting(count):
    keys = torch.rand(count, dtype=torch.float64, generator=torch.Generator().manual_seed(count))
    for wanted in {1, count // 3 or 1, count}:
        marked = mark_smallest(keys, wanted)
        assert int(marked.sum()) == wanted
        assert torch.equal(marked, mark_smallest_plain(keys, wanted))
