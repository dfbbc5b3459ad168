"""A demo page with hostile names, and a browser to open it in."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import browser  # noqa: F401  # a fixture
from report_samples import demo_arguments

from topoter.report.demo import write_demo_report


@pytest.fixture(scope="session")
def demo_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "demo.html"
    write_demo_report(path, **demo_arguments())
    return path
