"""The explorer: its data, and the page as a reader meets it in a real browser."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import PHONE, emulate, opened, settled, tooltip

from topoter.errors import UsageError
from topoter.explorer import GraphNeighbors, write_explorer
from topoter.explorer.columns import MOST_GROUPS, column_data
from topoter.tasks.neighbors import nearest

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
STEERING = "\u202egnp.exe\x1b[31m\x9b\u2066"  # a change of direction, an escape sequence
COUNT = 60
FRAMES = 9


def arguments(count: int = COUNT, **changes: Any) -> dict[str, Any]:
    """Three groups on a line, each around its own place; nodes 5 and 8 have hostile names."""
    generator = np.random.default_rng(0)
    group = np.arange(count) % 3
    points = np.stack([group * 10.0, np.zeros(count)], axis=1) + generator.normal(size=(count, 2))
    ids = [f"node-{i}" for i in range(count)]
    ids[5], ids[8] = HOSTILE, STEERING
    edges = np.stack([np.arange(count - 1), np.arange(1, count)])  # a path: 0 - 1 - 2 - ...
    return {
        "title": f"Map {HOSTILE}",
        "ids": ids,
        "points": points,
        "nearest": changes.get("nearest") or nearest(points + 1, 4),
        "columns": {
            "group": ["alpha", "beta", HOSTILE] * (count // 3) + ["alpha"] * (count % 3),
            "score": [i / 7 for i in range(count)],
        },
        "graph": GraphNeighbors.from_edges(edges, count),
        "map_name": "By hand",
        "notes": [f"A note {HOSTILE}", f"Another {STEERING}"],
        **changes,
    }


# ---- data --------------------------------------------------------------------------------------------------


def test_few_whole_numbers_are_classes_and_other_numbers_a_scale() -> None:
    classes = column_data("y", [10, 2, None, 2, 1.0])
    assert (classes["kind"], classes["names"], classes["codes"]) == ("category", ["1", "2", "10"], [2, 1, -1, 1, 0])
    assert column_data("y", [0.5, 1.0])["kind"] == "number"
    many = column_data("year", list(range(1900, 2000)))
    assert (many["kind"], many["range"]) == ("number", [1900.0, 1999.0])
    assert column_data("t", ["g10", "g2", True])["names"] == ["True", "g2", "g10"]
    gaps = column_data("z", [float("nan"), 1.5, "" or None, 2.5])
    assert gaps["values"] == [None, 1.5, None, 2.5]
    assert column_data("empty", [None, None])["codes"] == [-1, -1]


def test_of_many_categories_the_commonest_have_colours() -> None:
    values = [f"v{i}" for i in range(100)] + ["v77"] * 5
    column = column_data("c", values)
    assert column["names"][0] == "v77"
    assert column["groups"] == MOST_GROUPS - 1
    assert len(column["names"]) == 100


def test_neighbours_in_the_graph_are_undirected_and_told_once() -> None:
    edges = np.array([[0, 1, 1, 2, 2], [1, 0, 2, 2, 1]])
    graph = GraphNeighbors.from_edges(edges, 4)
    lists = [sorted(graph.indices[a:b].tolist()) for a, b in zip(graph.indptr, graph.indptr[1:])]
    assert lists == [[1], [0, 2], [1], []]


def test_the_page_loads_nothing_escapes_all_and_is_the_same_every_time(tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        write_explorer(tmp_path / name, **arguments())
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert text == (tmp_path / "b.html").read_text(encoding="utf-8")
    assert HOSTILE not in text
    assert "<img" not in text
    assert not re.search(r"https?://|url\(|@import|fetch\(|XMLHttpRequest", text)
    assert "default-src 'none'" in text
    data = json.loads(re.findall(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)[0])
    assert data["ids"][5] == HOSTILE
    assert len(data["similar"]) == COUNT * 4


def test_long_lists_of_graph_neighbours_are_cut_and_counted(tmp_path: Path) -> None:
    star = GraphNeighbors.from_edges(np.stack([np.zeros(COUNT - 1, dtype=int), np.arange(1, COUNT)]), COUNT)
    write_explorer(tmp_path / "a.html", **arguments(graph=star))
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    graph = json.loads(re.findall(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)[0])["graph"]
    assert graph["degree"][:2] == [COUNT - 1, 1]
    assert len(graph["neighbors"]) == 50 + COUNT - 1


def test_a_map_of_another_size_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"must be \[60, 2\]. Got the shape \[59, 2\]"):
        write_explorer(tmp_path / "a.html", **arguments(points=np.zeros((59, 2))))


# ---- in a browser ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def explorer_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explorer") / "explore.html"
    write_explorer(path, **arguments())
    return path


@pytest.fixture
def page(browser: Any, explorer_page: Path) -> Iterator[Any]:
    with opened(browser, explorer_page):
        yield browser


def colours(page: Any) -> dict[str, int]:
    """How often each colour occurs on the map, its ground left out."""
    return settled(
        page,
        "const s = document.querySelector('.dots'), c = document.createElement('canvas');"
        "c.width = s.width; c.height = s.height; c.getContext('2d').drawImage(s, 0, 0);"
        "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        "const n = {}; for (let i = 0; i < d.length; i += 4) {"
        "  const k = [d[i], d[i + 1], d[i + 2]].join(); n[k] = (n[k] ?? 0) + 1; }"
        "const ground = Object.entries(n).sort((a, b) => b[1] - a[1])[0][0]; delete n[ground];"
        "return Object.fromEntries(Object.entries(n).filter(([, v]) => v > 300));",
    )


def place_of(page: Any, node: int) -> list[float]:
    """Where a node is in the window while all of the map is shown."""
    return page.execute_script(
        "const m = document.querySelector('.map'); m.scrollIntoView({block: 'center'});"
        "const d = JSON.parse(document.querySelector('.explorer script').textContent), b = m.getBoundingClientRect();"
        "const w = m.clientWidth, h = m.clientHeight, s = Math.min(w, h) - 32;"
        "return [b.left + 1 + w / 2 + (d.xy[2 * arguments[0]] / 65535 - .5) * s,"
        "        b.top + 1 + h / 2 + (d.xy[2 * arguments[0] + 1] / 65535 - .5) * s]",
        node,
    )


def mouse(page: Any, kind: str, x: float, y: float, **more: Any) -> None:
    page.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, **more})


def click_at(page: Any, x: float, y: float) -> None:
    for kind in ("mousePressed", "mouseReleased"):
        mouse(page, kind, x, y, button="left", clickCount=1)


def state(page: Any, name: str) -> str:
    return settled(page, f"return document.querySelector('.explorer').dataset.{name} ?? ''")


def listed(page: Any, kind: str) -> list[str]:
    return page.execute_script(
        f"return [...document.querySelectorAll('.node .{kind} button')].map(b => b.childNodes[1].textContent)"
    )


def test_a_click_tells_whom_a_node_resembles_and_whom_it_knows(page: Any) -> None:
    x, y = place_of(page, 12)
    settled(page, "")
    mouse(page, "mouseMoved", x, y)
    assert tooltip(page) == "node-12\ngroup: alpha"
    click_at(page, x, y)
    assert state(page, "chosen") == "node-12"
    similar, _ = arguments()["nearest"]
    assert listed(page, "similar") == [arguments()["ids"][node] for node in similar[12]]
    assert listed(page, "connected") == ["node-11", "node-13"]
    facts = page.execute_script("return document.querySelector('.node .facts').innerText")
    assert facts.split("\n") == ["group", "alpha", "score", "1.714"]
    page.execute_script("document.querySelector('.node .connected button').click()")
    assert state(page, "chosen") == "node-11"


def test_a_click_beside_all_nodes_lets_go(page: Any) -> None:
    click_at(page, *place_of(page, 12))
    assert state(page, "chosen") == "node-12"
    corner = page.execute_script(
        "const b = document.querySelector('.map').getBoundingClientRect(); return [b.left, b.top]"
    )
    click_at(page, corner[0] + 5, corner[1] + 5)
    assert state(page, "chosen") == ""
    assert "No node chosen" in page.execute_script("return document.querySelector('.node').innerText")


def test_search_finds_by_id_and_centres(page: Any) -> None:
    field = page.find_element("css selector", ".search input")
    field.send_keys("node-1")
    found = page.execute_script("return [...document.querySelectorAll('#matches li')].map(e => e.textContent)")
    assert found[:3] == ["node-1", "node-10", "node-11"]
    assert len(found) == 8
    field.send_keys("\ue015\ue015\ue007")  # down, down, Enter
    assert state(page, "chosen") == "node-11"
    assert float(state(page, "zoom")) == 3
    field.clear()
    field.send_keys("nobody")
    assert "no node of that id" in page.execute_script("return document.querySelector('#matches').innerText")
    field.clear()
    field.send_keys("onerror\ue007")
    assert state(page, "chosen") == HOSTILE


def test_wheel_zooms_at_the_pointer_drag_moves_and_all_comes_back(page: Any) -> None:
    x, y = place_of(page, 12)
    settled(page, "")
    mouse(page, "mouseWheel", x, y, deltaX=0, deltaY=-400)
    assert float(state(page, "zoom")) > 1.5
    click_at(page, x, y)
    assert state(page, "chosen") == "node-12", "what was under the pointer stays under it"
    mouse(page, "mousePressed", x, y, button="left", clickCount=1)
    mouse(page, "mouseMoved", x + 60, y + 30, button="left")
    mouse(page, "mouseReleased", x + 60, y + 30, button="left", clickCount=1)
    assert state(page, "chosen") == "node-12", "a drag is no click"
    page.execute_script("document.querySelector('[data-zoom=all]').click()")
    assert float(state(page, "zoom")) == 1
    page.execute_script("document.querySelector('[data-zoom=in]').click()")
    assert float(state(page, "zoom")) == 1.6
    page.find_element("css selector", ".map").send_keys("-0")
    assert float(state(page, "zoom")) == 1


def test_colours_follow_the_column_and_the_legend_hides(page: Any) -> None:
    by_group = colours(page)
    assert len(by_group) == 3
    legend = page.execute_script("return [...document.querySelectorAll('.toggles button')].map(b => b.textContent)")
    assert legend == [f"{HOSTILE} 20", "alpha 20", "beta 20"]
    button = page.find_element("css selector", ".toggles button")
    page.execute_script("arguments[0].click()", button)
    assert len(colours(page)) == 2
    page.execute_script(
        "const s = document.querySelector('.colour-by'); s.value = '1'; s.dispatchEvent(new Event('change'))"
    )
    assert not set(colours(page)) & set(by_group)
    assert page.execute_script("return document.querySelector('.ramp-labels').innerText").split() == ["0", "8.429"]
    page.execute_script(
        "const s = document.querySelector('.colour-by'); s.value = '-1'; s.dispatchEvent(new Event('change'))"
    )
    assert len(colours(page)) == 1


def test_dark_screens_get_other_colours(page: Any) -> None:
    light = colours(page)
    before = int(state(page, "drawn"))
    emulate(page, prefers_color_scheme="dark")
    while int(state(page, "drawn")) == before:  # the browser tells of the change when it likes
        time.sleep(0.02)
    dark = colours(page)
    assert len(dark) == 3
    assert not set(dark) & set(light)


def test_a_phone_scrolls_only_downwards(page: Any) -> None:
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    page.refresh()
    page.find_element("css selector", ".search input").send_keys("onerror\ue007")
    assert settled(page, "return document.documentElement.scrollWidth") == PHONE["width"]


def test_nothing_hostile_ran(page: Any) -> None:
    assert page.title == f"Map {HOSTILE}"
    assert page.execute_script("return document.querySelectorAll('img, script:not([type])').length") == 1


def test_what_steers_is_shown_as_text(page: Any) -> None:
    page.find_element("css selector", ".search input").send_keys("gnp.exe\ue007")
    shown = r"\u202egnp.exe\x1b[31m\x9b\u2066"
    assert state(page, "chosen") == shown.replace("x1b", "u001b")  # JSON's way to write it
    text = page.execute_script("return document.documentElement.outerHTML")
    assert f"Another {shown}" in text
    assert not set(STEERING) & set("\x1b\x9b\u202e\u2066") & set(text)


def test_twenty_thousand_nodes_are_drawn_once_a_frame_however_fast_events_come(browser: Any, tmp_path: Path) -> None:
    count = 20_000
    points = np.random.default_rng(0).normal(size=(count, 2))
    near = np.tile(np.arange(4), (count, 1)), np.ones((count, 4), dtype=np.float32)
    write_explorer(tmp_path / "large.html", **arguments(count, points=points, nearest=near, graph=None))
    browser.get((tmp_path / "large.html").as_uri())
    before = int(state(browser, "drawn"))
    browser.execute_script(
        "const m = document.querySelector('.map');"
        "for (let i = 0; i < 100; i++) m.dispatchEvent(new WheelEvent('wheel', {deltaY: -1, cancelable: true}))"
    )
    assert int(state(browser, "drawn")) == before + 1
    assert float(state(browser, "zoom")) > 1.1
    assert sum(colours(browser).values()) > 10_000


def script_seconds(browser: Any) -> float:
    """CPU time that the page's own code has used."""
    metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(one["value"] for one in metrics if one["name"] == "ScriptDuration")


