"""Methods of a user's own, as workers import them: they tell what they do through files."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np

from topoter.errors import UsageError
from topoter.methods import Fitted, Method


class Told(Method):
    """Writes down that it began and ended, and takes a while."""

    seconds = 0.5

    def fit(self, graph, seed, callbacks=()):
        folder = Path(os.environ["TOPOTER_TEST_FOLDER"])
        with (folder / "told").open("a") as file:
            file.write(f"begin {seed} {os.getpid()}\n")
        self.do(seed, folder)
        time.sleep(self.seconds)
        with (folder / "told").open("a") as file:
            file.write(f"end {seed} {os.getpid()}\n")
        generator = np.random.default_rng(seed)
        return Fitted(embedding=lambda other: generator.normal(size=(other.num_nodes, 4)))

    def do(self, seed, folder):
        """What else happens in the middle."""


class KillsItself(Told):
    """Seed 1 ends its process, as the kernel does for lack of memory; so does seed 2, but the first time only."""

    def do(self, seed, folder):
        once = folder / "killed"
        if seed == 1 or (seed == 2 and not once.exists()):
            once.touch()
            os.kill(os.getpid(), signal.SIGKILL)


class Endless(Told):
    """Never ends; seed 3 asks for more memory than there is, seed 4 fills it bit by bit, seed 5 fails."""

    def do(self, seed, folder):
        if seed == 3:
            np.ones(1 << 50)
        if seed == 5:
            raise UsageError("Seed 5 is wrong.")
        held = []
        while True:
            time.sleep(0.01)
            if seed == 4:
                held.append(np.ones(1 << 23))


def told(folder: Path) -> list[tuple[str, int, int]]:
    """What has been written down: the word, the seed, the process."""
    if not (folder / "told").exists():
        return []
    lines = [line.split() for line in (folder / "told").read_text().splitlines()]
    return [(word, int(seed), int(pid)) for word, seed, pid in lines]
