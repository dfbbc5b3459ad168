"""Sets of graphs from users' files: which graph and which node a row belongs to, and what is said of a bad one."""

from __future__ import annotations

import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from topoter.errors import DataError, UsageError
from topoter.graphs import read_graphs
from topoter.graphs.features import STRUCTURAL_NAMES
from topoter.graphs.node_tables import columns_for

EDGES = "mol,source,target\nb,1,2\na,1,2\na,2,3\nb,2,1\n"  # ids recur, graphs are not in order


@pytest.fixture
def edges(tmp_path) -> Path:
    return written(tmp_path / "edges.csv", EDGES)


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def pairs(graph) -> list[list[int]]:
    return graph.edge_index.t().tolist()


# ---- edges with a graph column -----------------------------------------------------------------------------


def test_an_edge_belongs_to_its_graph_and_nodes_are_ids_within_it(edges):
    (a, b), notes = read_graphs(edges, graph_column="mol")
    assert (a.graph_id, b.graph_id) == ("a", "b")
    assert (list(a.node_ids), list(b.node_ids)) == ([1, 2, 3], [1, 2])
    assert (pairs(a), pairs(b)) == ([[0, 1], [1, 2]], [[0, 1], [1, 0]])
    assert a.feature_names == STRUCTURAL_NAMES
    np.testing.assert_allclose(a.x[:, 0].exp() - 1, [1, 2, 1], rtol=1e-6)  # degrees within the graph
    assert notes[-1].startswith(f"{edges}: 2 graphs with 5 nodes and 4 edges. No features given")


def test_features_by_id_hold_in_every_graph(edges, tmp_path):
    table = written(tmp_path / "nodes.csv", "id,kind,size\n1,C,0.5\n2,O,1.5\n3,N,2.5\n9,C,1\n")
    (a, b), notes = read_graphs(edges, graph_column="mol", features=table)
    kind = [a.feature_names.index(f"kind={value}") for value in "CON"]
    np.testing.assert_array_equal(a.x[:, kind], np.eye(3))
    np.testing.assert_array_equal(b.x[:, kind], np.eye(3)[:2])
    assert a.table.arrow["kind"].to_pylist() == ["C", "O", "N"]
    assert a.table.preparation is b.table.preparation
    assert notes[-1].startswith(f"{edges}: 2 graphs with 5 nodes and 4 edges. Features of a node, 4: ")
    assert "kind=N" in notes[-1]


def test_features_by_graph_and_id_may_differ_and_name_nodes_without_edges(edges, tmp_path):
    rows = "b,2,O\na,1,C\na,2,C\na,3,N\nb,1,N\nb,7,O\nc,1,O\n"
    table = written(tmp_path / "nodes.csv", "mol,atom,element\n" + rows)
    (a, b, c), _ = read_graphs(edges, graph_column="mol", features=table)
    assert [graph.table.arrow["element"].to_pylist() for graph in (a, b, c)] == [
        ["C", "C", "N"],
        ["O", "N", "O"],
        ["O"],
    ]
    assert [list(graph.node_ids) for graph in (a, b, c)] == [[1, 2, 3], [2, 1, 7], [1]]
    assert (pairs(a), pairs(b), pairs(c)) == ([[0, 1], [1, 2]], [[1, 0], [0, 1]], [])
    names = b.feature_names
    assert [names[column] for column in b.x.argmax(dim=1)] == ["element=O", "element=N", "element=O"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,1,C\na,2,C\nb,1,N\nb,2,O\n", "edges.csv, line 4: node '3 of graph a' is not in "),
        (
            "a,1,C\na,2,C\na,3,N\na,1,O\nb,1,N\nb,2,O\n",
            "nodes.csv, line 5: node 1 of graph a stands here a second time",
        ),
        ("a,1,C\n,2,C\n", "nodes.csv, line 3: no node id in column 'mol'"),
    ],
)
def test_a_bad_row_is_named_or_dropped(edges, tmp_path, rows, message):
    table = written(tmp_path / "nodes.csv", "mol,atom,element\n" + rows)
    with pytest.raises(DataError) as error:
        read_graphs(edges, graph_column="mol", features=table)
    assert message in str(error.value)
    assert "Dropped" in " ".join(read_graphs(edges, graph_column="mol", features=table, drop_bad=True)[1])


