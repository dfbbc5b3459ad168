"""Operations of PyTorch with a gradient that takes less work than its own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class _LearnedSlope(torch.autograd.Function):
    """max(x, 0) + a min(x, 0). PyTorch makes the gradient of `a` for every entry before it adds them up."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, slope: Tensor) -> Tensor:
        ctx.save_for_backward(x, slope)
        return functional.leaky_relu(x, float(slope))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        x, slope = ctx.saved_tensors
        of_slope = torch.dot(x.clamp(max=0).flatten(), grad.flatten()).view_as(slope)
        return torch.ops.aten.leaky_relu_backward(grad, x, float(slope), False), of_slope


class PReLU(nn.PReLU):
    """PyTorch's, of one slope, with a faster gradient on a CPU."""

    def forward(self, input: Tensor) -> Tensor:
        found: Tensor = _LearnedSlope.apply(input, self.weight)
        return found


class _Gram(torch.autograd.Function):
    """W^T W, whose gradient is one product and not two."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor) -> Tensor:
        ctx.save_for_backward(weight)
        return weight.t() @ weight

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (weight,) = ctx.saved_tensors
        gradient: Tensor = weight @ (grad + grad.t())
        return gradient


def gram(weight: Tensor) -> Tensor:
    """W^T W."""
    found: Tensor = _Gram.apply(weight)
    return found
