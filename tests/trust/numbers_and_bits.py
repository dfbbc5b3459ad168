"""Extreme numbers and graphs, kernels against their plain twins, and the same bits from the same seed."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch
import zygote as zygotes
from bad_input import explore
from campaign import case, time_limit
from commands import forget, new_folder
from torch_geometric.data import Data

from topoter import TopoTER
from topoter.datasets import block_model
from topoter.errors import PoorEmbeddingWarning, TopoterError

_TINY = float(np.finfo(np.float32).smallest_subnormal)


def _graph(edges: Any, nodes: int, x: Any = None) -> Data:
    x = torch.rand(nodes, 4, generator=torch.Generator().manual_seed(0)) if x is None else x
    return Data(x=x, edge_index=torch.as_tensor(edges, dtype=torch.long).reshape(2, -1), num_nodes=nodes)


def _ring(nodes: int) -> torch.Tensor:
    return torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])


def _random(nodes: int) -> torch.Tensor:
    return torch.randint(0, nodes, (2, 4 * nodes), generator=torch.Generator().manual_seed(1))


VALUES: dict[str, Callable[[], torch.Tensor]] = {
    "1e30": lambda: 1e30 * (1 + torch.rand(60, 4, generator=torch.Generator().manual_seed(0))),
    "3e38": lambda: torch.full((60, 4), 3e38),
    "one of 1e30": lambda: torch.ones(60, 4).index_fill_(0, torch.tensor([7]), 1e30),
    "subnormal": lambda: torch.full((60, 4), _TINY),
    "all equal": lambda: torch.full((60, 4), 2.5),
    "all zero": lambda: torch.zeros(60, 4),
    "negative and 1e-30": lambda: -1e-30 * torch.rand(60, 4, generator=torch.Generator().manual_seed(0)),
}
GRAPHS: dict[str, Callable[[], Data]] = {
    **{f"features: {name}": (lambda x=x: _graph(_random(60), 60, x())) for name, x in VALUES.items()},
    "a star of 100,000 leaves": lambda: _graph([[0] * 100_000, list(range(1, 100_001))], 100_001),
    "a complete graph of 300": lambda: _graph(torch.combinations(torch.arange(300)).t(), 300),
    "a path of 20,000": lambda: _graph(_ring(20_000)[:, :-1], 20_000),
    "10,000 components": lambda: _graph(torch.arange(20_000).reshape(-1, 2).t(), 20_000),
    "one node": lambda: _graph(torch.empty(2, 0), 1),
    "two nodes": lambda: _graph([[0], [1]], 2),
    "two nodes, no edge": lambda: _graph(torch.empty(2, 0), 2),
    "weights from 1e-30 to 1e30": lambda: _weighted(60),
}
MODELS: dict[str, dict[str, Any]] = {
    "default": {},
    "sgc, the paper's loss": {"encoder": "sgc", "objective": "paper", "out_channels": 16, "epochs": 3},
    "gcn": {"encoder": "gcn", "objective": "paper", "out_channels": 16, "epochs": 3},
}
LARGE = ("a star", "a path", "10,000", "a complete")


def _weighted(nodes: int) -> Data:
    data = _graph(_random(nodes), nodes)
    data.edge_weight = torch.logspace(-30, 30, data.num_edges)
    return data


def _enter_numbers(name: str, model: str) -> None:
    short = int(not name.startswith(LARGE) and model == "default")

    @case("numbers", f"{name}: {model}", short, 1)
    def attempt(number: int) -> None:
        with time_limit(600), warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", PoorEmbeddingWarning)
            try:
                z = TopoTER(**MODELS[model], random_state=number).fit_transform(GRAPHS[name]())
            except TopoterError as error:
                if "\n" in str(error):
                    raise AssertionError(f"more than a line: {error}") from None
                return
        assert np.isfinite(z).all(), f"{(~np.isfinite(z)).sum()} of {z.size} values are not finite"


for _name in GRAPHS:
    for _model in MODELS:
        _enter_numbers(_name, _model)


@contextmanager
def _kernels(mode: str, threads: int) -> Any:
    before, asked = torch.get_num_threads(), os.environ.get("TOPOTER_KERNELS")
    os.environ["TOPOTER_KERNELS"] = mode
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        if asked is None:
            del os.environ["TOPOTER_KERNELS"]
        else:
            os.environ["TOPOTER_KERNELS"] = asked


@case("numbers", "kernels and their plain twins, random shapes, threads 1, 2 and 4", 0, 6, 50)
def kernels(number: int) -> None:
    """Two epochs and an embedding by the compiled kernels and by plain PyTorch, from the same seed."""
    shapes = st.fixed_dictionaries(
        {
            "nodes": st.integers(3, 70),
            "degree": st.integers(1, 6),
            "features": st.integers(1, 20),
            "channels": st.integers(2, 33),  # a pair of one channel has length 1 or -1, and no gradient but rounding
            "order": st.integers(1, 3),
            "threads": st.sampled_from([1, 2, 4]),
            "weighted": st.booleans(),
            "seed": st.integers(0, 10**6),
        }
    )

    def check(shape: dict[str, Any]) -> None:
        generator = torch.Generator().manual_seed(shape["seed"])
        nodes = shape["nodes"]
        edges = torch.randint(0, nodes, (2, nodes * shape["degree"]), generator=generator)
        data = _graph(edges, nodes, torch.rand(nodes, shape["features"], generator=generator))
        if shape["weighted"]:
            data.edge_weight = torch.rand(data.num_edges, generator=generator) + 0.1
        found = []
        for mode in ("fast", "plain"):
            with _kernels(mode, shape["threads"]), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = TopoTER(
                    encoder="sgc", objective="paper", order=shape["order"], out_channels=shape["channels"], epochs=2
                )
                try:
                    z = model.fit_transform(data)
                except TopoterError:  # no edge, or every edge there can be
                    found.append(None)
                    continue
                found.append((z, [record.loss for record in model.history_]))
        if found[0] is None or found[1] is None:
            assert found[0] is found[1]
            return
        np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-4)
        np.testing.assert_allclose(found[0][0], found[1][0], rtol=2e-2, atol=2e-4)

    explore(number, shapes, check)


@cache
def _threaded() -> Path:
    """A graph large enough that PyTorch and the kernels divide their work among threads."""
    folder = new_folder()
    data = block_model(num_nodes=1000, num_blocks=4, mean_degree=8.0, num_features=32, seed=0)
    edges = data.edge_index[:, data.edge_index[0] < data.edge_index[1]].t().tolist()
    timed = [f"{a},{b},{place % 4}" for place, (a, b) in enumerate(edges)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *(f"{a},{b}" for a, b in edges), ""]))
    (folder / "timed.csv").write_text("\n".join(["source,target,time", *timed, ""]))
    rows = [f"{node}," + ",".join(f"{value:.4f}" for value in row) for node, row in enumerate(data.x.tolist())]
    (folder / "features.csv").write_text("\n".join(["id," + ",".join(f"f{k}" for k in range(32)), *rows, ""]))
    return folder


_GRAPH = ("edges.csv", "--features", "features.csv")
_TRAINED = ("--recipe", "best", "--channels", "64", "--epochs", "5")
FITS: dict[str, tuple[str, ...]] = {
    "a whole graph": (*_GRAPH, *_TRAINED),
    "a whole graph by default": _GRAPH,
    "a graph set": ("mutag", "--epochs", "3"),
    "snapshots": ("--snapshots", "timed.csv", "--epochs", "5"),
    "subgraphs": (*_GRAPH, *_TRAINED, "--batch-nodes", "250"),
}


def _fits(threads: int, zygote: zygotes.Zygote) -> Iterator[tuple[str, zygotes.Child]]:
    for name, words in FITS.items():
        arguments = [str(_threaded() / word) if word.endswith(".csv") else word for word in words]
        arguments = ["fit", *arguments, "-q", "-o", "model.topoter"]
        yield name, zygotes.start(new_folder(), arguments, zygote, threads=threads)


_FOUND: dict[tuple[str, int], bytes] = {}


@case("same bits", f"fit {', '.join(FITS)}: with 1 and with 2 threads", 0, 25, 2 * len(FITS))
def same_bits(number: int) -> None:
    """Every kind once with one thread and at the same time with two, forked from an interpreter of their own.

    It has imported everything and done nothing else: no two fits of the same kind and number of threads share where
    things lie in memory, or the order of sets.
    """
    zygote = zygotes.new_zygote()
    for (name, one), (_, two) in zip(_fits(1, zygote), _fits(2, zygote)):
        for threads, child in ((1, one), (2, two)):
            ended = child.wait()
            assert ended.code == 0, ended.said
            content = (child.folder / "model.topoter").read_bytes()
            assert _FOUND.setdefault((name, threads), content) == content, f"{name}, {threads} threads: another model"
            forget(child.folder)
    assert zygote.stdin is not None
    zygote.stdin.close()
    zygote.wait()
