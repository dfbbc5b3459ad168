"""Temporal graphs: a time column, or a folder of edge files."""

from __future__ import annotations

import numpy as np
import pytest

from topoter.errors import DataError, UsageError
from topoter.graphs import read_snapshots


def named(snapshots, ids):
    return [(time, [(ids[u], ids[v]) for u, v in edges.t().tolist()]) for time, edges in snapshots]


def test_time_column(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("source,target,time\nc,a,20\na,b,3\nb,c,3\nd,a,100\n")
    snapshots, ids = read_snapshots(path)
    assert ids == ["a", "b", "c", "d"]
    expected = [(3, [("a", "b"), ("b", "c")]), (20, [("c", "a")]), (100, [("d", "a")])]
    assert named(snapshots, ids) == expected
    path.write_text("1 2 0.5 7\n2 3 0.5 6\n")
    snapshots, ids = read_snapshots(path, time_column="4")
    assert named(snapshots, ids) == [(6, [(2, 3)]), (7, [(1, 2)])]
    with pytest.raises(UsageError, match=r"which column is the time\? Name one of 1, 2, 3, 4 as its time column"):
        read_snapshots(path)


def test_folder_in_natural_order_over_the_union_of_nodes(tmp_path):
    (tmp_path / "day10.csv").write_text("3,1\n")
    (tmp_path / "day2.csv").write_text("1,2\n")
    (tmp_path / ".hidden").write_text("x")
    snapshots, ids = read_snapshots(tmp_path)
    assert isinstance(ids, np.ndarray)
    assert named(snapshots, ids) == [("day2", [(1, 2)]), ("day10", [(3, 1)])]
    (tmp_path / "day11.csv").write_text("x,1\n")
    snapshots, ids = read_snapshots(tmp_path)
    assert ids == ["1", "2", "3", "x"]
    with pytest.raises(UsageError, match="time_column and every do not apply"):
        read_snapshots(tmp_path, time_column="t")


def test_wrong_places(tmp_path):
    with pytest.raises(DataError, match="holds no files of edges"):
        read_snapshots(tmp_path)
    with pytest.raises(DataError, match=r"none.csv: no such file"):
        read_snapshots(tmp_path / "none.csv")
