"""Warnings of a poor embedding: each where it is due, none where all is well."""

from __future__ import annotations

import warnings

import networkx as nx
import numpy as np
import pandas
import torch

from topoter import PoorEmbeddingWarning, TopoTER
from topoter.quality import directions, little_learned
from topoter.training import EpochRecord

GRAPH = nx.empty_graph(100)
GRAPH.add_edges_from(nx.planted_partition_graph(4, 25, 0.3, 0.02, seed=0).edges)  # without its node attributes
RNG = np.random.default_rng(0)
GROUP = np.eye(4)[np.arange(100) // 25]
GOOD = GROUP @ RNG.normal(size=(4, 12)) + 0.3 * RNG.normal(size=(100, 12))
INCOME = RNG.lognormal(10, 0.5, 100)


def said(x: object, graph: object = GRAPH, **parameters: object) -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        TopoTER(**{"encoder": "sgc", "out_channels": 16, "epochs": 60, **parameters}).fit(graph, x=x)
    assert all(warning.category is PoorEmbeddingWarning for warning in caught)
    assert all(warning.filename == __file__ for warning in caught), "it points at the line that called fit"
    return " ".join(str(warning.message) for warning in caught)


def test_none_where_all_is_well() -> None:
    assert said(GOOD) == ""
    assert said(None, epochs=0) == "", "untrained on purpose"


def test_no_features_and_constant_features() -> None:
    assert "The nodes have no features: degrees alone" in said(None)
    assert "All nodes have the same features once rows are scaled (feature_scaling 'unit')" in said(INCOME[:, None])


def test_the_default_warns_as_well() -> None:
    default = {"encoder": None, "out_channels": None, "epochs": None}
    assert said(GOOD, **default) == ""
    assert "The nodes have no features: the embedding holds their places" in said(None, **default)
    assert "All nodes have the same features" in said(np.ones((100, 2)), **default)
    (text,) = little_learned([EpochRecord(1, 0.2, {"hidden_edge_auc": 50.4})])
    assert "AUC of 50.4 %, and guessing has 50: the features tell hardly anything" in text


def test_a_column_that_drowns_the_others() -> None:
    drowned = np.column_stack([INCOME, GOOD])
    assert "but nodes differ in 1 directions only" in said(drowned)
    assert "directions" not in said(pandas.DataFrame(drowned)), "a table is prepared"


def test_nothing_learned() -> None:
    assert "little was learned. Try more epochs" in said(GOOD, epochs=1)


def test_directions() -> None:
    z = torch.from_numpy(GOOD)
    assert directions(z) == 12
    assert directions(torch.cat([1e4 * z[:, :1], z], dim=1)) == 1
    assert directions(torch.ones(5, 3)) == 0
