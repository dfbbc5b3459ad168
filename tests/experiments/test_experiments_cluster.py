"""Runs on a Dask cluster: a scheduler and two workers, real processes on this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from own_methods import told
from test_experiments_runner import Seen, own_runs

from topoter.errors import TopoterError
from topoter.experiments.engines import on_cluster
from topoter.experiments.runner import make_all
from topoter.experiments.store import Store

Client = pytest.importorskip("distributed").Client
# Dask's own threads and sockets are closed when they are collected.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def cluster(tmp_path):
    """The address, and a function that starts a worker."""
    address = f"tcp://127.0.0.1:{free_port()}"
    environment = {
        **os.environ,
        "TOPOTER_TEST_FOLDER": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]),
        "DASK_TEMPORARY_DIRECTORY": str(tmp_path),
    }
    processes = []

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        log = (tmp_path / f"{len(processes)}.log").open("wb")
        # As docs/reproducing.md has it: without these, Dask's web pages are served to all interfaces.
        command = [sys.executable, "-m", *arguments, "--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]
        processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
        log.close()
        return processes[-1]

    def worker() -> subprocess.Popen[bytes]:
        return start("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny")

    start("distributed.cli.dask_scheduler", "--port", address.rpartition(":")[2])
    yield address, worker
    for process in processes:
        process.kill()
        process.wait()


def test_a_worker_killed_in_the_middle_loses_nothing_and_nothing_is_made_twice(tmp_path, cluster, listening):
    address, worker = cluster
    workers = [worker(), worker()]
    runs, seen, store = own_runs("Told", 8), Seen(), Store.read(tmp_path / "out")

    def kill_one() -> None:
        """In the middle of a run of the first worker, when those that it has done are kept."""
        while True:
            own = [(word, seed) for word, seed, pid in told(tmp_path) if pid == workers[0].pid]
            ended = {seed for word, seed in own if word == "end"}
            if ended and ended <= {key[-1] for key, _ in seen.done} and own[-1][0] == "begin":
                break
            time.sleep(0.01)
        workers[0].send_signal(signal.SIGKILL)

    with on_cluster(address) as engine, Client(address, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        assert listening(os.getpid()) == [], "topoter itself lets nobody in"
        assert {address for process in workers for address in listening(process.pid)} == {"127.0.0.1"}
        killer = threading.Thread(target=kill_one)
        killer.start()
        assert make_all(runs, store, None, engine, seen) == []
        killer.join()
    assert [record.seed for record in store.records] == list(range(8))
    assert Store.read(tmp_path / "out").records == store.records
    assert Counter(key for key, _ in seen.done) == Counter(run.key for run in runs)
    assert {pid for _, _, pid in told(tmp_path)} == {process.pid for process in workers}
    begun = Counter(seed for word, seed, _ in told(tmp_path) if word == "begin")
    ended = Counter(seed for word, seed, _ in told(tmp_path) if word == "end")
    assert set(ended) == set(range(8))
    assert begun.total() == 9  # only what the lost worker was at began again
    assert ended.total() == 8
    with on_cluster(address) as engine:
        assert make_all(runs, store, None, engine, seen) == []
    assert Counter(seed for word, seed, _ in told(tmp_path) if word == "begin") == begun  # all is there


def test_a_cluster_that_is_not_there_or_has_no_workers_is_one_line(monkeypatch, cluster):
    monkeypatch.setattr("topoter.experiments.engines._SECONDS_TO_REACH", 1)
    with (
        pytest.raises(TopoterError, match=r"no Dask scheduler at 'tcp://127\.0\.0\.1:1'"),
        on_cluster("tcp://127.0.0.1:1"),
    ):
        pass
    with pytest.raises(TopoterError, match="no Dask scheduler at 'nonsense://x'"), on_cluster("nonsense://x"):
        pass
    address, _ = cluster
    deadline = time.monotonic() + 60
    while True:  # until the scheduler listens
        try:
            socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))).close()
            break
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    with pytest.raises(TopoterError, match="has no workers: start some with `dask worker"), on_cluster(address):
        pass
