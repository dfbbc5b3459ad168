"""`python -m benchmarks`: measure everything, write results/bench.json and the tables of docs/performance.md."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.accuracy_time import time_to_accuracy
from benchmarks.default_training import BLOCK_MODEL, beside_twin, two_threads
from benchmarks.memory import exponent, in_own_process
from benchmarks.propagation import WAYS, compare_in_a_step, compare_ways
from benchmarks.startup import startup
from benchmarks.steps import compare
from topoter.datasets import available, block_model, load
from topoter.experiments.runs import versions
from topoter.experiments.store import write_text

CASES = [("cora", 512), ("citeseer", 512), ("pubmed", 256), ("pubmed", 512)]
GRAPH_SETS = ["mutag", "imdb-binary", "reddit-binary", "reddit-multi-5k"]
SIZES = [10_000, 30_000, 100_000, 300_000, 1_000_000]
GROWTH_ROUNDS = 3
LARGEST_GAP = 1e-4  # between the losses of two ways to make the same step
ROOT = Path(__file__).parent.parent
MARK = "<!-- measured: everything below is written by `make bench` -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=20, help="steps per case (the loss curves are compared over them)"
    )
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="nodes of the largest block model")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="the others stay as they are")
    arguments = parser.parse_args()
    path = ROOT / "results" / "bench.json"
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    result["command"] = "make bench"
    for part in arguments.parts:
        result |= PARTS[part](arguments)
        result.setdefault("versions", {})[part] = versions()
    write_text(path, json.dumps(result, indent=1) + "\n")
    page = ROOT / "docs" / "performance.md"
    write_text(page, page.read_text(encoding="utf-8").split(MARK)[0] + MARK + "\n\n" + tables(result))


def cases() -> list[tuple[str, int]]:
    """The graphs that are on disk, with their widths."""
    there = on_disk(dict.fromkeys(name for name, _ in CASES))
    return [case for case in CASES if case[0] in there]


def on_disk(names: Iterable[str]) -> list[str]:
    """Those of the datasets that are on disk; of the others it is said."""
    there = {info.name for info in available() if info.on_disk}
    for name in names:
        if name not in there:
            print(f"{name} is left out: it is not on disk (TOPOTER_DATA names the folder of the datasets)", flush=True)
    return [name for name in names if name in there]


def said(row: dict[str, Any]) -> dict[str, Any]:
    """Print what was measured as soon as it is."""
    print(json.dumps(row), flush=True)
    return row


def measure_steps(arguments: argparse.Namespace) -> dict[str, Any]:
    """Our step beside its twin and DGI's, and the memory that each needs."""
    steps = [said(compare(*case, threads, arguments.rounds)) for case in cases() for threads in (1, 2)]
    if any(row["largest_loss_gap"] > LARGEST_GAP for row in steps):
        raise SystemExit(f"The loss curves of our step and its twin differ by more than {LARGEST_GAP}.")
    memory = [said(in_own_process(name, *case)) for case in cases() for name in ("topoter", "twin")]
    return {"steps": steps, "memory": memory}


def measure_startup(arguments: argparse.Namespace) -> dict[str, Any]:
    """Import and first step."""
    return {"startup": said(startup())}


def measure_propagation(arguments: argparse.Namespace) -> dict[str, Any]:
    """The ways to multiply with the adjacency, alone and within a step."""
    alone, in_a_step = [], []
    for graph, channels in [*cases(), (100_000, 64)]:
        data = load(graph) if isinstance(graph, str) else block_model(graph, 10, 10.0, 32, 0)
        name = graph if isinstance(graph, str) else f"block model, {graph:,} nodes"
        for threads in (1, 2):
            alone.append(said(compare_ways(name, data, channels, threads)))
            in_a_step.append(said(compare_in_a_step(name, data, channels, threads)))
    return {"propagation": alone, "propagation_in_a_step": in_a_step}


