"""One run, one JSON file: parameters, seed, versions, time, memory, result; a run that is there is not run again."""

from __future__ import annotations

import contextlib
import json
import platform
import subprocess
import sys
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topoter import __version__
from topoter.errors import DataError
from topoter.experiments.recipes import Recipe
from topoter.graphs import atomic_write

if TYPE_CHECKING:
    from topoter.experiments.experiment import Experiment, Progress


@dataclass(frozen=True)
class Run:
    """One seed of one recipe under one protocol; `variation` holds the parameters that a study changes."""

    recipe: Recipe
    protocol: str
    seed: int
    variation: dict[str, Any] = field(default_factory=dict)

    @property
    def parameters(self) -> dict[str, Any]:
        return self.recipe.parameters | self.variation

    @property
    def name(self) -> str:
        """A name that no other run has."""
        return self.path(Path()).with_suffix("").as_posix()

    @property
    def label(self) -> str:
        """A short name, for progress."""
        varied = "".join(f" {name}={value}" for name, value in self.variation.items())
        return f"{self.recipe.dataset} {self.recipe.method} ({self.recipe.name}){varied} seed {self.seed}"

    def path(self, folder: Path) -> Path:
        recipe = self.recipe
        varied = "".join(f".{name}={value}" for name, value in self.variation.items())
        name = f"{recipe.method}.{recipe.name}.{self.protocol}{varied}.{self.seed}.json"
        return folder / recipe.experiment / recipe.dataset / name

    def description(self) -> dict[str, Any]:
        """What makes this run this run: a file on disk must agree with it to be taken over."""
        return {
            "experiment": self.recipe.experiment,
            "dataset": self.recipe.dataset,
            "method": self.recipe.method,
            "recipe": self.recipe.name,
            "parameters": self.parameters,
            "protocol": self.protocol,
            "seed": self.seed,
        } | ({"variation": self.variation} if self.variation else {})


def load_run(run: Run, folder: Path) -> dict[str, Any] | None:
    """The result on disk, if there is one made with the same parameters."""
    path = run.path(folder)
    if not path.is_file():
        return None
    try:
        stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is damaged ({error}). Delete it to run it again.") from error
    same = all(stored.get(key) == value for key, value in run.description().items())
    return stored if same else None


def execute(experiment: Experiment, run: Run, data: Any, progress: Progress | None = None) -> dict[str, Any]:
    """Make one run, and note what it took."""
    made_with = versions()  # before a long run: the code's state may change during it
    forget_peak()
    start, cpu = time.perf_counter(), time.process_time()
    measured = experiment.measure(run, data, progress)
    return run.description() | {
        "result": measured.result,
        "losses": [round(loss, 5) for loss in measured.losses],
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu,
        "peak_mb": peak_mb(),
        "versions": made_with,
    }


def save_run(run: Run, stored: dict[str, Any], folder: Path) -> None:
    """Keep a run, by a temporary name and a rename: a kill leaves a whole file or none."""
    save_text(run.path(folder), json.dumps(stored, indent=1) + "\n")


def save_text(path: Path, text: str) -> None:
    """Write a file of results, making its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def forget_peak() -> None:
    """Let `peak_mb` count from now on: a process may make several runs. Only Linux can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_mb() -> float:
    """The most memory this process has held so far, or since `forget_peak`, in MB."""
    status = Path("/proc/self/status")
    if status.is_file():  # Linux; getrusage would count what the parent process held before it started this one
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    try:
        import resource
    except ImportError:  # Windows has no resource module
        return float("nan")
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
