"""`topoter reproduce`: dry run, several jobs, failures, and a kill at any moment; real sub-processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from sub_processes import DEAF, command, fails, topoter

from topoter.experiments.runner import plan_all
from topoter.experiments.store import Record, Store

EMBEDDED = {"TOPOTER_DATA": ""}  # nothing on disk: MUTAG comes from an installed package
TINY = ["reproduce", "all", "--datasets", "mutag,sparrow-social", "--methods", "degree-histogram,persistence"]


def keep(run, folder: Path, seconds: float) -> None:
    recipe = run.recipe
    record = Record(
        experiment=recipe.experiment, dataset=recipe.dataset, method=recipe.method, recipe=recipe.name,
        protocol=run.protocol, point=run.variation, seed=run.seed, parameters=run.parameters,
        scores={"accuracy": [80.0], "validation accuracy": [80.0]}, details={}, seconds=seconds, cpu_seconds=seconds,
        peak_mb=100.0, versions={},
    )  # fmt: skip
    Store.read(folder).add(record)


def test_a_dry_run_lists_what_is_missing_and_how_long_it_takes(tmp_path):
    first = plan_all(["mutag"], ["degree-histogram"], 1)["graph-classification"][0]
    keep(first, tmp_path, 21.0)
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
    assert [path.name for path in tmp_path.iterdir() if path.name[0] != "."] == ["graph-classification.jsonl"]


def test_jobs_make_every_run_and_one_that_fails_is_named_at_the_end(tmp_path):
    result = topoter(*TINY, "--seeds", 2, "--jobs", 2, "--out", tmp_path / "r", "--data-root", tmp_path, **EMBEDDED)
    assert result.returncode == 1
    *_, last = result.stderr.strip().splitlines()
    assert last.startswith("error: temporal-links: sparrow-social persistence (paper) seed ")
    assert " and 1 more: " in last
    assert "Traceback" not in result.stderr
    assert "100 %: 4 of 4 runs" in result.stderr
    records = Store.read(tmp_path / "r").records
    assert [(record.experiment, record.method, record.seed) for record in records] == [
        ("graph-classification", "degree-histogram", seed) for seed in range(2)
    ]
    assert all(record.peak_mb > 50 for record in records)
    assert "# graph-classification\n" in result.stdout
    assert "\n| degree-histogram |" in result.stdout
    assert "# model-size\n" in result.stdout
    assert "topoter report" in result.stderr  # where the figures are
    assert [path.name for path in (tmp_path / "r").iterdir() if path.name[0] != "."] == ["graph-classification.jsonl"]


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
    arguments += ["--seeds", 500, "--out", tmp_path, "--quiet"]

    def made() -> list[Record]:
        return Store.read(tmp_path).records  # raises unless every line is whole

    def stopped_by(sent: int, jobs: int, *prefix: str) -> tuple[int, str]:
        """Start, wait for one more run, send a signal to the process alone; all its processes must end with it."""
        before = len(made())
        process = subprocess.Popen(
            [*prefix, *command(*arguments, "--jobs", jobs)],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **EMBEDDED},
        )
        wait_until(lambda: len(made()) > before or process.poll() is not None)
        workers = children(process.pid)
        assert len(workers) >= (2 if jobs > 1 else 0)
        process.send_signal(sent)
        said = process.communicate(timeout=120)[1]
        wait_until(lambda: not any(running(worker) for worker in workers))
        return process.returncode, said

    assert stopped_by(signal.SIGKILL, 2)[0] == -signal.SIGKILL
    first = made()
    # Also where the process was started deaf to Ctrl-C, as `nohup make test &` starts it.
    for sent, jobs, prefix in ((signal.SIGINT, 2, DEAF), (signal.SIGTERM, 1, ())):
        code, said = stopped_by(sent, jobs, *prefix)
        assert code == 130
        assert len(said.strip().splitlines()) == 1, said
        assert said.startswith("error: Interrupted. What is made is kept")
    last = {record.key: record for record in made()}
    assert all(last[record.key] == record for record in first)  # taken over, not made again
    assert len(first) + 2 <= len(last) < 500


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["all", "--datasets", "coraa"], "Unknown dataset 'coraa'. Did you mean 'cora'?"),
        (["order", "--jobs", "0"], "--jobs must be at least 1. Got 0"),
        (["order", "--jobs", "2", "--cluster", "tcp://127.0.0.1:1"], "give one of them"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_calls_exit_with_2(tmp_path, arguments, text):
    assert text in fails(2, "reproduce", *arguments, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_line_of_the_results_is_one_line(tmp_path):
    (tmp_path / "graph-classification.jsonl").write_text("{}\n")
    said = fails(1, "reproduce", "graph-classification", "--stored", "--out", tmp_path)
    assert "graph-classification.jsonl, line 1: this is no record of a run" in said


def test_a_method_of_ones_own_is_evaluated_beside_the_others(tmp_path):
    (tmp_path / "mine.py").write_text(
        """
import numpy as np
from topoter.methods import Fitted, Method

class Degrees(Method):
    tasks = ("node",)

    def fit(self, graph, seed, callbacks=()):
        return Fitted(embedding=lambda other: np.bincount(other.edge_index[0], None, other.num_nodes)[:, None] * 1.0)
"""
    )
    arguments = ["evaluate", "node", "--dataset", "sbm", "--method", "mine:Degrees", "--seeds", 2]
    result = topoter(*arguments, "--json", "--out", "kept", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    content = json.loads(result.stdout)
    assert (content["method"], content["recipe"], content["paper"]) == ("mine:Degrees", "own", None)
    assert len(content["runs"]) == 2
    assert len(Store.read(tmp_path / "kept").records) == 2
    assert "serves node, not link" in fails(2, "evaluate", "link", "--method", "mine:Degrees", cwd=tmp_path)
    assert "has none" in fails(2, "evaluate", "node", "--method", "mine:Degrees", "--recipe", "best", cwd=tmp_path)


def test_a_search_prints_a_recipe_and_keeps_its_trials(tmp_path):
    arguments = ["search", "sbm", "--method", "propagated-tuned", "--seeds", 1, "--out", tmp_path / "search"]
    result = topoter(*arguments, "--trials", 2)
    assert result.returncode == 0, result.stderr
    first, section, *lines = result.stdout.splitlines()
    assert first.startswith("# propagated-tuned on sbm: validation accuracy ")
    assert section == "[recipes.best]"
    assert {line.split(" = ")[0] for line in lines} == {"order", "feature_scaling"}
    assert (tmp_path / "search.jsonl").is_file()
    content = json.loads(topoter(*arguments, "--trials", 3, "--json", "--quiet").stdout)
    assert (content["trials"], content["method"]) == (3, "propagated-tuned")
    assert "no space to search" in fails(2, "search", "sbm", "--method", "raw", "--out", tmp_path / "search")
