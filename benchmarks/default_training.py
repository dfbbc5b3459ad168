"""The one default: a whole `fit` beside as many epochs of its plain twin, and with two threads beside one.

The clock of ours counts everything: the directions taken from the data, the transformed graphs, the epochs, the judging
of each, the places of nodes and the likely neighbours. That of the twin counts its epochs alone.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.memory import in_own_process
from benchmarks.twin import PlainDefault
from topoter import TopoTER
from topoter.datasets import block_model, load
from topoter.pretext.transformation import exact
from topoter.structure.adjacency import Adjacency
from topoter.training import Callback, TrainingState

BLOCK_MODEL = "block model, 300,000 nodes"
TWIN_EPOCHS = 4  # as many as it takes to know what one costs


def graph_of(name: str) -> Any:
    return block_model(300_000, 10, 10.0, 32, 0) if name == BLOCK_MODEL else load(name)


def twin_epoch(data: Any) -> Callable[[], None]:
    """An epoch of the twin: two transformed graphs, both encoded, I(H; H~) of all nodes, a step."""
    parameters = TopoTER().effective_params()
    adjacency, _ = Adjacency.from_edge_index(data.edge_index, data.num_nodes)
    model = PlainDefault(data.x.size(1), 512, parameters["order"])  # as wide as ours trains
    optimizer = torch.optim.Adam(model.parameters(), lr=parameters["learning_rate"])
    generator = torch.Generator().manual_seed(0)

    def epoch() -> None:
        views = [exact(adjacency, parameters["perturbation_rate"], generator).adjacency_t for _ in range(2)]
        optimizer.zero_grad(set_to_none=True)
        model.loss(data.x, *(view.edge_index for view in views)).backward()
        optimizer.step()

    return epoch


class EpochClock(Callback):
    """CPU seconds from the start of a training to its end: the steps, and the judging of each."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._start = 0.0

    def on_start(self, state: TrainingState) -> None:
        self._start = time.process_time()

    def on_end(self, state: TrainingState) -> None:
        self.seconds.append(time.process_time() - self._start)


def beside_twin(dataset: str, rounds: int = 3) -> dict[str, Any]:
    """CPU seconds of a fit and of as many epochs of the twin, taking turns; and the memory of each, alone."""
    torch.set_num_threads(1)
    data = load(dataset)
    TopoTER(epochs=2).fit(data)  # compiles
    epoch = twin_epoch(data)
    epoch()
    ours, twin, clock = [], [], EpochClock()
    for _ in range(rounds):
        used = time.process_time()
        epochs = len(TopoTER().fit(data, callbacks=clock).history_)
        ours.append(time.process_time() - used)
        used = time.process_time()
        for _ in range(TWIN_EPOCHS):
            epoch()
        twin.append((time.process_time() - used) / TWIN_EPOCHS)
    row = {
        "dataset": dataset,
        "epochs": epochs,
        "fit_cpu_s": statistics.median(ours),
        "epochs_cpu_s": statistics.median(clock.seconds),
        "twin_cpu_s": epochs * statistics.median(twin),
        "fit_mb": in_own_process("fit", dataset)["peak_mb"],
        "twin_mb": in_own_process("fit-twin", dataset)["peak_mb"],
    }
    return row | {
        "cpu_ratio": row["twin_cpu_s"] / row["fit_cpu_s"],
        "epochs_ratio": row["twin_cpu_s"] / row["epochs_cpu_s"],
        "memory_ratio": row["twin_mb"] / row["fit_mb"],
    }


def two_threads(name: str, rounds: int = 2) -> dict[str, Any]:
    """Wall seconds of a fit with one thread and with two, taking turns."""
    data = graph_of(name)
    TopoTER(epochs=2).fit(load("sbm"))  # compiles
    wall: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(rounds):
        for threads, found in wall.items():
            torch.set_num_threads(threads)
            start = time.perf_counter()
            TopoTER().fit(data)
            found.append(time.perf_counter() - start)
    one, two = (statistics.median(found) for found in wall.values())
    return {"graph": name, "one_thread_s": one, "two_threads_s": two, "speedup": one / two}
