"""Guessing the shape of a text table from its first lines: delimiter, width, header."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

from topoter.errors import DataError, UsageError

# In the order they are tried. A space stands for any run of blanks and tabs.
DELIMITERS = {"comma": ",", "tab": "\t", "semicolon": ";", "pipe": "|", "space": " "}
# Looked for in a header, in this order; otherwise the first two columns are the ends of an edge.
END_NAMES = [("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("node1", "node2")]
HEADER_WORDS = {"id", "node", "source", "target", "src", "dst", "from", "to", "weight", "time", "timestamp"}
MISSING = {"na", "n/a", "null", "none", "-", "?"}  # in the first row of a column of numbers, no name of it


def split(line: str, delimiter: str) -> list[str]:
    """The fields of one line."""
    if delimiter == " ":
        return line.split()
    try:
        return [value.strip() for value in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:  # a field longer than csv allows: a very wide line under the wrong delimiter
        return line.split(delimiter)


def choose_delimiter(path: Path, lines: list[str], asked: str | None, single: bool = False) -> str:
    """The delimiter under which most lines have the same number of columns, two at least unless `single`."""
    if asked is not None:
        asked = DELIMITERS.get(asked, asked.replace("\\t", "\t"))
        if len(asked) != 1:
            known = ", ".join(DELIMITERS)
            raise UsageError(f"The delimiter must be one character or one of {known}. Got {asked!r} instead.")
    tried = [asked] if asked else list(DELIMITERS.values())
    agreeing = {}
    for char in tried:
        rows = [split(line, char) for line in lines]
        width = usual_width(rows)
        agreeing[char] = sum(len(row) == width for row in rows) if width > 1 else 0
    best = max(tried, key=lambda char: agreeing[char])  # the first of equals
    if not agreeing[best] and not single:
        names = ", ".join(name for name, char in DELIMITERS.items() if char in tried) or repr(asked)
        raise DataError(
            f"{path}: a single column was found. Delimiters tried: {names}. A line needs two at least: the ids of an "
            "edge, or a node's id and what is known of it."
        )
    return best


def usual_width(rows: list[list[str]]) -> int:
    """The commonest number of columns."""
    return Counter(len(row) for row in rows).most_common(1)[0][0]


def is_header(rows: list[list[str]], asked: set[str]) -> tuple[bool, bool]:
    """Whether the first row names columns, and whether that is sure or the whole file should be asked."""
    first, others = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    columns = range(len(first))
    lower = {value.lower() for value in first}
    ends = any(lower.issuperset(pair) for pair in END_NAMES)
    if asked.intersection(first) or (ends and lower & HEADER_WORDS):
        return True, True
    words = [not is_number(value) for value in first]
    if all(words) and any(
        first[column].lower() not in MISSING and _holds_numbers([row[column] for row in others]) for column in columns
    ):
        return True, True  # names above numbers
    if first == [str(column) for column in columns] and others:
        # Numbers above words: the names that pandas gives columns without any.
        return not any(is_number(value) for row in others for value in row), True
    if ends or lower & HEADER_WORDS:
        return True, False  # and yet, among words, `time` and `u` may be nodes
    # A number is no name; and who asks for a column by its number says that the columns have no names.
    return False, not all(words) or any(name.isdigit() for name in asked)


def shortened(line: str) -> str:
    """A line as a message can show it."""
    return line if len(line) <= 60 else line[:57] + "..."


def _holds_numbers(column: list[str]) -> bool:
    """Nothing but numbers and gaps, and mostly numbers."""
    numbers = [value for value in column if is_number(value)]
    gaps = [value for value in column if not value.strip() or value.strip().lower() in MISSING]
    return len(numbers) > len(gaps) and len(numbers) + len(gaps) == len(column)


def is_number(value: str) -> bool:
    """Whether a field holds a number, NaN and infinity among them."""
    try:
        float(value)
    except ValueError:
        return False
    return True
