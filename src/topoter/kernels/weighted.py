"""Sums over neighbours by learned weights, one per entry and head: attention's product, with both gradients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from topoter.kernels import use_compiled
from topoter.kernels.compiled import compile_kernel, run_parallel
from topoter.kernels.sparse import SparseOperator, equal_work


@dataclass(eq=False)
class Pattern:
    """Where a symmetric sparse matrix has entries, row by row; what they are is given with each product.

    Args:
        operator: any matrix with these entries.
    """

    operator: SparseOperator

    @property
    def num_entries(self) -> int:
        return self.operator.indices.numel()

    @property
    def row(self) -> Tensor:
        """The row of every entry [E]."""
        return self.operator.row

    @cached_property
    def column(self) -> Tensor:
        """The column of every entry [E]."""
        return self.operator.indices.long()

    @cached_property
    def mirror(self) -> Tensor:
        """Where the entry (j, i) is, for every entry (i, j)."""
        size = self.operator.num_columns
        by_row, by_column = torch.argsort(self.row * size + self.column), torch.argsort(self.column * size + self.row)
        return torch.empty_like(by_row).index_copy_(0, by_row, by_column)

    def weighted_sum(self, weight: Tensor, h: Tensor) -> Tensor:
        """sum_j w_ij h_j of every head.

        Args:
            weight: of every entry and head, [E, K].
            h: the heads side by side, [N, K * C].
        """
        product: Tensor = _WeightedSum.apply(self, weight, h)
        return product

    def softmax(self, scores: Tensor) -> Tensor:
        """The scores [E, K] as shares of their row."""
        shape = (self.operator.shape[0], scores.size(1))
        row = self.row.unsqueeze(1).expand_as(scores)
        top = scores.new_full(shape, -torch.inf).scatter_reduce(0, row, scores.detach(), "amax")
        e = torch.exp(scores - top.index_select(0, self.row))
        return e / e.new_zeros(shape).index_add(0, self.row, e).index_select(0, self.row)


class _WeightedSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pattern: Pattern, weight: Tensor, h: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.pattern = pattern
        ctx.save_for_backward(weight, h)
        return weighted_sum(pattern, weight, h)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[None, Tensor | None, Tensor | None]:  # type: ignore[no-untyped-def]
        weight, h = ctx.saved_tensors
        pattern: Pattern = ctx.pattern
        grad = grad.contiguous()
        grad_weight = dot_products(pattern, grad, h, weight.size(1)) if ctx.needs_input_grad[1] else None
        grad_h = weighted_sum(pattern, weight[pattern.mirror], grad) if ctx.needs_input_grad[2] else None
        return None, grad_weight, grad_h


def weighted_sum(pattern: Pattern, weight: Tensor, h: Tensor) -> Tensor:
    """sum_j w_ij h_j, by the fastest path of the device."""
    if not use_compiled(h):
        return weighted_sum_plain(pattern, weight, h)
    out = torch.empty(pattern.operator.shape[0], h.size(1))
    arrays = [tensor.detach().contiguous().numpy() for tensor in (weight, h)]
    _run(_weighted_rows, pattern, h.size(1), *arrays, out.numpy())
    return out


def dot_products(pattern: Pattern, left: Tensor, right: Tensor, heads: int) -> Tensor:
    """left_i . right_j of every entry and head, [E, K]."""
    if not use_compiled(left):
        return dot_products_plain(pattern, left, right, heads)
    out = torch.empty(pattern.num_entries, heads)
    arrays = [tensor.detach().contiguous().numpy() for tensor in (left, right)]
    _run(_dots_of_rows, pattern, left.size(1), *arrays, out.numpy())
    return out


def weighted_sum_plain(pattern: Pattern, weight: Tensor, h: Tensor) -> Tensor:
    """The twin: gather, weigh, scatter; any device, any float type."""
    heads = weight.size(1)
    messages = h[pattern.column].view(pattern.num_entries, heads, -1) * weight.unsqueeze(2)
    return h.new_zeros(pattern.operator.shape[0], h.size(1)).index_add_(0, pattern.row, messages.flatten(1))


def dot_products_plain(pattern: Pattern, left: Tensor, right: Tensor, heads: int) -> Tensor:
    """The twin of the other product."""
    return (left[pattern.row] * right[pattern.column]).view(pattern.num_entries, heads, -1).sum(2)


def _run(kernel, pattern: Pattern, width: int, *arrays: np.ndarray) -> None:  # type: ignore[no-untyped-def]
    indptr, indices = pattern.operator.indptr.numpy(), pattern.operator.indices.numpy()
    rows = equal_work(indptr, width)
    run_parallel("attention", kernel, [(start, stop, indptr, indices, *arrays) for start, stop in pairwise(rows)])


@compile_kernel()
def _weighted_rows(start, stop, indptr, indices, weight, h, out):  # type: ignore[no-untyped-def]
    heads = weight.shape[1]
    channels = h.shape[1] // heads
    for row in range(start, stop):
        target = out[row]
        for f in range(h.shape[1]):
            target[f] = np.float32(0)
        for entry in range(indptr[row], indptr[row + 1]):
            source = h[indices[entry]]
            for head in range(heads):
                value, first = weight[entry, head], head * channels
                for f in range(first, first + channels):
                    target[f] += value * source[f]


@compile_kernel()
def _dots_of_rows(start, stop, indptr, indices, left, right, out):  # type: ignore[no-untyped-def]
    heads = out.shape[1]
    channels = left.shape[1] // heads
    for row in range(start, stop):
        own = left[row]
        for entry in range(indptr[row], indptr[row + 1]):
            other = right[indices[entry]]
            for head in range(heads):
                total, first = np.float32(0), head * channels
                for f in range(first, first + channels):
                    total += own[f] * other[f]
                out[entry, head] = total
