"""Graphs read as documents: against gensim's own results and toy sets."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gensim.models.doc2vec import Doc2Vec, TaggedDocument
from torch_geometric.data import Data

from topoter.datasets import load_graphs
from topoter.methods import build
from topoter.methods.graph_documents import Graph2Vec
from topoter.methods.randomness import seeded
from topoter.methods.substructures import read

pytestmark = pytest.mark.usefixtures("one_thread")
SMALL = {
    "graph2vec": {"epochs": 3, "out_channels": 8},
    "sub2vec": {"epochs": 3, "out_channels": 8, "walks": 1, "length": 5},
    "node2vec": {"epochs": 1, "out_channels": 8, "walks": 1, "length": 5},
}


@pytest.fixture(scope="module")
def graphs():
    return load_graphs("mutag")[:30]


def embed(name, graphs, seed=0, **parameters):
    return build(name, "graph", SMALL[name] | parameters).fit(graphs, seed).embed(graphs)


@pytest.mark.parametrize("name", SMALL)
def test_the_same_seed_gives_the_same_bits_and_leaves_global_state_alone(graphs, name):
    with seeded(5):
        before = torch.initial_seed(), np.random.get_state()[1].tolist()  # noqa: NPY002
        one, again, other = embed(name, graphs), embed(name, graphs), embed(name, graphs, seed=1)
        assert (torch.initial_seed(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002
    assert one.shape == (30, 8)
    np.testing.assert_array_equal(one, again)
    assert not np.allclose(one, other)


def test_graph2vec_is_gensims_own_on_the_subtrees(graphs):
    rows = Graph2Vec().rows(read(graphs), torch.Generator())
    assert [len(words) for _, words in rows] == [3 * graph.num_nodes for graph in graphs]
    documents = [TaggedDocument([str(word) for word in words], [number]) for number, words in rows]
    with seeded(3):
        model = Doc2Vec(documents, dm=0, vector_size=8, min_count=0, epochs=3, workers=1, seed=3)
    np.testing.assert_array_equal(embed("graph2vec", graphs, seed=3), model.dv.vectors)


@pytest.mark.parametrize("name", ["graph2vec", "sub2vec"])
def test_graphs_of_one_kind_come_to_lie_together(name):
    """Rings and stars of several sizes: a graph's nearest is of its own kind."""
    made = []
    for size in range(12, 27):
        nodes = torch.arange(size)
        made.append(Data(x=torch.ones(size, 1), edge_index=torch.stack([nodes, (nodes + 1) % size])))
        made.append(Data(x=torch.ones(size, 1), edge_index=torch.stack([torch.zeros(size - 1, dtype=int), nodes[1:]])))
    z = embed(name, made, epochs=60, **({"walks": 4} if name == "sub2vec" else {}))
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    nearest = (unit @ unit.T - 2 * np.eye(len(z))).argmax(axis=1)
    assert np.mean(nearest % 2 == np.arange(len(z)) % 2) > 0.9


def test_a_pooled_embedding_is_the_mean_of_a_graphs_nodes(graphs):
    """A graph twice in the set: other walks, other vectors, and one of a single node is its node's."""
    alone = Data(x=torch.ones(1, 7), edge_index=torch.empty(2, 0, dtype=torch.int64))
    z = embed("node2vec", [*graphs[:3], alone])
    assert z.shape == (4, 8)
    assert np.isfinite(z).all()
    assert np.linalg.norm(z[3]) > 0
