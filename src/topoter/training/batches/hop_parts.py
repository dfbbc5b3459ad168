"""The encoder `hops` from parts of a graph: what it takes from the data are sums over nodes, and parts add up to them.

The result is that of the whole graph without the edges between parts. Nodes' places in the graph come from all edges
at once, and how far likely neighbours draw a node from a sample of all nodes, in graphs up to as many edges as METIS
takes; beyond, the embedding goes without both. Several processes add up their parts.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from topoter.encoders import Hops
from topoter.errors import TopoterError
from topoter.kernels.sparse import SparseOperator
from topoter.pretext.hidden_edges import MOST_PAIRS, HiddenEdges, mean_auc
from topoter.pretext.moments import EndSums, Moments, view
from topoter.pretext.transformation import Rate
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.structure.hops import BAG_OF_WORDS, Preparation, as_dense, directions_by_passes
from topoter.structure.likely_graph import MOST_TOGETHER
from topoter.structure.partition import METIS_ENTRIES
from topoter.training.batches.moments import (
    DRAWS,
    ENDS,
    HIDDEN_AUC,
    HIDDEN_DRAWS,
    HIDDEN_SHARE,
    JUDGED_EVERY,
    agreement_here,
)
from topoter.training.batches.subgraphs import SubgraphBatches
from topoter.training.callbacks import Validate
from topoter.training.distributed import Group

_logger = logging.getLogger("topoter")


@dataclass
class RowMoments:
    """Number, mean and centred second moments of rows that come in parts (Chan, Golub and LeVeque, 1979)."""

    count: float = 0
    mean: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.float64))
    moments: Tensor = field(default_factory=lambda: torch.zeros(0, 0, dtype=torch.float64))

    def add(self, rows: Tensor) -> None:
        mean = rows.mean(0)
        centred = rows - mean
        self._merge(len(rows), mean.double().cpu(), (centred.t() @ centred).double().cpu())

    def over(self, group: Group) -> RowMoments:
        """Those of all processes together."""
        if group.size == 1:
            return self
        group.wait()
        found = RowMoments()
        counts = group.gather(torch.tensor([self.count], dtype=torch.float64))
        for count, mean, moments in zip(counts, group.gather(self.mean), group.gather(self.moments)):
            found._merge(float(count), mean, moments)
        return found

    def _merge(self, count: float, mean: Tensor, moments: Tensor) -> None:
        if not self.count:
            self.count, self.mean, self.moments = count, mean, moments
            return
        total, apart = self.count + count, mean - self.mean
        self.moments = self.moments + moments + torch.outer(apart, apart) * (self.count * count / total)
        self.mean = self.mean + apart * (count / total)
        self.count = total


def adapt_to_parts(encoder: Hops, generator: torch.Generator, parts: SubgraphBatches) -> None:
    """What `Hops.adapt` does, in passes over the parts."""

    def prepared() -> Iterator[tuple[Features, Adjacency]]:
        for _, x, adjacency in parts.numbered():
            yield encoder.prepared(x), adjacency

    def total(tensor: Tensor) -> Tensor:
        parts.group.wait()
        return parts.group.total_of(tensor)

    graph = parts.graph
    whole = graph.adjacency().to(parts.device) if len(graph.indices) <= METIS_ENTRIES else None
    if whole is None and (encoder.structure != "none" or encoder.completion):
        encoder.structure, encoder.completion = "none", 0
        _logger.info(
            "The graph is too large for places of nodes in it and for likely neighbours: its embedding holds what "
            "features tell."
        )
    shape = graph.num_nodes, graph.num_features
    with torch.no_grad():
        encoder.use(_preparation(parts))
        found = directions_by_passes(prepared, shape, encoder.ranks, generator, torch.device(parts.device), total)
        encoder.start(found, whole, generator)


def moments_of_parts(
    encoder: Hops, parts: SubgraphBatches, rate: Rate, generator: torch.Generator
) -> tuple[list[tuple[Features, Moments]], Validate]:
    """What `moment_batches` does, in one pass over the parts."""
    group = parts.group
    hidden: list[list[HiddenEdges]] = [[] for _ in range(HIDDEN_DRAWS)]
    sizes = []
    both = [RowMoments() for _ in range(DRAWS)]
    width = encoder.far.size(1)
    ends, ends_here = EndSums(width), EndSums(encoder.hop0.size(1))
    most = -(-MOST_PAIRS // parts.count)
    with torch.no_grad():
        for _, x, adjacency in parts.numbered():
            if not adjacency.num_edges:
                continue
            ends_here.merge(agreement_here(encoder, x, adjacency, -(-ENDS // parts.count)))
            signal = encoder.signal(x)
            sizes.append(len(signal))
            for draw in range(DRAWS):
                seen = []
                for _ in range(2):
                    h, gone = view(signal, adjacency, encoder.order, rate, generator)
                    ends.add(h, gone)
                    seen.append(h)
                both[draw].add(torch.cat(seen, dim=1))
            for drawn in hidden:
                pairs = HiddenEdges.draw(signal, adjacency, encoder.order, HIDDEN_SHARE, rate, generator)
                drawn.append(pairs.some(most))
    if not hidden[0]:
        raise TopoterError("No part has an edge: give larger parts (--batch-nodes).")
    group.wait()
    for sums in (ends, ends_here):
        sums.total(group.total_of)
    within, between = torch.zeros(2, width, width, dtype=torch.float64)
    for of_parts in both:
        found = of_parts.over(group)
        of_two = found.moments / found.count  # both graphs of a draw side by side
        within += (of_two[:width, :width] + of_two[width:, width:]) / (2 * DRAWS)
        cross = of_two[:width, width:]
        between += (cross + cross.t()) / (2 * DRAWS)
    agreement = ends.agreement
    device = encoder.far.device
    encoder.agreement, encoder.agreement_here = torch.tensor(agreement, device=device), ends_here.agreement
    judged = [HiddenEdges.joined(of_parts, _mean(of_parts, sizes, group), generator) for of_parts in hidden]

    def auc() -> float:
        mine = mean_auc(judged, encoder.weight)
        return group.total(mine)[0] / group.size

    x = torch.zeros(0, 0)  # a batch has features, but moments are all that is looked at
    averaged = Moments(within.float().to(device), between.float().to(device), agreement)
    return [(x, averaged)], Validate(HIDDEN_AUC, auc, JUDGED_EVERY)


def _mean(of_parts: Sequence[HiddenEdges], sizes: Sequence[int], group: Group) -> Tensor:
    """Of the signals of all nodes, from those of parts of so many nodes."""
    summed = torch.stack([size * one.mean.double() for size, one in zip(sizes, of_parts)]).sum(0)
    return (group.total_of(summed) / group.total(sum(sizes))[0]).to(of_parts[0].mean)


def finish_on_parts(encoder: Hops, parts: SubgraphBatches) -> None:
    """What `Hops.finish` does, in one pass over the parts."""
    encoder.leave_out_hop1()
    found, sampled = RowMoments(), _Sample(parts.graph.num_nodes) if encoder.completion else None
    with torch.no_grad():
        for nodes, x, adjacency in parts.numbered():
            place = encoder.place[torch.from_numpy(nodes)] if encoder.place.size(1) else encoder.elsewhere(len(nodes))
            rows = encoder.joined(encoder.prepared(x), adjacency, place)
            found.add(rows)
            if sampled:
                sampled.add(nodes, rows)
        found = found.over(parts.group)
        encoder.turn(found.mean, found.moments, found.count, encoder.widths(place))
        if sampled:
            encoder.look_for_likely(encoder.turned(sampled.over(parts.group)), parts.graph.num_nodes)


class _Sample:
    """The rows of some nodes drawn from all, as they come in parts."""

    def __init__(self, num_nodes: int) -> None:
        drawn = torch.randperm(num_nodes, generator=torch.Generator().manual_seed(0))[:MOST_TOGETHER]
        self._place = np.full(num_nodes, -1)
        self._place[drawn.numpy()] = np.arange(len(drawn))
        self._count, self._rows = len(drawn), torch.zeros(0, 0)

    def add(self, nodes: np.ndarray, rows: Tensor) -> None:
        if not len(self._rows):
            self._rows = rows.new_zeros(self._count, rows.size(1))
        place = torch.from_numpy(self._place[nodes]).to(rows.device)
        self._rows[place[place >= 0]] = rows[place >= 0]

    def over(self, group: Group) -> Tensor:
        """Those of all processes: each has added some, and the rest are zeros."""
        group.wait()
        return group.total_of(self._rows)


def _preparation(parts: SubgraphBatches) -> Preparation:
    """What `Preparation.fit` does."""
    columns = parts.graph.num_features
    filled = entries = count = 0.0
    least, mean, squares, largest = np.inf, *torch.zeros(3, columns, dtype=torch.float64)
    for _, x, _ in parts.numbered():
        values = x.values if isinstance(x, SparseOperator) else x
        filled, entries = filled + int((values != 0).sum()), entries + x.shape[0] * x.shape[1]
        least = min(least, float(values.min()) if values.numel() else 0.0)
        variance, part_mean = (found.double().cpu() for found in torch.var_mean(as_dense(x), 0, correction=0))
        rows, apart = x.shape[0], part_mean - mean
        squares += variance * rows + apart.square() * (count * rows / (count + rows))
        mean += apart * (rows / (count + rows))
        count += rows
        largest = torch.maximum(largest, as_dense(x).abs().amax(0).double().cpu())
    group = parts.group
    if group.size > 1:
        group.wait()
        filled, entries, total = group.total(filled, entries, count)
        least = -float(torch.stack(group.gather(torch.tensor([-least], dtype=torch.float64))).max())
        largest = torch.stack(group.gather(largest)).amax(0)
        joint = group.total_of(mean * count) / total
        squares = group.total_of(squares + count * (mean - joint).square())
        mean, count = joint, total
    if 0 < filled < BAG_OF_WORDS * entries and least >= 0:
        nothing = torch.zeros(0, device=parts.device)
        return Preparation(nothing, nothing)
    deviation = (squares / count).sqrt()
    deviation = torch.where(deviation > 1e-6 * largest.clamp(min=1e-30), deviation, torch.inf)
    return Preparation(mean.float().to(parts.device), deviation.float().to(parts.device))
