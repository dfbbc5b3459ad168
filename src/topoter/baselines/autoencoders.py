"""GAE and VGAE (Kipf and Welling, 2016): reconstruct the adjacency from inner products of embeddings."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from topoter.adjacency import Adjacency
from topoter.baselines.randomness import seeded
from topoter.baselines.training import train
from topoter.encoders import SGC, Features


class Halves(nn.Module):
    """An encoder whose channels are means and log deviations, half each, as VGAE takes them."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, x: Features, adjacency: Adjacency) -> tuple[Tensor, Tensor]:
        mean, log_deviation = self.encoder(x, adjacency).chunk(2, dim=1)
        return mean, log_deviation


def autoencoder(
    x: Features,
    adjacency: Adjacency,
    *,
    variational: bool,
    seed: int,
    out_channels: int = 512,
    order: int = 2,
    epochs: int = 200,
    learning_rate: float = 1e-2,
    patience: int | None = None,
    on_epoch: Callable[[int, float], None] | None = None,
) -> tuple[Callable[[Features], Tensor], list[float]]:
    """The encoder of PyG's GAE or VGAE, from features of the graph to embeddings [N, F], and the loss of every epoch.

    Disconnected pairs are drawn by our exact sampler: PyG's own is approximate and uses global random state.
    """
    from torch_geometric.nn import GAE, VGAE

    generator = torch.Generator().manual_seed(seed)
    width = (2 if variational else 1) * out_channels
    sgc = SGC(x.shape[1], width, order, negative_slope=1.0)  # linear: inner products need both signs
    with seeded(seed):
        module = VGAE(Halves(sgc)) if variational else GAE(sgc)
    sgc.initialize("glorot", generator)  # after PyG's constructor, which draws all weights anew
    space = adjacency.pair_space
    count = torch.minimum(space.num_edges, space.num_disconnected)

    def loss() -> Tensor:
        z = module.encode(x, adjacency)
        value: Tensor = module.recon_loss(z, adjacency.edges, space.disconnected(count, generator))
        return value + module.kl_loss() / adjacency.num_nodes if variational else value

    with seeded(seed):  # VGAE draws its noise from PyTorch's global generator
        losses = train(module, loss, epochs=epochs, learning_rate=learning_rate, patience=patience, on_epoch=on_epoch)
    module.eval()

    def encode(features: Features) -> Tensor:
        with torch.no_grad():
            z: Tensor = module.encode(features, adjacency)
        return z

    return encode, losses
