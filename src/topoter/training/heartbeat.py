"""Waiting for other processes as long as they live.

Shares of the work may take minutes more or less: a partition on a busy machine, a block on a slow disk. So a process
that is late is no lost one. Each tells the others every few seconds that it is alive, through the store where they
met, and one that has not been heard of for `patience` seconds is given up.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Protocol

_LOOKS = 0.02, 1.0  # seconds between two looks at who has come: at first, and after a while


class Store(Protocol):
    """What is used of torch's stores."""

    def add(self, key: str, amount: int, /) -> int: ...


class Lost(RuntimeError):
    """A process that has not been heard of."""


class Heartbeat:
    """Beats in a thread of its own until it is closed."""

    def __init__(self, store: Store, rank: int, size: int, patience: float) -> None:
        self._store, self._rank, self._size, self._patience = store, rank, size, patience
        self._round = 0
        self._done = threading.Event()
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    def wait(self) -> None:
        """Return when all processes are here; raise `Lost` if one of them is gone."""
        self._round += 1
        place, heard, pause = f"here/{self._round}", dict[int, tuple[int, float]](), _LOOKS[0]
        arrived = self._store.add(place, 1)
        while arrived < self._size:
            time.sleep(pause)
            pause = min(2 * pause, _LOOKS[1])
            self._listen(heard)
            arrived = self._store.add(place, 0)

    def close(self) -> None:
        self._done.set()

    def _beat(self) -> None:
        with suppress(RuntimeError):  # the store is gone, which the process itself will notice
            while not self._done.wait(self._patience / 10):
                self._store.add(f"alive/{self._rank}", 1)

    def _listen(self, heard: dict[int, tuple[int, float]]) -> None:
        now = time.monotonic()
        for rank in range(self._size):
            beats = self._store.add(f"alive/{rank}", 0)
            if rank not in heard or heard[rank][0] != beats:
                heard[rank] = beats, now
            elif now - heard[rank][1] > self._patience:
                raise Lost(f"Process {rank} timed out.")
