"""Sets of graphs on the command line: real sub-processes, on the embedded MUTAG and on a user's own folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from sub_processes import fails, topoter

from topoter.cli import app
from topoter.errors import UsageError

EMBEDDED = {"TOPOTER_DATA": ""}  # nothing on disk: MUTAG comes from an installed package


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A user's own set in the TU format: 24 cycles and stars of 5 to 8 nodes, two classes."""
    folder = tmp_path_factory.mktemp("own") / "SHAPES"
    folder.mkdir()
    edges, graph_of, labels, first = [], [], [], 1
    for number in range(24):
        size, star = 5 + number % 4, number % 2
        edges += [(first if star else first + k - 1, first + k) for k in range(1, size)]
        if not star:
            edges.append((first + size - 1, first))
        graph_of += [number + 1] * size
        labels.append(star)
        first += size
    both = sorted(edges + [(b, a) for a, b in edges])
    (folder / "SHAPES_A.txt").write_text("".join(f"{a}, {b}\n" for a, b in both))
    (folder / "SHAPES_graph_indicator.txt").write_text("".join(f"{g}\n" for g in graph_of))
    (folder / "SHAPES_graph_labels.txt").write_text("".join(f"{y}\n" for y in labels))
    return folder


def test_a_folder_of_ones_own_in_one_row_per_graph_out(folder, tmp_path):
    fitted = topoter("fit", folder, "-o", "m.topoter", "--epochs", 2, "--json", cwd=tmp_path)
    assert fitted.returncode == 0, fitted.stderr
    content = json.loads(fitted.stdout)
    assert (content["graphs"], content["epochs"]) == (24, 2)
    assert content["nodes"] == sum(5 + number % 4 for number in range(24))
    result = topoter("embed", "m.topoter", folder, "-o", "z.parquet", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "24 graphs, " in result.stderr
    table = pq.read_table(tmp_path / "z.parquet")
    assert table.column("id").to_pylist() == list(range(24))
    z = np.array(table.column("embedding").to_pylist())
    np.testing.assert_allclose(z[0], z[8], rtol=1e-4, atol=1e-5)  # both a cycle of five
    assert np.abs(z[0] - z[1]).max() > 1e-3


def test_the_width_of_a_gin_is_that_of_its_layers_and_it_has_no_order(folder, tmp_path):
    narrow = topoter(
        "fit", folder, "-o", "m.topoter", "--encoder", "gin", "--epochs", 1, "--channels", 4, "--json", cwd=tmp_path
    )
    assert narrow.returncode == 0, narrow.stderr
    embedded = topoter("embed", "m.topoter", folder, "-o", "z.npy", "--json", cwd=tmp_path)
    assert json.loads(embedded.stdout)["channels"] == 3 * 4
    wrong = fails(2, "fit", folder, "-o", "n.topoter", "--encoder", "gin", "--order", 2, cwd=tmp_path)
    assert "--order goes with the encoders hops and sgc: gin reaches as many hops" in wrong
    assert "fit a model on one graph first" in fails(2, "links", "m.topoter", "embedded-cora", cwd=tmp_path)


def test_evaluate_graph_prints_the_promised_json():
    result = topoter("evaluate", "graph", "--seeds", 2, "--epochs", 1, "--json", "--quiet", **EMBEDDED)
    assert result.returncode == 0, result.stderr
    content = json.loads(result.stdout)
    assert (content["task"], content["dataset"], content["method"]) == ("graph", "mutag", "topoter")
    assert (content["metric"], len(content["runs"])) == ("accuracy", 2)
    assert content["paper"] == {"mean": 89.25, "std": 0.81}
    assert content["mean"] == pytest.approx(sum(content["runs"]) / 2)


def test_reproduce_goes_on_where_it_was(tmp_path):
    arguments = ["reproduce", "graph-classification", "--datasets", "mutag", "--methods", "degree-histogram,wl"]
    first = topoter(*arguments, "--seeds", 1, "--out", tmp_path, "--quiet", **EMBEDDED)
    assert first.returncode == 0, first.stderr
    assert "| wl |" in first.stdout
    assert "80.7 ± 3.0" in first.stdout  # the paper's
    runs = (tmp_path / "graph-classification.jsonl").read_text().splitlines()
    assert len(runs) == 2
    topoter(*arguments, "--seeds", 2, "--out", tmp_path, "--quiet", **EMBEDDED)
    again = (tmp_path / "graph-classification.jsonl").read_text().splitlines()
    assert len(again) == 4
    assert set(runs) < set(again)  # with the seconds that they took then


def test_the_demo_on_graphs_runs_offline(tmp_path):
    result = topoter("demo", "--task", "graph", "--seeds", 1, "--out", tmp_path / "demo", **EMBEDDED)
    assert result.returncode == 0, result.stderr
    assert "degree-histogram" in result.stdout
    page = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    assert "Graph classification on MUTAG" in page
    assert "test nodes" not in page
    assert pq.read_table(tmp_path / "demo" / "embeddings.parquet").num_rows == 188
    assert (tmp_path / "demo" / "model.topoter").is_file()


def test_molecules_in_rows_by_name_out(tmp_path, capsys, monkeypatch):
    """In this process: what is new is which files are read, not how a process ends."""
    pytest.importorskip("rdkit")
    table = Path(__file__).parents[2] / "examples" / "molecules.csv"
    monkeypatch.chdir(tmp_path)
    smiles = ["--smiles-column", "smiles"]
    called("fit", table, *smiles, "-o", "m.topoter", "--epochs", 2)
    said = capsys.readouterr().err
    assert "160 graphs with 1,888 nodes" in said
    assert "atom=Cl" in said
    called("embed", "m.topoter", table, *smiles, "-o", "z.csv", "--quiet")
    ids = [line.split(",")[0] for line in (tmp_path / "z.csv").read_text().splitlines()]
    assert ids[1:] == [f'"m{number:03d}"' for number in range(160)]
    capsys.readouterr()
    called(
        "evaluate", "graph", "--graph", table, *smiles, "--label-column", "acid", "--seeds", 1, "--epochs", 2, "--json"
    )
    rows = {row["method"]: row["mean"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["topoter"] > 95  # atoms are the same in both classes: it is their neighbourhoods that tell
    assert rows["degree-histogram"] < 70
    (tmp_path / "one.txt").write_text("acid\n" + "yes\nno\n" * 80)
    called("explore", "z.csv", "--labels", "one.txt", "--map", "pca", "--json", "-q")
    assert json.loads(capsys.readouterr().out)["columns"] == ["acid"]
    called("fit", table, *smiles, "--dry-run")
    assert "one-hot: 7 categories" in capsys.readouterr().out


def test_edges_with_a_graph_column_and_labels_of_graphs(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    edges, labels = ["graph,a,b"], ["id,kind"]
    for number in range(24):
        size, star = 5 + number % 4, number % 2
        edges += [f"g{number},{0 if star else node - 1},{node}" for node in range(1, size)]
        labels.append(f"g{number},{'star' if star else 'chain'}")
    (tmp_path / "edges.csv").write_text("\n".join(edges))
    (tmp_path / "labels.csv").write_text("\n".join(labels[:-1]))  # one graph has no label
    arguments = ["--graph", "edges.csv", "--graph-column", "graph", "--seeds", 1, "--epochs", 1, "--json"]
    called("evaluate", "graph", *arguments, "--labels", "labels.csv")
    captured = capsys.readouterr()
    assert "labels.csv: 23 of 24 graphs have a label: chain 12, star 11." in captured.err
    assert {row["method"]: row["mean"] for row in json.loads(captured.out)["rows"]}["topoter"] > 90
    with pytest.raises(UsageError, match=r"Of which classes are the graphs of edges\.csv"):
        called("evaluate", "graph", *arguments)
    (tmp_path / "molecules.sdf").write_text("")
    with pytest.raises(
        UsageError, match=r"molecules\.sdf is a set of graphs, which fit, embed and evaluate graph take"
    ):
        called("estimate", "molecules.sdf")
    with pytest.raises(UsageError, match="go with a GRAPH, not with --snapshots"):
        called("fit", "--snapshots", "edges.csv", "--graph-column", "graph")


def called(*arguments: object) -> None:
    """A command in this process."""
    app([str(argument) for argument in arguments], standalone_mode=False)


# ---- bad input ---------------------------------------------------------------------------------------------


def test_a_graph_without_nodes_is_named(folder, tmp_path):
    for file in folder.iterdir():
        (tmp_path / file.name).write_text(file.read_text())
    labels = tmp_path / "SHAPES_graph_labels.txt"
    labels.write_text(labels.read_text() + "1\n")  # a 25th graph, which no node belongs to
    line = fails(1, "fit", tmp_path, "-o", tmp_path / "m.topoter", "--quiet")
    assert "Graph 24 of the set (counted from 0): The graph is empty" in line
    assert not (tmp_path / "m.topoter").exists()


def test_a_class_with_fewer_members_than_folds_is_named_before_any_training(folder, tmp_path):
    raw = tmp_path / "tu" / "SHAPES" / "raw"
    raw.mkdir(parents=True)
    for file in folder.iterdir():
        (raw / file.name).write_text(file.read_text())
    labels = (raw / "SHAPES_graph_labels.txt").read_text().split()
    (raw / "SHAPES_graph_labels.txt").write_text("\n".join(["2"] * 3 + labels[3:]) + "\n")
    line = fails(1, "evaluate", "graph", "--dataset", "shapes", "--data-root", tmp_path, "--quiet")
    assert "Class 2 has 3 graphs, fewer than the 10 folds" in line


def test_one_graph_and_a_set_are_not_mixed_up(folder, tmp_path):
    assert topoter("fit", folder, "-o", "m.topoter", "--epochs", 1, "-q", cwd=tmp_path).returncode == 0
    line = fails(2, "embed", "m.topoter", "sbm", "-o", "z.npy", "-q", cwd=tmp_path)
    assert "sbm is one graph, but m.topoter was fitted on a set of graphs" in line
    line = fails(2, "fit", "mutag", "--features", "x.csv", "-o", "n.topoter", "-q", cwd=tmp_path)
    assert "--features: this does not go with the set 'mutag'" in line
    line = fails(2, "fit", folder, "--pooling", "summ", "-o", "n.topoter", "-q", cwd=tmp_path)
    assert "Unknown pooling 'summ'. Did you mean 'sum'?" in line
    assert "Unknown task 'grph'. Did you mean 'graph'?" in fails(2, "demo", "--task", "grph", cwd=tmp_path)
