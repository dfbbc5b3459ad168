"""Runs on several cores: processes that each make one run after another, and die with the one that started them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path

from topoter.experiments.bench import Bench, Failure, Watcher
from topoter.experiments.runs import Run

# A fresh interpreter each: PyTorch's threads do not survive a fork.
_PROCESSES = multiprocessing.get_context("spawn")
_THREAD_LIMITS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
_SECONDS_BETWEEN_PROGRESS = 0.2


def make_in_processes(
    runs: Sequence[Run], folder: Path, data_root: Path | None, jobs: int, watcher: Watcher
) -> list[Failure]:
    """Make all runs, `jobs` at a time; returns those that failed.

    Whatever ends this function, an interrupt too, ends the processes. A run that brings its process down (for lack of
    memory, say) counts as failed, and another process takes its place.
    """
    waiting = deque(runs)
    failures: list[Failure] = []
    workers: list[_Worker] = []
    try:
        for _ in range(min(jobs, len(waiting))):
            workers.append(_Worker(folder, data_root, threads_per_job(jobs)))
            workers[-1].give(waiting.popleft())
        while workers:
            ready = wait([worker.connection for worker in workers])
            for worker in [worker for worker in workers if worker.connection in ready]:
                told = worker.receive()
                if isinstance(told, tuple):
                    watcher.progressed(worker.run, *told)
                    continue
                if isinstance(told, Failure):
                    failures.append(told)
                watcher.finished(worker.run, None if isinstance(told, Failure) else told)
                if not waiting or not worker.alive:
                    worker.end()
                    workers.remove(worker)
                if waiting and not worker.alive:
                    worker = _Worker(folder, data_root, threads_per_job(jobs))
                    workers.append(worker)
                if waiting:
                    worker.give(waiting.popleft())
    finally:
        for worker in workers:
            worker.end()
    return failures


def threads_per_job(jobs: int) -> int:
    """The cores shared out among the processes."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        cores = os.cpu_count() or 1
    return max(1, cores // jobs)


class _Worker:
    """A process, seen from the one that started it, and the run it was given."""

    run: Run

    def __init__(self, folder: Path, data_root: Path | None, threads: int) -> None:
        self.connection, theirs = _PROCESSES.Pipe()
        self._process = _PROCESSES.Process(target=_work, args=(theirs, folder, data_root, threads), daemon=True)
        with _limited_threads(threads), _no_interrupt():
            self._process.start()
        theirs.close()  # so that ours ends when the process does
        self.alive = True

    def give(self, run: Run) -> None:
        self.run = run
        with suppress(OSError):  # if the process is gone, receiving will tell
            self.connection.send(run)

    def receive(self) -> tuple[float, str] | float | Failure:
        """How far the run is, or the seconds it took, or why it failed."""
        try:
            told: tuple[float, str] | float | Failure = self.connection.recv()
        except (EOFError, OSError):
            self.alive = False
            self._process.join()
            code = self._process.exitcode or 0
            how = f"was ended by signal {-code}, for lack of memory perhaps" if code < 0 else f"ended with code {code}"
            return Failure(self.run, f"Its process {how}. Run it again, with fewer --jobs.")
        return told

    def end(self) -> None:
        """At once: what the process has not kept yet is lost, and what it has is whole."""
        self._process.kill()
        self._process.join()
        self.connection.close()


def _work(connection: Connection, folder: Path, data_root: Path | None, threads: int) -> None:
    """What a process does: makes the runs it is given, until it is ended."""
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; ours is to be ended by our parent
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(min(threads, torch.get_num_threads()))
    bench = Bench(folder, data_root)
    told = 0.0

    def tell(done: int, steps: int, text: str) -> None:
        nonlocal told
        if steps and time.monotonic() - told >= _SECONDS_BETWEEN_PROGRESS:
            told = time.monotonic()
            connection.send((min(1.0, done / steps), text))

    while True:
        connection.send(bench.attempt(connection.recv(), tell))


def _end_with_parent() -> None:
    """A killed parent cannot end its processes; none of them shall go on for hours on its own."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _limited_threads(threads: int) -> Iterator[None]:
    """Inside the block, new processes are told to use so many threads, or fewer if they were told so before."""
    before = {name: os.environ.get(name) for name in _THREAD_LIMITS}
    for name, value in before.items():
        os.environ[name] = str(min(threads, int(value)) if value and value.isdigit() else threads)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """Inside the block Ctrl-C waits; processes started there never see it, not even while they still import."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
