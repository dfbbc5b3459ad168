"""Files of models and states: what was saved comes back, and everything else is refused with its reason."""

from __future__ import annotations

import json
import pickle

import pytest
import torch
from safetensors.torch import save_file

from topoter import TopoTER, __version__
from topoter.datasets import block_model
from topoter.errors import DataError, UsageError
from topoter.training.checkpoint import FORMAT_VERSION, load_checkpoint, load_weights, save_checkpoint

TENSORS = {
    "weight": torch.randn(3, 4, generator=torch.Generator().manual_seed(0)),
    "count": torch.tensor(7),
    "bytes": torch.arange(5, dtype=torch.uint8),
    "transposed": torch.arange(6.0).view(2, 3).t(),
}
CONTENT = {"numbers": [1, 0.1, None], "text": "é", "nested": {"flag": True}}


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "a.topoter"
    save_checkpoint(path, "model", TENSORS, CONTENT)
    return path


def write_header(path, header) -> None:
    save_file({"weight": TENSORS["weight"]}, path, metadata={"topoter": json.dumps(header)})


def refusal(path, kind: str = "model") -> str:
    with pytest.raises(DataError) as caught:
        load_checkpoint(path, kind)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_what_was_saved_comes_back(saved):
    tensors, content = load_checkpoint(saved, "model")
    assert content == CONTENT
    assert tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert tensors[name].dtype == tensor.dtype
        assert torch.equal(tensors[name], tensor)


def test_no_temporary_file_is_left_and_an_old_file_is_replaced_whole(saved, monkeypatch):
    save_checkpoint(saved, "model", {"weight": torch.zeros(1)}, {})
    assert list(saved.parent.iterdir()) == [saved]
    assert load_checkpoint(saved, "model")[0]["weight"].tolist() == [0.0]
    before = saved.read_bytes()

    def full(self, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(DataError, match="No space left on device"):
        save_checkpoint(saved, "model", TENSORS, CONTENT)
    assert list(saved.parent.iterdir()) == [saved]
    assert saved.read_bytes() == before


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(UsageError, match="nowhere does not exist"):
        save_checkpoint(tmp_path / "nowhere" / "a.topoter", "model", TENSORS, CONTENT)


def test_a_missing_file_is_named(tmp_path):
    assert refusal(tmp_path / "b.topoter") == f"There is no file {tmp_path / 'b.topoter'}."
    assert refusal(tmp_path) == f"{tmp_path} is a folder, not a model."


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_truncated_file_is_refused(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(len(content) * share)])
    assert refusal(saved).startswith(f"{saved} is not a topoter file, or it is damaged (")


def test_other_files_are_refused_and_never_unpickled(tmp_path):
    ran = tmp_path / "ran"

    class Trap:
        def __reduce__(self):
            return (open, (str(ran), "w"))

    contents = {
        "random": bytes(torch.randint(256, (5000,), generator=torch.Generator().manual_seed(0)).tolist()),
        "text": b"source,target\n0,1\n",
        "pickle": pickle.dumps(Trap()),
        "zeros": bytes(1000),
    }
    for name, content in contents.items():
        path = tmp_path / name
        path.write_bytes(content)
        assert refusal(path).startswith(f"{path} is not a topoter file, or it is damaged (")
    torch.save({"a": Trap()}, tmp_path / "torch.pt")
    assert "is not a topoter file" in refusal(tmp_path / "torch.pt")
    assert not ran.exists()


def test_tensors_without_our_header_are_refused(tmp_path):
    path = tmp_path / "other.safetensors"
    save_file({"weight": torch.zeros(2)}, path)
    assert "is not a topoter file" in refusal(path)
    for header in ([], "model", {"kind": "model"}, None):
        write_header(path, header)
        assert "is not a topoter file" in refusal(path)


def test_another_format_version_says_who_wrote_it(tmp_path):
    path = tmp_path / "new.topoter"
    write_header(path, {"format": FORMAT_VERSION + 1, "kind": "model", "topoter": "9.9", "content": {}})
    assert refusal(path) == (
        f"{path} has format version {FORMAT_VERSION + 1}; this topoter reads version {FORMAT_VERSION}. "
        "It was written by topoter 9.9: use that version, or fit the model again."
    )


def test_another_kind_is_named(saved):
    assert refusal(saved, "training") == f"{saved} holds a 'model', not a 'training'."


def test_the_header_says_what_the_file_is(saved):
    from safetensors import safe_open

    with safe_open(saved, framework="pt") as file:
        header = json.loads(file.metadata()["topoter"])
    assert header == {"format": FORMAT_VERSION, "kind": "model", "topoter": __version__, "content": CONTENT}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda t: t.pop("bias"), 'Missing key(s) in state_dict: "bias"'),
        (lambda t: t.update(more=torch.zeros(1)), 'Unexpected key(s) in state_dict: "more"'),
        (lambda t: t.update(weight=torch.zeros(2, 4)), "size mismatch for weight"),
    ],
)
def test_weights_must_fit_by_name_and_shape(change, text):
    module = torch.nn.Linear(4, 3)
    tensors = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    change(tensors)
    with pytest.raises(DataError) as caught:
        load_weights(module, tensors, "m.topoter")
    message = str(caught.value)
    assert message.startswith("m.topoter does not fit the model it describes: ")
    assert text in message
    assert "\n" not in message


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "m.topoter"
    TopoTER("sgc", out_channels=4, epochs=1).fit(block_model(30, 2, 4, 5, 0)).save(path)
    return path


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            lambda tensors, content: tensors.pop("learned.types-from-change.decoder.layers.0.bias"),
            "does not fit the model it describes",
        ),
        (lambda tensors, content: tensors.update({"encoder.layers.0.bias": torch.zeros(9)}), "size mismatch"),
        (lambda tensors, content: content.pop("num_features"), "does not describe a model completely"),
        (
            lambda tensors, content: content["parameters"].update(depth=3),
            "does not describe a model completely",
        ),
        (lambda tensors, content: content.update(history=[1]), "does not describe a model completely"),
    ],
)
def test_a_model_that_does_not_fit_its_description_is_refused(fitted, tmp_path, change, text):
    tensors, content = load_checkpoint(fitted, "model")
    change(tensors, content)
    path = tmp_path / "changed.topoter"
    save_checkpoint(path, "model", tensors, content)
    with pytest.raises(DataError) as caught:
        TopoTER.load(path)
    assert str(caught.value).startswith(str(path))
    assert text in str(caught.value)
