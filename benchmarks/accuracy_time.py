"""Time to accuracy: CPU seconds until a method's validation accuracy is within half a point of its final one.

A method is trained with 1/16, 1/8, ... of its epochs, each time from the start, and its embedding scored on validation
nodes; the clock counts fitting and embedding, not scoring. Methods take turns. Test labels are not read.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from topoter.datasets import load
from topoter.estimator import TopoTER
from topoter.experiments.recipes import load_recipe
from topoter.methods import build
from topoter.tasks.node_classification import known_labels, without_labels
from topoter.tasks.probe import choose_probe

METHODS = {"topoter": "default", "dgi": None, "gae": None, "cca-ssg": None}
SHARES = (0, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)
CLOSE = 0.5


def time_to_accuracy(dataset: str, seeds: int = 3) -> list[dict[str, Any]]:
    """For every method its final validation accuracy, and the CPU seconds to within half a point of it."""
    data = known_labels(load(dataset))
    graph, y = without_labels(data), data.y.numpy()
    train, val = (mask.nonzero().view(-1).numpy() for mask in (data.train_mask, data.val_mask))
    settings = {
        method: load_recipe("node-classification", method, dataset, recipe).parameters
        for method, recipe in METHODS.items()
    }
    most = {method: own.get("epochs") or TopoTER().effective_params()["epochs"] for method, own in settings.items()}
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for seed in range(seeds):
        for share in SHARES:
            for method, own in settings.items():
                epochs = round(share * most[method])
                if not epochs and method != "topoter":  # only ours is meant to be used untrained
                    continue
                started = time.process_time()
                z = build(method, "node", own | {"epochs": epochs}).fit(graph, seed).embed(graph)
                seconds = time.process_time() - started
                accuracy = choose_probe(z, y, train, val).val
                found.setdefault((method, epochs), []).append((seconds, accuracy))
    return [
        _row(dataset, method, {epochs: runs for (of, epochs), runs in found.items() if of == method})
        for method in METHODS
    ]


def _row(dataset: str, method: str, runs: dict[int, list[tuple[float, float]]]) -> dict[str, Any]:
    """Means over seeds, by epochs; the first that is close enough counts."""
    accuracy = {epochs: float(np.mean([value for _, value in some])) for epochs, some in runs.items()}
    seconds = {epochs: statistics.median(value for value, _ in some) for epochs, some in runs.items()}
    final = accuracy[max(runs)]
    close = min(epochs for epochs in sorted(runs) if accuracy[epochs] >= final - CLOSE)
    return {
        "dataset": dataset,
        "method": method,
        "seeds": len(runs[close]),
        "final_accuracy": final,
        "epochs": close,
        "accuracy": accuracy[close],
        "cpu_s": seconds[close],
        "cpu_s_in_full": seconds[max(runs)],
    }
