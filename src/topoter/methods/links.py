"""Learning links: pre-train with TopoTER, then learn which pairs are connected, through the same seam.

GAE and VGAE are the same training without TopoTER's loss, so that they are peers with the same decoders and noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from topoter.encoders import Hops
from topoter.errors import UsageError, invalid_parameter, unknown_name
from topoter.estimator import TopoTER
from topoter.methods.base import Fitted, Method, register
from topoter.methods.link_encoder import Dropout, LinkEncoder, LinkHops, LinkHopsAndLayers, NoisyFeatures
from topoter.pretext.hidden_edges import area_under_curve
from topoter.pretext.objectives import Loss, Objective, build_objectives
from topoter.pretext.pair_decoders import Noise, build_pair_decoder
from topoter.pretext.transformation import EdgeChange, TopologyTransformation, exact, hide
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.structure.graph_sets import Batch
from topoter.structure.hops import Preparation
from topoter.training import EpochRecord, Keep, TopoTERModel, TrainingSettings, TrainingState, Validate, train
from topoter.training.batches import Transformed, whole_graph
from topoter.training.callbacks import Callback
from topoter.training.state import RandomStream

if TYPE_CHECKING:
    from torch_geometric.data import Data

CHECK_EVERY = 4  # epochs between two looks at the validation pairs
VALIDATION = "validation AUC"
PREPARED = "prepared"


@dataclass(frozen=True)
class LinkSettings:
    """How links are learned.

    Args:
        encoder: "gcn", two layers (`LinkEncoder`), "hops", several hops side by side (`LinkHops`), or
            "hops and layers", both of them (`LinkHopsAndLayers`).
        hidden_channels, out_channels, activation, batch_norm: of the two GCN layers; of "hops" only out_channels.
        init, feature_scaling: as in `TopoTER`; "prepared" reads features as `TopoTER`'s default does, by presence where
            they are sparse.
        start: of hops: "random", or "mutual-information", which pre-trains a linear map of two hops by I(H; H~) as
            `TopoTER`'s default does, on the training graph, and begins with its principal axes.
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

    encoder: str = "gcn"
    hidden_channels: int = 32
    out_channels: int = 16
    activation: str = "relu"
    batch_norm: bool = False
    init: str = "glorot"
    init_gain: float = 1.0
    feature_scaling: str = "none"
    start: str = "random"
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
        for name, known in (
            ("encoder", ("gcn", "hops", "hops and layers")),
            ("start", ("random", "mutual-information")),
        ):
            if getattr(self, name) not in known:
                raise unknown_name(name, getattr(self, name), known)
        if self.encoder != "gcn" and (self.variational or self.recentre):
            raise UsageError(f"The encoder {self.encoder!r} has no variational form, and needs no recentring.")


