"""`topoter search`: find a recipe for a dataset, on training and validation labels, or pairs, alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topoter.cli.output import DataRoot, Json, Quiet, make_folder, note, out, print_json, show_log
from topoter.datasets import dataset_kind, known_as
from topoter.errors import unknown_name

if TYPE_CHECKING:
    from topoter.experiments.link_search import LinkTrial
    from topoter.experiments.search import Trial

TASKS = ("node", "link")


def run(
    dataset: Annotated[str, typer.Argument(help="A dataset (see `topoter datasets`); for nodes it needs labels.")],
    task: Annotated[str, typer.Option(help="What for: node (classification) or link (prediction).")] = "node",
    seeds: Annotated[int, typer.Option(min=1, help="Encoders per setting.")] = 2,
    rounds: Annotated[int, typer.Option(min=1, help="How often every parameter is visited.")] = 2,
    most_epochs: Annotated[int, typer.Option(min=1, help="The longest training tried.")] = 640,
    out_dir: Annotated[Path, typer.Option("--out", help="Where the trials are kept, and read again.")] = Path(
        "results/search"
    ),
    only: Annotated[
        list[str] | None, typer.Option(help="Links: a stage.parameter to walk through (repeat it for more; else all).")
    ] = None,
    data_root: DataRoot = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Search for good parameters; test labels or pairs are erased first. What was tried is not tried again."""
    if task not in TASKS:
        raise unknown_name("task", task, TASKS)
    show_log(quiet)
    dataset_kind(dataset, data_root)  # raises where there is none of that name
    make_folder(out_dir)
    dataset = known_as(dataset) or dataset
    if task == "link":
        _search_links(dataset, seeds, out_dir, only or [], data_root, quiet, json)
    else:
        _search_nodes(dataset, seeds, rounds, most_epochs, out_dir, data_root, quiet, json)


def _search_nodes(
    name: str,
    seeds: int,
    rounds: int,
    most_epochs: int,
    out_dir: Path,
    data_root: Path | None,
    quiet: bool,
    json: bool,
) -> None:
    from topoter.datasets import load
    from topoter.experiments.search import Search

    search = Search(load(name, data_root=data_root), name, seeds, out_dir / f"{name}.json", most_epochs)

    def show(trial: Trial) -> None:
        score, epochs = trial.best()
        text = ", ".join(f"{key} {trial.setting[key]}" for key in search.space)
        note(f"{score:.2f} % on validation, {epochs} epochs: {text}", quiet)

    best = search.run(show, rounds)
    score, epochs = best.best()
    parameters = best.setting | {"epochs": epochs}
    if json:
        print_json({"dataset": name, "val": score, "trials": len(search.trials), "parameters": parameters})
        return
    out.print(f"# {score:.2f} % on validation, the best of {len(search.trials)} settings")
    _print_recipe(parameters)


def _search_links(
    name: str, seeds: int, out_dir: Path, only: list[str], data_root: Path | None, quiet: bool, json: bool
) -> None:
    from topoter.datasets import load
    from topoter.experiments.link_search import LinkSearch

    search = LinkSearch(load(name, data_root=data_root), name, seeds, out_dir / f"link-{name}.json", only)

    def show(trial: LinkTrial) -> None:
        text = ", ".join(f"{key} {value}" for key, value in trial.setting.items())
        note(f"{trial.score:.2f} % on validation, {trial.method}: {text}", quiet)

    best = search.run(show)
    if json:
        stages = {stage: {"val": trial.score, "parameters": trial.setting} for stage, trial in best.items()}
        print_json({"dataset": name, "trials": len(search.trials), "stages": stages})
        return
    for stage, trial in best.items():
        out.print(f"\n# {stage}: {trial.method}, mean of AUC and AP {trial.score:.2f} % on validation", soft_wrap=True)
        _print_recipe(trial.setting)


def _print_recipe(parameters: dict[str, Any]) -> None:
    """As a recipe's file holds it."""
    for key, value in parameters.items():
        text = str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else value
        out.print(f"{key} = {text}")
