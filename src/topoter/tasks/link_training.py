"""Training for link prediction: pre-train with TopoTER, then learn which pairs are connected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional

from topoter.adjacency import Adjacency
from topoter.baselines.randomness import seeded
from topoter.encoders import Features
from topoter.estimator import TopoTER
from topoter.features import prepare_features
from topoter.kernels import buffers
from topoter.model import TopoTERModel
from topoter.tasks.link_split import HeldOut, LinkSplit, auc_and_ap
from topoter.tasks.pair_scores import build_pair_decoder
from topoter.training import EpochRecord
from topoter.transformation import exact

# Called with the epochs done, the most there will be, and a word on how it goes.
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class LinkSettings:
    """How links are learned.

    Args:
        hidden_channels, out_channels: of the two GCN layers.
        init, feature_scaling: as in `TopoTER`.
        pretraining_epochs, pretraining_learning_rate, perturbation_rate, scale_edges, prior_bias: of TopoTER's
            pre-training on the training graph; 0 epochs leave it out, and change nothing else.
        decoder: a name in `PAIR_DECODERS`.
        frozen: keep the encoder as pre-training left it and learn the decoder only, if there is something to learn.
        variational: VGAE: representations are drawn from a learned normal distribution, with its divergence.
        epochs, patience, learning_rate, weight_decay: of the training on pairs; patience counts epochs without a better
            validation AUC.
        dropout: of representations, before each propagation and before the decoder.
        hidden_edges: share of the training edges that is left out of message passing in an epoch, and predicted in
            it; 0 predicts all edges along all edges, as GAE does, and learns to find what it has been shown.
        joint: weight of TopoTER's loss beside that of the pairs.
    """

    hidden_channels: int = 32
    out_channels: int = 16
    init: str = "glorot"
    init_gain: float = 1.0
    feature_scaling: str = "none"
    pretraining_epochs: int = 0
    pretraining_learning_rate: float = 1e-3
    perturbation_rate: float = 0.7
    scale_edges: bool = True
    prior_bias: bool = True
    decoder: str = "inner product"
    frozen: bool = False
    variational: bool = False
    epochs: int = 200
    patience: int = 50
    learning_rate: float = 1e-2
    weight_decay: float = 0.0
    dropout: float = 0.0
    hidden_edges: float = 0.0
    joint: float = 0.0


CHECK_EVERY = 2  # epochs between two looks at the validation pairs


@dataclass
class LinkModel:
    """A trained encoder and pair decoder on a training graph, ready to score any pair."""

    module: LinkModule
    x: Features
    adjacency: Adjacency
    losses: list[float] = field(default_factory=list)
    history: list[EpochRecord] = field(default_factory=list)
    best_epoch: int = 0

    @torch.no_grad()
    def scores(self, pairs: Tensor) -> Tensor:
        """Logits [P] of pairs [2, P]; messages pass along the training edges."""
        self.module.eval()
        h = self.module.encode(self.x, self.adjacency)
        scores: Tensor = self.module.decoder(h, pairs)
        return scores


class LinkModule(nn.Module):
    """TopoTER's module with a decoder of pairs behind the same encoder."""

    def __init__(self, topoter: TopoTERModel, settings: LinkSettings, generator: torch.Generator) -> None:
        super().__init__()
        self.topoter = topoter
        self.settings = settings
        self.decoder = build_pair_decoder(settings.decoder, settings.out_channels, settings.dropout, generator)

    def encode(self, x: Features, adjacency: Adjacency) -> Tensor:
        """H [N, F]; of a variational encoder the means."""
        mean, _ = self.distribution(x, adjacency)
        return mean

    def distribution(self, x: Features, adjacency: Adjacency) -> tuple[Tensor, Tensor | None]:
        """The means of the representations, and for VGAE their log deviations (else `None`)."""
        dropout, encoder = self.settings.dropout, self.topoter.encoder
        signal = functional.dropout(encoder.project(x), dropout, self.training)
        h = functional.dropout(encoder.propagate(signal, adjacency), dropout, self.training)
        if not self.settings.variational:
            return h, None
        mean, log_deviation = h.chunk(2, dim=1)
        return mean, log_deviation.clamp(max=10)

    def loss(self, x: Features, adjacency: Adjacency, generator: torch.Generator) -> Tensor:
        """Cross entropy of connected and disconnected training pairs, and what else the settings ask for."""
        settings = self.settings
        visible, connected = hide_edges(adjacency, settings.hidden_edges, generator)
        space = adjacency.pair_space
        count = torch.minimum(torch.tensor([connected.size(1)]), space.num_disconnected)
        pairs = HeldOut.of(connected, space.disconnected(count, generator))
        mean, log_deviation = self.distribution(x, visible)
        h = mean if log_deviation is None else mean + torch.randn_like(mean) * log_deviation.exp()
        value = functional.binary_cross_entropy_with_logits(self.decoder(h, pairs.pairs), pairs.label)
        if log_deviation is not None:
            inner = 1 + 2 * log_deviation - mean**2 - (2 * log_deviation).exp()
            value = value - 0.5 * inner.sum(1).mean() / adjacency.num_nodes
        if settings.joint:
            topology, _ = self.topoter.loss(x, exact(adjacency, settings.perturbation_rate, generator))
            value = value + settings.joint * topology
        return value


