"""Weights drawn from an explicit generator: global random state is never touched."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, cast

import torch
from torch import Tensor, nn


def _kaiming(weight: Tensor, generator: torch.Generator) -> None:
    nn.init.kaiming_uniform_(weight, a=math.sqrt(5), generator=generator)


INITIALIZERS: dict[str, Callable[[Tensor, torch.Generator], Any]] = {
    "default": _kaiming,  # what nn.Linear and PyG's SGConv do
    "spread": _kaiming,  # and then the biases by the data, see `Encoder.spread_thresholds`
    "glorot": lambda weight, generator: nn.init.xavier_uniform_(weight, generator=generator),
    "orthogonal": lambda weight, generator: nn.init.orthogonal_(weight, generator=generator),
}


def linear_layers(widths: Sequence[int]) -> Sequence[nn.Linear]:
    """Linear layers from each width to the next, not filled yet."""
    layers = nn.ModuleList(nn.utils.skip_init(nn.Linear, a, b) for a, b in pairwise(widths))
    return cast("Sequence[nn.Linear]", layers)
