"""Graphs larger than memory on the command line: estimate, fit on parts, embed block by block."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from sub_processes import fails, topoter

sys.path.append(str(Path(__file__).parent.parent / "structure"))
from own_graphs import imported

from topoter import TopoTER
from topoter.datasets import block_model
from topoter.estimate import embed_memory, fit_memory, parts_memory, size_of
from topoter.graphs import GraphDirectory, read_embeddings

CHANNELS = 64


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported(tmp_path_factory.mktemp("graph"), block_model(20_000, 4, 6.0, 8, 0))


def test_fit_and_embed_within_less_memory_than_the_graph_takes(tmp_path: Path, graph: Path) -> None:
    size = size_of(GraphDirectory.open(graph), TopoTER(out_channels=CHANNELS))
    between = int((fit_memory(size) + parts_memory(size, 2000)) / 2)
    options = ("--channels", CHANNELS, "--epochs", 2, "--patience", 5)
    fitted = topoter("fit", graph, *options, "--memory", between, "-o", "model.topoter", cwd=tmp_path)
    assert fitted.returncode == 0, fitted.stderr
    assert "On parts of " in fitted.stderr
    assert "of the edges lie between parts and are cut off" in fitted.stderr
    batch_nodes = TopoTER.load(tmp_path / "model.topoter").batch_nodes
    assert batch_nodes is not None
    assert 1000 <= batch_nodes < 20_000
    little = int(embed_memory(size)) - 1
    embedded = topoter("embed", "model.topoter", graph, "--memory", little, "-o", "z.parquet", cwd=tmp_path)
    assert embedded.returncode == 0, embedded.stderr
    assert "Embedded block by block" in embedded.stderr
    assert (tmp_path / "z.parquet").is_dir()
    expected = TopoTER.load(tmp_path / "model.topoter").transform(GraphDirectory.open(graph))
    z = read_embeddings(tmp_path / "z.parquet")[1]
    assert np.abs(z - expected).max() <= 1e-5 * np.abs(expected).max()


def test_estimate_tells_before_anything_is_read(graph: Path) -> None:
    answer = topoter("estimate", graph, "--channels", CHANNELS, "--json")
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert (found["nodes"], found["edges"], found["features"], found["channels"]) == (20_000, 60_000, 8, CHANNELS)
    assert found["fit_fits"]
    assert found["seconds_around_epochs"] > 0


def test_a_graph_that_does_not_fit_says_so_at_once(tmp_path: Path, graph: Path) -> None:
    """A manifest that claims a graph larger than any machine: nothing of it is read before that is noticed."""
    huge = tmp_path / "huge.topo"
    huge.mkdir()
    for file in graph.iterdir():
        (huge / file.name).symlink_to(file)
    content = json.loads((graph / "manifest.json").read_text())
    (huge / "manifest.json").unlink()
    (huge / "manifest.json").write_text(json.dumps({**content, "num_nodes": 20_000_000, "num_edges": 10**9}))
    said = fails(2, "fit", huge, "-q", "-o", tmp_path / "model.topoter")
    assert "Training on the whole graph takes about" in said
    assert "give --memory" in said
    assert not (tmp_path / "model.topoter").exists()
    told = topoter("estimate", huge, "--memory", "4GB")
    assert "does not fit" in told.stdout
    TopoTER("sgc", out_channels=4, epochs=1).fit(GraphDirectory.open(graph)).save(tmp_path / "small.topoter")
    (huge / "manifest.json").write_text(json.dumps({**content, "num_nodes": 20_000_000, "num_edges": 10**12}))
    ranked = fails(2, "links", tmp_path / "small.topoter", huge, "-q", "-o", tmp_path / "links.csv")
    assert "takes 32.0 TB of memory as a whole" in ranked
    both = fails(2, "fit", graph, "-q", "--memory", "4GB", "--batch-nodes", 5000, "-o", tmp_path / "model.topoter")
    assert "give one of them" in both


def test_new_nodes_within_a_graph(tmp_path: Path, graph: Path) -> None:
    TopoTER("sgc", out_channels=4, epochs=1).fit(GraphDirectory.open(graph)).save(tmp_path / "model.topoter")
    (tmp_path / "new.csv").write_text("source,target\n99999,0\n99999,7\n")
    (tmp_path / "x.csv").write_text("id,x0,x1,x2,x3,x4,x5,x6,x7\n99999,1,2,3,4,5,6,7,8\n")
    options = ("--within", graph, "--features", "x.csv", "-o", "z.csv")
    answer = topoter("embed", "model.topoter", "new.csv", *options, cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert "1 new nodes; " in answer.stderr
    assert (tmp_path / "z.csv").read_text().splitlines()[1].startswith("99999,")
