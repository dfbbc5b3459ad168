"""Where runs are made: in this process, in several on this machine (loky), or on a Dask cluster.

Each is a `concurrent.futures.Executor`; scheduling, transport and lost workers are left to it.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from topoter.errors import TopoterError

_THREAD_LIMITS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
_SECONDS_TO_REACH = 10  # a cluster, and a worker of it


class InProcess(Executor):
    """Makes a run when it is submitted, in this thread: it can be interrupted, and tells how far it is."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*arguments, **keywords))
        return future


@dataclass(frozen=True)
class Engine:
    """Where runs are made.

    Args:
        start: makes the executor, and another one if it breaks.
        stop: ends it at once.
        at_once: how many runs it is given at a time.
        here: whether runs are made in this process, and can tell how far they are.
    """

    start: Callable[[], Executor]
    stop: Callable[[Any], None]
    at_once: int
    here: bool = False


def on_this_machine(jobs: int) -> Engine:
    """One run after another in this process, or several at once in processes of their own."""
    if jobs == 1:
        return Engine(InProcess, lambda executor: None, 1, here=True)
    from loky import ProcessPoolExecutor

    threads = threads_per_job(jobs)
    environment = {name: _at_most(threads, os.environ.get(name)) for name in _THREAD_LIMITS}
    environment["LOKY_MAX_MEMORY_LEAK_SIZE"] = "1e18"  # a larger dataset is no leak: keep the process

    def start() -> Executor:
        with _no_interrupt(), _without_warning("resource_tracker"):  # loky's tracker may start with the executor
            executor: Executor = ProcessPoolExecutor(
                jobs, initializer=_begin_work, initargs=(threads, os.getpid()), env=environment
            )
            executor.submit(os.getpid)  # starts all of them
        return executor

    return Engine(start, lambda executor: executor.shutdown(wait=True, kill_workers=True), jobs)


@contextmanager
def on_cluster(address: str) -> Iterator[Engine]:
    """A Dask cluster: it finds workers for runs, and gives those of a lost worker to another one."""
    try:
        from distributed import Client
    except ImportError as error:
        raise TopoterError("--cluster needs Dask: pip install 'topoter[cluster]'.") from error
    try:
        client = Client(address, timeout=_SECONDS_TO_REACH, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise TopoterError(f"There is no Dask scheduler at {address!r}: start one with `dask scheduler`.") from error
    try:
        try:
            client.wait_for_workers(1, timeout=_SECONDS_TO_REACH)
        except TimeoutError as error:
            raise TopoterError(f"The cluster has no workers: start some with `dask worker {address}`.") from error
        yield Engine(client.get_executor, lambda executor: executor.shutdown(wait=False), at_once=10**9)
    finally:
        client.close(timeout=2)


def threads_per_job(jobs: int) -> int:
    """The cores shared out among the processes."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        cores = os.cpu_count() or 1
    return max(1, cores // jobs)


def _at_most(threads: int, before: str | None) -> str:
    return str(min(threads, int(before)) if before and before.isdigit() else threads)


def _begin_work(threads: int, parent: int) -> None:
    """What a process of our own does first."""
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; ours is to be ended by our parent
    torch.set_num_threads(min(threads, torch.get_num_threads()))
    threading.Thread(target=end_with, args=(parent,), daemon=True).start()


def end_with(parent: int) -> None:
    """A killed parent cannot end its processes; none of them shall go on for hours on its own.

    Its number comes from itself: asked for here, it would be another one if the parent is gone already.
    """
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


@contextmanager
def _without_warning(start: str) -> Iterator[None]:
    """Processes started inside the block keep a warning to themselves.

    loky's tracker frees what an interrupted process leaves behind, and would say so after our own last line.
    """
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [before, f"ignore:{start}:UserWarning"]))
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before


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
