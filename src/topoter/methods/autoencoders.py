"""GAE and VGAE (Kipf and Welling, 2016): reconstruct the adjacency from inner products of embeddings.

PyG's modules; disconnected pairs are drawn by our exact sampler, because PyG's own is approximate and uses global
random state. As peers in link prediction they learn by the training of `links.py`, with TopoTER's decoders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import GAE, VGAE

from topoter.encoders import GCN, SGC, Encoder
from topoter.kernels.pair_dots import pair_dots
from topoter.methods.base import Fitted, Method, inner_products, register
from topoter.methods.pretrained import PretextModule, Pretrained
from topoter.methods.randomness import seeded
from topoter.pretext.objectives import Loss
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.structure.history import Known
from topoter.training import Keep, TrainingSettings, TrainingState, train
from topoter.training.callbacks import Callback
from topoter.training.state import RandomStream

if TYPE_CHECKING:
    from topoter.pretext.transformation import Transition


class _Halves(nn.Module):
    """An encoder whose channels are means and log deviations, half each, as VGAE takes them."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, x: Features, adjacency: Adjacency) -> tuple[Tensor, Tensor]:
        mean, log_deviation = self.encoder(x, adjacency).chunk(2, dim=1)
        return mean, log_deviation


class _InnerProducts(nn.Module):
    """PyG's decoder of pairs, without a row of all channels for every pair."""

    def forward(self, z: Tensor, edge_index: Tensor, sigmoid: bool = True) -> Tensor:
        value = pair_dots(z, z, edge_index)
        return torch.sigmoid(value) if sigmoid else value


class _VGAE(VGAE):
    """PyG's VGAE, its noise drawn from a generator of its own instead of from global random state."""

    noise: torch.Generator

    def reparametrize(self, mu: Tensor, logstd: Tensor) -> Tensor:
        return mu + torch.randn(mu.shape, generator=self.noise) * torch.exp(logstd) if self.training else mu


class Autoencoder(PretextModule):
    """PyG's GAE or VGAE around one of our encoders, as the training loop takes it."""

    def __init__(self, encoder: Encoder, init: str, variational: bool, seed: int) -> None:
        super().__init__(seed)
        self.variational = variational
        self.noise = torch.Generator().manual_seed(seed)
        with seeded(seed):
            decoder = _InnerProducts()
            self.module: Any = _VGAE(_Halves(encoder), decoder) if variational else GAE(encoder, decoder)
        self.module.noise = self.noise
        encoder.initialize(init, self.generator)  # after PyG's constructor, which draws all weights anew

    def forward(self, x: Features, graph: Adjacency | Transition) -> Loss:
        """The loss of reconstructing a graph, or of predicting the next one from the one before."""
        value = self._of_graph(x, graph) if isinstance(graph, Adjacency) else self._of_transition(x, graph)
        return (value + self.module.kl_loss() / x.shape[0] if self.variational else value), {}

    def _of_graph(self, x: Features, adjacency: Adjacency) -> Tensor:
        space = adjacency.pair_space
        disconnected = space.disconnected(torch.minimum(space.num_edges, space.num_disconnected), self.generator)
        loss: Tensor = self.module.recon_loss(self.module.encode(x, adjacency), adjacency.edges, disconnected)
        return loss

    def _of_transition(self, x: Features, transition: Transition) -> Tensor:
        """Pairs as for TopoTER, by whether they are connected afterwards."""
        sampled = transition.sample(self.generator)
        keys = sampled.pairs[0] * transition.after.num_nodes + sampled.pairs[1]
        connected = torch.isin(keys, transition.after.keys)
        logits = inner_products(self.module.encode(x, transition.before), sampled.pairs)
        # PyG's recon_loss, with one product of all nodes in place of one per pair: graphs of animals are dense.
        return functional.softplus(-logits[connected]).mean() + functional.softplus(logits[~connected]).mean()

    @property
    def streams(self) -> Mapping[str, RandomStream]:
        return {"generator": self.generator, "noise": self.noise}

    @torch.no_grad()
    def encode(self, x: Features, adjacency: Adjacency) -> Tensor:
        """The embeddings [N, F]; of VGAE the means."""
        self.eval()
        z: Tensor = self.module.encode(x, adjacency)
        return z


@register("gae", "node", variational=False)
@register("vgae", "node", variational=True)
@dataclass(kw_only=True)
class NodeAutoencoder(Pretrained):
    """The autoencoder on one linear SGC layer: inner products need both signs."""

    variational: bool
    out_channels: int = 512
    order: int = 2
    learning_rate: float = 1e-2
    feature_scaling: str = "none"

    keep = Keep()

    def module(self, in_channels: int, seed: int) -> PretextModule:
        width = (2 if self.variational else 1) * self.out_channels
        encoder = SGC(in_channels, width, self.order, negative_slope=1.0)
        return Autoencoder(encoder, "glorot", self.variational, seed)


@register("gae", "temporal", variational=False)
@register("vgae", "temporal", variational=True)
class NextGraphAutoencoder(Method):
    """The autoencoder on graph convolutions, trained to reconstruct A(t) from A(t-1); X is all ones."""

    def fit(self, graph: list[Transition], seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        set_to = self.parameters
        variational = set_to["variational"]
        width = (2 if variational else 1) * set_to["out_channels"]
        encoder = GCN(1, width, set_to["num_layers"], set_to["hidden_channels"])
        module = Autoencoder(encoder, set_to["init"], variational, seed)
        x = torch.ones(graph[0].before.num_nodes, 1)
        settings = TrainingSettings(
            set_to["epochs"], set_to["patience"], set_to["learning_rate"], keep=Keep(weights="before")
        )
        state = TrainingState.start(module, settings, module.streams)
        train(state, [(x, transition) for transition in graph], callbacks)

        def scores(known: Known, pairs: Tensor) -> Tensor:
            return inner_products(module.encode(x, known.latest), pairs)

        return Fitted(pairs=scores, history=state.history)
