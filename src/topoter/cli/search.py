"""`topoter search`: find a recipe for a dataset with labels, on its training and validation labels alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topoter.cli.output import DataRoot, Json, Quiet, note, out, print_json, show_log

if TYPE_CHECKING:
    from topoter.experiments.search import Trial


def run(
    dataset: Annotated[str, typer.Argument(help="A labelled dataset (see `topoter datasets`).")],
    seeds: Annotated[int, typer.Option(min=1, help="Encoders per setting.")] = 2,
    rounds: Annotated[int, typer.Option(min=1, help="How often every parameter is visited.")] = 2,
    most_epochs: Annotated[int, typer.Option(min=1, help="The longest training tried.")] = 640,
    out_dir: Annotated[Path, typer.Option("--out", help="Where the trials are kept, and read again.")] = Path(
        "results/search"
    ),
    data_root: DataRoot = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Search for good parameters; test labels are erased first. What was tried already is not tried again."""
    from topoter.datasets import load
    from topoter.experiments.search import Search

    show_log(quiet)
    name = dataset.lower()
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
    for key, value in parameters.items():
        text = str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else value
        out.print(f"{key} = {text}")
