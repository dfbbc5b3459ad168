"""Embeddings of new nodes of a graph on disk: computed from their neighbourhoods, not from the whole graph."""

from __future__ import annotations

import logging

import numpy as np
import torch

from topoter.encoders import Hops
from topoter.encoders.stages import hops, needed_stages
from topoter.estimator import TopoTER
from topoter.graphs import GraphDirectory
from topoter.graphs.matching import column_map
from topoter.graphs.new_nodes import NewNodes
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import prepare_features
from topoter.structure.large_graph import LargeGraph
from topoter.structure.neighbourhood import around_new_nodes

_logger = logging.getLogger("topoter")


def embed_new_nodes(model: TopoTER, directory: GraphDirectory, new: NewNodes) -> tuple[np.ndarray, int]:
    """The embeddings [n, F] that the new nodes would have in the graph, and how many of its nodes had to be read."""
    encoder = model.model_.encoder
    plan = needed_stages(encoder)
    if isinstance(encoder, Hops):
        _note(encoder)
    graph, count = LargeGraph.from_directory(directory), len(new.ids)
    edges, _ = Adjacency.from_edge_index(new.edge_index, count + graph.num_nodes, new.weight)
    around = around_new_nodes(graph, edges, count, hops(plan))
    matched = model.feature_map(directory.manifest.feature_names)
    if directory.manifest.structural:  # new edges change the degrees, and so the features, of both ends
        rows = np.stack([np.log1p(around.neighbours), np.ones(len(around.neighbours))], axis=1)
        x = matched(torch.from_numpy(rows).float())
    else:
        stored = graph.rows(around.nodes)
        assert new.x is not None
        known = getattr(model, "feature_names_in_", None)
        select = column_map(new.feature_names or [], known, model.n_features_in_)
        x = torch.cat([new.x if select is None else new.x @ select, matched(stored)])
    prepared = prepare_features(x, model.effective_params()["feature_scaling"])
    model.model_.eval()
    with torch.no_grad():
        return encoder.of_few(prepared, around.adjacency, count).numpy(), len(around.nodes)


def _note(encoder: Hops) -> None:
    """Say what a few nodes alone do not tell."""
    if encoder.place.size(1):
        _logger.info(
            "New nodes alone do not tell their place in the graph: the %d columns that hold it are at their mean.",
            encoder.place.size(1),
        )
    if float(encoder.pull):
        _logger.info(
            "Likely neighbours of new nodes are looked for among %d nodes of the model.", len(encoder.landmarks)
        )
