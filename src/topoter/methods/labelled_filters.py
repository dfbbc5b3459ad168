"""Semi-supervised systems that filter on the spectrum of the graph: GWNN and DFNet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.polynomial.chebyshev import chebinterpolate
from scipy.optimize import minimize
from torch import Tensor, nn
from torch.nn import functional

from topoter.kernels.sparse import SparseOperator
from topoter.methods.base import register
from topoter.methods.labelled import Labelled, Network, Noise
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features


def without_loops(adjacency: Adjacency) -> SparseOperator:
    """D^-1/2 A D^-1/2, with D the degrees of A; a node without edges has a row of zeros."""
    operator = adjacency.summed
    degree = torch.zeros(adjacency.num_nodes).index_add_(0, operator.row, operator.values)
    scale = torch.where(degree > 0, degree.rsqrt(), torch.zeros_like(degree))
    values = operator.values * scale[operator.row] * scale[operator.indices.long()]
    return replace(operator, values=values, _row=None, _torch=None)


def filtered(operator: SparseOperator, h: Tensor, response: Callable[[np.ndarray], np.ndarray]) -> Tensor:
    """g(L) h, for a smooth function g of the eigenvalues of L = I - S, with S = `operator`.

    By Chebyshev polynomials of S: for heat kernels about ten terms are exact to single precision, and no dense matrix
    is ever made.
    """
    coefficients: np.ndarray = chebinterpolate(lambda b: response(1 - b), 24)
    count = 1 + int(np.flatnonzero(np.abs(coefficients) > 1e-8 * np.abs(coefficients).max())[-1])
    before, now = h, operator @ h
    total = float(coefficients[0]) * before
    for coefficient in coefficients[1:count]:
        total = total + float(coefficient) * now
        before, now = now, 2 * (operator @ now) - before
    return total


class WaveletClassifier(Network):
    """Layers psi F phi H W, with psi = exp(-s L) the wavelets of the heat kernel and F a weight for every node.

    Args:
        exact_inverse: whether phi is the inverse exp(s L), as the paper writes. In the authors' code it is
            exp(s exp(-s L)), because the eigenvalues were overwritten before: both sides smooth.
    """

    def __init__(
        self, widths: Sequence[int], adjacency: Adjacency, s: float, exact_inverse: bool, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.wavelet = lambda eigenvalue: np.exp(-s * eigenvalue)
        self.inverse = lambda eigenvalue: np.exp(s * eigenvalue if exact_inverse else s * np.exp(-s * eigenvalue))
        self.weights = nn.ParameterList(torch.empty(a, b) for a, b in pairwise(widths))
        for weight in self.weights:
            nn.init.xavier_uniform_(weight, generator=generator)
        self.filters = nn.ParameterList(torch.ones(adjacency.num_nodes, 1) for _ in self.weights)
        self._operators: dict[int, tuple[Adjacency, SparseOperator]] = {}

    def forward(self, x: Features, adjacency: Adjacency, noise: Noise) -> Tensor:
        operator = self._operator(adjacency)
        h: Features = x
        for number, (weight, factors) in enumerate(zip(self.weights, self.filters)):
            signal = (noise(torch.relu(h)) if number > 0 else h) @ weight  # type: ignore[arg-type]
            h = filtered(operator, factors * filtered(operator, signal, self.inverse), self.wavelet)
        assert isinstance(h, Tensor)
        return h

    def _operator(self, adjacency: Adjacency) -> SparseOperator:
        found = self._operators.get(id(adjacency))
        if found is None:
            self._operators = {id(adjacency): (adjacency, without_loops(adjacency))}  # the last graph is enough
            found = self._operators[id(adjacency)]
        return found[1]

    def decayed(self) -> list[nn.Parameter]:
        return [self.weights[0], self.filters[0]]


@register("gwnn", "node")
@dataclass(kw_only=True)
class GWNN(Labelled):
    """Graph wavelet network (Xu et al., 2019).

    Args:
        scale: s, how far the wavelets reach.
        exact_inverse: see `WaveletClassifier`.
    """

    hidden_channels: int = 16
    num_layers: int = 2
    scale: float = 1.0
    exact_inverse: bool = False

    def network(self, in_channels: int, classes: int, adjacency: Adjacency, generator: torch.Generator) -> Network:
        widths = [in_channels, *[self.hidden_channels] * (self.num_layers - 1), classes]
        return WaveletClassifier(widths, adjacency, self.scale, self.exact_inverse, generator)


@cache
def feedback_coefficients(
    p: int, q: int, cut: float = 0.5, radius: float = 0.9
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """(a, b) of the filter b(m) / (1 + a(m)) that is nearest to a step at 1 - cut, for m in [0, 2].

    b_0 + ... + b_q m^q and a_1 m + ... + a_p m^p; |a_1 + ... + a_p m^(p-1)| stays within the radius, which makes the
    feedback stable. A convex problem of p + q + 1 numbers.
    """
    m = np.linspace(0, 2, 70)
    step = (m >= 1 - cut).astype(float)
    forward = np.vander(m, q + 1, increasing=True)
    feedback = np.vander(m, p, increasing=True)
    design = np.hstack([step[:, None] * feedback * m[:, None], -forward])
    bounds = np.hstack([feedback, np.zeros_like(forward)])

    def within(sign: float) -> dict[str, Any]:
        return {"type": "ineq", "fun": lambda c: radius - sign * (bounds @ c), "jac": lambda c: -sign * bounds}

    found = minimize(
        lambda c: ((step + design @ c) ** 2).sum(),
        np.zeros(design.shape[1]),
        jac=lambda c: 2 * design.T @ (step + design @ c),
        method="SLSQP",
        constraints=[within(1.0), within(-1.0)],
        options={"maxiter": 500},
    )
    return tuple(found.x[:p]), tuple(found.x[p:])


def polynomial(adjacency: Adjacency, h: Tensor, coefficients: Sequence[float]) -> Tensor:
    """c_0 h + c_1 L h + c_2 L^2 h + ..., with L = I - S - I = -S the Laplacian with its spectrum moved to around 0."""
    total, power = coefficients[0] * h, h
    for coefficient in coefficients[1:]:
        power = -(adjacency.normalized @ power)
        total = total + coefficient * power
    return total


@lru_cache(maxsize=1)
def _moments(x: Features) -> tuple[Tensor, Tensor]:
    """Mean and variance of every column [C]."""
    dense = x if isinstance(x, Tensor) else x.as_torch(torch.float32).to_dense()
    variance, mean = torch.var_mean(dense, dim=0, correction=0)
    return mean, variance


class NormalizedFeatures(nn.BatchNorm1d):
    """Batch norm of features that stay as they are, times a weight: only columns are scaled, sparse stays sparse."""

    def times(self, x: Features, weight: Tensor) -> Tensor:
        """BN(X) W."""
        assert self.running_mean is not None
        assert self.running_var is not None
        mean, variance = self.running_mean, self.running_var
        if self.training:
            mean, variance = _moments(x)
            unbiased = x.shape[0] / max(1, x.shape[0] - 1)
            self.running_mean.lerp_(mean, self.momentum or 0.0)
            self.running_var.lerp_(unbiased * variance, self.momentum or 0.0)
        scale = self.weight * torch.rsqrt(variance + self.eps)
        return x @ (scale.unsqueeze(1) * weight) + (self.bias - mean * scale) @ weight


class FeedbackLayer(nn.Module):
    """a(L) BN(H) W + b(L) X V + c: the feedback of the input and of what came out before, and the filtered input.

    The columns of W and V have length one.
    """

    def __init__(self, first_channels: int, hidden_channels: int, out: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first_norm = NormalizedFeatures(first_channels)
        self.hidden_norm = nn.BatchNorm1d(hidden_channels)
        self.feedback = nn.Parameter(torch.empty(first_channels + hidden_channels, out))
        self.forwarded = nn.Parameter(torch.empty(first_channels, out))
        for weight in (self.feedback, self.forwarded):
            nn.init.xavier_normal_(weight, generator=generator)
        self.bias = nn.Parameter(torch.zeros(out))

    def forward(
        self, x: Features, hidden: Sequence[Tensor], adjacency: Adjacency, a: Sequence[float], b: Sequence[float]
    ) -> Tensor:
        feedback, forwarded = (functional.normalize(weight, dim=0) for weight in (self.feedback, self.forwarded))
        h = self.first_norm.times(x, feedback[: x.shape[1]])
        if hidden:
            h = h + self.hidden_norm(torch.cat(list(hidden), dim=1)) @ feedback[x.shape[1] :]
        return polynomial(adjacency, h, [0.0, *a]) + polynomial(adjacency, x @ forwarded, b) + self.bias


class FeedbackClassifier(Network):
    """Feedback-looped layers, each on the input and all outputs before it, and a linear layer on all of them."""

    def __init__(
        self, in_channels: int, classes: int, widths: Sequence[int], p: int, q: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.a, self.b = feedback_coefficients(p, q)
        before = [sum(widths[:number]) for number in range(len(widths) + 1)]
        self.layers = nn.ModuleList(
            FeedbackLayer(in_channels, width, out, generator) for width, out in zip(before, widths)
        )
        self.last = nn.Parameter(torch.empty(in_channels + before[-1], classes))
        nn.init.xavier_normal_(self.last, generator=generator)
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, x: Features, adjacency: Adjacency, noise: Noise) -> Tensor:
        hidden: list[Tensor] = []
        for layer in self.layers:
            hidden.append(noise(torch.relu(layer(x, hidden, adjacency, self.a, self.b))))
        return x @ self.last[: x.shape[1]] + torch.cat(hidden, dim=1) @ self.last[x.shape[1] :] + self.bias

    def decayed(self) -> list[nn.Parameter]:
        return [weight for layer in self.layers for weight in (layer.feedback, layer.forwarded)]  # type: ignore[misc]


@register("dfnet", "node")
@dataclass(kw_only=True)
class DFNet(Labelled):
    """Distributed feedback-looped network (Wijesinghe and Wang, 2019).

    Args:
        hidden_channels: of every layer.
        feedback_order, forward_order: p and q of the filter.
    """

    hidden_channels: Sequence[int] = (8, 16, 32, 64, 128)
    feedback_order: int = 5
    forward_order: int = 3
    feature_dropout: float = 0.0
    dropout: float = 0.9
    learning_rate: float = 2e-3

    def network(self, in_channels: int, classes: int, adjacency: Adjacency, generator: torch.Generator) -> Network:
        orders = self.feedback_order, self.forward_order
        return FeedbackClassifier(in_channels, classes, self.hidden_channels, *orders, generator)
