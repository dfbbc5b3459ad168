"""`import_graph`: tables of edges and features of any size to a graph directory, by DuckDB, within a memory limit.

The ids are numbered, each edge becomes two numbers, and both directions of all edges are sorted; what comes out of
the sort is written as it comes. Only one number per node is ever held here. All is made in a folder beside the
target, which is renamed when it is complete; what a killed import left is removed by the next.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from topoter.errors import BadRowError, DataError, UsageError
from topoter.graphs.atomic import atomic_folder
from topoter.graphs.directory import Cleaned, Manifest, is_graph_directory, write_manifest
from topoter.graphs.edge_lists import WEIGHT_NAMES, end_columns
from topoter.graphs.engine import Engine, Progress, open_engine
from topoter.graphs.features import STRUCTURAL_NAMES, STRUCTURAL_NOTE
from topoter.graphs.ids import PLAIN_INTEGER
from topoter.graphs.import_features import (
    DTYPES,
    check_repeated,
    feature_columns,
    open_feature_array,
    write_feature_array,
    write_feature_table,
    write_structural,
)
from topoter.graphs.import_sources import Source, find_files, literal, open_source, quoted
from topoter.graphs.sorted_edges import write_neighbours
from topoter.memory import free_memory

MOST_NODES = 2**31 - 1  # neighbours are 32-bit numbers


def import_graph(
    edges: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    features: Sequence[str | os.PathLike[str]] = (),
    id_column: str | None = None,
    weight_column: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    drop_bad: bool = False,
    dtype: str = "float32",
    memory: int | None = None,
    progress: Progress | None = None,
) -> tuple[Manifest, list[str]]:
    """Make a graph directory of files of edges; returns its manifest, and notes on what was assumed and dropped.

    The graph is the one that `read_graph` reads from the same files: the same nodes in the same order.

    Args:
        edges: paths, or patterns such as edges/*.parquet: all parquet, or all text.
        features: a table with ids in one or many files, or one `.npy` with rows in node order.
        weight_column, id_column, delimiter, header, drop_bad: as in `read_graph`.
        dtype: of the features as they are stored, "float32" or "float16".
        memory: bytes that DuckDB may take; half of what is free if None.
    """
    if dtype not in DTYPES:
        raise UsageError(f"Features are stored as one of {', '.join(DTYPES)}. Got {dtype!r} instead.")
    if id_column is not None and not features:
        raise UsageError("The id column is one of the features table: give that too (--features).")
    edge_files, feature_files = find_files(map(str, edges)), find_files(map(str, features))
    if not edge_files:
        raise UsageError("Give at least one file of edges.")
    memory = memory or free_memory() // 2
    with atomic_folder(out, replaces=is_graph_directory) as folder:
        scratch = folder / "scratch"
        scratch.mkdir()
        with open_engine(scratch, memory) as engine:
            source = open_source(
                engine, edge_files, delimiter=delimiter, header=header, asked=[weight_column], drop_bad=drop_bad
            )
            job = _Job(engine, folder, source, drop_bad, dtype, progress)
            manifest = job.run(feature_files, id_column, weight_column)
        shutil.rmtree(scratch)
    return manifest, job.notes


@dataclass
class _Job:
    engine: Engine
    folder: Path
    edges: Source
    drop_bad: bool
    dtype: str
    progress: Progress | None
    notes: list[str] = field(default_factory=list)
    integers: bool = False  # whether ids are integers: by their type, or because each looks like one

    def run(self, feature_files: list[Path], id_column: str | None, weight_column: str | None) -> Manifest:
        weight = self._view_edges(weight_column)
        self.notes += self.edges.notes
        names: list[str] | None = None
        if feature_files:
            names = self._nodes_of_features(feature_files, id_column)
        else:
            self._nodes_of_edges()
        num_nodes = self._count("nodes")
        if num_nodes > MOST_NODES:
            raise DataError(f"{self.edges.title}: {num_nodes:,} nodes are more than the {MOST_NODES:,} that fit.")
        if not num_nodes:
            raise DataError(f"{self.edges.title} is empty: no usable edge is left.")
        self._write_ids()
        bad_rows = self._number_edges(weight, feature_files)
        with self.engine.watched(self.progress, "sorting the edges", 0.5, 0.9):
            degree, cleaned = write_neighbours(self.engine, self.folder, num_nodes, weight)
        if not degree.any():
            raise DataError(f"{self.edges.title} is empty: no usable edge is left.")
        if names is None:
            write_structural(degree, self.folder / "features.npy", self.dtype)
            self.notes.append(STRUCTURAL_NOTE)
        lonely = int((degree == 0).sum())
        if lonely:
            self.notes.append(f"{lonely:,} nodes have no edges.")
        self._report("checksums", 0.95)
        return write_manifest(
            self.folder,
            num_nodes=num_nodes,
            num_edges=int(degree.sum()) // 2,
            num_features=len(names or STRUCTURAL_NAMES),
            feature_names=names or STRUCTURAL_NAMES,
            structural=names is None,
            cleaned=Cleaned(**cleaned, bad_rows=bad_rows),
        )

    # ---- the steps ---------------------------------------------------------------------------------------

    def _view_edges(self, weight_column: str | None) -> bool:
        """The edges as a view (s, t, w): read when asked for, never stored. Returns whether they have weights."""
        source = self.edges
        source.check_column(weight_column)
        ends = end_columns(source.files[0], source.names, [weight_column], source.named)
        weight_column = weight_column or self._assumed_weight(ends)
        ignored = [name for name in source.names if name not in (*ends, weight_column)]
        if ignored:
            self.notes.append(f"{source.title}: ignored the columns {', '.join(ignored)}.")
        (s, s_integer), (t, t_integer) = (source.id_of(name) for name in ends)
        self.integers = s_integer and t_integer
        if not self.integers:
            s, t = f"({s})::VARCHAR", f"({t})::VARCHAR"
        w = f", TRY_CAST({quoted(weight_column)} AS FLOAT) AS w" if weight_column else ""
        self._do(f"CREATE VIEW edges AS SELECT {s} AS s, {t} AS t{w} FROM {source.relation}")
        return weight_column is not None

    def _assumed_weight(self, ends: tuple[str, str]) -> str | None:
        """As `read_graph` takes it: by its name, or in a file without header the next column if it holds numbers."""
        source = self.edges
        free = [name for name in source.names if name not in ends]
        header = not source.text or source.names != [str(place + 1) for place in range(len(source.names))]
        free = [name for name in free if name.lower() in WEIGHT_NAMES] if header else free
        if not free or free[0] not in source.numeric:
            return None
        self.notes.append(f"{source.title}: column {free[0]!r} taken as the edge weight.")
        return free[0]

    def _nodes_of_edges(self) -> None:
        """The table of nodes, in ascending order of their ids; a row's number is the node's."""
        with self.engine.watched(self.progress, "collecting the ids", 0.0, 0.2):
            both = "SELECT s AS id FROM edges UNION ALL SELECT t FROM edges"
            self._do(f"CREATE TABLE found AS SELECT DISTINCT id FROM ({both}) WHERE id IS NOT NULL")
        if not self.integers and self._all_plain_integers("found"):
            self.integers = True
            self._do("ALTER VIEW edges RENAME TO edges_as_text")
            ends = "TRY_CAST(s AS BIGINT) AS s, TRY_CAST(t AS BIGINT) AS t"
            self._do(f"CREATE VIEW edges AS SELECT * REPLACE ({ends}) FROM edges_as_text")
        kind = "BIGINT" if self.integers else "VARCHAR"
        with self.engine.watched(self.progress, "numbering the ids", 0.2, 0.25):
            self._do(f"CREATE TABLE nodes AS SELECT id::{kind} AS id FROM found ORDER BY id::{kind}")
        self._do("DROP TABLE found")

    def _nodes_of_features(self, files: list[Path], id_column: str | None) -> list[str]:
        """The table of nodes, in the order of the features, which are written; returns the features' names."""
        path = self.folder / "features.npy"
        if files[0].suffix.lower() in (".npy", ".npz"):
            if len(files) > 1:
                raise UsageError(f"{files[0]}: an array of features must be one file.")
            array = open_feature_array(files[0])
            self._do(f"CREATE TABLE nodes AS SELECT range AS id FROM range({len(array)})")
            self._report("features", 0.1)
            return write_feature_array(array, str(files[0]), path, self.dtype)
        source = open_source(self.engine, files, asked=[id_column], drop_bad=self.drop_bad)
        source.check_column(id_column)
        if id_column is None:
            id_column = source.names[0]
            self.notes.append(f"{source.title}: node ids taken from the first column, {id_column!r}.")
        columns = feature_columns(self.engine, source, id_column)
        sql, integers = source.id_of(id_column)
        missing = self._count(f"{source.relation} WHERE {sql} IS NULL")
        if missing:
            self._drop(f"{source.title}: {missing:,} rows have no node id in column {id_column!r}")
        with self.engine.watched(self.progress, "numbering the ids", 0.0, 0.1):
            self._do(f"CREATE TABLE nodes AS SELECT {sql} AS id FROM {source.relation} WHERE {sql} IS NOT NULL")
        check_repeated(self.engine, source)
        self.integers = integers and self.integers
        with self.engine.watched(self.progress, "features", 0.1, 0.25):
            names = write_feature_table(self.engine, source, columns, f"{sql} IS NOT NULL", path, self.dtype)
        self.notes += source.notes
        return names

    def _write_ids(self) -> None:
        """The users' ids in the order of the nodes: integers where each is one, else text."""
        kind = "BIGINT" if self.integers or self._all_plain_integers("nodes") else "VARCHAR"
        path = self.folder / "ids.parquet"
        self._do(f"COPY (SELECT id::{kind} AS id FROM nodes ORDER BY rowid) TO {literal(path)} (FORMAT parquet)")

    def _number_edges(self, weight: bool, feature_files: list[Path]) -> int:
        """The table `pairs` (a, b, w) of node numbers; returns how many bad rows were left out, if that is allowed."""
        ours = "id" if self.integers else "id::VARCHAR"
        key = ("e.s", "e.t") if self.integers else ("e.s::VARCHAR", "e.t::VARCHAR")
        w = ", e.w" if weight else ""
        self._do("SET preserve_insertion_order = false")  # of edges the order does not matter, and less is held
        with self.engine.watched(self.progress, "numbering the edges", 0.25, 0.5):
            self._do(
                f"CREATE TABLE pairs AS SELECT a.rowid::INTEGER AS a, b.rowid::INTEGER AS b{w} FROM edges e "
                f"LEFT JOIN (SELECT rowid, {ours} AS id FROM nodes) a ON {key[0]} = a.id "
                f"LEFT JOIN (SELECT rowid, {ours} AS id FROM nodes) b ON {key[1]} = b.id"
            )
        wrong = "a IS NULL OR b IS NULL"
        bad = self._count(f"pairs WHERE {wrong}")
        if bad:
            self._explain_unknown(bad, feature_files)
        if weight:
            unusable = "w IS NULL OR NOT isfinite(w) OR w < 0"
            found = self._count(f"pairs WHERE {unusable}")
            if found:
                self._drop(f"{self.edges.title}: {found:,} edges have a weight that is not a finite number >= 0")
                wrong, bad = f"{wrong} OR {unusable}", self._count(f"pairs WHERE {wrong} OR {unusable}")
        if bad:
            self._do(f"DELETE FROM pairs WHERE {wrong}")
        return bad

    def _explain_unknown(self, bad: int, feature_files: list[Path]) -> None:
        missing = self._count("edges WHERE s IS NULL OR t IS NULL")
        if missing:
            self._drop(f"{self.edges.title}: {missing:,} edges have no node id at one end")
        if bad > missing:
            end = "s" if self._count("pairs WHERE a IS NULL") else "t"
            known = "SELECT id::VARCHAR FROM nodes"
            query = f"SELECT {end} FROM edges WHERE {end} IS NOT NULL AND {end}::VARCHAR NOT IN ({known}) LIMIT 1"
            name = self.engine.value(query)
            edges = f"{bad - missing:,} edges to such nodes"
            self._drop(f"{self.edges.title}: node {name!r} is not in {feature_files[0]} ({edges})")

    # ---- small things ------------------------------------------------------------------------------------

    def _all_plain_integers(self, table: str) -> bool:
        """Whether each id survives the way to a 64-bit integer and back."""
        plain = f"regexp_full_match(id::VARCHAR, {literal(PLAIN_INTEGER)}) AND TRY_CAST(id AS BIGINT) IS NOT NULL"
        return bool(self.engine.value(f"SELECT bool_and({plain}) FROM {table}"))

    def _drop(self, problem: str) -> None:
        if not self.drop_bad:
            raise BadRowError(f"{problem}.")
        self.notes.append(f"{problem}: dropped.")

    def _count(self, what: str) -> int:
        return int(self.engine.value(f"SELECT count(*) FROM {what}"))

    def _do(self, sql: str) -> None:
        self.engine.rows(sql)

    def _report(self, text: str, share: float) -> None:
        if self.progress is not None:
            self.progress(text, share)
