"""Several processes that `torchrun` starts: each trains on its share, gradients are averaged, one of them writes.

    torchrun --nproc-per-node 2 -m topoter fit graph.topo --batch-nodes 100000

The transport is PyTorch's: gloo on CPUs, nccl on GPUs. Without torchrun there is one process, and nothing here does
anything.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from topoter.errors import TopoterError
from topoter.training.heartbeat import Heartbeat

PATIENCE = timedelta(seconds=50)  # until a process that is not heard of is given up


_heartbeat: Heartbeat | None = None


class ProcessLost(TopoterError):
    """Another process of a training ended, so that this one cannot go on."""


@dataclass(frozen=True)
class Group:
    """The processes of a training: which one this is, and how many there are."""

    rank: int = 0
    size: int = 1

    @property
    def writes(self) -> bool:
        """Whether this is the process that prints and writes files."""
        return self.rank == 0

    def parallel(self, module: nn.Module) -> nn.Module:
        """The module as it is called in a step: with gradients averaged over all processes."""
        if self.size == 1 or isinstance(module, DistributedDataParallel):
            return module
        self.wait()
        return DistributedDataParallel(module)

    def total(self, *values: float) -> list[float]:
        """The sum of each number over all processes."""
        if self.size == 1:
            return list(values)
        summed = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(summed)
        return summed.tolist()

    def total_of(self, counts: Tensor) -> Tensor:
        """The sum of a tensor over all processes."""
        if self.size > 1:
            counts = counts.clone()
            dist.all_reduce(counts)
        return counts

    def any(self, flag: bool) -> bool:
        """Whether it holds in any process; all must ask."""
        return self.total(float(flag))[0] > 0

    def wait(self) -> None:
        """Go on when all processes are here, however long that takes, unless one is lost."""
        if _heartbeat is not None:
            _heartbeat.wait()

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """The tensor of every process, in their order."""
        found = [torch.empty_like(tensor) for _ in range(self.size)]
        dist.all_gather(found, tensor)
        return found


def current_group() -> Group:
    """The processes this one belongs to; alone where no group was started."""
    if not (dist.is_available() and dist.is_initialized()):
        return Group()
    return Group(dist.get_rank(), dist.get_world_size())


def restarted() -> bool:
    """Whether torchrun started the processes again after one was lost."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT") or 0) > 0


@contextmanager
def process_group(device: str = "cpu") -> Iterator[Group]:
    """Join the processes that torchrun started, if it did; a process that is lost ends the others with one line."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        yield Group()
        return
    global _heartbeat  # one for the process, as the group itself
    if os.environ.get("MASTER_ADDR") in ("127.0.0.1", "localhost", "::1"):
        # All processes are on this machine: nobody else has to reach them.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    store, rank, size = next(dist.rendezvous("env://", timeout=PATIENCE))
    backend = "nccl" if device.startswith("cuda") else "gloo"
    dist.init_process_group(
        backend, store=dist.PrefixStore("group", store), rank=rank, world_size=size, timeout=PATIENCE
    )
    _heartbeat = Heartbeat(dist.PrefixStore("heartbeat", store), rank, size, PATIENCE.total_seconds())
    try:
        yield current_group()
    except (RuntimeError, dist.DistError) as error:
        if not _is_lost_connection(error):
            raise
        reason = "it did not answer" if "timed out" in str(error).lower() else "its connection is closed"
        raise ProcessLost(
            f"Another process of this training was lost ({reason}). Run the same command with --resume to go on."
        ) from None
    finally:
        _heartbeat.close()
        _heartbeat = None
        dist.destroy_process_group()


def _is_lost_connection(error: BaseException) -> bool:
    signs = ("gloo", "nccl", "connection", "timed out", "closed by peer")
    return any(sign in str(error).lower() for sign in signs)
