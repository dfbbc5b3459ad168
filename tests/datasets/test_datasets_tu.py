import shutil
import zipfile
from pathlib import Path

import pytest
import torch
from torch_geometric.datasets import TUDataset

from topoter.datasets import available, dataset_kind, load_graphs
from topoter.datasets.tu import read_tu
from topoter.errors import DataError, UsageError

# Two graphs: a path of three nodes (one edge listed twice, one self-loop) and a lone node.
TINY = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n1, 2\n3, 3\n",
    "graph_indicator": "1\n1\n1\n2\n",
    "graph_labels": "1\n-1\n",
    "node_labels": "3\n5\n3\n4\n",
}


def write_tiny(folder: Path, name: str = "TINY", **changes: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for part, text in {**TINY, **changes}.items():
        if text:
            (folder / f"{name}_{part}.txt").write_text(text)
    return folder


def zip_tiny(path: Path, name: str = "TINY", parts: tuple[str, ...] = tuple(TINY)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for part in parts:
            archive.writestr(f"{name}/{name}_{part}.txt", TINY[part])
    return path


@pytest.mark.parametrize("folder", ["MUTAG", "PTC_MR", "IMDB-BINARY", "IMDB-MULTI"])
def test_equals_pyg(folder: str, real_data: Path, tmp_path: Path) -> None:
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "raw").symlink_to(real_data / "tu" / folder / "raw")
    expected = TUDataset(str(tmp_path), folder)
    graphs = load_graphs(folder, data_root=real_data)
    assert len(graphs) == len(expected)
    for ours, theirs in zip(graphs, expected):
        assert torch.equal(ours.edge_index, theirs.edge_index)
        assert torch.equal(ours.y, theirs.y)
        assert torch.equal(ours.x, torch.ones(theirs.num_nodes, 1) if theirs.x is None else theirs.x)


@pytest.mark.parametrize("name", ["dd", "reddit-binary", "reddit-multi-5k", "imdb-multi"])
def test_large_sets_have_the_published_size(name: str, real_data: Path) -> None:
    graphs = load_graphs(name, data_root=real_data)
    info = next(info for info in available(real_data) if info.name == name)
    assert len(graphs) == info.graphs
    assert sum(graph.num_nodes for graph in graphs) == info.nodes
    assert {int(graph.y) for graph in graphs} == set(range(info.classes or 0))
    largest = max(graphs, key=lambda graph: graph.num_edges)
    assert largest.is_undirected()
    assert not largest.has_self_loops()
    assert int(largest.edge_index.max()) < largest.num_nodes


@pytest.mark.parametrize("zipped", [False, True])
def test_tiny(zipped: bool, tmp_path: Path) -> None:
    source = zip_tiny(tmp_path / "TINY.zip") if zipped else write_tiny(tmp_path / "raw")
    path, lone = read_tu(source, "TINY")
    assert path.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert path.x.tolist() == [[1, 0, 0], [0, 0, 1], [1, 0, 0]]  # labels 3, 4, 5
    assert (path.y.tolist(), lone.y.tolist()) == ([1], [0])
    assert lone.edge_index.shape == (2, 0)
    assert lone.x.tolist() == [[0, 1, 0]]


def test_no_node_labels_gives_ones(tmp_path: Path) -> None:
    path, lone = read_tu(write_tiny(tmp_path / "raw", node_labels=""), "TINY")
    assert path.x.tolist() == [[1], [1], [1]]
    assert lone.x.tolist() == [[1]]


def test_graphs_do_not_share_memory(tmp_path: Path) -> None:
    path, _ = read_tu(write_tiny(tmp_path / "raw"), "TINY")
    for tensor in (path.x, path.edge_index, path.y):
        assert tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"A": "1, 9\n"}, "names node 9, but there are 4"),
        ({"A": "1, 4\n"}, "edge between two graphs"),
        ({"A": "1, x\n"}, "cannot be read as the TU dataset TINY"),
        ({"A": ""}, r"cannot be read as the TU dataset TINY: it lacks TINY_A\.txt"),
        ({"A": "1\n"}, "must hold lines 'node, node'"),
        ({"graph_indicator": "2\n1\n1\n1\n"}, "in order"),
        ({"graph_labels": "1\n"}, "2 graphs, but 1 in TINY_graph_labels.txt"),
        ({"node_labels": "1\n"}, "one line for each of 4 nodes"),
    ],
)
def test_bad_files(changes: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_tu(write_tiny(tmp_path / "raw", **changes), "TINY")


def test_bad_zip(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"lacks TINY_graph_labels\.txt"):
        read_tu(zip_tiny(tmp_path / "TINY.zip", parts=("A", "graph_indicator")), "TINY")
    (tmp_path / "TINY.zip").write_bytes(b"no zip")
    with pytest.raises(DataError, match=r"TINY\.zip cannot be read"):
        read_tu(tmp_path / "TINY.zip", "TINY")


def test_any_tu_set_on_disk_has_a_name(tmp_path: Path) -> None:
    write_tiny(tmp_path / "tu" / "My_Set" / "raw", name="My_Set")
    zip_tiny(tmp_path / "tu-zip" / "OTHER.zip", name="OTHER")
    for name in ("my_set", "MY-SET", "other"):
        assert len(load_graphs(name, data_root=tmp_path)) == 2
        assert dataset_kind(name, tmp_path) == "graphs"
    assert {"my_set", "other"} <= {info.name for info in available(tmp_path) if info.on_disk}
    with pytest.raises(UsageError, match="Did you mean 'my_set'"):
        load_graphs("mysets", data_root=tmp_path)


def test_changed_text_is_refused_reordered_text_is_not(real_data: Path, tmp_path: Path) -> None:
    raw = tmp_path / "tu" / "MUTAG" / "raw"
    shutil.copytree(real_data / "tu" / "MUTAG" / "raw", raw, copy_function=shutil.copyfile)
    lines = (raw / "MUTAG_A.txt").read_text().splitlines(keepends=True)
    (raw / "MUTAG_A.txt").write_text("".join(reversed(lines)))  # the same graphs
    assert len(load_graphs("mutag", data_root=tmp_path)) == 188
    (raw / "MUTAG_A.txt").write_text("".join(lines[2:]))
    with pytest.raises(DataError, match=r"MUTAG_A\.txt is damaged or not the published version"):
        load_graphs("mutag", data_root=tmp_path)


def test_changed_zip_is_refused(tmp_path: Path) -> None:
    zip_tiny(tmp_path / "tu-zip" / "DD.zip", name="DD")
    with pytest.raises(DataError, match=r"DD\.zip is damaged or not the published version"):
        load_graphs("dd", data_root=tmp_path)


def test_nothing_is_written_to_the_root(tmp_path: Path) -> None:
    write_tiny(tmp_path / "tu" / "TINY" / "raw")
    before = sorted(tmp_path.rglob("*"))
    load_graphs("tiny", data_root=tmp_path)
    assert sorted(tmp_path.rglob("*")) == before
