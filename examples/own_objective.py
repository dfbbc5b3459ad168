"""An objective of your own: nodes should stay near where they are when edges change.

python examples/own_objective.py
"""

from __future__ import annotations

import torch
from torch import Tensor

from topoter import TopologyTransformation, TopoTER
from topoter.datasets import block_model


def stay_near(h: Tensor, h_t: Tensor, transformation: TopologyTransformation) -> tuple[Tensor, dict[str, Tensor]]:
    """One minus the cosine between a node's representations before and after; `transformation` holds the pairs."""
    cosine = torch.cosine_similarity(h, h_t, dim=1).mean()
    return 1 - cosine, {"cosine": cosine}


if __name__ == "__main__":
    graph = block_model(num_nodes=200, num_features=16)
    for weight in (0.0, 1.0):
        model = TopoTER(objective=[("paper", 1.0), (stay_near, weight)], out_channels=32, epochs=40).fit(graph)
        last = model.history_[-1]
        print(f"weight {weight}: loss {last.loss:.3f}, cosine {last.metrics['cosine']:.3f}")
