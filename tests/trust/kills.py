"""Kills and stops at random moments, of every command that takes time."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections.abc import Callable

import zygote
from campaign import case
from commands import COMMANDS, check_after, check_between, expected, forget, new_folder, seconds_anew

STOPS = ("SIGTERM", "SIGINT", "SIGINT, ignored at start", "SIGINT twice")
ANEW_EVERY = 20  # the others are forked from a process that has imported everything
SHORT = {"fit a whole graph": 2, "embed": 1, "import": 2, "fit by default": 1}


def _disturbed(name: str, number: int, disturb: Callable[[random.Random, zygote.Child], None], **options) -> None:
    """Disturb a command, call it again, and look at what it leaves; one that had ended before is no attempt."""
    random_ = random.Random(f"{name} {number}")
    known = expected(name)
    had_earlier = known.earlier is not None and number % 2 == 1
    anew = number % ANEW_EVERY == ANEW_EVERY - 1
    seconds = seconds_anew(name) if anew else known.seconds
    while True:
        folder = new_folder()
        if had_earlier:
            shutil.copytree(known.earlier, folder, dirs_exist_ok=True)
        child = zygote.start(folder, COMMANDS[name].call(), anew=anew, **options)
        time.sleep(random_.uniform(0, seconds))
        if child.running():
            break
        seconds *= 0.8  # the machine has less to do than when the time was taken
        child.wait()
        forget(folder)
    disturb(random_, child)
    left = child.orphans()
    assert not left, f"still running: {left}"
    ended = child.wait()
    # In its first hundredth of a second a process is Python's, or ours here, and not yet topoter's.
    too_early = not ended.said and -ended.code in (signal.SIGINT, signal.SIGTERM)
    if ended.code not in (0, -signal.SIGKILL) and not too_early:
        lines = ended.said.strip().splitlines()
        assert ended.code == 130, (ended.code, ended.said)
        assert len(lines) == 1, ended.said
        assert lines[0].startswith("error: "), ended.said
    check_between(name, folder, had_earlier)
    check_after(name, folder)
    forget(folder)


def _kill(random_: random.Random, child: zygote.Child) -> None:
    child.send(signal.SIGKILL)


def _stop(how: str) -> Callable[[random.Random, zygote.Child], None]:
    def disturb(random_: random.Random, child: zygote.Child) -> None:
        for _ in range(1 + how.endswith("twice")):
            if child.running():
                child.send(signal.SIGTERM if how == "SIGTERM" else signal.SIGINT)
                time.sleep(random_.uniform(0, 0.05))
        deadline = time.monotonic() + 600
        while child.running() and time.monotonic() < deadline:
            time.sleep(0.002)

    return disturb


def _enter(name: str) -> None:
    short = SHORT.get(name, 0)

    @case("kills", f"kill -9: {name}", short, 100)
    def kill(number: int) -> None:
        _disturbed(name, number, _kill)

    @case("stops", f"SIGTERM, SIGINT, SIGINT ignored at start, Ctrl-C twice: {name}", short, 100)
    def stop(number: int) -> None:
        how = STOPS[(number // 2) % len(STOPS)]
        ignore = [int(signal.SIGINT), int(signal.SIGHUP)] if "ignored" in how else []
        _disturbed(name, number, _stop(how), ignore=ignore)


for _name in COMMANDS:
    _enter(_name)
