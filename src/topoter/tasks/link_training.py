"""Training for link prediction: pre-train with TopoTER, then learn which pairs are connected."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional

from topoter.adjacency import Adjacency
from topoter.decoder import TransformationDecoder
from topoter.encoders import Features
from topoter.errors import TopoterError, invalid_parameter
from topoter.features import prepare_features
from topoter.kernels import buffers
from topoter.model import TopoTERModel
from topoter.tasks.link_encoder import Dropout, LinkEncoder, NoisyFeatures
from topoter.tasks.link_split import HeldOut, LinkSplit, auc
from topoter.tasks.pair_scores import build_pair_decoder
from topoter.training import EpochRecord, TrainingSettings, TrainingState, pretrain
from topoter.transformation import exact

# Called with the epochs done, the most there will be, and a word on how it goes.
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class LinkSettings:
    """How links are learned.

    Args:
        hidden_channels, out_channels, activation, batch_norm: of the two GCN layers (`LinkEncoder`).
        init, feature_scaling: as in `TopoTER`.
        pretraining_epochs, pretraining_learning_rate, perturbation_rate, scale_edges, prior_bias: of TopoTER's
            pre-training on the training graph; 0 epochs leave it out, and change nothing else.
        recentre: before the training on pairs, give the representations mean 0 and mean squared length 1.
        decoder: a name in `PAIR_DECODERS`.
        frozen: keep the encoder as pre-training left it and learn the decoder only, if there is something to learn.
        variational: VGAE: representations are drawn from a learned normal distribution, with its divergence.
        epochs, patience, learning_rate, weight_decay: of the training on pairs; patience counts epochs without a better
            validation AUC.
        feature_dropout, dropout, decoder_dropout: of the features' entries, of the hidden representations, and of what
            a learned decoder has between its layers.
        hidden_edges: share of the training edges that is left out of message passing in an epoch, and predicted in
            it; 0 predicts all edges along all edges, as GAE does, and learns to find what it has been shown.
        joint: weight of TopoTER's loss beside that of the pairs.
    """

    hidden_channels: int = 32
    out_channels: int = 16
    activation: str = "relu"
    batch_norm: bool = False
    init: str = "glorot"
    init_gain: float = 1.0
    feature_scaling: str = "none"
    pretraining_epochs: int = 0
    pretraining_learning_rate: float = 1e-3
    perturbation_rate: float = 0.7
    scale_edges: bool = True
    prior_bias: bool = True
    recentre: bool = False
    decoder: str = "inner product"
    frozen: bool = False
    variational: bool = False
    epochs: int = 200
    patience: int = 50
    learning_rate: float = 1e-2
    weight_decay: float = 0.0
    feature_dropout: float = 0.0
    dropout: float = 0.0
    decoder_dropout: float = 0.0
    hidden_edges: float = 0.0
    joint: float = 0.0

    def check(self) -> None:
        """Raise for the first share that is none."""
        for name in ("feature_dropout", "dropout", "decoder_dropout", "hidden_edges"):
            value = getattr(self, name)
            if not 0 <= value < 1:
                raise invalid_parameter(name, "LinkSettings", "at least 0 and less than 1", value)


CHECK_EVERY = 4  # epochs between two looks at the validation pairs


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
        self.decoder = build_pair_decoder(settings.decoder, settings.out_channels, generator)

    def encode(self, x: Features, adjacency: Adjacency) -> Tensor:
        """H [N, F]; of a variational encoder the means."""
        h: Tensor = self.topoter.encoder(x, adjacency)
        return self._distribution(h)[0]

    def loss(self, x: NoisyFeatures, adjacency: Adjacency, generator: torch.Generator, dropout: Dropout) -> Tensor:
        """Cross entropy of connected and disconnected training pairs, and what else the settings ask for."""
        settings, encoder = self.settings, self.topoter.encoder
        assert isinstance(encoder, LinkEncoder)
        visible, connected = hide_edges(adjacency, settings.hidden_edges, generator)
        space = adjacency.pair_space
        count = torch.minimum(torch.tensor([connected.size(1)]), space.num_disconnected)
        pairs = HeldOut.of(connected, space.disconnected(count, generator))
        signal = encoder.project(x.drop(dropout, settings.feature_dropout))
        hidden = dropout(encoder.first(signal, visible), settings.dropout)
        mean, log_deviation = self._distribution(encoder.second(hidden, visible))
        h = mean
        if log_deviation is not None:
            h = mean + torch.randn(mean.shape, generator=generator) * log_deviation.exp()
        logits = self.decoder(h, pairs.pairs, lambda values: dropout(values, settings.decoder_dropout))
        value = functional.binary_cross_entropy_with_logits(logits, pairs.label)
        if log_deviation is not None:
            inner = 1 + 2 * log_deviation - mean**2 - (2 * log_deviation).exp()
            value = value - 0.5 * inner.sum(1).mean() / adjacency.num_nodes
        if settings.joint:
            value = value + settings.joint * self._topology_loss(signal, adjacency, generator)
        return value

    def _topology_loss(self, signal: Tensor, adjacency: Adjacency, generator: torch.Generator) -> Tensor:
        """TopoTER's loss of a transformation drawn now; X W is shared with the pairs' loss, and so is its noise."""
        transformation = exact(adjacency, self.settings.perturbation_rate, generator)
        encoder = self.topoter.encoder
        delta_h = encoder.propagate(signal, transformation.adjacency_t) - encoder.propagate(signal, adjacency)
        loss, _ = self.topoter.decoder.loss(delta_h, transformation.pairs, transformation.pair_type)
        return loss

    def _distribution(self, h: Tensor) -> tuple[Tensor, Tensor | None]:
        """The means of the representations, and for VGAE their log deviations (else `None`)."""
        if not self.settings.variational:
            return h, None
        mean, log_deviation = h.chunk(2, dim=1)
        return mean, log_deviation.clamp(max=10)


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
    settings.check()
    data = split.data
    adjacency, _ = Adjacency.from_edge_index(data.edge_index, data.num_nodes, data.get("edge_weight"))
    x = prepare_features(data.x, settings.feature_scaling)
    topoter, history = pretrain_encoder(x, adjacency, settings, seed, progress)
    if settings.recentre:
        assert isinstance(topoter.encoder, LinkEncoder)
        topoter.encoder.recentre(x, adjacency)
    generator = torch.Generator().manual_seed(seed)  # anew, so that pre-training changes no draw that comes after it
    model = LinkModel(LinkModule(topoter, settings, generator), x, adjacency, history=history)
    _fine_tune(model, split.val, settings, generator, Dropout(seed), progress)
    buffers.release()
    return model


def pretrain_encoder(
    x: Features, adjacency: Adjacency, settings: LinkSettings, seed: int, progress: Progress | None = None
) -> tuple[TopoTERModel, list[EpochRecord]]:
    """TopoTER's module after pre-training on the training graph, and what each epoch showed."""
    generator = torch.Generator().manual_seed(seed)
    out_channels = (2 if settings.variational else 1) * settings.out_channels
    encoder = LinkEncoder(x.shape[1], settings.hidden_channels, out_channels, settings.activation, settings.batch_norm)
    encoder.initialize(settings.init, generator, settings.init_gain)
    decoder = TransformationDecoder(out_channels, scale_edges=settings.scale_edges)
    decoder.initialize(generator)
    if settings.prior_bias:
        decoder.start_at_prior(settings.perturbation_rate)
    training = TrainingSettings(
        perturbation_rate=settings.perturbation_rate,
        epochs=settings.pretraining_epochs,
        learning_rate=settings.pretraining_learning_rate,
    )
    state = TrainingState.start(TopoTERModel(encoder, decoder), training, generator)

    def on_epoch(record: EpochRecord) -> None:
        if progress is not None:
            progress(record.epoch, settings.pretraining_epochs, f"pre-training, loss {record.loss:.3f}")

    pretrain(state, [(x, adjacency)], training, on_epoch=on_epoch)
    return state.model, state.history


