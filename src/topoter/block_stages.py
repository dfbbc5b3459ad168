"""The stages of an encoder on a graph larger than memory: what a stage made is on disk as blocks of columns.

Dense stages go through the rows, propagation through the columns: a few columns of all nodes at a time are in memory,
and the lists of neighbours stream past them. What is finished is a file, so that a run that was stopped goes on with
the block it was at. Several processes (see `training.distributed`) share the blocks, on one file system.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from topoter.encoders.stages import Dense, Propagate, Stage, Together
from topoter.errors import DataError, UsageError
from topoter.estimator import TopoTER
from topoter.graphs import GraphDirectory
from topoter.graphs.array_files import ArrayWriter, read_rows, rows_written
from topoter.graphs.atomic import atomic_write
from topoter.kernels import mode
from topoter.kernels.neighbour_sums import propagate_rows, propagate_rows_plain
from topoter.memory import show_memory
from topoter.structure.features import FEATURE_SCALINGS
from topoter.structure.large_graph import LargeGraph, release
from topoter.training.distributed import Group, current_group

_logger = logging.getLogger("topoter")

MOST_ROWS = 1 << 16  # of a block
MARK = "of"  # the file that tells what a folder of blocks belongs to


@dataclass
class BlockWork:
    """Everything the stages share; `current` is the stage whose result is on disk as blocks of columns."""

    graph: LargeGraph
    directory: GraphDirectory
    features: Callable[[Tensor], Tensor]
    folder: Path
    columns: int  # of a block
    rows: int
    scale: np.ndarray  # D^-1/2
    group: Group
    current: int = -1
    report: Callable[[str, float], None] = lambda text, share: None

    @classmethod
    def prepare(cls, model: TopoTER, directory: GraphDirectory, out: Path, memory: int, plan: list[Stage]) -> BlockWork:
        graph = LargeGraph.from_directory(directory)
        n = graph.num_nodes
        scaling = FEATURE_SCALINGS[model.effective_params()["feature_scaling"]]
        matched = model.feature_map(directory.manifest.feature_names)

        def features(x: Tensor) -> Tensor:
            return scaling(matched(x))

        widths = _widths(plan, features(torch.zeros(1, graph.num_features)))
        widest = max(widths)
        columns = int((0.8 * memory - 12 * n) // (8 * n))  # two arrays of 4 bytes, beside indptr and scale
        if columns < 1:
            raise UsageError(
                f"{show_memory(memory)} are too little to embed {n:,} nodes: give at least "
                f"--memory {show_memory(25 * n).replace(' ', '')}."
            )
        rows = int(min(MOST_ROWS, max(1, 0.1 * memory // (16 * widest))))
        folder = out.with_name(f".{out.name}.blocks")
        group = current_group()
        columns = min(columns, -(-widest // group.size))  # a block for each process at least
        if group.writes:
            need = 4 * n * max(before + after for before, after in pairwise(widths))
            placed = getattr(model.model_.encoder, "here", None) is not None
            _keep_or_clear(folder, model, directory, f"{columns} {rows} {len(plan)} {placed} {out.suffix}", need)
        group.wait()
        done = [int(stage.name.removeprefix("stage-")) for stage in folder.glob("stage-*")]
        group.wait()  # all have looked before the first one changes anything
        return cls(graph, directory, features, folder, columns, rows, _scale(graph), group, max(done, default=-1))

    def run(self, number: int, stage: Stage) -> None:
        """Do a stage, unless it is done, and forget the one before."""
        if number <= self.current:
            return
        made = self.folder / f"unfinished-{number}"
        made.mkdir(exist_ok=True)
        if isinstance(stage, Propagate):
            self._propagate(stage, made)
        elif isinstance(stage, Together):
            self._together(stage, made)
        elif self.group.writes:  # little work beside propagation, and all of it on the disk
            self._dense(stage, made)
        self.group.wait()
        if self.group.writes:
            made.rename(self.folder / f"stage-{number}")
            if self.current >= 0:
                shutil.rmtree(self.folder / f"stage-{self.current}")
        self.current = number
        self.group.wait()

    def forget(self) -> None:
        """Remove all of it, the mark first: a folder that is half removed is not to be gone on with."""
        (self.folder / MARK).unlink()
        shutil.rmtree(self.folder)

    def blocks(self) -> list[Path]:
        """The blocks of columns of the last stage, in order."""
        return sorted((self.folder / f"stage-{self.current}").glob("*.npy"))

    def read(self, start: int, stop: int) -> tuple[Tensor, Tensor, slice]:
        """Rows of the last stage and of the features, as a dense stage takes them."""
        stored = np.array(self.graph.features[start:stop], dtype=np.float32)
        x = self.features(torch.from_numpy(stored))
        if self.current < 0:
            return x, x, slice(start, stop)
        h = np.concatenate([read_rows(file, start, stop) for file in self.blocks()], axis=1)
        return torch.from_numpy(h), x, slice(start, stop)

    def _dense(self, stage: Dense, folder: Path) -> None:
        """All rows through a dense stage, into blocks of columns; rows that are written already stay."""
        width, n = stage.apply(*self.read(0, 1)).size(1), self.graph.num_nodes
        firsts = range(0, width, self.columns)
        files = {first: folder / f"{first:06}.npy" for first in firsts}
        wide = {first: min(self.columns, width - first) for first in firsts}
        done = min(rows_written(files[first], np.float32, wide[first]) for first in firsts)
        done -= done % self.rows if done < n else 0
        with ExitStack() as stack:
            writers = {
                first: stack.enter_context(ArrayWriter(files[first], np.float32, wide[first], done)) for first in firsts
            }
            for start in range(done, n, self.rows):
                made = stage.apply(*self.read(start, min(start + self.rows, n))).numpy()
                for first, writer in writers.items():
                    writer.append(made[:, first : first + wide[first]])
                self.graph.release()
                self.report("transforming", start / n)

    def _propagate(self, stage: Propagate, folder: Path) -> None:
        """Each block of columns over all edges; a block that is done is a file."""
        blocks = self.blocks()[self.group.rank :: self.group.size]
        for number, block in enumerate(blocks):
            target = folder / block.name
            if target.exists():
                continue
            h = np.load(block, allow_pickle=False)
            kept = max(0, stage.first - int(block.stem))
            stay, h = h[:, :kept].copy(), np.ascontiguousarray(h[:, kept:])  # no view: it would hold all of the block
            if h.shape[1]:
                other = np.empty_like(h)
                for hop in range(stage.times):
                    for share in self._hop(h, other, stage):
                        self.report("propagating", (number + (hop + share) / stage.times) / len(blocks))
                    h, other = other, h
                del other
            with (
                atomic_write(target) as temporary,
                ArrayWriter(temporary, np.float32, stay.shape[1] + h.shape[1]) as writer,
            ):
                for start in range(0, len(h), self.rows):
                    rows = slice(start, start + self.rows)
                    writer.append(np.concatenate([stay[rows], h[rows]], axis=1))

    def _hop(self, h: np.ndarray, out: np.ndarray, stage: Propagate) -> Iterator[float]:
        """One propagation, yielding which share of it is done."""
        multiply = propagate_rows if mode() == "fast" else propagate_rows_plain
        scale = np.ones_like(self.scale) if stage.summed else self.scale
        graph = self.graph
        indptr, indices = np.asarray(graph.indptr), np.asarray(graph.indices)
        weight = None if graph.weight is None else np.asarray(graph.weight)
        for start, stop in graph.stretches():
            multiply(start, stop, indptr, indices, weight, scale, h, out)
            yield stop / graph.num_nodes

    def _together(self, stage: Together, folder: Path) -> None:
        """Group by group, from and to scattered rows; a group that is done leaves a mark."""
        before = [np.load(file, mmap_mode="r", allow_pickle=False) for file in self.blocks()]

        def read(nodes: Tensor) -> Tensor:
            rows = np.concatenate([part[nodes.numpy()] for part in before], axis=1)
            for part in before:
                release(part)
            return torch.from_numpy(rows)

        table, after = folder / "groups.npz", folder / "000000.npy"
        width, n = sum(part.shape[1] for part in before), self.graph.num_nodes
        if self.group.writes and not table.exists():
            self.report("looking for likely neighbours", 0)
            found = list(stage.groups(lambda nodes: map(read, nodes.split(self.rows)), n))
            np.lib.format.open_memmap(after, "w+", np.float32, (n, width))
            with atomic_write(table) as temporary:
                np.savez(temporary, nodes=torch.cat(found), ends=np.cumsum([group.numel() for group in found]))
        self.group.wait()
        with np.load(table) as stored:
            groups = torch.from_numpy(stored["nodes"]).tensor_split(torch.from_numpy(stored["ends"][:-1]))
        start = after.stat().st_size - 4 * n * width
        for number in range(self.group.rank, len(groups), self.group.size):
            mark = folder / f"group-{number}"
            if not mark.exists():
                made = stage.apply(read(groups[number])).numpy()
                with after.open("r+b", buffering=0) as file:  # not mapped: a disk that is full would end the process
                    for node, row in zip(groups[number].tolist(), made):
                        file.seek(start + 4 * width * node)
                        file.write(row.data)
                mark.touch()
                self.report("looking for likely neighbours", (number + 1) / len(groups))


def _scale(graph: LargeGraph) -> np.ndarray:
    """1 / sqrt of each node's degree, itself counted."""
    degree = np.diff(graph.indptr).astype(np.float32)
    if graph.weight is not None:
        ends = np.concatenate([[0.0], np.cumsum(graph.weight, dtype=np.float64)])
        degree = (ends[graph.indptr[1:]] - ends[graph.indptr[:-1]]).astype(np.float32)
    scale: np.ndarray = 1 / np.sqrt(degree + 1)
    return scale


