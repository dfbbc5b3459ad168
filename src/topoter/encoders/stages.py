"""An encoder as stages, for graphs whose representations do not fit into memory.

A dense stage works on rows, whatever the graph; propagation works on columns, whatever the others are. So the one
can be done a block of rows at a time, the other a block of columns. An encoder of your own is added by

    @stages.register
    def _(encoder: MyEncoder) -> list[Stage]: ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import singledispatch

import torch
from torch import Tensor, nn
from torch.nn import functional

from topoter.encoders.base import without_bias
from topoter.encoders.gcn import GCN
from topoter.encoders.gin import GIN
from topoter.encoders.hops import Hops
from topoter.encoders.sgc import SGC
from topoter.errors import UsageError
from topoter.structure.hops import as_dense
from topoter.structure.likely_graph import ReadRows, likely_groups

Apply = Callable[[Tensor, Tensor, slice], Tensor]


@dataclass(frozen=True)
class Dense:
    """Rows to rows: (h [n, K], x [n, C], rows) -> [n, K']; x are the features, and h of the first stage is x.

    `rows` are the numbers of the nodes, for what an encoder holds of each.
    """

    apply: Apply


@dataclass(frozen=True)
class Propagate:
    """H <- D^-1/2 (A + I) D^-1/2 H, so many times; or, `summed`, H <- (A + I) H.

    Columns before `first` stay as they are: what earlier layers found, for the end.
    """

    times: int
    first: int = 0
    summed: bool = False


@dataclass(frozen=True)
class Together:
    """Rows of nodes that have to be seen together, wherever they are in the graph: h [n, K] of a group -> [n, K].

    `groups` tells them from the rows, which it reads in pieces, and their number.
    """

    groups: Callable[[ReadRows, int], Iterator[Tensor]]
    apply: Callable[[Tensor], Tensor]


Stage = Dense | Propagate | Together


@singledispatch
def stages(encoder: nn.Module) -> list[Stage] | None:
    """The stages of an encoder, a dense one first and last; None where it has to see the whole graph at once."""
    return None


@stages.register
def _(encoder: SGC) -> list[Stage]:
    found: list[Stage] = []
    for number, layer in enumerate(encoder.layers):
        narrow = number == 0 and layer.in_features < layer.out_features
        if narrow:  # A (X W) = (A X) W: what is narrower is propagated
            found += [Dense(lambda h, x, rows: h), Propagate(encoder.order)]
        else:
            found += [Dense(_linear(layer)), Propagate(encoder.order)]
        found.append(Dense(_activated(layer, encoder.negative_slope, narrow)))
    return _merged(found)


@stages.register
def _(encoder: GCN) -> list[Stage]:
    found: list[Stage] = []
    for number, layer in enumerate(encoder.layers):
        slope = 0.0 if number < len(encoder.layers) - 1 else 1.0
        found += [Dense(_linear(layer)), Propagate(1), Dense(_activated(layer, slope, False))]
    return _merged(found)


@stages.register
def _(encoder: GIN) -> list[Stage]:
    found: list[Stage] = [Dense(_linear(encoder.first[0]))]
    for number, first in enumerate(encoder.first):
        found += [Propagate(1, number * first.out_features, summed=True), Dense(_gin_layer(encoder, number))]
    return found


@stages.register
def _(encoder: Hops) -> list[Stage]:
    """Hop 1 stays after one propagation, the trained part goes on; hop 0 and the places come in at the end.

    Likely neighbours, where the model has any, are looked for last.
    """
    near = encoder.hop1.size(1)

    def start(h: Tensor, x: Tensor, rows: slice) -> Tensor:
        x = as_dense(encoder.prepared(x))
        return torch.cat([x @ encoder.hop1, (x @ encoder.far) @ encoder.weight], dim=1)

    def end(h: Tensor, x: Tensor, rows: slice) -> Tensor:
        place = encoder.elsewhere(len(h)) if encoder.here is None else encoder.here[rows]
        return encoder.turned(
            torch.cat([h[:, near:], as_dense(encoder.prepared(x)) @ encoder.hop0, h[:, :near], place], dim=1)
        )

    same = Dense(lambda h, x, rows: h)
    between: list[Stage] = [Propagate(1), same, Propagate(encoder.order - 1, near)]
    likely: list[Stage] = [Together(likely_groups, encoder.drawn), same] if float(encoder.pull) else []
    return [Dense(start), *(between if encoder.order > 1 else between[:1]), Dense(end), *likely]


def needed_stages(encoder: nn.Module) -> list[Stage]:
    """The stages of an encoder that has to have some."""
    found = stages(encoder)
    if found is None:
        raise UsageError("The encoder of this model needs the whole graph in memory to embed it.")
    return found


def hops(found: list[Stage]) -> int:
    """How far a node's representation sees."""
    return sum(stage.times for stage in found if isinstance(stage, Propagate))


def _linear(layer: nn.Linear) -> Apply:
    return lambda h, x, rows: without_bias(layer, h)


def _activated(layer: nn.Linear, slope: float, with_weight: bool) -> Apply:
    def apply(h: Tensor, x: Tensor, rows: slice) -> Tensor:
        h = (without_bias(layer, h) if with_weight else h) + layer.bias
        return torch.relu(h) if slope == 0 else functional.leaky_relu(h, slope)

    return apply


def _gin_layer(encoder: GIN, number: int) -> Apply:
    """From [outputs so far | sums] to [outputs | what the next layer sums]."""
    width = encoder.first[number].out_features

    def apply(h: Tensor, x: Tensor, rows: slice) -> Tensor:
        output = encoder.layer(number, h[:, number * width :])
        outputs = torch.cat([h[:, : number * width], output], dim=1)
        if number + 1 == len(encoder.first):
            return outputs
        return torch.cat([outputs, without_bias(encoder.first[number + 1], output)], dim=1)

    return apply


def _merged(found: list[Stage]) -> list[Stage]:
    """Two dense stages in a row as one, so that what lies between is never written down."""
    merged: list[Stage] = []
    for stage in found:
        before = merged[-1] if merged else None
        if isinstance(stage, Dense) and isinstance(before, Dense):
            merged[-1] = Dense(_one_after_the_other(before, stage))
        else:
            merged.append(stage)
    return merged


def _one_after_the_other(first: Dense, second: Dense) -> Apply:
    return lambda h, x, rows: second.apply(first.apply(h, x, rows), x, rows)
