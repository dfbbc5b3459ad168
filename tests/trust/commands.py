"""The commands that are killed, starved and crowded: small, and known to give the same result every time."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import zygote

_TIMES = ("seconds", "cpu_seconds", "peak_mb")


@dataclass(frozen=True)
class Command:
    """A command in a folder of its own.

    Args:
        arguments: of `topoter`; INPUT in them stands for the folder of what is read.
        resume: to be added when it is called again.
        earlier: arguments of a call that leaves an earlier, different result in the same place.
        result: what is in the folder, but for times.
    """

    name: str
    arguments: tuple[object, ...]
    result: Callable[[Path], dict[str, Any]]
    resume: tuple[str, ...] = ()
    earlier: tuple[object, ...] = ()

    def run(self, folder: Path, *more: str) -> zygote.Ended:
        return zygote.run(folder, self.call(*more))

    def of(self, arguments: tuple[object, ...]) -> list[str]:
        return [str(argument).replace("INPUT", str(inputs())) for argument in arguments]

    def call(self, *more: str) -> list[str]:
        return self.of((*self.arguments, *more))

    def seed_of_earlier(self) -> tuple[object, ...]:
        return self.earlier or (*self.arguments, "--seed", 1)


@dataclass(frozen=True)
class Expected:
    result: dict[str, Any]
    files: list[str]
    seconds: float
    earlier: Path | None  # a folder with an earlier result
    earlier_result: dict[str, Any]


@cache
def scratch() -> Path:
    """A folder for everything, which goes when Python ends."""
    folder = tempfile.TemporaryDirectory(prefix="topoter-trust-")
    _kept.append(folder)
    return Path(folder.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []


def new_folder() -> Path:
    return Path(tempfile.mkdtemp(dir=scratch()))


@cache
def inputs() -> Path:
    """What the commands read: a graph with features and labels, the same over time, a model, an imported graph."""
    from topoter.datasets import block_model

    folder = scratch() / "inputs"
    folder.mkdir()
    data = block_model(num_nodes=120, num_blocks=3, mean_degree=6.0, num_features=6, seed=0)
    edges = data.edge_index[:, data.edge_index[0] < data.edge_index[1]].t().tolist()
    lines = [f"n{a},n{b}" for a, b in edges]
    (folder / "edges.csv").write_text("\n".join(["source,target", *lines, ""]))
    timed = [f"{line},{place % 4}" for place, line in enumerate(lines)]
    (folder / "timed.csv").write_text("\n".join(["source,target,time", *timed, ""]))
    rows = [f"n{node}," + ",".join(f"{value:.4f}" for value in row) for node, row in enumerate(data.x.tolist())]
    (folder / "features.csv").write_text("\n".join(["id,a,b,c,d,e,f", *rows, ""]))
    labels = [f"n{node},{label}" for node, label in enumerate(data.y.tolist())]
    (folder / "labels.csv").write_text("\n".join(["id,label", *labels, ""]))
    for name, seed in (("model", 0), ("other", 1)):
        fit = ("fit", *OWN, *TRAINED, "--epochs", 3, "--seed", seed, "-q", "-o", f"{name}.topoter")
        _well(zygote.run(folder, [str(part).replace("INPUT/", "") for part in fit]))
    _well(zygote.run(folder, ["import", "edges.csv", "--features", "features.csv", "-o", "graph.topo", "-q"]))
    return folder


def _well(ended: zygote.Ended) -> zygote.Ended:
    assert ended.code == 0, ended.said
    return ended


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def _all_bytes(folder: Path) -> dict[str, Any]:
    return {name: (folder / name).read_bytes() for name in files_in(folder)}


def _model(folder: Path) -> dict[str, Any]:
    """A model's weights and all it says of itself; files beside it do not count."""
    from topoter.training.checkpoint import load_checkpoint

    if not (folder / "model.topoter").exists():
        return {}
    tensors, content = load_checkpoint(folder / "model.topoter", "model")
    return {"content": content, **{name: tensor.numpy().tobytes() for name, tensor in tensors.items()}}


def _embeddings(folder: Path) -> dict[str, Any]:
    return {name: content for name, content in _all_bytes(folder).items() if "/." not in f"/{name}"}


def _graph(folder: Path) -> dict[str, Any]:
    return {name: content for name, content in _all_bytes(folder).items() if name.startswith("graph.topo/")}


def _runs(folder: Path) -> dict[str, Any]:
    from topoter.experiments.store import Store

    store = Store.read(folder / "results")
    kept = [msgspec.structs.replace(record, **dict.fromkeys(_TIMES, 0.0)) for record in store.records]
    found = {str(record.key): msgspec.json.encode(record) for record in kept}
    return found | {f"losses {key}": losses for key, losses in store.losses("graph-classification").items()}


def _trials(folder: Path) -> dict[str, Any]:
    path = folder / "found.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    found = {json.dumps(row.pop("parameters")): row for row in rows}
    assert len(found) == len(rows), "a trial stands there twice"
    for row in rows:
        del row["number"]  # a trial that was cut off keeps its number for itself
    return found


