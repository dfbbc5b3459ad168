"""`topoter info`, and fits with other objectives and encoders: real sub-processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from sub_processes import fails, topoter

ENCODER = """
import torch
from torch_geometric.nn import GCNConv

class Mine(torch.nn.Module):
    def __init__(self, in_channels, width=8, bias=True):
        super().__init__()
        self.in_channels, self.width, self.bias = in_channels, width, bias
        self.conv = GCNConv(in_channels, width, bias=bias)

    def forward(self, x, edge_index):
        return self.conv(x, edge_index)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """mine.topoter: with an encoder of the user's own, and all terms of the loss."""
    folder = tmp_path_factory.mktemp("info")
    (folder / "my_encoders.py").write_text(ENCODER)
    fitted = topoter(
        "fit", "sbm", "--encoder", "my_encoders:Mine", "--encoder-parameter", "width=12", "--encoder-parameter",
        "bias=false", "--objective", "full", "--epochs", 3, "-o", "mine.topoter", cwd=folder,
    )  # fmt: skip
    assert fitted.returncode == 0, fitted.stderr
    said = " ".join(fitted.stderr.split())
    assert "right: add" in said
    assert "pair right: add" in said
    assert "agreement" in said
    return folder


def test_a_model_is_described(folder):
    content = json.loads(topoter("info", "mine.topoter", "--json", cwd=folder).stdout)
    assert (content["kind"], content["level"], content["encoder"]) == ("model", "node", "my_encoders:Mine")
    assert content["encoder_settings"] == {"width": 12, "bias": False}
    assert (content["objective"], content["features"], content["epochs"]) == ("full", 32, 3)
    assert content["bytes"] == (folder / "mine.topoter").stat().st_size
    assert content["weights"] == sum(tensor.numel() for tensor in load_file(folder / "mine.topoter").values())
    assert content["last"]["epoch"] == 3
    assert content["kept"]["loss"] <= content["last"]["loss"]
    assert "agreement" in content["last"]["metrics"]
    shown = topoter("info", "mine.topoter", cwd=folder).stdout
    assert "my_encoders:Mine" in shown
    assert "width 12, bias False" in shown
    assert "epoch 3: loss" in shown


def test_names_of_features_are_shown(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"n{i},n{(i * 3 + 1) % 20}\n" for i in range(20)))
    names = ["height", "weight", "age", "rank", "name_length", "seniority"]
    rows = "".join(f"n{i}," + ",".join(str((i * k) % 7) for k in range(6)) + "\n" for i in range(20))
    (tmp_path / "x.csv").write_text(f"id,{','.join(names)}\n{rows}")
    fit = topoter("fit", "edges.csv", "--features", "x.csv", "--epochs", 1, "-o", "m.topoter", "-q", cwd=tmp_path)
    assert fit.returncode == 0, fit.stderr
    shown = topoter("info", "m.topoter", cwd=tmp_path).stdout
    assert "height, weight, age, rank, name_length and 1 more" in shown


def test_what_is_no_model_is_one_line(folder, tmp_path):
    assert "There is no file none.topoter" in fails(1, "info", "none.topoter", cwd=tmp_path)
    (tmp_path / "cut.topoter").write_bytes((folder / "mine.topoter").read_bytes()[:-50])
    assert "damaged" in fails(1, "info", "cut.topoter", cwd=tmp_path)
    save_file(load_file(folder / "mine.topoter"), tmp_path / "foreign.safetensors")
    assert "is not a topoter file" in fails(1, "info", "foreign.safetensors", cwd=tmp_path)
    header = {"format": 2, "kind": "model", "topoter": "0.2.0", "content": {"history": []}}
    save_file({}, tmp_path / "empty.topoter", metadata={"topoter": json.dumps(header)})
    assert "does not describe a model completely" in fails(1, "info", "empty.topoter", cwd=tmp_path)


def test_a_saved_encoder_is_imported_only_where_it_is_trusted(folder, tmp_path):
    arguments = ["embed", "mine.topoter", "sbm", "-o", tmp_path / "z.npy", "-q"]
    line = fails(2, *arguments, cwd=folder)
    assert "importing my_encoders would run its code" in line
    assert "--trust-encoder" in line
    trusted = topoter(*arguments, "--trust-encoder", "--json", cwd=folder)
    assert json.loads(trusted.stdout)["channels"] == 12, trusted.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--objective", "papr"], "Unknown objective 'papr'. Did you mean 'paper'?"),
        (["--encoder-parameter", "width"], "--encoder-parameter must be KEY=VALUE. Got 'width'"),
        (["--encoder", "gcn", "--encoder-parameter", "width=3"], "The encoder 'gcn' has no parameter 'width'"),
        (["--encoder", "nowhere:Mine"], "The encoder 'nowhere:Mine' cannot be imported"),
        (
            ["--encoder", "my_encoders:Mine", "--channels", "8"],
            "--channels goes with the encoders hops, sgc, gcn",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_choices_are_one_line(folder, arguments, text):
    assert text in fails(2, "fit", "sbm", *arguments, "-o", "n.topoter", "-q", cwd=folder)
    assert not (folder / "n.topoter").exists()
