"""The contrast of two views of all nodes (GRACE's loss), block by block, with its gradient made on the way.

Plain PyTorch keeps a dozen matrices of all pairs of nodes and goes over each of them several times. Here there are two
of that size, of which a block at a time is in the cache; the similarities within a view are symmetric, so that half of
them are made.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from topoter.kernels import buffers, use_compiled

_ROWS = 256  # of a block
_COLDEST = 0.02  # exp(1 / temperature) of thousands of nodes must stay within float32


def contrast(z: Tensor, z_other: Tensor, temperature: float) -> Tensor:
    """-log of a node's own other view against all nodes of both views, mean over the nodes and views.

    Args:
        z, z_other: rows of length one [N, F].
    """
    if not use_compiled(z) or temperature < _COLDEST:
        return contrast_plain(z, z_other, temperature)
    loss: Tensor = _Contrast.apply(z, z_other, 1 / temperature)
    return loss


def contrast_plain(z: Tensor, z_other: Tensor, temperature: float) -> Tensor:
    """The twin: any device, any float type, any temperature."""
    between = z @ z_other.t() / temperature
    own = torch.arange(z.size(0))
    losses = []
    for logits, view in ((between, z), (between.t(), z_other)):
        within = (view @ view.t() / temperature).fill_diagonal_(-torch.inf)
        losses.append((torch.logsumexp(torch.cat([logits, within], dim=1), dim=1) - logits[own, own]).mean())
    return (losses[0] + losses[1]) / 2


class _Contrast(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, z_other: Tensor, sharpness: float) -> Tensor:
        views = z.detach().contiguous(), z_other.detach().contiguous()
        num_nodes = z.size(0)
        starts = range(0, num_nodes, _ROWS)
        sums = [torch.zeros(num_nodes) for _ in views]
        between = [_similar(views[0], views[1], first, 0, sharpness) for first in starts]
        for first, block in zip(starts, between):
            sums[0][first : first + _ROWS] += block.sum(1)
            sums[1] += block.sum(0)
        within: list[list[Tensor]] = []  # of each view, from the diagonal on
        for view, total in zip(views, sums):
            within.append([_similar(view, view, first, first, sharpness) for first in starts])
            for first, block in zip(starts, within[-1]):
                block.fill_diagonal_(0)
                total[first : first + _ROWS] += block.sum(1)
                total[first + _ROWS :] += block[:, _ROWS:].sum(0)
        own = sharpness * (views[0] * views[1]).sum(1)
        loss = (sums[0].log() + sums[1].log() - 2 * own).mean() / 2

        # The loss is the last step but for scaling: its gradient is made now, while the blocks are there.
        inverse = [total.reciprocal() for total in sums]
        gradients = [-2 * views[1], -2 * views[0]]
        for first, block in zip(starts, between):
            rows = slice(first, first + _ROWS)
            block.mul_(inverse[0][rows].unsqueeze(1) + inverse[1])
            gradients[0][rows].addmm_(block, views[1])
            gradients[1].addmm_(block.t(), views[0][rows])
        for view, blocks, own_inverse, gradient in zip(views, within, inverse, gradients):
            for first, block in zip(starts, blocks):
                rows, later = slice(first, first + _ROWS), slice(first + _ROWS, None)
                block.mul_(own_inverse[rows].unsqueeze(1) + own_inverse[first:])
                gradient[rows].addmm_(block, view[first:])
                gradient[later].addmm_(block[:, _ROWS:].t(), view[rows])
        ctx.gradients = [gradient.mul_(sharpness / (2 * num_nodes)) for gradient in gradients]
        return loss

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        first, second = (grad * gradient for gradient in ctx.gradients)
        return first, second, None


def _similar(view: Tensor, other: Tensor, first: int, column: int, sharpness: float) -> Tensor:
    """exp of the scaled cosines of some rows of one view with those of the other from a column on."""
    rows = view[first : first + _ROWS] * sharpness
    block = buffers.empty(rows.size(0), other.size(0) - column)
    return torch.mm(rows, other[column:].t(), out=block).exp_()
