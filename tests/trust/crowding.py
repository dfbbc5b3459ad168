"""Too little of something: disk, rights, memory, or being alone."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess

import numpy as np
import pytest
import zygote
from campaign import case
from commands import COMMANDS, check_after, check_between, expected, files_in, forget, new_folder

WRITERS = ("fit by default", "embed", "import", "embed in blocks")
# What a call that could not end leaves on purpose: the next one goes on from there.
UNFINISHED = ("model.topoter.resume", ".z.npy.blocks/")
_CAN_MOUNT = os.geteuid() == 0 and shutil.which("mount") is not None


def _one_line(ended: zygote.Ended, *codes: int) -> None:
    lines = ended.said.strip().splitlines()
    assert ended.code in codes, (ended.code, ended.said)
    assert len(lines) == 1, ended.said
    assert lines[0].startswith("error: "), ended.said


def _enter(name: str) -> None:
    short = int(name in ("embed", "import"))

    @case("resources", f"full disk: {name}", short, 10)
    def full_disk(number: int) -> None:
        """A disk with less and less room: either it is enough, or one line says so and the earlier result stays."""
        known, folder = expected(name), new_folder()
        sizes = [(known.earlier / file).stat().st_size for file in files_in(known.earlier)]
        room = sum(-(-size // 4096) * 4096 for size in sizes) + 8192 + 4096 * (number % 12)
        if not _CAN_MOUNT:
            pytest.skip("filling a disk needs a user who may mount a tmpfs")
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={room}", "tmpfs", folder], check=True)
        try:
            shutil.copytree(known.earlier, folder, dirs_exist_ok=True)
            before = files_in(folder)
            # stdout and stderr of the command go elsewhere: they are not what fills the disk
            aside = new_folder()
            arguments = [
                str(folder / argument) if argument in ("model.topoter", "z.npy", "graph.topo") else argument
                for argument in COMMANDS[name].call()
            ]
            ended = zygote.run(aside, arguments)
            if ended.code != 0:
                _one_line(ended, 1, 2)
                left = [file for file in set(files_in(folder)) ^ set(before) if not file.startswith(UNFINISHED)]
                assert not left, f"left over: {left}"
                assert COMMANDS[name].result(folder) == known.earlier_result
                # With room again the same call goes on from there.
                shutil.copytree(folder, roomy := new_folder(), dirs_exist_ok=True)
                check_after(name, roomy)
                forget(roomy)
        finally:
            subprocess.run(["umount", folder], check=True)
        forget(folder)

    @case("resources", f"read-only folder: {name}", 0, 2)
    def read_only(number: int) -> None:
        known, folder, aside = expected(name), new_folder(), new_folder()
        shutil.copytree(known.earlier, folder, dirs_exist_ok=True)
        subprocess.run(["mount", "--bind", folder, folder], check=True)
        try:
            subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
            arguments = [
                str(folder / argument) if argument in ("model.topoter", "z.npy", "graph.topo") else argument
                for argument in COMMANDS[name].call()
            ]
            _one_line(zygote.run(aside, arguments), 1, 2)
            assert COMMANDS[name].result(folder) == known.earlier_result
        finally:
            subprocess.run(["umount", folder], check=True)
        forget(folder)

    @case("resources", f"no home folder: {name}", int(name == "embed"), 2)
    def no_home(number: int) -> None:
        folder = new_folder()
        env = {"HOME": "/nonexistent", "XDG_CACHE_HOME": "/nonexistent", "TMPDIR": str(folder.parent)}
        ended = zygote.run(folder, COMMANDS[name].call(), env=env)
        assert ended.code == 0, ended.said
        check_between(name, folder, False)
        forget(folder)

    @case("resources", f"memory limit: {name}", int(name == "embed"), 5)
    def memory(number: int) -> None:
        """As by `ulimit -v`: less than the libraries need, or a little more."""
        known, folder = expected(name), new_folder()
        shutil.copytree(known.earlier, folder, dirs_exist_ok=True)
        limit = int(random.Random(f"{name} {number}").uniform(0.2e9, 2.6e9))
        ended = zygote.run(folder, COMMANDS[name].call(), anew=True, memory_limit=limit)
        if ended.code != 0:
            _one_line(ended, 1)
            assert "memory" in ended.said, ended.said
        check_between(name, folder, True)
        check_after(name, folder)
        forget(folder)

    @case("resources", f"two at once: {name}", int(name == "import"), 10)
    def two_writers(number: int) -> None:
        """One wins or both do, one after the other; what stands there is whole."""
        folder, asides = new_folder(), (new_folder(), new_folder())
        arguments = [
            str(folder / argument) if argument in ("model.topoter", "z.npy", "graph.topo") else argument
            for argument in COMMANDS[name].call()
        ]
        children = [zygote.start(aside, arguments) for aside in asides]
        ended = [child.wait() for child in children]
        for one in ended:
            if one.code != 0:
                _one_line(one, 1, 2)
        assert any(one.code == 0 for one in ended), [one.said for one in ended]
        check_between(name, folder, False)
        known = expected(name)
        assert files_in(folder) == known.files, set(files_in(folder)) ^ set(known.files)
        forget(folder)


for _name in WRITERS:
    _enter(_name)


def _enter_wide(command: str, output: str) -> None:
    @case("resources", f"memory limit: {command}, features larger than it", 0, 5)
    def memory(number: int) -> None:
        folder = new_folder()
        nodes = 300_000
        np.lib.format.open_memmap(folder / "wide.npy", "w+", np.float32, (nodes, 2000)).flush()  # a file with holes
        edges = np.stack([np.arange(nodes - 1), np.arange(1, nodes)], axis=1)
        np.savetxt(folder / "edges.csv", edges, "%d", ",", header="source,target", comments="")
        before = files_in(folder)
        arguments = [command, "edges.csv", "--features", "wide.npy", "-q", "-o", output]
        ended = zygote.run(folder, arguments, anew=True, memory_limit=int((2.2 + 0.4 * number) * 1e9))
        _one_line(ended, 1)
        assert "memory" in ended.said, ended.said
        assert files_in(folder) == before, f"left over: {set(files_in(folder)) ^ set(before)}"
        forget(folder)


_enter_wide("fit", "model.topoter")
_enter_wide("import", "graph.topo")


@case("resources", "two at once: the store", 0, 10)
def two_stores(number: int) -> None:
    """Two reproductions of different seeds into one store: all runs of both are there."""
    command = COMMANDS["reproduce --jobs 2"]
    known, folder, asides = expected(command.name), new_folder(), (new_folder(), new_folder())
    arguments = [*(word if word != "2" else "1" for word in command.call()), "--out", str(folder / "results")]
    ended = [child.wait() for child in [zygote.start(aside, arguments) for aside in asides]]
    assert [one.code for one in ended] == [0, 0], [one.said for one in ended]
    whole = {key: value for key, value in known.result.items() if key != "told"}
    assert command.result(folder) == whole
    forget(folder)


@case("resources", "killed at a rename: import", 4, 8)
def killed_at_a_rename(number: int) -> None:
    """Before and after each of the renames by which a new graph takes the place of an earlier one."""
    name = "import"
    known, folder = expected(name), new_folder()
    shutil.copytree(known.earlier, folder, dirs_exist_ok=True)
    child = zygote.start(folder, COMMANDS[name].call(), die_at_rename=number % 4)
    ended = child.wait()
    assert ended.code in (0, -signal.SIGKILL), (ended.code, ended.said)
    found = COMMANDS[name].result(folder)
    whole = {key: value for key, value in known.result.items() if key != "told"}
    # Between the two renames neither stands there; the earlier one waits beside, and comes back with the next call.
    assert found in (known.earlier_result, whole, {})
    if not found:
        ended = zygote.run(folder, ["import", "/nonexistent", "-o", "graph.topo"])
        assert ended.code != 0
        beside = {str(path.relative_to(folder)) for path in folder.rglob("manifest.json")}
        assert beside, "the earlier graph is lost"
    check_after(name, folder)
    forget(folder)
