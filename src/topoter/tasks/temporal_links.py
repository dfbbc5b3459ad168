"""Link prediction over time: learn from A(t-1) -> A(t), then predict A(t) from the representations of A(t-1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from topoter.errors import DataError
from topoter.pretext.transformation import Transition
from topoter.structure.adjacency import Adjacency
from topoter.structure.history import Known
from topoter.tasks.link_split import TEST_SHARE, VAL_SHARE, HeldOut, auc_and_ap, check_splittable

# From what is known before a time and pairs [2, P] to scores [P] of being connected then.
Scores = Callable[[Known, Tensor], Tensor]


@dataclass(frozen=True)
class Prediction:
    """What is known, and pairs of the next graph to be told apart."""

    known: Known
    val: HeldOut | None
    test: HeldOut


@dataclass(frozen=True)
class TemporalSplit:
    """What may be learned from, and what is asked afterwards."""

    transitions: list[Transition]
    predictions: list[Prediction]

    @property
    def num_nodes(self) -> int:
        return self.predictions[0].known.latest.num_nodes


def hold_out_pairs(edges: Sequence[Tensor], num_nodes: int, seed: int) -> TemporalSplit:
    """`held-out-pairs`: of every A(t) from the second on, 5 % and 10 % of the edges with as many disconnected pairs.

    In training a graph has only its other edges, before and after a change, and no pair held out at either time is
    looked at. Then the whole of A(1) to A(t-1) is known, with the other edges of A(t) that training saw, and asked are
    the pairs held out of A(t).
    """
    generator = torch.Generator().manual_seed(seed)
    whole = _graphs(edges, num_nodes)
    seen, hidden = [whole[0]], [torch.empty(0, dtype=torch.int64)]
    predictions = []
    known = None
    for before, after in pairwise(whole):
        check_splittable(after)
        num_val, num_test = int(VAL_SHARE * after.num_edges), int(TEST_SHARE * after.num_edges)
        order = torch.randperm(after.num_edges, generator=generator)
        disconnected = after.pair_space.disconnected(torch.tensor([num_val + num_test]), generator)
        disconnected = disconnected[:, torch.randperm(num_val + num_test, generator=generator)]
        val = HeldOut.of(after.edges[:, order[:num_val]], disconnected[:, :num_val])
        test = HeldOut.of(after.edges[:, order[num_val : num_val + num_test]], disconnected[:, num_val:])
        kept = torch.ones(after.num_edges, dtype=torch.bool)
        kept[order[: num_val + num_test]] = False
        seen.append(after.keep(kept))
        known = Known(before, known, seen[-1])
        predictions.append(Prediction(known, val, test))
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
    known = None
    for graph in whole[:-1]:
        known = Known(graph, known)
    assert known is not None
    return TemporalSplit(transitions, [Prediction(known, None, HeldOut.of(last.edges, disconnected))])


PROTOCOLS: dict[str, Callable[[Sequence[Tensor], int, int], TemporalSplit]] = {
    "held-out-pairs": hold_out_pairs,
    "next-snapshot": hold_out_last,
}


def _graphs(edges: Sequence[Tensor], num_nodes: int) -> list[Adjacency]:
    if len(edges) < 2:
        raise DataError(f"A temporal graph needs two snapshots at least: there is only {len(edges)}.")
    return [Adjacency.from_edge_index(edge_index, num_nodes)[0] for edge_index in edges]


def mean_scores(scores: Scores, split: TemporalSplit, part: str) -> tuple[float, float]:
    """AUC and AP of the `val` or `test` pairs in percent, mean over the predicted snapshots."""
    found = []
    for prediction in split.predictions:
        held_out: HeldOut = getattr(prediction, part)
        found.append(auc_and_ap(held_out, scores(prediction.known, held_out.pairs)))
    auc, ap = (sum(values) / len(found) for values in zip(*found))
    return auc, ap
