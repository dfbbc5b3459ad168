"""Fitted models as files: safetensors with a JSON header, and never code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from topoter.encoders import ModuleEncoder, describe_module, is_plain_value
from topoter.errors import DataError, UsageError
from topoter.graphs.preparation import plain_preparation, read_preparation
from topoter.pretext.objectives import is_plain
from topoter.training import EpochRecord
from topoter.training.batches import usable_device
from topoter.training.building import build_model
from topoter.training.checkpoint import load_checkpoint, load_weights, save_checkpoint

if TYPE_CHECKING:
    from topoter.estimator import TopoTER


def save_fitted(estimator: TopoTER, path: str | Path) -> None:
    """Write a fitted estimator; an encoder of the user's own as the import path of its class and its arguments."""
    model = estimator.model_
    parameters = estimator.plain_parameters()
    if not isinstance(parameters["encoder"], str):
        assert isinstance(model.encoder, ModuleEncoder)
        described = describe_module(model.encoder.module, estimator.n_features_in_)
        parameters["encoder"], parameters["encoder_parameters"] = described
    elif not is_plain_value(parameters["encoder_parameters"]):
        raise UsageError(
            "A model whose encoder_parameters are not plain numbers, names and lists of them cannot be saved. "
            f"Got {parameters['encoder_parameters']!r}."
        )
    tensors = model.state_dict()
    # Code of the user's own is not kept: embedding does not need it. A model that was loaded has none.
    if not is_plain(parameters["objective"]) or not model.objectives:
        parameters["objective"] = None
        tensors = {name: tensor for name, tensor in tensors.items() if name.startswith("encoder.")}
    content = {
        "parameters": parameters,
        "num_features": estimator.n_features_in_,
        "out_channels": model.encoder.out_channels,
        "feature_names": list(getattr(estimator, "feature_names_in_", [])) or None,
        "preparation": plain_preparation(getattr(estimator, "preparation_", None)),
        "history": [[record.epoch, record.loss, record.metrics] for record in estimator.history_],
        "kept_epoch": estimator.kept_epoch_,
    }
    save_checkpoint(path, "model", tensors, content)


def kept_epoch(content: dict[str, Any], history: Sequence[EpochRecord]) -> int:
    """The epoch whose weights are kept, 0 for none; files from before it was written have those of the least loss."""
    lowest = min(history, key=lambda record: record.loss).epoch if history else 0
    return int(content.get("kept_epoch", content.get("best_epoch", lowest)))


def load_fitted(kind: type[TopoTER], path: str | Path, device: str, trust_encoder: bool) -> TopoTER:
    """The fitted estimator of class `kind` that stands in a file."""
    tensors, content = load_checkpoint(path, "model")
    try:
        given = dict(content["parameters"])
        objective = given.pop("objective")
        estimator = kind(**given, objective=objective or "paper", device=device)
        estimator.n_features_in_ = int(content["num_features"])
        estimator.preparation_ = read_preparation(content.get("preparation"))
        names, out_channels = content["feature_names"], content["out_channels"]
        history = [EpochRecord(epoch, loss, dict(metrics)) for epoch, loss, metrics in content["history"]]
        estimator.kept_epoch_ = kept_epoch(content, history)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path} does not describe a model completely ({error}). Fit the model again.") from error
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    parameters = estimator.effective_params() | {"objective": objective}
    generator = torch.Generator().manual_seed(0)  # what it draws is put over by the saved weights
    try:
        model = build_model(
            parameters, estimator.n_features_in_, generator, out_channels=out_channels, trusted=trust_encoder
        )
    except (RuntimeError, MemoryError, OverflowError, TypeError) as error:  # sizes that no machine has, say
        reason = str(error).partition("\n")[0]
        raise DataError(f"{path} describes a model that cannot be built ({reason}). Fit the model again.") from error
    load_weights(model, tensors, path)
    estimator.model_ = model.to(usable_device(device))
    estimator.history_ = history
    return estimator
