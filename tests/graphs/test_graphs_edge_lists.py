"""Edge lists as text and parquet: what is detected, what is kept, what each error says."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reading_errors import error_of

from topoter.graphs import read_graph
from topoter.graphs.sniffing import is_header


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def named_edges(data) -> list[tuple]:
    return [(data.node_ids[u], data.node_ids[v]) for u, v in data.edge_index.t().tolist()]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("e.csv", "source,target\n10,20\n20,30\n"),
        ("e.csv", "10,20\n20,30\n"),
        ("e.csv", "\ufeff10,20\r\n\r\n20, 30\r\n"),
        ("e.tsv", "a\tb\n10\t20\n20\t30\n"),
        ("e.csv", "10;20\n20;30\n"),
        ("e.txt", "# SNAP\n# FromNodeId ToNodeId\n  10   20 \n# in between\n20 \t 30\n"),
        ("e.csv", "source,target\r10,20\r20,30\r"),
        ("e.edges", "10|20\n20|30"),
        ("e.csv", "when,from,to\n5,10,20\n6,20,30\n"),
        ("e.csv", ",a,b\n0,10,20\n1,20,30\n"),  # with the index that pandas writes
    ],
)
def test_text_forms_give_the_same_graph(tmp_path, name, text):
    data, _ = read_graph(write(tmp_path / name, text))
    assert data.edge_index.tolist() == [[0, 1], [1, 2]]
    assert isinstance(data.node_ids, np.ndarray)
    assert data.node_ids.tolist() == [10, 20, 30]
    assert data.get("edge_weight") is None


def test_gzip_is_known_by_content_not_by_name(tmp_path):
    for name in ("e.csv.gz", "e.csv"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(b"a,b,weight\nx,y,0.5\n"))
        data, _ = read_graph(path)
        assert named_edges(data) == [("x", "y")]
        assert data.edge_weight.tolist() == [0.5]


def test_notes_say_header_comments_and_ignored_columns(tmp_path):
    path = write(tmp_path / "e.csv", "# c\nsource,target,colour\na,b,red\nb,c,blue\n")
    _, notes = read_graph(path)
    text = " ".join(notes)
    assert "comma separated, 3 columns, with the header source, target, colour" in text
    assert "skipped 1 comment lines" in text
    assert "ignored the columns colour" in text
    assert "No features given: every node gets log(1 + degree) and a constant" in text
    assert "2 edges between 3 nodes with 2 features each" in text
    _, notes = read_graph(write(tmp_path / "f.csv", "a,b\nb,c\n"))
    assert "without a header line" in notes[0]


@pytest.mark.parametrize(
    "ids",
    [["007", "7"], ["0x7", "8"], ["NA", "null"], ["12345678901234567890", "3"], ["1.0", "1"],
     ["2020-01-01", "2020-01-02"], ["true", "false"], ["é", "zürich"], ["-1", "a b"]],
)  # fmt: skip
def test_ids_are_kept_as_written(tmp_path, ids):
    data, _ = read_graph(write(tmp_path / "e.csv", f"source,target\n{ids[0]},{ids[1]}\n"))
    assert data.node_ids == sorted(ids)
    assert named_edges(data) == [tuple(ids)]


def test_edges_are_kept_as_given(tmp_path):
    data, _ = read_graph(write(tmp_path / "e.csv", "1,2\n2,1\n1,2\n3,3\n"))
    assert named_edges(data) == [(1, 2), (2, 1), (1, 2), (3, 3)]
    # Degrees count distinct neighbours, not lines.
    assert data.x[:, 0].tolist() == pytest.approx([np.log(2), np.log(2), 0.0])
    assert data.x[:, 1].tolist() == [1, 1, 1]


def test_weight_by_name_by_place_and_not_at_all(tmp_path):
    path = write(tmp_path / "e.csv", "a,b,strength\nx,y,2\ny,z,3.5\n")
    assert read_graph(path)[0].get("edge_weight") is None
    assert read_graph(path, weight_column="strength")[0].edge_weight.tolist() == [2, 3.5]
    data, notes = read_graph(write(tmp_path / "f.txt", "x y 2\ny z 3\n"))
    assert data.edge_weight.tolist() == [2, 3]
    assert any("column '3' taken as the edge weight" in note for note in notes)
    assert read_graph(write(tmp_path / "g.txt", "x y red\ny z blue\n"))[0].get("edge_weight") is None


def test_time_by_name_by_number_and_as_dates(tmp_path):
    data, _ = read_graph(write(tmp_path / "e.csv", "u,v,when\n1,2,9007199254740993\n"), time_column="when")
    assert data.time.tolist() == [9007199254740993]
    data, _ = read_graph(write(tmp_path / "e.txt", "1 2 0.5\n2 3 1.5\n"), time_column="3")
    assert data.time.tolist() == [0.5, 1.5]
    assert data.get("edge_weight") is None
    path = write(tmp_path / "d.csv", "u,v,day\n1,2,1970-01-02\n1,2,1970-01-03\n")
    data, notes = read_graph(path, time_column="day")
    assert data.time.tolist() == [86400, 172800]
    assert any("seconds since 1970" in note for note in notes)


def test_parquet(tmp_path):
    path = tmp_path / "e.parquet"
    pq.write_table(pa.table({"w": [1.0, 2.0], "src": ["a", "b"], "dst": ["b", "c"]}), path)
    data, _ = read_graph(path)
    assert named_edges(data) == [("a", "b"), ("b", "c")]
    assert data.edge_weight.tolist() == [1, 2]
    path.write_bytes(b"not parquet")
    assert error_of(path).startswith("e.parquet is not a parquet file: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "e.csv is empty."),
        (" \n\n", "e.csv is empty."),
        ("# nothing\n", "e.csv is empty: it holds comments only."),
        ("source,target\n", "e.csv is empty: it holds a header but no rows."),
        (
            "a\nb\n",
            "e.csv: a single column was found. Delimiters tried: comma, tab, semicolon, pipe, space."
            " A line needs two at least: the ids of an edge, or a node's id and what is known of it.",
        ),
        ("1,2\n# c\n\n3\n4,5\n", "e.csv, line 4: 1 columns where 2 were expected: '3'."),
        ("a,b\n1,2\n3,\n", "e.csv, line 3: no node id in column 'b'."),
        ("source,target\nx,y\n,z\n", "e.csv, line 3: no node id in column 'source'."),
        ("u,v,weight\n1,2,3\n1,2,abc\n", "e.csv, line 3: edge weight 'abc' is not a finite number >= 0."),
        ("u,v,weight\n1,2,3\n1,2,-1\n", "e.csv, line 3: edge weight -1 is not a finite number >= 0."),
        ("u,v,weight\n1,2,3\n1,2,inf\n", "e.csv, line 3: edge weight inf is not a finite number >= 0."),
        ("1 2 3\n1 2 x\n1 2 4\n", "e.csv, line 2: edge weight 'x' is not a finite number >= 0."),
        ("a,a,b\n1,2,3\n", "e.csv: the header names the column 'a' twice."),
    ],
)
def test_errors_name_file_line_and_value(tmp_path, text, message):
    path = write(tmp_path / "e.csv", text)
    options = {"weight_column": "weight"} if "weight" in text else {}
    assert error_of(path, **options) == message


def test_errors_of_files_and_options(tmp_path):
    assert error_of(tmp_path / "none.csv") == "none.csv: no such file."
    folder = tmp_path / "folder"
    folder.mkdir()
    assert error_of(folder) == "folder is a folder, not a file."
    binary = tmp_path / "b.csv"
    binary.write_bytes(b"PK\x03\x04\x00\x00")
    assert error_of(binary).startswith("b.csv is a binary file (a workbook?")
    binary.write_bytes("a;b\nc;d\n".encode("utf-16"))
    assert error_of(binary) == "b.csv is UTF-16 text: save it as UTF-8."
    binary.write_bytes(b"a,b\nm\xfcller,c\n")
    assert error_of(binary).startswith("b.csv, line 2: byte 0xfc is not UTF-8 text")
    binary.write_bytes(gzip.compress(b"1,2\n" * 1000)[:-20])
    assert error_of(binary).startswith("b.csv is a damaged gzip file")
    path = write(tmp_path / "e.csv", "u,v,when\n1,2,3\n")
    assert error_of(path, weight_column="wen") == "e.csv: Unknown column 'wen'. Did you mean 'when'?"
    assert error_of(path, delimiter=";").startswith(
        "e.csv: a single column was found. Delimiters tried: semicolon. A line needs two"
    )
    assert error_of(path, delimiter="::").startswith("The delimiter must be one character or one of comma, tab")
    assert "give that too (--features, features= in Python)" in error_of(path, id_column="u")
    assert error_of(write(tmp_path / "h.txt", "1 2\n"), time_column="t").endswith("numbered from 1.")
    path = write(tmp_path / "t.csv", "u,v,t\n1,2,3\n1,2,soon\n")
    assert error_of(path, time_column="t") == "t.csv, line 3: time 'soon' is neither a number nor a date."


def test_drop_bad_goes_on_and_counts(tmp_path):
    text = "u,v,weight\n1,2,1\n3\n4,,1\n5,6,-1\n6,7,x\n8,9,2\n"
    data, notes = read_graph(write(tmp_path / "e.csv", text), drop_bad=True)
    assert named_edges(data) == [(1, 2), (8, 9)]
    assert data.edge_weight.tolist() == [1, 2]
    said = " ".join(notes)
    assert "Dropped 1 lines with the wrong number of columns." in said
    assert "Dropped 1 edges without an id in column 'v'." in said
    assert "Dropped 2 edges with a bad weight in column 'weight'." in said
    assert error_of(write(tmp_path / "x.csv", ""), drop_bad=True) == "x.csv is empty."
    assert "no usable edge is left" in error_of(write(tmp_path / "y.csv", "u,v\n1,\n"), drop_bad=True)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("0,0\n0, \n", [0]),  # blanks do not make text of a column of numbers
        ("0,1\n2, \n3,NA\n", [0, 1]),
        ("a,b\nc, \nd,NA\n", ["NA", "a", "b", "d"]),  # in a column of words NA is one
        ("0,0\n007,NA\n", ["0"]),  # nor does text in one column make words of the other
        ("007,NA\n0,1\n", ["0", "1"]),
    ],
)
def test_what_is_missing_is_judged_column_by_column(tmp_path, text, ids):
    (tmp_path / "edges.csv").write_text(text)
    data, _ = read_graph(tmp_path / "edges.csv", header=False, delimiter=",", drop_bad=True)
    assert list(data.node_ids) == ids


@pytest.mark.parametrize(
    ("below", "named"),
    [
        (["p1,65,Bern", "p2,,Lima", "p3,7,Oslo"], True),  # names above numbers, of which some are missing
        (["p1,NA,Bern", "p2,3,Lima", "p3,7,Oslo"], True),
        (["p1,,Bern", "p2,,Lima", "p3,7,Oslo"], False),  # hardly a number
        (["p1,x,Bern", "p2,3,Lima", "p3,7,Oslo"], False),
    ],
)
def test_names_stand_above_numbers_with_gaps_too(below, named):
    rows = [line.split(",") for line in ["person,age,city", *below]]
    assert is_header(rows, set()) == (named, named)
