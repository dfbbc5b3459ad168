"""New nodes within an imported graph: the embeddings they have if all is embedded together, from a part of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from topoter import TopoTER
from topoter.block_embedding import embed_in_blocks
from topoter.datasets import block_model
from topoter.errors import DataError, UsageError
from topoter.graphs import GraphDirectory, read_graph
from topoter.graphs.importing import import_graph
from topoter.graphs.new_nodes import read_new_nodes
from topoter.new_node_embedding import embed_new_nodes

pytestmark = pytest.mark.usefixtures("one_thread")

NODES, NEW = 300, 6


def write(folder: Path, weighted: bool, features: bool) -> None:
    """all.csv and old.csv with their features, and new.csv: the last nodes with all their edges."""
    data = block_model(NODES, 4, 5.0, 4, 0)
    edges = data.edge_index[:, data.edge_index[0] < data.edge_index[1]].t().tolist()
    is_new = [max(edge) >= NODES - NEW for edge in edges]
    head = "source,target,weight\n" if weighted else "source,target\n"

    def lines(kept: list[list[int]]) -> str:
        return head + "".join(f"n{a},n{b}" + (f",{1 + (a + b) % 5}" if weighted else "") + "\n" for a, b in kept)

    (folder / "all.csv").write_text(lines(edges))
    (folder / "old.csv").write_text(lines([edge for edge, new in zip(edges, is_new) if not new]))
    (folder / "new.csv").write_text(lines([edge for edge, new in zip(edges, is_new) if new]))
    if features:
        rows = [f"n{i}," + ",".join(f"{value:.4f}" for value in row) + "\n" for i, row in enumerate(data.x.tolist())]
        for name, kept in (("all", rows), ("old", rows[:-NEW]), ("new", rows[-NEW:])):
            (folder / f"{name}-x.csv").write_text("id,a,b,c,d\n" + "".join(kept))


# Likely neighbours of a few nodes are looked for elsewhere: see below.
HOPS = {"encoder": "hops", "encoder_parameters": {"completion": 0}}
CASES: dict[str, tuple[bool, bool, dict[str, Any]]] = {
    "sgc": (False, True, {"order": 2}),
    "weights": (True, True, {"order": 2}),
    "features from degrees": (False, False, {"order": 2}),
    "gcn": (True, True, {"encoder": "gcn", "num_layers": 2}),
    "hops on parts": (True, True, {**HOPS, "order": 2, "batch_nodes": 40}),
    "gin": (True, True, {"encoder": "gin", "num_layers": 2, "hidden_channels": 5}),
}


@pytest.mark.parametrize(("weighted", "features", "parameters"), CASES.values(), ids=CASES)
def test_new_nodes_are_embedded_as_if_all_were_there(
    tmp_path: Path, weighted: bool, features: bool, parameters: dict[str, Any]
) -> None:
    write(tmp_path, weighted, features)

    def table(name: str) -> Path | None:
        return tmp_path / f"{name}-x.csv" if features else None

    import_graph([tmp_path / "old.csv"], tmp_path / "graph.topo", features=[table("old")] if features else [])
    directory = GraphDirectory.open(tmp_path / "graph.topo")
    model = TopoTER(**{"encoder": "sgc", "out_channels": 6, "epochs": 2, **parameters}).fit(directory)
    together, _ = read_graph(tmp_path / "all.csv", features=table("all"))
    expected = dict(zip(together.node_ids, model.transform(together)))
    new = read_new_nodes(tmp_path / "new.csv", directory, table("new"))
    z, needed = embed_new_nodes(model, directory, new)
    assert len(new.ids) == NEW
    assert np.allclose(z, np.stack([expected[name] for name in new.ids]), atol=1e-5)
    assert 0 < needed < 0.7 * NODES, "a part of the graph, not all of it"


def test_the_default_fitted_on_a_whole_graph(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """New nodes as if all were there, but for their places and what likely neighbours outside the model tell."""
    write(tmp_path, False, True)
    import_graph([tmp_path / "old.csv"], tmp_path / "graph.topo", features=[tmp_path / "old-x.csv"])
    directory = GraphDirectory.open(tmp_path / "graph.topo")
    model = TopoTER(out_channels=16, epochs=2).fit(directory)
    model.save(tmp_path / "model.topoter")
    loaded = TopoTER.load(tmp_path / "model.topoter")
    new = read_new_nodes(tmp_path / "new.csv", directory, tmp_path / "new-x.csv")
    with caplog.at_level("INFO", logger="topoter"):
        z, needed = embed_new_nodes(loaded, directory, new)
    assert "columns that hold it are at their mean" in caplog.text
    assert "Likely neighbours of new nodes are looked for among 294 nodes of the model" in caplog.text
    assert 0 < needed < 0.7 * NODES
    together, _ = read_graph(tmp_path / "all.csv", features=tmp_path / "all-x.csv")
    ids = list(together.node_ids)
    rows = [ids.index(name) for name in new.ids]
    together.node_ids = [f"else {node}" for node in ids]  # so that places are at their mean there, too

    def both(**parameters: Any) -> tuple[np.ndarray, np.ndarray]:
        model = TopoTER(out_channels=16, epochs=2, **parameters).fit(directory)
        return embed_new_nodes(model, directory, new)[0], model.transform(together)[rows]

    z, expected = both(encoder_parameters={"completion": 0})
    assert np.allclose(z, expected, atol=1e-5)
    z, expected = both(structure="none")
    assert np.linalg.norm(z - expected) < 0.1 * np.linalg.norm(expected)


def test_a_model_of_a_prepared_table(tmp_path: Path) -> None:
    """Fitted on files, whose numbers and categories it prepares; embedded from what was imported of the same files."""
    colours = ["red", "green", "blue"]
    lines = [f"n{i},{i % 7},{1000 * (i % 11)},{colours[i % 3]}\n" for i in range(60)]
    (tmp_path / "x.csv").write_text("id,a,b,colour\n" + "".join(lines))
    (tmp_path / "e.csv").write_text("source,target\n" + "".join(f"n{i},n{(i * i + 1) % 60}\n" for i in range(60)))
    data, _ = read_graph(tmp_path / "e.csv", features=tmp_path / "x.csv")
    model = TopoTER(out_channels=6, structure="none", encoder_parameters={"completion": 0}).fit(data)
    assert not model.preparation_.keeps_numbers
    expected = model.transform(data)
    import_graph([tmp_path / "e.csv"], tmp_path / "graph.topo", features=[tmp_path / "x.csv"])
    directory = GraphDirectory.open(tmp_path / "graph.topo")
    assert directory.manifest.feature_names == ["a", "b", "colour=blue", "colour=green", "colour=red"]
    embed_in_blocks(model, directory, tmp_path / "z.npy", 10**6)
    order = {name: row for row, name in enumerate(data.node_ids)}
    rows = [order[name] for name in directory.as_data().node_ids]
    for z in (model.transform(directory), np.load(tmp_path / "z.npy")):
        assert np.allclose(z, expected[rows], atol=1e-5)
    (tmp_path / "new.csv").write_text("source,target\nzz,n1\nzz,n5\n")
    (tmp_path / "new-x.csv").write_text("id,a,b,colour\nzz,3,4000,red\n")
    new = read_new_nodes(tmp_path / "new.csv", directory, tmp_path / "new-x.csv", preparation=model.preparation_)
    for old, more in (("e.csv", "new.csv"), ("x.csv", "new-x.csv")):
        (tmp_path / old).write_text((tmp_path / old).read_text() + (tmp_path / more).read_text().partition("\n")[2])
    together, _ = read_graph(tmp_path / "e.csv", features=tmp_path / "x.csv", preparation=model.preparation_)
    z, _ = embed_new_nodes(model, directory, new)
    assert np.allclose(z[0], model.transform(together)[list(together.node_ids).index("zz")], atol=1e-5)


@pytest.fixture
def directory(tmp_path: Path) -> GraphDirectory:
    write(tmp_path, False, True)
    import_graph([tmp_path / "old.csv"], tmp_path / "graph.topo", features=[tmp_path / "old-x.csv"])
    return GraphDirectory.open(tmp_path / "graph.topo")


BAD = {
    "a node of the graph": ("n0,n299\n", "n0,1,2,3,4\nn299,1,2,3,4\n", "node 'n0' is in "),
    "a node of nowhere": ("n0,who\n", "n299,1,2,3,4\n", "node 'who' is neither in "),
    "an old edge": ("n0,n299\nn1,n2\n", "n299,1,2,3,4\n", "line 3: both ends are in "),
}


@pytest.mark.parametrize(("edges", "features", "said"), BAD.values(), ids=BAD)
def test_bad_new_nodes(tmp_path: Path, directory: GraphDirectory, edges: str, features: str, said: str) -> None:
    (tmp_path / "edges.csv").write_text("source,target\n" + edges)
    (tmp_path / "x.csv").write_text("id,a,b,c,d\n" + features)
    with pytest.raises(DataError) as raised:
        read_new_nodes(tmp_path / "edges.csv", directory, tmp_path / "x.csv")
    assert said in str(raised.value)


def test_features_are_needed_where_the_graph_has_them(tmp_path: Path, directory: GraphDirectory) -> None:
    with pytest.raises(UsageError, match="has features: give those of the new nodes with --features"):
        read_new_nodes(tmp_path / "new.csv", directory, None)


def test_ids_are_found_by_number(directory: GraphDirectory) -> None:
    import pyarrow as pa

    assert directory.find(pa.array(["n3", "nobody", "n0"])).tolist() == [3, -1, 0]
