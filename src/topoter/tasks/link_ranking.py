"""The most likely missing edges of a graph: every disconnected pair scored, block by block, the best kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from topoter.errors import DataError, invalid_parameter
from topoter.estimator import TopoTER
from topoter.graphs.features import STRUCTURAL_NAMES, structural_features
from topoter.pretext.transformation import hide_edges
from topoter.structure.adjacency import Adjacency
from topoter.tasks.link_split import HeldOut, auc_and_ap

if TYPE_CHECKING:
    from torch_geometric.data import Data

HIDDEN_SHARE = 0.2  # of the edges, hidden from the encoder to learn which pairs it should have connected
CHECKED_SHARE = 0.25  # of those, kept to check what was learned
MOST_LEARNED = 20_000  # hidden edges used at most: more change the few hundred weights no further
FEWEST_EDGES = 40
BLOCK = 2048  # rows and columns of scores held at a time: 16 MB


@dataclass(frozen=True)
class RankedLinks:
    """Disconnected pairs [2, K] with their scores [K], the most likely first, and how good the ranking is.

    A score is the log odds of being an edge, where edges and disconnected pairs are equally many. `auc` and `ap` were
    measured on hidden edges, along which no messages passed and from which no weights were learned, against as many
    disconnected pairs; a model that was fitted on this very graph did meet them in pre-training.
    """

    pairs: Tensor
    score: Tensor
    auc: float
    ap: float


@dataclass(frozen=True)
class ChannelWeights:
    """A linear decoder on Hadamard products: the logit of a pair is sum_f w_f h_if h_jf + b.

    Linear on purpose: a block of scores is then one matrix product, and all pairs of 100,000 nodes can be scored.
    """

    weight: Tensor
    bias: float
    center: Tensor
    scale: float

    def prepare(self, z: Tensor) -> Tensor:
        """Embeddings as the decoder takes them: centred and of one scale."""
        return (z - self.center) / self.scale

    def logits(self, h: Tensor, pairs: Tensor) -> Tensor:
        return (h[pairs[0]] * h[pairs[1]]) @ self.weight + self.bias


def rank_links(
    model: TopoTER,
    data: Data,
    top: int = 100,
    seed: int = 0,
    on_block: Callable[[int, int], None] | None = None,
    candidates: Tensor | None = None,
) -> RankedLinks:
    """The `top` disconnected pairs of a graph most likely to be connected, by a fitted model's embeddings.

    `candidates` [2, K] are the pairs that come into question (else all); those that are edges already are left out.

    A share of the edges is hidden, the rest embedded, and the weight of every channel learned from the hidden edges
    against disconnected pairs; with these weights the embeddings of the whole graph score all its pairs.
    """
    if top < 1:
        raise invalid_parameter("top", "rank_links", "at least 1", top)
    adjacency, _ = Adjacency.from_edge_index(data.edge_index, data.num_nodes, data.get("edge_weight"))
    if adjacency.num_edges < FEWEST_EDGES:
        raise DataError(
            f"The graph has {adjacency.num_edges} edges: too few to learn from hidden ones which are missing. "
            f"At least {FEWEST_EDGES} are needed."
        )
    free = int(adjacency.pair_space.num_disconnected.sum())
    if free < FEWEST_EDGES:
        raise DataError(f"The graph has {free} disconnected pairs: there are too few to rank.")
    decoder, auc, ap = learn_channel_weights(model, data, adjacency, seed)
    h = decoder.prepare(torch.from_numpy(model.transform(data)))
    if candidates is not None:
        pairs = disconnected_among(candidates, adjacency)
        logits = decoder.logits(h, pairs)
        order = torch.argsort(logits, descending=True, stable=True)[:top]
        return RankedLinks(pairs[:, order], logits[order], auc, ap)
    pairs, logits = best_pairs(h * decoder.weight, h, adjacency, min(top, free), on_block=on_block)
    return RankedLinks(pairs, logits + decoder.bias, auc, ap)


def disconnected_among(pairs: Tensor, adjacency: Adjacency) -> Tensor:
    """Those of the pairs [2, K] that are two nodes without an edge, each once, in their order."""
    low, high = torch.minimum(*pairs), torch.maximum(*pairs)
    keys = low * adjacency.num_nodes + high
    _, first = np.unique(keys.numpy(), return_index=True)
    once = torch.zeros(keys.numel(), dtype=torch.bool)
    once[torch.from_numpy(first)] = True
    return pairs[:, once & (low < high) & ~torch.isin(keys, adjacency.keys)]


def learn_channel_weights(
    model: TopoTER, data: Data, adjacency: Adjacency, seed: int
) -> tuple[ChannelWeights, float, float]:
    """Weights of the channels, and AUC and AP on hidden edges that were kept out of learning them."""
    generator = torch.Generator().manual_seed(seed)
    visible, connected = hide_edges(adjacency, HIDDEN_SHARE, generator)
    z = embed_visible(model, data, visible)
    connected = connected[:, torch.randperm(connected.size(1), generator=generator)[:MOST_LEARNED]]
    space = adjacency.pair_space
    count = torch.minimum(torch.tensor([connected.size(1)]), space.num_disconnected)
    disconnected = space.disconnected(count, generator)
    disconnected = disconnected[:, torch.randperm(disconnected.size(1), generator=generator)]
    cut = [max(1, round(CHECKED_SHARE * part.size(1))) for part in (connected, disconnected)]
    checked = HeldOut.of(connected[:, : cut[0]], disconnected[:, : cut[1]])
    learned = HeldOut.of(connected[:, cut[0] :], disconnected[:, cut[1] :])

    decoder = fit_channel_weights(z, learned, seed)
    return decoder, *auc_and_ap(checked, decoder.logits(decoder.prepare(z), checked.pairs))


def embed_visible(model: TopoTER, data: Data, visible: Adjacency) -> Tensor:
    """Embeddings [N, F] of a graph some of whose edges are hidden."""
    shown = data.clone()
    shown.edge_index = visible.edge_index
    if "time" in shown:  # of every edge that was read, not of those that are left
        del shown.time
    if visible.edge_weight is not None:
        shown.edge_weight = visible.edge_weight
    if data.get("feature_names") == STRUCTURAL_NAMES:  # degrees of the whole graph would tell of the hidden edges
        shown.x = structural_features(visible.edge_index.numpy(), visible.num_nodes)
    return torch.from_numpy(model.transform(shown))


def fit_channel_weights(z: Tensor, learned: HeldOut, seed: int) -> ChannelWeights:
    """The weight of every channel, by pairs that were edges and pairs that were none."""
    center = z.mean(0)
    scale = float((z - center).square().mean().sqrt()) or 1.0
    h = (z - center) / scale
    products = (h[learned.pairs[0]] * h[learned.pairs[1]]).numpy()
    regression = LogisticRegression(C=1 / products.shape[1], max_iter=1000, random_state=seed)
    regression.fit(products, learned.label.numpy())
    weight = torch.from_numpy(regression.coef_[0].astype(np.float32))
    return ChannelWeights(weight, float(regression.intercept_[0]), center, scale)


def best_pairs(
    left: Tensor,
    right: Tensor,
    adjacency: Adjacency,
    top: int,
    block: int = BLOCK,
    on_block: Callable[[int, int], None] | None = None,
) -> tuple[Tensor, Tensor]:
    """The `top` disconnected pairs i < j with the highest left_i . right_j, and these values; best first.

    Only one block of scores is held at a time, and of each only what beats the worst of the best so far. Of equal
    scores the pair with the smaller numbers comes first, so that the result does not depend on the blocks.
    """
    num_nodes = adjacency.num_nodes
    starts = range(0, num_nodes, block)
    total, done = len(starts) * (len(starts) + 1) // 2, 0
    best_score, best_key = torch.empty(0), torch.empty(0, dtype=torch.int64)
    source, target = adjacency.edges
    for row in starts:
        rows = slice(row, min(row + block, num_nodes))
        first, last = torch.searchsorted(source, torch.tensor([rows.start, rows.stop])).tolist()
        own_source, own_target = source[first:last], target[first:last]  # edges are sorted by their first end
        for column in starts[row // block :]:
            columns = slice(column, min(column + block, num_nodes))
            scores = left[rows] @ right[columns].t()
            here = (own_target >= columns.start) & (own_target < columns.stop)
            scores[own_source[here] - rows.start, own_target[here] - columns.start] = -torch.inf
            if row == column:
                scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).tril(), -torch.inf)
            worst = best_score[-1] if best_score.numel() == top else -torch.inf
            i, j = (scores >= worst).logical_and_(scores > -torch.inf).nonzero(as_tuple=True)
            found = scores[i, j]
            if found.numel() > 4 * top:  # the first blocks: no need to sort all of them
                enough = found.topk(top).values[-1]
                i, j, found = i[found >= enough], j[found >= enough], found[found >= enough]
            key = (i + rows.start) * num_nodes + (j + columns.start)
            best_score, best_key = _merge(torch.cat([best_score, found]), torch.cat([best_key, key]), top)
            done += 1
            if on_block is not None:
                on_block(done, total)
    return torch.stack([best_key // num_nodes, best_key % num_nodes]), best_score


def _merge(score: Tensor, key: Tensor, top: int) -> tuple[Tensor, Tensor]:
    order = np.lexsort((key.numpy(), -score.numpy()))[:top]
    return score[order], key[order]
