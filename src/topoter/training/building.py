"""From parameters to a model whose weights are set to start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from topoter.encoders import Encoder, ModuleEncoder, build_encoder, build_module
from topoter.pretext.objectives import build_objectives
from topoter.structure.graph_sets import Batch
from topoter.training.model import TopoTERModel


def build_model(
    parameters: Mapping[str, Any],
    in_channels: int,
    generator: torch.Generator,
    batch: Batch | None = None,
    *,
    out_channels: int = 0,
    trusted: bool = True,
    adapt: Callable[[Any, torch.Generator], None] | None = None,
) -> TopoTERModel:
    """Encoder and objectives by the parameters of `TopoTER`; every random number comes from the generator.

    Args:
        batch: an example of what will be encoded: an encoder of the user's own needs it for its width, init="spread"
            for its thresholds. Without it the width is `out_channels`.
        adapt: in the place of the encoder's own, where it must not see the example alone.
        trusted: whether a class may be imported that this process has not imported yet.
    """
    chosen, extra = parameters["encoder"], parameters["encoder_parameters"]
    encoder: Encoder
    if isinstance(chosen, str) and ":" not in chosen:
        encoder = build_encoder(chosen, in_channels, parameters, extra)
        encoder.initialize(parameters["init"], generator, parameters["init_gain"])
        if parameters["init"] == "spread" and batch is not None:
            encoder.to(batch[1].device).spread_thresholds(*batch, generator)
        if adapt is not None:
            adapt(encoder, generator)
        elif batch is not None:
            encoder.adapt(*batch, generator)
    else:
        module = chosen
        if isinstance(chosen, str):
            seed = int(torch.randint(1 << 31, (), generator=generator))
            module = build_module(chosen, extra or {}, in_channels=in_channels, seed=seed, trusted=trusted)
        encoder = ModuleEncoder.around(module, *batch) if batch else ModuleEncoder(module, out_channels)
    if parameters["objective"] is None:  # a model that is there to embed: what it was trained by is not known
        return TopoTERModel(encoder, {})
    objectives = build_objectives(parameters["objective"], encoder.trained_channels, parameters, generator)
    return TopoTERModel(encoder, objectives)
