"""A node table made into features: what each column becomes is learned once, is part of the model and saved with it.

Numbers are imputed by the median, with a column that says where one was missing, and standardised, or scaled by rank
where few values are far off all others. Categories are one-hot encoded, dates taken apart. A table that is already
of one scale, or that counts things (a bag of words), is left as it is. scikit-learn's ColumnTransformer does the work;
what its parts have learned is kept as plain numbers, and no code is ever loaded with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from torch import Tensor

from topoter.errors import DataError, UsageError, unknown_name
from topoter.graphs.arrow import pa, pc
from topoter.graphs.columns import KINDS, Category, Date, Flag, Number, Numbers, Text, decide
from topoter.graphs.matrices import as_matrix
from topoter.graphs.scaling import QUANTILES, scaled, tells_nothing, way_of

CONSTANT = "constant"
TEXT = ("refuse", "hash")
# What scikit-learn's parts learn, by public names: enough to make them again.
LEARNED = {
    "SimpleImputer": ("statistics_",),
    "StandardScaler": ("mean_", "var_", "scale_"),
    "QuantileTransformer": ("quantiles_", "references_"),
}


@dataclass(frozen=True)
class TableOptions:
    """Which columns of a table are used, and how.

    Args:
        columns: those to use, all others left out; None uses all.
        exclude: those to leave out.
        as_category: columns of numbers that name things, such as a postal code.
        text: what to do with free text: "refuse" it with a hint, or "hash" its words.
        scale: whether columns of different scales are brought to one; an imported graph keeps numbers as they are.
    """

    columns: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    as_category: Sequence[str] = ()
    text: str = "refuse"
    scale: bool = True

    def chosen(self, names: Sequence[str]) -> list[str]:
        """The columns to use, of those that are there."""
        if self.text not in TEXT:
            raise unknown_name("way with text", self.text, TEXT)
        for name in (*(self.columns or ()), *self.exclude, *self.as_category):
            if name not in names:
                raise unknown_name("column", name, names)
        wanted = names if self.columns is None else self.columns
        kept = [name for name in wanted if name not in self.exclude]
        if not kept:
            raise UsageError("No column is left to make features of: choose fewer for --exclude.")
        return kept


class Preparation(msgspec.Struct, dict=True):  # a place for the fitted transformer, which is not saved
    """What every column of a table becomes.

    Args:
        columns: their kinds, in the order of the table.
        indicators: names of numbers with gaps: each has a column that is 1 where it was missing.
        constant: whether a column of ones is added, so that rows scaled to one length still differ in size.
        left_out: columns that are not used, and why.
        learned: the statistics of scikit-learn's transformers, by block and step.
    """

    columns: list[KINDS]
    indicators: list[str] = []
    constant: bool = False
    left_out: dict[str, str] = {}
    learned: dict[str, list[dict[str, Any]]] = {}

    @classmethod
    def fit(cls, table: pa.Table, options: TableOptions | None = None) -> Preparation:
        """Decide on every column and learn its statistics."""
        options = options or TableOptions()
        wanted = options.chosen(table.column_names)
        hashed = options.text == "hash"
        found = {name: decide(name, table[name], options.as_category, hashed) for name in wanted}
        left_out = {name: "not chosen" for name in table.column_names if name not in wanted}
        left_out |= {name: "every value is missing" for name, column in found.items() if column is None}
        columns = [column for column in found.values() if column is not None]
        if not columns:
            raise DataError("no column holds a value: there is nothing to make features of.")
        columns = scaled(columns, table) if options.scale else columns
        same = [column.name for column in columns if tells_nothing(column, table)]
        if len(same) < len(columns):
            left_out |= dict.fromkeys(same, "the same number for every node")
            columns = [column for column in columns if column.name not in same]
        self = cls(columns, left_out=left_out)
        values, _ = self._read(table)
        gaps = np.isnan(values).any(axis=0)
        # The parts of a date are missing together: the first one's gaps tell of all.
        parts = {name for column in columns if isinstance(column, Date) for name in column.names[1:]}
        self.indicators = [name for name, gap in zip(self._value_names, gaps) if gap and name not in parts]
        numbers = [column for column in columns if isinstance(column, (Number, Date))]
        self.constant = all(isinstance(column, (Number, Date, Flag)) for column in columns) and any(
            not isinstance(column, Number) or column.scaling != "none" for column in numbers
        )
        transformer = self._transformer().fit(values)
        self.learned = {
            name: [{key: getattr(step, key).tolist() for key in keys} for step, keys in _steps(fitted)]
            for name, fitted, _ in transformer.transformers_
        }
        self.__dict__["_fitted"] = transformer
        return self

    # ---- use ---------------------------------------------------------------------------------------------------

    def transform(self, table: pa.Table) -> tuple[Tensor, list[str]]:
        """Features [N, C], dense or sparse, and notes on what was met that was not there at fit."""
        import scipy.sparse

        missing = [column.name for column in self.columns if column.name not in table.column_names]
        if missing:
            have = ", ".join(map(repr, table.column_names[:10]))
            raise DataError(
                "The features are not those the model was fitted on: "
                f"missing {', '.join(map(repr, missing))}. The table has {have}."
            )
        values, notes = self._read(table)
        blocks = [self._restored().transform(values)] if values.shape[1] else []
        blocks += [column.hashed(table[column.name]) for column in self.columns if isinstance(column, Text)]
        if self.constant:
            blocks.append(np.ones((len(values), 1)))
        if any(scipy.sparse.issparse(block) for block in blocks):
            return as_matrix(scipy.sparse.hstack(blocks, format="csr"), "the table"), notes
        return as_matrix(np.hstack(blocks), "the table"), notes

    def transform_stored(self, x: Tensor, names: Sequence[str]) -> Tensor:
        """The same from the columns of an imported graph [N, C], which are numbers as they were in the files."""
        place = {name: column for column, name in enumerate(names)}
        table: dict[str, Any] = {}
        for column in self.columns:
            parts = [name for name in names if name.startswith(f"{column.name}=")]
            if isinstance(column, Category) and parts:
                chosen = x[:, [place[name] for name in parts]]
                words = pa.array([name.partition("=")[2] for name in parts])
                known = pa.array(chosen.amax(1).numpy() > 0)
                table[column.name] = pc.if_else(known, words.take(pa.array(chosen.argmax(1).numpy())), None)
            elif isinstance(column, Numbers) and all(name in place for name in column.names):
                lists = x[:, [place[name] for name in column.names]].contiguous().view(-1).numpy()
                table[column.name] = pa.FixedSizeListArray.from_arrays(pa.array(lists), column.width)
            elif column.name in place:
                table[column.name] = pa.array(x[:, place[column.name]].numpy())
        return self.transform(pa.table(table))[0].to_dense()

    @property
    def keeps_numbers(self) -> bool:
        """Whether features are the numbers of the table as they are."""
        plain = all(way_of(column) == "none" and isinstance(column, (Number, Numbers, Flag)) for column in self.columns)
        return plain and not self.indicators and not self.constant

    @property
    def feature_names(self) -> list[str]:
        names = [name for _, _, _, outputs in self._blocks() for name in outputs]
        names += [name for column in self.columns if isinstance(column, Text) for name in column.names]
        return [*names, CONSTANT] if self.constant else names

    def described(self) -> list[tuple[str, str, str, int]]:
        """For every column of the table: its name, its kind, what it becomes, into how many features."""
        rows = []
        for column in self.columns:
            gaps = [name for name in column.names if name in self.indicators]
            width = len(column.categories) if isinstance(column, Category) else len(column.names)
            filled = "0" if way_of(column) == "none" else "the median"
            missing = f"; gaps get {filled}, and a column says where" if gaps else ""
            rows.append((column.name, type(column).__name__.lower(), column.becomes + missing, width + len(gaps)))
        rows += [(name, "", f"left out: {why}", 0) for name, why in self.left_out.items()]
        return (
            [*rows, ("", "", "a constant, so that rows scaled to one length keep their sizes", 1)]
            if self.constant
            else rows
        )

    # ---- parts -------------------------------------------------------------------------------------------------

    @property
    def _valued(self) -> list[Any]:
        """The columns that are read as numbers: all but text."""
        return [column for column in self.columns if not isinstance(column, Text)]

    @property
    def _value_names(self) -> list[str]:
        return [name for column in self._valued for name in column.names]

    def _read(self, table: pa.Table) -> tuple[np.ndarray, list[str]]:
        read = [column.read(table[column.name]) for column in self._valued]
        notes = [note for one in read for note in one.notes]
        return np.hstack([one.values for one in read] or [np.empty((table.num_rows, 0))]), notes

    def _blocks(self) -> Iterator[tuple[str, Any, list[int], list[str]]]:
        """Name, scikit-learn's transformer, places among the values, and names of what comes out."""
        from sklearn.impute import MissingIndicator, SimpleImputer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, QuantileTransformer, StandardScaler

        names, place = self._value_names, 0
        by_way: dict[str, list[int]] = {}
        one_hot: list[Category] = []
        for column in self._valued:
            way = "category" if isinstance(column, Category) else way_of(column)
            one_hot += [column] if isinstance(column, Category) else []
            width = len(column.names)
            by_way.setdefault(way, []).extend(range(place, place + width))
            place += width
        median = SimpleImputer(strategy="median", keep_empty_features=True)
        ways: Mapping[str, Any] = {
            "standard": make_pipeline(median, StandardScaler()),
            "quantile": make_pipeline(
                median,
                QuantileTransformer(n_quantiles=QUANTILES, subsample=2**31 - 1, random_state=0),
                StandardScaler(),
            ),
            "none": make_pipeline(SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True)),
        }
        for way, transformer in ways.items():
            if way in by_way:
                yield way, transformer, by_way[way], [names[place] for place in by_way[way]]
        if self.indicators:
            places = [names.index(name) for name in self.indicators]
            yield (
                "missing",
                MissingIndicator(features="all"),
                places,
                [f"{name} is missing" for name in self.indicators],
            )
        if one_hot:
            codes = [np.arange(len(column.categories), dtype=np.float64) for column in one_hot]
            outputs = [f"{column.name}={value}" for column in one_hot for value in column.categories]
            encoder = OneHotEncoder(categories=codes, handle_unknown="ignore", sparse_output=True)
            yield "category", encoder, by_way["category"], outputs

    def _transformer(self) -> Any:
        from sklearn.compose import ColumnTransformer

        return ColumnTransformer([(name, part, places) for name, part, places, _ in self._blocks()])

    def _restored(self) -> Any:
        """The fitted transformer, made again from what it had learned if need be."""
        if "_fitted" not in self.__dict__:
            # Fitted on zeros for whatever this version of scikit-learn keeps beside its statistics.
            rows = np.zeros((QUANTILES, len(self._value_names)))
            transformer = self._transformer().fit(rows)
            for name, fitted, _ in transformer.transformers_:
                for (step, _), known in zip(_steps(fitted), self.learned.get(name, ())):
                    for key, value in known.items():
                        setattr(step, key, np.asarray(value, dtype=np.float64))
            self.__dict__["_fitted"] = transformer
        return self.__dict__["_fitted"]


@dataclass(frozen=True, repr=False)
class PreparedTable:
    """A table and how it became features. A graph keeps it: a model prepares it as it prepared its own."""

    arrow: pa.Table
    preparation: Preparation

    def __repr__(self) -> str:  # PyG shows it among the parts of a graph
        return f"{self.arrow.num_columns} columns"


def _steps(fitted: Any) -> list[tuple[Any, tuple[str, ...]]]:
    """The parts of a block that learn statistics, and their names."""
    parts = [part for _, part in fitted.steps] if hasattr(fitted, "steps") else [fitted]
    return [(part, LEARNED[type(part).__name__]) for part in parts if type(part).__name__ in LEARNED]


def plain_preparation(preparation: Preparation | None) -> Any:
    """As a model file keeps it: numbers, texts and lists of them."""
    return None if preparation is None else msgspec.to_builtins(preparation)


def read_preparation(plain: Any) -> Preparation | None:
    """What `plain_preparation` gave; a ValueError where it is something else."""
    return None if plain is None else msgspec.convert(plain, Preparation)
