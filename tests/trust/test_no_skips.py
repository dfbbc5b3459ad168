"""A skip is a failure in CI, and tests that need the published data are counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import no_skips

TESTS = """
import pytest

@pytest.fixture
def real_data():
    pytest.skip("no data")

def test_of_data(real_data): ...

@pytest.mark.skipif(True, reason="not here")
def test_skipped(): ...

def test_that_runs(): ...
"""
MODULE = 'import pytest\npytest.importorskip("no_such_package")\n'


class Outcomes:
    """What a run came to: names of tests and files by outcome."""

    def __init__(self) -> None:
        self.failed: set[str] = set()
        self.skipped: set[str] = set()
        self.told = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._note(report)

    def pytest_collectreport(self, report: Any) -> None:
        self._note(report)

    def _note(self, report: Any) -> None:
        if report.outcome != "passed":
            getattr(self, report.outcome).add(report.nodeid.rpartition("/")[2])


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcomes]:
    def run(required: str) -> Outcomes:
        for name, content in (("inner", TESTS), ("whole_file", MODULE)):
            (tmp_path / f"test_{name}_{required}.py").write_text(content)  # a module of its own each time
        monkeypatch.setenv("TOPOTER_NO_SKIPS", required)
        found = Outcomes()
        options = ["-p", "no:cacheprovider", "--import-mode=importlib", "-c", "/dev/null", "--assert=plain"]
        options += ["--continue-on-collection-errors", "--rootdir", str(tmp_path)]
        pytest.main([*options, str(tmp_path)], plugins=[found, no_skips])
        found.told = capsys.readouterr().out
        return found

    return run


def test_a_skip_fails_where_none_is_allowed(run: Callable[..., Outcomes]) -> None:
    found = run("1")
    assert found.failed == {"test_inner_1.py::test_of_data", "test_inner_1.py::test_skipped", "test_whole_file_1.py"}
    assert found.skipped == set()
    assert "test_of_data may not be skipped here. Skipped: no data" in found.told


def test_elsewhere_it_is_a_skip_and_counted(run: Callable[..., Outcomes]) -> None:
    found = run("0")
    assert found.failed == set()
    assert len(found.skipped) == 3
    assert "of the tests that need the published data: 0 ran, 1 were skipped" in found.told
