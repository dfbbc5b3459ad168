"""Tables a reader can sort: numbers by value, "83.4 ± 0.3" by its mean, gaps always last."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from topoter.errors import UsageError
from topoter.report.markup import Html, escape, join

MISSING = "\N{EN DASH}"

# A number, then a deviation or a short unit: "83.4 ± 0.3", "736,260", "−0.4", "2e-4", "12 s", "7 %".
_NUMBER = re.compile(
    r"([+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:e[+-]?\d+)?)\s*(?:±.*|%|[a-zµ]{1,4})?", re.IGNORECASE
)


class Mark(Enum):
    """How a value compares with the one it is held against; the sign says it without colour."""

    BETTER = ("▲", "better")
    WITHIN = ("≈", "within one deviation")
    WORSE = ("▼", "worse")

    @property
    def sign(self) -> str:
        return str(self.value[0])

    @property
    def word(self) -> str:
        return str(self.value[1])

    def html(self) -> Html:
        """The sign for the eye, the word for a screen reader."""
        return Html(
            f'<span class="mark {self.name.lower()}" title="{self.word}"><span aria-hidden="true">{self.sign}'
            f'</span><span class="hidden">{self.word}</span></span>'
        )


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
        return sort_key(self.text) if self.sort is None else self.sort


CellLike = Cell | str | float | int | None


@dataclass
class Table:
    """A table whose rows a click on a header sorts.

        Table(["method", "test"], [["raw", "58.1 ± 0.0"], ["topoter", "83.4 ± 0.3"]], caption="Cora").html()

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
    _cells: list[list[Cell]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._cells = [[_as_cell(value) for value in row] for row in self.rows]
        for row in self._cells:
            if len(row) != len(self.columns):
                raise UsageError(f"A table of {len(self.columns)} columns got a row of {len(row)} cells.")

    def html(self) -> Html:
        """The table's markup."""
        numeric = [self._is_numeric(column) for column in range(len(self.columns))]
        head = join(_header(name, number) for name, number in zip(self.columns, numeric))
        body = join(Html(f"<tr>{_row(row, numeric)}</tr>") for row in self._cells)
        label = escape(self.caption or "Table")
        # Not a caption element: that would scroll sideways with a wide table.
        title = f'<p class="table-title" aria-hidden="true">{label}</p>' if self.caption else ""
        return Html(
            f'<div class="table-block">{title}'
            f'<div class="table-box" role="region" aria-label="{label}" tabindex="0">'
            f'<table class="sortable" aria-label="{label}"><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></div>{self._legend()}</div>"
        )

    def markdown(self) -> str:
        """The same table as Markdown, marks as signs; caption and legend are left to the text around it."""
        rows = [[_markdown(cell) for cell in row] for row in self._cells]
        lines = [[escape_markdown(name) for name in self.columns], ["---"] * len(self.columns), *rows]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)

    def _is_numeric(self, column: int) -> bool:
        cells = [row[column] for row in self._cells if not _is_gap(row[column])]
        return bool(cells) and all(cell.key is not None for cell in cells)

    def _legend(self) -> Html:
        used = {cell.mark for row in self._cells for cell in row}
        signs = join(
            Html(f'<span><span class="mark {mark.name.lower()}">{mark.sign}</span> {mark.word}</span>')
            for mark in Mark
            if mark in used
        )
        note = Html(f"<span>{escape(self.note)}</span>") if self.note else Html("")
        return Html(f'<p class="note marks">{signs}{note}</p>') if signs or note else Html("")


def escape_markdown(text: str) -> str:
    """Text on one line that Markdown shows as it is: no cell ends early, no markup begins."""
    for character in "\\`*[|":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.replace("&", "&amp;").replace("<", "&lt;").split())


def facts(values: Mapping[str, object]) -> Html:
    """Names with their values, as many beside each other as fit: parameters, versions, counts."""
    pairs = join(
        Html(f"<div><dt>{escape(name)}</dt><dd>{escape('none' if value is None else value)}</dd></div>")
        for name, value in values.items()
    )
    return Html(f'<dl class="facts">{pairs}</dl>')


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


def compare(mean: float, std: float | None, other: float, other_std: float | None = None) -> Mark:
    """Hold a mean against another; closer than the larger of the two deviations is no difference."""
    # The slack is for 83.3 against 83.7 ± 0.4, whose difference is a little over 0.4 in binary.
    if abs(mean - other) <= max(std or 0.0, other_std or 0.0) + 1e-9:
        return Mark.WITHIN
    return Mark.BETTER if mean > other else Mark.WORSE


def _as_cell(value: CellLike) -> Cell:
    if isinstance(value, Cell):
        return value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return Cell(MISSING)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Cell(f"{value:,}" if isinstance(value, int) else f"{value:.4g}", sort=float(value))
    return Cell(str(value))


def _markdown(cell: Cell) -> str:
    text = escape_markdown(cell.text)
    text = f"**{text}**" if cell.strong else text
    return f"{text} {cell.mark.sign}" if cell.mark else text


def _is_gap(cell: Cell) -> bool:
    return cell.text.strip() in ("", MISSING)


def _header(name: str, numeric: bool) -> Html:
    kind = ' class="number"' if numeric else ""
    return Html(
        f'<th scope="col" aria-sort="none"{kind}><button type="button">{escape(name)}'
        '<span class="arrow" aria-hidden="true"></span></button></th>'
    )


def _row(row: Sequence[Cell], numeric: Sequence[bool]) -> Html:
    parts = []
    for position, (cell, number) in enumerate(zip(row, numeric)):
        name, scope = ("th", ' scope="row"') if position == 0 else ("td", "")
        text = f"<strong>{escape(cell.text)}</strong>" if cell.strong else escape(cell.text)
        sort = f' data-sort="{cell.key!r}"' if number and cell.key is not None else ""
        gap = ' data-gap=""' if _is_gap(cell) else ""
        kind = ' class="number"' if number else ' class="wrap"' if cell.wrap else ""
        mark = cell.mark.html() if cell.mark else ""
        parts.append(Html(f"<{name}{scope}{kind}{sort}{gap}>{text}{mark}</{name}>"))
    return join(parts)
