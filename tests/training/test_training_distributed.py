"""Several processes under torchrun: one model, the same losses, and what happens when one of them is killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.append(str(Path(__file__).parent.parent / "structure"))
from own_graphs import imported

from topoter import TopoTER
from topoter.datasets import block_model
from topoter.graphs import GraphDirectory, read_embeddings

EPOCHS = 12
SIZES = ("--batch-nodes", 500, "--channels", 16, "--epochs", EPOCHS, "--patience", 50)
OPTIONS = (*SIZES, "--encoder", "sgc", "--save-seconds", 0)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported(tmp_path_factory.mktemp("graph"), block_model(2000, 4, 10.0, 16, 0, within=0.9))


def command(processes: int, *arguments: object) -> list[str]:
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", str(processes), "-m", "topoter"]
    start = torchrun if processes > 1 else ["-m", "topoter"]
    return [sys.executable, "-W", "ignore", *start, *map(str, arguments)]


def fit(
    processes: int, *arguments: object, cwd: Path, options: tuple[object, ...] = OPTIONS
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command(processes, "fit", *arguments, *options),
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def losses(path: Path) -> list[float]:
    return [record.loss for record in TopoTER.load(path).history_]


@pytest.fixture(scope="module")
def two(graph: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes leave behind that nobody disturbs."""
    folder = tmp_path_factory.mktemp("two")
    answer = fit(2, graph, "--json", "-o", "model.topoter", cwd=folder)
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["epochs"] == EPOCHS, "one of them prints"
    assert answer.stderr.count("parts per epoch") == 1
    assert [path.name for path in folder.iterdir()] == ["model.topoter"], "one of them writes"
    return folder / "model.topoter"


def alone(graph: Path, encoder: str) -> TopoTER:
    sizes = {"batch_nodes": 500, "out_channels": 16, "epochs": EPOCHS, "patience": 50}
    return TopoTER(encoder, **sizes).fit(GraphDirectory.open(graph))


def test_two_processes_learn_as_one_does(graph: Path, two: Path) -> None:
    ours, theirs = np.array(losses(two)), np.array([record.loss for record in alone(graph, "sgc").history_])
    assert np.abs(ours / theirs - 1).max() < 0.02
    assert ours[-1] < ours[0]


def test_two_processes_add_up_what_the_default_takes_from_the_graph(graph: Path, tmp_path: Path) -> None:
    answer = fit(2, graph, "-q", "-o", "model.topoter", cwd=tmp_path, options=SIZES)
    assert answer.returncode == 0, answer.stderr
    one, both = alone(graph, "hops"), TopoTER.load(tmp_path / "model.topoter")
    epochs = min(len(one.history_), len(both.history_))  # as many as neighbours agree, by what either drew
    ours, theirs = (np.array([record.loss for record in model.history_[:epochs]]) for model in (both, one))
    assert np.abs(ours / theirs - 1).max() < 0.02
    assert torch.allclose(both.model_.encoder.mean, one.model_.encoder.mean, atol=1e-5)
    assert both.model_.encoder.told.trust == pytest.approx(one.model_.encoder.told.trust, abs=0.05)


def test_two_processes_share_the_blocks_of_an_embedding(graph: Path, two: Path, tmp_path: Path) -> None:
    answer = subprocess.run(
        command(2, "embed", two, graph, "-o", "z.parquet", "--memory", "1GB"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == "z.parquet\n"
    expected = TopoTER.load(two).transform(GraphDirectory.open(graph))
    assert np.allclose(read_embeddings(tmp_path / "z.parquet")[1], expected, atol=1e-5)
    assert [path.name for path in tmp_path.iterdir()] == ["z.parquet"]


def workers_of(process: int) -> list[int]:
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
    return [pid for pid, parent in pairs if parent == process]


def wait_for(state: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 100
    while not state.exists() and time.monotonic() < deadline:
        assert process.poll() is None, "it was done before it could be killed"
        time.sleep(0.01)


def test_a_killed_process_ends_the_others_and_the_training_is_resumed(
    graph: Path, two: Path, tmp_path: Path, listening: Callable[[int], list[str]]
) -> None:
    process = subprocess.Popen(
        command(2, "fit", graph, "-o", "model.topoter", *OPTIONS),
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    wait_for(tmp_path / "model.topoter.resume", process)
    reached = [address for worker in workers_of(process.pid) for address in listening(worker)]
    assert set(reached) == {"127.0.0.1"}, "the processes talk over loopback, and nobody else is let in"
    os.kill(workers_of(process.pid)[-1], signal.SIGKILL)
    _, said = process.communicate(timeout=60)  # within a minute
    assert process.returncode != 0
    assert "Signal 9 (SIGKILL)" in said
    assert not (tmp_path / "model.topoter").exists()
    again = fit(2, graph, "--resume", "-o", "model.topoter", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert "Going on after epoch" in again.stderr
    assert losses(tmp_path / "model.topoter") == losses(two), "bit for bit"
    new = block_model(50, 2, 4.0, 16, 0)
    new.feature_names = [f"x{column}" for column in range(16)]
    assert np.array_equal(*(TopoTER.load(path).transform(new) for path in (tmp_path / "model.topoter", two)))


def two_machines(*arguments: object, cwd: Path) -> list[subprocess.Popen[str]]:
    """Two torchrun nodes with a process each, and each with a loopback address of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = []
    for number in range(2):
        meeting = ("--master-addr", "127.0.0.1", "--master-port", port, "--local-addr", f"127.0.0.{number + 1}")
        torchrun = ("torch.distributed.run", "--nnodes", 2, "--node-rank", number, *meeting, "--nproc-per-node", 1)
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", *map(str, torchrun), "-m", "topoter", *map(str, arguments)],
            cwd=cwd,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # so that all of a machine can be killed at once
        )
        started.append(process)
    return started


@pytest.mark.skipif(sys.platform == "darwin", reason="there 127.0.0.2 is no address until it is set up")
def test_a_machine_is_lost_and_the_training_is_resumed(graph: Path, two: Path, tmp_path: Path) -> None:
    arguments = ("fit", graph, "-o", "model.topoter", *OPTIONS)
    first, second = two_machines(*arguments, cwd=tmp_path)
    wait_for(tmp_path / "model.topoter.resume", first)
    for process in (second.pid, *workers_of(second.pid)):
        os.kill(process, signal.SIGKILL)
    _, said = first.communicate(timeout=60)  # within a minute
    second.communicate()
    assert first.returncode != 0
    assert "error: Another process of this training was lost (" in said
    assert "Run the same command with --resume to go on." in said
    assert not (tmp_path / "model.topoter").exists()
    for process in two_machines(*arguments, "--resume", cwd=tmp_path):
        _, said = process.communicate(timeout=200)
        assert process.returncode == 0, said
    assert losses(tmp_path / "model.topoter") == losses(two), "bit for bit, whether on one machine or on two"


def test_several_processes_need_parts(graph: Path, tmp_path: Path) -> None:
    answer = subprocess.run(
        command(2, "fit", graph, "-q", "-o", "model.topoter"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert answer.returncode != 0
    assert "error: Several processes train on parts of one graph: give" in answer.stderr
    assert list(tmp_path.iterdir()) == []
