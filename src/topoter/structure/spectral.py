"""Where nodes lie in the graph, without features: eigenvectors of the adjacency, and what each says of hidden edges."""

from __future__ import annotations

import math

import numpy as np
import torch
from sklearn.isotonic import IsotonicRegression
from torch import Tensor

from topoter.kernels.sparse import SparseOperator
from topoter.structure.adjacency import Adjacency
from topoter.structure.hops import balanced, whitening, with_fixed_signs
from topoter.structure.places import HIDDEN_DRAWS, HIDDEN_SHARE, LEAST_EDGES, Places

_PRODUCTS = 16  # after the first two
_MOST_GROWTH = math.acosh(1e5)  # between two looks: more would leave nothing of the others in single precision
_OVERSAMPLING = 16
_NODES_PER_VECTOR = 8  # fewer could be fitted by any vectors
_LEAST_REFOUND = 0.2  # of what places hold; another graph's vectors tell less


def regularized(adjacency: Adjacency) -> tuple[SparseOperator, Tensor]:
    """(D + d)^-1/2 A (D + d)^-1/2 with d the mean degree, and its scale (D + d)^-1/2 [N].

    The mean degree keeps tiny components from owning the leading eigenvectors.
    """
    plain = adjacency.summed
    ones = torch.ones(adjacency.num_nodes, 1, device=adjacency.device)
    degree = (plain @ ones).view(-1)
    scale = (degree + degree.mean().clamp(min=1e-9)).rsqrt()
    values = plain.values * scale[plain.row] * scale[plain.indices.long()]
    return SparseOperator(plain.indptr, plain.indices, values, plain.num_columns), scale


