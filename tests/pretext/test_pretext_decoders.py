"""The decoder: symmetric in its pair, equal to the explicit sums, the same by every path, gradients too."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from dense_oracle import edge_representation, pair_logits
from dense_oracle import pair_loss as naive_pair_loss
from topoter.kernels import pair_decoder
from topoter.kernels.pair_decoder import pair_loss
from topoter.pretext import decoders as decoder_module
from topoter.pretext.decoders import TransformationDecoder, cross_entropy_of_types, entropy_of_types, type_prior


@pytest.fixture(params=[1, 2])
def threads(request, monkeypatch):
    """Small problems, dealt out to threads all the same."""
    monkeypatch.setattr("topoter.kernels.pair_decoder._WORTH_A_THREAD", 0)
    monkeypatch.setattr("topoter.kernels.sparse._WORTH_A_THREAD", 0)
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def problem(num_nodes: int, num_pairs: int, channels: int, spread: float = 1.0, dtype=torch.float32):
    """delta_h, pairs i < j, types, weight, bias."""
    generator = torch.Generator().manual_seed(num_nodes + channels)
    delta_h = torch.randn(num_nodes, channels, generator=generator).mul(spread).to(dtype)
    if spread > 10:
        # In eighths, so that float32 holds every square exactly: otherwise its rounding alone, one part in
        # 10^7 of an exponent in the thousands, would tell the paths apart.
        delta_h = (8 * delta_h).round() / 8
    ends = torch.randint(num_nodes, (2, 4 * num_pairs + 20), generator=generator)
    ends = ends[:, ends[0] != ends[1]][:, :num_pairs]
    pairs = torch.stack([ends.amin(0), ends.amax(0)])
    pair_type = torch.randint(4, (pairs.size(1),), generator=generator)
    weight = torch.randn(4, channels, generator=generator).to(dtype) * 3
    bias = torch.randn(4, generator=generator).to(dtype)
    return delta_h, pairs, pair_type, weight, bias


def by_autograd(delta_h, pairs, pair_type, weight, bias):
    """Loss, confusion and gradients by PyTorch's own operations, in float64."""
    leaves = [tensor.detach().double().requires_grad_() for tensor in (delta_h, weight, bias)]
    d = leaves[0][pairs[0]] - leaves[0][pairs[1]]
    logits = torch.softmax(-d * d, dim=1) @ leaves[1].t() + leaves[2]
    loss = functional.cross_entropy(logits, pair_type)
    confusion = torch.zeros(4, 4, dtype=torch.int64)
    confusion.index_put_((pair_type, logits.argmax(1)), torch.tensor(1), accumulate=True)
    return loss.detach(), confusion, *torch.autograd.grad(loss, leaves)


def assert_same(found, expected):
    for a, b in zip(found, expected):
        if a.dtype == torch.int64:
            assert torch.equal(a, b)
        else:
            scale = float(b.abs().max())
            torch.testing.assert_close(a.double(), b.double(), rtol=1e-5, atol=1e-5 * scale + 1e-30)


@pytest.mark.parametrize("size", [(2, 1, 3), (30, 200, 7), (60, 700, 33), (50, 400, 512)])
@pytest.mark.parametrize("spread", [0.0, 0.01, 1.0])
def test_compiled_and_chunked_paths_agree_with_autograd(threads, size, spread):
    inputs = problem(*size, spread)
    expected = by_autograd(*inputs)
    assert_same(pair_decoder._compiled(*inputs), expected)
    assert_same(pair_decoder._chunked(*inputs), expected)


@pytest.mark.parametrize("size", [(5, 12, 1), (2, 1, 3), (30, 200, 7), (50, 400, 512)])
@pytest.mark.parametrize("spread", [1.0, 12.0, 60.0, 200.0])
def test_the_paths_agree_where_one_channel_takes_all(threads, size, spread):
    """One channel only, or differences so large that every exponential underflows without a shift."""
    delta_h, pairs, _, weight, _ = inputs = problem(*size, spread)
    expected = by_autograd(*inputs)
    # The gradient of dH is then a difference of nearly equal terms: it is right up to the rounding of these.
    d = (delta_h[pairs[0]] - delta_h[pairs[1]]).abs().max()
    pairs_of_a_node = torch.bincount(pairs.flatten()).max()
    rounding = 5e-7 * float(2 * d * weight.abs().max() * pairs_of_a_node / pairs.size(1))
    for path in (pair_decoder._compiled, pair_decoder._chunked):
        loss, confusion, grad_delta_h, grad_weight, grad_bias = path(*inputs)
        assert_same((loss, confusion, grad_weight, grad_bias), (*expected[:2], *expected[3:]))
        torch.testing.assert_close(grad_delta_h.double(), expected[2], rtol=1e-5, atol=rounding)


def test_chunks_add_up(monkeypatch):
    inputs = problem(20, 5000, 512 * 8)
    # 2^22 numbers are one chunk: these 5,000 pairs take five.
    assert inputs[1].size(1) * 512 * 8 > 4 * (1 << 22)
    for a, b in zip(pair_decoder._compiled(*inputs), pair_decoder._chunked(*inputs)):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_the_loss_equals_the_explicit_sum():
    inputs = problem(12, 40, 7)
    loss, confusion = naive_pair_loss(*inputs)
    found, counts = pair_loss(*inputs)
    assert float(found) == pytest.approx(loss, rel=1e-5)
    assert counts.tolist() == confusion
    assert int(counts.sum()) == 40


