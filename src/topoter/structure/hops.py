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
_POWER_ITERATIONS = 2
_FEW_COLUMNS = 800  # fewer are decomposed as they are
_SHIFT = 1e-13
_DEPENDENT = 1e-2  # length of what a column of length one adds to the others
_COLUMNS = 128  # propagated together, where memory counts
_ROWS = 1 << 14  # turned into double precision together


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
    if not isinstance(x, SparseOperator):
        return x
    dense = torch.zeros(x.shape, device=x.values.device)
    place = torch.repeat_interleave(x.indptr.diff()).mul_(x.num_columns).add_(x.indices)
    dense.view(-1)[place] = x.values
    return dense


def propagate(adjacency: Adjacency, h: Tensor, hops: int) -> Tensor:
    """S^k h."""
    for _ in range(hops):
        h = adjacency.normalized @ h
    return h


def propagate_in_place(adjacency: Adjacency, h: Tensor, hops: int) -> Tensor:
    """The same where `h` was, a few columns at a time: no second table of its size is needed."""
    for columns in h.split(_COLUMNS, dim=1) if hops else ():
        columns.copy_(propagate(adjacency, columns.contiguous(), hops))
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
    few = num_columns <= _FEW_COLUMNS  # all are looked at
    drawn = [hops for hops in ranks if wanted[hops] and num_columns > wanted[hops] + _OVERSAMPLING and not few]
    exact = sorted(hops for hops in ranks if wanted[hops] and hops not in drawn)
    bases = {
        hops: torch.randn(num_columns, wanted[hops] + _OVERSAMPLING, generator=generator).to(device) for hops in drawn
    }
    for _ in range(_POWER_ITERATIONS if drawn else 0):
        sums = {hops: torch.zeros_like(bases[hops]) for hops in drawn}
        for x, adjacency in parts():
            for hops in drawn:
                h = propagate(adjacency, x @ bases[hops], 2 * hops)  # S is symmetric: S^k' S^k
                sums[hops] += multiply_transposed(x, h) if isinstance(x, SparseOperator) else x.t() @ h
        bases = {hops: balanced(total(sums[hops])) for hops in drawn}
    sizes = {hops: bases[hops].size(1) if hops in bases else num_columns for hops in [*drawn, *exact]}
    grams = {hops: torch.zeros(size, size, device=device) for hops, size in sizes.items()}
    for x, adjacency in parts():
        for hops in drawn:
            h = propagate(adjacency, x @ bases[hops], hops)
            grams[hops] += h.t() @ h
        h, so_far = as_dense(x) if exact else torch.zeros(0), 0
        for hops in exact:
            if hops and h is x:
                h = x.clone()
            h, so_far = propagate_in_place(adjacency, h, hops - so_far), hops
            grams[hops] += h.t() @ h
    for hops in sizes:
        found[hops] = _leading(total(grams[hops]), bases.get(hops), wanted[hops])
    return found


def _leading(gram: Tensor, basis: Tensor | None, count: int) -> Tensor:
    """The leading right singular vectors of H, [C, count], from B'H'H B and the balanced basis B; None is all of it."""
    inverse = None if basis is None else whitening(basis)
    values, vectors = torch.linalg.eigh((gram if inverse is None else inverse @ gram @ inverse.t()).double())
    values, vectors = values.flip(0)[:count], vectors.flip(1)[:, :count]
    vectors = vectors[:, values > 1e-7 * values.max().clamp(min=1e-30)]
    if basis is None or inverse is None:
        return with_fixed_signs(vectors.float())
    return with_fixed_signs(basis @ (inverse.t() @ vectors.float()))


def balanced(basis: Tensor) -> Tensor:
    """Columns of the same span that are about orthonormal, which is enough between two steps of an iteration.

    By Cholesky of B'B, at a third of what QR of a tall block costs.
    """
    gram = _inner_products(basis)
    gram.diagonal().add_(_SHIFT * gram.diagonal().sum() + 1e-30)  # columns may depend on each other
    factor = torch.linalg.cholesky(gram).float()
    return torch.linalg.solve_triangular(factor.t(), basis, upper=True, left=False)


def whitening(basis: Tensor) -> Tensor:
    """L^-1, such that B L^-1' is orthonormal, for a balanced B; without columns that depend on the others."""
    gram = basis.t() @ basis
    factor, failed = torch.linalg.cholesky_ex(gram)
    if not failed and float(factor.diagonal().min()) > _DEPENDENT:
        return torch.linalg.solve_triangular(factor, torch.eye(gram.size(0)).to(gram), upper=False)
    values, vectors = torch.linalg.eigh(gram.double())
    kept = values > _DEPENDENT**2 * values.max()
    return (vectors[:, kept] * values[kept].rsqrt()).t().float()


def _inner_products(basis: Tensor) -> Tensor:
    """B'B with all its digits."""
    gram = torch.zeros(basis.size(1), basis.size(1), dtype=torch.float64, device=basis.device)
    for rows in basis.split(_ROWS):
        rows = rows.double()
        gram.addmm_(rows.t(), rows)
    return gram


def with_fixed_signs(vectors: Tensor) -> Tensor:
    """Each column turned so that its largest entry is positive: a singular vector has no sign of its own."""
    if not vectors.numel():
        return vectors
    largest = vectors.gather(0, vectors.abs().argmax(0, keepdim=True))
    return vectors * torch.where(largest < 0, -1.0, 1.0)
