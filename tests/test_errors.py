"""The wording that all errors share."""

from __future__ import annotations

import pytest

from topoter.errors import BadRowError, DataError, unknown_name
from topoter.graphs import read_graph


def test_an_unknown_name_is_answered_with_the_nearest_or_a_list_of_bearable_length():
    assert str(unknown_name("fruit", "aple", ["apple", "pear"])) == "Unknown fruit 'aple'. Did you mean 'apple'?"
    assert str(unknown_name("fruit", "xyz", ["pear", "apple"])) == "Unknown fruit 'xyz'. Known: apple, pear."
    many = str(unknown_name("column", "xyz", [f"w{number}" for number in range(1000)]))
    assert many.endswith("and 960 more.")


def test_a_row_that_could_be_dropped_is_an_error_of_its_own(tmp_path):
    path = tmp_path / "e.csv"
    for text in ("u,v\n1,2\n1,\n", "1,2\n3\n4,5\n", "u,v,weight\n1,2,-1\n2,3,1\n"):
        path.write_text(text)
        with pytest.raises(BadRowError):
            read_graph(path)
        assert read_graph(path, drop_bad=True)[0].num_edges >= 1
    path.write_text("u,v\n")
    with pytest.raises(DataError) as caught:
        read_graph(path)
    assert not isinstance(caught.value, BadRowError)
