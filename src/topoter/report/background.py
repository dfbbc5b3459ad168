"""What stands behind the results: the settings that searches tried, and how fast training is."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from topoter.errors import DataError, TopoterError
from topoter.experiments.search import Trial
from topoter.experiments.store import Store, read_lines
from topoter.report.tables import Cell, CellLike, Table, many

SEARCH_FILE, SPEED_FILE = "search.jsonl", "bench.json"


@contextmanager
def written_by_topoter(path: Path | str) -> Iterator[None]:
    """Turn what a file of another shape leads to into one error that names the file."""
    try:
        yield
    except TopoterError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{path} does not hold what topoter writes there ({error!r}). Make it again.") from error


def search_tables(folder: Path) -> list[Table]:
    """Per search every setting tried, the best first."""
    searches: dict[str, dict[str, Trial]] = {}
    for _, trial in read_lines(folder / SEARCH_FILE, Trial):
        # Of settings that differ in the number of epochs only, the best is shown.
        but_epochs = {name: value for name, value in trial.parameters.items() if name not in ("epochs", "patience")}
        best = searches.setdefault(trial.search, {})
        place = f"{trial.method} {sorted(but_epochs.items())}"
        best[place] = max(best.get(place, trial), trial, key=lambda item: item.score)
    return [_search(list(best.values())) for best in searches.values()]


def _search(trials: list[Trial]) -> Table:
    first, metrics = trials[0], list(trials[0].scores)
    values: dict[str, set[str]] = {}
    for trial in trials:
        for name, value in trial.parameters.items():
            values.setdefault(name, set()).add(repr(value))
    varied = [name for name, found in values.items() if len(found) > 1]
    rows: list[list[CellLike]] = []
    for trial in sorted(trials, key=lambda item: -item.score):
        scores = [f"{statistics.fmean(trial.scores[metric]):.2f}" for metric in metrics]
        set_to = ", ".join(f"{name} {trial.parameters[name]}" for name in varied if name in trial.parameters)
        rows.append([len(rows) + 1, trial.method, *scores, Cell(set_to, wrap=True)])
    made_with = f"topoter {first.versions.get('topoter', '?')}, git commit {first.versions.get('git', '?')}"
    return Table(
        ["place", "method", *metrics, "setting"],
        rows,
        caption=f"{first.dataset}, {first.task}s ({first.search}): {len(rows)} settings tried, in %",
        note=f"Mean over {many(len(first.scores[metrics[0]]), 'seed')}; {made_with}.",
    )


def speed_tables(store: Store) -> list[Table]:
    """Time and memory of a training step beside plain PyTorch, and growth with the graph; none if not measured."""
    content = store.left(SPEED_FILE)
    if content is None:
        return []
    with written_by_topoter((store.folder or Path()) / SPEED_FILE):
        return [_steps(content), _memory(content), _growth(content)]


def _measured(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], digits: int, **words: str) -> Table:
    """A table of what was measured: by the title of a column the name of the value, and the decimals of a fraction."""
    found = [[row[name] for name in columns.values()] for row in rows]
    body = [[f"{value:,.{digits}f}" if isinstance(value, float) else value for value in row] for row in found]
    return Table(list(columns), body, **words)


def _steps(content: dict[str, Any]) -> Table:
    gap = max(row["largest_loss_gap"] for row in content["steps"])
    return _measured(
        content["steps"],
        {
            "dataset": "dataset",
            "channels": "channels",
            "threads": "threads",
            "ours, CPU ms": "topoter_cpu_ms",
            "plain, CPU ms": "twin_cpu_ms",
            "plain / ours": "cpu_ratio",
            "DGI, CPU ms": "dgi_cpu_ms",
        },
        digits=1,
        caption="A training step",
        note="Medians, alternating in one process. “plain” is the same step with PyG's SGConv and plain PyTorch; the "
        f"losses of both differ by at most {gap:.0e}. {_made(content, 'steps')}",
    )


def _memory(content: dict[str, Any]) -> Table:
    peaks = {(row["case"], row["dataset"], row["channels"]): row["peak_mb"] for row in content["memory"]}
    pairs = [((d, c), ours, peaks["twin", d, c]) for (case, d, c), ours in peaks.items() if case == "topoter"]
    return Table(
        ["dataset", "channels", "ours, MB", "plain, MB", "plain / ours"],
        [[*where, f"{ours:.0f}", f"{plain:.0f}", f"{plain / ours:.1f}"] for where, ours, plain in pairs],
        caption="Memory of a training step",
        note="Peak above the loaded data, each in its own process.",
    )


def _growth(content: dict[str, Any]) -> Table:
    columns = {"nodes": "nodes", "edges": "edges", "channels": "channels"}
    return _measured(
        content["growth"],
        columns | {"epoch, s": "wall_s", "epoch, CPU s": "cpu_s", "peak, MB": "peak_mb"},
        digits=2,
        caption="Growth with the graph",
        note=f"Block models of mean degree 10. CPU time grows as nodes to the power {content['exponent_cpu_s']:.2f}. "
        f"{_made(content, 'growth')}",
    )


def _made(content: dict[str, Any], part: str) -> str:
    return f"Made by {content['command']}, git commit {content['versions'][part]['git']}."