def test_the_paths_are_deterministic_for_a_number_of_threads(threads):
    inputs = problem(60, 2000, 33)
    first = pair_decoder._compiled(*inputs)
    for _ in range(3):
        assert all(torch.equal(a, b) for a, b in zip(first, pair_decoder._compiled(*inputs)))


@pytest.mark.parametrize("channels", [3, 15, 17, 33])
def test_the_result_does_not_depend_on_where_arrays_lie_in_memory(channels):
    """Arrays of few channels may lie close together: the order of sums must be the same there too."""
    inputs = problem(40, 160, channels)
    first = pair_decoder._compiled(*inputs)
    sizes = torch.randint(1, 5000, (400,), generator=torch.Generator().manual_seed(0)).tolist()
    kept = []
    for size in sizes:
        kept = [*kept[-20:], np.empty(size, dtype=np.uint8)]  # moves what is allocated next
        copies = [tensor.clone() for tensor in inputs]
        kept.append(copies[0].numpy())
        assert all(torch.equal(a, b) for a, b in zip(first, pair_decoder._compiled(*copies)))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_broken_row_breaks_the_loss_on_every_path(value):
    delta_h, *rest = problem(10, 40, 5)
    delta_h[3] = value
    for path in (pair_decoder._compiled, pair_decoder._chunked):
        assert math.isnan(float(path(delta_h, *rest)[0]))


def with_weights(channels: int, weight: torch.Tensor, bias: torch.Tensor, **options) -> TransformationDecoder:
    decoder = TransformationDecoder(channels, **options).to(weight.dtype)
    decoder.load_state_dict({"layers.0.weight": weight, "layers.0.bias": bias})
    return decoder


def test_forward_equals_the_explicit_formula():
    delta_h, pairs, _, weight, bias = problem(8, 15, 6)
    decoder = with_weights(6, weight, bias)
    e = decoder.edge_representation(delta_h, pairs)
    expected = torch.tensor([edge_representation(delta_h, i, j) for i, j in pairs.t().tolist()])
    torch.testing.assert_close(e, expected, rtol=1e-5, atol=1e-7)
    logits = torch.tensor(pair_logits(delta_h, pairs, weight, bias))
    torch.testing.assert_close(decoder(delta_h, pairs), logits, rtol=1e-5, atol=1e-5)
    scaled = torch.tensor(pair_logits(delta_h, pairs, 6 * weight, bias))
    torch.testing.assert_close(
        with_weights(6, weight, bias, scale_edges=True)(delta_h, pairs), scaled, rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("kernels", ["fast", "plain"])
def test_swapping_the_ends_of_a_pair_changes_nothing(monkeypatch, kernels):
    monkeypatch.setenv("TOPOTER_KERNELS", kernels)
    delta_h, pairs, pair_type, weight, bias = problem(20, 100, 7)
    decoder = with_weights(7, weight, bias)
    assert torch.equal(decoder(delta_h, pairs), decoder(delta_h, pairs.flip(0)))
    loss, confusion = decoder.loss(delta_h, pairs, pair_type)
    swapped, swapped_confusion = decoder.loss(delta_h, pairs.flip(0), pair_type)
    torch.testing.assert_close(loss, swapped, rtol=1e-6, atol=0)
    assert torch.equal(confusion, swapped_confusion)


@pytest.mark.parametrize("channels", [1, 7, 512])
def test_no_change_gives_a_uniform_representation(channels):
    decoder = TransformationDecoder(channels)
    e = decoder.edge_representation(torch.zeros(4, channels), torch.tensor([[0, 1], [2, 3]]))
    torch.testing.assert_close(e, torch.full((2, channels), 1 / channels))


@pytest.mark.parametrize("scale_edges", [False, True])
@pytest.mark.parametrize("num_layers", [1, 2])
def test_the_loss_is_the_cross_entropy_of_the_logits_with_its_gradients(monkeypatch, scale_edges, num_layers):
    delta_h, pairs, pair_type, _, _ = problem(20, 100, 7)
    decoder = TransformationDecoder(7, num_layers, hidden_channels=5, scale_edges=scale_edges)
    decoder.initialize(torch.Generator().manual_seed(0))
    delta_h.requires_grad_()
    leaves = [delta_h, *decoder.parameters()]
    logits = decoder(delta_h, pairs)
    expected = functional.cross_entropy(logits, pair_type)
    expected_gradients = torch.autograd.grad(2 * expected, leaves)
    for kernels in ("fast", "plain"):
        monkeypatch.setenv("TOPOTER_KERNELS", kernels)
        loss, confusion = decoder.loss(delta_h, pairs, pair_type)
        torch.testing.assert_close(loss, expected, rtol=1e-5, atol=0)
        assert_same(torch.autograd.grad(2 * loss, leaves), expected_gradients)
        assert torch.equal(confusion.sum(1), torch.bincount(pair_type, minlength=4))
        assert int(confusion.diagonal().sum()) == int((logits.argmax(1) == pair_type).sum())


def test_only_one_layer_and_the_fast_mode_use_the_fused_kernel(monkeypatch):
    calls = []

    def counted(*inputs):
        calls.append(inputs)
        return pair_loss(*inputs)

    monkeypatch.setattr(decoder_module, "pair_loss", counted)
    delta_h, pairs, pair_type, _, _ = problem(10, 20, 4)
    TransformationDecoder(4, num_layers=2).loss(delta_h, pairs, pair_type)
    assert len(calls) == 0
    TransformationDecoder(4).loss(delta_h, pairs, pair_type)
    assert len(calls) == 1
    monkeypatch.setenv("TOPOTER_KERNELS", "plain")
    TransformationDecoder(4).loss(delta_h, pairs, pair_type)
    assert len(calls) == 1


def test_gradcheck_of_the_plain_and_of_the_fused_loss():
    delta_h, pairs, pair_type, weight, bias = problem(6, 10, 4, dtype=torch.float64)
    leaves = [tensor.clone().requires_grad_() for tensor in (delta_h, weight, bias)]
    decoder = TransformationDecoder(4).double()

    def plain(delta_h, weight, bias):
        parameters = {"layers.0.weight": weight, "layers.0.bias": bias}
        logits = torch.func.functional_call(decoder, parameters, (delta_h, pairs))
        return functional.cross_entropy(logits, pair_type)

    def fused(delta_h, weight, bias):
        return pair_loss(delta_h, pairs, pair_type, weight, bias)[0]

    assert torch.autograd.gradcheck(plain, leaves)
    assert torch.autograd.gradcheck(fused, leaves)


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.7])
def test_starting_at_the_prior_costs_its_entropy(rate):
    decoder = TransformationDecoder(5)
    torch.nn.init.zeros_(decoder.layers[0].weight)
    decoder.start_at_prior(rate)
    flipped, kept = round(100 * rate), round(100 * (1 - rate))
    counts = torch.tensor([flipped, flipped, kept, kept])
    pair_type = torch.repeat_interleave(torch.arange(4), counts)
    pairs = torch.stack([torch.zeros(200).long(), torch.arange(1, 201)])
    loss, _ = decoder.loss(torch.zeros(201, 5), pairs, pair_type)
    entropy = -sum(share * math.log(share) for share in type_prior(rate).tolist())
    assert float(loss.detach()) == pytest.approx(entropy, rel=1e-5)
    assert entropy_of_types(counts) == pytest.approx(entropy, rel=1e-6)


