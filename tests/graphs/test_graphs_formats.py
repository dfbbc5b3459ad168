"""Graph files other than edge lists, and graphs that are Python objects."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from reading_errors import error_of
from torch_geometric.data import Data

import topoter
from topoter.errors import DataError, UsageError
from topoter.graphs import as_data, read_graph


class Hostile:
    """Unpickled without care, this makes a folder."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_scipy_npz(tmp_path):
    path = tmp_path / "a.npz"
    scipy.sparse.save_npz(path, scipy.sparse.csr_matrix(np.array([[0, 2.0], [1, 0]])))
    data, _ = read_graph(path)
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]
    assert data.edge_weight.tolist() == [2, 1]
    np.save(tmp_path / "x.npy", np.ones((3, 1)))
    assert error_of(path, features=tmp_path / "x.npy") == "x.npy has 3 rows, but a.npz has 2 nodes."
    scipy.sparse.save_npz(path, scipy.sparse.csr_matrix(np.array([[0, -2.0], [1, 0]])))
    assert error_of(path) == "a.npz, entry [0, 1]: edge weight -2.0 is not a finite number >= 0."
    data, notes = read_graph(path, drop_bad=True)
    assert data.edge_index.tolist() == [[1], [0]]
    assert "Dropped 1 edges with a bad weight." in notes
    scipy.sparse.save_npz(path, scipy.sparse.csr_matrix(np.ones((2, 3))))
    assert error_of(path) == "a.npz: an adjacency matrix must be square. Got [2, 3] instead."
    np.savez(path, x=np.ones(3))
    assert error_of(path).startswith("a.npz is not a SciPy sparse matrix (scipy.sparse.save_npz writes one)")
    path.write_bytes(b"PK\x03\x04 cut")
    assert error_of(path).endswith("File is not a zip file")
    np.savez(path, format=np.array("csr"), data=np.array([Hostile(tmp_path / "harm")]), allow_pickle=True)
    assert "a.npz is not a SciPy sparse matrix" in error_of(path)
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("kind", ["graphml", "gml"])
def test_networkx_files(tmp_path, kind):
    graph = nx.Graph()
    graph.add_node("b", age=2, name="Bea", label_text="x")
    graph.add_node("a", age=1.5, name="Abe")
    graph.add_node("lonely", age=3)
    graph.add_edge("b", "a", weight=0.5)
    path = tmp_path / f"g.{kind}"
    getattr(nx, f"write_{kind}")(graph, path)
    data, notes = read_graph(path)
    assert data.node_ids == ["b", "a", "lonely"]
    assert data.edge_index.tolist() == [[0], [1]]
    assert data.edge_weight.tolist() == [0.5]
    assert data.feature_names == ["age", "label_text=x"]
    assert data.x[:, 1].tolist() == [1, 0, 0]
    assert any("left out: name (every node has its own)" in note for note in notes)
    (tmp_path / "f.csv").write_text("id,v\na,1\nb,2\nlonely,3\n")
    data, _ = read_graph(path, features=tmp_path / "f.csv")
    assert data.node_ids == ["a", "b", "lonely"]
    assert data.edge_index.tolist() == [[1], [0]]
    (tmp_path / "f.csv").write_text("id,v\na,1\nb,2\n")
    assert error_of(path, features=tmp_path / "f.csv") == f"g.{kind}: node 'lonely' is not in f.csv."
    path.write_text("<graph")
    assert error_of(path).startswith(f"g.{kind} is not a {'GraphML' if kind == 'graphml' else 'GML'} file: ")


def test_gml_without_labels_uses_ids(tmp_path):
    path = tmp_path / "g.gml"
    path.write_text("graph [\n node [ id 5 ]\n node [ id 7 ]\n edge [ source 5 target 7 ]\n]\n")
    data, notes = read_graph(path)
    assert data.node_ids.tolist() == [5, 7]
    assert any("named by their id" in note for note in notes)


def test_without_networkx_the_extra_is_named(tmp_path, monkeypatch):
    (tmp_path / "g.gml").write_text("graph []")
    monkeypatch.setitem(sys.modules, "networkx", None)
    assert error_of(tmp_path / "g.gml") == 'GraphML and GML need NetworkX: pip install "topoter[baselines]".'


def test_pt_round_trip_keeps_everything(tmp_path):
    path = tmp_path / "g.pt"
    edge_index = torch.tensor([[0, 1], [1, 2]])
    graph = Data(x=torch.eye(3), edge_index=edge_index, y=torch.arange(3), node_ids=np.array([5, 6, 7]))
    torch.save(graph, path)
    data, _ = read_graph(path)
    assert torch.equal(data.x, graph.x)
    assert data.y.tolist() == [0, 1, 2]
    assert data.node_ids.tolist() == [5, 6, 7]
    torch.save({"edge_index": edge_index}, path)
    data, notes = read_graph(path)
    assert data.num_nodes == 3
    assert any("No features given" in note for note in notes)
    np.save(tmp_path / "x.npy", np.ones((3, 4)))
    data, _ = read_graph(path, features=tmp_path / "x.npy")
    assert data.num_features == 4


