"""The next batch is made in a second thread while the step on this one runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


def read_ahead(items: Iterable[Item], make: Callable[[Item], Made]) -> Iterator[Made]:
    """`make` of each item in order; one is made ahead. `make` never runs twice at the same time."""
    with ThreadPoolExecutor(1, "read-ahead") as worker:
        waiting = None
        for item in items:
            made = worker.submit(make, item)
            if waiting is not None:
                yield waiting.result()
            waiting = made
        if waiting is not None:
            yield waiting.result()
