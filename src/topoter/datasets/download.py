"""Fill the user cache with PyTorch Geometric's own downloads, and never hang on a dead network."""

from __future__ import annotations

import os
import socket
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

CONNECT_SECONDS = 5.0
STALL_SECONDS = 30.0

FAMILIES = ("planetoid", "amazon", "coauthor", "tu")


def download(family: str, folder: str, cache: Path) -> None:
    """Download the raw files of one dataset to `cache/family/folder/raw`; raises whatever the network raises.

    Files arrive in a scratch folder and move when all are there, so an interrupted download leaves nothing.
    """
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".partial-", dir=cache) as scratch:
        dataset, first_url = _downloader(family, folder, scratch)
        # PyG waits for minutes (fsspec) or for ever (urllib); one request of our own tells quickly.
        with urllib.request.urlopen(first_url, timeout=CONNECT_SECONDS):
            pass
        raw = Path(dataset.raw_dir)
        raw.mkdir(parents=True)
        usual = socket.getdefaulttimeout()
        socket.setdefaulttimeout(STALL_SECONDS)
        try:
            dataset.download()
        finally:
            socket.setdefaulttimeout(usual)
        target = cache / family / folder / "raw"
        target.mkdir(parents=True, exist_ok=True)
        for file in raw.iterdir():
            os.replace(file, target / file.name)


def _downloader(family: str, folder: str, root: str) -> tuple[Any, str]:
    """A PyG dataset that can only download, and the first address it will ask for."""
    from torch_geometric import datasets as pyg

    classes = {
        "planetoid": pyg.Planetoid,
        "amazon": pyg.Amazon,
        "coauthor": pyg.Coauthor,
        "tu": pyg.TUDataset,
    }
    cls = classes[family]
    # Not constructed: __init__ would also process the files, and for Planetoid that is an open unpickle.
    dataset = cls.__new__(cls)
    dataset.root = root
    dataset.name = folder.lower() if family == "amazon" else folder
    dataset.split, dataset.cleaned = "public", False
    if family == "tu":
        return dataset, f"{dataset.url}/{folder}.zip"
    files = dataset.raw_file_names
    first = files if isinstance(files, str) else files[0]
    return dataset, f"{dataset.url.rstrip('/')}/{first}"
