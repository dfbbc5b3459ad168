"""Graphs end to end: what every reader of a set of graphs produces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from topoter.graphs.features import Features
from topoter.graphs.ids import NodeIds
from topoter.graphs.preparation import PreparedTable


@dataclass
class RawSet:
    """Many graphs, their nodes counted through: those of the first graph, then those of the second, ..."""

    name: str  # the file, or the kind of object, for messages
    ids: NodeIds  # of the graphs, [G]
    sizes: np.ndarray  # nodes of each, [G]
    edge_index: np.ndarray  # [2, E]
    x: Tensor | None = None  # features [N, C], if there are any
    feature_names: list[str] | None = None
    table: PreparedTable | None = None  # what x was made of, where that was a table
    weight: np.ndarray | None = None  # [E]
    node_ids: Sequence[Any] | np.ndarray | None = None  # [N], else numbers within each graph
    labels: list[Any] | None = None  # of the graphs, [G]
    notes: list[str] = field(default_factory=list)
    met: list[str] = field(default_factory=list)  # of the notes, those on what a model's preparation does not know

    def with_features(self, features: Features) -> RawSet:
        """Take features whose rows are the nodes, and what was noticed about them."""
        self.x, self.feature_names, self.table = features.x, features.feature_names, features.table
        self.notes += features.notes
        self.met += features.met
        return self
