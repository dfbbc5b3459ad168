"""Node features as the encoder takes them: scaled if asked, kept sparse where that pays."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from topoter.errors import unknown_name
from topoter.kernels.sparse import SparseOperator

Features = Tensor | SparseOperator  # [N, C], dense or the same matrix kept sparse

# Below this share of non-zeros the sparse product is faster, forward and backward (docs/performance.md).
SPARSE_DENSITY = 0.15


def _rows_sum_to_one(x: Tensor) -> Tensor:
    return torch.nn.functional.normalize(_within_reach(x), p=1, dim=1)  # absolute values: a sum may be zero or negative


def _rows_of_unit_length(x: Tensor) -> Tensor:
    return torch.nn.functional.normalize(_within_reach(x), dim=1)


def _within_reach(x: Tensor) -> Tensor:
    """Rows whose squares would leave the range of float32 divided by their largest value; all others as they are."""
    largest = x.abs().amax(dim=1, keepdim=True) if x.numel() else x
    extreme = (largest > 1e18) | ((largest > 0) & (largest < 1e-12))
    return torch.where(extreme, x / largest, x) if bool(extreme.any()) else x


FEATURE_SCALINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "none": lambda x: x,
    "sum": _rows_sum_to_one,
    "unit": _rows_of_unit_length,
}


def prepare_features(
    x: Tensor, scaling: str = "none", *, device: torch.device | str = "cpu", dense: bool = False
) -> Features:
    """The feature matrix [N, C], each row scaled by itself, sparse on a CPU when few entries are non-zero.

    Rows are scaled one by one, never by columns, so that a new node is treated as those seen in training.
    """
    if scaling not in FEATURE_SCALINGS:
        raise unknown_name("feature scaling", scaling, FEATURE_SCALINGS)
    x = FEATURE_SCALINGS[scaling](x.to_dense().float())
    on_cpu = torch.device(device).type == "cpu"
    if on_cpu and not dense and int(x.count_nonzero()) < SPARSE_DENSITY * x.numel():
        return SparseOperator.from_dense(x)
    return x.to(device)
