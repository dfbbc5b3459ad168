"""`topoter datasets`: what is known, what is on disk, how to get the rest."""

from __future__ import annotations

from dataclasses import asdict

from rich.table import Table

from topoter.cli.output import DataRoot, Json, out, print_json


def run(data_root: DataRoot = None, json: Json = False) -> None:
    """List the datasets: what is known, what is on disk, how to get the rest."""
    from topoter.datasets import available

    known = available(data_root)
    if json:
        print_json([{**asdict(info), "location": str(info.location) if info.location else None} for info in known])
        return
    table = Table(box=None, pad_edge=False)
    for name in ("name", "kind", "graphs", "nodes", "edges", "features", "classes"):
        table.add_column(name, justify="left" if name in ("name", "kind") else "right", no_wrap=True)
    table.add_column("on disk, or how to get it", no_wrap=True)
    for info in known:
        counts = (info.graphs, info.nodes, info.edges, info.features, info.classes)
        table.add_row(
            info.name,
            info.kind,
            *("" if count is None else f"{count:,}" for count in counts),
            str(info.location) if info.on_disk and info.location else info.how,
        )
    # A path folded into the last few columns of a terminal can be neither read nor copied.
    out.width = max(out.width, out.measure(table, options=out.options.update(max_width=10_000)).maximum)
    out.print(table)
