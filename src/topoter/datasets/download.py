"""Fill the user cache with PyTorch Geometric's own downloads, and never hang on a dead network."""

from __future__ import annotations

import os
import socket
import tempfile
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topoter.datasets.base import Dataset

CONNECT_SECONDS = 5.0
STALL_SECONDS = 30.0


def download(dataset: Dataset, cache: Path) -> None:
    """Download the raw files of a dataset to `cache/family/folder/raw`; raises whatever the network raises.

    Files arrive in a scratch folder and move when all are there, so an interrupted download leaves nothing.
    """
    from torch_geometric import datasets as pyg

    cache.mkdir(parents=True, exist_ok=True)
    kind = getattr(pyg, dataset.downloader)
    # Not constructed: __init__ would also process the files, and for Planetoid that is an open unpickle.
    getter = kind.__new__(kind)
    getter.name = dataset.folder.lower() if kind is pyg.Amazon else dataset.folder
    getter.split, getter.cleaned = "public", False
    with tempfile.TemporaryDirectory(prefix=".partial-", dir=cache) as scratch:
        getter.root = scratch
        # PyG waits for minutes (fsspec) or for ever (urllib); one request of our own tells quickly.
        with urllib.request.urlopen(f"{getter.url.rstrip('/')}/{dataset.first_download}", timeout=CONNECT_SECONDS):
            pass
        raw = Path(getter.raw_dir)
        raw.mkdir(parents=True)
        usual = socket.getdefaulttimeout()
        socket.setdefaulttimeout(STALL_SECONDS)
        try:
            getter.download()
        finally:
            socket.setdefaulttimeout(usual)
        target = cache / dataset.family / dataset.folder / "raw"
        target.mkdir(parents=True, exist_ok=True)
        for file in raw.iterdir():
            os.replace(file, target / file.name)
