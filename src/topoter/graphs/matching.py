"""A new graph's features put in the order a model knows them: matched by name, and a mismatch explained."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch

from topoter.errors import DataError
from topoter.graphs.features import STRUCTURAL_NAMES

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from topoter.graphs.preparation import Preparation

_logger = logging.getLogger(__name__)
_SHOWN = 5  # names of each kind that a message lists


def match_features(data: Data, known: Sequence[str] | None, count: int) -> Data:
    """The graph with its features in the model's order; a DataError says what does not match.

    `known` are the names the model was fitted on and `count` their number. Where either side has no names, only the
    number can be compared. Another order is put right. A category that the new graph happens not to use
    (`colour=red`, while other colours are there) becomes a column of zeros, as one-hot encoding means it.
    """
    names = data.get("feature_names")
    if known is None and count == 1 and names == STRUCTURAL_NAMES:
        # A model of snapshots, whose nodes have nothing but the number 1, and a graph that came without features too.
        _logger.info("The model was fitted on a single feature: the number 1 takes the place of degree and constant.")
        data = copy.copy(data)
        data.x, data.feature_names = torch.ones(data.num_nodes, 1), None
        return data
    if names is None or known is None:
        if data.x.size(1) != count:
            raise DataError(f"The graph has {data.x.size(1)} features per node; the model was fitted on {count}.")
        return data
    names, known = list(names), list(known)
    if names == known:
        return data
    place = {name: column for column, name in enumerate(names)}
    columns = {_column_of(name) for name in names} - {None}
    absent = [name for name in known if name not in place]
    unused = [name for name in absent if _column_of(name) in columns]
    extra = [name for name in names if name not in set(known)]
    if extra or len(unused) < len(absent):
        raise DataError(_explanation(known, names, [name for name in absent if name not in unused], extra))
    if unused:
        _logger.info(f"No node of this graph is {_listed(unused)}: those features are zero.")
    dense = torch.nn.functional.pad(data.x.to_dense(), (0, 1))  # its last column is zeros, for `unused`
    matched = copy.copy(data)
    matched.x, matched.feature_names = dense[:, [place.get(name, -1) for name in known]], known
    return matched


def column_map(names: Sequence[str], known: Sequence[str] | None, count: int) -> torch.Tensor | None:
    """The matrix [C, C'] that takes rows of a graph's features to those of a model; None where they are the same."""
    from torch_geometric.data import Data

    names = list(names)
    if known is None and count == 1 and names == STRUCTURAL_NAMES:
        return torch.tensor([[0.0], [1.0]])  # the constant, as in `match_features`
    same = torch.eye(len(names))
    matched: torch.Tensor = match_features(Data(x=same, feature_names=names), known, count).x
    return None if torch.equal(matched, same) else matched


def feature_map(
    names: Sequence[str], preparation: Preparation | None, known: Sequence[str] | None, count: int
) -> Callable[[torch.Tensor], torch.Tensor]:
    """What takes rows of an imported graph's features to those of a model, whose table was prepared or was not."""
    if preparation is not None and not preparation.keeps_numbers:
        return lambda x: preparation.transform_stored(x, names)
    select = column_map(names, known, count)
    return lambda x: x if select is None else x @ select


def _column_of(name: str) -> str | None:
    """The column a one-hot feature such as `colour=red` was made from."""
    return name.partition("=")[0] if "=" in name else None


def _explanation(known: list[str], names: list[str], missing: list[str], extra: list[str]) -> str:
    """What differs and, where it can be told, what to do."""
    if known == STRUCTURAL_NAMES:
        return (
            "The model was fitted on a graph without features (on degrees and a constant), but this graph has "
            f"{_listed(names)}. Leave the features out, or fit a model with them."
        )
    if names == STRUCTURAL_NAMES:
        return (
            f"The model was fitted on the features {_listed(known)}, but this graph has none. "
            "Give its features (--features FILE, or x= in Python)."
        )
    parts = [f"missing {_listed(missing)}"] if missing else []
    parts += [f"not known to the model {_listed(extra)}"] if extra else []
    columns = {_column_of(name) for name in known} - {None}
    hint = ""
    if extra and all(_column_of(name) in columns for name in extra):
        hint = " A category the model has never seen has no weights: fit again, or blank it."
    return f"The features are not those the model was fitted on: {', '.join(parts)}.{hint}"


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN:,} more"
