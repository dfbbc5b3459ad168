"""Tables a reader can sort, the same on a page, in Markdown and in a terminal."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from topoter.errors import UsageError

if TYPE_CHECKING:
    import rich.console
    import rich.table
    from markupsafe import Markup

MISSING, NOT_RUN = "\N{EN DASH}", "not run"
MOST_KEPT = 24  # characters of a name or a word that a terminal does not break
LIMITS = ("> ", "out of memory")  # what a cell begins with whose runs were ended by a limit

# A number, then a deviation or a short unit: "83.4 ± 0.3", "736,260", "−0.4", "2e-4", "12 s", "7 %".
_NUMBER = re.compile(
    r"([+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:e[+-]?\d+)?)\s*(?:±.*|%|[a-zµ]{1,4})?", re.IGNORECASE
)


class Mark(Enum):
    """How a value compares with the one it is held against; the sign says it without colour."""

    BETTER = ("▲", "better")
    UNTRAINED = ("△", "better, but not by training")
    WITHIN = ("≈", "within one deviation")
    WORSE = ("▼", "worse")

    @property
    def sign(self) -> str:
        return str(self.value[0])

    @property
    def word(self) -> str:
        return str(self.value[1])


@dataclass(frozen=True)
class Cell:
    """A cell that is more than its text.

    Args:
        text: what is shown.
        sort: what the cell sorts by; the number in `text` unless given.
        mark: better, within one deviation, worse.
        strong: set in bold, e.g. the best of a column.
        wrap: a sentence, which may break into lines.
    """

    text: str
    sort: float | None = None
    mark: Mark | None = None
    strong: bool = False
    wrap: bool = False

    @property
    def key(self) -> float | None:
        """The number that the cell sorts by."""
        return sort_key(self.text) if self.sort is None else self.sort

    @property
    def gap(self) -> bool:
        """A gap comes last, whichever way a column is sorted."""
        return self.text.strip() in ("", MISSING, NOT_RUN) or self.text.startswith(LIMITS)


CellLike = Cell | str | float | int | None


@dataclass
class Table:
    """A table whose rows a click on a header sorts.

        Table(["method", "test"], [["raw", "58.1 ± 0.0"], ["topoter", "83.4 ± 0.3"]], caption="Cora")

    Args:
        columns: the names of the columns.
        rows: one sequence per row, as long as `columns`; its first cell names the row.
        caption: the title above the table.
        note: a line below it.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[CellLike]]
    caption: str = ""
    note: str = ""
    cells: list[list[Cell]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.cells = [[_as_cell(value) for value in row] for row in self.rows]
        for row in self.cells:
            if len(row) != len(self.columns):
                raise UsageError(f"A table of {len(self.columns)} columns got a row of {len(row)} cells.")

    def __html__(self) -> Markup:
        from topoter.report.page import part

        return part("table", table=self, rows=self.cells, numeric=self._numeric(), marks=self._marks())

    def _repr_html_(self) -> str:
        """In a notebook."""
        return str(self.__html__())

    def markdown(self) -> str:
        """The table as Markdown, with its caption above and its note below; marks are signs."""
        lines = [list(self.columns), ["---"] * len(self.columns)]
        head = [[escape_markdown(name) for name in line] for line in lines]
        body = [[_marked(escape_markdown(cell.text), cell, "**") for cell in row] for row in self.cells]
        table = "\n".join(f"| {' | '.join(line)} |" for line in [*head, *body])
        parts = (f"{escape_markdown(self.caption)}:" if self.caption else "", table, escape_markdown(self.note))
        return "\n\n".join(part for part in parts if part) + "\n"

    def __rich_console__(self, console: rich.console.Console, options: rich.console.ConsoleOptions) -> Iterator[Any]:
        """The table for a terminal: no number and no short name is broken; columns that find no room follow below."""
        needed = [self._needed(place) + 3 for place in range(len(self.columns))]  # with the line and blanks beside it
        first, *others = range(len(self.columns))
        while True:
            count = len(others)
            while count > 1 and sum(needed[place] for place in (first, *others[:count])) + 1 > options.max_width:
                count -= 1
            yield self._rich([first, *others[:count]])
            others = others[count:]
            if not others:
                return

    def _needed(self, place: int) -> int:
        """The least width of a column: numbers and names of usual length stay on one line, other text may break."""
        cells, name = [_marked(row[place].text, row[place]) for row in self.cells], self.columns[place]
        if self._numeric()[place]:
            return max(map(len, (name, *cells)))
        kept = cells if place == 0 else [word for text in cells for word in text.split()]
        return max([len(name), *(min(len(text), MOST_KEPT) for text in kept)])

    def _rich(self, places: Sequence[int]) -> rich.table.Table:
        """Some of the columns."""
        import rich.table
        from rich.text import Text

        shown = rich.table.Table(
            title=Text(self.caption) if self.caption and 1 in (len(places), *places) else None,
            title_justify="left",
            caption=Text(self.note) if self.note and places[-1] == len(self.columns) - 1 else None,
            caption_justify="left",
        )
        numeric = self._numeric()
        for place in places:
            justify: Any = "right" if numeric[place] else "left"
            shown.add_column(Text(self.columns[place]), justify=justify, min_width=self._needed(place), overflow="fold")
        for row in self.cells:
            cells = [row[place] for place in places]
            shown.add_row(*(Text(_marked(cell.text, cell), style="bold" if cell.strong else "") for cell in cells))
        return shown

    def _numeric(self) -> list[bool]:
        """Whether a column holds numbers, its gaps left out."""
        filled = [[row[place] for row in self.cells if not row[place].gap] for place in range(len(self.columns))]
        return [bool(column) and all(cell.key is not None for cell in column) for column in filled]

    def _marks(self) -> list[Mark]:
        used = {cell.mark for row in self.cells for cell in row}
        return [mark for mark in Mark if mark in used]


def escape_markdown(text: str) -> str:
    """Text on one line that Markdown shows as it is: no cell ends early, no markup begins."""
    for character in "\\`*[|":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.replace("&", "&amp;").replace("<", "&lt;").split())


