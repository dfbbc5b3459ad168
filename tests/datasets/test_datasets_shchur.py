import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.io import read_npz as pyg_read_npz

from topoter.datasets import load
from topoter.datasets.shchur import read_npz
from topoter.errors import DataError

COMPUTERS = Path("amazon", "Computers", "raw", "amazon_electronics_computers.npz")


def test_computers_equal_pyg(real_data: Path) -> None:
    expected = pyg_read_npz(str(real_data / COMPUTERS))
    data = load("Amazon-Computers", data_root=real_data)
    for key in ("x", "edge_index", "y"):
        assert torch.equal(data[key], expected[key]), key


def test_random_split_by_seed(real_data: Path) -> None:
    before = torch.get_rng_state()
    first, again, other = (load("computers", data_root=real_data, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first.train_mask, again.train_mask)
    assert not torch.equal(first.train_mask, other.train_mask)
    assert first.y[first.train_mask].bincount().tolist() == [20] * 10
    assert first.y[first.val_mask].bincount().tolist() == [30] * 10
    parts = torch.stack([first.train_mask, first.val_mask, first.test_mask])
    assert (parts.sum(dim=0) == 1).all()


def _tiny(path: Path, attributes: np.ndarray, edges: list[tuple[int, int]]) -> None:
    import scipy.sparse

    x = scipy.sparse.csr_matrix(attributes)
    row, col = zip(*edges)
    a = scipy.sparse.csr_matrix((np.ones(len(edges)), (row, col)), shape=(len(attributes),) * 2)
    arrays = {f"attr_{k}": v for k, v in (("data", x.data), ("indices", x.indices), ("indptr", x.indptr))}
    arrays |= {f"adj_{k}": v for k, v in (("data", a.data), ("indices", a.indices), ("indptr", a.indptr))}
    objects = np.array(["one", "two"], dtype=object)  # as in the published Physics file
    np.savez(path, **arrays, attr_shape=x.shape, adj_shape=a.shape, labels=np.array([0, 1, 1]), class_names=objects)


def test_features_become_0_or_1_and_edges_simple(tmp_path: Path) -> None:
    _tiny(tmp_path / "g.npz", np.array([[0.0, 2.5], [0.3, 0.0], [0.0, 0.0]]), [(0, 0), (0, 1), (2, 1)])
    data = read_npz(tmp_path / "g.npz")
    assert data.x.tolist() == [[0, 1], [1, 0], [0, 0]]
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.y.tolist() == [0, 1, 1]


def test_wrong_sizes_are_noticed(tmp_path: Path) -> None:
    # No sha256 is known for Photo, its counts are.
    path = tmp_path / "amazon" / "Photo" / "raw" / "amazon_electronics_photo.npz"
    path.parent.mkdir(parents=True)
    _tiny(path, np.eye(3), [(0, 1)])
    with pytest.raises(DataError, match="'photo' hold 3 nodes, expected 7650"):
        load("photo", data_root=tmp_path)


def test_other_encoding_of_the_same_arrays_is_accepted(real_data: Path, tmp_path: Path) -> None:
    target = tmp_path / COMPUTERS
    target.parent.mkdir(parents=True)
    with np.load(real_data / COMPUTERS) as published:
        arrays = dict(published)
    np.savez(target, **arrays)  # uncompressed, so other bytes
    assert load("computers", data_root=tmp_path).num_nodes == 13752
    arrays["labels"] = np.roll(arrays["labels"], 1)
    np.savez(target, **arrays)
    with pytest.raises(DataError, match=r"computers\.npz is damaged or not the published version"):
        load("computers", data_root=tmp_path)


def test_truncated_file_is_named(real_data: Path, tmp_path: Path) -> None:
    target = tmp_path / COMPUTERS
    target.parent.mkdir(parents=True)
    shutil.copyfile(real_data / COMPUTERS, target)
    with target.open("r+b") as stream:
        stream.truncate(100_000)
    with pytest.raises(DataError, match=r"computers\.npz is damaged.*Delete it and get it again from https"):
        load("computers", data_root=tmp_path)
