"""The training loop of the peers: Adam, patience on the training loss, best weights kept; as ours."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from topoter.errors import TopoterError


def train(
    module: nn.Module,
    loss_of: Callable[[], Tensor],
    *,
    epochs: int,
    learning_rate: float,
    patience: int | None,
    weight_decay: float = 0.0,
    steps: int = 1,
    on_epoch: Callable[[int, float], None] | None = None,
) -> list[float]:
    """Minimise `loss_of()` over the module's parameters; returns the loss of every epoch, the mean over its steps."""
    optimizer = torch.optim.Adam(module.parameters(), lr=learning_rate, weight_decay=weight_decay)
    best, waited, best_weights = math.inf, 0, None
    losses: list[float] = []
    module.train()
    while len(losses) < epochs and (patience is None or waited < patience):
        weights_before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
        values = []
        for _ in range(steps):
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of()
            loss.backward()
            optimizer.step()
            values.append(loss.item())
        losses.append(sum(values) / steps)
        if not math.isfinite(losses[-1]):
            raise TopoterError(f"The loss of {type(module).__name__} became {losses[-1]} in epoch {len(losses)}.")
        if losses[-1] < best:
            # The loss was measured on the weights before this epoch's steps: those are the ones to keep.
            best, waited, best_weights = losses[-1], 0, weights_before
        else:
            waited += 1
        if on_epoch is not None:
            on_epoch(len(losses), losses[-1])
    if best_weights is not None:
        module.load_state_dict(best_weights)
    return losses
