"""Random splits for graphs that come without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor


def random_split(
    y: Tensor, *, seed: int, train_per_class: int = 20, val_per_class: int = 30
) -> tuple[Tensor, Tensor, Tensor]:
    """Masks for training, validation and test: 20 per class, 30 per class, the rest.

    The same labels and seed give the same masks; global random state is not touched. A class too small for
    both fills training first, so it may have no test nodes.
    """
    generator = torch.Generator().manual_seed(seed)
    train, val = torch.zeros_like(y, dtype=torch.bool), torch.zeros_like(y, dtype=torch.bool)
    for label in y.unique():
        members = (y == label).nonzero().flatten()
        members = members[torch.randperm(len(members), generator=generator)]
        train[members[:train_per_class]] = True
        val[members[train_per_class : train_per_class + val_per_class]] = True
    return train, val, ~(train | val)
