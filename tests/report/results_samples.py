"""A small folder of results, made of invented scores, with names and texts that try to break out of the page."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from topoter.experiments import experiment
from topoter.experiments.runs import Run
from topoter.experiments.store import Record, Store

IMAGE = "<img src=x onerror=alert(1)>"  # a dataset can have this name
SCRIPT = "</script><script>alert(1)</script>"
PIPE = "a | b"

Found = tuple[dict[str, Any], dict[str, Any]]  # scores, each a value or a list, and details


def record(run: Run, scores: dict[str, Any], details: dict[str, Any]) -> Record:
    """What `topoter reproduce` keeps of a run."""
    return Record(
        experiment=run.recipe.experiment,
        dataset=run.recipe.dataset,
        method=run.recipe.method,
        recipe=run.recipe.name,
        protocol=run.protocol,
        point=run.variation,
        seed=run.seed,
        scores={name: value if isinstance(value, list) else [float(value)] for name, value in scores.items()},
        parameters=run.parameters,
        details=details,
        seconds=2.0,
        cpu_seconds=1.5,
        peak_mb=600.0,
        versions={"topoter": "0.1.0", "git": "abc1234", "python": SCRIPT},
    )


def records_of(
    name: str,
    found: Callable[[Run], Found],
    datasets: Sequence[str],
    methods: Sequence[str] | None = None,
    seeds: int = 2,
) -> list[Record]:
    """The records of an experiment, with what `found` says each run found."""
    return [record(run, *found(run)) for run in experiment(name).plan(list(datasets), methods, seeds)]


def keep(folder: Path, records: Sequence[Record], losses: Sequence[float] = ()) -> Store:
    """Write records as `topoter reproduce` does; TopoTER's have losses."""
    store = Store.read(folder)
    for item in records:
        store.add(item, losses if item.method == "topoter" else [], {})
    return store


def nodes(run: Run) -> Found:
    """Cora: `best` above the paper's 83.7 ± 0.3, `paper` below it, and the authors' protocol within."""
    ended = {"loss": 1.3, "prior_entropy": 1.304}
    if run.protocol == "paper":
        return {"accuracy": [83.5, 83.7, 83.9]}, {"classifier_epochs": 10, **ended}
    base = {("topoter", "best"): 84.5, ("topoter", "paper"): 80.0}.get((run.recipe.method, run.recipe.name), 70.0)
    return {"accuracy": base + run.seed / 5, "validation accuracy": 78.0}, ended


def graphs(run: Run) -> Found:
    return {"accuracy": 80.0 + run.seed, "validation accuracy": 79.0}, {"loss": 1.3, "prior_entropy": 1.386}


def links(run: Run) -> Found:
    return {"AUC": 93.4, "AP": 99.0, "validation AUC": 90.0}, {"prior_entropy": 1.304}


def equivariance(run: Run) -> Found:
    panel = [[0.1 * (row - column) for column in range(4)] for row in range(3)]
    details = {
        "confusion": [[1, 2, 3, 4]] * 4, "loss": 0.9, "prior_entropy": 1.304, "nodes": 3, "channels": 4,
        "transformation": SCRIPT, "panels": [panel] * 4 if run.seed == 0 else [],
    }  # fmt: skip
    return {"error": 50, "formula error": 120, "formula error of the true dA": 80, "accuracy": 64}, details


def study(run: Run) -> Found:
    return {"accuracy": 70.0 + 2 * run.variation["order"] + run.seed, "validation accuracy": 75.0}, {}


REMARKS = f"""
[node-classification]
all = "Said of the table {PIPE}."
[node-classification.cora]
paper = "Too few epochs {SCRIPT}"
"""


def write_sample(folder: Path) -> Path:
    """Parts of five experiments, remarks, a map and a search."""
    losses = [1.5 - 0.001 * epoch for epoch in range(700)]
    keep(folder, records_of("node-classification", nodes, ["cora"]), losses)
    keep(folder, records_of("order", study, ["cora"], ["topoter", "propagated"]))
    keep(folder, records_of("graph-classification", graphs, ["mutag", IMAGE], ["topoter", "wl"], seeds=1), losses[:20])
    keep(folder, records_of("link-prediction", links, ["cora"], ["topoter"]), losses[:20])
    keep(folder, records_of("equivariance", equivariance, ["cora"]))
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
    trials = [
        {
            "search": "node-cora-topoter", "number": number, "task": "node", "dataset": "cora", "method": "topoter",
            "parameters": {"order": order, "epochs": epochs, "encoder": "sgc"},
            "scores": {"validation accuracy": [80.0 + order - epochs / 100]},
            "versions": {"topoter": "0.1.0", "git": SCRIPT},
        }
        for number, (order, epochs) in enumerate([(2, 40), (2, 80), (3, 40)])
    ]  # fmt: skip
    (folder / "search.jsonl").write_text("".join(f"{json.dumps(trial)}\n" for trial in trials), encoding="utf-8")
    return folder


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
