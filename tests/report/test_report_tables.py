"""Tables: what a cell sorts by, and how it compares."""

import io

import pytest
from rich.console import Console

from topoter.errors import UsageError
from topoter.report.page import part
from topoter.report.tables import MISSING, Cell, Mark, Table, compare, mean_and_deviation, sort_key


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("83.4 ± 0.3", 83.4),
        ("736,260", 736260.0),
        ("\N{MINUS SIGN}0.4", -0.4),
        ("+1.2", 1.2),
        ("2e-4", 2e-4),
        ("12 s", 12.0),
        ("7 %", 7.0),
        (".5", 0.5),
        (MISSING, None),
        ("", None),
        ("sgc", None),
        ("e5", None),
        ("1.2.3", None),
        ("12 monkeys", None),
    ],
)
def test_sort_key_is_the_number_a_text_starts_with(text: str, key: float | None) -> None:
    assert sort_key(text) == key


def test_a_column_is_numeric_if_all_but_its_gaps_are() -> None:
    html = Table(["m", "v", "w"], [["a", "83.4 ± 0.3", "1"], ["b", None, "x"]]).__html__()
    assert '<td class="number" data-sort="83.4">83.4 ± 0.3</td>' in html
    assert '<td class="number" data-gap="">' + MISSING in html
    assert "<td>1</td>" in html
    assert html.count('scope="row"') == 2


def test_numbers_are_shown_short_and_sorted_by_their_full_value() -> None:
    html = Table(["m", "n", "x"], [["a", 19717, 0.123456]]).__html__()
    assert 'data-sort="19717.0">19,717<' in html
    assert 'data-sort="0.123456">0.1235<' in html


def test_marks_have_a_sign_and_a_word_and_a_legend_of_those_used() -> None:
    html = Table(["m", "v"], [["a", Cell("1.0", mark=Mark.WORSE)], ["b", Cell("2.0", strong=True)]]).__html__()
    assert html.count("▼") == 2
    assert html.count(">worse</span>") == 1
    assert "▲" not in html
    assert "<strong>2.0</strong>" in html


def test_a_difference_up_to_the_larger_deviation_is_none() -> None:
    assert compare(83.3, 0.4, 83.7, 0.3) is Mark.WITHIN
    assert compare(83.2, 0.4, 83.7, 0.3) is Mark.WORSE
    assert compare(84.2, None, 83.7, None) is Mark.BETTER


def test_mean_and_deviation_as_text() -> None:
    assert mean_and_deviation(83.44, 0.26) == "83.4 ± 0.3"
    assert mean_and_deviation(83.44) == "83.4"
    assert mean_and_deviation(None) == MISSING
    assert mean_and_deviation(float("nan"), 1.0) == MISSING


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(UsageError, match="2 columns got a row of 1"):
        Table(["a", "b"], [["x"]])


def test_facts_name_what_is_none() -> None:
    assert "<dt>patience</dt><dd>none</dd>" in part("facts", values={"patience": None})


def test_the_same_table_in_markdown_and_in_a_terminal() -> None:
    rows = [["a | b", Cell("1.0", mark=Mark.UNTRAINED, strong=True)], ["c", None]]
    table = Table(["m", "v"], rows, caption="T*", note="n")
    assert table.markdown() == "T\\*:\n\n| m | v |\n| --- | --- |\n| a \\| b | **1.0** △ |\n| c | – |\n\nn\n"
    console = Console(width=40, record=True, file=io.StringIO())
    console.print(table)
    text = console.export_text()
    assert "1.0 △" in text
    assert "a | b" in text
    assert text.startswith("T*")


def test_a_terminal_too_narrow_for_all_columns_shows_the_rest_below_and_cuts_nothing() -> None:
    names = ["no-pretraining", "feature-cosine"]
    columns = ["method", *(f"metric{i} %" for i in range(7)), "about"]
    rows = [[name, *[f"{50 + i}.5 ± 0.8" for i in range(7)], "words that may break into lines"] for name in names]
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(Table(columns, rows, caption="once", note="at the end"))
    text = console.export_text()
    assert all(len(line) <= 80 for line in text.splitlines())
    assert text.count("once") == text.count("at the end") == 1
    assert [text.count(name) for name in names] == [2, 2]
    assert all(f"{50 + i}.5 ± 0.8" in text and f"metric{i} %" in text for i in range(7))
    assert "…" not in text
