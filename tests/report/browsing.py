"""Pages in a real browser: opened afresh, looked at as a reader would."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DRIVERS = ("chromedriver", "/usr/lib/chromium/chromedriver", "/usr/lib/chromium-browser/chromedriver")
PHONE = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}


def found(what: str, names: Sequence[str]) -> str:
    """A program of this machine; without it tests are skipped."""
    path = next((path for name in names if (path := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"no {what} on this machine (looked for {', '.join(names)})")
    return path


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A headless Chromium that calls nobody: neither it nor its driver is looked for anywhere but here."""
    binary, driver_path = found("browser", BROWSERS), found("driver of a browser", DRIVERS)
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
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SE_OFFLINE", "true")  # with a driver given selenium looks for none; this makes it sure
        driver = webdriver.Chrome(options=options, service=Service(executable_path=driver_path))
    yield driver
    driver.quit()


def emulate(browser: Any, **features: str) -> None:
    values = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": values})


@contextmanager
def opened(browser: Any, path: Path) -> Iterator[None]:
    """A page, freshly opened on a light desktop screen; at the end nothing was complained of."""
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    emulate(browser, prefers_color_scheme="light")
    browser.get_log("browser")
    browser.get(path.as_uri())
    yield
    assert browser.get_log("browser") == []


def settled(page: Any, script: str) -> Any:
    """Run a script after the browser has painted, so that observers have been told of their sizes."""
    return page.execute_async_script(
        f"requestAnimationFrame(() => requestAnimationFrame(() => arguments[0]((() => {{ {script} }})())))"
    )


def move_to(page: Any, selector: str, x: float = 0.5, y: float = 0.5) -> None:
    """Put the mouse at a share of an element's width and height."""
    place = page.execute_script(
        "const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'center'});"
        "const b = e.getBoundingClientRect();"
        "return [b.left + b.width * arguments[1], b.top + b.height * arguments[2]]",
        selector, x, y,
    )  # fmt: skip
    settled(page, "")  # a late scroll event would hide the tooltip again
    page.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": place[0], "y": place[1]})


def tooltip(page: Any) -> str:
    return page.execute_script("const t = document.querySelector('.tooltip'); return t.hidden ? '' : t.innerText")