def measure_growth(arguments: argparse.Namespace) -> dict[str, Any]:
    """Time and memory by the size of the graph; all sizes in turn, several times, so that noise hits them alike."""
    sizes = [size for size in SIZES if size <= arguments.largest]
    rounds = [[said(in_own_process("growth", size, 64, 3)) for size in sizes] for _ in range(GROWTH_ROUNDS)]
    growth = [{name: statistics.median(row[name] for row in rows) for name in rows[0]} for rows in zip(*rounds)]
    exponents = {
        f"exponent_{quantity}": exponent(sizes, [row[quantity] for row in growth])
        for quantity in ("cpu_s", "wall_s", "grown_mb")
    }
    return {"growth": growth} | exponents


def measure_graph_sets(arguments: argparse.Namespace) -> dict[str, Any]:
    """An epoch on sets of graphs, from a few hundred nodes to millions."""
    return {"graph_sets": [said(in_own_process("graph-set", name, 3)) for name in on_disk(GRAPH_SETS)]}


def measure_time_to_accuracy(arguments: argparse.Namespace) -> dict[str, Any]:
    """The default and its peers until they are as good as they get."""
    names = on_disk(dict.fromkeys(name for name, _ in CASES))
    return {"time_to_accuracy": [said(row) for name in names for row in time_to_accuracy(name)]}


def measure_default(arguments: argparse.Namespace) -> dict[str, Any]:
    """A whole fit with default settings, beside its twin and with two threads."""
    names = on_disk(dict.fromkeys(name for name, _ in CASES))
    threads = [*on_disk(["pubmed"]), BLOCK_MODEL]
    return {
        "default": [said(beside_twin(name)) for name in names],
        "default_threads": [said(two_threads(name)) for name in threads],
    }


PARTS = {
    "steps": measure_steps,
    "startup": measure_startup,
    "propagation": measure_propagation,
    "growth": measure_growth,
    "graph-sets": measure_graph_sets,
    "time-to-accuracy": measure_time_to_accuracy,
    "default": measure_default,
}


