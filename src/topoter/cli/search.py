"""`topoter search`: find a recipe for a dataset, on training and validation labels, or pairs, alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topoter.cli.graph_options import GraphOptions, takes_options
from topoter.cli.output import Seed, make_folder, out, print_json, show_log
from topoter.cli.own_labels import LabelColumn, LabelsFile, load_labelled
from topoter.cli.reading import load_graph
from topoter.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from topoter.experiments.search import Trial

TASKS = ("node", "link")


@takes_options
def run(
    dataset: Annotated[str, typer.Argument(help="A dataset (see `topoter datasets`), or the file of your own graph.")],
    *,
    labels: LabelsFile = None,
    label_column: LabelColumn = None,
    options: GraphOptions,
    task: Annotated[str, typer.Option(help="What for: node (classification) or link (prediction).")] = "node",
    method: Annotated[
        str, typer.Option(help="topoter, or a peer to be searched for as well, e.g. dgi, gae.")
    ] = "topoter",
    trials: Annotated[int, typer.Option(min=1, help="How many settings are tried, earlier ones included.")] = 50,
    seeds: Annotated[int, typer.Option(min=1, help="Encoders (links: splits) per setting.")] = 2,
    seed: Seed = 0,
    out_dir: Annotated[
        Path, typer.Option("--out", help="The folder of the journal, shared by all processes of a search.")
    ] = Path("results/search"),
) -> None:
    """Search for good parameters with Optuna; test labels or pairs are erased first. It goes on where it stopped."""
    if task not in TASKS:
        raise unknown_name("task", task, TASKS)
    from topoter.experiments.search import Search
    from topoter.training import Interrupted

    show_log(options.quiet)
    dataset, data = _load(dataset, task, labels, label_column, options, seed)
    make_folder(out_dir)
    search = Search(data, dataset, task, method, seeds, seed, out_dir)

    def show(trial: Trial) -> None:
        text = ", ".join(f"{key} {value}" for key, value in trial.parameters.items())
        options.say(f"{trial.number}: {trial.score:.2f} % on validation: {text}")

    try:
        best = search.run(trials, show)
    except KeyboardInterrupt:
        raise Interrupted("Interrupted. What was tried is kept: the same command goes on from there.") from None
    count = len(search.trials)
    if options.json:
        about = {"task": task, "dataset": dataset, "method": method}
        print_json({**about, "val": best.score, "trials": count, "parameters": best.parameters})
        return
    what = " and ".join(best.scores)
    out.print(f"# {method} on {dataset}: {what} {best.score:.2f} %, the best of {count} trials", soft_wrap=True)
    out.print("[recipes.best]", markup=False)
    for key, value in best.parameters.items():
        out.print(f"{key} = {_as_toml(value)}", markup=False, soft_wrap=True)


def _as_toml(value: object) -> str:
    """A value as a recipe file has it; numbers, texts and lists are written as in JSON."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_as_toml(part)}" for key, part in value.items()) + " }"
    return json.dumps(value)


def _load(
    name: str, task: str, labels: Path | None, column: str | None, options: GraphOptions, seed: int
) -> tuple[str, Data]:
    """The name of a search and its graph: a dataset with its split, or a user's own with one drawn by the seed."""
    from topoter.datasets import dataset_kind, known_as, load
    from topoter.tasks.own_labels import with_split

    if not Path(name).exists():
        options.refuse(f"this goes with a file, not with the dataset {name!r}.")
        dataset_kind(name, options.data_root)  # raises where there is none of that name
        found = known_as(name) or name
        return found, load(found, data_root=options.data_root)
    own = Path(name).name.partition(".")[0]
    if task != "node":
        return own, load_graph(name, options, seed)
    if labels is None:
        raise UsageError("A search for nodes of your own graph needs --labels FILE.")
    data, known = load_labelled(name, labels, column, options)
    return own, with_split(data, known.y, seed)
