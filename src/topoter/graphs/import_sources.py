"""Files of edges or features as DuckDB reads them: parquet or delimited text, one or many, never loaded here."""

from __future__ import annotations

import glob
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from topoter.errors import DataError, UsageError, unknown_name
from topoter.graphs.engine import Engine
from topoter.graphs.problems import existing
from topoter.graphs.sniffing import choose_delimiter, is_header, is_number, shortened, split, usual_width
from topoter.graphs.text import BINARY_KINDS, open_binary

_SAMPLE = 50  # lines that decide on delimiter and header
_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_NUMBERS = _INTEGERS | {"FLOAT", "DOUBLE", "BOOLEAN", "HUGEINT", "UBIGINT", "UHUGEINT"}


@dataclass
class Source:
    """Some files with the same columns, as one relation.

    Args:
        relation: what follows FROM in SQL.
        types: DuckDB's type of each column, in order.
        numeric: columns that hold numbers; in text files by a sample.
        named: columns whose names the file itself gives.
    """

    files: list[Path]
    relation: str
    types: dict[str, str]
    numeric: set[str]
    named: list[str]
    text: bool
    notes: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        return list(self.types)

    @property
    def title(self) -> str:
        """The files in a message."""
        more = f" and {len(self.files) - 1:,} more" if len(self.files) > 1 else ""
        return f"{self.files[0]}{more}"

    def id_of(self, column: str) -> tuple[str, bool]:
        """The SQL of a column of ids, and whether they are integers by type; else text, without blanks around it."""
        if self.types[column] in _INTEGERS:
            return f"{quoted(column)}::BIGINT", True
        return f"nullif(trim({quoted(column)}::VARCHAR), '')", False

    def check_column(self, name: str | None) -> None:
        if name is not None and name not in self.types:
            raise UsageError(f"{self.title}: {unknown_name('column', name, self.names)}")


def quoted(name: str) -> str:
    """A column's name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: object) -> str:
    """A text in SQL."""
    return "'" + str(value).replace("'", "''") + "'"


def find_files(patterns: Iterable[str | Path]) -> list[Path]:
    """The files that paths and patterns like edges/*.parquet stand for, in the order of their names."""
    found: list[Path] = []
    for pattern in patterns:
        path = Path(pattern)
        if not path.exists() and glob.has_magic(str(pattern)):
            matches = sorted(Path(match) for match in glob.glob(str(pattern), recursive=True))
            if not matches:
                raise DataError(f"{pattern}: no file matches.")
            found += [existing(match) for match in matches]
        else:
            found.append(existing(path))
    return found


def open_source(
    engine: Engine,
    files: Sequence[Path],
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    asked: Iterable[str | None] = (),
    drop_bad: bool = False,
) -> Source:
    """Find out what the files are: all parquet, or all text with one delimiter and the same columns."""
    are_parquet = {file.suffix.lower() in (".parquet", ".pq") for file in files}
    if are_parquet == {True, False}:
        raise UsageError(f"{files[0]} and the others must be of one kind: all parquet, or all text.")
    if True in are_parquet:
        return _open_parquet(engine, list(files))
    heads = [_Head.read(file, delimiter, header, {name for name in asked if name}) for file in files]
    first = heads[0]
    for file, head in zip(files[1:], heads[1:]):
        if head.delimiter != first.delimiter:
            raise DataError(
                f"{file} is separated by {head.delimiter!r}, but {files[0]} by {first.delimiter!r}: files that are "
                "imported together must be of one kind."
            )
        if (head.header, len(head.names)) != (first.header, len(first.names)) or (
            first.header and head.names != first.names
        ):
            raise DataError(
                f"{file} has the columns {', '.join(head.names[:6])}, but {files[0]} has {', '.join(first.names[:6])}."
            )
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in first.names)
    options = {
        "delim": literal(first.delimiter),
        "header": str(first.header).lower(),
        "columns": "{" + columns + "}",
        "auto_detect": "false",
        "quote": "'\"'",
        "escape": "'\"'",
        "comment": "'#'",
        "ignore_errors": str(drop_bad).lower(),
    }
    said = ", ".join(f"{name}={value}" for name, value in options.items())
    found = f"with the header {', '.join(first.names[:6])}" if first.header else "without a header line"
    return Source(
        list(files),
        f"read_csv({_list(files)}, {said})",
        dict.fromkeys(first.names, "VARCHAR"),
        first.numeric,
        first.named,
        text=True,
        notes=[f"{files[0]}: {len(first.names)} columns, {found}{first.doubt}."],
    )


def _open_parquet(engine: Engine, files: list[Path]) -> Source:
    relation = f"read_parquet({_list(files)})"
    found = engine.rows(f"DESCRIBE SELECT * FROM {relation}")
    types = {str(name): str(kind) for name, kind, *_ in found}
    numeric = {name for name, kind in types.items() if kind in _NUMBERS or kind.startswith("DECIMAL")}
    return Source(files, relation, types, numeric, list(types), text=False)


def _list(files: Iterable[Path]) -> str:
    return "[" + ", ".join(literal(file) for file in files) + "]"


@dataclass
class _Head:
    """What the first lines of a text file tell."""

    delimiter: str
    header: bool
    names: list[str]
    named: list[str]
    numeric: set[str]
    doubt: str

    @classmethod
    def read(cls, path: Path, delimiter: str | None, header: bool | None, asked: set[str]) -> _Head:
        lines = _first_lines(path)
        char = choose_delimiter(path, lines, delimiter)
        if char == " " and any(line != " ".join(line.split()) for line in lines):
            raise DataError(
                f"{path}: columns are separated by several blanks or tabs; import takes one (tr -s ' \\t' ' ')."
            )
        rows = [split(line, char) for line in lines]
        width = usual_width(rows)
        doubt = ""
        if header is None:
            header, sure = is_header(rows, asked) if len(rows[0]) == width else (False, True)
            if not sure:
                other = "--no-header" if header else "--header"
                taken = "for a header" if header else "for a row"
                doubt = f"; the first line, {shortened(lines[0])!r}, is taken {taken}: if not, give {other}"
        numbers = [str(number) for number in range(1, width + 1)]
        names = [name or number for name, number in zip(rows[0], numbers)] if header else numbers
        if len(set(names)) < len(names):
            raise DataError(f"{path}: the header names a column twice.")
        below = [row for row in rows[int(header) :] if len(row) == width]
        numeric = {
            name
            for place, name in enumerate(names)
            if sum(is_number(row[place]) for row in below) >= max(1, len(below) / 2)
        }
        named = [name for name in rows[0] if name] if header else names
        return cls(char, header, names, named, numeric, doubt)


def _first_lines(path: Path) -> list[str]:
    try:
        with open_binary(path) as file:
            if b"\0" in (start := file.read(4096)):
                kind = BINARY_KINDS.get(start[:4], "a delimited text file was expected")
                raise DataError(f"{path} is a binary file ({kind}).")
            file.seek(0)
            stream = io.TextIOWrapper(file, encoding="utf-8-sig")
            rows = (line.rstrip("\r\n") for line in stream if line.strip() and not line.startswith("#"))
            lines = list(islice(rows, _SAMPLE))
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8 text: save it as UTF-8.") from None
    except (EOFError, OSError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    if not lines:
        raise DataError(f"{path} is empty.")
    return lines
