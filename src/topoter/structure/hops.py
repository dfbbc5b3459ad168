"""Features seen from several hops away: S^k X, with S = D^-1/2 (A + I) D^-1/2, and their leading directions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from topoter.kernels.sparse import SparseOperator, multiply_transposed
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features

# Below this share of non-zeros a non-negative table is read as a bag of words: what counts is which ones occur.
BAG_OF_WORDS = 0.3
# With fewer columns than this the length of a row says too much to be scaled away; outliers are cut instead.
_UNIT_ROWS = 16
_OUTLIER = 5.0
_OVERSAMPLING = 64
_POWER_ITERATIONS = 4


@dataclass(frozen=True)
class Preparation:
    """How a table becomes rows of about length one; fitted once, it treats the nodes of another graph alike.

    Sparse tables without negative numbers are read by presence: 1 where a word occurs, however often. Others get
    columns of mean 0 and deviation 1; a column that never changes becomes 0.

    Args:
        mean, deviation: of every column, [C]; empty where the table is read by presence.
    """

    mean: Tensor
    deviation: Tensor

    @classmethod
    def fit(cls, x: Features) -> Preparation:
        values = x.values if isinstance(x, SparseOperator) else x
        entries = x.shape[0] * x.shape[1]
        filled = int((values != 0).sum())
        if 0 < filled < BAG_OF_WORDS * entries and float(values.min()) >= 0:
            nothing = torch.zeros(0, device=values.device)
            return cls(nothing, nothing)
        dense = as_dense(x)
        deviation, mean = torch.std_mean(dense, 0, correction=0)
        least = 1e-6 * dense.abs().amax(0).clamp(min=1e-30)
        return cls(mean, torch.where(deviation > least, deviation, torch.inf))

    @property
    def by_presence(self) -> bool:
        return self.mean.numel() == 0

    def __call__(self, x: Features) -> Features:
        """The table in rows of length one, or of zeros; sparse where it was."""
        if not self.by_presence:
            standard = (as_dense(x) - self.mean) / self.deviation
            if standard.size(1) >= _UNIT_ROWS:
                return torch.nn.functional.normalize(standard, dim=1)
            return standard.clamp(-_OUTLIER, _OUTLIER) / math.sqrt(max(standard.size(1), 1))
        if not isinstance(x, SparseOperator):
            return torch.nn.functional.normalize((x != 0).float(), dim=1)
        scale = x.indptr.diff().clamp(min=1).float().rsqrt()
        transposed = x.transposed
        assert transposed is not None
        by_column = SparseOperator(
            transposed.indptr, transposed.indices, scale[transposed.indices.long()], transposed.num_columns
        )
        return SparseOperator(x.indptr, x.indices, scale[x.row], x.num_columns, by_column)


def as_dense(x: Features) -> Tensor:
    return x.as_torch(torch.float32).to_dense() if isinstance(x, SparseOperator) else x


def propagate(adjacency: Adjacency, h: Tensor, hops: int) -> Tensor:
    """S^k h."""
    for _ in range(hops):
        h = adjacency.normalized @ h
    return h


def leading_directions(x: Features, adjacency: Adjacency, hops: int, rank: int, generator: torch.Generator) -> Tensor:
    """The leading right singular vectors of S^k X, [C, rank or fewer], by randomised subspace iteration.

    Directions that hold nothing are left out, so that the result is as wide as the table has independent columns.
    """
    shape = x.shape[0], x.shape[1]
    return directions_by_passes(lambda: [(x, adjacency)], shape, {hops: rank}, generator, adjacency.device)[hops]


@torch.no_grad()
def directions_by_passes(
    parts: Callable[[], Iterable[tuple[Features, Adjacency]]],
    shape: tuple[int, int],
    ranks: Mapping[int, int],
    generator: torch.Generator,
    device: torch.device,
    total: Callable[[Tensor], Tensor] = lambda tensor: tensor,
) -> dict[int, Tensor]:
    """The same for several numbers of hops, in passes over a graph that comes in parts.

    Args:
        parts: called for every pass.
        shape: of X, [N, C].
        ranks: by the number of hops.
        total: the sum of a tensor over all processes, where several share the parts.
    """
    num_columns = shape[1]
    wanted = {hops: min(rank, *shape) for hops, rank in ranks.items()}
    found = {hops: torch.zeros(num_columns, 0, device=device) for hops in ranks}
    bases = {hops: torch.eye(num_columns, device=device) for hops in ranks if wanted[hops]}
    drawn = [hops for hops in bases if num_columns > wanted[hops] + _OVERSAMPLING]
    for hops in drawn:
        bases[hops] = torch.randn(num_columns, wanted[hops] + _OVERSAMPLING, generator=generator).to(device)
    for _ in range(_POWER_ITERATIONS if drawn else 0):
        sums = {hops: torch.zeros_like(bases[hops]) for hops in drawn}
        for x, adjacency in parts():
            for hops in drawn:
                h = propagate(adjacency, x @ bases[hops], 2 * hops)  # S is symmetric: S^k' S^k
                sums[hops] += multiply_transposed(x, h) if isinstance(x, SparseOperator) else x.t() @ h
        for hops in drawn:
            bases[hops], _ = torch.linalg.qr(total(sums[hops]))
    grams = {hops: torch.zeros(basis.size(1), basis.size(1), device=device) for hops, basis in bases.items()}
    for x, adjacency in parts():
        for hops, basis in bases.items():
            h = propagate(adjacency, x @ basis, hops)
            grams[hops] += h.t() @ h
    for hops, basis in bases.items():
        values, vectors = torch.linalg.eigh(total(grams[hops]).double())
        values, vectors = values.flip(0)[: wanted[hops]], vectors.flip(1)[:, : wanted[hops]]
        kept = values > 1e-7 * values.max().clamp(min=1e-30)
        found[hops] = with_fixed_signs(basis @ vectors[:, kept].float())
    return found


def with_fixed_signs(vectors: Tensor) -> Tensor:
    """Each column turned so that its largest entry is positive: a singular vector has no sign of its own."""
    if not vectors.numel():
        return vectors
    largest = vectors.gather(0, vectors.abs().argmax(0, keepdim=True))
    return vectors * torch.where(largest < 0, -1.0, 1.0)
