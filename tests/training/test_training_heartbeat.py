"""Processes that wait for each other: for one that is late, but not for one that is gone."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from torch.distributed import HashStore

from topoter.training.heartbeat import Heartbeat, Lost

PATIENCE = 0.5


def test_one_that_is_late_is_waited_for_and_one_that_is_gone_is_not() -> None:
    store = HashStore()
    first, second = (Heartbeat(store, rank, 2, PATIENCE) for rank in range(2))
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(first.wait)
        time.sleep(4 * PATIENCE)  # late, and alive
        assert not waiting.done()
        second.wait()
        waiting.result(timeout=30)
        second.close()
        with pytest.raises(Lost, match="Process 1 timed out"):
            threads.submit(first.wait).result(timeout=30)
    first.close()
