"""`topoter reproduce`: a table or figure of the paper, ours beside the paper's; resumable, one JSON per run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.markdown import Markdown

from topoter.cli.evaluate import run_seeds
from topoter.cli.output import DataRoot, Json, Quiet, note, out, print_json, progress_bar, show_log
from topoter.errors import UsageError, unknown_name
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
    EXPERIMENTS[name](seeds, _names(methods), _names(datasets), out_dir, data_root, quiet, json)


def node_classification(
    seeds: int,
    methods: list[str] | None,
    datasets: list[str] | None,
    out_dir: Path,
    data_root: Path | None,
    quiet: bool,
    json: bool,
) -> None:
    """Accuracy on the public splits: reference rows, peers, TopoTER by the paper's recipe and by ours."""
    from topoter.datasets import load
    from topoter.experiments.runs import save_text
    from topoter.experiments.tables import Cell, cell, markdown

    known = {method for method, _ in NODE_ROWS}
    for method in methods or []:
        if method not in known:
            raise unknown_name("method", method, known)
    rows = [row for row in NODE_ROWS if methods is None or row[0] in methods]
    # The authors' protocol only for their own recipe, and in a column of its own: it selects on test labels.
    wanted = [(method, recipe, "validation") for method, recipe in rows]
    wanted += [(method, recipe, "paper") for method, recipe in rows if (method, recipe) == ("topoter", "paper")]
    cells: list[Cell] = []
    with progress_bar(quiet) as progress:
        names = datasets or PAPER_DATASETS
        total = progress.add_task("all runs", total=len(names) * len(wanted), text="") if progress else None
        for dataset in names:
            data = load(dataset, data_root=data_root)
            for method, recipe_name, protocol in wanted:
                recipe = load_recipe("node-classification", method, dataset, recipe_name)
                cells.append(cell(recipe, protocol, run_seeds(recipe, protocol, seeds, data, progress, out_dir)))
                if progress is not None and total is not None:
                    progress.advance(total)
    table = markdown(cells, names)
    save_text(out_dir / "node-classification" / "table.md", table)
    if json:
        print_json([item.as_dict() for item in cells])
    else:
        out.print(Markdown(table) if out.is_terminal else table, soft_wrap=not out.is_terminal)
        note(
            f"Accuracy in percent, mean and deviation over {seeds} seeds. One JSON per run in {out_dir}.",
            quiet,
        )


def model_size(
    seeds: int,
    methods: list[str] | None,
    datasets: list[str] | None,
    out_dir: Path,
    data_root: Path | None,
    quiet: bool,
    json: bool,
) -> None:
    """Numbers of parameters on Cora with the paper's settings."""
    from topoter.experiments.runs import save_text
    from topoter.experiments.sizes import model_sizes

    sizes = model_sizes()
    lines = ["| method | ours | paper | note |", "|---|---|---|---|"]
    for size in sizes:
        ours = "–" if size["ours"] is None else f"{size['ours']:,}"
        lines.append(f"| {size['method']} | {ours} | {size['paper']:,} | {size['note']} |")
    table = "\n".join(lines) + "\n"
    save_text(out_dir / "model-size" / "table.md", table)
    if json:
        print_json(sizes)
    else:
        out.print(Markdown(table) if out.is_terminal else table, soft_wrap=not out.is_terminal)


EXPERIMENTS: dict[str, Callable[..., None]] = {
    "node-classification": node_classification,
    "model-size": model_size,
}


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip().lower() for name in text.split(",") if name.strip()]
