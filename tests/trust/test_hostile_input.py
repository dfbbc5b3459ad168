"""Files made to do harm: each is refused in one line, and nothing of it is run, unpacked or obeyed."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from slow_readers import safetensors

from topoter import TopoTER
from topoter.cli.output import _SafeConsole
from topoter.datasets import block_model
from topoter.datasets.tu import read_tu
from topoter.errors import DataError
from topoter.graphs import GraphDirectory, read_embeddings, read_graph, write_embeddings
from topoter.graphs.features import read_features
from topoter.graphs.importing import import_graph
from topoter.graphs.node_tables import read_node_table, write_node_table

TU = {"A": "1, 2\n2, 1\n", "graph_indicator": "1\n1\n", "graph_labels": "0\n"}


class Code:
    """What a pickle may hold: a call of anything."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.trace),)


def refused(call: Any, *words: str) -> None:
    with pytest.raises(DataError) as caught:
        call()
    said = str(caught.value)
    assert "\n" not in said
    for word in words:
        assert word in said


def tu_zip(path: Path, names: dict[str, str], **attributes: int) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in names.items():
            member = zipfile.ZipInfo(name)
            for attribute, value in attributes.items():
                setattr(member, attribute, value)
            archive.writestr(member, text, zipfile.ZIP_DEFLATED)
    return path


@pytest.fixture
def little_memory(monkeypatch) -> None:
    """A machine on which a bomb of a few megabytes is one."""
    monkeypatch.setattr("topoter.graphs.archives.free_memory", lambda: 10**6)


@pytest.mark.usefixtures("little_memory")
def test_zip_and_gzip_bombs_are_not_unpacked(tmp_path):
    bomb = tu_zip(tmp_path / "OWN.zip", {f"OWN_{name}.txt": text for name, text in TU.items()} | {"x": "0" * 10**7})
    assert bomb.stat().st_size < 20_000
    refused(lambda: read_tu(bomb, "OWN"), "unpacks to 10.0 MB")
    bomb = tmp_path / "matrix.npz"
    np.savez_compressed(bomb, format="csr", shape=[1, 1], data=np.zeros(10**6), indices=[0], indptr=[0, 1])
    refused(lambda: read_graph(bomb), "unpacks to 8.0 MB")
    refused(lambda: read_features(bomb), "unpacks to 8.0 MB")
    bomb = tmp_path / "edges.csv.gz"
    bomb.write_bytes(gzip.compress(b"1,2\n" * 10**6))
    refused(lambda: read_graph(bomb), "edges.csv.gz is refused", "unpacks to")


@pytest.mark.parametrize(
    "name", ["../OWN_A.txt", "/tmp/OWN_A.txt", "a/../../OWN_A.txt", "..\\OWN_A.txt", "C:/OWN_A.txt"]
)
def test_a_path_that_leaves_the_folder_of_a_zip(tmp_path, name):
    names = {f"OWN_{part}.txt": text for part, text in TU.items() if part != "A"}
    refused(lambda: read_tu(tu_zip(tmp_path / "OWN.zip", {name: TU["A"], **names}), "OWN"), "would leave the folder")


def test_a_symbolic_link_in_a_zip(tmp_path):
    names = {f"OWN_{part}.txt": "/etc/passwd" for part in TU}
    archive = tu_zip(tmp_path / "OWN.zip", names, external_attr=0o120777 << 16)
    refused(lambda: read_tu(archive, "OWN"), "is a symbolic link")


def test_a_symbolic_link_in_place_of_a_folder_of_ours_is_not_followed(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\n")
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("kept")
    (tmp_path / ".graph.topo.importing").symlink_to(precious)
    refused(lambda: import_graph([tmp_path / "edges.csv"], tmp_path / "graph.topo"), "Cannot write")
    assert (precious / "file").read_text() == "kept"


def test_a_lock_that_is_a_symbolic_link_does_not_empty_its_target(tmp_path):
    from topoter.experiments.store import locked

    precious = tmp_path / "precious"
    precious.write_text("kept")
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / ".lock").symlink_to(precious)
    with pytest.raises(OSError), locked(folder):
        pass
    assert precious.read_text() == "kept"


