"""What comes before the work: help, version and wrong calls are quick, and load nothing that they do not need."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from sub_processes import command, topoter

from topoter.cli import COMMANDS

HEAVY = {"torch", "sklearn", "torch_geometric", "scipy", "pyarrow", "numba", "matplotlib"}


def imported(*arguments: str) -> set[str]:
    """The packages that a call of the command line imports."""
    python = [sys.executable, "-X", "importtime", "-m", "topoter", *arguments]
    said = subprocess.run(python, capture_output=True, text=True, timeout=120, check=False).stderr
    lines = [line for line in said.splitlines() if line.startswith("import time:")]
    return {line.rsplit("|", 1)[1].strip().partition(".")[0] for line in lines}


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--help"],
        ["-h"],
        ["--version"],
        ["fti"],
        ["fit", "sbm", "--epoch", "3"],
        ["fit", "sbm", "--seed", "-1"],
        *([name, "-h"] for name in COMMANDS),
    ],
    ids=" ".join,
)
def test_no_torch_before_it_is_needed(arguments):
    found = imported(*arguments)
    assert "typer" in found
    assert not found & HEAVY


def test_help_takes_less_than_a_third_of_importing_torch():
    def seconds(*python: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, *python], capture_output=True, check=False)
        return time.perf_counter() - start

    rounds = [(seconds("-m", "topoter", "--help"), seconds("-c", "import torch")) for _ in range(3)]
    ours, torchs = (min(times) for times in zip(*rounds))
    assert ours < torchs / 2  # a third is what `python -m benchmarks` shows; other tests run beside this one


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name):
    long, short = topoter(name, "--help"), topoter(name, "-h")
    assert long.returncode == 0, long.stderr
    assert long.stdout == short.stdout
    assert f"Usage: topoter {name}" in long.stdout


def test_completion_can_be_installed(tmp_path):
    home = {"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    installed = topoter("--install-completion", "bash", **home)
    assert installed.returncode == 0, installed.stderr
    assert "_TOPOTER_COMPLETE=complete_bash" in (tmp_path / ".bash_completions" / "topoter.sh").read_text()
    assert "topoter.sh" in (tmp_path / ".bashrc").read_text()


def test_completion_knows_commands_and_options():
    def complete(line: str) -> list[str]:
        """What a shell would offer at the end of the line."""
        words = line.split(" ")
        environment = {
            **os.environ,
            "_TOPOTER_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
        }
        return subprocess.run(
            command(), capture_output=True, text=True, env=environment, timeout=120, check=False
        ).stdout.split()

    assert complete("topoter f") == ["fit"]
    assert complete("topoter fit --obj") == ["--objective"]
