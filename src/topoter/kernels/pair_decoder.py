"""The loss over node pairs and its gradient in one pass, keeping nothing of size pairs x channels.

For every pair (i, j) of type y, with d = dh_i - dh_j:

    e = softmax(-d * d)         z = W e + b         loss = mean of -log softmax(z)[y]

Two implementations of the same idea: compiled loops for the CPU, chunks of pairs in PyTorch elsewhere. Both
compute the gradient together with the loss, because everything it needs is at hand then. The twin they are
tested against is `TransformationDecoder.forward` followed by PyTorch's cross entropy.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numba import types
from numba.extending import intrinsic
from torch import Tensor

from topoter.kernels import buffers, use_compiled
from topoter.kernels.compiled import compile_kernel, num_threads, run, run_parallel

NUM_TYPES = 4
# The schedule below needs 2 * threads blocks of nodes, so (2 * threads)^2 / 2 tasks: more threads than this
# would make tasks too small to be worth starting.
MAX_THREADS = 16
# Unused channels on both sides of a scratch array. Compiled loops test at run time whether arrays lie so close
# that vector registers would mix them up, and then go one by one, adding in another order: with arrays of few
# channels the result would depend on where the allocator puts them.
_GUARD = 128
# Pairs times channels below which waking a second thread costs more than it saves.
_WORTH_A_THREAD = 1 << 20


def pair_loss(delta_h: Tensor, pairs: Tensor, pair_type: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Mean cross entropy over the pairs, and how often each true type (row) was taken for which (column).

    Shapes: delta_h [N, F], pairs [2, P], pair_type [P], weight [4, F], bias [4] -> loss [], confusion [4, 4].
    """
    result: tuple[Tensor, Tensor] = _PairLoss.apply(delta_h, pairs, pair_type, weight, bias)
    return result


class _PairLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, delta_h, pairs, pair_type, weight, bias):  # type: ignore[no-untyped-def]
        compute = _compiled if use_compiled(delta_h) else _chunked
        loss, confusion, *gradients = compute(delta_h, pairs, pair_type, weight, bias)
        ctx.save_for_backward(*gradients)
        ctx.mark_non_differentiable(confusion)
        return loss, confusion

    @staticmethod
    def backward(ctx, grad_loss, _):  # type: ignore[no-untyped-def]
        grad_delta_h, grad_weight, grad_bias = ctx.saved_tensors
        if grad_loss != 1:
            grad_delta_h = grad_delta_h * grad_loss
        return grad_delta_h, None, None, grad_weight * grad_loss, grad_bias * grad_loss


