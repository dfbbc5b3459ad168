"""A loss over node pairs and its gradient, chunk by chunk, for any decoder: nothing of size pairs x channels is kept.

What autograd would keep of every pair until the backward pass is used at once and dropped: the gradient of a chunk is
taken together with its loss. The twin it is tested against is the decoder on all pairs at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

# From both ends of pairs [p, F] and their types [p] to the sum of their losses, and true against predicted types.
OfPairs = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]

_ENTRIES = 1 << 21  # pairs times channels in a chunk: 8 MB for each array of that size


def mean_over_pairs(
    of_pairs: OfPairs, h: Tensor, pairs: Tensor, pair_type: Tensor, weights: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    """The mean loss, and the counts of true (row) against predicted (column) types.

    Args:
        h: representations [N, F].
        weights: the leaf tensors behind `of_pairs` that are learned.
    """
    result: tuple[Tensor, Tensor] = _MeanOverPairs.apply(of_pairs, h, pairs, pair_type, *weights)
    return result


class _MeanOverPairs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, of_pairs, h, pairs, pair_type, *weights):  # type: ignore[no-untyped-def]
        num_pairs = pairs.size(1)
        learns = any(ctx.needs_input_grad)
        loss, confusion = h.new_zeros(()), torch.zeros((), dtype=torch.int64, device=h.device)
        gradients = [torch.zeros_like(each) for each in (h, *weights)] if learns else []
        size = max(1, _ENTRIES // max(h.size(1), 1))
        for start in range(0, num_pairs, size):
            chunk = slice(start, start + size)
            ends = [h.index_select(0, end[chunk]).requires_grad_(learns) for end in pairs]
            with torch.set_grad_enabled(learns):
                total, counts = of_pairs(*ends, pair_type[chunk])
            loss += total.detach()
            confusion = confusion + counts
            if learns:
                found = torch.autograd.grad(total, [*ends, *weights])
                for end, gradient in zip(pairs, found):
                    gradients[0].index_add_(0, end[chunk], gradient)
                for known, gradient in zip(gradients[1:], found[2:]):
                    known += gradient
        ctx.save_for_backward(*(gradient.div_(num_pairs) for gradient in gradients))
        ctx.mark_non_differentiable(confusion)
        return loss / num_pairs, confusion

    @staticmethod
    def backward(ctx, grad_loss, _):  # type: ignore[no-untyped-def]
        of_h, *of_weights = (gradient * grad_loss for gradient in ctx.saved_tensors)
        return None, of_h, None, None, *of_weights
