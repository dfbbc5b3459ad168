"""Several hops of the features and the graph itself, side by side: the encoder behind topoter's default.

    H = S^k X V W                       # trained: a linear map of what is k hops away, in its leading directions V
    Z = [H | X V0 | S X V1 | places]    # beside H the features, and the place in the graph
    Z + c S^ Z                          # the embedding: Z drawn towards its likely neighbours

How much each part counts follows from deleted edges, without labels: where the ends of deleted edges have like features
H counts most, where they have not the features themselves do, and places count as far as they foretell deleted edges
better than the features. S^ propagates over the graph that Z believes in (`structure.likely_graph`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import torch
from torch import Tensor, nn

from topoter.encoders.base import Encoder
from topoter.encoders.hop_lengths import FEW_DIRECTIONS, Told
from topoter.errors import DataError, unknown_name
from topoter.kernels import buffers
from topoter.kernels.sparse import SparseOperator
from topoter.structure.adjacency import Adjacency
from topoter.structure.degrees import degree_places
from topoter.structure.features import Features
from topoter.structure.hops import Preparation, directions_by_passes, propagate
from topoter.structure.likely_graph import Likely, likely_means
from topoter.structure.spectral import refound, spectral_places
from topoter.structure.walks import walk_places

_logger = logging.getLogger(__name__)

# How nodes are placed in the graph.
STRUCTURES = {"spectral": spectral_places, "walks": walk_places, "degrees": degree_places, "none": None}
COMPLETION = 0.5  # length of what likely neighbours say, beside what a node says itself
_COLUMNS, _ROWS = 128, 1 << 11  # looked at together
LANDMARKS = 1024  # nodes that are kept to tell the likely neighbours of one that comes alone


class Hops(Encoder):
    """A linear map of S^k X that is learned, beside hops 0 and 1 and the coordinates of nodes in the graph.

    Args:
        out_channels: F, the most columns of the embedding; they are principal axes, so fewer where the data hold less.
        order: k, how many hops away the trained part looks.
        rank: R, the directions of S^k X that are kept for it.
        rank_beside: of hops 0 and 1.
        structure: how nodes are placed in the graph: "spectral" by eigenvectors of the adjacency, "walks" by random
            walks (quicker on a large graph), "degrees" by how many edges they and their neighbours have; "none"
            leaves the graph to the features.
        eigenvectors: how many are tried, those that do not foretell hidden edges are left out; columns of "walks".
        completion: how far a node is drawn towards its likely neighbours; 0 leaves them out.
    """

    mean: Tensor
    deviation: Tensor
    hop0: Tensor
    hop1: Tensor
    far: Tensor
    place: Tensor
    num_coordinates: Tensor
    node_keys: Tensor
    axes: Tensor
    agreement: Tensor
    strength: Tensor
    pull: Tensor
    landmarks: Tensor
    num_fitted: Tensor

    def __init__(
        self,
        in_channels: int,
        out_channels: int = 512,
        order: int = 2,
        rank: int = 512,
        rank_beside: int = 256,
        structure: str = "spectral",
        eigenvectors: int = 128,
        completion: float = COMPLETION,
    ) -> None:
        super().__init__()
        if structure not in STRUCTURES:
            raise unknown_name("structure", structure, STRUCTURES)
        self._most = self.out_channels = out_channels
        self.order, self.structure = order, structure
        self.ranks = {0: rank_beside, 1: rank_beside, order: rank}
        self.agreement_here = 0.0  # of the features themselves, where `agreement` is that of what is propagated
        self._num_places = eigenvectors
        self.completion = completion
        self._found: tuple[bytes, Tensor, Likely] | None = None  # Z and S^, by what they were made from
        self.here: Tensor | None = None  # places [N, K] of a graph that is embedded in blocks, where they are known
        self.weight = nn.Parameter(torch.zeros(0, 0))  # W [R, R]
        empty = torch.zeros(0)
        for name in ("mean", "deviation", "centre", "lengths"):
            self.register_buffer(name, empty.clone())
        # V0 [C, R0], V1, V, places [N, K], [sum, F], rows of Z
        for name in ("hop0", "hop1", "far", "place", "axes", "landmarks"):
            self.register_buffer(name, torch.zeros(0, 0))
        self.register_buffer("graph_key", torch.zeros((), dtype=torch.int64))
        self.register_buffer("num_coordinates", torch.zeros((), dtype=torch.int64))  # the rest is of surroundings
        self.register_buffer("node_keys", torch.zeros(0, dtype=torch.int64))  # [N], of the nodes that have a place
        self.register_buffer("agreement", torch.zeros(()))
        self.register_buffer("strength", torch.zeros(()))
        self.register_buffer("pull", torch.zeros(()))  # c
        self.register_buffer("num_fitted", torch.zeros((), dtype=torch.int64))  # of which `landmarks` are some

    # ---- the start, from the data --------------------------------------------------------------------------

    def initialize(self, init: str = "default", generator: torch.Generator | None = None, gain: float = 1.0) -> None:
        """Nothing is drawn before the data are seen: see `adapt`."""

    @torch.no_grad()
    def adapt(self, x: Features, adjacency: Adjacency, generator: torch.Generator) -> None:
        """Take the leading directions of every hop from the data; W starts as a random rotation of them.

        A rotation, because single directions are uncorrelated already: standardising them would be whitening at once.
        """
        self.use(Preparation.fit(x))
        x = self.prepared(x)
        shape = x.shape[0], x.shape[1]
        found = directions_by_passes(lambda: [(x, adjacency)], shape, self.ranks, generator, adjacency.device)
        buffers.release()  # of other sizes than what comes next
        self.start(found, adjacency, generator)
        buffers.release()

    def use(self, preparation: Preparation) -> None:
        self.mean, self.deviation = preparation.mean, preparation.deviation

    def start(self, directions: dict[int, Tensor], adjacency: Adjacency | None, generator: torch.Generator) -> None:
        """Take the directions by hops, and the places of nodes where there is a graph to find them in."""
        self.hop0, self.hop1, self.far = directions[0], directions[1], directions[self.order]
        width = self.far.size(1)
        weight = torch.empty(width, width)
        if width:
            nn.init.orthogonal_(weight, gain=math.sqrt(width), generator=generator)
        self.weight = nn.Parameter(weight.to(self.far.device))
        find = STRUCTURES[self.structure]
        if find is not None and adjacency is not None:
            places = find(adjacency, self._num_places, generator)
            of_nodes, to_spread = places.of_nodes.to(adjacency.device), places.to_spread.to(adjacency.device)
            around = of_nodes[:, :0]
            if width < FEW_DIRECTIONS[1]:  # features do not say what surrounds a node: its neighbours' places do
                around = propagate(adjacency, to_spread, self.order)
            self.place = torch.cat([of_nodes, around], dim=1)
            self.num_coordinates, self.strength = torch.tensor(of_nodes.size(1)), torch.tensor(places.strength)
            self.graph_key = key_of(adjacency)

    def prepared(self, x: Features) -> Features:
        return Preparation(self.mean, self.deviation)(x)

    def signal(self, x: Features) -> Tensor:
        """X V: what is propagated, before the trained map, [N, R]."""
        return self.prepared(x) @ self.far

    # ---- the trained part ----------------------------------------------------------------------------------

    @property
    def trained_channels(self) -> int:
        return self.weight.size(1)

    def project(self, x: Features) -> Tensor:
        return self.signal(x) @ self.weight

    def propagate(self, signal: Tensor, adjacency: Adjacency) -> Tensor:
        return propagate(adjacency, signal, self.order)

    # ---- the embedding -------------------------------------------------------------------------------------

    def forward(self, x: Features, adjacency: Adjacency | Tensor, nodes: Tensor | None = None) -> Tensor:
        if isinstance(adjacency, Tensor):
            adjacency, _ = Adjacency.from_edge_index(adjacency, x.shape[0])
        found, self._found = self._found, None  # it is large, and needed once: for the embedding right after a fit
        if found and self.fitted_on(key_of(adjacency), nodes) and found[0] == self._content_key(x, adjacency):
            return self.drawn(*found[1:])
        return self.drawn(self.turned(self.joined(self.prepared(x), adjacency, self.places(adjacency, nodes))))

    def drawn(self, z: Tensor, likely: Likely | None = None) -> Tensor:
        """Z + c S^ Z, in the place of Z."""
        if not float(self.pull):
            return z
        return (likely or Likely.of(z)).draw(z, self.pull)

    def of_few(self, x: Features, adjacency: Adjacency, count: int) -> Tensor:
        """Places are at their mean, and likely neighbours are looked for among the landmarks."""
        z = self.turned(self.joined(self.prepared(x), adjacency, self.elsewhere(adjacency.num_nodes)))[:count]
        if not float(self.pull):
            return z
        if not len(self.landmarks):  # a model from before there were any
            return (1 + self.completion) * z
        return z + self.pull * likely_means(z, self.landmarks, int(self.num_fitted))

    @torch.no_grad()
    def turned(self, joined: Tensor) -> Tensor:
        """Z from its parts side by side, in their place: it has no more columns than they have."""
        axes = self.lengths[:, None] * self.axes
        width, filled, room = axes.size(1), 0, joined.view(-1)
        for rows in joined.split(_ROWS):
            z = (rows - self.centre) @ axes
            room[filled : filled + z.numel()] = z.view(-1)
            filled += z.numel()
        z = room[:filled].view(len(joined), width)
        return z if 2 * width > joined.size(1) else z.clone()  # which leaves the room

    @property
    def remembers_nodes(self) -> bool:  # type: ignore[override]
        return self.place.size(1) > 0

    def remember(self, nodes: Tensor) -> None:
        self.node_keys = nodes.to(self.place.device)

    @torch.no_grad()
    def finish(self, x: Features, adjacency: Adjacency) -> None:
        """Give the parts their lengths, turn what they hold to its principal axes, and look for likely neighbours."""
        self.leave_out_hop1()
        place = self.places(adjacency)
        joined = self.joined(self.prepared(x), adjacency, place)
        mean = joined.mean(0)
        moments = torch.zeros(len(mean), len(mean), device=mean.device)
        for rows in joined.split(_ROWS):
            centred = rows - mean
            moments.addmm_(centred.t(), centred)
        self.turn(mean, moments, len(joined), self.widths(place))
        if self.completion:
            z = self.turned(joined)
            self._found = self._content_key(x, adjacency), z, self.look_for_likely(z, len(z))
        buffers.release()

    def leave_out_hop1(self) -> None:
        """Where neighbours tell it it has no length: nobody has to compute it."""
        if not self.part_lengths()[2]:
            self.hop1 = self.hop1[:, :0]

    def look_for_likely(self, z: Tensor, num_nodes: int) -> Likely:
        """S^, and from S^ Z how strongly it pulls; keep landmarks. Z may be that of some of the nodes, in any order."""
        likely = Likely.of(z)
        self.pull = self.completion * torch.linalg.vector_norm(z) / likely.norm(z).clamp(min=1e-6)
        some = torch.randperm(len(z), generator=torch.Generator().manual_seed(0))[:LANDMARKS]
        self.landmarks, self.num_fitted = z[some.to(z.device)], torch.tensor(num_nodes)
        return likely

    def turn(self, mean: Tensor, moments: Tensor, count: float, widths: Sequence[int]) -> None:
        """Lengths and axes, from the mean and the centred second moments of all parts side by side.

        Args:
            count: the number of nodes.
            widths: of the parts.
        """
        if not float(moments.diagonal().sum()) > 0:
            raise DataError(
                "There is nothing to embed: the features are constant and the graph shows no structure. "
                "Give the nodes features."
            )
        device = self.far.device
        self.centre = mean.float().to(device)
        spreads = [part.sum().sqrt() for part in (moments.diagonal() / count).split(list(widths))]
        lengths = [
            (length / spread.clamp(min=1e-6)).expand(width)
            for length, spread, width in zip(self.part_lengths(), spreads, widths)
        ]
        scale = torch.cat(lengths)
        self.lengths = scale.float().to(device)
        values, axes = torch.linalg.eigh((scale[:, None] * moments * scale).double())
        values, axes = values.flip(0)[: self._most], axes.flip(1)[:, : self._most]
        kept = values > 1e-10 * values.max()
        self.axes, self.variances = axes[:, kept].float().to(device), values[kept]
        self.out_channels = self.axes.size(1)

    @property
    def told(self) -> Told:
        return Told(float(self.agreement), self.agreement_here, float(self.strength))

    def part_lengths(self) -> list[float]:
        """Of the trained part, hop 0, hop 1, the coordinates and those of a node's surroundings."""
        return self.told.lengths(self.far.size(1), self.hop0.size(1), self.hop1.size(1))

    def joined(self, x: Features, adjacency: Adjacency, place: Tensor) -> Tensor:
        """The parts side by side [N, sum], from prepared features; made where they stay, a few columns at a time."""
        widths = self.widths(place)
        joined = torch.empty(x.shape[0], sum(widths), device=self.far.device)
        *parts, rest = joined.split([*widths[:3], sum(widths[3:])], dim=1)
        bases = (self.far @ self.weight.detach(), self.order), (self.hop0, 0), (self.hop1, 1)
        for part, (basis, hops) in zip(parts, bases):
            for columns, some in zip(part.split(_COLUMNS, dim=1), basis.split(_COLUMNS, dim=1)):
                columns.copy_(propagate(adjacency, x @ some, hops))
        rest.copy_(place)
        buffers.release()
        return joined

    def widths(self, place: Tensor) -> list[int]:
        """Of the trained part, hops 0 and 1, coordinates and those of the surroundings."""
        coordinates = int(self.num_coordinates)
        around = place.size(1) - coordinates
        return [self.weight.size(1), self.hop0.size(1), self.hop1.size(1), coordinates, around]

    def fitted_on(self, key: Tensor, nodes: Tensor | None = None) -> bool:
        """Whether this is the graph in which nodes have the places that are known, by its `graph_key`."""
        same_nodes = nodes is None or not self.node_keys.numel() or torch.equal(nodes, self.node_keys)
        return same_nodes and bool(key == self.graph_key)

    def _content_key(self, x: Features, adjacency: Adjacency) -> bytes:
        """A number that other features, edges or weights hardly have."""
        features = [x.indptr, x.indices, x.values] if isinstance(x, SparseOperator) else [x]
        parts = [*features, adjacency.edges, adjacency.weight, self.weight, self.axes, self.lengths, self.place]
        key = blake2b(digest_size=16)
        for part in parts:
            if part is not None:
                key.update(part.detach().cpu().contiguous().numpy().data)
        return key.digest()

    def elsewhere(self, num_nodes: int) -> Tensor:
        """The places of nodes of a graph of which nothing is known."""
        return self.place.mean(0).expand(num_nodes, -1) if len(self.place) else self.mean.new_zeros(num_nodes, 0)

    def places(self, adjacency: Adjacency, nodes: Tensor | None = None) -> Tensor:
        """Those of the fitted graph, or in another one what can be told of them from its own shape."""
        if not self.place.size(1):
            return self.mean.new_zeros(adjacency.num_nodes, 0)
        if self.fitted_on(key_of(adjacency), nodes):
            return self.place
        found = refound(self.place, self.rows_of(nodes, adjacency.num_nodes), adjacency, self._num_places)
        if found is not None:
            return found
        if adjacency.num_edges:  # without any, it is plain that no node has a place
            _logger.info(
                "This graph has little in common with the one fitted on: the %d columns that hold a node's place in "
                "that graph are at their mean here.",
                self.place.size(1),
            )
        return self.elsewhere(adjacency.num_nodes)

    def rows_of(self, nodes: Tensor | None, num_nodes: int) -> Tensor:
        """The row of each node among those with a place, by its key or else its number; -1 where it has none."""
        if nodes is None:
            number = torch.arange(num_nodes, device=self.place.device)
            return torch.where(number < len(self.place), number, -1)
        if not self.node_keys.numel():
            return torch.full_like(nodes, -1)
        keys, order = self.node_keys.sort()
        at = torch.searchsorted(keys, nodes).clamp(max=keys.numel() - 1)
        return torch.where(keys[at] == nodes, order[at], -1)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Take the shapes of the saved arrays: they follow from the data."""
        # A model from before there were likely neighbours, landmarks, surroundings, and nodes that are known again.
        state_dict.setdefault(prefix + "pull", torch.zeros(()))
        state_dict.setdefault(prefix + "landmarks", torch.zeros(0, 0))
        state_dict.setdefault(prefix + "num_fitted", torch.zeros((), dtype=torch.int64))
        state_dict.setdefault(prefix + "num_coordinates", torch.tensor(state_dict[prefix + "place"].size(1)))
        state_dict.setdefault(prefix + "node_keys", torch.zeros(0, dtype=torch.int64))
        for own in (self._buffers, self._parameters):
            for name, tensor in own.items():
                saved = state_dict.get(prefix + name)
                if saved is not None and tensor is not None and saved.shape != tensor.shape:
                    empty = torch.empty_like(saved)
                    setattr(self, name, nn.Parameter(empty) if own is self._parameters else empty)
        super()._load_from_state_dict(state_dict, prefix, *args)
        self.out_channels = self.axes.size(1)


def key_of(adjacency: Adjacency) -> Tensor:
    return graph_key([adjacency.keys], adjacency.num_nodes)


def graph_key(edge_keys: Iterable[Tensor], num_nodes: int) -> Tensor:
    """A number that another graph hardly has, from the keys of its edges, which may come in pieces."""
    key = torch.tensor(num_nodes)
    for keys in edge_keys:
        mixed = (keys + num_nodes) * 0x2545F4914F6CDD1D  # wraps around, which is what mixes
        key = (mixed ^ (mixed >> 29)).sum() + key
    return key
