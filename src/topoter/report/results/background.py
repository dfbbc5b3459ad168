"""What stands behind the results: the settings that a search tried, and how fast training is."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from topoter.experiments.search import Trial
from topoter.report.results.stored import read_json, written_by_topoter
from topoter.report.tables import Cell, CellLike, Table

SPEED_FILE = "bench.json"


def search_tables(folder: Path) -> list[Table]:
    """Per search every setting tried, the best first."""
    tables = []
    for path in sorted((folder / "search").glob("*.json")):
        with written_by_topoter(path):
            content = read_json(path)
            tables.append(_link_search_table(content) if "stages" in content else _search_table(content))
    return tables


def _search_table(content: dict[str, Any]) -> Table:
    names = list(content["space"])
    trials = [(trial, "topoter") for trial in _trials(content["trials"])]
    trials += [(trial, "propagated") for trial in _trials(content.get("propagated", []))]
    rows: list[list[CellLike]] = []
    for trial, method in sorted(trials, key=lambda item: -item[0].best()[0]):
        score, epochs = trial.best()
        # A setting's place, its score, and what it set.
        values = (str(trial.setting.get(name, "")) for name in names)
        rows.append([len(rows) + 1, method, f"{score:.2f}", epochs, *values])
    return Table(
        ["place", "method", "validation accuracy", "epochs", *names],
        rows,
        caption=f"{content['dataset']}: {len(rows)} settings tried, at most {max(content['epochs'])} epochs",
        note=f"Accuracy in %, mean over {content['seeds']} encoders and {content['splits']} splits of the labelled "
        f"nodes; {_made_by(content)}.",
    )


def _trials(stored: list[dict[str, Any]]) -> list[Trial]:
    return [
        Trial(item["setting"], {int(epochs): values for epochs, values in item["scores"].items()}) for item in stored
    ]


def _link_search_table(content: dict[str, Any]) -> Table:
    rows: list[list[CellLike]] = []
    trials = [
        (statistics.fmean(trial["val_auc"]), statistics.fmean(trial["val_ap"]), trial) for trial in content["trials"]
    ]
    for auc, ap, trial in sorted(trials, key=lambda item: -item[0] - item[1]):
        setting = ", ".join(f"{name} {value}" for name, value in trial["setting"].items() if name != "decoder")
        what = [trial["method"], trial["setting"]["decoder"], f"{auc:.2f}", f"{ap:.2f}"]
        rows.append([len(rows) + 1, *what, Cell(setting, wrap=True)])
    return Table(
        ["place", "method", "decoder", "validation AUC", "validation AP", "setting"],
        rows,
        caption=f"{content['dataset']}, links: {len(rows)} settings tried, in %",
        note=f"Mean over {content['seeds']} splits of the edges; {_made_by(content)}.",
    )


def _made_by(content: dict[str, Any]) -> str:
    return f"topoter {content['versions']['topoter']}, git commit {content['versions']['git']}"


def speed_tables(folder: Path) -> list[Table]:
    """Time and memory of a training step beside plain PyTorch, and growth with the graph; none if not measured."""
    path = folder / SPEED_FILE
    if not path.is_file():
        return []
    with written_by_topoter(path):
        content = read_json(path)
        return [_steps(content), _memory(content), _growth(content)]


def _steps(content: dict[str, Any]) -> Table:
    return Table(
        ["dataset", "channels", "threads", "ours, CPU ms", "plain, CPU ms", "plain / ours", "DGI, CPU ms"],
        [
            [
                row["dataset"],
                row["channels"],
                row["threads"],
                f"{row['topoter_cpu_ms']:.1f}",
                f"{row['twin_cpu_ms']:.1f}",
                f"{row['cpu_ratio']:.1f}",
                f"{row['dgi_cpu_ms']:.1f}",
            ]
            for row in content["steps"]
        ],
        caption="A training step",
        note="Medians, alternating in one process. “plain” is the same step with PyG's SGConv and plain PyTorch; the "
        f"losses of both differ by at most {max(row['largest_loss_gap'] for row in content['steps']):.0e}. "
        f"{_made(content, 'steps')}",
    )


def _memory(content: dict[str, Any]) -> Table:
    peaks = {(row["case"], row["dataset"], row["channels"]): row["peak_mb"] for row in content["memory"]}
    cases = [(dataset, channels) for case, dataset, channels in peaks if case == "topoter"]
    return Table(
        ["dataset", "channels", "ours, MB", "plain, MB", "plain / ours"],
        [
            [dataset, channels, f"{ours:.0f}", f"{plain:.0f}", f"{plain / ours:.1f}"]
            for dataset, channels in cases
            for ours, plain in [(peaks["topoter", dataset, channels], peaks["twin", dataset, channels])]
        ],
        caption="Memory of a training step",
        note="Peak above the loaded data, each in its own process.",
    )


def _growth(content: dict[str, Any]) -> Table:
    return Table(
        ["nodes", "edges", "channels", "epoch, s", "epoch, CPU s", "peak, MB"],
        [
            [
                row["nodes"],
                row["edges"],
                row["channels"],
                f"{row['wall_s']:.2f}",
                f"{row['cpu_s']:.2f}",
                f"{row['peak_mb']:,.0f}",
            ]
            for row in content["growth"]
        ],
        caption="Growth with the graph",
        note=f"Block models of mean degree 10. CPU time grows as nodes to the power {content['exponent_cpu_s']:.2f}. "
        f"{_made(content, 'growth')}",
    )


def _made(content: dict[str, Any], part: str) -> str:
    return f"Made by {content['command']}, git commit {content['versions'][part]['git']}."
