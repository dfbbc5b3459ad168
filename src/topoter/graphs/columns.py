"""What a column of a node table is (a number, a flag, a date, a category, a list, text), and how it is read as numbers.

Each kind is a class that msgspec writes to JSON and reads again: what is known of a column is saved with the model.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection
from typing import Any, TypeAlias

import msgspec
import numpy as np

from topoter.errors import DataError
from topoter.graphs.arrow import pa, pc
from topoter.graphs.tables import is_numeric, mostly_numbers, to_float

MAX_CATEGORIES = 100  # columns that one category column becomes at most; what is rarer is merged
FEW_CATEGORIES = 10  # so many values are never merged, and are categories even in a table of few rows
RARE_SHARE = 0.001  # of the rows, and at least
RARE_COUNT = 3
USUAL_COUNT = 5  # rows that a category has on average, where there are many
RARE = "(rare)"
HASHED_WORDS = 256
UNKNOWN = -1.0  # the code of a blank or unknown category: no column of the one-hot encoding
DATE_FORMATS = ("%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d")
MOSTLY = 0.9  # of the values must be dates for a column of words to be dates
DATE_PARTS = ("year", "month", "weekday", "age")


class Read(msgspec.Struct):
    """A column as numbers [N, width], NaN where there is none, and what was noticed."""

    values: np.ndarray
    notes: list[str]


class _Column(msgspec.Struct, frozen=True, tag_field="kind", tag=str.lower):
    name: str

    @property
    def names(self) -> list[str]:
        """Those of the numbers it is read as."""
        return [self.name]

    def read(self, column: pa.ChunkedArray) -> Read:
        raise NotImplementedError

    @property
    def becomes(self) -> str:
        """What `fit --dry-run` says of it."""
        raise NotImplementedError


class Number(_Column, frozen=True):
    """`scaling`: "none", "standard" (mean 0, deviation 1) or "quantile" (by rank, where few values are far off)."""

    scaling: str = "none"

    def read(self, column: pa.ChunkedArray) -> Read:
        values = to_float(column)
        bad = np.isinf(values) | (np.abs(values) > np.finfo(np.float32).max)
        values = np.where(bad, np.nan, values)
        words = int((np.isnan(values) & ~_blank(column)).sum())
        said = f"column {self.name!r}: {words:,} values are no finite numbers and are taken as missing."
        return Read(values[:, None], [said] if words else [])

    @property
    def becomes(self) -> str:
        ways = {"none": "as it is", "standard": "standardised", "quantile": "scaled by rank (heavy tail)"}
        return ways[self.scaling]


class Flag(_Column, frozen=True):
    """A boolean, or a number that is 0 or 1 only."""

    def read(self, column: pa.ChunkedArray) -> Read:
        return Number(self.name).read(column)

    @property
    def becomes(self) -> str:
        return "0 or 1"


class Numbers(_Column, frozen=True):
    """Lists of numbers, all of one length."""

    width: int = 1
    scaling: str = "none"

    @property
    def names(self) -> list[str]:
        return [f"{self.name}{place}" for place in range(self.width)]

    def read(self, column: pa.ChunkedArray) -> Read:
        lengths = pc.unique(pc.list_value_length(column)).to_pylist()
        if lengths != [self.width]:
            raise DataError(
                f"the lists in column {self.name!r} must hold {self.width} numbers each. Got {lengths[:3]}."
            )
        values = to_float(pc.list_flatten(column))
        return Read(np.where(np.isfinite(values), values, np.nan).reshape(-1, self.width), [])

    @property
    def becomes(self) -> str:
        return Number(self.name, self.scaling).becomes


class Date(_Column, frozen=True):
    """`newest` is the newest date that was there at fit, in days since 1970: an age is counted from it."""

    format: str | None = None
    newest: float = 0.0

    @property
    def names(self) -> list[str]:
        return [f"{self.name} {part}" for part in DATE_PARTS]

    def read(self, column: pa.ChunkedArray) -> Read:
        times = as_times(column, self.format)
        parts = [pc.year(times), pc.month(times), pc.day_of_week(times)]
        age = self.newest - days(times)
        values = [part.cast(pa.float64()).to_numpy(zero_copy_only=False) for part in parts]
        return Read(np.stack([*values, age], axis=1), [])

    @property
    def becomes(self) -> str:
        return "year, month, weekday and age in days, standardised"


class Category(_Column, frozen=True):
    """`values` have a column each, `rare` ones share one."""

    values: list[str] = []
    rare: list[str] = []

    @property
    def categories(self) -> list[str]:
        return [*self.values, RARE] if self.rare else self.values

    def read(self, column: pa.ChunkedArray) -> Read:
        words = as_words(column)
        codes = pc.index_in(words, value_set=pa.array([*self.values, *self.rare], type=pa.string()))
        numbers = pc.fill_null(codes, -1).to_numpy().astype(np.float64)
        unknown = sorted(set(pc.unique(words.filter(pa.array(numbers < 0))).to_pylist()) - {"", None})
        count = int(((numbers < 0) & ~_blank(words)).sum())
        shown = ", ".join(repr(value[:40]) for value in unknown[:3]) + (", ..." if len(unknown) > 3 else "")
        said = f"column {self.name!r}: {count:,} rows have categories that were not there at fit ({shown}): zeros."
        numbers = np.where(numbers < 0, UNKNOWN, np.minimum(numbers, len(self.values)))
        return Read(numbers[:, None], [said] if unknown else [])

    @property
    def becomes(self) -> str:
        merged = f" and one for {len(self.rare):,} rare ones" if self.rare else ""
        return f"one-hot: {len(self.values)} categories{merged}"


class Text(_Column, frozen=True):
    """Free text, its words hashed."""

    width: int = HASHED_WORDS

    @property
    def names(self) -> list[str]:
        return [f"{self.name}#{place}" for place in range(self.width)]

    def hashed(self, column: pa.ChunkedArray) -> Any:
        """A sparse matrix [N, width] of the words' hashed counts, rows of length one."""
        from sklearn.feature_extraction.text import HashingVectorizer

        return HashingVectorizer(n_features=self.width).transform(pc.fill_null(as_words(column), "").to_pylist())

    @property
    def becomes(self) -> str:
        return f"its words hashed into {self.width} columns"


