"""The command line in a process of its own, as a user calls it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from safetensors import safe_open


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "topoter", *map(str, arguments)]


def topoter(*arguments: object, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        timeout=300,
        cwd=cwd,
        env={**os.environ, **environment},
        check=False,
    )


def fails(code: int, *arguments: object, cwd: Path | None = None, **environment: str) -> str:
    """The one line that a failing call prints; nothing on stdout, no traceback."""
    result = topoter(*arguments, cwd=cwd, **environment)
    assert result.returncode == code, result.stderr
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    return lines[0]


# As a shell script starts what goes on in the background: deaf to Ctrl-C.
DEAF = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]


def stopped_fit(arguments: list[str], out: Path, stop: signal.Signals, cwd: Path | None = None) -> tuple[int, str]:
    """Start a fit, stop it as soon as its state for --resume is kept; its exit code and what it said."""
    state = out.with_name(out.name + ".resume")
    process = subprocess.Popen(arguments, cwd=cwd, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not state.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(stop)
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0, "it was done before it could be interrupted"
    assert not out.exists()
    return process.returncode, said


def weights(path: Path) -> dict[str, np.ndarray]:
    """What a model file holds."""
    with safe_open(path, framework="np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
