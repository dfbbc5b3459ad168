"""How much memory is left, and what is said when there is none."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from topoter import cli
from topoter.errors import TopoterError
from topoter.graphs.features import read_features
from topoter.memory import _limit_free, check_limit, free_memory, is_shortage


@contextmanager
def limited(spare: int) -> Iterator[None]:
    """`ulimit -v`, so many bytes above what this process has."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + spare, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_a_limit_counts_as_memory_that_is_not_there():
    with limited(200 << 20):
        assert 100 << 20 < free_memory() <= 200 << 20
        with pytest.raises(TopoterError, match=r"leaves 2\d\d\.\d MB of address space.* need 2\.0 GB: raise the limit"):
            check_limit()
    assert _limit_free() > 10**18
    check_limit()


@pytest.mark.parametrize("ask", [lambda: torch.empty(2**50), lambda: np.empty(2**50), lambda: bytearray(2**50)])
def test_libraries_that_get_none_are_understood(ask):
    with pytest.raises((MemoryError, RuntimeError)) as caught:
        ask()
    assert is_shortage(caught.value)
    assert not is_shortage(RuntimeError("shapes do not fit"))


def test_close_to_a_limit_any_error_is_a_shortage():
    with limited(8 << 30):
        room = _limit_free("VmPeak") - (100 << 20)
        assert not is_shortage(SystemError("error return without exception set"))
        with limited((8 << 30) - room):
            assert is_shortage(SystemError("error return without exception set"))


def test_a_command_that_gets_none_says_so_in_one_line(monkeypatch, capsys):
    monkeypatch.setattr(cli, "app", lambda **_: torch.empty(2**50))
    codes: list[int] = []
    monkeypatch.setattr(cli, "_leave", codes.append)
    monkeypatch.setattr(cli.interruption, "ignore", lambda: None)
    cli.main()
    assert codes == [1]
    said = capsys.readouterr().err
    assert said.startswith("error: There is not enough memory")
    assert said.count("\n") == 1


def test_an_array_that_declares_more_than_there_is_says_so(tmp_path):
    with open(tmp_path / "x.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (2**40, 2**10)})
    with pytest.raises(TopoterError, match="or there is not enough memory for what it declares"):
        read_features(tmp_path / "x.npy")
