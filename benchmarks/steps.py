"""One training step: ours, the plain twin, DGI; alternating in one process, medians, CPU time beside wall time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.twin import PlainTopoTER
from topoter.datasets import load
from topoter.encoders import SGC
from topoter.methods.infomax import Infomax
from topoter.pretext.objectives import TypesFromChange
from topoter.pretext.transformation import exact
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import prepare_features
from topoter.training.model import TopoTERModel

RATE, ORDER = 0.7, 2
Step = Callable[[], float]


def our_model(in_channels: int, channels: int) -> TopoTERModel:
    """The paper's encoder and its term."""
    return TopoTERModel(SGC(in_channels, channels, ORDER), {"types-from-change": (TypesFromChange(channels), 1.0)})


def our_step(data: Any, channels: int) -> Step:
    """Sample, encode twice, decode, step, by the library's fast path."""
    adjacency, _ = Adjacency.from_edge_index(data.edge_index, data.num_nodes)
    x = prepare_features(data.x)
    model = our_model(data.x.size(1), channels)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    generator = torch.Generator().manual_seed(0)

    def step() -> float:
        transformation = exact(adjacency, RATE, generator)
        optimizer.zero_grad(set_to_none=True)
        loss, _ = model(x, transformation)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def twin_step(data: Any, channels: int) -> Step:
    """The same with PyG's and PyTorch's own operations, from the same weights and the same seed."""
    adjacency, _ = Adjacency.from_edge_index(data.edge_index, data.num_nodes)
    ours = our_model(data.x.size(1), channels)
    decoder = ours.learned["types-from-change"].decoder
    model = PlainTopoTER(data.x.size(1), channels, ORDER)
    with torch.no_grad():
        model.conv.lin.weight.copy_(ours.encoder.layers[0].weight)
        model.conv.lin.bias.copy_(ours.encoder.layers[0].bias)
        model.linear.weight.copy_(decoder.layers[0].weight)
        model.linear.bias.copy_(decoder.layers[0].bias)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    generator = torch.Generator().manual_seed(0)

    def step() -> float:
        transformation = exact(adjacency, RATE, generator)
        optimizer.zero_grad(set_to_none=True)
        loss = model.loss(data.x, transformation)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def dgi_step(data: Any, channels: int) -> Step:
    """A step of PyG's DeepGraphInfomax with the same encoder width, on our propagation."""
    adjacency, _ = Adjacency.from_edge_index(data.edge_index, data.num_nodes)
    x = prepare_features(data.x)
    module = Infomax(data.x.size(1), out_channels=channels, order=ORDER, seed=0)
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-4)

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        loss, _ = module(x, adjacency)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


STEPS = {"topoter": our_step, "twin": twin_step, "dgi": dgi_step}


def compare(dataset: str, channels: int, threads: int, rounds: int) -> dict[str, Any]:
    """Alternate the three, so that a noisy neighbour disturbs all alike."""
    torch.set_num_threads(threads)
    data = load(dataset)
    steps = {name: make(data, channels) for name, make in STEPS.items()}
    wall: dict[str, list[float]] = {name: [] for name in steps}
    cpu: dict[str, list[float]] = {name: [] for name in steps}
    losses: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(rounds + 1):
        for name, step in steps.items():
            start, used = time.perf_counter(), time.process_time()
            losses[name].append(step())
            if number > 0:  # the first round compiles and allocates
                wall[name].append(time.perf_counter() - start)
                cpu[name].append(time.process_time() - used)
    apart = max(abs(a - b) for a, b in zip(losses["topoter"], losses["twin"]))
    row: dict[str, Any] = {"dataset": dataset, "channels": channels, "threads": threads, "largest_loss_gap": apart}
    for name in steps:
        row[f"{name}_wall_ms"] = 1e3 * statistics.median(wall[name])
        row[f"{name}_cpu_ms"] = 1e3 * statistics.median(cpu[name])
    row["wall_ratio"] = row["twin_wall_ms"] / row["topoter_wall_ms"]
    row["cpu_ratio"] = row["twin_cpu_ms"] / row["topoter_cpu_ms"]
    row["sampler_share"] = sampler_share(data, channels)
    return row


def sampler_share(data: Any, channels: int) -> float:
    """How much of our step's CPU time goes to drawing the transformation.

    Drawing takes one thread, so that thread's own time is counted: others may still be spinning after the step before.
    """
    adjacency, _ = Adjacency.from_edge_index(data.edge_index, data.num_nodes)
    generator = torch.Generator().manual_seed(0)
    step = our_step(data, channels)
    step()
    sampling: list[float] = []
    stepping: list[float] = []
    for _ in range(9):
        used = time.thread_time()
        exact(adjacency, RATE, generator)
        sampling.append(time.thread_time() - used)
        used = time.process_time()
        step()
        stepping.append(time.process_time() - used)
    return statistics.median(sampling) / statistics.median(stepping)
