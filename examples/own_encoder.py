"""An encoder of your own: any module (x, edge_index) -> [N, F], kept in a model file by its import path.

python examples/own_encoder.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from torch import Tensor, nn
from torch_geometric.nn import SAGEConv

from topoter import TopoTER
from topoter.datasets import block_model


class TwoHops(nn.Module):
    """Two GraphSAGE layers; `in_channels` is filled in by topoter."""

    def __init__(self, in_channels: int, width: int = 16) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(in_channels, width), SAGEConv(width, width)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h: Tensor = self.second(self.first(x, edge_index).relu(), edge_index)
        return h


if __name__ == "__main__":
    graph = block_model(num_nodes=200, num_features=16)
    # The path of a module that other programs can import; here it is this file itself.
    model = TopoTER("own_encoder:TwoHops", encoder_parameters={"width": 8}, epochs=20).fit(graph)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.topoter")
        again = TopoTER.load(Path(folder) / "model.topoter")  # in another program: trust_encoder=True
    print(f"{again.encoder} gives {again.transform(graph).shape[1]} numbers per node, as before it was saved:")
    print((again.transform(graph) == model.transform(graph)).all())
