"""`topoter reproduce`: a table or figure of the paper, ours beside the paper's; resumable, one JSON per run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.markdown import Markdown

from topoter.cli.evaluate import run_seeds
from topoter.cli.output import DataRoot, Json, Quiet, note, out, print_json, progress_bar, show_log
from topoter.errors import TopoterError, UsageError, unknown_name
from topoter.experiments.recipes import load_recipe

PAPER_DATASETS = ["cora", "citeseer", "pubmed"]
# Rows of the node table: method and recipe. Reference rows stand first, whatever else is asked for.
NODE_ROWS = [
    ("raw", "best"),
    ("propagated", "best"),
    ("random-init", "best"),
    ("gae", "paper"),
    ("vgae", "paper"),
    ("dgi", "paper"),
    ("topoter", "paper"),
    ("topoter", "best"),
]


def run(
    name: Annotated[str, typer.Argument(help="Which table or figure: node-classification or model-size.")],
    seeds: Annotated[int, typer.Option(help="Seeds per row, each with a new encoder.")] = 10,
    methods: Annotated[str | None, typer.Option(help="Only these, comma-separated.")] = None,
    datasets: Annotated[str | None, typer.Option(help="Only these, comma-separated.")] = None,
    out_dir: Annotated[Path, typer.Option("--out", help="Where the JSON files are and go.")] = Path("results"),
    stored: Annotated[bool, typer.Option("--stored", help="Run nothing: the table of what is on disk.")] = False,
    data_root: DataRoot = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Reproduce a table of the paper: what is on disk already is not run again."""
    show_log(quiet)
    if name not in EXPERIMENTS:
        raise unknown_name("experiment", name, EXPERIMENTS)
    if seeds < 1:
        raise UsageError(f"--seeds must be at least 1. Got {seeds} instead.")
    EXPERIMENTS[name](Asked(seeds, _names(methods), _names(datasets), out_dir, stored, data_root, quiet, json))


@dataclass(frozen=True)
class Asked:
    """What the user asked for, as every experiment takes it."""

    seeds: int
    methods: list[str] | None
    datasets: list[str] | None
    out_dir: Path
    stored: bool
    data_root: Path | None
    quiet: bool
    json: bool


def node_classification(asked: Asked) -> None:
    """Accuracy on the public splits: reference rows, peers, TopoTER by the paper's recipe and by ours."""
    from topoter.datasets import load
    from topoter.experiments.runs import save_text, stored_runs
    from topoter.experiments.tables import Cell, cell, markdown

    known = {method for method, _ in NODE_ROWS}
    for method in asked.methods or []:
        if method not in known:
            raise unknown_name("method", method, known)
    rows = [row for row in NODE_ROWS if asked.methods is None or row[0] in asked.methods]
    # The authors' protocol only for their own recipe, and in a column of its own: it selects on test labels.
    wanted = [(method, recipe, "validation") for method, recipe in rows]
    wanted += [(method, recipe, "paper") for method, recipe in rows if (method, recipe) == ("topoter", "paper")]
    names = asked.datasets or PAPER_DATASETS
    cells: list[Cell] = []
    with progress_bar(asked.quiet or asked.stored) as progress:
        total = progress.add_task("all runs", total=len(names) * len(wanted), text="") if progress else None
        for dataset in names:
            data = None if asked.stored else load(dataset, data_root=asked.data_root)
            for method, recipe_name, protocol in wanted:
                recipe = load_recipe("node-classification", method, dataset, recipe_name)
                if asked.stored:
                    runs = stored_runs(recipe, protocol, asked.seeds, asked.out_dir)
                else:
                    runs = run_seeds(recipe, protocol, asked.seeds, data, progress, asked.out_dir)
                if runs:
                    cells.append(cell(recipe, protocol, runs))
                if progress is not None and total is not None:
                    progress.advance(total)
    if not cells:
        raise TopoterError(f"There are no runs of these methods and datasets in {asked.out_dir}.")
    table = markdown(cells, names, asked.seeds)
    save_text(asked.out_dir / "node-classification" / "table.md", table)
    if asked.json:
        print_json([item.as_dict() for item in cells])
    else:
        _print_table(table)
        note(f"Accuracy in percent, mean and deviation over seeds. One JSON per run in {asked.out_dir}.", asked.quiet)


def model_size(asked: Asked) -> None:
    """Numbers of parameters on Cora with the paper's settings."""
    from topoter.experiments.runs import save_text
    from topoter.experiments.sizes import model_sizes

    sizes = model_sizes()
    lines = ["| method | ours | paper | note |", "|---|---|---|---|"]
    for size in sizes:
        ours = "–" if size["ours"] is None else f"{size['ours']:,}"
        lines.append(f"| {size['method']} | {ours} | {size['paper']:,} | {size['note']} |")
    table = "\n".join(lines) + "\n"
    save_text(asked.out_dir / "model-size" / "table.md", table)
    if asked.json:
        print_json(sizes)
    else:
        _print_table(table)


def _print_table(table: str) -> None:
    out.print(Markdown(table) if out.is_terminal else table, soft_wrap=not out.is_terminal)


EXPERIMENTS: dict[str, Callable[..., None]] = {
    "node-classification": node_classification,
    "model-size": model_size,
}


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip().lower() for name in text.split(",") if name.strip()]