def _chunked(delta_h: Tensor, pairs: Tensor, pair_type: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    num_pairs, channels = pairs.size(1), delta_h.size(1)
    chunk = max(1, (1 << 22) // channels)
    loss = delta_h.new_zeros(())
    confusion = torch.zeros(NUM_TYPES, NUM_TYPES, dtype=torch.int64, device=delta_h.device)
    grad_delta_h, grad_weight, grad_bias = (torch.zeros_like(tensor) for tensor in (delta_h, weight, bias))
    for start in range(0, num_pairs, chunk):
        i, j = pairs[:, start : start + chunk]
        y = pair_type[start : start + chunk].long()
        d = delta_h[i] - delta_h[j]
        e = torch.softmax(-d * d, dim=1)
        log_probability = torch.log_softmax(e @ weight.t() + bias, dim=1)
        loss -= log_probability.gather(1, y.unsqueeze(1)).sum() / num_pairs
        confusion += torch.bincount(y * NUM_TYPES + log_probability.argmax(1), minlength=NUM_TYPES * NUM_TYPES).view(
            NUM_TYPES, NUM_TYPES
        )
        grad_logits = (log_probability.exp() - torch.nn.functional.one_hot(y, NUM_TYPES)) / num_pairs
        grad_weight += grad_logits.t() @ e
        grad_bias += grad_logits.sum(0)
        grad_e = grad_logits @ weight
        grad_d = -2 * d * e * (grad_e - (grad_e * e).sum(1, keepdim=True))
        grad_delta_h.index_add_(0, i, grad_d)
        grad_delta_h.index_add_(0, j, -grad_d)
    return loss, confusion, grad_delta_h, grad_weight, grad_bias


def _compiled(delta_h: Tensor, pairs: Tensor, pair_type: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    grad_delta_h = buffers.empty(*delta_h.shape).zero_()
    loss, confusion, grad_weight, grad_bias = decode(
        delta_h.detach().contiguous().numpy(),
        pairs.numpy(),
        pair_type.to(torch.int8).numpy(),
        weight.detach().contiguous().numpy(),
        bias.detach().numpy(),
        grad_delta_h.numpy(),
    )
    gradients = (torch.from_numpy(array) for array in (grad_weight, grad_bias))
    return torch.tensor(loss, dtype=torch.float32), torch.from_numpy(confusion), grad_delta_h, *gradients


def decode(
    delta_h: np.ndarray,
    pairs: np.ndarray,
    pair_type: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray,
    grad_delta_h: np.ndarray,
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Loss, confusion, and the gradients of weight and bias; that of dH is added to `grad_delta_h`."""
    source, target = pairs
    threads = min(num_threads(), MAX_THREADS) if source.shape[0] * delta_h.shape[1] >= _WORTH_A_THREAD else 1
    match, rounds = _tournament(threads)
    order, starts = run("decoder", _deal, source, target, match, int(rounds[-1]))
    # One accumulator for each match that can run at the same time; rounds follow each other.
    slots = match.shape[0]
    confusion = np.zeros((slots, NUM_TYPES, NUM_TYPES), dtype=np.int64)
    grad_weight = np.zeros((slots, NUM_TYPES, delta_h.shape[1]), dtype=np.float64)
    grad_bias = np.zeros((slots, NUM_TYPES), dtype=np.float64)
    share = np.float32(1 / source.shape[0])
    loss = 0.0
    for first, last in pairwise(rounds):
        calls = [
            (
                delta_h,
                source,
                target,
                pair_type,
                order[starts[number] : starts[number + 1]],
                weight,
                bias,
                share,
                grad_delta_h,
                grad_weight[number - first],
                grad_bias[number - first],
                confusion[number - first],
            )
            for number in range(first, last)
        ]
        loss += sum(run_parallel("decoder", _decode_match, calls))
    sums = (grad_weight.sum(0).astype(np.float32), grad_bias.sum(0).astype(np.float32))
    return loss / source.shape[0], confusion.sum(0), *sums


def _tournament(threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Which pairs may be worked on at the same time, so that no two threads add to the same node.

    Nodes are dealt into 2 * threads blocks (node modulo blocks). A pair belongs to the match of its two
    blocks; as in a round-robin tournament, every round plays matches without a block in common, and a last
    round plays each block against itself. The order of all sums is thus fixed by the number of threads.

    Returns the match of two blocks [B, B], and where the matches of each round start [rounds + 1].
    """
    if threads == 1:
        return np.zeros((1, 1), dtype=np.int64), np.array([0, 1], dtype=np.int64)
    blocks = 2 * threads
    match = np.empty((blocks, blocks), dtype=np.int64)
    circle = list(range(blocks))
    count = 0
    starts = [0]
    for _ in range(blocks - 1):
        for a, b in zip(circle[:threads], reversed(circle[threads:])):
            match[a, b] = match[b, a] = count
            count += 1
        starts.append(count)
        circle = [circle[0], circle[-1], *circle[1:-1]]
    for block in range(blocks):
        match[block, block] = count + block
    starts.append(count + blocks)
    return match, np.array(starts, dtype=np.int64)


@intrinsic
def _bits_as_float(typing_context: Any, bits: Any) -> Any:
    """The float32 whose bit pattern is this int32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from llvmlite import ir

        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


LOG2_E = np.float32(1.4426950408889634)
C1, C2, C3 = np.float32(0.6931471805599453), np.float32(0.2402265069591007), np.float32(0.05550410866482158)
C4, C5, C6 = (
    np.float32(0.009618129107628477),
    np.float32(0.0013333558146428443),
    np.float32(0.00015403530393381608),
)


@compile_kernel(inline=True)
def _exp(x):  # type: ignore[no-untyped-def]
    """exp(x) for x <= 0 to float32 precision: a polynomial times a power of two set through exponent bits.

    A call of the C library's exp would keep the compiler from using vector registers.
    """
    t = max(x * LOG2_E, np.float32(-126))
    whole = np.floor(t + np.float32(0.5))
    f = t - whole
    mantissa = np.float32(1) + f * (C1 + f * (C2 + f * (C3 + f * (C4 + f * (C5 + f * C6)))))
    return mantissa * _bits_as_float((np.int32(whole) + np.int32(127)) << np.int32(23))


@compile_kernel()
def _deal(source, target, match, num_matches):  # type: ignore[no-untyped-def]
    """The pairs ordered by match (a counting sort), and where each match starts."""
    num_pairs, blocks = source.shape[0], match.shape[0]
    starts = np.zeros(num_matches + 1, dtype=np.int64)
    for pair in range(num_pairs):
        starts[match[source[pair] % blocks, target[pair] % blocks] + 1] += 1
    for m in range(num_matches):
        starts[m + 1] += starts[m]
    cursor = starts[:-1].copy()
    order = np.empty(num_pairs, dtype=np.int64)
    for pair in range(num_pairs):
        m = match[source[pair] % blocks, target[pair] % blocks]
        order[cursor[m]] = pair
        cursor[m] += 1
    return order, starts


@compile_kernel()
def _decode_match(  # type: ignore[no-untyped-def]
    delta_h,
    source,
    target,
    pair_type,
    order,
    weight,
    bias,
    share,
    grad_delta_h,
    grad_weight,
    grad_bias,
    confusion,
):
    """Loss of these pairs; adds their gradients and counts to the accumulators.

    Loops over channels are kept short and separate, each writing to one array: more arrays in one loop and
    the compiler no longer proves that they do not overlap, and gives up vector registers.
    """
    channels = delta_h.shape[1]
    w0, w1, w2, w3 = weight[0], weight[1], weight[2], weight[3]
    end = _GUARD + channels
    p = np.empty(end + _GUARD, dtype=np.float32)[_GUARD:end]  # e before its division by `total`
    grad_d = np.empty(end + _GUARD, dtype=np.float32)[_GUARD:end]
    # Sums of float32 terms are moved to float64 every few hundred pairs, so that they stay exact.
    partial = np.zeros((4, channels), dtype=np.float32)
    loss = 0.0
    for place in range(order.shape[0]):
        pair = order[place]
        i, j, y = source[pair], target[pair], pair_type[pair]
        dh_i, dh_j = delta_h[i], delta_h[j]
        total = np.float32(0)
        s0 = s1 = s2 = s3 = np.float32(0)
        for f in range(channels):
            d = dh_i[f] - dh_j[f]
            q = _exp(-d * d)
            p[f] = q
            total += q
            s0 += q * w0[f]
            s1 += q * w1[f]
            s2 += q * w2[f]
            s3 += q * w3[f]
        if total < np.float32(1e-20):  # every entry underflows: shift by the largest exponent first
            shift = np.float32(np.inf)
            for f in range(channels):
                d = dh_i[f] - dh_j[f]
                shift = min(shift, d * d)
            total = np.float32(0)
            s0 = s1 = s2 = s3 = np.float32(0)
            for f in range(channels):
                d = dh_i[f] - dh_j[f]
                q = _exp(shift - d * d)
                p[f] = q
                total += q
                s0 += q * w0[f]
                s1 += q * w1[f]
                s2 += q * w2[f]
                s3 += q * w3[f]
        inverse = np.float32(1) / total
        s0, s1, s2, s3 = s0 * inverse, s1 * inverse, s2 * inverse, s3 * inverse
        z0, z1, z2, z3 = s0 + bias[0], s1 + bias[1], s2 + bias[2], s3 + bias[3]
        top = max(max(z0, z1), max(z2, z3))
        g0, g1, g2, g3 = np.exp(z0 - top), np.exp(z1 - top), np.exp(z2 - top), np.exp(z3 - top)
        norm = g0 + g1 + g2 + g3
        z_y = z0 if y == 0 else (z1 if y == 1 else (z2 if y == 2 else z3))
        loss += np.log(norm) + top - z_y
        confusion[y, 0 if z0 == top else (1 if z1 == top else (2 if z2 == top else 3))] += 1
        # Gradient of the logits: (softmax - one hot) / P.
        g0 = (g0 / norm - np.float32(y == 0)) * share
        g1 = (g1 / norm - np.float32(y == 1)) * share
        g2 = (g2 / norm - np.float32(y == 2)) * share
        g3 = (g3 / norm - np.float32(y == 3)) * share
        grad_bias[0] += g0
        grad_bias[1] += g1
        grad_bias[2] += g2
        grad_bias[3] += g3
        # Through the softmax over channels: e * (grad_e - <grad_e, e>), and <grad_e, e> is a sum of four.
        mean = g0 * s0 + g1 * s1 + g2 * s2 + g3 * s3
        factor = np.float32(-2) * inverse
        for f in range(channels):
            d = dh_i[f] - dh_j[f]
            grad_d[f] = factor * d * p[f] * (g0 * w0[f] + g1 * w1[f] + g2 * w2[f] + g3 * w3[f] - mean)
        _add(grad_delta_h[i], grad_d, np.float32(1))
        _add(grad_delta_h[j], grad_d, np.float32(-1))
        _add(partial[0], p, g0 * inverse)
        _add(partial[1], p, g1 * inverse)
        _add(partial[2], p, g2 * inverse)
        _add(partial[3], p, g3 * inverse)
        if place % 256 == 255 or place == order.shape[0] - 1:
            grad_weight += partial
            partial[:] = np.float32(0)
    return loss


@compile_kernel(inline=True)
def _add(out, values, factor):  # type: ignore[no-untyped-def]
    for f in range(out.shape[0]):
        out[f] += factor * values[f]
