"""`topoter reproduce all`: dry run, several jobs, failures, and a kill at any moment; real sub-processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from test_cli import command, fails, topoter

from topoter.experiments.runs import save_run
from topoter.experiments.schedule import plan_all

EMBEDDED = {"TOPOTER_DATA": ""}  # nothing on disk: MUTAG comes from an installed package
TINY = ["reproduce", "all", "--datasets", "mutag,sparrow-social", "--methods", "degree-histogram,persistence"]


def test_a_dry_run_lists_what_is_missing_and_how_long_it_takes(tmp_path):
    first = plan_all(["mutag"], ["degree-histogram"], 1)["graph-classification"][0]
    save_run(first, first.description() | {"result": {"test": 80.0, "val": 80.0}, "seconds": 21.0}, tmp_path)
    shown = topoter(*TINY, "--seeds", 3, "--jobs", 2, "--dry-run", "--out", tmp_path)
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert "| graph-classification | mutag | degree-histogram (best) | 1-2 | 21 s | other seeds |" in lines
    assert "| temporal-links | sparrow-social | persistence (paper, held-out-pairs) | 0-2 | unknown |  |" in lines
    assert lines[-1] == "5 of 6 runs to make: 42 s for 2 of them, 21 s with 2 jobs, and 3 of unknown length."
    content = json.loads(topoter(*TINY, "--seeds", 2, "--dry-run", "--json", "--out", tmp_path).stdout)
    assert [(item["dataset"], item["seed"], item["seconds"]) for item in content] == [
        ("mutag", 1, 21.0),
        ("sparrow-social", 0, None),
        ("sparrow-social", 1, None),
    ]
    assert len(list(tmp_path.rglob("*.*"))) == 1  # nothing was made, no table either


def test_jobs_make_every_run_and_one_that_fails_is_named_at_the_end(tmp_path):
    result = topoter(*TINY, "--seeds", 2, "--jobs", 2, "--out", tmp_path / "r", "--data-root", tmp_path, **EMBEDDED)
    assert result.returncode == 1
    *_, last = result.stderr.strip().splitlines()
    assert last.startswith("error: temporal-links: sparrow-social persistence (paper) seed ")
    assert " and 1 more: " in last
    assert "Traceback" not in result.stderr
    assert "100 %: 4 of 4 runs" in result.stderr
    runs = sorted((tmp_path / "r").rglob("*.json"))
    assert [run.name for run in runs] == [f"degree-histogram.best.validation.{seed}.json" for seed in range(2)]
    assert all(json.loads(run.read_text())["peak_mb"] > 50 for run in runs)
    assert result.stdout.split() == [
        str(tmp_path / "r" / name / "table.md") for name in ("graph-classification", "model-size")
    ]
    assert "| degree-histogram |" in (tmp_path / "r" / "graph-classification" / "table.md").read_text()


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
def test_killed_it_goes_on_where_it_was_and_interrupted_it_says_one_line(tmp_path):
    arguments = ["reproduce", "graph-classification", "--datasets", "mutag", "--methods", "degree-histogram"]
    arguments += ["--seeds", 500, "--jobs", 2, "--out", tmp_path, "--quiet"]

    def made() -> dict[Path, int]:
        return {file: file.stat().st_mtime_ns for file in tmp_path.rglob("degree*.json")}

    def stopped_by(sent: int) -> tuple[int, str]:
        """Start, wait for one more run, send a signal to the process alone; all its processes must end with it."""
        before = len(made())
        process = subprocess.Popen(
            command(*arguments), stderr=subprocess.PIPE, text=True, env={**os.environ, **EMBEDDED}
        )
        wait_until(lambda: len(made()) > before or process.poll() is not None)
        workers = children(process.pid)
        assert len(workers) >= 2
        process.send_signal(sent)
        said = process.communicate(timeout=120)[1]
        wait_until(lambda: not any(running(worker) for worker in workers))
        return process.returncode, said

    assert stopped_by(signal.SIGKILL)[0] == -signal.SIGKILL
    first = made()
    code, said = stopped_by(signal.SIGINT)
    assert code == 130
    assert len(said.strip().splitlines()) == 1, said
    assert said.startswith("error: Interrupted. What is made is kept")
    assert {file: made()[file] for file in first} == first  # taken over, not made again
    assert len(first) < len(made()) < 500
    assert all(json.loads(file.read_text())["result"] for file in made())  # every file is whole


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["all", "--datasets", "coraa"], "Unknown dataset 'coraa'. Did you mean 'cora'?"),
        (["order", "--jobs", "0"], "--jobs must be at least 1. Got 0"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_calls_exit_with_2(tmp_path, arguments, text):
    assert text in fails(2, "reproduce", *arguments, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []
