"""`topoter import` as a user calls it: killed, on a full disk, and its directory in the place of a graph."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from own_files import write_graph
from sub_processes import command, fails, topoter

from topoter import TopoTER
from topoter.datasets import block_model
from topoter.graphs import read_graph
from topoter.graphs.directory import GraphDirectory


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Edges whose import takes long enough to be stopped."""
    path = tmp_path_factory.mktemp("large") / "edges.parquet"
    ends = np.random.default_rng(0).integers(0, 200_000, (2, 1_500_000))
    names = pa.array([f"user {number}" for number in range(200_000)])
    pq.write_table(pa.table({"source": names.take(ends[0]), "target": names.take(ends[1])}), path)
    return path


def test_a_killed_import_leaves_no_graph_and_the_next_one_starts_cleanly(tmp_path: Path, large: Path) -> None:
    out = tmp_path / "graph.topo"
    process = subprocess.Popen(command("import", large, "-o", out, "-q"), cwd=tmp_path)
    deadline = time.monotonic() + 60
    while not (tmp_path / ".graph.topo.importing" / "ids.parquet").exists() and time.monotonic() < deadline:
        assert process.poll() is None, "it was done before it could be killed"
        time.sleep(0.005)
    process.kill()
    assert process.wait(30) == -signal.SIGKILL
    assert not out.exists()
    again = topoter("import", large, "-o", out, "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["nodes"] == GraphDirectory.open(out).num_nodes
    assert [path.name for path in tmp_path.iterdir()] == ["graph.topo"]


def test_ctrl_c_is_one_line_and_leaves_nothing(tmp_path: Path, large: Path) -> None:
    process = subprocess.Popen(
        command("import", large, "-o", "g.topo"), cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".g.topo.importing/scratch/tables.duckdb*")) and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert said == "error: Interrupted.\n"
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path, large: Path) -> None:
    result = subprocess.run(
        command("import", large, "-o", "graph.topo", "--memory", "100MB"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5_000_000, 5_000_000)),
    )
    assert result.returncode == 1, result.stderr
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: The disk of {tmp_path} is full; nothing was left there.")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_stands_wherever_a_graph_does(tmp_path: Path) -> None:
    write_graph(tmp_path, block_model(60, 3, 6, 8, 0))
    made = topoter("import", "edges.csv", "--features", "features.csv", "-o", "graph.topo", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert made.stdout == "graph.topo\n"
    assert "60 nodes with 8 features each" in made.stderr
    fitted = topoter("fit", "graph.topo", "--epochs", 5, "--channels", 8, cwd=tmp_path)
    assert fitted.returncode == 0, fitted.stderr
    embedded = topoter("embed", "model.topoter", "graph.topo", "-o", "z.npy", cwd=tmp_path)
    assert embedded.returncode == 0, embedded.stderr
    read, _ = read_graph(tmp_path / "edges.csv", features=tmp_path / "features.csv")
    expected = TopoTER(**TopoTER.load(tmp_path / "model.topoter").get_params()).fit_transform(read)
    assert np.allclose(np.load(tmp_path / "z.npy"), expected, atol=1e-5), "as from the files themselves"
    linked = topoter("links", "model.topoter", "graph.topo", "--top", 3, cwd=tmp_path)
    assert linked.returncode == 0, linked.stderr
    assert (tmp_path / "links.csv").read_text().splitlines()[1].startswith("n")
    told = topoter("info", "graph.topo", "--json", cwd=tmp_path)
    assert json.loads(told.stdout)["nodes"] == 60
    assert "--features: graph.topo is imported already" in fails(
        2, "fit", "graph.topo", "--features", "features.csv", cwd=tmp_path
    )
