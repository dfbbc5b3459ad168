"""Import: the directory holds the graph that `read_graph` reads from the same files, or one line says why not."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from topoter.errors import BadRowError, DataError, UsageError
from topoter.graphs import Preparation, TableOptions, read_graph
from topoter.graphs.directory import GraphDirectory
from topoter.graphs.importing import import_graph
from topoter.structure.adjacency import Adjacency


def _as_they_are(read: Data) -> tuple[torch.Tensor, list[str]]:
    plain = Preparation.fit(read.table.arrow, TableOptions(scale=False))
    return plain.transform(read.table.arrow)[0], plain.feature_names


def same_as_read(folder: Path, edges: Path, features: Path | None = None, **options: Any) -> GraphDirectory:
    """Import and read the same files; both must be one graph. Returns the directory."""
    out = folder / "graph.topo"
    import_graph([edges], out, features=[features] if features else [], **options)
    directory = GraphDirectory.open(out)
    read, _ = read_graph(edges, features=features, **options)
    if features is not None and read.get("table") is not None:  # what is imported is not scaled
        read.x, read.feature_names = _as_they_are(read)
    expected, cleaning = Adjacency.from_edge_index(read.edge_index, read.num_nodes, read.get("edge_weight"))
    data = directory.as_data()
    found, nothing = Adjacency.from_edge_index(data.edge_index, data.num_nodes, data.get("edge_weight"))
    assert list(data.node_ids) == list(read.node_ids)
    assert torch.equal(found.edges, expected.edges)
    assert str(nothing) == "", "both directions, no loops, no duplicates"
    assert torch.allclose(data.x, read.x, atol=1e-6)
    assert data.feature_names == read.feature_names
    assert (found.weight is None) == (expected.weight is None)
    if found.weight is not None:
        assert torch.equal(found.weight, expected.weight)
    cleaned = directory.manifest.cleaned
    assert (cleaned.self_loops, cleaned.duplicates, cleaned.one_way) == (
        cleaning.self_loops,
        cleaning.duplicates,
        cleaning.one_way,
    )
    for node in range(directory.num_nodes):
        row = directory.indices[directory.indptr[node] : directory.indptr[node + 1]]
        assert (np.diff(row) > 0).all(), "neighbours ascend"
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".")) == []
    return directory


CASES = {
    "words": ("source,target\nbob,ann\nann,bob\nann,cat\ncat,cat\nbob,ann\n", {}),
    "whole numbers, sorted as numbers": ("9\t10\n10\t2\n2\t9\n", {}),
    "padded numbers are words": ("u,v\n007,7\n7,8\n", {}),
    "numbers beyond 64 bits are words": ("u,v\n99999999999999999999,7\n7,8\n", {}),
    "negative numbers": ("source,target\n-5,3\n3,-7\n", {}),
    "quotes, blanks and other scripts": ('source;target\n"a;b"; ü\nü;"x ""y"""\n', {}),
    "comments": ("# a comment\nsource,target\na,b\n# more\nb,c\n", {}),
    "weights: the largest of each edge": ("source,target,weight\na,b,0.5\nb,a,2\nb,c,1\nb,c,3\n", {}),
    "a third column of numbers is the weight": ("a b 1.5\nb c 2.5\n", {}),
    "a named weight": ("source,target,strength\na,b,0.5\nb,c,2\n", {"weight_column": "strength"}),
    "other columns": ("source,target,kind\na,b,x\nb,c,y\n", {}),
    "no header": ("a,b\nb,c\nc,a\n", {"header": False}),
    "bad rows dropped": ("source,target\na,b\n,c\nb,c\nb\n", {"drop_bad": True}),
}


@pytest.mark.parametrize(("text", "options"), CASES.values(), ids=CASES)
def test_text_is_imported_as_it_is_read(tmp_path: Path, text: str, options: dict[str, Any]) -> None:
    edges = tmp_path / "edges.csv"
    edges.write_text(text, encoding="utf-8")
    same_as_read(tmp_path, edges, **options)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pairs=st.lists(st.tuples(st.integers(-3, 12), st.integers(-3, 12)), min_size=1, max_size=40).filter(
        lambda pairs: any(a != b for a, b in pairs)
    ),
    prefix=st.sampled_from(["", "n"]),
)
def test_any_list_of_edges_in_parquet(tmp_path: Path, pairs: list[tuple[int, int]], prefix: str) -> None:
    ids = [[f"{prefix}{end}" if prefix else end for end in column] for column in zip(*pairs)]
    edges = tmp_path / "edges.parquet"
    pq.write_table(pa.table({"source": ids[0], "target": ids[1]}), edges)
    same_as_read(tmp_path, edges)


def test_features_with_numbers_lists_and_words(tmp_path: Path) -> None:
    edges, features = tmp_path / "edges.csv", tmp_path / "features.parquet"
    edges.write_text("source,target\n3,1\n1,2\n")
    table = {"id": [2, 3, 1, 9], "age": [1.5, 2, 3, 4], "text": [[0.0, 1], [2, 3], [4, 5], [6, 7]], "k": list("abab")}
    pq.write_table(pa.table(table), features)
    directory = same_as_read(tmp_path, edges, features)
    assert directory.as_data().node_ids.tolist() == [2, 3, 1, 9], "the order of the features, the lone node too"
    assert directory.manifest.feature_names == ["age", "text0", "text1", "k=a", "k=b"]


