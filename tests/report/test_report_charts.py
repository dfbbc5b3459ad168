"""Charts: coordinates and colours for data whose answer is known."""

import json
import re

import numpy as np
import pytest

from topoter.errors import DataError, UsageError
from topoter.report import maps
from topoter.report.axes import ColorScale, Frame, Scale, nice_range, nice_ticks, tick_labels
from topoter.report.charts import Bars, Chart, Line
from topoter.report.maps import Map


def drawn(**chart) -> str:
    return Chart(**{"title": "t", "x_label": "x", "y_label": "y", **chart}).__html__()


def mapped(*arguments, **more) -> str:
    return Map(*arguments, title="t", **more).__html__()


def paths(html: str, css_class: str) -> list[list[tuple[float, float]]]:
    found = re.findall(rf'<path d="([^"]+)" class="{css_class}"', html)
    return [
        [tuple(map(float, point.split())) for point in re.split("[ML]", text.rstrip("Z")) if point] for text in found
    ]


def data(html: str) -> dict:
    return json.loads(re.search(r'application/json">(.*?)</script>', html)[1])


def test_scale_maps_ends_to_ends() -> None:
    scale = Scale(10, 20, 100, 0)
    assert [scale(value) for value in (10, 15, 20)] == [100, 50, 0]


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0.8, 1.6, [0.8, 1.0, 1.2, 1.4, 1.6]),
        (1, 150, [50, 100, 150]),
        (-3, 3, [-2, 0, 2]),
    ],
)
def test_ticks_are_round_and_inside(low: float, high: float, ticks: list[float]) -> None:
    assert nice_ticks(low, high) == pytest.approx(ticks)


def test_tick_texts_share_their_decimals() -> None:
    assert [text for _, text in tick_labels(0, 1, 4)] == ["0.00", "0.25", "0.50", "0.75", "1.00"]
    assert [text for _, text in tick_labels(0, 3000)] == ["0", "1,000", "2,000", "3,000"]


def test_range_is_widened_to_round_numbers() -> None:
    assert nice_range([0.93, 1.49]) == pytest.approx((0.8, 1.6))
    assert nice_range([5.0]) == pytest.approx((4.4, 5.6))
    assert nice_range([0.0, float("nan")]) == pytest.approx((-1, 1))


def test_line_runs_through_its_points_and_the_reference_lies_at_its_value() -> None:
    html = drawn(lines=[Line("a", [0, 5, 10], [0.0, 1.0, 0.5])], references={"r": 0.25})
    frame = Frame()
    left, right, top, foot = frame.left, frame.width - frame.right, frame.top, frame.height - frame.bottom
    middle = (left + right) / 2
    assert paths(html, "line") == [[(left, foot), (middle, top), (right, (top + foot) / 2)]]
    level = float(re.search(r'y1="([\d.]+)"[^>]*class="reference"', html)[1])
    assert level == pytest.approx(foot - 0.25 * (foot - top))


def test_gaps_split_a_line_and_a_lone_point_is_a_dot() -> None:
    html = drawn(lines=[Line("a", [0, 1, 2, 3, 4], [1.0, 2.0, None, 1.5, float("nan")])])
    assert [len(run) for run in paths(html, "line")] == [2]
    assert html.count("<circle") == 1
    assert data(html)["series"][0]["points"] == [[0, 1], [1, 2], [3, 1.5]]


def test_band_lies_one_error_above_and_below() -> None:
    html = drawn(lines=[Line("a", [0, 1], [5.0, 5.0], error=[5.0, 0.0])], y_range=(0, 10))
    (band,) = paths(html, "band")
    frame = Frame()
    top, foot = frame.top, frame.height - frame.bottom
    assert [y for _, y in band] == [top, (top + foot) / 2, (top + foot) / 2, foot]


def test_lines_without_data_still_draw_their_axes() -> None:
    assert "<svg" in drawn(lines=[Line("a", [], [])])
    with pytest.raises(UsageError, match="'a' must be equally long"):
        Line("a", [1], [])


def test_chart_is_described_in_words() -> None:
    html = drawn(lines=[Line("loss", [1, 2], [1.5, 0.9])], title="Loss")
    assert 'aria-label="Loss. loss: from 1.5 to 0.9."' in html


def test_bars_start_at_zero_and_are_as_long_as_their_values() -> None:
    html = drawn(categories=["x", "y"], bars=[Bars("a", [50, 100]), Bars("b", [None, 25], [None, 5])])
    boxes = [tuple(map(float, box)) for box in re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', html)]
    assert len({x for x, _ in boxes}) == 1
    widths = [width for _, width in boxes]
    assert [width / widths[1] for width in widths] == pytest.approx([0.5, 1, 0.25], abs=1e-3)
    assert html.count("whisker") == 3
    assert "y, b: 25 ± 5" in html
    with pytest.raises(UsageError, match="'a' has 1 values for 2"):
        drawn(categories=["x", "y"], bars=[Bars("a", [1])])


def test_heat_maps_share_one_scale() -> None:
    html = drawn(panels={"a": [[0.0, 1.0]], "b": [[1.0, 2.0]]})
    fills = re.findall(r'fill="(#\w+)"', html)
    assert fills == ["#00224e", "#7d7c78", "#7d7c78", "#fee838"]
    assert html.count('class="color-bar"') == 1


def test_heat_map_of_both_signs_is_centred_on_zero_and_leaves_gaps_empty() -> None:
    scale = ColorScale.over([np.array([[-1.0, 3.0]])])
    assert (scale.low, scale.high, scale.diverging) == (-3, 3, True)
    html = drawn(panels={"a": [[-1.0, float("nan"), 1.0, 1.0]]})
    assert html.count("fill=") == 2  # the two neighbours of one colour are one box
    assert data(html)["values"] == [[-1.0, None, 1.0, 1.0]]
    assert "fill=" not in drawn(panels={"a": [[float("nan")]]})
    with pytest.raises(UsageError, match="must be a matrix"):
        drawn(panels={"a": [1.0, 2.0]})


def test_map_keeps_proportions_and_points_up() -> None:
    html = mapped({"m": [[0, 0], [2, 0], [0, 1]]}, [0, 1, -1], label_names=["A", "B"], ids=["p", "q", "r"])
    stored = data(html)
    places = {name: (x, y) for name, x, y in zip(stored["ids"], *stored["panels"][0])}
    assert places["q"][0] - places["p"][0] == 4095
    assert places["p"][1] - places["r"][1] == pytest.approx(4095 / 2, abs=1)
    names = {name: stored["names"][group] for name, group in zip(stored["ids"], stored["class"])}
    assert names == {"p": "A", "q": "B", "r": "no label"}
    assert "Shown:" not in html


def test_map_of_too_many_points_says_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maps, "MOST_POINTS", 10)
    html = mapped({"m": np.random.default_rng(0).normal(size=(25, 2))}, [0] * 25)
    assert "Shown: 10 of 25 nodes" in html
    assert len(data(html)["ids"]) == 10


def test_map_refuses_what_it_cannot_place() -> None:
    with pytest.raises(UsageError, match=r"'m' must be \[2, 2\]"):
        mapped({"m": [[0, 0]]}, [0, 1])
    with pytest.raises(DataError, match="not finite"):
        mapped({"m": [[0, float("nan")]]}, [0])