def tables(result: dict[str, Any]) -> str:
    """What was measured, as Markdown."""
    lines = [
        "### A training step",
        "",
        "Medians in milliseconds, alternating in one process; `twin` is the same step with PyG's SGConv and plain "
        "PyTorch. The loss curves of both differ by at most the last column over all steps.",
        "",
        "| dataset | F | threads | ours CPU | twin CPU | ratio | ours wall | twin wall | ratio | DGI CPU | sampler "
        "| loss gap |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in result["steps"]:
        lines.append(
            f"| {row['dataset']} | {row['channels']} | {row['threads']} | {row['topoter_cpu_ms']:.1f} | "
            f"{row['twin_cpu_ms']:.1f} | **{row['cpu_ratio']:.1f}** | {row['topoter_wall_ms']:.1f} | "
            f"{row['twin_wall_ms']:.1f} | {row['wall_ratio']:.1f} | {row['dgi_cpu_ms']:.1f} | "
            f"{row['sampler_share']:.0%} | {row['largest_loss_gap']:.0e} |"
        )
    lines += ["", "### Memory", "", "Peak above the loaded data, in MB, each in its own process.", ""]
    lines += ["| dataset | F | ours | twin | twin / ours |", "|---|---|---|---|---|"]
    ours = {(row["dataset"], row["channels"]): row for row in result["memory"] if row["case"] == "topoter"}
    for row in (row for row in result["memory"] if row["case"] == "twin"):
        mine = ours[row["dataset"], row["channels"]]["peak_mb"]
        lines.append(
            f"| {row['dataset']} | {row['channels']} | {mine:.0f} | {row['peak_mb']:.0f} "
            f"| {row['peak_mb'] / mine:.1f} |"
        )
    start = result["startup"]
    lines += [
        "",
        "### First use",
        "",
        f"The first step takes {start['first_step_s']:.1f} s on a machine without compiled kernels, and "
        f"{start['first_step_cached_s']:.2f} s in every later process. `import topoter` takes "
        f"{start['import_topoter_s']:.1f} s after torch's own {start['import_torch_s']:.1f} s.",
        "",
        "### Propagation",
        "",
        "One product A H, medians of CPU time in milliseconds, the ways taking turns in one process.",
        "",
        "| graph | F | threads | " + " | ".join(way.replace("_", " ") for way in WAYS) + " |",
        "|---|---|---|" + "---|" * len(WAYS),
    ]
    for row in result["propagation"]:
        times = " | ".join(f"{row[f'{way}_cpu_ms']:.2f}" for way in WAYS)
        lines.append(f"| {row['graph']} | {row['channels']} | {row['threads']} | {times} |")
    lines += [
        "",
        "A whole training step with our product, and with embedding_bag in its place: medians of CPU time in "
        "milliseconds, taking turns.",
        "",
        "| graph | F | threads | compiled | embedding bag |",
        "|---|---|---|---|---|",
    ]
    for row in result["propagation_in_a_step"]:
        times = " | ".join(f"{row[f'{way}_cpu_ms']:.1f}" for way in ("compiled", "embedding_bag"))
        lines.append(f"| {row['graph']} | {row['channels']} | {row['threads']} | {times} |")
    lines += ["", "### Growth", "", "Block models of mean degree 10, F = 64.", ""]
    lines += ["| nodes | edges | CPU s / epoch | wall s / epoch | peak MB | of it for the graph | sampler |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for row in result["growth"]:
        lines.append(
            f"| {row['nodes']:,} | {row['edges']:,} | {row['cpu_s']:.3f} | {row['wall_s']:.3f} | {row['peak_mb']:.0f} "
            f"| {row['grown_mb']:.0f} | {row['sampler_share']:.0%} |"
        )
    lines += [
        "",
        f"Fitted exponents: CPU time {result['exponent_cpu_s']:.2f}, wall time {result['exponent_wall_s']:.2f}, "
        f"memory for the graph {result['exponent_grown_mb']:.2f} (1 is linear).",
        "",
        "### Sets of graphs",
        "",
        '`TopoTER(level="graph")` as it is: three GIN layers of 32 channels, batches of 64 graphs. '
        "The peak is that of the whole process, with the files read by it.",
        "",
        "| dataset | graphs | nodes | CPU s / epoch | wall s / epoch | peak MB |",
        "|---|---|---|---|---|---|",
    ]
    for row in result["graph_sets"]:
        lines.append(
            f"| {row['dataset']} | {row['graphs']:,} | {row['nodes']:,} | {row['cpu_s']:.2f} | {row['wall_s']:.2f} "
            f"| {row['peak_mb']:.0f} |"
        )
    lines += [
        "",
        "### Time to accuracy",
        "",
        "CPU seconds of fitting and embedding until validation accuracy, the mean over seeds, is within half a "
        "point of what it is with all epochs; a method is trained anew with 1/16, 1/8, ... of its epochs (ours also "
        "with none).",
        "",
        "| dataset | method | seeds | in the end | epochs needed | accuracy then | CPU s | CPU s, all epochs |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in result.get("time_to_accuracy", []):
        lines.append(
            f"| {row['dataset']} | {row['method']} | {row['seeds']} | {row['final_accuracy']:.1f} | {row['epochs']} "
            f"| {row['accuracy']:.1f} | {row['cpu_s']:.1f} | {row['cpu_s_in_full']:.1f} |"
        )
    lines += [
        "",
        "### The default beside its twin",
        "",
        "CPU seconds with one thread, taking turns; peak memory above the loaded data, each in its own process. A fit "
        "is all that `TopoTER().fit` does; its epochs are part of it. The twin makes as many epochs with PyG's SGConv "
        "and nothing else.",
        "",
        "| dataset | epochs | fit | its epochs | twin's epochs | twin / fit | epochs' ratio | fit MB | twin MB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in result.get("default", []):
        lines.append(
            f"| {row['dataset']} | {row['epochs']} | {row['fit_cpu_s']:.1f} | {row['epochs_cpu_s']:.1f} "
            f"| {row['twin_cpu_s']:.1f} | **{row['cpu_ratio']:.1f}** | **{row['epochs_ratio']:.1f}** "
            f"| {row['fit_mb']:.0f} | {row['twin_mb']:.0f} |"
        )
    lines += ["", "The same fit in wall seconds, with one thread and with two.", ""]
    lines += ["| graph | one thread | two threads | times as fast |", "|---|---|---|---|"]
    for row in result.get("default_threads", []):
        lines.append(
            f"| {row['graph']} | {row['one_thread_s']:.1f} | {row['two_threads_s']:.1f} | **{row['speedup']:.2f}** |"
        )
    lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
