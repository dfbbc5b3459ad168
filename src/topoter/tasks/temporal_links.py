"""Link prediction over time: learn from A(t-1) -> A(t), then predict A(t) from the representations of A(t-1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import cycle, pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from topoter.adjacency import Adjacency
from topoter.baselines.autoencoders import Halves
from topoter.baselines.randomness import seeded
from topoter.baselines.training import train
from topoter.encoders import GCN
from topoter.errors import DataError, unknown_name
from topoter.estimator import TopoTER
from topoter.tasks.link_split import TEST_SHARE, VAL_SHARE, HeldOut, auc_and_ap, check_splittable
from topoter.training import EpochRecord, pretrain
from topoter.transformation import Transition

Progress = Callable[[int, float], None]


@dataclass(frozen=True)
class Prediction:
    """A graph that is known, and pairs of the next one to be told apart."""

    known: Adjacency
    val: HeldOut | None
    test: HeldOut


@dataclass(frozen=True)
class TemporalSplit:
    """What may be learned from, and what is asked afterwards."""

    transitions: list[Transition]
    predictions: list[Prediction]

    @property
    def num_nodes(self) -> int:
        return self.predictions[0].known.num_nodes


def hold_out_pairs(edges: Sequence[Tensor], num_nodes: int, seed: int) -> TemporalSplit:
    """`held-out-pairs`: of every A(t) from the second on, 5 % and 10 % of the edges with as many disconnected pairs.

    In training a graph has only its other edges, before and after a change, and no pair held out at either time is
    looked at. Then the whole of A(t-1) is known, and what is asked are the pairs held out of A(t).
    """
    generator = torch.Generator().manual_seed(seed)
    whole = _graphs(edges, num_nodes)
    seen, hidden = [whole[0]], [torch.empty(0, dtype=torch.int64)]
    predictions = []
    for before, after in pairwise(whole):
        check_splittable(after)
        num_val, num_test = int(VAL_SHARE * after.num_edges), int(TEST_SHARE * after.num_edges)
        order = torch.randperm(after.num_edges, generator=generator)
        disconnected = after.pair_space.disconnected(torch.tensor([num_val + num_test]), generator)
        disconnected = disconnected[:, torch.randperm(num_val + num_test, generator=generator)]
        val = HeldOut.of(after.edges[:, order[:num_val]], disconnected[:, :num_val])
        test = HeldOut.of(after.edges[:, order[num_val : num_val + num_test]], disconnected[:, num_val:])
        predictions.append(Prediction(before, val, test))
        kept = torch.ones(after.num_edges, dtype=torch.bool)
        kept[order[: num_val + num_test]] = False
        seen.append(after.keep(kept))
        pairs = torch.cat([val.pairs, test.pairs], dim=1)
        hidden.append(pairs[0] * num_nodes + pairs[1])
    transitions = [
        Transition(seen[t - 1], seen[t], torch.cat([hidden[t - 1], hidden[t]]).unique()) for t in range(1, len(seen))
    ]
    return TemporalSplit(transitions, predictions)


def hold_out_last(edges: Sequence[Tensor], num_nodes: int, seed: int) -> TemporalSplit:
    """`next-snapshot`: learn from all changes up to the last but one graph, then predict the last.

    Asked are all edges of the last graph, and as many disconnected pairs (or all there are).
    """
    if len(edges) < 3:
        raise DataError(
            f"Predicting the next snapshot needs three at least, two to learn from: there are {len(edges)}. "
            "Use the protocol held-out-pairs."
        )
    whole = _graphs(edges, num_nodes)
    last = whole[-1]
    space = last.pair_space
    count = torch.minimum(space.num_edges, space.num_disconnected)
    disconnected = space.disconnected(count, torch.Generator().manual_seed(seed))
    transitions = [Transition(a, b) for a, b in pairwise(whole[:-1])]
    return TemporalSplit(transitions, [Prediction(whole[-2], None, HeldOut.of(last.edges, disconnected))])


PROTOCOLS: dict[str, Callable[[Sequence[Tensor], int, int], TemporalSplit]] = {
    "held-out-pairs": hold_out_pairs,
    "next-snapshot": hold_out_last,
}


def _graphs(edges: Sequence[Tensor], num_nodes: int) -> list[Adjacency]:
    if len(edges) < 2:
        raise DataError(f"A temporal graph needs two snapshots at least: there is only {len(edges)}.")
    return [Adjacency.from_edge_index(edge_index, num_nodes)[0] for edge_index in edges]


@dataclass(frozen=True)
class TemporalPredictor:
    """Scores [P] of pairs [2, P] at the next time, from the graph at this one, and what training showed."""

    scores: Callable[[Adjacency, Tensor], Tensor]
    losses: list[float] = field(default_factory=list)
    history: list[EpochRecord] = field(default_factory=list)


def persistence(
    split: TemporalSplit, parameters: dict[str, Any], seed: int, progress: Progress | None
) -> TemporalPredictor:
    """Edges stay as they are: 1 for a pair that is connected now, 0 for one that is not."""

    def scores(known: Adjacency, pairs: Tensor) -> Tensor:
        low, high = torch.minimum(*pairs), torch.maximum(*pairs)
        return torch.isin(low * known.num_nodes + high, known.keys).float()

    return TemporalPredictor(scores)


def topoter(
    split: TemporalSplit, parameters: dict[str, Any], seed: int, progress: Progress | None
) -> TemporalPredictor:
    """TopoTER on the changes that happened, then inner products of frozen representations."""
    settings = {name: value for name, value in parameters.items() if name != "decoder"}
    model = TopoTER(**settings, random_state=seed)
    x = torch.ones(split.num_nodes, 1)
    state, _ = model.start_snapshots([split.transitions[0].before.edges, split.transitions[0].after.edges], x)
    on_epoch = None if progress is None else lambda record: progress(record.epoch, record.loss)
    pretrain(state, [(x, transition) for transition in split.transitions], model.settings(), on_epoch=on_epoch)
    model.finish(state)

    def scores(known: Adjacency, pairs: Tensor) -> Tensor:
        return _inner_products(model.model_.embed(x, known), pairs)

    return TemporalPredictor(scores, [record.loss for record in model.history_], model.history_)


def random_init(
    split: TemporalSplit, parameters: dict[str, Any], seed: int, progress: Progress | None
) -> TemporalPredictor:
    """TopoTER's encoder before its first step."""
    return topoter(split, {**parameters, "epochs": 0}, seed, None)


