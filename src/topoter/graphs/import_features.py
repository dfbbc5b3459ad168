"""Features on their way to a graph directory: a table with ids, or an array in node order, row block by row block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from topoter.errors import DataError, UsageError
from topoter.graphs.array_files import ArrayWriter
from topoter.graphs.arrow import pa, pc
from topoter.graphs.columns import MAX_CATEGORIES, most_categories
from topoter.graphs.engine import Engine
from topoter.graphs.import_sources import Source, literal, quoted
from topoter.graphs.problems import explained

BLOCK = 1 << 16  # rows
DTYPES = ("float32", "float16")


@dataclass
class Column:
    """One column of the table as SQL, and the names of the features it becomes."""

    name: str
    sql: str
    features: list[str]


def feature_columns(engine: Engine, source: Source, id_column: str) -> list[Column]:
    """Numbers as they are, lists as several columns, words of few kinds as one-hot columns."""
    chosen = [name for name in source.names if name != id_column]
    if not chosen:
        raise DataError(f"{source.title} has ids but no features: its only column is {id_column!r}.")
    columns = []
    for name in chosen:
        kind = source.types[name]
        if name in source.numeric:
            columns.append(Column(name, f"TRY_CAST({quoted(name)} AS FLOAT)", [name]))
        elif kind.endswith("]"):
            columns.append(_list_column(engine, source, name))
        elif kind == "VARCHAR" or kind.startswith("ENUM"):
            columns += _categories(engine, source, name)
        else:
            raise DataError(f"{source.title}: column {name!r} is of type {kind}: turn it into numbers or leave it out.")
    return columns


def write_feature_table(
    engine: Engine, source: Source, columns: list[Column], kept: str, path: Path, dtype: str
) -> list[str]:
    """Write the rows of a table, in its order, as one array; returns the names of the features."""
    chosen = ", ".join(f"{column.sql} AS c{number}" for number, column in enumerate(columns))
    names = [name for column in columns for name in column.features]
    with ArrayWriter(path, dtype, len(names)) as writer:
        for batch in engine.batches(f"SELECT {chosen} FROM {source.relation} WHERE {kept}", BLOCK):
            block = np.concatenate([_matrix(array) for array in batch.columns], axis=1)
            _append(writer, block, names, f"{source.title}, row")
    return names


def write_feature_array(array: np.ndarray, name: str, path: Path, dtype: str) -> list[str]:
    """Copy an array [N, C]; returns the names of the features."""
    names = [f"x{column}" for column in range(array.shape[1])]
    with ArrayWriter(path, dtype, len(names)) as writer:
        for block in _blocks(array):
            _append(writer, np.asarray(block, dtype=np.float32), names, f"{name}, row")
    return names


def open_feature_array(path: Path) -> np.ndarray:
    """A `.npy` file with a row per node, mapped."""
    if path.suffix.lower() != ".npy":
        raise UsageError(f"{path}: import takes features as a table (csv, tsv, parquet) or as .npy.")
    with explained(f"{path} is not an array of numbers"):
        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.ndim != 2 or not np.issubdtype(array.dtype, np.number) or 0 in array.shape:
        raise DataError(f"{path} must hold numbers [N, C]. Got {array.dtype} {list(array.shape)} instead.")
    return array


def write_structural(degree: np.ndarray, path: Path, dtype: str) -> None:
    """log(1 + degree) and a constant, for a graph without features."""
    with ArrayWriter(path, dtype, 2) as writer:
        for block in _blocks(degree):
            writer.append(np.stack([np.log1p(block), np.ones(len(block))], axis=1))


def _blocks(array: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(array), BLOCK):
        yield array[start : start + BLOCK]


def _append(writer: ArrayWriter, block: np.ndarray, names: list[str], where: str) -> None:
    """Add rows; the first value that is no finite number of the file's type is an error that names its place."""
    with np.errstate(over="ignore"):
        stored = block.astype(writer.dtype)
    bad = ~np.isfinite(stored)
    if bad.any():
        row, column = (int(place) for place in np.argwhere(bad)[0])
        value = block[row, column]
        problem = "is empty or no number" if np.isnan(value) else f"has {value:g}, too large for {writer.dtype.name}"
        raise DataError(f"{where} {writer.rows + row} (from 0): column {names[column]!r} {problem}.")
    writer.append(stored)


def _matrix(array: pa.Array) -> np.ndarray:
    """A column of an Arrow batch as float32 [rows, width]."""
    kind = array.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        values = pc.list_flatten(array).to_numpy(zero_copy_only=False)
        return values.astype(np.float32).reshape(len(array), -1)
    return array.to_numpy(zero_copy_only=False).astype(np.float32)[:, None]


def _list_column(engine: Engine, source: Source, name: str) -> Column:
    sql = f"{quoted(name)}::FLOAT[]"
    query = f"SELECT min(len({sql})), max(len({sql})), count(*) - count({quoted(name)}) FROM {source.relation}"
    ((shortest, longest, missing),) = engine.rows(query)
    if missing or shortest != longest or not longest:
        raise DataError(f"{source.title}: the lists in column {name!r} must hold numbers and be of one length.")
    return Column(name, sql, [f"{name}{place}" for place in range(longest)])


def _categories(engine: Engine, source: Source, name: str) -> list[Column]:
    sql = f"coalesce(trim({quoted(name)}::VARCHAR), '')"
    rows = int(engine.value(f"SELECT count(*) FROM {source.relation}"))
    most = min(most_categories(rows), MAX_CATEGORIES)  # rare ones are not merged here
    query = f"SELECT DISTINCT {sql} FROM {source.relation} LIMIT {most + 2}"
    values = sorted(value for (value,) in engine.rows(query) if value)
    if len(values) > most:
        raise DataError(
            f"{source.title}: column {name!r} holds text (more than {most} distinct values, such as "
            f"{values[0][:40]!r}): leave it out, or turn it into numbers (for example with a sentence encoder)."
        )
    source.notes.append(f"{source.title}: column {name!r} one-hot encoded, {len(values)} categories.")
    return [Column(name, f"({sql} = {literal(value)})::INT::FLOAT", [f"{name}={value}"]) for value in values]


def check_repeated(engine: Engine, source: Source) -> None:
    """Raise if an id stands in two rows of the table of nodes."""
    found = engine.rows("SELECT id FROM nodes GROUP BY id HAVING count(*) > 1 LIMIT 1")
    if found:
        raise DataError(f"{source.title}: node id {found[0][0]!r} stands there more than once.")
