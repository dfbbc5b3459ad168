"""Embeddings in blocks: those of the model in memory, whatever the blocks, and a stopped run goes on."""

from __future__ import annotations

import errno
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

sys.path.append(str(Path(__file__).parent / "structure"))
from own_graphs import imported

from topoter import TopoTER
from topoter.block_embedding import embed_in_blocks
from topoter.datasets import block_model
from topoter.errors import DataError, UsageError
from topoter.graphs import GraphDirectory, read_embeddings
from topoter.structure import likely_graph

pytestmark = pytest.mark.usefixtures("one_thread")

NODES = 300
TIGHT = 25 * NODES  # bytes: room for a single column of all nodes


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> GraphDirectory:
    return GraphDirectory.open(imported(tmp_path_factory.mktemp("graph"), block_model(NODES, 4, 7.0, 6, 0)))


def fitted(directory: GraphDirectory, **parameters: Any) -> TopoTER:
    return TopoTER(**{"encoder": "sgc", "out_channels": 5, "epochs": 2, **parameters}).fit(directory)


@pytest.fixture(scope="module")
def whole_hops(directory: GraphDirectory) -> TopoTER:
    return fitted(directory, encoder="hops", out_channels=9)


class Stopped(Exception):
    pass


ENCODERS: dict[str, dict[str, Any]] = {
    "sgc, narrower than the features": {"encoder": "sgc", "order": 3},
    "sgc, wider than the features": {"encoder": "sgc", "out_channels": 9, "negative_slope": 0.1},
    "sgc in three layers": {"encoder": "sgc", "num_layers": 3, "hidden_channels": 7, "negative_slope": 0.3},
    "gcn": {"encoder": "gcn", "num_layers": 2, "hidden_channels": 8},
    "hops": {"encoder": "hops", "out_channels": 9},
    "hops without likely neighbours": {"encoder": "hops", "out_channels": 9, "encoder_parameters": {"completion": 0}},
    "hops, three of them on parts": {"encoder": "hops", "out_channels": 9, "order": 3, "batch_nodes": 40},
    "gin": {"encoder": "gin", "num_layers": 3, "hidden_channels": 7},
    "other features": {"feature_scaling": "sum"},
}


@pytest.mark.parametrize("parameters", ENCODERS.values(), ids=ENCODERS)
@pytest.mark.parametrize("memory", [TIGHT, 10**9])
def test_blocks_give_what_memory_gives(
    tmp_path: Path, directory: GraphDirectory, parameters: dict[str, Any], memory: int
) -> None:
    model = fitted(directory, **parameters)
    expected = model.transform(directory)
    out = tmp_path / "z.npy"
    assert embed_in_blocks(model, directory, out, memory) == expected.shape
    ids, z = read_embeddings(out)
    assert np.abs(z - expected).max() <= 1e-5 * np.abs(expected).max()
    assert ids.tolist() == list(range(NODES))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["z.ids.txt", "z.npy"]


def embedded(model: TopoTER, graph: GraphDirectory, out: Path, memory: int) -> np.ndarray:
    embed_in_blocks(model, graph, out, memory)
    stored: np.ndarray = np.load(out)
    return stored


