"""Datasets of the user's own, by import path and by an entry point of an installed package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import networkx
import pytest
import torch
from torch_geometric.data import Data

from topoter.datasets import Snapshots, available, block_model, dataset, dataset_kind, known_as, load, load_graphs
from topoter.datasets import load_snapshots as load_over_time
from topoter.errors import UsageError

HERE = __name__
calls: list[int] = []


@dataset("node")
def labelled(seed: int = 0) -> Data:
    return block_model(num_nodes=240, num_features=6, seed=seed)


def undeclared() -> networkx.Graph:
    calls.append(len(calls))
    return networkx.karate_club_graph()


@dataset("graphs")
def cycles() -> list[Data]:
    return [Data(x=torch.ones(n, 1), edge_index=_ring(n), y=torch.tensor([n % 2])) for n in range(3, 33)]


def over_time() -> Snapshots:
    return Snapshots("days", list("abcd"), [1, 2], [_ring(4)[:, :4], _ring(4)[:, :2]], [torch.ones(4), torch.ones(2)])


@dataset("graphs")
def wrong() -> Data:
    return labelled()


def _ring(n: int) -> torch.Tensor:
    ends = torch.stack([torch.arange(n), (torch.arange(n) + 1) % n])
    return torch.cat([ends, ends.flip(0)], dim=1)


def test_by_import_path():
    data = load(f"{HERE}:labelled", seed=3)
    assert data.name == f"{HERE}:labelled" == known_as(f"{HERE}:labelled")
    assert torch.equal(data.x, labelled(3).x)
    assert int(data.train_mask.sum()) == 4 * 20
    assert len(load_graphs(f"{HERE}:cycles")) == 30
    assert load_over_time(f"{HERE}:over_time").num_nodes == 4
    assert [dataset_kind(f"{HERE}:{name}") for name in ("labelled", "cycles", "over_time")] == [
        "node",
        "graphs",
        "temporal",
    ]


def test_what_says_nothing_of_its_kind_is_made_once_to_find_out():
    name = f"{HERE}:undeclared"
    assert dataset_kind(name) == "node"
    data = load(name)
    assert calls == [0]
    assert (data.num_nodes, data.x.shape[0]) == (34, 34)  # any graph that TopoTER takes; it has no labels to split
    assert "train_mask" not in data
    load(name)
    assert calls == [0, 1]


def test_errors_are_one_line_and_name_the_dataset():
    with pytest.raises(UsageError, match=r"'no_such_module:x' cannot be imported \(ModuleNotFoundError"):
        load("no_such_module:x")
    with pytest.raises(UsageError, match=r":none' cannot be imported \(AttributeError"):
        load(f"{HERE}:none")
    with pytest.raises(UsageError, match=r":HERE' must be a function that returns a graph"):
        load(f"{HERE}:HERE")
    with pytest.raises(UsageError, match="is declared as 'graphs', but what it returns is 'node'"):
        load_graphs(f"{HERE}:wrong")
    with pytest.raises(UsageError, match=r"is a set of graphs, not one graph \(in Python: load_graphs"):
        load(f"{HERE}:cycles")
    with pytest.raises(UsageError, match=r"Unknown kind of dataset 'nodes'\. Did you mean 'node'"):
        dataset("nodes")


def test_no_entry_point_no_line():
    assert all(info.kind for info in available())


# ---- a package of the user's own ---------------------------------------------------------------------------------

MODULE = """
from topoter.datasets import Dataset, block_model, dataset

@dataset("node")
def friends(seed=0):
    return block_model(num_nodes=240, num_features=6, seed=seed)

class Made(Dataset):
    kind = "node"
    how = "made by hand"
    def load(self, data_root, seed):
        return friends()

made = Made("", name="by-hand")
"""


@pytest.fixture
def package(tmp_path: Path) -> dict[str, str]:
    """An environment in which a package is installed that has two datasets, and an entry point to nowhere."""
    (tmp_path / "my_data.py").write_text(MODULE)
    info = tmp_path / "my_data-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-data\nVersion: 1.0\n")
    points = "my-friends = my_data:friends\nby-hand = my_data:made\nbroken = nowhere:at_all\n"
    (info / "entry_points.txt").write_text(f"[topoter.datasets]\n{points}")
    return {**os.environ, "PYTHONPATH": str(tmp_path)}


def call(environment: dict[str, str], cwd: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "topoter", *map(str, arguments)]
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)


def test_an_entry_point_makes_a_dataset_known(package, tmp_path):
    listed = {info["name"]: info for info in json.loads(call(package, tmp_path, "datasets", "--json").stdout)}
    assert listed["my-friends"]["kind"] == listed["by-hand"]["kind"] == "node"
    assert listed["my-friends"]["how"] == "made by my_data:friends"
    assert "cannot be imported" in listed["broken"]["how"]
    fitted = call(package, tmp_path, "fit", "My_Friends", "-o", tmp_path / "m.topoter", "--epochs", 2, "--json", "-q")
    assert json.loads(fitted.stdout)["nodes"] == 240, fitted.stderr
    embedded = call(package, tmp_path, "embed", "m.topoter", "by-hand", "-o", "z.npy", "--json", "-q")
    assert json.loads(embedded.stdout)["nodes"] == 240, embedded.stderr
    typo = call(package, tmp_path, "fit", "my-frends", "-q")
    assert "Unknown dataset 'my-frends'. Did you mean 'my-friends'?" in typo.stderr


def test_a_module_in_the_folder_of_the_call(tmp_path):
    (tmp_path / "my_data.py").write_text(MODULE)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    arguments = ["evaluate", "node", "--dataset", "my_data:friends", "--method", "raw", "--seeds", 1, "--json", "-q"]
    evaluated = call(environment, tmp_path, *arguments)
    assert evaluated.returncode == 0, evaluated.stderr
    assert json.loads(evaluated.stdout)["dataset"] == "my_data:friends"
    missing = call(environment, tmp_path, "fit", "my_data:foes", "-q")
    assert missing.returncode == 2
    assert missing.stderr.startswith("error: The dataset 'my_data:foes' cannot be imported (AttributeError")
