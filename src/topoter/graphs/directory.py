"""A graph on disk, ready to be mapped into memory: what `topoter import` writes and every command reads.

    graph.topo/
      manifest.json    counts, names of the features, and of each file its size and checksum
      indptr.npy       where each node's neighbours start, int64 [N + 1]
      indices.npy      the neighbours, ascending, both directions of every edge, int32 [2M]
      weight.npy       the weight of each of them, float32 [2M]; only where edges have weights
      features.npy     float32 or float16 [N, C]
      ids.parquet      the user's ids in the order of the nodes, column `id`

Every array is a plain NumPy file. Edges are undirected and simple: no self-loops, no duplicates.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import torch

from topoter.errors import DataError
from topoter.graphs.arrow import pa, pq
from topoter.graphs.ids import keys_of, positions, same_type, user_ids
from topoter.graphs.problems import READING_ERRORS

if TYPE_CHECKING:
    from torch_geometric.data import Data

MANIFEST = "manifest.json"
VERSION = 1
_KIND = "topoter graph"
_BLOCK = 1 << 22  # bytes read at once for a checksum


class StoredFile(msgspec.Struct, frozen=True):
    bytes: int
    sha256: str


class Cleaned(msgspec.Struct, frozen=True):
    """What had to be changed to make the input edges undirected and simple, and rows that were left out."""

    self_loops: int = 0
    duplicates: int = 0
    one_way: int = 0
    bad_rows: int = 0

    def __str__(self) -> str:
        said = {
            "dropped {:,} self-loops": self.self_loops,
            "merged {:,} duplicate edges": self.duplicates,
            "read {:,} one-way edges as undirected": self.one_way,
            "left out {:,} bad rows": self.bad_rows,
        }
        return ", ".join(text.format(count) for text, count in said.items() if count)


class Manifest(msgspec.Struct, frozen=True):
    """What a graph directory says of itself."""

    kind: str
    version: int
    topoter: str
    num_nodes: int
    num_edges: int  # undirected: each counted once
    num_features: int
    feature_names: list[str]
    structural: bool  # whether the features were made from the degrees
    cleaned: Cleaned
    files: dict[str, StoredFile]


@dataclass(frozen=True)
class GraphDirectory:
    """An opened graph directory; its arrays are mapped, not read."""

    path: Path
    manifest: Manifest

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, verify: bool = True) -> GraphDirectory:
        """Open a directory and check that it is whole: its version, its files' sizes and, with `verify`, their content.

        Reading everything once for the checksums takes about a second per gigabyte; a wrong neighbour number found
        in the middle of a training would cost more.
        """
        folder = Path(path)
        manifest = _read_manifest(folder)
        for name, stored in manifest.files.items():
            file = folder / name
            if Path(name).name != name:
                raise _damaged(folder, f"{MANIFEST} names {name!r}, which is not in the folder")
            if not file.is_file():
                raise _damaged(folder, f"{name} is missing")
            if file.stat().st_size != stored.bytes:
                raise _damaged(folder, f"{name} has {file.stat().st_size:,} bytes in place of {stored.bytes:,}")
            if verify and sha256_of(file) != stored.sha256:
                raise _damaged(folder, f"the content of {name} has changed")
        return cls(folder, manifest)

    @property
    def num_nodes(self) -> int:
        return self.manifest.num_nodes

    @property
    def num_edges(self) -> int:
        return self.manifest.num_edges

    @property
    def num_features(self) -> int:
        return self.manifest.num_features

    @property
    def bytes_in_memory(self) -> int:
        """What `as_data` takes, about: both ends of both directions as 64-bit numbers, features, ids."""
        weights = 8 * self.num_edges if "weight.npy" in self.manifest.files else 0
        return self.num_nodes * (4 * self.num_features + 50) + 32 * self.num_edges + weights

    @cached_property
    def indptr(self) -> np.ndarray:
        return self._array("indptr.npy")

    @cached_property
    def indices(self) -> np.ndarray:
        return self._array("indices.npy")

    @cached_property
    def weight(self) -> np.ndarray | None:
        return self._array("weight.npy") if "weight.npy" in self.manifest.files else None

    @cached_property
    def features(self) -> np.ndarray:
        return self._array("features.npy")

    @cached_property
    def identity(self) -> str:
        """What tells this graph from another: a digest of what the manifest says, the files' checksums among it."""
        return sha256_of(self.path / MANIFEST)

    def ids(self) -> pa.Array:
        """All ids, in the order of the nodes."""
        return pq.read_table(self.path / "ids.parquet")["id"].combine_chunks()

    def node_keys(self) -> np.ndarray:
        """`keys_of` all ids, which stream past, [N]."""
        batches = pq.ParquetFile(self.path / "ids.parquet").iter_batches(columns=["id"])
        return np.concatenate([keys_of(user_ids(batch.column(0))) for batch in batches])

    def find(self, ids: pa.Array) -> np.ndarray:
        """The numbers of the nodes with these ids, -1 for one that there is not; all ids stream past once."""
        found = np.full(len(ids), -1, dtype=np.int64)
        start = 0
        for batch in pq.ParquetFile(self.path / "ids.parquet").iter_batches(columns=["id"]):
            wanted, stored = same_type(ids, batch.column(0))
            place = positions(wanted, stored)
            found[place >= 0] = start + place[place >= 0]
            start += batch.num_rows
        return found

    def as_data(self) -> Data:
        """The whole graph in memory, as PyG's `Data`."""
        from torch_geometric.data import Data

        source = np.repeat(np.arange(self.num_nodes, dtype=np.int64), np.diff(self.indptr))
        data = Data(
            x=torch.from_numpy(np.array(self.features, dtype=np.float32)),
            edge_index=torch.from_numpy(np.stack([source, self.indices.astype(np.int64)])),
            num_nodes=self.num_nodes,
            node_ids=user_ids(self.ids()),
            feature_names=list(self.manifest.feature_names),
        )
        if self.weight is not None:
            data["edge_weight"] = torch.from_numpy(np.array(self.weight))
        return data

    def describe(self) -> str:
        """The graph in a line."""
        kind = f"{self.num_features:,} features each" + (" (from the degrees)" if self.manifest.structural else "")
        return f"{self.path}: {self.num_edges:,} edges between {self.num_nodes:,} nodes with {kind}."

    def _array(self, name: str) -> np.ndarray:
        try:
            array: np.ndarray = np.load(self.path / name, mmap_mode="r", allow_pickle=False)
        except READING_ERRORS as error:
            raise _damaged(self.path, f"{name} is no array") from error
        expected = {
            "indptr.npy": (self.num_nodes + 1,),
            "features.npy": (self.num_nodes, self.num_features),
        }.get(name, (2 * self.num_edges,))
        if array.shape != expected:
            raise _damaged(self.path, f"{name} has the shape {list(array.shape)} in place of {list(expected)}")
        return array


