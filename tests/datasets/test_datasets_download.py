"""Downloads against a server on this machine, and against a network that is not there."""

import functools
import http.server
import socket
import threading
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.error import URLError

import pytest
from torch_geometric import datasets as pyg

from topoter.datasets import load, load_graphs, load_snapshots
from topoter.datasets.download import download
from topoter.datasets.tu import TU
from topoter.errors import DataError

Serve = Callable[[Path], str]  # a folder to its address


class _QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers = []

    def start(folder: Path) -> str:
        handler = functools.partial(_QuietHandler, directory=str(folder))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise URLError("Name or service\nnot known")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)


@pytest.mark.usefixtures("no_network", "no_packages")
@pytest.mark.parametrize(
    ("name", "file", "folder"),
    [
        ("cora", "ind.cora.allx", "planetoid/Cora/raw"),
        ("photo", "amazon_electronics_photo.npz", "amazon/Photo/raw"),
        ("cs", "ms_academic_cs.npz", "coauthor/CS/raw"),
        ("mutag", "MUTAG_A.txt", "tu/MUTAG/raw"),
    ],
)
def test_offline_is_one_line(name: str, file: str, folder: str, empty_cache: Path) -> None:
    start = time.perf_counter()
    with pytest.raises(DataError) as caught:
        (load_graphs if name == "mutag" else load)(name)
    message = str(caught.value)
    assert "\n" not in message
    assert str(empty_cache / folder) in message
    assert file in message
    assert "download failed (URLError" in message
    assert f"set TOPOTER_DATA to a folder that has {folder}" in message
    assert time.perf_counter() - start < 5
    assert not [path for path in empty_cache.rglob("*") if path.is_file()]


@pytest.mark.usefixtures("no_network")
def test_temporal_is_not_downloaded(empty_cache: Path) -> None:
    with pytest.raises(DataError, match=r"lacks insecta-ant-colony1\.edges.*Copy what is missing there"):
        load_snapshots("ant-colony1")
    assert not empty_cache.exists()


def test_failure_inside_pygs_download(
    empty_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Serve
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise URLError("connection reset")

    (tmp_path / "ind.citeseer.x").touch()
    monkeypatch.setattr(pyg.Planetoid, "url", serve(tmp_path))
    monkeypatch.setattr("torch_geometric.datasets.planetoid.fs.cp", fail)
    with pytest.raises(DataError, match=r"download failed.*connection reset"):
        load("citeseer")
    assert socket.getdefaulttimeout() is None
    assert list(empty_cache.iterdir()) == []  # no half download stays behind


def test_unwritable_cache_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TOPOTER_DATA", raising=False)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(DataError, match=r"'citeseer' is not on disk.*download failed"):
        load("citeseer")


def test_silent_server_does_not_hang(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, never answers
        monkeypatch.setattr(pyg.Planetoid, "url", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setattr("topoter.datasets.download.CONNECT_SECONDS", 0.2)
        start = time.perf_counter()
        with pytest.raises(DataError, match="download failed"):
            load("citeseer")
        assert time.perf_counter() - start < 5


def test_planetoid_is_downloaded_once_and_not_processed(
    empty_cache: Path,
    real_data: Path,
    monkeypatch: pytest.MonkeyPatch,
    serve: Serve,
) -> None:
    monkeypatch.setattr(pyg.Planetoid, "url", serve(real_data / "planetoid" / "CiteSeer" / "raw"))
    assert load("citeseer").num_nodes == 3327
    monkeypatch.setattr(pyg.Planetoid, "url", "http://127.0.0.1:9")
    assert load("citeseer").num_nodes == 3327
    assert len(list(empty_cache.rglob("ind.citeseer.*"))) == 8
    assert not list(empty_cache.rglob("processed"))


def test_amazon_is_downloaded(
    empty_cache: Path, real_data: Path, monkeypatch: pytest.MonkeyPatch, serve: Serve
) -> None:
    monkeypatch.setattr(pyg.Amazon, "url", serve(real_data / "amazon" / "Computers" / "raw") + "/")
    assert load("computers").num_nodes == 13752


def test_tu_zip_is_downloaded(empty_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Serve) -> None:
    (tmp_path / "served").mkdir()
    with zipfile.ZipFile(tmp_path / "served" / "TINY.zip", "w") as archive:
        for part, text in {
            "A": "1, 2\n2, 1\n",
            "graph_indicator": "1\n1\n2\n",
            "graph_labels": "0\n1\n",
        }.items():
            archive.writestr(f"TINY/TINY_{part}.txt", text)
    monkeypatch.setattr(pyg.TUDataset, "url", serve(tmp_path / "served"))
    # PyG keeps the zip for a moment in its own home folder.
    monkeypatch.setattr("torch_geometric.get_home_dir", lambda: str(tmp_path / "pyg"))
    download(TU("TINY"), empty_cache)
    assert len(load_graphs("tiny")) == 2
    assert [path.name for path in empty_cache.iterdir()] == ["tu"]
