"""Tables in text files: which delimiter, is there a header, on which line does a row stand."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

from topoter.errors import BadRowError, DataError
from topoter.graphs.archives import read_unpacked
from topoter.graphs.arrow import pa, pacsv, pc
from topoter.graphs.ids import text_ids
from topoter.graphs.problems import first_line
from topoter.graphs.sniffing import DELIMITERS, choose_delimiter, is_header, shortened, split, usual_width
from topoter.graphs.tables import Table

BINARY_KINDS = {
    b"PAR1": "a parquet file: name it .parquet",
    b"\x93NUM": "a NumPy array: name it .npy",
    b"PK\x03\x04": "a workbook? Save its sheet as CSV; a .npz or .pt keeps that name",
    b"\xd0\xcf\x11\xe0": "an old workbook? Save its sheet as CSV",
    b"SQLi": "a database: write its tables to CSV or parquet",
}
_SAMPLE = 50  # lines that decide on delimiter and header
_NAMED = 40  # columns that a note names
_BLANKS = " \r"
_BLANK_LINES = re.compile(rb"(?:[ \t\r]*\n)*")
_SEPARATOR = re.compile(rb"sep=([,;|\t])\r?\n")  # a first line by which spreadsheets tell each other


@dataclass(kw_only=True)
class TextTable(Table):
    """A delimited text file, sniffed but not yet parsed."""

    text: bytes  # the rows and, if there is one, the header; no comments
    delimiter: str
    sample: list[list[str]]  # the first rows, split: all of the usual width
    comments: int  # how many lines of them there were
    sure: bool = False  # whether `header` is decided, or the whole file should be asked

    @property
    def first(self) -> list[str]:
        """The fields of the first line."""
        return self.sample[0]

    @property
    def names(self) -> list[str]:
        """From the header; what has no name there is numbered from 1."""
        numbers = [str(number) for number in range(1, len(self.first) + 1)]
        return [name or number for name, number in zip(self.first, numbers)] if self.header else numbers

    def settled(self, header: bool, reason: str = "") -> TextTable:
        """The same file, its first line taken for a header or not, which its notes tell, with the reason if any."""
        table = replace(self, header=header, sure=True)
        kind = next((name for name, value in DELIMITERS.items() if value == self.delimiter), repr(self.delimiter))
        more = f" and {len(table.names) - _NAMED:,} more" if len(table.names) > _NAMED else ""
        found = f"with the header {', '.join(table.names[:_NAMED])}{more}" if header else "without a header line"
        why = f": {reason}" if reason else ""
        table.notes = [f"{self.path}: {kind} separated, {len(self.first)} columns, {found}{why}."]
        if self.comments:
            table.notes.append(f"{self.path}: skipped {self.comments:,} comment lines (they start with #).")
        if header:
            name, count = Counter(table.names).most_common(1)[0]
            if count > 1:
                raise DataError(f"{self.path}: the header names the column {name!r} twice.")
            if not re.search(rb"\n\s*\S", self.text):
                raise DataError(f"{self.path} is empty: it holds a header but no rows.")
        return table

    def read(self, columns: Sequence[str], as_text: Iterable[str] = ()) -> pa.Table:
        """Parse some columns; types are inferred except for those to be left as text."""
        ragged: list[None] = []

        def on_ragged(_: Any) -> str:
            ragged.append(None)  # called from several threads: append is atomic, a counter would not be
            return "skip" if self.drop_bad else "error"

        try:
            table = pacsv.read_csv(
                pa.BufferReader(self.text),
                # Large blocks: a row of a wide table must fit into one.
                read_options=pacsv.ReadOptions(column_names=self.names, skip_rows=int(self.header), block_size=1 << 25),
                parse_options=pacsv.ParseOptions(delimiter=self.delimiter, invalid_row_handler=on_ragged),
                convert_options=pacsv.ConvertOptions(
                    include_columns=list(columns), column_types={name: pa.string() for name in as_text}
                ),
            )
        except pa.ArrowInvalid as error:
            raise self._ragged_error(error) from None
        self.ragged = len(ragged)
        return table

    def ids(self, arrow: pa.Table, names: Sequence[str]) -> list[pa.ChunkedArray]:
        return [_integers_beside_blanks(ids) for ids in super().ids(arrow, names)]

    def padded_integers(self) -> bool:
        at_start = re.match(rb"-?0[0-9xX]", self.text)
        return bool(at_start or re.search(rb"[\n,;|\t \"]-?0[0-9xX]", self.text))

    def where(self, row: int) -> str:
        """The place of a data row, as "file, line n"; the file is scanned again, so only call it to fail."""
        number, _ = next(islice(self._data_lines(), row, None), (None, ""))
        return f"{self.path}, line {number}" if number else str(self.path)

    def _data_lines(self) -> Iterator[tuple[int, str]]:
        with io.TextIOWrapper(open_binary(self.path), encoding="utf-8-sig") as lines:
            numbered = ((number, line.rstrip("\n")) for number, line in enumerate(lines, start=1))
            skipped = ("", self.delimiter * (len(self.first) - 1), f"sep={self.delimiter}")
            rows = (
                (number, line) for number, line in numbered if line.strip(_BLANKS) not in skipped and line[0] != "#"
            )
            yield from islice(rows, int(self.header), None)

    def _ragged_error(self, error: Exception) -> DataError:
        expected = len(self.names)
        for number, line in self._data_lines():
            found = len(split(line, self.delimiter))
            if found != expected:
                problem = f"{found} columns where {expected} were expected: {shortened(line)!r}"
                return BadRowError(f"{self.path}, line {number}: {problem}.")
        return DataError(f"{self.path}: {first_line(error)}")


def _integers_beside_blanks(ids: pa.ChunkedArray) -> pa.ChunkedArray:
    """Integers also where a field holds blanks alone, which Arrow takes for text, and thereby the whole column."""
    if not pa.types.is_string(ids.type) or not pc.any(pc.equal(ids, "")).as_py():
        return ids
    missing = pc.is_in(ids, value_set=pa.array(["", *pacsv.ConvertOptions().null_values]))
    found = text_ids(pc.if_else(missing, pa.scalar(None, pa.string()), ids))
    return found if pa.types.is_integer(found.type) else ids


def open_text_table(
    path: Path,
    delimiter: str | None,
    header: bool | None,
    asked_columns: Iterable[str | None],
    drop_bad: bool,
    single: bool = False,
) -> TextTable:
    """Load a text file and find out its delimiter, its number of columns and whether it has a header.

    `single`: whether it may have one column only.
    """
    text, comments = _without_comments(_load(path))
    said = _SEPARATOR.match(text)
    if said:
        text, delimiter = text[said.end() :], delimiter or said.group(1).decode()
    stream = io.TextIOWrapper(io.BytesIO(text), encoding="utf-8")
    lines = [line.rstrip("\n") for line in islice(stream, _SAMPLE) if line.strip()]
    if not lines:
        raise DataError(f"{path} is empty: it holds comments only.")
    char = choose_delimiter(path, lines, delimiter, single)
    rows = [split(line, char) for line in lines]
    width = usual_width(rows)
    sure = True
    if len(rows[0]) != width:
        if header:
            raise DataError(f"{path}: the header has {len(rows[0])} columns, the rows below it {width}.")
        header = False  # a bad row, of which reading will tell the line
    if header is None:
        header, sure = is_header(rows, {name for name in asked_columns if name})
    text = _single_blanks(text) if char == " " else _without_empty_rows(text, char.encode() * (width - 1))
    table = TextTable(
        path=path,
        drop_bad=drop_bad,
        header=header,
        text=text[_BLANK_LINES.match(text).end() :],  # type: ignore[union-attr]
        delimiter=char,
        sample=[row for row in rows if len(row) == width],
        comments=comments,
    )
    return table.settled(header) if sure else table


def open_binary(path: Path) -> IO[bytes]:
    """Open a file for reading, through gzip if its content says so, whatever its name says."""
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if zipped else path.open("rb")  # type: ignore[return-value]


def _load(path: Path) -> bytes:
    """The whole text of a file as UTF-8 bytes; a binary file is refused."""
    try:
        with open_binary(path) as file:
            text = read_unpacked(file, path)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path} is a damaged gzip file: {error}.") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error
    if text[:2] in (b"\xff\xfe", b"\xfe\xff"):  # what spreadsheets call Unicode text
        raise DataError(f"{path} is UTF-16 text: save it as UTF-8.")
    text = text.removeprefix(b"\xef\xbb\xbf")
    if b"\n" not in text:  # line ends of the old Macintosh, which some spreadsheets still write
        text = text.replace(b"\r", b"\n")
    if b"\0" in text[:65536]:
        kind = BINARY_KINDS.get(text[:4], "a delimited text file was expected")
        raise DataError(f"{path} is a binary file ({kind}).")
    if not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError as error:
            line = text.count(b"\n", 0, error.start) + 1
            raise DataError(
                f"{path}, line {line}: byte 0x{text[error.start]:02x} is not UTF-8 text "
                "(a binary file, or one in another encoding: save it as UTF-8)."
            ) from None
    if not text or text.isspace():
        raise DataError(f"{path} is empty.")
    return text


def _without_comments(text: bytes) -> tuple[bytes, int]:
    if not text.startswith(b"#") and b"\n#" not in text:
        return text, 0
    # The literal prefix "\n#" lets the regex engine jump from comment to comment.
    text, count = re.subn(rb"\n#[^\n]*", b"", b"\n" + text)
    return text.removeprefix(b"\n"), count


def _without_empty_rows(text: bytes, empty: bytes) -> bytes:
    """Rows of delimiters alone, as spreadsheets leave them below a table, go as empty lines do."""
    return re.sub(rb"\n" + re.escape(empty) + rb"(?=\r?(\n|$))", b"", text) if b"\n" + empty in text else text


def _single_blanks(text: bytes) -> bytes:
    """One blank between fields and none at the ends of lines, because Arrow takes each as a delimiter."""
    text = text.replace(b"\t", b" ").replace(b"\r\n", b"\n")
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    return text.replace(b"\n ", b"\n").replace(b" \n", b"\n").strip(b" ")
