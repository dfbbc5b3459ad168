"""The page as a reader meets it, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import PHONE, emulate, move_to, opened, settled, tooltip

from topoter.report.charts import Bars, Chart
from topoter.report.page import Page, Section


@pytest.fixture
def page(browser: Any, demo_page: Path) -> Iterator[Any]:
    with opened(browser, demo_page):
        yield browser


def first_column(page: Any) -> list[str]:
    return page.execute_script("return [...document.querySelectorAll('table tbody th')].map(e => e.textContent)")


def test_nothing_hostile_ran(page: Any) -> None:
    assert page.title.startswith("TopoTER on Cora<script>")
    assert page.execute_script("return document.querySelectorAll('script:not([type])').length") == 1


def test_header_sorts_by_value_then_turns_round_then_restores(page: Any) -> None:
    original = first_column(page)
    header = page.find_elements("css selector", "th[scope=col] button")[2]  # Test
    orders = []
    for _ in range(3):
        header.click()
        orders.append([name[:3] for name in first_column(page)])
    assert orders[0] == ["top", "pro", "gae", "raw"]
    assert orders[1] == orders[0][::-1]
    assert first_column(page) == original


def test_gaps_stay_last_and_the_keyboard_sorts_too(page: Any) -> None:
    header = page.find_elements("css selector", "th[scope=col] button")[3]  # Paper, which one row lacks
    for state in ("descending", "ascending"):
        header.send_keys("\ue007")  # Enter
        assert header.find_element("xpath", "..").get_attribute("aria-sort") == state
        assert first_column(page)[-1] == "propagated"


def test_figures_have_a_size_and_the_map_has_colours(page: Any) -> None:
    sizes = page.execute_script(
        "return [...document.querySelectorAll('svg.chart, canvas')].map(e => e.getBoundingClientRect())"
        ".map(b => [b.width, b.height])"
    )
    assert len(sizes) == 4
    assert all(width > 300 and height > 150 for width, height in sizes)
    assert len(colours_on_map(page)) >= 3


def colours_on_map(page: Any) -> dict[str, int]:
    """How often each fully painted colour occurs on the first map."""
    return settled(
        page,
        "const s = document.querySelector('canvas'), c = document.createElement('canvas');"
        "c.width = s.width; c.height = s.height; c.getContext('2d').drawImage(s, 0, 0);"
        "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, n = {};"
        "for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 200) {"
        "  const k = [d[i], d[i + 1], d[i + 2]].map(v => v >> 3).join(); n[k] = (n[k] ?? 0) + 1; }"
        "return Object.fromEntries(Object.entries(n).filter(([, v]) => v > 50));",
    )


def test_pointing_at_a_line_chart_shows_its_values(page: Any) -> None:
    move_to(page, "[data-chart=lines] .plot")
    text = tooltip(page)
    assert text.startswith("epoch 1")
    assert "training loss: 1." in text
    assert "entropy of the prior: 1.304" in text
    move_to(page, "h1")
    assert tooltip(page) == ""


def test_arrow_keys_read_a_line_chart(page: Any) -> None:
    chart = page.find_element("css selector", "[data-chart=lines]")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'}); arguments[0].focus()", chart)
    settled(page, "")  # a late scroll event would hide the tooltip again
    chart.send_keys("\ue014")  # right
    assert tooltip(page).startswith("epoch 1\n")
    chart.send_keys("\ue010")  # end
    assert tooltip(page).startswith("epoch 20\n")


def test_pointing_at_a_dot_names_it_in_both_panels(page: Any) -> None:
    x, y = page.execute_script(
        "const d = JSON.parse(document.querySelector('.scatter script').textContent);"
        "const b = document.querySelector('.canvas-box'), s = b.clientWidth;"
        "return [0, 1].map(a => (14 + d.panels[0][a][0] / 4095 * (s - 28)) / s)"
    )
    move_to(page, ".canvas-box", x, y)
    assert "node " in tooltip(page)
    assert page.execute_script("return document.querySelectorAll('.ring:not([hidden])').length") == 2


def test_legend_hides_a_class_and_brings_it_back(page: Any) -> None:
    before = colours_on_map(page)
    button = page.find_element("css selector", ".toggles button")
    page.execute_script("arguments[0].click()", button)
    assert button.get_attribute("aria-pressed") == "false"
    hidden = colours_on_map(page)
    assert set(hidden) < set(before)
    page.execute_script("arguments[0].click()", button)
    assert colours_on_map(page) == before


def test_dark_screens_get_a_dark_page_and_brighter_dots(page: Any) -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    light, dots = page.execute_script(ground), colours_on_map(page)
    emulate(page, prefers_color_scheme="dark")
    assert page.execute_script(ground) != light
    assert page.execute_script(ground) == "rgb(14, 17, 21)"
    assert not set(colours_on_map(page)) & set(dots)


@pytest.mark.parametrize("kind", ["demo", "blocks"])
def test_a_phone_scrolls_only_downwards(page: Any, kind: str, tmp_path: Path) -> None:
    if kind == "blocks":
        long_name = "a-name-without-any-place-to-break-it-" * 3
        bars = Chart(title=long_name, categories=["x", long_name], bars=[Bars(long_name, [1, 2])])
        heat = Chart(title="h", panels={long_name: [[1, 2]]})
        Page(long_name, sections=[Section("s").add(bars, heat)]).write(tmp_path / "p.html")
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    page.get((tmp_path / "p.html").as_uri()) if kind == "blocks" else page.refresh()
    assert settled(page, "return document.documentElement.scrollWidth") == PHONE["width"]
    sizes = page.execute_script(
        "return [...document.querySelectorAll('.chart text')]"
        ".map(t => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a)"
    )
    assert min(sizes) > 8.5  # pixels on the screen


def test_pointing_at_a_heat_map_and_at_a_bar_shows_the_value(page: Any, tmp_path: Path) -> None:
    heat = Chart(title="h", panels={"a": [[1.0, 2.0], [3.0, 4.0]]}, value_label="feature")
    bars = Chart(title="b", categories=["Cora"], bars=[Bars("ours", [83.3], [0.4])], x_label="accuracy")
    Page("t", sections=[Section("s").add(heat, bars)]).write(tmp_path / "p.html")
    page.get((tmp_path / "p.html").as_uri())
    move_to(page, "[data-chart=heat] .heat", 0.75, 0.25)
    assert tooltip(page) == "feature: 2\nrow 0, column 1"
    move_to(page, "[data-tip] rect")
    assert tooltip(page) == "Cora, ours: 83.3 ± 0.4"


def test_printing_from_a_dark_screen_paints_for_paper(page: Any) -> None:
    light = colours_on_map(page)
    emulate(page, prefers_color_scheme="dark")
    page.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert colours_on_map(page) == light
