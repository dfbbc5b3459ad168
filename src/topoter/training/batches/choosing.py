"""What a model is trained on: transformations drawn for every step, or moments of a few; of a graph or its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch

from topoter.encoders import Hops, Profile
from topoter.encoders.base import Encoder
from topoter.pretext.transformation import Rate
from topoter.training.batches.graphs import Transformed
from topoter.training.batches.hop_parts import adapt_to_parts, finish_on_parts, moments_of_parts
from topoter.training.batches.moments import direction_batches, moment_batches
from topoter.training.batches.subgraphs import SubgraphBatches
from topoter.training.callbacks import Callback
from topoter.training.model import TopoTERModel


def adaptation(encoder: Any, batches: Iterable[Any]) -> Callable[[Any, torch.Generator], None] | None:
    """How an encoder of that name starts from the data, where an example of them is not enough."""
    if isinstance(encoder, str) and encoder == "hops" and isinstance(batches, SubgraphBatches):
        return partial(adapt_to_parts, parts=batches)
    return None


def training_batches(
    model: TopoTERModel, batches: Iterable[Any], rate: Rate, sampler: str, generator: torch.Generator, judged: bool
) -> tuple[Iterable[Any], list[Callback]]:
    """The batches of every epoch as the model takes them, and the callback that judges it where hidden edges do."""
    encoder = model.encoder
    if isinstance(encoder, Profile):
        x, adjacency = next(iter(batches))
        return direction_batches(encoder, x, adjacency, rate, sampler, generator), []
    transformed = Transformed(batches, generator, rate, sampler)
    if not judged:
        return transformed, []
    assert isinstance(encoder, Hops)
    if isinstance(batches, SubgraphBatches):
        moments, judge = moments_of_parts(encoder, batches, rate, generator)
    else:
        x, adjacency = next(iter(batches))
        moments, judge = moment_batches(encoder, x, adjacency, rate, generator)
    return moments if model.is_linear else transformed, [judge]


def finish(encoder: Encoder, batches: Iterable[Any]) -> None:
    """What an encoder takes from the data after the training."""
    if not isinstance(batches, SubgraphBatches):
        encoder.finish(*next(iter(batches)))
    elif isinstance(encoder, Hops):
        finish_on_parts(encoder, batches)
