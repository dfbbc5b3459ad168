"""A small folder of results, made of invented scores, with names and texts that try to break out of the page."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from topoter.experiments import experiment
from topoter.experiments.runs import Run, save_run

IMAGE = "<img src=x onerror=alert(1)>"  # a folder can have this name
SCRIPT = "</script><script>alert(1)</script>"
PIPE = "a | b"


def keep(
    folder: Path,
    name: str,
    result: Callable[[Run], dict[str, Any]],
    datasets: Sequence[str],
    methods: Sequence[str] | None = None,
    seeds: int = 2,
    losses: Sequence[float] = (),
) -> list[Run]:
    """Write runs as `topoter reproduce` keeps them, with what `result` says each found."""
    runs = experiment(name).plan(list(datasets), methods, seeds)
    for run in runs:
        stored = run.description() | {
            "result": result(run),
            "losses": list(losses) if run.recipe.method == "topoter" else [],
            "seconds": 2.0,
            "cpu_seconds": 1.5,
            "peak_mb": 600.0,
            "versions": {"topoter": "0.1.0", "git": "abc1234", "python": SCRIPT},
        }
        save_run(run, stored, folder)
    return runs


def nodes(run: Run) -> dict[str, Any]:
    """Cora: `best` above the paper's 83.7 ± 0.3, `paper` below it, and the authors' protocol within."""
    if run.protocol == "paper":
        return {"test": [83.5, 83.7, 83.9], "classifier_epochs": 10, "loss": 1.3, "prior_entropy": 1.304}
    base = {("topoter", "best"): 84.5, ("topoter", "paper"): 80.0}.get((run.recipe.method, run.recipe.name), 70.0)
    return {"test": base + run.seed / 5, "val": 78.0, "loss": 1.3, "prior_entropy": 1.304}


def graphs(run: Run) -> dict[str, Any]:
    return {"test": 80.0 + run.seed, "val": 79.0, "loss": 1.3, "prior_entropy": 1.386}


def links(run: Run) -> dict[str, Any]:
    return {"auc": 93.4, "ap": 99.0, "val_auc": 90.0, "val_ap": 90.0, "prior_entropy": 1.304}


def equivariance(run: Run) -> dict[str, Any]:
    panel = [[0.1 * (row - column) for column in range(4)] for row in range(3)]
    return {
        "error": 0.5, "formula_error": 1.2, "formula_error_of_truth": 0.8, "accuracy": 64.0,
        "confusion": [[1, 2, 3, 4]] * 4, "loss": 0.9, "prior_entropy": 1.304, "nodes": 3, "channels": 4,
        "transformation": SCRIPT, "panels": [panel] * 4 if run.seed == 0 else [],
    }  # fmt: skip


def study(run: Run) -> dict[str, Any]:
    return {"test": 70.0 + 2 * run.variation["order"] + run.seed, "val": 75.0}


REMARKS = f"""
[node-classification]
all = "Said of the table {PIPE}."
[node-classification.cora]
paper = "Too few epochs {SCRIPT}"
"""


def write_sample(folder: Path) -> Path:
    """Parts of five experiments, remarks, a map and a search."""
    losses = [1.5 - 0.001 * epoch for epoch in range(700)]
    keep(folder, "node-classification", nodes, ["cora"], losses=losses)
    keep(folder, "order", study, ["cora"], ["topoter", "propagated"])
    keep(folder, "graph-classification", graphs, ["mutag", IMAGE], ["topoter", "wl"], seeds=1, losses=losses[:20])
    keep(folder, "link-prediction", links, ["cora"], ["topoter"], losses=losses[:20])
    keep(folder, "equivariance", equivariance, ["cora"])
    (folder / "remarks.toml").write_text(REMARKS, encoding="utf-8")
    points = [[float(index % 7), float(index % 5)] for index in range(35)]
    write_json(
        folder / "maps" / "cora.json",
        {
            "dataset": "cora" + SCRIPT,
            "recipe": "best",
            "seed": 0,
            "parameters": {},
            "maps": {"before training": points, "after training": points},
            "labels": [index % 3 for index in range(35)],
            "label_names": ["theory", SCRIPT, IMAGE],
        },
    )
    write_json(
        folder / "search" / "cora.json",
        {
            "dataset": "cora", "seeds": 2, "splits": 5, "space": {"order": [2, 3]}, "epochs": [40],
            "versions": {"topoter": "0.1.0", "git": SCRIPT},
            "trials": [{"setting": {"order": order}, "scores": {"40": [80.0 + order]}} for order in (2, 3)],
        },
    )  # fmt: skip
    return folder


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
