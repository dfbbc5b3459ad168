"""Graph convolutions as the peers stack them: batch norm, an activation, dropout, and the output of every layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from topoter.errors import unknown_name
from topoter.methods.gradients import PReLU
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.weights import linear_layers

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {"relu": nn.ReLU, "prelu": PReLU, "elu": nn.ELU}


class Convolutions(nn.Module):
    """Layers D^-1/2 (A + I) D^-1/2 H W + b, then batch norm if asked for, then the activation.

    Args:
        widths: the channels of the input and of every layer.
        activation: a name in `ACTIVATIONS`.
        last_activation: whether the last layer has it too.
    """

    def __init__(
        self,
        widths: Sequence[int],
        generator: torch.Generator,
        *,
        activation: str = "relu",
        last_activation: bool = True,
        batch_norm: bool = False,
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise unknown_name("activation", activation, ACTIVATIONS)
        self.layers = linear_layers(widths)
        count = len(widths) - 1
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) if batch_norm else nn.Identity() for width in widths[1:])
        self.activations = nn.ModuleList(
            ACTIVATIONS[activation]() if last_activation or number < count - 1 else nn.Identity()
            for number in range(count)
        )
        glorot(self, generator)

    def forward(self, x: Features, adjacency: Adjacency, columns: Tensor | None = None) -> Tensor:
        """H [N, F]; `columns` [C] multiplies those of X."""
        return self.of_layers(x, adjacency, columns)[-1]

    def of_layers(
        self,
        x: Features,
        adjacency: Adjacency,
        columns: Tensor | None = None,
        noise: Callable[[Tensor], Tensor] | None = None,
    ) -> list[Tensor]:
        """The output of every layer; `noise` goes between them."""
        outputs: list[Tensor] = []
        for layer, norm, activation in zip(self.layers, self.norms, self.activations):
            weight = layer.weight.t()
            if not outputs:
                # Scaling the columns of X is scaling the rows of W: X stays as it is, sparse where it was.
                signal = x @ (weight if columns is None else columns.unsqueeze(1) * weight)
            else:
                signal = (outputs[-1] if noise is None else noise(outputs[-1])) @ weight
            outputs.append(activation(norm(adjacency.normalized @ signal + layer.bias)))
        return outputs


def glorot(module: nn.Module | Sequence[nn.Linear], generator: torch.Generator) -> None:
    """Draw the weights of all linear layers anew, and start their biases at zero."""
    for part in cast("nn.Module", module).modules():
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight, generator=generator)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
