"""DuckDB, the engine that reads, numbers and sorts tables larger than memory."""

from __future__ import annotations

import errno
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from topoter.errors import BadRowError, DataError, UsageError
from topoter.graphs.arrow import pa
from topoter.graphs.problems import first_line
from topoter.memory import show_memory

Progress = Callable[[str, float], None]  # what is being done, and which share of all is done

_FULL = re.compile(r"No space left|File too large|failed to offload|Could not write|max_temp_directory_size|Disk quota")
_SECONDS = 0.2  # between two looks at how far a query is


class Engine:
    """A connection to DuckDB; one query at a time."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query to its end; what it answers is small."""
        found: list[tuple[Any, ...]] = self._connection.execute(sql).fetchall()
        return found

    def value(self, sql: str) -> Any:
        """The one value that a query answers."""
        return self.rows(sql)[0][0]

    def batches(self, sql: str, rows: int) -> Iterator[Any]:
        """The answer as Arrow batches, each read when it is asked for."""
        relation = self._connection.sql(sql)
        # DuckDB 1 calls it otherwise, and is what Python 3.10 gets.
        read = relation.to_arrow_reader if hasattr(relation, "to_arrow_reader") else relation.fetch_arrow_reader
        yield from read(rows)

    @contextmanager
    def watched(self, progress: Progress | None, text: str, start: float, end: float) -> Iterator[None]:
        """Report how far the queries inside are, as a share of all between `start` and `end`."""
        if progress is None:
            yield
            return
        done = threading.Event()

        def watch() -> None:
            while not done.wait(_SECONDS):
                share = max(0.0, self._connection.query_progress()) / 100  # -1 where it cannot be told
                progress(text, start + (end - start) * min(share, 1.0))

        progress(text, start)
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()


@contextmanager
def open_engine(folder: Path, memory: int) -> Iterator[Engine]:
    """DuckDB, with tables and intermediate results that go to `folder` once they outgrow `memory` bytes."""
    try:
        import duckdb
    except ImportError:
        raise UsageError('Importing needs DuckDB: pip install "topoter[scale]".') from None
    settings = {
        "memory_limit": f"{memory // 10**6}MB",
        "temp_directory": str(folder / "spilled"),
        "threads": int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1),
        # Files a user names are read; nothing is fetched or installed behind their back.
        "autoinstall_known_extensions": False,
    }
    try:
        with duckdb.connect(str(folder / "tables.duckdb"), config=settings) as connection:
            engine = Engine(connection)
            # Progress is measured only with the bar on, and we print our own.
            engine.rows("SET enable_progress_bar = true")
            engine.rows("SET enable_progress_bar_print = false")
            yield engine
    except (duckdb.Error, pa.ArrowException, OSError, RuntimeError) as error:
        # What fails while an answer is read comes through Arrow, as an OSError without a number among others.
        if "interrupt" in str(error).lower():  # Ctrl-C ends the query, and DuckDB says so instead of Python
            raise KeyboardInterrupt from None
        if isinstance(error, RuntimeError) or getattr(error, "errno", None):
            raise
        raise _explained(error, memory) from None


def _explained(error: Exception, memory: int) -> Exception:
    """What DuckDB complains of, in one line of ours; a full disk as the operating system would say it."""
    text = str(error)
    if _FULL.search(text):
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if type(error).__name__ == "OutOfMemoryException":
        return DataError(f"The import needs more than the {show_memory(memory)} it may take: give a larger --memory.")
    line = re.search(r"CSV Error on Line: (\d+)", text)
    if line:
        file = re.search(r"^\s*file ?= ?(.+)$", text, re.MULTILINE)
        where = f"{file.group(1).strip() if file else 'The file'}, line {line.group(1)}"
        width = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", text)
        if width:
            return BadRowError(f"{where}: {width.group(2)} columns where {width.group(1)} were expected.")
        return BadRowError(f"{where}: {text.splitlines()[-1].strip()}")
    return DataError(f"DuckDB: {first_line(error)}")
