"""A whole graph by its profile, in directions that are weighted by how well they survive a change of topology.

    g = [shares of nodes and edges above thresholds | sizes | features | neighbourhoods of 0..h hops]    [G, K]
    z = (g * w) R                                                                                        [G, F]

Every part of g is brought to its length, and w (1 before training) is learned. R is a rotation, which changes no
distance: to principal axes, then by a Hadamard matrix, so that all columns are equally wide. A scaler in front of a
classifier, which makes them so anyway, then does not undo what w says.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from scipy.linalg import hadamard
from torch import Tensor, nn

from topoter.encoders.base import Encoder
from topoter.errors import DataError
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.structure.hops import as_dense, with_fixed_signs
from topoter.structure.profiles import (
    Places,
    are_labels,
    distributions,
    feature_means,
    labels_of_nodes,
    leading,
    neighbourhood_counts,
    sizes,
)

SIZE_LENGTH = 0.3  # beside parts of length one: three numbers must not outweigh a distribution


class Profile(Encoder):
    """Embeds whole graphs; it has nothing to say of a single node.

    Args:
        rank: directions that are kept of the neighbourhoods of each size.
    """

    thresholds: Tensor
    means: Tensor
    bases: Tensor
    centre: Tensor
    scale: Tensor
    kept: Tensor
    spread: Tensor
    rotation: Tensor
    labelled: Tensor
    pools = True

    def __init__(self, in_channels: int, rank: int = 128) -> None:
        super().__init__()
        self.rank = rank
        self.out_channels = 0
        self.weight = nn.Parameter(torch.ones(0))  # w [K]
        for name in ("thresholds", "means", "bases", "centre", "scale", "kept", "spread", "rotation"):
            self.register_buffer(name, torch.zeros(0))
        self.register_buffer("labelled", torch.tensor(False))

    def initialize(self, init: str = "default", generator: torch.Generator | None = None, gain: float = 1.0) -> None:
        """Nothing is drawn before the data are seen: see `adapt`."""

    @torch.no_grad()
    def adapt(self, x: Features, adjacency: Adjacency, generator: torch.Generator) -> None:
        """Take thresholds, leading directions and lengths from a set of graphs."""
        table, places = as_dense(x), Places.of(adjacency)
        self.labelled = torch.tensor(are_labels(table))
        self.thresholds = torch.from_numpy(places.thresholds())
        means, bases = zip(*(leading(counts, self.rank) for counts in self._neighbourhoods(table, adjacency)))
        self.means, self.bases = torch.stack(means), torch.stack(bases)
        parts = self._parts(table, adjacency, places)
        self.centre = torch.cat(parts, dim=1).mean(0)
        scale = []
        for number, part in enumerate(parts):
            deviation = (part - part.mean(0)).square().mean(0).sqrt()
            # Of shares and neighbourhoods, rare ones stay small; sizes and measurements have units of their own.
            column = torch.where(deviation > 1e-6, 1 / deviation, 0) if number in (1, 2) else torch.ones_like(deviation)
            spread = (deviation * column).square().sum().sqrt()
            length = SIZE_LENGTH if number == 1 else 1.0
            scale.append(column * (length / spread) if spread > 1e-6 else torch.zeros_like(column))
        self.scale = torch.cat(scale)
        centred = (torch.cat(parts, dim=1) - self.centre) * self.scale
        self.kept = (centred.square().mean(0) > 1e-12).nonzero().view(-1)
        if not self.kept.numel():
            raise DataError("There is nothing to embed: all graphs of the set are alike.")
        centred = centred[:, self.kept].double()
        self.spread = centred.t() @ centred / len(centred)
        self.weight = nn.Parameter(torch.ones(self.kept.numel()))
        self.finish(x, adjacency)

    @torch.no_grad()
    def finish(self, x: Features, adjacency: Adjacency) -> None:
        """Turn the weighted directions so that all columns are equally wide."""
        weight = self.weight.double()
        _, axes = torch.linalg.eigh(weight[:, None] * self.spread * weight)
        self.out_channels = 1 << (len(axes) - 1).bit_length()  # Hadamard matrices have powers of two
        even = torch.from_numpy(hadamard(self.out_channels)[: len(axes)] / math.sqrt(self.out_channels))
        self.rotation = (with_fixed_signs(axes) @ even).float()

    def directions(self, x: Features, adjacency: Adjacency) -> Tensor:
        """g: the profile of every graph, centred, each part at its length, [G, K]."""
        parts = self._parts(as_dense(x), adjacency, Places.of(adjacency))
        return ((torch.cat(parts, dim=1) - self.centre) * self.scale)[:, self.kept]

    def forward(self, x: Features, adjacency: Adjacency | Tensor, nodes: Tensor | None = None) -> Tensor:
        if isinstance(adjacency, Tensor):
            adjacency, _ = Adjacency.from_edge_index(adjacency, x.shape[0])
        return (self.directions(x, adjacency) * self.weight) @ self.rotation

    def _neighbourhoods(self, x: Tensor, adjacency: Adjacency) -> list[np.ndarray]:
        """By the features of the nodes in them, if those are labels, and by their shape alone."""
        found = neighbourhood_counts(labels_of_nodes(x), adjacency) if bool(self.labelled) else []
        return found + neighbourhood_counts(np.zeros(adjacency.num_nodes), adjacency)[1:]

    def _parts(self, x: Tensor, adjacency: Adjacency, places: Places) -> list[Tensor]:
        tables = [distributions(places, adjacency, self.thresholds.cpu().numpy()), sizes(adjacency)]
        measured = feature_means(x, adjacency)
        tables.append(measured[:, :0] if bool(self.labelled) else measured)
        counts = self._neighbourhoods(x, adjacency)
        hidden = [(torch.from_numpy(each) - mean) @ basis for each, mean, basis in zip(counts, self.means, self.bases)]
        # Nodes and edges are two distributions.
        edges = self.thresholds.size(1)
        nodes = torch.from_numpy(tables[0]).float()
        shown = [nodes[:, :-edges], *(torch.from_numpy(table).float() for table in tables[1:]), nodes[:, -edges:]]
        return shown + hidden

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Take the shapes of the saved arrays: they follow from the data."""
        for name in [*self._buffers, "weight"]:
            saved = state_dict.get(prefix + name)
            if saved is not None and saved.shape != getattr(self, name).shape:
                empty = torch.empty_like(saved)
                setattr(self, name, nn.Parameter(empty) if name == "weight" else empty)
        super()._load_from_state_dict(state_dict, prefix, *args)
        self.out_channels = self.rotation.size(-1)
