"""One run: a recipe under a protocol with a seed, how it is made, and what it took."""

from __future__ import annotations

import contextlib
import json
import platform
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from topoter import __version__
from topoter.experiments.limits import Limits
from topoter.experiments.recipes import Recipe


def run_key(*parts: Any) -> tuple[Any, ...]:
    """(experiment, dataset, method, recipe, protocol, point, seed), with the point as text so that it can be sorted."""
    *names, point, seed = parts
    return (*names, json.dumps(point, sort_keys=True), seed)


@dataclass(frozen=True)
class Run:
    """One seed of one recipe under one protocol.

    Args:
        variation: the parameters that a study changes.
        limits: the time and memory it may take.
    """

    recipe: Recipe
    protocol: str
    seed: int
    variation: dict[str, Any] = field(default_factory=dict)
    limits: Limits | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        return self.recipe.parameters | self.variation

    @property
    def key(self) -> tuple[Any, ...]:
        """What no other run has; that of its record."""
        recipe = self.recipe
        names = (recipe.experiment, recipe.dataset, recipe.method, recipe.name, self.protocol)
        return run_key(*names, self.variation, self.seed)

    @property
    def label(self) -> str:
        """A short name, for progress."""
        varied = "".join(f" {name}={value}" for name, value in self.variation.items())
        return f"{self.recipe.dataset} {self.recipe.method} ({self.recipe.name}){varied} seed {self.seed}"


def forget_peak() -> None:
    """Let `peak_mb` count from now on: a process may make several runs. Only Linux can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_mb() -> float:
    """The most memory this process has held so far, or since `forget_peak`, in MB; 0 where that is not known."""
    status = Path("/proc/self/status")
    if status.is_file():  # Linux; getrusage would count what the parent process held before it started this one
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    try:
        import resource
    except ImportError:  # Windows has no resource module
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


@cache
def versions() -> dict[str, str]:
    """What the numbers were made with."""
    from importlib.metadata import version

    packages = ("torch", "torch_geometric", "numpy", "scipy", "scikit-learn", "numba")
    found = {name: version(name) for name in packages}
    return {"topoter": __version__, "git": _git_hash(), "python": platform.python_version(), **found}


def _git_hash() -> str:
    try:
        answer = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            capture_output=True,
            text=True,
            timeout=5,
            cwd=Path(__file__).parent,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip()