def test_a_manifest_that_names_files_elsewhere(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\n")
    import_graph([tmp_path / "edges.csv"], tmp_path / "graph.topo", memory=10**8)
    path = tmp_path / "graph.topo" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["files"]["../edges.csv"] = manifest["files"].pop("ids.parquet")
    path.write_text(json.dumps(manifest))
    refused(lambda: GraphDirectory.open(tmp_path / "graph.topo"), "names '../edges.csv'")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_in_graphml_are_not_expanded(tmp_path, encoding):
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    body = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed">'
    path = tmp_path / "graph.graphml"
    for entities in (f'<!ENTITY l0 "ha">{laughs}', '<!ENTITY l9 SYSTEM "file:///etc/passwd">'):
        head = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE g [{entities}]>'
        text = f'{head}{body}<node id="&l9;"/></graph></graphml>'
        path.write_text(text, encoding=encoding)
        refused(lambda: read_graph(path), "declares XML entities")


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.topoter"
    TopoTER(encoder="sgc", order=1, out_channels=4, epochs=1).fit(block_model(12, 2, 2, 3, 0)).save(path)
    return path


def rebuilt(path: Path, change: Any) -> bytes:
    """The file with its head changed."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    change(header)
    encoded = json.dumps(header).encode()
    return struct.pack("<Q", len(encoded)) + encoded + content[8 + length :]


def _tensor(header: dict[str, Any]) -> dict[str, Any]:
    return next(value for name, value in header.items() if name != "__metadata__")


def _said(header: dict[str, Any], **changes: Any) -> None:
    said = json.loads(header["__metadata__"]["topoter"])
    said["content"]["parameters"].update(changes)
    header["__metadata__"]["topoter"] = json.dumps(said)


LIES = {
    "offsets beyond the end": lambda header: _tensor(header).update(data_offsets=[0, 1 << 40]),
    "offsets backwards": lambda header: _tensor(header).update(data_offsets=[8, 0]),
    "a shape of another size": lambda header: _tensor(header).update(shape=[1 << 31, 1 << 31]),
    "another type": lambda header: _tensor(header).update(dtype="F64"),
    "an unknown type": lambda header: _tensor(header).update(dtype="OBJECT"),
    "a model far larger than its weights": lambda header: _said(header, out_channels=1 << 40),
    "parameters of other types": lambda header: _said(header, out_channels="many", epochs=[]),
    "unknown parameters": lambda header: _said(header, shell="rm"),
    "an encoder to import": lambda header: _said(header, encoder="os:system"),
}


def test_what_a_model_says_of_itself_is_read_as_written(model):
    tensors, said = safetensors(model.read_bytes())
    loaded = TopoTER.load(model)
    state = {name: (tuple(value.shape), value.numpy().tobytes()) for name, value in loaded.model_.state_dict().items()}
    assert {name: tensors[name] for name in state} == state
    assert said["content"]["parameters"]["out_channels"] == loaded.out_channels == 4


@pytest.mark.parametrize("lie", LIES)
def test_a_safetensors_header_that_lies(model, tmp_path, lie):
    path = tmp_path / "lying.topoter"
    path.write_bytes(rebuilt(model, LIES[lie]))
    with pytest.raises((DataError, ValueError)) as caught:
        TopoTER.load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("length", [0, 1 << 20, 1 << 62, (1 << 64) - 1])
def test_a_safetensors_header_of_another_length(model, tmp_path, length):
    path = tmp_path / "lying.topoter"
    path.write_bytes(struct.pack("<Q", length) + model.read_bytes()[8:])
    refused(lambda: TopoTER.load(path), "is not a topoter file")


def test_objects_in_arrays_are_not_unpickled(tmp_path):
    trace = tmp_path / "trace"
    harm = np.array([[Code(trace)]], dtype=object)
    np.savez(tmp_path / "matrix.npz", format="csr", shape=[1, 1], data=harm, indices=[0], indptr=[0, 1])
    np.savez(tmp_path / "features.npz", x=harm)
    np.save(tmp_path / "features.npy", harm)
    np.save(tmp_path / "z.npy", harm)
    refused(lambda: read_graph(tmp_path / "matrix.npz"))
    refused(lambda: read_features(tmp_path / "features.npz"))
    refused(lambda: read_features(tmp_path / "features.npy"))
    refused(lambda: read_embeddings(tmp_path / "z.npy"))
    assert not trace.exists()


def test_code_in_a_pt_file_is_not_run(tmp_path):
    trace, path = tmp_path / "trace", tmp_path / "graph.pt"
    torch.save(Code(trace), path)
    refused(lambda: read_graph(path), "cannot be loaded safely")
    path.write_bytes(pickle.dumps(Code(trace)))  # as torch.save wrote long ago
    refused(lambda: read_graph(path), "cannot be loaded safely")
    assert not trace.exists()


# ---- names -----------------------------------------------------------------------------------------------------------

NAMES = ["\x1b[31mred", "\x1b]0;title\x07", "\u202egnp.exe", "\x9b2J", "a\rb", "[red]rich[/red]", "\u2066x"]


@pytest.mark.parametrize("name", NAMES)
def test_a_terminal_gets_no_escape_sequences(name):
    import rich.table
    from rich.text import Text

    grid = rich.table.Table()
    grid.add_column(Text(name))
    grid.add_row(Text(name))
    for shown in (Text(name), grid, Text("", style="bold") + Text(name)):
        console = _SafeConsole(file=io.StringIO(), force_terminal=True, color_system=None, width=200)
        console.print(shown)
        printed = console.file.getvalue()
        assert not any(ord(char) < 32 and char not in "\n\t" for char in printed)
        assert not any(char in printed for char in "\x7f\x9b\u202e\u2066")
    assert "rich" not in name or "[red]rich[/red]" in printed


FORMULAS = ["=1+1", "+cmd", "-a", "@x", "'=quoted", "''", "plain", "-5", "\t=1"]


def test_a_csv_starts_no_formula_and_still_comes_back(tmp_path, monkeypatch):
    z = np.ones((len(FORMULAS), 2), dtype=np.float32)
    ids = [name.strip() for name in FORMULAS]
    write_embeddings(tmp_path / "z.csv", z, ids)
    fields = [line.split(",")[0].strip('"') for line in (tmp_path / "z.csv").read_text().splitlines()[1:]]
    assert not [field for field in fields if field[0] in "=+@\t" or (field[0] == "-" and not field[1:].isdigit())]
    assert list(read_embeddings(tmp_path / "z.csv")[0]) == ids
    write_node_table(tmp_path / "t.csv", {"id": ids, "=label": ids})
    assert (tmp_path / "t.csv").read_text().splitlines()[0] == '"id","\'=label"'
    assert read_node_table(tmp_path / "t.csv", id_column="id").ids.to_pylist() == ids
    write_node_table(tmp_path / "t.parquet", {"id": ids})
    assert read_node_table(tmp_path / "t.parquet").ids.to_pylist() == ids
    monkeypatch.setenv("TOPOTER_CSV_FORMULAS", "1")
    write_node_table(tmp_path / "asked.csv", {"id": ["=1+1"]})
    assert (tmp_path / "asked.csv").read_text() == '"id"\n"=1+1"\n'