class ConnectedPairs(Objective):
    """Which of the pairs are edges of A, from the representations on the graph with some edges hidden.

    It looks at H~ only: a hidden edge is to be told from a pair that never was one.

    Args:
        decoder: a name in `PAIR_DECODERS`.
        noise: what a learned decoder's hidden layer goes through.
    """

    def __init__(
        self, channels: int, decoder: str, generator: torch.Generator, noise: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__()
        self.decoder = build_pair_decoder(decoder, channels, generator)
        self.noise = noise

    def decode(self, h: Tensor, pairs: Tensor, adjacency: Adjacency, noise: Noise | None = None) -> Tensor:
        """Logits [P]; only a decoder that looks at the graph is given it."""
        seen = {"adjacency": adjacency} if self.decoder.sees_the_graph else {}
        logits: Tensor = self.decoder(h, pairs, noise, **seen)
        return logits

    def forward(self, h: Tensor, h_t: Tensor, transformation: TopologyTransformation) -> Loss:
        logits = self.decode(h_t, transformation.pairs, transformation.adjacency_t, self.noise)
        kind = transformation.pair_type
        connected = (kind == EdgeChange.DELETE) | (kind == EdgeChange.KEEP_CONNECTED)
        return functional.binary_cross_entropy_with_logits(logits, connected.float()), {}


class LinkModule(nn.Module):
    """TopoTER's module with the objective of links behind the same encoder."""

    def __init__(self, topoter: TopoTERModel, settings: LinkSettings, seed: int) -> None:
        super().__init__()
        self.topoter = topoter
        self.settings = settings
        # Anew from the seed, so that pre-training changes no draw that comes after it.
        self.generator = torch.Generator().manual_seed(seed)
        self.dropout = Dropout(seed)
        variational = 2 if settings.variational else 1
        self.links = ConnectedPairs(
            topoter.encoder.out_channels // variational,
            settings.decoder,
            self.generator,
            lambda values: self.dropout(values, settings.decoder_dropout),
        )

    def encode(self, x: Features, adjacency: Adjacency) -> Tensor:
        """H [N, F]; of a variational encoder the means."""
        h: Tensor = self.topoter.encoder(x, adjacency)
        return self._distribution(h)[0]

    def forward(self, x: NoisyFeatures, adjacency: Adjacency) -> Loss:
        """The objective of links, and what else the settings ask for: a divergence, TopoTER's own loss."""
        settings, encoder = self.settings, self.topoter.encoder
        assert isinstance(encoder, (LinkEncoder, LinkHops))
        hiding = self.hide(adjacency)
        visible = hiding.adjacency_t
        signal = encoder.project(x.drop(self.dropout, settings.feature_dropout))
        h_t = encoder.noisy(signal, visible, lambda values: self.dropout(values, settings.dropout))
        mean, log_deviation = self._distribution(h_t)
        h_t = mean
        if log_deviation is not None:
            h_t = mean + torch.randn(mean.shape, generator=self.generator) * log_deviation.exp()
        loss, metrics = self.links(h_t, h_t, hiding)
        if log_deviation is not None:
            inner = 1 + 2 * log_deviation - mean**2 - (2 * log_deviation).exp()
            loss = loss - 0.5 * inner.sum(1).mean() / adjacency.num_nodes
        further = self.further_loss(h_t, hiding)
        loss = loss if further is None else loss + further
        if settings.joint:  # X W is shared with the pairs' loss, and so is its noise
            topology, said = self.topoter.of_signal(
                signal, exact(adjacency, settings.perturbation_rate, self.generator)
            )
            loss, metrics = loss + settings.joint * topology, {**metrics, **said}
        return loss, metrics

    def hide(self, adjacency: Adjacency) -> TopologyTransformation:
        """Which edges the encoder does not see in this step, and which pairs it is to tell apart."""
        return hide(adjacency, self.settings.hidden_edges, self.generator)

    def further_loss(self, h_t: Tensor, hiding: TopologyTransformation) -> Tensor | None:
        """What else is learned from the representations, if anything."""
        return None

    @torch.no_grad()
    def scores(self, x: Features, adjacency: Adjacency, pairs: Tensor) -> Tensor:
        """Logits [P] of pairs [2, P]."""
        self.eval()
        return self.links.decode(self.encode(x, adjacency), pairs, adjacency)

    def _distribution(self, h: Tensor) -> tuple[Tensor, Tensor | None]:
        """The means of the representations, and for VGAE their log deviations (else `None`)."""
        if not self.settings.variational:
            return h, None
        mean, log_deviation = h.chunk(2, dim=1)
        return mean, log_deviation.clamp(max=10)


@register("gae", "link", pretraining_epochs=0)
@register("vgae", "link", pretraining_epochs=0, variational=True)
@register("no-pretraining", "link", pretraining_epochs=0)
@register("topoter-frozen", "link", frozen=True)
@register("topoter", "link")
class LinkLearner(Method):
    """Pre-train on the training graph, then fine-tune; the weights with the best validation AUC are kept."""

    settings_type: type[LinkSettings] = LinkSettings
    module_type: type[LinkModule] = LinkModule
    preparation: Preparation | None = None

    def fit(self, graph: Data, seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        module, state, pretraining = self.learn(graph, seed, callbacks)

        def scores(known: Data, pairs: Tensor) -> Tensor:
            return module.scores(*self.read(known, module.settings), pairs)

        return Fitted(pairs=scores, history=state.history, pretraining=pretraining, best_epoch=state.best_epoch)

    def learn(
        self, graph: Data, seed: int, callbacks: Sequence[Callback] = ()
    ) -> tuple[LinkModule, TrainingState, list[EpochRecord]]:
        """The module, how its training went, and what each epoch of the pre-training showed."""
        settings = self.settings_type(**self.parameters)
        settings.check()
        self.preparation = None
        x, adjacency = self.read(graph, settings)
        encoder = self.encoder(x, adjacency, settings)
        topoter, pretraining = pretrain_encoder(encoder, x, adjacency, settings, seed, callbacks)
        if settings.start == "mutual-information" and isinstance(encoder, LinkHops):
            pretraining = start_from_hops(encoder, x, adjacency, graph, seed)
        if settings.recentre:
            assert isinstance(topoter.encoder, LinkEncoder)
            topoter.encoder.recentre(x, adjacency)
        module = self.module_type(topoter, settings, seed)
        if settings.frozen:
            topoter.requires_grad_(False)
        training = TrainingSettings(
            settings.epochs,
            settings.patience,
            settings.learning_rate,
            settings.weight_decay,
            keep=Keep(VALIDATION, highest=True, weights="after"),
            fused=True,
        )
        streams: dict[str, RandomStream] = {"generator": module.generator, "dropout": module.dropout.generator}
        state = TrainingState.start(module, training, streams)
        state.phase = "links"
        if any(parameter.requires_grad for parameter in module.parameters()):  # else nothing is to be learned
            pairs, label = graph.edge_label_index, graph.edge_label
            auc = Validate(VALIDATION, lambda: area_under_curve(module.scores(x, adjacency, pairs), label), CHECK_EVERY)
            train(state, [(NoisyFeatures(x), adjacency)], [auc, *callbacks])
        return module, state, pretraining

    def read(self, graph: Data, settings: LinkSettings) -> Batch:
        """A graph as the encoder takes it; its features are prepared as those of the first, the one trained on."""
        if settings.feature_scaling != PREPARED:
            return whole_graph(graph, settings.feature_scaling)[0]
        x, adjacency = whole_graph(graph)[0]
        self.preparation = self.preparation or Preparation.fit(x)
        return self.preparation(x), adjacency

    def encoder(self, x: Features, adjacency: Adjacency, settings: LinkSettings) -> LinkEncoder | LinkHops:
        """The encoder before its weights are drawn; a variational one has means and deviations."""
        if settings.encoder == "hops":
            return LinkHops(x.shape[1], settings.out_channels)
        hidden = settings.hidden_channels
        if settings.encoder == "hops and layers":
            return LinkHopsAndLayers(x.shape[1], settings.out_channels, hidden, settings.activation)
        out_channels = (2 if settings.variational else 1) * settings.out_channels
        return LinkEncoder(x.shape[1], hidden, out_channels, settings.activation, settings.batch_norm)


def start_from_hops(encoder: LinkHops, x: Features, adjacency: Adjacency, graph: Data, seed: int) -> list[EpochRecord]:
    """Begin with the linear map that `TopoTER`'s default learns on the training graph; what each epoch showed."""
    from torch_geometric.data import Data as Graph

    seen = Graph(x=graph.x, edge_index=adjacency.edge_index)
    # The map alone is used: neither the node's place nor what its likely neighbours would add afterwards.
    parts = {"structure": "none", "completion": 0.0}
    model = TopoTER("hops", encoder_parameters=parts, random_state=seed).fit(seen)
    trained = model.model_.encoder
    assert isinstance(trained, Hops)
    encoder.start_at(trained.far @ trained.weight.detach(), x, adjacency)
    return model.history_


def pretrain_encoder(
    encoder: LinkEncoder | LinkHops,
    x: Features,
    adjacency: Adjacency,
    settings: LinkSettings,
    seed: int,
    callbacks: Sequence[Callback] = (),
) -> tuple[TopoTERModel, list[EpochRecord]]:
    """TopoTER's module after pre-training on the training graph, and what each epoch showed."""
    generator = torch.Generator().manual_seed(seed)
    encoder.initialize(settings.init, generator, settings.init_gain)
    model = TopoTERModel(encoder, build_objectives("paper", encoder.out_channels, vars(settings), generator))
    training = TrainingSettings(settings.pretraining_epochs, learning_rate=settings.pretraining_learning_rate)
    state = TrainingState.start(model, training, {"generator": generator})
    state.phase = "pretraining"
    train(state, Transformed([(x, adjacency)], generator, settings.perturbation_rate), callbacks)
    return model, state.history
