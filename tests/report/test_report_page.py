"""The page: nothing unescaped, nothing loaded, written whole."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from report_samples import HOSTILE, demo_arguments

from topoter.errors import UsageError
from topoter.report.demo import write_demo_report
from topoter.report.page import SCRIPTS, Page, Section, part, templates
from topoter.training import EpochRecord


class Outline(HTMLParser):
    """Headings, ids, and every attribute that could make a browser fetch something."""

    LOADING = ("src", "href", "srcset", "action", "data", "poster", "xlink:href")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.levels: list[int] = []
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.scripts = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.scripts += tag == "script"
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))
        self.ids += [value for name, value in attrs if name == "id"]
        self.loads += [value for name, value in attrs if name in self.LOADING]


def test_hostile_text_is_never_markup(demo_page: Path) -> None:
    text = demo_page.read_text(encoding="utf-8")
    assert HOSTILE not in text
    assert text.count("&lt;script&gt;alert(1)") > 5
    assert Outline(text).scripts == 4  # two line charts' data, the map's data, the program


def test_page_loads_nothing(demo_page: Path) -> None:
    text = demo_page.read_text(encoding="utf-8")
    assert not re.search(r"https?://|url\(|@import|fetch\(|XMLHttpRequest", text)
    assert all(target == "data:," or target.startswith("#") for target in Outline(text).loads)
    assert "default-src 'none'" in text


def test_headings_descend_one_level_at_a_time_and_ids_are_unique(demo_page: Path) -> None:
    outline = Outline(demo_page.read_text(encoding="utf-8"))
    assert outline.levels[0] == 1
    assert outline.levels.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(outline.levels, outline.levels[1:]))
    assert len(set(outline.ids)) == len(outline.ids)


def test_sections_are_reached_by_their_titles() -> None:
    page = Page("t", sections=[Section("Where we stand"), Section("é")])
    assert Outline(page.render()).ids[::2] == ["where-we-stand", "section"]


def test_data_cannot_end_its_script_and_survives_the_trip() -> None:
    value = {"a": "</script><!--", "b": [1.5, float("nan")], "c": "&\u2028", "d": "\\u202e\n\t\x1b\u202e"}
    inner = templates().from_string("{{ value | tojson }}").render(value=value)
    assert not set("<>&'") & set(inner)
    steering = {"c": r"&\u2028", "d": "\\u202e\n\t\\u001b\\u202e"}  # shown, not obeyed
    assert json.loads(inner) == {"a": "</script><!--", "b": [1.5, None]} | steering


def test_text_is_escaped_and_markup_is_not() -> None:
    page = Page(
        "t", sections=[Section("s").add("a < b", part("code", lines=["<x>"]), part("strong", text="y"))]
    ).render()
    assert "<p>a &lt; b</p>" in page
    assert "&lt;x&gt;" in page
    assert "<strong>y</strong>" in page
    assert part("strong", text="\"'") == "<strong>&#34;&#39;</strong>"


def test_assets_of_the_page_are_inlined() -> None:
    text = Page("t").render()
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text
    assert len(SCRIPTS) == 3
    assert all(marker in text for marker in ("compareCells", "function lineChart", "function scatter"))


def test_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        Page("t").write(tmp_path / "missing" / "r.html")
    Page("t").write(tmp_path / "r.html")
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


def test_demo_page_tells_the_result_and_the_same_every_time(demo_page: Path, tmp_path: Path) -> None:
    text = demo_page.read_text(encoding="utf-8")
    assert "<strong>83.3 ± 0.4 %</strong>" in text
    assert "0.8 points above the best of the other rows (propagated, 82.5 %)" in text
    assert "entropy of the prior: 1.304" in text
    write_demo_report(tmp_path / "again.html", **demo_arguments())
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == text


def test_demo_page_leaves_out_what_is_not_there(tmp_path: Path) -> None:
    rows = [{"method": "raw", "val_mean": 50.0, "val_std": None, "test_mean": 51.0, "test_std": None}]
    write_demo_report(tmp_path / "r.html", **demo_arguments(rows=rows, history=[], z2d={}))
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "What the training learned" not in text
    assert "<canvas" not in text
    assert "Paper</" not in text


def test_the_demo_page_shows_whatever_metrics_there_are(tmp_path: Path) -> None:
    moving = [EpochRecord(e, 1.0, {"prior_entropy": 1.3 + e / 100}) for e in (1, 2)]
    write_demo_report(tmp_path / "r.html", **demo_arguments(history=moving))
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Share of right answers" not in text
    assert "entropy of the prior</li>" in text
    own = [EpochRecord(e, 1.0, {"contrast": 0.5, "link_loss": None if e == 1 else 0.7}) for e in (1, 2)]
    write_demo_report(tmp_path / "r.html", **demo_arguments(history=own))
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "entropy of the prior" not in text
    assert "Contrast: from 0.5 to 0.5." in text
    assert "Link loss: from 0.7 to 0.7." in text
