"""Embeddings of new nodes of a graph on disk: computed from their neighbourhoods, not from the whole graph."""

from __future__ import annotations

import numpy as np
import torch

from topoter.encoders.stages import hops, needs_whole_graph, stages
from topoter.estimator import TopoTER
from topoter.graphs import GraphDirectory
from topoter.graphs.matching import column_map
from topoter.graphs.new_nodes import NewNodes
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import prepare_features
from topoter.structure.large_graph import LargeGraph
from topoter.structure.neighbourhood import around_new_nodes


def embed_new_nodes(model: TopoTER, directory: GraphDirectory, new: NewNodes) -> tuple[np.ndarray, int]:
    """The embeddings [n, F] that the new nodes would have in the graph, and how many of its nodes had to be read."""
    plan = stages(model.model_.encoder)
    if plan is None:
        raise needs_whole_graph(model.model_.encoder)
    graph, count = LargeGraph.from_directory(directory), len(new.ids)
    edges, _ = Adjacency.from_edge_index(new.edge_index, count + graph.num_nodes, new.weight)
    around = around_new_nodes(graph, edges, count, hops(plan))
    known = getattr(model, "feature_names_in_", None)
    if directory.manifest.structural:  # new edges change the degrees, and so the features, of both ends
        rows = np.stack([np.log1p(around.neighbours), np.ones(len(around.neighbours))], axis=1)
        x = _matched(torch.from_numpy(rows).float(), directory.manifest.feature_names, known, model)
    else:
        stored = graph.rows(around.nodes)
        assert new.x is not None
        theirs = _matched(stored, directory.manifest.feature_names, known, model)
        x = torch.cat([_matched(new.x, new.feature_names or [], known, model), theirs])
    prepared = prepare_features(x, model.effective_params()["feature_scaling"])
    strangers = torch.full((around.adjacency.num_nodes,), -1)  # so few nodes do not tell their places in the graph
    return model.model_.embed(prepared, around.adjacency, strangers)[:count].numpy(), len(around.nodes)


def _matched(x: torch.Tensor, names: list[str], known: list[str] | None, model: TopoTER) -> torch.Tensor:
    select = column_map(names, known, model.n_features_in_)
    return x if select is None else x @ select
