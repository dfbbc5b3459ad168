"""Estimates: above what is measured, and parts chosen by them stay within what is allowed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from topoter import TopoTER, estimate
from topoter.datasets import block_model
from topoter.errors import UsageError
from topoter.estimate import Size, batch_nodes_within, embed_memory, fit_memory, measured_seconds, parts_memory, size_of
from topoter.memory import free_memory, parse_memory, show_memory

LARGE = Size(nodes=10_000_000, edges=100_000_000, features=64, channels=64)
# Peak memory of a training on a whole graph, as the system counts it.
MEASURED = """
import json, warnings
warnings.simplefilter("ignore")
from topoter import TopoTER
from topoter.datasets import block_model
from topoter.estimate import fit_memory, size_of
from topoter.experiments.runs import peak_mb
data = block_model(NODES, 4, 12.0, 32, 0)
model = TopoTER(ENCODER, out_channels=64, epochs=2).fit(data)
print(json.dumps([fit_memory(size_of(data, model)), peak_mb() * 2**20]))
"""


@pytest.mark.parametrize(("encoder", "nodes"), [("hops", 20_000), ("sgc", 60_000)])
def test_a_training_takes_what_was_estimated(encoder: str, nodes: int) -> None:
    program = MEASURED.replace("ENCODER", repr(encoder)).replace("NODES", str(nodes))
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    estimated, peak = json.loads(answer.stdout)
    assert peak < estimated < 2.5 * peak


@pytest.mark.parametrize("memory", [2e9, 6e9, 20e9])
def test_parts_are_the_largest_that_fit(memory: float) -> None:
    nodes = batch_nodes_within(LARGE, int(memory))
    assert parts_memory(LARGE, nodes) <= memory < parts_memory(LARGE, nodes + 1)
    assert nodes < LARGE.nodes


def test_too_little_memory_is_one_line_with_what_is_needed() -> None:
    with pytest.raises(
        UsageError, match=r"1.0 GB are too little to train on this graph: give at least --memory"
    ) as error:
        batch_nodes_within(LARGE, 10**9)
    named = parse_memory(str(error.value).rsplit(" ", 1)[1].rstrip("."))
    assert batch_nodes_within(LARGE, int(1.05 * named)) >= 1000


def test_all_estimates_grow_with_the_graph() -> None:
    twice = Size(2 * LARGE.nodes, 2 * LARGE.edges, LARGE.features, LARGE.channels)
    for memory in (fit_memory, embed_memory):
        assert 1.9 < memory(twice) / memory(LARGE) < 2.1
    assert parts_memory(twice, 100_000) < 2 * parts_memory(LARGE, 100_000)


def test_time_is_scaled_by_the_edges() -> None:
    model = TopoTER("sgc", out_channels=8)
    small = size_of(block_model(2000, 4, 10.0, 8, 0), model)
    assert (small.nodes, small.edges, small.features) == (2000, 10_000, 8)
    around, seconds, embedding = measured_seconds(model, small)
    assert around > 0
    assert seconds > 0
    assert embedding > 0


def test_likely_neighbours_take_more_time_the_more_nodes_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "SAMPLE", 5000)
    model = TopoTER(out_channels=8, epochs=1)
    many = Size(2_000_000, 20_000_000, 8, 8, far=8)
    whole, parts = (measured_seconds(model, many, on_parts)[2] for on_parts in (False, True))
    assert whole > 2 * parts
    few = Size(2_000_000, 3_000_000, 8, 8, far=8)
    (whole, _, embedding), (parts, _, of_parts) = (measured_seconds(model, few, on_parts) for on_parts in (False, True))
    assert whole > 2 * parts, "a sample of the nodes tells"
    assert embedding < 2 * of_parts


@pytest.mark.parametrize(
    ("text", "size"), [("4GB", 4 * 10**9), ("1.5gib", 3 * 2**29), ("500M", 5 * 10**8), (" 12 kB ", 12_000)]
)
def test_amounts_of_memory(text: str, size: int) -> None:
    assert parse_memory(text) == size


@pytest.mark.parametrize("text", ["", "much", "-4GB", "0", "4XB"])
def test_what_is_no_amount_of_memory(text: str) -> None:
    with pytest.raises(UsageError, match="--memory must be an amount such as 500MB or 4GB"):
        parse_memory(text)


def test_free_memory_is_an_amount() -> None:
    assert 10**7 < free_memory() < 10**14
    assert show_memory(1.26e9) == "1.3 GB"
    assert show_memory(5e6) == "5.0 MB"
