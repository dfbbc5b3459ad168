"""`topoter reproduce`: a table or figure of the paper, or all; ours beside the paper's; resumable, one JSON per run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markdown import Markdown

from topoter.cli.output import DataRoot, Json, Quiet, err, error_line, make_folder, note, out, print_json, show_log
from topoter.errors import TopoterError, UsageError, unknown_name

if TYPE_CHECKING:
    from topoter.experiments.bench import Failure
    from topoter.experiments.runs import Run

ALL = "all"


def run(
    name: Annotated[str, typer.Argument(help="Which table or figure, e.g. node-classification or model-size, or all.")],
    seeds: Annotated[int, typer.Option(help="Seeds per row, each with a new encoder.")] = 10,
    methods: Annotated[str | None, typer.Option(help="Only these, comma-separated.")] = None,
    datasets: Annotated[str | None, typer.Option(help="Only these, comma-separated.")] = None,
    jobs: Annotated[int, typer.Option(help="How many runs at once, each with its share of the cores.")] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Run nothing: what is missing, how long it took.")] = False,
    stored: Annotated[bool, typer.Option("--stored", help="Run nothing: the table of what is on disk.")] = False,
    out_dir: Annotated[Path, typer.Option("--out", help="Where the JSON files are and go.")] = Path("results"),
    data_root: DataRoot = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Reproduce a table of the paper, or all of them: what is on disk already is not run again."""
    from topoter.cli.run_bars import run_bars
    from topoter.experiments import EXPERIMENTS, experiment
    from topoter.experiments.outputs import MODEL_SIZE
    from topoter.experiments.schedule import make_all, missing_runs, plan_all
    from topoter.training import Interrupted

    show_log(quiet)
    if name not in EXPERIMENTS and name not in (ALL, MODEL_SIZE):
        raise unknown_name("experiment", name, [*EXPERIMENTS, MODEL_SIZE, ALL])
    for option, value in (("--seeds", seeds), ("--jobs", jobs)):
        if value < 1:
            raise UsageError(f"{option} must be at least 1. Got {value} instead.")
    if dry_run and stored:
        raise UsageError("--dry-run lists what is missing and --stored shows what is there: give one of them.")
    if name == MODEL_SIZE:
        make_folder(out_dir)
        _show_model_size(out_dir, json)
        return
    asked = _datasets(name, datasets, data_root), _names(methods)
    plans = plan_all(*asked, seeds) if name == ALL else {name: experiment(name).plan(*asked, seeds)}
    runs = [run for plan in plans.values() for run in plan]
    missing = [] if stored else missing_runs(runs, out_dir)
    if dry_run:
        _show_what_is_missing(missing, len(runs), out_dir, jobs, json)
        return
    if missing:
        make_folder(out_dir)
    try:
        with run_bars(missing, out_dir, jobs, quiet) as watcher:
            failures = make_all(missing, out_dir, data_root, jobs, watcher)
    except KeyboardInterrupt:
        raise Interrupted("Interrupted. What is made is kept: the same command goes on from there.") from None
    _show_outputs(plans, out_dir, seeds, name == ALL, bool(failures), quiet, json)
    _show_failures(failures)


def _show_outputs(
    plans: dict[str, list[Run]], out_dir: Path, seeds: int, of_all: bool, failed: bool, quiet: bool, json: bool
) -> None:
    """Write every table and figure; print the one table that was asked for, or where all are."""
    from topoter.experiments import experiment
    from topoter.experiments.outputs import rows_of, table_of, write_model_size, write_outputs

    rows = {name: rows_of(name, plan, out_dir) for name, plan in plans.items()}
    rows = {name: found for name, found in rows.items() if found}
    if not rows and failed:
        return
    if not rows:
        raise TopoterError(f"There are no runs of these methods and datasets in {out_dir}.")
    files = {name: write_outputs(name, plans[name], out_dir) for name in rows}
    if of_all:
        files["model-size"] = [write_model_size(out_dir)]
    if json:
        content: Any = {name: [row.as_dict() for row in found] for name, found in rows.items()}
        print_json(content if of_all else next(iter(content.values())))
        return
    if of_all:
        for paths in files.values():
            for path in paths:
                out.print(str(path), soft_wrap=True)
        return
    for name, found in rows.items():
        _print_table(table_of(name, found, seeds))
        what = experiment(name).measures
        note(f"{what} in percent, mean and deviation over seeds. One JSON per run in {out_dir}.", quiet)
        for path in files[name][1:]:
            out.print(f"Figure: {path}", soft_wrap=True)


