"""Headers of unknown names: found where the file gives them away, never in silence, and as the user says."""

from __future__ import annotations

import gzip
import logging
from pathlib import Path

import pytest

from topoter.errors import DataError, UsageError
from topoter.graphs import read_graph, read_snapshots
from topoter.graphs.headers import open_table, settle
from topoter.graphs.node_tables import read_node_table

PEOPLE = ["ada", "bo", "cy", "di", "eva", "fay", "gus", "hal", "ida", "jo"]
PEOPLE += ["kit", "lee", "mo", "nan", "oz", "pam", "qi", "rob", "sue", "tim"]


def ring(names: list[str], ending: str = "", delimiter: str = ",") -> str:
    """Every node has two neighbours."""
    return "".join(f"{a}{delimiter}{b}{ending}\n" for a, b in zip(names, names[1:] + names[:1]))


def numbered(prefix: str, count: int = 6) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def read(path: Path, text: str, **options) -> tuple[int, str]:
    """Number of nodes, and what the notes say."""
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    data, notes = read_graph(path, **options)
    return data.num_nodes, " ".join(notes).replace(f"{path.parent}/", "")


WITH_HEADER = {
    "names above ids with numbers": ("e.csv", "a,b\n" + ring(numbered("n"))),
    "names above names": ("e.csv", "person,friend\n" + ring(PEOPLE)),
    "lower case above capitals": ("e.csv", "person,friend\n" + ring([name.title() for name in PEOPLE[:6]])),
    "gzip": ("e.csv.gz", "a,b\n" + ring(numbered("n"))),
    "tabs": ("e.tsv", "a\tb\n" + ring(numbered("n"), delimiter="\t")),
    "blanks": ("e.txt", "a b\n" + ring(PEOPLE, delimiter=" ")),
    "numbers as ids": ("e.csv", "a,b\n" + ring(numbered(""))),
    "weights": ("e.csv", "a,b,strength\n" + ring(PEOPLE[:6], ",0.5")),
    "times": ("e.csv", "a,b,when\n" + ring(PEOPLE[:6], ",2024-05-01")),
    "known names": ("e.csv", "Source,Target\n" + ring(PEOPLE[:6])),
    "known letters": ("e.csv", "u,v\n" + ring(PEOPLE[:6])),
    "pandas' default names": ("e.csv", "0,1\n" + ring(PEOPLE[:6])),
    "blanks after commas": ("e.csv", "a, b\n" + ring(PEOPLE, delimiter=", ")),
    "blank lines before it": ("e.csv", "\n \n# c\n\na,b\n" + ring(numbered("n"))),
}


@pytest.mark.parametrize("case", WITH_HEADER)
def test_a_header_is_found(tmp_path, case):
    name, text = WITH_HEADER[case]
    nodes, said = read(tmp_path / name, text)
    assert nodes == (20 if "jo" in text else 6)
    assert "with the header" in said
    assert "weight" not in said
    assert read(tmp_path / name, text, header=True)[0] == nodes


WITHOUT_HEADER = {
    "names": ring(PEOPLE),
    "ids with numbers": ring(numbered("n")),
    "numbers": ring(numbered("")),
    "the first id is of another kind": ring(["x", *numbered("n")]),
    "names that headers have": ring(["time", "node", "id", "weight"]),
    "letters that headers have": ring(["u", "v", "w"]),
    "a loop first": "zoe,zoe\n" + ring(PEOPLE),
    "the first of many pairs": "".join(f"{a},{b}\n" for a, b in zip(PEOPLE[::2], PEOPLE[1::2])),
    "a weight missing in the first line": "ada,bo,?\nbo,cy,2\ncy,ada,3\n",
    "zero and one are nodes": "0,1\n1,2\n2,0\n",
}


@pytest.mark.parametrize("case", WITHOUT_HEADER)
def test_an_edge_is_not_taken_for_a_header(tmp_path, case):
    text = WITHOUT_HEADER[case]
    ids = {name for line in text.splitlines() for name in line.split(",")[:2]}
    nodes, said = read(tmp_path / "e.csv", text, drop_bad=True)
    assert nodes == len(ids)
    assert "without a header line" in said
    assert read(tmp_path / "e.csv", text, header=False, drop_bad=True)[0] == nodes