Column: TypeAlias = "Number | Flag | Numbers | Date | Category | Text"
KINDS = Number | Flag | Numbers | Date | Category | Text


def decide(name: str, column: pa.ChunkedArray, as_category: Collection[str], hash_text: bool) -> Column | None:
    """What a column is; None where it holds nothing. Scaling is decided by all columns together, not here."""
    if pa.types.is_dictionary(column.type):
        as_category = [*as_category, name]
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_null(kind) or column.null_count == len(column):
        return None
    if name in as_category:
        return _category(name, as_words(column))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        lengths = pc.unique(pc.list_value_length(column)).to_pylist()
        if len(lengths) != 1 or not lengths[0] or not is_numeric(kind.value_type):
            raise DataError(f"the lists in column {name!r} must hold numbers and be of one length.")
        return Numbers(name, lengths[0])
    if pa.types.is_boolean(kind):
        return Flag(name)
    if pa.types.is_temporal(kind) and not (pa.types.is_time(kind) or pa.types.is_duration(kind)):
        return Date(name, None, float(np.nanmax(days(as_times(column, None)))))
    words = is_text(kind)
    if not words and not is_numeric(kind):
        way = f"leave it out (--exclude {shlex.quote(name)})"
        raise DataError(f"column {name!r} is of type {kind}: turn it into numbers or {way}.")
    if not words or mostly_numbers(column):
        values = to_float(column)
        values = values[np.isfinite(values)]
        if not len(values):
            return None
        return (
            Flag(name)
            if set(np.unique(values[:1000])) <= {0.0, 1.0} and np.isin(values, (0, 1)).all()
            else Number(name)
        )
    if _blank(column).all():
        return None
    for written in DATE_FORMATS:
        times = as_times(column, written)
        if len(times) - times.null_count >= MOSTLY * (~_blank(column)).sum():
            return Date(name, written, float(np.nanmax(days(times))))
    return _category_or_text(name, as_words(column), hash_text)


