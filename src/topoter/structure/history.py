"""A graph's past as a pair of nodes sees it: when they met, how active each of them was, whom they share.

All snapshots so far are folded into a few sparse matrices, so that what is known at a time costs the same after ten
snapshots and after a thousand.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from topoter.structure.adjacency import Adjacency

DECAYS = (0.3, 0.6, 0.9)  # what a snapshot counts beside the one after it: short, middle and long memory


@dataclass(frozen=True)
class History:
    """What all snapshots up to a time say; `History.of(snapshots)`, or `history.after(snapshot)` one by one.

    Args:
        now: the latest snapshot.
        snapshots: how many there have been.
        met: for every decay, the share of snapshots in which two nodes were connected, late ones more, [N, N].
        last: the number of the latest snapshot in which two nodes were connected, from 1, [N, N].
        active: for every decay, the share of snapshots in which a node had any edge, [D, N].
    """

    now: Adjacency
    snapshots: int
    met: list[sparse.csr_matrix]
    last: sparse.csr_matrix
    active: np.ndarray

    @classmethod
    def of(cls, snapshots: Iterable[Adjacency]) -> History:
        first, *others = snapshots
        a = matrix(first)
        present = (_degree(a) > 0).astype(float)
        history = cls(first, 1, [a for _ in DECAYS], a, np.stack([present for _ in DECAYS]))
        for snapshot in others:
            history = history.after(snapshot)
        return history

    def after(self, snapshot: Adjacency) -> History:
        """The history with one more snapshot."""
        a, count = matrix(snapshot), self.snapshots + 1
        present = _degree(a) > 0
        met, active = [], []
        for decay, before, was in zip(DECAYS, self.met, self.active):
            new = (1 - decay) / (1 - decay**count)  # the weights decay^age add up to one
            met.append(((1 - new) * before + new * a).tocsr())
            active.append((1 - new) * was + new * present)
        return History(snapshot, count, met, self.last.maximum(count * a).tocsr(), np.stack(active))

    def nodes(self) -> Tensor:
        """How active every node is and was [N, C]: its neighbours now and over time, and how often it had any."""
        degrees = [_degree(matrix(self.now)), *(_degree(met) for met in self.met)]
        return torch.from_numpy(np.stack([*(np.log1p(d) for d in degrees), *self.active], axis=1)).float()

    def pairs(self, pairs: Tensor) -> Tensor:
        """What is known of pairs [2, P], the same for (i, j) and (j, i), [P, D].

        Whether they are connected now, how often and how long ago they were, neighbours they share, and the activity of
        the less and of the more active end.
        """
        i, j = pairs.numpy()
        a, nodes = matrix(self.now), self.nodes()
        degree = np.maximum(_degree(a), 1)
        shared = a[i].multiply(a[j]).tocsr()
        ago = self.snapshots + 1 - _at(self.last, i, j)
        weighted = self.met[-1]
        columns = [
            _at(a, i, j),
            *(_at(met, i, j) for met in self.met),
            1 / ago,
            np.log1p(shared @ np.ones(len(degree))),
            np.log1p(shared @ (1 / np.log(np.maximum(degree, 2)))),
            (shared @ (1 / degree)) / np.sqrt(degree[i] * degree[j]),
            np.log1p(np.asarray(weighted[i].multiply(weighted[j]).sum(axis=1)).ravel()),
        ]
        own = torch.from_numpy(np.stack(columns, axis=1)).float()
        ends = nodes[pairs[0]], nodes[pairs[1]]
        return torch.cat([own, torch.minimum(*ends), torch.maximum(*ends), ends[0] * ends[1]], dim=1)


@dataclass(frozen=True)
class Known:
    """What is known when pairs of a snapshot are asked for.

    Args:
        latest: the snapshot before it.
        earlier: what was known when that one was asked for; `None` if it is the first.
        rest: its own edges but for those held out, where pairs are held out; `None` where it has not happened yet.
    """

    latest: Adjacency
    earlier: Known | None = None
    rest: Adjacency | None = None

    @cached_property
    def history(self) -> History:
        """All snapshots before it."""
        return History.of([self.latest]) if self.earlier is None else self.earlier.history.after(self.latest)


def matrix(adjacency: Adjacency) -> sparse.csr_matrix:
    """A as SciPy's sparse matrix, without weights."""
    i, j = adjacency.edge_index.numpy()
    return sparse.csr_matrix((np.ones(len(i)), (i, j)), shape=(adjacency.num_nodes, adjacency.num_nodes))


def _degree(a: sparse.csr_matrix) -> np.ndarray:
    return np.asarray(a.sum(axis=1)).ravel()


def _at(a: sparse.csr_matrix, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    return np.asarray(a[i, j]).ravel()