def eigenvectors(operator: SparseOperator, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """The eigenvalues largest by magnitude, in that order, and their vectors [N, count]; signs are fixed.

    Block iteration: a few products with many columns at once, which is what our kernel is good at, up to millions of
    nodes. Vectors that stand out are exact to many digits; those in the bulk, which say nothing, are not.
    """
    size = operator.shape[0]
    block = min(count + _OVERSAMPLING, size)
    basis = torch.randn(size, block, generator=generator).to(operator.values.device)
    basis = balanced(operator @ (operator @ basis))  # squared: both ends of the spectrum grow alike
    left = _PRODUCTS
    while left:
        found = _ritz(operator, basis)[0].abs()
        least, largest = max(float(found.min()), 0.1 * float(found.max()), 1e-30), max(float(found.max()), 1e-30)
        degree = min(left, (_PRODUCTS + 1) // 2, max(int(_MOST_GROWTH / math.acosh(max(largest / least, 1.01))), 2))
        basis = balanced(_grown(operator, basis, least, degree))
        left -= degree
    values, vectors = _ritz(operator, basis)
    order = values.abs().argsort(descending=True)[:count]
    return values[order].cpu(), with_fixed_signs(basis @ vectors[:, order]).cpu()


def _ritz(operator: SparseOperator, basis: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues of the operator within the span of the basis, and the combinations that give their vectors."""
    inverse = whitening(basis)
    values, vectors = torch.linalg.eigh((inverse @ (basis.t() @ (operator @ basis)) @ inverse.t()).double())
    return values, inverse.t() @ vectors.float()


def _grown(operator: SparseOperator, basis: Tensor, bound: float, degree: int) -> Tensor:
    """T(A / bound) times the basis, with T the polynomial of Chebyshev of that degree.

    Below the bound, where the bulk of the eigenvalues lies, it stays within 1; beyond it no polynomial grows faster.
    """
    before, basis = basis, (operator @ basis).div_(bound)
    for _ in range(degree - 1):
        before, basis = basis, (operator @ basis).mul_(2 / bound).sub_(before)
    return basis


def weights_by_hidden_edges(adjacency: Adjacency, values: Tensor, generator: torch.Generator) -> Tensor:
    """For every eigenvector, the eigenvalue that edges it has not seen give it: 0 where it only fits noise, [k].

    A fifth of the edges is hidden, the vectors are computed without them, and v'Sv is measured on the hidden ones
    alone. It falls with the rank, apart for positive and negative eigenvalues; two draws are averaged.
    """
    seen: dict[int, tuple[list[np.ndarray], list[np.ndarray]]] = {1: ([], []), -1: ([], [])}
    for _ in range(HIDDEN_DRAWS):
        hidden = torch.rand(adjacency.num_edges, generator=generator) < HIDDEN_SHARE
        operator, scale = regularized(adjacency.keep(~hidden.to(adjacency.device)))
        found, vectors = eigenvectors(operator, values.numel(), generator)
        scaled = vectors * scale.cpu().unsqueeze(1)
        i, j = adjacency.edges.cpu()[:, hidden]
        measured = 2 * (scaled[i] * scaled[j]).sum(0) * (1 - HIDDEN_SHARE) / HIDDEN_SHARE
        for sign, (ranks, points) in seen.items():
            of_sign = (found * sign > 0).numpy()
            ranks.append(np.arange(of_sign.sum()))
            points.append(measured.numpy()[of_sign] * sign)
    weights = np.zeros(values.numel())
    for sign, (ranks, points) in seen.items():
        of_sign = (values * sign > 0).numpy()
        if of_sign.any() and any(len(part) for part in ranks):
            falling = IsotonicRegression(increasing=False, out_of_bounds="clip")
            falling.fit(np.concatenate(ranks), np.concatenate(points))
            weights[of_sign] = falling.predict(np.arange(of_sign.sum()))
    return torch.from_numpy(weights).clamp(min=0)


@torch.no_grad()
def spectral_places(adjacency: Adjacency, count: int, generator: torch.Generator) -> Places:
    """Eigenvectors times the root of their weight (`weights_by_hidden_edges`); those that only fit noise are left out.

    The first is the degree, more or less: it tells nodes apart, but not who is with whom, and is only spread.
    """
    if adjacency.num_edges < LEAST_EDGES:
        return Places.none(adjacency.num_nodes)
    values, vectors = eigenvectors(regularized(adjacency)[0], count, generator)
    weights = weights_by_hidden_edges(adjacency, values, generator)
    kept = weights > 1e-3
    kept[0] = True
    vectors, weights = vectors[:, kept], weights[kept]
    others = weights[1:]
    strength = float((others**2).sum() / others.sum()) if others.numel() else 0.0
    of_nodes = (vectors * weights.sqrt()).float()
    return Places(of_nodes[:, 1:], of_nodes * weights.sqrt().float(), strength)


@torch.no_grad()
def refound(place: Tensor, rows: Tensor, adjacency: Adjacency, count: int) -> Tensor | None:
    """The places of nodes in a graph that has changed since, as far as its own eigenvectors tell them, [N, k].

    The old places of the nodes that both graphs have are regressed on the eigenvectors of the new one. So a new node
    has a place among them, and an edge that is gone, or hidden for a test, no longer tells anything.

    Args:
        place: of the nodes of the old graph.
        rows: for every node of the new graph its row there, or -1.
        count: of eigenvectors.

    Returns None where the two graphs have little to do with each other.
    """
    shared = (rows >= 0).nonzero().view(-1)
    count = min(count, shared.numel() // _NODES_PER_VECTOR)
    if not count or adjacency.num_edges < LEAST_EDGES:
        return None
    _, vectors = eigenvectors(regularized(adjacency)[0], count, torch.Generator().manual_seed(0))
    old, seen = place[rows[shared]].double(), vectors.to(place.device)[shared].double()
    turn = torch.linalg.lstsq(
        torch.cat([seen, 1e-2 * _diagonal(seen)]), torch.cat([old, old.new_zeros(count, old.size(1))])
    )
    told = (seen @ turn.solution).square().sum() / old.square().sum().clamp(min=1e-30)
    by_chance = count / shared.numel()
    if told < by_chance + _LEAST_REFOUND * (1 - by_chance):
        return None
    return (vectors.to(place.device).double() @ turn.solution).float()


def _diagonal(vectors: Tensor) -> Tensor:
    """The root of the mean square of a column, on a diagonal: it keeps a regression on them from growing wild."""
    return vectors.square().sum(0).mean().sqrt() * torch.eye(
        vectors.size(1), dtype=vectors.dtype, device=vectors.device
    )
