"""Guessing the shape of a text table from its first lines: delimiter, width, header."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

from topoter.errors import DataError, UsageError

# In the order they are tried. A space stands for any run of blanks and tabs.
DELIMITERS = {"comma": ",", "tab": "\t", "semicolon": ";", "pipe": "|", "space": " "}
HEADER_WORDS = {"id", "node", "source", "target", "src", "dst", "from", "to", "weight", "time", "timestamp"}


def split(line: str, delimiter: str) -> list[str]:
    """The fields of one line."""
    if delimiter == " ":
        return line.split()
    try:
        return [value.strip() for value in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:  # a field longer than csv allows: a very wide line under the wrong delimiter
        return line.split(delimiter)


def choose_delimiter(path: Path, lines: list[str], asked: str | None) -> str:
    """The delimiter under which most lines have the same number of columns, two at least."""
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
    if not agreeing[best]:
        names = ", ".join(name for name, char in DELIMITERS.items() if char in tried) or repr(asked)
        raise DataError(f"{path}: a single column was found. Delimiters tried: {names}.")
    return best


def usual_width(rows: list[list[str]]) -> int:
    """The commonest number of columns."""
    return Counter(len(row) for row in rows).most_common(1)[0][0]


def is_header(rows: list[list[str]], asked: set[str]) -> bool:
    """Whether the first row names columns: a usual or an asked-for name, or words above numbers."""
    first, others = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    words = [value for value in first if not _is_number(value)]
    if any(word in asked or word.lower() in HEADER_WORDS for word in words):
        return True
    # Names above numbers: no number in the first line, and a column of nothing but numbers below it.
    if len(words) < len(first) or not others:
        return False
    return any(all(_is_number(row[column]) for row in others) for column in range(len(first)))


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
