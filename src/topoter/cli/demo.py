"""`topoter demo`: the main job on the embedded Cora, or on MUTAG's graphs, end to end, with a report."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topoter.cli.graph_options import GraphOptions, SetOptions
from topoter.cli.output import Quiet, make_folder, note, out, show_log, training_progress
from topoter.cli.reading import load_graph, load_graph_set
from topoter.errors import unknown_name

if TYPE_CHECKING:
    import numpy as np

    from topoter.estimator import TopoTER


@dataclass(frozen=True)
class Demo:
    """What is shown: the experiment whose recipes are used, and what its dataset is called."""

    experiment: str
    dataset: str
    title: str
    methods: Sequence[str]


DEMOS = {
    "node": Demo("node-classification", "cora", "Cora", ("raw", "propagated", "random-init", "topoter")),
    "graph": Demo("graph-classification", "mutag", "MUTAG", ("degree-histogram", "random-init", "topoter")),
}


def run(
    task: Annotated[str, typer.Option(help="node: papers of Cora; graph: molecules of MUTAG.")] = "node",
    out_dir: Annotated[Path, typer.Option("--out", "-o", help="Where report and embeddings go.")] = Path("demo"),
    seeds: Annotated[int, typer.Option(min=1, help="Seeds per row.")] = 3,
    quiet: Quiet = False,
) -> None:
    """Pre-train on Cora or MUTAG without labels, classify papers or molecules, write a report. Offline, a minute."""
    if task not in DEMOS:
        raise unknown_name("task", task, DEMOS)
    from topoter.experiments import experiment
    from topoter.experiments.experiment import Row
    from topoter.experiments.recipes import DEFAULT
    from topoter.graphs import write_embeddings
    from topoter.methods import build
    from topoter.report.demo import accuracy_table, write_demo_report
    from topoter.report.tables import many
    from topoter.tasks.projection import project_2d

    show_log(quiet)
    make_folder(out_dir)
    start = time.perf_counter()
    demo = DEMOS[task]
    options = GraphOptions(quiet=quiet)
    data = load_graph("embedded-cora", options) if task == "node" else load_graph_set("mutag", options, SetOptions())
    rows: list[dict[str, Any]] = []
    kept: TopoTER | None = None
    for method in demo.methods:
        recipe = DEFAULT if method in ("topoter", "random-init") else None
        runs = experiment(demo.experiment).runs(Row(method, recipe), demo.dataset, seeds)
        found = []
        for one in runs:
            if method == "topoter":
                model = _trained(task, one.parameters, one.seed, seeds, data, quiet)
                kept = kept or model
                z = model.transform(data)
            else:
                z = build(method, task, one.parameters).fit(data, one.seed).embed(data)
            found.append(_score(task, z, data, one.seed))
        rows.append(_row(method, found, runs[0].recipe.paper))
    assert kept is not None
    z = kept.transform(data)
    note("Drawing the map ...", quiet)
    untrained = type(kept)(**kept.get_params() | {"epochs": 0})
    maps = {
        "before training": project_2d(untrained.fit_transform(data), seed=0),
        "after training": project_2d(z, seed=0),
    }
    write_embeddings(out_dir / "embeddings.parquet", z, None if isinstance(data, list) else data.get("node_ids"))
    kept.save(out_dir / "model.topoter")
    labels, label_names = _labels(task, data)
    write_demo_report(
        out_dir / "report.html",
        dataset=demo.title,
        rows=rows,
        history=kept.history_,
        z2d=maps,
        labels=labels,
        label_names=label_names,
        parameters={name: value for name, value in kept.effective_params().items() if value is not None},
        seconds=time.perf_counter() - start,
        commands=["topoter demo" if task == "node" else f"topoter demo --task {task}"],
        level=task,
    )
    out.print(accuracy_table(f"{demo.title} over {many(seeds, 'seed')}", rows, task))
    for what, name in (("Report", "report.html"), ("Embeddings", "embeddings.parquet"), ("Model", "model.topoter")):
        out.print(f"{what + ':':11} {out_dir / name}", soft_wrap=True)


def _trained(task: str, parameters: dict[str, Any], seed: int, seeds: int, data: Any, quiet: bool) -> TopoTER:
    from topoter.estimator import TopoTER

    model = TopoTER(level=task, **parameters, random_state=seed)
    with training_progress(f"TopoTER, seed {seed + 1} of {seeds}", quiet) as show:
        return model.fit(data, callbacks=[show])


def _score(task: str, z: np.ndarray, data: Any, seed: int) -> dict[str, Any]:
    """Validation and test accuracy: of a linear probe on nodes, of a cross-validated machine on graphs."""
    from topoter.tasks import graph_classification, node_classification

    return node_classification.score(z, data) if task == "node" else graph_classification.score(data, seed, z=z)


def _labels(task: str, data: Any) -> tuple[Any, list[str]]:
    from topoter.datasets.planetoid import CLASS_NAMES

    if task == "node":
        return data.y.numpy(), list(CLASS_NAMES["cora"])
    return [int(graph.y) for graph in data], ["not mutagenic", "mutagenic"]


def _row(method: str, scores: Sequence[dict[str, Any]], paper: dict[str, float] | None) -> dict[str, Any]:
    row: dict[str, Any] = {"method": method}
    for name in ("val", "test"):
        values = [score[name] for score in scores]
        row[f"{name}_mean"] = statistics.fmean(values)
        row[f"{name}_std"] = statistics.stdev(values) if len(values) > 1 else None
    return row | {f"paper_{name}": (paper or {}).get(name) for name in ("mean", "std")}
