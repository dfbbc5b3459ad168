"""TopoTER over time with all that is known: every past snapshot, and whether a pair was connected before.

The transitions and their types are the paper's. Since A(t-1) is known, two of the four types are left for each pair: a
connected one is kept or deleted, a disconnected one added or kept apart. The decoder sees the representations of both
nodes on A(t-1) and what the past says of the pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from topoter.encoders import GCN
from topoter.errors import UsageError
from topoter.methods.base import Fitted
from topoter.pretext.objectives import Loss, accuracy_by_type
from topoter.pretext.pair_decoders import products
from topoter.pretext.transformation import EdgeChange, Transition
from topoter.structure.adjacency import Adjacency
from topoter.structure.history import History, Known
from topoter.training import Keep, TrainingSettings, TrainingState, train
from topoter.training.callbacks import Callback
from topoter.weights import linear_layers

PARTS = 7  # about as large a share of the edges as held-out pairs have


@dataclass(frozen=True)
class OverTimeSettings:
    """How changes are learned.

    Args:
        hidden_channels, out_channels: of the two graph convolutions on A(t-1); 0 out_channels leave them out.
        decoder_channels: between the two layers on what is known of a pair.
        completed: the decoder also sees the other edges of the snapshot that is asked for, where pairs are held out of
            it; in training those of a part of its pairs are hidden in turn, so that both see edges in the same state.
        node_bias: what the square of a node's own bias costs, divided by the pairs of a step; 0 leaves biases out.
            They learn who has any edges at all, which a node's past need not tell.
        frozen: the encoder stays as it was drawn, and the decoder alone is learned.
        epochs, learning_rate, weight_decay: of the training; an epoch has a step for every transition.
    """

    hidden_channels: int = 32
    out_channels: int = 16
    decoder_channels: int = 32
    completed: bool = False
    node_bias: float = 0.0
    frozen: bool = False
    epochs: int = 20
    learning_rate: float = 1e-2
    weight_decay: float = 1e-4


@dataclass(frozen=True)
class Examples:
    """Pairs [2, P] at one step in time: what was known before, and what happened to them."""

    adjacency: Adjacency
    nodes: Tensor
    pairs: Tensor
    known: Tensor
    pair_type: Tensor


class PairsOverTime(nn.Module):
    """The logit of a pair at the next time, from h_i * h_j, what the past says of the pair, and b_i + b_j."""

    nodes_mean: Tensor
    nodes_deviation: Tensor
    known_mean: Tensor
    known_deviation: Tensor

    def __init__(self, nodes: Tensor, known: Tensor, settings: OverTimeSettings, seed: int, num_nodes: int) -> None:
        super().__init__()
        self.node_bias = settings.node_bias
        self.bias = nn.Parameter(torch.zeros(num_nodes)) if settings.node_bias else None
        generator = torch.Generator().manual_seed(seed)
        for name, values in (("nodes", nodes), ("known", known)):  # columns of mean 0 and deviation 1
            deviation, mean = torch.std_mean(values, 0)
            self.register_buffer(f"{name}_mean", mean)
            self.register_buffer(f"{name}_deviation", deviation.clamp(min=1e-6))
        self.encoder: GCN | None = None
        if settings.out_channels:
            self.encoder = GCN(nodes.size(1), settings.out_channels, 2, settings.hidden_channels)
            self.encoder.initialize("glorot", generator)
            self.encoder.requires_grad_(not settings.frozen)
        self.layers = linear_layers([settings.out_channels + known.size(1), settings.decoder_channels, 1])
        for layer in self.layers:
            nn.init.xavier_uniform_(layer.weight, generator=generator)
            nn.init.zeros_(layer.bias)

    def forward(self, examples: Examples) -> Loss:
        logits = self.logits(examples.adjacency, examples.nodes, examples.pairs, examples.known)
        kind = examples.pair_type
        connected = (kind == EdgeChange.ADD) | (kind == EdgeChange.KEEP_CONNECTED)
        was = (kind == EdgeChange.DELETE) | (kind == EdgeChange.KEEP_CONNECTED)
        guess = torch.where(
            logits > 0,
            torch.where(was, int(EdgeChange.KEEP_CONNECTED), int(EdgeChange.ADD)),
            torch.where(was, int(EdgeChange.DELETE), int(EdgeChange.KEEP_DISCONNECTED)),
        )
        size = len(EdgeChange)
        confusion = torch.bincount(kind * size + guess, minlength=size**2).view(size, size)
        loss = functional.binary_cross_entropy_with_logits(logits, connected.float())
        if self.bias is not None:
            loss = loss + self.node_bias * self.bias.square().sum() / logits.numel()
        return loss, accuracy_by_type(confusion)

    def logits(self, adjacency: Adjacency, nodes: Tensor, pairs: Tensor, known: Tensor) -> Tensor:
        """[P], for pairs [2, P] of nodes that are known by [N, C], and pairs by [P, D]."""
        parts = [(known - self.known_mean) / self.known_deviation]
        if self.encoder is not None:
            h = self.encoder((nodes - self.nodes_mean) / self.nodes_deviation, adjacency)
            parts.append(products(h, pairs))
        hidden = torch.relu(self.layers[0](torch.cat(parts, dim=1)))
        logits: Tensor = self.layers[1](hidden).squeeze(1)
        if self.bias is not None:
            logits = logits + self.bias.index_select(0, pairs[0]) + self.bias.index_select(0, pairs[1])
        return logits


def fit_over_time(
    transitions: Sequence[Transition], settings: OverTimeSettings, seed: int, callbacks: Sequence[Callback] = ()
) -> Fitted:
    """Learn from transitions; scores are those of pairs after a list of snapshots."""
    generator = torch.Generator().manual_seed(seed)
    batches = _examples(transitions, settings.completed, generator)
    nodes, known = (torch.cat([getattr(batch, name) for batch in batches]) for name in ("nodes", "known"))
    module = PairsOverTime(nodes, known, settings, seed, batches[0].adjacency.num_nodes)
    training = TrainingSettings(
        settings.epochs, None, settings.learning_rate, settings.weight_decay, keep=Keep(weights="after")
    )
    state = TrainingState.start(module, training, {"generator": generator})
    train(state, [(batch,) for batch in batches], callbacks)

    @torch.no_grad()
    def scores(known: Known, pairs: Tensor) -> Tensor:
        history = known.history
        columns = [history.pairs(pairs)]
        if settings.completed:
            if known.rest is None:
                raise UsageError("Nothing is known of a snapshot that has not happened yet: leave out `completed`.")
            columns.append(History.of([known.rest]).pairs(pairs))
        return module.logits(history.now, history.nodes(), pairs, torch.cat(columns, dim=1))

    return Fitted(pairs=scores, history=state.history)


def _examples(transitions: Sequence[Transition], completed: bool, generator: torch.Generator) -> list[Examples]:
    """Of every transition the edges afterwards, and as many disconnected pairs.

    A pair that is held out at one time is no example then nor at any later time: what became of it is not seen.
    """
    history = History.of([transitions[0].before])
    hidden = torch.empty(0, dtype=torch.int64)
    found = []
    for place, transition in enumerate(transitions):
        if place:
            history = history.after(transition.before)
        if transition.hidden is not None:
            hidden = torch.cat([hidden, transition.hidden]).unique()
        after = transition.after
        space = after.pair_space
        apart = space.disconnected(torch.minimum(space.num_edges, space.num_disconnected), generator)
        pairs = torch.cat([after.edges, apart], dim=1)
        connected = torch.arange(pairs.size(1)) < after.num_edges
        keys = pairs[0] * after.num_nodes + pairs[1]
        was = torch.isin(keys, transition.before.keys)
        kind = torch.where(
            connected,
            torch.where(was, int(EdgeChange.KEEP_CONNECTED), int(EdgeChange.ADD)),
            torch.where(was, int(EdgeChange.DELETE), int(EdgeChange.KEEP_DISCONNECTED)),
        )
        known = history.pairs(pairs)
        if completed:
            known = torch.cat([known, _of_the_rest(after, pairs, generator)], dim=1)
        seen = ~torch.isin(keys, hidden)
        if bool(seen.any()):
            found.append(Examples(transition.before, history.nodes(), pairs[:, seen], known[seen], kind[seen]))
    return found


def _of_the_rest(after: Adjacency, pairs: Tensor, generator: torch.Generator) -> Tensor:
    """What the other edges of a graph say of pairs [2, P] that begin with all its edges; a part is asked at a time."""
    part = torch.randint(PARTS, (pairs.size(1),), generator=generator)
    found = None
    for number in range(PARTS):
        asked = part == number
        known = History.of([after.keep(~asked[: after.num_edges])]).pairs(pairs[:, asked])
        found = known.new_empty(pairs.size(1), known.size(1)) if found is None else found
        found[asked] = known
    assert found is not None
    return found
