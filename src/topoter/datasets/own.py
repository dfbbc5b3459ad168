"""Datasets of the user's own: a function that returns a graph, a list of graphs or `Snapshots`.

    @dataset("node")                        # or "graphs", "temporal"; without it, the function is called to find out
    def my_graph(seed: int = 0) -> Data:    # `seed` only if something is drawn
        ...

It goes by its import path, "my_module:my_graph", wherever a dataset's name is taken. A package gives it a name by an
entry point in the group `topoter.datasets`:

    [project.entry-points."topoter.datasets"]
    my-graph = "my_module:my_graph"

An instance of a subclass of `Dataset`, with files to find and to check, can stand in the place of the function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar

import torch

from topoter.datasets.base import Dataset
from topoter.datasets.temporal import Snapshots
from topoter.errors import TopoterError, UsageError, unknown_name

GROUP = "topoter.datasets"
KINDS = ("node", "graphs", "temporal")
Function = TypeVar("Function", bound=Callable[..., Any])


def dataset(kind: str) -> Callable[[Function], Function]:
    """Say what a function returns: "node" (one graph), "graphs" (a list) or "temporal" (`Snapshots`)."""
    if kind not in KINDS:
        raise unknown_name("kind of dataset", kind, KINDS)

    def declare(function: Function) -> Function:
        function.kind = kind  # type: ignore[attr-defined]
        return function

    return declare


class Own(Dataset):
    """A dataset that a function makes. What was made to find out its kind is kept until it is loaded."""

    family = "own"

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        super().__init__("", name=name)
        self.function, self.kind = function, getattr(function, "kind", "")
        self._made: dict[int, Any] = {}

    @property
    def how(self) -> str:
        return f"made by {self.function.__module__}:{getattr(self.function, '__qualname__', self.name)}"

    def ask_kind(self) -> None:
        if not self.kind:
            self._made[0] = self._make(0)
            self.kind = _kind_of(self._made[0])

    def load(self, data_root: str | Path | None, seed: int) -> Any:
        content = self._made.pop(seed) if seed in self._made else self._make(seed)
        found = _kind_of(content)
        if found != self.kind:
            raise UsageError(
                f"The dataset {self.name!r} is declared as {self.kind!r}, but what it returns is {found!r}."
            )
        return list(content) if found == "graphs" else content

    def _make(self, seed: int) -> Any:
        takes_seed = "seed" in inspect.signature(self.function).parameters
        content = self.function(seed=seed) if takes_seed else self.function()
        if _kind_of(content) != "node":
            return content
        from topoter.graphs import as_data  # PyG, NetworkX, SciPy and pandas are welcome, with or without features

        return as_data(content)


def is_import_path(name: str) -> bool:
    """Whether a name has the form "package.module:function"."""
    module, colon, function = name.partition(":")
    return bool(colon) and function.isidentifier() and all(part.isidentifier() for part in module.split("."))


def entry_names() -> list[str]:
    """What installed packages call their datasets."""
    return [point.name for point in entry_points(group=GROUP)]


def own_dataset(name: str, *, ask_kind: bool = True) -> Dataset:
    """The dataset of an import path, or of an installed package by its name."""
    found = _imported(name)
    if ask_kind and isinstance(found, Own):
        found.ask_kind()
    return found


@cache
def _imported(name: str) -> Dataset:
    if is_import_path(name):
        point = EntryPoint(name, name, GROUP)
    else:
        point = next(point for point in entry_points(group=GROUP) if point.name == name)
    try:
        found = point.load()
    except TopoterError:
        raise
    except Exception as error:  # importing runs the user's code, which can raise anything
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise UsageError(f"The dataset {name!r} cannot be imported ({reason}).") from error
    if isinstance(found, Dataset):
        return found
    if not callable(found):
        raise UsageError(f"The dataset {name!r} must be a function that returns a graph. Got {found!r} instead.")
    return Own(name, found)


def _kind_of(content: Any) -> str:
    if isinstance(content, Snapshots):
        return "temporal"
    return "graphs" if isinstance(content, (list, tuple, torch.utils.data.Dataset)) else "node"
