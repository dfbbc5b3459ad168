"""The campaign: cases that are tried again and again with other random numbers, a few times in CI, long as `make soak`.

A case is a function of a number, from which all its randomness comes; it raises if something is not as it should be.
So an attempt that failed can be made again, and a soak that was stopped goes on where it was.
"""

from __future__ import annotations

import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

Attempt = Callable[[int], None]
SECONDS = 20.0  # of an attempt that calls no process of its own; more is a hang


@dataclass(frozen=True)
class Case:
    """Something to try.

    Args:
        line: the promise it belongs to: "kills", "bad input", ...
        name: what is tried.
        attempt: tries it.
        short: attempts in CI, where other attempts than those of a soak are not made.
        long: attempts in a soak.
        each: inputs that one attempt tries.
    """

    line: str
    name: str
    attempt: Attempt
    short: int
    long: int
    each: int = 1

    def __str__(self) -> str:
        return f"{self.line}: {self.name}"


@dataclass
class Tally:
    """What came of the attempts so far; `failed` has the number and the reason of each that failed."""

    tried: int = 0
    failed: dict[int, str] = field(default_factory=dict)


CASES: list[Case] = []


def case(line: str, name: str, short: int, long: int, each: int = 1) -> Callable[[Attempt], Attempt]:
    """Enter a function into the campaign."""

    def enter(attempt: Attempt) -> Attempt:
        CASES.append(Case(line, name, attempt, short, long, each))
        return attempt

    return enter


def attempts(chosen: Case, first: int, last: int) -> Iterator[tuple[int, str | None]]:
    """Make attempts and yield each one's number and, if it failed, why."""
    for number in range(first, last):
        try:
            chosen.attempt(number)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            said = " ".join(f"{type(error).__name__}: {error}".split())
            said = said if len(said) < 900 else f"{said[:200]} ... {said[-700:]}"  # the end of a traceback tells most
            yield number, f"{said} ({place.name}, line {place.lineno})"
        else:
            yield number, None


class TooLongError(AssertionError):
    """What was tried had not ended after a time in which it should have ended many times over."""


@contextmanager
def time_limit(seconds: float = SECONDS) -> Iterator[None]:
    """Raise inside the block if it takes longer."""

    def stop(number: int, frame: Any) -> None:
        raise TooLongError(f"still going on after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    started = time.monotonic()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    if time.monotonic() - started > seconds:
        raise TooLongError(f"took more than {seconds} s")
