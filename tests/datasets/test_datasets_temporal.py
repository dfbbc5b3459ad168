import shutil
from pathlib import Path

import pytest
import torch

from topoter.datasets import available, load_snapshots
from topoter.datasets.temporal import read_temporal
from topoter.errors import DataError


def write_tiny(folder: Path, edges: str = "2 1 0.5 7\n1 3 2 7\n1 2 1 9\n") -> tuple[Path, Path]:
    (folder / "tiny.edges").write_text(edges)
    (folder / "tiny.nodes.csv").write_text('id,asnr_node\n1,Ada\n2,"Bob, the 2nd"\n3,Cyd\n')
    return folder / "tiny.edges", folder / "tiny.nodes.csv"


def test_tiny(tmp_path: Path) -> None:
    snapshots = read_temporal(*write_tiny(tmp_path), "tiny")
    assert snapshots.node_names == ["Ada", "Bob, the 2nd", "Cyd"]
    assert snapshots.num_nodes == 3
    assert snapshots.times == [7, 9]
    assert [pairs.tolist() for pairs in snapshots.edges] == [[[0, 0], [1, 2]], [[0], [1]]]
    assert [weights.tolist() for weights in snapshots.weights] == [[0.5, 2.0], [1.0]]


def test_repeated_pairs_add_up_and_loops_go(tmp_path: Path) -> None:
    snapshots = read_temporal(*write_tiny(tmp_path, "1 2 1 1\n2 1 4 1\n3 3 1 1\n"), "tiny")
    assert snapshots.edges[0].tolist() == [[0], [1]]
    assert snapshots.weights[0].tolist() == [5.0]


@pytest.mark.parametrize("edges", ["1 4 1 1\n", "0 1 1 1\n", "1 2 1\n", "1 2 x 1\n"])
def test_bad_edges(edges: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"tiny\.edges"):
        read_temporal(*write_tiny(tmp_path, edges), "tiny")


@pytest.mark.parametrize("name", ["sparrow-social", "wildbird-network", "ant-colony1", "ant-colony6"])
def test_published_sizes(name: str, real_data: Path) -> None:
    snapshots = load_snapshots(name, data_root=real_data)
    info = next(info for info in available(real_data) if info.name == name)
    assert snapshots.name == name
    assert snapshots.num_nodes == info.nodes
    assert len(snapshots.times) == len(snapshots.edges) == len(snapshots.weights) == info.graphs
    assert sum(pairs.shape[1] for pairs in snapshots.edges) == info.edges
    assert len(set(snapshots.node_names)) == snapshots.num_nodes
    for pairs, weights in zip(snapshots.edges, snapshots.weights):
        assert (pairs[0] < pairs[1]).all()
        assert torch.equal(pairs.unique(dim=1), pairs)
        assert pairs.shape[1] == len(weights)
    assert snapshots.times == sorted(snapshots.times)


def test_long_names(real_data: Path) -> None:
    assert load_snapshots("aves-sparrow-social", data_root=real_data).times == [2009, 2010]
    assert load_snapshots("Insecta-Ant-Colony1", data_root=real_data).name == "ant-colony1"


def test_changed_file_is_refused(real_data: Path, tmp_path: Path) -> None:
    target = tmp_path / "temporal" / "edges"
    target.mkdir(parents=True)
    for suffix in ("edges", "nodes.csv"):
        file = f"aves-sparrow-social.{suffix}"
        shutil.copyfile(real_data / "temporal" / "edges" / file, target / file)
    with (target / "aves-sparrow-social.edges").open("a") as stream:
        stream.write("1 2 1 2011\n")
    with pytest.raises(DataError, match=r"aves-sparrow-social\.edges is damaged or not the published version"):
        load_snapshots("sparrow-social", data_root=tmp_path)