def _fine_tune(
    model: LinkModel,
    val: HeldOut,
    settings: LinkSettings,
    generator: torch.Generator,
    dropout: Dropout,
    progress: Progress | None,
) -> None:
    module, x = model.module, NoisyFeatures(model.x)
    if settings.frozen:
        module.topoter.requires_grad_(False)
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    if not parameters:
        return  # a frozen encoder with the inner product: nothing to learn
    optimizer = torch.optim.Adam(parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True)
    best_auc, best_weights = -1.0, module.state_dict()
    for epoch in range(1, settings.epochs + 1):
        module.train()
        optimizer.zero_grad(set_to_none=True)
        loss = module.loss(x, model.adjacency, generator, dropout)
        loss.backward()
        optimizer.step()
        model.losses.append(loss.item())
        if not math.isfinite(model.losses[-1]):
            raise TopoterError(
                f"The loss of the fine-tuning became {model.losses[-1]} in epoch {epoch}. "
                f"Lower the learning rate (it is {settings.learning_rate}) or scale the features."
            )
        if epoch % CHECK_EVERY == 0 or epoch == settings.epochs:
            val_auc = auc(val, model.scores(val.pairs))
            if val_auc > best_auc:
                best_auc, model.best_epoch = val_auc, epoch
                best_weights = {name: tensor.clone() for name, tensor in module.state_dict().items()}
            elif epoch - model.best_epoch >= settings.patience:
                break
            if progress is not None:
                progress(epoch, settings.epochs, f"loss {model.losses[-1]:.3f}, validation AUC {val_auc:.1f}")
    module.load_state_dict(best_weights)
