import os
import pickle
import random
import shutil
from pathlib import Path

import pytest
import torch
from torch_geometric.datasets import Planetoid

from topoter.datasets import files, load
from topoter.datasets.planetoid import unpickle
from topoter.errors import DataError


@pytest.mark.parametrize("folder", ["Cora", "CiteSeer", "PubMed"])
@pytest.mark.filterwarnings("ignore")  # PyG's own unpickling goes through SciPy's deprecated names
def test_equals_pyg(folder: str, real_data: Path, tmp_path: Path) -> None:
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "raw").symlink_to(real_data / "planetoid" / folder / "raw")
    expected = Planetoid(str(tmp_path), folder, split="public")[0]
    data = load(folder, data_root=real_data)
    assert data.name == folder.lower()
    assert data.x.dtype == torch.float32
    for key in ("x", "edge_index", "y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(data[key], expected[key]), key


def test_loads_without_warnings(real_data: Path) -> None:
    # pytest turns warnings into errors; SciPy's about scipy.sparse.csr must not come up.
    assert load("cora", data_root=real_data).num_nodes == 2708


def test_citeseer_isolated_test_nodes_are_empty(real_data: Path) -> None:
    data = load("citeseer", data_root=real_data)
    in_no_part = ~(data.train_mask | data.val_mask | data.test_mask)
    beyond_the_labelled = torch.arange(data.num_nodes) >= 2312
    missing = (in_no_part & beyond_the_labelled).nonzero().flatten()
    assert len(missing) == 15
    assert data.x[missing].sum() == 0


def test_public_split_ignores_the_seed_and_global_state(real_data: Path) -> None:
    before = torch.get_rng_state(), random.getstate()
    a, b = load("cora", data_root=real_data, seed=0), load("cora", data_root=real_data, seed=1)
    assert torch.equal(a.test_mask, b.test_mask)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]


class _Malicious:
    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {self.witness}",)


def test_malicious_pickle_is_refused(tmp_path: Path) -> None:
    witness, file = tmp_path / "was-run", tmp_path / "ind.cora.x"
    file.write_bytes(pickle.dumps(_Malicious(witness), protocol=2))
    with pytest.raises(DataError, match=r"ind\.cora\.x is not a Planetoid file.*system"):
        unpickle(file)
    assert not witness.exists()


@pytest.mark.parametrize("content", [b"", b"not a pickle", pickle.dumps({"a": [1]}, protocol=4)[:-4]])
def test_damaged_pickle_is_a_data_error(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "ind.cora.graph"
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"ind\.cora\.graph"):
        unpickle(file)


def test_malicious_file_in_a_root_is_refused_twice(
    real_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tmp_path / "planetoid" / "Cora" / "raw"
    shutil.copytree(real_data / "planetoid" / "Cora" / "raw", raw, copy_function=shutil.copyfile)
    witness = tmp_path / "was-run"
    (raw / "ind.cora.allx").write_bytes(pickle.dumps(_Malicious(witness), protocol=2))
    with pytest.raises(DataError, match=r"ind\.cora\.allx is damaged.*Delete it"):
        load("cora", data_root=tmp_path)
    # And where no checksum is known, by the unpickler.
    monkeypatch.setattr(files, "known_checksums", dict)
    with pytest.raises(DataError, match=r"ind\.cora\.allx is not a Planetoid file"):
        load("cora", data_root=tmp_path)
    assert not witness.exists()
