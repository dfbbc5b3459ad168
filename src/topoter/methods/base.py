"""One interface for every system of every table, and one registry.

    fitted = method("gae", "node")(out_channels=512).fit(graph, seed=0)
    z = fitted.embed(graph)

A new system is one file in this folder: a subclass of `Method` under `@register(name, *tasks)`. One of your own needs
no file here: name it "my_module:MyMethod", or declare it as an entry point in the group `topoter.methods`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import entry_points
from typing import Any

import numpy as np
import torch
from torch import Tensor

from topoter.errors import TopoterError, UsageError, unknown_name
from topoter.training.callbacks import Callback
from topoter.training.state import EpochRecord

UNKNOWN_LABEL = -1  # the class of a node that a method with labels must not know

# What a method is fitted on. A link graph holds training edges only; pairs to decide by when to stop are its
# `edge_label_index` [2, P] and `edge_label` [P], as PyG's RandomLinkSplit names them.
TASKS = {
    "node": "a PyG `Data`, to embed its nodes; if it `needs_labels`, with those of training and validation nodes",
    "graph": "a list of `Data`, to embed each graph; if it `needs_labels`, those of training graphs have a `y`",
    "link": "a PyG `Data` of training edges, to score pairs of its nodes",
    "temporal": "a list of `Transition`s, to score pairs by what is `Known` before a time",
}


@dataclass
class Fitted:
    """What a method learned. Of the functions it has those that its tasks need.

    Args:
        embedding: from a graph to its nodes' embeddings [N, F], or from a list of graphs to theirs [G, F].
        pairs: from a graph and pairs [2, P] to scores [P]; inner products of the embeddings if not given.
        kernel: similarities between the graphs of the set [G, G], in place of embeddings.
        classes: from a graph to the classes of its nodes [N], or from a list of graphs to theirs [G], of a method that
            was trained with labels.
        history: what each epoch of the (last) training showed; `pretraining` that of one before it.
        best_epoch: the one whose weights were kept, where validation chose it.
        validation: accuracy in percent on what chose it, of a method that was trained with labels of graphs.
    """

    embedding: Callable[[Any], np.ndarray] | None = None
    pairs: Callable[[Any, Tensor], Tensor] | None = None
    kernel: np.ndarray | None = None
    classes: Callable[[Any], np.ndarray] | None = None
    history: list[EpochRecord] = field(default_factory=list)
    pretraining: list[EpochRecord] = field(default_factory=list)
    best_epoch: int | None = None
    validation: float | None = None

    @property
    def losses(self) -> list[float]:
        return [record.loss for record in self.history]

    @property
    def metrics(self) -> dict[str, float | None]:
        """Those of the last epoch."""
        return dict(self.history[-1].metrics) if self.history else {}

    def embed(self, graph: Any) -> np.ndarray:
        if self.embedding is None:
            raise TopoterError("This method gives no embeddings.")
        return self.embedding(graph)

    def predict(self, graph: Any) -> np.ndarray:
        if self.classes is None:
            raise TopoterError("This method was trained without labels: it predicts no classes.")
        return self.classes(graph)

    def score_pairs(self, graph: Any, pairs: Tensor) -> Tensor:
        if self.pairs is not None:
            return self.pairs(graph, pairs)
        return inner_products(torch.from_numpy(self.embed(graph)), pairs)


class Method:
    """A system with its parameters set: those of a recipe, by keyword.

    One that `needs_labels` is fitted on a graph with `y`, `train_mask` and `val_mask`, and predicts classes itself; the
    labels of all other nodes are `UNKNOWN_LABEL`. The others see no label. What a method without chance (`seedless`)
    finds may be used for all seeds.
    """

    needs_labels = False
    seedless = False

    def __init__(self, **parameters: Any) -> None:
        self.parameters = parameters

    def fit(self, graph: Any, seed: int, callbacks: Sequence[Callback] = ()) -> Fitted:
        """Learn from a graph; everything random comes from the seed."""
        raise NotImplementedError


Factory = Callable[..., Method]
_REGISTRY: dict[tuple[str, str], Factory] = {}  # by task and name


def register(name: str, *tasks: str, **fixed: Any) -> Callable[[type[Method]], type[Method]]:
    """Let a class serve these tasks under a name, with some of its parameters fixed."""

    def add(kind: type[Method]) -> type[Method]:
        for task in tasks:
            assert task in TASKS, f"unknown task {task!r}"
            _REGISTRY[task, name] = partial(kind, **fixed) if fixed else kind
        return kind

    return add


@cache
def _load_files() -> None:
    """Import every file of this folder: each registers what it holds."""
    package = importlib.import_module("topoter.methods")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"topoter.methods.{module.name}")


def methods_of(task: str) -> list[str]:
    """The names that serve a task: ours, and those of installed packages."""
    _load_files()
    own = [name for served, name in _REGISTRY if served == task]
    return [*own, *(point.name for point in entry_points(group="topoter.methods") if point.name not in own)]


def method(name: str, task: str) -> Factory:
    """What makes the method of a name, by keyword parameters."""
    _load_files()
    if task not in TASKS:
        raise unknown_name("task", task, TASKS)
    if (task, name) in _REGISTRY:
        return _REGISTRY[task, name]
    if ":" in name:
        module_name, _, attribute = name.partition(":")
        try:
            return _checked(getattr(importlib.import_module(module_name), attribute), name, task)
        except (ImportError, AttributeError) as error:
            raise UsageError(f"The method {name!r} cannot be imported: {error}.") from error
    for point in entry_points(group="topoter.methods"):
        if point.name == name:
            return _checked(point.load(), name, task)
    served = [other for other, known in _REGISTRY if known == name]
    if served:
        raise UsageError(f"The method {name!r} serves {', '.join(served)}, not {task}. {_known(task)}")
    raise unknown_name("method", name, methods_of(task))


def build(name: str, task: str, parameters: Mapping[str, Any]) -> Method:
    """A method of a name with its parameters set."""
    factory = method(name, task)
    try:
        return factory(**parameters)
    except TypeError as error:
        raise UsageError(f"The method {name!r} cannot be made with these parameters: {error}.") from error


def _known(task: str) -> str:
    return f"For {task} there are: {', '.join(methods_of(task))}."


def _checked(found: Any, name: str, task: str) -> Factory:
    """A user's own method: anything that makes an object with `fit`, and serves the task if it says which."""
    if not callable(found) or not callable(getattr(found, "fit", None)):
        raise UsageError(f"The method {name!r} must be a class with fit(graph, seed, callbacks). Got {found!r}.")
    tasks = getattr(found, "tasks", None)
    if tasks is not None and task not in tasks:
        raise UsageError(f"The method {name!r} serves {', '.join(tasks)}, not {task}.")
    factory: Factory = found
    return factory


def inner_products(h: Tensor, pairs: Tensor) -> Tensor:
    """h_i . h_j for pairs [2, P]."""
    if 8 * pairs.size(1) > h.size(0) ** 2:  # a large share of all pairs: one matrix product is cheaper
        return (h @ h.t())[pairs[0], pairs[1]]
    return (h[pairs[0]] * h[pairs[1]]).sum(1)
