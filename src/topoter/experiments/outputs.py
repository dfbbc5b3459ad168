"""What an experiment leaves beside its runs: the table, and the figures where it has some."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from topoter.experiments import experiment
from topoter.experiments.experiment import Experiment
from topoter.experiments.runs import Run, save_text
from topoter.experiments.schedule import files_on_disk, stored_runs
from topoter.experiments.sizes import model_sizes, size_table
from topoter.experiments.tables import Cell, cells, group_means, markdown

MODEL_SIZE = "model-size"  # a table that is counted, not run


def rows_of(name: str, runs: Sequence[Run], folder: Path) -> list[Cell]:
    """The rows of an experiment's table that these runs are behind, as far as they are on disk."""
    chosen = experiment(name)
    found = cells(chosen, stored_runs(runs, folder))
    return [*found, *group_means(chosen, found)]


def table_of(name: str, rows: Sequence[Cell], seeds: int) -> str:
    """An experiment's table in Markdown."""
    return markdown(rows, experiment(name).metrics, seeds)


def write_outputs(name: str, runs: Sequence[Run], folder: Path) -> list[Path]:
    """Write the table and the figures of what is on disk; returns the files.

    They hold the whole experiment, and not only the methods, datasets and seeds that were asked for this time.
    """
    chosen = experiment(name)
    seeds = 1 + max(files_on_disk(name, folder).values())
    datasets = dict.fromkeys([*chosen.datasets, *(run.recipe.dataset for run in runs)])
    whole = chosen.plan(list(datasets), None, seeds)
    table = folder / name / "table.md"
    note = f"Mean and deviation over {seeds} seed{'s' * (seeds > 1)}, fewer where said.\n"
    save_text(table, f"{table_of(name, rows_of(name, whole, folder), seeds)}\n{note}")
    stored = [content for _, content in stored_runs(whole, folder)]
    return [table, *draw_figures(chosen, stored, folder / name)]


def draw_figures(chosen: Experiment, stored: Sequence[dict[str, Any]], folder: Path) -> list[Path]:
    """One page with the experiment's charts, if it has any."""
    if chosen.charts is None:
        return []
    from topoter.report import Page, Section

    page = Page(f"{chosen.name.replace('-', ' ').capitalize()}: figures", chosen.about)
    for title, chart in chosen.charts(stored):
        page.add(Section(title).add(chart))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "figure.html"
    page.write(path)
    return [path]


def write_model_size(folder: Path) -> Path:
    """Write the table of numbers of parameters."""
    path = folder / MODEL_SIZE / "table.md"
    save_text(path, size_table(model_sizes()))
    return path
