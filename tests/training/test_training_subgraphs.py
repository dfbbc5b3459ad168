"""Training on parts of a graph: every node each epoch, the same from disk as from memory, and it learns."""

from __future__ import annotations

import logging
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.append(str(Path(__file__).parent.parent / "structure"))
from own_graphs import imported

from topoter import TopoTER
from topoter.datasets import block_model
from topoter.errors import UsageError
from topoter.graphs import GraphDirectory
from topoter.structure.adjacency import Adjacency
from topoter.structure.large_graph import LargeGraph
from topoter.training.batches.read_ahead import read_ahead
from topoter.training.batches.subgraphs import SUBGRAPHS

pytestmark = pytest.mark.usefixtures("one_thread")


def batches(kind: str, batch_nodes: int, seed: int = 0, num_nodes: int = 200):
    graph, _ = LargeGraph.from_data(block_model(num_nodes, 4, 8.0, 4, 0))
    return SUBGRAPHS[kind](graph, batch_nodes, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("kind", SUBGRAPHS)
def test_every_node_is_visited_each_epoch(kind: str) -> None:
    made = batches(kind, 50)
    for _ in range(3):
        seen = np.concatenate([made.joined(pieces) for pieces in made.draw()])
        assert set(seen) == set(range(200))
        if kind == "clusters":
            assert len(seen) == 200, "once"


@pytest.mark.parametrize("kind", SUBGRAPHS)
def test_parts_are_drawn_anew_and_by_the_seed_alone(kind: str) -> None:
    def epochs(seed: int) -> list[list[list[int]]]:
        made = batches(kind, 50, seed)
        return [[made.joined(pieces).tolist() for pieces in made.draw()] for _ in range(2)]

    first, second = epochs(0)
    assert first != second
    assert epochs(0) == [first, second]
    assert epochs(1) != [first, second]


def test_an_example_draws_nothing() -> None:
    made = batches("clusters", 50)
    state = made.generator.get_state()
    x, adjacency = made.example()
    assert x.shape[0] == adjacency.num_nodes
    assert torch.equal(state, made.generator.get_state())


def test_the_share_of_edges_cut_off_is_told(caplog: pytest.LogCaptureFixture) -> None:
    made = batches("clusters", 50)
    with caplog.at_level(logging.INFO, "topoter"):
        kept = sum(adjacency.num_edges for _, adjacency in made)
        list(made)
    (said,) = [record.getMessage() for record in caplog.records if "cut off" in record.getMessage()]
    assert said.startswith("4 parts per epoch, 50 nodes each; ")
    assert f"{1 - kept / made.graph.num_edges:.1%} of the edges lie between parts" in said


def test_one_part_is_the_whole_graph() -> None:
    made = batches("clusters", 200)
    ((_, part),) = list(made)
    whole, _ = Adjacency.from_edge_index(block_model(200, 4, 8.0, 4, 0).edge_index, 200)
    assert torch.equal(part.edges, whole.edges)


@pytest.mark.parametrize("encoder", ["hops", "sgc"])
def test_disk_and_memory_train_to_the_same_bits(tmp_path: Path, encoder: str) -> None:
    data = block_model(120, 3, 8.0, 6, 0, within=0.9)
    directory = GraphDirectory.open(imported(tmp_path, data))
    parameters = {"batch_nodes": 40, "out_channels": 8, "epochs": 4, "feature_scaling": "none"}
    stored, memory = (TopoTER(encoder, **parameters).fit(graph) for graph in (directory, data))
    assert stored.history_ == memory.history_
    assert len({record.loss for record in stored.history_}) == len(stored.history_) > 0
    assert (stored.num_nodes_, stored.num_edges_, stored.n_features_in_) == (120, memory.num_edges_, 6)
    assert np.array_equal(stored.transform(directory), memory.transform(data))
    path = tmp_path / "model.topoter"
    stored.save(path)
    assert TopoTER.load(path).batch_nodes == 40


@pytest.mark.parametrize("kind", SUBGRAPHS)
def test_it_learns(kind: str) -> None:
    data = block_model(400, 4, 10.0, 16, 0, within=0.9)
    model = TopoTER("sgc", batch_nodes=200, parts=kind, out_channels=16, epochs=25).fit(data)
    best = min(model.history_, key=lambda record: record.loss)
    assert best.loss < 0.97 * best.prior_entropy


def test_wrong_values_are_one_line() -> None:
    data = block_model(20, 2, 4.0, 4, 0)
    with pytest.raises(UsageError, match="'batch_nodes' parameter of TopoTER must be a whole number, at least 2"):
        TopoTER(batch_nodes=1).fit(data)
    with pytest.raises(UsageError, match=r"Unknown kind of parts 'cluster'. Did you mean 'clusters'\?"):
        TopoTER(batch_nodes=10, parts="cluster").fit(data)


def test_reading_ahead_keeps_the_order_and_passes_errors_on() -> None:
    threads = set()

    def make(item: int) -> int:
        threads.add(threading.get_ident())
        if item == 7:
            raise ValueError("seven")
        return item * item

    assert list(read_ahead(range(5), make)) == [0, 1, 4, 9, 16]
    assert len(threads) == 1
    assert threading.get_ident() not in threads
    made = read_ahead(range(6, 9), make)
    assert next(made) == 36
    with pytest.raises(ValueError, match="seven"):
        next(made)
    assert list(read_ahead([], make)) == []