OWN = ("INPUT/edges.csv", "--features", "INPUT/features.csv")
# A recipe that trains; the default one for nodes does not take epochs of its own.
TRAINED = ("--recipe", "tuned", "--patience", 1000, "--channels", 16)
_FIT = ("--save-seconds", 0, "-q", "-o", "model.topoter")

COMMANDS = {
    command.name: command
    for command in (
        Command("fit a whole graph", ("fit", *OWN, *TRAINED, "--epochs", 40, *_FIT), _model, ("--resume",)),
        Command("fit a graph set", ("fit", "mutag", "--batch-size", 50, "--epochs", 4, *_FIT), _model, ("--resume",)),
        Command(
            "fit snapshots",
            ("fit", "--snapshots", "INPUT/timed.csv", "--epochs", 40, "--patience", 1000, *_FIT),
            _model,
            ("--resume",),
        ),
        Command(
            "fit on subgraphs",
            ("fit", *OWN, *TRAINED, "--batch-nodes", 40, "--epochs", 8, *_FIT),
            _model,
            ("--resume",),
        ),
        Command("fit by default", ("fit", *OWN, *_FIT), _model, ("--resume",)),
        Command(
            "embed",
            ("embed", "INPUT/model.topoter", *OWN, "-q", "-o", "z.npy"),
            _embeddings,
            earlier=("embed", "INPUT/other.topoter", *OWN, "-q", "-o", "z.npy"),
        ),
        Command(
            "embed in blocks",
            ("embed", "INPUT/model.topoter", "INPUT/graph.topo", "--memory", "20kB", "-q", "-o", "z.npy"),
            _embeddings,
            earlier=("embed", "INPUT/other.topoter", "INPUT/graph.topo", "-q", "-o", "z.npy"),
        ),
        Command(
            "import",
            ("import", *OWN, "-q", "-o", "graph.topo"),
            _graph,
            earlier=("import", "INPUT/edges.csv", "-q", "-o", "graph.topo"),
        ),
        Command(
            "search",
            (
                "search",
                *OWN,
                "--labels",
                "INPUT/labels.csv",
                "--method",
                "propagated-tuned",
                "--trials",
                4,
                "--seeds",
                1,
                "--out",
                "found",
                "-q",
            ),
            _trials,
        ),
        Command(
            "reproduce --jobs 2",
            (
                "reproduce",
                "graph-classification",
                "--datasets",
                "mutag",
                "--methods",
                "degree-histogram",
                "--seeds",
                5,
                "--jobs",
                2,
                "-q",
            ),
            _runs,
        ),
    )
}
# What adds to what is there instead of replacing it: a part of the result is as good as none of it.
ADDS = ("search", "reproduce --jobs 2")


@cache
def expected(name: str) -> Expected:
    """What the command gives when nobody disturbs it, twice."""
    command = COMMANDS[name]
    first, folder = new_folder(), new_folder()
    _well(command.run(first))
    started = time.monotonic()
    told = _well(command.run(folder)).told
    seconds = time.monotonic() - started
    result = command.result(folder) | {"told": told}
    assert command.result(first) | {"told": told} == result, "two undisturbed runs differ"
    files = files_in(folder)
    if name in ADDS:
        return Expected(result, files, seconds, None, {})
    before = new_folder()
    _well(zygote.run(before, command.of(command.seed_of_earlier())))
    return Expected(result, files, seconds, before, command.result(before))


@cache
def seconds_anew(name: str) -> float:
    """How long the command takes in a process that imports everything itself; what comes of it is the same."""
    command, folder = COMMANDS[name], new_folder()
    started = time.monotonic()
    told = _well(zygote.run(folder, command.call(), anew=True)).told
    seconds = time.monotonic() - started
    assert command.result(folder) | {"told": told} == expected(name).result, "forked and fresh processes differ"
    return seconds


def check_between(name: str, folder: Path, had_earlier: bool) -> None:
    """After a disturbance: what stands there is the earlier result, the new one, or nothing where there was none."""
    command, known = COMMANDS[name], expected(name)
    found = command.result(folder)
    whole = {key: value for key, value in known.result.items() if key != "told"}
    if name in ADDS:
        assert found.items() <= whole.items(), f"torn: {set(found) - set(whole)}"
    else:
        assert found in (whole, known.earlier_result if had_earlier else {}), "torn, or the earlier result is lost"


def check_after(name: str, folder: Path) -> None:
    """Called again, a command ends with the result of one that was not disturbed, and leaves nothing else."""
    command, known = COMMANDS[name], expected(name)
    ended = command.run(folder, *command.resume)
    assert ended.code == 0, ended.said
    assert "Traceback" not in ended.said, ended.said
    assert command.result(folder) | {"told": ended.told} == known.result, "another result than without disturbance"
    assert files_in(folder) == known.files, f"left over: {sorted(set(files_in(folder)) ^ set(known.files))}"


def forget(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
