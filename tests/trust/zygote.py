"""The command line in processes that start at once: forked from one that has imported everything.

`python zygote.py` reads requests from stdin, a JSON line each, and answers each with the id of a new process. That one
leads a session of its own, so that whatever it starts can be found, and then is `topoter ARGUMENTS`.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

LOADED = (
    "torch", "torch_geometric.data", "sklearn.linear_model", "scipy.sparse", "pyarrow.parquet", "pyarrow.csv", "numba",
    "duckdb", "optuna", "loky", "topoter.cli.fit", "topoter.cli.embed", "topoter.cli.search", "topoter.cli.reproduce",
    "topoter.estimator", "topoter.experiments.runner", "topoter.experiments.search", "topoter.block_embedding",
    "topoter.graphs.importing", "topoter.kernels.neighbour_sums", "topoter.cli.sizing", "topoter.cli.import",
    "topoter.tasks.support_vectors", "topoter.tasks.own_labels", "typer", "rich.console", "rich.progress",
    "safetensors.torch", "pymetis", "pydantic",
)  # fmt: skip


@dataclass
class Ended:
    code: int  # negative: the signal that ended it
    said: str  # on stderr
    told: str  # on stdout


@dataclass
class Child:
    """A command that is going on."""

    pid: int
    folder: Path

    def send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # it ended in this very moment
            os.kill(self.pid, number)

    def running(self) -> bool:
        return not (self.folder / ".ended").exists()

    def wait(self, seconds: float = 900) -> Ended:
        deadline = time.monotonic() + seconds
        while self.running():
            if time.monotonic() > deadline:
                os.killpg(self.pid, signal.SIGKILL)
                raise AssertionError(f"a command still ran after {seconds} s: {(self.folder / '.stderr').read_text()}")
            time.sleep(0.002)
        code = int((self.folder / ".ended").read_text())
        said, told = ((self.folder / name).read_text() for name in (".stderr", ".stdout"))
        for name in (".stderr", ".stdout", ".ended"):
            (self.folder / name).unlink()
        return Ended(code, said, told)

    def orphans(self, seconds: float = 5) -> list[str]:
        """What is left of the session some time after its leader ended: processes of our own end within a second."""
        deadline = time.monotonic() + seconds
        while (left := _session(self.pid)) and time.monotonic() < deadline:
            time.sleep(0.05)
        return left


Zygote = subprocess.Popen[str]


def new_zygote() -> Zygote:
    return subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ}
    )


_shared = cache(new_zygote)


def start(folder: Path, arguments: Sequence[object], zygote: Zygote | None = None, **options: Any) -> Child:
    """Start `topoter ARGUMENTS` in a folder, forked from the zygote that all share or from another one.

    Options: `env`, `ignore` (signals), `threads`, `anew` for a process that is not forked, and
    `memory_limit` (bytes, as by `ulimit -v`) of such a one.
    """
    zygote = zygote or _shared()
    assert zygote.stdin is not None
    assert zygote.stdout is not None
    request = {"folder": str(folder), "arguments": [str(argument) for argument in arguments], **options}
    zygote.stdin.write(json.dumps(request) + "\n")
    zygote.stdin.flush()
    return Child(int(zygote.stdout.readline()), folder)


def run(folder: Path, arguments: Sequence[object], **options: Any) -> Ended:
    return start(folder, arguments, **options).wait()


def _session(leader: int) -> list[str]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(")")
            state, _, _, session = rest.split()[:4]
            if int(session) == leader and state not in "ZX":
                found.append(f"{name}) {stat.with_name('cmdline').read_bytes()[:80]!r}")
        except OSError:  # it has just ended
            continue
    return found


def _become(request: dict[str, Any]) -> None:
    """In the new process: what was asked for, until its end."""
    os.chdir(request["folder"])
    for name, descriptor in ((".stdout", 1), (".stderr", 2)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number in request.get("ignore", ()):
        signal.signal(number, signal.SIG_IGN)
    os.environ.update(request.get("env", {}))
    if threads := request.get("threads"):
        os.environ["OMP_NUM_THREADS"] = str(threads)  # for a process that has not read it yet
        import_module("torch").set_num_threads(threads)
    sys.argv = ["topoter", *request["arguments"]]
    if limit := request.get("memory_limit"):
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    if request.get("anew"):
        os.execv(sys.executable, [sys.executable, "-m", *sys.argv])
    if "die_at_rename" in request:
        _die_at_rename(request["die_at_rename"])
    from topoter.__main__ import main as command

    # Workers of its own look at how it was started: as `python -m topoter`.
    main = ModuleType("__main__")
    main.__spec__ = find_spec("topoter.__main__")
    sys.modules["__main__"] = main
    command()


def _die_at_rename(count: int) -> None:
    """`kill -9` just before the rename of that number, counted from 0."""
    real, seen = os.replace, []

    def replace(*arguments: Any) -> None:
        if len(seen) == count:
            os.kill(os.getpid(), signal.SIGKILL)
        seen.append(arguments)
        real(*arguments)

    os.replace = replace  # type: ignore[assignment]


def _serve() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyG's import
        for module in LOADED:
            import_module(module)
    gc.freeze()  # pages that no collection touches are shared with the processes forked
    for line in sys.stdin:
        request = json.loads(line)
        watcher_ready, tell = os.pipe()
        if os.fork() == 0:  # a watcher, which waits for the command and writes how it ended
            os.close(watcher_ready)
            pid = os.fork()
            if pid == 0:
                os.setsid()
                os.write(tell, b"!")
                try:
                    _become(request)
                except BaseException:
                    import traceback

                    traceback.print_exc()
                os._exit(1)
            os.write(tell, str(pid).encode().rjust(12))
            _, status = os.waitpid(pid, 0)
            ended = Path(request["folder"], ".ending")
            ended.write_text(str(os.waitstatus_to_exitcode(status)))
            ended.rename(ended.with_name(".ended"))
            os._exit(0)
        os.close(tell)
        said = b""
        while len(said) < 13:  # the id, and a mark once it leads its session
            said += os.read(watcher_ready, 13)
        os.close(watcher_ready)
        print(int(said.replace(b"!", b"")), flush=True)
        while True:  # watchers that are done
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    break
            except ChildProcessError:
                break


if __name__ == "__main__":
    _serve()
    os._exit(0)  # some libraries talk on their way out
