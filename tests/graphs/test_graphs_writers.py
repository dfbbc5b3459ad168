"""Embeddings out and back in, whole files or none."""

from __future__ import annotations

import os
import resource
import stat

import numpy as np
import pandas as pd
import pytest
import torch

from topoter.errors import DataError, UsageError
from topoter.graphs import atomic_write, read_embeddings, write_embeddings
from topoter.graphs.reading import read_pt
from topoter.graphs.writers import check_destination

Z = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
TEXT_IDS = ["007", "a,b", 'zü "q"']


@pytest.mark.parametrize("ids", [TEXT_IDS, np.array([7, -3, 2**60]), None])
@pytest.mark.parametrize(
    ("name", "layout"),
    [("z.parquet", "list"), ("z.parquet", "columns"), ("z.csv", "list"), ("z.npy", "list")],
)
def test_round_trip(tmp_path, name, layout, ids):
    write_embeddings(tmp_path / name, torch.from_numpy(Z), ids, layout=layout)
    read_ids, z = read_embeddings(tmp_path / name)
    assert list(read_ids) == list(range(3) if ids is None else ids)
    assert isinstance(read_ids, list if ids is TEXT_IDS else np.ndarray)
    assert z.dtype == np.float32
    np.testing.assert_array_equal(z, Z)


def test_parquet_opens_in_pandas(tmp_path):
    write_embeddings(tmp_path / "z.parquet", Z, TEXT_IDS)
    frame = pd.read_parquet(tmp_path / "z.parquet")
    assert list(frame.columns) == ["id", "embedding"]
    np.testing.assert_array_equal(np.stack(frame["embedding"]), Z)
    write_embeddings(tmp_path / "z.parquet", Z, TEXT_IDS, layout="columns")
    assert list(pd.read_parquet(tmp_path / "z.parquet").columns) == ["id", "z0", "z1", "z2", "z3"]


def test_pt_loads_safely(tmp_path):
    for ids in (TEXT_IDS, [5, 6, 7]):
        write_embeddings(tmp_path / "z.pt", Z, ids)
        data = read_pt(tmp_path / "z.pt")
        assert torch.equal(data.x, torch.from_numpy(Z))
        assert list(data.node_ids) == ids


