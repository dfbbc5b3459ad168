"""The largest value over a node and its neighbours, channel by channel, with its gradient (GraphSAGE's pooling)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from topoter.kernels import use_compiled
from topoter.kernels.compiled import compile_kernel, num_threads, run_parallel
from topoter.kernels.sparse import SparseOperator, equal_work


def neighbour_max(operator: SparseOperator, h: Tensor) -> Tensor:
    """max(h_i, h_j over the entries (i, j)), [N, F]; where several are largest they share the gradient."""
    if not use_compiled(h):
        return neighbour_max_plain(operator, h)
    found: Tensor = _NeighbourMax.apply(operator, h)
    return found


def neighbour_max_plain(operator: SparseOperator, h: Tensor) -> Tensor:
    """The twin: any device, any float type."""
    row, column = torch.cat([operator.row, torch.arange(h.size(0))]), operator.indices.long()
    messages = torch.cat([h[column], h])
    return h.new_full(h.shape, -torch.inf).scatter_reduce(0, row.unsqueeze(1).expand_as(messages), messages, "amax")


class _NeighbourMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, operator: SparseOperator, h: Tensor) -> Tensor:
        h, out = h.detach().contiguous(), torch.empty_like(h, memory_format=torch.contiguous_format)
        ctx.operator = operator
        ctx.save_for_backward(h, out)
        indptr, indices = operator.indptr.numpy(), operator.indices.numpy()
        rows = equal_work(indptr, h.size(1))
        arrays = (indptr, indices, h.numpy(), out.numpy())
        run_parallel("maximum", _largest_rows, [(start, stop, *arrays) for start, stop in pairwise(rows)])
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        h, out = ctx.saved_tensors
        to_h = torch.zeros_like(h)
        # Threads share the channels, so that no two add to one number, and always in the same order.
        cuts = [h.size(1) * part // num_threads() for part in range(num_threads() + 1)]
        arrays = [ctx.operator.indptr.numpy(), ctx.operator.indices.numpy()]
        arrays += [tensor.numpy() for tensor in (h, out, grad.contiguous(), to_h)]
        run_parallel("maximum", _gradient, [(first, last, *arrays) for first, last in pairwise(cuts)])
        return None, to_h


@compile_kernel()
def _largest_rows(start, stop, indptr, indices, h, out):  # type: ignore[no-untyped-def]
    for row in range(start, stop):
        target = out[row]
        for f in range(h.shape[1]):
            target[f] = h[row, f]
        for entry in range(indptr[row], indptr[row + 1]):
            other = h[indices[entry]]
            for f in range(h.shape[1]):
                target[f] = other[f] if other[f] > target[f] else target[f]


@compile_kernel()
def _gradient(first, last, indptr, indices, h, out, grad, to_h):  # type: ignore[no-untyped-def]
    share = np.empty(last - first, np.float32)
    for row in range(indptr.shape[0] - 1):
        largest, own = out[row, first:last], h[row, first:last]
        for f in range(last - first):
            share[f] = np.float32(1) if own[f] == largest[f] else np.float32(0)
        for entry in range(indptr[row], indptr[row + 1]):
            other = h[indices[entry], first:last]
            for f in range(last - first):
                share[f] += np.float32(1) if other[f] == largest[f] else np.float32(0)
        for f in range(last - first):
            share[f] = grad[row, first + f] / share[f]
        target = to_h[row, first:last]
        for f in range(last - first):
            target[f] += share[f] if own[f] == largest[f] else np.float32(0)
        for entry in range(indptr[row], indptr[row + 1]):
            other, target = h[indices[entry], first:last], to_h[indices[entry], first:last]
            for f in range(last - first):
                target[f] += share[f] if other[f] == largest[f] else np.float32(0)