def test_the_prior_at_the_ends_of_the_range_stays_finite():
    for rate in (0.0, 1.0):
        decoder = TransformationDecoder(3)
        decoder.start_at_prior(rate)
        assert bool(decoder.layers[0].bias.isfinite().all())
    assert entropy_of_types(torch.tensor([0, 0, 5, 5])) == pytest.approx(math.log(2))


def test_a_decoder_needs_a_layer():
    with pytest.raises(ValueError, match=r"The 'num_layers' parameter of TransformationDecoder must be at least 1"):
        TransformationDecoder(4, num_layers=0)


def test_weights_are_drawn_as_nn_linear_would_and_from_one_generator():
    decoder = TransformationDecoder(9, num_layers=3)
    assert [tuple(layer.weight.shape) for layer in decoder.layers] == [(64, 9), (64, 64), (4, 64)]
    for layer in decoder.layers:
        bound = layer.in_features**-0.5
        for parameter in layer.parameters():
            assert parameter.abs().max() <= bound
        assert layer.weight.max() > 0.8 * bound
        assert layer.weight.min() < -0.8 * bound
    first = [parameter.clone() for parameter in decoder.parameters()]
    decoder.initialize(torch.Generator().manual_seed(0))  # what a new decoder starts with
    assert all(torch.equal(a, b) for a, b in zip(first, decoder.parameters()))
    decoder.initialize(torch.Generator().manual_seed(1))
    assert not any(torch.equal(a, b) for a, b in zip(first, decoder.parameters()))
    assert TransformationDecoder(9).scale == 1.0
    assert TransformationDecoder(9, scale_edges=True).scale == 9.0


def test_shares_of_the_types_and_what_guessing_them_costs():
    torch.testing.assert_close(type_prior(0.3), torch.tensor([0.15, 0.15, 0.35, 0.35]))
    torch.testing.assert_close(type_prior((0.2, 0.6)), torch.tensor([0.1, 0.3, 0.4, 0.2]))
    assert entropy_of_types(torch.tensor([5, 5, 5, 5])) == pytest.approx(math.log(4))
    assert entropy_of_types(torch.tensor([1, 0, 3, 0])) == pytest.approx(-0.25 * math.log(0.25) - 0.75 * math.log(0.75))
    logits = torch.eye(4)[torch.tensor([0, 1, 1, 3])]
    _, confusion = cross_entropy_of_types(logits, torch.tensor([0, 1, 2, 2]))
    assert confusion.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 1], [0, 0, 0, 0]]
