"""Graph directories that are not whole, or not ours: one line each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from topoter.errors import DataError, UsageError
from topoter.graphs import read_graph
from topoter.graphs.directory import GraphDirectory
from topoter.graphs.importing import import_graph


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "edges.csv").write_text("source,target,weight\na,b,1\nb,c,2\nc,d,3\n")
    import_graph([tmp_path / "edges.csv"], tmp_path / "graph.topo")
    return tmp_path / "graph.topo"


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def set_in_manifest(folder: Path, name: str, value: object) -> None:
    content = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**content, name: value}))


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "truncated": (
        lambda d: (d / "indices.npy").write_bytes((d / "indices.npy").read_bytes()[:-4]),
        "148 bytes in place",
    ),
    "corrupted": (lambda d: flip_a_byte(d / "features.npy"), "is damaged: the content of features.npy has changed."),
    "a file is missing": (lambda d: (d / "ids.parquet").unlink(), "is damaged: ids.parquet is missing."),
    "another version": (
        lambda d: set_in_manifest(d, "version", 9),
        "has format version 9; this topoter reads version 1.",
    ),
    "a broken manifest": (lambda d: (d / "manifest.json").write_text("{"), "is damaged: manifest.json cannot be read."),
    "half a manifest": (lambda d: set_in_manifest(d, "num_nodes", None), "is damaged: manifest.json is not complete"),
    "another kind": (lambda d: set_in_manifest(d, "kind", "x"), "is no graph directory: its manifest.json describes"),
    "no manifest": (lambda d: (d / "manifest.json").unlink(), "is no graph directory: it has no manifest.json."),
}


@pytest.mark.parametrize(("damage", "said"), DAMAGE.values(), ids=DAMAGE)
def test_what_is_wrong_with_a_directory_is_one_line(
    directory: Path, damage: Callable[[Path], object], said: str
) -> None:
    damage(directory)
    with pytest.raises(DataError) as raised:
        read_graph(directory)
    assert said in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


def test_counts_that_do_not_fit_the_arrays(directory: Path) -> None:
    set_in_manifest(directory, "num_nodes", 5)
    with pytest.raises(DataError, match=r"indptr.npy has the shape \[5\] in place of \[6\]"):
        GraphDirectory.open(directory).as_data()


def test_arrays_are_mapped_and_plain_numpy(directory: Path) -> None:
    opened = GraphDirectory.open(directory)
    assert isinstance(opened.indices, np.memmap)
    assert np.load(directory / "indptr.npy").tolist() == [0, 1, 3, 5, 6]
    assert opened.indices.tolist() == [1, 0, 2, 1, 3, 2]
    assert opened.weight is not None
    assert opened.weight.tolist() == [1, 1, 2, 2, 3, 3]


def test_features_are_not_given_twice(directory: Path) -> None:
    with pytest.raises(UsageError, match="holds its features already"):
        read_graph(directory, features="features.csv")
