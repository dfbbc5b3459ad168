"""Embeddings of a graph larger than memory, exact: stage by stage (`block_stages`), from files to files."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from topoter.block_stages import MOST_ROWS, BlockWork
from topoter.encoders import Hops
from topoter.encoders.hops import graph_key
from topoter.encoders.stages import Dense, needed_stages
from topoter.errors import DataError, UsageError
from topoter.estimator import TopoTER
from topoter.graphs import GraphDirectory
from topoter.graphs.array_files import ArrayWriter
from topoter.graphs.arrow import pa, pq
from topoter.graphs.atomic import DISK_FULL, atomic_write
from topoter.graphs.writers import IDS_BESIDE, embedding_columns, one_per_line
from topoter.memory import show_memory
from topoter.structure.large_graph import LargeGraph

_logger = logging.getLogger("topoter")

Report = Callable[[str, float], None]
WRITTEN = (".parquet", ".npy")
_PLACES_PER_NODE, _PLACES_PER_EDGE = 2400, 100  # bytes, to find the places of a graph's nodes in memory


def embed_in_blocks(
    model: TopoTER,
    directory: GraphDirectory,
    out: Path,
    memory: int,
    layout: str = "list",
    report: Report | None = None,
) -> tuple[int, int]:
    """Write the embeddings of all nodes: `.npy`, or a folder of parquet files; returns their shape [N, F].

    Args:
        memory: bytes that may be used for blocks.
        report: told what is being done and which share of all is done.
    """
    encoder = model.model_.encoder
    plan = needed_stages(encoder)
    if out.suffix.lower() not in WRITTEN:
        raise UsageError(f"{out}: embeddings of a graph larger than memory are written as {' or '.join(WRITTEN)}.")
    if not out.resolve().parent.is_dir():
        raise UsageError(f"Cannot write {out}: the folder {out.resolve().parent} does not exist.")
    if isinstance(encoder, Hops):
        encoder.here = _places(encoder, directory, memory)
    model.model_.eval()
    with torch.no_grad(), _disk_may_be_full(out.resolve().parent):
        work = BlockWork.prepare(model, directory, out.resolve(), memory, plan)
        for number, stage in enumerate(plan[:-1]):
            work.report = _share_of(report, number, len(plan))
            work.run(number, stage)
        last = plan[-1]
        assert isinstance(last, Dense)
        work.report = _share_of(report, len(plan) - 1, len(plan))
        shape = _write(work, last, out.resolve(), layout)
    if work.group.writes:
        work.forget()
    return shape


@contextmanager
def _disk_may_be_full(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, DataError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if getattr(cause, "errno", None) not in DISK_FULL:
            raise
        raise DataError(
            f"The disk of {folder} is full. Free some space and give the same command again: it goes on where it was."
        ) from error


def _places(encoder: Hops, directory: GraphDirectory, memory: int) -> Tensor | None:
    """The places of the graph's nodes [N, K]; None where they have to be at their mean."""
    if not encoder.place.size(1):
        return None
    graph = LargeGraph.from_directory(directory)
    nodes = torch.from_numpy(directory.node_keys())
    if encoder.fitted_on(graph_key(graph.edge_keys(), graph.num_nodes), nodes):
        return encoder.place
    need = _PLACES_PER_NODE * graph.num_nodes + _PLACES_PER_EDGE * graph.num_edges
    if need <= memory:
        return encoder.places(graph.adjacency(), nodes)
    if bool((encoder.rows_of(nodes, graph.num_nodes) >= 0).any()):
        _logger.info(
            "The %d columns that hold a node's place in the graph are at their mean: to find them in this graph, too, "
            "takes --memory %s.",
            encoder.place.size(1),
            show_memory(need).replace(" ", ""),
        )
    return None


def _write(work: BlockWork, last: Dense, out: Path, layout: str) -> tuple[int, int]:
    """The last stage, from blocks to the user's file or folder."""
    width = last.apply(*work.read(0, 1)).size(1)
    parts = work.folder / ("rows" if out.suffix.lower() == ".npy" else "parts")
    parts.mkdir(exist_ok=True)
    start = 0
    for number, batch in enumerate(pq.ParquetFile(work.directory.path / "ids.parquet").iter_batches(work.rows)):
        stop = start + batch.num_rows
        file = parts / f"part-{number:06}{out.suffix.lower()}"
        if number % work.group.size == work.group.rank and not file.exists():
            z = last.apply(*work.read(start, stop)).numpy()
            with atomic_write(file) as temporary:
                if out.suffix.lower() == ".npy":
                    temporary.write_bytes(np.ascontiguousarray(z, dtype=np.float32).data)
                else:
                    pq.write_table(pa.table(embedding_columns(batch.column(0), z, layout)), temporary)
            work.graph.release()
            work.report("writing", stop / work.graph.num_nodes)
        start = stop
    work.group.wait()
    if not work.group.writes:
        return start, width
    if out.suffix.lower() == ".npy":
        _join(work, parts, out, width)
    else:
        if out.exists():
            before = work.folder / "before"  # goes with the folder
            shutil.rmtree(before, ignore_errors=True)
            out.rename(before)
        parts.rename(out)
    return start, width


def _join(work: BlockWork, parts: Path, out: Path, width: int) -> None:
    """Blocks of rows as one array, and the ids beside it."""
    ids = pq.ParquetFile(work.directory.path / "ids.parquet")
    with atomic_write(out) as temporary:
        with ArrayWriter(temporary, np.float32, width) as writer:
            for file in sorted(parts.iterdir()):
                writer.append(np.fromfile(file, dtype=np.float32).reshape(-1, width))
        with atomic_write(out.with_suffix(IDS_BESIDE[".npy"])) as beside, beside.open("w", encoding="utf-8") as lines:
            for batch in ids.iter_batches(MOST_ROWS):
                lines.write(one_per_line(batch.column(0), out))


def _share_of(report: Report | None, number: int, count: int) -> Callable[[str, float], None]:
    """Progress within one stage as progress of all."""
    if report is None:
        return lambda text, share: None
    return lambda text, share: report(text, (number + share) / count)
