import subprocess
import sys
from pathlib import Path

import pytest

from topoter import errors
from topoter.datasets import available, dataset_kind, files, known_as, load, load_graphs, load_snapshots
from topoter.datasets.base import REGISTRY
from topoter.datasets.made_up import PLANS
from topoter.errors import DataError, UsageError


def test_kinds() -> None:
    assert [dataset_kind(name) for name in ("Cora", "PTC_MR", "ptc-mr", "insecta-ant-colony3", "sbm")] == [
        "node",
        "graphs",
        "graphs",
        "temporal",
        "node",
    ]


def test_one_name_for_every_spelling() -> None:
    spelled = ("Cora", "ptc-mr", "IMDB_binary", "aves-sparrow-social", "ant_colony1", "coauthor-cs")
    assert [known_as(name) for name in spelled] == [
        "cora", "ptc_mr", "imdb-binary", "sparrow-social", "ant-colony1", "cs",
    ]  # fmt: skip
    assert known_as("my/edges.csv") is None


def test_unknown_name() -> None:
    for function in (load, load_graphs, load_snapshots, dataset_kind):
        with pytest.raises(UsageError, match=r"Unknown dataset 'citesear'\. Did you mean 'citeseer'\?"):
            function("citesear")


@pytest.mark.parametrize(
    ("function", "name", "instead"),
    [
        (load, "mutag", "load_graphs"),
        (load_graphs, "sparrow-social", "load_snapshots"),
        (load_snapshots, "cora", "load"),
    ],
)
def test_wrong_loader_names_the_right_one(function: object, name: str, instead: str) -> None:
    assert callable(function)
    with pytest.raises(UsageError, match=rf"in Python: {instead}\('{name}'\)"):
        function(name)


def test_names_and_aliases_are_unique() -> None:
    spellings = [name for dataset in REGISTRY.values() for name in (dataset.name, *dataset.aliases)]
    assert len(spellings) == len(set(spellings))
    assert all(name == name.lower() for name in REGISTRY)


def test_available_without_any_data(empty_cache: Path, no_packages: None) -> None:
    infos = {info.name: info for info in available()}
    assert set(infos) == set(REGISTRY)
    assert [info.name for info in infos.values() if info.on_disk] == ["sbm", *PLANS]
    assert all(info.how for info in infos.values())
    assert (infos["cora"].nodes, infos["cora"].edges, infos["cora"].features, infos["cora"].classes) == (
        2708,
        5278,
        1433,
        7,
    )
    assert not empty_cache.exists()


def test_available_with_data(real_data: Path) -> None:
    infos = {info.name: info for info in available(real_data)}
    assert infos["cora"].location == real_data / "planetoid" / "Cora" / "raw"
    assert infos["dd"].location == real_data / "tu-zip"
    assert infos["ant-colony1"].on_disk


def test_every_known_checksum_is_of_a_registered_dataset_and_right(real_data: Path) -> None:
    folders = {f"{dataset.family}/{dataset.folder}" for dataset in REGISTRY.values()}
    for name, expected in files.known_checksums().items():
        if name in folders:  # the fingerprint of the graphs, tested with their readers
            continue
        assert files.sha256(real_data / name) == expected
    known = set(files.known_checksums())
    for dataset in REGISTRY.values():
        if dataset.family in ("planetoid", "temporal"):
            assert set(dataset.file_sets()[0]) <= known


@pytest.mark.parametrize("by_variable", [False, True])
def test_root_that_is_no_directory(by_variable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = tmp_path / "nowhere"
    if by_variable:
        monkeypatch.setenv("TOPOTER_DATA", str(nowhere))
    root = None if by_variable else nowhere
    origin = "TOPOTER_DATA" if by_variable else "data_root"
    for function in (load, load_graphs, available):
        argument = () if function is available else ("cora",)
        with pytest.raises(DataError, match=f"{origin} is .*nowhere.*not a directory"):
            function(*argument, data_root=root)


def test_argument_beats_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOPOTER_DATA", "/does/not/exist")
    assert available(tmp_path)


def test_root_that_lacks_files_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    downloads: list[object] = []
    monkeypatch.setattr("topoter.datasets.base.download", lambda *call: downloads.append(call))
    raw = tmp_path / "planetoid" / "CiteSeer" / "raw"
    raw.mkdir(parents=True)
    (raw / "ind.citeseer.x").touch()
    with pytest.raises(DataError) as caught:
        load("citeseer", data_root=tmp_path)
    message = str(caught.value)
    assert f"{raw} lacks ind.citeseer.tx, ind.citeseer.allx" in message
    assert "ind.citeseer.x," not in message
    assert "\n" not in message
    monkeypatch.setenv("TOPOTER_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"NCI1_A\.txt.*or NCI1\.zip to tu-zip"):
        load_graphs("nci1")
    with pytest.raises(DataError, match=r"temporal/edges lacks insecta-ant-colony2\.edges"):
        load_snapshots("ant-colony2")
    assert downloads == []  # a user's root is never written to


def test_import_is_light() -> None:
    # An empty parent package, because topoter itself may import more than its datasets do.
    code = "import sys, types; parent = sys.modules['topoter'] = types.ModuleType('topoter'); "
    code += f"parent.__path__ = [{str(Path(errors.__file__).parent)!r}]; import topoter.datasets; "
    code += "assert not {'torch_geometric', 'pyarrow', 'scipy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
