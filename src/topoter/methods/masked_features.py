"""GraphMAE (Hou et al., 2022): hide the features of half of the nodes, and find them from their neighbours.

"GraphMAE: Self-Supervised Masked Graph Autoencoders", KDD 2022.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from topoter.methods.attention import Attention
from topoter.methods.base import register
from topoter.methods.convolutions import glorot
from topoter.methods.gradients import PReLU, gram
from topoter.methods.link_encoder import Dropout, NoisyFeatures
from topoter.methods.pretrained import LearningRate, PretextModule, Pretrained, cosine
from topoter.pretext.objectives import Loss
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.training.callbacks import Callback
from topoter.training.state import RandomStream


def scaled_cosine_error(found: Tensor, wanted: Tensor, power: float) -> Tensor:
    """mean (1 - cos)^power over the rows."""
    return _error(functional.cosine_similarity(found, wanted, dim=1), power)


def _error(cosines: Tensor, power: float) -> Tensor:
    return (1 - cosines).clamp(min=0).pow(power).mean()


class Wanted:
    """The features that are to be found, and how like them the rows of H W^T + b are.

    Where features are many and sparse, H W^T + b is never made: its inner products with rows x of X are h . (W^T x)
    + b . x, and its squared lengths h . (W^T W) h + 2 h . (W^T b) + |b|^2.
    """

    def __init__(self, x: Features) -> None:
        self.x = x
        self.dense: Tensor | None = x if isinstance(x, Tensor) else None
        if isinstance(x, Tensor):
            self.lengths = torch.linalg.vector_norm(x, dim=1)
        else:
            self.lengths = torch.zeros(x.shape[0]).index_add_(0, x.row, x.values.square()).sqrt()

    def cosines(self, h: Tensor, weight: Tensor, bias: Tensor, rows: Tensor) -> Tensor:
        """Of the rows of H [R, F] mapped by W [C, F] and b [C], and the features of these nodes [R]."""
        channels, width = weight.shape
        if isinstance(self.x, Tensor) or width * (channels + h.size(0)) >= channels * h.size(0):
            wanted = self._as_dense().index_select(0, rows)
            return functional.cosine_similarity(h @ weight.t() + bias, wanted, dim=1)
        agreement = (self.x @ torch.cat([weight, bias.unsqueeze(1)], dim=1)).index_select(0, rows)
        dots = (h * agreement[:, :-1]).sum(1) + agreement[:, -1]
        squares = (h * torch.addmm(2 * (bias @ weight), h, gram(weight))).sum(1) + bias.square().sum()
        lengths = squares.clamp(min=1e-16).sqrt() * self.lengths.index_select(0, rows).clamp(min=1e-8)
        return dots / lengths

    def _as_dense(self) -> Tensor:
        if self.dense is None:
            assert not isinstance(self.x, Tensor)
            self.dense = self.x.as_torch(torch.float32).to_dense()
        return self.dense


@register("graphmae", "node")
@dataclass(kw_only=True)
class GraphMAE(Pretrained):
    """Masked features, found again.

    Args:
        mask_rate: share of the nodes whose features are hidden; of these a share `replace_rate` gets those of another
            node instead of the vector.
        power: of the error.
        dropout, attention_dropout: of what each layer is given, and of the shares of neighbours.
    """

    out_channels: int = 512
    num_layers: int = 2
    heads: int = 4
    mask_rate: float = 0.5
    replace_rate: float = 0.05
    power: float = 3.0
    dropout: float = 0.2
    attention_dropout: float = 0.1
    epochs: int = 1500
    weight_decay: float = 2e-4

    shares = ("mask_rate", "dropout", "attention_dropout")

    def callbacks(self, module: PretextModule) -> list[Callback]:
        return [LearningRate(cosine(self.epochs))]

    def module(self, in_channels: int, seed: int) -> PretextModule:
        return MaskedFeatures(in_channels, self, seed)


class MaskedFeatures(PretextModule):
    """Attention layers as encoder, one more as decoder, and a vector that stands for hidden features."""

    def __init__(self, in_channels: int, method: GraphMAE, seed: int) -> None:
        super().__init__(seed)
        out_channels, heads = method.out_channels, method.heads
        widths = [in_channels] + [out_channels] * method.num_layers
        self.layers = nn.ModuleList(
            Attention(width, out_channels // heads, heads, self.generator) for width in widths[:-1]
        )
        self.activations = nn.ModuleList(PReLU() for _ in self.layers)
        self.bridge = nn.utils.skip_init(nn.Linear, out_channels, out_channels, bias=False)
        glorot(self.bridge, self.generator)
        self.decoder = Attention(out_channels, in_channels, 1, self.generator)
        self.token = nn.Parameter(torch.zeros(1, in_channels))
        self.mask_rate, self.replace_rate, self.power = method.mask_rate, method.replace_rate, method.power
        self.dropout, self.attention_dropout = method.dropout, method.attention_dropout
        self.noise = Dropout(seed)

    @property
    def streams(self) -> Mapping[str, RandomStream]:
        return {"generator": self.generator, "noise": self.noise.generator}

    def prepare(self, x: Features, adjacency: Adjacency) -> tuple[Any, ...]:
        return NoisyFeatures(x), Wanted(x), adjacency

    def forward(self, x: NoisyFeatures, wanted: Wanted, adjacency: Adjacency) -> Loss:  # type: ignore[override]
        masked, is_token, source = self.hide(adjacency.num_nodes)
        first: Attention = self.layers[0]  # type: ignore[assignment]
        # X W with its rows replaced is the product of X with its rows replaced: X stays sparse.
        signal = first.project(x.drop(self.noise, self.dropout)).index_select(0, source)
        signal = torch.where(is_token.unsqueeze(1), first.project(self.token), signal)
        h = self.bridge(self._encode(signal, adjacency, training=True))
        visible = torch.ones(adjacency.num_nodes, 1).index_fill(0, masked, 0.0)  # the decoder must look around
        decoder = self.decoder
        summed = decoder.summed(self.noise(h * visible, self.dropout), adjacency, masked, self._attention_noise)
        return _error(wanted.cosines(summed, decoder.weight, decoder.bias, masked), self.power), {}

    def hide(self, num_nodes: int) -> tuple[Tensor, Tensor, Tensor]:
        """The masked nodes; which of all nodes show the token [N]; and whose features every other node shows [N]."""
        masked = torch.randperm(num_nodes, generator=self.generator)[: int(self.mask_rate * num_nodes)]
        replaced = masked[: int(self.replace_rate * masked.numel())]  # in random order as they are
        is_token = torch.zeros(num_nodes, dtype=torch.bool).index_fill(0, masked, True).index_fill(0, replaced, False)
        source = torch.arange(num_nodes)
        source[replaced] = torch.randperm(num_nodes, generator=self.generator)[: replaced.numel()]
        return masked, is_token, source

    def encode(self, x: Features, adjacency: Adjacency) -> Tensor:
        return self._encode(self.layers[0].project(x), adjacency, training=False)  # type: ignore[operator]

    def _encode(self, signal: Tensor, adjacency: Adjacency, training: bool) -> Tensor:
        noise = self._attention_noise if training else None
        h = signal
        for number, (layer, activation) in enumerate(zip(self.layers, self.activations)):
            if number > 0:
                h = layer.project(self.noise(h, self.dropout if training else 0.0))  # type: ignore[operator]
            h = activation(layer.attend(h, adjacency, noise))  # type: ignore[operator]
        return h

    def _attention_noise(self, shares: Tensor) -> Tensor:
        return self.noise(shares, self.attention_dropout)
