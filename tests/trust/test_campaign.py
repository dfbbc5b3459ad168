"""The campaign, short: every case a few times. `make soak` makes the attempts that the figures in the docs are of."""

from __future__ import annotations

import sys

import pytest
from soak import ALL, Case, attempts

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at in /proc")
FIRST = 1_000_000  # other random numbers than those of a soak


@pytest.mark.parametrize("chosen", [case for case in ALL if case.short], ids=str)
def test_nothing_fails(chosen: Case) -> None:
    failed = {number: why for number, why in attempts(chosen, FIRST, FIRST + chosen.short) if why}
    assert not failed
