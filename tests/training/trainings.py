"""Every kind of training, small, for a process that may be killed in the middle of it.

python trainings.py KIND CHECKPOINT PHASE EPOCH
"""

from __future__ import annotations

import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")  # PyG's import

import numpy as np  # noqa: E402
import torch  # noqa: E402

from topoter import TopoTER  # noqa: E402
from topoter.datasets import block_model, random_split  # noqa: E402
from topoter.methods import method  # noqa: E402
from topoter.pretext.transformation import Transition  # noqa: E402
from topoter.structure.adjacency import Adjacency  # noqa: E402
from topoter.structure.history import Known  # noqa: E402
from topoter.tasks.link_split import split_links  # noqa: E402
from topoter.training import Callback, Checkpoint  # noqa: E402

EPOCHS = 12
Outcome = tuple[list[Any], np.ndarray]  # the history, and what was learned


def graph(seed: int = 0) -> Any:
    return block_model(40, 4, 4, 8, seed)


def communities() -> Any:
    """A graph whose neighbours are alike."""
    data = block_model(60, 3, 8, 8, 0)
    data.x[torch.arange(60), data.y] += 20
    return data


def graphs() -> list[Any]:
    return [block_model(12 + 2 * number, 2, 2, 3, number) for number in range(9)]


def weights(model: TopoTER) -> np.ndarray:
    return np.concatenate([tensor.double().flatten().numpy() for tensor in model.model_.state_dict().values()])


def estimator(fit: Callable[[TopoTER, Any], TopoTER], **options: Any) -> Callable[[Any], Outcome]:
    def run(callbacks: Any) -> Outcome:
        model = fit(TopoTER(**{"out_channels": 6, "epochs": EPOCHS, "patience": None, **options}), callbacks)
        return model.history_, weights(model)

    return run


def of_method(name: str, task: str, **parameters: Any) -> Callable[[Any], Outcome]:
    def run(callbacks: Any) -> Outcome:
        made = method(name, task)(**parameters)
        if task == "link":
            data = split_links(graph(), seed=0).data
            fitted = made.fit(data, seed=3, callbacks=callbacks)
            pairs = torch.combinations(torch.arange(40)).t()
            return fitted.pretraining + fitted.history, fitted.score_pairs(data, pairs).numpy()
        if task == "temporal":
            times = [Adjacency.from_edge_index(graph(seed).edge_index, 40)[0] for seed in range(4)]
            observed = [Transition(*pair) for pair in pairwise(times)]
            fitted = made.fit(observed, seed=3, callbacks=callbacks)
            return fitted.history, fitted.score_pairs(
                Known(times[-1]), torch.combinations(torch.arange(40)).t()
            ).numpy()
        data = graphs() if task == "graph" else graph()
        if made.needs_labels:
            data.train_mask, data.val_mask, _ = random_split(data.y, seed=0, train_per_class=3, val_per_class=3)
        fitted = made.fit(data, seed=3, callbacks=callbacks)
        return fitted.history, fitted.embed(data)

    return run


