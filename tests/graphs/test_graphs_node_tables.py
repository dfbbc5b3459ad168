"""Labels in and tables out: joined by id, gaps told, bad rows named."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from topoter.errors import DataError, UsageError
from topoter.graphs.node_tables import read_node_table, write_node_table


def test_columns_follow_the_order_of_the_nodes(tmp_path):
    (tmp_path / "l.csv").write_text("id,kind,score,day\nb,x,1.5,2020-01-02\na,y,,2020-01-03\nz,x,3,\n")
    table = read_node_table(tmp_path / "l.csv")
    columns = table.for_nodes(["a", "b", "c"])
    assert columns == {
        "kind": ["y", "x", None],
        "score": [None, 1.5, None],
        "day": [datetime.date(2020, 1, 3), datetime.date(2020, 1, 2), None],
    }
    assert [note.partition(": ")[2] for note in table.notes[-2:]] == [
        "1 of 3 nodes have no row.",
        "ids that no node has, left out: 1, such as 'z'.",
    ]


def test_integer_ids_meet_integer_ids_and_text_meets_text(tmp_path):
    (tmp_path / "l.tsv").write_text("node\tkind\n7\tx\n8\ty\n")
    assert read_node_table(tmp_path / "l.tsv").for_nodes(np.array([8, 7])) == {"kind": ["y", "x"]}
    assert read_node_table(tmp_path / "l.tsv").for_nodes(["8", "b"]) == {"kind": ["y", None]}


def test_parquet_and_another_id_column(tmp_path):
    pq.write_table(pa.table({"kind": ["x", "y"], "key": ["a", "b"]}), tmp_path / "l.parquet")
    assert read_node_table(tmp_path / "l.parquet", id_column="key").for_nodes(["b"]) == {"kind": ["y"]}


def test_bad_rows_are_named_or_dropped_and_counted(tmp_path):
    path = tmp_path / "l.csv"
    path.write_text("id,kind\na,x\n,y\na,z\n")
    with pytest.raises(DataError, match="line 3: no node id in column 'id'"):
        read_node_table(path)
    table = read_node_table(path, drop_bad=True)
    assert table.for_nodes(["a"]) == {"kind": ["x"]}
    assert sum("Dropped 1" in note for note in table.notes) == 2
    path.write_text("id,kind\na,x\nb,y\na,z\n")
    with pytest.raises(DataError, match="line 4: node id 'a' stands here a second time"):
        read_node_table(path)


def test_ids_in_the_last_column_are_hinted_at(tmp_path):
    for age in ("", "31"):  # a gap, and a number that stands there twice
        rows = "".join(f"{31 + row},u{row}\n" for row in range(30))
        (tmp_path / "l.csv").write_text(f"age,user\n{rows}{age},u99\n")
        with pytest.raises(DataError, match=r"if the ids are those in column 'user', give --id-column user"):
            read_node_table(tmp_path / "l.csv")


def test_ids_that_never_meet_are_an_error(tmp_path):
    (tmp_path / "l.csv").write_text("id,kind\nx1,x\n")
    with pytest.raises(DataError, match="none of its ids is that of a node \\('x1' here, 'a' there\\)"):
        read_node_table(tmp_path / "l.csv").for_nodes(["a"])


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.parquet"])
def test_what_is_written_is_read_back(tmp_path, name):
    write_node_table(tmp_path / name, {"id": ["a,b", 'c"d'], "cluster": np.array([1, 0])})
    assert read_node_table(tmp_path / name).for_nodes(['c"d', "a,b"]) == {"cluster": [0, 1]}


def test_unknown_extensions_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"unknown extension '.xls' for a table. Known: .csv, .tsv, .parquet"):
        write_node_table(tmp_path / "t.xls", {"id": [1]})
