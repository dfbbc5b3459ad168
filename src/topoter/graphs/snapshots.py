"""Temporal graphs: one set of edges per time, over the union of all nodes."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from topoter.errors import DataError, UsageError
from topoter.graphs.edge_lists import open_edges, read_edges
from topoter.graphs.frames import as_arrow, is_frame
from topoter.graphs.ids import NodeIds, positions, same_type, sorted_unique, user_ids
from topoter.graphs.tables import ArrowTable

if TYPE_CHECKING:
    from torch_geometric.data import Data

TIME_NAMES = ("time", "timestamp", "t")
_logger = logging.getLogger(__name__)
Snapshots: TypeAlias = "list[tuple[int | float | str, Tensor]]"


def read_snapshots(
    path: str | os.PathLike[str],
    *,
    time_column: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    drop_bad: bool = False,
) -> tuple[Snapshots, NodeIds]:
    """Read a temporal graph: a list of (time, edge_index [2, E_t]) in order of time, and the node ids.

    `path`: an edge list with a time column (`time_column`, or one named time, timestamp or t), one snapshot
    for each distinct time; or a folder of edge lists, one snapshot for each file, ordered and named by file
    name (day2 before day10). Nodes are in ascending order of their ids. `delimiter`, `header` and `drop_bad` are
    those of `read_graph`; what was found out about the files is logged.
    """
    path = Path(path)
    options = {"delimiter": delimiter, "header": header, "drop_bad": drop_bad}
    if not path.is_dir():
        return _from_file(path, time_column, options)
    if time_column is not None:
        raise UsageError(f"{path} is a folder, one file for each time: time_column does not apply.")
    return _from_folder(path, options)


def aligned(snapshots: Sequence[Any], x: Any = None) -> list[Data]:
    """Snapshots edge_index [2, E_t] as graphs over the same nodes, with the features x [N, C] or the number 1.

    Raises where nothing can be learned from them: fewer than two, one without edges, or no node that has edges at one
    time and at the next.
    """
    from torch_geometric.data import Data

    edges = [_numbered_edges(snapshot) for snapshot in snapshots]
    if len(edges) < 2:
        raise DataError(f"A temporal graph needs two snapshots at least: there is only {len(edges)}.")
    for place, edge_index in enumerate(edges, 1):
        if not edge_index.numel():
            raise DataError(f"Snapshot {place} of {len(edges)} has no edges. Leave it out.")
    if not any(bool(torch.isin(before, after).any()) for before, after in pairwise(edges)):
        raise DataError(
            "No node has edges in two successive snapshots: there is no change to learn from. "
            "Are nodes named alike at all times?"
        )
    if x is None:
        x = torch.ones(max(int(edge_index.max()) for edge_index in edges) + 1, 1)
    x = torch.as_tensor(np.asarray(x) if not isinstance(x, Tensor) else x).to(torch.float32)
    return [Data(x=x, edge_index=edge_index, num_nodes=x.size(0)) for edge_index in edges]


def _numbered_edges(snapshot: Any) -> Tensor:
    """The edges [2, E] of an edge_index, a SciPy matrix or a DataFrame whose ids are the nodes' numbers from 0."""
    if hasattr(snapshot, "tocoo"):
        matrix = snapshot.tocoo()
        return torch.from_numpy(np.stack([matrix.row, matrix.col]).astype(np.int64))
    if is_frame(snapshot):
        raw = read_edges(ArrowTable(path=Path("DataFrame"), table=as_arrow(snapshot)))
        ids = user_ids(raw.node_ids)
        if not isinstance(ids, np.ndarray) or ids.min() < 0:
            raise DataError(f"Nodes of snapshots in a DataFrame must be numbers from 0. Got {ids[0]!r}.")
        return torch.from_numpy(ids[raw.edge_index])
    return torch.as_tensor(snapshot, dtype=torch.int64)


def _from_file(path: Path, time_column: str | None, options: dict[str, Any]) -> tuple[Snapshots, NodeIds]:
    (table,) = open_edges(path, time_column=time_column, **options)
    time_column = time_column or next((name for name in table.names if name.lower() in TIME_NAMES), None)
    if time_column is None:
        raise UsageError(
            f"{path}: which column is the time? Name one of {', '.join(table.names)} as its time column "
            "(--time-column, or time_column= in Python)."
        )
    raw = read_edges(table, time_column=time_column)
    _log(raw.notes)
    assert raw.time is not None
    order = np.argsort(raw.time, kind="stable")
    times, starts = np.unique(raw.time[order], return_index=True)
    parts = np.split(raw.edge_index[:, order], starts[1:], axis=1)
    edges = [torch.from_numpy(np.ascontiguousarray(part)) for part in parts]
    return list(zip(times.tolist(), edges)), user_ids(raw.node_ids)


def _from_folder(folder: Path, options: dict[str, Any]) -> tuple[Snapshots, NodeIds]:
    files = sorted((file for file in folder.iterdir() if file.is_file() and file.name[0] != "."), key=_natural)
    if not files:
        raise DataError(f"{folder} holds no files of edges.")
    graphs = [read_edges(table) for table in open_edges(*files, **options)]
    _log([note for graph in graphs for note in graph.notes], files)
    ids = same_type(*(graph.node_ids for graph in graphs))
    union = sorted_unique(*ids)
    edges = [torch.from_numpy(positions(own, union)[graph.edge_index]) for own, graph in zip(ids, graphs)]
    return [(file.name.split(".")[0], edge_index) for file, edge_index in zip(files, edges)], user_ids(union)


def _log(notes: list[str], files: Sequence[Path] = ()) -> None:
    """Log each note once; of what is the same in many files, the first file's."""
    said = set()
    for note in notes:
        text = next((note.removeprefix(str(file)) for file in files if note.startswith(str(file))), note)
        if text not in said:
            _logger.info(note)
        said.add(text)


def _natural(file: Path) -> list[tuple[int, int, str]]:
    """Sort day2 before day10: runs of digits compare as numbers."""
    parts = re.split(r"(\d+)", file.name)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts if part]