def _show_failures(failures: Sequence[Failure]) -> None:
    """Say what could not be run, one line for each cause, and end with an exit code for it."""
    by_message: dict[str, list[Failure]] = {}
    for failure in failures:
        by_message.setdefault(failure.message, []).append(failure)
    for message, same in by_message.items():
        if same[0].trace:
            err.print(same[0].trace, markup=False, soft_wrap=True)
        first = same[0].run
        others = f" and {len(same) - 1} more" if len(same) > 1 else ""
        error_line(f"{first.recipe.experiment}: {first.label}{others}: {message}")
    if failures:
        raise typer.Exit(min(failure.exit_code for failure in failures))


def _show_what_is_missing(missing: Sequence[Run], count: int, out_dir: Path, jobs: int, json: bool) -> None:
    """The runs to be made, row by row, with the seconds of each and where those are known from."""
    from topoter.cli.run_bars import lasting
    from topoter.experiments.durations import Durations

    durations = Durations.stored(out_dir)
    expected = [durations.of(run) for run in missing]
    if json:
        described = [{k: v for k, v in run.description().items() if k != "parameters"} for run in missing]
        print_json([d | {"seconds": e.seconds, "source": e.source} for d, e in zip(described, expected)])
        return
    if not missing:
        out.print(f"Nothing to run: all {count} runs are in {out_dir}.", soft_wrap=True)
        return
    rows: dict[tuple[str, ...], list[int]] = {}
    for run, known in zip(missing, expected):
        varied = "".join(f" {key}={value}" for key, value in run.variation.items())
        protocol = "" if run.protocol == "validation" else f", {run.protocol}"
        method = f"{run.recipe.method} ({run.recipe.name}{protocol}){varied}"
        each = known.source if known.seconds is None else lasting(known.seconds)
        source = "" if known.seconds is None else known.source
        rows.setdefault((run.recipe.experiment, run.recipe.dataset, method, each, source), []).append(run.seed)
    lines = ["| experiment | dataset | method | seeds | each | from |", "|---|---|---|---|---|---|"]
    for (name, dataset, method, each, source), numbers in rows.items():
        lines.append(f"| {name} | {dataset} | {method} | {_ranges(numbers)} | {each} | {source} |")
    _print_table("\n".join(lines) + "\n")
    known_seconds = [known.seconds for known in expected if known.seconds is not None]
    unknown = len(missing) - len(known_seconds)
    rest = f", and {unknown} of unknown length" if unknown else ""
    at_once = f", {lasting(sum(known_seconds) / jobs)} with {jobs} jobs" if jobs > 1 else ""
    out.print(
        f"{len(missing)} of {count} runs to make: {lasting(sum(known_seconds))} for {len(known_seconds)} of them"
        f"{at_once}{rest}.",
        soft_wrap=True,
    )


def _ranges(numbers: Sequence[int]) -> str:
    """0, 1, 2, 5 as 0-2, 5."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def _show_model_size(out_dir: Path, json: bool) -> None:
    """Numbers of parameters on Cora with the paper's settings."""
    from topoter.experiments.outputs import write_model_size
    from topoter.experiments.sizes import model_sizes

    path = write_model_size(out_dir)
    if json:
        print_json(model_sizes())
    else:
        _print_table(path.read_text(encoding="utf-8"))


def _print_table(table: str) -> None:
    out.print(Markdown(table) if out.is_terminal else table, soft_wrap=not out.is_terminal)


def _datasets(name: str, text: str | None, data_root: Path | None) -> list[str] | None:
    """The datasets that were asked for, by the names that recipes and folders have."""
    from topoter.datasets import dataset_kind, known_as
    from topoter.experiments import experiment

    names = _names(text)
    if names is None:
        return None
    kinds = {dataset: dataset_kind(dataset, data_root) for dataset in names}
    if name != ALL:
        own = dataset_kind(experiment(name).datasets[0], data_root)
        for dataset, kind in kinds.items():
            if kind != own and dataset not in experiment(name).datasets:
                raise UsageError(f"{name} needs datasets of the kind {own!r}; {dataset!r} is of the kind {kind!r}.")
    return [known_as(dataset) or dataset for dataset in names]


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip().lower() for name in text.split(",") if name.strip()]