def test_weights_follow_their_edges_and_a_missing_graph_id_is_said(tmp_path):
    text = "g,source,target,weight\n2,a,b,0.5\n1,a,b,2\n2,b,c,4\n"
    one, two = read_graphs(written(tmp_path / "edges.csv", text), graph_column="g")[0]
    assert (one.edge_weight.tolist(), two.edge_weight.tolist()) == ([2], [0.5, 4])
    bad = written(tmp_path / "bad.csv", text + ",c,d,1\n")
    with pytest.raises(DataError, match=r"bad.csv, line 5: no node id in column 'g'"):
        read_graphs(bad, graph_column="g")


# ---- a folder ----------------------------------------------------------------------------------------------


def test_a_folder_of_graphml_has_one_hot_words_the_same_in_all(tmp_path):
    for name, atoms in {"ring": "CCN", "chain": "COCC"}.items():
        graph = nx.path_graph(len(atoms))
        nx.set_node_attributes(graph, dict(enumerate(atoms)), "atom")
        nx.write_graphml(graph, tmp_path / f"{name}.graphml")
    (chain, ring), notes = read_graphs(tmp_path)
    assert (chain.graph_id, ring.graph_id) == ("chain", "ring")
    assert chain.feature_names == ring.feature_names == ["atom=C", "atom=N", "atom=O"]
    assert ring.x.tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert "Features of a node, 3: atom=C, atom=N, atom=O." in notes[-1]
    with pytest.raises(UsageError, match="--features does not go with a folder of GraphML"):
        read_graphs(tmp_path, features="nodes.csv")


# ---- molecules ---------------------------------------------------------------------------------------------

SMILES = "name,smiles,active\nethanol,CCO,yes\nbenzonitrile,c1ccccc1C#N,no\nacetate,CC(=O)[O-],\n"


@pytest.fixture
def chem():
    return pytest.importorskip("rdkit.Chem")


@pytest.mark.usefixtures("chem")
def test_atoms_and_bonds_of_smiles_become_features(tmp_path):
    path = written(tmp_path / "molecules.csv", SMILES)
    (ethanol, nitrile, acetate), notes = read_graphs(path, smiles_column="smiles", label_column="active")
    assert [graph.graph_id for graph in (ethanol, nitrile, acetate)] == ["ethanol", "benzonitrile", "acetate"]
    assert [graph.label for graph in (ethanol, nitrile, acetate)] == ["yes", "no", ""]
    known = ethanol.table.arrow.to_pydict()
    assert known["atom"] == ["C", "C", "O"]
    assert (known["hydrogens"], known["single bonds"]) == ([3, 2, 1], [1, 2, 1])
    known = nitrile.table.arrow.to_pydict()
    assert known["aromatic bonds"] == [2] * 6 + [0, 0]
    assert known["triple bonds"] == [0] * 6 + [1, 1]
    assert acetate.table.arrow["charge"].to_pylist() == [0, 0, 0, -1]
    assert {"atom=C", "atom=N", "atom=O", "charge", "hydrogens", "double bonds"} <= set(ethanol.feature_names)
    assert "Features of a node" in notes[-1]


def test_a_bad_molecule_is_named_with_its_line_or_dropped(tmp_path, chem, capfd):
    path = written(tmp_path / "molecules.csv", SMILES + "five,C(C)(C)(C)(C)C,no\n")
    with pytest.raises(DataError, match=r"molecules.csv, line 5: 'C\(C\)\(C\)\(C\)\(C\)C' is no molecule: .*valence"):
        read_graphs(path, smiles_column="smiles")
    graphs, notes = read_graphs(path, smiles_column="smiles", drop_bad=True)
    assert len(graphs) == 3
    assert any("Dropped 1 rows that hold no molecule" in note for note in notes)
    assert capfd.readouterr().err == ""  # RDKit's own lines are not shown
    open_ring = written(tmp_path / "ring.csv", "smiles\nC1CC\n")
    with pytest.raises(DataError, match="RDKit cannot read it"):
        read_graphs(open_ring, smiles_column="smiles")