def test_features_in_text_with_other_kinds_of_ids(tmp_path: Path) -> None:
    edges, features = tmp_path / "edges.parquet", tmp_path / "features.csv"
    pq.write_table(pa.table({"source": [3, 1], "target": [1, 2]}), edges)
    features.write_text("id,a,b\n1,0.5,x\n2,1e3,y\n3,-2,x\nfour,0,y\n")
    same_as_read(tmp_path, edges, features)


def test_an_array_of_features_in_node_order(tmp_path: Path) -> None:
    edges, features = tmp_path / "edges.csv", tmp_path / "x.npy"
    edges.write_text("0,1\n1,2\n")
    np.save(features, np.arange(8.0).reshape(4, 2))
    same_as_read(tmp_path, edges, features)


def test_many_files_are_one_graph(tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    for number, text in enumerate(("a,b\nb,c\n", "c,d\n", "d,a\n")):
        with gzip.open(parts / f"{number}.csv.gz", "wt") as file:
            file.write("source,target\n" + text)
    manifest, _ = import_graph([f"{parts}/*.csv.gz"], tmp_path / "graph.topo")
    assert (manifest.num_nodes, manifest.num_edges) == (4, 4)


def test_half_precision(tmp_path: Path) -> None:
    edges, features = tmp_path / "edges.csv", tmp_path / "x.npy"
    edges.write_text("0,1\n")
    np.save(features, np.array([[1.5], [1e5]]))
    with pytest.raises(DataError, match=r"x\.npy, row 1 \(from 0\): column 'x0' has 100000, too large for float16"):
        import_graph([edges], tmp_path / "graph.topo", features=[features], dtype="float16")
    np.save(features, np.array([[1.5], [0.1]]))
    import_graph([edges], tmp_path / "graph.topo", features=[features], dtype="float16")
    directory = GraphDirectory.open(tmp_path / "graph.topo")
    assert directory.features.dtype == np.float16
    assert directory.as_data().x.dtype == torch.float32


BAD = {
    "no id": ("source,target\na,b\n,c\n", BadRowError, "edges.csv: 1 edges have no node id at one end."),
    "too many columns": ("source,target\na,b\na,b,c\n", BadRowError, "edges.csv, line 3: 3 columns where 2 were"),
    "bad weight": ("source,target,weight\na,b,1\na,c,-1\n", BadRowError, "1 edges have a weight that is not a finite"),
    "loops only": ("source,target\na,a\n", DataError, "edges.csv is empty: no usable edge is left."),
    "one column": ("a\nb\n", DataError, "a single column was found"),
    "several blanks": ("a  b\nb c\n", DataError, "separated by several blanks"),
    "no rows": ("source,target\n", DataError, "is empty"),
    "nothing": ("", DataError, "edges.csv is empty."),
}


@pytest.mark.parametrize(("text", "kind", "said"), BAD.values(), ids=BAD)
def test_bad_edges_are_one_line_and_leave_nothing(tmp_path: Path, text: str, kind: type[Exception], said: str) -> None:
    (tmp_path / "edges.csv").write_text(text)
    with pytest.raises(kind) as raised:
        import_graph([tmp_path / "edges.csv"], tmp_path / "graph.topo")
    assert said in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["edges.csv"]


BAD_FEATURES = {
    "a node without": ("id,f\na,1\n", "node 'b' is not in"),
    "twice": ("id,f\na,1\na,2\nb,3\n", "node id 'a' stands there more than once"),
    "no number": ("id,f\na,1\nb,2\nc,x\n", "features.csv, row 2 (from 0): column 'f' is empty or no number."),
    "no features": ("id;f\na;1\nb;2\n", None),
}


@pytest.mark.parametrize(("text", "said"), BAD_FEATURES.values(), ids=BAD_FEATURES)
def test_bad_features(tmp_path: Path, text: str, said: str | None) -> None:
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    (tmp_path / "features.csv").write_text(text)
    arguments: Any = ([tmp_path / "edges.csv"], tmp_path / "graph.topo")
    if said is None:
        import_graph(*arguments, features=[tmp_path / "features.csv"])
        return
    with pytest.raises(DataError) as raised:
        import_graph(*arguments, features=[tmp_path / "features.csv"])
    assert said in str(raised.value)
    assert not (tmp_path / "graph.topo").exists()


def test_an_array_that_is_too_short(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("0,1\n1,5\n")
    np.save(tmp_path / "x.npy", np.ones((3, 2)))
    with pytest.raises(BadRowError, match=r"node '5' is not in .*x\.npy \(1 edges"):
        import_graph([tmp_path / "edges.csv"], tmp_path / "graph.topo", features=[tmp_path / "x.npy"])


def test_an_import_replaces_a_graph_and_nothing_else(tmp_path: Path) -> None:
    edges, out = tmp_path / "edges.csv", tmp_path / "graph.topo"
    edges.write_text("a,b\nb,c\n")
    import_graph([edges], out, header=False)
    edges.write_text("a,b\n")
    assert import_graph([edges], out, header=False)[0].num_edges == 1
    assert GraphDirectory.open(out).num_edges == 1
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="there is something else that would be lost"):
        import_graph([edges], mine)
    assert (mine / "thesis.tex").exists()


def test_more_edges_than_the_memory_limit_are_spilled(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    ends = generator.integers(0, 50_000, (2, 400_000))
    edges = tmp_path / "edges.parquet"
    pq.write_table(pa.table({"source": ends[0], "target": ends[1]}), edges)
    manifest, _ = import_graph([edges], tmp_path / "graph.topo", memory=40_000_000)
    low, high = np.sort(ends, axis=0)
    assert manifest.num_edges == len(np.unique((low * 50_000 + high)[low != high]))
