"""What benchmarks/scale.py measured, as Markdown: the figures, how they grow, and what larger graphs would take."""

from __future__ import annotations

from statistics import mean, pstdev
from typing import Any

from benchmarks.memory import exponent

Rows = dict[tuple[str, int], dict[str, Any]]

# Nodes, edges, features; how many machines of so many cores share the work.
LARGER = {"papers100M": (111e6, 1.6e9, 1), "ten billion edges": (1e9, 1e10, 8)}
CORES, IN_PARALLEL = 16, 0.5  # of a machine, and how much of them several processes turn into speed
EPOCHS = 20
PER_NODE = 0.1  # as many nodes come with an edge


def tables(rows: Rows) -> str:
    """All of it."""
    timed = {key: row for key, row in sorted(rows.items()) if "seconds" in row}
    parts = [_figures(timed), _growth(timed), _compared(rows), _quality(rows), _extrapolated(timed)]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _figures(timed: Rows) -> list[str]:
    lines = ["| | edges | CPU seconds | seconds | peak memory | its own | mapped |", "|---|---|---|---|---|---|---|"]
    for (case, edges), row in timed.items():
        epoch = f" ({row['epoch_cpu_s']:.1f} per epoch)" if case.startswith("fit") else ""
        memory = " | ".join(f"{row[key] / 1000:.2f} GB" for key in ("peak_mb", "anonymous_mb", "mapped_mb"))
        lines.append(f"| {case} | {edges:,} | {row['cpu_s']:.1f}{epoch} | {row['seconds']:.0f} | {memory} |")
    return lines


def _growth(timed: Rows) -> list[str]:
    lines = []
    for case, sizes in _sizes(timed).items():
        if len(sizes) > 1:
            key = "epoch_cpu_s" if case.startswith("fit") else "cpu_s"
            slope = exponent([float(size) for size in sizes], [timed[case, size][key] for size in sizes])
            wall = exponent([float(size) for size in sizes], [timed[case, size]["seconds"] for size in sizes])
            what = "an epoch's CPU time" if key == "epoch_cpu_s" else "CPU time"
            memory = 1e6 * float(_slope(timed, case, "anonymous_mb", PER_NODE) or 0)
            lines.append(
                f"- {case}: {what} grows with edges to the power {slope:.2f}, all seconds {wall:.2f}; "
                f"each further node takes {memory:,.0f} bytes of the process's own memory."
            )
    return lines


def _compared(rows: Rows) -> list[str]:
    lines = []
    whole, default = (rows.get((case, 5_000_000)) for case in ("fit whole", "default, whole"))
    for (case, edges), row in sorted(rows.items()):
        if case == "default, parts" and default:
            ours, theirs = (edges / row["cpu_s"], 5_000_000 / default["cpu_s"])
            lines.append(
                f"- {edges:,} edges on parts by the default: {ours:,.0f} edges per CPU second of the whole training, "
                f"{ours / theirs:.2f} times those of the whole graph with 5,000,000."
            )
        if case == "fit parts" and whole:
            ratio = (edges / row["epoch_cpu_s"]) / (5_000_000 / whole["epoch_cpu_s"])
            lines.append(
                f"- {edges:,} edges on parts: {edges / row['epoch_cpu_s']:,.0f} edges per CPU second, {ratio:.2f} "
                "times those of the whole graph with 5,000,000."
            )
        two = rows.get((f"{case}, two processes", edges))
        if two:
            apart = max(abs(ours / theirs - 1) for ours, theirs in zip(two["losses"], row["losses"]))
            lines.append(
                f"- {case}, {edges:,} edges, {len(row['losses'])} epochs: losses of two processes differ from one "
                f"process's by {apart:.2%} at most."
            )
        if "difference" in row:
            lines.append(
                f"- {case}, {edges:,} edges: {row['difference']:.1e} is the largest difference to all at once."
            )
    return lines


def _quality(rows: Rows) -> list[str]:
    found = [row for (case, _), row in sorted(rows.items()) if case.startswith("quality")]
    if not found:
        return []
    lines = ["| accuracy | whole graph | clusters | difference | seeds |", "|---|---|---|---|---|"]
    for row in found:
        count = min(len(row["whole"]), len(row["clusters"]))
        scores = {kind: row[kind][:count] for kind in ("whole", "clusters")}
        apart = [ours - theirs for ours, theirs in zip(scores["clusters"], scores["whole"])]
        said = " | ".join(f"{mean(values):.1f} ± {pstdev(values):.1f}" for values in scores.values())
        lines.append(f"| {row['case'].partition(' ')[2]} | {said} | {mean(apart):+.1f} | {count} |")
    return lines


def _extrapolated(timed: Rows) -> list[str]:
    """By what each further edge took of CPU time, and each further node of memory, between two sizes."""
    heads = ["CPU hours: import", "cutting", "training", "embed", "machines", "hours", "memory of a process"]
    lines = [f"| | {' | '.join(heads)} |", "|---|" + "---|" * len(heads)]
    importing, cutting = _slope(timed, "import", "cpu_s", 1.0), _slope(timed, "fit parts", "start_cpu_s", 1.0)
    epoch, all_of_it = _slope(timed, "fit parts", "epoch_cpu_s", 1.0), _slope(timed, "default, parts", "cpu_s", 1.0)
    if importing is None or cutting is None or epoch is None or all_of_it is None:
        return []
    trainings = {"the default": all_of_it - cutting, f"`sgc`, {EPOCHS} epochs": EPOCHS * epoch}
    for name, (nodes, edges, machines) in LARGER.items():
        for (encoder, training), before in zip(trainings.items(), ("default, ", "")):
            embedding = _slope(timed, f"{before}embed in blocks", "cpu_s", 1.0) or 0.0
            hours = [edges * slope / 3600 for slope in (importing, cutting, training, embedding)]
            shared = (hours[2] + hours[3]) / (machines * CORES * IN_PARALLEL)
            alone = hours[0] / (CORES * IN_PARALLEL) + hours[1]
            case = "default, parts" if before else "fit parts"
            first = timed[case, _sizes(timed)[case][0]]["anonymous_mb"]
            own = (first + nodes * (_slope(timed, case, "anonymous_mb", PER_NODE) or 0.0)) / 1000
            said = " | ".join(f"{value:.1f}" for value in hours)
            lines.append(f"| {name}, {encoder} | {said} | {machines} | {alone + shared:.1f} | {own:.0f} GB |")
    return lines


def _slope(timed: Rows, case: str, key: str, per: float) -> float | None:
    """Growth of a figure with the edges, or with `per` of them, from the smallest size to the largest."""
    sizes = _sizes(timed).get(case, [])
    if len(sizes) < 2:
        return None
    first, last = timed[case, sizes[0]], timed[case, sizes[-1]]
    return float((last[key] - first[key]) / (per * (sizes[-1] - sizes[0])))


def _sizes(timed: Rows) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for case, edges in timed:
        found.setdefault(case, []).append(edges)
    return found
