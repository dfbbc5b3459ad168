"""A practitioner's way: fit on own files, embed new ones, cluster, find neighbours, explore."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow.csv as pacsv
import pytest
from own_files import write_graph
from sub_processes import fails, topoter

from topoter.datasets import block_model


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """edges.csv, features.csv (numbers and a category), labels.csv, model.topoter, z.parquet."""
    folder = tmp_path_factory.mktemp("own")
    data = block_model(num_nodes=90, num_blocks=3, mean_degree=8.0, num_features=6, seed=0)
    write_graph(folder, data)
    header, *rows = (folder / "features.csv").read_text().splitlines()
    colours = [("red", "green", "blue")[i % 3] for i in range(len(rows))]
    lines = [f"{header},colour", *(f"{row},{colour}" for row, colour in zip(rows, colours))]
    (folder / "features.csv").write_text("\n".join(lines) + "\n")
    labels = "".join(f"n{i},<b>{block}</b>,{i / 10}\n" for i, block in enumerate(data.y.tolist()))
    (folder / "labels.csv").write_text("id,block,score\n" + labels)
    fitted = topoter(
        "fit", "edges.csv", "--features", "features.csv", "-o", "model.topoter", "--epochs", 30, "--channels", 16,
        "--quiet", cwd=folder,
    )  # fmt: skip
    assert fitted.returncode == 0, fitted.stderr
    embedded = topoter(
        "embed", "model.topoter", "edges.csv", "--features", "features.csv", "-o", "z.parquet", "--quiet", cwd=folder
    )
    assert embedded.returncode == 0, embedded.stderr
    return folder


def test_new_nodes_with_columns_in_another_order_and_fewer_categories(files, tmp_path):
    (tmp_path / "edges.csv").write_text("a b\nb c\n")
    (tmp_path / "nodes.csv").write_text(
        "id,colour,f5,f4,f3,f2,f1,f0\na,red,1,0,0,0,0,0\nb,red,0,1,0,0,0,0\nc,green,0,0,0,0,0,1\n"
    )
    result = topoter(
        "embed", files / "model.topoter", "edges.csv", "--features", "nodes.csv", "-o", "z.csv", cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert "with 9 features each" in result.stderr, "as many as at fit: the model's own preparation"
    assert pacsv.read_csv(tmp_path / "z.csv")["id"].to_pylist() == ["a", "b", "c"]


def test_a_model_with_features_says_so_where_there_are_none(files, tmp_path):
    line = fails(1, "embed", files / "model.topoter", files / "edges.csv", "-o", tmp_path / "z.csv", "--quiet")
    assert "but this graph has none. Give its features (--features FILE" in line


def test_a_column_of_times_is_no_weight(tmp_path):
    (tmp_path / "events.txt").write_text("".join(f"{i} {(i * 7 + 1) % 30} {1_600_000_000 + i}\n" for i in range(30)))
    arguments = ["fit", "events.txt", "--epochs", 1, "--channels", 4, "-o", "m.topoter"]
    assumed = topoter(*arguments, cwd=tmp_path)
    assert "If it is a time, name it as the time column." in " ".join(assumed.stderr.split())
    told = topoter(*arguments, "--time-column", 3, cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "weight" not in told.stderr


def test_a_first_line_is_read_as_the_user_says(files, tmp_path):
    rows = (files / "edges.csv").read_text().partition("\n")[2]
    (tmp_path / "edges.csv.gz").write_bytes(gzip.compress(("a,b\n" + rows).encode()))
    fit = ["fit", "edges.csv.gz", "--epochs", 1, "--channels", 4, "-o", "m.topoter", "--json"]
    found = topoter(*fit, cwd=tmp_path)
    assert json.loads(found.stdout)["nodes"] == 90
    assert "with the header a, b" in found.stderr
    assert "--no-header" in found.stderr
    embed = ["embed", "m.topoter", "edges.csv.gz", "--no-header", "-o", "z.csv", "--json", "-q"]
    assert json.loads(topoter(*embed, cwd=tmp_path).stdout)["nodes"] == 92
    links = topoter("links", "m.topoter", "edges.csv.gz", "--header", "--top", 3, "-q", cwd=tmp_path)
    assert links.returncode == 0, links.stderr


def test_cluster(files, tmp_path):
    shown = topoter("cluster", files / "z.parquet", "-o", tmp_path / "c.csv")
    assert shown.returncode == 0, shown.stderr
    assert "silhouette" in shown.stdout
    assert shown.stdout.strip().endswith("c.csv")
    content = json.loads(
        topoter("cluster", files / "z.parquet", "-k", 3, "-o", tmp_path / "c.csv", "--json", "--quiet").stdout
    )
    assert (content["nodes"], content["clusters"], sum(content["sizes"])) == (90, 3, 90)
    assert -1 <= content["silhouette"] <= 1
    table = pacsv.read_csv(tmp_path / "c.csv")
    assert table.column_names == ["id", "cluster", "distance"]
    assert table["id"].to_pylist() == [f"n{i}" for i in range(90)]


def test_neighbors(files, tmp_path):
    (first, second) = json.loads(topoter("neighbors", files / "z.parquet", "n3", "n7", "-k", 4, "--json").stdout)
    assert (first["id"], second["id"]) == ("n3", "n7")
    cosines = [value for _, value in first["neighbors"]]
    assert len(cosines) == 4
    assert cosines == sorted(cosines, reverse=True)
    assert "n3" not in [name for name, _ in first["neighbors"]]
    assert topoter("neighbors", files / "z.parquet", "-o", tmp_path / "n.csv", "-k", 2).returncode == 0
    assert len(pacsv.read_csv(tmp_path / "n.csv")) == 180
    assert "Did you mean 'n33'?" in fails(2, "neighbors", files / "z.parquet", "n333")
    assert "Give their ids, or --out FILE" in fails(2, "neighbors", files / "z.parquet")


def test_explore(files, tmp_path):
    arguments = ["--labels", files / "labels.csv", "--graph", files / "edges.csv", "-o", tmp_path / "e.html"]
    result = topoter("explore", files / "z.parquet", *arguments, "--json")
    assert result.returncode == 0, result.stderr
    content = json.loads(result.stdout)
    assert content | {"page": ""} == {
        "page": "", "nodes": 90, "map": "tsne", "columns": ["block", "score"], "notes": [],
    }  # fmt: skip
    text = (tmp_path / "e.html").read_text()
    assert "<b>0</b>" not in text
    before = (tmp_path / "e.html").read_bytes()
    (tmp_path / "other.csv").write_text("id,kind\nq,x\n")
    line = fails(1, "explore", files / "z.parquet", "--labels", tmp_path / "other.csv", "-o", tmp_path / "e.html", "-q")
    assert "none of its ids is that of a node" in line
    assert (tmp_path / "e.html").read_bytes() == before, "what stood there before stays"


@pytest.mark.parametrize(
    ("code", "arguments", "text"),
    [
        (1, ["cluster", "none.parquet"], "none.parquet: no such file"),
        (1, ["cluster", "z.parquet", "-k", "999"], "90 different embeddings: too few for 999 clusters"),
        (2, ["cluster", "z.parquet", "-k", "2", "-o", "c.xls"], "unknown extension '.xls'"),
        (1, ["cluster", "edges.csv"], "edges.csv does not hold embeddings: it has no column 'id'"),
        (2, ["cluster", "z.parquet", "--seed", "-1"], "'--seed'"),
        (2, ["explore", "z.parquet", "--map", "umap"], "--map must be one of tsne, pca. Got 'umap'"),
        (2, ["explore", "z.parquet", "--id-column", "id"], "give --labels too"),
        (2, ["explore", "z.parquet", "-o", "no/e.html"], "does not exist"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_calls_are_one_line(files, code, arguments, text):
    before = sorted(files.iterdir())
    assert text in fails(code, *arguments, cwd=files)
    assert sorted(files.iterdir()) == before