def test_likely_neighbours_in_several_groups(
    tmp_path: Path, directory: GraphDirectory, whole_hops: TopoTER, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = whole_hops
    at_once = model.transform(directory)
    monkeypatch.setattr(likely_graph, "MOST_TOGETHER", 40)
    expected = model.transform(directory)
    assert not np.allclose(at_once, expected, atol=1e-3), "groups make a difference"
    told: list[float] = []

    def report(text: str, share: float) -> None:
        if "likely" in text:
            told.append(share)
            if len(told) > 1:  # the first comes before all groups
                raise Stopped

    for _ in range(3):
        with pytest.raises(Stopped):
            embed_in_blocks(model, directory, tmp_path / "z.npy", 10**6, report=report)
    assert told == sorted(set(told)), "each time it goes on with another group"
    assert np.allclose(embedded(model, directory, tmp_path / "z.npy", 10**6), expected, atol=1e-5)


def test_the_default_on_a_graph_that_has_grown(
    tmp_path: Path, directory: GraphDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    old = block_model(NODES, 4, 7.0, 6, 0).subgraph(torch.arange(NODES - 30))
    old.node_ids = list(range(NODES - 30))
    model = TopoTER(out_channels=9, epochs=2).fit(old)
    assert np.allclose(embedded(model, directory, tmp_path / "z.npy", 10**9), model.transform(directory), atol=1e-5)
    assert model.model_.encoder.here is not None, "nodes were known again by their ids"
    with caplog.at_level("INFO", logger="topoter"):
        z = embedded(model, directory, tmp_path / "z.npy", TIGHT)
    assert "hold a node's place in the graph are at their mean: to find them in this graph, too, takes --memory" in (
        caplog.text
    )
    nobody = directory.as_data()
    nobody.node_ids = [f"else {node}" for node in range(NODES)]
    assert np.allclose(z, model.transform(nobody), atol=1e-5)


def test_the_plain_twin(tmp_path: Path, directory: GraphDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted(directory)
    expected = model.transform(directory)
    monkeypatch.setenv("TOPOTER_KERNELS", "plain")
    embed_in_blocks(model, directory, tmp_path / "z.npy", TIGHT)
    assert np.allclose(np.load(tmp_path / "z.npy"), expected, atol=1e-5)


def test_weights_count(tmp_path: Path) -> None:
    from topoter.graphs.importing import import_graph

    (tmp_path / "edges.csv").write_text("source,target,weight\na,b,0.5\nb,c,2\nc,d,3\nd,a,0\n")
    import_graph([tmp_path / "edges.csv"], tmp_path / "graph.topo")
    weighted = GraphDirectory.open(tmp_path / "graph.topo")
    model = fitted(weighted)
    embed_in_blocks(model, weighted, tmp_path / "z.npy", 1000)
    assert np.allclose(np.load(tmp_path / "z.npy"), model.transform(weighted), atol=1e-5)


@pytest.mark.parametrize("layout", ["list", "columns"])
def test_a_folder_of_parquet_files(tmp_path: Path, directory: GraphDirectory, layout: str) -> None:
    model = fitted(directory)
    embed_in_blocks(model, directory, tmp_path / "z.parquet", TIGHT, layout)
    assert len(list((tmp_path / "z.parquet").iterdir())) > 1
    ids, z = read_embeddings(tmp_path / "z.parquet")
    assert ids.tolist() == pq.read_table(tmp_path / "z.parquet")["id"].to_pylist() == list(range(NODES))
    assert np.allclose(z, model.transform(directory), atol=1e-5)


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_a_stopped_run_goes_on_with_its_block(tmp_path: Path, directory: GraphDirectory, suffix: str) -> None:
    model = fitted(directory, encoder="gcn", num_layers=2, hidden_channels=8)
    whole, out = tmp_path / f"whole{suffix}", tmp_path / f"z{suffix}"
    steps: list[tuple[str, float]] = []
    embed_in_blocks(model, directory, whole, TIGHT, report=lambda *step: steps.append(step))
    assert [share for _, share in steps] == sorted(share for _, share in steps)
    rounds, left = 0, len(steps)

    def stop_after(count: int) -> Any:
        seen = []

        def report(text: str, share: float) -> None:
            seen.append(share)
            if len(seen) == count:
                raise Stopped

        return report

    for rounds in range(200):  # noqa: B007
        try:
            embed_in_blocks(model, directory, out, TIGHT, report=stop_after(max(2, left // 4)))
            break
        except Stopped:
            assert not out.exists()
    assert rounds >= 3, "it was stopped several times, and each time it came further"
    assert np.array_equal(read_embeddings(out)[1], read_embeddings(whole)[1])
    assert not (tmp_path / f".z{suffix}.blocks").exists()


@pytest.mark.parametrize("stage", ["transforming", "propagating", "likely", "writing"])
def test_a_disk_that_fills_up_is_one_line_and_nothing_is_lost(
    tmp_path: Path, directory: GraphDirectory, whole_hops: TopoTER, stage: str
) -> None:
    def full(text: str, share: float) -> None:
        if stage in text:
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(DataError, match=r"The disk of .* is full. Free some space and give the same command again"):
        embed_in_blocks(whole_hops, directory, tmp_path / "z.npy", 10**6, report=full)
    z = embedded(whole_hops, directory, tmp_path / "z.npy", 10**6)
    assert np.allclose(z, whole_hops.transform(directory), atol=1e-5)


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_stopped_while_it_tidies_up(
    tmp_path: Path, directory: GraphDirectory, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """What is half removed is not gone on with."""
    model, out, remove = fitted(directory), tmp_path / f"z{suffix}", shutil.rmtree

    def half(folder: Path, **options: object) -> None:
        blocks = sorted(folder.glob("stage-*/*.npy"))
        if blocks:
            blocks[0].unlink()
            raise Stopped
        remove(folder, **options)

    embed_in_blocks(fitted(directory, random_state=1), directory, out, TIGHT)
    monkeypatch.setattr(shutil, "rmtree", half)
    with pytest.raises(Stopped):
        embed_in_blocks(model, directory, out, TIGHT)
    monkeypatch.undo()
    embed_in_blocks(model, directory, out, TIGHT)
    assert np.allclose(read_embeddings(out)[1], model.transform(directory), atol=1e-5)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_blocks_of_another_model_are_not_gone_on_with(tmp_path: Path, directory: GraphDirectory) -> None:
    def report(text: str, share: float) -> None:
        if text == "writing":
            raise Stopped

    first, second = fitted(directory), fitted(directory, random_state=1)
    with pytest.raises(Stopped):
        embed_in_blocks(first, directory, tmp_path / "z.npy", TIGHT, report=report)
    embed_in_blocks(second, directory, tmp_path / "z.npy", TIGHT)
    assert np.allclose(np.load(tmp_path / "z.npy"), second.transform(directory), atol=1e-5)


def test_what_cannot_be_done_is_one_line(tmp_path: Path, directory: GraphDirectory) -> None:
    model = fitted(directory)
    with pytest.raises(UsageError, match=r"1 kB are too little to embed 300 nodes: give at least --memory 8kB"):
        embed_in_blocks(model, directory, tmp_path / "z.npy", 1000)
    with pytest.raises(UsageError, match=r"z.csv: embeddings of a graph larger than memory are written as .parquet or"):
        embed_in_blocks(model, directory, tmp_path / "z.csv", TIGHT)
    own = fitted(directory, encoder="torch_geometric.nn:GCNConv", encoder_parameters={"out_channels": 4})
    with pytest.raises(UsageError, match="The encoder of this model needs the whole graph in memory"):
        embed_in_blocks(own, directory, tmp_path / "z.npy", TIGHT)
    other = TopoTER("sgc", out_channels=4, epochs=1).fit(block_model(30, 2, 4.0, 3, 0))
    with pytest.raises(DataError, match="The graph has 6 features per node; the model was fitted on 3"):
        embed_in_blocks(other, directory, tmp_path / "z.npy", TIGHT)