def test_what_was_decided_is_said_with_the_way_out(tmp_path):
    _, said = read(tmp_path / "e.csv", "a,b\n" + ring(numbered("n")))
    assert "with the header a, b: these names stand nowhere else" in said
    assert "If not, give --no-header (header=False in Python)." in said
    nodes, said = read(tmp_path / "e.csv", "a,b\nx,y\ny,z\n")  # two edges prove nothing
    assert nodes == 5
    assert "the first line, 'a,b', is taken for an edge, though its values stand nowhere else" in said
    assert "If it names the columns, give --header (header=True in Python)." in said
    nodes, said = read(tmp_path / "e.csv", "id,time\ntime,place\n")
    assert nodes == 3
    assert "sounds like one, but its values stand further down, too" in said
    for delimiter in (",", ", "):
        _, said = read(tmp_path / "e.csv", ring(PEOPLE, delimiter=delimiter))
        assert "If" not in said, "nothing to say where nothing was in doubt"


def test_the_user_decides(tmp_path):
    assert read(tmp_path / "e.csv", "a,b\nx,y\ny,z\n", header=True)[0] == 3
    assert read(tmp_path / "e.csv", "a,b\n" + ring(numbered("n")), header=False)[0] == 8
    assert read(tmp_path / "e.csv.gz", "source,target\nx,y\n", header=False)[0] == 4
    nodes, said = read(tmp_path / "e.csv", "x,y,2\ny,z,3\n", header=True)
    assert (nodes, "with the header x, y, 2" in said) == (2, True)
    with pytest.raises(DataError, match="holds a header but no rows"):
        read(tmp_path / "e.csv", "a,b\n", header=True)
    with pytest.raises(DataError, match="the header has 3 columns, the rows below it 2"):
        read(tmp_path / "e.csv", "a,b,c\n1,2\n2,3\n", header=True)
    with pytest.raises(UsageError, match="no header: columns are numbered from 1"):
        read(tmp_path / "e.csv", "a,b,w\nx,y,1\n", header=False, weight_column="w")


def test_who_asks_for_a_column_by_number_has_no_header(tmp_path):
    text = ring(PEOPLE[:6], ",2024-05-01")
    nodes, said = read(tmp_path / "e.csv", "a,b,2024-04-30\n" + text, time_column="3")
    assert nodes == 8
    assert "without a header line." in said


def test_lines_in_messages_are_right_with_and_without_header(tmp_path):
    for header in ("", "# c\n\na,b\n"):
        text = header + ring(numbered("n")) + "n1,\n"
        with pytest.raises(DataError, match=f"line {text.count(chr(10))}: no node id"):
            read(tmp_path / "e.csv", text)


def test_snapshots_of_one_folder_are_decided_together(tmp_path, caplog):
    for day in range(3):
        (tmp_path / f"day{day}.csv").write_text("a,b\nx,y\ny,z\n")
    (odd,) = open_tables(tmp_path / "day0.csv")
    assert not odd.header, "one such file alone proves too little"
    with caplog.at_level(logging.INFO, logger="topoter"):
        snapshots, ids = read_snapshots(tmp_path)
    assert ids == ["x", "y", "z"]
    assert [edges.size(1) for _, edges in snapshots] == [2, 2, 2]
    assert caplog.text.count("with the header a, b") == 1, "what holds for many files is said once"
    assert len(read_snapshots(tmp_path, header=False)[1]) == 5
    (tmp_path / "day3.csv").write_text("a,b\nb,x\n")  # b is a node after all
    assert read_snapshots(tmp_path)[1] == ["a", "b", "x", "y", "z"]


def open_tables(*paths: Path) -> list:
    from topoter.graphs.headers import EDGES

    return settle([open_table(path, asked_columns=[], drop_bad=False) for path in paths], [0, 1], EDGES)


def test_tables_about_nodes(tmp_path):
    path = tmp_path / "labels.csv"
    rows = "".join(f"{name},{('red', 'green')[place % 2]}\n" for place, name in enumerate(PEOPLE))
    path.write_text("person,colour\n" + rows)
    table = read_node_table(path)
    assert list(table.columns) == ["colour"]
    assert len(table.ids) == 20
    path.write_text(rows)
    assert len(read_node_table(path).ids) == 20
    path.write_text("person,colour\nada,red\nbo,green\n")
    table = read_node_table(path)
    assert len(table.ids) == 3
    assert "If it names the columns, name the column of ids (--id-column)." in table.notes[0]
    assert len(read_node_table(path, id_column="person").ids) == 2
