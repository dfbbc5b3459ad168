"""Tables opened, with it decided whether the first line names the columns.

Words above words may be a header or the first row. Asked of the whole file then: if the first line is a row like
the others, how likely is a row like it? Two things make it unlikely. Its values stand nowhere else, while those of
nearly all other rows do: most edges share a node with another edge. And it is of another kind than what stands
below it: `name` above `n1`, `n2`, `n3`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np

from topoter.errors import UsageError, unknown_name
from topoter.graphs.arrow import pa, pc
from topoter.graphs.problems import existing
from topoter.graphs.sniffing import shortened
from topoter.graphs.tables import Table, open_parquet
from topoter.graphs.text import TextTable, open_text_table

# A first line that at most one row in twenty resembles is taken for a header.
UNLIKELY = 0.05


class Override(NamedTuple):
    """What the rows of a table are, and how a user decides about the first one."""

    row: str
    if_header: str
    if_row: str


EDGES = Override("an edge", "give --header (header=True in Python)", "give --no-header (header=False in Python)")
NODES = Override("a node", "name the column of ids (--id-column)", "put a line of names above it")


def open_table(
    path: Path,
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    asked_columns: Iterable[str | None],
    drop_bad: bool,
    single: bool = False,
) -> Table:
    """Open a table by its extension; what is not parquet is taken for delimited text, its header perhaps in doubt.

    `single`: whether text may have one column only.
    """
    table: Table
    if existing(path).suffix.lower() in (".parquet", ".pq"):
        table = open_parquet(path, drop_bad)
    else:
        table = open_text_table(path, delimiter, header, asked_columns, drop_bad, single)
    for name in asked_columns:
        if name is not None and name not in table.names:
            if isinstance(table, TextTable) and not table.sure:  # nothing but the name asked for tells which it is
                message = f"{unknown_name('column', name, table.first)} The first line was taken for the names."
                raise UsageError(f"{path}: {message}")
            hint = "" if table.header else " The file has no header: columns are numbered from 1."
            raise UsageError(f"{path}: {unknown_name('column', name, table.names)}{hint}")
    return table


def settle(tables: Sequence[Table], columns: Sequence[int], override: Override) -> list[Table]:
    """The same tables, their first lines taken for headers or for rows, and their notes saying which and why.

    `columns` are the places of the values that should recur: the ends of edges, or columns about nodes. Tables with
    the same first line are decided together.
    """
    alike: dict[tuple[str, ...], list[TextTable]] = {}
    for table in tables:
        if isinstance(table, TextTable) and not table.sure:
            alike.setdefault(tuple(table.first), []).append(table)
    decided = {first: _decide(group, columns, override) for first, group in alike.items()}
    return [
        table.settled(*decided[tuple(table.first)]) if isinstance(table, TextTable) and not table.sure else table
        for table in tables
    ]


def _decide(tables: Sequence[TextTable], columns: Sequence[int], override: Override) -> tuple[bool, str]:
    """Whether the first line, the same in all of them, is a header, and what a user should know about that."""
    guess, first = tables[0].header, shortened(tables[0].delimiter.join(tables[0].first))
    odds = [_odds(table, columns, together=override is EDGES) for table in tables]
    known = [value for value in odds if value is not None]
    if len(known) < len(odds):  # whatever it sounds like, a value that stands further down is no name of a column
        reason = f"the first line, {first!r}, sounds like one, but its values stand further down, too"
        return False, f"{reason}. If it is one, {override.if_header}" if guess else ""
    if prod(known) <= UNLIKELY:
        reason = f"these names stand nowhere else, unlike the values of other lines. If not, {override.if_row}"
        return True, "" if guess else reason
    reason = f"the first line, {first!r}, is taken for {override.row}, though its values stand nowhere else"
    return False, f"{reason}. If it names the columns, {override.if_header}"


def _odds(table: TextTable, columns: Sequence[int], together: bool) -> float | None:
    """How likely a first line like this is among rows like those below it; None if its values recur further down.

    `together`: the values of all columns name the same things, as the two ends of edges do. Of what stands only once,
    the share is taken with the first line counted in: a short file proves little.
    """
    rows = table.settled(header=False)
    names = [rows.names[column] for column in columns]
    arrow = rows.read(names, as_text=names)
    values = [pc.utf8_trim_whitespace(arrow[name]) for name in names]
    searched = values
    if together:
        searched = [pa.chunked_array([chunk for column in values for chunk in column.chunks])] * len(values)
    # Comparing with the first row is quick and mostly the end of it; counting all values is not.
    if any(pc.sum(pc.equal(places, column[0])).as_py() > 1 for places, column in zip(searched, values)):
        return None
    if table.header:
        return 0.0  # a name that headers have, and no node has: nothing else needs to be asked
    once = [_seen_once(searched[0])] * len(values) if together else [_seen_once(column) for column in values]
    lone = np.logical_and.reduce([pc.is_in(column, value_set=only) for column, only in zip(values, once)])
    return float(lone.mean()) * min(map(_odds_of_kind, zip(*table.sample)))


def _seen_once(column: pa.ChunkedArray) -> pa.Array:
    counted = pc.value_counts(column)
    return counted.field("values").filter(pc.equal(counted.field("counts"), 1))


def _odds_of_kind(column: Sequence[str]) -> float:
    """How likely a column starts with a value of its first one's kind, if all are drawn alike."""
    first, *others = map(_kind, column)
    kinds = Counter(others)
    if first in kinds:
        return 1.0
    return (1 + sum(count == 1 for count in kinds.values())) / len(column)


def _kind(value: str) -> str:
    """What a value looks like: `n17` is a9, `Ada Lovelace` Aa Aa, 2024-05-01 9-9-9."""

    def letters(run: re.Match[str]) -> str:
        text = run.group()
        return "A" if text.isupper() else "Aa" if text[0].isupper() else "a"

    return re.sub(r"\d+", "9", re.sub(r"[^\W\d_]+", letters, value))