def frame_times(browser: Any, path: Path, count: int) -> tuple[float, list[float]]:
    """Milliseconds of CPU time that a frame takes while zooming in, and of time that drawing took in each."""
    points = np.random.default_rng(0).normal(size=(count, 2))
    near = np.tile(np.arange(4), (count, 1)), np.ones((count, 4), dtype=np.float32)
    write_explorer(path, **arguments(count, points=points, nearest=near, graph=None))
    browser.get(path.as_uri())
    step = (
        "const done = arguments[0];"
        "document.querySelector('.map').dispatchEvent(new WheelEvent('wheel', {deltaY: -20, cancelable: true}));"
        "requestAnimationFrame(() => requestAnimationFrame(done))"
    )
    browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    before, found = script_seconds(browser), []
    for _ in range(FRAMES):
        browser.execute_async_script(step)
        found.append(float(state(browser, "milliseconds")))
    used = script_seconds(browser) - before
    browser.execute_cdp_cmd("Performance.disable", {})
    return 1000 * used / FRAMES, found


def test_a_hundred_thousand_nodes_cost_as_many_times_more(
    browser: Any, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """14 ms of CPU time a frame without a graphics card when this was written; a test compares, it does not time."""
    (few, _), (many, drawn) = (frame_times(browser, tmp_path / f"{n}.html", n) for n in (20_000, 100_000))
    record_property("milliseconds of CPU time per frame", {20_000: few, 100_000: many})
    record_property("milliseconds per frame of 100,000 nodes", drawn)
    assert many < 15 * max(few, 1.0)