def is_graph_directory(path: str | os.PathLike[str]) -> bool:
    """Whether a path is one of ours, or was meant to be: a folder with a manifest, or one named .topo."""
    folder = Path(path)
    return folder.is_dir() and ((folder / MANIFEST).is_file() or folder.suffix == ".topo")


def write_manifest(folder: Path, **content: object) -> Manifest:
    """Describe what a folder holds; all its other files must be there."""
    from topoter import __version__

    files = {
        file.name: StoredFile(file.stat().st_size, sha256_of(file))
        for file in sorted(folder.iterdir())
        if file.suffix in (".npy", ".parquet")
    }
    manifest = Manifest(kind=_KIND, version=VERSION, topoter=__version__, files=files, **content)  # type: ignore[arg-type]
    encoded = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    (folder / MANIFEST).write_bytes(encoded + b"\n")
    return manifest


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _read_manifest(folder: Path) -> Manifest:
    try:
        content = (folder / MANIFEST).read_bytes()
    except OSError:
        raise DataError(
            f"{folder} is no graph directory: it has no {MANIFEST}. Make one with `topoter import`."
        ) from None
    try:
        said = msgspec.json.decode(content)
        kind, version = said["kind"], said["version"]
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
        raise _damaged(folder, f"{MANIFEST} cannot be read") from None
    if kind != _KIND:
        raise DataError(f"{folder} is no graph directory: its {MANIFEST} describes something else.")
    if version != VERSION:
        raise DataError(
            f"{folder} has format version {version}; this topoter reads version {VERSION}. "
            f"It was written by topoter {said.get('topoter', '?')}: use that version, or import the files again."
        )
    try:
        return msgspec.json.decode(content, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _damaged(folder, f"{MANIFEST} is not complete ({error})") from None


def _damaged(folder: Path, problem: str) -> DataError:
    return DataError(f"{folder} is damaged: {problem}. Import the files again with `topoter import`.")
