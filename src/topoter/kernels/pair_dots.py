"""Inner products of pairs of rows, with both gradients: nothing of size pairs x channels is made."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from topoter.kernels import use_compiled
from topoter.kernels.compiled import compile_kernel, num_threads, run_parallel


def pair_dots(left: Tensor, right: Tensor, pairs: Tensor) -> Tensor:
    """left_i . right_j of the pairs (i, j), [P].

    Args:
        left, right: rows of the same width, [N, F] and [M, F].
        pairs: int64 [2, P]; fastest where the second ones follow each other.
    """
    if not use_compiled(left):
        return pair_dots_plain(left, right, pairs)
    found: Tensor = _PairDots.apply(left, right, pairs)
    return found


def pair_dots_plain(left: Tensor, right: Tensor, pairs: Tensor) -> Tensor:
    """The twin: any device, any float type."""
    return (left.index_select(0, pairs[0]) * right.index_select(0, pairs[1])).sum(1)


class _PairDots(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, pairs: Tensor) -> Tensor:
        left, right, pairs = (tensor.detach().contiguous() for tensor in (left, right, pairs))
        ctx.save_for_backward(left, right, pairs)
        out = torch.empty(pairs.size(1))
        cuts = [pairs.size(1) * part // num_threads() for part in range(num_threads() + 1)]
        arrays = [tensor.numpy() for tensor in (left, right, pairs, out)]
        run_parallel("pair dots", _dots, [(start, stop, *arrays) for start, stop in pairwise(cuts)])
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        left, right, pairs = ctx.saved_tensors
        grad_left, grad_right = torch.zeros_like(left), torch.zeros_like(right)
        # Threads share the channels, so that no two add to one number, and always in the same order.
        cuts = [left.size(1) * part // num_threads() for part in range(num_threads() + 1)]
        arrays = [tensor.numpy() for tensor in (left, right, pairs, grad.contiguous(), grad_left, grad_right)]
        run_parallel("pair dots", _gradients, [(first, last, *arrays) for first, last in pairwise(cuts)])
        return grad_left, grad_right, None


@compile_kernel()
def _dots(start, stop, left, right, pairs, out):  # type: ignore[no-untyped-def]
    for pair in range(start, stop):
        one, other = left[pairs[0, pair]], right[pairs[1, pair]]
        total = np.float32(0)
        for f in range(one.shape[0]):
            total += one[f] * other[f]
        out[pair] = total


@compile_kernel()
def _gradients(first, last, left, right, pairs, grad, grad_left, grad_right):  # type: ignore[no-untyped-def]
    for pair in range(pairs.shape[1]):
        i, j, g = pairs[0, pair], pairs[1, pair], grad[pair]
        one, other = left[i, first:last], right[j, first:last]
        to_one, to_other = grad_left[i, first:last], grad_right[j, first:last]
        for f in range(last - first):
            to_one[f] += g * other[f]
        for f in range(last - first):
            to_other[f] += g * one[f]