def most_categories(rows: int) -> int:
    """How many distinct words a column of so many rows may hold to be categories, and not text."""
    return max(FEW_CATEGORIES, min(MAX_CATEGORIES, rows // 2), rows // USUAL_COUNT)


def is_text(kind: pa.DataType) -> bool:
    checks = ("is_string", "is_large_string", "is_string_view")  # the last one is newer than our oldest Arrow
    return any(getattr(pa.types, check)(kind) for check in checks if hasattr(pa.types, check))


def _category_or_text(name: str, words: pa.ChunkedArray, hash_text: bool) -> Category | Text:
    values = [value for value in pc.unique(words).to_pylist() if value]
    if len(values) <= most_categories(len(words)):
        return _category(name, words)
    if hash_text:
        return Text(name)
    option = shlex.quote(name)
    raise DataError(
        f"column {name!r} holds text ({len(values):,} distinct values, such as {min(values)[:40]!r}): leave it out "
        f"(--exclude {option}), take it as a category (--as-category {option}), or hash its words (--text hash)."
    )


def _category(name: str, words: pa.ChunkedArray) -> Category:
    counted = pc.value_counts(words)
    counts = {
        value: count
        for value, count in zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist())
        if value
    }
    values = sorted(counts)
    if len(values) <= FEW_CATEGORIES:
        return Category(name, values)
    least = max(RARE_COUNT, RARE_SHARE * len(words))
    often = sorted(values, key=lambda value: (-counts[value], value))[:MAX_CATEGORIES]
    kept = {value for value in often if counts[value] >= least}
    rare = [value for value in values if value not in kept]
    return (
        Category(name, [value for value in values if value in kept], rare) if len(rare) > 1 else Category(name, values)
    )


def as_words(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values as text without blanks around it: 3, 3.0 and "3" are one category."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        whole = column.cast(pa.int64(), safe=False)
        if pc.all(pc.equal(whole.cast(pa.float64()), column.cast(pa.float64()))).as_py():
            column = whole
    return pc.utf8_trim_whitespace(column.cast(pa.string()))


def as_times(column: pa.ChunkedArray, written: str | None) -> pa.ChunkedArray:
    """Dates and times as timestamps, null where there is none; `written` is the format of dates given as text."""
    if is_text(column.type):
        formats = [written] if written else DATE_FORMATS
        read = [pc.strptime(as_words(column), format=each, unit="s", error_is_null=True) for each in formats]
        return min(read, key=lambda times: times.null_count)
    if getattr(column.type, "tz", None):  # the day that a calendar showed there, not the one in Greenwich
        column = pc.local_timestamp(column)
    return column.cast(pa.timestamp("s"), safe=False)


def days(times: pa.ChunkedArray) -> np.ndarray:
    """Timestamps as days since 1970, NaN for null."""
    return times.cast(pa.int64()).cast(pa.float64()).to_numpy(zero_copy_only=False) / 86_400


def _blank(column: pa.ChunkedArray) -> np.ndarray:
    """Where a column has no value: null, NaN or no letters."""
    if is_text(column.type):
        empty = pc.equal(pc.utf8_trim_whitespace(column), "")
        missing = pc.is_in(pc.utf8_lower(pc.utf8_trim_whitespace(column)), value_set=pa.array(sorted(MISSING_WORDS)))
        return pc.or_(pc.fill_null(empty, True), pc.fill_null(missing, True)).to_numpy()
    return pc.is_null(column, nan_is_null=True).to_numpy()


MISSING_WORDS = {"", "na", "n/a", "nan", "null", "none", "?", "-"}
