"""Where data files live on disk, whether they are whole, and what to say when they are not.

A root is laid out as PyTorch Geometric lays out its raw folders: `planetoid/Cora/raw/ind.cora.x`,
`amazon/Computers/raw/*.npz`, `tu/MUTAG/raw/*.txt` or `tu-zip/DD.zip`, `temporal/edges/*.edges`.
"""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path

from topoter.errors import DataError

ENVIRONMENT_VARIABLE = "TOPOTER_DATA"


def given_root(data_root: str | Path | None) -> Path | None:
    """The folder the user chose, by argument or by TOPOTER_DATA; None if neither is set."""
    chosen, origin = data_root, "data_root"
    if chosen is None:
        chosen, origin = os.environ.get(ENVIRONMENT_VARIABLE) or None, ENVIRONMENT_VARIABLE
    if chosen is None:
        return None
    root = Path(chosen).expanduser()
    if not root.is_dir():
        raise DataError(f"{origin} is {str(chosen)!r}, which is not a directory. Create it or choose another.")
    return root


def user_cache() -> Path:
    """The folder downloads go to when the user chose none; it need not exist yet."""
    # XDG says that an empty variable counts as unset.
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "topoter" / "data"


@cache
def known_checksums() -> dict[str, str]:
    """The published sha256 of each file; a folder's row is the fingerprint of the graphs read from it."""
    table = resources.files(__package__).joinpath("checksums.csv").read_text(encoding="utf-8")
    return {row["file"]: row["sha256"] for row in csv.DictReader(table.splitlines())}


def sha256(path: Path) -> str:
    """The file's sha256 in hexadecimal, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def changed(path: Path, relative: str) -> bool:
    """Whether a file we know differs from its published sha256; files we do not know never do."""
    expected = known_checksums().get(relative)
    return expected is not None and sha256(path) != expected


def changed_error(path: Path, relative: str, source: str) -> DataError:
    """The error for a file that is damaged or not the published version."""
    return DataError(
        f"{path} is damaged or not the published version: its sha256 is {sha256(path)[:12]}..., "
        f"expected {known_checksums()[relative][:12]}... Delete it and get it again from {source}."
    )


def missing_error(name: str, root: Path, relative: Sequence[str], remedy: str, *, reason: str = "") -> DataError:
    """One line: which files of the dataset are missing, where they go, how else to get them."""
    absent = [file for file in relative if not (root / file).is_file()]
    folder = (root / absent[0]).parent
    files = ", ".join(Path(file).name for file in absent)
    because = f", and the download failed ({reason})" if reason else ""
    return DataError(f"Dataset {name!r} is not on disk: {folder} lacks {files}{because}. {remedy}")
