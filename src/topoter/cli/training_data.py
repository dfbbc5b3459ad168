"""What a fit trains on: one graph, a set of graphs, or a graph over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from topoter.cli.graph_options import GraphOptions, SetOptions
from topoter.cli.reading import is_graph_set, load_graph, load_graph_set, load_over_time
from topoter.errors import UsageError

if TYPE_CHECKING:
    from topoter.cli.training_options import TrainingOptions
    from topoter.estimator import TopoTER

STEPS_OVER_TIME = 800  # as many as the recipes of the ants take

# The experiment whose recipes go with each kind.
EXPERIMENTS = {"graph": "node-classification", "set": "graph-classification", "time": "temporal-links"}


@dataclass(frozen=True)
class TrainingData:
    """A name or a path, and what stands behind it; nothing is read before it is asked for."""

    kind: str
    name: str
    options: GraphOptions
    sets: SetOptions
    every: str | None

    @classmethod
    def named(
        cls, graph: str | None, snapshots: str | None, every: str | None, options: GraphOptions, sets: SetOptions
    ) -> TrainingData:
        if graph is not None and snapshots is None:
            if every is not None:
                raise UsageError("--every goes with --snapshots.")
            kind = "set" if is_graph_set(graph, options.data_root, sets) else "graph"
            return cls(kind, graph, options, sets, None)
        if graph is not None or snapshots is None:
            raise UsageError("Give one graph to fit on: a GRAPH, or --snapshots with one over time.")
        if sets.given:
            raise UsageError("--graph-column and --smiles-column go with a GRAPH, not with --snapshots.")
        return cls("time", snapshots, options, sets, every)

    def parameters(self, training: TrainingOptions, memory: str | None) -> dict[str, Any]:
        """TopoTER's parameters for it; options that do not go with its kind are refused."""
        if self.kind != "graph" and (training.batch_nodes, training.parts, memory) != (None, None, None):
            raise UsageError("--batch-nodes, --parts and --memory go with one graph.")
        if self.kind != "set" and (training.pooling, training.batch_size) != (None, None):
            raise UsageError("--pooling and --batch-size go with a set of graphs.")
        return training.parameters(EXPERIMENTS[self.kind], self.name)

    def fit_of(self, model: TopoTER, training: TrainingOptions, memory: str | None, seed: int) -> Callable[..., Any]:
        """Read it: the model's `fit` on it, once the model knows its steps and parts."""
        if self.kind == "set":
            return partial(model.fit, load_graph_set(self.name, self.options, self.sets))
        if self.kind == "graph":
            return partial(model.fit, self._one_graph(model, memory, seed))
        from topoter.datasets import known_as

        data, times = load_over_time(self.name, self.options, self.every)
        if training.epochs is None and training.recipe is None and known_as(self.name) is None:
            # Of many transitions each is seen less often, since every one is a step.
            model.set_params(epochs=min(200, max(10, STEPS_OVER_TIME // max(len(times) - 1, 1))))
        return partial(model.fit_snapshots, times, x=data)

    def _one_graph(self, model: TopoTER, memory: str | None, seed: int) -> Any:
        from topoter.cli.sizing import choose_parts, opened

        directory = opened(self.name)
        if directory is None:
            data = load_graph(self.name, self.options, seed)
            choose_parts(model, data, memory, quiet=True)
            return data
        self.options.refuse(f"{self.name} is imported already: these go with `topoter import`.")
        self.options.say(directory.describe())
        choose_parts(model, directory, memory, self.options.quiet)
        return directory

    def columns(self) -> tuple[list[tuple[Any, ...]], list[str], int]:
        """What every column of the features table, or what is known of atoms and nodes, becomes; and the nodes."""
        if self.kind == "time" or (self.options.features is None and self.kind == "graph"):
            raise UsageError("--dry-run shows what a table of features becomes: give a GRAPH and --features.")
        if self.kind == "set":
            data = load_graph_set(self.name, self.options, self.sets)
        else:
            data = [load_graph(self.name, self.options)]
        table = data[0].get("table")
        if table is None:
            given = self.options.features or self.name
            raise UsageError(f"{given} holds no table of features, so nothing is turned into numbers.")
        nodes = sum(graph.num_nodes for graph in data)
        return table.preparation.described(), table.preparation.feature_names, nodes
