"""Every example runs as a user would run it, and what the held-out one claims is true on real data."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from topoter.datasets import load

FOLDER = Path(__file__).parent.parent / "examples"
# Options that make an example short; one without runs as it is.
SHORT = {
    "held_out_nodes.py": ["--epochs", "2", "--channels", "16"],
    "chosen_on_test_folds.py": ["--epochs", "2"],
}
MAKES = {
    "social_graph.py": {"edges.csv", "nodes.csv", "labels.csv", "everyone.csv"},
    "made_molecules.py": {"molecules.csv"},
}


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.py")))
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, str(FOLDER / name), *SHORT.get(name, [])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == MAKES.get(name, set()), "an example leaves nothing behind but what it is there to make"


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_nodes_never_seen_are_classified_nearly_as_well(real_data: Path) -> None:
    accuracy = module("held_out_nodes").compare(load("cora", data_root=real_data), seed=0, out_channels=64, epochs=25)
    assert accuracy["held out"] > 75, "seven classes: guessing gives 30"
    assert accuracy["held out"] > accuracy["in training"] - 3
