"""The store of results: what every run found, one sorted JSONL file per experiment, read once and passed on.

    results/<experiment>.jsonl             a `Record` per line, sorted
    results/<experiment>.losses.parquet    the loss of every epoch, a row per run that trained
    results/maps/..., search.jsonl         what runs left beside, and the trials of searches

Files are replaced as a whole, under a lock: a kill leaves the old one or the new one, and several processes may write.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from filelock import FileLock

from topoter.errors import DataError
from topoter.experiments import EXPERIMENTS
from topoter.experiments.limits import Stopped
from topoter.experiments.runs import Run, run_key
from topoter.graphs.atomic import atomic_write

DECIMALS = 5  # of a loss that is kept
_KEY = ("dataset", "method", "recipe", "protocol", "point", "seed")  # with the experiment, which names the file

Key = tuple[Any, ...]
T = TypeVar("T")


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One run.

    Args:
        point: the parameters that a study changes.
        scores: in percent, by the name of the metric; a run may hold several values of each.
        details: every other plain value that the run found.
        made_for: the experiment that the run was made for, if it was taken over from there.
        stopped: the limit that ended the run before it had any scores.
    """

    experiment: str
    dataset: str
    method: str
    recipe: str
    protocol: str
    point: dict[str, Any] = {}
    seed: int
    scores: dict[str, list[float]]
    parameters: dict[str, Any]
    details: dict[str, Any]
    seconds: float
    cpu_seconds: float
    peak_mb: float
    versions: dict[str, str]
    made_for: str | None = None
    stopped: Stopped | None = None

    @property
    def key(self) -> Key:
        """What no other record has."""
        names = (self.experiment, self.dataset, self.method, self.recipe, self.protocol)
        return run_key(*names, self.point, self.seed)


