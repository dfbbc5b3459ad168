"""A demo page with hostile names, and a browser to open it in."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_samples import demo_arguments

from topoter.report import write_demo_report

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def demo_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "demo.html"
    write_demo_report(path, **demo_arguments())
    return path


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A headless Chromium that calls nobody; without one, tests are skipped, or fail where it is required."""
    binary = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if binary is None:
        refuse = pytest.fail if os.environ.get("TOPOTER_REQUIRE_BROWSER") else pytest.skip
        refuse(f"no browser on PATH (looked for {', '.join(BROWSERS)})")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
        "--window-size=1280,900",
        f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    # Without a driver of the distribution, selenium looks for one itself.
    driver_path = shutil.which("chromedriver")
    driver = webdriver.Chrome(options=options, service=Service(driver_path) if driver_path else Service())
    yield driver
    driver.quit()