def test_projector_pair(tmp_path):
    write_embeddings(tmp_path / "z.tsv", Z, ["a", "b", "c d"])
    np.testing.assert_allclose(np.loadtxt(tmp_path / "z.tsv", delimiter="\t", dtype=np.float32), Z)
    assert (tmp_path / "z.metadata.tsv").read_text() == "a\nb\nc d\n"
    with pytest.raises(DataError, match=r"has a tab or line break in it: write \.parquet instead"):
        write_embeddings(tmp_path / "y.tsv", Z, ["a", "b", "c\td"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["z.metadata.tsv", "z.tsv"]


def test_wrong_calls(tmp_path):
    with pytest.raises(UsageError, match=r"unknown extension '.xls' for embeddings. Known: .parquet, .csv, .npy, .pt"):
        write_embeddings(tmp_path / "z.xls", Z)
    with pytest.raises(UsageError, match="There are 2 node ids for 3 embeddings"):
        write_embeddings(tmp_path / "z.npy", Z, [1, 2])
    with pytest.raises(UsageError, match=r"Embeddings must be numbers \[N, F\]. Got float32 \[4\] instead"):
        write_embeddings(tmp_path / "z.npy", Z[0])
    with pytest.raises(UsageError, match="The 'layout' parameter of write_embeddings must be one of list, columns"):
        write_embeddings(tmp_path / "z.parquet", Z, layout="wide")
    with pytest.raises(UsageError, match=r"unknown extension '.tsv'"):
        read_embeddings(tmp_path / "z.tsv")
    with pytest.raises(DataError, match=r"z.csv: no such file"):
        read_embeddings(tmp_path / "z.csv")
    for name in ("z.csv", "z.npy", "z.parquet"):
        (tmp_path / name).write_text("nothing\n1\n")
        with pytest.raises(DataError, match=f"{name} does not hold embeddings"):
            read_embeddings(tmp_path / name)
    write_embeddings(tmp_path / "z.npy", Z)
    (tmp_path / "z.ids.txt").write_text("1\n")
    with pytest.raises(DataError, match="there are 1 node ids for 3 embeddings"):
        read_embeddings(tmp_path / "z.npy")


def test_files_that_hold_something_else_say_what(tmp_path):
    for array, found in ((np.ones(3), r"float64 \[3\]"), (np.ones((3, 2), dtype=complex), r"complex128 \[3, 2\]")):
        np.save(tmp_path / "z.npy", array)
        with pytest.raises(DataError, match=rf"numbers \[N, F\] were expected, {found} found"):
            read_embeddings(tmp_path / "z.npy")
    np.save(tmp_path / "z.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="does not hold embeddings: it is no array of numbers"):
        read_embeddings(tmp_path / "z.npy")
    (tmp_path / "z.csv").write_text("source,target\na,b\n")
    with pytest.raises(DataError, match="it has no column 'id', but source, target"):
        read_embeddings(tmp_path / "z.csv")
    (tmp_path / "z.csv").write_text("id,z0\na,1\nb,2\na,3\n")
    with pytest.raises(DataError, match="node id 'a' stands there more than once"):
        read_embeddings(tmp_path / "z.csv")
    (tmp_path / "z.csv").write_text("id,z0\na,1\nb,1e39\n")
    with pytest.raises(DataError, match="it has a number beyond float32"):
        read_embeddings(tmp_path / "z.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match=r"folder.csv is a folder, not a file"):
        read_embeddings(tmp_path / "folder.csv")


def test_a_place_is_tried_without_a_trace(tmp_path):
    (tmp_path / "z.npy").write_text("old")
    check_destination(tmp_path / "z.npy")
    check_destination(tmp_path / "new.parquet", "columns")
    assert [path.name for path in tmp_path.iterdir()] == ["z.npy"]
    assert (tmp_path / "z.npy").read_text() == "old"
    with pytest.raises(UsageError, match="does not exist"):
        check_destination(tmp_path / "none" / "z.npy")


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError), atomic_write(path) as temporary:
        temporary.write_text("half \ud800", encoding="utf-8")
    assert path.read_text() == "old"
    with pytest.raises(DataError, match=r"Cannot write .*a.txt: No space left on device"), atomic_write(path):
        raise OSError(28, "No space left on device")
    with atomic_write(path) as temporary:
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".txt"
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["z.npy", "z.csv", "z.parquet", "z.pt"])
def test_a_disk_that_has_no_room_for_the_last_bytes_is_noticed(tmp_path, name):
    """NumPy's own functions do not."""
    z = np.random.default_rng(0).standard_normal((1000, 4)).astype(np.float32)
    write_embeddings(tmp_path / name, z)
    whole = (tmp_path / name).read_bytes()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) - 100, before[1]))
    try:
        with pytest.raises(DataError, match="Cannot write"):
            write_embeddings(tmp_path / name, z[::-1].copy())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (tmp_path / name).read_bytes() == whole


def test_mode_follows_the_umask_and_links_stay(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    umask = os.umask(0o022)
    try:
        with atomic_write(tmp_path / "link.txt") as temporary:
            temporary.write_text("new")
    finally:
        os.umask(umask)
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "real.txt").stat().st_mode) == 0o644


def test_places_that_cannot_be_written(tmp_path, monkeypatch):
    with (
        pytest.raises(UsageError, match=r"the folder .*none does not exist"),
        atomic_write(tmp_path / "none" / "z"),
    ):
        pass
    with pytest.raises(UsageError, match="it is a folder"), atomic_write(tmp_path):
        pass

    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    # Patched rather than chmod-ed: tests may run as root, whom no mode stops.
    monkeypatch.setattr("pathlib.Path.open", denied)
    with pytest.raises(UsageError, match=r"Cannot write .*z.npy: Permission denied"):
        write_embeddings(tmp_path / "z.npy", Z)
