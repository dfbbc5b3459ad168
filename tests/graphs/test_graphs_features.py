"""Features joined to edges: tables by id, arrays by row, and every way they can be wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
import torch
from reading_errors import error_of

from topoter.graphs import check_graph, read_graph


@pytest.fixture
def edges(tmp_path) -> Path:
    path = tmp_path / "e.csv"
    path.write_text("source,target\na,b\nb,c\n")
    return path


@pytest.fixture
def numbered(tmp_path) -> Path:
    path = tmp_path / "n.csv"
    path.write_text("source,target\n0,1\n1,2\n")
    return path


def table(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "f.csv"
    path.write_text(text)
    return path


def test_numbers_booleans_and_categories(tmp_path, edges):
    path = table(tmp_path, "id,age,ok,colour\nc,1.5,true,red\na,-2,false,blue\nb,3,true,\nd,4,false,red\n")
    data, notes = read_graph(edges, features=path)
    assert data.node_ids == ["c", "a", "b", "d"]
    assert data.feature_names == ["age", "ok", "colour=blue", "colour=red"]
    x = data.x.to_dense()
    assert x[:, 1:].tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 1]]
    assert x[:, 0].tolist() == pytest.approx(np.array([-0.125, -3.625, 1.375, 2.375]) / 2.27417, rel=1e-5)
    assert x.dtype == torch.float32
    assert data.edge_index.tolist() == [[1, 2], [2, 0]]
    said = " ".join(notes)
    assert "node ids taken from the first column, 'id'" in said
    assert "its columns (1 of numbers, 1 of 0 and 1, 1 of categories) become 4 features" in said
    assert "1 nodes have no edges." in said
    check_graph(data)


def test_id_column_and_another_delimiter(tmp_path, edges):
    path = table(tmp_path, "age\tname\n1\ta\n2\tb\n3\tc\n")
    data, _ = read_graph(edges, features=path, id_column="name")
    assert data.node_ids == ["a", "b", "c"]
    assert data.feature_names == ["age", "constant"], "rows of one number scaled to length one would be all the same"
    assert data.x[:, 0].tolist() == pytest.approx([-1.224745, 0, 1.224745])


def test_parquet_features_with_a_list_column(tmp_path, numbered):
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"id": [2, 1, 0], "v": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]}), path)
    data, _ = read_graph(numbered, features=path)
    assert data.node_ids.tolist() == [2, 1, 0]
    assert data.feature_names == ["v0", "v1"]
    assert data.x[2].tolist() == [5, 6]
    assert data.edge_index.tolist() == [[2, 1], [1, 0]]


def test_integer_ids_meet_text_ids(tmp_path, numbered):
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"id": ["0", "1", "2", "x"], "v": [1, 2, 3, 4]}), path)
    data, _ = read_graph(numbered, features=path)
    assert data.node_ids == ["0", "1", "2", "x"]
    assert data.edge_index.tolist() == [[0, 1], [1, 2]]


def test_arrays_in_node_order(tmp_path, numbered):
    x = np.arange(8, dtype=np.float64).reshape(4, 2)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", x=x, other=x)
    scipy.sparse.save_npz(tmp_path / "s.npz", scipy.sparse.csr_matrix(x))
    for name in ("x.npy", "x.npz", "s.npz"):
        data, notes = read_graph(numbered, features=tmp_path / name)
        assert data.x.to_dense().tolist() == x.tolist()
        assert data.x.dtype == torch.float32
        assert data.num_nodes == 4
        assert data.node_ids.tolist() == [0, 1, 2, 3]
        assert "1 nodes have no edges." in notes
    assert data.x.layout == torch.sparse_csr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,age\na,1\nb,2\n", "e.csv, line 3: node 'c' is not in f.csv."),
        ("id,age\na,\nb,\nc,\n", "f.csv: no column holds a value: there is nothing to make features of."),
        ("id,age\na,1\nb,2\na,3\n", "f.csv, line 4: node id 'a' stands here a second time."),
        ("id,age\na,1\n,2\nc,3\n", "f.csv, line 3: no node id in column 'id'."),
        ("id,age\na,1\nb,2,3\nc,3\n", "f.csv, line 3: 3 columns where 2 were expected: 'b,2,3'."),
        ("", "f.csv is empty."),
    ],
)
def test_errors_name_file_line_and_value(tmp_path, edges, text, message):
    assert error_of(edges, features=table(tmp_path, text)) == message


def test_free_text_is_refused_with_a_hint_or_hashed(tmp_path, edges):
    rows = "".join(f"{i},some words {i}\n" for i in ("a", "b", *range(30), "c"))
    path = table(tmp_path, "id,bio\n" + rows)
    assert error_of(edges, features=path) == (
        "f.csv: column 'bio' holds text (33 distinct values, such as 'some words 0'): leave it out (--exclude bio), "
        "take it as a category (--as-category bio), or hash its words (--text hash)."
    )
    data, _ = read_graph(edges, features=path, text="hash")
    assert data.num_features == 256
    assert data.x.layout == torch.sparse_csr
    assert (data.x.to_dense()[0] * data.x.to_dense()[1]).sum() > 0.5, "two of three words are the same"
    message = error_of(edges, features=table(tmp_path, "id,v\na,1\n"), id_column="name")
    assert message == "f.csv: Unknown column 'name'. Known: id, v."
    message = error_of(edges, features=table(tmp_path, "id,v\na,1\n"), exclude=["w"])
    assert message == "f.csv: Unknown column 'w'. Known: v."


def test_ids_in_another_column_are_hinted_at(tmp_path, edges):
    path = table(tmp_path, "age,who\n1,a\n1,b\n2,c\n")
    assert error_of(edges, features=path) == (
        "f.csv, line 3: node id 1 stands here a second time; "
        "if the ids are those in column 'who', give --id-column who."
    )
    path = table(tmp_path, "age,who\n1,a\n3,b\n2,c\n")
    assert error_of(edges, features=path, exclude=[], as_category=["who"]).endswith(
        "node 'a' is not in f.csv. Its column 'who' has it: if the ids are there, give --id-column who."
    )


def test_array_errors(tmp_path, edges, numbered):
    x = np.ones((3, 2))
    np.save(tmp_path / "x.npy", x[:2])
    assert error_of(numbered, features=tmp_path / "x.npy") == (
        "n.csv, line 3: node 2 does not exist: x.npy has 2 rows, so ids run from 0 to 1."
    )
    (tmp_path / "one.csv").write_text("1,2\n2,3\n")
    np.save(tmp_path / "x.npy", x)
    assert error_of(tmp_path / "one.csv", features=tmp_path / "x.npy").endswith(
        "The ids seem to start at 1: subtract 1."
    )
    assert "the ids in e.csv must be row numbers from 0; found 'a'" in error_of(edges, features=tmp_path / "x.npy")
    x[1, 1] = np.nan
    np.save(tmp_path / "x.npy", x)
    assert error_of(numbered, features=tmp_path / "x.npy") == (
        "x.npy, row 1, column 1 (from 0): nan is not a finite number."
    )
    scipy.sparse.save_npz(tmp_path / "x.npz", scipy.sparse.csr_matrix(x))
    assert error_of(numbered, features=tmp_path / "x.npz").startswith("x.npz, row 1, column 1 (from 0): nan")
    np.save(tmp_path / "x.npy", np.ones(3))
    assert "must have the shape [num_nodes, num_features]. Got [3]" in error_of(numbered, features=tmp_path / "x.npy")
    np.save(tmp_path / "x.npy", np.array([["a"]]))
    assert "not numbers" in error_of(numbered, features=tmp_path / "x.npy")
    np.save(tmp_path / "x.npy", np.array([[{}]]), allow_pickle=True)
    assert error_of(numbered, features=tmp_path / "x.npy").startswith("x.npy is not an array of numbers: Object arrays")
    (tmp_path / "x.npy").write_bytes(b"")
    assert error_of(numbered, features=tmp_path / "x.npy").startswith("x.npy is not an array of numbers")
    (tmp_path / "x.npz").write_bytes(b"PK\x03\x04 cut")
    assert error_of(numbered, features=tmp_path / "x.npz").startswith("x.npz is not an array of numbers")
    assert error_of(numbered, features=tmp_path / "no.npy") == "no.npy: no such file."
    np.savez(tmp_path / "two.npz", a=x, b=x)
    assert error_of(numbered, features=tmp_path / "two.npz").endswith("it holds several (a, b). Name one of them x.")


def test_drop_bad_drops_nodes_and_their_edges(tmp_path, edges, numbered):
    path = table(tmp_path, "id,age\na,1\nb,2\nc,old\na,9\n,3\nd,4,5\ne,6\n")
    data, notes = read_graph(edges, features=path, drop_bad=True)
    assert data.node_ids == ["a", "b", "c", "e"], "a value that is no number costs no node"
    assert data.feature_names == ["age", "age is missing", "constant"]
    assert data.x[:, 1].tolist() == [0, 0, 1, 0]
    said = " ".join(notes).replace(f"{tmp_path}/", "")
    assert "Dropped 1 lines of f.csv with the wrong number of columns." in said
    assert "Dropped 1 rows of f.csv without an id." in said
    assert "Dropped 1 rows of f.csv with an id seen before." in said
    assert "f.csv: column 'age': 1 values are no finite numbers and are taken as missing." in said
    path = table(tmp_path, "id,age\na,1\nb,2\n,5\n")
    data, notes = read_graph(edges, features=path, drop_bad=True)
    assert data.edge_index.tolist() == [[0], [1]]
    assert f"Dropped 1 edges to nodes without a usable row in {path}." in notes
    for matrix in (np.array([[1.0], [np.inf], [3.0]]), scipy.sparse.csr_matrix([[1.0], [np.inf], [3.0]])):
        name = tmp_path / ("x.npz" if scipy.sparse.issparse(matrix) else "x.npy")
        (scipy.sparse.save_npz if scipy.sparse.issparse(matrix) else np.save)(name, matrix)
        data, _ = read_graph(numbered, features=name, drop_bad=True)
        assert data.node_ids.tolist() == [0, 2]
        assert data.x.to_dense().tolist() == [[1], [3]]
        assert data.num_edges == 0


def test_what_spreadsheets_add_to_a_table_is_skipped(tmp_path):
    (tmp_path / "e.csv").write_text("source,target\na,b\nb,c\n,\n")
    table = "sep=;\r\nid;size;kind\r\na;1,5;x\r\nb;2,5;y\r\nc;3,5;y\r\n;;\r\n;;\r\n"
    (tmp_path / "n.csv").write_text(table, newline="")
    data, _ = read_graph(tmp_path / "e.csv", features=tmp_path / "n.csv")
    assert (data.num_nodes, data.feature_names) == (3, ["size", "kind=x", "kind=y"])
    (tmp_path / "n.csv").write_text(table.replace("c;3", "b;3"), newline="")
    assert error_of(tmp_path / "e.csv", features=tmp_path / "n.csv").startswith("n.csv, line 5: node id 'b' stands")


@pytest.mark.parametrize(
    ("written", "read"), [("7", "7.0"), ("7.0", "7"), ("7", "007"), ("Ada", "ada"), ("ada", "ADA")]
)
def test_an_id_written_otherwise_is_pointed_out(tmp_path, written, read):
    (tmp_path / "e.csv").write_text(f"source,target\n{written},x\n")
    (tmp_path / "n.csv").write_text(f"id,size\n{read},1\nx,2\n")
    message = error_of(tmp_path / "e.csv", features=tmp_path / "n.csv")
    assert message.endswith(f"node {written!r} is not in n.csv. It has {read!r}: write ids in both alike.")


def test_a_mistyped_id_column_is_corrected_although_the_header_is_in_doubt(tmp_path):
    (tmp_path / "e.csv").write_text("source,target\na,b\n")
    (tmp_path / "n.csv").write_text("person,town\na,Bern\nb,Bern\n")
    message = error_of(tmp_path / "e.csv", features=tmp_path / "n.csv", id_column="persn")
    assert message.startswith("n.csv: Unknown column 'persn'. Did you mean 'person'?")
