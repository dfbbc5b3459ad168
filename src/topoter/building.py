"""From parameters to a model whose weights are set to start."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from topoter.decoder import TransformationDecoder
from topoter.encoders import Encoder, ModuleEncoder, build_encoder
from topoter.errors import UsageError, invalid_parameter, whole_number
from topoter.model import TopoTERModel
from topoter.training import Batch


def build_model(
    parameters: Mapping[str, Any], in_channels: int, generator: torch.Generator, batch: Batch | None = None
) -> TopoTERModel:
    """Encoder and decoder by the parameters of `TopoTER`; every random number comes from the generator.

    `batch` is an example of what will be encoded: an encoder of the user's own needs it for its width, init="spread"
    for its thresholds.
    """
    encoder: Encoder
    if isinstance(parameters["encoder"], str):
        names = ("out_channels", "order", "num_layers", "hidden_channels", "negative_slope")
        encoder = build_encoder(parameters["encoder"], in_channels, **{name: parameters[name] for name in names})
        encoder.initialize(parameters["init"], generator, parameters["init_gain"])
        if parameters["init"] == "spread" and batch is not None:
            encoder.to(batch[1].device).spread_thresholds(*batch, generator)
    else:
        encoder = _wrap(parameters["encoder"], batch)
    decoder = TransformationDecoder(
        encoder.out_channels,
        whole_number("decoder_layers", parameters["decoder_layers"], 1),
        scale_edges=parameters["scale_edges"],
    )
    decoder.initialize(generator)
    if parameters["prior_bias"]:
        decoder.start_at_prior(parameters["perturbation_rate"])
    return TopoTERModel(encoder, decoder)


def _wrap(module: nn.Module, batch: Batch | None) -> ModuleEncoder:
    """The user's module, whose width is found by running it once."""
    if not isinstance(module, nn.Module):
        raise invalid_parameter("encoder", "TopoTER", "a name or a torch module", module)
    assert batch is not None, "a model with a module of the user's own is never loaded from a file"
    features, adjacency = batch
    module = copy.deepcopy(module)  # the parameter itself stays as the user made it, for the next fit
    probe = ModuleEncoder(module, 0).to(adjacency.device).eval()
    with torch.no_grad():
        h = probe(features, adjacency)
    if h.dim() != 2 or h.size(0) != adjacency.num_nodes:
        raise UsageError(
            f"The encoder must map (x, edge_index) to [{adjacency.num_nodes}, F]. Got {list(h.shape)} instead."
        )
    return ModuleEncoder(module, h.size(1))
