"""Tables in text files: which delimiter, is there a header, on which line does a row stand."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from topoter.errors import BadRowError, DataError
from topoter.graphs.sniffing import DELIMITERS, choose_delimiter, is_header, split, usual_width

if TYPE_CHECKING:
    import pyarrow as pa

BINARY_KINDS = {
    b"PAR1": "a parquet file: name it .parquet",
    b"\x93NUM": "a NumPy array: name it .npy",
    b"PK\x03\x04": "a zip archive: a .npz, .pt or .xlsx under another name?",
}
_SAMPLE = 50  # lines that decide on delimiter and header
_BLANK_LINES = re.compile(rb"(?:[ \t\r]*\n)*")
_SOMETHING = re.compile(rb"\S")


def open_binary(path: Path) -> IO[bytes]:
    """Open a file for reading, through gzip if its content says so, whatever its name says."""
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
        return gzip.open(path, "rb") if zipped else path.open("rb")  # type: ignore[return-value]
    except FileNotFoundError:
        raise DataError(f"{path}: no such file.") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder, not a file.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error


def load_text(path: Path) -> bytes:
    """The whole text of a file as UTF-8 bytes; a binary file is refused."""
    try:
        with open_binary(path) as file:
            text = file.read()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} is a damaged gzip file: {error}.") from error
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


@dataclass
class TextTable:
    """A delimited text file, sniffed but not yet parsed."""

    path: Path
    text: bytes  # the rows and, if there is one, the header; no comments
    delimiter: str
    sample: list[list[str]]  # the first rows, split: all of the usual width
    header: bool  # whether the first line names the columns
    sure: bool  # whether the first lines tell that, or the whole file should be asked
    drop_bad: bool
    comments: int = 0  # how many lines of them there were
    reason: str = ""  # what a user should know about the header
    ragged: int = 0  # rows with the wrong number of columns, dropped by the last read()

    @property
    def first(self) -> list[str]:
        """The fields of the first line."""
        return self.sample[0]

    @property
    def names(self) -> list[str]:
        """From the header; what has no name there is numbered from 1."""
        numbers = [str(number) for number in range(1, len(self.first) + 1)]
        return [name or number for name, number in zip(self.first, numbers)] if self.header else numbers

    @property
    def notes(self) -> list[str]:
        """What was found out about the file."""
        kind = next((name for name, value in DELIMITERS.items() if value == self.delimiter), repr(self.delimiter))
        header = f"with the header {', '.join(self.names[:6])}" if self.header else "without a header line"
        why = f": {self.reason}" if self.reason else ""
        notes = [f"{self.path}: {kind} separated, {len(self.first)} columns, {header}{why}."]
        if self.comments:
            notes.append(f"{self.path}: skipped {self.comments:,} comment lines (they start with #).")
        return notes

    def reread(self, header: bool, reason: str = "") -> TextTable:
        """The same file, its first line taken for a header or not."""
        table = replace(self, header=header, sure=True, reason=reason)
        if header:
            repeated = [name for name, count in Counter(table.names).items() if count > 1]
            if repeated:
                raise DataError(f"{self.path}: the header names the column {repeated[0]!r} twice.")
            end = self.text.find(b"\n")
            if end < 0 or not _SOMETHING.search(self.text, end):
                raise DataError(f"{self.path} is empty: it holds a header but no rows.")
        return table

    def read(self, columns: Sequence[str], as_text: Iterable[str] = ()) -> pa.Table:
        """Parse some columns; types are inferred except for those to be left as text."""
        import pyarrow as pa
        import pyarrow.csv as pacsv

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

    def padded_integers(self) -> bool:
        """Whether some field may look like 007, which type inference would turn into 7."""
        if re.match(rb"-?0[0-9]", self.text):
            return True
        return re.search(rb"[\n,;|\t \"]-?0[0-9]", self.text) is not None

    def where(self, row: int) -> str:
        """The place of a data row, as "file, line n"; the file is scanned again, so only call it to fail."""
        for number, (line, _) in enumerate(self._data_lines()):
            if number == row:
                return f"{self.path}, line {line}"
        return str(self.path)

    def _data_lines(self) -> Iterator[tuple[int, str]]:
        header = self.header
        with io.TextIOWrapper(open_binary(self.path), encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if line.startswith("#") or not line.strip():
                    continue
                if header:
                    header = False
                    continue
                yield number, line.rstrip("\n")

    def _ragged_error(self, error: Exception) -> DataError:
        expected = len(self.names)
        for number, line in self._data_lines():
            found = len(split(line, self.delimiter))
            if found != expected:
                problem = f"{found} columns where {expected} were expected: {shortened(line)!r}"
                return BadRowError(f"{self.path}, line {number}: {problem}.")
        return DataError(f"{self.path}: {str(error).splitlines()[0]}")


def open_text_table(
    path: Path, delimiter: str | None, header: bool | None, asked_columns: Iterable[str | None], drop_bad: bool
) -> TextTable:
    """Load a text file and find out its delimiter, its number of columns and whether it has a header."""
    text, comments = _without_comments(load_text(path))
    lines = [line for line in _first_lines(text) if line.strip()]
    if not lines:
        raise DataError(f"{path} is empty: it holds comments only.")
    char = choose_delimiter(path, lines, delimiter)
    rows = [split(line, char) for line in lines]
    width = usual_width(rows)
    sure = True
    if len(rows[0]) != width:
        if header:
            raise DataError(f"{path}: the header has {len(rows[0])} columns, the rows below it {width}.")
        header = False  # a bad row, of which reading will tell the line
    if header is None:
        header, sure = is_header(rows, {name for name in asked_columns if name})
    text = _single_blanks(text) if char == " " else text
    text = text[_BLANK_LINES.match(text).end() :]  # type: ignore[union-attr]
    sample = [row for row in rows if len(row) == width]
    table = TextTable(path, text, char, sample, header, sure, drop_bad, comments)
    return table.reread(header) if sure else table


def shortened(line: str) -> str:
    """A line as a message can show it."""
    return line if len(line) <= 60 else line[:57] + "..."


def _without_comments(text: bytes) -> tuple[bytes, int]:
    if not text.startswith(b"#") and b"\n#" not in text:
        return text, 0
    # The literal prefix "\n#" lets the regex engine jump from comment to comment.
    text, count = re.subn(rb"\n#[^\n]*", b"", b"\n" + text)
    return text.removeprefix(b"\n"), count


def _first_lines(text: bytes) -> list[str]:
    stream = io.TextIOWrapper(io.BytesIO(text), encoding="utf-8")
    return [line.rstrip("\n") for line, _ in zip(stream, range(_SAMPLE))]


def _single_blanks(text: bytes) -> bytes:
    """One blank between fields and none at the ends of lines, because Arrow takes each as a delimiter."""
    text = text.replace(b"\t", b" ").replace(b"\r\n", b"\n")
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    return text.replace(b"\n ", b"\n").replace(b" \n", b"\n").strip(b" ")
