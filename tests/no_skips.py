"""Hooks of pytest: which tests need the published data is counted, and where `TOPOTER_NO_SKIPS=1` a skip is a failure.

CI sets it: a test that quietly does not run there holds nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

_NEEDS_DATA = ("needs", "published data")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "real_data" in getattr(item, "fixturenames", ()):
            item.user_properties.append(_NEEDS_DATA)


def _refuse(report: Any) -> Any:
    if report.skipped and os.environ.get("TOPOTER_NO_SKIPS") == "1":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome, report.longrepr = "failed", f"{report.nodeid} may not be skipped here. {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[Any]:
    return _refuse((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[Any]:
    return _refuse((yield))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    stats = terminalreporter.stats
    ran, skipped = (
        sum(_NEEDS_DATA in getattr(report, "user_properties", ()) for name in names for report in stats.get(name, ()))
        for names in (("passed", "failed"), ("skipped",))
    )
    terminalreporter.write_line(f"of the tests that need the published data: {ran} ran, {skipped} were skipped")