class Store:
    """A folder of results. Without a folder everything stays in memory."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self._records: dict[str, dict[Key, Record]] = {}
        self._signatures: dict[str, tuple[int, ...]] = {}  # of the files as they were read or written

    @classmethod
    def read(cls, folder: Path | None) -> Store:
        """All that a folder holds; nothing if it does not exist."""
        store = cls(folder)
        for name in EXPERIMENTS:
            store.refresh(name)
        return store

    @property
    def records(self) -> list[Record]:
        return [record for of_experiment in self._records.values() for record in of_experiment.values()]

    def of(self, experiment: str) -> list[Record]:
        """The records of an experiment, sorted."""
        return list(self._records.get(experiment, {}).values())

    def find(self, run: Run) -> Record | None:
        """The record of a run, if it was made with the same parameters."""
        found = self._records.get(run.recipe.experiment, {}).get(run.key)
        return found if found is not None and found.parameters == run.parameters else None

    def done(self, run: Run) -> Record | None:
        """The same, unless the run was ended by a narrower limit than it has now: then it is still to be made."""
        found = self.find(run)
        return None if found and found.stopped and not found.stopped.stands_for(run.limits) else found

    def limit_of(self, run: Run) -> Record | None:
        """The record of another seed of the same row that was ended by a limit which this run would meet as well."""
        row = run.key[:-1]
        for record in self.of(run.recipe.experiment):
            same = record.key[:-1] == row and record.parameters == run.parameters
            if same and record.stopped is not None and record.stopped.stands_for(run.limits):
                return record
        return None

    def refresh(self, experiment: str) -> None:
        """Take in what other processes have written meanwhile."""
        if self.folder is None:
            return
        path = self.folder / f"{experiment}.jsonl"
        signature = _signature(path)
        if signature != self._signatures.get(experiment):
            rows: dict[Key, Record] = {}
            for number, record in read_lines(path, Record):
                if record.experiment != experiment:
                    raise _damaged(path, number, f"a run of {record.experiment!r}")
                if record.key in rows:
                    raise _damaged(path, number, "a run that stands there twice")
                rows[record.key] = record
            self._records[experiment], self._signatures[experiment] = rows, signature

    def add(self, record: Record, losses: Sequence[float] = (), left: Mapping[str, Any] | None = None) -> None:
        """Keep a run, in the place of an earlier one with the same key."""
        name = record.experiment
        if self.folder is None:
            self._records.setdefault(name, {})[record.key] = record
            return
        with locked(self.folder):
            self.refresh(name)
            # The record comes last: what has one is complete.
            for file, content in (left or {}).items():
                write_text(self.folder / file, json.dumps(content) + "\n")
            self._write_losses(record, losses)
            rows = self._records.get(name, {}) | {record.key: record}
            self._records[name] = dict(sorted(rows.items()))
            path = self.folder / f"{name}.jsonl"
            write_lines(path, self._records[name].values())
            self._signatures[name] = _signature(path)

    def losses(self, experiment: str) -> dict[Key, list[float]]:
        """The loss of every epoch by the key of the run, of the runs that trained."""
        table = self._loss_table(experiment)
        return dict(zip(_keys_of(table, experiment), table.column("losses").to_pylist()))

    def left(self, name: str) -> Any | None:
        """What a run left beside its record, by the name of the file in the folder; None if it is not there."""
        path = (self.folder or Path()) / name
        if self.folder is None or not path.is_file():
            return None
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise DataError(f"{path} is damaged ({error}). Delete it, and run again what made it.") from error

    def _loss_table(self, experiment: str) -> Any:
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self.folder / f"{experiment}.losses.parquet" if self.folder else None
        if path is None or not path.is_file():
            return loss_table([])
        try:
            return pq.read_table(path, partitioning=None)
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(
                f"{path} is damaged ({error}). Get it back from where it was kept, or delete it."
            ) from error

    def _write_losses(self, record: Record, losses: Sequence[float]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        assert self.folder is not None
        table = self._loss_table(record.experiment)
        rows = {key: place for place, key in enumerate(_keys_of(table, record.experiment))}
        if rows.pop(record.key, None) is None and not losses:
            return
        if losses:
            rows[record.key] = table.num_rows
        table = pa.concat_tables([table, loss_table([(record, [round(loss, DECIMALS) for loss in losses])])])
        order = pa.array([place for _, place in sorted(rows.items())], pa.int64())
        with atomic_write(self.folder / f"{record.experiment}.losses.parquet") as temporary:
            pq.write_table(table.take(order), temporary, compression="zstd")


def loss_table(curves: Iterable[tuple[Record, Sequence[float]]]) -> Any:
    """Loss curves as an Arrow table: the parts of the key, and the list of losses."""
    import pyarrow as pa

    rows = [dict(zip(_KEY, record.key[1:])) | {"losses": list(losses)} for record, losses in curves]
    fields = [(name, pa.int64() if name == "seed" else pa.string()) for name in _KEY]
    return pa.Table.from_pylist(rows, pa.schema([*fields, ("losses", pa.list_(pa.float64()))]))


def _keys_of(table: Any, experiment: str) -> list[Key]:
    return [(experiment, *parts) for parts in zip(*(table.column(name).to_pylist() for name in _KEY))]


# ---- files -----------------------------------------------------------------------------------------------------------


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Inside the block no other process writes into the folder; a process that is killed gives the lock back."""
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):
        yield


def plain(value: Any) -> Any:
    """A NumPy number as Python's own: what msgspec calls for what it does not know."""
    if callable(item := getattr(value, "item", None)):
        return item()
    raise TypeError(f"a result must be made of plain values, and {type(value).__name__} is none")


def read_lines(path: Path, kind: type[T]) -> Iterator[tuple[int, T]]:
    """The records of a file with the numbers of their lines, checked one by one; none if there is no file."""
    decode = msgspec.json.Decoder(kind).decode
    for number, line in enumerate(path.read_bytes().splitlines() if path.is_file() else (), start=1):
        try:
            yield number, decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _damaged(path, number, str(error)) from error


def write_lines(path: Path, records: Iterable[Any]) -> None:
    encoder = msgspec.json.Encoder(enc_hook=plain)
    with atomic_write(path) as temporary:
        temporary.write_bytes(encoder.encode_lines(list(records)))


def write_text(path: Path, text: str) -> None:
    """Write a file, making its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _signature(path: Path) -> tuple[int, ...]:
    if not path.is_file():
        return ()
    found = path.stat()
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def _damaged(path: Path, number: int, what: str) -> DataError:
    return DataError(
        f"{path}, line {number}: this is no record of a run ({what}). "
        "Mend the line, or delete it: the same command makes the run again."
    )
