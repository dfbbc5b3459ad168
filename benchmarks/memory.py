"""Peak memory and growth, each case in a process of its own: `python -m benchmarks.memory CASE ...` prints JSON."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np


def in_own_process(*arguments: object) -> dict[str, Any]:
    """Run one case below in a new Python and return what it measured."""
    command = [sys.executable, "-m", "benchmarks.memory", *map(str, arguments)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(answer.stdout)
    return result


def step_memory(name: str, dataset: str, channels: int) -> dict[str, Any]:
    """Peak memory above what was there with the data loaded, over three steps."""
    from benchmarks.steps import STEPS
    from topoter.datasets import load
    from topoter.experiments.runs import peak_mb

    data = load(dataset)
    before = peak_mb()
    step = STEPS[name](data, channels)
    for _ in range(3):
        step()
    return {
        "case": name,
        "dataset": dataset,
        "channels": channels,
        "peak_mb": peak_mb() - before,
        "total_mb": peak_mb(),
    }


def fit_memory(dataset: str, twin: bool) -> dict[str, Any]:
    """Peak memory above what was there with the data loaded, of a fit with default settings, or of its twin."""
    from benchmarks.default_training import twin_epoch
    from topoter import TopoTER
    from topoter.datasets import load
    from topoter.experiments.runs import peak_mb

    data = load(dataset)
    before = peak_mb()
    if twin:
        epoch = twin_epoch(data)
        for _ in range(3):
            epoch()
    else:
        TopoTER().fit(data)
    return {"dataset": dataset, "peak_mb": peak_mb() - before, "total_mb": peak_mb()}


def growth(num_nodes: int, channels: int, epochs: int) -> dict[str, Any]:
    """Seconds per epoch and peak memory on a block model of mean degree 10."""
    from benchmarks.steps import our_step, sampler_share
    from topoter.datasets import block_model
    from topoter.experiments.runs import peak_mb

    before = peak_mb()
    data = block_model(num_nodes=num_nodes, num_blocks=10, mean_degree=10.0, num_features=32, seed=0)
    num_edges = data.edge_index.size(1) // 2
    step = our_step(data, channels)
    step()
    wall, cpu = [], []
    for _ in range(epochs):
        start, used = time.perf_counter(), time.process_time()
        step()
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
    peak = peak_mb()
    return {
        "nodes": num_nodes,
        "edges": num_edges,
        "channels": channels,
        "wall_s": statistics.median(wall),
        "cpu_s": statistics.median(cpu),
        "peak_mb": peak,
        "grown_mb": peak - before,
        "sampler_share": sampler_share(data, channels),
    }


def graph_set(dataset: str, epochs: int) -> dict[str, Any]:
    """Seconds per epoch on a set of graphs with default settings, and the peak of reading and training."""
    from topoter import TopoTER
    from topoter.datasets import load_graphs
    from topoter.experiments.runs import peak_mb

    wall, cpu = [], []

    def lap(_: object) -> None:
        wall.append(time.perf_counter())
        cpu.append(time.process_time())

    graphs = load_graphs(dataset)
    # From the end of the first epoch on, so that compilation is left out.
    TopoTER(level="graph", epochs=1 + epochs, on_epoch=lap).fit(graphs)
    return {
        "dataset": dataset,
        "graphs": len(graphs),
        "nodes": sum(graph.num_nodes for graph in graphs),
        "wall_s": statistics.median(np.diff(wall)),
        "cpu_s": statistics.median(np.diff(cpu)),
        "peak_mb": peak_mb(),
    }


def exponent(sizes: list[float], values: list[float]) -> float:
    """The slope in the log-log plane: 1 is linear growth."""
    slope, _ = np.polyfit(np.log(sizes), np.log(values), 1)
    return float(slope)


if __name__ == "__main__":
    case, *rest = sys.argv[1:]
    if case == "growth":
        print(json.dumps(growth(*(int(value) for value in rest))))
    elif case in ("fit", "fit-twin"):
        print(json.dumps(fit_memory(rest[0], twin=case == "fit-twin")))
    elif case == "graph-set":
        print(json.dumps(graph_set(rest[0], int(rest[1]))))
    else:
        print(json.dumps(step_memory(case, rest[0], int(rest[1]))))
