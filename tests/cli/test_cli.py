"""The command line as a user meets it: real sub-processes, exit codes, the text of each error."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from own_files import write_graph
from safetensors import safe_open
from safetensors.torch import save_file
from sub_processes import command, fails, topoter

from topoter import cli, interruption
from topoter.__main__ import main as topoter_command
from topoter.datasets import block_model
from topoter.errors import DataError

SMALL = ["--channels", "16", "--quiet"]


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """A user's graph: edges.csv with string ids, features.csv beside it."""
    folder = tmp_path_factory.mktemp("files")
    data = block_model(num_nodes=120, num_blocks=3, mean_degree=6.0, num_features=6, seed=0)
    write_graph(folder, data)
    return folder


@pytest.fixture(scope="module")
def model(files) -> Path:
    result = topoter(
        "fit", "edges.csv", "--features", "features.csv", "-o", "m.topoter", "--epochs", 5, *SMALL, cwd=files
    )
    assert result.returncode == 0, result.stderr
    return files / "m.topoter"


def test_own_files_in_embeddings_out_ids_kept(files, model):
    result = topoter("embed", model, "edges.csv", "--features", "features.csv", "-o", "z.parquet", cwd=files)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "z.parquet"
    table = pq.read_table(files / "z.parquet")
    assert table.column("id").to_pylist() == [f"n{i}" for i in range(120)]
    assert len(table.column("embedding")[0].as_py()) == 16


def test_the_same_seed_writes_the_same_bytes(files, model):
    arguments = ["fit", "edges.csv", "--features", "features.csv", "--epochs", 5, *SMALL]
    topoter(*arguments, "-o", "again.topoter", cwd=files)
    topoter(*arguments, "-o", "other.topoter", "--seed", 1, cwd=files)
    assert (files / "again.topoter").read_bytes() == model.read_bytes()
    assert (files / "other.topoter").read_bytes() != model.read_bytes()


def test_fit_says_what_it_learned_and_json_is_for_machines(files, tmp_path):
    arguments = [
        "fit",
        files / "edges.csv",
        "--features",
        files / "features.csv",
        "--epochs",
        6,
        "--channels",
        8,
        "--encoder",
        "sgc",
    ]
    shown = topoter(*arguments, "-o", tmp_path / "a.topoter")
    assert "loss" in shown.stderr
    assert "prior" in shown.stderr
    assert "apart" in shown.stderr
    content = json.loads(topoter(*arguments, "-o", tmp_path / "a.topoter", "--json", "--quiet").stdout)
    assert content["nodes"] == 120
    assert content["epochs"] == 6
    assert 1.0 < content["prior_entropy"] < 1.4
    assert content["kept_loss"] <= content["loss"]
    assert f"6 epochs; kept epoch {content['kept_epoch']}, the best: loss {content['kept_loss']:.3f}" in shown.stderr
    untrained = topoter(*arguments, "--epochs", 0, "-o", tmp_path / "a.topoter")
    assert "0 epochs: nothing was trained." in untrained.stderr


def test_evaluate_prints_the_promised_json():
    result = topoter("evaluate", "node", "--dataset", "sbm", "--seeds", 2, "--epochs", 3, "--json", "--quiet")
    assert result.returncode == 0, result.stderr
    content = json.loads(result.stdout)
    promised = {
        "task",
        "dataset",
        "method",
        "protocol",
        "metric",
        "mean",
        "std",
        "runs",
        "seconds",
        "peak_mb",
        "paper",
    }
    assert promised <= content.keys()
    assert (content["protocol"], content["metric"]) == ("validation", "accuracy")
    assert len(content["runs"]) == 2
    assert content["mean"] == pytest.approx(sum(content["runs"]) / 2)


def test_evaluate_by_the_authors_protocol_is_marked():
    result = topoter("evaluate", "node", "--dataset", "sbm", "--method", "propagated", "--protocol", "paper", "--quiet")
    assert "SELECTS ON TEST" in result.stdout


def test_reproduce_is_resumable(tmp_path):
    arguments = ["reproduce", "node-classification", "--datasets", "sbm", "--methods", "raw,propagated"]
    first = topoter(*arguments, "--seeds", 1, "--out", tmp_path, "--quiet")
    assert first.returncode == 0, first.stderr
    store = tmp_path / "node-classification.jsonl"
    runs = store.read_text().splitlines()
    assert sorted(json.loads(run)["method"] for run in runs) == ["propagated", "raw"]
    second = topoter(*arguments, "--seeds", 2, "--out", tmp_path, "--quiet")
    assert len(store.read_text().splitlines()) == 4
    assert set(runs) < set(store.read_text().splitlines())  # with the seconds that they took then
    assert "| propagated |" in second.stdout
    table = topoter(*arguments, "--seeds", 3, "--out", tmp_path, "--stored").stdout
    assert table.count("(2 seeds)") == 2
    assert len(store.read_text().splitlines()) == 4
    line = fails(1, *arguments, "--stored", "--out", tmp_path / "elsewhere")
    assert "no runs" in line


