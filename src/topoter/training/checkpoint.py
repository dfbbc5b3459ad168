"""Models and training states on disk: one safetensors file with a JSON header, loaded strictly, never a pickle."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from topoter.errors import DataError
from topoter.graphs.atomic import atomic_write
from topoter.graphs.directory import GraphDirectory

if TYPE_CHECKING:
    from torch_geometric.data import Data

FORMAT_VERSION = 2
_HEADER = "topoter"


def save_checkpoint(path: str | Path, kind: str, tensors: dict[str, Tensor], content: dict[str, Any]) -> None:
    """Write tensors and a JSON-able description to one file, by a temporary name and a rename."""
    from safetensors.torch import save

    from topoter import __version__

    header = {"format": FORMAT_VERSION, "kind": kind, "topoter": __version__, "content": content}
    plain: dict[str, Tensor] = {}
    written: set[int] = set()
    for name, tensor in tensors.items():
        tensor = tensor.detach().cpu().contiguous()
        memory = tensor.untyped_storage().data_ptr()
        plain[name] = tensor.clone() if memory in written else tensor  # safetensors refuses tensors of one memory
        written.add(memory)
    payload = save(plain, metadata={_HEADER: json.dumps(header)})
    with atomic_write(path) as temporary:
        Path(temporary).write_bytes(payload)


def load_checkpoint(path: str | Path, kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_checkpoint` wrote; anything else is refused with the reason."""
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path} is a folder, not a model." if path.is_dir() else f"There is no file {path}.")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        header = json.loads(metadata[_HEADER])
        version, found_kind, content = header["format"], header["kind"], header["content"]
    except (SafetensorError, KeyError, ValueError, TypeError, OSError) as error:
        raise DataError(
            f"{path} is not a topoter file, or it is damaged ({type(error).__name__}: {error}). "
            "Give a model that `topoter fit` wrote."
        ) from error
    if found_kind != kind:
        raise DataError(f"{path} holds a {found_kind!r}, not a {kind!r}.")
    if version == 1:
        return _from_version_1(path, kind, tensors, content)
    if version != FORMAT_VERSION:
        raise DataError(
            f"{path} has format version {version}; this topoter reads version {FORMAT_VERSION}. "
            f"It was written by topoter {header.get('topoter', '?')}: use that version, or fit the model again."
        )
    return tensors, content


_TYPES = ("add", "delete", "keep_disconnected", "keep_connected")


def _from_version_1(
    path: Path, kind: str, tensors: dict[str, Tensor], content: dict[str, Any]
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """A model of topoter 0.1 as one of today: its loss was the paper's term, its decoder part of the model."""
    if kind != "model":
        raise DataError(
            f"{path} was left by an interrupted fit of topoter 0.1, which this version cannot go on with: "
            "run without --resume to start anew."
        )
    renamed = {name.replace("decoder.", "learned.types-from-change.decoder.", 1): t for name, t in tensors.items()}
    history = [
        [epoch, loss, {"prior_entropy": prior, **{f"accuracy_{n}": a for n, a in zip(_TYPES, accuracy)}}]
        for epoch, loss, prior, accuracy in content.get("history", [])
    ]
    parameters = {"objective": "paper", **content.get("parameters", {})}
    return renamed, {**content, "parameters": parameters, "history": history, "out_channels": 0}


def fingerprint(parameters: dict[str, Any], graphs: Sequence[Data | GraphDirectory]) -> str:
    """What a training that goes on must agree on with the one that was stopped: parameters, features and edges."""
    digest = hashlib.sha256(json.dumps(parameters, sort_keys=True, default=_name_of).encode())
    for graph in graphs:
        if isinstance(graph, GraphDirectory):
            digest.update(graph.identity.encode())
            continue
        for tensor in (graph.x.to_dense(), graph.edge_index, graph.get("edge_weight"), graph.get("time")):
            if tensor is not None:
                digest.update(tensor.contiguous().numpy().data)
    return digest.hexdigest()


def _name_of(value: Any) -> str:
    """What an object of the user's own is called, which is the same in every process."""
    return f"{type(value).__qualname__} {getattr(value, '__qualname__', '')}"


def load_weights(module: torch.nn.Module, tensors: dict[str, Tensor], path: str | Path) -> None:
    """Fill a module with exactly these tensors: every name and shape must match."""
    try:
        module.load_state_dict(tensors, strict=True)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path} does not fit the model it describes: {reason}") from error