@pytest.mark.usefixtures("chem")
def test_molecules_without_names_of_their_own_are_numbered(tmp_path):
    path = written(tmp_path / "molecules.csv", "smiles,note\nCCO,a\nCCO,b\nCCC,b\n")
    graphs, notes = read_graphs(path, smiles_column="smiles")
    assert [graph.graph_id for graph in graphs] == [0, 1, 2]
    assert any("numbered from 0" in note for note in notes)
    with pytest.raises(DataError, match="the column 'note' does not name each molecule"):
        read_graphs(path, smiles_column="smiles", id_column="note")


def test_an_sdf_file_gives_the_molecules_that_its_smiles_give(tmp_path, chem):
    path = tmp_path / "molecules.sdf"
    with chem.SDWriter(str(path)) as writer:
        for number, (name, smiles) in enumerate({"ethanol": "CCO", "acetate": "CC(=O)[O-]"}.items()):
            mol = chem.AddHs(chem.MolFromSmiles(smiles))  # hydrogens of a file are counted at their atoms
            mol.SetProp("_Name", name)
            mol.SetProp("code", f"x{number}")
            writer.write(mol)
    graphs, _ = read_graphs(path, label_column="code")
    other, _ = read_graphs(written(tmp_path / "m.csv", "n,smiles\n1,CCO\n2,CC(=O)[O-]\n"), smiles_column="smiles")
    assert [(graph.graph_id, graph.label) for graph in graphs] == [("ethanol", "x0"), ("acetate", "x1")]
    for ours, theirs in zip(graphs, other):
        assert ours.table.arrow.equals(theirs.table.arrow)
        assert pairs(ours) == pairs(theirs)
    assert [graph.graph_id for graph in read_graphs(path, id_column="code")[0]] == ["x0", "x1"]
    with pytest.raises(UsageError, match="Unknown property 'cod'"):
        read_graphs(path, label_column="cod")
    broken = written(tmp_path / "broken.sdf", path.read_text().replace("M  END", "", 1))
    with pytest.raises(DataError, match=r"broken\.sdf, molecule 1: "):
        read_graphs(broken)


def test_without_rdkit_one_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rdkit", None)
    with pytest.raises(UsageError, match=r'^Molecules need RDKit: pip install "topoter\[molecules\]".$'):
        read_graphs(written(tmp_path / "molecules.csv", SMILES), smiles_column="smiles")


def test_what_does_not_make_a_set_is_said(edges, tmp_path):
    with pytest.raises(UsageError, match=r"name its column of graph ids \(--graph-column\)"):
        read_graphs(edges)
    with pytest.raises(UsageError, match="not both"):
        read_graphs(edges, graph_column="mol", smiles_column="mol")
    with pytest.raises(UsageError, match="Unknown column 'mole'"):
        read_graphs(edges, graph_column="mole")
    with pytest.raises(DataError, match="no such file"):
        read_graphs(tmp_path / "none.csv", graph_column="mol")


# ---- labels in one column ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"), [("kind\nx\ny\nx\n", "kind"), ("1\n2\n1\n", "labels"), ("x\ny\nx\n", "labels")]
)
def test_a_single_column_is_read_row_by_row(tmp_path, text, name):
    columns, notes = columns_for(written(tmp_path / "labels.csv", text), ["a", "b", "c"])
    (values,) = columns.values()
    assert list(columns) == [name]
    assert values[0] == values[2] != values[1]
    assert "in the order of the embeddings" in notes[0]


def test_a_single_column_of_another_length_is_refused(tmp_path):
    path = written(tmp_path / "labels.csv", "1\n2\n")
    with pytest.raises(DataError, match="one column of 2 values, but there are 4 embeddings"):
        columns_for(path, list("abcd"))
