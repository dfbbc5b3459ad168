"""A user's files: a small graph with names for nodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_geometric.data import Data


def write_edges(path: Path, edges: list[list[int]]) -> None:
    path.write_text("source,target\n" + "".join(f"n{a},n{b}\n" for a, b in edges))


def write_graph(folder: Path, data: Data) -> list[list[int]]:
    """edges.csv with ids n0, n1, ... and features.csv with columns id, f0, f1, ...; returns the edges."""
    edges = data.edge_index[:, data.edge_index[0] < data.edge_index[1]].t().tolist()
    write_edges(folder / "edges.csv", edges)
    rows = "".join(f"n{i}," + ",".join(f"{v:.4f}" for v in row) + "\n" for i, row in enumerate(data.x.tolist()))
    (folder / "features.csv").write_text("id," + ",".join(f"f{c}" for c in range(data.x.size(1))) + "\n" + rows)
    return edges
