"""Pages in a real browser: opened afresh, looked at as a reader would."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PHONE = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}


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
