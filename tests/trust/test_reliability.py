"""docs/reliability.md says what results/reliability.jsonl holds."""

from __future__ import annotations

from reliability import PAGE, ROOT, TITLES, page, read_rows


def test_the_page_is_made_from_the_figures():
    assert PAGE.read_text() == page(read_rows())


def test_every_defect_names_the_test_that_holds_it():
    for row in read_rows():
        assert row["line"] in TITLES
        if "defect" in row:
            assert (ROOT / row["test"].partition("::")[0]).is_file(), row["test"]
