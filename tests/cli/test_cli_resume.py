"""A fit that is stopped goes on where it was, bit for bit, whatever it is fitted on and however it was stopped."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable

import numpy as np
import pytest
from own_files import write_graph
from sub_processes import DEAF, command, fails, stopped_fit, topoter, weights

from topoter.cli import app
from topoter.datasets import block_model
from topoter.encoders import Hops
from topoter.training import Interrupted

Fit = Callable[..., list[str]]  # from the model's path and more options to a command

EPOCHS = {"nodes": 600, "graphs": 40, "snapshots": 600}
STOPS = {
    "kill -9": ([], signal.SIGKILL),
    "ctrl-c": ([], signal.SIGINT),
    "ctrl-c in the background": (DEAF, signal.SIGINT),
    "terminate": ([], signal.SIGTERM),
}
CASES = [
    *(("nodes", stop) for stop in STOPS),
    ("graphs", "kill -9"),
    ("graphs", "ctrl-c"),
    ("snapshots", "kill -9"),
    ("snapshots", "ctrl-c in the background"),
]


@pytest.fixture(scope="module")
def fit(request, tmp_path_factory) -> Fit:
    """A fit that takes a second: of the user's own graph, of MUTAG, or of sparrows in two years."""
    kind = request.param
    folder = tmp_path_factory.mktemp(kind)
    if kind == "nodes":
        write_graph(folder, block_model(num_nodes=120, num_blocks=3, mean_degree=6.0, num_features=6, seed=0))
        what = [folder / "edges.csv", "--features", folder / "features.csv", "--channels", 64]
    elif kind == "graphs":
        what = ["mutag", "--batch-size", 50]
    else:
        timed = [f"n{i},n{(i * step + 1) % 30},{step}\n" for step in (1, 7) for i in range(30)]
        (folder / "timed.csv").write_text("source,target,time\n" + "".join(timed))
        what = ["--snapshots", "sparrow-social" if os.environ.get("TOPOTER_DATA") else folder / "timed.csv"]
    options = ["--epochs", EPOCHS[kind], "--patience", EPOCHS[kind], "--quiet"]
    return lambda out, *more: command("fit", *what, *options, "-o", out, *more)


@pytest.fixture(scope="module")
def uninterrupted(fit, tmp_path_factory) -> dict[str, np.ndarray]:
    out = tmp_path_factory.mktemp("whole") / "whole.topoter"
    assert subprocess.run(fit(out), timeout=300, check=False).returncode == 0
    return weights(out)


@pytest.mark.parametrize(("fit", "stop"), CASES, indirect=["fit"])
def test_resume_is_bit_identical_to_an_uninterrupted_run(fit, uninterrupted, tmp_path, stop):
    out = tmp_path / "cut.topoter"
    started_by, number = STOPS[stop]
    code, said = stopped_fit([*started_by, *fit(out, "--save-seconds", "0")], out, number)
    if number == signal.SIGKILL:
        assert code == -signal.SIGKILL
    else:
        assert code == 130
        assert said.startswith("error: Stopped after epoch")
        assert "run the same command with --resume to go on" in said
        assert len(said.strip().splitlines()) == 1
    resumed = subprocess.run(fit(out, "--resume"), timeout=300, check=False)
    assert resumed.returncode == 0
    assert not out.with_name("cut.topoter.resume").exists()
    found = weights(out)
    assert found.keys() == uninterrupted.keys()
    for name in found:
        np.testing.assert_array_equal(found[name], uninterrupted[name])


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("adapt", r"^Interrupted\. Nothing was trained yet: run the same command again\.$"),
        ("finish", r"^Interrupted\. Nothing is lost: run the same command with --resume to go on"),
    ],
    ids=["before the first epoch", "after the last one"],
)
def test_ctrl_c_before_and_after_the_epochs(tmp_path, monkeypatch, where, said):
    write_graph(tmp_path, block_model(num_nodes=120, num_blocks=3, mean_degree=6.0, num_features=6, seed=0))

    def stop(*parts: object) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "m.topoter"
    fit = ["fit", str(tmp_path / "edges.csv"), "--features", str(tmp_path / "features.csv"), "-q", "-o", str(out)]
    with monkeypatch.context() as patched:
        patched.setattr(Hops, where, stop)
        with pytest.raises(Interrupted, match=said):
            app(fit, standalone_mode=False)
    assert not out.exists()
    assert out.with_name("m.topoter.resume").exists() == (where == "finish")
    app([*fit, "--resume"], standalone_mode=False)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("m.")] == ["m.topoter"]


def test_resume_needs_the_same_graph_and_options(tmp_path):
    fit = ["fit", "sbm", "-o", tmp_path / "m.topoter", "--quiet", "--epochs", 2000, "--patience", 2000]
    arguments = command(*fit, "--channels", 8, "--save-seconds", 0)
    stopped_fit(arguments, tmp_path / "m.topoter", signal.SIGKILL)
    told = topoter("info", tmp_path / "m.topoter.resume")
    assert "an unfinished training" in told.stdout
    line = fails(2, *fit, "--channels", 16, "--resume")
    assert "was made with another graph or other options. Repeat the options of the interrupted command" in line
    assert (tmp_path / "m.topoter.resume").exists()


def test_nothing_to_resume_starts_anew(tmp_path):
    edges = "".join(f"{i} {(i * 7 + 1) % 30}\n" for i in range(30))
    arguments = ["fit", "-", "-o", tmp_path / "m.topoter", "--epochs", 1, "--channels", 4, "--resume"]
    result = subprocess.run(command(*arguments), input=edges, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    assert "m.topoter.resume does not exist. Starting anew." in result.stderr
    assert "30 edges between 30 nodes" in result.stderr, "edges were read from stdin"