SNAPSHOTS = [graph(seed).edge_index for seed in range(4)]
TEMPORAL = {
    "out_channels": 4, "num_layers": 2, "hidden_channels": 5, "init": "glorot", "epochs": EPOCHS, "patience": None,
    "learning_rate": 0.01,
}  # fmt: skip
LINKS = {"epochs": EPOCHS, "hidden_channels": 6, "out_channels": 4, "pretraining_epochs": 5}
NODE = {"out_channels": 6, "epochs": EPOCHS, "patience": None}
PEER = {"out_channels": 6, "epochs": EPOCHS}
LAYERS = {**PEER, "hidden_channels": 5}
KINDS: dict[str, Callable[[Any], Outcome]] = {
    "whole graph": estimator(lambda model, callbacks: model.fit(graph(), callbacks=callbacks), encoder="sgc"),
    "clusters": estimator(
        lambda model, callbacks: model.fit(graph(), callbacks=callbacks), encoder="sgc", batch_nodes=10
    ),
    "neighbours": estimator(
        lambda model, callbacks: model.fit(graph(), callbacks=callbacks),
        encoder="sgc",
        batch_nodes=100,
        parts="neighbours",
    ),
    "second moments of clusters": estimator(
        lambda model, callbacks: model.fit(communities(), callbacks=callbacks), batch_nodes=40
    ),
    "all objectives": estimator(
        lambda model, callbacks: model.fit(graph(), callbacks=callbacks), encoder="sgc", objective="full"
    ),
    "second moments": estimator(
        lambda model, callbacks: model.fit(communities(), callbacks=callbacks),
    ),
    "graph set": estimator(
        lambda model, callbacks: model.fit(graphs(), callbacks=callbacks), level="graph", batch_size=4
    ),
    "snapshots": estimator(
        lambda model, callbacks: model.fit_snapshots(SNAPSHOTS, x=graph().x, callbacks=callbacks), encoder="gcn"
    ),
    "gae": of_method("gae", "node", **NODE),
    "vgae": of_method("vgae", "node", **NODE),
    "dgi": of_method("dgi", "node", **NODE),
    "gmi": of_method("gmi", "node", **NODE),
    "graphter": of_method("graphter", "node", **NODE),
    "cca-ssg": of_method("cca-ssg", "node", **LAYERS),
    "grace": of_method("grace", "node", **PEER, contrasted=20),
    "bgrl": of_method("bgrl", "node", **LAYERS, warm_up=3),
    "graphmae": of_method("graphmae", "node", **PEER, heads=2),
    "maskgae": of_method("maskgae", "node", **LAYERS),
    "gcn with labels": of_method("gcn", "node", epochs=EPOCHS, patience=None),
    "gat with labels": of_method("gat", "node", epochs=EPOCHS, patience=None),
    "mixhop with labels": of_method("mixhop", "node", epochs=EPOCHS, patience=None, slow_down_every=2),
    "infograph": of_method("infograph", "graph", epochs=EPOCHS, batch_size=4, hidden_channels=4),
    "graphcl": of_method("graphcl", "graph", epochs=EPOCHS, batch_size=4, hidden_channels=4),
    "graphmae of graphs": of_method("graphmae", "graph", epochs=EPOCHS, batch_size=4, hidden_channels=4),
    "topoter over time": of_method("topoter", "temporal", **{**TEMPORAL, "encoder": "gcn"}),
    "vgae over time": of_method("vgae", "temporal", **TEMPORAL),
    "links": of_method("topoter", "link", **LINKS, dropout=0.2, hidden_edges=0.3),
    "links jointly": of_method("topoter", "link", **LINKS, joint=0.5, decoder="hadamard", decoder_dropout=0.2),
    "maskgae of links": of_method("maskgae", "link", epochs=EPOCHS, hidden_channels=6, out_channels=4, dropout=0.3),
    "censnet-vae of links": of_method("censnet-vae", "link", epochs=EPOCHS, hidden_channels=6, out_channels=4),
    "decoder of links": of_method("spectral", "link", epochs=EPOCHS, decoder="hadamard", out_channels=4),
    "vgae of links": of_method("vgae", "link", **{**LINKS, "pretraining_epochs": 0}),
}


# Where each is killed: of two trainings in a row in the second one, or in the first.
CASES = [(kind, "links" if "links" in kind else "training", 5) for kind in KINDS] + [("links", "pretraining", 3)]


class WaitToBeKilled(Callback):
    """Says when an epoch is over, its checkpoint written, and does not go on."""

    def __init__(self, phase: str, epoch: int, pipe: int) -> None:
        self.phase, self.epoch, self.pipe = phase, epoch, pipe

    def on_epoch(self, state: Any, record: Any) -> None:
        if (state.phase, record.epoch) == (self.phase, self.epoch):
            os.write(self.pipe, b"reached")
            time.sleep(600)


def killed(kind: str, phase: str, epoch: int, path: Path) -> None:
    """Train in a process of its own, and kill it after an epoch."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        KINDS[kind]([Checkpoint(path, seconds=0.0), WaitToBeKilled(phase, epoch, writing)])
        os._exit(1)  # it was not killed
    os.close(writing)
    assert os.read(reading, 7) == b"reached", f"{kind} ended before epoch {epoch} of {phase}"
    os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    os.close(reading)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for kind, phase, epoch in CASES:
        killed(kind, phase, epoch, Path(sys.argv[1]) / f"{kind} {phase}")
