"""`topoter reproduce`: a table or figure of the paper, ours beside the paper's; resumable, one JSON per run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markdown import Markdown

from topoter.cli.output import DataRoot, Json, Quiet, complete, note, out, print_json, progress_bar, show_log
from topoter.errors import TopoterError, UsageError, unknown_name

MODEL_SIZE = "model-size"  # a table that is counted, not run


def run(
    name: Annotated[str, typer.Argument(help="Which table or figure, e.g. node-classification or model-size.")],
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
    from topoter.experiments import EXPERIMENTS, experiment
    from topoter.experiments.runs import load_run, save_text
    from topoter.experiments.tables import cells, markdown

    show_log(quiet)
    if name == MODEL_SIZE:
        _model_size(out_dir, json)
        return
    if name not in EXPERIMENTS:
        raise unknown_name("experiment", name, [*EXPERIMENTS, MODEL_SIZE])
    if seeds < 1:
        raise UsageError(f"--seeds must be at least 1. Got {seeds} instead.")
    chosen = experiment(name)
    runs = chosen.plan(_names(datasets), _names(methods), seeds)
    if stored:
        loaded = [(run_, load_run(run_, out_dir)) for run_ in runs]
        found = [(run_, content) for run_, content in loaded if content is not None]
    else:
        with progress_bar(quiet) as progress:
            found = complete(chosen, runs, out_dir, data_root, progress)
    if not found:
        raise TopoterError(f"There are no runs of these methods and datasets in {out_dir}.")
    rows = cells(chosen, found)
    table = markdown(rows, chosen.metrics, seeds)
    save_text(out_dir / name / "table.md", table)
    figures = chosen.figures([content for _, content in found], out_dir / name) if chosen.figures else []
    if json:
        print_json([row.as_dict() for row in rows])
    else:
        _print_table(table)
        metrics = " and ".join(chosen.metrics)
        note(f"{metrics} in percent, mean and deviation over seeds. One JSON per run in {out_dir}.", quiet)
        for path in figures:
            out.print(f"Figure: {path}", soft_wrap=True)


def _model_size(out_dir: Path, json: bool) -> None:
    """Numbers of parameters on Cora with the paper's settings."""
    from topoter.experiments.runs import save_text
    from topoter.experiments.sizes import model_sizes

    sizes = model_sizes()
    lines = ["| method | ours | paper | note |", "|---|---|---|---|"]
    for size in sizes:
        ours = "–" if size["ours"] is None else f"{size['ours']:,}"
        lines.append(f"| {size['method']} | {ours} | {size['paper']:,} | {size['note']} |")
    table = "\n".join(lines) + "\n"
    save_text(out_dir / MODEL_SIZE / "table.md", table)
    if json:
        print_json(sizes)
    else:
        _print_table(table)


def _print_table(table: str) -> None:
    out.print(Markdown(table) if out.is_terminal else table, soft_wrap=not out.is_terminal)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip().lower() for name in text.split(",") if name.strip()]
