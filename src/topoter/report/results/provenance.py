"""How numbers were obtained: the command, the seeds, the versions, the time it took."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path

from topoter.report.markup import duration, many
from topoter.report.results.standing import protocol_name, row_name
from topoter.report.results.stored import Found

DEFAULT_FOLDER = Path("results")


def commands(found: Found, folder: Path) -> list[str]:
    """What to type to get a table again: what is on disk is not run again, what is missing is."""
    own = [command(found.name, folder, found.seeds)]
    others = [dataset for dataset in found.datasets if dataset not in found.experiment.datasets]
    if others:
        own.append(f"{command(found.name, folder, found.seeds)} --datasets {shlex.quote(','.join(others))}")
    return own


def command(name: str, folder: Path, seeds: int | None = None) -> str:
    """The call that runs an experiment."""
    parts = ["topoter reproduce", name]
    if seeds is not None:
        parts.append(f"--seeds {seeds}")
    if folder != DEFAULT_FOLDER:
        parts.append(f"--out {shlex.quote(str(folder))}")
    return " ".join(parts)


def facts_of(found: Found) -> dict[str, str]:
    """What there is to know of all runs behind a table."""
    runs = found.runs
    cpu = sum(float(run.get("cpu_seconds") or 0.0) for run in runs)
    counted = Counter(len(entry.runs) for entry in found.entries)
    facts = {
        "runs": f"{len(runs):,}",
        "seeds": ", ".join(f"{seeds} in {many(rows, 'row')}" for seeds, rows in sorted(counted.items(), reverse=True)),
        "protocols": ", ".join(dict.fromkeys(protocol_name(entry.cell.protocol) for entry in found.entries)),
        "CPU time": duration(cpu),
        "largest memory": f"{max(float(run.get('peak_mb') or 0.0) for run in runs):,.0f} MB",
    }
    return facts | versions_of(found)


def versions_of(found: Found) -> dict[str, str]:
    """Each package with its versions, the commit with its number of runs."""
    names = dict.fromkeys(name for run in found.runs for name in run.get("versions", {}))
    facts = {}
    for name in names:
        counted = Counter(str(run.get("versions", {}).get(name, "")) for run in found.runs)
        several = len(counted) > 1
        values = [f"{value or 'unknown'} ({count})" if several else value for value, count in counted.most_common()]
        facts["git commit" if name == "git" else name] = ", ".join(values)
    return facts


def absent_rows(found: Found) -> list[str]:
    """What has no run yet, by dataset: "pubmed (all rows)", "citeseer: dgi (paper)"."""
    by_dataset: dict[str, list[str]] = {}
    for method, recipe, protocol, dataset in found.absent:
        by_dataset.setdefault(dataset, []).append(f"{method} ({row_name(recipe, protocol)})")
    return [
        f"{dataset}: {', '.join(rows)}" if dataset in found.datasets else f"{dataset} (all rows)"
        for dataset, rows in by_dataset.items()
    ]
