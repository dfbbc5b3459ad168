"""What a killed process leaves beside a file goes with the next writer of it, and nothing else goes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from topoter.errors import UsageError
from topoter.graphs.atomic import atomic_folder, atomic_write, check_writable, is_gone, this_process

MACHINE = this_process().partition("-")[0]


@pytest.fixture
def ended() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_what_a_killed_process_left_is_removed_and_what_others_write_is_not(tmp_path, ended):
    left = tmp_path / f".z.{MACHINE}-{ended}-00ff00ff.npy"
    alive = tmp_path / f".z.{MACHINE}-{os.getppid()}-00ff00ff.npy"
    elsewhere = tmp_path / f".z.0badcafe-{ended}-00ff00ff.npy"
    of_another_file = tmp_path / f".zz.{MACHINE}-{ended}-00ff00ff.npy"
    own = tmp_path / ".z.my-own-notes.npy"
    for path in (left, alive, elsewhere, of_another_file, own):
        path.touch()
    with atomic_write(tmp_path / "z.npy") as first:
        with atomic_write(tmp_path / "z.npy") as second:  # the same process writes twice at once
            assert first.exists()
            second.write_text("second")
        first.write_text("first")
    assert not left.exists()
    kept = {path.name for path in (alive, elsewhere, of_another_file, own)}
    assert {path.name for path in tmp_path.iterdir()} == {"z.npy", *kept}
    assert (tmp_path / "z.npy").read_text() == "first"


def test_a_namesake_of_this_process_is_gone(tmp_path):
    left = tmp_path / f".z.{this_process()}-00ff00ff.npy"
    left.touch()
    check_writable(tmp_path / "z.npy")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name",
    ["", "x", "-", f"{MACHINE}-", f"{MACHINE}-x", f"{MACHINE}-{10**30}", f"x-{os.getpid()}"],
    ids=["nothing", "word", "dash", "no number", "no digits", "too large", "other machine"],  # the same in all workers
)
def test_of_what_no_process_is_called_nobody_can_tell(name):
    assert not is_gone(name)


def test_a_folder_comes_back_if_the_kill_was_between_the_two_renames(tmp_path):
    before = tmp_path / ".graph.before"
    before.mkdir()
    (before / "file").write_text("earlier")
    with pytest.raises(UsageError), atomic_folder(tmp_path / "graph", lambda path: True):
        raise UsageError("the new one cannot be made")
    assert (tmp_path / "graph" / "file").read_text() == "earlier"
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]
