"""`topoter info`: what a model file or a graph directory holds."""

from __future__ import annotations

import json as json_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topoter.cli.output import Json, describe, out, print_json
from topoter.errors import DataError

if TYPE_CHECKING:
    from topoter.training import EpochRecord

SHOWN = 5  # names of features


def run(
    model: Annotated[
        Path,
        typer.Argument(help="A model that `topoter fit` wrote, the .resume file beside it, or an imported graph."),
    ],
    json: Json = False,
) -> None:
    """Tell what a model file holds: encoder, objective, the features it expects, how its training went.

    Of a graph directory: its counts, and whether it is whole.
    """
    from topoter.graphs.directory import is_graph_directory
    from topoter.saved_models import kept_epoch
    from topoter.training import EpochRecord
    from topoter.training.checkpoint import load_checkpoint

    if is_graph_directory(model):
        _print(_graph(model), json)
        return
    header = _header(model)
    kind = "training" if header.get("kind") == "training" else "model"
    tensors, content = load_checkpoint(model, kind)
    trained = kind == "model"
    try:
        chosen = _chosen(content) if trained else {}
        records = [EpochRecord(*record) if trained else EpochRecord(**record) for record in content["history"]]
        kept = min(kept_epoch(content, records), len(records))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{model} does not describe a {kind} completely ({error}). Fit the model again.") from error
    weights = [tensor for name, tensor in tensors.items() if trained or name.startswith("model.")]
    found: dict[str, Any] = {
        "file": str(model),
        "holds": "a model" if trained else "an unfinished training: repeat its `topoter fit` with --resume to go on",
        "kind": kind,
        "topoter": header.get("topoter"),
        "bytes": model.stat().st_size,
        "weights": sum(tensor.numel() for tensor in weights),
        **chosen,
        "epochs": len(records),
        "last": _record(records[-1]) if records else None,
        "kept": _record(records[kept - 1]) if kept else None,
    }
    _print(found, json)


def _print(found: dict[str, Any], json: bool) -> None:
    from topoter.training import EpochRecord

    if json:
        print_json(found)
        return
    for name, value in found.items():
        if name in ("last", "kept"):
            value = value and f"epoch {value['epoch']}: {describe(EpochRecord(**value))}"
        elif isinstance(value, dict):
            value = ", ".join(f"{key} {setting}" for key, setting in value.items())
        elif name == "feature_names":
            value = ", ".join(value[:SHOWN]) + (f" and {len(value) - SHOWN:,} more" if len(value) > SHOWN else "")
        elif isinstance(value, int):
            value = f"{value:,}"
        if name != "kind" and value not in (None, ""):
            out.print(f"{name.replace('_', ' '):18} {value}", soft_wrap=True, markup=False)


def _graph(path: Path) -> dict[str, Any]:
    """A graph directory, every checksum compared."""
    from msgspec import to_builtins

    from topoter.graphs.directory import GraphDirectory

    directory = GraphDirectory.open(path)
    manifest = directory.manifest
    return {
        "file": str(path),
        "holds": "an imported graph; its files are whole",
        "kind": "graph",
        "topoter": manifest.topoter,
        "bytes": sum(file.bytes for file in manifest.files.values()),
        "nodes": manifest.num_nodes,
        "edges": manifest.num_edges,
        "weighted": "yes" if directory.weight is not None else "no",
        "features": manifest.num_features,
        "stored_as": directory.features.dtype.name,
        "feature_names": manifest.feature_names,
        "cleaned": to_builtins(manifest.cleaned),
    }


def _header(path: Path) -> dict[str, Any]:
    """What `save_checkpoint` says of a file; empty where it says nothing, and reading it then tells why."""
    from safetensors import safe_open

    try:
        with safe_open(path, framework="pt") as file:
            header = json_.loads(file.metadata()["topoter"])
    except Exception:  # a damaged file can raise nearly anything
        return {}
    return header if isinstance(header, dict) else {}


def _chosen(content: dict[str, Any]) -> dict[str, Any]:
    """The parts of a model that its user chose, and what it expects of a graph."""
    import inspect

    from topoter.encoders import ENCODERS
    from topoter.estimator import TopoTER

    parameters = TopoTER(**content["parameters"]).effective_params()
    encoder = ENCODERS.get(parameters["encoder"])
    taken = inspect.signature(encoder).parameters if encoder else ()
    return {
        "level": parameters["level"],
        "encoder": parameters["encoder"],
        "encoder_settings": {key: parameters[key] for key in taken if key in parameters}
        | (parameters["encoder_parameters"] or {}),
        "objective": _in_words(content["parameters"]["objective"]),
        "perturbation_rate": parameters["perturbation_rate"],
        "features": content["num_features"],
        "feature_names": content["feature_names"] or [],
        "table": _table(content.get("preparation")),
    }


def _table(plain: Any) -> str | None:
    """What the table of features becomes, in a line; None where the model was fitted on numbers as they were."""
    from topoter.graphs.preparation import read_preparation
    from topoter.graphs.table_notes import summary

    preparation = read_preparation(plain)
    return None if preparation is None else summary(preparation)


def _in_words(objective: Any) -> str:
    from topoter.pretext.objectives import describe_terms, named_terms

    if objective is None or isinstance(objective, str):
        return objective or "one of the user's own, which the file does not hold"
    return describe_terms([(name, weight) for name, (_, weight) in named_terms(objective).items()])


def _record(record: EpochRecord) -> dict[str, Any]:
    return {"epoch": record.epoch, "loss": record.loss, "metrics": record.metrics}