def _widths(plan: list[Stage], x: Tensor) -> list[int]:
    """How many columns there are before and after each stage, from a row of features [1, C]."""
    rows = [x]
    for stage in plan:
        rows.append(stage.apply(rows[-1], x, slice(0, 1)) if isinstance(stage, Dense) else rows[-1])
    return [row.size(1) for row in rows]


def _keep_or_clear(folder: Path, model: TopoTER, directory: GraphDirectory, sizes: str, need: int) -> None:
    """Make the folder of blocks, and clear one that belongs to another model, graph or block size."""
    digest = hashlib.sha256(f"{directory.identity} {sizes} {model.effective_params()['feature_scaling']}".encode())
    for name, tensor in sorted(model.model_.encoder.state_dict().items()):
        digest.update(name.encode() + tensor.cpu().contiguous().numpy().tobytes())
    mark, said = folder / MARK, digest.hexdigest()
    if folder.is_symlink():
        raise DataError(f"{folder} is a symbolic link, and not the folder of blocks that belongs there: remove it.")
    if mark.is_file() and mark.read_text() == said:
        _logger.info("Going on with the blocks of an embedding that was stopped.")
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    free = shutil.disk_usage(folder).free
    if need > free:
        shutil.rmtree(folder)
        raise DataError(
            f"The disk of {folder.parent} has {show_memory(free)} free, and the embedding needs about "
            f"{show_memory(need)} there until it is done."
        )
    mark.write_text(said)
