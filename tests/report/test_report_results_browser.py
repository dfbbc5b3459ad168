"""The report on a folder of results as a reader meets it: a hostile sample, and the results of this repository."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import PHONE, emulate, move_to, opened, settled, tooltip
from results_samples import write_sample

from topoter.report.found import read_results
from topoter.report.results import page_of

OURS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("report")
    made = {}
    for name, results in (("sample", write_sample(folder / "sample")), ("ours", OURS)):
        made[name] = folder / f"{name}.html"
        page_of(read_results(results)).write(made[name])
    return made


@pytest.fixture(params=["sample", "ours"])
def page(browser: Any, pages: dict[str, Path], request: pytest.FixtureRequest) -> Iterator[Any]:
    """A page of results; at the end nothing was asked for over the network."""
    with opened(browser, pages[request.param]):
        yield browser
    asked = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert [name for name in asked if not name.startswith("data:")] == []


def test_the_page_is_whole_and_nothing_hostile_ran(page: Any, pages: dict[str, Path]) -> None:
    titles = page.execute_script("return [...document.querySelectorAll('h2')].map(e => e.textContent)")
    assert titles[0] == "Where we stand against the paper"
    assert {"Node classification", "Embeddings before and after training", "Training curves"} <= set(titles)
    assert page.execute_script("return document.querySelectorAll('script:not([type])').length") == 1
    assert page.execute_script("return document.querySelectorAll('img').length") == 0
    assert max(path.stat().st_size for path in pages.values()) < 3_000_000


def test_counts_have_sign_word_and_colour(page: Any) -> None:
    tiles = page.execute_script(
        "return [...document.querySelectorAll('.tile')].map(e => [e.innerText, "
        "getComputedStyle(e.querySelector('.mark')).color])"
    )
    texts = [text.split() for text, _ in tiles]
    assert [" ".join(words[1:]) for words in texts] == [
        "▲ better", "△ better, but not by training", "≈ within one deviation", "▼ worse", "– not run",
    ]  # fmt: skip
    assert len({colour for _, colour in tiles[1:4]}) == 3
    assert sum(int(words[0]) for words in texts) > 0


def test_tables_sort_by_value(page: Any) -> None:
    table = "[aria-label^='Node classification'] table"
    script = (
        f'const t = document.querySelector("{table}"), h = [...t.tHead.rows[0].cells].map(c => c.innerText.trim());'
        "return [...t.tBodies[0].rows].map(r => r.cells[h.findIndex(x => x.startsWith('ours'))].dataset.sort)"
    )
    buttons = page.find_elements("css selector", f"{table} th button")
    button = next(item for item in buttons if item.text.strip().startswith("ours"))
    page.execute_script("arguments[0].click()", button)
    values = [float(value) for value in page.execute_script(script) if value is not None]
    assert len(values) >= 2
    assert values == sorted(values, reverse=True)


def test_figures_render_and_show_values_under_the_pointer(page: Any) -> None:
    sizes = page.execute_script(
        "return [...document.querySelectorAll('svg.chart, canvas')].map(e => e.getBoundingClientRect())"
        ".map(b => [b.width, b.height])"
    )
    assert len(sizes) >= 3
    assert all(width > 200 and height > 40 for width, height in sizes)
    move_to(page, "#training-curves [data-chart=lines] .plot")
    assert "training loss: " in tooltip(page)
    assert "entropy of the prior: 1.3" in tooltip(page)


@pytest.mark.parametrize("page", ["sample"], indirect=True)
def test_every_kind_of_figure_shows_its_values(page: Any) -> None:
    move_to(page, "#study-order-of-the-adjacency [data-chart=lines] .plot")
    assert tooltip(page).startswith("order k of the adjacency 3\ntopoter: ")
    assert " ± " in tooltip(page)
    move_to(page, "#equivariance [data-chart=heat] .heat")
    assert tooltip(page).startswith("value: ")


def test_remarks_can_be_read_at_1280_pixels(page: Any) -> None:
    size = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    page.refresh()
    assert settled(page, "return document.documentElement.scrollWidth") <= 1280
    widths = page.execute_script("return [...document.querySelectorAll('td.wrap')].map(e => e.offsetWidth)")
    assert min(widths) >= 320
    cut = page.execute_script(
        "return [...document.querySelectorAll('.table-box:has(td.wrap)')]"
        ".filter(e => e.scrollWidth > e.clientWidth).map(e => e.ariaLabel)"
    )
    assert cut == []  # and without scrolling within the table


def test_a_phone_scrolls_only_downwards(page: Any) -> None:
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    page.refresh()
    assert settled(page, "return document.documentElement.scrollWidth") == PHONE["width"]
    boxes = page.execute_script(
        "return [...document.querySelectorAll('.table-box')].map(e => [e.clientWidth, e.scrollWidth])"
    )
    assert any(scroll > client for client, scroll in boxes)  # wide tables scroll in their box
    assert all(client <= PHONE["width"] for client, _ in boxes)


def test_dark_and_paper(page: Any) -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = page.execute_script(ground)
    emulate(page, prefers_color_scheme="dark")
    assert page.execute_script(ground) != light
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 720, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    )
    try:
        beyond = settled(
            page,
            "return [...document.querySelectorAll('table')].map(t => t.getBoundingClientRect().right)"
            ".filter(right => right > document.documentElement.clientWidth + 1).length",
        )
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert beyond == 0  # no table is cut off by the edge of the paper
