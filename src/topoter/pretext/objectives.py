"""The terms of the loss. A model is an encoder and a weighted sum of these.

    loss, metrics = objective(h, h_t, transformation)

`h` and `h_t` are the representations [N, F] of the graph before and after; `transformation` holds both graphs, the
pairs looked at and what happened to each. Metrics are named numbers: an epoch shows their mean over its batches,
weighted by pairs, or for a `Tally` what its summed counts say. Any callable of this form will do; a term with weights
of its own is an `nn.Module`. A named term is a subclass of `Objective` in `OBJECTIVES`.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from topoter.errors import UsageError, invalid_parameter, unknown_name, whole_number
from topoter.pretext.decoders import TransformationDecoder, entropy_of_types, loss_of_types
from topoter.pretext.moments import DirectionMoments, Moments
from topoter.pretext.transformation import EdgeChange, Rate, TopologyTransformation
from topoter.weights import linear_layers


@dataclass(frozen=True)
class Tally:
    """A metric that is read off counts, which add up over the batches of an epoch."""

    counts: Tensor
    read: Callable[[Tensor], float | None]

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.counts + other.counts, self.read)

    @property
    def value(self) -> float | None:
        return self.read(self.counts)


Metrics = Mapping[str, "float | Tensor | Tally"]
Loss = tuple[Tensor, Metrics]


class Objective(nn.Module):
    """A term that topoter knows by name.

    Its constructor takes F, the width of the representations, and those of TopoTER's parameters that it names.
    """

    def initialize(self, generator: torch.Generator) -> None:
        """Draw all weights anew."""

    def forward(self, h: Tensor, h_t: Tensor, transformation: TopologyTransformation) -> Loss:
        raise NotImplementedError


class TypesFromChange(Objective):
    """The paper's term: what happened to a pair, from the change dH = H~ - H of its two nodes.

    Args:
        decoder_layers, scale_edges: of the `TransformationDecoder`.
        prior_bias: start the decoder at the shares of the types at this `perturbation_rate`.
    """

    def __init__(
        self,
        channels: int,
        decoder_layers: int = 1,
        scale_edges: bool = False,
        prior_bias: bool = False,
        perturbation_rate: Rate = 0.7,
    ) -> None:
        super().__init__()
        layers = whole_number("decoder_layers", decoder_layers, 1)
        self.decoder = TransformationDecoder(channels, layers, scale_edges=scale_edges)
        self._prior_rate = perturbation_rate if prior_bias else None

    def initialize(self, generator: torch.Generator) -> None:
        self.decoder.initialize(generator)
        if self._prior_rate is not None:
            self.decoder.start_at_prior(self._prior_rate)

    def forward(self, h: Tensor, h_t: Tensor, transformation: TopologyTransformation) -> Loss:
        return self.of_change(h_t - h, transformation)

    def of_change(self, delta_h: Tensor, transformation: TopologyTransformation) -> Loss:
        """The same from dH alone, which some encoders have a kernel for."""
        loss, confusion = self.decoder.loss(delta_h, transformation.pairs, transformation.pair_type)
        return loss, accuracy_by_type(confusion)


class TypesFromPair(Objective):
    """What happened to a pair, from where its two nodes are afterwards: four logits of an MLP on h~_i * h~_j.

    To tell a deleted edge from a pair that never was one, and an added edge from a true one, is link prediction and
    denoising at once. The product is symmetric in i and j.
    """

    hidden_channels = 64

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = linear_layers([channels, self.hidden_channels, len(EdgeChange)])

    def initialize(self, generator: torch.Generator) -> None:
        for layer in self.layers:
            nn.init.xavier_uniform_(layer.weight, generator=generator)
            nn.init.zeros_(layer.bias)

    def logits(self, first: Tensor, second: Tensor) -> Tensor:
        """Of the four types, [P, 4], from both ends of every pair."""
        found: Tensor = self.layers[1](torch.relu(self.layers[0](first * second)))
        return found

    def forward(self, h: Tensor, h_t: Tensor, transformation: TopologyTransformation) -> Loss:
        loss, confusion = loss_of_types(
            self.logits, h_t, transformation.pairs, transformation.pair_type, [*self.parameters()]
        )
        return loss, {f"pair_{name}": tally for name, tally in accuracy_by_type(confusion).items()}


class MutualInformation(Objective):
    """I(H; H~), bounded as in canonical correlation analysis: equal columns agree, different ones are uncorrelated.

    No negatives; the cost is N F^2. Columns are standardised, so only directions and not scales are rewarded.
    """

    decorrelation = 0.75  # weight of the mean squared correlation of different columns

    def __init__(self, channels: int) -> None:
        super().__init__()

    def forward(self, h: Tensor, h_t: Tensor, transformation: TopologyTransformation) -> Loss:
        a, b = _standardized(h), _standardized(h_t)
        num_nodes, channels = a.shape
        agreement = (a * b).sum() / (num_nodes * channels)
        apart = (_apart((z.t() @ z) / num_nodes) for z in (a, b))
        return self._of(agreement, torch.stack([*apart]).mean())

    def of_moments(self, weight: Tensor, moments: Moments) -> Loss:
        """The same for H = B W, from the second moments of B on transformed graphs: no H, and no graph."""
        loss, agreement = _MutualInformationOfMoments.apply(weight, moments, self.decorrelation)
        return loss, {"agreement": agreement}

    def _of(self, agreement: Tensor, apart: Tensor) -> Loss:
        return 1 - agreement + self.decorrelation * apart, {"agreement": agreement.detach()}


class _MutualInformationOfMoments(torch.autograd.Function):
    """The loss, and its gradient along with it: four products of matrices, where derived step by step they are nine.

    With the columns u = w (w'Mw)^-1/2, M u and C u are M w and C w with the same factor, and the gradient of u needs
    no other product than M u by the correlations.
    """

    @staticmethod
    def forward(ctx, weight: Tensor, moments: Moments, decorrelation: float) -> tuple[Tensor, Tensor]:  # type: ignore[no-untyped-def]
        channels = max(weight.size(1), 1)
        seen, met = moments.within @ weight, moments.between @ weight  # M w, C w
        spread = (weight * seen).sum(0)
        scale = spread.clamp(min=1e-12).rsqrt()
        unit, seen, met = weight * scale, seen.mul_(scale), met.mul_(scale)
        agreement = (unit * met).sum() / channels
        ctx.mark_non_differentiable(agreement)
        apart = (unit.t() @ seen).fill_diagonal_(0)
        # The derivative by u, of both terms.
        slope = torch.addmm(met, seen, apart, beta=-2 / channels, alpha=4 * decorrelation / channels**2)
        along = (unit * slope).sum(0) * (spread > 1e-12)  # a longer w is the same u
        ctx.save_for_backward(slope.sub_(seen.mul_(along)).mul_(scale))
        return 1 - agreement + decorrelation * apart.square_().mean(), agreement

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor, _: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[no-untyped-def]
        (slope,) = ctx.saved_tensors
        return grad * slope, None, None


class GraphMutualInformation(MutualInformation):
    """The same of whole graphs: I(g; g~) with g the mean over a graph's nodes, across the graphs of a batch."""

    def forward(self, h: Tensor, h_t: Tensor, transformation: TopologyTransformation) -> Loss:
        ptr = transformation.adjacency.ptr
        if ptr is None:
            raise UsageError("The objective 'graph-mutual-information' compares graphs of a set: use level='graph'.")
        g, g_t = (torch.segment_reduce(each, "mean", lengths=ptr.diff(), axis=0) for each in (h, h_t))
        loss, metrics = super().forward(g, g_t, transformation)
        return loss, {f"graph_{name}": value for name, value in metrics.items()}


class Recovery(Objective):
    """I(g; g~) of a profile g, bounded by how well each direction of one transformed graph tells that of another.

    With the guess w g~ for g, Gaussian errors and columns of length one, I >= -1/2 log E (g - w g~)^2, direction by
    direction. It is best at w = the correlation: what a small change of topology destroys gets a small weight.
    """

    least = 1e-3  # an error that counts as none: features do not change at all

    def __init__(self, channels: int) -> None:
        super().__init__()

    def forward(self, h: Tensor, h_t: Tensor, transformation: TopologyTransformation) -> Loss:
        raise UsageError("The objective 'graph-recovery' goes with the encoder 'profile'.")

    def of_moments(self, weight: Tensor, moments: DirectionMoments) -> Loss:
        error = moments.within * (1 + weight.square()) - 2 * weight * moments.between
        loss = 0.5 * (error + self.least).log().mean()
        return loss, {"agreement": moments.between.mean()}


def _apart(correlation: Tensor) -> Tensor:
    """The mean squared correlation of different columns, [F, F] -> []."""
    return (correlation - torch.diag(correlation.diagonal())).square().mean()


def _standardized(h: Tensor) -> Tensor:
    centred = h - h.mean(0)
    return centred / centred.square().mean(0).add(1e-12).sqrt()


def accuracy_by_type(confusion: Tensor) -> dict[str, Tally]:
    """From counts of true (row) against predicted (column) types: what guessing costs, and how often each is right."""
    counts, right = confusion.sum(1), confusion.diagonal()
    metrics = {"prior_entropy": Tally(counts, entropy_of_types)}
    for change in EdgeChange:
        metrics[f"accuracy_{change.name.lower()}"] = Tally(torch.stack([right[change], counts[change]]), _share)
    return metrics


def _share(counts: Tensor) -> float | None:
    """Right ones among all; `None` where the type did not occur."""
    right, total = counts.tolist()
    return right / total if total else None


OBJECTIVES: dict[str, type[Objective]] = {
    "types-from-change": TypesFromChange,
    "types-from-pair": TypesFromPair,
    "mutual-information": MutualInformation,
    "graph-mutual-information": GraphMutualInformation,
    "graph-recovery": Recovery,
}
# Sums with a name of their own.
SUMS: dict[str, dict[str, float]] = {
    "paper": {"types-from-change": 1.0},
    "full": {"types-from-change": 1.0, "types-from-pair": 1.0, "mutual-information": 1.0},
}
SUMS["full-graphs"] = {**SUMS["full"], "graph-mutual-information": 1.0}  # what "full" is on sets of graphs


def named_terms(objective: Any) -> dict[str, tuple[Any, float]]:
    """The terms of an objective and their weights, each under a name that shows in metrics and files.

    Args:
        objective: a name in `SUMS` or `OBJECTIVES`, an object, or a list of (name or object, weight).
    """
    pairs = objective if isinstance(objective, (list, tuple)) else [(objective, 1.0)]
    terms: dict[str, tuple[Any, float]] = {}
    for pair in pairs:
        if not (isinstance(pair, (list, tuple)) and len(pair) == 2):
            raise invalid_parameter("objective", "TopoTER", "a name, an object or a list of (objective, weight)", pair)
        term, weight = pair
        if not isinstance(weight, (int, float)) or isinstance(weight, bool) or not 0 <= weight < math.inf:
            raise invalid_parameter("objective", "TopoTER", "given with weights of 0 or more", weight)
        if isinstance(term, type) or not (isinstance(term, str) or callable(term)):
            raise invalid_parameter("objective", "TopoTER", "a name or an object(h, h_t, transformation)", term)
        if not isinstance(term, str):
            name = getattr(term, "__name__", type(term).__name__)
            same = sum(known == name or known.startswith(f"{name} ") for known in terms)
            terms[f"{name} {same + 1}" if same else name] = (term, float(weight))
            continue
        for name, share in SUMS.get(term, {term: 1.0}).items():
            if name not in OBJECTIVES:
                raise unknown_name("objective", name, [*SUMS, *OBJECTIVES])
            before = terms[name][1] if name in terms else 0.0
            terms[name] = (name, before + share * float(weight))
    if not terms:
        raise UsageError("The objective has no term: give at least one (objective, weight).")
    return terms


def build_objectives(
    objective: Any, channels: int, parameters: Mapping[str, Any], generator: torch.Generator
) -> dict[str, tuple[Any, float]]:
    """Terms ready to be called, by name, with their weights; those with weights of their own get them drawn.

    A module of the user's own is copied, so that the parameter stays as it was for the next fit.
    """
    built: dict[str, tuple[Any, float]] = {}
    for name, (term, weight) in named_terms(objective).items():
        if isinstance(term, str):
            kind = OBJECTIVES[term]
            known = inspect.signature(kind).parameters
            made = kind(channels, **{key: value for key, value in parameters.items() if key in known})
            made.initialize(generator)
            built[name] = (made, weight)
        else:
            built[name] = (copy.deepcopy(term) if isinstance(term, nn.Module) else term, weight)
    return built


def is_plain(objective: Any) -> bool:
    """Whether an objective is made of names alone, so that a file can hold it."""
    return all(isinstance(term, str) for term, _ in named_terms(objective).values())


def describe_terms(terms: Sequence[tuple[str, float]]) -> str:
    """The sum in words: "types-from-change + 0.5 mutual-information"."""
    return " + ".join(name if weight == 1 else f"{weight:g} {name}" for name, weight in terms)
