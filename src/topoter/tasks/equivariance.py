"""Is the representation equivariant? Predict what was done to a graph, add the change it implies, and compare.

H(t-1) + dH^ should be H(t), where dH^ follows from the estimated transformation dA^.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from topoter.encoders import SGC
from topoter.errors import DataError
from topoter.kernels.sparse import SparseOperator
from topoter.pretext.objectives import TypesFromChange
from topoter.pretext.transformation import EdgeChange, TopologyTransformation
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features
from topoter.training.model import TopoTERModel

NUM_TYPES = len(EdgeChange)
_BLOCK = 65_536  # pairs decoded at a time


@dataclass(frozen=True)
class Equivariance:
    """The matrices [N, F], and numbers on how well H(t-1) + dH^ meets H(t).

    Args:
        h, h_t: H(t-1) and H(t).
        delta_h: dH^ of the estimated dA^, by the encoder itself: E(X, A + dA^) - E(X, A).
        error: ||H(t-1) + dH^ - H(t)|| / ||H(t) - H(t-1)||; 1 is as good as no estimate.
        formula_error: the same with the paper's formula dH^ = D~^-1/2 dA^ D~^-1/2 X W.
        formula_error_of_truth: and with the true dA in it: what the formula leaves out, since degrees change too.
        accuracy: share of pairs whose type was estimated rightly.
        confusion: counts [4, 4], true types by row, estimated ones by column, in the order of `EdgeChange`.
    """

    h: Tensor
    h_t: Tensor
    delta_h: Tensor
    error: float
    formula_error: float
    formula_error_of_truth: float
    accuracy: float
    confusion: Tensor

    def numbers(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "error": self.error,
            "formula_error": self.formula_error,
            "formula_error_of_truth": self.formula_error_of_truth,
            "accuracy": 100 * self.accuracy,
            "confusion": self.confusion.tolist(),
        }


@torch.no_grad()
def measure_equivariance(model: TopoTERModel, x: Features, transformation: TopologyTransformation) -> Equivariance:
    """Estimate a transformation from the change of the representations, and hold its consequence against the truth."""
    encoder = model.encoder
    if not isinstance(encoder, SGC) or encoder.order != 1 or len(encoder.layers) != 1 or encoder.negative_slope != 1:
        raise DataError(
            "The paper's dH^ is that of one linear graph convolution: use encoder='sgc', order=1, num_layers=1 and "
            "negative_slope=1."
        )
    before, after = transformation.adjacency, transformation.adjacency_t
    h, h_t = model.embed(x, before), model.embed(x, after)
    changed = float((h_t - h).norm())
    if changed == 0:
        raise DataError("The transformation changes no representation: there is nothing to estimate.")
    pairs, true_type = transformation.pairs, transformation.pair_type
    estimated = estimate_types(model, h_t - h, pairs)
    delta_h = model.embed(x, apply_types(before, pairs, estimated)) - h
    signal = encoder.project(x)
    by_formula, of_truth = (linear_delta(signal, pairs, kind, after) for kind in (estimated, true_type))
    error, formula_error, error_of_truth = (
        float((h + delta - h_t).norm()) / changed for delta in (delta_h, by_formula, of_truth)
    )
    confusion = torch.bincount(true_type * NUM_TYPES + estimated, minlength=NUM_TYPES**2).view(NUM_TYPES, NUM_TYPES)
    accuracy = float((estimated == true_type).double().mean())
    return Equivariance(h, h_t, delta_h, error, formula_error, error_of_truth, accuracy, confusion)


def estimate_types(model: TopoTERModel, delta_h: Tensor, pairs: Tensor) -> Tensor:
    """The most likely type of every pair, block by block, by the decoder of the paper's term."""
    objective = model.learned["types-from-change"]
    assert isinstance(objective, TypesFromChange)
    decoder = objective.decoder
    return torch.cat([decoder(delta_h, block).argmax(1) for block in pairs.split(_BLOCK, dim=1)])


def linear_delta(signal: Tensor, pairs: Tensor, pair_type: Tensor, after: Adjacency) -> Tensor:
    """D~^-1/2 dA D~^-1/2 X W, with dA +1 where a pair is added and -1 where one is deleted."""
    num_nodes = after.num_nodes
    degree = torch.bincount(after.edges.flatten(), minlength=num_nodes).float() + 1
    sign = (pair_type == EdgeChange.ADD).float() - (pair_type == EdgeChange.DELETE).float()
    source, target = pairs[:, sign != 0]
    value = sign[sign != 0] * (degree[source] * degree[target]).rsqrt()
    rows, columns, values = torch.cat([source, target]), torch.cat([target, source]), torch.cat([value, value])
    order = torch.argsort(rows * num_nodes + columns)
    indptr = torch.zeros(num_nodes + 1, dtype=torch.int64)
    torch.cumsum(torch.bincount(rows, minlength=num_nodes), 0, out=indptr[1:])
    return SparseOperator(indptr, columns[order].int(), values[order], num_nodes) @ signal


def apply_types(adjacency: Adjacency, pairs: Tensor, pair_type: Tensor) -> Adjacency:
    """A + dA^: estimated additions added, estimated deletions deleted; what is there or gone already stays so."""
    num_nodes = adjacency.num_nodes
    keys = pairs[0] * num_nodes + pairs[1]
    added, deleted = keys[pair_type == EdgeChange.ADD], keys[pair_type == EdgeChange.DELETE]
    kept = adjacency.keys[~torch.isin(adjacency.keys, deleted)]
    both = torch.cat([kept, added]).unique()
    return Adjacency(torch.stack([both // num_nodes, both % num_nodes]), num_nodes)


def sampled_rows(num_nodes: int, most: int) -> np.ndarray:
    """Which nodes a figure shows: all, or some at even distances."""
    return np.unique(np.linspace(0, num_nodes - 1, min(num_nodes, most)).astype(np.int64))