def _autoencoder(variational: bool) -> Method:
    def fit(
        split: TemporalSplit, parameters: dict[str, Any], seed: int, progress: Progress | None
    ) -> TemporalPredictor:
        return autoencode_next(split, variational, parameters, seed, progress)

    return fit


def autoencode_next(
    split: TemporalSplit, variational: bool, parameters: dict[str, Any], seed: int, progress: Progress | None
) -> TemporalPredictor:
    """PyG's GAE or VGAE, trained to reconstruct A(t) from A(t-1); held-out pairs are not looked at."""
    from torch_geometric.nn import GAE, VGAE

    generator = torch.Generator().manual_seed(seed)
    width = (2 if variational else 1) * parameters["out_channels"]
    gcn = GCN(1, width, parameters["num_layers"], parameters["hidden_channels"])
    with seeded(seed):
        module = VGAE(Halves(gcn)) if variational else GAE(gcn)
    gcn.initialize(parameters["init"], generator)  # after PyG's constructor, which draws all weights anew
    x = torch.ones(split.num_nodes, 1)

    turns = cycle(split.transitions)

    def loss() -> Tensor:
        """Of one transition, by turns; pairs as for TopoTER, by whether they are connected afterwards."""
        transition = next(turns)
        sampled = transition.sample(generator)
        connected = torch.isin(sampled.pairs[0] * split.num_nodes + sampled.pairs[1], transition.after.keys)
        logits = _inner_products(module.encode(x, transition.before), sampled.pairs)
        # PyG's recon_loss, with one product of all nodes in place of one per pair: graphs of animals are dense.
        value = functional.softplus(-logits[connected]).mean() + functional.softplus(logits[~connected]).mean()
        return value + module.kl_loss() / split.num_nodes if variational else value

    with seeded(seed):  # VGAE draws its noise from PyTorch's global generator
        losses = train(
            module,
            loss,
            epochs=parameters["epochs"],
            learning_rate=parameters["learning_rate"],
            patience=parameters["patience"],
            steps=len(split.transitions),  # as for TopoTER: an epoch is a pass over all transitions
            on_epoch=progress,
        )
    module.eval()

    @torch.no_grad()
    def scores(known: Adjacency, pairs: Tensor) -> Tensor:
        return _inner_products(module.encode(x, known), pairs)

    return TemporalPredictor(scores, losses)


def _inner_products(h: Tensor, pairs: Tensor) -> Tensor:
    if 8 * pairs.size(1) > h.size(0) ** 2:  # a large share of all pairs: one matrix product is cheaper
        return (h @ h.t())[pairs[0], pairs[1]]
    return (h[pairs[0]] * h[pairs[1]]).sum(1)


Method = Callable[[TemporalSplit, dict[str, Any], int, "Progress | None"], TemporalPredictor]
METHODS: dict[str, Method] = {
    "persistence": persistence,
    "random-init": random_init,
    "gae": _autoencoder(variational=False),
    "vgae": _autoencoder(variational=True),
    "topoter": topoter,
}


def predict(
    split: TemporalSplit, method: str, parameters: dict[str, Any], seed: int, progress: Progress | None = None
) -> TemporalPredictor:
    """Train a named method on the transitions."""
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    return METHODS[method](split, parameters, seed, progress)


def mean_scores(predictor: TemporalPredictor, split: TemporalSplit, part: str) -> tuple[float, float]:
    """AUC and AP of the `val` or `test` pairs in percent, mean over the predicted snapshots."""
    found = []
    for prediction in split.predictions:
        held_out: HeldOut = getattr(prediction, part)
        found.append(auc_and_ap(held_out, predictor.scores(prediction.known, held_out.pairs)))
    auc, ap = (sum(values) / len(found) for values in zip(*found))
    return auc, ap