def test_reproduce_model_size(tmp_path):
    result = topoter("reproduce", "model-size", "--out", tmp_path)
    assert "| topoter | 736,260 | 736,260 |" in result.stdout


def test_help_and_version():
    result = subprocess.run(command(), capture_output=True, text=True, check=False)
    assert "Usage" in result.stdout + result.stderr
    assert "error" not in result.stderr
    assert topoter("--version").stdout.startswith("topoter 0.")


def test_datasets_and_env():
    known = {info["name"]: info for info in json.loads(topoter("datasets", "--json").stdout)}
    assert known["embedded-cora"]["on_disk"]
    assert {"cora", "citeseer", "pubmed", "mutag", "sparrow-social"} <= known.keys()
    listed = topoter("datasets", COLUMNS="60").stdout.splitlines()
    assert len(listed) == 1 + len(known)  # a path stays in one piece, however narrow the terminal
    shown = topoter("env")
    assert "compiled fused kernel" in shown.stdout
    assert "TOPOTER_KERNELS=plain" in topoter("env", TOPOTER_KERNELS="plain").stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is always full is a device of Linux")
def test_output_that_cannot_be_written_is_a_failure():
    with open("/dev/full", "w") as full:
        result = subprocess.run(command("datasets"), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.strip() == "error: [Errno 28] No space left on device"


# ---- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["fit", "coro"], "Unknown dataset 'coro'. Did you mean 'cora'?"),
        (["fit", "cora", "--epoch", "3"], "--epochs"),
        (["fti", "cora"], "fit"),
        (["fit", "sbm", "--perturbation-rate", "1.5"], "must be between 0 and 1. Got 1.5"),
        (["fit", "sbm", "--order", "0"], "'order' parameter of TopoTER must be a whole number, at least 1. Got 0"),
        (["fit", "sbm", "--lr", "-1"], "must be a positive number. Got -1.0"),
        (["fit", "sbm", "--encoder", "sgcc"], "Unknown encoder 'sgcc'. Did you mean 'sgc'?"),
        (["fit", "sbm", "--device", "cuda:99"], "The device 'cuda:99' cannot be used here"),
        (["fit", "sbm", "--features", "x.csv"], "--features: this goes with a file, not with the dataset 'sbm'"),
        (["fit", "sbm", "--no-header"], "--no-header: this goes with a file"),
        (["fit", "nofile"], "There is no file nofile and no dataset of that name. Unknown dataset 'nofile'."),
        (["fit", "sbm", "--recipe", "bst"], "Unknown recipe 'bst'. Did you mean 'best'?"),
        (["evaluate", "node", "--method", "gae", "--recipe", "best"], "There is no recipe 'best' of gae"),
        (["reproduce", "order", "--datasets", "coraa", "--dry-run"], "Unknown dataset 'coraa'. Did you mean 'cora'?"),
        (["reproduce", "order", "--datasets", "mutag", "--dry-run"], "'mutag' is of the kind 'graphs'"),
        (["search", "coraa"], "Unknown dataset 'coraa'"),
        (["fit", "sbm", "--pooling", "max"], "--pooling and --batch-size go with a set of graphs"),
        (["fit", "sbm", "--seed", "-1"], "'--seed'"),
        (["fit", "sbm", "-o", "no/such/folder/m.topoter"], "does not exist"),
        (["evaluate", "node", "--dataset", "sbm", "--method", "topotr"], "Did you mean 'topoter'?"),
        (["evaluate", "edges"], "Unknown task 'edges'"),
        (["evaluate", "node", "--dataset", "sbm", "--seeds", "0"], "--seeds must be at least 1. Got 0"),
        (["evaluate", "node", "--protocol", "test"], "Unknown protocol 'test'"),
        (["reproduce", "node-clasification"], "Did you mean 'node-classification'?"),
        (["evaluate", "node", "--dataset", "mutag"], "mutag"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_calls_exit_with_2(tmp_path, arguments, text):
    assert text in fails(2, *arguments, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_missing_data_files_are_named(tmp_path):
    line = fails(1, "fit", "pubmed", "--data-root", tmp_path)
    assert "ind.pubmed.x" in line
    assert str(tmp_path) in line


def test_bad_files_exit_with_1(files, model, tmp_path):
    out = ["-o", tmp_path / "m.topoter", "--quiet"]
    assert "There is no file nothing.csv" in fails(1, "fit", "nothing.csv", *out)
    rows = (files / "features.csv").read_text().splitlines()
    cases = {
        "twice": ([*rows, rows[3]], "node id 'n2' stands here a second time"),
        "short": (rows[:-1], "n119"),
    }
    for name, (lines, text) in cases.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
        line = fails(1, "fit", files / "edges.csv", "--features", tmp_path / f"{name}.csv", *out)
        assert text in line
        assert f"{name}.csv" in line
        assert line.endswith("Fix it, or leave such rows out with --drop-bad.")
    np.save(tmp_path / "x.npy", np.zeros((7, 3), dtype=np.float32))
    (tmp_path / "numbers.csv").write_text("0,1\n1,2\n2,9\n")
    assert "9" in fails(1, "fit", tmp_path / "numbers.csv", "--features", tmp_path / "x.npy", *out)
    (tmp_path / "loops.csv").write_text("1,1\n2,2\n")
    assert "no topology to transform" in fails(1, "fit", tmp_path / "loops.csv", *out)
    assert "nor a set of graphs in the TU format" in fails(1, "fit", tmp_path, *out)
    assert not (tmp_path / "m.topoter").exists()


def test_damaged_and_foreign_models_exit_with_1(files, model, tmp_path):
    arguments = [
        files / "edges.csv",
        "--features",
        files / "features.csv",
        "-o",
        tmp_path / "z.npy",
        "--quiet",
    ]
    assert "no file" in fails(1, "embed", tmp_path / "none.topoter", *arguments)
    (tmp_path / "cut.topoter").write_bytes(model.read_bytes()[:-100])
    assert "damaged" in fails(1, "embed", tmp_path / "cut.topoter", *arguments)
    with safe_open(model, framework="pt") as file:
        header = json.loads(file.metadata()["topoter"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file(tensors, tmp_path / "old.topoter", metadata={"topoter": json.dumps({**header, "format": 0})})
    assert "format version 0" in fails(1, "embed", tmp_path / "old.topoter", *arguments)
    assert not (tmp_path / "z.npy").exists()


def test_features_that_do_not_match_the_model_are_explained(files, model, tmp_path):
    rows = [line.rsplit(",", 1)[0] for line in (files / "features.csv").read_text().splitlines()]
    (tmp_path / "fewer.csv").write_text("\n".join(rows) + "\n")
    line = fails(
        1,
        "embed",
        model,
        files / "edges.csv",
        "--features",
        tmp_path / "fewer.csv",
        "-o",
        tmp_path / "z.npy",
        "--quiet",
    )
    assert "missing 'f5'" in line


def test_outputs_that_cannot_be_written(files, model, tmp_path):
    arguments = ["embed", model, files / "edges.csv", "--features", files / "features.csv", "--quiet", "-o"]
    assert "does not exist" in fails(2, *arguments, tmp_path / "no" / "z.npy")
    assert "parquet" in fails(2, *arguments, tmp_path / "z.xyz")
    (tmp_path / "folder.npy").mkdir()
    assert "it is a folder" in fails(2, *arguments, tmp_path / "folder.npy")
    evaluate = ["evaluate", "node", "--dataset", "sbm", "--method", "raw", "--seeds", 1, "--quiet", "--out"]
    line = fails(2, *evaluate, files / "edges.csv")
    assert "edges.csv: it is a file" in line
    runs = ["node-classification", "--datasets", "sbm", "--methods", "raw", "--seeds", 1]
    line = fails(2, "reproduce", *runs, "--out", files / "edges.csv", "--quiet")
    assert "edges.csv: it is a file" in line
    os.mkfifo(tmp_path / "pipe.npy")
    assert "it is not a regular file" in fails(2, *arguments, tmp_path / "pipe.npy")
    assert stat.S_ISFIFO((tmp_path / "pipe.npy").stat().st_mode)


@pytest.fixture
def signals_restored():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    interruption._received.clear()


@pytest.mark.parametrize("error", [AttributeError("module 'numpy' has no attribute 'nonzero'"), DataError("Damaged.")])
def test_what_a_library_makes_of_ctrl_c_is_still_an_interruption(error, monkeypatch, capsys, signals_restored):
    def swallowing(**options):
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise error

    def leave(code):
        raise SystemExit(code)

    monkeypatch.setattr(cli, "app", swallowing)
    monkeypatch.setattr(cli, "_leave", leave)
    with pytest.raises(SystemExit) as ended:
        topoter_command()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "error: Interrupted.\n"


def test_a_second_ctrl_c_leaves_at_once_with_one_line(tmp_path):
    """Even where the first one is being answered."""
    program = tmp_path / "program.py"
    program.write_text(
        "import signal\nfrom topoter import interruption\ninterruption.listen()\n"
        "try:\n    signal.raise_signal(signal.SIGINT)\n"
        "except KeyboardInterrupt:\n    signal.raise_signal(signal.SIGTERM)\n    print('not reached')\n"
    )
    ended = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "error: Interrupted.\n")


def test_ctrl_c_in_a_callback_from_c_is_not_lost(tmp_path):
    """Python prints what is raised there, and goes on."""
    program = tmp_path / "program.py"
    program.write_text(
        "import ctypes, signal\nfrom topoter import interruption\ninterruption.listen()\n"
        "ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))()\nprint('not reached')\n"
    )
    ended = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "error: Interrupted.\n")


def test_ctrl_c_while_the_libraries_are_loaded_is_answered_in_one_line(tmp_path):
    (tmp_path / "typer.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\n")
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    ended = subprocess.run([sys.executable, "-m", "topoter", "--version"], capture_output=True, text=True, env=env)
    assert (ended.returncode, ended.stderr) == (130, "error: Interrupted.\n")