def sort_key(text: str) -> float | None:
    """The number a text starts with, `None` if it is not one: "83.4 ± 0.3" gives 83.4."""
    match = _NUMBER.fullmatch(text.strip().replace("\N{MINUS SIGN}", "-"))
    try:
        return float(match[1].replace(",", "")) if match else None
    except ValueError:  # a unit without a number
        return None


def mean_and_deviation(mean: float | None, std: float | None = None, digits: int = 1) -> str:
    """A mean with its deviation as text: "83.4 ± 0.3", "83.4" without one, "–" without a mean."""
    if mean is None or not math.isfinite(mean):
        return MISSING
    if std is None or not math.isfinite(std):
        return f"{mean:.{digits}f}"
    return f"{mean:.{digits}f} ± {std:.{digits}f}"


def difference(value: float, mark: Mark | None = None) -> Cell:
    """How much more: "+1.2", "−0.4"."""
    return Cell(f"{value:+.1f}".replace("-", "\N{MINUS SIGN}"), sort=value, mark=mark)


def compare(mean: float, std: float | None, other: float, other_std: float | None = None) -> Mark:
    """Hold a mean against another; closer than the larger of the two deviations is no difference."""
    # The slack is for 83.3 against 83.7 ± 0.4, whose difference is a little over 0.4 in binary.
    if abs(mean - other) <= max(std or 0.0, other_std or 0.0) + 1e-9:
        return Mark.WITHIN
    return Mark.BETTER if mean > other else Mark.WORSE


def signs() -> str:
    """What every sign means."""
    return ", ".join(f"{mark.sign} {mark.word}" for mark in Mark)


def many(number: int, noun: str) -> str:
    """A count with its noun: "1 seed", "3 seeds"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """A time as a reader says it: "8.3 s", "41 s", "12 min", "2.5 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{seconds / 3600:.1f} h"


def _as_cell(value: CellLike) -> Cell:
    if isinstance(value, Cell):
        return value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return Cell(MISSING)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Cell(f"{value:,}" if isinstance(value, int) else f"{value:.4g}", sort=float(value))
    return Cell(str(value))


def _marked(text: str, cell: Cell, strong: str = "") -> str:
    text = f"{strong}{text}{strong}" if cell.strong else text
    return f"{text} {cell.mark.sign}" if cell.mark else text