def hide_edges(adjacency: Adjacency, share: float, generator: torch.Generator) -> tuple[Adjacency, Tensor]:
    """The graph without a random share of its edges, and those edges; all are kept and given at share 0."""
    if share <= 0:
        return adjacency, adjacency.edges
    count = min(max(round(share * adjacency.num_edges), 1), adjacency.num_edges)
    hidden = torch.zeros(adjacency.num_edges, dtype=torch.bool)
    hidden[torch.randperm(adjacency.num_edges, generator=generator)[:count]] = True
    return adjacency.keep(~hidden), adjacency.edges[:, hidden]


def train_links(split: LinkSplit, settings: LinkSettings, seed: int, progress: Progress | None = None) -> LinkModel:
    """Pre-train on the training graph, then fine-tune; the weights with the best validation AUC are kept.

    The test pairs of the split are not looked at.
    """
    generator = torch.Generator().manual_seed(seed)
    pretrained = pretrain_encoder(split, settings, seed, progress)
    with seeded(seed):  # dropout and VGAE's noise come from PyTorch's global generator
        module = LinkModule(pretrained.model_, settings, generator)
        adjacency, _ = Adjacency.from_edge_index(
            split.data.edge_index, split.data.num_nodes, split.data.get("edge_weight")
        )
        x = prepare_features(split.data.x, settings.feature_scaling)
        model = LinkModel(module, x, adjacency, history=pretrained.history_)
        _fine_tune(model, split.val, settings, generator, progress)
    buffers.release()
    return model


def pretrain_encoder(split: LinkSplit, settings: LinkSettings, seed: int, progress: Progress | None = None) -> TopoTER:
    """TopoTER on the training graph with two GCN layers."""
    epochs = settings.pretraining_epochs

    def on_epoch(record: EpochRecord) -> None:
        if progress is not None:
            progress(record.epoch, epochs, f"pre-training, loss {record.loss:.3f}")

    return TopoTER(
        "gcn",
        num_layers=2,
        hidden_channels=settings.hidden_channels,
        out_channels=(2 if settings.variational else 1) * settings.out_channels,
        perturbation_rate=settings.perturbation_rate,
        feature_scaling=settings.feature_scaling,
        init=settings.init,
        init_gain=settings.init_gain,
        scale_edges=settings.scale_edges,
        prior_bias=settings.prior_bias,
        epochs=epochs,
        learning_rate=settings.pretraining_learning_rate,
        patience=20,
        random_state=seed,
        on_epoch=on_epoch,
    ).fit(split.data)


def _fine_tune(
    model: LinkModel, val: HeldOut, settings: LinkSettings, generator: torch.Generator, progress: Progress | None
) -> None:
    module = model.module
    if settings.frozen:
        module.topoter.requires_grad_(False)
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    if not parameters:
        return  # a frozen encoder with the inner product: nothing to learn
    optimizer = torch.optim.Adam(parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay)
    best_auc, best_weights = -1.0, module.state_dict()
    for epoch in range(1, settings.epochs + 1):
        module.train()
        optimizer.zero_grad(set_to_none=True)
        loss = module.loss(model.x, model.adjacency, generator)
        loss.backward()
        optimizer.step()
        model.losses.append(loss.item())
        if epoch % CHECK_EVERY == 0 or epoch == settings.epochs:
            auc, _ = auc_and_ap(val, model.scores(val.pairs))
            if auc > best_auc:
                best_auc, model.best_epoch = auc, epoch
                best_weights = {name: tensor.clone() for name, tensor in module.state_dict().items()}
            elif epoch - model.best_epoch >= settings.patience:
                break
            if progress is not None:
                progress(epoch, settings.epochs, f"loss {model.losses[-1]:.3f}, validation AUC {auc:.1f}")
    module.load_state_dict(best_weights)
