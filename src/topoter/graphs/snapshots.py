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
MOST_TIMES = 200  # more are events, and nobody wants a snapshot for each
SPANS = {"": 1, "s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}  # in seconds
_logger = logging.getLogger(__name__)
Snapshots: TypeAlias = "list[tuple[int | float | str, Tensor]]"


def read_snapshots(
    path: str | os.PathLike[str],
    *,
    time_column: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    drop_bad: bool = False,
    every: str | float | None = None,
) -> tuple[Snapshots, NodeIds]:
    """Read a temporal graph: a list of (time, edge_index [2, E_t]) in order of time, and the node ids.

    `path`: an edge list with a time column (`time_column`, or one named time, timestamp or t), one snapshot
    for each distinct time; or a folder of edge lists, one snapshot for each file, ordered and named by file
    name (day2 before day10). `every` puts times into bins: "1d", "1w", "12h", or a number in the column's own unit.
    Nodes are in ascending order of their ids. `delimiter`, `header` and `drop_bad` are
    those of `read_graph`; what was found out about the files is logged.
    """
    path = Path(path)
    options = {"delimiter": delimiter, "header": header, "drop_bad": drop_bad}
    if not path.is_dir():
        return _from_file(path, time_column, every, options)
    if time_column is not None or every is not None:
        raise UsageError(f"{path} is a folder, one file for each time: time_column and every do not apply.")
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


def time_column_of(path: Path, time_column: str | None, names: Sequence[str]) -> str:
    """The column of times: the one that is named, or that has a usual name."""
    time_column = time_column or next((name for name in names if name.lower() in TIME_NAMES), None)
    if time_column is None:
        raise UsageError(
            f"{path}: which column is the time? Name one of {', '.join(names)} as its time column "
            "(--time-column, or time_column= in Python)."
        )
    return time_column


def by_time(path: Path, time: np.ndarray, every: str | float | None) -> list[tuple[int | float, np.ndarray]]:
    """Each time, or the first time of each bin, and the places of its edges; in order of time, empty bins left out.

    Times are seconds where `every` is a span ("1d"): dates are read so. Days begin at midnight UTC, weeks on Monday.
    """
    if every is None:
        count = len(np.unique(time))
        if count > MOST_TIMES:
            raise UsageError(
                f"{path} has {count:,} different times, a snapshot each. Into which bins do they go? {_examples(time)}"
            )
        start = time
    else:
        width, offset = _width(every)
        start = np.floor((time + offset) / width) * width - offset
        start = start.astype(np.int64) if float(width).is_integer() else start
    order = np.argsort(start, kind="stable")
    times, places = np.unique(start[order], return_index=True)
    return list(zip(times.tolist(), np.split(order, places[1:])))


def _width(every: str | float) -> tuple[float, float]:
    """The width of a bin, and what is added to a time so that bins begin where they should."""
    read = re.fullmatch(r"\s*([0-9]*\.?[0-9]*)\s*([a-z]*)\s*", str(every))
    number, unit = read.groups() if read else ("", "?")
    if unit not in SPANS or not (number.strip(".") or unit) or float(number.strip(".") or 1) <= 0:
        raise UsageError(f"--every must be a span such as 1d, 1w, 12h, or a number above 0. Got {every!r} instead.")
    return float(number.strip(".") or 1) * SPANS[unit], (
        3 * SPANS["d"] if unit == "w" else 0
    )  # 1970 began on a Thursday


def _examples(time: np.ndarray) -> str:
    """Bins that would do, with how many snapshots they give."""
    span = float(time.max() - time.min())
    tried = ["1h", "1d", "1w", "30d"] if span > 2 * SPANS["h"] else []
    rough = 10 ** np.floor(np.log10(max(span, 1e-9) / 20))
    tried.append(f"{rough:g}")
    counts = {name: len(by_time(Path(), time, name)) for name in tried}
    good = [f"--every {name} gives {count}" for name, count in counts.items() if 2 <= count <= MOST_TIMES]
    return f"For example {', '.join(good[:3])} (every= in Python)." if good else "Say --every (every= in Python)."


def _from_file(
    path: Path, time_column: str | None, every: str | float | None, options: dict[str, Any]
) -> tuple[Snapshots, NodeIds]:
    (table,) = open_edges(path, time_column=time_column, **options)
    time_column = time_column_of(path, time_column, table.names)
    raw = read_edges(table, time_column=time_column)
    _log(raw.notes)
    assert raw.time is not None
    snapshots: Snapshots = [
        (time, torch.from_numpy(np.ascontiguousarray(raw.edge_index[:, places])))
        for time, places in by_time(path, raw.time, every)
    ]
    return snapshots, user_ids(raw.node_ids)


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
