"""What a folder of results holds: the records of every experiment, put together by row and dataset."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from topoter.errors import TopoterError, UsageError
from topoter.experiments import EXPERIMENTS, experiment
from topoter.experiments.experiment import Experiment
from topoter.experiments.runs import Run
from topoter.experiments.store import Record, Store
from topoter.report.experiments import tables_of
from topoter.report.groups import Group, groups_of, means_of
from topoter.report.remarks import Remarks, read_remarks
from topoter.report.tables import Table, duration, many
from topoter.report.wording import protocol_name, row_name

DEFAULT_FOLDER = Path("results")


@dataclass(frozen=True)
class Found:
    """What there is of one experiment.

    Args:
        groups: in the order of the experiment's datasets and rows; `means` those over datasets for which the paper has
            one number.
        absent: (method, recipe, protocol, dataset) of the paper's table that have no run.
        left_out: records whose parameters are not those of today's recipes, or of no row of the table.
    """

    experiment: Experiment
    groups: list[Group]
    means: list[Group]
    absent: list[tuple[str, str, str, str]]
    left_out: list[Record]

    @property
    def name(self) -> str:
        return self.experiment.name

    @property
    def seeds(self) -> int:
        """The most that any row has: what the others are held against."""
        return max(len(group.seeds) for group in self.groups)

    @property
    def datasets(self) -> list[str]:
        return list(dict.fromkeys(group.dataset for group in self.groups))

    @property
    def records(self) -> list[Record]:
        return [record for group in self.groups for record in group.records]

    def facts(self) -> dict[str, str]:
        """What there is to know of all runs behind a table: how many, how long, with which versions."""
        records = self.records
        counted = Counter(len(group.records) for group in self.groups)
        facts = {
            "runs": f"{len(records):,}",
            "seeds": ", ".join(f"{n} in {many(rows, 'row')}" for n, rows in sorted(counted.items(), reverse=True)),
            "protocols": ", ".join(dict.fromkeys(protocol_name(group.protocol) for group in self.groups)),
            "CPU time": duration(sum(record.cpu_seconds for record in records)),
            "largest memory": f"{max(record.peak_mb for record in records):,.0f} MB",
        }
        for name in dict.fromkeys(name for record in records for name in record.versions):
            uses = Counter(record.versions.get(name, "") for record in records).most_common()
            texts = [f"{value or 'unknown'} ({count})" if len(uses) > 1 else value for value, count in uses]
            facts["git commit" if name == "git" else name] = ", ".join(texts)
        return facts

    def commands(self, folder: Path) -> list[str]:
        """What to type to get a table again: what is there is not run again, what is missing is."""
        own = command(self.name, folder, self.seeds)
        others = [dataset for dataset in self.datasets if dataset not in self.experiment.datasets]
        return [own, *([f"{own} --datasets {shlex.quote(','.join(others))}"] if others else [])]

    def absent_rows(self) -> list[str]:
        """What has no run yet: "on all datasets: rw (paper)", "pubmed (all rows)", "citeseer: dgi (paper)"."""
        by_dataset: dict[str, list[str]] = {}
        datasets: dict[str, set[str]] = {}
        for method, recipe, protocol, dataset in self.absent:
            name = f"{method} ({row_name(recipe, protocol)})"
            by_dataset.setdefault(dataset, []).append(name)
            datasets.setdefault(name, set()).add(dataset)
        nowhere = [name for name, lacking in datasets.items() if lacking == set(self.experiment.datasets)]
        said = [f"on all datasets: {', '.join(nowhere)}"] if nowhere else []
        for dataset, rows in by_dataset.items():
            others = [name for name in rows if name not in nowhere]
            if dataset not in self.datasets:
                said.append(f"{dataset} (all rows)")
            elif others:
                said.append(f"{dataset}: {', '.join(others)}")
        return said

    def tables(self) -> list[Table]:
        return tables_of(self.experiment, self.records, self.seeds)


@dataclass(frozen=True)
class Results:
    """A folder of results, read."""

    folder: Path
    store: Store
    found: list[Found]
    remarks: Remarks

    @property
    def missing(self) -> list[str]:
        """Experiments without any run."""
        there = {item.name for item in self.found}
        return [name for name in EXPERIMENTS if name not in there]

    def of(self, name: str) -> Found | None:
        return next((item for item in self.found if item.name == name), None)


def read_results(folder: Path) -> Results:
    """Read every run in a folder that belongs to an experiment; an error if there is none."""
    if not folder.is_dir():
        raise TopoterError(f"There is no folder {folder}.")
    store = Store.read(folder)
    found = [item for name in EXPERIMENTS if (item := _find(experiment(name), store)) is not None]
    if not found:
        name = next(iter(EXPERIMENTS))
        raise TopoterError(f"There are no runs in {folder}. Make some: topoter reproduce {name} --out {folder}")
    return Results(folder, store, found, read_remarks(folder))


def _find(chosen: Experiment, store: Store) -> Found | None:
    stored = {record.key: record for record in store.of(chosen.name)}
    if not stored:
        return None
    others = sorted({record.dataset for record in stored.values()} - set(chosen.datasets))
    most = 1 + max(record.seed for record in stored.values())
    kept: list[Record] = []
    counted: Counter[tuple[str, str, str, str]] = Counter()
    for run in [*chosen.plan([*chosen.datasets, *others], None, most), *_further(chosen, stored.values(), most)]:
        record = store.find(run)
        counted[run.recipe.method, run.recipe.name, run.protocol, run.recipe.dataset] += record is not None
        if record is not None:
            kept.append(record)
            del stored[record.key]
    if not kept:
        return None
    groups = groups_of(chosen, kept)
    absent = [row for row, count in counted.items() if not count and row[-1] in chosen.datasets]
    return Found(chosen, groups, means_of(chosen, groups), absent, list(stored.values()))


def _further(chosen: Experiment, records: Iterable[Record], seeds: int) -> list[Run]:
    """The runs of methods that the paper's study does not have, on the datasets where there are some."""
    own = {row.method for row in chosen.rows}
    asked: dict[str, list[str]] = {}
    for record in records:
        if record.method not in own and record.dataset not in asked.setdefault(record.method, []):
            asked[record.method].append(record.dataset)
    runs: list[Run] = []
    for method, datasets in asked.items():
        with suppress(UsageError):  # a method of the user's own, or one that is gone
            runs += chosen.plan(datasets, [method], seeds)
    return runs


def command(name: str, folder: Path, seeds: int | None = None) -> str:
    """The call that runs an experiment."""
    parts = ["topoter reproduce", name]
    parts += [] if seeds is None else [f"--seeds {seeds}"]
    parts += [] if folder == DEFAULT_FOLDER else [f"--out {shlex.quote(str(folder))}"]
    return " ".join(parts)
