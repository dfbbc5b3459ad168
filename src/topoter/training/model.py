"""TopoTER's module: the paper's forward pass, and the weighted sum of what is learned from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from topoter.encoders import Encoder, Hops, Profile
from topoter.errors import UsageError
from topoter.pretext.moments import DirectionMoments, Moments
from topoter.pretext.objectives import Loss, TypesFromChange
from topoter.pretext.transformation import TopologyTransformation
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features


class TopoTERModel(nn.Module):
    """Encode a graph before and after a topology transformation; the objectives look at both.

    Args:
        encoder: E, shared by the graph before and after.
        objectives: by name, each a callable (h, h_t, transformation) -> (loss, metrics) with its weight.
    """

    def __init__(self, encoder: Encoder, objectives: Mapping[str, tuple[Callable[..., Loss], float]]) -> None:
        super().__init__()
        self.encoder = encoder
        self.objectives = dict(objectives)
        # Those that have weights of their own, for the optimizer and for files.
        modules = {name: term for name, (term, _) in objectives.items() if isinstance(term, nn.Module)}
        self.learned = nn.ModuleDict(modules)

    def forward(self, x: Features, transformation: TopologyTransformation | Moments | DirectionMoments) -> Loss:
        """The loss of a transformation, or of the second moments of many, and what each objective says of it."""
        if isinstance(
            transformation, (Moments, DirectionMoments)
        ):  # a linear encoder: the loss needs neither X nor a graph
            terms: dict[str, Any] = {name: term for name, (term, _) in self.objectives.items()}
            weight = self.encoder.weight
            return self._sum({name: term.of_moments(weight, transformation) for name, term in terms.items()})
        return self.of_signal(self.encoder.project(x), transformation)  # X W, the same for both graphs

    def of_signal(self, signal: Tensor, transformation: TopologyTransformation) -> Loss:
        """The same from the projected features X W."""
        name, (only, _) = next(iter(self.objectives.items()))
        if len(self.objectives) == 1 and isinstance(only, TypesFromChange):  # dH is all it looks at: no H, no H~
            return self._sum({name: only.of_change(self.delta(signal, transformation), transformation)})
        h, h_t = self.representations(signal, transformation)
        return self._sum({name: term(h, h_t, transformation) for name, (term, _) in self.objectives.items()})

    def _sum(self, found: Mapping[str, Loss]) -> Loss:
        """The weighted sum of the terms, and all their metrics; of several terms also what each adds."""
        losses, metrics = [], dict[str, Any]()
        for name, answer in found.items():
            if not (isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], Mapping)):
                raise UsageError(f"The objective {name!r} must return (loss, metrics). Got {type(answer).__name__}.")
            losses.append(_weighted(answer[0], self.objectives[name][1]))
            metrics |= {key if key not in metrics else f"{name}_{key}": value for key, value in answer[1].items()}
            if len(found) > 1:
                metrics[f"{name}_loss"] = losses[-1].detach()
        return losses[0] if len(losses) == 1 else torch.stack(losses).sum(), metrics

    @property
    def is_linear(self) -> bool:
        """Whether second moments of transformed graphs are all that training needs."""
        return isinstance(self.encoder, (Hops, Profile)) and all(
            hasattr(term, "of_moments") for term, _ in self.objectives.values()
        )

    def representations(self, signal: Tensor, transformation: TopologyTransformation) -> tuple[Tensor, Tensor]:
        # fmt: off
        h   = self.encoder.propagate(signal, transformation.adjacency)      # H  = E(X, A)    [N, F]
        h_t = self.encoder.propagate(signal, transformation.adjacency_t)    # H~ = E(X, A~)   [N, F]
        return h, h_t
        # fmt: on

    def delta(self, signal: Tensor, transformation: TopologyTransformation) -> Tensor:
        """dH = H~ - H, the change of every node's representation, [N, F]."""
        fused = self.encoder.fused_delta(signal, transformation.adjacency, transformation.adjacency_t)
        if fused is not None:
            return fused
        h, h_t = self.representations(signal, transformation)
        return h_t - h

    def batch_weight(self, x: Features, transformation: TopologyTransformation | Moments | DirectionMoments) -> int:
        """How much a batch counts in the mean of an epoch."""
        return transformation.pairs.size(1) if isinstance(transformation, TopologyTransformation) else 1

    @torch.no_grad()
    def embed(self, x: Features, adjacency: Adjacency, nodes: Tensor | None = None) -> Tensor:
        """H of the original graph, in evaluation mode, [N, F]; `nodes` are keys of its nodes, where they have ids."""
        was_training = self.training
        self.eval()
        try:
            h: Tensor = self.encoder(x, adjacency, nodes)
        finally:
            self.train(was_training)
        return h


def _weighted(loss: Tensor, weight: float) -> Tensor:
    return loss if weight == 1 else weight * loss