def test_reading_a_pt_leaves_what_torch_may_load_as_it_was(tmp_path):
    before = set(map(str, torch.serialization.get_safe_globals()))
    torch.save(Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]])), tmp_path / "g.pt")
    read_graph(tmp_path / "g.pt")
    assert set(map(str, torch.serialization.get_safe_globals())) == before


def test_hostile_and_wrong_pt_are_refused(tmp_path):
    path, harm = tmp_path / "g.pt", tmp_path / "harm"
    path.write_bytes(pickle.dumps(Hostile(harm)))
    assert error_of(path).startswith("g.pt cannot be loaded safely as a PyG graph: ")
    torch.save(Data(x=Hostile(harm)), path)
    assert error_of(path).startswith("g.pt cannot be loaded safely as a PyG graph: ")
    assert not harm.exists()
    for content in (b"", b"nope"):
        path.write_bytes(content)
        assert error_of(path).endswith("as a PyG graph: it is damaged, or no file of torch.save")
    torch.save([1, 2], path)
    assert error_of(path) == "g.pt holds a list, not one PyG graph (torch_geometric.data.Data)."
    torch.save(Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [2]])), path)
    assert error_of(path) == "g.pt: Edge 0 (0 -> 2): node 2 does not exist, the graph has 2 nodes."


def test_as_data_does_not_change_a_pyg_graph():
    graph = Data(x=torch.ones(2, 3, dtype=torch.float64), edge_index=torch.tensor([[0], [1]]))
    data = as_data(graph)
    assert graph.x.dtype == torch.float64
    assert "node_ids" not in graph
    assert data.x.dtype == torch.float32
    assert data.node_ids.tolist() == [0, 1]
    assert as_data(graph, x=np.zeros((2, 5))).num_features == 5
    assert as_data(Data(edge_index=torch.tensor([[0, 0], [1, 2]]))).x[0, 0] == pytest.approx(np.log(3))
    with pytest.raises(DataError, match=r"edge_index is missing"):
        as_data(Data(x=torch.ones(2, 2)))


def test_as_data_from_networkx():
    graph = nx.DiGraph([("p", "q"), ("q", "p")])
    data = as_data(graph)
    assert data.node_ids == ["p", "q"]
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]
    assert data.feature_names == ["log_degree", "constant"]
    nx.set_node_attributes(graph, {"p": [1.0, 2.0], "q": [3.0, 4.0]}, "x")
    assert as_data(graph).x.tolist() == [[1, 2], [3, 4]]
    assert as_data(graph, x=[[9], [8]]).x.tolist() == [[9], [8]]
    graph.nodes["q"]["x"] = [1.0]
    with pytest.raises(DataError, match="lists of 1 and 2 values"):
        as_data(graph)
    club = as_data(nx.karate_club_graph())
    assert club.feature_names == ["club=Mr. Hi", "club=Officer"], "words are one-hot"
    assert club.node_ids.tolist() == list(range(34))
    with pytest.raises(DataError, match="no nodes"):
        as_data(nx.Graph())


def test_as_data_from_scipy():
    adjacency = scipy.sparse.random_array((5, 5), density=0.5, rng=np.random.default_rng(0)).tocsr()
    adjacency.data[:] = 1
    x = scipy.sparse.csr_matrix(np.eye(5))
    data = as_data(adjacency, x=x)
    assert data.x.layout == torch.sparse_csr
    assert data.get("edge_weight") is None
    dense = torch.zeros(5, 5)
    dense[data.edge_index[0], data.edge_index[1]] = 1
    assert np.array_equal(dense.numpy(), adjacency.toarray())
    with pytest.raises(DataError, match="x has 4 rows, but The matrix has 5 nodes"):
        as_data(adjacency, x=np.ones((4, 1)))


def test_as_data_from_pandas():
    frame = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"], "weight": [1.0, 2.0]})
    data = as_data(frame)
    assert data.node_ids == ["a", "b", "c"]
    assert data.edge_weight.tolist() == [1, 2]
    frame = pd.DataFrame({"u": [0, 1], "v": [1, 3]}, index=[7, 8])
    assert as_data(frame, x=np.ones((5, 1))).num_nodes == 5
    with pytest.raises(DataError, match="DataFrame, row 1: node 3 does not exist: x has 3 rows"):
        as_data(frame, x=np.ones((3, 1)))
    with pytest.raises(DataError, match="The DataFrame is empty"):
        as_data(frame[:0])


def test_as_data_says_what_it_accepts():
    with pytest.raises(UsageError, match=r"PyG's Data, a NetworkX graph, a SciPy .* Got builtins.list instead"):
        as_data([1, 2])


def test_importing_does_not_load_what_is_not_used():
    heavy = "{'pyarrow', 'networkx', 'pandas', 'torch_geometric'}"
    files = [
        "text",
        "tables",
        "edge_lists",
        "features",
        "objects",
        "writers",
        "snapshots",
        "reading",
    ]
    imports = "; ".join(f"importlib.import_module('topoter.graphs.{name}')" for name in files)
    # The package itself may import more: a bare stand-in leaves only this folder to answer for.
    stand_in = f"p = types.ModuleType('topoter'); p.__path__ = [{topoter.__path__[0]!r}]"
    prelude = f"import sys, types, importlib; {stand_in}; sys.modules['topoter'] = p"
    code = f"{prelude}; {imports}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
