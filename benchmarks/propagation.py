"""One propagation A H by four ways: our compiled CSR product, embedding_bag, torch's CSR product, PyG's scatter."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from topoter.kernels.sparse import SparseOperator, multiply, multiply_plain
from topoter.structure.adjacency import Adjacency


def _embedding_bag(operator: SparseOperator) -> Callable[[Tensor], Tensor]:
    indices, offsets = operator.indices.long(), operator.indptr[:-1]
    return lambda h: functional.embedding_bag(
        indices, h, offsets, mode="sum", per_sample_weights=operator.values, include_last_offset=False
    )


def _torch_csr(operator: SparseOperator) -> Callable[[Tensor], Tensor]:
    indices = operator.indices.long()
    matrix = torch.sparse_csr_tensor(operator.indptr, indices, operator.values, operator.shape, check_invariants=False)
    return lambda h: matrix @ h


WAYS: dict[str, Callable[[SparseOperator], Callable[[Tensor], Tensor]]] = {
    "compiled": lambda operator: lambda h: multiply(operator, h),
    "embedding_bag": _embedding_bag,
    "torch_csr": _torch_csr,
    "scatter": lambda operator: lambda h: multiply_plain(operator, h),
}


def compare_ways(name: str, data: Any, channels: int, threads: int, rounds: int = 9) -> dict[str, Any]:
    """Medians of wall and CPU time in milliseconds, the ways taking turns; all results are checked to agree."""
    torch.set_num_threads(threads)
    adjacency, _ = Adjacency.from_edge_index(data.edge_index, data.num_nodes)
    h = torch.randn(data.num_nodes, channels, generator=torch.Generator().manual_seed(0))
    ways = {way: make(adjacency.normalized) for way, make in WAYS.items()}
    expected = ways["scatter"](h)
    wall: dict[str, list[float]] = {way: [] for way in ways}
    cpu: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds + 1):
        for way, product in ways.items():
            start, used = time.perf_counter(), time.process_time()
            result = product(h)
            if number > 0:  # the first round compiles and allocates
                wall[way].append(time.perf_counter() - start)
                cpu[way].append(time.process_time() - used)
            torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)
            del result
    row: dict[str, Any] = {"graph": name, "nodes": int(data.num_nodes), "channels": channels, "threads": threads}
    for way in ways:
        row[f"{way}_ms"] = 1e3 * statistics.median(wall[way])
        row[f"{way}_cpu_ms"] = 1e3 * statistics.median(cpu[way])
    return row


def compare_in_a_step(name: str, data: Any, channels: int, threads: int, rounds: int = 11) -> dict[str, Any]:
    """A whole training step with our product and with embedding_bag in its place, taking turns; CPU time in ms.

    A product alone flatters embedding_bag: in a step its fresh memory costs page faults, and the threads it leaves
    spinning get in the way of what follows.
    """
    from benchmarks.steps import our_step
    from topoter.kernels import sgc_delta, sparse

    def by_embedding_bag(operator: SparseOperator, h: Tensor) -> Tensor:
        return _embedding_bag(operator)(h.detach().contiguous())

    torch.set_num_threads(threads)
    products = {"compiled": multiply, "embedding_bag": by_embedding_bag}
    steps = {way: our_step(data, channels) for way in products}
    cpu: dict[str, list[float]] = {way: [] for way in products}
    try:
        for number in range(rounds + 2):
            for way, step in steps.items():
                sparse.multiply = sgc_delta.multiply = products[way]
                used = time.process_time()
                step()
                if number > 1:
                    cpu[way].append(time.process_time() - used)
    finally:
        sparse.multiply = sgc_delta.multiply = multiply
    medians = {f"{way}_cpu_ms": 1e3 * statistics.median(times) for way, times in cpu.items()}
    return {"graph": name, "channels": channels, "threads": threads, **medians}
