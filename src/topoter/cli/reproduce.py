"""`topoter reproduce`: a table or figure of the paper, or all; ours beside the paper's; resumable."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topoter.cli.output import (
    DataRoot,
    Json,
    MaxHours,
    MaxMemory,
    Quiet,
    err,
    error_line,
    make_folder,
    note,
    out,
    print_json,
    show_log,
)
from topoter.errors import TopoterError, UsageError, unknown_name

if TYPE_CHECKING:
    from topoter.experiments.runner import Failure
    from topoter.experiments.runs import Run
    from topoter.experiments.store import Store
    from topoter.report.tables import Table

ALL = "all"
MODEL_SIZE = "model-size"  # a table that is counted, not run


def run(
    name: Annotated[str, typer.Argument(help="Which table or figure, e.g. node-classification or model-size, or all.")],
    seeds: Annotated[int, typer.Option(help="Seeds per row, each with a new encoder.")] = 10,
    methods: Annotated[str | None, typer.Option(help="Only these, comma-separated.")] = None,
    datasets: Annotated[str | None, typer.Option(help="Only these, comma-separated.")] = None,
    jobs: Annotated[int, typer.Option(help="How many runs at once, each with its share of the cores.")] = 1,
    cluster: Annotated[
        str | None, typer.Option(help="Make the runs on a Dask cluster instead: tcp://HOST:PORT of its scheduler.")
    ] = None,
    max_hours: MaxHours = None,
    max_memory: MaxMemory = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Run nothing: what is missing, how long it took.")] = False,
    stored: Annotated[bool, typer.Option("--stored", help="Run nothing: the table of what is on disk.")] = False,
    out_dir: Annotated[Path, typer.Option("--out", help="The folder of results: EXPERIMENT.jsonl.")] = Path("results"),
    data_root: DataRoot = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Reproduce a table of the paper, or all of them: what is on disk already is not run again."""
    from topoter.cli.run_bars import run_bars
    from topoter.experiments import EXPERIMENTS, experiment
    from topoter.experiments.engines import on_cluster, on_this_machine
    from topoter.experiments.runner import limited, make_all, plan_all
    from topoter.experiments.store import Store
    from topoter.training import Interrupted

    show_log(quiet)
    if name not in EXPERIMENTS and name not in (ALL, MODEL_SIZE):
        raise unknown_name("experiment", name, [*EXPERIMENTS, MODEL_SIZE, ALL])
    for option, value in (("--seeds", seeds), ("--jobs", jobs)):
        if value < 1:
            raise UsageError(f"{option} must be at least 1. Got {value} instead.")
    if dry_run and stored:
        raise UsageError("--dry-run lists what is missing and --stored shows what is there: give one of them.")
    if cluster and jobs > 1:
        raise UsageError("--jobs is for the cores of this machine and --cluster for others: give one of them.")
    if name == MODEL_SIZE:
        _show_model_size(json)
        return
    asked = _datasets(name, datasets, data_root), _names(methods)
    plans = plan_all(*asked, seeds) if name == ALL else {name: experiment(name).plan(*asked, seeds)}
    plans = {which: limited(plan, max_hours, max_memory) for which, plan in plans.items()}
    runs = [run for plan in plans.values() for run in plan]
    store = Store.read(out_dir)
    missing = [] if stored else [run for run in runs if store.done(run) is None]
    if dry_run:
        _show_what_is_missing(missing, len(runs), store, jobs, json)
        return
    failures: list[Failure] = []
    if missing:
        make_folder(out_dir)
        engine = on_cluster(cluster) if cluster else nullcontext(on_this_machine(min(jobs, len(missing))))
        try:
            with engine as where, run_bars(missing, store.records, quiet) as watcher:
                failures = make_all(missing, store, data_root, where, watcher)
        except KeyboardInterrupt:
            raise Interrupted("Interrupted. What is made is kept: the same command goes on from there.") from None
    _show_tables(plans, store, seeds, name == ALL, bool(failures), quiet, json)
    _show_failures(failures)


def _show_tables(
    plans: dict[str, list[Run]], store: Store, seeds: int, of_all: bool, failed: bool, quiet: bool, json: bool
) -> None:
    """Print what was asked for, as far as it is there."""
    from topoter.experiments import experiment
    from topoter.report.experiments import tables_of
    from topoter.report.groups import rows_of

    every = {name: [record for run in plan if (record := store.find(run))] for name, plan in plans.items()}
    records = {name: found for name, found in every.items() if found}
    if not records:
        if failed:
            return
        raise TopoterError(f"There are no runs of these methods and datasets in {store.folder}.")
    if json:
        rows = {name: rows_of(experiment(name), found) for name, found in records.items()}
        print_json(rows if of_all else next(iter(rows.values())))
        return
    for name, found in records.items():
        if of_all:
            out.print(f"# {name}\n")
        for table in tables_of(experiment(name), found, seeds):
            _print_table(table)
    if of_all:
        out.print(f"# {MODEL_SIZE}\n")
        _show_model_size(json)
    note(f"Figures, and all that is in {store.folder}: topoter report {store.folder} -o report.html", quiet)


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


def _show_what_is_missing(missing: Sequence[Run], count: int, store: Store, jobs: int, json: bool) -> None:
    """The runs to be made, row by row, with the seconds of each and where those are known from."""
    from topoter.cli.run_bars import UNKNOWN, expected, lasting
    from topoter.report.tables import Table

    lengths = expected(missing, store.records)
    if json:
        names = ("experiment", "dataset", "method", "recipe", "protocol")
        described = [dict(zip(names, run.key)) | {"seed": run.seed, "variation": run.variation} for run in missing]
        print_json([d | {"seconds": seconds, "source": source} for d, (seconds, source) in zip(described, lengths)])
        return
    if not missing:
        out.print(f"Nothing to run: all {count} runs are in {store.folder}.", soft_wrap=True)
        return
    rows: dict[tuple[str, ...], list[int]] = {}
    for run, (seconds, source) in zip(missing, lengths):
        varied = "".join(f" {key}={value}" for key, value in run.variation.items())
        protocol = "" if run.protocol == "validation" else f", {run.protocol}"
        method = f"{run.recipe.method} ({run.recipe.name}{protocol}){varied}"
        each = (UNKNOWN, "") if seconds is None else (lasting(seconds), source)
        rows.setdefault((run.recipe.experiment, run.recipe.dataset, method, *each), []).append(run.seed)
    body = [[*key[:3], _ranges(numbers), *key[3:]] for key, numbers in rows.items()]
    _print_table(Table(["experiment", "dataset", "method", "seeds", "each", "from"], body))
    known = [seconds for seconds, _ in lengths if seconds is not None]
    rest = f", and {len(missing) - len(known)} of unknown length" if len(known) < len(missing) else ""
    at_once = f", {lasting(sum(known) / jobs)} with {jobs} jobs" if jobs > 1 else ""
    out.print(
        f"{len(missing)} of {count} runs to make: {lasting(sum(known))} for {len(known)} of them{at_once}{rest}.",
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


def _show_model_size(json: bool) -> None:
    """Numbers of parameters on Cora with the paper's settings."""
    from topoter.experiments.sizes import model_sizes
    from topoter.report.experiments import size_table

    if json:
        print_json(model_sizes())
    else:
        _print_table(size_table(model_sizes()))


def _print_table(table: Table) -> None:
    if out.is_terminal:
        out.print(table)
    else:
        out.print(table.markdown(), markup=False, soft_wrap=True)


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
