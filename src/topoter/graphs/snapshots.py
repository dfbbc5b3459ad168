"""Temporal graphs: one set of edges per time, over the union of all nodes."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from topoter.errors import DataError, UsageError
from topoter.graphs.edge_lists import read_edges
from topoter.graphs.ids import NodeIds, positions, same_type, sorted_unique, user_ids
from topoter.graphs.tables import open_table

TIME_NAMES = ("time", "timestamp", "t")
Time: TypeAlias = "int | float | str"


def read_snapshots(
    path: str | os.PathLike[str],
    *,
    time_column: str | None = None,
    delimiter: str | None = None,
    drop_bad: bool = False,
) -> tuple[list[tuple[Time, Tensor]], NodeIds]:
    """Read a temporal graph: a list of (time, edge_index [2, E_t]) in order of time, and the node ids.

    `path`: an edge list with a time column (`time_column`, or one named time, timestamp or t), one snapshot
    for each distinct time; or a folder of edge lists, one snapshot for each file, ordered and named by file
    name (day2 before day10). Nodes are in ascending order of their ids.
    """
    path = Path(path)
    if path.is_dir():
        if time_column is not None:
            raise UsageError(f"{path} is a folder, one file for each time: time_column does not apply.")
        return _from_folder(path, delimiter, drop_bad)
    return _from_file(path, time_column, delimiter, drop_bad)


def _from_file(
    path: Path, time_column: str | None, delimiter: str | None, drop_bad: bool
) -> tuple[list[tuple[Time, Tensor]], NodeIds]:
    asked = [time_column] if time_column else []
    table = open_table(path, delimiter=delimiter, asked_columns=asked, drop_bad=drop_bad)
    if time_column is None:
        time_column = next((name for name in table.names if name.lower() in TIME_NAMES), None)
        if time_column is None:
            raise UsageError(f"{path}: which column is the time? Give time_column= ({', '.join(table.names)}).")
    raw = read_edges(table, time_column=time_column, drop_bad=drop_bad)
    assert raw.time is not None
    order = np.argsort(raw.time, kind="stable")
    times, starts = np.unique(raw.time[order], return_index=True)
    parts = np.split(raw.edge_index[:, order], starts[1:], axis=1)
    snapshots: list[tuple[Time, Tensor]] = [
        (time, torch.from_numpy(np.ascontiguousarray(part))) for time, part in zip(times.tolist(), parts)
    ]
    return snapshots, user_ids(raw.node_ids)


def _from_folder(folder: Path, delimiter: str | None, drop_bad: bool) -> tuple[list[tuple[Time, Tensor]], NodeIds]:
    files = [file for file in folder.iterdir() if file.is_file() and not file.name.startswith(".")]
    if not files:
        raise DataError(f"{folder} holds no files of edges.")
    files.sort(key=_natural)
    graphs = [
        read_edges(open_table(file, delimiter=delimiter, asked_columns=[], drop_bad=drop_bad), drop_bad=drop_bad)
        for file in files
    ]
    ids = same_type(*(graph.node_ids for graph in graphs))
    union = sorted_unique(*ids)
    snapshots: list[tuple[Time, Tensor]] = [
        (file.name.split(".")[0], torch.from_numpy(positions(own, union)[graph.edge_index]))
        for file, own, graph in zip(files, ids, graphs)
    ]
    return snapshots, user_ids(union)


def _natural(file: Path) -> list[tuple[int, int, str]]:
    """Sort day2 before day10: runs of digits compare as numbers."""
    parts = re.split(r"(\d+)", file.name)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts if part]
