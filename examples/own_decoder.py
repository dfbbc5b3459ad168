"""A decoder of your own for links: how two nodes' representations become the score of an edge.

python examples/own_decoder.py
"""

from __future__ import annotations

import torch
from torch import Tensor

from topoter.datasets import block_model
from topoter.methods import build
from topoter.pretext.pair_decoders import PAIR_DECODERS, Noise, PairDecoder
from topoter.tasks.link_split import auc_and_ap, split_links


class Distance(PairDecoder):
    """Near nodes are connected: a learned threshold minus the squared distance."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.threshold = torch.nn.Parameter(torch.ones(()))

    def forward(self, h: Tensor, pairs: Tensor, noise: Noise | None = None) -> Tensor:
        return self.threshold - (h[pairs[0]] - h[pairs[1]]).square().sum(1)


PAIR_DECODERS["distance"] = Distance

if __name__ == "__main__":
    split = split_links(block_model(num_nodes=400, num_features=16, within=0.95), seed=0)
    for decoder in ("inner product", "hadamard", "distance"):
        fitted = build("gae", "link", {"decoder": decoder, "epochs": 100}).fit(split.data, seed=0)
        auc, ap = auc_and_ap(split.test, fitted.score_pairs(split.data, split.test.pairs))
        print(f"{decoder:14} AUC {auc:.1f} %, AP {ap:.1f} %")
